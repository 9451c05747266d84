"""What leaves the studio: picks, a model, a report, and the commands for the same.

Picks are those of groups that are done.  The model is learned from them by the usual
estimator of such data with its own settings, so that the usual commands take it:
``variegate select`` for tables and pictures, ``summarize`` for documents, ``keyframes``
for videos; and what ``command.txt`` says learns the same.
"""

from __future__ import annotations

import json
import tempfile
import threading
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from sklearn.exceptions import ConvergenceWarning

from variegate.estimator import AllAlikeWarning
from variegate.report.page import render
from variegate.report.words import count
from variegate.studio.material.base import Material, MaterialError, Picks
from variegate.tables.columns import is_list
from variegate.tables.writing import table_writer

__all__ = ["EXPORTS", "Exporter"]

#: The file of picks that the commands learn from, by kind of material; those of
#: pictures hold what they look like.
_LEARNED_FROM = {
    "table": "picks.parquet",
    "images": "picks.parquet",
    "documents": "picks.jsonl",
    "video": "picks.csv",
}

#: What calls a function that takes long, here or elsewhere.
Call = Callable[[Callable[[], Any]], Any]


def _here(function: Callable[[], Any]) -> Any:
    return function()


class Exporter:
    """Makes the files that can be taken along.

    Parameters
    ----------
    material : Material
    call : callable
        Calls what takes long; by default in this thread.
    """

    def __init__(self, material: Material, call: Call = _here) -> None:
        self._material = material
        self._call = call
        self._lock = threading.Lock()
        self._last: tuple[str, Any] | None = None

    def export(self, name: str, picks: Picks) -> bytes:
        """Return the content of a file.

        Parameters
        ----------
        name : str
            One of ``EXPORTS``.
        picks : mapping from group to items
            Of the groups that are done.
        """
        if name not in EXPORTS:
            raise MaterialError(f"there is no {name}; there are {', '.join(EXPORTS)}")
        if not picks:
            raise MaterialError("no group is done yet: there is nothing to export")
        return EXPORTS[name](self, picks)

    # Picks ------------------------------------------------------------------------

    def csv(self, picks: Picks) -> bytes:
        """Return picks, vectors as text."""
        own = getattr(self._material, "csv", None)
        if own is not None:
            return str(own(picks)).encode()
        return _written(_vectors_as_text(self._material.picks_table(picks)), ".csv")

    def jsonl(self, picks: Picks) -> bytes:
        """Return picks, a line each."""
        own = getattr(self._material, "jsonl", None)
        if own is not None:
            return str(own(picks)).encode()
        return _written(self._material.picks_table(picks), ".jsonl")

    def parquet(self, picks: Picks) -> bytes:
        """Return picks with the types that they had."""
        return _written(self._material.picks_table(picks), ".parquet")

    # What is learned --------------------------------------------------------------

    def model(self, picks: Picks) -> bytes:
        """Return a model file."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.json"
            self._learned(picks).save(path)
            return path.read_bytes()

    def _learned(self, picks: Picks) -> Any:
        """Return what is learned from picks, or what was, if these were the last.

        A report is often asked for after its model.
        """
        key = repr([(group, chosen.tolist()) for group, chosen in picks.items()])
        with self._lock:
            if self._last is None or self._last[0] != key:
                learn = partial(_quietly, self._material.learner(picks))
                self._last = key, self._call(learn)
            return self._last[1]

    def report(self, picks: Picks) -> bytes:
        """Return a page about the model and its picks."""
        material, model = self._material, self._learned(picks)
        if material.kind in ("table", "images"):
            made = self._call(
                partial(_table_report, model, material.picks_table(picks))
            )
            return str(made).encode()
        page = render(
            "studio",
            "picks.html",
            title="Learned from your own picks",
            facts={
                "groups": f"{len(picks):,} of {len(material.names):,}",
                material.nouns[1]: f"{sum(map(len, picks.values())):,} picked",
            },
            description=str(model.describe()),
            groups=[
                _group(material, group, chosen.tolist())
                for group, chosen in picks.items()
            ],
            command=self._command_line(picks),
        )
        return page.encode()

    def command(self, picks: Picks) -> bytes:
        """Return the commands that learn the same."""
        return self._command_line(picks).encode()

    def _command_line(self, picks: Picks) -> str:
        kind = self._material.kind
        return self._material.command_line(_LEARNED_FROM[kind], picks)


def _quietly(learn: Callable[[], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", AllAlikeWarning)
        return learn()


def _table_report(model: Any, table: pa.Table) -> str:
    from variegate.tables.report import html_page

    return html_page(model.report(table))


def _vectors_as_text(table: pa.Table) -> pa.Table:
    """Return a table with vectors as ``[0.1, 0.2]``, for cells of CSV."""
    for place, field in enumerate(table.schema):
        if is_list(field.type):
            cells = [
                None if value is None else json.dumps(value)
                for value in table.column(place).to_pylist()
            ]
            table = table.set_column(place, field.name, pa.array(cells, pa.string()))
    return table


def _written(table: pa.Table, suffix: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"picks{suffix}"
        with table_writer(path, table.schema) as write:
            for batch in table.to_batches():
                write(batch)
        return path.read_bytes()


def _group(material: Material, group: int, chosen: list[int]) -> dict[str, Any]:
    items = material.items(group)
    return {
        "name": material.names[group],
        "note": f"{len(chosen)} of {count(len(items), material.nouns[0])}",
        "texts": [items[item].text or items[item].title for item in chosen],
    }


#: What makes each file.
#:
#: :meta hide-value:
EXPORTS: Mapping[str, Callable[[Exporter, Picks], bytes]] = {
    "picks.csv": Exporter.csv,
    "picks.parquet": Exporter.parquet,
    "picks.jsonl": Exporter.jsonl,
    "model.json": Exporter.model,
    "report.html": Exporter.report,
    "command.txt": Exporter.command,
}
