"""HTML of objects in a notebook: a few facts and a small table.

Everything is escaped, nothing is fetched, and no style leaves its own block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from variegate.report.wording import one_line

#: Longest text of a cell.
_LONGEST = 300


def format_number(value: float) -> str:
    """Return a number as people read it."""
    return f"{value:.4g}"


def hidden_rows_note(shown: int, total: int, noun: str) -> str:
    """Return the number of rows that are not shown as text, or nothing."""
    return f"and {total - shown:,} more {noun}" if total > shown else ""


def html_card(title: str, facts: Mapping[str, str], *parts: str) -> str:
    """Return a title, facts by name, and more HTML below them."""
    rows = "".join(
        f'<tr><th style="text-align:left">{_html_cell(name)}</th>'
        f'<td style="text-align:left">{_html_cell(value)}</td></tr>'
        for name, value in facts.items()
    )
    body = f"<table>{rows}</table>" if rows else ""
    return f"<div><strong>{_html_cell(title)}</strong>{body}{''.join(parts)}</div>"


def html_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], note: str = ""
) -> str:
    """Return a table, and perhaps a line below it."""
    if not rows:
        return ""
    top = "".join(f"<th>{_html_cell(name)}</th>" for name in head)
    body = "".join(
        f"<tr>{''.join(f'<td>{_html_cell(value)}</td>' for value in row)}</tr>"
        for row in rows
    )
    below = f"<p>{_html_cell(note)}</p>" if note else ""
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>{below}"


def preformatted(text: str) -> str:
    """Return text that is laid out with spaces."""
    return f'<pre style="line-height:1.3">{escape(text)}</pre>'


def _html_cell(text: str) -> str:
    text = one_line(text)
    return escape(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…")
