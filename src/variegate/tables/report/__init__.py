"""The report of a fitted selector: one page, or Markdown with pictures, or text."""

from variegate.tables.report.contents import html_page, markdown, write_markdown
from variegate.tables.report.description import describe
from variegate.tables.report.gathering import Report

__all__ = ["Report", "describe", "html_page", "markdown", "write_markdown"]
