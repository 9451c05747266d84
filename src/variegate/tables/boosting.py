"""Boosted log-odds as one more quality feature of the groups of a table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from variegate._typing import IntArray
from variegate.estimator import BoostedQuality
from variegate.tables.encoded import OutOfFold
from variegate.tables.errors import TableError
from variegate.tables.groups import Groups
from variegate.tuning import LargeMarginDPPCV
from variegate.tuning.boosting import boosted_fold
from variegate.tuning.held_out import Fold

#: The largest number of values that trees are fitted to: about 5 seconds for each fit.
_MAX_VALUES = 1_000_000

#: Folds of the groups that are learned from.
_N_FOLDS = 5


def boosted_groups(groups: Groups, numbers: IntArray, seed: int) -> Groups:
    """Return groups with log-odds by boosted trees as their last quality feature.

    Groups to learn from (two of these ``numbers``, at least) are scored by trees fitted
    to other folds; all other groups, and other tables, by trees fitted to all folds.
    Of more than a million values, trees are fitted to a sample of the groups, drawn by
    the seed and read in this process.
    """
    encoding = groups.encoding
    if len(numbers) < 2:
        raise TableError(
            "quality_model 'boosting' scores each group by trees fitted to others, and "
            "there is one group: give more groups, or take 'linear'"
        )
    n_rows = _MAX_VALUES // len(encoding.names)
    order = np.random.default_rng(seed).permutation(numbers)
    n_rows_of_first = np.cumsum(groups.survey.sizes[order])
    n_drawn = max(2, int(np.searchsorted(n_rows_of_first, n_rows, "right")))
    n_folds = min(_N_FOLDS, len(numbers))
    fold: IntArray = np.full(len(groups), -1)
    fold[order] = np.arange(len(order)) % n_folds
    drawn = []
    for group in groups.only(order[:n_drawn]):
        rows = group.candidates
        folds_here = np.full(len(rows), fold[group.number])
        drawn.append((group.quality[rows], np.isin(rows, group.wanted()), folds_here))
    X, wanted, folds = map(np.concatenate, zip(*drawn, strict=True))
    groups.reader.release()  # others are read from now on
    try:
        model, others = BoostedQuality.fit_by_fold(X, wanted, folds, n_folds, seed)
    except ValueError as error:
        raise TableError(f"quality_model 'boosting': {error}") from error
    return Groups(
        groups.survey,
        replace(encoding, boosting=model),
        groups.reader.labels,
        engine=groups.engine,
        memory=groups.reader.memory,
        out_of_fold=OutOfFold(tuple(others), fold),
        segment_memory=groups.reader.segment_memory,
    )


class BoostedSearch(LargeMarginDPPCV):
    """A cross-validation in which each fold has boosted log-odds of its own."""

    def _folds(self, *arguments: Any) -> list[Fold]:
        """Return the folds of the base class, boosted; the last argument is a seed."""
        seed = int(arguments[-1])
        return [boosted_fold(fold, seed) for fold in super()._folds(*arguments)]
