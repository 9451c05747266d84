"""Examples in many files: what an estimator's ``fit`` takes in place of lists."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from joblib import hash as hash_of

from variegate._validation import check_count
from variegate._version import __version__
from variegate.files.atomic import plain
from variegate.files.run_store import RunStore
from variegate.ground_set import GroundSet
from variegate.kernels import Kernel
from variegate.kernels.known import KnownInPart, Looks, SomeRows
from variegate.partitions.cache import Limits
from variegate.partitions.engine import Engine, Serial
from variegate.partitions.partition import Partition
from variegate.partitions.source import Reader, Source, reader_of
from variegate.partitions.survey import Survey, survey_of
from variegate.partitions.tree import add_in_tree
from variegate.streaming import Example

__all__ = ["PartitionedExamples"]


class PartitionedExamples:
    """Examples that lie in partitions, and the engine that learns from them.

    Given to :meth:`variegate.LargeMarginDPP.fit` in place of lists, it leads to the
    same parameters but for rounding, and to the same bits whatever the engine.

    Parameters
    ----------
    source : Source
        The partitions, and how they are read.
    engine : Engine, optional
        What carries out the work: this process if not given.
    journal : RunStore, optional
        Where answers are written down, for a run that goes on after it was killed; in
        memory if not given.
    first_passes : int, optional
        Passes over the data in steps of Adam, each on a batch of partitions, before the
        solver begins.  They come near a minimum long before the solver has seen all of
        the data as often as it needs.  If not given, one for more than 10,000,000
        examples, which must be read for every iteration, and none for fewer.
    limits : Limits
        What a worker may keep between iterations.

    Attributes
    ----------
    survey : Survey
        Read when it is first asked for.
    """

    def __init__(
        self,
        source: Source,
        engine: Engine | None = None,
        *,
        journal: RunStore | None = None,
        first_passes: int | None = None,
        limits: Limits | None = None,
    ) -> None:
        if first_passes:
            check_count("first_passes", first_passes)
        if not source.partitions:
            raise ValueError("there are no files to learn from")
        self.source = source
        self.engine: Engine = Serial() if engine is None else engine
        self.journal = RunStore() if journal is None else journal
        self.first_passes = first_passes
        self.limits = Limits() if limits is None else limits

    def __len__(self) -> int:
        return len(self.survey.sizes)

    def __repr__(self) -> str:
        return f"<PartitionedExamples in {len(self.source.partitions)} partitions>"

    def with_journal(
        self, path: str | Path, settings: Mapping[str, Any]
    ) -> PartitionedExamples:
        """Return the same examples with a journal in a file.

        ``settings`` are plain values that tell the run from others on the same data.
        """
        other = copy.copy(self)
        other.journal = RunStore(path, {**settings, **self.description()})
        return other

    def description(self) -> dict[str, Any]:
        """Return, as plain values, what tells these examples from others."""
        return {
            "variegate": __version__,
            "n_partitions": len(self.source.partitions),
            "data": self.source.key,
        }

    @cached_property
    def reader(self) -> Reader:
        """What is sent to workers."""
        return reader_of(self.source)

    @cached_property
    def survey(self) -> Survey:
        """Sizes and features of all examples."""

        def make() -> bytes:
            # Added up here: with a number for every example, the sum of all could be
            # more than a worker has room for.
            parts = self.engine.map(
                partial(survey_of, self.reader), self.source.partitions
            )
            return add_in_tree(_together, parts).to_bytes()

        key = f"survey {self.source.key}"
        survey = Survey.from_bytes(self.journal.remember(key, make))
        survey.check()
        return survey

    def settle(self, kernel: Kernel) -> Kernel:
        """Return the kernel, fitted as it would be to all ground sets in one list."""

        def make() -> bytes:
            fitted = kernel.fit(self._looked_at(kernel.looks_at(self.survey.sizes)))
            return json.dumps(fitted.get_state(), default=plain).encode()

        key = f"kernel {hash_of([self.source.key, kernel])}"
        state = json.loads(self.journal.remember(key, make))
        kernel.set_state(state)
        return kernel

    def _looked_at(self, looks: Looks) -> Sequence[GroundSet]:
        """Bring here what a kernel looks at."""
        ends = np.cumsum(self.survey.n_examples).tolist()
        places = np.array(sorted(looks), dtype=np.int64)
        items: list[tuple[Partition, Looks]] = []
        for partition, end, n in zip(
            self.source.partitions, ends, self.survey.n_examples.tolist(), strict=True
        ):
            here = places[(places >= end - n) & (places < end)].tolist()
            items.append((partition, {p - (end - n): looks[p] for p in here}))
        wanted = [item for item in items if item[1]]
        parts = self.engine.map(partial(_look, self.reader), wanted)
        found = [one for part in parts for one in part]
        known = dict(zip(places.tolist(), found, strict=True))
        return KnownInPart(self.survey.sizes, known)

    def head(self) -> Iterator[Example]:
        """Yield a few examples of every partition, brought here when their turn comes.

        Of the first partition these are the first examples of all.
        """
        for partition in self.source.partitions:
            for examples in self.engine.map(partial(_head, self.reader), [partition]):
                yield from examples


#: Examples of a partition that are brought here to look at.
_N_HEAD = 50


def _head(reader: Reader, partition: Partition) -> list[Example]:
    return copy.deepcopy(reader.read(partition)[:_N_HEAD])


def _together(one: Survey, other: Survey) -> Survey:
    return one + other


def _look(reader: Reader, item: tuple[Partition, Looks]) -> list[GroundSet | SomeRows]:
    """Return what is looked at of one partition.

    A copy: as views of its arrays, a few ground sets would hold all of the partition in
    the memory of a worker until they are fetched.
    """
    partition, looks = item
    examples = reader.read(partition)
    return copy.deepcopy(
        [
            examples[place].ground_set
            if rows is None
            else SomeRows(examples[place].ground_set, rows)
            for place, rows in looks.items()
        ]
    )
