"""Proposals in a group, fast enough to follow a slider.

The next group is that in which the model has the least confidence: the F-score that it
expects of its own proposal (:func:`variegate.studio.group_learner.expected_f`),
computed for the first hundred groups that are not done, after each learning; of equals
the first comes first.  Before anything is learned, groups come in their order.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from variegate._typing import FloatArray, IntArray
from variegate.application.model_facts import learned_parts
from variegate.baselines.learned import embeddings_of
from variegate.ensemble import LEnsemble
from variegate.estimator import LargeMarginDPP
from variegate.ground_set import GroundSet
from variegate.kernels import Kinds
from variegate.linalg.cosine import unit_rows
from variegate.material.base import Material, Picks
from variegate.studio.choices import (
    GreedyOrder,
    untrained_choice,
    usual_size,
)
from variegate.studio.group_learner import LearningResult
from variegate.tuning.family import ODDS_OMEGAS

#: Cached at most: choices, groups at an omega, groups whose order is known, and the
#: cells of all matrices of either together.
_CACHED_CHOICES = 256
_CACHED_VIEWS = 16
_CACHED_ORDERS = 4
_CACHED_CELLS = 2e7

#: Omegas closer than this share of an octave are one.
_STEPS = 64

#: Parts of the quality that are named, at most.
_MOST_PARTS = 12


@dataclass(frozen=True, eq=False)
class Proposal:
    """Sorted items chosen in one group.

    ``probability`` is that of each item to be chosen, None where nothing is learned.
    """

    #: Within the range that was learned.
    omega: float
    chosen: IntArray
    probability: FloatArray | None


#: A group as a model sees it at one omega; only choices where nothing is learned.
_View = tuple[Proposal, LEnsemble | None, LargeMarginDPP | None]


class Proposer:
    """Chooses in the groups of a material, by one result of learning.

    Without a result it uses the models from before the first pick or, without those,
    :func:`variegate.select`, for as many items as the mean of ``picks``.  An omega out
    of the range learned is the nearest in it.  The last choices are cached.  All
    methods may be called from several threads.
    """

    def __init__(
        self,
        material: Material,
        learned: LearningResult | None = None,
        picks: Picks = MappingProxyType({}),
    ) -> None:
        self._material, self._learned = material, learned
        self._size = usual_size(len(chosen) for chosen in picks.values())
        self._family = material.prior if learned is None else learned.family
        room = int(_CACHED_CELLS / max(material.sizes) ** 2)
        self._choice = lru_cache(_CACHED_CHOICES)(self._choose)
        self._view = lru_cache(max(1, min(_CACHED_VIEWS, room)))(self._see)
        self._order = lru_cache(max(1, min(_CACHED_ORDERS, room)))(self._greedy_order)

    def using(self, learned: LearningResult | None, picks: Picks) -> Proposer:
        """Return a proposer by another result, and by the picks of done groups."""
        return Proposer(self._material, learned, picks)

    def omegas(self) -> tuple[float, float]:
        """Return the smallest and the largest omega, the factor on all odds."""
        known = ODDS_OMEGAS if self._family is None else self._family.omegas
        return known[0], known[-1]

    def choose(self, group: int, omega: float = 1.0) -> IntArray:
        """Return the sorted items chosen in a group; omega multiplies all odds."""
        return self._choice(group, self._nearest(omega))

    def propose(self, group: int, omega: float = 1.0) -> Proposal:
        """Return the choice in a group, with the probability of every item."""
        return self._view(group, self._nearest(omega))[0]

    def _nearest(self, omega: float) -> float:
        """Return the nearest omega that is distinguished, in the range learned."""
        omega = 2.0 ** (round(_STEPS * float(np.log2(omega))) / _STEPS)
        return omega if self._family is None else float(np.clip(omega, *self.omegas()))

    def _choose(self, group: int, omega: float) -> IntArray:
        """Choose in a group at a distinguished omega, without the cache."""
        if self._learned is not None:
            return self._order(group).chosen(omega)
        if self._family is None:
            return self._untrained(group, omega)
        return self._view(group, omega)[0].chosen

    def _greedy_order(self, group: int) -> GreedyOrder:
        """Return the order of greedy choices in a group, within its limits."""
        assert self._family is not None
        ensemble = self._family.at(1.0).ensemble(self._material.ground_set(group))
        return GreedyOrder(ensemble, **self._material.limits(group))

    def _untrained(self, group: int, omega: float) -> IntArray:
        """Choose more or fewer than usual: the fourth root of omega times as many."""
        ground_set = self._material.ground_set(group)
        size, limits = self._size, self._material.limits(group)
        if size is None:
            size = len(untrained_choice(ground_set, **limits))
        k = max(1, round(size * omega**0.25))
        return untrained_choice(ground_set, k, **limits)

    def _see(self, group: int, omega: float) -> _View:
        """Return a proposal with its ensemble and model, None before learning."""
        ground_set = self._material.ground_set(group)
        if self._family is None:
            return Proposal(omega, self._untrained(group, omega), None), None, None
        model = self._family.at(omega)
        ensemble = model.ensemble(ground_set)
        chosen = ensemble.decode("greedy", **self._material.limits(group)).indices
        return Proposal(omega, chosen, ensemble.marginals()), ensemble, model

    def next_group(self, done: Collection[int], order: str = "unsure") -> int | None:
        """Return the group not done that has the least confidence, or the first.

        The first if nothing is known, or ``order`` is "given"; None if all are done.
        """
        others = [g for g in range(len(self._material.names)) if g not in done]
        if order == "unsure" and self._learned is not None:
            confidence = self._learned.confidence
            known = [group for group in confidence if group not in done]
            if known:
                return min(known, key=lambda group: (confidence[group], group))
        return next(iter(others), None)

    def omega_for(self, name: str, value: float) -> float:
        """Return the factor on all odds at which "precision" or "recall" is ``value``.

        It is 1 before anything is learned; see ``omega_on_path``.
        """
        learned = self._learned
        return 1.0 if learned is None else omega_on_path(learned, name, value)

    def why(
        self, group: int, item: int, chosen: Collection[int], omega: float = 1.0
    ) -> dict[str, Any]:
        """Explain an item beside those that are chosen, as plain values.

        ``probability``: that it is chosen, None without a model.  ``quality``: the
        features that add most to its log-quality above the mean of the group, with
        their ``name``, ``value`` in DATA and ``part``; none without a model.  ``like``:
        the number ``n`` and the ``similarity`` of the most similar item of the others
        chosen, or None.
        """
        proposal, ensemble, model = self._view(group, self._nearest(omega))
        ground_set, quality = self._material.ground_set(group), []
        probability, like = None, None
        if model is not None and proposal.probability is not None:
            probability = float(proposal.probability[item])
            names = self._material.feature_names
            values = self._material.values(group, item)
            x = ground_set.quality
            added = model.theta_ * (x[item] - x.mean(axis=0))
            quality = [
                {"name": str(names[j]), "value": values[j], "part": float(added[j])}
                for j in np.argsort(-np.abs(added), kind="stable")[:_MOST_PARTS]
            ]
        others = np.array(sorted(set(chosen) - {item}), dtype=np.intp)
        if len(others):
            some = np.append(others, item)
            if ensemble is None:
                F = unit_rows(embeddings_of(ground_set)[some])
                S = F @ F.T
            else:
                S = ensemble.representation.submatrix(some)
            beside = np.clip(S[-1, :-1], 0.0, 1.0)
            best = int(np.argmax(beside))
            like = {"n": int(others[best]), "similarity": float(beside[best])}
        return {"probability": probability, "quality": quality, "like": like}

    def outline(self, group: int) -> dict[str, Any]:
        """Return places of the items on a map, as plain values.

        With ``kind`` "components", ``x`` and ``y`` are the first two principal
        components of the similarity features, scaled to [-1, 1].  With "kinds", for
        models that have some, ``x`` is the column and ``y``, from 0 to 1, the
        probability of that kind; ``columns`` are the names.
        """
        ground_set = self._material.ground_set(group)
        model = None if self._family is None else self._family.at(self._nearest(1.0))
        kinds = [] if model is None else learned_parts(model, Kinds)
        weightiest = max(kinds, key=lambda one: one.weight, default=None)
        if weightiest is None:
            places, names = _components(ground_set), None
        else:
            p = weightiest.kernel.kinds(ground_set, weightiest.parameters)
            places, names = _by_kinds(p)
        x, y = places.T.tolist()
        kind = "components" if names is None else "kinds"
        return {"kind": kind, "x": x, "y": y, "columns": names}


def _by_kinds(p: FloatArray) -> tuple[FloatArray, tuple[str, ...]]:
    """Return places (N, 2) and names of columns, of the probabilities (N, kinds)."""
    present, kind, counts = np.unique(
        p.argmax(axis=1), return_inverse=True, return_counts=True
    )
    order = np.argsort(-counts, kind="stable")
    column = np.argsort(order).astype(np.float64)
    names = tuple(f"kind {k + 1}" for k in present[order])
    return np.column_stack([column[kind], p.max(axis=1)]), names


def _components(ground_set: GroundSet) -> FloatArray:
    """Return the first two principal components (N, 2), scaled to [-1, 1]."""
    F = unit_rows(embeddings_of(ground_set))
    F = F - F.mean(axis=0)
    # From the smaller of the two Gram matrices.
    is_tall = F.shape[1] <= len(F)
    squares, axes = np.linalg.eigh(F.T @ F if is_tall else F @ F.T)
    squares, axes = squares[::-1][:2], axes[:, ::-1][:, :2]
    found = F @ axes if is_tall else axes * np.sqrt(np.maximum(squares, 0.0))
    places = np.zeros((len(F), 2))
    places[:, : found.shape[1]] = found
    farthest = np.abs(places).argmax(axis=0)
    largest = places[farthest, [0, 1]]
    return np.asarray(places / np.where(largest == 0.0, 1.0, largest))


def omega_on_path(learned: LearningResult, name: str, value: float) -> float:
    """Return the omega at which precision or recall is expected to be ``value``.

    Of those at which it is at least that, the one that gives up least of the other:
    the smallest for a recall, the largest for a precision; between two points of the
    path by the logarithm of omega.  Where no point reaches it, the end of the path.
    """
    path = learned.path if name == "recall" else learned.path[::-1]
    if not path:
        return 1.0
    scores = np.maximum.accumulate([getattr(point, name) for point in path])
    logs = np.log([point.omega for point in path])
    place = int(np.searchsorted(scores, value))
    if place == 0 or place == len(path):
        return float(path[min(place, len(path) - 1)].omega)
    share = (value - scores[place - 1]) / (scores[place] - scores[place - 1])
    return float(np.exp(logs[place - 1] + share * (logs[place] - logs[place - 1])))
