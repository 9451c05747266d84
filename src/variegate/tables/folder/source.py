"""The groups of a folder as examples to learn from."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import cached_property

from variegate.partitions import Partition
from variegate.streaming import Example
from variegate.tables.encoding import Encoding
from variegate.tables.folder.parts import FolderPartition, Reader
from variegate.tables.model_file import encode_encoding

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
        groups = self.reader.wanted(partition, self.encoding)
        return [
            Example(position, group.ground_set, group.wanted(), 1.0, 1.0)
            for position, group in enumerate(groups, partition.first_example)
        ]


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
