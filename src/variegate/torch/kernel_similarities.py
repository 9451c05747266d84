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
    """Raise ValueError for a kernel, or a part, that no device can compute."""
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
    """Return the factors of an example's similarity, None if a matrix is faster.

    For a Kinds kernel, whose factors change as it learns, the number of kinds instead.
    """
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
    """Return a function from flat parameters on the device to the kernels of a batch.

    ``low_rank`` is None for matrices, else the factors of each set, with the same
    columns, or the number of kinds; ``jitter`` is a ridge relative to the diagonal.
    """
    if low_rank is None:
        similarity = _prepare_similarity(kernel, batch)
        return lambda parameters: Kernels(similarity(parameters), jitter=jitter)
    if not isinstance(low_rank, int):
        return _prepare_factors(batch, low_rank, jitter, learned=kernel.domain.size > 0)
    assert isinstance(kernel, Kinds)
    items, parts = _prepare_kinds(kernel, batch)

    def build_kernels(added: Tensor) -> Kernels:
        """Return low-rank kernels; ``added`` (n,) shifts the first parameters."""
        # S = (1 - ε) φ φᵀ + ε I, and its diagonal is one: the ridge, with the jitter,
        # is (ε + jitter) / (1 - ε) times the diagonal of (1 - ε) φ φᵀ.
        weight, bias, epsilon = parts(added)
        features = (1.0 - epsilon).sqrt() * similarities.kind_roots(items, weight, bias)
        ridge = (epsilon + jitter) / (1.0 - epsilon)
        return Kernels(features, is_low_rank=True, jitter=ridge)

    return build_kernels


def _prepare_similarity(kernel: Kernel, batch: ExampleBatch) -> SimilarityOf:
    """Return a function from the kernel's parameters to similarities (B, N, N)."""
    if isinstance(kernel, FixedKernel):
        return _prepare_fixed_similarity(kernel, batch)
    if isinstance(kernel, Mixture):
        return _prepare_mixture(kernel, batch)
    if isinstance(kernel, WeightedSum):
        return _prepare_weighted_sum(
            _base_matrices(kernel, batch), kernel.n_weights, batch
        )
    if isinstance(kernel, Kinds):
        items, parts = _prepare_kinds(kernel, batch)
        return lambda added: similarities.kinds(items, *parts(added))
    assert isinstance(kernel, Metric)
    start = _to_device(kernel.start(), batch)
    items = _load_features(batch, kernel.block, start.shape[1])
    items = items - items.mean(dim=1, keepdim=True)  # distances keep their digits
    return lambda added: similarities.metric(items, start + added.view_as(start))


# Fixed similarities, and sums of them ---------------------------------------------


def _prepare_fixed_similarity(kernel: FixedKernel, batch: ExampleBatch) -> SimilarityOf:
    """Compute ``S`` (B, N, N) of a kernel without parameters; return ``lambda _: S``.

    Raise GroundSetError for values that are not finite, and for a wanted or given item
    of ``S_ii <= 0``.
    """
    S = _compute_fixed_similarity(kernel, batch)
    _check_finite(S[None], batch)
    own = S.diagonal(dim1=1, dim2=2)
    impossible = (batch.targets.indicator & (own <= 0.0)).nonzero()
    if len(impossible):
        number, item = impossible[0].tolist()
        example = batch.examples[number]
        is_given = item in example.ground_set.given
        raise impossible_item_error(example.position, item, is_given)
    return lambda _: S


def _prepare_weighted_sum(
    matrices: Iterator[Tensor], n_matrices: int, batch: ExampleBatch
) -> SimilarityOf:
    """Return a function from weights (K,) to the sum of ``K`` matrices (B, N, N)."""
    shape = (n_matrices, *batch.shape, batch.shape[1])
    S = torch.empty(shape, dtype=torch.float64, device=batch.device)
    for matrix, out in zip(matrices, S, strict=True):
        out.copy_(matrix)
    _check_finite(S, batch)
    rows = S.flatten(1)
    return lambda weights: (weights @ rows).view(S.shape[1:])


def _check_finite(S: Tensor, batch: ExampleBatch) -> None:
    """Raise an error for the first set with similarities (K, B, N, N) not finite."""
    for matrix in S:
        wrong = (~matrix.isfinite()).flatten(1).any(dim=1).nonzero()
        if len(wrong):
            raise GroundSetError(
                batch.examples[int(wrong[0])].position,
                "the similarity holds NaN or infinite values: the features are too "
                "large for this kernel, or the kernel is at fault",
            )


def _base_matrices(kernel: WeightedSum, batch: ExampleBatch) -> Iterator[Tensor]:
    """Yield the similarities (B, N, N) that a kernel sums, in the order of weights."""
    if type(kernel) is MultipleKernel and kernel.approximation is None:
        by_block = kernel._fitted_bandwidths()
        features = [_dense_features(batch, block) for block in by_block]
        plain = [items for items in features if items is not None]
        if len(plain) == len(by_block):
            for items, found in zip(plain, by_block.values(), strict=True):
                bandwidths = found.tolist()
                yield from similarities.gaussians(items, bandwidths, kernel.anchored)
            yield from map(similarities.linear, plain if kernel.linear else ())
            return
    each = _call_for_each_set(kernel.matrices, batch)
    for place in range(kernel.n_weights):
        yield batch.pad_matrices([matrices[place] for matrices in each])


def _call_for_each_set(
    function: Callable[[GroundSet], Any], batch: ExampleBatch
) -> list[Any]:
    """Return the results of a function of a ground set, one for each set."""
    found = []
    for example in batch.examples:
        with name_position_in_errors(example.position):
            found.append(function(example.ground_set))
    return found


def _compute_fixed_similarity(kernel: FixedKernel, batch: ExampleBatch) -> Tensor:
    """Return the similarities (B, N, N) of a kernel without parameters.

    Linear and Gaussian ones of dense features are computed on the device.
    """
    if type(kernel) is Linear:
        items = _dense_features(batch, kernel.block)
        if items is not None:
            return similarities.linear(items, kernel.normalize)
    elif type(kernel) is Gaussian and kernel.approximation is None:
        items = _dense_features(batch, kernel.block)
        if items is not None:
            bandwidths = [kernel.bandwidth]
            return next(similarities.gaussians(items, bandwidths, kernel.anchored))
    return batch.pad_matrices(_call_for_each_set(kernel.prepare, batch))


def _dense_features(batch: ExampleBatch, block: str | None) -> Tensor | None:
    """Return features (B, N, p) if all are dense and equally wide, else None."""
    given = batch.list_features(block)
    is_plain = all(isinstance(features, np.ndarray) for features in given)
    if is_plain and len({features.shape[1] for features in given}) == 1:
        return batch.pad_features(given)
    return None


# Learned features -----------------------------------------------------------------


def _prepare_kinds(
    kernel: Kinds, batch: ExampleBatch
) -> tuple[Tensor, Callable[[Tensor], tuple[Tensor, Tensor, Tensor]]]:
    """Return unit features ``x`` (B, N, d), and a function that returns W, b and ε.

    An item has the kinds with the probabilities ``softmax(W x + b)``.  The function
    takes flat shifts (n,) from the first values of ``W``, ``b`` and log-odds of ``ε``.
    """
    start = kernel.weights(np.zeros(kernel.domain.size))
    weight, bias = (_to_device(part, batch) for part in start)
    center = _to_device(kernel.center_, batch)
    items = _load_features(batch, kernel.block, len(center))
    log_odds = log(kernel.epsilon / (1.0 - kernel.epsilon))

    def split_parameters(added: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return ``W``, ``b`` and ``ε`` from their shifts ``added`` (n,)."""
        in_weight, in_bias, in_odds = added.tensor_split([weight.numel(), -1])
        epsilon = torch.sigmoid(log_odds + in_odds[0])
        return weight + in_weight.view_as(weight), bias + in_bias, epsilon

    return similarities.unit_rows(items - center), split_parameters


def _load_features(batch: ExampleBatch, block: str | None, n_features: int) -> Tensor:
    """Return features (B, N, n_features) of a block; refuse sets of another width."""
    given = batch.list_features(block)
    for example, features in zip(batch.examples, given, strict=True):
        if features.shape[1] != n_features:
            with name_position_in_errors(example.position):
                check_n_features(features, n_features)
    return batch.pad_features(given)


def _to_device(array: FloatArray, batch: ExampleBatch) -> Tensor:
    """Return a copy of an array on the device of a batch."""
    return torch.from_numpy(np.array(array)).to(batch.device)


def _prepare_factors(
    batch: ExampleBatch, factors: Sequence[Factors], jitter: float, *, learned: bool
) -> KernelOf:
    """Return a function from weights (K,) of factors to low-rank kernels of a batch.

    ``factors`` has the fixed factors of each set.  Unless ``learned``, all weights are
    1, whatever is given.  Refuse wanted items that have zeros in all factors.
    """
    columns = batch.pad_features([each.columns for each in factors])
    owner = torch.from_numpy(factors[0].owner).to(batch.device)
    for example, each in zip(batch.examples, factors, strict=True):
        needed = np.union1d(example.members, example.ground_set.given)
        impossible = needed[(each.squared[needed] <= 0.0).all(axis=1)]
        if len(impossible):
            is_given = impossible[0] in example.ground_set.given
            raise impossible_item_error(example.position, impossible[0], is_given)

    def build_kernels(weights: Tensor) -> Kernels:
        """Return kernels of the columns times the roots of their factors' weights."""
        F = columns
        if learned:
            least = weights.detach().clamp(min=_SMALLEST_WEIGHT)
            root = (weights + (least - weights.detach())).sqrt()
            F = columns * root.index_select(0, owner)
        return Kernels(F, is_low_rank=True, jitter=jitter)

    return build_kernels


def _prepare_mixture(kernel: Mixture, batch: ExampleBatch) -> SimilarityOf:
    """Return a function from a mixture's parameters to similarities (B, N, N)."""
    parts = kernel._current_kernels()
    fixed = [parts[place] for place in kernel._fixed_indices()]
    places = torch.from_numpy(kernel._fixed_indices()).to(batch.device)
    learned = {
        place: _prepare_similarity(part, batch)
        for place, part in kernel._learned_kernels().items()
    }
    sizes = [parts[place].domain.size for place in learned]
    matrices = (_compute_fixed_similarity(part, batch) for part in fixed)
    of_fixed = _prepare_weighted_sum(matrices, len(fixed), batch) if fixed else None

    def mix_similarities(parameters: Tensor) -> Tensor:
        """Return the weighted sum of the parts, by the weights and learned parameters.

        ``parameters`` are the weights of all parts, then those of each learned part.
        """
        weights, *own = parameters.split([len(parts), *sizes])
        terms = [] if of_fixed is None else [of_fixed(weights.index_select(0, places))]
        for (place, of), its in zip(learned.items(), own, strict=True):
            terms.append(weights[place] * of(its))
        return reduce(torch.add, terms)

    return mix_similarities
