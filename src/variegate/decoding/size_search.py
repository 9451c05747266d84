"""The set with the largest sum of weights, where weights depend on its size.

The weights are the shares of items in an expected F-score.  The value of a set is the
sum of its weights, its size the number of its items.  Of one size and without a budget,
the best set is the items with the largest weights, or with a limit on labels the items
that are largest within it.  Most sizes are ruled out by upper bounds on the value that
follow from the weights at a few other sizes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from variegate._typing import BoolArray, FloatArray, IntArray
from variegate.decoding.at_most import AtMost, labels_and_room
from variegate.decoding.base import Constraint
from variegate.linalg.coins import (
    count_distribution,
    leave_one_out_distributions,
    likely_range,
)
from variegate.linalg.cosine import chunks
from variegate.linalg.representations import Representation

#: Sizes that all together are less probable than this are taken for impossible.  The
#: F-score is at most one, so no expectation is off by more.
_NEGLIGIBLE = 1e-15

#: Sums that differ by no more than this share are equal; the smaller set is taken.
_EQUAL = 1e-12

#: Sizes in a batch; fewer where it has more than this many weights, or where a budget
#: makes each size a search of its own.
_BATCH, _MOST_WEIGHTS, _BATCH_OF_SEARCHES = 64, 2**22, 8

#: Nodes of all searches within a budget together, about a tenth of a second.
_MAX_NODES = 5_000_000

#: Steps to the best price of a budget; some ten are usual, and any price gives a bound.
_MAX_STEPS = 60


class SizedWeights:
    r"""The weights ``w_i(a)`` that make an expected F-score a sum.

    For ``Y`` drawn from the ensemble and a set ``A`` of ``a ≥ 1`` items,

    .. math:: \mathbb E F_\beta(A, Y) = \sum_{i \in A} w_i(a), \qquad
        w_i(a) = \sum_s \frac{1 + \beta^2}{\beta^2 s + a} P(i \in Y, |Y| = s).

    The ensemble is a mixture of elementary ones: eigenvector ``v_n`` is kept with
    probability ``p_n``, its eigenvalue in ``K``, and given the set ``J`` of those kept,
    ``|Y| = |J|`` and ``P(i ∈ Y) = Σ_{n ∈ J} v_{ni}²``.  So

    .. math:: P(i \in Y, |Y| = s) = \sum_n v_{ni}^2\, p_n\, P(|J \setminus n| = s - 1).

    ``|J ∖ n|`` is a number of heads of independent coins, see
    :func:`~variegate.linalg.coins.leave_one_out_distributions`.

    Takes ``O(M²)`` time and ``O(M T)`` memory besides the eigenpairs, for rank ``M``
    and ``T`` sizes that are not negligible (some multiple of ``√M``).  ``empty`` is
    ``P(Y = ∅)``, the expected F-score of the empty set.
    """

    def __init__(self, kernel: Representation, beta: float) -> None:
        # p_n (M,), v_ni (M, N), and P(|J ∖ n| = s - 1) (M, T).
        self._kept, vectors = kernel.marginal_eigenpairs
        self._vectors = vectors.all()
        law = count_distribution(self._kept)
        first, last = likely_range(law, _NEGLIGIBLE)
        first = max(first - 1, 0)
        self._others = leave_one_out_distributions(self._kept, law, first, last)
        # (1 + β²) / (β² s + a) is 1 / (offset + slope a), with an offset for each s.
        share = 1.0 / (1.0 + (1.0 / beta) * (1.0 / beta))
        self._slope = 1.0 / (1.0 + beta * beta)
        self._offsets = share * np.arange(first + 1, last + 2)
        self.empty = float(law[0])
        self.expected_size = float(self._kept.sum())

    def weights_at(self, sizes: IntArray, items: IntArray | None = None) -> FloatArray:
        """Return the weights ``w_i(a)``, one row for each ``a`` in ``sizes`` (all ≥ 1).

        Columns are the items of these numbers, by default all.  Takes ``O(N M)`` time
        for each size.
        """
        score = 1.0 / (self._offsets[:, None] + self._slope * sizes)
        of_vectors = (self._kept[:, None] * (self._others @ score)).T
        vectors = self._vectors if items is None else self._vectors[:, items]
        weights = np.empty((len(sizes), vectors.shape[1]))
        for part in chunks(vectors.shape[1]):
            np.matmul(of_vectors, vectors[:, part] ** 2, out=weights[:, part])
        return weights

    def score(self, members: IntArray) -> float:
        """Return the expected F-score of the set of item numbers ``members``."""
        if not len(members):
            return self.empty
        return float(self.weights_at(np.array([len(members)]), members).sum())

    def bound_weight_ratios(self, known: IntArray, sizes: IntArray) -> FloatArray:
        """Return upper bounds on ``w_i(b) / w_i(a)`` that hold for all items ``i``.

        Rows are the sizes ``a`` in ``known``, columns the ``b`` in ``sizes``.
        """
        low, high = self._offsets[0], self._offsets[-1]
        at, to = self._slope * known[:, None], self._slope * sizes
        offset = np.where(to > at, high, low)
        return np.asarray((offset + at) / (offset + to))


class BestSet(NamedTuple):
    """A feasible set, its value, and an upper bound on that of all feasible sets.

    ``members`` are sorted item numbers.  ``bound`` equals ``value`` where the set is
    proved to be the best.  ``price`` is the Lagrange multiplier of the budget that
    gives the bound, 0 without a budget.
    """

    members: IntArray
    value: float
    bound: float
    price: float = 0.0


class SizeSearch:
    """Searches for the best set of all sizes that a constraint allows.

    It holds the best set so far, and for each size ``0 .. largest`` an upper bound on
    the value of its sets, and whether the weights at this size were evaluated.
    """

    def __init__(self, weights: SizedWeights, constraint: Constraint) -> None:
        self.weights = weights
        self.costs = constraint.costs
        total = np.cumsum(np.sort(self.costs))
        self.smallest = 0 if constraint.k is None else constraint.k
        self.largest = int(np.count_nonzero(constraint.affords(total)))
        self.at_most = constraint.at_most
        if self.at_most is not None:
            self.largest = min(self.largest, self.at_most.largest_size())
        if constraint.k is not None:
            self.largest = constraint.k
        dearest = np.sort(self.costs)[len(self.costs) - self.largest :].sum()
        fits = bool(constraint.affords(dearest))
        #: Infinite where every set of an allowed size is within the budget.
        self.budget = np.inf if fits else constraint.largest_cost()
        #: Whether the best set of a size can be another one than the largest weights.
        self.is_searched = not fits or (
            self.at_most is not None and len(self.at_most.labels) > 1
        )
        if self.is_searched and fits:
            self.budget = float(dearest) * 2.0
        # Every other set exceeds -1.
        value = weights.empty if self.smallest == 0 else -1.0
        self._best = BestSet(np.zeros(0, dtype=np.intp), value, value)
        if constraint.k and self.at_most is not None:
            # So that there is a set of ``k`` items even if the search is cut short.
            found = self.at_most.cheapest_items(self.costs, constraint.k)
            assert found is not None  # or the constraint would have been refused
            found = np.sort(found)
            value = weights.score(found)
            self._best = BestSet(found, value, value)
        self._bounds = np.full(self.largest + 1, np.inf)
        self._bounds[: max(self.smallest, 1)] = -np.inf
        self._is_seen = np.zeros(self.largest + 1, dtype=bool)

    def find_best_set(self) -> BestSet:
        """Return the best feasible set, or the best one found within ``_MAX_NODES``."""
        most = _BATCH_OF_SEARCHES if self.is_searched else _BATCH
        batch = int(np.clip(_MOST_WEIGHTS // max(len(self.costs), 1), 4, most))
        sizes = self._open_sizes()
        if len(sizes) > batch:
            sizes = np.array([round(self.weights.expected_size)])
            sizes = np.clip(sizes, max(self.smallest, 1), self.largest)
        while len(sizes):
            self._evaluate_sizes(sizes)
            sizes = self._open_sizes()
            if len(sizes) > batch:
                sizes = sizes[np.linspace(0, len(sizes) - 1, batch).astype(np.intp)]
        return self._search_remaining_sizes()

    def _is_better(self, values: Any, sizes: Any) -> BoolArray:
        """Tell which values exceed the best one, or equal it with fewer items."""
        best = self._best.value
        margin = np.where(sizes < len(self._best.members), -_EQUAL, _EQUAL)
        return np.asarray(values > best + margin * abs(best))

    def _open_sizes(self) -> IntArray:
        """Return the sizes not evaluated yet that may hold a better set, by bounds."""
        sizes = np.flatnonzero(~self._is_seen)
        return sizes[self._is_better(self._bounds[sizes], sizes)]

    def _evaluate_sizes(self, sizes: IntArray) -> None:
        """Evaluate weights at some sizes: update the best set and all upper bounds."""
        weights = self.weights.weights_at(sizes)
        last = int(max(sizes[-1], self._open_sizes().max(initial=0)))
        self._is_seen[sizes] = True
        if not self.is_searched:
            curves = np.cumsum(_sort_largest(weights, last, self.at_most), axis=1)
            self._choose_largest_weights(sizes, weights, curves)
        else:
            prices = self._choose_within_budget(sizes, weights)
            reduced = weights - prices[:, None] * self.costs
            curves = np.cumsum(_sort_largest(reduced, last, self.at_most), axis=1)
            curves += prices[:, None] * self.budget
        others = np.flatnonzero(~self._is_seen[: last + 1])[1:]
        if len(others):
            bounds = curves[:, others - 1] * self.weights.bound_weight_ratios(
                sizes, others
            )
            self._bounds[others] = np.minimum(self._bounds[others], bounds.min(axis=0))

    def _choose_largest_weights(
        self, sizes: IntArray, weights: FloatArray, curves: FloatArray
    ) -> None:
        """Replace the best set if one of ``sizes`` has a better one; set their bounds.

        Called where the best set of ``sizes[row]`` is the items of the largest
        ``weights[row]`` (N,); ``curves[row, a - 1]`` is the sum of the ``a`` largest.
        The upper bounds of ``sizes`` become the values of these sets.
        """
        values = curves[np.arange(len(sizes)), sizes - 1]
        self._bounds[sizes] = values
        row = int(np.argmax(values >= values.max() * (1.0 - _EQUAL)))
        members = indices_of_largest(weights[row], int(sizes[row]), self.at_most)
        self._keep_if_better(BestSet(members, float(values[row]), float(values[row])))

    def _choose_within_budget(self, sizes: IntArray, weights: FloatArray) -> FloatArray:
        """Update the best set and the bounds of ``sizes`` by the Lagrangian bound.

        ``weights`` are (sizes, N); returns the price on costs of each size, (sizes,).
        """
        prices = np.zeros(len(sizes))
        for row, size in enumerate(sizes.tolist()):
            found = minimize_lagrangian_bound(
                weights[row], self.costs, size, self.budget, self.at_most
            )
            self._keep_if_better(found)
            prices[row], self._bounds[size] = found.price, found.bound
        return prices

    def _keep_if_better(self, found: BestSet) -> None:
        """Replace the best set so far by ``found``, if that is better."""
        if self._is_better(found.value, len(found.members)):
            self._best = found

    def _search_remaining_sizes(self) -> BestSet:
        """Return the best set, after branch and bound of all sizes that may beat it.

        Its bound is the largest of the sizes for which ``_MAX_NODES`` did not suffice.
        """
        bound, nodes_left = self._best.value, _MAX_NODES
        sizes = np.flatnonzero(self._is_seen)
        sizes = sizes[self._is_better(self._bounds[sizes], sizes)]
        for size in sizes[np.argsort(-self._bounds[sizes], kind="stable")].tolist():
            upper = self._bounds[size]
            if self._is_better(upper, size) and upper > self._best.value:
                finished, nodes = self._search_size(size, nodes_left)
                nodes_left -= nodes
                if not finished:
                    bound = max(bound, float(upper))
        best = self._best
        return BestSet(best.members, best.value, max(best.value, bound))

    def _search_size(self, size: int, max_nodes: int) -> tuple[bool, int]:
        """Search one size by branch and bound; replace the best set by a better one.

        Returns whether that was finished within ``max_nodes``, and the nodes visited.
        """
        from variegate.linalg.compiled.weighted_sets import search_knapsack

        if max_nodes <= 0:
            return False, 0
        weights = self.weights.weights_at(np.array([size]))[0]
        price = minimize_lagrangian_bound(
            weights, self.costs, size, self.budget, self.at_most
        ).price
        order = np.argsort(price * self.costs - weights, kind="stable")
        places = np.empty(size, dtype=np.int64)
        floor = self._best.value
        labels, room = labels_and_room(self.at_most, order)
        items = weights[order], self.costs[order], labels
        value, nodes = search_knapsack(
            *items, room, price, self.budget, floor, max_nodes, places
        )
        if value > floor:
            self._best = BestSet(np.sort(order[places]), float(value), float(value))
        return nodes <= max_nodes, nodes


def minimize_lagrangian_bound(
    weights: FloatArray,
    costs: FloatArray,
    size: int,
    budget: float,
    at_most: AtMost | None = None,
) -> BestSet:
    """Return a feasible set of ``size`` items, and the lowest Lagrangian bound.

    ``weights`` and ``costs`` are (N,).  If no feasible set was met, the set is empty,
    of value -1; the bound is -1, too, if no set of this size is within the budget.

    For every price ``μ ≥ 0`` the best ``Σ w_i`` of ``size`` items within a budget ``b``
    is at most ``μ b`` plus the ``size`` largest of ``w_i - μ c_i``.  This bound is a
    convex, piecewise linear function of the price; the lowest point of two of its
    pieces, one rising and one falling, is tried until it is on the curve.  The largest
    are those within the tightest limit on labels; a set that breaks another one gives a
    bound and is not chosen.
    """
    no_set = BestSet(np.zeros(0, dtype=np.intp), -1.0, -1.0)

    def is_within_limits(members: IntArray) -> bool:
        """Tell whether a set is within all limits on labels, not the tightest alone."""
        if at_most is None:
            return True
        return bool((at_most.count_by_label(members) <= at_most.room).all())

    members = indices_of_largest(weights, size, at_most)
    value, cost = float(weights[members].sum()), float(costs[members].sum())
    if cost <= budget:
        is_found = is_within_limits(members)
        found = BestSet(members, value, value) if is_found else no_set
        return found._replace(bound=value)
    best = indices_of_largest(-costs, size, at_most)
    low_value, low_cost = float(weights[best].sum()), float(costs[best].sum())
    if low_cost > budget:  # which no set of this size fits
        return no_set
    bound, best_price = value, 0.0
    best, best_value = (best, low_value) if is_within_limits(best) else no_set[:2]
    for _ in range(_MAX_STEPS):
        price = max((value - low_value) / (cost - low_cost), 0.0)
        members = indices_of_largest(weights - price * costs, size, at_most)
        new_value = float(weights[members].sum())
        new_cost = float(costs[members].sum())
        reached = new_value + price * (budget - new_cost)
        if reached < bound:
            bound, best_price = reached, price
        line = low_value + price * (budget - low_cost)
        if new_cost <= budget:
            low_value, low_cost = new_value, new_cost
            if new_value > best_value and is_within_limits(members):
                best, best_value = members, new_value
        else:
            value, cost = new_value, new_cost
        if reached <= line + _EQUAL * abs(line):
            break
    return BestSet(best, best_value, max(bound, best_value), best_price)


def indices_of_largest(
    values: FloatArray, count: int, at_most: AtMost | None = None
) -> IntArray:
    """Return the sorted indices of the ``count`` largest values; of equals the first.

    With limits on labels, those that exceed the tightest limit are skipped.
    """
    if at_most is not None:
        order = np.argsort(-values, kind="stable")
        return np.sort(at_most.tightest_limit().first_allowed(order, count))
    if count in (0, len(values)):
        return np.arange(count)
    last = np.partition(values, len(values) - count)[len(values) - count]
    slack = _EQUAL * abs(last) + 1e-15 * np.abs(values).max()
    sure = np.flatnonzero(values > last + slack)
    equal = np.flatnonzero(np.abs(values - last) <= slack)
    return np.sort(np.concatenate([sure, equal[: count - len(sure)]]))


def _sort_largest(
    values: FloatArray, count: int, at_most: AtMost | None = None
) -> FloatArray:
    """Return the ``count`` largest values a row, descending, as ``at_most`` allows.

    Columns are items; of several limits on their labels, only the tightest counts.
    """
    if at_most is not None:
        tightest = at_most.tightest_limit()
        orders = np.argsort(-values, axis=1, kind="stable")
        items = [tightest.first_allowed(order, count) for order in orders]
        return np.take_along_axis(values, np.array(items), axis=1)
    n = values.shape[1]
    if count < n:
        values = np.partition(values, n - count, axis=1)[:, n - count :]
    return np.asarray(np.sort(values, axis=1)[:, ::-1])
