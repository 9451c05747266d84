"""The groups of a table, read partition by partition where an engine works."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from hashlib import sha256
from typing import TypeVar

import numpy as np
import pyarrow as pa

from variegate._progress import StageProgress, ignore
from variegate._typing import BoolArray, IntArray
from variegate.application.table_defaults import MEMORY
from variegate.estimator.sequential import Segments
from variegate.ground_set import GroundSet, GroundSetError
from variegate.learning.examples import Example
from variegate.partitions import Engine, Serial
from variegate.partitions.engine import is_local
from variegate.tables.cells import abbreviate_value
from variegate.tables.encoded import Group, GroupReader, OutOfFold
from variegate.tables.encoding import Encoding
from variegate.tables.errors import TableError
from variegate.tables.partitioning import GroupPartition
from variegate.tables.rows import RowReader, Rows, map_rows
from variegate.tables.survey import Survey

R = TypeVar("R")


class Groups:
    """The groups of a table, in the order of their first rows.

    They are read on demand by the workers of the engine; by default in this process,
    which keeps up to ``memory`` bytes of them.
    """

    def __init__(
        self,
        survey: Survey,
        encoding: Encoding,
        labels: BoolArray | None = None,
        *,
        engine: Engine | None = None,
        memory: int = MEMORY,
        out_of_fold: OutOfFold | None = None,
        segment_memory: int = 1,
    ) -> None:
        self.survey = survey
        self.encoding = encoding
        self.engine = Serial() if engine is None else engine
        self.reader = GroupReader(
            survey.reader, encoding, labels, memory, out_of_fold, segment_memory
        )

    def __len__(self) -> int:
        return len(self.survey)

    def without_boosting(self) -> Groups:
        """Return the same groups without boosted log-odds among their features."""
        return Groups(
            self.survey,
            replace(self.encoding, boosting=None),
            self.reader.labels,
            engine=self.engine,
            memory=self.reader.memory,
        )

    def threads(self, n_jobs: int | None) -> int | None:
        """Return ``n_jobs`` where this process reads groups, 1 for other workers."""
        return n_jobs if is_local(self.engine) else 1

    def __iter__(self) -> Iterator[Group]:
        return self.only(np.arange(len(self)))

    def only(self, numbers: IntArray) -> Iterator[Group]:
        """Yield the groups with these numbers, in increasing order."""
        for groups in self.map(list, numbers):
            yield from groups

    def map(
        self,
        function: Callable[[Iterable[Group]], R],
        numbers: IntArray,
        progress: StageProgress = ignore,
    ) -> Iterator[R]:
        """Yield ``function(groups)`` for each partition that has some of these groups.

        It gets an iterable of those with these numbers, in increasing order.
        ``progress`` counts groups, or partitions where other processes read them.
        """
        parts = self.survey.restricted_partitions(np.sort(numbers))
        some = [part for part in parts if part.flags().any()]
        work = partial(_apply_to_partition, function=function, reader=self.reader)
        return map_rows(self.engine, work, some, progress, len(numbers))

    def sample(
        self, numbers: IntArray, seed: int, n_groups: int, n_rows: int
    ) -> IntArray:
        """Draw at most ``n_groups`` of the group numbers; return them sorted.

        Their groups have at most ``n_rows`` rows together, unless one alone has more.
        """
        drawn = np.random.default_rng(seed).permutation(numbers)[:n_groups]
        n_drawn = np.searchsorted(np.cumsum(self.survey.sizes[drawn]), n_rows, "right")
        return np.sort(drawn[: max(1, int(n_drawn))])

    def examples(self, numbers: IntArray) -> tuple[list[GroundSet], list[IntArray]]:
        """Return ground sets of the groups, and the positions of rows labelled 1."""
        some = list(self.only(numbers))
        return [group.ground_set for group in some], [group.wanted() for group in some]

    def segments(self, numbers: IntArray) -> Segments:
        """Return ground sets to learn from, of groups or their segments.

        ``sequence`` is the number of the group that each is from.
        """
        found: list[tuple[GroundSet, IntArray]] = []
        sequence: list[int] = []
        for group in self.only(numbers):
            some = list(group.examples(self.reader.segment_memory))
            found += some
            sequence += [group.number] * len(some)
        sets, wanted = [one for one, _ in found], [subset for _, subset in found]
        return Segments(sets, wanted, np.array(sequence, dtype=np.intp))

    def read_texts(
        self, rows: IntArray, show: Sequence[str]
    ) -> dict[int, tuple[str, ...]]:
        """Return the cells of columns ``show`` as short texts, by number of the row.

        ``rows`` are sorted.  Without columns, "row 1" stands for the first row's cells.
        """
        if not show:
            return {int(row): (f"row {row + 1}",) for row in rows}
        sources = self.survey.sources
        ends = [first for _, first in sources[1:]] + [self.survey.n_rows]
        items = []
        for (source, first), end in zip(sources, ends, strict=True):
            low, high = np.searchsorted(rows, [first, end]).tolist()
            if high > low:
                items.append((source, first, rows[low:high]))
        read = partial(_read_texts, reader=self.survey.reader, show=tuple(show))
        found: dict[int, tuple[str, ...]] = {}
        for texts in self.engine.map(read, items):
            found |= texts
        return found

    def source(self, numbers: IntArray) -> GroupSource:
        """Return the groups with these sorted numbers as a source to learn from."""
        partitions = tuple(self.survey.restricted_partitions(numbers))
        return GroupSource(partitions, self.reader, self.survey.key)

    @contextmanager
    def name_in_errors(self, numbers: IntArray) -> Iterator[None]:
        """Raise GroundSetErrors of the ``with`` block as TableErrors that name a group.

        Ground set ``i`` of the block is group ``numbers[i]``.
        """
        try:
            yield
        except GroundSetError as error:
            name = self.survey.name(numbers[error.position])
            part = "" if self.survey.columns.segment is None else "a segment of "
            raise TableError(
                f"{part}group {name!r}: {reword_for_rows(error.problem)}"
            ) from error


@dataclass(frozen=True, eq=False)
class GroupSource:
    """Groups as examples, a :class:`variegate.partitions.Source`.

    ``table`` is a hash of the table, by which ``key`` tells tables from one another.
    """

    partitions: tuple[GroupPartition, ...]
    groups: GroupReader
    table: str

    @cached_property
    def key(self) -> str:
        """A hash of the table, of the groups, and of their features."""
        columns = asdict(self.groups.rows.columns)
        memory = self.groups.segment_memory
        digest = sha256(repr((self.table, columns, memory)).encode())
        for column in self.groups.encoding.columns():
            digest.update(repr(column).encode())
            digest.update(column.mean.tobytes() + column.scale.tobytes())
        if self.groups.out_of_fold is not None:
            for model in self.groups.out_of_fold.models:
                digest.update(repr(model.encode()).encode())
            digest.update(self.groups.out_of_fold.fold.tobytes())
        for partition in self.partitions:
            digest.update(partition.flags().tobytes())
        return digest.hexdigest()

    def reader(self) -> GroupReader:
        """Return the reader of partitions, which is sent to workers."""
        return self.groups

    def read(self, partition: GroupPartition) -> list[Example]:
        """Return the groups that a partition selects as examples."""
        return self.groups.read(partition)


def _apply_to_partition(
    partition: GroupPartition,
    function: Callable[[Iterable[Group]], R],
    reader: GroupReader,
    told: Callable[[int], object] = ignore,
) -> R:
    """Return ``function(groups)`` of a partition; call ``told(1)`` after each group."""

    def groups() -> Iterator[Group]:
        """Yield the groups that the partition selects; report each after its use."""
        for group in reader.groups(partition):
            yield group
            told(1)

    return function(groups())


def _read_texts(
    item: tuple[Rows, int, IntArray], reader: RowReader, show: tuple[str, ...]
) -> dict[int, tuple[str, ...]]:
    """Return the texts of columns ``show`` by row number in the table.

    ``item`` is a source, the table number of its first row, and sorted row numbers.
    """
    source, start, rows = item
    found: dict[int, tuple[str, ...]] = {}
    for batch in reader.batches([source], *show):
        low, high = np.searchsorted(rows, [start, start + len(batch)])
        here = batch.rows.take(pa.array(rows[low:high] - start))
        columns = [
            map(abbreviate_value, here.column(name).to_pylist()) for name in show
        ]
        found |= zip(rows[low:high].tolist(), zip(*columns, strict=True), strict=True)
        start += len(batch)
        if high == len(rows):
            break
    return found


def reword_for_rows(problem: str) -> str:
    """Return a problem of a ground set in terms of rows, counted from 1."""
    problem = re.sub(
        r"\bitem (\d+)\b", lambda found: f"its row {int(found[1]) + 1}", problem
    )
    problem = problem.replace("is in the subset", "was chosen")
    for word, meant in (("ground set", "group"), ("item", "row")):
        problem = re.sub(rf"\b{word}(s?)\b", rf"{meant}\1", problem)
    return problem
