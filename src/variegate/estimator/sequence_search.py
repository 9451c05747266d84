"""Searches for the items of one sequence, segment by segment.

Forward by the decoder of a model; by beam search for a large joint probability; or at
a price an item, which ``k`` or a budget for the whole sequence decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise

import numpy as np

from variegate._typing import FloatArray, IntArray
from variegate.decoding.residuals import Residuals
from variegate.ensemble import LEnsemble
from variegate.estimator.base import DPPEstimator
from variegate.ground_set import GroundSet

#: Bisections of the price of an item, each of which chooses the whole sequence again.
_BISECTIONS = 30

_NOTHING: IntArray = np.zeros(0, dtype=np.intp)


@dataclass(frozen=True)
class _Partial:
    """Items chosen from the first segments, with their joint log-probability.

    ``last`` has the items of each of the last segments, which are given to the next.
    """

    log_prob: float
    items: tuple[int, ...]
    last: tuple[tuple[int, ...], ...]


class SequenceSearch:
    """Choices from one sequence by a fitted ``model``.

    ``bounds`` are the first item numbers of its segments, and its length; the items
    chosen from the last ``memory`` segments are given to the next one.
    """

    def __init__(
        self,
        model: DPPEstimator,
        sequence: GroundSet,
        bounds: Sequence[int],
        memory: int,
    ) -> None:
        self.model = model
        self.sequence = sequence
        self.memory = memory
        self.segments = [range(start, end) for start, end in pairwise(bounds)]
        given = set(sequence.given.tolist())
        #: Which segments have no item to choose.
        self.is_given = [given.issuperset(segment) for segment in self.segments]
        #: Greedy orders are used again at other prices.
        self.greedy = lru_cache(maxsize=None)(self._greedy)

    def _ground_set(self, place: int, earlier: Sequence[int]) -> GroundSet:
        """Return a segment beside ``earlier`` items, which come first."""
        items = np.array([*earlier, *self.segments[place]], dtype=np.intp)
        given = np.isin(items, self.sequence.given)
        given[: len(earlier)] = True
        return self.sequence.take(items, given)

    def _greedy(
        self, place: int, earlier: tuple[int, ...]
    ) -> tuple[IntArray, FloatArray, float]:
        """Return a segment's possible items in greedy order, rises and normalizer.

        The rises are those of the log-probability by each item beside ``earlier`` ones
        and the items before it; the normalizer is the logarithm ``log det(L + I)``.
        """
        if self.is_given[place]:
            return _NOTHING, np.zeros(0), 0.0
        ensemble: LEnsemble = self.model.ensemble(self._ground_set(place, earlier))
        state, rises = Residuals(ensemble.representation), []
        while (gain := state.gain()).max(initial=-np.inf) > -np.inf:
            item = int(np.argmax(gain))
            if state.add_if_possible(item):
                rises.append(gain[item])
        positions = ensemble.items[np.array(state.chosen, dtype=np.intp)]
        items = self.segments[place].start + positions - len(earlier)
        return items, np.array(rises), ensemble.log_normalizer

    def choose_forward(self) -> IntArray:
        """Choose each segment by the model's decoder, beside the last choices."""
        chosen: list[list[int]] = []
        for place, segment in enumerate(self.segments):
            if self.is_given[place]:
                chosen.append([])
                continue
            earlier = list(chain.from_iterable(chosen[-self.memory :]))
            ground_set = self._ground_set(place, earlier)
            members = self.model.predict([ground_set])[0]
            chosen.append((segment.start + members - len(earlier)).tolist())
        return np.array([*chain.from_iterable(chosen)], dtype=np.intp)

    def choose_by_beam(self, beam: int) -> IntArray:
        """Return items of large joint probability, by a beam search over segments.

        Of a segment, the first items of its greedy order are tried, for any number of
        items.  Of partial choices with the same last items, the best one is kept.
        """
        partials = [_Partial(0.0, (), ())]
        for place in range(len(self.segments)):
            best: dict[tuple[tuple[int, ...], ...], _Partial] = {}
            for partial in partials:
                earlier = tuple(chain.from_iterable(partial.last))
                items, rises, normalizer = self.greedy(place, earlier)
                totals = np.concatenate([[0.0], np.cumsum(rises)]) - normalizer
                for size in np.argsort(-totals, kind="stable")[:beam]:
                    new = tuple(items[:size].tolist())
                    last = (*partial.last, new)[-self.memory :]
                    log_prob = partial.log_prob + float(totals[size])
                    if last not in best or log_prob > best[last].log_prob:
                        best[last] = _Partial(log_prob, (*partial.items, *new), last)
            partials = sorted(best.values(), key=lambda p: -p.log_prob)[:beam]
        return np.array(partials[0].items, dtype=np.intp)

    def _choose_at_price(
        self, price: float, costs: FloatArray
    ) -> tuple[IntArray, FloatArray]:
        """Return the items that are worth a price times their cost, and their rises.

        The price is subtracted from the rise of each item; the order is the greedy one.
        """
        chosen: list[IntArray] = []
        rises: list[FloatArray] = []
        for place in range(len(self.segments)):
            earlier = np.concatenate([_NOTHING, *chosen[-self.memory :]])
            items, rise, _ = self.greedy(place, tuple(earlier.tolist()))
            worth = rise - price * costs[items] > 0.0
            chosen.append(items[worth])
            rises.append(rise[worth])
        return np.concatenate(chosen), np.concatenate(rises)

    def choose_k(self, k: int) -> IntArray:
        """Return exactly ``k`` items; ValueError if fewer are possible."""
        n_items = len(self.sequence)
        if k > n_items - len(self.sequence.given):
            raise ValueError(f"k is {k}, but there are fewer items to choose from")
        costs = np.ones(n_items)
        low, high = -1.0, 1.0
        while len(self._choose_at_price(low, costs)[0]) < k:
            if low < -1e6:
                raise ValueError(
                    f"no {k} items are possible together: the similarity of segments "
                    "has too low a rank. Give a smaller k"
                )
            low *= 2.0
        while len(self._choose_at_price(high, costs)[0]) > k:
            high *= 2.0
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            size = len(self._choose_at_price(middle, costs)[0])
            low, high = (middle, high) if size >= k else (low, middle)
            if size == k:
                break
        items, rises = self._choose_at_price(low, costs)
        return items[np.sort(np.argsort(-rises, kind="stable")[:k])]

    def choose_within(self, budget: float) -> IntArray:
        """Return items whose costs sum to at most a budget."""
        costs = self.sequence.costs
        if costs is None:
            raise ValueError("budget needs costs: give GroundSet(..., costs=...)")

        def excess(price: float) -> float:
            """Return how far the items at a price are above the budget."""
            items, _ = self._choose_at_price(price, costs)
            return float(costs[items].sum()) - budget * (1.0 + 1e-9)

        low, high = 0.0, 0.0
        if excess(0.0) > 0.0:
            high = 1.0 / float(costs.mean())
            while excess(high) > 0.0:
                low, high = high, 2.0 * high
            for _ in range(_BISECTIONS):
                middle = 0.5 * (low + high)
                low, high = (middle, high) if excess(middle) > 0.0 else (low, middle)
        return self._choose_at_price(high, costs)[0]
