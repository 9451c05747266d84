"""The Poisson binomial distribution, also with one of its coins left out.

The number of items of a determinantal point process has this distribution: it is the
number of heads of one coin for each eigenvector, with its eigenvalue in ``K`` as the
probability.
"""

from __future__ import annotations

import numpy as np

from variegate._typing import FloatArray


def count_distribution(probability: FloatArray) -> FloatArray:
    """Return the probabilities (M + 1,) of 0, 1, ..., M heads of M coins."""
    law = np.zeros(len(probability) + 1)
    law[0] = 1.0
    for count, p in enumerate(probability, start=1):
        law[1 : count + 1] += p * (law[:count] - law[1 : count + 1])
        law[0] *= 1.0 - p
    return law


def likely_range(law: FloatArray, negligible: float) -> tuple[int, int]:
    """Return the first and last count, both inclusive, of the likely range of counts.

    ``law`` (M + 1,) are the probabilities of the counts 0 to M.  All counts outside of
    the range together have at most the probability ``negligible``.
    """
    below, above = np.cumsum(law), np.cumsum(law[::-1])[::-1]
    first = int(np.searchsorted(below, negligible / 2.0, side="right"))
    last = len(law) - 1 - int(np.searchsorted(above[::-1], negligible / 2.0, "right"))
    return first, max(first, last)


def leave_one_out_distributions(
    probability: FloatArray, law: FloatArray, first: int, last: int
) -> FloatArray:
    r"""Return the distributions of the number of heads without one coin, for each coin.

    With ``P`` the distribution ``law`` (M + 1,) of the heads of all M coins, and ``Q``
    that without a coin whose probability of heads is ``p``,

    .. math:: P(t) = (1 - p)\, Q(t) + p\, Q(t - 1),

    which is solved for ``Q`` upwards from ``first`` where ``p < 1/2`` and downwards
    from ``last`` otherwise.  So an error is never multiplied by more than one from one
    count to the next, and of order ``last - first`` times rounding in the end; the
    usual recursion upwards alone is unstable where ``p`` is near one.

    Entry ``(n, t - first)`` of the result (M, last - first + 1) is the probability of
    ``t`` heads without coin ``n``, for ``t`` from ``first`` to ``last``, inclusive;
    ``law`` outside of this range is taken for zero.
    """
    up = probability < 0.5
    known = np.append(law, 0.0)
    # Step by step, the entry of ``law`` that each coin is solved from, (steps, M).
    entries = np.where(
        up, known[first : last + 1, None], known[first + 1 : last + 2, None][::-1]
    )
    # ``x = (entry - near x) / far``, with ``x`` of the step before.
    near = np.minimum(probability, 1.0 - probability)
    far = np.where(up, 1.0 - probability, probability)
    laws, before = np.empty_like(entries), np.zeros(len(probability))
    for entry, found in zip(entries, laws, strict=True):
        np.maximum((entry - near * before) / far, 0.0, out=found)
        before = found
    return np.where(up, laws, laws[::-1]).T
