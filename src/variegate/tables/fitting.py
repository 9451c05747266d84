"""One fit of a selector: the survey of a table, its features, and the training.

An estimator of networks is fitted once, for one omega, in memory.  It has neither a
kernel to compare with others nor weights of features to show; parameters that need
these are refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import hash as hash_of
from sklearn.base import clone

from variegate._progress import Progress
from variegate._random import as_generator
from variegate._typing import BoolArray, IntArray
from variegate._validation import check_choice, check_count, check_flag, check_number
from variegate._version import __version__
from variegate.application.table_defaults import (
    EMPTY_GROUPS,
    KERNELS,
    QUALITY_MODELS,
)
from variegate.estimator import DPPEstimator
from variegate.files.run_store import RunStore
from variegate.kernels import Kernel
from variegate.partitions import Engine
from variegate.partitions.cache import CACHE
from variegate.partitions.engine import is_local
from variegate.tables.columns import Columns, missing_label_error
from variegate.tables.derived import newest_date
from variegate.tables.encoding import Encoding
from variegate.tables.encoding_file import decode_encoding, encode_encoding
from variegate.tables.errors import TableError
from variegate.tables.evaluation import MAX_JUDGED, judge_groups
from variegate.tables.fitted import is_network
from variegate.tables.groups import Groups
from variegate.tables.kinds import kinds_record
from variegate.tables.model_file import training_record, validation_path
from variegate.tables.policy import Policy
from variegate.tables.survey import (
    Survey,
    hold_out_groups,
    learn_encoding,
    refuse_labels_among,
    resolve_columns,
    survey_table,
    usable_groups,
)
from variegate.tables.table import MemoryTable, Table, first_cells, rows_of
from variegate.tables.training import (
    Learned,
    estimator_of,
    is_tuned,
    refuse_large_groups,
    train,
)

if TYPE_CHECKING:
    from variegate.tables.selector import TableSelector

#: Parameters for the roles of columns.
_COLUMNS = (
    "group", "label", "item", "quality", "categorical", "similarity", "relevance",
    "cost", "given", "segment", "missing",
)  # fmt: skip

#: Factors of the odds at which held-out scores are shown.
PATH_ODDS = (1 / 16, 1 / 4, 1.0, 4.0, 16.0)

#: Settings that do not change the model.
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

    def fit_selector(self) -> None:
        """Learn from some groups, judge by others, and set the attributes ``*_``."""
        selector, engine, labels = self.selector, self.engine, self.labels
        if is_network(selector.estimator) and not is_local(engine):
            raise TableError(
                f"a {type(selector.estimator).__name__} learns in memory, not on "
                "workers: leave out the engine"
            )
        selector.seed_ = int(self._remember("seed", self._draw_seed))
        columns = self._resolve_columns()
        found = survey_table(
            self.table,
            replace(columns, relevance=None),  # is for methods that learn nothing
            labels,
            engine=engine,
            memory=selector.memory,
            progress=self.progress,
            skip_unreadable=self.skip_unreadable,
            store=self.store,
        )
        if labels is not None and not selector.quality:
            refuse_labels_among(columns.quality, found, labels)
        learned_from, held_out = split_groups(selector, found)
        encoding = self._learn_encoding(found, learned_from)
        groups = Groups(
            found, encoding, labels, engine=engine, memory=selector.memory,
            segment_memory=selector.segment_memory,
        )  # fmt: skip
        try:
            learned = self._train(groups, learned_from)
        finally:
            if is_local(engine):
                CACHE.clear()  # prepared groups
        groups = groups if learned.boosted is None else learned.boosted
        selector.columns_, selector.encoding_ = columns, groups.encoding
        selector.policy_, selector.family_ = learned.policy, learned.policy.family
        selector._set_names(self.table.schema.names)
        judged = None
        if len(held_out):
            omegas = [selector.omega_ * odds for odds in PATH_ODDS]
            choosers = {str(w): selector._make_chooser(w) for w in omegas}
            seed, n_jobs = selector.seed_, selector.n_jobs
            judged = judge_groups(
                groups, held_out, choosers, n_jobs, self.progress, seed=seed
            )
        selector.path_ = validation_path(judged, learned)
        record = training_record(
            found, learned, selector.path_, judged, learned_from, held_out
        )
        record["n_judged"] = min(len(held_out), MAX_JUDGED)
        record |= kinds_record(selector.model_, groups, learned_from, selector.seed_)
        selector.training_ = record

    def _train(self, groups: Groups, numbers: IntArray) -> Learned:
        """Learn networks or a DPP, as the selector asks, from groups by number."""
        if is_network(self.selector.estimator):
            return _train_network(self.selector, groups, numbers, self.progress)
        return train(self.selector, groups, numbers, self.progress, self.store)

    def _resolve_columns(self) -> Columns:
        """Return resolved roles; refuse a missing label, or relevance not numeric."""
        table = self.table
        wanted = requested_columns(self.selector, table.schema.names, self.y)
        columns = resolve_columns(table, wanted, self._newest_date)
        cells = first_cells(table, columns.relevance)
        if cells is not None:
            cells.numbers()
        if self.y is not None:
            return replace(columns, label=None)
        if columns.label is None:
            raise missing_label_error()
        return columns

    # Steps that a resumed run does not repeat -------------------------------------

    def _remember(self, step: str, make: Callable[[], bytes]) -> bytes:
        """Return a step's bytes from the checkpoint, or ``make()`` and store them."""
        if self.store.path is None:
            return make()
        # Tells this fit from others in the same checkpoint.
        fit = hash_of([repr(rows_of(self.table)), settings_as_text(self.selector)])
        return self.store.remember(f"{step} {fit}", make)

    def _draw_seed(self) -> bytes:
        """Draw the seed of the fit from ``random_state``, as text."""
        rng = as_generator(self.selector.random_state)
        return str(rng.integers(2**31)).encode()

    def _newest_date(self, name: str) -> str:
        """Return the newest date of a column as text, remembered for a resumed run."""

        def make() -> bytes:
            """Read the date from all rows."""
            return newest_date(rows_of(self.table), name, self.engine).encode()

        return self._remember(f"newest {name}", make).decode()

    def _learn_encoding(self, found: Survey, numbers: IntArray) -> Encoding:
        """Learn the encoding from groups by number, or read it from the checkpoint."""
        self.progress("looking at columns", 0, 0)

        def make() -> bytes:
            """Learn the encoding, and return it as JSON."""
            encoding = learn_encoding(found, numbers, self.engine)
            return json.dumps(encode_encoding(encoding)).encode()

        known = json.loads(self._remember("encoding", make))
        return decode_encoding(known, found.columns.missing)


def _train_network(
    selector: TableSelector, groups: Groups, numbers: IntArray, progress: Progress
) -> Learned:
    """Fit an estimator of networks to groups by number, which must fit in memory."""
    refuse_large_groups(groups, numbers)
    estimator = estimator_of(selector).set_params(random_state=selector.seed_)
    n_bytes = 8 * int(groups.survey.sizes[numbers].sum()) * groups.encoding.width
    if n_bytes > selector.memory:
        raise TableError(
            f"the features of the table take {n_bytes:,} bytes, more than "
            f"memory={selector.memory:,}, and a {type(estimator).__name__} holds them "
            "all: raise memory, or learn with a LargeMarginDPP, which reads larger "
            "tables in parts"
        )

    def report_epoch(one: Any) -> object:
        """Report an epoch; call the estimator's callback, and return its result."""
        progress("learning", one.iteration, estimator.max_epochs)
        return None if estimator.callback is None else estimator.callback(one)

    omega = estimator.omega if selector.omega is None else selector.omega
    model = clone(estimator).set_params(omega=omega, callback=report_epoch)
    ground_sets, subsets, sequence = groups.segments(numbers)
    with groups.name_in_errors(sequence):
        model.fit(ground_sets, subsets)
    model.set_params(callback=None)
    progress("learning", 1, 1)
    return Learned(Policy(model))


def split_groups(selector: TableSelector, found: Survey) -> tuple[IntArray, IntArray]:
    """Return sorted numbers of usable groups: to learn from, and to hold out."""
    usable = usable_groups(found, selector.empty_groups)
    return hold_out_groups(usable, selector.validation_fraction, selector.seed_)


# Checkpoints --------------------------------------------------------------------------


@contextmanager
def use_checkpoint(
    checkpoint: RunStore | str | Path | None, selector: TableSelector, table: Table
) -> Iterator[RunStore]:
    """Lend the checkpoint of a fit to a block; remove the file if the block succeeds.

    An open store is only passed on; None stands for a store that remembers nothing.
    """
    if isinstance(checkpoint, RunStore):
        yield checkpoint
        return
    with open_checkpoint(selector, table, checkpoint) as store:
        yield store
        store.remove()


def open_checkpoint(
    selector: TableSelector, table: Table, path: str | Path | None
) -> RunStore:
    """Open the checkpoint of a fit; refuse one of other files or settings.

    None stands for a store without a file.
    """
    if path is None:
        return RunStore()
    if isinstance(table, MemoryTable):
        raise TableError(
            "a fit resumes from a checkpoint where the table is a file or a folder: "
            "leave out checkpoint"
        )
    files = hashlib.sha256(repr(rows_of(table)).encode()).hexdigest()
    return RunStore(
        path, {"variegate": __version__, "files": files, **settings_as_text(selector)}
    )


def settings_as_text(selector: TableSelector) -> dict[str, str]:
    """Return settings by name as text, without any that a resumed run may change."""
    given = selector.get_params(deep=False)
    if selector.estimator is not None:
        given["estimator"] = clone(selector.estimator).set_params(callback=None)
    if isinstance(selector.random_state, np.random.Generator | np.random.RandomState):
        given["random_state"] = "a generator"  # the seed that it drew is written down
    return {n: repr(v) for n, v in given.items() if n not in _OF_THIS_MACHINE}


# Parameters ---------------------------------------------------------------------------


def requested_columns(
    selector: TableSelector, names: Sequence[str] = (), y: Any = None
) -> Columns:
    """Return the columns that a selector was given, patterns unresolved.

    ``names`` are all columns of the table.  With labels ``y``, the label is a column
    only if the table has one of its name, or of the name of ``y``.
    """
    wanted = Columns.of(**{name: getattr(selector, name) for name in _COLUMNS})
    if y is None or wanted.label in names:
        return wanted
    name = getattr(y, "name", None)
    return replace(wanted, label=name if name in names else None)


def check_parameters(selector: TableSelector) -> None:
    """Refuse invalid parameters of a selector, before any work."""
    check_choice("empty_groups", selector.empty_groups, EMPTY_GROUPS)
    if selector.kernel is not None and not isinstance(selector.kernel, Kernel):
        check_choice("kernel", selector.kernel, KERNELS)
    check_choice("quality_model", selector.quality_model, QUALITY_MODELS)
    check_flag("tune", selector.tune)
    check_flag("verbose", selector.verbose)
    fraction = selector.validation_fraction
    check_number("validation_fraction", fraction)
    if fraction >= 1.0:
        raise ValueError(f"validation_fraction must be below 1, got {fraction!r}")
    check_count("memory", selector.memory)
    check_count("segment_memory", selector.segment_memory)
    if selector.first_passes:
        check_count("first_passes", selector.first_passes)
    if selector.omega is not None:
        check_number("omega", selector.omega, positive=True)
    if not isinstance(selector.estimator, DPPEstimator | None):
        raise ValueError(
            f"estimator must be a LargeMarginDPP, got {selector.estimator!r}"
        )
    if is_network(selector.estimator):
        _check_network_settings(selector, selector.estimator)
    estimator_of(selector)._check_parameters()
    requested_columns(selector)


def _check_network_settings(selector: TableSelector, estimator: Any) -> None:
    """Refuse settings of the selector that an estimator of networks lacks."""
    name = type(estimator).__name__
    if selector.kernel is not None:
        raise ValueError(
            f"kernel={selector.kernel!r} is for a LargeMarginDPP: the similarity of a "
            f"{name} is its encoder and similarity"
        )
    if selector.quality_model == "boosting":
        raise ValueError(
            "quality_model='boosting' is for a LargeMarginDPP: the quality of a "
            f"{name} is a network of its own; leave out quality_model"
        )
    known = estimator.get_params(deep=False)
    for setting in ("l2", "max_iter", "tol"):
        if getattr(selector, setting) is not None and setting not in known:
            raise ValueError(
                f"{setting} is a setting of LargeMarginDPP, which {name} does not have"
            )
    if is_tuned(selector):
        raise ValueError(
            "tune, target_precision and target_recall are for a LargeMarginDPP; a "
            f"{name} learns for the lam and omega that it is given"
        )
