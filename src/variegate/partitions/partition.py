"""Partitions (parts of the data), their readers, and partitions of pairs.

A pair is a ground set and its wanted subset; an example is a checked pair with costs.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Protocol, Self

from joblib import hash as hash_of

from variegate.ground_set import GroundSet
from variegate.learning.examples import Example, check_pairs


class PartitionError(Exception):
    """Something is wrong with a partition.

    Parameters
    ----------
    path : str
        The file.
    problem : str
        Follows the name of the file in messages.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)  # both, so that it can be pickled
        self.path = path
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.path} {self.problem}"


class PartitionChangedError(PartitionError):
    """A file has changed since the work began."""


class UnreadablePartitionError(PartitionError):
    """A file cannot be read."""


@dataclass(frozen=True)
class Partition:
    """A file of the data as it was when listed; small and hashable.

    Parameters
    ----------
    path : str
        The file, as every worker can open it.
    n_bytes, modified_ns : int
        Size and time of the last change when the file was listed.
    """

    path: str
    n_bytes: int
    modified_ns: int

    @classmethod
    def from_path(cls, path: str | Path) -> Self:
        """Return the partition of a file as it is now."""
        found = _stat_file(str(path))
        return cls(str(path), found.st_size, found.st_mtime_ns)

    def check_unchanged(self) -> None:
        """Raise an error if the file is gone, or has changed since it was listed.

        Raises
        ------
        PartitionChangedError
            If its size or the time of its last change differ.
        UnreadablePartitionError
            If the system cannot tell them.
        """
        found = _stat_file(self.path)
        if (found.st_size, found.st_mtime_ns) != (self.n_bytes, self.modified_ns):
            raise PartitionChangedError(
                self.path,
                "has changed since the work began: it had "
                f"{self.n_bytes:,} bytes and has {found.st_size:,}, or was written to "
                "later. Nothing was learned from what it holds now; begin again with "
                "files that stay as they are",
            )


def _stat_file(path: str) -> os.stat_result:
    """Return the status of a file, or raise ``UnreadablePartitionError``."""
    try:
        return os.stat(path)
    except OSError as error:
        raise UnreadablePartitionError(
            path, f"cannot be read: {error.strerror or error}"
        ) from error


class Reader(Protocol):
    """Reads a partition; the part of a source that is sent to workers."""

    def read(self, partition: Partition) -> list[Example]:
        """Return the examples of a partition, perhaps none.

        An example's ``position`` is its name in errors, such as its place among those
        of all partitions.  Its costs are those for ``omega=1``: the cost of missing an
        item is multiplied by the model's ``omega``.

        Raises
        ------
        PartitionChangedError
            If the file is not the one that was listed, also after reading.
        UnreadablePartitionError
            If the file cannot be read; the problem follows its name.
        """
        ...


class Source(Reader, Protocol):
    """Examples that lie in partitions; small, and sent to the workers that read.

    A source of many partitions should also have a method ``reader()``.  It returns a
    :class:`Reader` without the list of partitions, which is sent in its place.
    """

    @property
    def key(self) -> str:
        """A hash of settings and partitions; sources of one key have equal examples."""
        ...

    @property
    def partitions(self) -> tuple[Partition, ...]:
        """The partitions, in the order of their examples."""
        ...


def reader_of(source: Source) -> Reader:
    """Return ``source.reader()`` to send to workers, or the source if it has none."""
    make: Any = getattr(source, "reader", None)
    reader: Reader = source if make is None else make()
    return reader


# Pairs of a ground set and a subset ---------------------------------------------------

#: Bytes of pairs that are held in memory; more are written to temporary files.
MEMORY = 2**30

#: Bytes of pairs in one temporary file.
_FILE_BYTES = 2**26

#: A function that returns the pairs of one partition.
Loader = Callable[[], Iterable[tuple[GroundSet, Any]]]


@dataclass(frozen=True)
class PairPartition:
    """A partition of pairs that a function loads."""

    number: int
    load: Loader = field(compare=False)
    #: The position of its first pair among those of all partitions.
    first: int = 0

    @property
    def path(self) -> str:
        """The name in messages, such as "partition 3"."""
        return f"partition {self.number}"

    def check_unchanged(self) -> None:
        """Do nothing: a loader is trusted to return the same pairs each time."""


class PairReader:
    """Loads and checks the pairs of a partition."""

    def reader(self) -> PairReader:
        """Return a reader without the list of partitions, to send to workers."""
        return PairReader()

    def read(self, partition: PairPartition) -> list[Example]:
        """Load a partition as checked examples with costs of 1; refuse other data."""
        try:
            return list(check_pairs(partition.load(), 1.0, partition.first))
        except (OSError, ValueError, EOFError, pickle.UnpicklingError) as error:
            raise UnreadablePartitionError(
                partition.path, f"cannot be loaded: {error}"
            ) from error


class PairPartitions(PairReader):
    """Pairs of a ground set and a subset, in partitions that workers load.

    Parameters
    ----------
    loaders : sequence of callables
        One function without arguments a partition, which returns its
        ``(ground set, subset)`` pairs each time that it is called, such as
        ``functools.partial(read, path)``.  A cluster needs functions that can be
        pickled, and paths that all workers see.
    key : str, optional
        A name that changes with the data.  By default a hash of the pickled loaders:
        give one (such as the times of the files) where a loader may return other pairs
        than before.
    firsts : sequence of int, optional
        The place of the first pair of each partition among all, by which messages name
        ground sets; by default they are counted within their partition.

    Examples
    --------
    >>> from functools import partial
    >>> import variegate as vg
    >>> from variegate.partitions import PairPartitions
    >>> def load(seed):
    ...     data = vg.datasets.make_synthetic(n_sets=10, random_state=seed)
    ...     return zip(data.ground_sets, data.subsets)
    >>> data = PairPartitions([partial(load, seed) for seed in range(3)], key="1")
    >>> model = vg.LargeMarginDPP(kernel=vg.Linear()).fit(data)
    >>> len(data.partitions), len(model.theta_)
    (3, 5)
    """

    def __init__(
        self,
        loaders: Sequence[Loader],
        key: str | None = None,
        *,
        firsts: Sequence[int] | None = None,
    ) -> None:
        for number, loader in enumerate(loaders):
            if not callable(loader):
                raise ValueError(
                    f"loader {number} must be a function without arguments that "
                    f"returns (ground set, subset) pairs, got {loader!r}"
                )
        firsts = [0] * len(loaders) if firsts is None else firsts
        self.partitions: tuple[PairPartition, ...] = tuple(
            map(PairPartition, range(len(loaders)), loaders, firsts)
        )
        self.key = _hash_loaders(loaders) if key is None else key

    def __len__(self) -> int:
        """Return the number of partitions."""
        return len(self.partitions)


def _hash_loaders(loaders: Sequence[Loader]) -> str:
    """Return a hash of pickled loaders; ValueError if they cannot be pickled."""
    try:
        return str(hash_of(list(loaders)))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError(
            f"the loaders cannot be pickled ({error}): use functools.partial of a "
            "function of a module, or give key=, a name that changes with the data"
        ) from error


def hold_pairs(pairs: Iterable[Any], omega: float) -> list[Example] | PairPartitions:
    """Read (ground set, subset) pairs once, as from a generator; return their examples.

    They are a list, or, above ``MEMORY`` bytes of features, partitions in temporary
    files.  Missing an item costs ``omega`` in the list, and 1 in files.  Anything but
    pairs, or none of them, is a ValueError.
    """
    if isinstance(pairs, GroundSet | str | bytes) or not isinstance(pairs, Iterable):
        raise ValueError(
            "without subsets, the first argument must be an iterable of "
            f"(ground set, subset) pairs or PairPartitions, got {pairs!r}"
        )
    examples = check_pairs(pairs, omega)
    held: list[Example] = []
    n_bytes = 0
    for example in examples:
        held.append(example)
        n_bytes += _n_bytes(example.ground_set)
        if n_bytes > MEMORY:
            return SpilledPairs(chain(held, examples))
    if not held:
        raise ValueError("there are no pairs to learn from")
    return held


class SpilledPairs(PairPartitions):
    """Partitions of pairs in temporary files, which are deleted with this object."""

    def __init__(self, examples: Iterable[Example]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="variegate-")
        digest = hashlib.blake2b(digest_size=16)
        loaders: list[Loader] = []
        firsts: list[int] = []
        for part in _split_examples(examples):
            pairs = [(example.ground_set, example.members) for example in part]
            content = pickle.dumps(pairs, protocol=5)
            digest.update(content)
            path = Path(self._folder.name, f"{len(loaders)}.pickle")
            path.write_bytes(content)
            loaders.append(partial(_load_pairs, path))
            firsts.append(part[0].position)
        super().__init__(loaders, digest.hexdigest(), firsts=firsts)


def _split_examples(examples: Iterable[Example]) -> Iterator[list[Example]]:
    """Yield lists of consecutive examples, each of about ``_FILE_BYTES`` bytes."""
    part: list[Example] = []
    n_bytes = 0
    for example in examples:
        part.append(example)
        n_bytes += _n_bytes(example.ground_set)
        if n_bytes > _FILE_BYTES:
            yield part
            part, n_bytes = [], 0
    if part:
        yield part


def _n_bytes(ground_set: GroundSet) -> int:
    """Return the bytes of a ground set's features, 8 for each stored number."""
    matrices = (ground_set.quality, *ground_set.blocks.values())
    return sum(8 * matrix.size for matrix in matrices)


def _load_pairs(path: Path) -> list[tuple[GroundSet, Any]]:
    """Unpickle the (ground set, subset) pairs of a temporary file."""
    pairs: list[tuple[GroundSet, Any]] = pickle.loads(path.read_bytes())
    return pairs
