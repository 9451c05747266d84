"""Table files, written batch by batch, that appear whole or not at all.

Parquet and Arrow files keep every type (Parquet knows no ``date64`` and no seconds in
timestamps: they come back as ``date32`` and milliseconds).  CSV and JSON lines hold
dates, times and decimals as text in ISO form.  A null is an empty cell of CSV.  JSON
has no NaN and no infinities: they are written as null.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as compute
import pyarrow.csv as arrow_csv
import pyarrow.ipc as arrow_ipc
import pyarrow.parquet as parquet

from variegate.files.atomic import name_path_in_errors, new_file
from variegate.tables.batches import data_bytes
from variegate.tables.columns import is_list, is_number, is_text
from variegate.tables.errors import repeated_names
from variegate.tables.reading import format_of

_GROUP_ROWS = 2**16
_GROUP_BYTES = 32 * 2**20


def check_writable(path: str | Path, schema: pa.Schema) -> None:
    """Refuse an unknown suffix; raise ValueError for types its format cannot hold."""
    path = Path(path)
    file_format = format_of(path)
    if repeated_names(schema.names):
        raise ValueError(
            f"cannot write {path}: several columns have the name "
            f"{repeated_names(schema.names)}; rename them"
        )
    wrong = [f"{f.name!r} ({f.type})" for f in unwritable_columns(path, schema)]
    if wrong:
        others = {"csv": ".parquet or .jsonl", "jsonl": ".parquet"}
        raise ValueError(
            f"cannot write {path}: a {path.suffix} file cannot hold "
            f"{', '.join(wrong)}; write {others.get(file_format, '.arrow')}, or leave "
            "such columns out"
        )


def unwritable_columns(path: str | Path, schema: pa.Schema) -> list[pa.Field]:
    """Return the columns of types that the format of a path cannot hold."""
    path = Path(path)
    file_format = format_of(path)
    if file_format in ("csv", "jsonl"):
        fits = _fits_csv_cell if file_format == "csv" else _fits_json
        return [field for field in schema if not fits(field.type)]
    found = []
    for field in schema:
        try:
            _WRITERS[file_format](io.BytesIO(), pa.schema([field]), path).close()
        except pa.ArrowException:
            found.append(field)
    return found


@contextmanager
def table_writer(
    path: str | Path, schema: pa.Schema
) -> Iterator[Callable[[pa.RecordBatch], None]]:
    """Open a table file for writing; the block gets a function that takes batches.

    All of them have the same schema, and the suffix of the file says its format.  It
    appears when the block ends, and only if it ends without an error: see
    :func:`variegate.files.atomic.new_file`.
    """
    path = Path(path)
    check_writable(path, schema)

    def write(batch: pa.RecordBatch) -> None:
        """Write a batch, or refuse another schema."""
        if not batch.schema.equals(schema):
            raise ValueError(
                f"cannot write {path}: a batch has the columns {batch.schema}, but "
                f"the file has {schema}"
            )
        with name_path_in_errors(path):
            writer.write(batch)

    with new_file(path) as file:
        with name_path_in_errors(path):
            writer = _WRITERS[format_of(path)](file, schema, path)
        try:
            yield write
            with name_path_in_errors(path):
                writer.close()
        except BaseException:
            # The rest is discarded with the file, and may not be written at all.
            with suppress(Exception):
                writer.close()
            raise


class _Writer:
    """Writes batches by a writer of Arrow; columns may be changed on the way."""

    _writer: Any
    _schema: pa.Schema

    def write(self, batch: pa.RecordBatch) -> None:
        """Convert the columns of a batch, and write it."""
        arrays = [
            self._convert_array(k, column) for k, column in enumerate(batch.columns)
        ]
        self._writer.write_batch(pa.record_batch(arrays, schema=self._schema))

    def _convert_array(self, place: int, array: pa.Array) -> pa.Array:
        """Return column ``place`` (from 0) of a batch as the format can hold it."""
        raise NotImplementedError

    def close(self) -> None:
        """Write all that is held, and the footer if any; the file stays open."""
        self._writer.close()


class _ParquetWriter(_Writer):
    """Writes Parquet, several batches to a row group, as each slows readers down."""

    def __init__(self, file: BinaryIO, schema: pa.Schema, path: Path) -> None:
        # Without checksums, damage to stored numbers would go unseen.
        self._writer = parquet.ParquetWriter(
            file, schema, compression="zstd", write_page_checksum=True
        )
        self._schema = schema
        self._clear_waiting()

    def _clear_waiting(self) -> None:
        """Empty the list of batches that wait for a row group."""
        self._waiting: list[pa.RecordBatch] = []
        self._n_rows = self._n_bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Hold a batch; write a row group when there is enough for one."""
        for first in range(0, batch.num_rows, _GROUP_ROWS):
            part = batch.slice(first, _GROUP_ROWS)
            self._waiting.append(part)
            self._n_rows += part.num_rows
            self._n_bytes += data_bytes(part)
            if self._n_rows >= _GROUP_ROWS or self._n_bytes >= _GROUP_BYTES:
                self._write_group()

    def _write_group(self) -> None:
        """Write all waiting batches as one row group."""
        if self._n_rows:
            table = pa.Table.from_batches(self._waiting, self._schema)
            self._writer.write_table(table, row_group_size=self._n_rows)
        self._clear_waiting()

    def close(self) -> None:
        """Write the batches that wait, and the footer."""
        self._write_group()
        self._writer.close()


class _ArrowWriter(_Writer):
    """Writes Arrow files; dictionaries only grow, because a file can replace none."""

    def __init__(self, file: BinaryIO, schema: pa.Schema, path: Path) -> None:
        options = arrow_ipc.IpcWriteOptions(emit_dictionary_deltas=True)
        self._writer = arrow_ipc.new_file(file, schema, options=options)
        self._schema = schema
        self._held: dict[int, pa.DictionaryArray] = {}

    def _convert_array(self, place: int, array: pa.Array) -> pa.Array:
        """Return an array whose dictionary begins with the one written before."""
        if not pa.types.is_dictionary(array.type):
            return array
        held = self._held.get(place)
        if held is not None and not held.dictionary.equals(array.dictionary):
            array = pa.chunked_array([held, array]).unify_dictionaries().chunk(1)
        self._held[place] = array.slice(0, 0)
        return array


class _CsvWriter(_Writer):
    """Writes CSV, or with tabs where the suffix is ``.tsv``, with a quoted header."""

    def __init__(self, file: BinaryIO, schema: pa.Schema, path: Path) -> None:
        delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
        header = io.StringIO(newline="")
        rows = csv.writer(
            header, delimiter=delimiter, quoting=csv.QUOTE_ALL, lineterminator="\n"
        )
        rows.writerow(schema.names)
        file.write(header.getvalue().encode())
        self._is_single = len(schema) == 1
        self._schema = pa.schema(
            [
                (f.name, self._convert_array(0, pa.array([], f.type)).type)
                for f in schema
            ]
        )
        self._writer = arrow_csv.CSVWriter(
            file,
            self._schema,
            write_options=arrow_csv.WriteOptions(
                include_header=False, delimiter=delimiter
            ),
        )

    def _convert_array(self, place: int, array: pa.Array) -> pa.Array:
        """Return cells for CSV; in a single column, an empty one is quoted."""
        cells = _as_cells(array)
        # A row of one empty cell would be an empty line, which readers skip.
        return cells.cast(pa.string()).fill_null("") if self._is_single else cells


class _JsonWriter(_Writer):
    """Writes JSON lines, an object for each row."""

    def __init__(self, file: BinaryIO, schema: pa.Schema, path: Path) -> None:
        self._file = file
        self._names = schema.names
        self._encode = json.JSONEncoder(
            ensure_ascii=False, allow_nan=False, separators=(",", ":")
        ).encode

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a line for each row of a batch."""
        columns = [_as_json(column).to_pylist() for column in batch.columns]
        for row in zip(*columns, strict=True):
            line = self._encode(dict(zip(self._names, row, strict=True)))
            self._file.write(f"{line}\n".encode())

    def close(self) -> None:
        """Do nothing: nothing is held."""


_WRITERS: dict[str, Callable[[BinaryIO, pa.Schema, Path], _Writer]] = {
    "parquet": _ParquetWriter,
    "arrow": _ArrowWriter,
    "csv": _CsvWriter,
    "jsonl": _JsonWriter,
}


# Types as text --------------------------------------------------------------------


def _fits_csv_cell(kind: pa.DataType) -> bool:
    """Tell whether values of a type can be cells of CSV."""
    if pa.types.is_dictionary(kind):
        return _fits_csv_cell(kind.value_type)
    known = (_is_written_as_text, is_number, is_text, pa.types.is_null)
    return any(is_known(kind) for is_known in known)


def _fits_json(kind: pa.DataType) -> bool:
    """Tell whether values of a type can be written as JSON."""
    if pa.types.is_dictionary(kind) or is_list(kind):
        return _fits_json(kind.value_type)
    if pa.types.is_struct(kind):
        names = [field.name for field in kind]
        return len(set(names)) == len(names) and all(_fits_json(f.type) for f in kind)
    return _fits_csv_cell(kind)


def _is_written_as_text(kind: pa.DataType) -> bool:
    """Tell whether a type is a decimal, a date or a time."""
    t = pa.types
    return any(f(kind) for f in (t.is_decimal, t.is_date, t.is_time, t.is_timestamp))


def _as_iso_text(array: pa.Array) -> pa.Array:
    """Cast decimals, dates and times to text, as ISO 8601 has it."""
    text = array.cast(pa.string())
    if pa.types.is_timestamp(array.type):
        return compute.replace_substring(text, " ", "T", max_replacements=1)
    return text


def _as_cells(array: pa.Array) -> pa.Array:
    """Cast an array to a type that Arrow's CSV writer takes, or return it as it is."""
    if pa.types.is_dictionary(array.type):
        return _as_cells(array.dictionary_decode())
    if pa.types.is_timestamp(array.type):
        return _as_iso_text(array)
    if pa.types.is_null(array.type) or pa.types.is_string_view(array.type):
        return array.cast(pa.string())
    if pa.types.is_float16(array.type):
        return array.cast(pa.float32())
    return array


def _as_json(array: pa.Array) -> pa.Array:
    """Return values whose ``to_pylist`` can be JSON: times as text, NaN as null."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _as_json(array.dictionary_decode())
    if _is_written_as_text(kind):
        return _as_iso_text(array)
    if pa.types.is_floating(kind):
        if not pa.types.is_float64(kind):
            # By way of text, 0.1 in single precision is 0.1, not 0.10000000149011612.
            array = array.cast(pa.string()).cast(pa.float64())
        finite = compute.is_finite(array)
        return compute.if_else(finite, array, pa.scalar(None, pa.float64()))
    if is_list(kind):
        # A copy begins at its first value, as lists with a mask must.
        lists = pa.concat_arrays([array.cast(pa.large_list(kind.value_type))])
        values = _as_json(lists.values)
        return pa.LargeListArray.from_arrays(
            lists.offsets, values, mask=lists.is_null()
        )
    if pa.types.is_struct(kind):
        return pa.StructArray.from_arrays(
            [_as_json(part) for part in array.flatten()],
            names=[field.name for field in kind],
            mask=array.is_null(),
        )
    return array
