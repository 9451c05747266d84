"""Limits on the number of chosen items that share a label, such as a source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from variegate._typing import BoolArray, FloatArray, IntArray
from variegate._validation import check_count


@dataclass(frozen=True, eq=False)
class AtMost:
    """The largest number of items of each label.

    One limit is a partition matroid: the search for the cheapest items may take the
    cheapest one that still fits, again and again.  Several limits together are not, and
    need an integer program where that search falls short.

    Attributes
    ----------
    labels : array of shape (M, N)
        For each of ``M`` limits, the label of every item as a number.  Two limits have
        no number in common.
    room : array of shape (G,)
        The largest number of items of each of the ``G`` labels of all limits.
    """

    labels: IntArray
    room: IntArray

    @classmethod
    def of(cls, n_items: int, at_most: Any, per: Any) -> AtMost | None:
        """Return checked limits from ``at_most`` and ``per``; None if neither is given.

        One limit is a positive integer and the labels (N,), of any hashable type;
        several are a sequence of integers, and one of as many arrays of labels.
        ValueError for anything else.
        """
        if at_most is None and per is None:
            return None
        if per is None:
            raise ValueError(
                "at_most was given without per: give the label of every item"
            )
        if at_most is None:
            raise ValueError("per was given without at_most: give the largest number")
        if not isinstance(at_most, Sequence | np.ndarray):
            at_most, per = [at_most], [per]
        if len(at_most) == 0 or isinstance(per, str) or len(at_most) != len(per):
            raise ValueError(
                "at_most and per must have the same length, one array of labels for "
                f"each number, got at_most={at_most!r} and {len(per)} in per"
            )
        labels = np.empty((len(at_most), n_items), dtype=np.intp)
        room: list[int] = []
        for row, (most, values) in enumerate(zip(at_most, per, strict=True)):
            check_count("at_most", most)
            numbers = _number_labels(values, n_items)
            labels[row] = numbers + len(room)
            room += [int(most)] * (int(numbers.max(initial=-1)) + 1)
        return cls(labels, np.array(room, dtype=np.intp))

    @classmethod
    def unlimited(cls, n_items: int) -> AtMost:
        """Return a limit that allows all subsets: one label, of ``n_items`` items."""
        return cls(np.zeros((1, n_items), dtype=np.intp), np.array([n_items]))

    def among(self, items: IntArray) -> AtMost:
        """Return the limits on the given items alone, numbered in this order."""
        return replace(self, labels=self.labels[:, items])

    def count_by_label(self, members: Any) -> IntArray:
        """Return how many (G,) of ``members``, item numbers, have each label."""
        numbers = self.labels[:, np.asarray(members, dtype=np.intp)]
        return np.asarray(np.bincount(numbers.ravel(), minlength=len(self.room)))

    def largest_sizes(self) -> IntArray:
        """Return the largest size (M,) of a set that each limit by itself allows."""
        counts = [np.bincount(row, minlength=len(self.room)) for row in self.labels]
        return np.asarray(np.minimum(counts, self.room).sum(axis=1))

    def largest_size(self) -> int:
        """Return the largest size by the tightest limit; several may allow less."""
        return int(self.largest_sizes().min())

    def tightest_limit(self) -> AtMost:
        """Return the one limit whose largest size is smallest, without the others."""
        row = int(np.argmin(self.largest_sizes()))
        return replace(self, labels=self.labels[row : row + 1])

    def open_items(self, chosen: Any) -> BoolArray:
        """Return a mask (N,) of items, chosen or not, with labels not used up."""
        is_open = self.count_by_label(chosen) < self.room
        return np.asarray(is_open[self.labels].all(axis=0))

    def allows(self, subsets: BoolArray) -> BoolArray:
        """Return a mask (B,) of the feasible rows of a boolean array (B, N)."""
        rows, items = np.nonzero(subsets)
        feasible = np.ones(len(subsets), dtype=bool)
        for labels in self.labels:
            places = rows * len(self.room) + labels[items]
            pairs, counts = np.unique(places, return_counts=True)
            full = counts > self.room[pairs % len(self.room)]
            feasible[pairs[full] // len(self.room)] = False
        return feasible

    def first_allowed(self, order: IntArray, count: int, chosen: Any = ()) -> IntArray:
        """Return the first ``count`` of ``order`` allowed together with ``chosen``.

        Items that would break a limit are skipped; there are fewer if ``order`` ends.
        """
        left = self.room - self.count_by_label(chosen)
        if len(self.labels) == 1:
            labels = self.labels[0][order]
            by_label = np.argsort(labels, kind="stable")
            starts = np.searchsorted(labels[by_label], labels[by_label])
            rank = np.empty(len(order), dtype=np.intp)
            rank[by_label] = np.arange(len(order)) - starts
            return np.asarray(order[rank < left[labels]][:count])
        taken: list[int] = []
        for item in order.tolist():
            if len(taken) == count:
                break
            if (left[self.labels[:, item]] > 0).all():
                left[self.labels[:, item]] -= 1
                taken.append(item)
        return np.array(taken, dtype=np.intp)

    def cheapest_items(
        self, costs: FloatArray, count: int, chosen: Sequence[int] = ()
    ) -> IntArray | None:
        """Return the ``count`` cheapest items allowed together with ``chosen``.

        The chosen are not among them; None if the limits allow fewer.
        """
        is_free = self.open_items(chosen)
        is_free[list(chosen)] = False
        items = np.flatnonzero(is_free)
        order = items[np.argsort(costs[items], kind="stable")]
        found = self.first_allowed(order, count, chosen)
        is_equal = len(items) == 0 or bool(costs[items].min() == costs[items].max())
        if len(self.labels) == 1 or (is_equal and len(found) == count):
            return found if len(found) == count else None
        return self._cheapest_by_program(items, costs[items], count, chosen)

    def _cheapest_by_program(
        self, items: IntArray, costs: FloatArray, count: int, chosen: Sequence[int]
    ) -> IntArray | None:
        """Return :meth:`cheapest_items` of ``items`` and their costs, by ``milp``."""
        from scipy.optimize import LinearConstraint, milp
        from scipy.sparse import csr_array

        if len(items) < count:
            return None
        if count == 0:
            return items[:0]
        numbers = self.labels[:, items]
        places = np.tile(np.arange(len(items)), len(numbers))
        entries = np.ones(numbers.size), (numbers.ravel(), places)
        has_label = csr_array(entries, shape=(len(self.room), len(items)))
        result = milp(
            costs / costs.max(),
            integrality=np.ones(len(items)),
            bounds=(0, 1),
            constraints=[
                LinearConstraint(has_label, ub=self.room - self.count_by_label(chosen)),
                LinearConstraint(np.ones((1, len(items))), count, count),
            ],
            options={"mip_rel_gap": 0.0},
        )
        return None if result.x is None else items[result.x > 0.5]

    def least_costs(
        self, costs: FloatArray, count: int, chosen: Sequence[int]
    ) -> FloatArray:
        """Return for each item the least total cost (N,) of ``count`` items with it.

        The ``count`` items are not among the chosen, and allowed together with them.
        The cost is infinite for the chosen, and for an item in no such set.
        With one limit, the cheapest set with an item is the cheapest set of all with
        the item in place of the dearest that it can replace: of its label, if that is
        used up, or of all.
        """
        is_open = self.open_items(chosen)
        is_open[list(chosen)] = False
        items = np.flatnonzero(is_open)
        least = np.full(len(costs), np.inf)
        if count < 1:
            return least
        if len(self.labels) > 1:
            is_equal = bool(costs.min(initial=1.0) == costs.max(initial=1.0))
            spare = count + len(self.labels) - 1
            if is_equal and len(self.first_allowed(items, spare, chosen)) == spare:
                # An item takes the place of at most one of each limit.
                least[items] = count * costs[items]
                return least
            for item in items.tolist():
                rest = self.cheapest_items(costs, count - 1, [*chosen, item])
                if rest is not None:
                    least[item] = costs[item] + costs[rest].sum()
            return least
        best = self.cheapest_items(costs, count, chosen)
        if best is None:
            return least
        dearest = np.full(len(self.room), costs[best].max())
        is_full = self.count_by_label([*chosen, *best]) >= self.room
        dearest[is_full] = -np.inf
        labels = self.labels[0]
        np.maximum.at(dearest, labels[best], costs[best])
        dearest[~is_full] = costs[best].max()
        total = costs[best].sum()
        least[items] = total + costs[items] - dearest[labels[items]]
        least[best] = total
        return least


def labels_and_room(
    at_most: AtMost | None, items: IntArray
) -> tuple[IntArray, IntArray]:
    """Return labels (M, items) and room (G,) for compiled code; empty if no limits."""
    from variegate.linalg.compiled import read_only

    if at_most is None:
        return read_only(np.empty((0, len(items)), np.intp)), read_only(items[:0])
    return read_only(at_most.among(items).labels), read_only(at_most.room)


def labels_among(items: IntArray, n_items: int, at_most: Any, per: Any) -> Any:
    """Return ``per`` of some of ``n_items`` items, checked as by ``AtMost.of``."""
    limits = AtMost.of(n_items, at_most, per)
    if limits is None:
        return None
    labels = limits.among(items).labels
    return list(labels) if isinstance(at_most, Sequence | np.ndarray) else labels[0]


def _number_labels(labels: Any, n_items: int) -> IntArray:
    """Return a number from 0 for the label of each item (N,), by first appearance."""
    if isinstance(labels, str) or not hasattr(labels, "__len__"):
        raise ValueError(
            f"per must be an array with one label for each item, got {labels!r}"
        )
    if len(labels) != n_items:
        raise ValueError(
            f"per has {len(labels)} labels for {n_items} items: give one for each item"
        )
    values = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
    numbers: dict[Any, int] = {}
    result = np.empty(n_items, dtype=np.intp)
    for item, label in enumerate(values):
        try:
            result[item] = numbers.setdefault(label, len(numbers))
        except TypeError:
            raise ValueError(
                f"per holds {label!r} for item {item}, which is not hashable: give "
                "strings or numbers"
            ) from None
        if label != label:
            raise ValueError(f"per holds NaN for item {item}: give every item a label")
    return result
