"""Documents from files of several formats; clusters, questions from JSON lines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from json import JSONDecodeError
from pathlib import Path
from typing import Any

from variegate.files.folders import decode, files_below, read_bytes, read_text
from variegate.files.json_text import DepthError, load_json
from variegate.subsets import as_members
from variegate.text.columns import text_pages
from variegate.text.documents import Cluster, Document
from variegate.text.languages import as_language
from variegate.text.mail import mail_document
from variegate.text.markup import markdown_document, page_document
from variegate.text.pages import pages_document
from variegate.text.pdf import pdf_document
from variegate.text.restructured import restructured_document
from variegate.text.word import word_document


def _plain_document(text: str) -> Document:
    """Return a document of a text as it is; with form feeds, in reading order."""
    return pages_document(text_pages(text), "") if "\f" in text else Document(text)


#: Readers of a file's text, by its suffix.
_OF_TEXT: dict[str, Callable[[str], Document]] = {
    **dict.fromkeys((".txt", ".text"), _plain_document),
    **dict.fromkeys((".md", ".markdown"), markdown_document),
    **dict.fromkeys((".html", ".htm"), page_document),
    ".rst": restructured_document,
}
#: Readers of a file's bytes, which say themselves how they are encoded.
_OF_BYTES: dict[str, Callable[[bytes], Document]] = {
    ".pdf": pdf_document,
    ".eml": mail_document,
    ".docx": word_document,
}
#: Suffixes of the files that are read in folders.
DOCUMENT_SUFFIXES = (*_OF_TEXT, *_OF_BYTES)


def _parse_document(data: bytes, name: str, suffix: str, encoding: str) -> Document:
    """Return the document in the bytes of a file; ``name`` becomes its id.

    ``suffix`` selects the reader, but bytes that begin as a PDF file are read as one.
    """
    suffix = ".pdf" if data.startswith(b"%PDF-") else suffix.lower()
    if suffix in _OF_BYTES:
        read = partial(_OF_BYTES[suffix], data)
    else:
        text = decode(data, name, encoding)
        read = partial(_OF_TEXT.get(suffix, _plain_document), text)
    try:
        document = read()
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    if not document.text.strip():
        raise ValueError(f"there is no text in {name}")
    return replace(document, id=name)


def _files_at(path: Path) -> list[Path]:
    """Return a list of the file, or of the document files in a folder and below."""
    if not path.is_dir():
        return [path]
    found = files_below(path, DOCUMENT_SUFFIXES)
    if not found:
        raise ValueError(
            f"there is nothing to read in the folder {path}: "
            f"files must end in {', '.join(DOCUMENT_SUFFIXES)}"
        )
    return found


def read_documents(
    paths: str | Path | Iterable[str | Path], encoding: str = "utf-8"
) -> list[Document]:
    """Read files and folders into documents, named by their paths.

    Parameters
    ----------
    paths : path or paths
        A PDF, Markdown, reStructuredText or e-mail (``.eml``) file, or the main
        content of an HTML page, is turned into plain text, a paragraph between blank
        lines; so is a text of several pages, which form feeds end.  Any other file is
        taken as it is.  A folder stands for the files of ``DOCUMENT_SUFFIXES`` in
        it and below, sorted, without hidden ones; ``"-"`` for standard input.
    encoding : of files other than PDF and e-mail
    """
    if isinstance(paths, str | Path):
        paths = [paths]
    documents = []
    for path in paths:
        if str(path) == "-":
            data = sys.stdin.buffer.read()
            documents.append(_parse_document(data, "standard input", ".txt", encoding))
        else:
            documents += [
                _parse_document(read_bytes(file), str(file), file.suffix, encoding)
                for file in _files_at(Path(path))
            ]
    if not documents:
        raise ValueError("no files to read: give at least one file or folder")
    return documents


def _documents_of(
    row: Mapping[str, Any], field: str, where: str, read: Callable[[str], Document]
) -> list[Document]:
    """Return the documents in ``row[field]``, a list of texts or objects.

    Objects are ``{id, text}``, or ``{id, path}`` of a file that ``read`` turns into a
    document.  An absent field has none; ``where`` begins messages.
    """
    items = row.get(field) or []
    if not isinstance(items, list):
        raise ValueError(f"{where}: {field!r} must be a list, not {items!r:.40}")
    documents = []
    for number, item in enumerate(items, 1):
        known = item if isinstance(item, dict) else {"text": item}
        text, path = known.get("text"), known.get("path")
        if text is None and isinstance(path, str):
            document = read(path)
        elif isinstance(text, str) and text.strip():
            document = Document(text, str(number))
        else:
            raise ValueError(
                f"{where}: item {number} of {field!r} has no text: it must be a string "
                'or {"id": ..., "text": ...}, and not blank, or {"path": ...}'
            )
        documents.append(replace(document, id=str(known.get("id", document.id))))
    return documents


def _json_objects(
    path: str | Path, encoding: str
) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Yield number, place for messages, and object of the lines that are not blank."""
    for number, line in enumerate(read_text(path, encoding).split("\n"), 1):
        if not line.strip():
            continue
        place = f"{path}, line {number}"
        try:
            row = load_json(line)
        except JSONDecodeError as error:
            raise ValueError(
                f"{place}: not JSON ({error.msg} at character {error.colno}); "
                "each line must hold one object"
            ) from error
        except DepthError as error:
            raise ValueError(f"{place}: {error}: such values are not read") from error
        except ValueError as error:
            raise ValueError(f"{place}: a number is too long") from error
        if not isinstance(row, dict):
            raise ValueError(f"{place}: not an object but {line.strip():.40}")
        yield number, place, row


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
        Each object has ``documents`` (strings, or objects with ``id`` and ``text``, or
        with the ``path`` of a file, relative to this one) and may have ``references``
        (strings), ``id``, ``topic`` (the group of the cluster) and ``language``.
    where : only the clusters with these values, such as ``{"split": "train"}``
    need_references : whether a cluster without references is an error
    """
    clusters, wanted, place = [], dict(where or {}), ""

    def read_beside(name: str) -> Document:
        """Return the document in a file whose path is relative to that of clusters."""
        file = Path(path).parent / name
        return _parse_document(read_bytes(file), str(file), file.suffix, encoding)

    for number, place, row in _json_objects(path, encoding):
        if all(row.get(field) == value for field, value in wanted.items()):
            cluster = _parse_cluster(row, place, read_beside)
            if need_references and not cluster.references:
                raise ValueError(
                    f"{place}: there are no 'references', the summaries to learn from "
                    "or to compare with"
                )
            name = str(row.get("id", f"{Path(path).name}:{number}"))
            clusters.append(replace(cluster, id=name))
    if not place:
        raise ValueError(f"there are no clusters in {path}: the file is empty")
    if not clusters:
        raise ValueError(f"no cluster in {path} has {wanted}")
    return clusters


def _parse_cluster(
    row: Mapping[str, Any], where: str, read: Callable[[str], Document]
) -> Cluster:
    """Return the cluster of a row, with the id "": see ``_documents_of``."""
    documents = _documents_of(row, "documents", where, read)
    if not documents:
        raise ValueError(f"{where}: there are no 'documents'")
    spoken = row.get("language")
    if not isinstance(spoken, str | None):
        raise ValueError(f"{where}: 'language' must be a name, not {spoken!r}")
    try:
        language = as_language(spoken)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error
    return Cluster(
        documents=tuple(documents),
        references=tuple(
            one.text for one in _documents_of(row, "references", where, read)
        ),
        language=None if language is None else language.name,
        group=str(row.get("topic", "")),
    )


def read_questions(
    path: str | Path, *, encoding: str = "utf-8"
) -> dict[str, list[Any]]:
    """Read questions with marked sentences, one JSON object a line.

    Returns lists by the names of the arguments of :meth:`EvidenceSelector.fit`:
    ``questions``, ``sentences``, ``wanted``, ``titles`` and ``groups``.

    Parameters
    ----------
    path : path
        Each object has the ``question``, the ``sentences`` to choose from (strings),
        and the numbers of the ``wanted`` ones, from 0, or true and false for each.  It
        may have ``titles``, of the document of each sentence, and ``text``: questions
        with the same ``text`` are one group.
    encoding : str
    """
    names = ("questions", "sentences", "wanted", "titles", "groups")
    rows = [
        _parse_question(row, place) for _, place, row in _json_objects(path, encoding)
    ]
    if not rows:
        raise ValueError(f"there are no questions in {path}: the file is empty")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def _parse_question(
    row: Mapping[str, Any], where: str
) -> tuple[str, list[str], list[int], list[str], str]:
    """Return question, sentences, wanted numbers, titles and group of a row."""
    question = row.get("question")
    if not isinstance(question, str) or not any(map(str.isalnum, question)):
        raise ValueError(
            f"{where}: 'question' must be a text with at least one word, not "
            f"{question!r:.40}"
        )
    sentences = _texts_of(row, "sentences", where)
    if not sentences:
        raise ValueError(f"{where}: there are no 'sentences' to choose from")
    wanted = row.get("wanted")
    if not isinstance(wanted, list):
        raise ValueError(
            f"{where}: 'wanted' must be a list of numbers of sentences, from 0, not "
            f"{wanted!r:.40}"
        )
    try:
        members = as_members(wanted, len(sentences)).tolist()
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{where}: 'wanted': {error}") from error
    titles = _texts_of(row, "titles", where) or [""] * len(sentences)
    if len(titles) != len(sentences):
        raise ValueError(
            f"{where}: {len(sentences)} 'sentences', but {len(titles)} 'titles'"
        )
    text = row.get("text")
    group = where if text is None else f"text {text}"
    return question, sentences, members, titles, group


def _texts_of(row: Mapping[str, Any], field: str, where: str) -> list[str]:
    """Return the list of texts ``row[field]``; an absent one is empty."""
    texts = row.get(field) or []
    if not isinstance(texts, list):
        raise ValueError(f"{where}: {field!r} must be a list, not {texts!r:.40}")
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(
                f"{where}: item {number} of {field!r} must be a text, not {text!r:.40}"
            )
    return texts
