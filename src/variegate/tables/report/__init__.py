"""The report of a fitted selector: one page, or Markdown with pictures, or plain text.

Facts come from :mod:`~variegate.tables.report.facts`, sentences from
:mod:`~variegate.tables.report.words` and figures from
:mod:`~variegate.tables.report.pictures`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from variegate._files import write_atomic
from variegate.tables.evaluation import Evaluation
from variegate.tables.report.examples import ExampleGroup
from variegate.tables.report.markdown_file import markdown
from variegate.tables.report.page import html_page
from variegate.tables.report.plain import as_json
from variegate.tables.report.terminal import text

if TYPE_CHECKING:
    from variegate.tables.selector import TableSelector

__all__ = ["Report", "as_json", "html_page", "markdown", "text", "write_markdown"]


@dataclass(frozen=True, eq=False)
class Report:
    """What a report is about.

    Attributes
    ----------
    selector : TableSelector
        Fitted.
    table : str
        Name of the training file.
    show : tuple of str
        Names of the columns in the rows of the examples.
    examples : tuple of ExampleGroup
    comparison : Evaluation or None
        Scores on held-out groups of the model, which comes first, and of methods that
        learn nothing.
    model : str
        Name of the file that the model is in.
    """

    selector: TableSelector
    table: str
    show: tuple[str, ...] = ()
    examples: tuple[ExampleGroup, ...] = ()
    comparison: Evaluation | None = None
    model: str = "model.json"


def write_markdown(report: Report, folder: Path) -> None:
    """Write ``report.md`` and its pictures into a folder, made where it is missing."""
    words, files = markdown(report)
    folder.mkdir(parents=True, exist_ok=True)
    # The pictures first, so that no link is ever broken.
    for name, content in files.items():
        write_atomic(folder / name, content)
    write_atomic(folder / "report.md", words)
