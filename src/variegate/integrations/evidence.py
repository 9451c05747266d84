"""Cut the documents of a retriever to the sentences that answer a question."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from variegate._validation import check_number
from variegate.integrations.core import ContextWarning
from variegate.integrations.documents import TokenCounter
from variegate.text import Budget, Document, EvidenceSelector, MarkedSentence
from variegate.text.question_input import as_passages

#: Name of the metadata that tell where the sentences of a document were.
SENTENCES_KEY = "evidence"


@dataclass(frozen=True)
class Extract:
    """The chosen sentences of one document.

    Attributes
    ----------
    place : int
        Position of the document, from 0, in the list that was given.
    text : str
        The chosen sentences, in reading order, one a line.
    sentences : list of dict
        For each of them ``start`` and ``end``, its offsets in the text of the document,
        and ``probability``, that of a set drawn from the model to hold it.
    """

    place: int
    text: str
    sentences: list[dict[str, Any]]


@dataclass(frozen=True, eq=False)
class EvidenceExtractor:
    """Cuts documents to the sentences that answer a question.

    The parts of the three frameworks cut documents with an extractor.  Headings, code,
    tables and lists of links are never chosen, nor is a sentence that another document
    has already.  Without a budget, nothing is chosen where the model finds it
    likely that no sentence answers.

    Parameters
    ----------
    budget : int, optional
        Most tokens that the chosen sentences may have together.  It is filled as far as
        sentences fit, unless ``omega`` is given.  By default the model decides.
    count_tokens : callable or str, optional
        From a text to the number of its tokens, or the name of an encoding of tiktoken
        such as "cl100k_base".  tiktoken must be installed, and downloads an encoding
        when it is first used.  By default four bytes of UTF-8 count as a token.
    model : path or EvidenceSelector, optional
        By default :meth:`EvidenceSelector.pretrained()
        <variegate.text.EvidenceSelector.pretrained>`.  A file is read when it is first
        needed.
    omega : float, optional
        Below 1 few sentences and precise, above 1 many and complete.

    Examples
    --------
    >>> from variegate.integrations import EvidenceExtractor
    >>> manual = [
    ...     "The pump is cleaned once a month. Unplug the pump before you clean it.",
    ...     "The tank holds ten litres of water. It is made of steel.",
    ... ]
    >>> extractor = EvidenceExtractor(budget=10)
    >>> for extract in extractor.extract("How much water does the tank hold?", manual):
    ...     print(extract.place, extract.text)
    1 The tank holds ten litres of water.
    """

    budget: int | None = None
    count_tokens: TokenCounter | str | None = None
    model: Any = None
    omega: float | None = None

    def __post_init__(self) -> None:
        if self.budget is not None:
            Budget(self.budget, "tokens")  # raises where it is not one
        elif self.count_tokens is not None:
            raise ValueError("count_tokens needs a budget, the number of tokens")
        if self.omega is not None:
            check_number("omega", self.omega, positive=True)
        if isinstance(self.count_tokens, str):
            if find_spec("tiktoken") is None:
                raise ImportError(
                    f"count_tokens={self.count_tokens!r} is an encoding of tiktoken, "
                    "which is not installed: pip install tiktoken, or give a function "
                    "from a text to the number of its tokens"
                )
        elif self.count_tokens is not None and not callable(self.count_tokens):
            raise ValueError(
                "count_tokens must be a function or the name of an encoding of "
                f"tiktoken, got {self.count_tokens!r}"
            )
        if not isinstance(self.model, EvidenceSelector | str | Path | None):
            raise ValueError(
                "model must be an EvidenceSelector or the path of its file, got a "
                f"{type(self.model).__name__}"
            )

    def settings(self) -> dict[str, Any]:
        """Return parameters by name, ``model`` as path or None; else ValueError."""
        if isinstance(self.model, EvidenceSelector):
            raise ValueError(
                'a model cannot be written: save it (model.save("model.json")) and '
                "give the extractor the path of the file"
            )
        settings = {field.name: getattr(self, field.name) for field in fields(self)}
        return settings | {"model": None if self.model is None else str(self.model)}

    def extract(
        self,
        question: str,
        texts: Sequence[str],
        titles: Sequence[str] | None = None,
        given: Sequence[str] = (),
    ) -> list[Extract]:
        """Return the chosen sentences of each text that has any, in the given order.

        ``titles``, if given, are one a text; headings in a text replace its title.
        Sentences that stand in a text of ``given``, of the prompt, are not chosen;
        sentences that repeat the prompt in other words are less likely.
        Warns with ``ContextWarning`` where there is no sentence to choose.
        """
        if not texts:
            raise ValueError("there are no documents to choose from")
        documents = [Document(text) for text in texts]
        try:
            found = self._selector.select(
                question,
                documents,
                self._budget,
                self.omega,
                titles=titles,
                given=given,
            )
        except ValueError:
            passages = as_passages(documents, titles, None)
            problem = self._explain_failure(passages.texts)
            if problem is None and len(passages.texts):
                problem = self._explain_failure(passages.leave_out(given).texts, True)
            if problem is None:
                raise
            warnings.warn(f"{problem}: none is chosen", ContextWarning, stacklevel=3)
            return []
        extracts = []
        for place in range(len(texts)):
            kept = [
                one
                for one in found.marked
                if one.chosen and one.sentence.document == place
            ]
            if kept:
                text = "\n".join(one.sentence.plain for one in kept)
                extracts.append(Extract(place, text, list(map(_as_dict, kept))))
        return extracts

    def _explain_failure(
        self, sentences: list[str], are_new: bool = False
    ) -> str | None:
        """Return why no sentence can be chosen; None if one can.

        ``are_new`` tells that sentences of the prompt are left out.
        """
        if not sentences and are_new:
            return "the prompt has all sentences of the documents already"
        if not sentences:
            return "no document has a sentence of running text"
        if self._budget is None:
            return None
        least = self._budget.costs(sentences).min()
        if least <= self._budget.limit:
            return None
        return (
            f"no sentence fits {self.budget} tokens, the shortest has "
            f"{least - self._budget.limit + self._budget.amount:g}"
        )

    @cached_property
    def _budget(self) -> Budget | None:
        """The ``budget`` as a ``Budget`` that counts tokens; None without a budget."""
        if self.budget is None:
            return None
        count = self.count_tokens
        if isinstance(count, str):
            count = _token_counter(count)
        return Budget(self.budget, "tokens", count)

    @cached_property
    def _selector(self) -> EvidenceSelector:
        """The model, from its file if it is a path."""
        if self.model is None:
            return EvidenceSelector.pretrained()
        if isinstance(self.model, EvidenceSelector):
            return self.model
        if not Path(self.model).is_file():
            raise ValueError(f"there is no model file {self.model}")
        return EvidenceSelector.load(self.model)


def _token_counter(encoding: str) -> TokenCounter:
    """Return a function that counts tokens by an encoding of tiktoken."""
    import tiktoken

    encode = tiktoken.get_encoding(encoding).encode_ordinary
    return lambda text: len(encode(text))


def _as_dict(one: MarkedSentence) -> dict[str, Any]:
    """Return ``start``, ``end`` (in its document) and ``probability`` of a sentence."""
    return {
        "start": one.sentence.start,
        "end": one.sentence.end,
        "probability": one.probability,
    }
