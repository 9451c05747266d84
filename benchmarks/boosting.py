"""Compare linear and boosted quality in fits of tables.

    python -m benchmarks.boosting              all tables
    python -m benchmarks.boosting interaction --seeds 1

``interaction`` has rows of eight kinds whose merit is the product of two columns and a
third; the best row of each kind is wanted if its merit is above zero.  ``queries`` are
those of ``make_table``, and ``kinds`` those of ``benchmarks.fit_search``, both with a
relevance that is linear.  A selector learns from 240 groups, with each
``quality_model``, and is judged by 300 new groups.  Printed are seconds of CPU with one
BLAS thread, the mean F-score, and its paired difference from that of the linear quality
with a 95 % interval over groups.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from benchmarks.fit_search import CASES
from benchmarks.taste_tasks import Group, Task, best_of_each, times
from variegate.tables import TableSelector, make_table
from variegate.tuning.held_out import SCORES, paired_difference

N_TRAIN, N_TEST = 240, 300


def interaction(rng, n_train, n_test):
    """Choose the best row of each kind, if its merit is above zero."""
    centres = 2.0 * rng.standard_normal((8, 8))

    def group():
        kind = rng.choice(8, 24)
        quality = rng.standard_normal((24, 6))
        merit = 2.0 * quality[:, 0] * quality[:, 1] + quality[:, 2]
        merit += 0.5 * rng.standard_normal(24)
        best = np.asarray(best_of_each(kind, merit))
        wanted = best[merit[best] > 0.0] if (merit[best] > 0.0).any() else best[:1]
        vectors = centres[kind] + 0.7 * rng.standard_normal((24, 8))
        return Group(quality, vectors, wanted)

    return times(n_train, group), times(n_test, group)


def queries(seed):
    """Return the roles of columns, and tables of generated queries."""
    columns = {
        "group": "query", "item": "item", "label": "chosen", "categorical": "kind",
        "quality": ["score", "freshness", "popularity"], "similarity": "embedding",
    }  # fmt: skip
    train = make_table(N_TRAIN, 50, random_state=seed)
    return columns, train, make_table(N_TEST, 50, random_state=1000 + seed)


def tables_of(task, seed):
    """Return the roles of columns, and the tables of a task."""
    return task.columns, *task.tables(seed, N_TRAIN, N_TEST)


TABLES = {
    "interaction": lambda seed: tables_of(
        Task("interaction", interaction, is_vector=False), seed
    ),
    "queries": queries,
    "kinds": lambda seed: tables_of(CASES["default"][0], seed),
}


def measure(columns, train, test, quality_model):
    """Return seconds of CPU, F-scores of new groups, and whether there are trees."""
    selector = TableSelector(**columns, quality_model=quality_model)
    cpu = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        selector.fit(train)
    cpu = time.process_time() - cpu
    scores = selector.evaluate(test, name="learned").scores["learned"]
    is_boosted = selector.encoding_.boosting is not None
    return cpu, scores[:, SCORES.index("f")], is_boosted


def main():
    """Fit with every quality model, and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", choices=[[], *TABLES], default=[])
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    print("| table | quality | CPU s | F | F minus linear | boosted |")
    print("|---|---|---|---|---|---|")
    for name in given.tables or TABLES:
        data = [TABLES[name](seed) for seed in range(given.seeds)]
        linear = None
        for model in ("linear", "boosting", "auto"):
            found = [measure(*tables, model) for tables in data]
            f = np.concatenate([scores for _, scores, _ in found])
            linear = f if linear is None else linear
            less, error = paired_difference(f, linear)
            cpu = np.mean([seconds for seconds, *_ in found])
            n_boosted = sum(is_boosted for *_, is_boosted in found)
            print(
                f"| {name} | {model} | {cpu:.1f} | {f.mean():.3f} "
                f"| {less:+.3f} ± {1.96 * error:.3f} | {n_boosted} of {len(found)} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
