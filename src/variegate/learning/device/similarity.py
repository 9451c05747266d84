"""The similarity of a batch of ground sets on a device, as its kernel says.

Where a kernel is linear in its parameters, its base similarities are computed once and
held by their triangles; the others are computed from features at every evaluation, and
differentiated by PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import log
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from variegate._typing import FloatArray
from variegate.ground_set import GroundSetError, naming
from variegate.kernels import (
    Gaussian,
    Kernel,
    Kinds,
    Linear,
    Metric,
    Mixture,
    MultipleKernel,
)
from variegate.kernels.base import FixedKernel
from variegate.kernels.features import check_n_features
from variegate.kernels.weighted import WeightedSum
from variegate.learning.device.batch import Batch
from variegate.learning.objective import impossible_item
from variegate.tensors import similarities
from variegate.tensors.packed import PackedSimilarities

__all__ = ["LearnedKinds", "Similarity", "check_kernel", "similarity_of"]


class Similarity(NamedTuple):
    """A similarity at some parameters, and how its gradient is pulled back.

    Attributes
    ----------
    matrix : (B, N, N)
    pull_back : from ``G = ∂f/∂S`` to ``∂f/∂p``
    """

    matrix: Tensor
    pull_back: Callable[[Tensor], Tensor]


#: From parameters on the device to the similarity of a batch.
SimilarityOf = Callable[[Tensor], Similarity]


def check_kernel(kernel: Kernel) -> None:
    """Refuse a kernel that has no form for a device."""
    if isinstance(kernel, Mixture):
        for part in kernel._learned().values():
            check_kernel(part)
        return
    if _is_linear(kernel) or type(kernel) in (Kinds, Metric):
        return
    raise ValueError(
        f"{type(kernel).__name__} has parameters and no form for a device: leave "
        "device out, or take MultipleKernel, Kinds, Metric, a Mixture of these, or a "
        "kernel without parameters (FixedKernel)"
    )


def _is_linear(kernel: Kernel) -> bool:
    """Whether a similarity is fixed, or a sum of fixed ones with learned weights."""
    own = type(kernel)
    return isinstance(kernel, FixedKernel) or (
        isinstance(kernel, WeightedSum)
        and own.value is WeightedSum.value
        and own.pull_back is WeightedSum.pull_back
    )


def similarity_of(kernel: Kernel, batch: Batch) -> SimilarityOf:
    """Prepare the similarity of a batch; ``check_kernel`` has let the kernel pass."""
    if isinstance(kernel, FixedKernel):
        return _fixed(kernel, batch)
    if isinstance(kernel, Mixture):
        return _mixture(kernel, batch)
    if isinstance(kernel, WeightedSum):
        return _weighted(_packed(_matrices(kernel, batch), kernel.n_weights, batch))
    if isinstance(kernel, Kinds):
        return _differentiated(LearnedKinds(kernel, batch).similarity)
    assert isinstance(kernel, Metric)
    return _differentiated(_metric(kernel, batch))


# Fixed similarities, and sums of them ---------------------------------------------


def _fixed(kernel: FixedKernel, batch: Batch) -> SimilarityOf:
    S = _fixed_matrix(kernel, batch)
    fine = S.isfinite().all(dim=2).all(dim=1)
    if not bool(fine.all()):
        raise _not_finite(batch, int(torch.argmin(fine.to(torch.uint8))))
    own = S.diagonal(dim1=1, dim2=2)
    impossible = (batch.targets.indicator & (own <= 0.0)).nonzero()
    if len(impossible):
        number, item = impossible[0].tolist()
        raise impossible_item(batch.position(number), item)
    nothing = S.new_zeros(0)
    return lambda _: Similarity(S, lambda _: nothing)


def _weighted(packed: PackedSimilarities) -> SimilarityOf:
    return lambda weights: Similarity(packed.mixture(weights), packed.inner_products)


def _packed(
    matrices: Iterator[Tensor], n_matrices: int, batch: Batch
) -> PackedSimilarities:
    packed = PackedSimilarities(matrices, n_matrices)
    wrong = packed.first_not_finite()
    if wrong is not None:
        raise _not_finite(batch, wrong)
    return packed


def _not_finite(batch: Batch, number: int) -> GroundSetError:
    return GroundSetError(
        batch.position(number),
        "the similarity holds NaN or infinite values: the features are too large for "
        "this kernel, or the kernel is at fault",
    )


def _matrices(kernel: WeightedSum, batch: Batch) -> Iterator[Tensor]:
    """Yield the similarities that a kernel sums, in the order of their weights."""
    if type(kernel) is MultipleKernel and kernel.approximation is None:
        features = [_plain(batch, block) for block in kernel._settled()]
        if all(items is not None for items in features):
            yield from _ladders(kernel, features)
            return
    each = []
    for example in batch.examples:
        with naming(example.position):
            each.append(kernel.matrices(example.ground_set))
    for place in range(kernel.n_weights):
        yield batch.matrices([matrices[place] for matrices in each])


def _ladders(kernel: MultipleKernel, features: list[Tensor | None]) -> Iterator[Tensor]:
    """Yield Gaussians, block by block, then the linear parts."""
    for items, bandwidths in zip(features, kernel._settled().values(), strict=True):
        yield from similarities.similarities(
            items, bandwidths.tolist(), linear=False, anchored=kernel.anchored
        )
    for items in features if kernel.linear else ():
        yield similarities.linear(items)


def _fixed_matrix(kernel: FixedKernel, batch: Batch) -> Tensor:
    """Return a fixed similarity, made on the device if it is one of the library's."""
    is_exact = type(kernel) is Gaussian and kernel.approximation is None
    items = None
    if isinstance(kernel, Linear | Gaussian) and (is_exact or type(kernel) is Linear):
        items = _plain(batch, kernel.block)
    if items is not None and isinstance(kernel, Linear):
        return similarities.linear(items, kernel.normalize)
    if items is not None and isinstance(kernel, Gaussian):
        bandwidths = [kernel.bandwidth]
        anchored = kernel.anchored
        return next(similarities.similarities(items, bandwidths, anchored=anchored))
    prepared = []
    for example in batch.examples:
        with naming(example.position):
            prepared.append(kernel.prepare(example.ground_set))
    return batch.matrices(prepared)


def _plain(batch: Batch, block: str | None) -> Tensor | None:
    """Return features if they are dense and equally wide, as a device wants them."""
    given = batch.given(block)
    is_plain = all(isinstance(features, np.ndarray) for features in given)
    if is_plain and len({features.shape[1] for features in given}) == 1:
        return batch.features(given)
    return None


# Learned features -----------------------------------------------------------------


def _differentiated(function: Callable[[Tensor], Tensor]) -> SimilarityOf:
    """Return a similarity whose gradient is PyTorch's."""

    def similarity(parameters: Tensor) -> Similarity:
        at = parameters.detach().requires_grad_()
        with torch.enable_grad():
            S = function(at)

        def pull_back(G: Tensor) -> Tensor:
            (slope,) = torch.autograd.grad(S, at, G)
            return slope

        return Similarity(S.detach(), pull_back)

    return similarity


class LearnedKinds:
    """The features of items, and what is added to at the start.

    Parameters
    ----------
    kernel : Kinds
    batch : Batch
    """

    def __init__(self, kernel: Kinds, batch: Batch) -> None:
        start = kernel.weights(np.zeros(kernel.domain.size))
        self.weight, self.bias = (_sent(part, batch) for part in start)
        center = _sent(kernel.center_, batch)
        items = _checked(batch, kernel.block, len(center))
        self.items = similarities.unit_rows(items - center)
        self.log_odds = log(kernel.apart / (1.0 - kernel.apart))

    def at(self, added: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return ``W``, ``b`` and ``ε``."""
        n_weights = self.weight.numel()
        return (
            self.weight + added[:n_weights].view_as(self.weight),
            self.bias + added[n_weights:-1],
            torch.sigmoid(self.log_odds + added[-1]),
        )

    def similarity(self, added: Tensor) -> Tensor:
        """Return the similarity (B, N, N)."""
        return similarities.kinds(self.items, *self.at(added))


def _metric(kernel: Metric, batch: Batch) -> Callable[[Tensor], Tensor]:
    start = _sent(kernel._settled(), batch)
    features = _checked(batch, kernel.block, start.shape[1])
    # The mean of the items that are there: padding is zero.
    items = features - features.sum(dim=1, keepdim=True) / batch.sizes()[:, None, None]
    return lambda added: similarities.metric(items, start + added.view_as(start))


def _checked(batch: Batch, block: str | None, n_features: int) -> Tensor:
    """Return features that are those the kernel was fitted with."""
    given = batch.given(block)
    for example, features in zip(batch.examples, given, strict=True):
        if features.shape[1] != n_features:
            with naming(example.position):
                check_n_features(features, n_features)
    return batch.features(given)


def _sent(array: FloatArray, batch: Batch) -> Tensor:
    return torch.from_numpy(np.array(array)).to(batch.device)


# Mixtures -------------------------------------------------------------------------


def _mixture(kernel: Mixture, batch: Batch) -> SimilarityOf:
    parts = kernel._parts()
    fixed = [parts[place] for place in kernel._fixed()]
    places = torch.from_numpy(kernel._fixed()).to(batch.device)
    packed = None
    if fixed:
        each = (_fixed_matrix(part, batch) for part in fixed)
        packed = _packed(each, len(fixed), batch)
    learned = {
        place: similarity_of(part, batch) for place, part in kernel._learned().items()
    }
    if packed is not None and not learned:
        return _weighted(packed)
    sizes = [parts[place].domain.size for place in learned]

    def similarity(parameters: Tensor) -> Similarity:
        weights, *own = parameters.split([len(parts), *sizes])
        found = [of(its) for of, its in zip(learned.values(), own, strict=True)]
        S = 0.0 if packed is None else packed.mixture(weights[places])
        for place, part in zip(learned, found, strict=True):
            S = S + weights[place] * part.matrix

        def pull_back(G: Tensor) -> Tensor:
            slopes = torch.zeros_like(weights)
            if packed is not None:
                slopes[places] = packed.inner_products(G)
            gradients = []
            for place, part in zip(learned, found, strict=True):
                slopes[place] = (G * part.matrix).sum()
                gradients.append(weights[place] * part.pull_back(G))
            return torch.cat([slopes, *gradients])

        return Similarity(S, pull_back)

    return similarity
