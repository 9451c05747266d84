"""The groups of a folder as examples to learn from."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np

from variegate._typing import AnyArray, BoolArray, FloatArray
from variegate.ground_set import GroundSet
from variegate.partitions import Partition
from variegate.streaming import Example
from variegate.tables.encoding import Encoding
from variegate.tables.folder.parts import FolderPartition, Reader, in_file
from variegate.tables.groups import Groups, field_of
from variegate.tables.model_file import encode_encoding
from variegate.tables.table import TableError

__all__ = ["ExampleReader", "FolderSource"]


@dataclass(frozen=True, eq=False)
class ExampleReader:
    """Reads the groups of a file as examples; what workers are sent."""

    reader: Reader
    encoding: Encoding

    def read(self, partition: Partition) -> list[Example]:
        """Return the groups of a file that are learned from.

        Their positions are those among all that are learned from.
        """
        assert isinstance(partition, FolderPartition)  # nobody makes others
        groups = self.reader.groups(partition, self.encoding)
        if groups is None:
            return []
        flags, first = partition.flags(), partition.first_example
        found: list[Example] = []
        with in_file(partition):
            if self.reader.columns.item is not None:
                _refuse_repeated(groups)
            for records in groups.shards():
                found += _examples(records, self.encoding, flags, first + len(found))
        return found


def _refuse_repeated(groups: Groups) -> None:
    """Refuse two rows of a group with the same item."""
    for records in groups.shards():
        order = np.lexsort((records["item"], records["group"]))
        items, numbers = records["item"][order], records["group"][order]
        if ((np.diff(items) == 0) & (np.diff(numbers) == 0)).any():
            for _ in groups:  # which says where
                pass


def _examples(
    records: AnyArray, encoding: Encoding, flags: BoolArray, position: int
) -> list[Example]:
    """Return records, sorted by group, as examples of the groups that are meant.

    All features are checked and copied at once: the time a group takes is that of a
    few slices.
    """
    numbers = records["group"]
    firsts = np.flatnonzero(np.diff(numbers, prepend=-1))
    ends = np.append(firsts[1:], len(records))
    is_meant = flags[numbers]
    quality = _features(records, "quality", is_meant)
    blocks = {
        name: _features(records, field_of(name), is_meant) for name in encoding.blocks
    }
    if len(blocks) == 1:  # goes without a name
        blocks = {"": next(iter(blocks.values()))}
    chosen = np.flatnonzero(records["label"])
    bounds = np.searchsorted(chosen, [firsts, ends])
    wanted = np.flatnonzero(is_meant[firsts]).tolist()
    places = np.array([firsts, ends, *bounds]).T.tolist()
    found = []
    for place, group in enumerate(wanted, position):
        first, end, low, high = places[group]
        ground_set = GroundSet.of_checked(
            quality[first:end],
            {name: block[first:end] for name, block in blocks.items()} or None,
        )
        members = chosen[low:high] - first
        found.append(Example(place, ground_set, members, 1.0, 1.0))
    return found


def _features(records: AnyArray, name: str, is_meant: BoolArray) -> FloatArray:
    """Return features of all rows as a read-only matrix."""
    matrix = np.array(records[name], dtype=np.float64, order="C")
    bad = ~np.isfinite(matrix).all(axis=1) & is_meant
    if bad.any():
        row = records["row"][int(np.argmax(bad))] + 1
        raise TableError(
            f"row {row} has a {name.split()[0]} feature that is no finite number: its "
            "cells are too far from those that features were learned from"
        )
    matrix.flags.writeable = False
    return matrix


@dataclass(frozen=True, eq=False)
class FolderSource:
    """Examples in the files of a folder, a :class:`variegate.partitions.Source`.

    Parameters
    ----------
    partitions : tuple of FolderPartition
        Each with the groups of it that are learned from.
    examples : ExampleReader
    """

    partitions: tuple[FolderPartition, ...]
    examples: ExampleReader

    @cached_property
    def key(self) -> str:
        """A hash of the files as they were listed, of groups and of features."""
        encoding = self.examples.encoding
        columns = asdict(self.examples.reader.columns)
        said = [columns, encode_encoding(encoding), encoding.missing]
        digest = hashlib.sha256(json.dumps(said).encode())
        for partition in self.partitions:
            digest.update(repr(partition).encode())
        return digest.hexdigest()

    def reader(self) -> ExampleReader:
        """Return what workers are sent in place of all this."""
        return self.examples

    def read(self, partition: Partition) -> list[Example]:
        """Return the groups of a file that are learned from."""
        return self.examples.read(partition)
