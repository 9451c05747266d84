"""One fit of a selector: the survey of a table, its features, and the training plan."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
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
from variegate._typing import BoolArray, IntArray
from variegate._version import __version__
from variegate.files.run_store import RunStore
from variegate.partitions import Engine, Serial
from variegate.partitions.cache import forget
from variegate.tables.columns import Columns
from variegate.tables.derived import last_day, newest
from variegate.tables.encoding import Encoding
from variegate.tables.errors import TableError
from variegate.tables.groups import Groups
from variegate.tables.judging import MAX_JUDGED, judge
from variegate.tables.kinds import kinds_record
from variegate.tables.model_file import (
    NOUNS,
    decode_encoding,
    encode_encoding,
    training_record,
    validation_path,
)
from variegate.tables.partitioning import is_local
from variegate.tables.selector_parameters import (
    is_network,
    training_columns,
    training_plan,
)
from variegate.tables.survey import (
    Survey,
    learn_encoding,
    refuse_labels_among,
    split,
    survey,
    usable_groups,
)
from variegate.tables.table import MemoryTable, Table, rows_of

if TYPE_CHECKING:
    from variegate.tables.selector import TableSelector

#: Settings that do not change what is learned.
_OF_THIS_MACHINE = ("n_jobs", "device", "verbose", "memory")


@dataclass(frozen=True, eq=False)
class SelectorFit:
    """Fits a selector to a table; ``y`` and ``labels`` stand for a column of labels."""

    selector: TableSelector
    table: Table
    y: Any
    labels: BoolArray | None
    engine: Engine | None
    store: RunStore
    skip_unreadable: bool
    progress: Progress

    def run(self) -> None:
        """Learn from some groups, judge by others, and record how it went."""
        selector, engine, labels = self.selector, self.engine, self.labels
        if is_network(selector.estimator) and not is_local(engine):
            raise TableError(
                f"a {type(selector.estimator).__name__} learns in memory, not on "
                "workers: leave out the engine"
            )
        selector.seed_ = int(self._remember("seed", self._draw_seed))
        columns = training_columns(selector, self.table, self.y, self._newest)
        found = self._survey(columns)
        if labels is not None and not selector.quality:
            refuse_labels_among(columns.quality, found, labels)
        learned_from, held_out = split_groups(selector, found)
        encoding = self._encoding(found, learned_from)
        groups = Groups(found, encoding, labels, engine=engine, memory=selector.memory)
        plan = training_plan(selector, encoding, self.progress, self.store)
        try:
            learned = plan.learn(groups, learned_from)
        finally:
            if is_local(engine):
                forget()  # what was prepared for learning
        selector.columns_, selector.encoding_ = columns, encoding
        selector.policy_, selector.family_ = learned.policy, learned.policy.family
        names = self.table.schema.names
        selector.feature_names_in_ = np.array(names, dtype=object)
        selector.n_features_in_ = len(names)
        judged = None
        if len(held_out):
            # One chooser per omega, plus the default.
            choosers = {str(w): selector._chooser(w) for w in selector.omegas_}
            choosers[""] = selector._chooser()
            seed, n_jobs = selector.seed_, selector.n_jobs
            judged = judge(groups, held_out, choosers, n_jobs, self.progress, seed=seed)
        path = learned.path or validation_path(judged, learned)
        selector.path_ = path and replace(path, nouns=NOUNS)
        record = training_record(
            found, learned, selector.path_, judged, learned_from, held_out
        )
        record["n_judged"] = min(len(held_out), MAX_JUDGED)
        record |= kinds_record(selector.model_, groups, learned_from, selector.seed_)
        selector.training_ = record

    # Steps that a run which was killed does not repeat ----------------------------

    def _remember(self, step: str, make: Callable[[], bytes]) -> bytes:
        """Return an entry of the checkpoint about this fit, or make it."""
        if self.store.path is None:
            return make()
        # Tells this fit from others in the same checkpoint.
        fit = hash_of([repr(rows_of(self.table)), settings(self.selector)])
        return self.store.remember(f"{step} {fit}", make)

    def _draw_seed(self) -> bytes:
        rng = generator(self.selector.random_state)
        return str(rng.integers(2**31)).encode()

    def _newest(self, name: str) -> str:
        """Return the newest date of a column."""

        def make() -> bytes:
            work = partial(last_day, name=name)
            engine = Serial() if self.engine is None else self.engine
            return repr(max(engine.map(work, rows_of(self.table)))).encode()

        return newest(float(self._remember(f"newest {name}", make)), name)

    def _survey(self, columns: Columns) -> Survey:
        # A relevance is for methods that learn nothing.
        return survey(
            self.table,
            replace(columns, relevance=None),
            self.labels,
            engine=self.engine,
            memory=self.selector.memory,
            progress=self.progress,
            skip_unreadable=self.skip_unreadable,
            store=self.store,
        )

    def _encoding(self, found: Survey, numbers: IntArray) -> Encoding:
        self.progress("looking at columns", 0, 0)

        def make() -> bytes:
            encoding = learn_encoding(found, numbers, self.engine)
            return json.dumps(encode_encoding(encoding)).encode()

        if self.store.path is None:
            return learn_encoding(found, numbers, self.engine)
        known = json.loads(self._remember("encoding", make))
        return decode_encoding(known, found.columns.missing)


def split_groups(selector: TableSelector, found: Survey) -> tuple[IntArray, IntArray]:
    """Return numbers of the groups to learn from, and of those to hold out."""
    usable = usable_groups(found, selector.empty_groups)
    return split(usable, selector.validation_fraction, selector.seed_)


@contextmanager
def opened_store(
    checkpoint: RunStore | str | Path | None, selector: TableSelector, table: Table
) -> Iterator[RunStore]:
    """Open the checkpoint of a fit, which is removed at the end; or one in memory."""
    if isinstance(checkpoint, RunStore):
        yield checkpoint
        return
    with open_checkpoint(selector, table, checkpoint) as store:
        yield store
        store.remove()


def open_checkpoint(
    selector: TableSelector, table: Table, path: str | Path | None
) -> RunStore:
    """Open the checkpoint of a fit, which stays until it is removed."""
    if path is None:
        return RunStore()
    if isinstance(table, MemoryTable):
        raise TableError(
            "a fit resumes from a checkpoint where the table is a file or a folder: "
            "leave out checkpoint"
        )
    files = hashlib.sha256(repr(rows_of(table)).encode()).hexdigest()
    return RunStore(
        path, {"variegate": __version__, "files": files, **settings(selector)}
    )


def settings(selector: TableSelector) -> dict[str, str]:
    """Return settings as text, without those that may differ when a run resumes."""
    given = selector.get_params(deep=False)
    if selector.estimator is not None:
        given["estimator"] = clone(selector.estimator).set_params(callback=None)
    if isinstance(selector.random_state, np.random.Generator | np.random.RandomState):
        given["random_state"] = "a generator"  # the seed that it drew is written down
    return {n: repr(v) for n, v in given.items() if n not in _OF_THIS_MACHINE}
