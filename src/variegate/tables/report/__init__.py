"""The report of a fitted selector: one page, or Markdown with pictures, or text."""

from __future__ import annotations

from pathlib import Path

from variegate.files.atomic import write_atomic
from variegate.report.figures import to_png
from variegate.report.page import render, render_markdown
from variegate.tables.report.contents import contents
from variegate.tables.report.description import describe
from variegate.tables.report.gathering import Report

__all__ = ["Report", "describe", "html_page", "markdown", "write_markdown"]


def html_page(report: Report) -> str:
    """Return one page about a fitted selector.

    Figures are in the page, which loads nothing; it is to be written as UTF-8.
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
