"""The groups of one partition as numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from variegate._typing import AnyArray, BoolArray, FloatArray, IntArray
from variegate.estimator import BoostedQuality
from variegate.estimator.sequential import conditional_segments
from variegate.ground_set import GroundSet
from variegate.learning.examples import Example
from variegate.tables.cells import Batch
from variegate.tables.checks import check_no_missing, check_unique, read_costs
from variegate.tables.counts import given_rows
from variegate.tables.encoding import Encoding
from variegate.tables.errors import TableError
from variegate.tables.partitioning import GroupPartition
from variegate.tables.rows import GroupIndex, RowReader


@dataclass(frozen=True, eq=False)
class Group:
    """The rows of one group, in the order of the table.

    ``rows`` are their numbers in the table.  Of N rows, the quality is an array of
    shape (N, d), and each block of the similarity, if it has features of its own, of
    shape (N, p); labels, costs, relevance and the mask of given rows are of shape (N,).
    """

    name: Any
    number: int
    rows: IntArray
    quality: FloatArray
    blocks: dict[str, FloatArray]
    chosen: BoolArray | None
    costs: FloatArray | None
    relevance: FloatArray | None
    #: By column, how many rows have a category that is not in the training rows.
    unknown: dict[str, int] = field(default_factory=dict)
    #: The names of the subtopics of each row.
    subtopics: list[tuple[str, ...]] | None = None
    #: For each column that limits go by, its values as numbers, (N,).
    per: tuple[IntArray, ...] = ()
    #: Which rows are there already; None without a column of them.
    given: BoolArray | None = None
    #: The segment of each row, numbers that rise with the first rows of segments, (N,);
    #: None for a group that is not a sequence.
    segment: IntArray | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def candidates(self) -> IntArray:
        """The positions of the rows that are not given."""
        if self.given is None:
            return np.arange(len(self))
        return np.flatnonzero(~self.given)

    @cached_property
    def ground_set(self) -> GroundSet:
        """The group as a ground set, in which a single block has the name ""."""
        return self.take(slice(None))

    def take(self, rows: Any) -> GroundSet:
        """Return rows (positions, mask or slice) as a ground set, with costs if any."""
        blocks = {name: block[rows] for name, block in self.blocks.items()}
        if len(blocks) == 1:
            blocks = {"": next(iter(blocks.values()))}
        costs = None if self.costs is None else self.costs[rows]
        given = None if self.given is None else np.flatnonzero(self.given[rows])
        return GroundSet.from_checked_arrays(
            self.quality[rows], blocks or None, costs, given
        )

    def segment_order(self) -> tuple[IntArray, list[int]]:
        """Return all positions by segment, and where segments begin in them, and N.

        Within a segment, rows keep their order; without segments, all are in one.
        """
        if self.segment is None:
            return np.arange(len(self)), [0, len(self)]
        order = np.argsort(self.segment, kind="stable")
        starts = np.flatnonzero(np.diff(self.segment[order], prepend=-1))
        return order, [*starts.tolist(), len(self)]

    def take_beside(self, rows: IntArray, earlier: IntArray) -> Group:
        """Return the group of ``earlier`` rows, which are given, and then ``rows``.

        Both are positions.
        """
        both = np.concatenate([earlier, rows])
        given = np.zeros(len(both), dtype=bool)
        if self.given is not None:
            given = self.given[both]
        given[: len(earlier)] = True

        def take(values: Any) -> Any:
            """Return the values of the rows; None for None."""
            return None if values is None else values[both]

        return replace(
            self,
            rows=self.rows[both],
            quality=self.quality[both],
            blocks={name: block[both] for name, block in self.blocks.items()},
            chosen=take(self.chosen),
            costs=take(self.costs),
            relevance=take(self.relevance),
            unknown={},
            subtopics=None,
            per=tuple(map(take, self.per)),
            given=given,
            segment=None,
        )

    def examples(self, memory: int) -> Iterator[tuple[GroundSet, IntArray]]:
        """Yield ground sets to learn from, with the positions of rows labelled 1.

        They are the group or, of a sequence, each segment beside the rows labelled 1 of
        the last ``memory`` segments.
        """
        if self.segment is None:
            yield self.ground_set, self.wanted()
            return
        order, bounds = self.segment_order()
        wanted = np.flatnonzero(np.isin(order, self.wanted()))
        yield from conditional_segments(self.take(order), wanted, bounds, memory)

    def wanted(self) -> IntArray:
        """Return the positions of rows labelled 1; refuse a group without labels."""
        if self.chosen is None:
            raise TableError("there are no labels to compare with")
        return np.flatnonzero(self.chosen)

    def embeddings(self) -> FloatArray:
        """Return all similarity features (N, p); without any, the quality features."""
        blocks = list(self.blocks.values()) or [self.quality]
        return blocks[0] if len(blocks) == 1 else np.column_stack(blocks)


@dataclass(frozen=True, eq=False)
class EncodedRows:
    """The rows of a partition as numbers, those of a group one after another."""

    names: list[Any]
    #: Where groups begin and, at last, the number of rows.
    bounds: IntArray
    #: All rows, as if they were one group; similarities may have single precision.
    every: Group
    #: By column, which rows have a category that is not in the training rows.
    unknown: dict[str, BoolArray]

    @property
    def n_bytes(self) -> int:
        """The bytes of the features."""
        return sum(part.nbytes for _, part in self._features())

    def _features(self) -> list[tuple[str, AnyArray]]:
        """Return pairs of "quality" or "similarity" and features (n_rows, d)."""
        blocks = [("similarity", block) for block in self.every.blocks.values()]
        return [("quality", self.every.quality), *blocks]

    def refuse_infinite(self, flags: BoolArray) -> None:
        """Refuse infinite or NaN features in groups with a true flag, (n_groups,)."""
        is_wanted = np.repeat(flags, np.diff(self.bounds))
        for role, features in self._features():
            bad = ~np.isfinite(features).all(axis=1) & is_wanted
            if bad.any():
                row = self.every.rows[int(np.argmax(bad))] + 1
                raise TableError(
                    f"row {row} has a {role} feature that is not a finite number: its "
                    "cells are too far from those that features were learned from"
                )

    def group(self, place: int, number: int) -> Group:
        """Return a copy of the group at index ``place``, ``number`` in the table."""
        part = slice(*self.bounds[place : place + 2].tolist())

        def cut(values: Any) -> Any:
            """Return a copy of the rows of the group; None for None."""
            return None if values is None else values[part].copy()

        every = self.every
        return Group(
            self.names[place],
            number,
            cut(every.rows),
            cut(every.quality),
            {n: np.array(b[part], dtype=np.float64) for n, b in every.blocks.items()},
            cut(every.chosen),
            cut(every.costs),
            cut(every.relevance),
            {n: int(rows[part].sum()) for n, rows in self.unknown.items()},
            cut(every.subtopics),
            tuple(numbers[part].copy() for numbers in every.per),
            cut(every.given),
            cut(every.segment),
        )


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """Trees by fold, fitted to groups of other folds.

    ``fold`` is that of every group of the table, by number; -1 for groups that are not
    learned from, which are scored by trees fitted to all folds.
    """

    models: tuple[BoostedQuality, ...]
    fold: IntArray


@dataclass(eq=False)
class GroupReader:
    """Reads the groups of partitions; sent to workers.

    Labels of all rows may be given in place of a column.  In the process that made it,
    a reader keeps what it has encoded, up to ``memory`` bytes.
    """

    rows: RowReader
    encoding: Encoding
    labels: BoolArray | None = None
    memory: int = 0
    #: Trees for the boosted log-odds of groups that are learned from.
    out_of_fold: OutOfFold | None = None
    #: Segments whose rows labelled 1 are given to the next one.
    segment_memory: int = 1
    _held: dict[int, EncodedRows] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for workers, which keep no encoded rows."""
        return vars(self) | {"memory": 0, "_held": {}}

    def read(self, partition: GroupPartition) -> list[Example]:
        """Return the groups that a partition selects as examples with costs of 1.

        Segments of a group have its position.
        """
        return [
            Example(position, *example, 1.0, 1.0)
            for position, group in enumerate(
                self.groups(partition), partition.first_example
            )
            for example in group.examples(self.segment_memory)
        ]

    def groups(self, partition: GroupPartition) -> Iterator[Group]:
        """Yield the groups that a partition selects; refuse infinite features."""
        encoded, flags = self._read_encoded(partition), partition.flags()
        encoded.refuse_infinite(flags)
        for place in np.flatnonzero(flags).tolist():
            yield encoded.group(place, partition.first_group + place)

    def release(self) -> None:
        """Drop the encoded rows that are held in memory."""
        self._held.clear()

    def _read_encoded(self, partition: GroupPartition) -> EncodedRows:
        """Return the encoded rows of a partition; keep them if ``memory`` allows it."""
        known = self._held.get(partition.first_group)
        if known is None:
            known = self._encode(partition)
            n_bytes = sum(one.n_bytes for one in self._held.values())
            if n_bytes + known.n_bytes <= self.memory:
                self._held[partition.first_group] = known
        return known

    def _encode(self, partition: GroupPartition) -> EncodedRows:
        """Read a partition as numbers; refuse bad cells and repeated items."""
        columns, encoding = self.rows.columns, self.encoding
        label = columns.label if self.labels is None else None
        parts = (columns.group, label, columns.item, columns.cost, columns.relevance)
        features = {column.name: column for column in encoding.columns()}
        also = (columns.given, columns.segment, columns.subtopics, *columns.per)
        batch = self.rows.read_all(partition.rows, *parts, *also, *features)
        index = GroupIndex()
        numbers = index.numbers(batch, columns.group)
        partition.check_groups(index)
        rows = partition.first_row + np.arange(len(batch))
        rows = rows if batch.numbers is None else np.asarray(batch.numbers)
        if columns.item is not None:
            check_unique(batch, columns.item, numbers, index)
        relevance = None
        if columns.relevance is not None:
            cells = batch[columns.relevance]
            relevance = encoding.fill_missing(cells.name, cells.numbers())
            relevance = check_no_missing(relevance, cells, "relevance")
        quality = encoding.encode(encoding.quality, batch)
        blocks = {
            name: encoding.encode(block, batch).astype(_feature_dtype(block))
            for name, block in encoding.blocks.items()
        }
        if encoding.boosting is not None:
            blocks = blocks or {"": quality}
            scores = self._boosted_scores(quality, partition.first_group + numbers)
            quality = np.column_stack([quality, scores])
        every = Group(
            "all rows",
            -1,
            rows,
            quality,
            blocks,
            batch.flags(label, self.labels),
            None if columns.cost is None else read_costs(batch[columns.cost]),
            relevance,
            subtopics=(
                None if columns.subtopics is None else batch[columns.subtopics].names()
            ),
            per=tuple(GroupIndex().numbers(batch, name) for name in columns.per),
            given=given_rows(batch, columns.given),
            segment=_segment_numbers(batch, columns.segment, numbers),
        )
        unknown = {n: column.is_unknown(batch[n]) for n, column in features.items()}
        return EncodedRows(
            index.names,
            np.flatnonzero(np.diff(numbers, prepend=-1, append=-1)),
            every,
            {name: rows for name, rows in unknown.items() if rows.any()},
        )

    def _boosted_scores(self, quality: FloatArray, groups: IntArray) -> FloatArray:
        """Return log-odds (n_rows,), out of fold in groups that were learned from.

        ``groups`` are the group numbers of the rows.  Rows with a feature that is not
        finite, which are refused later, have 0.
        """
        scores = np.zeros(len(quality))
        is_finite = np.isfinite(quality).all(axis=1)
        fold = np.full(len(groups), -1)
        models = [self.encoding.boosting]
        if self.out_of_fold is not None:
            fold = self.out_of_fold.fold[groups]
            models = [*self.out_of_fold.models, *models]
        for number in np.unique(fold[is_finite]):  # -1: the last, fitted to all folds
            rows = is_finite & (fold == number)
            scores[rows] = models[number].scores(quality[rows])
        return scores


def _segment_numbers(
    batch: Batch, segment: str | None, groups: IntArray
) -> IntArray | None:
    """Return the number of the first row in the segment of each row, (n_rows,).

    ``groups`` are the group numbers of the rows.  None without a column ``segment``.
    """
    if segment is None:
        return None
    index = GroupIndex()
    names = index.numbers(batch, segment)
    pairs = groups * len(index) + names
    _, first, place = np.unique(pairs, return_index=True, return_inverse=True)
    return np.asarray(first[place])


def _feature_dtype(block: Sequence[Any]) -> str:
    """Return the dtype of the features of a block, a sequence of ``FeatureColumn``.

    Vectors of unit length keep single precision if all columns are such ("direction");
    other features may overflow it in rows far from those of the training.
    """
    is_single = all(c.is_single and c.kind == "direction" for c in block)
    return "f4" if is_single else "f8"
