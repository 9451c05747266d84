"""Selections without a model, and from a folder into another by an engine."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from variegate._progress import Progress, ignore
from variegate._version import __version__
from variegate.application.refusal import Setting
from variegate.application.table_defaults import MEMORY
from variegate.files.atomic import as_plain_value
from variegate.partitions import Engine, Partition
from variegate.tables.choosing import (
    ByMethod,
    Choices,
    Chooser,
    choose_from_groups,
    choose_in_partition,
    collect_choices,
)
from variegate.tables.columns import Columns
from variegate.tables.encoded import GroupReader
from variegate.tables.errors import TableError, TableFileError
from variegate.tables.groups import Groups
from variegate.tables.limits import Limit, warn_of_few_rows
from variegate.tables.output import Manifest, Output, size_and_mtime
from variegate.tables.partitioning import GroupPartition
from variegate.tables.rows import open_file
from variegate.tables.survey import learn_encoding, resolve_columns, survey_table
from variegate.tables.table import FolderTable, Table, as_table

if TYPE_CHECKING:
    from variegate.tables.fitted import FittedSelector


@dataclass(frozen=True)
class FolderSelection:
    """Counts of the rows chosen from a folder.

    Attributes
    ----------
    folder : Path
        Where the rows are.
    n_files, n_written : int
        Files of the folder, and files that this call wrote.
    n_rows, n_groups, n_empty, n_chosen : int
        Rows and groups of all files, groups of which nothing was chosen, chosen rows.
        A group that lies in several files counts in each.
    unknown_levels : dict
        By column, how many rows have a category that was not there in training.
    stop_reasons : dict
        How searches ended, and in how many groups.
    unreadable : tuple of str
        Files that were left out.
    n_short : int
        Groups where ``at_most`` allows fewer rows than were asked for.
    """

    folder: Path
    n_files: int
    n_written: int
    n_rows: int
    n_groups: int
    n_empty: int
    n_chosen: int
    unknown_levels: Mapping[str, int] = field(default_factory=dict)
    stop_reasons: Mapping[str, int] = field(default_factory=dict)
    unreadable: tuple[str, ...] = ()
    n_short: int = 0


@dataclass(frozen=True, eq=False)
class _FileTask:
    """A file to choose from: its partitions or, if not None, choices made before.

    ``first_row`` is the number of its first row in the folder.
    """

    file: Partition
    first_row: int
    n_rows: int
    partitions: tuple[GroupPartition, ...]
    choices: Choices | None = None


def select_into_folder(
    selector: FittedSelector,
    table: FolderTable,
    output: Output,
    engine: Engine,
    omega: float | None,
    limit: Limit,
    skip_unreadable: bool,
    progress: Progress,
) -> FolderSelection:
    """Choose rows of every group of a folder into the folder of ``output``.

    Every file gets one of the same name and format, with the chosen rows in order, or
    none.  Run again, only missing files are written; another model, other settings or
    changed files are refused.  ``skip_unreadable`` leaves out files not readable.
    """
    chooser = selector._make_chooser(omega, limit)
    out = Path(str(output.out)).absolute()
    output = replace(output, out=out)
    _check_output(table, output, out)
    columns = selector._required_columns(False, limit)
    run = {"omega": omega, **asdict(limit), "keep_all": output.keep_all}
    run |= {"drop": list(output.drop)}
    run |= {"variegate": __version__, "model": hash_of_model(selector)}
    with Manifest(out, run) as manifest:
        manifest.refuse_changes(table.partitions)
        if manifest.is_complete(table.partitions, skip_unreadable):
            return _sum_counts(manifest, 0)
        groups = selector._read_groups(
            table, columns, progress=progress, engine=engine,
            skip_unreadable=skip_unreadable, by_file=True,
        )  # fmt: skip
        unreadable = set(groups.survey.unreadable)
        files = [one for one in table.partitions if one.path not in unreadable]
        manifest.record_inputs(files, [Path(path).name for path in unreadable])
        tasks = [
            task
            for task in _make_tasks(groups, files, chooser, progress)
            if not manifest.has_output(Path(task.file.path).name)
        ]
        work = partial(
            _select_file, reader=groups.reader, chooser=chooser, output=output
        )
        with selector._list_all_problems(table, columns, engine=engine):
            report = partial(progress, "choosing")
            for name, entry in engine.map(work, tasks, report, ordered=False):
                manifest.record_output(name, entry)
        found = _sum_counts(manifest, len(tasks))
    warn_of_few_rows(found.n_short, found.n_groups, limit.with_k(selector.k_))
    return found


def _check_output(table: FolderTable, output: Output, out: Path) -> None:
    """Refuse to write into the folder of the table, or columns that do not fit."""
    if out.exists() and out.samefile(table.path):
        raise TableFileError(f"{out} is the folder to read: name another one")
    for suffix in sorted({Path(one.path).suffix for one in table.partitions}):
        one = Output(output.keep_all, output.drop, out / f"file{suffix}")
        one.check(table, adds_probability=True)


def _make_tasks(
    groups: Groups, files: Sequence[Partition], chooser: Chooser, progress: Progress
) -> list[_FileTask]:
    """Return a task for each file, with choices where groups lie in several files."""
    survey = groups.survey
    firsts = [first for _, first in survey.sources] + [survey.n_rows]
    choices = (
        None
        if survey.is_by_file
        else choose_from_groups(groups, chooser, None, progress)
    )
    tasks = []
    for file, (first, end) in zip(files, pairwise(firsts), strict=True):
        inside = tuple(one for one in survey.partitions if first <= one.first_row < end)
        some = None if choices is None else choices.slice_rows(first, end)
        tasks.append(_FileTask(file, first, end - first, inside, some))
    return tasks


def _select_file(
    task: _FileTask, reader: GroupReader, chooser: Chooser, output: Output
) -> tuple[str, dict[str, Any]]:
    """Write chosen rows of a file, refuse a changed one; return its name and counts."""
    name = Path(task.file.path).name
    path = Path(str(output.out), name)
    table, choices = open_file(task.file), task.choices
    if choices is None:
        found = (
            choose_in_partition(reader.groups(one), chooser, 1)
            for one in task.partitions
        )
        choices = collect_choices(found, task.n_rows, task.first_row)
    Output(output.keep_all, output.drop, path).deliver(table, choices)
    try:
        task.file.check_unchanged()
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    entry = {
        "input": size_and_mtime(task.file),
        "n_bytes": path.stat().st_size,
        "n_rows": len(choices.rank),
        "n_groups": len(choices.groups),
        # One row of every group that has any is the first.
        "n_empty": len(choices.groups) - int((choices.rank == 1).sum()),
        "n_chosen": int(choices.selected.sum()),
        "n_short": choices.n_short,
        "unknown_levels": dict(choices.unknown_levels),
        "stop_reasons": dict(Counter(e["stop_reason"] for e in choices.endings)),
    }
    return name, entry


def hash_of_model(selector: FittedSelector) -> str:
    """Return a hash of everything that choices depend on."""
    document = {
        **selector._encode_rest(),
        "models": selector.family_.encode(),
        "decoder": repr(selector.decoder),
        "segment_memory": selector.segment_memory,
    }
    text = json.dumps(document, sort_keys=True, default=as_plain_value)
    return hashlib.sha256(text.encode()).hexdigest()


def _sum_counts(manifest: Manifest, n_written: int) -> FolderSelection:
    """Return the sums of the counts of all files in a manifest.

    ``n_written`` is the number of files that this call wrote.
    """
    entries = list(manifest.files.values())
    levels: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for entry in entries:
        levels.update(entry["unknown_levels"])
        reasons.update(entry["stop_reasons"])
    names = ("n_rows", "n_groups", "n_empty", "n_chosen", "n_short")
    return FolderSelection(
        manifest.folder,
        len(entries),
        n_written,
        **{name: sum(entry[name] for entry in entries) for name in names},
        unknown_levels=dict(levels),
        stop_reasons=dict(reasons),
        unreadable=tuple(manifest.unreadable),
    )


# Without a model ----------------------------------------------------------------------

#: Methods that do not ask whether rows are alike.
_WITHOUT_SIMILARITY = ("top", "random")


def select_untrained(
    X: Any,
    columns: Columns,
    method: str = "dpp",
    k: int | None = None,
    budget: float | None = None,
    *,
    diversity: float = 0.5,
    keep_all: bool = False,
    drop: Sequence[str] = (),
    out: str | Path | None = None,
    seed: int = 0,
    memory: int = MEMORY,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    at_most: int | Sequence[int] | None = None,
    per: str | Sequence[str] | None = None,
) -> Any:
    """Return rows of every group that a method of :func:`variegate.select` chooses.

    Parameters
    ----------
    X, keep_all, drop, out, progress : as for :meth:`TableSelector.select`
    columns : Columns
        Its group, similarity, categorical, relevance and cost.
    method : str, default="dpp"
    k, budget : int, float, optional
        The number of rows, and the most that they cost together; at least one of them.
    diversity : float, default=0.5
        From 0 (relevance only) to 1 (diversity only).
    seed : int, default=0
        For methods that draw at random.
    memory, n_jobs : as for :class:`TableSelector`
    at_most, per : as for :meth:`TableSelector.choose`
    """
    if k is None and budget is None:
        raise TableError(
            "say how many rows to choose: ", Setting("k"), " or ", Setting("budget")
        )
    if budget is not None and columns.cost is None:
        raise TableError("a budget needs ", Setting("cost"), ", the column of costs")
    table, output = as_table(X), Output(keep_all, drop, out)
    output.check(table, adds_probability=False)
    progress = progress or ignore
    limit = Limit.of(k, budget, at_most, per)
    columns = replace(columns, per=limit.per)
    groups = untrained_groups(table, columns, method, memory, progress)
    chooser = ByMethod(method, limit, diversity, seed)
    choices = choose_from_groups(groups, chooser, n_jobs, progress)
    warn_of_few_rows(choices.n_short, len(choices.groups), limit)
    return output.deliver(X, choices, progress)


def untrained_groups(
    table: Table,
    columns: Columns,
    method: str,
    memory: int = MEMORY,
    progress: Progress = ignore,
) -> Groups:
    """Read groups with what a method needs, similarity or relevance, or refuse it."""
    if not columns.similarity and method not in _WITHOUT_SIMILARITY:
        raise TableError(
            f"method {method!r} needs to know whether rows are alike: name a column of "
            "vectors, or columns of numbers, as ",
            Setting("similarity"),
        )
    if columns.relevance is None and method == "top":
        raise TableError(
            "method 'top' needs a column that says how good a row is: name it as ",
            Setting("relevance"),
        )
    wanted = replace(columns, quality=(), label=None, item=None, segment=None)
    wanted = resolve_columns(table, wanted, needs_quality=False)
    found = survey_table(table, wanted, memory=memory, progress=progress)
    return Groups(found, learn_encoding(found), memory=memory)
