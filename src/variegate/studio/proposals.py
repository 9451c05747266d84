"""What is proposed in a group, and why: fast enough to follow a slider.

The next group is that of which the model is least sure.  Sureness is the F-score that
it expects of its own proposal (:func:`variegate.studio.sureness.expected_f`), looked at
in the first hundred groups that are not done, whenever something was learned; of equals
the first comes first.  Before anything is learned, groups come in their order.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from variegate._typing import FloatArray, IntArray
from variegate.application.model_facts import learned_kinds
from variegate.baselines.learned import embeddings_of
from variegate.ensemble import LEnsemble
from variegate.estimator import LargeMarginDPP
from variegate.ground_set import GroundSet
from variegate.linalg.cosine import unit_rows
from variegate.studio.greedy_order import GreedyOrder
from variegate.studio.learned import Learned
from variegate.studio.lessons import OMEGAS
from variegate.studio.material.base import Material, Picks
from variegate.studio.parts import Map, Part, Proposal, Why
from variegate.studio.untrained import (
    untrained_choice,
    untrained_ensemble,
    usual_size,
)
from variegate.tuning.family import OmegaFamily

__all__ = ["Proposer", "omega_on_path"]

#: What is kept ready, at most: choices, groups at an omega, groups whose order is
#: known, and the cells of all matrices of either together.
_KEPT_CHOICES = 256
_KEPT = 16
_KEPT_ORDERS = 4
_KEPT_CELLS = 2e7

#: Omegas closer than this share of an octave are one.
_STEPS = 64

#: Parts of the quality that are named, at most.
_MOST_PARTS = 12


@dataclass(frozen=True, eq=False)
class _View:
    """A group as a model sees it at one omega; no model where nothing is learned."""

    ensemble: LEnsemble
    proposal: Proposal
    model: LargeMarginDPP | None


class Proposer:
    """Chooses in the groups of a material, by what was learned last.

    All methods may be called from several threads.
    """

    def __init__(self, material: Material) -> None:
        self._material = material
        self._lock = threading.Lock()
        self._views: OrderedDict[tuple[int, int, int], _View] = OrderedDict()
        self._orders: OrderedDict[tuple[int, int], GreedyOrder] = OrderedDict()
        self._choices: OrderedDict[tuple[int, int, int], IntArray] = OrderedDict()
        self._serial = 0
        self._learned: Learned | None = None
        self._size: int | None = None

    def use(self, learned: Learned | None, picks: Picks) -> None:
        """Propose by this from now on, or untrained; ``picks`` are what was done."""
        with self._lock:
            self._learned = learned
            self._size = usual_size(len(chosen) for chosen in picks.values())
            self._serial += 1
            self._views.clear()
            self._orders.clear()
            self._choices.clear()

    # Choosing ---------------------------------------------------------------------

    def omegas(self) -> tuple[float, float]:
        """Return the smallest and the largest omega."""
        family, _ = self._family()
        known = OMEGAS if family is None else family.omegas
        return known[0], known[-1]

    def choose(self, group: int, omega: float = 1.0) -> IntArray:
        """Choose in a group; an omega beyond what was learned is the nearest to it."""
        step = _step(omega)
        with self._lock:
            serial, learned, size = self._serial, self._learned, self._size
            if (serial, group, step) in self._choices:
                return self._choices[serial, group, step]
        omega = 2.0 ** (step / _STEPS)
        if learned is not None and learned.decoder == "greedy":
            order = self._order(serial, learned, group)
            chosen = order.chosen(_within(learned.family, omega))
        elif learned is None and self._material.prior is None:
            chosen = _untrained_choice(self._material.ground_set(group), size, omega)
        else:
            chosen = self._view(group, omega).proposal.chosen
        with self._lock:
            _keep(self._choices, (serial, group, step), chosen, _KEPT_CHOICES)
        return chosen

    def _order(self, serial: int, learned: Learned, group: int) -> GreedyOrder:
        """Return the order in which items of a group are taken."""
        with self._lock:
            order = self._orders.get((serial, group))
        if order is None:
            ground_set = self._material.ground_set(group)
            order = GreedyOrder(learned.family.at(1.0).ensemble(ground_set))
            room = _room(ground_set, _KEPT_ORDERS)
            with self._lock:
                _keep(self._orders, (serial, group), order, room)
        return order

    def propose(self, group: int, omega: float = 1.0) -> Proposal:
        """Choose in a group, and say how likely every item is to be chosen."""
        return self._view(group, omega).proposal

    def _family(self) -> tuple[OmegaFamily | None, str]:
        """Return the models that are gone by, and how sets are chosen by them."""
        learned = self._learned
        if learned is None:
            return self._material.prior, "greedy"
        return learned.family, learned.decoder

    def _view(self, group: int, omega: float) -> _View:
        step = _step(omega)
        with self._lock:
            key = (self._serial, group, step)
            family, decoder = self._family()
            size = self._size
            if key in self._views:
                self._views.move_to_end(key)
                return self._views[key]
        ground_set = self._material.ground_set(group)
        omega = 2.0 ** (step / _STEPS)
        if family is None:
            view = _untrained(ground_set, size, omega)
        else:
            view = _by_model(ground_set, family, omega, decoder)
        with self._lock:
            _keep(self._views, key, view, _room(ground_set, _KEPT))
        return view

    def next_group(self, done: Collection[int], order: str = "unsure") -> int | None:
        """Return the group to show next: that of least sureness, or the next given."""
        others = [g for g in range(len(self._material.names)) if g not in done]
        if not others:
            return None
        learned = self._learned
        if order == "unsure" and learned is not None:
            known = {g: s for g, s in learned.sureness.items() if g not in done}
            if known:
                return min(known, key=lambda group: (known[group], group))
        return others[0]

    def omega_for(self, name: str, value: float) -> float:
        """Return the omega at which "precision" or "recall" is expected to be so."""
        return (
            1.0 if self._learned is None else omega_on_path(self._learned, name, value)
        )

    # Explaining -------------------------------------------------------------------

    def why(
        self, group: int, item: int, chosen: Collection[int], omega: float = 1.0
    ) -> Why:
        """Explain an item beside those that are chosen."""
        view = self._view(group, omega)
        ground_set = self._material.ground_set(group)
        others = np.array(sorted(set(chosen) - {item}), dtype=np.intp)
        like, similarity = None, 0.0
        if len(others):
            S = view.ensemble.representation.submatrix(np.append(others, item))
            beside = np.clip(S[-1, :-1], 0.0, 1.0)
            like = int(others[np.argmax(beside)])
            similarity = float(beside.max())
        parts = _parts(view.model, ground_set, item, self._material.feature_names)
        probability = float(view.proposal.probability[item])
        return Why(probability, parts, like, similarity)

    def outline(self, group: int) -> Map:
        """Return a map of a group."""
        view = self._view(group, 1.0)
        ground_set = self._material.ground_set(group)
        kinds = [] if view.model is None else learned_kinds(view.model)
        if kinds:
            weightiest = max(kinds, key=lambda one: one.weight)
            return _by_kinds(weightiest.kernel.kinds(ground_set, weightiest.parameters))
        return _components(ground_set)


def _step(omega: float) -> int:
    """Return the place of an omega among those that are told apart."""
    return round(_STEPS * float(np.log2(omega)))


def _within(family: OmegaFamily, omega: float) -> float:
    return float(np.clip(omega, family.omegas[0], family.omegas[-1]))


def _room(ground_set: GroundSet, most: int) -> int:
    """Return how many such groups are kept."""
    return max(1, min(most, int(_KEPT_CELLS / len(ground_set) ** 2)))


def _keep(kept: OrderedDict[Any, Any], key: Any, value: Any, most: int) -> None:
    """Keep a value, and those before it that there is room for."""
    kept[key] = value
    while len(kept) > most:
        kept.popitem(last=False)


def _by_model(
    ground_set: GroundSet, family: OmegaFamily, omega: float, decoder: str
) -> _View:
    omega = _within(family, omega)
    model = family.at(omega)
    ensemble = model.ensemble(ground_set)
    chosen = np.sort(ensemble.decode(decoder, random_state=0).indices)
    return _View(ensemble, Proposal(omega, chosen, ensemble.marginals()), model)


def _untrained(ground_set: GroundSet, size: int | None, omega: float) -> _View:
    chosen = _untrained_choice(ground_set, size, omega)
    ensemble = untrained_ensemble(ground_set, len(chosen))
    return _View(ensemble, Proposal(omega, chosen, ensemble.marginals()), None)


def _untrained_choice(
    ground_set: GroundSet, size: int | None, omega: float
) -> IntArray:
    """Choose where omega is a wish for fewer or more: its fourth root times."""
    if size is None:
        size = len(untrained_choice(ground_set))
    return untrained_choice(ground_set, max(1, round(size * omega**0.25)))


def _parts(
    model: LargeMarginDPP | None, ground_set: GroundSet, item: int, names: Any
) -> tuple[Part, ...]:
    """Return what features add to the log-quality above the mean of the group."""
    if model is None:
        return ()
    x = ground_set.quality
    added = model.theta_ * (x[item] - x.mean(axis=0))
    order = np.argsort(-np.abs(added), kind="stable")[:_MOST_PARTS]
    return tuple(Part(str(names[j]), float(x[item, j]), float(added[j])) for j in order)


def _by_kinds(p: FloatArray) -> Map:
    """Return a map whose columns are the kinds there are, the most common first."""
    kind: IntArray = p.argmax(axis=1)
    present, counts = np.unique(kind, return_counts=True)
    present = present[np.argsort(-counts, kind="stable")]
    column = {int(k): place for place, k in enumerate(present)}
    x = np.array([column[int(k)] for k in kind], dtype=np.float64)
    names = tuple(f"kind {k + 1}" for k in present)
    return Map("kinds", x, p.max(axis=1), names)


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


def omega_on_path(learned: Learned, name: str, value: float) -> float:
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
