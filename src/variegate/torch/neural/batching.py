"""Ground sets of all sizes in batches: items below each other, and where they belong.

The order of batches follows from a seed and the number of the pass alone, so that any
place in it can be found again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from variegate._typing import AnyArray, FloatArray, IntArray
from variegate.streaming import Example

if TYPE_CHECKING:
    from variegate.torch.neural.networks import DPPNetwork

__all__ = ["Batch", "Items", "batches_by_size", "shuffled_batches"]

#: Batches whose ground sets are sorted by size together, so that a batch holds sets of
#: about one size, and still others in every pass.
_WINDOW = 8


class Batch(NamedTuple):
    """Some ground sets, B of them with N items at most, and what is wanted of them.

    Attributes
    ----------
    quality, similarity : tensors of shape (n, d), (n, p)
        The items of all of them, as networks take them.
    items : tensor of shape (B, N)
        Their places among these; that of the first where there is no item.
    mask : tensor of shape (B, N)
        Where there is one.
    members : tensor of shape (B, k)
        The wanted item numbers, padded with -1.
    false_positive, false_negative : tensors of shape (B, N)
        Costs of errors.
    """

    quality: Tensor
    similarity: Tensor
    items: Tensor
    mask: Tensor
    members: Tensor
    false_positive: Tensor
    false_negative: Tensor


@dataclass(eq=False)
class Items:
    """All examples on a device, ready for networks."""

    quality: Tensor
    similarity: Tensor
    sizes: IntArray
    examples: Sequence[Example]
    starts: IntArray = field(init=False)

    def __post_init__(self) -> None:
        """Find where each ground set begins."""
        self.starts = np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.intp)

    @classmethod
    def of(cls, examples: Sequence[Example], network: DPPNetwork) -> Items:
        """Put the features of examples below each other."""
        ground_sets = [example.ground_set for example in examples]
        similarity = list(map(network.features.similarity, ground_sets))
        return cls(
            network.quality_input(np.concatenate([gs.quality for gs in ground_sets])),
            network.encoder_input(np.concatenate(similarity)),
            np.array([len(ground_set) for ground_set in ground_sets]),
            examples,
        )

    def __len__(self) -> int:
        return len(self.examples)

    def batch(self, numbers: IntArray) -> Batch:
        """Return the ground sets with these numbers."""
        device = self.quality.device
        sizes, examples = self.sizes[numbers], [self.examples[i] for i in numbers]
        columns = np.arange(sizes.max())
        mask = columns < sizes[:, None]
        firsts = np.cumsum(sizes) - sizes
        items = firsts[:, None] + np.where(mask, columns, 0)
        members = [example.members for example in examples]
        most = max(1, max(map(len, members)))
        ranges = zip(self.starts[numbers], sizes, strict=True)
        rows = np.concatenate([np.arange(start, start + n) for start, n in ranges])
        taken = _on(rows, device)
        shape = mask.shape
        return Batch(
            self.quality.index_select(0, taken),
            self.similarity.index_select(0, taken),
            _on(items, device),
            _on(mask, device),
            _on(_padded(members, (len(numbers), most), -1), device),
            _on(_padded([e.false_positive for e in examples], shape, 0.0), device),
            _on(_padded([e.false_negative for e in examples], shape, 0.0), device),
        )


def _padded(
    rows: Sequence[IntArray | FloatArray | float], shape: tuple[int, int], empty: float
) -> AnyArray:
    """Return rows, or the number that stands for one, as a matrix."""
    table = np.full(shape, empty)
    for place, row in enumerate(rows):
        length = np.size(row) if np.ndim(row) else shape[1]
        table[place, :length] = row
    return table.astype(np.int64) if isinstance(empty, int) else table


def _on(values: AnyArray, device: torch.device) -> Tensor:
    return torch.from_numpy(values).to(device, non_blocking=True)


def shuffled_batches(
    sizes: IntArray, batch_size: int, order: int, epoch: int
) -> list[IntArray]:
    """Return the numbers of ground sets, batch by batch, of one pass.

    Sets are shuffled, sorted by size a few batches at a time, and the batches are
    shuffled again; batches are of nearly equal length.
    """
    rng = np.random.default_rng([order, epoch])
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
    """Return the same of all ground sets from small to large, for judging by."""
    numbers = np.argsort(sizes, kind="stable")
    return np.array_split(numbers, max(1, -(-len(numbers) // batch_size)))
