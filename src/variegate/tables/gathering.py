"""A folder of tables written anew, so that no group is in more than one file.

Groups are counted, the rows of each file are shuffled to buckets of consecutive groups
(:mod:`~variegate.tables.shuffle`), and the buckets of each new file are put in order
and written; each step is a function of one file, for any engine.

Everything happens in a hidden folder beside the one that is written, which all workers
must see.  It becomes the result when the last file is written: a folder with some of
the groups would look like a whole one.  Finished steps in the hidden folder are used
again after an interruption, if the same is asked for.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa

from variegate._progress import Progress, ignore
from variegate._typing import IntArray
from variegate._version import __version__
from variegate.application.table_defaults import MEMORY
from variegate.files.atomic import write_atomic
from variegate.files.run_store import (
    CheckpointError,
    RunStore,
    StoreInUseError,
    arrays_from_bytes,
    arrays_to_bytes,
)
from variegate.partitions import Engine, Serial
from variegate.tables.batches import data_bytes
from variegate.tables.cells import Cells
from variegate.tables.columns import Columns, check_column_exists
from variegate.tables.counts import Counts, scan_groups
from variegate.tables.errors import TableError
from variegate.tables.reading import FORMATS, TableFile
from variegate.tables.rows import RowReader, check_sortable, sortable_schema
from variegate.tables.shuffle import (
    NUMBERS_BYTES,
    BucketSlices,
    Deal,
    deal_out,
    explain_full_disk,
    file_bounds,
    read_bucket,
)
from variegate.tables.table import FolderTable, rows_of
from variegate.tables.writing import table_writer

#: The share of memory for rows, which are held twice while they are put in order.
_SHARE = 5

#: The most bytes of rows in order at a time; Arrow counts those of a text in 32 bits.
_MOST_BYTES = 2**30

#: Files whose first rows tell how large a row is.
_LOOKED_INTO = 8


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

    Groups stand in the order of their first rows, and the rows of a group one after
    another, in the order of the names of the files and of the rows in each.  Columns,
    types and metadata stay as they are.

    Memory is bounded for files and groups of any size.  The disk of ``out`` needs room
    for the table as it is in memory, and for the result.

    Parameters
    ----------
    folder : str or Path
        Of Parquet or Arrow files: see :class:`~variegate.tables.FolderTable`.
    out : str or Path
        The folder to write, with files of the same format as the first.  It appears
        when all are written, from a hidden folder beside it that workers must see.
    group : str
        The column whose values tell groups apart; none may be empty.
    n_files : int, optional
        Files to write, with about as many rows each; by default as many as there are.
        A file that would have no group is not written.
    rows_a_file : int, optional
        In place of ``n_files``, the rows of a file, about.
    memory : int
        The most bytes that each worker holds.
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
    PartitionChangedError
        If a file changes meanwhile.
    """
    folder, out = Path(folder), Path(out)
    if n_files is not None and rows_a_file is not None:
        raise TableError("say how many files, or how many rows a file, not both")
    _check_output_folder(folder, out, replace)
    table = FolderTable(folder.resolve())
    plan = GatherPlan.of(table, out.resolve(), group, memory)
    engine = Serial() if engine is None else engine
    full = f"{plan.disk_full_message}; make room and run it again, and it resumes"
    with explain_full_disk(full):
        with plan.open_run_store(table, n_files, rows_a_file) as store:
            counts = _run_gather_steps(
                plan, table, n_files, rows_a_file, store, engine, progress
            )
        plan.publish_folder(out.resolve())
    return Gathered(
        sum(n_rows for n_rows, _ in counts),
        sum(n_groups for _, n_groups in counts),
        tuple(
            out / plan.file_name(number)
            for number, (n_rows, _) in enumerate(counts)
            if n_rows
        ),
    )


# The plan -----------------------------------------------------------------------------


@dataclass(frozen=True)
class GatherPlan:
    """Parameters of all steps; small, as it is sent with every call.

    ``hidden`` is the folder of the work, with ``dealt`` for buckets and ``files`` for
    the result.  ``n_bytes`` are those of all rows; ``memory`` bounds the bytes of rows
    that are put in order at a time, about ``rows_a_bucket``.
    """

    hidden: Path
    dealt: Path
    files: Path
    schema: pa.Schema
    suffix: str
    group: str
    n_bytes: int
    rows_a_bucket: int
    memory: int

    @classmethod
    def of(cls, table: FolderTable, out: Path, group: str, memory: int) -> GatherPlan:
        """Plan to gather a table into ``out``; refuse columns that cannot be sorted."""
        check_column_exists(group, table.schema.names)
        # The type of the group column is checked without rows.
        Cells(pa.array([], table.schema.field(group).type), group).keys()
        check_sortable(table.schema)
        files = list(table.files())
        schema = files[0].schema
        for place, field in enumerate(schema):  # empty cells are allowed if any file's
            if any(file.schema.field(field.name).nullable for file in files):
                schema = schema.set(place, field.with_nullable(True))
        a_row = _bytes_per_row(files)
        share = min(max(memory // _SHARE, 1), _MOST_BYTES)
        hidden = out.with_name(f".{out.name}.gathering")
        return cls(
            hidden=hidden,
            dealt=hidden / "dealt",
            files=hidden / "files",
            schema=schema,
            suffix=files[0].path.suffix,
            group=group,
            n_bytes=int(sum(map(_count_rows, files)) * a_row),
            rows_a_bucket=max(int(share / (a_row + NUMBERS_BYTES)), 1),
            memory=share,
        )

    def index_path(self, number: int) -> Path:
        """Return the path of the index of slices that were dealt out from a file."""
        return self.dealt / f"{number:05}.npz"

    def file_name(self, number: int) -> str:
        """Return the name of a new file by its number: ``part-00000`` and a suffix."""
        return f"part-{number:05}{self.suffix}"

    @property
    def disk_full_message(self) -> str:
        """The message for a disk that is full, with the bytes that are needed."""
        return (
            f"the disk of {self.hidden.parent} has no room: about "
            f"{self.n_bytes / 1e9:.1f} GB are needed for a while, besides the result"
        )

    def open_run_store(
        self, table: FolderTable, n_files: int | None, rows_a_file: int | None
    ) -> RunStore:
        """Open this run's store, or start anew; refuse one in use and a full disk."""
        run = {
            "variegate": __version__,
            "group": self.group,
            "files": n_files,
            "rows": rows_a_file,
            "memory": self.memory,
            "read": sha256(repr(table.partitions).encode()).hexdigest(),
        }
        path = self.hidden / "gather.sqlite"
        # Without files, they were put in place just before the process was killed.
        if path.exists() and self.files.is_dir():
            try:
                return RunStore(path, run)
            except StoreInUseError:
                raise TableError(
                    f"{self.hidden} is in use by another process: wait until that has "
                    "ended, or name another folder to write"
                ) from None
            except CheckpointError:  # of other work, or damaged
                pass
        if self.hidden.exists():
            shutil.rmtree(self.hidden)
        free = shutil.disk_usage(self.hidden.parent).free
        if self.n_bytes > free:
            raise OSError(f"{self.disk_full_message}, and {free / 1e9:.1f} GB are free")
        self.dealt.mkdir(parents=True)
        self.files.mkdir()
        return RunStore(path, run)

    def publish_folder(self, out: Path) -> None:
        """Move the finished files to ``out``, all at once; delete the hidden folder."""
        shutil.rmtree(self.dealt, ignore_errors=True)
        if out.exists():
            # Two steps: after a kill between them, the next run does the second.
            if any(out.iterdir()):
                os.rename(out, self.hidden / "replaced")
            else:
                out.rmdir()  # which not every system replaces
        os.rename(self.files, out)
        shutil.rmtree(self.hidden)


def _check_output_folder(folder: Path, out: Path, replace: bool) -> None:
    """Refuse ``out`` in or above ``folder``, or not empty (tables may be replaced)."""
    source, target = folder.resolve(), out.resolve()
    if source == target or source in target.parents or target in source.parents:
        raise TableError(f"{out} and {folder} overlap: name another folder to write")
    if not target.parent.is_dir():
        raise TableError(f"cannot write {out}: there is no folder {target.parent}")
    if not target.exists():
        return
    if not target.is_dir():
        raise TableError(f"cannot write {out}: it is not a folder")
    there = sorted(target.iterdir())
    if there and not replace:
        raise TableError(f"{out} is not empty: name another folder, or replace it")
    for path in there:
        if path.suffix.lower() not in FORMATS or path.is_dir():
            raise TableError(
                f"{out} holds {path.name!r}, which is not a table, and would be lost: "
                "name another folder"
            )


def _count_rows(file: TableFile) -> int:
    """Return the number of rows, counted by reading if the file does not say it."""
    first = file.schema.names[:1]
    known = file.n_rows
    return sum(b.num_rows for b in file.batches(first)) if known is None else known


def _bytes_per_row(files: Sequence[TableFile]) -> float:
    """Estimate the mean bytes of a row by the first batches of up to eight files."""
    some = files[:: -(-len(files) // _LOOKED_INTO)]
    heads = [head for file in some if (head := next(file.batches(), None)) is not None]
    n_rows = sum(head.num_rows for head in heads)
    return float(sum(map(data_bytes, heads)) / max(n_rows, 1))


# The steps ----------------------------------------------------------------------------


def _run_gather_steps(
    plan: GatherPlan,
    table: FolderTable,
    n_files: int | None,
    rows_a_file: int | None,
    store: RunStore,
    engine: Engine,
    progress: Progress,
) -> list[tuple[int, int]]:
    """Run the unfinished steps; return the row and group counts of each new file."""
    rows, reader = rows_of(table), RowReader(plan.schema, Columns(group=plan.group))

    def count_groups() -> bytes:
        """Count the rows and groups of all files, as bytes for the store."""
        told = partial(progress, "reading")
        found = list(engine.map(partial(scan_groups, reader=reader), rows, told))
        return Counts.of(found, rows).to_bytes()

    def run_step(stage: str, work: Any, items: Sequence[tuple[int, Any]]) -> list[Any]:
        """Return ``work(item)`` without its number, as a list, for each item.

        Items and results begin with a number.  Finished results are JSON in the store,
        with stage and number for a key; ``stage`` is also the label of the progress.
        """
        keys = [f"{stage} {number}" for number, _ in items]
        missing = [k for k, key in enumerate(keys) if store.get(key) is None]
        todo, told = [items[k] for k in missing], partial(progress, stage)
        for number, *result in engine.map(work, todo, told, ordered=False):
            store.put(f"{stage} {number}", json.dumps(result).encode())
        return [json.loads(store.get(key) or "") for key in keys]

    counts = Counts.from_bytes(store.remember("counts", count_groups))
    n_read = int(counts.n_rows.sum())
    if rows_a_file is not None:
        n_files = -(-n_read // rows_a_file)
    n_files = len(rows) if n_files is None else max(n_files, 1)
    bounds, starts = file_bounds(counts.sizes, n_files, plan.rows_a_bucket)
    deal = partial(_deal_out_file, plan=plan, reader=reader, bounds=bounds)
    run_step("dealing out", deal, list(enumerate(counts.deals(rows))))
    # Writers read the indices of their pieces, which would not all fit in memory.
    buckets = enumerate(pairwise(starts))
    tasks = [(k, (first, end, bounds, len(rows))) for k, (first, end) in buckets]
    written = run_step("writing", partial(_write_file, plan=plan), tasks)
    n_written = sum(n_rows for n_rows, _ in written)
    if n_written != n_read:
        raise TableError(f"{n_read:,} rows were read, but {n_written:,} written")
    return written


def _deal_out_file(
    item: tuple[int, Deal], plan: GatherPlan, reader: RowReader, bounds: IntArray
) -> tuple[int]:
    """Deal rows out to buckets, and write the index of slices; return the file number.

    ``item`` is that number and the deal of the file.
    """
    pieces = deal_out(item, reader, bounds, plan.dealt, plan.memory)
    content = arrays_to_bytes(path=pieces.path, slices=pieces.slices)
    write_atomic(plan.index_path(item[0]), content)
    return (item[0],)


def _write_file(item: tuple[int, Any], plan: GatherPlan) -> tuple[int, int, int]:
    """Write buckets to a file; return its number and numbers of rows and groups.

    ``item`` is the number, and: first and last bucket (exclusive), the groups that
    buckets begin with, and the number of files that were dealt out.
    """
    number, (first, end, bounds, n_dealt) = item
    pieces = []
    for k in range(n_dealt):
        stored = arrays_from_bytes(plan.index_path(k).read_bytes())
        pieces.append(
            BucketSlices(str(stored["path"]), stored["slices"]).of_buckets(first, end)
        )
    with table_writer(plan.files / plan.file_name(number), plan.schema) as write:
        for bucket in range(first, end):
            here = [piece.of_buckets(bucket, bucket + 1) for piece in pieces]
            if sum(piece.n_rows for piece in here) > plan.rows_a_bucket:  # one group
                batches: Any = (one for piece in here for one in piece.batches())
            else:
                batches = [read_bucket(here)]
            for batch in batches:
                part = pa.RecordBatch.from_arrays(
                    batch.columns[2:], schema=sortable_schema(plan.schema)
                )
                write(part.cast(plan.schema))
    n_rows = sum(piece.n_rows for piece in pieces)
    return number, n_rows, int(bounds[end] - bounds[first])
