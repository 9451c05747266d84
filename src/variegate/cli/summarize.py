"""``variegate summarize`` and ``variegate fit-summarizer``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variegate import text
from variegate.cli import options, output
from variegate.cli.options import option
from variegate.cli.progress import show_progress
from variegate.files.atomic import write_atomic

if TYPE_CHECKING:
    from variegate.text import Document

_BUDGET = options.Parsed("budget", lambda value: str(text.Budget.parse(value)))


def _parse_language(value: str) -> str:
    """Return the name of a language, "none", or the name of one without word lists."""
    from variegate.text.languages import as_language, other_language

    if value.strip().lower() == "none":
        return "none"
    return other_language(value) or as_language(value).name  # type: ignore[union-attr]


def _note_reading(documents: Sequence[Document], other: str | None) -> None:
    """Note a language without word lists, and pages read by the simple reader."""
    from variegate.text.markup import HTML_READER

    if other is not None:
        output.print_note(
            f"there are no word lists for {other.capitalize()}; sentences are split by "
            "the rules for all languages, as with --language none"
        )
    simple = [one for one in documents if one.reader.startswith(HTML_READER)]
    if simple:
        which = simple[0].id if len(simple) == 1 else f"{len(simple)} pages"
        output.print_note(f"{which} read by {simple[0].reader}")


def _with_prose(documents: Sequence[Document]) -> list[Document]:
    """Leave out logs and tables of numbers, with a note."""
    from variegate.text.layout import lacks_prose

    kept = [one for one in documents if not lacks_prose(one.text)]
    left_out = [one.id for one in documents if lacks_prose(one.text)]
    if not left_out:
        return kept
    which = left_out[0] if len(left_out) == 1 else f"{len(left_out)} files"
    problem = f"there is no prose in {which}, only records of a log or rows of numbers"
    if not kept:
        raise click.UsageError(f"{problem}: a summary needs text in sentences")
    output.print_note(f"{problem}: left out")
    return kept


@click.command(
    epilog="\b\nvariegate summarize news/*.txt --budget 100w\n"
    "variegate summarize report.md --budget 5s --html summary.html"
)
@click.argument("files", nargs=-1, type=click.Path())
@option(
    "--budget N[cwsb]", "Longest summary in characters, words, sentences or bytes: "
    "665c, 250w, 5s, 665b.  [default: the model decides]", _BUDGET,
)  # fmt: skip
@option(
    "--omega W", "Omega of the model: below 1 short and precise, above 1 long and "
    "complete.  [default: 1, or the nearest to it]", float,
)  # fmt: skip
@options.model_option("Model of 'variegate fit-summarizer'.")
@option(
    "--language NAME", "Language by name or code (fr), or 'none' for rules that suit "
    "all.  [default: detected]", options.Parsed("language", _parse_language),
)  # fmt: skip
@options.encoding_option("the files")
@options.json_option("Print JSON, with all texts and the offsets of sentences.")
@options.output_option("--html FILE", "Write a page of the summary in its documents.")
@options.FORCE
def summarize(
    files: tuple[str, ...],
    budget: str | None,
    omega: float | None,
    model: Path | None,
    language: str | None,
    encoding: str,
    as_json: bool,
    html: Path | None,
    force: bool,
) -> None:
    """Choose the sentences that represent some documents.

    FILES are text, PDF, Markdown, reStructuredText, HTML, e-mail or Word files, or
    folders of them; "-" is standard input, which is also read where no file is named.
    All of them together give one summary, a sentence a line.
    """
    from variegate.text.languages import other_language
    from variegate.text.summary import html_report

    if not files:
        if sys.stdin is None or sys.stdin.isatty():
            raise click.UsageError(
                "no files: name text, PDF, Markdown, HTML or e-mail files or folders, "
                "or '-' for standard input"
            )
        files = ("-",)
    other = None if language is None else other_language(language)
    documents = _with_prose(text.read_documents(files, encoding))
    sources = [document.id for document in documents] + ([str(model)] if model else [])
    output.refuse_to_replace(html, "--html", sources, force)
    summarizer = text.load_default() if model is None else text.Summarizer.load(model)
    known = language if other is None else "none"
    summary = summarizer.summarize(documents, budget, omega, known)
    _note_reading(documents, other)
    if html is not None:
        one, several = Path(documents[0].id).name, f"{len(documents)} documents"
        title = f"Summary of {one if len(documents) == 1 else several}"
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


@click.command(
    "fit-summarizer",
    epilog="\b\nvariegate fit-summarizer clusters.jsonl -o model.json\n"
    "variegate summarize news/*.txt --model model.json",
)
@click.argument("data", type=options.PATH)
@options.OUT
@option(
    "--budget N[cwsb]", "Length of the summaries to learn from, as for summarize.",
    _BUDGET, default="250w",
)  # fmt: skip
@options.learning_options(1.0, 200, "sentence", "summarize")
@option(
    "--similarity", "Similarity: a learned mixture of kernels, or the cosine.",
    ("mkr", "cos"), default="mkr",
)  # fmt: skip
@option(
    "--features", "Features of a sentence: all, or those of the paper.",
    ("full", "paper"), default="full",
)  # fmt: skip
@options.encoding_option("DATA")
@options.FORCE
def fit_summarizer(
    data: Path, out: Path, encoding: str, force: bool, **parameters: Any
) -> None:
    """Learn to summarize from documents and summaries that people wrote.

    DATA has one JSON object a line: {"documents": [...], "references": [...]}, both
    lists of texts or of {"path": FILE}, and perhaps the "language" they are in.
    """
    output.refuse_to_replace(out, "-o", [data], force)
    clusters = text.read_clusters(data, encoding=encoding)
    summarizer = text.Summarizer(**parameters)
    with output.print_warnings_as_notes(), show_progress() as progress:
        summarizer.fit(clusters, progress=progress)
        summarizer.save(out)
    output.print_text(summarizer.describe_training())
    output.print_written(out)
