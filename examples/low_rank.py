"""How close low-rank similarities come to the exact one as their rank grows.

Loss and gradient of one ground set of 600 items, three Gaussians with learned weights,
by Nyström and by random Fourier features, against the dense similarity.

    python examples/low_rank.py [FILE.png]
"""

import sys
from pathlib import Path

import numpy as np

import variegate as vg
from variegate.learning.examples import check_examples
from variegate.learning.objective import LargeMarginLoss
from variegate.learning.problem import TrainingProblem
from variegate.report.figures import COLOURS, new_figure, to_png

N_ITEMS = 600
RANKS = (10, 20, 40, 80, 160, 320)
N_SEEDS = 5
BANDWIDTHS = [4.0, 8.0, 16.0]


def evaluate(ground_set, subset, **options):
    """Return the loss and its gradient at one point, all parameters learned."""
    kernel = vg.MultipleKernel(bandwidths=BANDWIDTHS, linear=False, **options)
    problem = TrainingProblem(
        check_examples([ground_set], [subset], omega=1.0),
        kernel.fit([ground_set]),
        LargeMarginLoss(1.0),
        jitter=1e-2,
    )
    point = np.concatenate([np.full(4, 0.2), [-2.0], [0.2, 0.3, 0.5]])
    return problem.value_and_gradient(point)


def errors():
    """Return mean relative errors of loss and gradient by approximation and rank."""
    rng = np.random.default_rng(0)
    ground_set = vg.GroundSet(
        rng.standard_normal((N_ITEMS, 4)), rng.standard_normal((N_ITEMS, 6))
    )
    subset = np.sort(rng.permutation(N_ITEMS)[:12])
    value, gradient = evaluate(ground_set, subset)
    found = {}
    for approximation in ("nystroem", "fourier"):
        for rank in RANKS:
            runs = []
            for seed in range(N_SEEDS):
                v, g = evaluate(
                    ground_set,
                    subset,
                    approximation=approximation,
                    rank=rank,
                    random_state=seed,
                )
                off = np.linalg.norm(g - gradient) / np.linalg.norm(gradient)
                runs.append((abs(v - value) / abs(value), off))
            found[approximation, rank] = np.mean(runs, axis=0)
    return found


def draw(found):
    """Return the figure: errors against rank, both axes logarithmic."""
    figure, panels = new_figure(8.6, 3.6, panels=2)
    styles = (("nystroem", "Nyström", "lme", "o"), ("fourier", "Fourier", "mle", "s"))
    for axes, place, title in zip(panels, (0, 1), ("loss", "gradient"), strict=True):
        for approximation, name, colour, marker in styles:
            axes.plot(
                RANKS,
                [found[approximation, rank][place] for rank in RANKS],
                color=COLOURS[colour],
                marker=marker,
                label=name,
            )
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(RANKS, [str(rank) for rank in RANKS])
        axes.minorticks_off()
        axes.set_xlabel("rank of each Gaussian")
        axes.set_ylabel(f"relative error of the {title}")
    panels[0].legend(frameon=False)
    figure.suptitle(f"{N_ITEMS} items, three Gaussians, mean of {N_SEEDS} seeds")
    return figure


if __name__ == "__main__":
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("low-rank.png")
    found = errors()
    for (approximation, rank), (loss, gradient) in found.items():
        print(
            f"{approximation:9} rank {rank:3d}: loss {loss:.2e} gradient {gradient:.2e}"
        )
    out.write_bytes(to_png(draw(found)))
