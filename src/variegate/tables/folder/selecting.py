"""Choosing from a folder where an engine works: one file for each that is there."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from variegate._progress import Progress
from variegate._version import __version__
from variegate.files.atomic import plain
from variegate.partitions import Engine, Partition
from variegate.tables.choosing import Choices, Chooser, choose
from variegate.tables.encoding import Encoding
from variegate.tables.file_errors import TableFileError
from variegate.tables.fitted import FittedSelector, fitting
from variegate.tables.folder.files import FolderTable, as_folder, open_file
from variegate.tables.folder.manifest import Manifest, stamp
from variegate.tables.folder.parts import FileReader, in_file
from variegate.tables.folder.scan import scan
from variegate.tables.output import Output
from variegate.tables.selector_parameters import progress_callback


@dataclass(frozen=True)
class FolderSelection:
    """Counts of the rows chosen from a folder.

    Attributes
    ----------
    folder : Path
        Where the rows are.
    n_files, n_written : int
        Files that are there, and those that were written this time.
    n_rows, n_groups, n_empty, n_chosen : int
        Rows and groups of all files, groups of which nothing was chosen, chosen rows.
    unknown_levels : dict
        By column, how many rows have a category that was not there in training.
    stop_reasons : dict
        How searches ended, and in how many groups.
    unreadable : tuple of str
        Files that were left out.
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


@dataclass(frozen=True, eq=False)
class _Task:
    """How rows are chosen from a file; sent to workers."""

    chooser: Chooser
    encoding: Encoding
    reader: FileReader
    folder: str
    keep_all: bool
    drop: tuple[str, ...]


def select_file(partition: Partition, task: _Task) -> tuple[str, dict[str, Any]]:
    """Choose rows of a file and write them, whole or not at all.

    Returns its name and what it holds.
    """
    name = Path(partition.path).name
    path = Path(task.folder, name)
    table = open_file(partition)
    groups = task.reader.groups(partition, task.encoding)
    choices = _NOTHING
    if groups is not None:
        with in_file(partition):
            choices = choose(groups, task.chooser)
    with in_file(partition):
        Output(task.keep_all, task.drop, path).of(table, choices)
    try:
        partition.check_unchanged()
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    entry = {
        "input": stamp(partition),
        "n_bytes": path.stat().st_size,
        "n_rows": len(choices.rank),
        "n_groups": len(choices.groups),
        # One row of every group that has any is the first.
        "n_empty": len(choices.groups) - int((choices.rank == 1).sum()),
        "n_chosen": int(choices.selected.sum()),
        "unknown_levels": dict(choices.unknown_levels),
        "stop_reasons": dict(Counter(e["stop_reason"] for e in choices.endings)),
    }
    return name, entry


_NOTHING = Choices(np.zeros(0, dtype=bool), np.zeros(0, dtype=np.int32), np.zeros(0))


def select_folder(
    selector: FittedSelector,
    folder: str | Path | FolderTable,
    out: str | Path,
    engine: Engine,
    *,
    k: int | None = None,
    budget: float | None = None,
    omega: float | None = None,
    keep_all: bool = False,
    drop: Sequence[str] = (),
    skip_unreadable: bool = False,
    progress: Progress | None = None,
) -> FolderSelection:
    """Choose rows of every group of a folder into another folder.

    For every file there is one of the same name and format, with the rows that
    :meth:`variegate.tables.TableSelector.select` would choose, in their order.  It is
    there whole or not at all.  Run again, only missing files are written; another
    model, other settings or files that have changed are refused.
    """
    progress = progress_callback(progress, selector.verbose)
    chooser = selector._chooser(omega, k, budget)
    table, out = as_folder(folder, skip_unreadable), Path(out).absolute()
    columns = selector._columns_for(False, budget is not None)
    fitting(table, columns)
    _check_output(table, out, keep_all, drop)
    reader = FileReader(table.schema, columns)
    settings = {"k": k, "budget": budget, "omega": omega, "keep_all": keep_all}
    run = settings | {"drop": list(drop), "variegate": __version__}
    task = _Task(
        chooser, selector.encoding_, replace(reader, schema=None), str(out),
        keep_all, tuple(drop),
    )  # fmt: skip
    with Manifest(out, {"model": hash_of_model(selector), **run}) as manifest:
        files = _files(table, reader, manifest, engine, skip_unreadable, progress)
        missing = [one for one in files if not manifest.has(Path(one.path).name)]
        work, told = partial(select_file, task=task), partial(progress, "choosing")
        for name, entry in engine.map(work, missing, told, ordered=False):
            manifest.finish(name, entry)
        return _in_numbers(manifest, len(missing))


def _check_output(
    table: FolderTable, out: Path, keep_all: bool, drop: Sequence[str]
) -> None:
    """Refuse an output that could not be written, before the work."""
    if out.exists() and out.samefile(table.path):
        raise TableFileError(f"{out} is the folder to read: name another one")
    for suffix in sorted({Path(one.path).suffix for one in table.partitions}):
        output = Output(keep_all, drop, out / f"file{suffix}")
        output.check(table, has_probability=True)


def _files(
    table: FolderTable,
    reader: FileReader,
    manifest: Manifest,
    engine: Engine,
    skip_unreadable: bool,
    progress: Progress,
) -> list[Partition]:
    """Return the files to choose from, scanned if that was not done before."""
    known, left_out = manifest.inputs, set(manifest.unreadable)
    listed = {Path(one.path).name: one for one in table.partitions}
    manifest.refuse_changes(table.partitions)
    is_scanned = known.keys() | left_out == listed.keys()
    if not is_scanned or (left_out and not skip_unreadable):
        found = scan(table, reader, engine, skip_unreadable, progress)
        left_out = {Path(path).name for path in found.unreadable}
    files = [one for name, one in listed.items() if name not in left_out]
    manifest.begin(files, sorted(left_out))
    return files


def hash_of_model(selector: FittedSelector) -> str:
    """Return a hash of everything that choices depend on."""
    document = {
        **selector._encode_rest(),
        "models": selector.family_.encode(),
        "decoder": repr(selector.decoder),
    }
    text = json.dumps(document, sort_keys=True, default=plain)
    return hashlib.sha256(text.encode()).hexdigest()


def _in_numbers(manifest: Manifest, n_written: int) -> FolderSelection:
    entries = list(manifest.files.values())
    levels: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for entry in entries:
        levels.update(entry["unknown_levels"])
        reasons.update(entry["stop_reasons"])
    names = ("n_rows", "n_groups", "n_empty", "n_chosen")
    return FolderSelection(
        manifest.folder,
        len(entries),
        n_written,
        **{name: sum(entry[name] for entry in entries) for name in names},
        unknown_levels=dict(levels),
        stop_reasons=dict(reasons),
        unreadable=tuple(manifest.unreadable),
    )
