"""Choices by the scores of a classifier, tuned on the training questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
from sklearn.linear_model import LogisticRegression

import variegate as vg
from variegate._typing import FloatArray, IntArray
from variegate.decoding import ExpectedF
from variegate.estimator import BoostedQuality
from variegate.metrics import f_score

#: From the log-odds of sentences and the features of their similarity to a choice.
Rule = Callable[[FloatArray, FloatArray], IntArray]

_PENALTIES = (0.003, 0.01, 0.03, 0.1, 0.3)
_N_FOLDS = 5


@dataclass(frozen=True, eq=False)
class Item:
    """A question as numbers.

    ``X`` are quality features (N, d), ``blocks`` similarity features by name,
    ``wanted`` the sentences that each person wanted, ``group`` a number, and ``bm25``
    scores (N,).
    """

    X: FloatArray
    blocks: dict[str, FloatArray]
    wanted: list[IntArray]
    group: int
    bm25: FloatArray

    @property
    def target(self) -> FloatArray:
        """1 for sentences that somebody wanted, else 0, (N,)."""
        mask = np.zeros(len(self.X))
        mask[np.concatenate(self.wanted)] = 1.0
        return mask


def mean_f(chosen: IntArray, wanted: Sequence[IntArray]) -> float:
    """Return the F-score with each person's choice, averaged."""
    return float(np.mean([f_score(chosen, one) for one in wanted]))


# Scores -------------------------------------------------------------------------------


def logistic_scores(
    train: Sequence[Item], test: Sequence[Item]
) -> tuple[list[FloatArray], list[FloatArray]]:
    """Return log-odds by logistic regression, out of fold for the training questions.

    Its penalty is the one with the best top choice there.
    """
    best = max(_PENALTIES, key=lambda C: _top_merit(train, _out_of_fold(train, C)))
    model = _fit_logistic(train, best)
    return _out_of_fold(train, best), [model.decision_function(one.X) for one in test]


def _top_merit(items: Sequence[Item], scores: Sequence[FloatArray]) -> float:
    """Return the best mean F-score of the ``k`` best, over ``k``."""
    return max(_merit(rule, items, scores, None) for rule in top_rules(items))


def _fit_logistic(items: Sequence[Item], C: float) -> LogisticRegression:
    """Return a fitted logistic regression."""
    model = LogisticRegression(C=C, max_iter=500)
    rows = np.vstack([one.X for one in items])
    return model.fit(rows, np.concatenate([one.target for one in items]))


def _out_of_fold(items: Sequence[Item], C: float) -> list[FloatArray]:
    """Return log-odds of each question, by a model that did not see its group."""
    groups = np.array([one.group for one in items])
    distinct, number = np.unique(groups, return_inverse=True)
    folds = np.random.default_rng(0).permutation(len(distinct))[number] % _N_FOLDS
    scores: list[FloatArray] = [np.zeros(0)] * len(items)
    for fold in np.unique(folds):
        kept = [one for one, f in zip(items, folds, strict=True) if f != fold]
        model = _fit_logistic(kept, C)
        for place in np.flatnonzero(folds == fold).tolist():
            scores[place] = model.decision_function(items[place].X)
    return scores


def boosting_scores(
    train: Sequence[Item], test: Sequence[Item]
) -> tuple[list[FloatArray], list[FloatArray]]:
    """Return log-odds by boosted trees, out of fold for the training questions."""
    lengths = [len(one.X) for one in train]
    model, scores = BoostedQuality.fit_out_of_fold(
        np.vstack([one.X for one in train]),
        np.concatenate([one.target for one in train]) > 0.0,
        np.repeat([one.group for one in train], lengths),
    )
    known = np.split(scores, np.cumsum(lengths)[:-1])
    return known, [model.scores(one.X) for one in test]


# Rules --------------------------------------------------------------------------------


def top_rules(items: Sequence[Item]) -> Iterator[Rule]:
    """Yield the choice of the ``k`` best, for sizes around those wanted."""
    for k in _sizes(items):
        yield partial(_top, k)


def _top(k: int, scores: FloatArray, features: FloatArray) -> IntArray:
    """Return the ``k`` best; ``features`` play no part."""
    return np.argsort(-scores, kind="stable")[:k]


def mmr_rules(items: Sequence[Item]) -> Iterator[Rule]:
    """Yield maximal marginal relevance, for sizes and trade-offs."""
    for k, trade_off in product(_sizes(items), (0.9, 0.8, 0.7, 0.5, 0.3)):
        yield partial(_first_by_mmr, k, trade_off)


def _first_by_mmr(
    k: int, trade_off: float, scores: FloatArray, features: FloatArray
) -> IntArray:
    """Return the first ``k`` by maximal marginal relevance."""
    return order_by_mmr(scores, features, trade_off)[:k]


def dpp_rules() -> Iterator[Rule]:
    """Yield determinantal point processes with fixed similarity, and expected F.

    Their quality is a power of the odds times a factor; their similarity the cosine
    times a share.
    """
    powers, factors, shares = (0.5, 1.0, 1.5), (0.5, 1.0, 2.0), (0.3, 0.6, 0.9)
    for power, factor, share in product(powers, factors, shares):
        yield partial(_dpp, power, factor, share)


def _sizes(items: Sequence[Item]) -> range:
    """Return sizes up to twice the mean number of wanted sentences."""
    mean = float(np.mean([len(one) for item in items for one in item.wanted]))
    return range(max(1, int(mean / 2)), int(np.ceil(2 * mean)) + 1)


def order_by_mmr(
    scores: FloatArray, features: FloatArray, trade_off: float
) -> IntArray:
    """Return all sentences in the order of maximal marginal relevance.

    Relevance is the probability over its largest value, similarity the cosine.
    """
    relevance = 1.0 / (1.0 + np.exp(-scores))
    relevance = relevance / relevance.max()
    similarity = features @ features.T
    closest, order = np.zeros(len(scores)), []
    left = np.ones(len(scores), dtype=bool)
    for _ in scores:
        value = trade_off * relevance - (1.0 - trade_off) * closest
        best = int(np.where(left, value, -np.inf).argmax())
        order.append(best)
        left[best] = False
        closest = np.maximum(closest, similarity[best])
    return np.array(order)


def _dpp(
    power: float, factor: float, share: float, scores: FloatArray, features: FloatArray
) -> IntArray:
    """Return the set with the largest expected F-score."""
    quality = np.sqrt(factor) * np.exp(0.5 * power * np.clip(scores, -12.0, 12.0))
    similarity = share * features @ features.T
    np.fill_diagonal(similarity, 1.0)
    ensemble = vg.LEnsemble(quality[:, None] * similarity * quality)
    return ensemble.decode(ExpectedF()).indices


def best_rule(
    rules: Iterator[Rule],
    items: Sequence[Item],
    scores: Sequence[FloatArray],
    block: str | None,
) -> Rule:
    """Return the rule with the best mean F-score on training questions."""
    return max(rules, key=lambda rule: _merit(rule, items, scores, block))


def _merit(
    rule: Rule, items: Sequence[Item], scores: Sequence[FloatArray], block: str | None
) -> float:
    """Return the mean F-score of a rule."""
    return float(
        np.mean(
            [
                mean_f(rule(score, one.blocks[block] if block else one.X), one.wanted)
                for one, score in zip(items, scores, strict=True)
            ]
        )
    )
