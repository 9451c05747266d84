"""Exports: picks, the model that proposes, a page of picks, and commands.

Picks are those of groups that are done.  ``variegate select`` chooses from new data by
the model, as the studio would; so do ``summarize`` for documents and ``keyframes`` for
videos, in ways of their own.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa

from variegate.material.base import Material, MaterialError, Picks
from variegate.material.contact_sheet import contact_sheet
from variegate.material.table_sources import columns_left_out
from variegate.studio.group_learner import LearningResult
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

#: Placeholders for new data in commands, by the kind of material.
_NEW = {
    "table": "NEW.csv",
    "images": "NEW_PICTURES/",
    "documents": "NEW_DOCUMENTS/",
    "video": "NEW_VIDEOS/",
}


def export_file(
    name: str,
    material: Material,
    picks: Picks,
    learned: LearningResult | None,
    omega: float = 1.0,
    problem: str | None = None,
) -> bytes:
    """Return the content of a file of ``EXPORTS``, from the picks of done groups.

    ``learned`` has the models that propose, and ``omega`` is the slider's factor on the
    odds of all items; ``problem`` says why nothing was learned, if that failed.
    MaterialError where there is nothing to export yet.
    """
    if name not in EXPORTS:
        raise MaterialError(f"there is no {name}; there are {', '.join(EXPORTS)}")
    if not picks:
        raise MaterialError("no group is done yet: there is nothing to export")
    if name == "model.json" and learned is None:
        raise MaterialError(
            problem or "nothing is learned yet: export the model in a moment"
        )
    if name == "command.txt":
        return _command_text(material, picks, omega).encode()
    model = None
    if learned is not None and name in ("model.json", "report.html"):
        model = material.model(learned.family, picks, learned.path)
    if name == "report.html":
        return contact_sheet(
            material,
            picks,
            title="Learned from your own picks",
            description="" if model is None else str(model.describe()),
            commands=_command_text(material, picks, omega),
        ).encode()
    if model is not None:
        return _capture_file(model.save, name)
    text = material.picks_text(name, picks)
    if text is not None:
        return text.encode()
    table = material.picks_table(picks)
    left_out = columns_left_out(name, table.schema)
    table = table.drop_columns([column.name for column in left_out])
    if name == "picks.csv":
        table = _vectors_as_text(table)
    return _capture_file(partial(write_table, table), name)


def _command_text(material: Material, picks: Picks, omega: float) -> str:
    """Return two shell commands: choose by the model at ``omega``; learn it anew."""
    options = material.limit_options()
    if omega != 1.0:
        options.append(f"--omega {omega:.4g}")
    if material.kind != "table":
        options.append("--html chosen.html")
    select = f"variegate select {_NEW[material.kind]} --model model.json -o chosen.csv"
    return (
        "# Choose from new data by the exported model.\n"
        f"{' '.join([select, *options])}\n"
        "# Learn a model from the exported picks alone.\n"
        f"{material.fit_command(picks)}\n"
    )


def _vectors_as_text(table: pa.Table) -> pa.Table:
    """Return a table whose columns of lists are text such as ``[0.1, 0.2]``."""
    for place, field in enumerate(table.schema):
        if is_list(field.type):
            vectors = table.column(place).to_pylist()
            cells = [
                None if cell is None else json.dumps(cell, default=str)
                for cell in vectors
            ]
            table = table.set_column(place, field.name, pa.array(cells, pa.string()))
    return table


def _capture_file(write: Callable[[Path], object], name: str) -> bytes:
    """Return the bytes that ``write`` writes to a temporary file called ``name``."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        write(path)
        return path.read_bytes()
