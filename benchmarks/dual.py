"""Objective and gradient of one large ground set with a similarity of 64 columns.

Three Gaussians of rank 16 and a linear part of 16 features, their weights learned.
Every size is measured in a process of its own, on one thread: the time of an
evaluation, and the peak of the memory of the whole process, data included.

    python -m benchmarks.dual [--out FILE.json] [--sizes 10000 100000 1000000]
"""

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import variegate as vg
from benchmarks.timing import measure_time
from variegate.learning.examples import check_examples
from variegate.learning.objective import LargeMarginLoss
from variegate.learning.problem import TrainingProblem

SIZES = (10_000, 100_000, 1_000_000)


def peak_memory_gb():
    """Return the peak of this process's memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def measure(n_items, repeats=5):
    """Return times and memory of one ground set."""
    rng = np.random.default_rng(0)
    ground_set = vg.GroundSet(
        rng.standard_normal((n_items, 4)), rng.standard_normal((n_items, 16))
    )
    kernel = vg.MultipleKernel([4.0, 8.0, 16.0], approximation="fourier", rank=16)
    start = time.perf_counter()
    problem = TrainingProblem(
        check_examples([ground_set], [rng.permutation(n_items)[:10]], 1.0),
        kernel.fit([ground_set]),
        LargeMarginLoss(1.0),
    )
    prepare = time.perf_counter() - start
    point = problem.space.center()
    # About as many items as are wanted: Σ L_ii = N e^{2b} = 100.
    point[problem.space.slices["intercept"]] = 0.5 * math.log(100 / n_items)
    before = peak_memory_gb()
    timing = measure_time(lambda: problem.value_and_gradient(point), repeats)
    value, gradient = problem.value_and_gradient(point)
    assert value > 0
    assert gradient.any()
    return {
        "n_items": n_items,
        "n_columns": 64,
        "prepare_s": prepare,
        "evaluation_s": timing.median,
        "spread_s": timing.spread,
        "peak_before_gb": before,
        "peak_gb": peak_memory_gb(),
    }


def main():
    """Measure every size in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one)))
        return
    rows = []
    print(f"{'items':>9} {'prepare':>9} {'evaluation':>12} {'exponent':>9} {'peak':>9}")
    for n_items in arguments.sizes:
        command = [sys.executable, "-m", "benchmarks.dual", "--one", str(n_items)]
        output = subprocess.run(command, check=True, capture_output=True, text=True)
        row = json.loads(output.stdout)
        growth = math.nan
        if rows:
            last = rows[-1]
            growth = math.log(row["evaluation_s"] / last["evaluation_s"]) / math.log(
                n_items / last["n_items"]
            )
        row["exponent"] = None if math.isnan(growth) else growth
        rows.append(row)
        print(
            f"{n_items:>9} {row['prepare_s']:>8.2f}s {row['evaluation_s']:>7.3f}s "
            f"±{row['spread_s']:.2f} {growth:>7.2f} {row['peak_gb']:>6.2f} GB"
        )
    if arguments.out:
        arguments.out.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
