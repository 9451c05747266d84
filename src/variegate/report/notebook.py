"""HTML of objects in a notebook: a few facts and a small table.

All text is escaped; the HTML loads nothing and styles only its own elements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from variegate.report.wording import one_line

#: Longest text of a cell.
_LONGEST = 300


def format_number(value: float) -> str:
    """Return a number as text with four significant digits."""
    return f"{value:.4g}"


def hidden_rows_note(shown: int, total: int, noun: str) -> str:
    """Return "and 3 more items" for rows not shown, "" if all are shown."""
    return f"and {total - shown:,} more {noun}" if total > shown else ""


def html_card(title: str, facts: Mapping[str, str], *parts: str) -> str:
    """Return HTML of a title, a table of facts by name, and HTML ``parts`` as given."""
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
    """Return an HTML table with a note below it if given; "" without rows."""
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
    """Return HTML of text whose spaces and line breaks are kept."""
    return f'<pre style="line-height:1.3">{escape(text)}</pre>'


def _html_cell(text: str) -> str:
    """Return text in one line, cut to 300 characters and escaped for HTML."""
    text = one_line(text)
    return escape(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…")
