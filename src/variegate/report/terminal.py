"""Tables for a terminal: plain text, so that a pipe may take them as well."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Collection, Iterable, Sequence

__all__ = ["columns"]

#: More places than any line has: nothing is cut, whatever terminal is at hand.
_WIDTH = 100_000


def columns(
    rows: Iterable[Sequence[str]], *, numbers: Collection[int] = (), indent: int = 0
) -> str:
    """Return rows as lines, their cells below each other and two spaces apart.

    ``numbers`` are the places of columns that are aligned to the right.
    """
    try:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError as error:
        raise ImportError(
            "tables on a terminal need rich: pip install 'variegate[cli]'"
        ) from error
    table = Table.grid(padding=(0, 2, 0, 0))
    for number, row in enumerate(rows):
        if number == 0:
            for place in range(len(row)):
                is_number = place in numbers
                table.add_column(justify="right" if is_number else "left", no_wrap=True)
        # As text, for rich reads strings as markup.
        table.add_row(*map(Text, row))
    console = Console(
        file=io.StringIO(), width=_WIDTH, color_system=None, force_jupyter=False
    )
    with console.capture() as written:
        console.print(table)
    lines = (line.rstrip() for line in written.get().splitlines())
    return textwrap.indent("\n".join(lines), " " * indent)
