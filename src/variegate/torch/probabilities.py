"""Probabilities of a batch of determinantal point processes, differentiable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from variegate._validation import check_number
from variegate.linalg.limits import RANK_TOLERANCE
from variegate.torch import dense, low_rank
from variegate.torch.inputs import Collection, LowRank, as_collection
from variegate.torch.loss import is_checked, losses_of, raise_problem
from variegate.torch.targets import NOT_DEFINITE, ZERO_PROBABILITY, LossSettings

#: The share of its diagonal below which a squared pivot is rounding.
_ROUNDING = {torch.float64: RANK_TOLERANCE, torch.float32: 1e-6}


def log_prob(
    kernel: Tensor | LowRank,
    subsets: Tensor,
    *,
    log_quality: Tensor | None = None,
    mask: Tensor | None = None,
    offsets: Sequence[int] | Tensor | None = None,
    jitter: float = 0.0,
    check: bool | None = None,
) -> Tensor:
    """Return the log-probability of one subset of each set.

    ``log det L_y - log det(L + I)``, (B,); minus infinity, with a gradient of zero,
    where ``L_y`` is singular.  The arguments are those of :func:`large_margin_loss`,
    ``subsets`` in place of its ``targets``; a set without a result is NaN.

    Examples
    --------
    >>> import torch
    >>> import variegate.torch as vt
    >>> L = 3.0 * torch.eye(2, dtype=torch.float64)
    >>> vt.log_prob(L, torch.tensor([0])).exp()  # 3/4 * 1/4
    tensor(0.1875, dtype=torch.float64)
    """
    collection = as_collection(kernel, log_quality, mask, offsets, subsets, "subsets")
    return -_negative(collection, jitter, check)


def log_normalizer(
    kernel: Tensor | LowRank,
    *,
    log_quality: Tensor | None = None,
    mask: Tensor | None = None,
    offsets: Sequence[int] | Tensor | None = None,
    jitter: float = 0.0,
    check: bool | None = None,
) -> Tensor:
    """Return ``log det(L + I)`` of each set (B,).

    The arguments are those of :func:`large_margin_loss`; a set without a result is NaN.

    Examples
    --------
    >>> import torch
    >>> import variegate.torch as vt
    >>> vt.log_normalizer(3.0 * torch.eye(2, dtype=torch.float64)).exp().round()
    tensor(16., dtype=torch.float64)
    """
    collection = as_collection(kernel, log_quality, mask, offsets)
    # The probability of the empty set is one over the normalizer.
    empty = [
        replace(each, subsets=each.kernel.new_zeros(each.n_sets, 0, dtype=torch.long))
        for each in collection.batches
    ]
    return _negative(replace(collection, batches=empty), jitter, check)


def marginals(
    kernel: Tensor | LowRank,
    *,
    log_quality: Tensor | None = None,
    mask: Tensor | None = None,
    offsets: Sequence[int] | Tensor | None = None,
    jitter: float = 0.0,
    check: bool | None = None,
) -> Tensor:
    """Return ``K_ii``, the probability of each item to be chosen.

    As (B, N), 0 at padding, or (total,) with offsets.  The arguments are those of
    :func:`large_margin_loss`; a set without a result is NaN.

    Examples
    --------
    >>> import torch
    >>> import variegate.torch as vt
    >>> vt.marginals(torch.diag(torch.tensor([1.0, 3.0])))
    tensor([0.5000, 0.7500])
    """
    collection = as_collection(kernel, log_quality, mask, offsets)
    return collection.per_item(_marginals(collection, jitter, check))


def expected_size(
    kernel: Tensor | LowRank,
    *,
    log_quality: Tensor | None = None,
    mask: Tensor | None = None,
    offsets: Sequence[int] | Tensor | None = None,
    jitter: float = 0.0,
    check: bool | None = None,
) -> Tensor:
    """Return the expected number of chosen items of each set (B,), ``Σ_i K_ii``.

    The arguments are those of :func:`large_margin_loss`; a set without a result is NaN.

    Examples
    --------
    >>> import torch
    >>> import variegate.torch as vt
    >>> vt.expected_size(torch.diag(torch.tensor([1.0, 3.0])))
    tensor(1.2500)
    """
    collection = as_collection(kernel, log_quality, mask, offsets)
    parts = _marginals(collection, jitter, check)
    total = collection.per_set([included.sum(dim=-1) for included in parts])
    return total[0] if collection.is_single else total


def _negative(collection: Collection, jitter: float, check: bool | None) -> Tensor:
    """Return the negative log-probabilities of the subsets."""
    check_number("jitter", jitter)
    tolerance = _ROUNDING[collection.dtype]
    found = losses_of(collection, LossSettings(0.0, False, jitter, tolerance))
    if is_checked(check, found.failed):
        raise_problem(found.failed.masked_fill(found.failed == ZERO_PROBABILITY, 0))
    return found.reduced("none")


def _marginals(
    collection: Collection, jitter: float, check: bool | None
) -> list[Tensor]:
    check_number("jitter", jitter)
    parts, definite = [], []
    for each in collection.batches:
        form = low_rank if each.is_low_rank else dense
        found = form.marginals(each.kernel, each.log_quality, each.mask, jitter)
        parts.append(found[0])
        definite.append(found[1])
    failed = ~collection.per_set(definite).bool()
    if is_checked(check, failed):
        raise_problem(failed * NOT_DEFINITE)
    return parts
