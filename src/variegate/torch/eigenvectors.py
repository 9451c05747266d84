"""A batch of determinantal point processes as mixtures of elementary ones.

The eigenvalues of the marginal kernel ``K`` are the probabilities with which its
eigenvectors are kept (Hough et al., 2006).  They are found with an absolute error of
rounding whatever the qualities, and so is the law of what is drawn by them.

``L = A Aᵀ`` by a pivoted Cholesky factorisation, ``A = C diag(d)`` with the entries of
``C`` at most one and the pivots ``d`` falling, however widely the qualities spread.
Then ``I + AᵀA = I + d CᵀC d`` is factored as ``L + I`` is elsewhere, with large pivots
divided out: ``M = r CᵀC r + c²``, ``r = min(d, 1)``, ``c = min(1/d, 1)``, ``M = TTᵀ``.
With ``Q = T⁻¹ r Cᵀ`` the marginal kernel is ``K = QᵀQ``, and the eigenvectors ``w`` of
``Q Qᵀ``, of the size of the rank, give those of ``K``: ``v = Qᵀ w / √κ``.

For exactly ``k`` items ``L`` is first multiplied by a number that makes about ``k``
items expected, which leaves that law as it is: the eigenvalues that matter to it are
then those neither near zero nor near one, whose digits are all there.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from variegate.torch.greedy import DenseResiduals, FactoredResiduals, choose

__all__ = [
    "ElementaryMixture",
    "Roots",
    "choose_eigenvectors",
    "keep_probabilities",
    "mixture_of",
    "roots_of",
]

#: A pivot of ``L`` below this adds less than rounding to any probability.
_NO_PART = math.log(1e-20)

#: Steps that halve the interval of the multiple of ``L``: to 1e-3 of an interval of
#: thousands, as no more than the order of magnitude matters.
_HALVINGS = 24

#: How far eigenvalues can be from the pivots of which the interval is made.
_BEYOND = 40.0


class Roots(NamedTuple):
    """Square roots of marginal kernels, ``K = QᵀQ``."""

    Q: Tensor  # (B, R, N)
    rank: Tensor  # (B,): the most items with a positive probability


class ElementaryMixture(NamedTuple):
    """The probabilities of eigenvectors to be kept, and the eigenvectors."""

    kept: Tensor  # (B, M): eigenvalues of ``K`` between 0 and 1, ascending
    vectors: Tensor  # (B, M, N): orthonormal rows, zero where ``kept`` is


def roots_of(
    residuals: DenseResiduals | FactoredResiduals, rounds: int, k: int | None
) -> Roots:
    """Return square roots of the marginal kernels of a batch.

    ``residuals`` are in double precision, keep their columns, and are advanced;
    ``rounds`` is the largest rank.  For ``k`` items ``L`` is multiplied by a number.
    """
    above = _NO_PART if k is None else -torch.inf
    gains = choose(residuals, rounds, above=above, open_ended=True).gains
    there = gains > -torch.inf
    rank = there.sum(dim=1)
    gains, there = gains[:, : int(rank.max())], there[:, : int(rank.max())]
    pivots = 0.5 * torch.where(there, gains, 0.0)
    # An item that is not used up has a part of at least 1e-6 of its length, and that
    # is at most the pivot: so much for what can be multiplied by a nonzero entry.
    exponent = 0.5 * residuals.twice_log_scale[:, None, :] - pivots[:, :, None]
    C = residuals.columns[:, : gains.shape[1]] * exponent.clamp_(max=16.0).exp_()
    if k is not None:
        pivots = pivots + 0.5 * _log_multiple(gains, k)[:, None]
    r = torch.where(there, pivots.clamp(max=0.0).exp(), 0.0)
    c = torch.where(there, (-pivots.clamp(min=0.0)).exp(), 1.0)
    C = C * r[:, :, None]
    M = torch.bmm(C, C.mT)
    torch.diagonal(M, dim1=1, dim2=2).add_(c * c)
    T = torch.linalg.cholesky_ex(M).L
    return Roots(torch.linalg.solve_triangular(T, C, upper=False), rank)


def mixture_of(Q: Tensor) -> ElementaryMixture:
    """Return the mixtures that the processes with ``K = QᵀQ`` are."""
    kept, W = torch.linalg.eigh(torch.bmm(Q, Q.mT))
    kept = kept.clamp(0.0, 1.0)
    # Of those that are zero to rounding, rounding is all that is left.
    rounding = max(kept.shape[1], 1) * torch.finfo(kept.dtype).eps
    kept = torch.where(kept > rounding, kept, 0.0)
    most = int((kept > 0.0).sum(dim=1).max()) if len(kept) else 0
    kept, W = kept[:, kept.shape[1] - most :], W[:, :, kept.shape[1] - most :]
    scale = torch.where(kept > 0.0, kept.rsqrt(), 0.0)
    return ElementaryMixture(kept, torch.bmm(W.mT * scale[:, :, None], Q))


def _log_multiple(gains: Tensor, k: int) -> Tensor:
    """Return ``log z`` for which ``z L`` has about ``k`` items, by pivots, (B,).

    Pivots are near eigenvalues, in order of magnitude.
    """
    there = gains > -torch.inf
    low = -torch.where(there, gains, -torch.inf).amax(dim=1) - _BEYOND
    high = -torch.where(there, gains, torch.inf).amin(dim=1) + _BEYOND
    low, high = low.nan_to_num(), high.nan_to_num()
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        expected = torch.where(there, (gains + middle[:, None]).sigmoid(), 0.0)
        few = expected.sum(dim=1) < k
        low, high = torch.where(few, middle, low), torch.where(few, high, middle)
    return 0.5 * (low + high)


# Exactly k eigenvectors, by elementary symmetric polynomials in log space -----------


def keep_probabilities(log_values: Tensor, k: int) -> Tensor:
    """Return the probability to keep each eigenvector when some are still wanted.

    With ``j`` of the first ``m`` wanted, the ``m``-th is kept with probability
    ``λ_m e_{j-1}(m - 1) / e_j(m)`` (Kulesza and Taskar, 2011), where
    ``e_j(m) = e_j(m - 1) + λ_m e_{j-1}(m - 1)`` has no subtraction: in log space no
    digit is lost whatever the scale of the values.  These are logarithms (B, M), up to
    a constant for each set; probabilities are (M, B, k + 1), zero where none is wanted.
    """
    n_sets, n_values = log_values.shape
    probabilities = log_values.new_zeros(n_values, n_sets, k + 1)
    polynomials = log_values.new_full((n_sets, k + 1), -torch.inf)
    polynomials[:, 0] = 0.0
    for m in range(n_values):
        with_it = polynomials[:, :-1] + log_values[:, m, None]
        total = torch.logaddexp(polynomials[:, 1:], with_it)
        probabilities[m, :, 1:] = (with_it - total).exp_().nan_to_num_(nan=0.0)
        polynomials[:, 1:] = total
    return probabilities


def choose_eigenvectors(
    probabilities: Tensor, n_samples: int, generator: Generator | None
) -> Tensor:
    """Choose ``k`` eigenvectors, from the last to the first: (B, n_samples, M).

    ``probabilities`` (M, B, k + 1) are those of :func:`keep_probabilities`.
    """
    n_values, n_sets, wanted = probabilities.shape
    shape = (n_values, n_sets, n_samples)
    uniform = torch.rand(
        shape, generator=generator, device=probabilities.device, dtype=torch.float64
    )
    kept = torch.empty(shape, dtype=torch.bool, device=probabilities.device)
    missing = torch.full(shape[1:], wanted - 1, device=probabilities.device)
    for m in reversed(range(n_values)):
        torch.lt(uniform[m], probabilities[m].gather(1, missing), out=kept[m])
        missing -= kept[m].long()
    return kept.permute(1, 2, 0)
