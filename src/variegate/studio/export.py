"""Exports: picks, a model, a report, and the commands that learn the same model.

Picks are those of groups that are done.  The model is learned from them by the usual
estimator of such data with its own settings, so that the usual commands take it:
``variegate select`` for tables and pictures, ``summarize`` for documents, ``keyframes``
for videos.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from variegate.report.page import render
from variegate.report.wording import count
from variegate.studio.kernel_candidates import without_warnings
from variegate.studio.material.base import Material, MaterialError, Picks
from variegate.tables.columns import is_list
from variegate.tables.output import write_table

#: Media types, by name.
EXPORTS = {
    "picks.csv": "text/csv",
    "picks.jsonl": "application/x-ndjson",
    "picks.parquet": "application/vnd.apache.parquet",
    "model.json": "application/json",
    "report.html": "text/html",
    "command.txt": "text/plain",
}


class Exporter:
    """Makes the files of ``EXPORTS``, one at a time.

    ``call`` calls functions that take long.
    """

    def __init__(
        self,
        material: Material,
        call: Callable[[Callable[[], Any]], Any] = lambda function: function(),
    ) -> None:
        self._material = material
        self._call = call
        self._last: tuple[str, Any] | None = None

    def export(self, name: str, picks: Picks) -> bytes:
        """Return the content of a file, from the picks of groups that are done."""
        material = self._material
        if name not in EXPORTS:
            raise MaterialError(f"there is no {name}; there are {', '.join(EXPORTS)}")
        if not picks:
            raise MaterialError("no group is done yet: there is nothing to export")
        if name == "model.json":
            return _content(self._learned(picks).save, name)
        if name == "report.html":
            return self._report(picks).encode()
        text = material.picks_text(name, picks)
        if name == "command.txt":
            text = material.command_line(picks)
        if text is not None:
            return text.encode()
        table = material.picks_table(picks)
        if name == "picks.csv":
            table = _vectors_as_text(table)
        return _content(partial(write_table, table), name)

    def _learned(self, picks: Picks) -> Any:
        """Return the model of some picks; the last one is kept, for its report."""
        key = repr([(group, chosen.tolist()) for group, chosen in picks.items()])
        if self._last is None or self._last[0] != key:
            learn = partial(without_warnings, self._material.learner(picks))
            self._last = key, self._call(learn)
        return self._last[1]

    def _report(self, picks: Picks) -> str:
        material, model = self._material, self._learned(picks)
        if material.kind in ("table", "images"):
            page = partial(_table_report, model, material.picks_table(picks))
            return str(self._call(page))
        groups = []
        for group, chosen in picks.items():
            items = material.items(group)
            texts = [items[item].text or items[item].title for item in chosen]
            note = f"{len(chosen)} of {count(len(items), material.nouns[0])}"
            groups.append({"name": material.names[group], "note": note, "texts": texts})
        return render(
            "studio",
            "picks.html",
            title="Learned from your own picks",
            facts={
                "groups": f"{len(picks):,} of {len(material.names):,}",
                material.nouns[1]: f"{sum(map(len, picks.values())):,} picked",
            },
            description=str(model.describe()),
            groups=groups,
            command=material.command_line(picks),
        )


def _table_report(model: Any, table: pa.Table) -> str:
    from variegate.tables.report import html_page

    return html_page(model.report(table))


def _vectors_as_text(table: pa.Table) -> pa.Table:
    """Return a table with vectors as ``[0.1, 0.2]``, for cells of CSV."""
    for place, field in enumerate(table.schema):
        if is_list(field.type):
            vectors = table.column(place).to_pylist()
            cells = [None if cell is None else json.dumps(cell) for cell in vectors]
            table = table.set_column(place, field.name, pa.array(cells, pa.string()))
    return table


def _content(write: Callable[[Path], object], name: str) -> bytes:
    """Return the content of a file that ``write`` writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        write(path)
        return path.read_bytes()
