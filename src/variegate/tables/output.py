"""Chosen rows as a table of the type that was given, in a file, or in a folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa

from variegate._progress import Progress, ignore
from variegate._typing import AnyArray
from variegate.files.atomic import as_plain_value
from variegate.files.run_store import CheckpointError, RunStore, StoreInUseError
from variegate.partitions import Partition
from variegate.tables.choosing import Choices
from variegate.tables.columns import match_columns
from variegate.tables.errors import TableError, TableFileError
from variegate.tables.reading import TableFile
from variegate.tables.table import FolderTable, MemoryTable, Table, as_table
from variegate.tables.writing import check_writable, table_writer


def write_table(table: Any, path: str | Path) -> None:
    """Write a data frame or an Arrow table to a file, whole or not at all.

    Parameters
    ----------
    table : data frame, Arrow table or path of a file
    path : str or Path
        Its suffix says the format: ``.parquet``, ``.csv``, ``.jsonl`` or ``.arrow``.
    """
    source = as_table(table)
    with table_writer(path, source.schema) as write:
        for batch in source.batches():
            write(batch)


@dataclass(frozen=True)
class Output:
    """The rows, columns and file of choices.

    Rows keep their order, columns and types.  The columns "selection_rank" and, from a
    model, "inclusion_probability" are added; where all rows are kept, also "selected".
    The file appears when it is complete.
    """

    keep_all: bool = False
    drop: Sequence[str] = ()
    out: str | Path | None = None

    def check(self, table: Table, *, adds_probability: bool) -> None:
        """Refuse, before rows are chosen, columns and files that cannot be written."""
        schema = self._output_schema(table, adds_probability)
        if self.out is not None:
            check_writable(self.out, schema)

    def deliver(self, X: Any, choices: Choices, progress: Progress = ignore) -> Any:
        """Return the chosen rows of X, or all if kept, as a table of its type.

        With ``out``, write them there, and return the choices.
        """
        if self.out is None:
            return self._select_in_frame(X, choices)
        self._write_rows(as_table(X), choices, self.out, progress)
        return choices

    def _output_schema(self, table: Table, adds_probability: bool) -> pa.Schema:
        """Return kept columns, then added ones; refuse a name that is in both."""
        kept = [
            table.schema.field(name) for name in self._kept_columns(table.schema.names)
        ]
        added = [pa.field("selected", pa.bool_())] * self.keep_all
        added.append(pa.field("selection_rank", pa.int32()))
        added += [pa.field("inclusion_probability", pa.float64())] * adds_probability
        names = [field.name for field in kept]
        for field in added:
            if field.name in names:
                raise TableError(
                    f"the table already has a column {field.name!r}, which a selection "
                    "adds: rename or drop it first"
                )
        return pa.schema([*kept, *added], table.schema.metadata)

    def _kept_columns(self, names: Sequence[str]) -> list[str]:
        """Return the names of columns that are not dropped."""
        dropped = match_columns(self.drop, names, "what is dropped")
        return [name for name in names if name not in dropped]

    def _added_columns(self, choices: Choices, rows: Any) -> dict[str, AnyArray]:
        """Return the values of the added columns, by name, in rows with these numbers.

        The rank is 0 in rows that are not selected.
        """
        columns: dict[str, AnyArray] = {}
        if self.keep_all:
            columns["selected"] = choices.selected[rows]
        columns["selection_rank"] = choices.rank[rows]
        if choices.probability is not None:
            columns["inclusion_probability"] = choices.probability[rows]
        return columns

    def _select_in_frame(self, frame: Any, choices: Choices) -> Any:
        """Return the chosen rows, or all if kept, as a frame of the same library."""
        import narwhals.stable.v2 as nw

        if isinstance(frame, MemoryTable):
            frame = frame.table
        elif isinstance(frame, str | Path | TableFile | FolderTable):
            file = as_table(frame)
            frame = pa.Table.from_batches(list(file.batches()), file.schema)
        native = nw.from_native(frame, eager_only=True)
        n_rows = len(choices.rank)
        rows = np.arange(n_rows) if self.keep_all else np.flatnonzero(choices.selected)
        series = [
            nw.new_series(name, values, backend=native.implementation)
            for name, values in self._added_columns(choices, rows).items()
        ]
        kept = native.select(self._kept_columns(native.columns))[rows]
        return kept.with_columns(*series).to_native()

    def _write_rows(
        self, table: Table, choices: Choices, path: str | Path, progress: Progress
    ) -> None:
        """Write the chosen rows, or all if kept, to a file, batch by batch."""
        schema = self._output_schema(table, choices.probability is not None)
        first = 0
        with table_writer(path, schema) as write:
            for batch in table.batches(self._kept_columns(table.schema.names)):
                end = first + batch.num_rows
                rows = np.arange(first, end)
                if not self.keep_all:
                    rows = rows[choices.selected[first:end]]
                    batch = batch.take(pa.array(rows - first))
                if len(rows):
                    arrays = [
                        # What is not known is left empty.
                        pa.array(values, schema.field(name).type, from_pandas=True)
                        for name, values in self._added_columns(choices, rows).items()
                    ]
                    write(pa.record_batch([*batch.columns, *arrays], schema=schema))
                first = end
                progress("writing", first, len(choices.rank))


# The run store of a folder of chosen rows ---------------------------------------------

#: Holds the model and the settings of choosing, the input files as they were then, and
#: counts of each file that was written.
MANIFEST = ".manifest.sqlite"

_INPUTS = "inputs"
_REMEDY = "name another folder, or remove that one"


def size_and_mtime(partition: Partition) -> list[int]:
    """Return the bytes and the time of change (ns) of a file when it was listed."""
    return [partition.n_bytes, partition.modified_ns]


class Manifest:
    """Files that rows were chosen from, and files that were written to a folder.

    ``run`` has all settings of choosing and a hash of the model, as plain values.  A
    folder that holds something else, or rows that were chosen by another model or with
    other settings, is refused.
    """

    def __init__(self, folder: Path, run: Mapping[str, Any]) -> None:
        self.folder, self._run = folder, run
        self._store: RunStore | None = None
        #: Names of the files that rows are chosen from, with ``size_and_mtime``.
        self.inputs: dict[str, list[int]] = {}
        #: Names of files that were left out.
        self.unreadable: list[str] = []
        #: Names of the files that were written, and their counts.
        self.files: dict[str, dict[str, Any]] = {}
        if not folder.exists():
            return
        if not folder.is_dir():
            raise TableFileError(f"{folder} is a file; name a folder")
        if (folder / MANIFEST).exists():
            self._read_entries()
        elif others := sorted(p.name for p in folder.iterdir() if p.name[0] != "."):
            raise TableFileError(
                f"{folder} holds {others[0]!r} and no {MANIFEST}: name a folder that "
                "is empty, or does not exist"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._store is not None:
            self._store.close()

    def _read_entries(self) -> None:
        """Set inputs, unreadable and files by the store; skip files of other inputs."""
        store = self._open_store()
        stored = {key: json.loads(store.get(key) or "{}") for key in store.keys()}  # noqa: SIM118
        inputs = stored.pop(_INPUTS, {})
        self.inputs = inputs.get("read", {})
        self.unreadable = inputs.get("unreadable", [])
        self.files = {
            name: entry
            for name, entry in stored.items()
            if entry and entry["input"] == self.inputs.get(name)
        }

    def _open_store(self) -> RunStore:
        """Return the store, opened at first use; refuse the folder of another run."""
        if self._store is not None:
            return self._store
        try:
            self._store = RunStore(self.folder / MANIFEST, self._run)
        except StoreInUseError:
            raise TableFileError(
                f"{self.folder} is in use by another process: wait until that has "
                "ended, or name another folder"
            ) from None
        except CheckpointError as error:
            problem = f"the rows in {self.folder} were chosen "
            if not error.differences:
                problem = f"{self.folder / MANIFEST} is damaged, or not a manifest"
            elif any(one.startswith("model was") for one in error.differences):
                problem += "by another model"
            else:
                problem += f"with other settings ({'; '.join(error.differences)})"
            raise TableFileError(f"{problem}: {_REMEDY}") from None
        return self._store

    def refuse_changes(self, partitions: Sequence[Partition]) -> None:
        """Refuse recorded inputs that are gone from ``partitions``, or changed."""
        listed = {Path(p.path).name: p for p in partitions}
        for name, known in self.inputs.items():
            if name not in listed:
                raise TableFileError(
                    f"{name} is gone, from which rows were chosen into {self.folder}: "
                    f"{_REMEDY}"
                )
            if size_and_mtime(listed[name]) != known:
                raise TableFileError(
                    f"{listed[name].path} has changed since rows were chosen from it "
                    f"into {self.folder}: {_REMEDY}"
                )

    def is_complete(self, files: Sequence[Partition], skip_unreadable: bool) -> bool:
        """Return whether rows of all readable files are written; False without any."""
        if self.unreadable and not skip_unreadable:
            return False
        names = {Path(one.path).name for one in files} - set(self.unreadable)
        return bool(names) and all(map(self.has_output, names))

    def record_inputs(
        self, files: Sequence[Partition], unreadable: Sequence[str]
    ) -> None:
        """Store sizes and times of input files, and names of unreadable ones.

        The folder is made if necessary.
        """
        try:
            self.folder.mkdir(exist_ok=True)
        except OSError as error:
            raise TableFileError(
                f"cannot make the folder {self.folder}: {error.strerror}"
            ) from None
        self.inputs = {Path(one.path).name: size_and_mtime(one) for one in files}
        self.unreadable = sorted(unreadable)
        self._put_entry(_INPUTS, {"read": self.inputs, "unreadable": self.unreadable})

    def has_output(self, name: str) -> bool:
        """Return whether the output for an input is there, of the recorded size."""
        path = self.folder / name
        n_bytes = path.stat().st_size if path.is_file() else None
        return name in self.files and self.files[name]["n_bytes"] == n_bytes

    def record_output(self, name: str, entry: Mapping[str, Any]) -> None:
        """Store the counts of a file that was written; its ``name`` is the input's."""
        self.files[name] = dict(entry)
        self._put_entry(name, entry)

    def _put_entry(self, key: str, value: Mapping[str, Any]) -> None:
        """Write a value to the store as JSON."""
        self._open_store().put(key, json.dumps(value, default=as_plain_value).encode())
