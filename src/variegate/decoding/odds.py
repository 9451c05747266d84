"""Larger and smaller choices than a given one, by multiplied odds of all items."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from variegate._typing import IntArray
from variegate.decoding.base import Constraint
from variegate.decoding.residuals import TIE, Residuals, gain_per_cost
from variegate.selection import Ensemble


def scale_odds(
    ensemble: Ensemble, order: IntArray, odds: float, constraint: Constraint
) -> IntArray:
    r"""Return a longer or shorter choice, as if the odds of all items were multiplied.

    ``order`` has the item numbers of a choice within a constraint without ``k``, the
    best first; so has the result, a beginning of ``order`` where ``odds``, which is
    :math:`\omega`, is below 1, and ``order`` with items added where it is above.  These
    follow as greedy search adds them.  Item ``i`` of this ranking raises the
    log-probability by :math:`g_i`, its log-odds given the items before it; let
    :math:`m_i = \min_{j \le i} g_j`, which never rises.  Multiplying the odds of all
    items by :math:`\omega` adds :math:`\log \omega` to every :math:`g_i`, and

    .. math:: \{i : m_i > t - \log \omega\}

    is the choice: at ``ω = 1`` the given one, and at a larger ``ω`` never less than at
    a smaller one.  The level ``t`` is 0, even odds, where that gives the given choice,
    as after greedy search.  Otherwise it is the middle between ``m`` of the last item
    chosen and of the next one.
    """
    if odds == 1.0:
        return order
    state = Residuals(ensemble.representation)
    lowest = np.inf
    marks = np.empty(len(order))
    for place, item in enumerate(order.tolist()):
        gain = float(state.gain()[item])
        if gain > -np.inf:
            lowest = min(lowest, gain)
            state.add(item)
        else:  # impossible beside those before it, with which it stays or goes
            state.available[item] = False
        marks[place] = lowest
    grown: list[int] = order.tolist()
    steps = greedy_steps(state, constraint, grown)
    end = (-np.inf, -1)
    mark = min(next(steps, end)[0], lowest)
    least = _level_between(lowest, mark) - np.log(odds)
    if odds < 1.0:
        return np.asarray(order[marks > least])
    n_chosen = len(order)
    while mark > least:
        n_chosen += 1
        mark = min(mark, next(steps, end)[0])
    return np.array(grown[:n_chosen], dtype=np.intp)


def _level_between(last: float, following: float) -> float:
    """Return the level ``t`` of :func:`scale_odds`.

    ``last`` is ``m``, the least gain so far, of the last item chosen, ``following``
    that of the next one.  0 where that separates the two, or where neither is finite;
    else their mean, or the finite one of them.
    """
    if following <= 0.0 < last:
        return 0.0
    ends = [mark for mark in (last, following) if np.isfinite(mark)]
    return float(np.mean(ends)) if ends else 0.0


def greedy_steps(
    state: Residuals, constraint: Constraint, chosen: list[int]
) -> Iterator[tuple[float, int]]:
    """Yield the gain in log-probability and the number of each item greedy search adds.

    Before each is yielded, it is added to ``state`` and appended to ``chosen``, the
    items that count within the constraint.  Ends where no item is possible or fits.
    """
    while True:
        gain = state.gain()
        allowed = constraint.leaves_room(chosen)
        score = np.where(allowed, gain_per_cost(gain, constraint), -np.inf)
        best = score.max(initial=-np.inf)
        if best == -np.inf:
            return
        item = int(np.argmax(score >= best - TIE))
        if state.add_if_possible(item):
            chosen.append(item)
            yield float(gain[item]), item
