"""Similarities as modules: the library's learned kernels, with gradients of PyTorch.

Each maps the features of items, (..., N, d), to their similarity (..., N, N), is that
of a kernel of the library to rounding (``from_kernel``), and takes any module as an
encoder in front.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from math import log, sqrt
from typing import Any, Self

import torch
from torch import Tensor, nn

from variegate._validation import check_count, check_flag, check_number
from variegate.kernels import Gaussian, Kernel, Kinds, Linear, Metric, MultipleKernel
from variegate.torch.similarity_functions import (
    kinds,
    linear,
    metric,
    multiple,
    unit_rows,
)


class _Similarity(nn.Module):
    """A similarity of what an encoder, if there is one, makes of features."""

    def __init__(self, encoder: nn.Module | None) -> None:
        super().__init__()
        if encoder is not None and not isinstance(encoder, nn.Module):
            raise ValueError(f"encoder must be a module or None, got {encoder!r}")
        self.encoder = encoder

    def forward(self, features: Tensor) -> Tensor:
        """Return the similarity (..., N, N) of items (..., N, d)."""
        return self._of(features if self.encoder is None else self.encoder(features))

    @abstractmethod
    def _of(self, items: Tensor) -> Tensor:
        """Return the similarity of encoded items."""

    def _with(self, **values: Any) -> Self:
        """Fill parameters and buffers, in double precision."""
        self.double()
        for name, value in values.items():
            getattr(self, name).data.copy_(torch.as_tensor(value, dtype=torch.float64))
        return self


class LinearSimilarity(_Similarity):
    """Inner products of items, ``S_ij = φ_iᵀ φ_j``.

    Parameters
    ----------
    normalize : bool, default=False
        Scale items to unit length first: the cosine similarity.  Zeros stay.
    encoder : module, optional
        Applied to the features first.

    Examples
    --------
    >>> import torch
    >>> import variegate.torch as vt
    >>> vt.LinearSimilarity(normalize=True)(torch.tensor([[3.0, 4.0], [0.0, 2.0]]))
    tensor([[1.0000, 0.8000],
            [0.8000, 1.0000]])
    """

    def __init__(
        self, normalize: bool = False, encoder: nn.Module | None = None
    ) -> None:
        super().__init__(encoder)
        check_flag("normalize", normalize)
        self.normalize = normalize

    @classmethod
    def from_kernel(cls, kernel: Linear, encoder: nn.Module | None = None) -> Self:
        """Return the similarity of a :class:`variegate.Linear`."""
        _check_kernel(kernel, Linear)
        return cls(kernel.normalize, encoder)

    def _of(self, items: Tensor) -> Tensor:
        return linear(items, self.normalize)


class GaussianSimilarity(_Similarity):
    r"""Gaussians at several bandwidths and a linear part, their weights learned.

    .. math:: S_{ij} = \sum_k w_k \exp(-\|\phi_i - \phi_j\|^2 / \sigma_k^2)
        + w_0\, \phi_i^T \phi_j, \qquad \sum_k w_k + w_0 = 1

    as :class:`variegate.MultipleKernel`.  Learned are numbers ``z`` with
    ``w = z² / Σ z²``: a weight of zero stays zero.

    Parameters
    ----------
    bandwidths : sequence of float
        The ``σ_k``.
    linear : bool, default=True
        Whether there is a linear part.
    anchored : bool, default=False
        Whether Gaussians are seen from the origin: see :class:`variegate.Gaussian`.
    encoder : module, optional
        Applied to the features first.

    Examples
    --------
    >>> import torch
    >>> import variegate.torch as vt
    >>> encoder = torch.nn.Linear(16, 4)
    >>> similarity = vt.GaussianSimilarity([0.5, 1.0, 2.0], encoder=encoder)
    >>> similarity(torch.randn(8, 10, 16)).shape  # eight ground sets of ten items
    torch.Size([8, 10, 10])
    """

    def __init__(
        self,
        bandwidths: Sequence[float],
        linear: bool = True,
        anchored: bool = False,
        encoder: nn.Module | None = None,
    ) -> None:
        super().__init__(encoder)
        for bandwidth in bandwidths:
            check_number("a bandwidth", bandwidth, positive=True)
        check_flag("linear", linear)
        check_flag("anchored", anchored)
        self.bandwidths = [float(bandwidth) for bandwidth in bandwidths]
        self.linear, self.anchored = linear, anchored
        n_weights = len(self.bandwidths) + linear
        if not n_weights:
            raise ValueError("give at least one bandwidth, or linear=True")
        self.roots = nn.Parameter(torch.full((n_weights,), n_weights**-0.5))

    @classmethod
    def from_kernel(
        cls,
        kernel: MultipleKernel | Gaussian,
        parameters: Any = None,
        encoder: nn.Module | None = None,
    ) -> Self:
        """Return the similarity of a fitted kernel, in double precision.

        Of a :class:`variegate.Gaussian`, or of a :class:`variegate.MultipleKernel` with
        the weights ``parameters`` (``kernel_parameters_`` of a model; by default equal
        ones), if it does not approximate and reads one block of features.
        """
        _check_kernel(kernel, MultipleKernel, Gaussian)
        if kernel.approximation is not None:
            raise ValueError(
                "a kernel with an approximation has no module: its features are "
                "kernel.factors(ground_set)"
            )
        if isinstance(kernel, Gaussian):
            kernel.check()
            return cls([kernel.bandwidth], False, kernel.anchored, encoder)._with()
        settled = kernel._settled()
        if len(settled) != 1:
            raise ValueError(
                f"the kernel reads the blocks {list(settled)}: make a module for each"
            )
        (bandwidths,) = settled.values()
        made = cls(bandwidths.tolist(), bool(kernel.linear), kernel.anchored, encoder)
        return made._with(roots=_parameters_of(kernel, parameters).sqrt())

    @property
    def weights(self) -> Tensor:
        """The weights of the Gaussians, then of the linear part; they sum to one."""
        squares = self.roots * self.roots
        return squares / squares.sum()

    def _of(self, items: Tensor) -> Tensor:
        how = {"linear": self.linear, "anchored": self.anchored}
        return multiple(items, self.weights, self.bandwidths, **how)


class KindsSimilarity(_Similarity):
    r"""Two items are alike as surely as they are of the same learned kind.

    .. math:: p_i = \mathrm{softmax}(W x_i + b), \qquad
        S_{ij} = (1 - \varepsilon) \sum_k \sqrt{p_{ik}\, p_{jk}}
        + \varepsilon\, [i = j]

    with ``x`` the features less ``center``, of unit length, as
    :class:`variegate.Kinds`.  ``W``, ``b`` and the log-odds of ``ε`` are learned.

    Parameters
    ----------
    n_features : int
        Of an item, as it comes out of the encoder.
    n_kinds : int, default=16
    sharpness : float, default=5.0
        How sure an item is of its kind at the start, where kinds are directions drawn
        at random.
    apart : float, default=0.05
        ``ε`` at the start, between 0 and 1.
    encoder : module, optional
        Applied to the features first.

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
        apart: float = 0.05,
        encoder: nn.Module | None = None,
    ) -> None:
        super().__init__(encoder)
        check_count("n_features", n_features)
        check_count("n_kinds", n_kinds)
        check_number("sharpness", sharpness, positive=True)
        check_number("apart", apart, positive=True)
        if apart >= 1.0:
            raise ValueError(f"apart must be below 1, got {apart!r}")
        centers = unit_rows(torch.randn(n_kinds, n_features))
        self.register_buffer("center", torch.zeros(n_features))
        self.weight = nn.Parameter(2.0 * sharpness * centers)
        self.bias = nn.Parameter(torch.full((n_kinds,), -float(sharpness)))
        self.log_odds = nn.Parameter(torch.tensor(log(apart / (1.0 - apart))))

    @classmethod
    def from_kernel(
        cls, kernel: Kinds, parameters: Any = None, encoder: nn.Module | None = None
    ) -> Self:
        """Return the similarity of a fitted :class:`variegate.Kinds`.

        At ``parameters`` (``kernel_parameters_`` of a model; by default those that it
        starts from), in double precision.
        """
        _check_kernel(kernel, Kinds)
        given = _parameters_of(kernel, parameters).numpy()
        weight, bias = kernel.weights(given)
        made = cls(
            weight.shape[1], len(weight), kernel.sharpness, kernel.apart, encoder
        )
        odds = log(kernel.apart / (1.0 - kernel.apart)) + float(given[-1])
        center = torch.from_numpy(kernel.center_)
        return made._with(center=center, weight=weight, bias=bias, log_odds=odds)

    def _of(self, items: Tensor) -> Tensor:
        items = unit_rows(items - self.center)
        return kinds(items, self.weight, self.bias, torch.sigmoid(self.log_odds))


class MetricSimilarity(_Similarity):
    r"""Gaussian similarity in a few learned directions.

    .. math:: S_{ij} = \exp(-\|W (x_i - x_j)\|^2 / 2)

    as :class:`variegate.Metric`, with ``W`` of shape (rank, n_features) learned.

    Parameters
    ----------
    n_features : int
        Of an item, as it comes out of the encoder.
    rank : int, default=16
        The number of directions.
    encoder : module, optional
        Applied to the features first.

    Examples
    --------
    >>> import torch
    >>> import variegate.torch as vt
    >>> vt.MetricSimilarity(n_features=16, rank=4)(torch.randn(3, 10, 16)).shape
    torch.Size([3, 10, 10])
    """

    def __init__(
        self, n_features: int, rank: int = 16, encoder: nn.Module | None = None
    ) -> None:
        super().__init__(encoder)
        check_count("n_features", n_features)
        check_count("rank", rank)
        # Of two items that differ by standard normal features, ‖W (x - x')‖² is 2.
        scale = 1.0 / sqrt(rank * n_features)
        self.weight = nn.Parameter(scale * torch.randn(rank, n_features))

    @classmethod
    def from_kernel(
        cls, kernel: Metric, parameters: Any = None, encoder: nn.Module | None = None
    ) -> Self:
        """Return the similarity of a fitted :class:`variegate.Metric`.

        In double precision, at ``parameters`` as for :class:`KindsSimilarity`.
        """
        _check_kernel(kernel, Metric)
        weight = kernel.weights(_parameters_of(kernel, parameters).numpy())
        return cls(weight.shape[1], len(weight), encoder)._with(weight=weight)

    def _of(self, items: Tensor) -> Tensor:
        return metric(items, self.weight)


def _check_kernel(kernel: Any, *expected: type[Kernel]) -> None:
    if not isinstance(kernel, expected):
        names = " or ".join(kind.__name__ for kind in expected)
        raise ValueError(f"expected a kernel {names}, got {kernel!r}")


def _parameters_of(kernel: Kernel, parameters: Any) -> Tensor:
    """Return parameters of a kernel, those that it starts from if none are given."""
    domain = kernel.domain
    if parameters is None:
        return torch.from_numpy(domain.center())
    given = torch.as_tensor(parameters, dtype=torch.float64).detach().cpu()
    if given.shape != (domain.size,):
        raise ValueError(
            f"{type(kernel).__name__} has {domain.size} parameters, got an array of "
            f"shape {tuple(given.shape)}"
        )
    return given
