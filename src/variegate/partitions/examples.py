"""Examples in partitions, which an estimator's ``fit`` takes in place of lists.

Learning needs the number, sizes and spread of all examples first: their survey.
Surveys of partitions are added up, so each partition is read once, on any worker.  The
coordinates of solvers follow from the whole, the same but for rounding as those of
:mod:`variegate.learning.quality` on one machine.
"""

from __future__ import annotations

import copy
import json
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from joblib import hash as hash_of

from variegate._typing import AnyArray, IntArray
from variegate._validation import check_count
from variegate._version import __version__
from variegate.files.atomic import as_plain_value
from variegate.files.run_store import RunStore, arrays_from_bytes, arrays_to_bytes
from variegate.ground_set import GroundSet, check_same_features, name_position_in_errors
from variegate.kernels import Kernel
from variegate.kernels.known import Looks, PartlyLoaded, SomeRows
from variegate.learning.examples import Example
from variegate.learning.quality import FeatureCoordinates, FeatureMoments
from variegate.partitions.cache import Limits
from variegate.partitions.engine import Engine, Serial, tree_reduce
from variegate.partitions.partition import (
    Partition,
    PartitionError,
    Reader,
    Source,
    reader_of,
)


@dataclass(frozen=True, eq=False)
class ExampleSurvey:
    """Sizes and features of the examples in some partitions, one after another."""

    #: The number of examples in each partition.
    n_examples: IntArray
    #: The number of items in the ground set of every example.
    sizes: AnyArray
    #: Moments of the quality features of all items; None without examples.
    features: FeatureMoments | None
    #: For each kind of ground sets (all should be of one), the number of quality
    #: features, the names of similarity blocks, and the path of the first partition.
    kinds: tuple[tuple[int, tuple[str, ...], str], ...]

    def __add__(self, other: ExampleSurvey) -> ExampleSurvey:
        """Return the survey of the partitions of both, this one's first."""
        n_examples = np.concatenate([self.n_examples, other.n_examples])
        sizes = np.concatenate([self.sizes, other.sizes])
        here = {kind[:2] for kind in self.kinds}
        kinds = self.kinds + tuple(k for k in other.kinds if k[:2] not in here)
        if not self.kinds or not other.kinds or len(kinds) > 1:
            # One of them holds no examples; or they do not fit, and will be refused.
            known = self if self.kinds else other
            return replace(known, n_examples=n_examples, sizes=sizes, kinds=kinds)
        assert self.features is not None
        assert other.features is not None
        features = self.features + other.features
        return ExampleSurvey(n_examples, sizes, features, kinds)

    def check(self) -> None:
        """Raise ValueError without examples, PartitionError where features differ."""
        if not self.kinds:
            raise ValueError("there are no examples in any of the partitions")
        first, *others = self.kinds
        for n_features, blocks, path in others:
            raise PartitionError(
                path,
                f"has ground sets with {n_features} quality features and the "
                f"similarity blocks {', '.join(map(repr, blocks))}, but {first[2]} "
                f"has {first[0]} and {', '.join(map(repr, first[1]))}",
            )

    def coordinates(self, fit_intercept: bool) -> FeatureCoordinates:
        """Return how solvers scale, and with an intercept center, quality features."""
        assert self.features is not None, "there are examples: see check"
        return self.features.coordinates(fit_intercept)

    # In a run store ---------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Return the survey as bytes for a run store."""
        features = {} if self.features is None else vars(self.features)
        kinds = json.dumps(self.kinds)
        counts = {"n_examples": self.n_examples, "sizes": self.sizes}
        return arrays_to_bytes(kinds=kinds, **counts, **features)

    @classmethod
    def from_bytes(cls, content: bytes) -> ExampleSurvey:
        """Return the survey that :meth:`to_bytes` encoded."""
        arrays = arrays_from_bytes(content)
        counts = arrays.pop("n_examples"), arrays.pop("sizes")
        kinds = json.loads(str(arrays.pop("kinds")))
        features = None
        if arrays:
            features = FeatureMoments(int(arrays.pop("n_items")), **arrays)
        return cls(*counts, features, tuple((n, tuple(b), p) for n, b, p in kinds))


def survey_partition(reader: Reader, partition: Partition) -> ExampleSurvey:
    """Read a partition; return its sizes and moments, or refuse unlike ground sets."""
    examples = reader.read(partition)
    ground_sets = [example.ground_set for example in examples]
    counts = np.array([len(ground_sets)], dtype=np.int64)
    sizes = np.array([len(ground_set) for ground_set in ground_sets], dtype=np.int32)
    if not ground_sets:
        return ExampleSurvey(counts, sizes, None, ())
    first: GroundSet = ground_sets[0]
    names, width = first.blocks.keys(), first.n_features
    for example in examples:
        here = example.ground_set
        if here.quality.shape[1] != width or here.blocks.keys() != names:
            with name_position_in_errors(example.position):
                check_same_features(here, first)
    kind = (first.n_features, tuple(first.blocks), partition.path)
    return ExampleSurvey(
        counts, sizes, FeatureMoments.from_ground_sets(ground_sets), (kind,)
    )


class PartitionedExamples:
    """Examples that lie in partitions, and the engine that learns from them.

    Given to :meth:`variegate.LargeMarginDPP.fit` in place of lists, it leads to the
    same parameters but for rounding, and to the same bits with any engine.

    Parameters
    ----------
    source : Source
        The partitions, and how they are read.
    engine : Engine, optional
        Carries out the work: this process if not given.
    store : RunStore, optional
        Remembers finished steps, from which a run that was killed resumes; in memory
        if not given.
    first_passes : int, optional
        Passes over the data in steps of Adam, each on a batch of partitions, before the
        solver begins, which saves many of its iterations.  If not given, one for more
        than 10,000,000 examples, and none for fewer.
    limits : Limits
        Bytes that a worker may keep between iterations.
    n_jobs : int
        Threads that share the ground sets of one partition.

    Attributes
    ----------
    survey : ExampleSurvey
        Read when it is first asked for.
    """

    def __init__(
        self,
        source: Source,
        engine: Engine | None = None,
        *,
        store: RunStore | None = None,
        first_passes: int | None = None,
        limits: Limits | None = None,
        n_jobs: int = 1,
    ) -> None:
        if first_passes:
            check_count("first_passes", first_passes)
        if not source.partitions:
            raise ValueError("there are no partitions to learn from")
        self.source = source
        self.engine: Engine = Serial() if engine is None else engine
        self.store = RunStore() if store is None else store
        self.first_passes = first_passes
        self.limits = Limits() if limits is None else limits
        self.n_jobs = n_jobs

    def __len__(self) -> int:
        """Return the number of examples."""
        return len(self.survey.sizes)

    def __repr__(self) -> str:
        return f"<PartitionedExamples in {len(self.source.partitions)} partitions>"

    def with_store(
        self, path: str | Path, settings: Mapping[str, Any]
    ) -> PartitionedExamples:
        """Return the same examples with a run store in a file, opened or created.

        ``settings`` are values for JSON that tell the run from others on the same data.
        """
        data = {
            "variegate": __version__,
            "n_partitions": len(self.source.partitions),
            "data": self.source.key,
        }
        other = copy.copy(self)
        other.store = RunStore(path, {**settings, **data})
        return other

    @cached_property
    def reader(self) -> Reader:
        """The reader of the source's partitions, which is sent to workers."""
        return reader_of(self.source)

    @cached_property
    def survey(self) -> ExampleSurvey:
        """Sizes and features of all examples, from the store or all partitions."""

        def make_survey() -> bytes:
            """Read all partitions on the engine; return their survey as bytes."""
            work = partial(survey_partition, self.reader)
            # Added up in this process: the sizes of all examples could be more than a
            # worker has room for.
            parts = self.engine.map(work, self.source.partitions)
            return tree_reduce(operator.add, parts).to_bytes()

        content = self.store.remember(f"survey {self.source.key}", make_survey)
        survey = ExampleSurvey.from_bytes(content)
        survey.check()
        return survey

    def fit_kernel(self, kernel: Kernel) -> Kernel:
        """Fit a kernel in place to all ground sets, or set its stored state."""

        def make_state() -> bytes:
            """Fit the kernel; return its state as the bytes of a JSON text."""
            known = self._load_for_kernel(kernel.looks_at(self.survey.sizes))
            return json.dumps(
                kernel.fit(known).get_state(), default=as_plain_value
            ).encode()

        key = f"kernel {hash_of([self.source.key, kernel])}"
        kernel.set_state(json.loads(self.store.remember(key, make_state)))
        return kernel

    def _load_for_kernel(self, looks: Looks) -> Sequence[GroundSet]:
        """Return a sequence of all ground sets, with only the rows in ``looks`` loaded.

        ``looks`` maps the position of a ground set among all to the numbers of the
        rows that a kernel reads, or to None for the whole ground set.
        """
        bounds = np.append(0, np.cumsum(self.survey.n_examples)).tolist()
        places = np.array(sorted(looks), dtype=np.int64)
        items: list[tuple[Partition, Looks]] = []
        for partition, (start, end) in zip(
            self.source.partitions, pairwise(bounds), strict=True
        ):
            here = places[(places >= start) & (places < end)].tolist()
            if here:
                items.append((partition, {p - start: looks[p] for p in here}))
        parts = self.engine.map(partial(_read_rows_for_kernel, self.reader), items)
        found = [one for part in parts for one in part]
        known = dict(zip(places.tolist(), found, strict=True))
        return PartlyLoaded(self.survey.sizes, known)

    def first_examples(self) -> Iterator[Example]:
        """Yield up to 50 examples of each partition, each read when first needed."""
        for partition in self.source.partitions:
            for examples in self.engine.map(
                partial(_first_examples, self.reader), [partition]
            ):
                yield from examples


def _first_examples(
    reader: Reader, partition: Partition, most: int = 50
) -> list[Example]:
    """Return copies of at most ``most`` examples of a partition."""
    return copy.deepcopy(reader.read(partition)[:most])


def _read_rows_for_kernel(
    reader: Reader, item: tuple[Partition, Looks]
) -> list[GroundSet | SomeRows]:
    """Return the ground sets, or rows of them, that a kernel needs of one partition.

    ``item`` is the partition and its looks: row numbers, or None for all rows, by the
    position of a ground set in the partition.  The list has their order.
    """
    partition, looks = item
    examples = reader.read(partition)
    # A copy: views would hold all of the partition in the memory of a worker until they
    # are fetched.
    return copy.deepcopy(
        [
            examples[place].ground_set
            if rows is None
            else SomeRows(examples[place].ground_set, rows)
            for place, rows in looks.items()
        ]
    )
