"""``variegate summarize`` and ``variegate fit-summarizer``."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from variegate.cli.notes import note, notes
from variegate.cli.paths import MODEL, OUTPUT, output, refuse_to_replace
from variegate.cli.progress import progress_bar

if TYPE_CHECKING:
    from variegate.text import Document, Summarizer


def _budget(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> str | None:
    from variegate.text.budget import Budget

    try:
        return None if value is None else str(Budget.parse(value))
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _language(
    context: click.Context, parameter: click.Parameter, value: str
) -> str | None:
    from variegate.text.languages import as_language

    try:
        language = None if value.lower() == "none" else as_language(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    return None if language is None else language.name


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
    default="english",
    show_default=True,
    help="By name or code (fr), or 'none' for one that is not known; matters for "
    "abbreviations, where sentences end, and for what is a pronoun.",
)
@click.option(
    "--encoding", default="utf-8", show_default=True, help="Encoding of the files."
)
@click.option("--json", "as_json", is_flag=True, help="JSON, with every sentence.")
@click.option(
    "--html",
    callback=output,
    type=OUTPUT,
    metavar="FILE",
    help="Write a page too that shows the summary in its documents.",
)
def summarize(
    files: tuple[str, ...],
    budget: str | None,
    omega: float | None,
    model: Path | None,
    language: str | None,
    encoding: str,
    as_json: bool,
    html: Path | None,
) -> None:
    """Choose the sentences that represent some documents.

    FILES are text, Markdown or HTML, or folders of them; "-" is standard input, which
    is also read where no file is named.  All of them together give one summary, a
    sentence a line.
    """
    from variegate.text.readers import read_documents

    if not files:
        if sys.stdin is None or sys.stdin.isatty():
            raise click.UsageError(
                "no files: name text, Markdown or HTML files or folders, or '-' for "
                "standard input"
            )
        files = ("-",)
    documents = read_documents(files, encoding)
    if html is not None:
        refuse_to_replace(html, "--html", [document.id for document in documents])
        if model is not None:
            refuse_to_replace(html, "--html", [model])
    summarizer = _load(model)
    summary = summarizer.summarize(documents, budget, omega, language)
    if html is not None:
        from variegate._files import write_atomic
        from variegate.text.report import html_report

        write_atomic(html, html_report(summary, _title(documents)))
    if as_json:
        click.echo(json.dumps(summary.as_dict(), indent=1, ensure_ascii=False))
    elif summary.sentences:
        click.echo(summary.text)
    if not summary.sentences:
        note("the model chose no sentence; give a --budget to fill or a larger --omega")
    if html is not None:
        click.echo(f"written: {html}", err=True)


def _load(model: Path | None) -> Summarizer:
    from variegate.text import Summarizer, load_default

    return load_default() if model is None else Summarizer.load(model)


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
@click.option(
    "-o",
    "--out",
    callback=output,
    type=OUTPUT,
    required=True,
    metavar="FILE",
    help="Where the model is written, as JSON.",
)
@click.option(
    "--budget",
    callback=_budget,
    default="250w",
    show_default=True,
    metavar="N[cwsb]",
    help="How long the summaries to learn from are, as for summarize.",
)
@click.option(
    "--lam",
    type=click.FloatRange(min=0.0),
    default=1.0,
    show_default=True,
    help="Weight of the margin; 0 is maximum likelihood.",
)
@click.option(
    "--omega",
    "omegas",
    type=click.FloatRange(min=0.0, min_open=True),
    multiple=True,
    default=(1.0,),
    show_default=True,
    help="What a missed sentence costs against one too many; repeat to learn for "
    "several, and summarize takes any value between them.",
)
@click.option(
    "--similarity",
    type=click.Choice(["mkr", "cos"]),
    default="mkr",
    show_default=True,
    help="A learned mixture of kernels, or the cosine.",
)
@click.option(
    "--features",
    type=click.Choice(["full", "paper"]),
    default="full",
    show_default=True,
    help="What is known of a sentence: all there is, or what the paper has.",
)
@click.option(
    "--max-iter",
    type=click.IntRange(min=1),
    default=200,
    show_default=True,
    help="When to stop learning at the latest.",
)
@click.option(
    "--encoding", default="utf-8", show_default=True, help="Encoding of DATA."
)
def fit_summarizer(
    data: Path,
    out: Path,
    budget: str,
    lam: float,
    omegas: tuple[float, ...],
    similarity: str,
    features: str,
    max_iter: int,
    encoding: str,
) -> None:
    """Learn to summarize from documents and summaries that people wrote.

    DATA has one JSON object a line: {"documents": [...], "references": [...]}, both
    lists of texts, and perhaps the "language" they are in.
    """
    from variegate.text import Summarizer
    from variegate.text.readers import read_clusters

    refuse_to_replace(out, "-o", [data])
    clusters = read_clusters(data, encoding=encoding)
    summarizer = Summarizer(
        lam=lam,
        omega=omegas if len(omegas) > 1 else omegas[0],
        similarity=similarity,
        features=features,
        budget=budget,
        max_iter=max_iter,
    )
    with notes(), progress_bar("fitting") as progress:
        summarizer.fit(clusters, progress=progress)
        summarizer.save(out)
    click.echo(_training_report(summarizer, budget))
    click.echo(f"written: {out}", err=True)


def _training_report(summarizer: Summarizer, budget: str) -> str:
    from variegate.text.budget import Budget

    training = summarizer.training_
    omegas = ", ".join(f"{omega:g}" for omega in summarizer.omegas_)
    return (
        f"clusters: {training['n_clusters']:,}\n"
        f"sentences: {training['n_sentences']:,}\n"
        f"learned for ω = {omegas}\n"
        f"best choice of sentences within {Budget.parse(budget).describe()}: "
        f"ROUGE-1 F {training['oracle_rouge_1_f']:.3f}, "
        f"ROUGE-2 F {training['oracle_rouge_2_f']:.3f}"
    )
