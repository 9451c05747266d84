"""Documents, the clusters they come in, and the sentences they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = ["Cluster", "Document", "Sentence"]

#: What a sentence is: only those of the body are chosen for a summary.
Kind = Literal["body", "headline", "dateline"]


@dataclass(frozen=True)
class Document:
    """A text, and a name for it.

    Attributes
    ----------
    text : str
    id : str
        For messages and reports: a file name, for example.
    """

    text: str
    id: str = ""


@dataclass(frozen=True)
class Cluster:
    """Documents on one topic, and summaries of them written by people.

    Attributes
    ----------
    documents : sequence of Document
    references : sequence of str
        None where a summary is asked for, one or more to learn from.
    language : str or None
        As in :data:`~variegate.text.LANGUAGES`.
    id : str
        For messages.
    group : str
        Clusters of one group (a topic in several languages) are kept together when
        data are split.
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
    document : int
        The number of its document in the cluster.
    start, end : int
        Offsets in the text of the document.
    text : str
    kind : {"body", "headline", "dateline"}
    position : int
        0 for the first sentence of the body of its document, then 1, 2, ...
    """

    document: int
    start: int
    end: int
    text: str
    kind: Kind = "body"
    position: int = 0

    @property
    def plain(self) -> str:
        """The text on one line."""
        return " ".join(self.text.split())
