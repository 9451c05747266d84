"""``variegate summarize`` and ``variegate fit-summarizer``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variegate import text
from variegate.cli.learning_options import (
    OUT,
    lam_option,
    max_iter_option,
    omega_option,
    parameter,
)
from variegate.cli.notes import note, notes
from variegate.cli.paths import (
    FORCE,
    MODEL,
    encoding_option,
    output_option,
    refuse_existing,
    refuse_to_replace,
)
from variegate.cli.progress import progress_bar
from variegate.cli.results import echo_json, json_option, say, say_written
from variegate.cli.values import parsed
from variegate.files.atomic import write_atomic

if TYPE_CHECKING:
    from variegate.text import Document

_budget = parsed(lambda value: str(text.Budget.parse(value)))


@parsed
def _language(value: str) -> str:
    """Return the name of a language, "none", or the name of one without word lists."""
    from variegate.text.languages import as_language, other_language

    if value.strip().lower() == "none":
        return "none"
    other = other_language(value)
    language = None if other else as_language(value)
    return other or (language.name if language else "none")


def _say_without_lists(other: str | None) -> None:
    """Say what becomes of a language that nothing is known about."""
    if other is not None:
        note(
            f"there are no word lists for {other.capitalize()}; sentences are split by "
            "the rules for all languages, as with --language none"
        )


def _say_readers(documents: Sequence[Document]) -> None:
    """Name the reader of pages that was only the second choice."""
    from variegate.text.markup import HTML_READER

    simple = [one for one in documents if one.reader.startswith(HTML_READER)]
    if simple:
        which = simple[0].id if len(simple) == 1 else f"{len(simple)} pages"
        note(f"{which} read by {simple[0].reader}")


@click.command(
    epilog="\b\nvariegate summarize news/*.txt --budget 100w\n"
    "variegate summarize report.md --budget 5s --html summary.html"
)
@click.argument("files", nargs=-1, type=click.Path())
@click.option(
    "--budget",
    callback=_budget,
    metavar="N[cwsb]",
    help="The longest a summary may be, in characters, words, sentences or bytes: "
    "665c, 250w, 5s, 665b.  [default: the model decides]",
)
@click.option(
    "--omega",
    type=float,
    help="Below 1 precise and short, above 1 complete and long, within the range "
    "the model was learned for.  [default: 1, or the nearest to it]",
)
@click.option("--model", type=MODEL, help="As fit-summarizer writes it.")
@click.option(
    "--language",
    callback=_language,
    help="By name or code (fr), or 'none' for one that is not known; matters for "
    "abbreviations, where sentences end, and for what is a pronoun.  "
    "[default: detected]",
)
@encoding_option(help="Encoding of the files.")
@json_option(help="JSON, with every text as read, and every sentence's offsets in it.")
@output_option(
    "--html", help="Write a page too that shows the summary in its documents."
)
@FORCE
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

    FILES are text, Markdown or HTML, or folders of them; "-" is standard input, which
    is also read where no file is named.  All of them together give one summary, a
    sentence a line.
    """
    from variegate.text.languages import other_language
    from variegate.text.summary import html_report

    if not files:
        if sys.stdin is None or sys.stdin.isatty():
            raise click.UsageError(
                "no files: name text, Markdown or HTML files or folders, or '-' for "
                "standard input"
            )
        files = ("-",)
    other = None if language is None else other_language(language)
    documents = text.read_documents(files, encoding)
    sources = [document.id for document in documents]
    refuse_to_replace(
        html, "--html", sources if model is None else [*sources, str(model)]
    )
    refuse_existing(force, html)
    summarizer = text.load_default() if model is None else text.Summarizer.load(model)
    known = language if other is None else "none"
    summary = summarizer.summarize(documents, budget, omega, known)
    _say_without_lists(other)
    _say_readers(documents)
    if html is not None:
        write_atomic(html, html_report(summary, _title(documents)))
    if as_json:
        echo_json(summary.as_dict())
    elif summary.sentences:
        say(summary.text)
    if not summary.sentences:
        note("the model chose no sentence; give a --budget to fill or a larger --omega")
    say_written(html)


def _title(documents: Sequence[Document]) -> str:
    if len(documents) == 1:
        return f"Summary of {Path(documents[0].id).name}"
    return f"Summary of {len(documents)} documents"


@click.command(
    "fit-summarizer",
    epilog="\b\nvariegate fit-summarizer clusters.jsonl -o model.json\n"
    "variegate summarize news/*.txt --model model.json",
)
@click.argument("data", type=click.Path(path_type=Path))
@OUT
@parameter(
    "budget",
    "250w",
    callback=_budget,
    metavar="N[cwsb]",
    help="How long the summaries to learn from are, as for summarize.",
)
@lam_option(1.0)
@omega_option("sentence", "summarize")
@parameter(
    "similarity",
    "mkr",
    ("mkr", "cos"),
    help="A learned mixture of kernels, or the cosine.",
)
@parameter(
    "features",
    "full",
    ("full", "paper"),
    help="What is known of a sentence: all there is, or what the paper has.",
)
@max_iter_option(200)
@encoding_option(help="Encoding of DATA.")
@FORCE
def fit_summarizer(
    data: Path, out: Path, encoding: str, force: bool, **parameters: Any
) -> None:
    """Learn to summarize from documents and summaries that people wrote.

    DATA has one JSON object a line: {"documents": [...], "references": [...]}, both
    lists of texts, and perhaps the "language" they are in.
    """
    refuse_existing(force, out)
    refuse_to_replace(out, "-o", [data])
    clusters = text.read_clusters(data, encoding=encoding)
    summarizer = text.Summarizer(**parameters)
    with notes(), progress_bar("fitting") as progress:
        summarizer.fit(clusters, progress=progress)
        summarizer.save(out)
    say(summarizer.describe_training())
    say_written(out)
