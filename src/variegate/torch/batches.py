"""Examples in batches on a device: ground sets side by side, with wanted subsets.

:class:`variegate.LargeMarginDPP` on a device and :class:`variegate.torch.NeuralDPP`
make log-qualities and kernels of an :class:`ExampleBatch`, which has the losses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from variegate._typing import AnyArray, FloatArray, IntArray
from variegate.ground_set import name_position_in_errors
from variegate.kernels.features import as_dense
from variegate.learning.examples import Example
from variegate.torch.inputs import Kernels
from variegate.torch.targets import Targets

#: Entries of the similarities of a batch.  On a GPU enough to keep it busy, with half a
#: gigabyte a matrix that is held meanwhile; on a CPU a batch stays in cache.
_ENTRIES = {"cpu": 2**18, "cuda": 2**26}

#: Batches whose ground sets are sorted by size together.
_WINDOW = 8


class ExampleBatch:
    """``B`` examples, at least one, on a device: ground sets padded to ``N`` items."""

    def __init__(self, examples: Sequence[Example], device: str | torch.device) -> None:
        self.examples, self.device = examples, torch.device(device)
        self.sizes = np.array([len(example.ground_set) for example in examples])
        mask = np.arange(self.sizes.max()) < self.sizes[:, None]
        given = _pad_numbers([example.ground_set.given for example in examples])
        positive = _pad_costs([example.false_positive for example in examples], mask)
        negative = _pad_costs([example.false_negative for example in examples], mask)
        #: the wanted subsets, with the mask of the items
        self.targets = Targets(
            self._to_device(_pad_numbers([example.members for example in examples])),
            mask.shape[1],
            self._to_device(positive),
            self._to_device(negative),
            mask=None if mask.all() else self._to_device(mask),
            given=self._to_device(given) if given.size else None,
        )

    def _to_device(self, array: AnyArray) -> Tensor:
        """Return a copy of a NumPy array on the device of the batch."""
        sent = torch.from_numpy(np.ascontiguousarray(array))
        return sent.to(self.device, non_blocking=True)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of ground sets ``B``, and ``N``."""
        return len(self.sizes), self.targets.n_items

    @cached_property
    def _row_numbers(self) -> Tensor:
        """The row of each entry (B N,) in the items of all sets, concatenated.

        Padding has the row of the first item of its set.
        """
        item = np.arange(self.targets.n_items)
        first = np.cumsum(self.sizes) - self.sizes
        numbers = first[:, None] + np.where(item < self.sizes[:, None], item, 0)
        return self._to_device(numbers.reshape(-1))

    def pad_rows(self, rows: Tensor) -> Tensor:
        """Return the rows (n, ...) of the items of all sets, in turn, as (B, N, ...).

        Padding repeats the first item of the set.
        """
        if self.targets.mask is not None:
            rows = rows.index_select(0, self._row_numbers)
        return rows.view(*self.shape, *rows.shape[1:])

    def pad_features(self, arrays: Sequence[Any]) -> Tensor:
        """Return features, an array or sparse matrix (n, p) a set, as (B, N, p)."""
        rows = np.concatenate([as_dense(features) for features in arrays])
        return self.pad_rows(self._to_device(rows))

    def list_features(self, name: str | None) -> list[Any]:
        """Return features (n, p) of each set: block ``name``, None for the only one."""
        first = self.examples[0]
        with name_position_in_errors(first.position):  # all others have the same blocks
            first.ground_set.features(name)
        return [example.ground_set.features(name) for example in self.examples]

    def pad_matrices(self, arrays: Sequence[FloatArray]) -> Tensor:
        """Return square matrices, one for each set, as (B, N, N), zero at padding."""
        n_sets, n_items = self.shape
        together = np.zeros((n_sets, n_items, n_items))
        for matrix, out in zip(arrays, together, strict=True):
            out[: len(matrix), : len(matrix)] = matrix
        return self._to_device(together)

    def expected_f(self, kernels: Kernels) -> tuple[Tensor, Tensor]:
        """Return expected F-scores (B,), and whether kernels are definite (B,).

        ``2 Σ_{i in y} K_ii / (Σ_i K_ii + |y|)``, 1 where that is 0 / 0, NaN if not
        definite; ``kernels`` are those of the batch.  Given items do not count.
        """
        included, definite = kernels.marginals()
        wanted = self.targets.wanted
        right = included.masked_fill(~wanted, 0.0).sum(dim=1)
        total = included.sum(dim=1) + wanted.sum(dim=1)
        return torch.where(total == 0.0, 1.0, 2.0 * right / total), definite


def _pad_numbers(members: Sequence[IntArray]) -> IntArray:
    """Return item numbers of each set as rows (B, k), padded with -1."""
    counts = np.array([len(each) for each in members])
    numbers = np.full((len(members), int(counts.max())), -1)
    present = np.arange(numbers.shape[1]) < counts[:, None]
    numbers[present] = np.concatenate(members)
    return numbers


def _pad_costs(costs: Sequence[FloatArray | float], mask: AnyArray) -> AnyArray:
    """Return the costs of all sets: (B, N), 0 at padding, or (B, 1) if all are numbers.

    Each set has a number or an array of its items; ``mask`` (B, N) is True for items.
    """
    if not any(isinstance(cost, np.ndarray) and cost.ndim for cost in costs):
        return np.array(costs, dtype=np.float64)[:, None]
    padded = np.zeros(mask.shape)
    sizes = mask.sum(axis=1)
    padded[mask] = np.concatenate(list(map(np.broadcast_to, costs, sizes)))
    return padded


# Which ground sets go together ----------------------------------------------------


def size_groups(
    sizes: IntArray, numbers: IntArray, device: str, n_columns: int | None = None
) -> Iterator[IntArray]:
    """Yield arrays of indices of ground sets of about one size, small sets first.

    ``sizes`` are the numbers of items of all sets, and ``numbers`` the indices of those
    to divide into batches.  Batches are as large as suits the ``device`` ("cpu" or
    "cuda") if an item has ``n_columns`` entries in a kernel, by default one an item.
    """
    sizes = sizes[numbers]
    # Multiples of 4 up to 64 items, of 16 up to 256, then of 64.
    step = np.where(sizes <= 64, 4, np.where(sizes <= 256, 16, 64))
    size_class = -(-sizes // step) * step
    order = np.argsort(size_class, kind="stable")
    starts = np.flatnonzero(np.diff(size_class[order])) + 1
    entries = _ENTRIES[torch.device(device).type]
    for alike in np.split(order, starts) if len(order) else ():
        largest = int(sizes[alike].max())
        most = max(1, entries // (largest * (n_columns or largest)))
        for start in range(0, len(alike), most):
            yield numbers[alike[start : start + most]]


def shuffled_batches(
    sizes: IntArray, batch_size: int, seed: int, epoch: int
) -> list[IntArray]:
    """Return arrays of indices of ground sets: the batches of one pass, in order.

    Sets, of ``sizes`` items, are shuffled, sorted by size a few batches at a time, and
    the batches, of about ``batch_size`` sets, are shuffled again.  All follows from
    ``seed`` and the number of the pass, ``epoch``, so that a run can resume anywhere.
    """
    rng = np.random.default_rng([seed, epoch])
    numbers = rng.permutation(len(sizes))
    n_batches = max(1, round(len(numbers) / batch_size))
    n_windows = max(1, round(n_batches / _WINDOW))
    batches: list[IntArray] = []
    parts = np.array_split(numbers, n_batches)
    for window in np.array_split(np.arange(n_batches), n_windows):
        together = np.concatenate([parts[i] for i in window])
        together = together[np.argsort(sizes[together], kind="stable")]
        batches += np.array_split(together, len(window))
    return [batches[place] for place in rng.permutation(len(batches))]


def batches_by_size(sizes: IntArray, batch_size: int) -> list[IntArray]:
    """Return arrays of at most ``batch_size`` indices of ground sets, small sets first.

    ``sizes`` are the numbers of items of the sets.
    """
    numbers = np.argsort(sizes, kind="stable")
    return np.array_split(numbers, max(1, -(-len(numbers) // batch_size)))
