"""Proposals in a group, fast enough to follow a slider.

The next group is that in which the model has the least confidence: the F-score that it
expects of its own proposal (:func:`variegate.studio.group_learner.expected_f`),
computed for the first hundred groups that are not done, after each learning; of equals
the first comes first.  Before anything is learned, groups come in their order.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np

from variegate._typing import FloatArray, IntArray
from variegate.ensemble import LEnsemble
from variegate.estimator import LargeMarginDPP
from variegate.ground_set import GroundSet
from variegate.studio.choices import (
    GreedyOrder,
    untrained_choice,
    untrained_ensemble,
    usual_size,
)
from variegate.studio.explanations import Map, explain, map_of
from variegate.studio.group_learner import LearningResult
from variegate.studio.kernel_candidates import OMEGAS
from variegate.studio.material.base import Material, Picks
from variegate.tuning.family import OmegaFamily

#: Cached at most: choices, groups at an omega, groups whose order is known, and the
#: cells of all matrices of either together.
_CACHED_CHOICES = 256
_CACHED_VIEWS = 16
_CACHED_ORDERS = 4
_CACHED_CELLS = 2e7

#: Omegas closer than this share of an octave are one.
_STEPS = 64


@dataclass(frozen=True, eq=False)
class Proposal:
    """Sorted items chosen in one group, and the probability of each to be chosen."""

    #: Within the range that was learned.
    omega: float
    chosen: IntArray
    probability: FloatArray


@dataclass(frozen=True, eq=False)
class _View:
    """A group as a model sees it at one omega; no model where nothing is learned."""

    ensemble: LEnsemble
    proposal: Proposal
    model: LargeMarginDPP | None


class _Cache:
    """The last values that were made, by key."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._values: OrderedDict[Any, Any] = OrderedDict()

    def get(self, key: Any, make: Callable[[], Any], most: int) -> Any:
        """Return a value, made without holding the lock if it is not known."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = make()
        with self._lock:
            self._values[key] = value
            while len(self._values) > most:
                self._values.popitem(last=False)
        return value


@dataclass(frozen=True, eq=False)
class _State:
    """The result to propose by, the usual size, and values that depend on them."""

    learned: LearningResult | None = None
    size: int | None = None
    choices: _Cache = field(default_factory=_Cache)
    views: _Cache = field(default_factory=_Cache)
    orders: _Cache = field(default_factory=_Cache)


class Proposer:
    """Chooses in the groups of a material, by the last result of learning.

    All methods may be called from several threads.
    """

    def __init__(self, material: Material) -> None:
        self._material = material
        self._state = _State()

    def use(self, learned: LearningResult | None, picks: Picks) -> None:
        """Propose by this from now on, or untrained; ``picks`` are of groups done."""
        size = usual_size(len(chosen) for chosen in picks.values())
        self._state = _State(learned, size)

    def omegas(self) -> tuple[float, float]:
        """Return the smallest and the largest omega."""
        family, _ = self._family(self._state)
        known = OMEGAS if family is None else family.omegas
        return known[0], known[-1]

    def choose(self, group: int, omega: float = 1.0) -> IntArray:
        """Choose in a group; an omega out of the range learned is the nearest in it."""
        state = self._state
        learned = state.learned
        ground_set = self._material.ground_set(group)
        step, omega = _rounded(omega)

        def order() -> GreedyOrder:
            assert learned is not None
            return GreedyOrder(learned.family.at(1.0).ensemble(ground_set))

        def choice() -> Any:
            if learned is not None and learned.decoder == "greedy":
                most = _room(ground_set, _CACHED_ORDERS)
                known = state.orders.get(group, order, most)
                return known.chosen(_within(learned.family, omega))
            if learned is None and self._material.prior is None:
                return _untrained_choice(ground_set, state.size, omega)
            return self._view(state, group, omega).proposal.chosen

        chosen: IntArray = state.choices.get((group, step), choice, _CACHED_CHOICES)
        return chosen

    def propose(self, group: int, omega: float = 1.0) -> Proposal:
        """Choose in a group, with the probability of every item to be chosen."""
        return self._view(self._state, group, omega).proposal

    def _family(self, state: _State) -> tuple[OmegaFamily | None, str]:
        """Return the models to propose by, and their decoder."""
        if state.learned is None:
            return self._material.prior, "greedy"
        return state.learned.family, state.learned.decoder

    def _view(self, state: _State, group: int, omega: float) -> _View:
        family, decoder = self._family(state)
        ground_set = self._material.ground_set(group)
        step, omega = _rounded(omega)

        def make() -> _View:
            if family is None:
                chosen = _untrained_choice(ground_set, state.size, omega)
                ensemble = untrained_ensemble(ground_set, len(chosen))
                proposal = Proposal(omega, chosen, ensemble.marginals())
                return _View(ensemble, proposal, None)
            within = _within(family, omega)
            model = family.at(within)
            ensemble = model.ensemble(ground_set)
            chosen = np.sort(ensemble.decode(decoder, random_state=0).indices)
            return _View(
                ensemble, Proposal(within, chosen, ensemble.marginals()), model
            )

        most = _room(ground_set, _CACHED_VIEWS)
        view: _View = state.views.get((group, step), make, most)
        return view

    def next_group(self, done: Collection[int], order: str = "unsure") -> int | None:
        """Return the next group: that of least confidence, or the next given."""
        others = [g for g in range(len(self._material.names)) if g not in done]
        if not others:
            return None
        learned = self._state.learned
        if order == "unsure" and learned is not None:
            known = {g: f for g, f in learned.confidence.items() if g not in done}
            if known:
                return min(known, key=lambda group: (known[group], group))
        return others[0]

    def omega_for(self, name: str, value: float) -> float:
        """Return the omega at which a "precision" or "recall" is expected."""
        learned = self._state.learned
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
        view = self._view(self._state, group, omega)
        ground_set, names = (
            self._material.ground_set(group),
            self._material.feature_names,
        )
        found = explain(item, chosen, ground_set, view.ensemble, view.model, names)
        return {"probability": float(view.proposal.probability[item]), **found}

    def outline(self, group: int) -> Map:
        """Return a map of a group."""
        view = self._view(self._state, group, 1.0)
        return map_of(view.model, self._material.ground_set(group))


def _rounded(omega: float) -> tuple[int, float]:
    """Return the number of the nearest omega that is distinguished, and its value."""
    step = round(_STEPS * float(np.log2(omega)))
    return step, 2.0 ** (step / _STEPS)


def _within(family: OmegaFamily, omega: float) -> float:
    return float(np.clip(omega, family.omegas[0], family.omegas[-1]))


def _room(ground_set: GroundSet, most: int) -> int:
    """Return how many such groups are cached."""
    return max(1, min(most, int(_CACHED_CELLS / len(ground_set) ** 2)))


def _untrained_choice(
    ground_set: GroundSet, size: int | None, omega: float
) -> IntArray:
    """Choose more or fewer than usual: the fourth root of omega times as many."""
    if size is None:
        size = len(untrained_choice(ground_set))
    return untrained_choice(ground_set, max(1, round(size * omega**0.25)))


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
