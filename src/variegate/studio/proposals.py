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
from typing import Any

import numpy as np

from variegate._typing import FloatArray, IntArray
from variegate.application.model_facts import learned_kinds
from variegate.baselines.learned import embeddings_of
from variegate.ensemble import LEnsemble
from variegate.estimator import LargeMarginDPP
from variegate.ground_set import GroundSet
from variegate.linalg.cosine import unit_rows
from variegate.studio.choices import (
    GreedyOrder,
    untrained_choice,
    untrained_ensemble,
    usual_size,
)
from variegate.studio.group_learner import LearningResult
from variegate.studio.kernel_candidates import OMEGAS
from variegate.studio.material.base import Material, Picks

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
    """Sorted items chosen in one group, and the probability of each to be chosen."""

    #: Within the range that was learned.
    omega: float
    chosen: IntArray
    probability: FloatArray


@dataclass(frozen=True, eq=False)
class Map:
    """Where the items of a group lie: ``kind`` is "components" or "kinds".

    By components, ``x`` and ``y`` are the first two principal components of the
    similarity features, scaled to [-1, 1].  By kinds, ``x`` is the column and ``y``,
    from 0 to 1, the probability of that kind; ``columns`` are the names.
    """

    kind: str
    x: FloatArray
    y: FloatArray
    columns: tuple[str, ...] | None = None


#: A group as a model sees it at one omega; no model where nothing is learned.
_View = tuple[Proposal, LEnsemble, LargeMarginDPP | None]


class _Choices:
    """Choices by one result of learning; the last ones are cached.

    ``size`` is the usual size of a choice.  Steps are those of :func:`_step`.
    """

    def __init__(
        self, material: Material, learned: LearningResult | None, size: int | None
    ) -> None:
        self.material, self.learned, self.size = material, learned, size
        self.family = material.prior if learned is None else learned.family
        room = int(_CACHED_CELLS / max(material.sizes) ** 2)
        self.choice = lru_cache(_CACHED_CHOICES)(self._choice)
        self.view = lru_cache(max(1, min(_CACHED_VIEWS, room)))(self._view)
        self._order = lru_cache(max(1, min(_CACHED_ORDERS, room)))(self._greedy_order)

    def _choice(self, group: int, step: int) -> IntArray:
        if self.learned is not None:
            return self._order(group).chosen(self._omega(step))
        if self.family is None:
            return self._untrained(group, step)
        return self.view(group, step)[0].chosen

    def _greedy_order(self, group: int) -> GreedyOrder:
        assert self.family is not None
        model = self.family.at(1.0)
        return GreedyOrder(model.ensemble(self.material.ground_set(group)))

    def _untrained(self, group: int, step: int) -> IntArray:
        """Choose more or fewer than usual: the fourth root of omega times as many."""
        ground_set = self.material.ground_set(group)
        size = self.size
        if size is None:
            size = len(untrained_choice(ground_set))
        k = max(1, round(size * self._omega(step) ** 0.25))
        return untrained_choice(ground_set, k)

    def _view(self, group: int, step: int) -> _View:
        ground_set, omega = self.material.ground_set(group), self._omega(step)
        if self.family is None:
            model, chosen = None, self._untrained(group, step)
            ensemble = untrained_ensemble(ground_set, len(chosen))
        else:
            model = self.family.at(omega)
            ensemble = model.ensemble(ground_set)
            chosen = np.sort(ensemble.decode("greedy").indices)
        return Proposal(omega, chosen, ensemble.marginals()), ensemble, model

    def _omega(self, step: int) -> float:
        """Return the omega of a step, or the nearest one that was learned."""
        omega = float(2.0 ** (step / _STEPS))
        if self.family is None:
            return omega
        return float(np.clip(omega, self.family.omegas[0], self.family.omegas[-1]))


def _step(omega: float) -> int:
    """Return the number of the nearest omega that is distinguished."""
    return round(_STEPS * float(np.log2(omega)))


class Proposer:
    """Chooses in the groups of a material, by the last result of learning.

    An omega out of the range learned is the nearest in it.  All methods may be called
    from several threads.
    """

    def __init__(self, material: Material) -> None:
        self._material = material
        self._choices = _Choices(material, None, None)

    def use(self, learned: LearningResult | None, picks: Picks) -> None:
        """Propose by this from now on, or untrained; ``picks`` are of groups done."""
        size = usual_size(len(chosen) for chosen in picks.values())
        self._choices = _Choices(self._material, learned, size)

    def omegas(self) -> tuple[float, float]:
        """Return the smallest and the largest omega."""
        family = self._choices.family
        known = OMEGAS if family is None else family.omegas
        return known[0], known[-1]

    def choose(self, group: int, omega: float = 1.0) -> IntArray:
        """Choose in a group."""
        return self._choices.choice(group, _step(omega))

    def propose(self, group: int, omega: float = 1.0) -> Proposal:
        """Choose in a group, with the probability of every item to be chosen."""
        return self._choices.view(group, _step(omega))[0]

    def next_group(self, done: Collection[int], order: str = "unsure") -> int | None:
        """Return the next group: that of least confidence, or the next given."""
        others = [g for g in range(len(self._material.names)) if g not in done]
        if not others:
            return None
        learned = self._choices.learned
        if order == "unsure" and learned is not None:
            known = {g: f for g, f in learned.confidence.items() if g not in done}
            if known:
                return min(known, key=lambda group: (known[group], group))
        return others[0]

    def omega_for(self, name: str, value: float) -> float:
        """Return the omega at which a "precision" or "recall" is expected."""
        learned = self._choices.learned
        return 1.0 if learned is None else omega_on_path(learned, name, value)

    def why(
        self, group: int, item: int, chosen: Collection[int], omega: float = 1.0
    ) -> dict[str, Any]:
        """Explain an item beside those that are chosen, as plain values.

        ``probability``: that it is chosen.  ``quality``: the features that add most to
        its log-quality above the mean of the group, with their ``name``, ``value`` and
        ``part``; none without a model.  ``like``: the number ``n`` and the
        ``similarity`` of the most similar item of the others chosen, or None.
        """
        proposal, ensemble, model = self._choices.view(group, _step(omega))
        probability, quality = float(proposal.probability[item]), []
        if model is not None:
            x, names = (
                self._material.ground_set(group).quality,
                self._material.feature_names,
            )
            added = model.theta_ * (x[item] - x.mean(axis=0))
            for j in np.argsort(-np.abs(added), kind="stable")[:_MOST_PARTS]:
                value, part = float(x[item, j]), float(added[j])
                quality.append({"name": str(names[j]), "value": value, "part": part})
        like = None
        others = np.array(sorted(set(chosen) - {item}), dtype=np.intp)
        if len(others):
            S = ensemble.representation.submatrix(np.append(others, item))
            beside = np.clip(S[-1, :-1], 0.0, 1.0)
            best = int(np.argmax(beside))
            like = {"n": int(others[best]), "similarity": float(beside[best])}
        return {"probability": probability, "quality": quality, "like": like}

    def outline(self, group: int) -> Map:
        """Return a map by the kinds of the model, or by components without kinds."""
        ground_set, model = (
            self._material.ground_set(group),
            self._choices.view(group, 0)[2],
        )
        kinds = [] if model is None else learned_kinds(model)
        if not kinds:
            return _components(ground_set)
        weightiest = max(kinds, key=lambda one: one.weight)
        return _by_kinds(weightiest.kernel.kinds(ground_set, weightiest.parameters))


def _by_kinds(p: FloatArray) -> Map:
    """Return a map whose columns are the kinds there are, the most common first."""
    kind: IntArray = p.argmax(axis=1)
    present, counts = np.unique(kind, return_counts=True)
    present = present[np.argsort(-counts, kind="stable")]
    column = {int(k): place for place, k in enumerate(present)}
    x = np.array([column[int(k)] for k in kind], dtype=np.float64)
    return Map("kinds", x, p.max(axis=1), tuple(f"kind {k + 1}" for k in present))


def _components(ground_set: GroundSet) -> Map:
    """Return a map of the first two principal components, from -1 to 1."""
    F = unit_rows(embeddings_of(ground_set))
    F = F - F.mean(axis=0)
    places = np.zeros((len(F), 2))
    # From the smaller of the two Gram matrices.
    if F.shape[1] <= len(F):
        axes = np.linalg.eigh(F.T @ F)[1][:, ::-1][:, :2]
        places[:, : axes.shape[1]] = F @ axes
    else:
        squares, axes = np.linalg.eigh(F @ F.T)
        lengths = np.sqrt(np.maximum(squares[::-1][:2], 0.0))
        places[:, : len(lengths)] = axes[:, ::-1][:, :2] * lengths
    farthest = np.abs(places).argmax(axis=0)
    largest = places[farthest, [0, 1]]
    places = places / np.where(largest == 0.0, 1.0, largest)
    return Map("components", places[:, 0], places[:, 1])


def omega_on_path(learned: LearningResult, name: str, value: float) -> float:
    """Return the omega at which precision or recall is expected to be ``value``.

    Of those at which it is at least that, the one that gives up least of the other:
    the smallest for a recall, the largest for a precision; between two points of the
    path by the logarithm of omega.  Where no point reaches it, the end of the path.
    """
    if name not in ("precision", "recall"):
        raise ValueError(f"a target is a precision or a recall, got {name!r}")
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
