"""The large-margin loss as a function of tensors, with its gradient in closed form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from variegate._validation import check_choice, check_flag, check_number
from variegate.tensors.dense import NOT_DEFINITE, WRONG_TARGET, ZERO_PROBABILITY
from variegate.tensors.low_rank import LowRank
from variegate.tensors.targets import Targets
from variegate.torch.functions import LossSettings, batch_loss
from variegate.torch.inputs import Batch, Collection, as_collection

__all__ = [
    "Losses",
    "is_checked",
    "large_margin_loss",
    "losses",
    "losses_of",
    "raise_problem",
    "targets_of",
]

_PROBLEMS = {
    ZERO_PROBABILITY: "its subset has probability zero: the kernel restricted to it is "
    "singular, or is so to rounding (a jitter helps)",
    NOT_DEFINITE: "its kernel is not positive semidefinite, holds NaN or infinite "
    "numbers, or is singular with entries so large that L + I is singular to rounding: "
    "add a jitter, or rescale it",
    WRONG_TARGET: "its subset names an item twice, or one that is not there",
}


def large_margin_loss(
    kernel: Tensor | LowRank,
    targets: Tensor,
    *,
    log_quality: Tensor | None = None,
    mask: Tensor | None = None,
    offsets: Sequence[int] | Tensor | None = None,
    lam: float = 1.0,
    omega: float = 1.0,
    hinge: bool = True,
    false_positive: Tensor | None = None,
    false_negative: Tensor | None = None,
    jitter: float = 0.0,
    reduction: str = "mean",
    check: bool | None = None,
) -> Tensor:
    r"""Return the large-margin loss of a batch of kernels (eq. 13-14).

    For each set, with ``K = L (L + I)⁻¹``, wanted subset ``y`` and costs ``a``, ``b``,

    .. math::

        \Bigl[ \log\det(L + I) - \log\det L_y + \lambda \log \Bigl(
            \sum_{i \notin y} a_i K_{ii} + \sum_{i \in y} b_i (1 - K_{ii})
        \Bigr) \Bigr]_+ .

    The gradient is a closed form, computed with the loss: about the cost of one
    Cholesky factorisation, one inverse and one product of ``N x N`` matrices, and three
    of them in memory.  It cannot be differentiated again.

    Parameters
    ----------
    kernel : tensor of shape (B, N, N) or (N, N), or LowRank
        Symmetric, positive semidefinite: the similarities ``S`` if there are
        log-qualities, else ``L``.  One without a batch axis is shared by all sets.
        ``LowRank(features)`` stands for ``F Fᵀ``, which is never formed: time and
        memory are linear in ``N``.
    targets : boolean tensor of shape (B, N), or item numbers (B, k)
        The wanted subsets; rows of item numbers are padded with -1.  On a GPU, boolean
        targets of large sets are waited for once, to learn the size of the largest
        subset; item numbers are not.
    log_quality : tensor of shape (B, N), optional
        ``u`` in ``L = diag(exp u) S diag(exp u)``.  Values of hundreds are fine in
        double precision.
    mask : boolean tensor of shape (B, N), optional
        True where there is an item; what stands elsewhere, NaN included, is never
        used, and its gradient is zero.
    offsets : list of B + 1 whole numbers, optional
        For sets that lie one after the other, without padding: where each begins, and
        the last ends.  Then boolean targets, log-qualities and costs have shape
        (total,), features (total, D), and a matrix kernel is all entries of all
        matrices, one after the other.  A tensor must be on the CPU.
    lam : float, default=1.0
        Weight ``λ`` of the margin term; 0 is the negative log-likelihood.
    omega : float, default=1.0
        Cost of missing an item relative to choosing a wrong one.
    hinge : bool, default=True
        Whether a loss below zero counts as zero.
    false_positive, false_negative : tensor of shape (B, N), optional
        Costs of wrongly choosing and of missing each item, in place of 1 and ``omega``.
    jitter : float, default=0.0
        Ridge on the kernel (on ``S``, if there are log-qualities), relative to its
        diagonal.
    reduction : {"mean", "sum", "none"}
        Over the sets; "none" keeps one loss a set.
    check : bool, optional
        Whether sets without a loss are refused in words.  By default they are on the
        CPU; on a GPU that would mean to wait for the result, so the loss of such a set
        is infinite or NaN there, and its gradient zero.

    Returns
    -------
    tensor
        Of no axes, or (B,) without reduction.

    Notes
    -----
    Computed in double precision if the kernel or the log-qualities are, else in single
    precision, never in half, autocast or not.  In double precision values and gradients
    are those of :func:`variegate.large_margin_loss` to ten digits.  In single precision
    six digits of the loss are right; of the gradient five or more for random features
    and for sets of up to 50 items, and three for 1000 items with a smooth (Gaussian)
    similarity and a jitter of 1e-3.  There, a subset is refused whose squared pivots
    are below 2e-4 of the diagonal (1e-8 in double precision), and expected errors count
    as at least 1e-36, which log-qualities beyond 40 would make smaller.

    Examples
    --------
    >>> import torch
    >>> import variegate.torch as vt
    >>> L = torch.eye(2, dtype=torch.float64, requires_grad=True)
    >>> loss = vt.large_margin_loss(L, torch.tensor([True, False]), lam=0.0)
    >>> round(loss.item(), 4)  # P({0}) = 1 / det(2 I) = 1/4
    1.3863
    >>> loss.backward()
    >>> L.grad.round(decimals=4).tolist()
    [[-0.5, 0.0], [0.0, 0.5]]
    """
    check_choice("reduction", reduction, REDUCTIONS)
    found = losses(
        kernel,
        targets,
        log_quality=log_quality,
        mask=mask,
        offsets=offsets,
        lam=lam,
        omega=omega,
        hinge=hinge,
        false_positive=false_positive,
        false_negative=false_negative,
        jitter=jitter,
    )
    if is_checked(check, found.failed):
        raise_problem(found.failed)
    return found.reduced(reduction)


REDUCTIONS = ("none", "sum", "mean")


class Losses(NamedTuple):
    """Losses (B,), what each set failed by, and whether one set was given alone."""

    value: Tensor
    failed: Tensor
    is_single: bool

    def reduced(self, reduction: str) -> Tensor:
        """Return the sum or mean of the losses, or the losses themselves."""
        if reduction == "sum":
            return self.value.sum()
        if reduction == "mean":
            return self.value.mean()
        return self.value[0] if self.is_single else self.value


def losses(
    kernel: Tensor | LowRank,
    targets: Tensor,
    *,
    log_quality: Tensor | None,
    mask: Tensor | None,
    offsets: Sequence[int] | Tensor | None,
    lam: float,
    omega: float,
    hinge: bool,
    false_positive: Tensor | None,
    false_negative: Tensor | None,
    jitter: float,
) -> Losses:
    """Return the losses of all sets; see :func:`large_margin_loss`."""
    check_number("lam", lam)
    check_number("omega", omega)
    check_flag("hinge", hinge)
    check_number("jitter", jitter)
    collection = as_collection(
        kernel,
        log_quality,
        mask,
        offsets,
        targets,
        false_positive=_checked_costs("false_positive", false_positive),
        false_negative=_checked_costs("false_negative", false_negative),
    )
    return losses_of(collection, LossSettings(lam, hinge, jitter), omega)


def losses_of(
    collection: Collection, settings: LossSettings, omega: float = 1.0
) -> Losses:
    """Return the losses of all sets of a collection with subsets."""
    parts = [
        batch_loss(batch, targets_of(batch, omega), settings)
        for batch in collection.batches
    ]
    return Losses(
        collection.per_set([value for value, _ in parts]),
        collection.per_set([failed for _, failed in parts]),
        collection.is_single,
    )


def targets_of(batch: Batch, omega: float = 1.0) -> Targets:
    """Return the subsets of a batch and the costs of errors."""
    positive, negative = batch.false_positive, batch.false_negative
    assert batch.subsets is not None
    return Targets(
        batch.subsets,
        batch.n_items,
        false_positive=1.0 if positive is None else positive,
        false_negative=omega if negative is None else negative,
        mask=batch.mask,
        dtype=batch.kernel.dtype,
    )


def _checked_costs(name: str, costs: Tensor | None) -> Tensor | None:
    """Refuse costs that are none, where that needs no waiting."""
    if isinstance(costs, Tensor):
        if costs.device.type == "cpu" and not (
            (torch.isfinite(costs) & (costs >= 0)).all()
        ):
            raise ValueError(f"{name} must be finite and not negative")
        return costs.detach()
    return costs


def is_checked(check: bool | None, found: Tensor) -> bool:
    """Whether sets that failed are refused: by default where nothing is waited for."""
    return found.device.type == "cpu" if check is None else check


def raise_problem(failed: Tensor, prefix: str = "") -> None:
    """Say what is wrong with the first set that failed, if one did."""
    places = failed.nonzero()
    if len(places):
        position = int(places[0])
        problem = _PROBLEMS[int(failed[position])]
        raise ValueError(f"{prefix}set {position}: {problem}")
