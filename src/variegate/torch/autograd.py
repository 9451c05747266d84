"""Losses and marginals as functions that autograd knows the gradient of."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from variegate.torch.dense import loss_terms
from variegate.torch.low_rank import (
    DualResolvent,
    dual_gradients,
    dual_value,
    without_padding,
)
from variegate.torch.resolvent import Resolvent, full_precision, raise_diagonal
from variegate.torch.targets import LossSettings, Targets

__all__ = ["loss", "marginals", "without_autocast"]


def loss(
    kernel: Tensor,
    log_quality: Tensor | None,
    targets: Targets,
    settings: LossSettings,
    *,
    is_low_rank: bool = False,
    ridge: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return losses (B,) and the reasons of failures (B,).

    Parameters
    ----------
    kernel : (B, N, N), or features (B, N, D) if ``is_low_rank``
    log_quality : (B, N) or None
    targets : Targets
    settings : LossSettings
    is_low_rank : bool
    ridge : tensor of one number, optional
        ``settings.jitter`` of features, where it is learned.
    """
    with without_autocast(kernel.device.type):
        if is_low_rank:
            found = _DualLoss.apply(kernel, log_quality, ridge, targets, settings)
        else:
            found = _DenseLoss.apply(kernel, log_quality, targets, settings)
    value, failed = found
    return value, failed


def marginals(
    kernel: Tensor,
    log_quality: Tensor | None,
    mask: Tensor | None,
    jitter: float,
    *,
    is_low_rank: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return ``K_ii`` (B, N), 0 at padding, and which sets are positive definite."""
    with without_autocast(kernel.device.type):
        included, definite = _Marginals.apply(
            kernel, log_quality, mask, jitter, is_low_rank
        )
    return included, definite


def without_autocast(device_type: str) -> AbstractContextManager[Any]:
    """Return a context without operations in half precision."""
    context: AbstractContextManager[Any] = nullcontext()
    if torch.amp.is_autocast_available(device_type):
        context = torch.autocast(device_type, enabled=False)
    return context


def _once(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse to be part of a graph that is to be differentiated again.

    The gradient would count as a constant there, and second derivatives be wrong.
    """

    @wraps(backward)
    def checked(ctx: Any, *slopes: Tensor) -> Any:
        if torch.is_grad_enabled():
            raise RuntimeError(
                "this gradient is a closed form that cannot be differentiated again: "
                "ask for it without create_graph=True"
            )
        return backward(ctx, *slopes)

    return checked


class _DenseLoss(torch.autograd.Function):
    """The loss by matrices; its gradient comes with it."""

    @staticmethod
    def forward(
        ctx: Any,
        matrix: Tensor,
        log_quality: Tensor | None,
        targets: Targets,
        settings: LossSettings,
    ) -> tuple[Tensor, Tensor]:
        gradient = any(ctx.needs_input_grad)
        terms = loss_terms(matrix, log_quality, targets, settings, gradient=gradient)
        ctx.save_for_backward(terms.similarity_gradient, terms.quality_gradient)
        ctx.mark_non_differentiable(terms.failed)
        return terms.value, terms.failed

    @staticmethod
    @_once
    def backward(ctx: Any, of_value: Tensor, _: Any) -> tuple[Tensor | None, ...]:
        G, slope = ctx.saved_tensors
        in_matrix = in_quality = None
        if ctx.needs_input_grad[0]:
            in_matrix = G * of_value[:, None, None]
        if ctx.needs_input_grad[1]:
            in_quality = slope * of_value[:, None]
        return in_matrix, in_quality, None, None


class _DualLoss(torch.autograd.Function):
    """The loss by features; its gradient is computed when it is asked for."""

    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        log_quality: Tensor | None,
        ridge: Tensor | None,
        targets: Targets,
        settings: LossSettings,
    ) -> tuple[Tensor, Tensor]:
        at = dual_value(features, log_quality, targets, settings)
        ctx.mark_non_differentiable(at.failed)
        if any(ctx.needs_input_grad):
            ctx.save_for_backward(features)
            ctx.at = at
        return at.value, at.failed

    @staticmethod
    @_once
    def backward(ctx: Any, of_value: Tensor, _: Any) -> tuple[Tensor | None, ...]:
        (features,) = ctx.saved_tensors
        found = dual_gradients(ctx.at, features, of_value)
        wanted = zip(found, ctx.needs_input_grad, strict=False)
        return *(slope if needed else None for slope, needed in wanted), None, None


class _Marginals(torch.autograd.Function):
    """``K_ii`` by matrices, or by features."""

    @staticmethod
    def forward(
        ctx: Any,
        kernel: Tensor,
        log_quality: Tensor | None,
        mask: Tensor | None,
        jitter: float,
        is_low_rank: bool,
    ) -> tuple[Tensor, Tensor]:
        resolvent: Resolvent | DualResolvent
        with full_precision(kernel):
            if is_low_rank:
                F = without_padding(kernel, mask)
                resolvent, _ = DualResolvent.of(F, log_quality, mask, jitter)
                found = resolvent.marginals(F)
            else:
                resolvent = Resolvent.of(kernel, log_quality, mask, jitter)
                found = resolvent.invert()
        if any(ctx.needs_input_grad):
            ctx.resolvent, ctx.jitter = resolvent, jitter
            ctx.save_for_backward(kernel, mask, *found)
        definite = resolvent.definite
        ctx.mark_non_differentiable(definite)
        return found[0].masked_fill(~definite[:, None], torch.nan), definite

    @staticmethod
    @_once
    def backward(ctx: Any, W: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        kernel, mask, *found = ctx.saved_tensors
        resolvent = ctx.resolvent
        failed = ~resolvent.definite[:, None]
        W = W.masked_fill(failed, 0.0)
        with full_precision(kernel):
            if isinstance(resolvent, DualResolvent):
                F = without_padding(kernel, mask)
                scale = (~failed).to(F.dtype)
                in_kernel, in_quality, _ = resolvent.gradients(
                    F, W, resolvent.delta(F, W), scale, wanted=None
                )
            else:
                in_quality = 2.0 * resolvent.quality_gradient(W, *found)
                in_kernel = resolvent.gradient(W, of_log_det=False)
                raise_diagonal(in_kernel, ctx.jitter)
        in_kernel.masked_fill_(failed[:, :, None], 0.0)
        in_quality = in_quality.masked_fill_(failed, 0.0)
        needed = ctx.needs_input_grad[1]
        return in_kernel, in_quality if needed else None, None, None, None
