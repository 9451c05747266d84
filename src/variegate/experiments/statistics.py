"""Means with standard errors, and intervals of paired differences.

Records of the documents and of the videos hold ``judged``, the name of what was judged,
and ``runs``, a list of scores for each run of a method.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from variegate._typing import FloatArray
from variegate.application.intervals import bootstrap_means
from variegate.experiments.frame import Record

__all__ = ["compare", "finite", "grouped", "mean_and_error", "means_of_runs"]

Key = TypeVar("Key", bound=Hashable)


def grouped(
    records: Iterable[Record], key: Callable[[Record], Key]
) -> dict[Key, list[Record]]:
    """Return records by a key, both in the order in which they come."""
    groups: dict[Key, list[Record]] = {}
    for record in records:
        groups.setdefault(key(record), []).append(record)
    return groups


def finite(records: Iterable[Record]) -> list[Record]:
    """Return the records that have scores: a lone person agrees with nobody."""
    return [record for record in records if np.isfinite(record["runs"]).all()]


def mean_and_error(scores: Sequence[str], rows: FloatArray) -> dict[str, Any]:
    """Return the means over rows, and in ``se`` their standard errors.

    Of a single row there is no standard error: None.
    """
    error: dict[str, Any] = dict.fromkeys(scores)
    if len(rows) > 1:
        error = _named(scores, rows.std(axis=0, ddof=1) / np.sqrt(len(rows)))
    return {**_named(scores, rows.mean(axis=0)), "se": error}


def means_of_runs(scores: Sequence[str], records: Iterable[Record]) -> dict[str, Any]:
    """Return the means over all that was judged and over runs.

    ``se`` is the standard error over the runs of methods that draw samples, as in the
    paper; None where every run gives the same.
    """
    runs = np.mean([record["runs"] for record in finite(records)], axis=0)
    return mean_and_error(scores, runs)


def compare(
    scores: Sequence[str],
    first: Iterable[Record],
    second: Iterable[Record],
    n_bootstrap: int,
    seed: int,
) -> Record:
    """Return how much higher the first scores, with 95% bootstrap intervals.

    Differences are paired: all that the second judged, the first judged too.
    """
    means = {r["judged"]: np.mean(r["runs"], axis=0) for r in first}
    difference = np.array(
        [means[r["judged"]] - np.mean(r["runs"], axis=0) for r in finite(second)]
    )
    samples = bootstrap_means(difference, n_bootstrap, seed)
    low, high = np.quantile(samples, [0.025, 0.975], axis=0)
    found = {"difference": difference.mean(axis=0), "low": low, "high": high}
    return {key: _named(scores, values) for key, values in found.items()}


def _named(scores: Sequence[str], values: FloatArray) -> dict[str, float]:
    return dict(zip(scores, values.tolist(), strict=True))
