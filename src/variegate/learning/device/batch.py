"""Ground sets of about equal size, side by side on a device.

Nothing here is done ground set by ground set but gathering their arrays: a million
small ones are put together in seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from variegate._typing import BoolArray, FloatArray, IntArray
from variegate.ground_set import naming
from variegate.kernels.from_start import as_dense
from variegate.streaming import Example
from variegate.tensors.packed import LongRows
from variegate.tensors.targets import Targets

__all__ = ["Batch", "sizes_together"]

#: Entries of the similarities of a batch.  On a GPU enough to keep it busy, with half a
#: gigabyte a matrix that is held meanwhile; on a CPU what stays in cache.
_ENTRIES = {"cpu": 2**18, "cuda": 2**26}

#: Sizes are padded to multiples of 4 up to 64 items, of 16 up to 256, then of 64.
_STEPS = ((64, 4), (256, 16))
_LAST_STEP = 64


def sizes_together(
    sizes: IntArray, places: IntArray, device: str, n_columns: int | None = None
) -> Iterator[IntArray]:
    """Yield the places of ground sets that make a batch, small ones first.

    What is held of each has ``n_columns``, or as many as there are items.
    """
    sizes = sizes[places]
    step = np.full(len(sizes), _LAST_STEP)
    for largest, width in reversed(_STEPS):
        step[sizes <= largest] = width
    size_class = -(-sizes // step) * step
    order = np.argsort(size_class, kind="stable")
    starts = np.flatnonzero(np.diff(size_class[order])) + 1
    entries = _ENTRIES[torch.device(device).type]
    for alike in np.split(order, starts) if len(order) else ():
        largest = int(sizes[alike].max())
        most = max(1, entries // (largest * (n_columns or largest)))
        for start in range(0, len(alike), most):
            yield places[alike[start : start + most]]


@dataclass(frozen=True, eq=False)
class Batch:
    """Ground sets on a device, each padded to ``N`` items.

    Attributes
    ----------
    examples : list of Example
    device : str
    mask : boolean array (B, N), or None where nothing is padded
    quality : LongRows of shape (d, B N)
        Quality features less their center; zero at padding.
    targets : Targets
    """

    examples: Sequence[Example]
    device: str
    mask: BoolArray | None
    quality: LongRows
    targets: Targets

    @classmethod
    def of(cls, examples: Sequence[Example], center: FloatArray, device: str) -> Batch:
        """Put examples together."""
        sizes = np.array([len(example.ground_set) for example in examples])
        n_items = int(sizes.max())
        mask = np.arange(n_items) < sizes[:, None]
        rows = np.concatenate([e.ground_set.quality for e in examples]) - center
        quality = _padded(rows, mask, device).view(-1, rows.shape[1])
        return cls(
            examples,
            device,
            None if mask.all() else mask,
            LongRows(quality.T.contiguous()),
            _targets(examples, mask, device),
        )

    @property
    def shape(self) -> tuple[int, int]:
        """The number of ground sets, and ``N``."""
        n_sets, n_items = self.targets.indicator.shape
        return int(n_sets), int(n_items)

    def position(self, number: int) -> int:
        """Return what a ground set of the batch is called in errors."""
        return self.examples[number].position

    def where(self) -> Tensor | None:
        """Return the mask on the device."""
        return None if self.mask is None else _sent(self.mask, self.device)

    def sizes(self) -> Tensor:
        """Return the number of items of every ground set."""
        counts = [len(example.ground_set) for example in self.examples]
        return _sent(np.array(counts), self.device)

    def given(self, block: str | None) -> list[Any]:
        """Return the similarity features of every ground set, as they were given."""
        first = self.examples[0]
        with naming(first.position):  # all others have the same blocks
            first.ground_set.features(block)
        return [example.ground_set.features(block) for example in self.examples]

    def features(self, given: Sequence[Any]) -> Tensor:
        """Return features of equal width as (B, N, p), zero at padding."""
        rows = np.concatenate([as_dense(features) for features in given])
        mask = np.ones(self.shape, dtype=bool) if self.mask is None else self.mask
        return _padded(rows, mask, self.device)

    def matrices(self, given: Sequence[FloatArray]) -> Tensor:
        """Return matrices, one of each ground set, as (B, N, N), zero at padding."""
        n_sets, n_items = self.shape
        together = np.zeros((n_sets, n_items, n_items))
        for matrix, out in zip(given, together, strict=True):
            out[: len(matrix), : len(matrix)] = matrix
        return _sent(together, self.device)


def _sent(array: FloatArray | IntArray | BoolArray, device: str) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array)).to(device)


def _padded(rows: FloatArray, mask: BoolArray, device: str) -> Tensor:
    """Return rows of all items, one set after the other, as (B, N, p)."""
    sent = _sent(rows, device)
    if mask.all():
        return sent.view(*mask.shape, -1)
    padded = sent.new_zeros(*mask.shape, sent.shape[1])
    padded[_sent(mask, device)] = sent
    return padded


def _targets(examples: Sequence[Example], mask: BoolArray, device: str) -> Targets:
    counts = np.array([len(example.members) for example in examples])
    numbers = np.full((len(examples), int(counts.max(initial=0))), -1)
    present = np.arange(numbers.shape[1]) < counts[:, None]
    numbers[present] = np.concatenate([example.members for example in examples])
    positive, negative = (
        _costs([getattr(example, name) for example in examples], mask, device)
        for name in ("false_positive", "false_negative")
    )
    return Targets(
        _sent(numbers, device),
        mask.shape[1],
        false_positive=positive,
        false_negative=negative,
        mask=None if mask.all() else _sent(mask, device),
    )


def _costs(costs: Sequence[FloatArray | float], mask: BoolArray, device: str) -> Tensor:
    """Return costs of errors, numbers or arrays, as a tensor to broadcast to (B, N)."""
    if not any(isinstance(cost, np.ndarray) and cost.ndim for cost in costs):
        return _sent(np.array(costs, dtype=np.float64)[:, None], device)
    sizes = mask.sum(axis=1)
    rows = [np.broadcast_to(c, n) for c, n in zip(costs, sizes, strict=True)]
    return _padded(np.concatenate(rows)[:, None], mask, device).squeeze(-1)
