"""The report of a fitted selector: one page, or Markdown with pictures, or plain text.

Facts come from :mod:`~variegate.tables.report.facts`, their order from
:mod:`~variegate.tables.report.contents` and figures from
:mod:`~variegate.tables.report.pictures`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from variegate.files.atomic import write_atomic
from variegate.report.figures import to_png
from variegate.report.page import render, render_markdown
from variegate.tables.evaluation import Evaluation
from variegate.tables.report.contents import contents
from variegate.tables.report.description import describe
from variegate.tables.report.examples import ExampleGroup

if TYPE_CHECKING:
    from variegate.tables.selector import TableSelector

__all__ = ["Report", "describe", "html_page", "markdown", "write_markdown"]


@dataclass(frozen=True, eq=False)
class Report:
    """What a report is about: a fitted selector, and the name of its training table.

    Examples have the columns ``show``.  Scores on held-out groups are of the model,
    which comes first, of rivals that learned from the same groups, and of methods that
    learn nothing.  ``model`` is the name of the file that the model is in.  ``typical``
    has the columns ``show`` of rows that are typical of learned kinds, by their places
    in the table.
    """

    selector: TableSelector
    table: str
    show: tuple[str, ...] = ()
    examples: tuple[ExampleGroup, ...] = ()
    comparison: Evaluation | None = None
    model: str = "model.json"
    typical: Mapping[int, tuple[str, ...]] = field(default_factory=dict)


def html_page(report: Report) -> str:
    """Return one page about a fitted selector.

    Figures are in the page, and nothing is loaded from elsewhere.  The page is to be
    written as UTF-8.
    """
    return render("tables", "report.html", **contents(report))


def markdown(report: Report) -> tuple[str, dict[str, bytes]]:
    """Return the text of a Markdown file, and the pictures that it shows by name."""
    shown = contents(report)
    files = {f"{name}.png": to_png(figure) for name, figure in shown["figures"].items()}
    return render_markdown("tables", "report.md", **shown), files


def write_markdown(report: Report, folder: Path) -> None:
    """Write ``report.md`` and its pictures into a folder, made where it is missing."""
    words, files = markdown(report)
    folder.mkdir(parents=True, exist_ok=True)
    # The pictures first, so that no link is ever broken.
    for name, content in files.items():
        write_atomic(folder / name, content)
    write_atomic(folder / "report.md", words)
