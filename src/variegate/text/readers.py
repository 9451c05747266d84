"""Documents from text, Markdown and HTML files; clusters from JSON lines and DUC."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from variegate.files.folders import files_below
from variegate.text.documents import Cluster, Document
from variegate.text.languages import as_language
from variegate.text.markup import markdown_document, page_document

#: What makes a document of a file's text, by its suffix.
_TO_DOCUMENT: dict[str, Callable[[str], Document]] = {
    **dict.fromkeys((".txt", ".text"), Document),
    **dict.fromkeys((".md", ".markdown"), markdown_document),
    **dict.fromkeys((".html", ".htm"), page_document),
}


def _decode(data: bytes, name: str, encoding: str) -> str:
    wide = encoding.lower().replace("-", "").startswith(("utf16", "utf32"))
    if b"\0" in data and not wide:
        raise ValueError(f"{name} is not a text file: it has zero bytes")
    try:
        text = data.decode(encoding)
    except LookupError as error:
        raise ValueError(
            f"unknown encoding {encoding!r}: use utf-8 or latin-1, for example"
        ) from error
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{name} is not in {encoding}: byte {error.start} "
            f"(0x{data[error.start]:02x}) cannot be read; if the file is in another "
            "encoding, give it, for example --encoding latin-1"
        ) from error
    return text.removeprefix("\ufeff")


def read_text(path: str | Path, encoding: str = "utf-8") -> str:
    """Return the text of a plain file without a byte order mark."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a file")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    return _decode(path.read_bytes(), str(path), encoding)


def _document(source: str, name: str, suffix: str) -> Document:
    document = _TO_DOCUMENT.get(suffix.lower(), Document)(source)
    if not document.text.strip():
        raise ValueError(f"there is no text in {name}")
    return replace(document, id=name)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = files_below(path, _TO_DOCUMENT)
    if not found:
        raise ValueError(
            f"there is nothing to read in the folder {path}: "
            f"files must end in {', '.join(_TO_DOCUMENT)}"
        )
    return found


def read_documents(
    paths: str | Path | Iterable[str | Path], encoding: str = "utf-8"
) -> list[Document]:
    """Read files and folders into documents, named by their paths.

    Parameters
    ----------
    paths : path or paths
        A Markdown (``.md``) file, or the main content of an HTML page, is turned into
        plain text, a paragraph between blank lines; any other file is taken as it
        is.  A folder stands for the text, Markdown and HTML files in it and below,
        sorted, without hidden ones; ``"-"`` for standard input.
    encoding : str
    """
    if isinstance(paths, str | Path):
        paths = [paths]
    documents = []
    for path in paths:
        if str(path) == "-":
            source = _decode(sys.stdin.buffer.read(), "standard input", encoding)
            documents.append(_document(source, "standard input", ".txt"))
        else:
            documents += [
                _document(read_text(file, encoding), str(file), file.suffix)
                for file in _files(Path(path))
            ]
    if not documents:
        raise ValueError("no files to read: give at least one file or folder")
    return documents


def _texts(row: Mapping[str, Any], field: str, where: str) -> list[tuple[str, str]]:
    """Return the ``(id, text)`` of a list of strings or of ``{id, text}``."""
    items = row.get(field) or []
    if not isinstance(items, list):
        raise ValueError(f"{where}: {field!r} must be a list, not {items!r:.40}")
    pairs = []
    for number, item in enumerate(items, 1):
        name, text = str(number), item
        if isinstance(item, dict):
            name, text = str(item.get("id", name)), item.get("text")
        if not isinstance(text, str) or not text.strip():
            raise ValueError(
                f"{where}: item {number} of {field!r} has no text: it must be a string "
                'or {"id": ..., "text": ...}, and not blank'
            )
        pairs.append((name, text))
    return pairs


def _cluster(
    row: Mapping[str, Any], where: str, name: str, need_references: bool
) -> Cluster:
    documents = _texts(row, "documents", where)
    references = _texts(row, "references", where)
    if not documents:
        raise ValueError(f"{where}: there are no 'documents'")
    if need_references and not references:
        raise ValueError(
            f"{where}: there are no 'references', the summaries to learn from or to "
            "compare with"
        )
    spoken = row.get("language")
    if not isinstance(spoken, str | None):
        raise ValueError(f"{where}: 'language' must be a name, not {spoken!r}")
    try:
        language = as_language(spoken)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error
    return Cluster(
        documents=tuple(Document(text, name) for name, text in documents),
        references=tuple(text for _, text in references),
        language=None if language is None else language.name,
        id=str(row.get("id", name)),
        group=str(row.get("topic", "")),
    )


def read_clusters(
    path: str | Path,
    *,
    where: Mapping[str, object] | None = None,
    need_references: bool = True,
    encoding: str = "utf-8",
) -> list[Cluster]:
    """Read clusters of documents, one JSON object a line.

    Parameters
    ----------
    path : path
        Each object has ``documents`` (strings, or objects with ``id`` and ``text``)
        and may have ``references`` (strings), ``id``, ``topic`` (the group of the
        cluster) and ``language``.
    where : only the clusters with these values, such as ``{"split": "train"}``
    need_references : whether a cluster without references is an error
    encoding : str
    """
    clusters, wanted, place = [], dict(where or {}), ""
    for number, line in enumerate(read_text(path, encoding).split("\n"), 1):
        if not line.strip():
            continue
        place = f"{path}, line {number}"
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(
                f"{place}: not JSON ({error.msg} at character {error.colno}); "
                "each line must hold one object"
            ) from error
        if not isinstance(row, dict):
            raise ValueError(f"{place}: not an object but {line.strip():.40}")
        if all(row.get(field) == value for field, value in wanted.items()):
            name = f"{Path(path).name}:{number}"
            clusters.append(_cluster(row, place, name, need_references))
    if not place:
        raise ValueError(f"there are no clusters in {path}: the file is empty")
    if not clusters:
        raise ValueError(f"no cluster in {path} has {wanted}")
    return clusters
