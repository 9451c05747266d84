r"""The large-margin loss of features, ``S = F Fᵀ``, without any N x N matrix.

With ``λ / m`` within the weights ``W``, and the names of
:mod:`variegate.torch.dual_resolvent`, the gradient in the features is

.. math::

    \partial f / \partial F = 2 (G + \varepsilon\,\mathrm{diag}\,G) F, \qquad
    G F = \mathrm{share} \bigl( (1 + \mathrm{kept}\,W) F A - F A \Delta A \bigr)
        - \langle S_y^{-1} \rangle F .

The loss reads ``F`` to sum ``Γ`` and ``Δ``, and again for the marginals; the gradient,
computed when it is asked for, reads it once more and writes one tensor of its size.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from variegate.torch.dense import (
    expected_error,
    failures,
    inverse_of_present,
    judged,
    wanted_sum,
)
from variegate.torch.dual_resolvent import DualResolvent
from variegate.torch.resolvent import full_precision, raise_diagonal
from variegate.torch.targets import LossSettings, Targets

__all__ = ["DualGradients", "DualPoint", "dual_gradients", "dual_value"]


class DualPoint(NamedTuple):
    """The losses of a batch, and the terms of their gradients.

    Attributes
    ----------
    value : (B,)
    failed : uint8 (B,)
        As in :class:`variegate.torch.dense.LossTerms`.
    active : boolean (B,)
        Whether a loss has a gradient that is not zero.
    resolvent : DualResolvent
    weights : (B, N) or None
        ``λ W / m``.
    delta : double (B, D, D) or None
        ``Δ`` of these weights.
    targets : Targets
    target_inverse : (B, k, k)
        ``S_y⁻¹``, zero at padding.
    """

    value: Tensor
    failed: Tensor
    active: Tensor
    resolvent: DualResolvent
    weights: Tensor | None
    delta: Tensor | None
    targets: Targets
    target_inverse: Tensor


class DualGradients(NamedTuple):
    """Gradients in features (B, N, D), log-qualities (B, N) and the ridge ``ε`` ()."""

    features: Tensor
    log_quality: Tensor
    ridge: Tensor


def dual_value(
    F: Tensor, log_quality: Tensor | None, targets: Targets, settings: LossSettings
) -> DualPoint:
    """Return the losses of features (B, N, D); no log-quality is all zeros."""
    F = without_padding(F, targets.mask)
    signs = targets.signs if settings.lam else None
    with full_precision(F):
        resolvent, delta = DualResolvent.of(
            F, log_quality, targets.mask, settings.jitter, signs
        )
        F_y = _rows(F, targets.members)
        S_y = F_y @ F_y.mT
        raise_diagonal(S_y, settings.jitter)
        log_det, inverse, _, definite = inverse_of_present(
            S_y, targets, settings.tolerance
        )
        failed = failures(targets, definite, resolvent.definite)
        value = resolvent.log_det - log_det
        if log_quality is not None:
            value = value - 2.0 * wanted_sum(log_quality, targets)
        weights = None
        if signs is not None and delta is not None:
            error = expected_error(targets, *resolvent.marginals(F))
            value = value + settings.lam * torch.log(error)
            weights = (settings.lam / error)[:, None].to(F.dtype) * signs
            delta = delta * (settings.lam / error)[:, None, None]
    value, active, failed = judged(value, failed, settings.hinge, F.dtype)
    return DualPoint(value, failed, active, resolvent, weights, delta, targets, inverse)


def dual_gradients(at: DualPoint, F: Tensor, scale: Tensor) -> DualGradients:
    """Return the gradients of ``Σ_b scale_b f_b``.

    ``F`` are the features that the point was computed from.
    """
    targets, resolvent = at.targets, at.resolvent
    F = without_padding(F, targets.mask)
    members, inverse = targets.members, at.target_inverse
    scale = scale.masked_fill(~at.active, 0.0)[:, None]
    own = inverse.diagonal(dim1=-2, dim2=-1)
    own = torch.zeros_like(resolvent.share).scatter_add_(1, members, own)
    with full_precision(F):
        in_F, in_u, in_ridge = resolvent.gradients(
            F, at.weights, at.delta, scale, wanted=targets.indicator, minus_diagonal=own
        )
        rows = (inverse @ _rows(F, members)) * (-2.0 * scale[:, :, None])
    rows.masked_fill_(~at.active[:, None, None], 0.0)
    in_F.scatter_add_(1, members[:, :, None].expand_as(rows), rows)
    return DualGradients(in_F, in_u, in_ridge)


def without_padding(F: Tensor, mask: Tensor | None) -> Tensor:
    """Return features with rows of zeros for padding."""
    return F if mask is None else F.masked_fill(~mask[:, :, None], 0.0)


def _rows(F: Tensor, members: Tensor) -> Tensor:
    """Return the rows (B, k, D) of members (B, k)."""
    return F.gather(1, members[:, :, None].expand(*members.shape, F.shape[-1]))
