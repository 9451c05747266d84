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

#: Omegas are rounded to this many steps for each factor of 2, to be cached.
_STEPS = 64

#: Features that an explanation names at most.
_MOST_PARTS = 12


@dataclass(frozen=True, eq=False)
class Proposal:
    """The items chosen in one group at one omega."""

    #: Within the range that was learned.
    omega: float
    #: Sorted item numbers.
    chosen: IntArray
    #: The probability (N,) that each item is chosen, NaN for items that are given; None
    #: where nothing is learned.
    probability: FloatArray | None


#: The proposal in a group at one omega, with its ensemble and model, which are None
#: where nothing is learned.
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
        self._view = lru_cache(max(1, min(_CACHED_VIEWS, room)))(self._compute_view)
        self._order = lru_cache(max(1, min(_CACHED_ORDERS, room)))(self._greedy_order)

    def using(self, learned: LearningResult | None, picks: Picks) -> Proposer:
        """Return a proposer for the same material, another result and other picks."""
        return Proposer(self._material, learned, picks)

    def omegas(self) -> tuple[float, float]:
        """Return the smallest and largest omega; an omega multiplies all odds."""
        known = ODDS_OMEGAS if self._family is None else self._family.omegas
        return known[0], known[-1]

    def choose(self, group: int, omega: float = 1.0) -> IntArray:
        """Return the sorted items chosen in a group; omega multiplies all odds."""
        return self._choice(group, self._nearest_omega(omega))

    def propose(self, group: int, omega: float = 1.0) -> Proposal:
        """Return the choice in a group, with the probability of every item."""
        return self._view(group, self._nearest_omega(omega))[0]

    def _nearest_omega(self, omega: float) -> float:
        """Return omega, rounded to 1/``_STEPS`` octaves, within the range learned."""
        omega = 2.0 ** (round(_STEPS * float(np.log2(omega))) / _STEPS)
        return omega if self._family is None else float(np.clip(omega, *self.omegas()))

    def _choose(self, group: int, omega: float) -> IntArray:
        """Return the sorted items chosen in a group, computed without the cache."""
        if self._learned is not None:
            return self._order(group).choose(omega)
        if self._family is None:
            return self._choose_untrained(group, omega)
        return self._view(group, omega)[0].chosen

    def _greedy_order(self, group: int) -> GreedyOrder:
        """Return the order of greedy choices in a group, within its limits."""
        assert self._family is not None
        ensemble = self._family.at(1.0).ensemble(self._material.ground_set(group))
        return GreedyOrder(ensemble, **self._material.limits(group))

    def _choose_untrained(self, group: int, omega: float) -> IntArray:
        """Return the sorted items that :func:`variegate.select` chooses in a group.

        Their number is the mean of the picks, or that of ``untrained_choice`` before
        the first, times the fourth root of omega.
        """
        ground_set = self._material.ground_set(group)
        size, limits = self._size, self._material.limits(group)
        if size is None:
            size = len(untrained_choice(ground_set, **limits))
        k = max(1, round(size * omega**0.25))
        return untrained_choice(ground_set, k, **limits)

    def _compute_view(self, group: int, omega: float) -> _View:
        """Return proposal, ensemble and model, as a ``_View``, without the cache."""
        ground_set = self._material.ground_set(group)
        if self._family is None:
            return (
                Proposal(omega, self._choose_untrained(group, omega), None),
                None,
                None,
            )
        model = self._family.at(omega)
        ensemble = model.ensemble(ground_set)
        chosen = ensemble.decode("greedy", **self._material.limits(group)).indices
        probability = np.full(len(ground_set), np.nan)
        probability[ensemble.items] = ensemble.marginals()
        proposal = Proposal(omega, ensemble.items[chosen], probability)
        return proposal, ensemble, model

    def next_group(self, done: Collection[int], order: str = "unsure") -> int | None:
        """Return the number of a group not done: of least confidence, or the first.

        The first if ``order`` is "given" or nothing is learned; None if all are done.
        """
        others = [g for g in range(len(self._material.names)) if g not in done]
        if order == "unsure" and self._learned is not None:
            confidence = self._learned.confidence
            known = [group for group in confidence if group not in done]
            if known:
                return min(known, key=lambda group: (confidence[group], group))
        return next(iter(others), None)

    def omega_for(self, name: str, value: float) -> float:
        """Return the omega at which held-out "precision" or "recall" is ``value``.

        It is 1 before anything is learned; see ``omega_on_path``.
        """
        learned = self._learned
        return 1.0 if learned is None else omega_on_path(learned, name, value)

    def why(
        self, group: int, item: int, chosen: Collection[int], omega: float = 1.0
    ) -> dict[str, Any]:
        """Explain how an item suits a group and its chosen items, as values for JSON.

        ``probability``: that it is chosen, None without a model.  ``quality``: the
        features that add most to its log-quality above the mean of the group, with
        their ``name``, ``value`` in DATA and ``part``, the amount; [] without a model.
        ``like``: the number ``n`` and the ``similarity`` of the most similar item of
        the others chosen and given, or None.
        """
        proposal, ensemble, model = self._view(group, self._nearest_omega(omega))
        ground_set, quality = self._material.ground_set(group), []
        probability, like, given = None, None, ground_set.given
        is_candidate = item not in given
        if is_candidate and model is not None and proposal.probability is not None:
            probability = float(proposal.probability[item])
            names = self._material.feature_names
            values = self._material.values(group, item)
            x = ground_set.quality
            mean = ground_set.candidate_quality.mean(axis=0)
            added = model.theta_ * (x[item] - mean)
            quality = [
                {"name": str(names[j]), "value": values[j], "part": float(added[j])}
                for j in np.argsort(-np.abs(added), kind="stable")[:_MOST_PARTS]
            ]
        others = np.array(sorted({*chosen, *given.tolist()} - {item}), dtype=np.intp)
        if len(others):
            some = np.append(others, item)
            # Beside given items, the ensemble has what they leave of similarities.
            if ensemble is None or len(given):
                F = unit_rows(embeddings_of(ground_set)[some])
                S = F @ F.T
            else:
                S = ensemble.representation.submatrix(some)
            beside = np.clip(S[-1, :-1], 0.0, 1.0)
            best = int(np.argmax(beside))
            like = {"n": int(others[best]), "similarity": float(beside[best])}
        return {"probability": probability, "quality": quality, "like": like}

    def outline(self, group: int) -> dict[str, Any]:
        """Outline a group: return its items' coordinates on a map, as values for JSON.

        With ``kind`` "components", ``x`` and ``y`` are the first two principal
        components of the similarity features, scaled to [-1, 1].  With "kinds", for
        models with learned kinds of items, ``x`` is the number of the item's likeliest
        kind, the most common first, ``y`` its probability, and ``columns`` the names.
        """
        ground_set = self._material.ground_set(group)
        family = self._family
        model = None if family is None else family.at(self._nearest_omega(1.0))
        kinds = [] if model is None else learned_parts(model, Kinds)
        weightiest = max(kinds, key=lambda one: one.weight, default=None)
        if weightiest is None:
            coordinates, names = _component_coordinates(ground_set), None
        else:
            p = weightiest.kernel.kinds(ground_set, weightiest.parameters)
            coordinates, names = _kind_coordinates(p)
        x, y = coordinates.T.tolist()
        kind = "components" if names is None else "kinds"
        return {"kind": kind, "x": x, "y": y, "columns": names}


def _kind_coordinates(p: FloatArray) -> tuple[FloatArray, tuple[str, ...]]:
    """Return coordinates (N, 2) and names of columns, from probabilities (N, kinds).

    They are the column of an item's likeliest kind, and its probability.  Columns are
    the kinds that are likeliest for some item, the most common first.
    """
    present, kind, counts = np.unique(
        p.argmax(axis=1), return_inverse=True, return_counts=True
    )
    order = np.argsort(-counts, kind="stable")
    column = np.argsort(order).astype(np.float64)
    names = tuple(f"kind {k + 1}" for k in present[order])
    return np.column_stack([column[kind], p.max(axis=1)]), names


def _component_coordinates(ground_set: GroundSet) -> FloatArray:
    """Return two principal components (N, 2) of unit features, within [-1, 1]."""
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

    It is found on ``learned.path``, held-out scores in the order of omegas, between
    two points by interpolation of log omega.  Of omegas at which ``name`` reaches
    ``value``, it is the smallest for recall and the largest for precision; where none
    does, the last of the path in this direction; 1 without a path.
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
