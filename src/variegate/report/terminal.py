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

    def padded(place: int, cell: str) -> str:
        """Return a cell with the width of its column."""
        room = " " * (widths[place] - cell_len(cell))
        return room + cell if place in numbers else cell + room

    lines = ("  ".join(map(padded, count(), row)).rstrip() for row in rows)
    return textwrap.indent("\n".join(lines), " " * indent)


def format_bars(
    names: Sequence[str],
    values: Sequence[float],
    lengths: Sequence[float] | None = None,
) -> str:
    """Return lines of a name, a number and a bar, to the left for negative numbers.

    Bars are in proportion to ``lengths``, by default the numbers.
    """
    lengths = values if lengths is None else lengths
    largest, longest = (max(map(abs, v), default=0.0) for v in (values, lengths))
    # Decimals by which the largest has three digits.
    digits = min(max(2 - math.floor(math.log10(largest)), 0), 9) if largest else 2
    room = _BAR if any(value < 0.0 for value in values) else 0
    rows = [
        (
            name,
            # No sign where rounding gives zero.
            f"{round(value, digits) + 0.0:.{digits}f}",
            _bar(length / (longest or 1.0), room),
        )
        for name, value, length in zip(names, values, lengths, strict=True)
    ]
    return align_columns(rows, numbers=[1], indent=2)


def _bar(share: float, room: int) -> str:
    """Return a bar for a share from -1 to 1, with an axis after ``room`` characters."""
    halves = round(2 * _BAR * abs(share))
    full, half = divmod(halves, 2)
    if share < 0.0:
        return ("▐" * half + "█" * full).rjust(room) + "│"
    return " " * room + "│" + "█" * full + "▌" * half
