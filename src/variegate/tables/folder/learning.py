"""Learning from the groups of a folder where an engine works.

Features, held-out groups and the sample that ``kernel="auto"`` and ``tune`` compare on
are those of the folder read as one table, bit by bit.  The models learn from all groups
by L-BFGS, with sums that are added in one order (:mod:`variegate.partitions`), also
where one table would be streamed.

The driver holds 8 bytes a group from the scan, 8 more that say which are learned from,
and for a moment, while groups are held out, 32 in all: 3.2 GB for 10⁸ groups.  Which
groups of a file are held out travels with its tasks, one bit each.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import hash as hash_of
from sklearn.base import clone

from variegate._progress import Progress
from variegate._random import generator
from variegate._typing import IntArray
from variegate._version import __version__
from variegate.files.run_store import RunStore
from variegate.partitions import (
    Engine,
    Partition,
    UnreadablePartitionError,
)
from variegate.partitions.cache import Limits
from variegate.partitions.examples import PartitionedExamples
from variegate.tables.columns import Columns
from variegate.tables.derived import as_newest, last_day
from variegate.tables.encoding import Encoding
from variegate.tables.folder.files import FolderTable, as_folder, open_file
from variegate.tables.folder.groups import (
    ExampleReader,
    FolderGroups,
    FolderSource,
    encoding_on,
)
from variegate.tables.folder.parts import FileReader, in_file
from variegate.tables.folder.scan import FolderSurvey, scan, split_by_file
from variegate.tables.judging import MAX_JUDGED
from variegate.tables.model_file import decode_encoding, encode_encoding
from variegate.tables.problems import Inspection
from variegate.tables.reading import TableFile
from variegate.tables.selector_parameters import (
    columns_wanted,
    is_network,
    training_columns,
    training_plan,
)
from variegate.tables.table import TableError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from variegate.tables.selector import TableSelector

#: Settings that do not change what is learned.
_HERE = ("n_jobs", "device", "verbose")


def learn_folder(
    selector: TableSelector,
    folder: str | Path | FolderTable,
    engine: Engine,
    progress: Progress,
    *,
    checkpoint: RunStore | str | Path | None,
    skip_unreadable: bool,
    first_passes: int | None,
    limits: Limits | None,
) -> None:
    """Fit a selector to the files of a folder: see :meth:`TableSelector.fit`."""
    if is_network(selector.estimator):
        raise TableError(
            f"a {type(selector.estimator).__name__} learns in memory, not file by "
            "file: fit it to the folder as one table"
        )
    table = as_folder(folder, skip_unreadable)
    with _opened(checkpoint, selector, table) as book:
        run = str(hash_of([repr(table.partitions), _settings(selector)]))
        work = _FolderFit(selector, table, engine, book, run, progress)
        selector.seed_ = int(work.remember("seed", partial(_draw_seed, selector)))
        work.fit(skip_unreadable, first_passes, limits)


def _draw_seed(selector: TableSelector) -> bytes:
    return str(generator(selector.random_state).integers(2**31)).encode()


@contextmanager
def _opened(
    checkpoint: RunStore | str | Path | None,
    selector: TableSelector,
    table: FolderTable,
) -> Iterator[RunStore]:
    """Open the checkpoint of a run, which is removed at the end."""
    if isinstance(checkpoint, RunStore):
        yield checkpoint
        return
    with open_checkpoint(selector, table, checkpoint) as book:
        yield book
        book.remove()


def open_checkpoint(
    selector: TableSelector, table: FolderTable, path: str | Path | None
) -> RunStore:
    """Open the checkpoint of a run, which stays until it is removed."""
    files = hashlib.sha256(repr(table.partitions).encode()).hexdigest()
    run = {"variegate": __version__, "files": files, **_settings(selector)}
    return RunStore(path, run)


def _settings(selector: TableSelector) -> dict[str, str]:
    """Return settings as text, without what may differ when a run goes on."""
    given = selector.get_params(deep=False)
    if selector.estimator is not None:
        given["estimator"] = clone(selector.estimator).set_params(callback=None)
    if isinstance(selector.random_state, np.random.Generator | np.random.RandomState):
        given["random_state"] = "a generator"  # the seed that it drew is written down
    return {name: repr(value) for name, value in given.items() if name not in _HERE}


@dataclass(frozen=True, eq=False)
class _FolderFit:
    """One fit: what is fitted to what, and by whom."""

    selector: TableSelector
    table: FolderTable
    engine: Engine
    checkpoint: RunStore
    #: Tells this fit from others in the same checkpoint.
    run: str
    progress: Progress

    def remember(self, what: str, make: Callable[[], bytes]) -> bytes:
        """Return an entry of the checkpoint about this fit, or make it."""
        return self.checkpoint.remember(f"{what} {self.run}", make)

    def fit(
        self, skip_unreadable: bool, first_passes: int | None, limits: Limits | None
    ) -> None:
        """Learn, judge and take down how it went."""
        selector, engine = self.selector, self.engine
        columns = self._columns()
        found = self._scan(columns, skip_unreadable)
        learned_from, held_out = selector._split(found)
        encoding = self._encoding(found, learned_from)
        groups = FolderGroups(found, encoding, engine)

        def partitioned(numbers: IntArray) -> PartitionedExamples:
            source = FolderSource(
                tuple(split_by_file(found.partitions, numbers)),
                ExampleReader(found.reader, encoding),
            )
            return PartitionedExamples(
                source,
                engine,
                store=self.checkpoint,
                first_passes=first_passes,
                limits=limits,
            )

        plan: Any = training_plan(selector, encoding, self.progress)
        plan = replace(plan, partitioned=partitioned)
        names = self.table.schema.names
        learned = selector._learn(plan, names, columns, groups, learned_from, held_out)
        selector.training_["folder"] = {
            "n_files": len(found.partitions),
            "unreadable": [Path(path).name for path in found.unreadable],
            "n_sample": learned.n_sample,
            "n_judged": min(len(held_out), MAX_JUDGED),
        }

    def _columns(self) -> Columns:
        """Return the roles of columns; the engine finds the newest dates."""

        def newest(_: Any, name: str) -> str:
            def make() -> bytes:
                find = partial(last_day_of, schema=self.table.schema, name=name)
                found = self.engine.map(find, self.table.partitions)
                return repr(max(found)).encode()

            last = float(self.remember(f"newest {name}", make))
            return as_newest(last, name)

        try:
            return training_columns(self.selector, self.table, newest=newest)[1]
        except TableError as error:
            # What else is wrong shows in the first file, as a rule.
            first = TableFile(self.table.partitions[0].path)
            found = Inspection(first, columns_wanted(self.selector))
            raise found.of(error) from error

    def _scan(self, columns: Columns, skip_unreadable: bool) -> FolderSurvey:
        # A relevance is for methods that learn nothing.
        reader = FileReader(self.table.schema, replace(columns, relevance=None))

        def make() -> bytes:
            table, engine = self.table, self.engine
            return scan(
                table, reader, engine, skip_unreadable, self.progress
            ).to_bytes()

        key = f"scan, unreadable files left out: {skip_unreadable}"
        known = self.remember(key, make)
        return FolderSurvey.from_bytes(known, self.table, reader)

    def _encoding(self, found: FolderSurvey, numbers: IntArray) -> Encoding:
        self.progress("looking at columns", 0, 0)

        def make() -> bytes:
            encoding = encoding_on(self.engine, found, numbers)
            return json.dumps(encode_encoding(encoding)).encode()

        known = json.loads(self.remember("encoding", make))
        return decode_encoding(known, found.columns.missing)


def last_day_of(partition: Partition, schema: Any, name: str) -> float:
    """Return the last date in a column of a file; one that is damaged has none."""
    try:
        with in_file(partition):
            return last_day(open_file(partition, schema), name)
    except UnreadablePartitionError:
        return -np.inf  # the scan, which is next, says so
