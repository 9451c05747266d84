r"""The large-margin loss of features, ``S = F Fᵀ``, no N x N matrix ever made.

With ``λ / m`` within the weights ``W``, and the names of
:mod:`variegate.tensors.dual_resolvent`, the gradient in the features is

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

from variegate.tensors.dense import (
    expected_error,
    failures,
    inverse_of_present,
    judged,
    wanted_sum,
)
from variegate.tensors.dual_resolvent import DualResolvent
from variegate.tensors.factorisation import full_precision
from variegate.tensors.resolvent import raise_diagonal
from variegate.tensors.targets import Targets

__all__ = ["DualPoint", "DualTerms", "dual_gradients", "dual_terms", "dual_value"]


class DualTerms(NamedTuple):
    """The losses of a batch and their derivatives.

    Sets that failed are as in :class:`variegate.tensors.dense.LossTerms`.

    Attributes
    ----------
    value : (B,)
    feature_gradient : (B, N, D) or None
    quality_gradient : (B, N) or None
    failed : uint8 (B,)
    """

    value: Tensor
    feature_gradient: Tensor | None
    quality_gradient: Tensor | None
    failed: Tensor


def dual_terms(
    F: Tensor,
    log_quality: Tensor | None,
    targets: Targets,
    mask: Tensor | None,
    lam: float,
    hinge: bool,
    jitter: float,
    *,
    gradient: bool,
    tolerance: float | None = None,
) -> DualTerms:
    """Return the losses of a batch and their gradients.

    Parameters
    ----------
    F : (B, N, D)
    log_quality : (B, N) or None
        None is all zeros.
    targets, mask, lam, hinge, jitter, gradient, tolerance :
        As in :func:`variegate.tensors.dense.loss_terms`.
    """
    at = dual_value(F, log_quality, targets, mask, lam, hinge, jitter, tolerance)
    if not gradient:
        return DualTerms(at.value, None, None, at.failed)
    in_F, in_u = dual_gradients(at, F, torch.ones_like(at.value), mask)
    return DualTerms(at.value, in_F, in_u, at.failed)


class DualPoint(NamedTuple):
    """The losses of a batch, and what their gradients are made of.

    Attributes
    ----------
    value : (B,)
    failed : uint8 (B,)
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


def dual_value(
    F: Tensor,
    log_quality: Tensor | None,
    targets: Targets,
    mask: Tensor | None,
    lam: float,
    hinge: bool,
    jitter: float,
    tolerance: float | None = None,
) -> DualPoint:
    """Return the losses; the arguments are those of :func:`dual_terms`."""
    F = without_padding(F, mask)
    signs = targets.signs if lam else None
    with full_precision(F):
        resolvent, delta = DualResolvent.of(F, log_quality, mask, jitter, signs)
        F_y = _rows(F, targets.members)
        S_y = F_y @ F_y.mT
        raise_diagonal(S_y, jitter)
        log_det, inverse, _, definite = inverse_of_present(S_y, targets, tolerance)
        failed = failures(targets, definite, resolvent.definite)
        value = resolvent.log_det - log_det
        if log_quality is not None:
            value = value - 2.0 * wanted_sum(log_quality, targets)
        weights = None
        if signs is not None and delta is not None:
            error = expected_error(targets, *resolvent.marginals(F))
            value = value + lam * torch.log(error)
            weights = (lam / error)[:, None].to(F.dtype) * signs
            delta = delta * (lam / error)[:, None, None]
    value, active, failed = judged(value, failed, hinge, F.dtype)
    return DualPoint(value, failed, active, resolvent, weights, delta, targets, inverse)


def dual_gradients(
    at: DualPoint, F: Tensor, scale: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return the gradients of ``Σ_b scale_b f_b`` in the features and log-qualities.

    ``F`` and ``mask`` are what the point was computed from.
    """
    F = without_padding(F, mask)
    targets, resolvent = at.targets, at.resolvent
    members, inverse = targets.members, at.target_inverse
    scale = scale.masked_fill(~at.active, 0.0)[:, None]
    own = None
    if resolvent.jitter:
        diagonal = inverse.diagonal(dim1=-2, dim2=-1)
        own = torch.zeros_like(resolvent.share).scatter_add_(1, members, diagonal)
    with full_precision(F):
        in_F, in_u = resolvent.gradients(
            F,
            at.weights,
            at.delta,
            scale,
            wanted=targets.indicator,
            minus_diagonal=own,
        )
        rows = (inverse @ _rows(F, members)) * (-2.0 * scale[:, :, None])
    rows.masked_fill_(~at.active[:, None, None], 0.0)
    in_F.scatter_add_(1, members[:, :, None].expand_as(rows), rows)
    return in_F, in_u


def without_padding(F: Tensor, mask: Tensor | None) -> Tensor:
    """Return features with rows of zeros for padding."""
    return F if mask is None else F.masked_fill(~mask[:, :, None], 0.0)


def _rows(F: Tensor, members: Tensor) -> Tensor:
    """Return the rows (B, k, D) of members (B, k)."""
    return F.gather(1, members[:, :, None].expand(*members.shape, F.shape[-1]))
