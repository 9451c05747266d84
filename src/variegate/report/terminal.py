"""Tables and bars for a terminal, as plain text that a pipe may take as well."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Collection, Iterable, Sequence
from itertools import count, zip_longest

from variegate._install import explain_missing

#: Characters of the longest bar to one side.
_BAR = 16


def align_columns(
    rows: Iterable[Sequence[str]], *, numbers: Collection[int] = (), indent: int = 0
) -> str:
    """Return rows as aligned lines, with two spaces between columns.

    ``numbers`` are the positions of columns that are aligned to the right; ``indent``
    is the number of spaces before each line.
    """
    with explain_missing("tables on a terminal need rich", "cli"):
        from rich.cells import cell_len
    rows = list(rows)
    columns = zip_longest(*rows, fillvalue="")
    widths = [max(map(cell_len, column)) for column in columns]

    def pad_cell(column: int, cell: str) -> str:
        """Return a cell with spaces to the width of its column, by its position."""
        spaces = " " * (widths[column] - cell_len(cell))
        return spaces + cell if column in numbers else cell + spaces

    lines = ("  ".join(map(pad_cell, count(), row)).rstrip() for row in rows)
    return textwrap.indent("\n".join(lines), " " * indent)


def format_bars(
    names: Sequence[str],
    values: Sequence[float],
    lengths: Sequence[float] | None = None,
) -> str:
    """Return one text with a line for each name: the name, its value and a bar.

    Bars are in proportion to ``lengths``, by default the values, and to the left of the
    axis for negative ones.
    """
    lengths = values if lengths is None else lengths
    largest, longest = (max(map(abs, v), default=0.0) for v in (values, lengths))
    # Decimals by which the largest has three digits.
    digits = min(max(2 - math.floor(math.log10(largest)), 0), 9) if largest else 2
    left = _BAR if any(value < 0.0 for value in values) else 0
    rows = [
        (
            name,
            # No sign where rounding gives zero.
            f"{round(value, digits) + 0.0:.{digits}f}",
            _draw_bar(length / (longest or 1.0), left),
        )
        for name, value, length in zip(names, values, lengths, strict=True)
    ]
    return align_columns(rows, numbers=[1], indent=2)


def _draw_bar(share: float, left: int) -> str:
    """Return a bar for a share from -1 to 1, with an axis after ``left`` characters."""
    halves = round(2 * _BAR * abs(share))
    full, half = divmod(halves, 2)
    if share < 0.0:
        return ("▐" * half + "█" * full).rjust(left) + "│"
    return " " * left + "│" + "█" * full + "▌" * half
