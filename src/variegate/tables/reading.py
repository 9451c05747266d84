"""Table files, read in batches of bounded memory.

A file is opened anew for every pass and read from front to back, so that a pass holds a
few batches, however large the file, its row groups or its rows.  All damage, even in
the last page, is a :class:`TableFileError` that names the file.

A Parquet file is read page by page.  Of an Arrow file, a mapped window is copied out
and forgotten.  CSV has no types: every cell is text.  The types of JSON lines are those
of the first 16 MB, except that text which looks like a time stays text.
"""

from __future__ import annotations

import bisect
import csv
import io
import mmap
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.ipc as arrow_ipc
import pyarrow.json as arrow_json
import pyarrow.parquet as parquet

from variegate.files.json_text import JsonLines
from variegate.tables import batches
from variegate.tables.batches import split_batch, with_row_offsets
from variegate.tables.errors import (
    BLOCK_BYTES,
    NAMES,
    TableFileError,
    explain_read_error,
    refuse_other_separator,
    repeated_names,
)

FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
_SIGNS = {b"PAR1": "parquet", b"ARROW1": "arrow"}
_HEAD_BYTES = 16 * 2**20
_PAGE_BUFFER = 2**20
_DAMAGE = (pa.ArrowException, OSError, ValueError, MemoryError, OverflowError)


def format_of(path: Path) -> str:
    """Return the format, in ``FORMATS``, of a suffix; refuse other suffixes."""
    try:
        return FORMATS[path.suffix.lower()]
    except KeyError:
        raise TableFileError(
            f"{path}: the suffix {path.suffix!r} is of no known table format; known "
            f"are {', '.join(FORMATS)}"
        ) from None


class TableFile:
    """A Parquet, CSV, JSON-lines or Arrow file, read in batches, again and again.

    Parameters
    ----------
    path : str or Path
        Its suffix says the format: ``.parquet``, ``.pq``; ``.csv``, ``.tsv`` (with
        tabs); ``.jsonl``, ``.ndjson``; ``.arrow``, ``.feather``, ``.ipc`` (files and
        streams).
    separator : str, optional
        The character between the cells of CSV, such as ``";"``; by default a comma, and
        a tab where the suffix is ``.tsv``.

    Attributes
    ----------
    path : Path
    format : {"parquet", "csv", "jsonl", "arrow"}
    schema : pyarrow.Schema
    n_rows : int or None
        Where the file says it.

    Raises
    ------
    TableFileError
        If the file is not there, or not what its suffix says.
    """

    def __init__(self, path: str | Path, separator: str | None = None) -> None:
        self.path = Path(path)
        self.format = format_of(self.path)
        self.separator = separator
        self._check_separator()
        self.n_rows: int | None = None
        self._has_rows = False  # of CSV, where the other reader wants at least one
        self._check_exists()
        with self._name_file_in_errors():
            self.schema = getattr(self, f"_{self.format}_schema")()
            names = self.schema.names
        if repeated_names(names):
            raise TableFileError(
                f"{self.path}: several columns have the name {repeated_names(names)}; "
                "rename them"
            )
        if not names:
            raise TableFileError(f"{self.path} has no columns")
        if self.format == "csv" and separator is None and len(names) == 1:
            refuse_other_separator(self.path, names[0])

    def __repr__(self) -> str:
        return f"<TableFile: {len(self.schema)} columns in {self.path}>"

    @property
    def name(self) -> str:
        """The name in messages."""
        return str(self.path)

    @property
    def is_seekable(self) -> bool:
        """Whether rows in the middle are found without reading those before."""
        return self.format in ("parquet", "arrow")

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield some columns, or all, in file order, in batches of 24 MB at most."""
        names = self.schema.names if columns is None else list(columns)
        return (batch for _, batch in self.row_range(names))

    def row_range(
        self, names: Sequence[str], first: int = 0, end: int | None = None
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield batches of the rows from ``first`` to before ``end``, None for all.

        Before each batch comes the number of its first row in the file, from 0.
        """
        known = set(self.schema.names)
        for name in names:
            if name not in known:
                raise TableFileError(
                    f"{self.path} has no column {name!r}; it has "
                    f"{', '.join(map(repr, self.schema.names))}"
                )
        last = sys.maxsize if end is None else end
        return self._rows_within(list(names), first, last)

    def _rows_within(
        self, names: list[str], first: int, end: int
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield slices of batches in ``[first, end)``, with their first row numbers."""
        schema = pa.schema(
            [self.schema.field(name) for name in names], self.schema.metadata
        )
        read = getattr(self, f"_{self.format}_batches")(names, first)
        reached = 0
        while reached < end:
            # Only what happens in here is the file's fault.
            with self._name_file_in_errors():
                found = next(read, None)
                if found is None:
                    return
                start, batch = found
                reached = start + batch.num_rows
                low, high = max(first - start, 0), min(end, reached) - start
                if high <= low:
                    continue
                batch = batch.select(names).slice(low, high - low)
                if self.format != "arrow":  # where it has been done
                    # Reading by offsets of a damaged file would crash.
                    batch.validate(full=True)
                if names:
                    batch = pa.RecordBatch.from_arrays(batch.columns, schema=schema)
            place = start + low
            for part in split_batch(batch):
                yield place, part
                place += part.num_rows

    # What is wrong -----------------------------------------------------------------

    def _check_exists(self) -> None:
        """Refuse a folder, a missing or empty file, and content of another format."""
        if self.path.is_dir():
            raise TableFileError(f"{self.path} is a folder; name a file in it")
        try:
            with self.path.open("rb") as file:
                first_bytes = file.read(6)
        except FileNotFoundError:
            raise TableFileError(f"there is no file {self.path}") from None
        except OSError as error:
            raise TableFileError(f"cannot read {self.path}: {error.strerror}") from None
        if not first_bytes:
            raise TableFileError(f"{self.path} is empty; write it again")
        for sign, file_format in _SIGNS.items():
            if first_bytes.startswith(sign) and file_format != self.format:
                raise TableFileError(
                    f"{self.path} is {NAMES[file_format]} under the suffix of another "
                    "format; rename it"
                )

    def _check_separator(self) -> None:
        """Refuse a separator of a format other than CSV, or not of one character."""
        separator = self.separator
        if separator is None:
            return
        if self.format != "csv":
            raise TableFileError(
                f"{self.path} is {NAMES[self.format]}, which needs no separator"
            )
        if len(separator) != 1 or separator in '"\r\n' or not separator.isascii():
            raise TableFileError(
                f"a separator is one character, such as ';', not {separator!r}"
            )

    @contextmanager
    def _name_file_in_errors(self) -> Iterator[None]:
        """Translate errors of Arrow and the system into ``TableFileError``."""
        try:
            yield
        except TableFileError:
            raise
        except _DAMAGE as error:
            raise TableFileError(
                explain_read_error(self.path, self.format, error)
            ) from None

    # Parquet -----------------------------------------------------------------------

    def _open_parquet(self) -> parquet.ParquetFile:
        """Open the file with checksums, to be read in bounded memory."""
        # Without pre_buffer and with a buffer, column chunks are read page by page;
        # otherwise a row group is held whole.
        return parquet.ParquetFile(
            str(self.path),
            pre_buffer=False,
            buffer_size=_PAGE_BUFFER,
            page_checksum_verification=True,
        )

    def _parquet_schema(self) -> pa.Schema:
        """Read the schema, and set ``n_rows``."""
        with self._open_parquet() as file:
            self.n_rows = file.metadata.num_rows
            return file.schema_arrow

    def _parquet_batches(
        self, names: list[str], first: int
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield batches with first row numbers, from the row group of row ``first``."""
        with self._open_parquet() as file:
            # Rows cannot be counted without a column.
            names = names or self.schema.names[:1]
            n_rows, footer = batches.rows_per_batch(file, names), file.metadata
            sizes = [footer.row_group(k).num_rows for k in range(footer.num_row_groups)]
            ends = list(accumulate(sizes))
            # Row groups that end before the first row are not read.
            skipped = bisect.bisect_right(ends, first)
            groups = range(skipped, len(sizes))
            found = file.iter_batches(
                n_rows, row_groups=groups, columns=names, use_threads=False
            )
            yield from with_row_offsets(found, ends[skipped - 1] if skipped else 0)

    # CSV ---------------------------------------------------------------------------

    @property
    def _delimiter(self) -> str:
        """The separator, by default a tab for ``.tsv`` and a comma for other files."""
        by_suffix = "\t" if self.path.suffix.lower() == ".tsv" else ","
        return self.separator or by_suffix

    def _csv_schema(self) -> pa.Schema:
        """Read the header, every column as text; set whether rows follow."""
        names: list[str] = []
        with self.path.open(encoding="utf-8-sig", newline="") as file:
            try:
                rows = filter(None, csv.reader(file, delimiter=self._delimiter))
                names = next(rows, [])
                self._has_rows = next(rows, None) is not None
            except csv.Error:
                # A first cell that long is for the other reader to judge.
                if not names:
                    raise TableFileError(
                        f"{self.path} is not a CSV file: its first line is not a header"
                    ) from None
                self._has_rows = True
        return pa.schema([(name, pa.string()) for name in names])

    def _csv_batches(
        self, names: list[str], first: int
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield batches with first row numbers, from row 0 whatever ``first`` is."""
        if not self._has_rows:
            return
        reader = arrow_csv.open_csv(
            str(self.path),
            # With threads, messages would not say which row is wrong.
            arrow_csv.ReadOptions(use_threads=False, block_size=BLOCK_BYTES),
            arrow_csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True),
            arrow_csv.ConvertOptions(
                column_types=self.schema,
                include_columns=names or self.schema.names[:1],
                strings_can_be_null=False,
            ),
        )
        yield from with_row_offsets(reader)

    # JSON lines --------------------------------------------------------------------

    def _jsonl_schema(self) -> pa.Schema:
        """Infer the schema from the first 16 MB, with times as text."""
        with JsonLines(str(self.path), _HEAD_BYTES) as file:
            head = file.read(_HEAD_BYTES)
        if len(head) == _HEAD_BYTES:
            head = head[: head.rfind(b"\n") + 1] or head
        options = arrow_json.ReadOptions(use_threads=False, block_size=_HEAD_BYTES)
        with arrow_json.open_json(io.BytesIO(head), options) as reader:
            return pa.schema(
                [field.with_type(_times_as_text(field.type)) for field in reader.schema]
            )

    def _jsonl_batches(
        self, names: list[str], first: int
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield batches with first row numbers, all columns from row 0."""
        with JsonLines(str(self.path), BLOCK_BYTES, len(self.schema)) as file:
            reader = arrow_json.open_json(
                file,
                arrow_json.ReadOptions(use_threads=False, block_size=BLOCK_BYTES),
                arrow_json.ParseOptions(
                    explicit_schema=self.schema, unexpected_field_behavior="error"
                ),
            )
            yield from with_row_offsets(reader)

    # Arrow -------------------------------------------------------------------------

    def _arrow_schema(self) -> pa.Schema:
        """Read the schema and, where the file has it, ``n_rows``."""
        reader = _open_arrow(self._map_file())
        if hasattr(reader, "count_rows"):  # of files, in newer versions of Arrow
            self.n_rows = reader.count_rows()
        return reader.schema

    def _arrow_batches(
        self, names: list[str], first: int
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield first row numbers and validated slices, from that of row ``first``."""
        mapping = self._map_file()
        reader = _open_arrow(mapping)
        if isinstance(reader, arrow_ipc.RecordBatchFileReader):
            found = map(reader.get_batch, range(reader.num_record_batches))
        else:
            found = iter(reader)
        for start, batch in with_row_offsets(found):
            if start + batch.num_rows <= first:
                continue
            # A quick look at the ends of the offsets, then a close look at each part
            # before anything follows them.
            batch.validate()
            for place, part in with_row_offsets(
                split_batch(batch.select(names)), start
            ):
                if place + part.num_rows <= first:
                    continue
                part.validate(full=True)
                yield place, batches.copy_batch(part)
                if hasattr(mapping, "madvise"):
                    # Pages that have been read would count as memory of this process.
                    mapping.madvise(mmap.MADV_DONTNEED)

    def _map_file(self) -> mmap.mmap:
        """Map the file into memory, to be read only."""
        with self.path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _open_arrow(mapping: mmap.mmap) -> Any:
    """Return an Arrow reader of a file or a stream; its first bytes say which."""
    source = pa.BufferReader(pa.py_buffer(mapping))
    if mapping[:6] == b"ARROW1":
        return arrow_ipc.open_file(source)
    return arrow_ipc.open_stream(source)


def _times_as_text(kind: pa.DataType) -> pa.DataType:
    """Return a type with text in place of dates and times, which Arrow guesses."""
    if pa.types.is_temporal(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(_times_as_text(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([f.with_type(_times_as_text(f.type)) for f in kind])
    return kind
