"""Opening DATA as a table, documents, videos or pictures."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from variegate._progress import Progress, ignore
from variegate.files import models as model_files
from variegate.files.folders import files_below
from variegate.studio.material.base import Material, MaterialError

_TABLES = (".parquet", ".arrow", ".feather", ".csv", ".tsv", ".jsonl", ".ndjson")

#: Types of model files; those for tables are "table-selector".
_MODELS = {"video": "keyframe-picker", "documents": "summarizer"}


def open_material(
    path: str | Path,
    *,
    columns: Mapping[str, Any] | None = None,
    page: int | None = None,
    model: str | Path | None = None,
    progress: Progress = ignore,
) -> Material:
    """Open DATA to pick from.

    ``path`` is a table, a video, a folder of videos, documents or pictures, or a file
    of JSON lines with documents.  ``columns`` are the roles of columns of a table:
    ``group``, ``item``, ``quality``, ``similarity``, ``categorical``, ``missing`` and
    ``label`` of :class:`variegate.tables.TableSelector`.  ``page`` is the number of
    rows, of a table without groups, or pictures in a group.  ``model`` is a file to
    propose by before anything is picked.
    """
    path = Path(path)
    if not path.exists():
        raise MaterialError(f"there is no {path}")
    kind = _kind_of(path)
    given = {name: value for name, value in (columns or {}).items() if value}
    if given and kind != "table":
        raise MaterialError(f"{path} is not a table: leave out {', '.join(given)}")
    prior = None if model is None else _load(model, _MODELS.get(kind, "table-selector"))
    # Each needs packages of its own.
    if kind == "video":
        from variegate.studio.material.videos import VideoMaterial

        return VideoMaterial(path, prior, progress)
    if kind == "documents":
        from variegate.studio.material.documents import DocumentsMaterial

        return DocumentsMaterial(path, prior, progress)
    from variegate.studio.material.table_sources import image_material, table_material

    if kind == "images":
        return image_material(path, page, prior, progress)
    return table_material(path, given, page, prior, progress)


def _load(path: str | Path, kind: str) -> Any:
    """Return a model if it is one for this sort of data."""
    model = model_files.load(path)
    if getattr(model, "_type", None) != kind:
        raise MaterialError(
            f"{path} holds a {type(model).__name__}, which is for other data"
        )
    return model


def _kind_of(path: Path) -> str:
    """Return the kind of a file, or of most files in a folder, by their names."""
    from variegate.studio.material.documents import CLUSTER_SUFFIXES
    from variegate.studio.material.pictures import PICTURE_SUFFIXES
    from variegate.text.readers import DOCUMENT_SUFFIXES
    from variegate.video.reading import VIDEO_SUFFIXES

    kinds = {
        **dict.fromkeys(_TABLES, "table"),
        **dict.fromkeys(VIDEO_SUFFIXES, "video"),
        **dict.fromkeys(DOCUMENT_SUFFIXES, "documents"),
        **dict.fromkeys(PICTURE_SUFFIXES, "images"),
    }
    if not path.is_file():
        counts = Counter(kinds[f.suffix.lower()] for f in files_below(path, kinds))
        if not counts:
            raise MaterialError(
                f"there are no tables, videos, documents or pictures in {path}"
            )
        return max(("table", "video", "documents", "images"), key=counts.__getitem__)
    suffix = path.suffix.lower()
    if kinds.get(suffix, "images") == "images":
        known = ", ".join((*_TABLES, *VIDEO_SUFFIXES, *DOCUMENT_SUFFIXES))
        raise MaterialError(
            f"{path.name} is nothing to pick from: give a folder of pictures, "
            f"documents or videos, or a file that ends in one of {known}"
        )
    if suffix in CLUSTER_SUFFIXES and _holds_documents(path):
        return "documents"
    return kinds[suffix]


def _holds_documents(path: Path) -> bool:
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        first = file.readline(10_000_000)
    try:
        row = json.loads(first)
    except ValueError:
        return False
    return isinstance(row, dict) and isinstance(row.get("documents"), list)
