"""A folder of tables written anew, so that no group is in more than one file.

Groups are counted, the rows of each file are shuffled to buckets of consecutive groups
(:mod:`~variegate.tables.shuffle`), and the buckets of each new file are put in order
and written; each step is a function of one file, for any engine.

Everything happens in a hidden folder beside the one that is written, which all workers
must see, and which takes the place of the result when the last file is there: a folder
with some of the groups would look like a whole one.  What is finished in the hidden
folder is used again after an interruption, if nothing else has been asked for since.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from variegate._progress import Progress, ignore
from variegate._typing import IntArray
from variegate.application.table_defaults import MEMORY
from variegate.files.atomic import write_atomic
from variegate.files.run_store import RunStore
from variegate.partitions import Engine, PartitionError, Serial
from variegate.tables.columns import Columns
from variegate.tables.errors import TableError, TableFileError
from variegate.tables.gather_plan import GatherPlan, check_out
from variegate.tables.partitioning import TableCut
from variegate.tables.rows import RowReader, stored_schema
from variegate.tables.scanning import Counts, scan
from variegate.tables.shuffle import Deal, Pieces, deal_out, in_order
from variegate.tables.table import FolderTable, rows_of
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

    Groups stand in the order of their first rows, and all rows of a group one after the
    other, in the order in which they were: that of the names of the files, and of the
    rows in each.  Columns, types and metadata stay as they are.

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
        How many files to write, with about as many rows each; by default as many as
        there are.  A file that would have no group is not written.
    rows_a_file : int, optional
        In place of ``n_files``, how many rows a file should have about.
    memory : int
        The most bytes to hold, of each worker.
    engine : Engine, optional
        Works on several files at a time; by default this process, one by one.
    replace : bool
        Whether ``out`` may be there already, with nothing but tables in it.
    progress : callable, optional
        Called with the stage, and the numbers of finished and of all files.

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
    table = FolderTable(folder.resolve())
    plan = GatherPlan.of(table, out, group, memory)
    with plan.named_if_full():
        with plan.opened(table, n_files, rows_a_file) as store:
            work = _Gathering(plan, table, store, engine, progress)
            counts = work.run(n_files, rows_a_file)
        plan.put_in_place(out)
    return Gathered(
        sum(n_rows for n_rows, _ in counts),
        sum(n_groups for _, n_groups in counts),
        tuple(
            out / plan.name_of(number)
            for number, (n_rows, _) in enumerate(counts)
            if n_rows
        ),
    )


@dataclass(frozen=True, eq=False)
class _Gathering:
    """The steps of gathering a folder, those of a run that was killed left out."""

    plan: GatherPlan
    table: FolderTable
    store: RunStore
    engine: Engine
    progress: Progress

    def run(
        self, n_files: int | None, rows_a_file: int | None
    ) -> list[tuple[int, int]]:
        """Do what is not done yet; return rows and groups of every file."""
        rows, plan = rows_of(self.table), self.plan
        reader = RowReader(self.table.schema, Columns(group=plan.group))

        def count() -> bytes:
            told = partial(self.progress, "reading")
            found = self.engine.map(partial(scan, reader=reader), rows, told)
            return Counts.of(list(found), False).to_bytes()

        try:
            counts = Counts.from_bytes(self.store.remember("counts", count))
            cut = TableCut(self.table, reader, (), counts, rows)
            if n_files is None:
                n_rows = rows_a_file or -(-int(counts.n_rows.sum()) // len(rows)) or 1
                n_files = -(-int(counts.n_rows.sum()) // n_rows)
                n_files = len(rows) if rows_a_file is None else n_files
            bounds, starts = file_bounds(cut.sizes, max(n_files, 1), plan.rows_a_bucket)
            deal = partial(_deal, plan=plan, reader=reader, bounds=bounds)
            self._steps("dealing out", deal, list(enumerate(cut.deals())))
        except PartitionError as error:
            raise TableFileError(str(error)) from error
        # Writers look up the pieces of their file: a list for every pair of files would
        # not fit here.
        tasks = [(k, (starts[k], starts[k + 1], bounds, len(rows)))
                 for k in range(len(starts) - 1)]  # fmt: skip
        written = self._steps("writing", partial(_write, plan=plan), tasks)
        n_read, n_written = int(counts.n_rows.sum()), sum(n for n, _ in written)
        if n_written != n_read:
            raise TableError(f"{n_read:,} rows were read, but {n_written:,} written")
        return written

    def _steps(
        self,
        stage: str,
        function: Callable[[Any], Any],
        items: Sequence[tuple[int, Any]],
    ) -> list[Any]:
        """Return the results of all items, computed or from the store."""
        keys = [f"{stage} {number}" for number, _ in items]
        missing = [k for k, key in enumerate(keys) if self.store.get(key) is None]
        work, told = partial(_numbered, function), partial(self.progress, stage)
        todo = [items[k] for k in missing]
        for number, result in self.engine.map(work, todo, told, ordered=False):
            self.store.put(f"{stage} {number}", json.dumps(result).encode())
        return [json.loads(self.store.get(key) or "") for key in keys]


def file_bounds(
    sizes: IntArray, n_files: int, rows_a_bucket: int
) -> tuple[IntArray, list[int]]:
    """Cut groups into files of about as many rows, and these into buckets.

    Return the groups that buckets begin with, and the buckets that files begin with;
    both end with the number of all.
    """
    ends = np.cumsum(sizes)
    n_rows = int(ends[-1]) if len(ends) else 0
    wanted = np.arange(1, n_files) * (n_rows / n_files)
    files = np.unique([0, *(np.searchsorted(ends, wanted) + 1), len(sizes)])
    files = files[files <= len(sizes)]
    bounds: list[int] = []
    starts: list[int] = []
    for first, end in zip(files[:-1].tolist(), files[1:].tolist(), strict=True):
        starts.append(len(bounds))
        before = int(ends[first - 1]) if first else 0
        place = first
        while place < end:
            bounds.append(place)
            place = max(
                place + 1,
                int(np.searchsorted(ends[:end], before + rows_a_bucket, "right")),
            )
            before = int(ends[place - 1])
    return np.array([*bounds, len(sizes)]), [*starts, len(bounds)]


def _numbered(function: Callable[[Any], Any], item: tuple[int, Any]) -> tuple[int, Any]:
    """Return the number of an item with its result."""
    return item[0], function(item)


def _deal(
    item: tuple[int, Deal], plan: GatherPlan, reader: RowReader, bounds: IntArray
) -> int:
    """Deal out the rows of a file; return how many they are."""
    number, deal = item
    path, index = plan.dealt_from(number)
    pieces = deal_out(deal, reader, plan.schema, bounds, path, plan.memory)
    stored = io.BytesIO()
    np.save(stored, pieces.slices)
    write_atomic(index, stored.getvalue())
    return pieces.n_rows


def _write(item: tuple[int, Any], plan: GatherPlan) -> tuple[int, int]:
    """Write the groups of some buckets to a file; return how many rows and groups."""
    number, (first, end, bounds, n_dealt) = item
    pieces = []
    for k in range(n_dealt):
        path, index = plan.dealt_from(k)
        slices = np.load(index)
        pieces.append(Pieces(str(path), slices, np.arange(len(slices))).of(first, end))
    n_rows = sum(piece.n_rows for piece in pieces)
    with table_writer(plan.files / plan.name_of(number), plan.schema) as write:
        for bucket in range(first, end):
            here = [piece.of(bucket, bucket + 1) for piece in pieces]
            n_here = sum(piece.n_rows for piece in here)
            if n_here > plan.rows_a_bucket:
                # One group, which is in order.
                batches: Any = (one for piece in here for one in piece.batches())
            else:
                batches = [in_order(here)]
            for batch in batches:
                part = batch.select(batch.schema.names[2:])
                part = pa.RecordBatch.from_arrays(
                    part.columns, schema=stored_schema(plan.schema)
                )
                write(part.cast(plan.schema))
    return n_rows, int(bounds[end] - bounds[first])
