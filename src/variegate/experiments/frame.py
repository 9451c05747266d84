"""The frame of every experiment: run its pieces, resume, and write what was found.

An experiment says what its pieces are, how one is computed, and how the records of all
become results, claims, pictures and a report.  The frame does the rest.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from variegate._files import write_atomic
from variegate._version import __version__
from variegate.experiments.report import load_template, render
from variegate.experiments.runner import (
    Progress,
    discard_pieces,
    fingerprint,
    run_pieces,
)
from variegate.report.figures import to_png

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from matplotlib.figure import Figure

__all__ = ["Claim", "Experiment", "Outcome", "Record", "Results", "Settings"]

#: Plain JSON values: what one piece found, and what the whole experiment did.
Record = dict[str, Any]
Results = dict[str, Any]


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
    paper's beside it.  ``pictures`` are plots, or the bytes of pictures, by the names
    of their files less the suffix.  ``template`` is the file of the report, which sees
    the settings, the results, the claims and their header, the command, the version,
    and the ``facts``.
    """

    pieces: Callable[[Setup], Sequence[tuple[Any, ...]]]
    compute: Callable[..., list[Record]]
    results: Callable[[Setup, list[Record]], Results]
    claims: Callable[[Setup, Results], list[Claim]]
    pictures: Callable[[Setup, Results, list[Record]], Mapping[str, Figure | bytes]]
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
            drawn = picture if isinstance(picture, bytes) else to_png(picture)
            files[f"{name}.png"] = drawn
        for name, content in files.items():
            write_atomic(out / name, content)
        discard_pieces(out, mark)
        return Outcome(results, claims, self.claims_header, [out / n for n in files])
