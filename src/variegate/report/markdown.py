"""Tables as Markdown, aligned so that they also read well in a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

__all__ = ["markdown_table", "terminal_table"]


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table with its columns padded to equal width."""
    lines = [list(header), *(list(row) for row in rows)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(header))]

    def join(line: Sequence[str]) -> str:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        return f"| {' | '.join(cells)} |"

    rule = f"|{'|'.join('-' * (width + 2) for width in widths)}|"
    return "\n".join([join(lines[0]), rule, *(join(line) for line in lines[1:])])


def terminal_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int]
) -> str:
    """Return a table for a terminal, cells wrapped to the given widths."""
    lines = []
    for row in [header, *rows]:
        wrapped = [
            textwrap.wrap(cell, width) or [""]
            for cell, width in zip(row, widths, strict=True)
        ]
        height = max(len(cell) for cell in wrapped)
        for k in range(height):
            parts = [
                (cell[k] if k < len(cell) else "").ljust(width)
                for cell, width in zip(wrapped, widths, strict=True)
            ]
            lines.append("  ".join(parts).rstrip())
        lines.append("  ".join("─" * width for width in widths))
    return "\n".join(lines)
