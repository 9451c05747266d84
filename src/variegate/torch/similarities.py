"""Similarities of items on tensors: functions of their features, and modules.

Each is that of a kernel of :mod:`variegate.kernels` to rounding.  Features are (..., N,
d), of N items of any number of ground sets, similarities (..., N, N), differentiable in
features and parameters.

Near-duplicates decide determinants, so where it is affordable distances are taken from
differences: inner products would drown small ones in the rounding of large norms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from math import log, sqrt
from typing import Any

import torch
from torch import Tensor, nn

from variegate._validation import check_count, check_flag, check_number
from variegate.kernels.gaussian import DIRECT_FEATURES


def linear(features: Tensor, normalize: bool = False) -> Tensor:
    """Return inner products (..., N, N) of items, scaled to unit length on request."""
    features = unit_rows(features) if normalize else features
    return features @ features.mT


def unit_rows(features: Tensor) -> Tensor:
    """Return rows (..., d) scaled to unit length; rows of zeros stay."""
    # By the largest entry first, so that no square overflows or underflows.
    largest = features.detach().abs().amax(dim=-1, keepdim=True)
    features = features / torch.where(largest > 0.0, largest, 1.0)
    squared = (features * features).sum(dim=-1, keepdim=True)
    # The slope of the root of zero would be infinite.
    return features / torch.where(squared > 0.0, squared, 1.0).sqrt()


class _SquaredDistances(torch.autograd.Function):
    """``D_ij = ‖z_i - z_j‖²``, no array larger than ``D``."""

    @staticmethod
    def forward(ctx: Any, features: Tensor) -> Tensor:
        """Return ``D`` (..., N, N) of features (..., N, d)."""
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
        """Return the gradient in the features from ``slope``, that in ``D``."""
        (features,) = ctx.saved_tensors  # ∂f/∂z_i = 2 Σ_j both_ij (z_i - z_j)
        both = slope + slope.mT
        return 2.0 * (both.sum(dim=-1, keepdim=True) * features - both @ features)


def squared_distances(features: Tensor) -> Tensor:
    """Return ``‖φ_i - φ_j‖²`` (..., N, N), the diagonal exactly zero."""
    if features.shape[-1] <= DIRECT_FEATURES:
        distances: Tensor = _SquaredDistances.apply(features)
        return distances
    # By inner products, of centred items so that norms are small.
    centred = features - features.detach().mean(dim=-2, keepdim=True)
    norms = (centred * centred).sum(dim=-1)
    expanded = norms[..., :, None] + norms[..., None, :] - 2.0 * centred @ centred.mT
    same = torch.eye(features.shape[-2], dtype=torch.bool, device=features.device)
    return expanded.clamp(min=0.0).masked_fill(same, 0.0)


def gaussians(
    features: Tensor, bandwidths: Sequence[float], anchored: bool = False
) -> Iterator[Tensor]:
    """Yield the similarity (..., N, N) of :class:`variegate.Gaussian` by bandwidth.

    ``exp(-‖φ_i - φ_j‖² / σ²)``; with ``anchored``, ``σ² / 2`` times that less the
    Gaussians of both items' distances to the origin, plus 1.
    """
    distances = squared_distances(features) if len(bandwidths) else features
    norms = (features * features).sum(dim=-1)
    for width in bandwidths:  # divides twice, so that no square overflows
        if not anchored:
            yield torch.exp(-distances / width / width)
            continue
        to_origin = torch.expm1(-norms / width / width)
        between = torch.expm1(-distances / width / width)
        both = to_origin[..., :, None] + to_origin[..., None, :]
        yield 0.5 * width * width * (between - both)


def kinds(features: Tensor, weight: Tensor, bias: Tensor, epsilon: Tensor) -> Tensor:
    """Return ``(1 - ε) Σ_k √(p_ik p_jk) + ε [i = j]`` of features of unit length.

    The probabilities ``p`` of kinds are ``softmax(W x + b)``, ``W`` being (n_kinds, d).
    """
    roots = kind_roots(features, weight, bias)
    S = (1.0 - epsilon) * (roots @ roots.mT)
    same = torch.eye(S.shape[-1], dtype=torch.bool, device=S.device)
    return S.masked_fill(same, 1.0)


def kind_roots(features: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return square roots (..., N, n_kinds) of the probabilities in :func:`kinds`."""
    # By the logarithm, so that small probabilities keep a finite slope.
    return torch.exp(0.5 * torch.log_softmax(features @ weight.T + bias, dim=-1))


def metric(features: Tensor, weight: Tensor) -> Tensor:
    """Return ``exp(-‖W (x_i - x_j)‖² / 2)`` (..., N, N), with ``W`` (rank, d)."""
    return torch.exp(-0.5 * squared_distances(features @ weight.T))


class LinearSimilarity(nn.Module):
    """Inner products of items, ``S_ij = φ_iᵀ φ_j``.

    Parameters
    ----------
    normalize : bool, default=False
        Scale items to unit length first: the cosine similarity.  Zeros stay.

    Examples
    --------
    >>> import torch
    >>> import variegate.torch as vt
    >>> vt.LinearSimilarity(normalize=True)(torch.tensor([[3.0, 4.0], [0.0, 2.0]]))
    tensor([[1.0000, 0.8000],
            [0.8000, 1.0000]])
    """

    def __init__(self, normalize: bool = False) -> None:
        super().__init__()
        check_flag("normalize", normalize)
        self.normalize = normalize

    def forward(self, items: Tensor) -> Tensor:
        """Return the similarity (..., N, N) of items (..., N, d)."""
        return linear(items, self.normalize)


class GaussianSimilarity(nn.Module):
    r"""Gaussians at several bandwidths and a linear part, with learned weights.

    .. math:: S_{ij} = \sum_k w_k \exp(-\|\phi_i - \phi_j\|^2 / \sigma_k^2)
        + w_0\, \phi_i^T \phi_j, \qquad \sum_k w_k + w_0 = 1

    as :class:`variegate.MultipleKernel`, by learned numbers ``z`` with ``w = z² / Σ
    z²``: a weight of zero stays zero.

    Parameters
    ----------
    bandwidths : sequence of float
        The ``σ_k``.
    linear : bool, default=True
        Whether there is a linear part.
    anchored : bool, default=False
        See :class:`variegate.Gaussian`.

    Examples
    --------
    >>> import torch
    >>> import variegate.torch as vt
    >>> encoder = torch.nn.Linear(16, 4)
    >>> similarity = torch.nn.Sequential(encoder, vt.GaussianSimilarity([0.5, 2.0]))
    >>> similarity(torch.randn(8, 10, 16)).shape  # eight ground sets of ten items
    torch.Size([8, 10, 10])
    """

    def __init__(
        self,
        bandwidths: Sequence[float],
        linear: bool = True,
        anchored: bool = False,
    ) -> None:
        super().__init__()
        for bandwidth in bandwidths:
            check_number("a bandwidth", bandwidth, positive=True)
        check_flag("linear", linear)
        check_flag("anchored", anchored)
        self.bandwidths = list(map(float, bandwidths))
        self.linear, self.anchored = linear, anchored
        n_weights = len(self.bandwidths) + linear
        if not n_weights:
            raise ValueError("give at least one bandwidth, or linear=True")
        self.roots = nn.Parameter(torch.full((n_weights,), n_weights**-0.5))

    @property
    def weights(self) -> Tensor:
        """The weights of the Gaussians, then of the linear part; they sum to one."""
        squares = self.roots * self.roots
        return squares / squares.sum()

    def forward(self, items: Tensor) -> Tensor:
        """Return the similarity (..., N, N) of items (..., N, d)."""
        parts = list(gaussians(items, self.bandwidths, self.anchored))
        if self.linear:
            parts.append(linear(items))
        return reduce(torch.add, map(torch.mul, self.weights, parts))


class KindsSimilarity(nn.Module):
    r"""Similarity of items by the probabilities of learned kinds.

    .. math:: p_i = \mathrm{softmax}(W x_i + b), \qquad
        S_{ij} = (1 - \varepsilon) \sum_k \sqrt{p_{ik}\, p_{jk}}
        + \varepsilon\, [i = j]

    with ``x`` the features scaled to unit length, as :class:`variegate.Kinds` of
    centred ones.  ``W``, ``b`` and the log-odds of ``ε`` are learned.

    Parameters
    ----------
    n_features : int
    n_kinds : int, default=16
    sharpness : float, default=5.0
        How clearly items belong to one of the random kinds of the start.
    epsilon : float, default=0.05
        ``ε`` at the start, between 0 and 1.

    Examples
    --------
    >>> import torch
    >>> import variegate.torch as vt
    >>> S = vt.KindsSimilarity(n_features=16)(torch.randn(10, 16))
    >>> torch.diagonal(S).unique()
    tensor([1.], grad_fn=<Unique2Backward0>)
    """

    def __init__(
        self,
        n_features: int,
        n_kinds: int = 16,
        sharpness: float = 5.0,
        epsilon: float = 0.05,
    ) -> None:
        super().__init__()
        check_count("n_features", n_features)
        check_count("n_kinds", n_kinds)
        check_number("sharpness", sharpness, positive=True)
        check_number("epsilon", epsilon, positive=True)
        if epsilon >= 1.0:
            raise ValueError(f"epsilon must be below 1, got {epsilon!r}")
        directions = unit_rows(torch.randn(n_kinds, n_features))
        self.weight = nn.Parameter(2.0 * sharpness * directions)
        self.bias = nn.Parameter(torch.full((n_kinds,), -float(sharpness)))
        self.log_odds = nn.Parameter(torch.tensor(log(epsilon / (1.0 - epsilon))))

    def forward(self, items: Tensor) -> Tensor:
        """Return the similarity (..., N, N) of items (..., N, d)."""
        epsilon = torch.sigmoid(self.log_odds)
        return kinds(unit_rows(items), self.weight, self.bias, epsilon)


class MetricSimilarity(nn.Module):
    r"""Gaussian similarity in a few learned directions.

    .. math:: S_{ij} = \exp(-\|W (x_i - x_j)\|^2 / 2)

    as :class:`variegate.Metric`, with ``W`` of shape (rank, n_features) learned.

    Parameters
    ----------
    n_features : int
    rank : int, default=16
        The number of directions.

    Examples
    --------
    >>> import torch
    >>> import variegate.torch as vt
    >>> vt.MetricSimilarity(n_features=16, rank=4)(torch.randn(3, 10, 16)).shape
    torch.Size([3, 10, 10])
    """

    def __init__(self, n_features: int, rank: int = 16) -> None:
        super().__init__()
        check_count("n_features", n_features)
        check_count("rank", rank)
        # Of two items that differ by standard normal features, ‖W (x - x')‖² is 2.
        scale = 1.0 / sqrt(rank * n_features)
        self.weight = nn.Parameter(scale * torch.randn(rank, n_features))

    def forward(self, items: Tensor) -> Tensor:
        """Return the similarity (..., N, N) of items (..., N, d)."""
        return metric(items, self.weight)
