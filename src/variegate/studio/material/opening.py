"""Which material DATA is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from variegate._progress import Progress, ignore
from variegate.files import models as model_files
from variegate.studio.material.base import Material, MaterialError

__all__ = ["open_material"]

#: How the name of a table ends; folders may be full of the first two.
_TABLES = (".parquet", ".arrow", ".feather", ".csv", ".tsv", ".jsonl", ".ndjson")


def open_material(
    path: str | Path,
    *,
    columns: Mapping[str, Any] | None = None,
    page: int | None = None,
    model: str | Path | None = None,
    progress: Progress = ignore,
) -> Material:
    """Open what a person is to pick from.

    Parameters
    ----------
    path : str or Path
        A table, a video, a folder of videos, documents or pictures, or a file of JSON
        lines with documents.
    columns : mapping, optional
        Of a table, what columns are for: ``group``, ``item``, ``quality``,
        ``similarity``, ``categorical``, ``missing``, ``label``; see
        :class:`variegate.tables.TableSelector`.
    page : int, optional
        Of a table without groups the rows, of a folder the pictures on a page.
    model : str or Path, optional
        A model file to propose by before anything is picked.
    progress : callable, optional
        Called with the numbers of finished and of all steps.
    """
    path = Path(path)
    if not path.exists():
        raise MaterialError(f"there is no {path}")
    kind = _kind_of(path)
    given = {name: value for name, value in (columns or {}).items() if value}
    if given and kind != "table":
        raise MaterialError(f"{path} is no table: leave out {', '.join(given)}")
    prior = None if model is None else model_files.load(model)
    if kind == "video":
        from variegate.studio.material.videos import video_material

        return video_material(path, _fitting(prior, "keyframe-picker", model), progress)
    if kind == "documents":
        from variegate.studio.material.documents import document_material

        known = _fitting(prior, "summarizer", model)
        return document_material(path, known, progress)
    known = _fitting(prior, "table-selector", model)
    if kind == "images":
        from variegate.studio.material.images import PAGE, image_material

        return image_material(path, page or PAGE, known, progress)
    from variegate.studio.material.table_files import table_material

    return table_material(path, given, page, known, progress)


def _fitting(prior: Any, kind: str, path: Any) -> Any:
    """Return a model if it is one for this sort of data."""
    if prior is not None and getattr(prior, "_type", None) != kind:
        raise MaterialError(
            f"{path} holds a {type(prior).__name__}, which is for other data"
        )
    return prior


def _kind_of(path: Path) -> str:
    """Return what a file or a folder is, by the names in it."""
    from variegate.studio.material.documents import DOCUMENT_SUFFIXES
    from variegate.studio.material.pictures import PICTURE_SUFFIXES
    from variegate.video.reading import VIDEO_SUFFIXES

    endings = {
        "table": _TABLES,
        "video": VIDEO_SUFFIXES,
        "documents": DOCUMENT_SUFFIXES,
        "images": PICTURE_SUFFIXES,
    }
    if path.is_file():
        kind = _by_ending(path, endings)
        if kind is None or kind == "images":
            known = ", ".join((*_TABLES, *VIDEO_SUFFIXES, *DOCUMENT_SUFFIXES))
            raise MaterialError(
                f"{path.name} is nothing to pick from: give a folder of pictures, "
                f"documents or videos, or a file that ends in one of {known}"
            )
        return "documents" if kind == "table" and _holds_documents(path) else kind
    counts = dict.fromkeys(endings, 0)
    for file in path.rglob("*"):
        kind = None if file.name.startswith(".") else _by_ending(file, endings)
        if kind is not None and file.is_file():
            counts[kind] += 1
    best = max(counts, key=lambda kind: counts[kind])
    if not counts[best]:
        raise MaterialError(
            f"there are no tables, videos, documents or pictures in {path}"
        )
    return best


def _by_ending(path: Path, endings: Mapping[str, Sequence[str]]) -> str | None:
    suffix = path.suffix.lower()
    return next((kind for kind, known in endings.items() if suffix in known), None)


def _holds_documents(path: Path) -> bool:
    """Return whether a file of JSON lines holds clusters of documents."""
    from variegate.studio.material.documents import CLUSTER_SUFFIXES

    if path.suffix.lower() not in CLUSTER_SUFFIXES:
        return False
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        first = file.readline(10_000_000)
    try:
        row = json.loads(first)
    except ValueError:
        return False
    return isinstance(row, dict) and isinstance(row.get("documents"), list)
