r"""Similarities of items as functions of their features, on tensors.

Each is that of a kernel of :mod:`variegate.kernels`, for features ``(..., N, d)`` of
any number of ground sets at once, and differentiable in features and parameters.

Near-duplicates decide determinants, so distances are taken from differences, feature by
feature, where that is affordable: an expansion into inner products would drown small
ones in the rounding of large norms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

import torch
from torch import Tensor

#: Differences are taken feature by feature up to this many features, as in
#: :mod:`variegate.kernels.gaussian`.
DIRECT_FEATURES = 256


def linear(features: Tensor, normalize: bool = False) -> Tensor:
    """Return the inner products of items, or of items scaled to unit length."""
    features = unit_rows(features) if normalize else features
    return features @ features.mT


def unit_rows(features: Tensor) -> Tensor:
    """Return rows scaled to unit length; those of zeros stay."""
    # By the largest entry first, so that no square overflows or underflows.
    largest = features.detach().abs().amax(dim=-1, keepdim=True)
    features = features / torch.where(largest > 0.0, largest, 1.0)
    squared = (features * features).sum(dim=-1, keepdim=True)
    # The root of a positive number, also where its slope is not wanted.
    length = torch.where(squared > 0.0, squared, 1.0).sqrt()
    return features / length


class _SquaredDistances(torch.autograd.Function):
    """``D_ij = ‖z_i - z_j‖²``, no array larger than ``D``.

    With ``H = ∂f/∂D + (∂f/∂D)ᵀ``, ``∂f/∂z_i = 2 Σ_j H_ij (z_i - z_j)``.
    """

    @staticmethod
    def forward(ctx: Any, features: Tensor) -> Tensor:
        ctx.save_for_backward(features)
        *lead, n_items, n_features = features.shape
        total = features.new_zeros(*lead, n_items, n_items)
        apart = torch.empty_like(total)
        for column in range(n_features):
            values = features[..., column]
            torch.sub(values[..., :, None], values[..., None, :], out=apart)
            total.addcmul_(apart, apart)
        return total

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> Tensor:
        (features,) = ctx.saved_tensors
        both = slope + slope.mT
        return 2.0 * (both.sum(dim=-1, keepdim=True) * features - both @ features)


def squared_distances(features: Tensor) -> Tensor:
    """Return ``‖φ_i - φ_j‖²`` with an exact zero diagonal.

    Of more than 256 features by inner products of items that are centred first.
    """
    if features.shape[-1] <= DIRECT_FEATURES:
        distances: Tensor = _SquaredDistances.apply(features)
        return distances
    centred = features - features.detach().mean(dim=-2, keepdim=True)
    norms = (centred * centred).sum(dim=-1)
    expanded = norms[..., :, None] + norms[..., None, :] - 2.0 * centred @ centred.mT
    same = torch.eye(features.shape[-2], dtype=torch.bool, device=features.device)
    return expanded.clamp(min=0.0).masked_fill(same, 0.0)


def gaussians(
    features: Tensor, bandwidths: Sequence[float], anchored: bool = False
) -> Iterator[Tensor]:
    """Yield the similarity of :class:`variegate.Gaussian` at each bandwidth."""
    distances = squared_distances(features) if len(bandwidths) else features
    norms = (features * features).sum(dim=-1)
    for bandwidth in bandwidths:  # divides twice, so that no square overflows
        if not anchored:
            yield torch.exp(-distances / bandwidth / bandwidth)
            continue
        to_origin = torch.expm1(-norms / bandwidth / bandwidth)
        between = torch.expm1(-distances / bandwidth / bandwidth)
        both = to_origin[..., :, None] + to_origin[..., None, :]
        yield 0.5 * bandwidth * bandwidth * (between - both)


def multiple(
    features: Tensor,
    weights: Tensor,
    bandwidths: Sequence[float],
    *,
    linear: bool = True,
    anchored: bool = False,
) -> Tensor:
    """Return ``Σ_k w_k S^k`` of Gaussians, then perhaps a linear part (paper eq. 8)."""
    parts = list(gaussians(features, bandwidths, anchored))
    if linear:
        parts.append(features @ features.mT)
    terms = (weight * S for weight, S in zip(weights, parts, strict=True))
    return reduce(torch.add, terms)


def kinds(features: Tensor, weight: Tensor, bias: Tensor, apart: Tensor) -> Tensor:
    """Return the similarity of :class:`variegate.Kinds`.

    Of features that are centred and of unit length, with ``W`` (n_kinds, d), ``b`` and
    ``ε``.
    """
    roots = kind_roots(features, weight, bias)
    S = (1.0 - apart) * (roots @ roots.mT)
    same = torch.eye(S.shape[-1], dtype=torch.bool, device=S.device)
    return S.masked_fill(same, 1.0)


def kind_roots(features: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return the roots (..., N, n_kinds) of the probabilities to be of each kind."""
    # By the logarithm, so that small ones keep a finite slope.
    return torch.exp(0.5 * torch.log_softmax(features @ weight.T + bias, dim=-1))


def metric(features: Tensor, weight: Tensor) -> Tensor:
    """Return the similarity of :class:`variegate.Metric`, with ``W`` (rank, d)."""
    return torch.exp(-0.5 * squared_distances(features @ weight.T))
