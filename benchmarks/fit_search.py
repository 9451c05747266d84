"""Time the search of a fit, and judge the model that it finds.

    python -m benchmarks.fit_search               both tables
    python -m benchmarks.fit_search wide --seed 1
    PYTHONPATH=OTHER/src python -m benchmarks.fit_search    another version

``wide`` is ``variegate fit --tune --kernel multiple`` of 1,000 groups of about 57 rows,
with 23 quality columns that are strongly correlated and 256 similarity columns.
``default`` is ``variegate fit`` of 240 groups of 24 rows and 64 similarity columns.
Printed are seconds of CPU and of the clock with one BLAS thread, and the mean F-score
of 300 new groups.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from benchmarks.taste_tasks import Group, Task, best_of_each, editor, times
from variegate.tables import TableSelector
from variegate.tuning.held_out import SCORES

N_QUALITY, N_SIMILARITY = 23, 256
N_KINDS, N_HERE = 24, 10


def wide(rng, n_train, n_test):
    """Choose the best row of each kind; what is seen of merit is correlated."""
    basis = np.linalg.qr(rng.standard_normal((N_SIMILARITY, N_SIMILARITY)))[0]
    kinds = 0.6 * rng.standard_normal((N_KINDS, 12)) @ basis[:12]
    taste = 2.0 * rng.standard_normal(N_QUALITY) / N_QUALITY**0.5
    mixed = rng.standard_normal((N_QUALITY, N_QUALITY)) / N_QUALITY**0.5
    mixed *= np.geomspace(1.0, 0.02, N_QUALITY)[:, None]

    def group():
        n_items = int(rng.integers(30, 85))
        here = rng.choice(N_KINDS, N_HERE, replace=False)
        kind = rng.choice(here, n_items)
        vectors = kinds[kind] + 0.25 * rng.standard_normal((n_items, N_SIMILARITY))
        vectors += rng.standard_normal((n_items, 4)) @ basis[12:16]
        latent = rng.standard_normal((n_items, N_QUALITY))
        merit = latent @ taste + 0.3 * rng.standard_normal(n_items)
        return Group(latent @ mixed, vectors, best_of_each(kind, merit))

    return times(n_train, group), times(n_test, group)


#: The task, the number of groups to learn from, and the settings of the selector.
CASES = {
    "wide": (
        Task("wide", wide, is_vector=False),
        1000,
        {"tune": True, "kernel": "multiple"},
    ),
    "default": (Task("12 kinds", editor(12, 8), has_kinds=True), 240, {}),
}


def fit(case, seed, n_test=300):
    """Return seconds of CPU and of the clock, the selector, and F of new groups."""
    task, n_train, settings = CASES[case]
    train, test = task.tables(seed, n_train, n_test)
    selector = TableSelector(**task.columns, **settings)
    wall, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        selector.fit(train)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    scores = selector.evaluate(test, name="learned").scores["learned"]
    return cpu, wall, selector, float(scores[:, SCORES.index("f")].mean())


def main():
    """Fit, and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", choices=[[], *CASES], default=[])
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print("| table | CPU s | clock s | F | lambda | omega | kernel |")
    print("|---|---|---|---|---|---|---|")
    for case in given.cases or CASES:
        cpu, wall, selector, f = fit(case, given.seed)
        model = selector.model_
        print(
            f"| {case} | {cpu:.1f} | {wall:.1f} | {f:.4f} | {model.lam:g} "
            f"| {selector.omega_:g} | {type(model.kernel_).__name__} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
