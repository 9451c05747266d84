"""Who runs in a race: learned DPPs, and a regression with an untrained diversifier."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from variegate import metrics
from variegate._typing import BoolArray, FloatArray, IntArray
from variegate.baselines.learned import embeddings_of, orderings
from variegate.baselines.ordering import f_of_first
from variegate.decoding import Decoder
from variegate.decoding.residuals import ranked
from variegate.estimator import LargeMarginDPP
from variegate.ground_set import GroundSet, naming
from variegate.tuning.family import OmegaFamily
from variegate.tuning.race import Rule

__all__ = ["LearnedDPP", "TwoStage"]


@dataclass(frozen=True, eq=False)
class LearnedDPP:
    """A large-margin DPP, chosen from by its decoders, or a fixed number greedily."""

    name: str
    model: LargeMarginDPP
    #: For choices of as many items as the model finds right.
    decoders: Sequence[str | Decoder]
    #: The largest fixed number of items that is tried; 0 for none.
    largest: int = 0
    #: Fitted models to start from, one for each part of the data, if any.
    starts: Sequence[LargeMarginDPP] = ()

    def fit(
        self, ground_sets: Sequence[GroundSet], subsets: Sequence[IntArray], part: int
    ) -> _FittedDPP:
        """Learn, where there are starts from one of them."""
        model = clone(self.model)
        if self.starts:
            model = copy.copy(self.starts[part])
            settings = self.model.get_params(deep=False)
            model.set_params(**settings | {"warm_start": True})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(ground_sets, subsets)
        return _FittedDPP(model, self.decoders, self.largest)

    def family(
        self, omegas: Sequence[float], ground_sets: Any, subsets: Any, **others: Any
    ) -> OmegaFamily:
        """Learn a model for each omega."""
        return OmegaFamily.fit(self.model, omegas, ground_sets, subsets, **others)


@dataclass(frozen=True, eq=False)
class _FittedDPP:
    model: LargeMarginDPP
    decoders: Sequence[str | Decoder]
    largest: int

    def scores(
        self, ground_sets: Sequence[GroundSet], wanted: Sequence[IntArray]
    ) -> dict[Rule, FloatArray]:
        """Return F-scores by decoder, then by the number of items."""
        rows = []
        for position, pair in enumerate(zip(ground_sets, wanted, strict=True)):
            with naming(position):
                rows.append(self._row(*pair))
        rules = [Rule(decoder) for decoder in self.decoders]
        rules += [Rule("greedy", k) for k in range(1, self.largest + 1)]
        return dict(zip(rules, np.array(rows).T, strict=True))

    def _row(self, ground_set: GroundSet, wanted: IntArray) -> list[float]:
        ensemble = self.model.ensemble(ground_set)
        row = [
            metrics.f_score(ensemble.decode(decoder, random_state=0).indices, wanted)
            for decoder in self.decoders
        ]
        order = ranked(ensemble, np.arange(len(ground_set)), self.largest)
        if self.largest:
            row += f_of_first(
                is_wanted(ground_set, wanted), order, self.largest
            ).tolist()
        return row


@dataclass(frozen=True, eq=False)
class TwoStage:
    """A logistic regression of scikit-learn, and an untrained diversifier.

    Relevance is the logit of a logistic regression of what was chosen on the quality
    features; then :func:`variegate.select` chooses a fixed number of items.
    """

    #: The largest number of items that is tried.
    largest: int
    #: The model that :meth:`family` fits, with the regression for a quality.
    model: LargeMarginDPP
    name: str = "logistic regression"

    def fit(
        self, ground_sets: Sequence[GroundSet], subsets: Sequence[IntArray], part: int
    ) -> _FittedTwoStage:
        """Regress."""
        return _FittedTwoStage(_regression(ground_sets, subsets), self.largest)

    def family(
        self, omegas: Sequence[float], ground_sets: Any, subsets: Any, **others: Any
    ) -> OmegaFamily:
        """Learn a DPP for each omega whose quality is a multiple of the logit.

        How much it counts against the similarity, and how many items that makes, is
        learned; the direction of ``θ`` is that of the regression.
        """
        direction = _regression(ground_sets, subsets)
        along = [
            GroundSet((gs.quality @ direction)[:, None], gs.similarity)
            for gs in ground_sets
        ]
        family = OmegaFamily.fit(self.model, omegas, along, subsets, **others)
        for model in family.models:
            model.theta_ = model.theta_[0] * direction
            model.n_features_in_ = len(direction)
        return family


@dataclass(frozen=True, eq=False)
class _FittedTwoStage:
    direction: FloatArray
    largest: int

    def scores(
        self, ground_sets: Sequence[GroundSet], wanted: Sequence[IntArray]
    ) -> dict[Rule, FloatArray]:
        """Return F-scores by method and number of items."""
        methods = orderings()
        curves = np.empty((len(methods), len(ground_sets), self.largest))
        for place, ground_set in enumerate(ground_sets):
            relevance = ground_set.quality @ self.direction
            features = embeddings_of(ground_set)
            flags = is_wanted(ground_set, wanted[place])
            for number, method in enumerate(methods):
                order = method(features, relevance, self.largest)
                curves[number, place] = f_of_first(flags, order, self.largest)
        return {
            Rule(method, k + 1): curve
            for method, table in zip(methods, curves, strict=True)
            for k, curve in enumerate(table.T)
        }


def _regression(
    ground_sets: Sequence[GroundSet], subsets: Sequence[IntArray]
) -> FloatArray:
    """Return the direction of a logistic regression of what was chosen."""
    from sklearn.linear_model import LogisticRegression  # slow to import

    X = np.concatenate([ground_set.quality for ground_set in ground_sets])
    chosen = np.concatenate(list(map(is_wanted, ground_sets, subsets)))
    scale = X.std(axis=0)
    scale[scale == 0.0] = 1.0
    if chosen.all() or not chosen.any():
        return np.zeros(X.shape[1])
    centred = (X - X.mean(axis=0)) / scale
    found = LogisticRegression(max_iter=1000).fit(centred, chosen)
    return np.asarray(found.coef_[0] / scale, dtype=np.float64)


def is_wanted(ground_set: GroundSet, wanted: IntArray) -> BoolArray:
    """Return a flag for every item."""
    flags = np.zeros(len(ground_set), dtype=bool)
    flags[wanted] = True
    return flags
