"""A summary, and what the model thought of every sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from variegate.selection import Selection
from variegate.text.documents import Document, Sentence

__all__ = ["MarkedSentence", "Summary"]


@dataclass(frozen=True)
class MarkedSentence:
    """A sentence, and what became of it.

    Attributes
    ----------
    sentence : Sentence
    probability : float or None
        That a set drawn from the model holds it.  None where it was no candidate: a
        headline, a date line, no running text, a repetition, a fragment, or of too low
        a quality among too many.
    chosen : bool
    """

    sentence: Sentence
    probability: float | None
    chosen: bool


@dataclass(frozen=True, eq=False)
class Summary:
    """What :meth:`Summarizer.summarize` returns.

    Attributes
    ----------
    documents : the documents that were summarized
    marked : every sentence of theirs, in reading order
    budget : str or None
    omega : float
    language : str or None
        As given or detected.
    selection : Selection
        Which of ``marked`` were chosen, and why the search ended: its ``stop_reason``,
        ``gap`` and ``is_optimal``.
    """

    documents: Sequence[Document]
    marked: Sequence[MarkedSentence]
    budget: str | None
    omega: float
    language: str | None
    selection: Selection | None = None

    @property
    def sentences(self) -> list[Sentence]:
        """The chosen sentences, in reading order."""
        return [entry.sentence for entry in self.marked if entry.chosen]

    @property
    def text(self) -> str:
        """The summary, one sentence a line."""
        return "\n".join(sentence.plain for sentence in self.sentences)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return (
            f"<Summary: {len(self.sentences)} of {len(self.marked)} sentences, "
            f"{len(self.documents)} documents>"
        )

    def _repr_html_(self) -> str:
        from variegate.report.notebook import card, table
        from variegate.report.words import percent

        facts = {"documents": f"{len(self.documents):,}", "omega": f"{self.omega:g}"}
        if self.budget is not None:
            facts["budget"] = self.budget
        rows = [
            [
                entry.sentence.plain,
                self.documents[entry.sentence.document].id,
                "" if entry.probability is None else percent(entry.probability),
            ]
            for entry in self.marked
            if entry.chosen
        ]
        chosen = table(["sentence", "document", "probability"], rows)
        title = f"Summary: {len(rows):,} of {len(self.marked):,} sentences"
        return card(title, facts, chosen)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON.

        ``documents`` holds the text of each document as it was read, and ``start`` and
        ``end`` of a sentence are offsets into it: of Markdown and HTML, the source has
        others.
        """
        return {
            "summary": self.text,
            "budget": self.budget,
            "omega": self.omega,
            "language": self.language,
            **(self.selection.ending() if self.selection else {}),
            "documents": [
                {"id": one.id, "reader": one.reader or None, "text": one.text}
                for one in self.documents
            ],
            "sentences": [
                {
                    "document": self.documents[entry.sentence.document].id,
                    "document_number": entry.sentence.document,
                    "start": entry.sentence.start,
                    "end": entry.sentence.end,
                    "text": entry.sentence.text,
                    "kind": entry.sentence.kind,
                    "probability": entry.probability,
                    "chosen": entry.chosen,
                }
                for entry in self.marked
            ],
        }
