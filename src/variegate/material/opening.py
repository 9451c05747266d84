"""Opening DATA, a file or folder, as a table, documents, videos or pictures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from variegate._progress import Progress, ignore
from variegate.files.folders import files_below
from variegate.files.json_text import load_json
from variegate.material.base import Material, MaterialError

_TABLES = (".parquet", ".arrow", ".feather", ".csv", ".tsv", ".jsonl", ".ndjson")

#: Words for DATA by kind; and, by type of a model file, the kinds it suits.
_WORDS = {
    "table": "a table",
    "images": "pictures",
    "video": "videos",
    "documents": "documents",
}
_MODELS = {
    "table-selector": ("table",),
    "picture-selector": ("images", "table"),
    "keyframe-picker": ("video",),
    "summarizer": ("documents",),
}


def open_material(
    path: str | Path,
    *,
    columns: Mapping[str, Any] | None = None,
    show: Sequence[str] = (),
    page: int | None = None,
    model: Any = None,
    progress: Progress = ignore,
) -> Material:
    """Return the material of DATA, to pick from.

    Parameters
    ----------
    path : path
        A table, video, folder of videos, documents or pictures, or JSON lines.
    columns : dict, optional
        Roles of the columns of a table, as for :class:`variegate.tables.TableSelector`.
    show : sequence of str
        Columns of a table to show, in place of those that have a role.
    page : int, optional
        Rows of a table without groups (50 by default), or pictures (20), in a group;
        with 0, groups are not divided, and a video is one group.
    model : application, optional
        Proposes before anything is picked, by the features it was learned with.
    progress : callable, optional
        Called with "opening" and the numbers of finished and all steps.
    """
    path = Path(path)
    kind = kind_of(path)
    if model is not None:
        check_model(path, kind, model)
    given = {name: value for name, value in (columns or {}).items() if value}
    if kind != "table":
        named = [*given, *(["show"] if show else [])]
        if named:
            raise MaterialError(f"{path} is not a table: leave out {', '.join(named)}")
    # Each needs packages of its own.
    if kind == "video":
        from variegate.material.videos import VideoMaterial

        return VideoMaterial(path, model, progress, page == 0)
    if kind == "documents":
        from variegate.material.documents import DocumentsMaterial

        return DocumentsMaterial(path, model, progress)
    from variegate.material.table_sources import image_material, table_material

    if kind == "images":
        return image_material(path, page, model, progress)
    return table_material(path, given, show, page, model, progress)


def check_model(path: Path, kind: str, model: Any) -> None:
    """Raise MaterialError unless ``model``, a fitted application, suits the kind."""
    fitting = _MODELS.get(getattr(model, "_type", ""))
    if fitting is None:
        raise MaterialError(
            f"a {type(model).__name__} does not say how features are computed: give a "
            "model that the studio exported, or one of the fit commands"
        )
    if kind not in fitting:
        raise MaterialError(
            f"{path} holds {_WORDS[kind]}, but the model was learned from "
            f"{_WORDS[fitting[0]]}: give such data, or another model"
        )


def kind_of(path: Path) -> str:
    """Return "table", "video", "documents" or "images", by names of files.

    JSON lines are a table unless the first has documents; a folder is of the kind of
    most of its files.  MaterialError without any, and for a single picture.
    """
    from variegate.material.documents import CLUSTER_SUFFIXES
    from variegate.material.pictures import PICTURE_SUFFIXES
    from variegate.text.readers import DOCUMENT_SUFFIXES
    from variegate.video.reading import VIDEO_SUFFIXES

    if not path.exists():
        raise MaterialError(f"there is no {path}")
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
    """Return whether the first line is JSON with a list of documents."""
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        first = file.readline(10_000_000)
    try:
        row = load_json(first)
    except ValueError:
        return False
    return isinstance(row, dict) and isinstance(row.get("documents"), list)
