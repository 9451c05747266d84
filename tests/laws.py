"""Whether samples follow the law of a kernel, and kernels to ask it of."""

from fractions import Fraction

import numpy as np
from scipy.stats import chisquare

import reference
from instances import random_kernel_matrix

P_VALUE = 1e-4
SIZE = 6


def exact_probabilities(L):
    """Brute force with exact rational numbers, since ``L`` may be widely graded."""
    F = [[Fraction(float(entry)) for entry in row] for row in L]

    def det(y):
        return reference.exact_determinant([[F[i][j] for j in y] for i in y])

    weights = {y: det(y) for y in reference.all_subsets(len(F))}
    total = sum(weights.values())
    return {y: float(weight / total) for y, weight in weights.items()}


def p_value(samples, L, k=None):
    """Chi-square of counts over all subsets, rare ones (expected < 5) pooled.

    With ``k``, over those of ``k`` items, their probabilities taken given ``k``.
    """
    probabilities = exact_probabilities(L)
    if k is not None:
        probabilities = {y: p for y, p in probabilities.items() if len(y) == k}
        total = sum(probabilities.values())
        probabilities = {y: p / total for y, p in probabilities.items()}
    n_items = len(L)
    expected = np.zeros(2**n_items)
    for y, p in probabilities.items():
        expected[sum(1 << i for i in y)] = max(p, 0.0) * len(samples)
    counts = np.bincount(samples @ (1 << np.arange(n_items)), minlength=2**n_items)
    assert not counts[expected < 1e-6].any(), "an impossible subset was drawn"
    rare = expected < 5
    counts = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    if expected[-1] < 5:
        counts, expected = counts[:-1], expected[:-1]
        expected = expected * counts.sum() / expected.sum()
    if len(counts) == 1:
        return 1.0  # one subset has all the probability, and it was drawn every time
    return chisquare(counts, expected).pvalue


KERNELS = {
    "full rank": random_kernel_matrix(np.random.default_rng(0), SIZE) / 3,
    "rank 3": random_kernel_matrix(np.random.default_rng(1), SIZE, rank=3),
    # Next to these large entries the small eigenvalues of L are lost to rounding.
    "graded": np.outer(*2 * [np.exp([0.0, 0.3, 18.0, -0.5, 25.0, 0.2])])
    * np.exp(-0.3 * np.abs(np.subtract.outer(np.arange(6), np.arange(6)))),
    "twins": np.kron(np.ones((2, 2)), np.eye(3)) * 1.5,
}


def factor(L):
    """A factor of L by exact pivots, good for graded and singular kernels."""
    A, columns = L.copy(), []
    while A.diagonal().max() > 1e-12 * L.diagonal()[A.diagonal().argmax()]:
        pivot = int(A.diagonal().argmax())
        columns.append(A[:, pivot] / np.sqrt(A[pivot, pivot]))
        A = A - np.outer(columns[-1], columns[-1])
        A[pivot] = A[:, pivot] = 0.0
    return np.stack(columns, axis=1)
