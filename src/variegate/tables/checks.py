"""Checks of the items, costs and other numbers of rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow.compute as pc

from variegate._typing import FloatArray, IntArray
from variegate.application.refusal import Setting
from variegate.tables.cells import Batch, Cells
from variegate.tables.errors import TableError
from variegate.tables.partitioning import GroupPartition
from variegate.tables.rows import GroupIndex, RowReader


def check_items_and_costs(
    partition: GroupPartition, reader: RowReader
) -> Iterator[TableError]:
    """Yield at most two errors of a partition: a repeated item, and an invalid cost."""
    columns, index = reader.columns, GroupIndex()
    batch = reader.read_all(partition.rows, columns.group, columns.item, columns.cost)
    try:
        if columns.item is not None:
            numbers = index.numbers(batch, columns.group)
            check_unique(batch, columns.item, numbers, index)
    except TableError as error:
        yield error
    try:
        if columns.cost is not None:
            read_costs(batch[columns.cost])
    except TableError as error:
        yield error


def read_costs(cells: Cells) -> FloatArray:
    """Return the costs of rows, (n_rows,); refuse costs that are not above zero."""
    costs = check_no_missing(cells.numbers(), cells, "cost")
    bad = costs <= 0.0
    if bad.any():
        raise TableError(
            f"column {cells.name!r}, the cost, holds {costs[bad][0]:g} in row "
            f"{cells.row(bad)}: costs must be above zero"
        )
    return costs


def check_no_missing(numbers: FloatArray, cells: Cells, part: str) -> FloatArray:
    """Return the numbers; refuse NaN, an empty cell of the column in role ``part``."""
    bad = np.isnan(numbers)
    if bad.any():
        raise TableError(
            f"column {cells.name!r}, the {part}, has no value in row "
            f"{cells.row(bad)}: correct it, or name another column"
        )
    return numbers


def check_unique(batch: Batch, item: str, numbers: IntArray, index: GroupIndex) -> None:
    """Refuse an item that is twice in a group; ``numbers`` are the groups of rows."""
    keys = pc.dictionary_encode(batch[item].keys()).indices.to_numpy()
    order = np.lexsort((keys, numbers))
    same = (np.diff(keys[order]) == 0) & (np.diff(numbers[order]) == 0)
    if same.any():
        first, second = sorted(order[int(np.argmax(same)) :][:2].tolist())
        raise TableError(
            f"rows {batch.row_name(first)} and {batch.row_name(second)} of group "
            f"{index.names[int(numbers[first])]!r} have the same {item!r}: items of a "
            "group must differ, unless you leave out ",
            Setting("item"),
            fixes=[Setting("item", left_out=True)],
        )
