"""The frame of every experiment: run its pieces, resume, and write the results.

An experiment says what its pieces are, how one is computed, and how the records of all
become results, claims, figures and a report.  The frame does the rest.

Each piece is a pure function of its arguments whose result is plain JSON values.
Finished pieces are kept in a run store in the output folder until the experiment is
complete, under a fingerprint of the settings; a run with the same settings resumes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from joblib import delayed
from threadpoolctl import threadpool_limits

from paper.text_tables import markdown_table
from variegate._processes import parallel_processes
from variegate._progress import Progress
from variegate._version import __version__
from variegate.files.atomic import write_atomic
from variegate.files.run_store import RunStore
from variegate.report.figures import to_png
from variegate.report.page import template_environment

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from jinja2 import Template
    from matplotlib.figure import Figure

__all__ = [
    "Claim",
    "Experiment",
    "Outcome",
    "Record",
    "Results",
    "Settings",
    "discard_pieces",
    "fingerprint",
    "interval",
    "run_pieces",
    "verdict",
]

#: Plain JSON values: what one piece found, and what the whole experiment did.
Record = dict[str, Any]
Results = dict[str, Any]


_TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Claim:
    """A statement of the paper beside our measurement of it."""

    paper: str
    measured: str
    holds: str


@dataclass(frozen=True)
class Outcome:
    """What a run found, the header of its claims, and the files it wrote."""

    results: Results
    claims: list[Claim]
    claims_header: Sequence[str]
    files: list[Path]


@dataclass(frozen=True)
class Settings:
    """What the results depend on, beside the data: the fields of a subclass."""

    #: What ``results.json`` calls the version.
    version_name: ClassVar[str] = "version"

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, with the version that computes."""
        return {self.version_name: __version__, **asdict(self)}


Setup = TypeVar("Setup", bound="DataclassInstance")


@dataclass(frozen=True)
class Experiment(Generic[Setup]):
    """One experiment of the paper, as functions of its setup.

    The setup is a dataclass of plain values: the settings, and the folders of the data
    if there are any.  Worker processes get a copy of it, and it decides which finished
    pieces a repeated run takes up again.

    ``pieces`` are tuples of plain values.  ``compute`` turns the setup and the values
    of one into its records, the same wherever and whenever it runs, and is importable
    by name.  ``results`` is the content of ``results.json``, and ``claims`` are the
    paper's beside it.  ``pictures`` are plots by the names of their files less the
    suffix.  ``template`` is the file of the report, which sees
    the settings, the results, the claims and their header, the command, the version,
    and the ``facts``.
    """

    pieces: Callable[[Setup], Sequence[tuple[Any, ...]]]
    compute: Callable[..., list[Record]]
    results: Callable[[Setup, list[Record]], Results]
    claims: Callable[[Setup, Results], list[Claim]]
    pictures: Callable[[Setup, Results, list[Record]], Mapping[str, Figure]]
    template: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    claims_header: Sequence[str] = (
        "what the paper says",
        "what we measured",
        "does it hold",
    )

    def reproduce(
        self,
        out: Path,
        setup: Setup,
        command: str,
        jobs: int = 1,
        progress: Progress | None = None,
    ) -> Outcome:
        """Run the experiment and write results, pictures and report to ``out``.

        Finished pieces are kept there until the end: an interrupted run goes on where
        it stopped.  ``command`` is what the report says it was made by.  The results do
        not depend on ``jobs``, the number of worker processes.
        """
        template = load_template(self.template)  # better to fail before the work
        out.mkdir(parents=True, exist_ok=True)
        mark = fingerprint({"version": __version__, **asdict(setup)})
        compute, pieces = partial(self.compute, setup), self.pieces(setup)
        computed = run_pieces(compute, pieces, out, mark, jobs, progress)
        records = [record for piece in computed for record in piece]
        results = self.results(setup, records)
        claims = self.claims(setup, results)
        facts = {
            "settings": results["settings"],
            "results": results,
            "claims": claims,
            "header": self.claims_header,
            "command": command,
            "version": __version__,
            **self.facts,
        }
        files: dict[str, str | bytes] = {
            "results.json": json.dumps(results, indent=1) + "\n",
            "report.md": render(template, facts),
        }
        for name, picture in self.pictures(setup, results, records).items():
            files[f"{name}.png"] = to_png(picture)
        for name, content in files.items():
            write_atomic(out / name, content)
        discard_pieces(out, mark)
        return Outcome(results, claims, self.claims_header, [out / n for n in files])


# Pieces ----------------------------------------------------------------------


def fingerprint(settings: Mapping[str, Any]) -> str:
    """Return a short name for settings that are plain JSON values."""
    text = json.dumps(settings, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def run_pieces(
    compute: Callable[..., Any],
    pieces: Sequence[tuple[Any, ...]],
    folder: Path,
    mark: str,
    jobs: int,
    progress: Progress | None = None,
) -> list[Any]:
    """Return ``[compute(*piece) for piece in pieces]``, in order.

    ``compute`` is importable by name, so that worker processes can find it; one job
    runs everything in this process.  ``mark`` is the fingerprint of the settings, under
    which finished pieces are kept in the output folder.
    """
    with RunStore(_path(folder, mark), {"settings": mark}) as store:
        if progress is not None:
            progress("fitting", len(store), len(pieces))
        missing = [piece for piece in pieces if store.get(_key(piece)) is None]
        finished = parallel_processes(jobs, return_as="generator_unordered")(
            delayed(_compute_piece)(compute, piece) for piece in missing
        )
        for piece, result in finished:
            store.put(_key(piece), result)
            if progress is not None:
                progress("fitting", len(store), len(pieces))
        # Fresh and resumed pieces are the same down to their types.
        return [json.loads(store.get(_key(piece)) or b"") for piece in pieces]


def discard_pieces(folder: Path, mark: str) -> None:
    """Remove what a run kept for resuming, once its results are written."""
    _path(folder, mark).unlink(missing_ok=True)


def _path(folder: Path, mark: str) -> Path:
    return folder / f".unfinished-{mark}"


def _key(piece: tuple[Any, ...]) -> str:
    return "-".join(map(str, piece))


def _compute_piece(
    compute: Callable[..., Any], piece: tuple[Any, ...]
) -> tuple[tuple[Any, ...], bytes]:
    with threadpool_limits(limits=1):  # the same bits with any number of jobs
        return piece, json.dumps(compute(*piece)).encode()


# Reports ---------------------------------------------------------------------


def load_template(name: str) -> Template:
    """Return the template of a report."""
    templates = template_environment(_TEMPLATES, autoescape=False, extra="cli")
    templates.filters |= {"interval": interval, "mean": _mean, "numbers": _numbers}
    return templates.get_template(name)


def render(template: Template, facts: Mapping[str, Any]) -> str:
    """Return a report, the columns of its tables padded to equal width."""
    lines = template.render(facts).splitlines()
    parts = []
    for is_table, members in groupby(lines, lambda line: line.startswith("|")):
        part = list(members)
        if is_table:
            header, _, *rows = (
                [cell.strip() for cell in line[1:-1].split("|")] for line in part
            )
            part = [markdown_table(header, rows)]
        parts += part
    return "\n".join(parts) + "\n"


def interval(comparison: dict[str, Any], score: str, digits: int) -> str:
    """Return a difference with its 95% interval, in points."""
    middle, low, high = (
        f"{100 * comparison[key][score]:+.{digits}f}"
        for key in ("difference", "low", "high")
    )
    return f"{middle} [{low}, {high}]"


def verdict(comparison: dict[str, Any], score: str) -> str:
    """Return whether a difference is above zero, as far as its interval tells."""
    if comparison["low"][score] > 0.0:
        return "yes"
    return "no" if comparison["high"][score] < 0.0 else "no clear difference"


def _mean(row: dict[str, Any], score: str, digits: int) -> str:
    """Return a mean with its standard error, where it has one, in points."""
    error = row["se"][score]
    more = "" if error is None else f" ± {100 * error:.{digits}f}"
    return f"{100 * row[score]:.{digits}f}{more}"


def _numbers(values: Iterable[float]) -> str:
    return "{" + ", ".join(f"{value:g}" for value in values) + "}"
