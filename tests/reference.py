"""Slow, obvious implementations that the fast ones are compared with.

Nothing here calls the code under test: determinants come from NumPy's LU, sums run
over all subsets, the gradient follows the paper's appendix line by line.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import chain, combinations

import numpy as np


def all_subsets(n):
    return list(chain.from_iterable(combinations(range(n), k) for k in range(n + 1)))


def det_subset(L, subset):
    subset = list(subset)
    return np.linalg.det(L[np.ix_(subset, subset)]) if subset else 1.0


def probabilities(L):
    """Every subset with its probability, normalised by the sum of all determinants."""
    weights = {y: det_subset(L, y) for y in all_subsets(len(L))}
    total = sum(weights.values())
    return {y: weight / total for y, weight in weights.items()}


def marginals(L):
    result = np.zeros(len(L))
    for y, p in probabilities(L).items():
        result[list(y)] += p
    return result


def hamming(wanted, chosen, false_positive, false_negative):
    """Paper eq. 11 with a cost for each item."""
    wanted, chosen = set(wanted), set(chosen)
    return sum(false_positive[i] for i in chosen - wanted) + sum(
        false_negative[i] for i in wanted - chosen
    )


def expected_error(L, wanted, false_positive, false_negative):
    """The left-hand side of paper eq. 13, over all subsets."""
    return sum(
        hamming(wanted, y, false_positive, false_negative) * p
        for y, p in probabilities(L).items()
    )


def appendix_loss(L, y, lam, omega):
    """Value and gradient in L, transcribed from the paper's eq. 14 and appendix B."""
    n = len(L)
    y = sorted(y)
    A_inverse = np.linalg.inv(L + np.eye(n))
    K = np.eye(n) - A_inverse
    outside = [i for i in range(n) if i not in y]
    log_prob = np.log(det_subset(L, y)) - np.log(np.linalg.det(L + np.eye(n)))
    margin = sum(K[i, i] for i in outside) + omega * sum(1 - K[i, i] for i in y)
    value = -log_prob + lam * np.log(margin)

    embedded = np.zeros((n, n))
    if y:
        embedded[np.ix_(y, y)] = np.linalg.inv(L[np.ix_(y, y)])
    d_likelihood = embedded - A_inverse
    I_omega = np.diag([-omega if i in y else 1.0 for i in range(n)])
    d_margin = A_inverse @ I_omega @ A_inverse / margin
    return value, -d_likelihood + lam * d_margin


def central_differences(f, x, step=1e-5):
    """Fourth-order central differences.

    The truncation error is about ``step**4``, the rounding error about
    ``eps * |f| / step``: near 1e-11 for values of order one.
    """
    gradient = np.zeros_like(x)
    for k in range(len(x)):
        e = np.zeros_like(x)
        e[k] = step * max(1.0, abs(x[k]))
        near = f(x + e) - f(x - e)
        far = f(x + 2 * e) - f(x - 2 * e)
        gradient[k] = (8 * near - far) / (12 * e[k])
    return gradient


def f_score(a, b):
    a, b = set(a), set(b)
    if not a and not b:
        return 1.0
    hits = len(a & b)
    if hits == 0:
        return 0.0
    p, r = hits / len(a), hits / len(b)
    return 2 * p * r / (p + r)


def anchored_gaussian(X, sigma):
    """Inner products of ``φ(x) - φ(0)``, term by term, times σ²/2."""

    def k(a, b):
        return np.exp(-np.sum((a - b) ** 2) / sigma**2)

    origin = np.zeros(X.shape[1])
    return np.array(
        [
            [0.5 * sigma**2 * (k(x, y) - k(x, origin) - k(origin, y) + 1.0) for y in X]
            for x in X
        ]
    )


def mixture_of_gaussians(features, bandwidths, alpha, beta):
    """Paper eq. 8, entry by entry."""
    n = len(features)
    S = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            squared = np.sum((features[i] - features[j]) ** 2)
            for weight, sigma in zip(alpha, bandwidths, strict=True):
                S[i, j] += weight * np.exp(-squared / sigma**2)
            S[i, j] += beta * features[i] @ features[j]
    return S


def exact_determinant(rows):
    """Return the determinant of a matrix of fractions, by elimination."""
    rows, value = [list(row) for row in rows], Fraction(1)
    for k in range(len(rows)):
        pivot = next((i for i in range(k, len(rows)) if rows[i][k]), None)
        if pivot is None:
            return Fraction(0)
        if pivot != k:
            rows[k], rows[pivot], value = rows[pivot], rows[k], -value
        value *= rows[k][k]
        for i in range(k + 1, len(rows)):
            ratio = rows[i][k] / rows[k][k]
            rows[i] = [a - ratio * b for a, b in zip(rows[i], rows[k], strict=True)]
    return value
