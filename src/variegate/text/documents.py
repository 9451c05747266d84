"""Documents, clusters of them, and their sentences."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

#: Kinds of sentences: only those of the body are chosen for a summary.  "other" is not
#: running text: lists of links, tables, addresses, fragments.
Kind = Literal["body", "headline", "dateline", "other"]

_HYPHEN_AND_BREAK = re.compile(r"(?<=[^\W\d_])([-\u2010])[ \t]*\r?\n[ \t]*(?=[^\W\d_])")


@dataclass(frozen=True)
class Block:
    """A paragraph, heading or list item of a text, by its offsets."""

    start: int
    end: int
    kind: Kind = "body"


@dataclass(frozen=True)
class Document:
    """A text, and a name for it.

    Attributes
    ----------
    text : str
    id : name in messages and reports, such as that of a file
    blocks : sequence of Block or None
        Paragraphs and headings, in order, where markup gave them.  By default they are
        found by blank lines and the lengths of lines.
    unbroken : spans (start, end) in which no sentence ends: code between words
    reader : name of the reader that converted the source to plain text, or ""
    """

    text: str
    id: str = ""
    blocks: Sequence[Block] | None = field(default=None, compare=False, repr=False)
    unbroken: Sequence[tuple[int, int]] = field(default=(), compare=False, repr=False)
    reader: str = field(default="", compare=False)

    @cached_property
    def code_starts(self) -> frozenset[int]:
        """The offsets at which code between words starts."""
        return frozenset(start for start, _ in self.unbroken)


@dataclass(frozen=True)
class Cluster:
    """Documents on one topic, and summaries of them written by people.

    Attributes
    ----------
    documents : sequence of Document
    references : sequence of str, empty to be summarized, one or more to learn from
    language : str or None, as in :data:`~variegate.text.LANGUAGES`
    id : name in messages
    group : clusters of one (a topic in several languages) stay together in splits
    """

    documents: Sequence[Document]
    references: Sequence[str] = ()
    language: str | None = None
    id: str = ""
    group: str = ""


@dataclass(frozen=True)
class Sentence:
    """A piece of a document: ``text == documents[document].text[start:end]``.

    Attributes
    ----------
    document : number of its document in the cluster
    start, end : offsets in the text of the document
    text : str
    kind : {"body", "headline", "dateline", "other"}
    position : number of body sentences before it in its document
    """

    document: int
    start: int
    end: int
    text: str
    kind: Kind = "body"
    position: int = 0

    @property
    def plain(self) -> str:
        """The text on one line; a line break after a hyphen leaves no space."""
        return " ".join(_HYPHEN_AND_BREAK.sub(r"\1", self.text).split())


def as_documents(documents: Document | Sequence[Document | str]) -> list[Document]:
    """Return one or more texts or documents as ``Document``; raise if all are blank."""
    if isinstance(documents, str | Document):
        documents = [documents]
    checked = [Document(text) if isinstance(text, str) else text for text in documents]
    for number, document in enumerate(checked):
        if not isinstance(document, Document):
            raise TypeError(
                f"document {number} is a {type(document).__name__}: documents are "
                "texts or Document objects"
            )
    if not any(document.text.strip() for document in checked):
        raise ValueError("there is no text to summarize")
    return checked
