"""The kernels of the library on a device: from parameters to the kernel of a batch.

Where a kernel is linear in its parameters, its base similarities are computed once and
held; the others are computed from features at every evaluation.  Large ground sets of
low rank are held by their features.  Gradients are PyTorch's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from math import log
from typing import Any

import numpy as np
import torch
from torch import Tensor

from variegate._typing import FloatArray
from variegate.ground_set import GroundSet, GroundSetError, name_position_in_errors
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
from variegate.learning.examples import Example
from variegate.learning.factors import Factors, is_low_rank, low_rank_factors
from variegate.learning.objective import impossible_item_error
from variegate.torch import similarities
from variegate.torch.batches import ExampleBatch
from variegate.torch.inputs import Kernels

#: From parameters on the device to the kernel of a batch, or its matrices (B, N, N).
KernelOf = Callable[[Tensor], Kernels]
SimilarityOf = Callable[[Tensor], Tensor]

#: The least weight of a factor, whose root must have a finite slope.
_SMALLEST_WEIGHT = 1e-30


def check_kernel(kernel: Kernel) -> None:
    """Refuse a kernel that has no form for a device."""
    if isinstance(kernel, Mixture):
        for part in kernel._learned_kernels().values():
            check_kernel(part)
        return
    own = type(kernel)
    is_linear = isinstance(kernel, FixedKernel) or (
        isinstance(kernel, WeightedSum)
        and own.value is WeightedSum.value
        and own.pull_back is WeightedSum.pull_back
    )
    if not is_linear and own not in (Kinds, Metric):
        raise ValueError(
            f"{own.__name__} has parameters and no form for a device: leave device "
            "out, or take MultipleKernel, Kinds, Metric, a Mixture of these, or a "
            "kernel without parameters (FixedKernel)"
        )


def low_rank_form(kernel: Kernel, example: Example) -> Factors | int | None:
    """Return the low-rank factors of a similarity, or its number of kinds, or None."""
    n_items = len(example.ground_set)
    if type(kernel) is Kinds and is_low_rank(kernel.embedding_size, n_items):
        return kernel.embedding_size
    with name_position_in_errors(example.position):
        return low_rank_factors(kernel, example.ground_set)


def prepare_kernel(
    kernel: Kernel,
    batch: ExampleBatch,
    low_rank: Sequence[Factors] | int | None,
    jitter: float,
) -> KernelOf:
    """Prepare the kernel of a batch, for its parameters.

    ``low_rank`` are the results of :func:`low_rank_form`, all with the same columns.
    """
    if low_rank is None:
        similarity = _similarity(kernel, batch)
        return lambda parameters: Kernels(similarity(parameters), jitter=jitter)
    if not isinstance(low_rank, int):
        return _factored_kernel(batch, low_rank, jitter, learned=kernel.domain.size > 0)
    assert isinstance(kernel, Kinds)
    items, parts = _prepare_kinds(kernel, batch)

    def by_features(added: Tensor) -> Kernels:
        """Return kernels by features; ``added`` is the learned shift of parameters."""
        # S = (1 - ε) φ φᵀ + ε I, and its diagonal is one: the ridge, with the jitter,
        # is (ε + jitter) / (1 - ε) times the diagonal of (1 - ε) φ φᵀ.
        weight, bias, epsilon = parts(added)
        features = (1.0 - epsilon).sqrt() * similarities.kind_roots(items, weight, bias)
        ridge = (epsilon + jitter) / (1.0 - epsilon)
        return Kernels(features, is_low_rank=True, jitter=ridge)

    return by_features


def _similarity(kernel: Kernel, batch: ExampleBatch) -> SimilarityOf:
    """Prepare the similarity of a batch, for the parameters of its kernel."""
    if isinstance(kernel, FixedKernel):
        return _fixed_similarity(kernel, batch)
    if isinstance(kernel, Mixture):
        return _mixture_similarity(kernel, batch)
    if isinstance(kernel, WeightedSum):
        return _weighted_similarity(
            _base_matrices(kernel, batch), kernel.n_weights, batch
        )
    if isinstance(kernel, Kinds):
        items, parts = _prepare_kinds(kernel, batch)
        return lambda added: similarities.kinds(items, *parts(added))
    assert isinstance(kernel, Metric)
    start = _to_device(kernel.start(), batch)
    items = _checked_features(batch, kernel.block, start.shape[1])
    items = items - items.mean(dim=1, keepdim=True)  # distances keep their digits
    return lambda added: similarities.metric(items, start + added.view_as(start))


# Fixed similarities, and sums of them ---------------------------------------------


def _fixed_similarity(kernel: FixedKernel, batch: ExampleBatch) -> SimilarityOf:
    """Compute a similarity without parameters once; refuse impossible items."""
    S = _fixed_matrix(kernel, batch)
    _check_finite(S[None], batch)
    own = S.diagonal(dim1=1, dim2=2)
    impossible = (batch.targets.indicator & (own <= 0.0)).nonzero()
    if len(impossible):
        number, item = impossible[0].tolist()
        raise impossible_item_error(batch.examples[number].position, item)
    return lambda _: S


def _weighted_similarity(
    matrices: Iterator[Tensor], n_matrices: int, batch: ExampleBatch
) -> SimilarityOf:
    """Return a function of weights (n_matrices,) to the sum of fixed similarities."""
    shape = (n_matrices, *batch.shape, batch.shape[1])
    S = torch.empty(shape, dtype=torch.float64, device=batch.device)
    for matrix, out in zip(matrices, S, strict=True):
        out.copy_(matrix)
    _check_finite(S, batch)
    rows = S.flatten(1)
    return lambda weights: (weights @ rows).view(S.shape[1:])


def _check_finite(S: Tensor, batch: ExampleBatch) -> None:
    """Refuse similarities (K, B, N, N) with NaN or infinite entries."""
    for matrix in S:
        wrong = (~matrix.isfinite()).flatten(1).any(dim=1).nonzero()
        if len(wrong):
            raise GroundSetError(
                batch.examples[int(wrong[0])].position,
                "the similarity holds NaN or infinite values: the features are too "
                "large for this kernel, or the kernel is at fault",
            )


def _base_matrices(kernel: WeightedSum, batch: ExampleBatch) -> Iterator[Tensor]:
    """Yield the similarities that a kernel sums, in the order of their weights."""
    if type(kernel) is MultipleKernel and kernel.approximation is None:
        ladders = kernel._fitted_bandwidths()
        features = [_dense_features(batch, block) for block in ladders]
        plain = [items for items in features if items is not None]
        if len(plain) == len(ladders):
            for items, ladder in zip(plain, ladders.values(), strict=True):
                bandwidths = ladder.tolist()
                yield from similarities.gaussians(items, bandwidths, kernel.anchored)
            yield from map(similarities.linear, plain if kernel.linear else ())
            return
    each = _call_for_each_set(kernel.matrices, batch)
    for place in range(kernel.n_weights):
        yield batch.matrices([matrices[place] for matrices in each])


def _call_for_each_set(
    function: Callable[[GroundSet], Any], batch: ExampleBatch
) -> list[Any]:
    """Return the results of a function of a ground set, one for each set."""
    found = []
    for example in batch.examples:
        with name_position_in_errors(example.position):
            found.append(function(example.ground_set))
    return found


def _fixed_matrix(kernel: FixedKernel, batch: ExampleBatch) -> Tensor:
    """Return a fixed similarity, made on the device if it is one of the library's."""
    if type(kernel) is Linear:
        items = _dense_features(batch, kernel.block)
        if items is not None:
            return similarities.linear(items, kernel.normalize)
    elif type(kernel) is Gaussian and kernel.approximation is None:
        items = _dense_features(batch, kernel.block)
        if items is not None:
            bandwidths = [kernel.bandwidth]
            return next(similarities.gaussians(items, bandwidths, kernel.anchored))
    return batch.matrices(_call_for_each_set(kernel.prepare, batch))


def _dense_features(batch: ExampleBatch, block: str | None) -> Tensor | None:
    """Return features (B, N, p) if all are dense and equally wide, else None."""
    given = batch.block(block)
    is_plain = all(isinstance(features, np.ndarray) for features in given)
    if is_plain and len({features.shape[1] for features in given}) == 1:
        return batch.features(given)
    return None


# Learned features -----------------------------------------------------------------


def _prepare_kinds(
    kernel: Kinds, batch: ExampleBatch
) -> tuple[Tensor, Callable[[Tensor], tuple[Tensor, Tensor, Tensor]]]:
    """Return unit features ``x`` (B, N, d) and a function to ``W``, ``b`` and ``ε``.

    Kinds have the probabilities ``softmax(W x + b)``; it takes the parameters, flat.
    """
    start = kernel.weights(np.zeros(kernel.domain.size))
    weight, bias = (_to_device(part, batch) for part in start)
    center = _to_device(kernel.center_, batch)
    items = _checked_features(batch, kernel.block, len(center))
    log_odds = log(kernel.epsilon / (1.0 - kernel.epsilon))

    def parts(added: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return ``W``, ``b``, ``ε`` from the learned shift of parameters, flat."""
        in_weight, in_bias, in_odds = added.tensor_split([weight.numel(), -1])
        epsilon = torch.sigmoid(log_odds + in_odds[0])
        return weight + in_weight.view_as(weight), bias + in_bias, epsilon

    return similarities.unit_rows(items - center), parts


def _checked_features(
    batch: ExampleBatch, block: str | None, n_features: int
) -> Tensor:
    """Return features (B, N, n_features) of a block; refuse other widths."""
    given = batch.block(block)
    for example, features in zip(batch.examples, given, strict=True):
        if features.shape[1] != n_features:
            with name_position_in_errors(example.position):
                check_n_features(features, n_features)
    return batch.features(given)


def _to_device(array: FloatArray, batch: ExampleBatch) -> Tensor:
    """Copy an array to the device of a batch."""
    return torch.from_numpy(np.array(array)).to(batch.device)


def _factored_kernel(
    batch: ExampleBatch, factors: Sequence[Factors], jitter: float, *, learned: bool
) -> KernelOf:
    """Prepare the kernel of fixed factors, whose weights may be learned."""
    columns = batch.features([each.columns for each in factors])
    owner = torch.from_numpy(factors[0].owner).to(batch.device)
    for example, each in zip(batch.examples, factors, strict=True):
        own = each.squared[example.members]
        impossible = example.members[(own <= 0.0).all(axis=1)]
        if len(impossible):
            raise impossible_item_error(example.position, impossible[0])

    def kernel(weights: Tensor) -> Kernels:
        """Return features, columns times the roots of their factors' weights."""
        F = columns
        if learned:
            least = weights.detach().clamp(min=_SMALLEST_WEIGHT)
            root = (weights + (least - weights.detach())).sqrt()
            F = columns * root.index_select(0, owner)
        return Kernels(F, is_low_rank=True, jitter=jitter)

    return kernel


def _mixture_similarity(kernel: Mixture, batch: ExampleBatch) -> SimilarityOf:
    """Prepare the weighted sum of fixed and learned parts of a mixture."""
    parts = kernel._current_kernels()
    fixed = [parts[place] for place in kernel._fixed_places()]
    places = torch.from_numpy(kernel._fixed_places()).to(batch.device)
    learned = {
        place: _similarity(part, batch)
        for place, part in kernel._learned_kernels().items()
    }
    sizes = [parts[place].domain.size for place in learned]
    matrices = (_fixed_matrix(part, batch) for part in fixed)
    of_fixed = _weighted_similarity(matrices, len(fixed), batch) if fixed else None

    def similarity(parameters: Tensor) -> Tensor:
        """Sum the parts (B, N, N); ``parameters`` are weights, then of each part."""
        weights, *own = parameters.split([len(parts), *sizes])
        terms = [] if of_fixed is None else [of_fixed(weights.index_select(0, places))]
        for (place, of), its in zip(learned.items(), own, strict=True):
            terms.append(weights[place] * of(its))
        return reduce(torch.add, terms)

    return similarity
