"""A folder of pairs as partitions: one a shard."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

from variegate.partitions.partition import Partition, UnreadablePartitionError
from variegate.streaming import Example, Examples, PairFolder


@dataclass(frozen=True)
class _ShardReader:
    """Reads the shards of a folder."""

    folder: str

    def read(self, partition: Partition) -> list[Example]:
        """Return the pairs of a shard, checked."""
        partition.check_unchanged()
        (number,) = partition.row_groups or (0,)
        try:
            folder = PairFolder(self.folder)
            first = sum(folder.shard_sizes[:number])
            pairs = Examples(folder, omega=1.0).starting_at(first)
            examples = list(islice(pairs, folder.shard_sizes[number]))
        except ValueError as error:
            raise UnreadablePartitionError(
                partition.path, f"cannot be learned from: {error}"
            ) from error
        partition.check_unchanged()
        return examples


class PairShards:
    """A folder of pairs as a source of examples, each of its shards a partition.

    Parameters
    ----------
    folder : str or Path
        What :func:`variegate.streaming.write_pairs` made.

    Examples
    --------
    >>> import tempfile
    >>> import variegate as vg
    >>> from variegate.partitions import PairShards, PartitionedExamples
    >>> from variegate.streaming import write_pairs
    >>> data = vg.datasets.make_synthetic(n_sets=30, random_state=0)
    >>> pairs = zip(data.ground_sets, data.subsets)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_pairs(folder, pairs, shard_size=10)
    ...     source = PairShards(folder)
    ...     examples = PartitionedExamples(source)
    ...     model = vg.LargeMarginDPP(kernel=vg.Linear()).fit(examples)
    >>> len(source.partitions), len(model.theta_)
    (3, 5)
    """

    def __init__(self, folder: str | Path) -> None:
        pairs = PairFolder(folder)
        self._folder = str(Path(folder).absolute())
        self.partitions: tuple[Partition, ...] = tuple(
            self._partition(number, pairs.shard_files(number))
            for number in range(len(pairs.shard_sizes))
        )

    def _partition(self, number: int, names: list[str]) -> Partition:
        first, *others = (Path(self._folder, name) for name in names)
        beside = tuple(Partition.of(other) for other in others)
        return Partition.of(first, row_groups=(number,), beside=beside)

    @cached_property
    def key(self) -> str:
        """A hash of the files as they were listed."""
        return hashlib.sha256(repr(self.partitions).encode()).hexdigest()

    def reader(self) -> _ShardReader:
        """Return the reader of shards."""
        return _ShardReader(self._folder)

    def read(self, partition: Partition) -> list[Example]:
        """Return the pairs of a shard."""
        return self.reader().read(partition)
