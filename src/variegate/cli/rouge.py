"""``variegate rouge``: summaries against reference summaries."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variegate.cli import options, output
from variegate.cli.options import option
from variegate.report.terminal import align_columns

if TYPE_CHECKING:
    from variegate.text.rouge import Rouge, Score


@click.command(
    epilog="\b\nvariegate rouge --system mine.txt --reference r1.txt --reference r2.txt"
)
@option(
    "--system FILE", "Summary to score, one sentence a line. Repeat for several.",
    options.FILE, multiple=True, required=True, name="systems",
)  # fmt: skip
@option(
    "--reference FILE", "Reference summary of the same topic. Repeat for several.",
    options.FILE, multiple=True, required=True, name="references",
)  # fmt: skip
@option(
    "--n N", "Length of the n-grams of ROUGE-N. Repeat for several.", options.COUNT,
    multiple=True, default=(1, 2),
)  # fmt: skip
@option(
    "--su N", "ROUGE-SU too: single words, and pairs with at most N words between.",
    click.IntRange(min=0),
)  # fmt: skip
@option("--stem", "Compare the stems of English words.")
@option(
    "--wordnet FILE", "Irregular forms for --stem, lines of 'form<TAB>base'.",
    options.FILE,
)  # fmt: skip
@option("--max-bytes N", "Limit of every text.", options.COUNT)
@option("--max-words N", "Limit of every text.", options.COUNT)
@option("--best", "Score by the best reference, not by all.")
@option("--stop-words FILE", "Words to leave out.", options.FILE)
@option("--unicode", "Count letters outside ASCII as letters.")
@options.encoding_option("all files")
@options.JSON
def rouge(**given: Any) -> None:
    """Score summaries of one topic as ROUGE-1.5.5 does."""
    from variegate.text.rouge import Rouge

    score_files(Rouge, **given)


def score_files(
    kind: type[Rouge],
    systems: tuple[Path, ...],
    references: tuple[Path, ...],
    wordnet: Path | None,
    best: bool,
    stop_words: Path | None,
    encoding: str,
    as_json: bool,
    **settings: Any,
) -> None:
    """Print notes and the scores of files, by the class ``kind`` with ``settings``."""
    from variegate.files.folders import read_text
    from variegate.text.rouge import mean_scores, read_exceptions

    def read_with_newlines(path: Path) -> str:
        """Return the text of a file, its line ends as newlines."""
        return read_text(path, encoding).replace("\r\n", "\n")

    scorer = kind(
        exceptions=None if wordnet is None else read_exceptions(wordnet),
        references="best" if best else "average",
        stop_words=read_with_newlines(stop_words).split() if stop_words else None,
        **settings,
    )
    texts = {path: read_with_newlines(path) for path in references}
    unicode_hint = "" if scorer.unicode else "; --unicode counts letters outside ASCII"
    for path, text in texts.items():
        if not text.strip():
            raise click.UsageError(f"{path}: the reference is empty")
        if not scorer.read(text):
            raise click.UsageError(
                f"{path}: the reference has no words that count{unicode_hint}"
            )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a note says it in the words of the options
        prepared = scorer.prepare([texts[path] for path in references])
    rows = [(str(path), prepared.score(read_with_newlines(path))) for path in systems]
    for text in _score_notes(scorer, texts, wordnet):
        output.print_note(text)
    rows.append(("mean", mean_scores(row for _, row in rows)))
    plain = [
        {"system": name, "scores": {n: score._asdict() for n, score in row.items()}}
        for name, row in rows
    ]
    numbers = {"systems": plain[:-1], "mean": plain[-1]["scores"]}
    shown = rows if len(rows) > 2 else rows[:1]
    output.print_result(as_json, numbers, lambda: _score_table(shown))


def _score_notes(
    scorer: Rouge, references: Mapping[Path, str], wordnet: Path | None
) -> Iterator[str]:
    """Yield notes on stems, and on letters in ``references`` that do not count."""
    from variegate.text.rouge_tokens import mostly_beyond_ascii

    if scorer.stem and wordnet is None:
        yield (
            "plain Porter stems; irregular forms differ from ROUGE-1.5.5, which looks "
            "them up in WordNet (--wordnet FILE)"
        )
    if wordnet is not None and not scorer.stem:
        yield "--wordnet does nothing without --stem"
    for path, text in references.items():
        if not scorer.unicode and mostly_beyond_ascii(text):
            yield f"{path}: letters outside ASCII do not count without --unicode"


def _score_table(rows: Sequence[tuple[str, Mapping[str, Score]]]) -> str:
    """Return a text table with a line for each summary and measure."""
    heads = ("system", "measure", "P", "R", "F")
    cells = [
        (name, measure, *(f"{value:.5f}" for value in score))
        for name, scores in rows
        for measure, score in scores.items()
    ]
    return align_columns([heads, *cells])
