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

__all__ = ["EXPORTS", "export"]

#: The file of picks that the commands learn from, by kind of material; those of
#: pictures hold what they look like.
_LEARNED_FROM = {
    "table": "picks.parquet",
    "images": "picks.parquet",
    "documents": "picks.jsonl",
    "video": "picks.csv",
}


def export(name: str, material: Material, picks: Picks) -> bytes:
    """Return the content of a file.

    Parameters
    ----------
    name : str
        One of ``EXPORTS``.
    material : Material
    picks : mapping from group to items
        Of the groups that are done.
    """
    if name not in EXPORTS:
        raise MaterialError(f"there is no {name}; there are {', '.join(EXPORTS)}")
    if not picks:
        raise MaterialError("no group is done yet: there is nothing to export")
    return EXPORTS[name](material, picks)


# Picks --------------------------------------------------------------------------------


def _csv(material: Material, picks: Picks) -> bytes:
    own = getattr(material, "csv", None)
    if own is not None:
        return str(own(picks)).encode()
    return _written(_vectors_as_text(material.picks_table(picks)), ".csv")


def _jsonl(material: Material, picks: Picks) -> bytes:
    own = getattr(material, "jsonl", None)
    if own is not None:
        return str(own(picks)).encode()
    return _written(material.picks_table(picks), ".jsonl")


def _parquet(material: Material, picks: Picks) -> bytes:
    return _written(material.picks_table(picks), ".parquet")


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


# What is learned ----------------------------------------------------------------------


def _learned(material: Material, picks: Picks) -> Any:
    """Return what is learned from picks, or what was, if it is for the same again."""
    pairs = [(group, chosen.tolist()) for group, chosen in picks.items()]
    key = repr((material.fingerprint, pairs))
    with _LEARNING:
        if key not in _LAST:
            _LAST.clear()
            _LAST[key] = _learn(material, picks)
        return _LAST[key]


#: What was learned last: a report is often asked for after its model.
_LAST: dict[str, Any] = {}
_LEARNING = threading.Lock()


def _learn(material: Material, picks: Picks) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", AllAlikeWarning)
        return material.learn(picks)


def _model(material: Material, picks: Picks) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        _learned(material, picks).save(path)
        return path.read_bytes()


def _report(material: Material, picks: Picks) -> bytes:
    model = _learned(material, picks)
    if material.kind in ("table", "images"):
        from variegate.tables.report import html_page

        return html_page(model.report(material.picks_table(picks))).encode()
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
            _group(material, group, chosen.tolist()) for group, chosen in picks.items()
        ],
        command=_command_line(material, picks),
    )
    return page.encode()


def _group(material: Material, group: int, chosen: list[int]) -> dict[str, Any]:
    items = material.items(group)
    return {
        "name": material.names[group],
        "note": f"{len(chosen)} of {count(len(items), material.nouns[0])}",
        "texts": [items[item].text or items[item].title for item in chosen],
    }


def _command(material: Material, picks: Picks) -> bytes:
    return _command_line(material, picks).encode()


def _command_line(material: Material, picks: Picks) -> str:
    return material.command_line(_LEARNED_FROM[material.kind], picks)


#: What writes each file.
#:
#: :meta hide-value:
EXPORTS: Mapping[str, Callable[[Material, Picks], bytes]] = {
    "picks.csv": _csv,
    "picks.parquet": _parquet,
    "picks.jsonl": _jsonl,
    "model.json": _model,
    "report.html": _report,
    "command.txt": _command,
}
