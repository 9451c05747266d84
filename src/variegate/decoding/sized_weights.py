"""What each item adds to the expected F-score of a set, by the size of the set."""

from __future__ import annotations

import numpy as np

from variegate._typing import FloatArray, IntArray
from variegate.linalg.coins import bulk, law_of_heads, laws_without_one
from variegate.linalg.representations import Representation

#: Sizes that all together are less probable than this are taken for impossible.  The
#: F-score is at most one, so no expectation is off by more.
_NEGLIGIBLE = 1e-15

#: Items that are worked on at a time.
_CHUNK = 16_384


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
    :func:`~variegate.linalg.coins.laws_without_one`.

    Takes ``O(M²)`` time and ``O(M T)`` memory besides the eigenpairs, for rank ``M``
    and ``T`` sizes that are not negligible (some multiple of ``√M``).

    Parameters
    ----------
    kernel : Representation
    beta : float

    Attributes
    ----------
    empty : float
        ``P(Y = ∅)``, the expected F-score of the empty set.
    expected_size : float
    """

    def __init__(self, kernel: Representation, beta: float) -> None:
        self._kept, vectors = kernel.elementary()
        self._vectors = vectors.all()
        law = law_of_heads(self._kept)
        first, last = bulk(law, _NEGLIGIBLE)
        first = max(first - 1, 0)
        self._others = laws_without_one(self._kept, law, first, last)
        # Numerator and denominator are divided by 1 + β².
        share = 1.0 / (1.0 + (1.0 / beta) * (1.0 / beta))
        self._slope = 1.0 / (1.0 + beta * beta)
        self._offsets = share * np.arange(first + 1, last + 2)
        self.empty = float(law[0])
        self.expected_size = float(self._kept.sum())

    def at(self, sizes: IntArray, items: IntArray | None = None) -> FloatArray:
        """Return ``w_i(a)`` for some sizes, for all items or some: (sizes, items).

        Takes ``O(N M)`` time for each size.
        """
        score = 1.0 / (self._offsets[:, None] + self._slope * sizes)
        of_vectors = (self._kept[:, None] * (self._others @ score)).T
        vectors = self._vectors if items is None else self._vectors[:, items]
        weights = np.empty((len(sizes), vectors.shape[1]))
        for start in range(0, vectors.shape[1], _CHUNK):
            part = slice(start, start + _CHUNK)
            np.matmul(of_vectors, vectors[:, part] ** 2, out=weights[:, part])
        return weights

    def score(self, members: IntArray) -> float:
        """Return the expected F-score of a set."""
        if not len(members):
            return self.empty
        return float(self.at(np.array([len(members)]), members).sum())

    def growth(self, known: IntArray, sizes: IntArray) -> FloatArray:
        """Return bounds on ``w_i(a) / w_i(known)`` for all items: (known, sizes)."""
        low, high = self._offsets[0], self._offsets[-1]
        at, to = self._slope * known[:, None], self._slope * sizes
        offset = np.where(to > at, high, low)
        return np.asarray((offset + at) / (offset + to))

    def share_of_left(self, left: int, right: int, sizes: IntArray) -> FloatArray:
        r"""Return ``t`` with ``w_i(a) ≤ t w_i(left) + (1 - t) w_i(right)`` between.

        ``1 / (β² s + a)`` is a convex function of ``1 / (β² S + a)`` for ``s ≤ S``.
        """
        high = self._offsets[-1]
        ratio = (high + self._slope * left) / (high + self._slope * sizes)
        return np.asarray((right - sizes) / (right - left) * ratio)
