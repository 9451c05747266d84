"""Losses and marginals as functions that autograd knows the gradient of."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import Any, NamedTuple

import torch
from torch import Tensor

from variegate.tensors.dense import loss_terms
from variegate.tensors.dual import (
    dual_gradients,
    dual_value,
    without_padding,
)
from variegate.tensors.dual_resolvent import DualResolvent
from variegate.tensors.factorisation import full_precision
from variegate.tensors.resolvent import Resolvent, raise_diagonal
from variegate.tensors.targets import Targets
from variegate.torch.inputs import Batch

__all__ = ["LossSettings", "batch_loss", "batch_marginals"]


class LossSettings(NamedTuple):
    """What a loss depends on beside data.

    ``tolerance`` is that of :func:`variegate.tensors.dense.loss_terms`.
    """

    lam: float
    hinge: bool
    jitter: float
    tolerance: float | None = None


def batch_loss(
    batch: Batch, targets: Targets, settings: LossSettings
) -> tuple[Tensor, Tensor]:
    """Return losses (B,) and what each set failed by."""
    function = _DualLoss if batch.is_low_rank else _DenseLoss
    with without_autocast(batch.kernel.device.type):
        value, failed = function.apply(
            batch.kernel, batch.log_quality, targets, batch.mask, settings
        )
    return value, failed


def batch_marginals(batch: Batch, jitter: float) -> tuple[Tensor, Tensor]:
    """Return ``K_ii`` (B, N), 0 at padding, and which sets have them."""
    function = _DualMarginals if batch.is_low_rank else _DenseMarginals
    with without_autocast(batch.kernel.device.type):
        included, definite = function.apply(
            batch.kernel, batch.log_quality, batch.mask, jitter
        )
    return included, definite


def without_autocast(device_type: str) -> AbstractContextManager[Any]:
    """Return a context in which nothing is done in half precision."""
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
        mask: Tensor | None,
        settings: LossSettings,
    ) -> tuple[Tensor, Tensor]:
        terms = loss_terms(
            matrix,
            log_quality,
            targets,
            mask,
            settings.lam,
            settings.hinge,
            gradient=any(ctx.needs_input_grad),
            jitter=settings.jitter,
            tolerance=settings.tolerance,
        )
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
        return in_matrix, in_quality, None, None, None


class _DualLoss(torch.autograd.Function):
    """The loss by features; its gradient is computed when it is asked for."""

    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        log_quality: Tensor | None,
        targets: Targets,
        mask: Tensor | None,
        settings: LossSettings,
    ) -> tuple[Tensor, Tensor]:
        lam, hinge, jitter, tolerance = settings
        at = dual_value(
            features, log_quality, targets, mask, lam, hinge, jitter, tolerance
        )
        ctx.mark_non_differentiable(at.failed)
        if any(ctx.needs_input_grad):
            ctx.save_for_backward(features, mask)
            ctx.at = at
        return at.value, at.failed

    @staticmethod
    @_once
    def backward(ctx: Any, of_value: Tensor, _: Any) -> tuple[Tensor | None, ...]:
        features, mask = ctx.saved_tensors
        in_features, in_quality = dual_gradients(ctx.at, features, of_value, mask)
        if not ctx.needs_input_grad[1]:
            return in_features, None, None, None, None
        return in_features, in_quality, None, None, None


class _DenseMarginals(torch.autograd.Function):
    """``K_ii`` by matrices."""

    @staticmethod
    def forward(
        ctx: Any,
        matrix: Tensor,
        log_quality: Tensor | None,
        mask: Tensor | None,
        jitter: float,
    ) -> tuple[Tensor, Tensor]:
        with full_precision(matrix):
            resolvent = Resolvent.of(matrix, log_quality, mask, jitter)
            included, excluded = resolvent.invert()
        if any(ctx.needs_input_grad):
            ctx.resolvent, ctx.jitter = resolvent, jitter
            ctx.save_for_backward(included, excluded)
        definite = resolvent.definite
        ctx.mark_non_differentiable(definite)
        return included.masked_fill(~definite[:, None], torch.nan), definite

    @staticmethod
    @_once
    def backward(ctx: Any, W: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        resolvent = ctx.resolvent
        included, excluded = ctx.saved_tensors
        failed = ~resolvent.definite
        W = W.masked_fill(failed[:, None], 0.0)
        in_quality = None
        with full_precision(resolvent.M):
            if ctx.needs_input_grad[1]:
                slope = 2.0 * resolvent.quality_gradient(W, included, excluded)
                in_quality = slope.masked_fill_(failed[:, None], 0.0)
            G = resolvent.gradient(W, of_log_det=False)
        raise_diagonal(G, ctx.jitter)
        return G.masked_fill_(failed[:, None, None], 0.0), in_quality, None, None


class _DualMarginals(torch.autograd.Function):
    """``K_ii`` by features."""

    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        log_quality: Tensor | None,
        mask: Tensor | None,
        jitter: float,
    ) -> tuple[Tensor, Tensor]:
        F = without_padding(features, mask)
        with full_precision(F):
            resolvent, _ = DualResolvent.of(F, log_quality, mask, jitter)
            included, _ = resolvent.marginals(F)
        if any(ctx.needs_input_grad):
            ctx.resolvent = resolvent
            ctx.save_for_backward(features, mask)
        definite = resolvent.definite
        ctx.mark_non_differentiable(definite)
        return included.masked_fill(~definite[:, None], torch.nan), definite

    @staticmethod
    @_once
    def backward(ctx: Any, W: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        features, mask = ctx.saved_tensors
        F = without_padding(features, mask)
        resolvent = ctx.resolvent
        with full_precision(F):
            in_features, in_quality = resolvent.gradients(
                F,
                W,
                resolvent.delta(F, W),
                resolvent.definite[:, None].to(F.dtype),
                wanted=None,
            )
        if not ctx.needs_input_grad[1]:
            return in_features, None, None, None
        return in_features, in_quality, None, None
