"""``variegate summarize`` and ``variegate fit-summarizer``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from variegate import text
from variegate.cli import documents, options, output
from variegate.cli.options import option
from variegate.cli.progress import show_progress


@click.command(
    epilog="\b\nvariegate summarize news/*.txt --budget 100w\n"
    "variegate summarize report.md --budget 5s --html summary.html"
)
@click.argument("files", nargs=-1, type=click.Path())
@documents.budget_option("Longest summary")
@documents.omega_option("1, or the nearest to it")
@options.model_option("Model of 'variegate fit-summarizer'.")
@documents.LANGUAGE
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
    found = documents.read_documents(files, encoding)
    sources = [document.id for document in found] + ([str(model)] if model else [])
    output.refuse_to_replace(html, "--html", sources, force)
    summarizer = text.load_default() if model is None else text.Summarizer.load(model)
    known = documents.language_with_lists(language)
    summary = summarizer.summarize(found, budget, omega, known)
    documents.note_reading(found, language)
    one, several = Path(found[0].id).name, f"{len(found)} documents"
    title = f"Summary of {one if len(found) == 1 else several}"
    documents.print_choice(summary, as_json, html, title)


@click.command(
    "fit-summarizer",
    epilog="\b\nvariegate fit-summarizer clusters.jsonl -o model.json\n"
    "variegate summarize news/*.txt --model model.json",
)
@click.argument("data", type=options.PATH)
@options.OUT
@documents.budget_option("Length of the summaries to learn from", default="250w")
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
