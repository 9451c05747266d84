"""Tables in Markdown, and with ruled rows for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import zip_longest

from variegate.report.terminal import align_columns

__all__ = ["markdown_table", "ruled_columns"]


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table, aligned so that it reads well in a terminal too."""
    lines = [list(header), *(list(row) for row in rows)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(header))]

    def join(line: Sequence[str]) -> str:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        return f"| {' | '.join(cells)} |"

    rule = f"|{'|'.join('-' * (width + 2) for width in widths)}|"
    return "\n".join([join(lines[0]), rule, *(join(line) for line in lines[1:])])


def ruled_columns(
    header: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int]
) -> str:
    """Return rows with a line below each, their cells wrapped to the given widths."""
    rule = ["─" * width for width in widths]
    lines: list[Sequence[str]] = []
    for row in (header, *rows):
        cells = map(textwrap.wrap, row, widths)
        lines += [*zip_longest(*cells, fillvalue=""), rule]
    return align_columns(lines)
