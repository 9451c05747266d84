"""Tables and lists of the page about a fitted selector, as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from variegate.report.html import escape

__all__ = [
    "cell",
    "fact_line",
    "fact_list",
    "head",
    "paragraph",
    "row",
    "row_head",
    "section",
    "table",
]

#: A head with more characters goes over several lines.
_LONG = 30


def section(heading: str, *content: str) -> str:
    """Return a section with a heading, which is HTML already."""
    return "\n".join(["<section>", f"<h2>{heading}</h2>", *content, "</section>"])


def paragraph(words: str) -> str:
    """Return a paragraph of plain words."""
    return f"<p>{escape(words)}</p>"


def fact_line(facts: Mapping[str, str]) -> str:
    """Return names and values, side by side."""
    if not facts:
        return ""
    rows = (
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
        for name, value in facts.items()
    )
    return f'<dl class="facts">{"".join(rows)}</dl>'


def fact_list(facts: Mapping[str, str]) -> str:
    """Return names and values, one below the other."""
    rows = "\n".join(
        f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>"
        for name, value in facts.items()
    )
    return f'<dl class="settings">\n{rows}\n</dl>'


def table(label: str, heads: Iterable[str], rows: Iterable[str]) -> str:
    """Return a table in a box of its own, which scrolls where it is narrow."""
    body = "\n".join(rows)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(label)}">'
        f"<table>\n<thead><tr>{''.join(heads)}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody>\n</table>"
        "</div>"
    )


def head(name: str, style: str = "") -> str:
    """Return the head of a column, from plain words."""
    style = f"{style} long".strip() if len(name) > _LONG else style
    return f'<th scope="col"{_class(style)}>{escape(name)}</th>'


def row_head(name: str) -> str:
    """Return the head of a row, from plain words."""
    style = "long" if len(name) > _LONG else ""
    return f'<th scope="row"{_class(style)}><bdi>{escape(name)}</bdi></th>'


def cell(content: str, style: str = "") -> str:
    """Return a cell, from HTML."""
    return f"<td{_class(style)}>{content}</td>"


def _class(style: str) -> str:
    return f' class="{style}"' if style else ""


def row(*cells: str, style: str = "") -> str:
    """Return a row, from HTML."""
    return f"<tr{_class(style)}>{''.join(cells)}</tr>"
