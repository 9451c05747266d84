"""What must be known of all examples before learning: how many, how large, how wide.

Surveys of parts make one of the whole, so each partition is read once, anywhere.  From
the whole follow the coordinates of solvers, the same but for rounding as those of
:mod:`variegate.learning.coordinates` on one machine.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from variegate._typing import AnyArray, FloatArray, IntArray
from variegate.ground_set import GroundSet, check_same_features, naming
from variegate.learning.coordinates import mean_within, varies
from variegate.partitions.partition import Partition, PartitionError
from variegate.partitions.source import Reader

__all__ = ["Survey", "survey_of"]


@dataclass(frozen=True, eq=False)
class Survey:
    """What is known of some partitions, one after another.

    Attributes
    ----------
    n_examples : array, an entry a partition
    sizes : array, an entry an example
        Items of its ground set.
    mean, spread : arrays of shape (d,)
        Mean of the features, and root of the mean square about it.
    low, high : arrays of shape (d,)
        Least and largest of the features.
    kinds : tuple of (number of features, names of blocks, path)
        The first partition of each kind of ground sets; all should be of one.
    """

    n_examples: IntArray
    sizes: AnyArray
    mean: FloatArray
    spread: FloatArray
    low: FloatArray
    high: FloatArray
    kinds: tuple[tuple[int, tuple[str, ...], str], ...]

    def __add__(self, other: Survey) -> Survey:
        """Return the survey of both."""
        n_examples = np.concatenate([self.n_examples, other.n_examples])
        sizes = np.concatenate([self.sizes, other.sizes])
        here = {kind[:2] for kind in self.kinds}
        kinds = self.kinds + tuple(k for k in other.kinds if k[:2] not in here)
        if not self.kinds or not other.kinds or len(kinds) > 1:
            # One of them holds no examples; or they do not fit, and will be refused.
            known = self if self.kinds else other
            return replace(known, n_examples=n_examples, sizes=sizes, kinds=kinds)
        n, m = float(self.sizes.sum()), float(other.sizes.sum())
        n, m = n / (n + m), m / (n + m)
        apart = other.mean - self.mean
        # Two rounds of hypot, in which no square overflows.
        within = np.hypot(np.sqrt(n) * self.spread, np.sqrt(m) * other.spread)
        return Survey(
            n_examples,
            sizes,
            self.mean + m * apart,
            np.hypot(within, np.sqrt(n * m) * apart),
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            kinds,
        )

    def check(self) -> None:
        """Refuse no examples, and partitions that do not fit together."""
        if not self.kinds:
            raise ValueError("there are no examples in any of the files")
        first, *others = self.kinds
        for n_features, blocks, path in others:
            raise PartitionError(
                path,
                f"has ground sets with {n_features} quality features and the "
                f"similarity blocks {', '.join(map(repr, blocks))}, but {first[2]} "
                f"has {first[0]} and {', '.join(map(repr, first[1]))}",
            )

    def center(self, fit_intercept: bool) -> FloatArray:
        """Return the mean of the features, zeros where there is no intercept."""
        return self.mean if fit_intercept else np.zeros_like(self.mean)

    def scale(self, center: FloatArray) -> FloatArray:
        """Return the power of two nearest to the spread of each feature."""
        spread = np.hypot(self.spread, self.mean - center)
        with np.errstate(over="ignore"):
            largest = np.maximum(self.high - center, center - self.low)
        changes = varies(largest, center)
        spread = np.where(changes & (spread > 0.0), spread, 1.0)
        return np.exp2(np.clip(np.round(np.log2(spread)), -1000, 1000))

    # In a journal -----------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Return all of it, with all digits."""
        content = io.BytesIO()
        arrays: dict[str, Any] = {
            name: value for name, value in vars(self).items() if name != "kinds"
        }
        kinds = np.frombuffer(json.dumps(self.kinds).encode(), dtype=np.uint8)
        np.savez(content, kinds=kinds, **arrays)
        return content.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> Survey:
        """Take back what :meth:`to_bytes` gave."""
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        kinds = json.loads(arrays.pop("kinds").tobytes())
        return cls(**arrays, kinds=tuple((n, tuple(b), p) for n, b, p in kinds))


def survey_of(reader: Reader, partition: Partition) -> Survey:
    """Read a partition and say what is in it."""
    examples = reader.read(partition)
    ground_sets = [example.ground_set for example in examples]
    counts = np.array([len(ground_sets)], dtype=np.int64)
    sizes = np.array([len(ground_set) for ground_set in ground_sets], dtype=np.int32)
    if not ground_sets:
        nothing = np.zeros(0)
        return Survey(counts, sizes, nothing, nothing, nothing, nothing, ())
    first: GroundSet = ground_sets[0]
    names, width = first.blocks.keys(), first.n_features
    for example in examples:
        here = example.ground_set
        if here.quality.shape[1] != width or here.blocks.keys() != names:
            with naming(example.position):
                check_same_features(here, first)
    rows = np.concatenate([ground_set.quality for ground_set in ground_sets])
    low, high = rows.min(axis=0), rows.max(axis=0)
    mean = mean_within(rows)
    rows -= mean
    largest = np.maximum(rows.max(axis=0), -rows.min(axis=0))
    unit = np.where(largest > 0.0, largest, 1.0)
    rows /= unit
    spread = unit * np.sqrt(np.einsum("ij,ij->j", rows, rows) / len(rows))
    kind = (first.n_features, tuple(first.blocks), partition.path)
    return Survey(counts, sizes, mean, spread, low, high, (kind,))
