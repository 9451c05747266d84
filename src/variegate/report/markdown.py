"""Reports and tables as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from variegate.report.document import (
    Block,
    Code,
    Document,
    Facts,
    Folded,
    Part,
    Picture,
    Sheet,
    Words,
)
from variegate.report.figures import to_png
from variegate.report.words import one_line

__all__ = ["markdown", "markdown_table"]


def markdown(document: Document) -> tuple[str, dict[str, bytes]]:
    """Return the text of a Markdown file, and the pictures that it shows by name."""
    files: dict[str, bytes] = {}
    top: list[Block] = [Words(document.lead), Facts(document.facts), *document.parts]
    blocks = _blocks([Part(document.title, top)], 1, files)
    return "\n\n".join(blocks) + "\n", files


def _blocks(
    blocks: Iterable[Block], level: int, files: dict[str, bytes]
) -> Iterator[str]:
    """Yield paragraphs; headings have ``level``, and pictures go into ``files``."""
    for block in blocks:
        match block:
            case Words(text):
                yield _escaped(text)
            case Facts(values) if values:
                lines = (f"- {_escaped(n)}: {_escaped(v)}" for n, v in values.items())
                yield "\n".join(lines)
            case Sheet():
                yield _sheet(block)
            case Picture(name, figure, about, caption):
                files[f"{name}.png"] = to_png(figure)
                yield f"![{_escaped(about)}]({name}.png)"
                if caption:
                    yield _escaped(caption)
            case Folded(brief=brief):
                yield from _blocks(brief, level, files)
            case Code(text):
                yield f"```\n{text}\n```"
            case Part(heading, inside, notes):
                yield f"{'#' * level} {_escaped(heading)}"
                if notes:
                    yield f"{_escaped('; '.join(notes))}."
                yield from _blocks(inside, level + 1, files)


def _sheet(sheet: Sheet) -> str:
    shown = [k for k, column in enumerate(sheet.columns) if column.style != "drawn"]
    columns = [sheet.columns[k] for k in shown]
    lines = [
        [_escaped(column.name) for column in columns],
        ["---:" if column.style == "number" else "---" for column in columns],
        *([_escaped(row.cells[k].plain) for k in shown] for row in sheet.rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _escaped(text: str) -> str:
    """Return text that Markdown shows as it is."""
    return re.sub(r"([\\`*_\[\]<>|~&#])", r"\\\1", one_line(text))


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table, aligned so that it reads well in a terminal too."""
    lines = [list(header), *(list(row) for row in rows)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(header))]

    def join(line: Sequence[str]) -> str:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        return f"| {' | '.join(cells)} |"

    rule = f"|{'|'.join('-' * (width + 2) for width in widths)}|"
    return "\n".join([join(lines[0]), rule, *(join(line) for line in lines[1:])])
