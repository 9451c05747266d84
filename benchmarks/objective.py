"""Objective and gradient of many small ground sets, and of one large one.

Competitor: the paper's appendix, transcribed for one ground set and called in a loop.
Every pair is measured in one process on one thread; what counts is the ratio.

    python benchmarks/objective.py [--out FILE.json]
"""

import argparse
import json
import os
import sys
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import variegate as vg
from variegate.benchmarks.timing import measure_time
from variegate.objective import LargeMarginLoss
from variegate.problem import TrainingProblem

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from reference import appendix_loss


def measure(n_sets, n_items, repeats):
    rng = np.random.default_rng(0)
    ground_sets = [
        vg.GroundSet(
            rng.standard_normal((n_items, 5)), rng.standard_normal((n_items, 20))
        )
        for _ in range(n_sets)
    ]
    subsets = [np.sort(rng.permutation(n_items)[: n_items // 3]) for _ in ground_sets]
    problem = TrainingProblem(
        ground_sets,
        subsets,
        vg.Gaussian(5.0),
        LargeMarginLoss(1.0),
        false_positive=[1.0] * n_sets,
        false_negative=[1.0] * n_sets,
    )
    theta = rng.standard_normal(5) * 0.1
    point = np.append(theta, 0.0)
    kernels = [problem.kernel.matrix(gs) for gs in ground_sets]

    def transcription():
        gradient = np.zeros(5)
        for gs, S, y in zip(ground_sets, kernels, subsets, strict=True):
            q = np.exp(gs.quality @ theta)
            L = q[:, None] * S * q
            _, G = appendix_loss(L, y.tolist(), 1.0, 1.0)
            gradient += 2.0 * gs.quality.T @ (G * L).sum(axis=1)
        return gradient / n_sets

    ours, ours_spread = measure_time(lambda: problem.value_and_gradient(point), repeats)
    theirs, theirs_spread = measure_time(transcription, repeats)
    return {
        "n_sets": n_sets,
        "n_items": n_items,
        "variegate_s": ours,
        "variegate_spread_s": ours_spread,
        "appendix_s": theirs,
        "appendix_spread_s": theirs_spread,
        "ratio": theirs / ours,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    rows = [
        measure(n_sets, n_items, repeats)
        for n_sets, n_items, repeats in ((1000, 10, 7), (50, 100, 7), (1, 1000, 5))
    ]
    print("| ground sets | items | variegate, ms | appendix, ms | ratio |")
    print("|---|---|---|---|---|")
    for row in rows:
        print(
            f"| {row['n_sets']} | {row['n_items']} "
            f"| {1e3 * row['variegate_s']:.1f} | {1e3 * row['appendix_s']:.1f} "
            f"| {row['ratio']:.1f} |"
        )
    if arguments.out:
        arguments.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
