"""Learn known parameters with and without the items that are given.

    python -m benchmarks.given_truth [--out FOLDER] [--draws 8]

A ground set has 12 items with two Gaussian quality features.  Similarity features are
near to them, so that similar items are of similar quality.  The three best items are
given.  Subsets of the other nine are drawn from the conditional process of known
parameters.  Maximum likelihood learns the parameters from growing numbers of ground
sets, once with ``given`` and once from the nine candidates alone.  Prints mean
distances to the true parameters and writes given-truth.png and given-truth.json.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

import variegate as vg
from paper.text_tables import markdown_table
from variegate.report.figures import COLOURS, new_figure, to_png

SIZES = (50, 100, 200, 400, 800, 1600, 3200)
TRUTH = np.array([1.5, -1.0, -0.5])  # two weights and the intercept
RIDGE = 1e-2
WAYS = {"with given": "lme", "without given": "mle"}


def draw(n_sets, rng):
    """Return ground sets with given items, and subsets drawn beside these."""
    ground_sets, subsets = [], []
    for _ in range(n_sets):
        X = rng.standard_normal((12, 2))
        near = X + 0.3 * rng.standard_normal((12, 2))
        features = np.hstack([near, np.ones((12, 1))])
        log_quality = X @ TRUTH[:2] + TRUTH[2]
        S = features @ features.T
        S += RIDGE * np.diag(np.diag(S))
        given = np.argsort(-log_quality)[:3]
        ensemble = vg.LEnsemble.from_quality(S, log_quality).condition(include=given)
        picks = ensemble.sample(1, random_state=rng)[0]
        ground_sets.append(vg.GroundSet(X, features, given=given))
        subsets.append(ensemble.items[picks])
    return ground_sets, subsets


def hide(ground_sets, subsets):
    """Return the candidates alone, with the subsets as their numbers."""
    hidden = [one.take(one.candidates) for one in ground_sets]
    pairs = zip(ground_sets, subsets, strict=True)
    return hidden, [np.searchsorted(one.candidates, chosen) for one, chosen in pairs]


def learn(ground_sets, subsets):
    """Return the parameters of largest likelihood."""
    model = vg.LargeMarginDPP(lam=0.0, kernel=vg.Linear(), jitter=RIDGE)
    model.fit(ground_sets, subsets)
    return np.append(model.theta_, model.intercept_)


def measure(n_draws):
    """Return learned parameters by way, (draws, sizes, 3)."""
    found = {way: np.zeros((n_draws, len(SIZES), 3)) for way in WAYS}
    for k in range(n_draws):
        known = draw(SIZES[-1], np.random.default_rng(k))
        for way, data in zip(WAYS, (known, hide(*known)), strict=True):
            for place, n in enumerate(SIZES):
                found[way][k, place] = learn(data[0][:n], data[1][:n])
    return found


def plot(found):
    """Return the figure: distances to the truth, and the three parameters."""
    figure, (left, right) = new_figure(8.6, 3.4, panels=2)
    for way, estimates in found.items():
        colour = COLOURS[WAYS[way]]
        errors = np.linalg.norm(estimates - TRUTH, axis=2)
        left.fill_between(
            SIZES, errors.min(0), errors.max(0), color=colour, alpha=0.15, linewidth=0
        )
        left.plot(SIZES, errors.mean(0), "o-", color=colour, label=way, markersize=4)
        for number, marker in enumerate("os^"):
            middle = estimates[:, :, number].mean(0)
            right.plot(SIZES, middle, f"{marker}-", color=colour, markersize=5)
    for number, marker in enumerate("os^"):
        right.axhline(TRUTH[number], color="#333333", linestyle="--", linewidth=1)
        right.plot([], [], marker, color="#777777", label=("θ₁", "θ₂", "b")[number])
    right.legend(frameon=False, ncols=3, loc="center", bbox_to_anchor=(0.5, 0.57))
    left.set(yscale="log", title="distance to the true parameters")
    right.set(title="learned parameters, and the truth (dashed)")
    for axes in (left, right):
        axes.set(xscale="log", xlabel="ground sets to learn from")
        axes.set_xticks(SIZES, list(map(str, SIZES)))
        axes.minorticks_off()
        axes.title.set_size(11)
    ticks = (0.05, 0.1, 0.2, 0.5, 1.0)
    left.set_yticks(ticks, list(map(str, ticks)))
    left.legend(frameon=False)
    return figure


def main():
    """Learn from all draws, print a table and write the files."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("out/bench"))
    parser.add_argument("--draws", type=int, default=8)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    found = measure(options.draws)
    rows = []
    for way, estimates in found.items():
        errors = np.linalg.norm(estimates - TRUTH, axis=2)
        mean = estimates[:, -1].mean(axis=0)
        rows.append((way, *(f"{e:.2f}" for e in errors.mean(0)), f"{mean.round(2)}"))
    header = ("learned", *map(str, SIZES), f"parameters, truth {TRUTH}")
    print(markdown_table(header, rows))
    record = {way: estimates.tolist() for way, estimates in found.items()}
    (options.out / "given-truth.json").write_text(json.dumps(record) + "\n")
    (options.out / "given-truth.png").write_bytes(to_png(plot(found)))


if __name__ == "__main__":
    main()
