"""``variegate evidence`` and ``variegate fit-evidence``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from variegate import text
from variegate.cli import documents, options, output
from variegate.cli.options import option
from variegate.cli.progress import show_progress


@click.command(
    epilog="\b\n"
    'variegate evidence "Who repaired the bridge?" minutes/ --budget 120w\n'
    'variegate evidence "Why is the road closed?" report.md --html evidence.html'
)
@click.argument("question")
@click.argument("files", nargs=-1, type=click.Path())
@documents.budget_option("Most evidence")
@documents.omega_option("1, or enough to fill the budget")
@options.model_option("Model of 'variegate fit-evidence'.")
@option("--vectors", "The packaged model that compares words by vectors (wordllama).")
@documents.LANGUAGE
@options.encoding_option("the files")
@options.json_option("Print JSON, with all texts and the offsets of sentences.")
@options.output_option("--html FILE", "Write a page of the evidence in its documents.")
@options.FORCE
def evidence(
    question: str,
    files: tuple[str, ...],
    budget: str | None,
    omega: float | None,
    model: Path | None,
    vectors: bool,
    language: str | None,
    encoding: str,
    as_json: bool,
    html: Path | None,
    force: bool,
) -> None:
    """Choose the sentences of documents that answer a question.

    FILES are as for summarize: files of text, or folders of them; "-" is standard
    input, which is also read where no file is named. The sentences are printed one a
    line, in reading order.
    """
    if not files and Path(question).exists():
        raise click.UsageError(
            f"{question} is a file: write the question before the files"
        )
    if model is not None and vectors:
        raise click.UsageError(
            "--vectors is for the packaged model: leave it out, as --model knows its "
            "vectors"
        )
    found = documents.read_documents(files, encoding)
    sources = [document.id for document in found] + ([str(model)] if model else [])
    output.refuse_to_replace(html, "--html", sources, force)
    if model is None:
        name = "wordllama" if vectors else None
        selector = text.EvidenceSelector.pretrained(name)
    else:
        selector = text.EvidenceSelector.load(model)
    known = documents.language_with_lists(language)
    with output.print_warnings_as_notes(text.EvidenceWarning):
        chosen = selector.select(question, found, budget, omega, language=known)
    documents.note_reading(found, language)
    documents.print_choice(chosen, as_json, html, question)


@click.command(
    "fit-evidence",
    epilog="\b\nvariegate fit-evidence questions.jsonl -o model.json\n"
    'variegate evidence "Who repaired the bridge?" minutes/ --model model.json',
)
@click.argument("data", type=options.PATH)
@options.OUT
@option(
    "--quality-model", "Whether boosted trees add to the quality; auto compares both "
    "on questions that were held out.", ("auto", "linear", "boosting"), default="auto",
)  # fmt: skip
@option("--vectors", "Compare words and sentences also by vectors (wordllama).")
@option("--lam L", options.LAM_HELP, options.NumberType(min=0.0), default=0.0)
@option("--max-iter N", options.MAX_ITER_HELP, options.COUNT, default=200)
@options.encoding_option("DATA")
@options.FORCE
def fit_evidence(
    data: Path, out: Path, vectors: bool, encoding: str, force: bool, **parameters: Any
) -> None:
    """Learn to choose evidence from questions with marked sentences.

    DATA has one JSON object a line: {"question": ..., "sentences": [...], "wanted":
    [numbers of sentences, from 0]}, and perhaps "titles", of the document of each
    sentence, and "text": questions about the same text are held out together.
    """
    output.refuse_to_replace(out, "-o", [data], force)
    questions = text.read_questions(data, encoding=encoding)
    embed = "wordllama" if vectors else None
    selector = text.EvidenceSelector(embed=embed, **parameters)
    with output.print_warnings_as_notes(), show_progress() as progress:
        selector.fit(**questions, progress=progress)
        selector.save(out)
    output.print_text(selector.describe_training())
    output.print_written(out)
