"""The large-margin loss as a function of tensors, with its gradient in closed form."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from variegate._validation import check_choice, check_flag, check_number
from variegate.tensors.dense import NOT_DEFINITE, ZERO_PROBABILITY, loss_terms
from variegate.tensors.targets import Targets
from variegate.torch.inputs import Batch, as_batch, check_subsets

__all__ = ["large_margin_loss"]

#: What a set can fail by, beside what the mathematics does.
WRONG_TARGET = 3

REDUCTIONS = ("none", "sum", "mean")

_PROBLEMS = {
    ZERO_PROBABILITY: "its subset has probability zero: the kernel restricted to it is "
    "singular, or is so to rounding (a jitter helps)",
    NOT_DEFINITE: "its kernel is not positive semidefinite, or is singular with "
    "entries so large that L + I is singular to rounding: add a jitter, or rescale it",
    WRONG_TARGET: "its subset names an item twice, or one that is not there",
}


def large_margin_loss(
    kernel: Tensor,
    targets: Tensor,
    *,
    log_quality: Tensor | None = None,
    mask: Tensor | None = None,
    lam: float = 1.0,
    omega: float = 1.0,
    hinge: bool = True,
    false_positive: Tensor | None = None,
    false_negative: Tensor | None = None,
    jitter: float = 0.0,
    reduction: str = "mean",
    check: bool | None = None,
) -> Tensor:
    """Return the large-margin loss of a batch of kernels (eq. 13-14).

    Parameters
    ----------
    kernel : tensor of shape (B, N, N) or (N, N)
        Symmetric, positive semidefinite: the similarities ``S`` if there are
        log-qualities, else ``L``.
    targets : boolean tensor of shape (B, N), or item numbers (B, k)
        The wanted subsets; rows of item numbers are padded with -1.
    log_quality : tensor of shape (B, N), optional
        ``u`` in ``L = diag(exp u) S diag(exp u)``.
    mask : boolean tensor of shape (B, N), optional
        True where there is an item; what stands elsewhere is never used.
    lam : float, default=1.0
        Weight ``λ`` of the margin term; 0 is the negative log-likelihood.
    omega : float, default=1.0
        Cost of missing an item relative to choosing a wrong one.
    hinge : bool, default=True
        Whether a loss below zero counts as zero.
    false_positive, false_negative : tensor of shape (B, N), optional
        Costs of wrongly choosing and of missing each item, in place of 1 and ``omega``.
    jitter : float, default=0.0
        Ridge on the kernel, relative to its diagonal.
    reduction : {"mean", "sum", "none"}
        Over the sets; "none" keeps one loss a set.
    check : bool, optional
        Whether a loss that is not finite is refused in words.  By default it is on the
        CPU, and on a GPU, where it means to wait for the result, it is not.

    Returns
    -------
    tensor
        Of no axes, or (B,) without reduction.
    """
    _check_settings(lam, omega, hinge, jitter, reduction)
    batch, wanted = _prepared(
        kernel, targets, log_quality, mask, omega, false_positive, false_negative
    )
    with torch.autocast(batch.matrix.device.type, enabled=False):
        value, failed = _DenseLoss.apply(
            batch.matrix, batch.log_quality, wanted, batch.mask, lam, hinge, jitter
        )
    if check is None:
        check = value.device.type == "cpu"
    if check:
        raise_problems(failed)
    return reduced(value, reduction, batch.is_single)


def _check_settings(
    lam: float, omega: float, hinge: bool, jitter: float, reduction: str
) -> None:
    check_number("lam", lam)
    check_number("omega", omega)
    check_flag("hinge", hinge)
    check_number("jitter", jitter)
    check_choice("reduction", reduction, REDUCTIONS)


def _prepared(
    kernel: Tensor,
    targets: Tensor,
    log_quality: Tensor | None,
    mask: Tensor | None,
    omega: float,
    false_positive: Tensor | None,
    false_negative: Tensor | None,
) -> tuple[Batch, Targets]:
    others = (targets, false_positive, false_negative)
    batch = as_batch(kernel, log_quality, mask, others)
    check_subsets("targets", targets, batch.n_items)
    wanted = Targets.of(
        targets.expand(batch.n_sets, targets.shape[-1]),
        batch.n_items,
        false_positive=1.0 if false_positive is None else false_positive,
        false_negative=omega if false_negative is None else false_negative,
        mask=batch.mask,
        dtype=batch.matrix.dtype,
    )
    return batch, wanted


def raise_problems(failed: Tensor) -> None:
    """Say what is wrong with the first set that failed, if one did."""
    places = failed.nonzero()
    if len(places):
        position = int(places[0])
        raise ValueError(f"set {position}: {_PROBLEMS[int(failed[position])]}")


def reduced(value: Tensor, reduction: str, is_single: bool) -> Tensor:
    """Return the sum or mean of losses (B,), or the losses themselves."""
    if reduction == "sum":
        return value.sum()
    if reduction == "mean":
        return value.mean()
    return value[0] if is_single else value


class _DenseLoss(torch.autograd.Function):
    """Losses (B,) with the gradient that came with them, and what failed."""

    @staticmethod
    def forward(
        ctx: Any,
        matrix: Tensor,
        log_quality: Tensor | None,
        targets: Targets,
        mask: Tensor | None,
        lam: float,
        hinge: bool,
        jitter: float,
    ) -> tuple[Tensor, Tensor]:
        """Compute the losses, and the gradient if it will be asked for."""
        gradient = any(ctx.needs_input_grad)
        terms = loss_terms(
            matrix,
            log_quality,
            targets,
            mask,
            lam,
            hinge,
            gradient=gradient,
            jitter=jitter,
        )
        ctx.save_for_backward(terms.similarity_gradient, terms.quality_gradient)
        failed = torch.where(targets.wrong, WRONG_TARGET, terms.failed)
        value = terms.value.masked_fill(targets.wrong, torch.nan)
        ctx.mark_non_differentiable(failed)
        return value, failed

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_value: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        """Scale the gradient that was kept."""
        G, slope = ctx.saved_tensors
        of_matrix = of_quality = None
        if ctx.needs_input_grad[0]:
            of_matrix = G * of_value[:, None, None]
        if ctx.needs_input_grad[1]:
            of_quality = slope * of_value[:, None]
        return of_matrix, of_quality, None, None, None, None, None
