"""Standard errors over runs, and intervals of paired differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from variegate._typing import FloatArray
from variegate.application.intervals import bootstrap_means

__all__ = ["named", "paired_bootstrap", "standard_errors"]


def named(scores: Sequence[str], values: FloatArray) -> dict[str, float]:
    """Return values by the names of their scores."""
    return dict(zip(scores, values.tolist(), strict=True))


def standard_errors(scores: Sequence[str], rows: FloatArray) -> dict[str, Any]:
    """Return the standard errors of means over rows, None for a single row."""
    if len(rows) < 2:
        return dict.fromkeys(scores)
    return named(scores, rows.std(axis=0, ddof=1) / np.sqrt(len(rows)))


def paired_bootstrap(
    scores: Sequence[str],
    first: Mapping[str, FloatArray],
    second: Mapping[str, FloatArray],
    n_bootstrap: int,
    seed: int,
) -> dict[str, dict[str, float]]:
    """Return the mean difference of what both have, with its 95% interval.

    Parameters
    ----------
    scores : names of the scores
    first, second : arrays of scores by the name of what was judged
        All that ``second`` has, ``first`` must have too.
    n_bootstrap, seed : int
        Samples of what was judged, and where they begin.
    """
    difference = np.array([first[name] - values for name, values in second.items()])
    means = bootstrap_means(difference, n_bootstrap, seed)
    low, high = np.quantile(means, [0.025, 0.975], axis=0)
    found = {"difference": difference.mean(axis=0), "low": low, "high": high}
    return {key: named(scores, values) for key, values in found.items()}
