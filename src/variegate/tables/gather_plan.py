"""The plan of gathering a folder, and the hidden folder in which it is done."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pyarrow as pa

from variegate._version import __version__
from variegate.files.run_store import CheckpointError, RunStore, StoreInUseError
from variegate.tables.batches import data_bytes
from variegate.tables.cells import Cells
from variegate.tables.errors import TableError
from variegate.tables.reading import FORMATS, TableFile
from variegate.tables.rows import stored_schema
from variegate.tables.shuffle import FULL, NUMBERS_BYTES
from variegate.tables.table import FolderTable

#: The share of memory that rows take: they are there twice while they are put in order,
#: and a file that is written needs some.
_SHARE = 5

#: The most bytes of rows in order at a time; Arrow counts those of a text in 32 bits.
_MOST_BYTES = 2**30

#: Files that are looked into to tell how large a row is.
_LOOKED_INTO = 8

_STORE = "gather.sqlite"


@dataclass(frozen=True)
class GatherPlan:
    """Parameters of all steps; small, as it is sent with every call.

    ``hidden`` is the folder of intermediate files, ``memory`` the most bytes of rows to
    put in order at a time.
    """

    hidden: Path
    schema: pa.Schema
    suffix: str
    group: str
    n_bytes: int
    rows_a_bucket: int
    memory: int

    @classmethod
    def of(cls, table: FolderTable, out: Path, group: str, memory: int) -> GatherPlan:
        """Look at the files, and refuse those that cannot be gathered."""
        _check_columns(table, group)
        files = list(table.files())
        a_row = _bytes_a_row(files)
        share = min(max(memory // _SHARE, 1), _MOST_BYTES)
        out = out.resolve()
        return cls(
            hidden=out.with_name(f".{out.name}.gathering"),
            schema=_common(files),
            suffix=files[0].path.suffix,
            group=group,
            n_bytes=int(sum(map(_n_rows, files)) * a_row),
            rows_a_bucket=max(int(share / (a_row + NUMBERS_BYTES)), 1),
            memory=share,
        )

    @property
    def dealt(self) -> Path:
        """Where rows lie that are dealt out."""
        return self.hidden / "dealt"

    def dealt_from(self, number: int) -> tuple[Path, Path]:
        """Return where the rows of a file lie that are dealt out, and their index."""
        path = self.dealt / f"{number:05}.arrow"
        return path, path.with_suffix(".npy")

    @property
    def files(self) -> Path:
        """Where the files are written."""
        return self.hidden / "files"

    def name_of(self, number: int) -> str:
        """Return the name of a file."""
        return f"part-{number:05}{self.suffix}"

    def opened(
        self, table: FolderTable, n_files: int | None, rows_a_file: int | None
    ) -> RunStore:
        """Open the run store in the hidden folder; that of other work is removed."""
        run = {
            "variegate": __version__,
            "group": self.group,
            "files": n_files,
            "rows": rows_a_file,
            "memory": self.memory,
            "read": sha256(repr(table.partitions).encode()).hexdigest(),
        }
        path = self.hidden / _STORE
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
            raise OSError(f"{self._no_room()}, and {free / 1e9:.1f} GB are free")
        self.dealt.mkdir(parents=True)
        self.files.mkdir()
        return RunStore(path, run)

    def put_in_place(self, out: Path) -> None:
        """Let the finished files appear as the folder, all at once."""
        out = out.resolve()
        shutil.rmtree(self.dealt, ignore_errors=True)
        if out.exists():
            # Two steps: a process that is killed between them does the second next
            # time.
            if any(out.iterdir()):
                os.rename(out, self.hidden / "replaced")
            else:
                out.rmdir()  # which not every system replaces
        os.rename(self.files, out)
        shutil.rmtree(self.hidden)

    @contextmanager
    def named_if_full(self) -> Iterator[None]:
        """Say what is needed where the disk is full."""
        try:
            yield
        except OSError as error:
            cause = error.__cause__ or error
            if isinstance(cause, OSError) and cause.errno in FULL:
                raise OSError(
                    f"{self._no_room()}; make room and run it again, and it resumes"
                ) from error
            raise

    def _no_room(self) -> str:
        return (
            f"the disk of {self.hidden.parent} has no room: about "
            f"{self.n_bytes / 1e9:.1f} GB are needed for a while, besides the result"
        )


def check_out(folder: Path, out: Path, replace: bool) -> None:
    """Refuse a folder that cannot be written, or should not be replaced."""
    source, target = folder.resolve(), out.resolve()
    if source == target or source in target.parents or target in source.parents:
        raise TableError(f"{out} and {folder} overlap: name another folder to write")
    if not target.parent.is_dir():
        raise TableError(f"cannot write {out}: there is no folder {target.parent}")
    if not target.exists():
        return
    if not target.is_dir():
        raise TableError(f"cannot write {out}: it is not a folder")
    names = sorted(path.name for path in target.iterdir())
    if names and not replace:
        raise TableError(f"{out} is not empty: name another folder, or replace it")
    for name in names:
        if Path(name).suffix.lower() not in FORMATS or (target / name).is_dir():
            raise TableError(
                f"{out} holds {name!r}, which is not a table, and would be lost: name "
                "another folder"
            )


def _check_columns(table: FolderTable, group: str) -> None:
    names = table.schema.names
    if group not in names:
        raise TableError(
            f"{table.name} has no column {group!r}; it has "
            f"{', '.join(map(repr, names))}"
        )
    # No rows are read: what is wrong with a type is wrong with none of them.
    Cells(pa.array([], table.schema.field(group).type), group).keys()
    for field in stored_schema(table.schema):
        try:
            pa.nulls(1, field.type).take(pa.array([0]))
        except pa.ArrowNotImplementedError:
            raise TableError(
                f"column {field.name!r} holds {field.type} values, which Arrow cannot "
                "put in another order; convert it"
            ) from None


def _common(files: Sequence[TableFile]) -> pa.Schema:
    """Return the columns of the first file; empty cells are allowed where any does."""
    schema = files[0].schema
    for place, field in enumerate(schema):
        if any(file.schema.field(field.name).nullable for file in files):
            schema = schema.set(place, field.with_nullable(True))
    return schema


def _n_rows(file: TableFile) -> int:
    if file.n_rows is not None:
        return file.n_rows
    return sum(batch.num_rows for batch in file.batches(file.schema.names[:1]))


def _bytes_a_row(files: Sequence[TableFile]) -> float:
    """Return how much memory a row takes, by the first rows of some files."""
    n_rows = n_bytes = 0
    for file in files[:: -(-len(files) // _LOOKED_INTO)]:
        batch = next(file.batches(), None)
        if batch is not None:
            n_rows += batch.num_rows
            n_bytes += data_bytes(batch)
    return n_bytes / max(n_rows, 1)
