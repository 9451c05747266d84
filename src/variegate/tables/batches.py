"""Batches of rows: their bytes, their numbers, and cuts of bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as parquet

#: The bytes of a batch of Parquet that is read, about, and the most rows of any batch.
_BATCH_BYTES, _MOST_ROWS = 16 * 2**20, 2**16
#: The most bytes of a slice of a batch, about.
_MOST_BYTES = 24 * 2**20
#: Rows by which the bytes of a row are estimated.
_PROBED_ROWS = 64


def data_bytes(batch: pa.RecordBatch) -> int:
    """Return the bytes of a batch, without dictionaries that many batches share."""
    return sum(
        _array_bytes(column.indices if pa.types.is_dictionary(column.type) else column)
        for column in batch.columns
    )


def _array_bytes(column: pa.Array) -> int:
    """Return the bytes of an array; of a view of text, those of all its buffers."""
    try:
        return int(column.nbytes)
    except pa.ArrowTypeError:
        # Up to pyarrow 23, the size of the part that a view of text uses is not known.
        return int(column.get_total_buffer_size())


def with_row_offsets(
    batches: Iterable[pa.RecordBatch], start: int = 0
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield pairs of a batch's first row number, from ``start``, and the batch."""
    for batch in batches:
        yield start, batch
        start += batch.num_rows


def split_batch(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield slices of a batch with at most about 24 MB and 65,536 rows, not copied."""
    n_parts = max(-(-data_bytes(batch) // _MOST_BYTES), 1)
    n_rows = min(max(batch.num_rows // n_parts, 1), _MOST_ROWS)
    for first in range(0, batch.num_rows, n_rows):
        yield batch.slice(first, n_rows)


def copy_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a copy of a batch that shares no memory with it."""
    if not batch.num_columns:
        return batch
    columns = [pa.concat_arrays([column]) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def rows_per_batch(file: parquet.ParquetFile, names: Sequence[str]) -> int:
    """Estimate how many rows of columns ``names`` take 16 MB, from 1 to 65,536."""
    footer = file.metadata
    size = 0
    for group in map(footer.row_group, range(footer.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            path = column.path_in_schema
            if any(path == name or path.startswith(f"{name}.") for name in names):
                size += column.total_uncompressed_size
    # The footer counts a text of a dictionary once, however many rows repeat it.
    for probe in file.iter_batches(_PROBED_ROWS, columns=names, use_threads=False):
        a_row = max(size / footer.num_rows, data_bytes(probe) / probe.num_rows, 1)
        return int(min(max(_BATCH_BYTES // a_row, 1), _MOST_ROWS))
    return 1
