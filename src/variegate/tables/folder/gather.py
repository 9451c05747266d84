"""A folder of tables written anew, so that no group is in more than one file.

Two passes over the data, each a function of a part of it, for any engine:

- the rows of each file are shuffled to buckets,
- the groups of some buckets are put together and written to a file of their own
  (:mod:`~variegate.tables.folder.shuffle`).

Everything happens in a hidden folder beside the one that is written, which all workers
must see, and which takes the place of the result when the last file is there: a folder
with some of the groups would look like a whole one.  What is finished in the hidden
folder is used again after an interruption, if nothing else has been asked for since.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from variegate._progress import Progress, ignore
from variegate.application.table_defaults import MEMORY
from variegate.files.atomic import write_atomic
from variegate.files.run_store import RunStore
from variegate.partitions import Engine, Partition, PartitionError, Serial
from variegate.tables.file_errors import TableFileError
from variegate.tables.folder.files import FolderTable, open_file
from variegate.tables.folder.gather_place import (
    check_out,
    named_if_full,
    opened,
    put_in_place,
)
from variegate.tables.folder.gather_plan import Plan
from variegate.tables.folder.shuffle import (
    Hashed,
    Merging,
    Pieces,
    even_bounds,
    hashes_of,
    keys_of,
    write_buckets,
)
from variegate.tables.table import TableError
from variegate.tables.writing import table_writer


@dataclass(frozen=True)
class Gathered:
    """Counts of the rows and groups that were written, and the files."""

    n_rows: int
    n_groups: int
    files: tuple[Path, ...]


def gather(
    folder: str | Path,
    out: str | Path,
    *,
    group: str,
    n_files: int | None = None,
    rows_a_file: int | None = None,
    memory: int = MEMORY,
    engine: Engine | None = None,
    replace: bool = False,
    progress: Progress = ignore,
) -> Gathered:
    """Write the tables of a folder to another, each group whole in one file.

    All rows of a group stand one after the other, in the order in which they were: that
    of the names of the files, and of the rows in each.  Groups are spread over the
    files, and stand in them, in the order of a hash of their names, which is as good as
    random and always the same.  Columns, types and metadata stay as they are.

    Memory is bounded, whatever the sizes of files and groups.  The disk of ``out``
    needs room for the table as it is in memory, and for the result.

    Parameters
    ----------
    folder : str or Path
        Its Parquet or Arrow files are read: see
        :class:`~variegate.tables.FolderTable`.
    out : str or Path
        The folder to write, with files of the same format as the first.  It appears
        when all of them are there.  Until then there is a hidden folder beside it; all
        workers of an engine must see both.
    group : str
        The column whose values tell groups apart; none may be empty.
    n_files : int, optional
        How many files to write, by default as many as there are.  Where there are
        hardly more groups, some files would have none, and are not written.
    rows_a_file : int, optional
        In place of ``n_files``, how many rows a file should have about.
    memory : int
        The most bytes to hold, of each worker.
    engine : Engine, optional
        Works on several files at a time; by default this process, one by one.
    replace : bool
        Whether ``out`` may be there already, with nothing but tables in it.
    progress : callable, optional
        Called with what is being done, and the numbers of finished and of all files.

    Returns
    -------
    Gathered

    Raises
    ------
    TableError
        If the files do not go together, or a row has no group.
    TableFileError
        If a file cannot be read.
    """
    folder, out = Path(folder), Path(out)
    engine = Serial() if engine is None else engine
    if n_files is not None and rows_a_file is not None:
        raise TableError("say how many files, or how many rows a file, not both")
    check_out(folder, out, replace)
    # As every worker can find it, wherever it is at home.
    table = FolderTable(folder.resolve())
    plan = Plan.of(table, out, group, n_files, rows_a_file, memory)
    with named_if_full(plan):
        with opened(plan, table.partitions) as store:
            counts = _work(plan, table.partitions, store, engine, progress)
        put_in_place(plan, out)
    return Gathered(
        sum(n_rows for n_rows, _ in counts),
        sum(n_groups for _, n_groups in counts),
        tuple(
            out / plan.name_of(number)
            for number, (n_rows, _) in enumerate(counts)
            if n_rows
        ),
    )


def _work(
    plan: Plan,
    partitions: Sequence[Partition],
    store: RunStore,
    engine: Engine,
    progress: Progress,
) -> list[tuple[int, int]]:
    """Do what is not done yet; return rows and groups of every file."""
    deal, items = partial(_deal, plan), list(enumerate(partitions))
    try:
        dealt = _steps(store, "dealing out", deal, items, engine, progress)
    except PartitionError as error:
        raise TableFileError(str(error)) from error
    # Writers look up the pieces of their file: a list for every pair of files would
    # not fit here.
    tasks = [(number, len(items)) for number in range(plan.n_files)]
    counts = _steps(store, "writing", partial(_write, plan), tasks, engine, progress)
    n_read, n_written = sum(dealt), sum(n_rows for n_rows, _ in counts)
    if n_written != n_read:
        raise TableError(f"{n_read:,} rows were read, but {n_written:,} written")
    return counts


def _steps(
    store: RunStore,
    stage: str,
    function: Callable[[Any], Any],
    items: Sequence[tuple[int, Any]],
    engine: Engine,
    progress: Progress,
) -> list[Any]:
    """Return the results of all items, computed or from the store."""
    keys = [f"{stage} {number}" for number, _ in items]
    missing = [k for k, key in enumerate(keys) if store.get(key) is None]
    todo = [items[k] for k in missing]
    numbered = partial(_numbered, function)
    told = partial(progress, stage)
    for number, result in engine.map(numbered, todo, told, ordered=False):
        store.put(f"{stage} {number}", json.dumps(result).encode())
    return [json.loads(store.get(key) or "") for key in keys]


def _numbered(function: Callable[[Any], Any], item: tuple[int, Any]) -> tuple[int, Any]:
    """Return the number of an item with its result."""
    return item[0], function(item)


def _deal(plan: Plan, item: tuple[int, Partition]) -> int:
    """Deal out the rows of a file; return how many they are."""
    number, partition = item
    path, index = plan.dealt_from(number)
    bounds = even_bounds(plan.n_files * plan.buckets_a_file)
    rows = _hashed(plan, partition)
    pieces = write_buckets(rows, path, plan.stored_schema, bounds, plan.memory)
    partition.check_unchanged()
    stored = io.BytesIO()
    np.save(stored, pieces.slices)
    write_atomic(index, stored.getvalue())
    return pieces.n_rows


def _dealt(plan: Plan, number: int) -> Pieces:
    """Return the rows of a file that are dealt out."""
    path, index = plan.dealt_from(number)
    slices = np.load(index)
    return Pieces(str(path), slices, np.arange(len(slices)))


def _hashed(plan: Plan, partition: Partition) -> Iterator[Hashed]:
    """Read the rows of a file, with hashes of their groups."""
    file = open_file(partition, plan.schema)
    first = 0
    for batch in file.batches(plan.schema.names):
        try:
            keys = keys_of(batch.column(plan.group), plan.group, first)
        except TableError as error:
            raise error.within(f"{file.path}: ") from None
        yield batch.cast(plan.stored_schema), hashes_of(keys)
        first += batch.num_rows


def _write(plan: Plan, task: tuple[int, int]) -> tuple[int, int]:
    """Write the groups of some buckets to a file; return how many rows and groups.

    ``task`` is the number of the file, and that of all that were dealt out.
    """
    number, n_dealt = task
    merging = Merging(plan.stored_schema, plan.group, plan.memory, plan.dealt)
    first = number * plan.buckets_a_file
    end = first + plan.buckets_a_file
    pieces = [_dealt(plan, k).of(first, end) for k in range(n_dealt)]
    if any(piece.n_rows for piece in pieces):
        with table_writer(plan.files / plan.name_of(number), plan.schema) as write:
            for bucket in range(first, end):
                here = [piece.of(bucket, bucket + 1) for piece in pieces]
                for batch in merging.batches(here):
                    write(batch.cast(plan.schema))
    return merging.n_rows, merging.n_groups
