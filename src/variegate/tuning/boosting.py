"""Boosted log-odds as the last quality feature of ground sets, without leaks.

Ground sets to learn from are scored by trees that did not see them, and held-out ones
by trees that were fitted to all ground sets to learn from.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import expit

from variegate._typing import BoolArray, FloatArray, IntArray
from variegate.estimator import BoostedQuality
from variegate.ground_set import GroundSet
from variegate.subsets import as_indicator
from variegate.tuning.held_out import Fold

#: What trees are fitted to in one fold of a comparison, and the folds within it.
_MAX_VALUES = 100_000
_N_FOLDS = 3


def boosted_fold(fold: Fold, seed: int) -> Fold:
    """Return a fold with boosted log-odds as the last quality feature of candidates.

    Those of items to learn from are by trees fitted to ground sets with other labels,
    of held-out items by trees fitted to all of them; given items, whose quality has no
    effect, have zeros.  ``seed`` is for the trees.
    """
    ground_sets = list(fold.ground_sets)
    sizes = [len(ground_sets[position].candidate_quality) for position in fold.learned]
    model, scores = BoostedQuality.fit_out_of_fold(
        *_stack_items(fold, fold.learned),
        np.repeat(fold.labels[fold.learned], sizes),
        _N_FOLDS,
        seed,
        max_values=_MAX_VALUES,
    )
    for position, own in zip(
        fold.learned, np.split(scores, np.cumsum(sizes)[:-1]), strict=True
    ):
        ground_sets[position] = _with_feature(ground_sets[position], own)
    for position in fold.held_out:
        ground_set = ground_sets[position]
        own = model.scores(ground_set.candidate_quality)
        ground_sets[position] = _with_feature(ground_set, own)
    return replace(fold, ground_sets=ground_sets)


def can_be_boosted(fold: Fold) -> bool:
    """Return whether there are two labels to learn from, and wanted and other items."""
    _, wanted = _stack_items(fold, fold.learned)
    n_labels = len(np.unique(fold.labels[fold.learned]))
    return n_labels > 1 and bool(wanted.any() and not wanted.all())


def trees_predict_better(fold: Fold) -> bool:
    """Return whether boosted trees predict better than a logistic regression.

    The score is the log loss of which held-out items are wanted; the last quality
    feature of the fold is the log-odds, and the regression is on the others.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import log_loss
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, wanted = _stack_items(fold, fold.learned)
    held_out, truth = _stack_items(fold, fold.held_out)
    regression = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    linear = regression.fit(X[:, :-1], wanted).predict_proba(held_out[:, :-1])[:, 1]
    losses = [
        log_loss(truth, p, labels=[0, 1]) for p in (expit(held_out[:, -1]), linear)
    ]
    return bool(losses[0] < losses[1])


def _stack_items(fold: Fold, positions: IntArray) -> tuple[FloatArray, BoolArray]:
    """Return quality features (n, d) and wanted mask (n,) of candidates of sets."""
    some = [fold.ground_sets[position] for position in positions]
    wanted = [
        as_indicator(fold.subsets[position], len(one))[one.candidates]
        for position, one in zip(positions, some, strict=True)
    ]
    return np.concatenate([one.candidate_quality for one in some]), np.concatenate(
        wanted
    )


def _with_feature(ground_set: GroundSet, values: FloatArray) -> GroundSet:
    """Return a ground set with one more quality feature, and the same similarity.

    ``values`` are of the candidates; given items have zeros.
    """
    feature = np.zeros(len(ground_set))
    feature[ground_set.candidates] = values
    quality = np.column_stack([ground_set.quality, feature])
    return GroundSet.from_checked_arrays(
        quality, ground_set.blocks, ground_set.costs, ground_set.given
    )
