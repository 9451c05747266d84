"""Options of the commands on documents, and how they read the files."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variegate import text
from variegate.cli import options, output
from variegate.cli.options import Decorator, option
from variegate.files.atomic import write_atomic

if TYPE_CHECKING:
    from variegate.text import Document, Summary

BUDGET = options.Parsed("budget", lambda value: str(text.Budget.parse(value)))


def _parse_language(value: str) -> str:
    """Return the name of a language by name or code, or "none"; else ValueError."""
    from variegate.text.languages import as_language, other_language

    if value.strip().lower() == "none":
        return "none"
    return other_language(value) or as_language(value).name  # type: ignore[union-attr]


def budget_option(most: str, **more: Any) -> Decorator:
    """Return --budget of a command; ``most`` begins its help, as "Longest summary"."""
    text = (
        f"{most} in characters, words, sentences, bytes or tokens: 665c, 250w, 5s, "
        "665b, 800t. A token is counted as four bytes of UTF-8."
    )
    if "default" not in more:
        text += "  [default: the model decides]"
    return option("--budget N[cwsbt]", text, BUDGET, **more)


def omega_option(default: str) -> Decorator:
    """Return --omega of a command that chooses sentences; ``default`` is for help."""
    return option(
        "--omega W", "Below 1 few sentences and precise, above 1 many and complete.  "
        f"[default: {default}]", options.POSITIVE,
    )  # fmt: skip


LANGUAGE = option(
    "--language NAME", "Language by name or code (fr), or 'none' for rules that suit "
    "all.  [default: detected]", options.Parsed("language", _parse_language),
)  # fmt: skip


def read_documents(files: Sequence[str], encoding: str) -> list[Document]:
    """Return the documents in files and folders, or of standard input without any.

    Logs and tables of numbers are left out, with a note; UsageError if none is left.
    """
    if not files:
        if sys.stdin is None or sys.stdin.isatty():
            raise click.UsageError(
                "no files: name text, PDF, Markdown, HTML or e-mail files or folders, "
                "or '-' for standard input"
            )
        files = ("-",)
    return _keep_prose(text.read_documents(files, encoding))


def _keep_prose(documents: Sequence[Document]) -> list[Document]:
    """Drop logs and tables of numbers, with a note; UsageError if no other is left."""
    from variegate.text.layout import lacks_prose

    kept = [one for one in documents if not lacks_prose(one.text)]
    left_out = [one.id for one in documents if lacks_prose(one.text)]
    if not left_out:
        return kept
    which = left_out[0] if len(left_out) == 1 else f"{len(left_out)} files"
    problem = f"there is no prose in {which}, only records of a log or rows of numbers"
    if not kept:
        raise click.UsageError(f"{problem}: give files with text in sentences")
    output.print_note(f"{problem}: left out")
    return kept


def language_with_lists(language: str | None) -> str | None:
    """Return ``language`` as models take it: "none" for one without word lists."""
    from variegate.text.languages import other_language

    return "none" if language is not None and other_language(language) else language


def note_reading(documents: Sequence[Document], language: str | None) -> None:
    """Print notes on a ``language`` without word lists, and on the built-in reader."""
    from variegate.text.markup import HTML_READER

    if language_with_lists(language) != language:
        output.print_note(
            f"there are no word lists for {str(language).capitalize()}; sentences are "
            "split by the rules for all languages, as with --language none"
        )
    simple = [one for one in documents if one.reader.startswith(HTML_READER)]
    if simple:
        which = simple[0].id if len(simple) == 1 else f"{len(simple)} pages"
        output.print_note(f"{which} read by {simple[0].reader}")


def print_choice(
    summary: Summary, as_json: bool, html: Path | None, title: str
) -> None:
    """Print the sentences of a summary or of evidence, or JSON; write the page.

    ``title`` is that of the page, if ``html`` names a file for it.
    """
    from variegate.text.summary import html_report

    if html is not None:
        write_atomic(html, html_report(summary, title))
    if as_json:
        output.print_json(summary.as_dict())
    elif summary.sentences:
        output.print_text(summary.text)
    if not summary.sentences:
        output.print_note(
            "the model chose no sentence; give a --budget to fill or a larger --omega"
        )
    output.print_written(html)
