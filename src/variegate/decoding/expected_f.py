"""The set with the largest expected F-score, exactly and without samples."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator

from variegate._typing import FloatArray, IntArray, SubsetLike
from variegate._validation import check_number
from variegate.decoding.at_most import labels_and_room
from variegate.decoding.base import Constraint
from variegate.decoding.size_search import (
    BestSet,
    SizedWeights,
    SizeSearch,
    indices_of_largest,
)
from variegate.linalg.limits import REPEATED_ITEMS
from variegate.linalg.representations import Representation
from variegate.selection import Ensemble, Selection
from variegate.subsets import as_members

if TYPE_CHECKING:
    from variegate.linalg.compiled.weighted_sets import Problem

#: The power of a similarity that counts as repetition.  Learned similarities of unlike
#: items are often 0.5 to 0.7, of which at most 0.06 is left; of 0.9 there is 0.43.  On
#: generated tables the second power cost 0.07 of the F-score.
_POWER = 8


@dataclass(frozen=True)
class ExpectedF:
    r"""Of all subsets, the one whose F-score is expected to be the largest.

    .. math:: \hat A = \arg\max_A \mathbb E\, F_\beta(A, Y), \qquad
        F_\beta(A, Y) = \frac{(1 + \beta^2) |A \cap Y|}{\beta^2 |Y| + |A|},

    with ``Y`` drawn from the ensemble and ``F(∅, ∅) = 1``.
    :class:`~variegate.decoding.MBR` estimates the same from samples, and chooses among
    them; here the expectation is exact and the choice is among all subsets.

    **How.** For a set of ``a`` items the expectation is a sum of weights,
    :math:`\sum_{i \in A} w_i(a)`, and
    :math:`w_i(a) = \sum_s (1 + \beta^2) P(i \in Y, |Y| = s) / (\beta^2 s + a)` follows
    from the eigenpairs.  So the best ``a`` items are those with the largest weights.
    With ``r`` and ``R`` the smallest and largest size of ``Y``,
    ``(β² R + a) w_i(a)`` falls and ``(β² r + a) w_i(a)`` grows with ``a``: the weights
    at one size bound the sums at all others, and few sizes are computed.

    **Constraints.** ``k`` asks for a set of ``k`` items, while ``Y`` may have any
    number (unlike in MBR, where samples have ``k`` items too); ``k`` may exceed the
    rank of ``L``.  With a budget and costs that differ, every size is a knapsack: a
    price on costs bounds it, and branch and bound solves it where the bound is not
    reached.  So are several limits on labels; one alone needs no search.  That nearly
    always proves the best set; a search that is cut short says so in ``stop_reason``,
    with an upper bound for all sets.

    **Repetition.** The best set may hold several items that are alike, as a hedge
    against not knowing which of them is wanted, even if ``P`` of the set is zero.  With
    ``repetition > 0`` an item counts less the more it is like a better one in the set:

    .. math:: \sum_{i \in A} w_i(a) \Bigl(1 - \rho
        \max_{j \in A,\, w_j(a) > w_i(a)} S_{ij}^8\Bigr),

    with ``ρ`` the repetition, ``S`` the similarity scaled to a unit diagonal, and ties
    broken by item number.  At ``ρ = 1`` a copy adds nothing, beyond it takes away; the
    power ignores the likeness of unlike items.  Adding, dropping and exchanging items
    from two starts, among the 2000 items of the largest weights, leads to a local
    maximum.  ``stop_reason`` gives both values.

    Takes the time of the eigendecomposition, ``O(N³)`` for a matrix and ``O(N D²)`` for
    a factor of ``D`` columns, and ``O(N D)`` for each size; memory is ``O(N²)`` and
    ``O(N D)``.  ``log_prob`` of the selection is not maximized: there is no
    ``upper_bound``.

    Parameters
    ----------
    beta : float, default=1.0
        Above 1 recall counts for more and sets are larger, below 1 precision.
    repetition : float, default=0.0
        The loss of an item by its likeness to a better one.
    """

    beta: float = 1.0
    repetition: float = 0.0

    def __call__(
        self, ensemble: Ensemble, constraint: Constraint, generator: Generator
    ) -> Selection:
        """Return the best subset as a selection; ``generator`` is not used."""
        check_number("beta", self.beta, positive=True)
        check_number("repetition", self.repetition)
        kernel = ensemble.representation
        weights = SizedWeights(kernel, float(self.beta))
        search = SizeSearch(weights, constraint)
        best = search.find_best_set()
        reason = _optimality_message(best, constraint)
        if self.repetition > 0.0:
            fewer = maximize_with_repetition(
                search, best, kernel, constraint, self.repetition
            )
            reason = (
                f"expected F {weights.score(fewer.members):.3g}, less repetition "
                f"{fewer.value:.3g}, which no single change raises; no subset has an "
                f"expected F above {fewer.bound:.3g}"
            )
            best = fewer
        members = best.members
        return Selection(members, partial(ensemble.log_prob, members), reason)


def expected_f_score(
    ensemble: Ensemble, subset: SubsetLike, beta: float = 1.0
) -> float:
    """Return the expected F-score of a subset, where ``Y`` is drawn from an ensemble.

    ``subset`` is item numbers or a boolean mask; with ``beta`` above 1 recall counts
    for more.
    """
    check_number("beta", beta, positive=True)
    members = as_members(subset, len(ensemble))
    return SizedWeights(ensemble.representation, float(beta)).score(members)


def _optimality_message(best: BestSet, constraint: Constraint) -> str:
    """Return the stop reason: the expected F-score, and whether it is the largest."""
    of = "" if constraint.k is None else f" of {constraint.k} items"
    within = "" if constraint.budget is None else " within the budget"
    if constraint.at_most is not None:
        within += " and at_most" if within else " within at_most"
    if best.bound <= best.value:
        return f"expected F {best.value:.3g}, the largest of all subsets{of}{within}"
    return (
        f"expected F {best.value:.3g}; the search was cut short, and no subset{of}"
        f"{within} has more than {best.bound:.3g}"
    )


def maximize_with_repetition(
    search: SizeSearch,
    plain: BestSet,
    kernel: Representation,
    constraint: Constraint,
    repetition: float,
) -> BestSet:
    """Return a local maximum of ``Σ_i w_i (1 - repetition · l_i)`` over feasible sets.

    ``w_i`` are the weights at the set's size, ``l_i`` is the largest power of a
    similarity to a member of larger weight.  The search starts from ``plain``, the best
    set for ``repetition`` 0, whose bound the result has, and from the empty set.
    """
    from variegate.linalg.compiled import read_only
    from variegate.linalg.compiled.weighted_sets import Problem

    if search.largest == 0 or constraint.k == 0:
        return plain
    pool = _candidate_items(search, plain)
    most = min(search.largest, len(pool), 2 * len(plain.members) + 16)
    sizes = np.arange(1, most + 1) if constraint.k is None else np.array([constraint.k])
    table = search.weights.weights_at(sizes, pool)
    likeness = kernel.submatrix(pool) ** _POWER
    starts = [np.searchsorted(pool, plain.members), np.zeros(0, dtype=np.intp)]
    found: list[tuple[float, IntArray]] = []
    if constraint.k is None:
        found.append((search.weights.empty, starts[1]))
    problem = Problem(
        read_only(table),
        read_only(likeness),
        float(repetition),
        read_only(search.costs[pool]),
        float(search.budget),
        *labels_and_room(search.at_most, pool),
    )
    for start in starts:
        members = np.zeros(sizes[-1], dtype=np.int64)
        members[: len(start)] = start
        value, count = _search_locally(problem, members, len(start), constraint.k)
        found.append((value, np.sort(pool[members[:count]])))
    value, best = max(found, key=lambda pair: pair[0])
    return BestSet(best, float(value), plain.bound)


def _search_locally(
    problem: Problem, members: IntArray, count: int, k: int | None
) -> tuple[float, int]:
    """Add, drop and exchange items of a feasible set, in place, until no move helps.

    The set is the first ``count`` entries of ``members``, and is there at the end.
    Returns its value, -inf where fewer than ``k`` items were found, and its size.
    """
    from variegate.linalg.compiled.weighted_sets import best_move, set_value

    while count < (1 if k is None else k):
        _, _, item = best_move(problem, members, count, -np.inf, True, False, False)
        if item < 0:
            return -np.inf, count
        members[count] = item
        count += 1
    value = set_value(problem, members, count)
    while True:
        can_grow = k is None and count < len(members)
        best, place, item = best_move(
            problem, members, count, value, can_grow, k is None, True
        )
        if place < 0 and item < 0:
            return value, count
        value = best
        if place < 0:
            members[count] = item
            count += 1
        elif item >= 0:
            members[place] = item
        else:
            members[place : count - 1] = members[place + 1 : count].copy()
            count -= 1


def _candidate_items(search: SizeSearch, plain: BestSet) -> IntArray:
    """Return the items of largest weights at the size of ``plain``, and its members.

    Sorted item numbers; ValueError if the size exceeds ``REPEATED_ITEMS``.
    """
    size = max(len(plain.members), 1)
    if size > REPEATED_ITEMS:
        raise ValueError(
            f"with repetition at most {REPEATED_ITEMS} items are chosen, and the best "
            f"set has {size}: give a smaller k or a budget, or set repetition=0"
        )
    weights: FloatArray = search.weights.weights_at(np.array([size]))[0]
    pool = indices_of_largest(weights, min(REPEATED_ITEMS, len(weights)))
    return np.union1d(pool, plain.members)
