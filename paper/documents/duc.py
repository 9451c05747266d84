"""DUC 2003 and 2004 as NIST distributes them, turned into clusters of documents."""

from __future__ import annotations

import html
import re
from pathlib import Path

from variegate.files.folders import read_text
from variegate.text import Cluster, Document

__all__ = ["read_duc"]


def _duc_document(path: Path, encoding: str) -> Document:
    """Read an SGML-like file: the headline, a blank line, the paragraphs."""
    source = read_text(path, encoding)

    def content(tag: str) -> str:
        found = re.findall(rf"(?is)<{tag}\b[^>]*>(.*?)</{tag}>", source)
        return "\n<p>\n".join(found)

    # In files without <P>, a paragraph begins with an indented line.
    body = re.split(r"(?i)</?p\b[^>]*>|\n\s*\n|\n(?=[ \t]{2,}\S)", content("text"))
    headline = content("headline") or content("head")
    plain = (
        re.sub(r"<[^>]*>|&(?:LR|UR|QL|QR|QC);", " ", part) for part in [headline, *body]
    )
    paragraphs = [" ".join(html.unescape(part).split()) for part in plain]
    text = "\n\n".join(part for part in paragraphs if part)
    if not any(paragraphs[1:]):
        raise ValueError(f"there is no <TEXT> in {path}: is it a DUC document?")
    return Document(text, content("docno").strip() or path.name)


def read_duc(
    folder_documents: str | Path,
    folder_references: str | Path,
    *,
    words: int = 100,
    encoding: str = "utf-8",
) -> list[Cluster]:
    """Read the clusters of DUC 2003 or 2004, task 2.

    Parameters
    ----------
    folder_documents : path
        One folder a cluster: ``d30001t/APW19981016.0240``.
    folder_references : path
        The summaries: ``D30001.M.100.T.A``, that is cluster, kind, words, the letter
        at the end of the cluster's folder, the letter of the assessor.
    words : int, default=100
        The length of the summaries.
    encoding : str
    """
    documents, references = Path(folder_documents), Path(folder_references)
    for folder in (documents, references):
        if not folder.is_dir():
            raise FileNotFoundError(f"there is no folder {folder}")
    folders = sorted(entry for entry in documents.iterdir() if entry.is_dir())
    if not folders:
        raise ValueError(
            f"there are no clusters in {documents}: it must hold a folder for each, "
            "such as d30001t"
        )
    return [_duc_cluster(folder, references, words, encoding) for folder in folders]


def _duc_cluster(folder: Path, references: Path, words: int, encoding: str) -> Cluster:
    """Read the documents of a folder, and the summaries that bear its name."""
    files = sorted(
        file for file in folder.iterdir() if file.is_file() and file.name[0] != "."
    )
    if not files:
        raise ValueError(f"there are no documents in the folder {folder}")
    match = re.fullmatch(r"(.*?)([A-Z]?)", folder.name.upper())
    assert match is not None
    pattern = f"{match[1]}.M.{words:03d}.{match[2] or '?'}.?"
    summaries = sorted(references.glob(pattern))
    if not summaries:
        raise ValueError(
            f"the cluster {folder} has no reference summaries: there is no "
            f"{pattern} in {references}"
        )
    return Cluster(
        documents=tuple(_duc_document(file, encoding) for file in files),
        references=tuple(_summary(file, encoding) for file in summaries),
        language="english",
        id=folder.name,
    )


def _summary(path: Path, encoding: str) -> str:
    text = read_text(path, encoding).strip()
    if not text:
        raise ValueError(f"there is no text in {path}")
    return text
