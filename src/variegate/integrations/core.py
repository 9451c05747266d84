"""Choosing the context of a language model, whatever framework has found documents."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from variegate._typing import FloatArray, IntArray
from variegate._validation import check_choice, check_count, check_number
from variegate.baselines import METHODS, select
from variegate.integrations.candidates import (
    Candidates,
    Embed,
    Found,
    TokenCounter,
    count_words,
    gather,
)

if TYPE_CHECKING:
    from variegate.integrations.learned import LearnedChooser

__all__ = ["ContextSelector", "ContextWarning"]

#: What untrained methods may go by.
RELEVANCES = ("score", "rank")

#: Methods without a trade-off between relevance and diversity.
_WITHOUT_DIVERSITY = ("top", "max-min", "random")


class ContextWarning(UserWarning):
    """Documents were handed over of which there is nothing to choose."""


@dataclass(frozen=True, eq=False)
class ContextSelector:
    """Chooses documents that are relevant and do not repeat each other.

    The parts of the three frameworks have the same settings and do what this does.

    Parameters
    ----------
    fetch_k : int
        How many documents are looked at: of those handed over, the best by score, in
        their order where there are no scores.  The retriever must find that many.  It
        must be larger than ``k``, as of ``k`` documents there is no choice.
    k : int, optional
        How many to choose; all if there are no more.
    budget : float, optional
        The most tokens that the chosen documents may have together.  Documents that do
        not fit are passed over.  A method needs ``k``, ``budget`` or both; a learned
        model decides how many are worth choosing where neither is given.
    method : str, optional
        A method of :func:`variegate.select`, which learns nothing: "dpp" (the default),
        "mmr", "facility-location", "k-medoids", "max-min", "top" or "random".
    model : path, TableSelector or LargeMarginDPP, optional
        What was learned, in place of a method: see
        :func:`~variegate.integrations.training_table`.  A path is that of a model file,
        which is read when it is first needed.
    diversity : float, optional
        Of a method: from 0 (relevance only) to 1 (diversity only), 0.5 by default; the
        ``trade_off`` of :func:`variegate.select`.
    omega : float, optional
        Of a learned model: below 1 few documents and precise, above 1 many and
        complete.  By default that of the model.
    relevance : {"score", "rank"}, default="score"
        What a method goes by.  Scores of different retrievers are not comparable, and
        neither are their scales: they are centred and divided by their standard
        deviation over the documents that are looked at.  "rank" goes by the place of a
        document instead, from 1 to 0 in equal steps, as is done where no document has
        a score; use it where documents come from several retrievers.
    count_tokens : callable, optional
        From a text to the number of its tokens; words are counted without it.  A
        document counts one at least.

    Examples
    --------
    >>> from variegate.integrations import ContextSelector, Found
    >>> found = Found(
    ...     ["the roof leaks", "a roof that leaks", "bees need flowers"],
    ...     [0.9, 0.8, 0.3],
    ...     [[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]],
    ... )
    >>> ContextSelector(fetch_k=3, k=2, diversity=0.7).choose(found)
    [0, 2]
    """

    fetch_k: int
    k: int | None = None
    budget: float | None = None
    method: str | None = None
    model: Any = None
    diversity: float | None = None
    omega: float | None = None
    relevance: str = RELEVANCES[0]
    count_tokens: TokenCounter | None = None

    @classmethod
    def of(cls, settings: Any) -> Self:
        """Return one with the settings that an object has, by their names."""
        return cls(**{f.name: getattr(settings, f.name) for f in fields(cls)})

    def __post_init__(self) -> None:
        check_count("fetch_k", self.fetch_k)
        self._checked_k(self.k)
        if self.budget is not None:
            check_number("budget", self.budget, positive=True)
        check_choice("relevance", self.relevance, RELEVANCES)
        if self.count_tokens is not None and not callable(self.count_tokens):
            raise ValueError(
                f"count_tokens must be a function, got {self.count_tokens!r}"
            )
        if self.model is None:
            self._check_method()
        else:
            self._check_model()

    def _check_method(self) -> None:
        if self.method is not None:
            check_choice("method", self.method, METHODS)
        if self.k is None and self.budget is None:
            raise ValueError(
                "say how many documents to choose, or how many tokens they may have: "
                "only a learned model can decide that"
            )
        if self.omega is not None:
            raise ValueError(
                "omega is of learned models, and no model is given: methods have "
                "diversity, from 0 (relevance only) to 1 (diversity only)"
            )
        if self.diversity is None:
            return
        check_number("diversity", self.diversity)
        if self.diversity > 1.0:
            raise ValueError(
                "diversity must be a number from 0 (relevance only) to 1 (diversity "
                f"only), got {self.diversity!r}"
            )
        if self.method in _WITHOUT_DIVERSITY:
            raise ValueError(f"method {self.method!r} has no diversity to set")

    def _check_model(self) -> None:
        if self.method is not None:
            raise ValueError("give a method or a model, not both")
        if self.diversity is not None:
            raise ValueError(
                "diversity is of methods that learn nothing: a model has learned its "
                "own, and has omega, below 1 for few documents, above 1 for many"
            )
        if self.relevance != RELEVANCES[0]:
            raise ValueError(
                "relevance is of methods that learn nothing: a model goes by the "
                "columns it was learned with, 'place' for the rank"
            )
        if self.omega is not None:
            check_number("omega", self.omega, positive=True)
        if not isinstance(self.model, str | Path):
            _ = self._learned  # what is no model is refused at once

    def _checked_k(self, k: int | None) -> int | None:
        if k is None:
            return None
        check_count("the number of documents to choose", k)
        if k >= self.fetch_k:
            raise ValueError(
                f"fetch_k must be larger than the number of documents to choose, got "
                f"{self.fetch_k} and {k}: of as many as are chosen there is no choice. "
                f"Let the retriever find more, {4 * k} for example"
            )
        return int(k)

    def choose(
        self,
        found: Found,
        embed: Embed | None = None,
        k: int | None = None,
        hint: str = "give an embedder",
    ) -> list[int]:
        """Return the places of the chosen documents, in the order of choice.

        The first is the best, and each of the others adds most to those before it.

        Parameters
        ----------
        found : Found
        embed : callable, optional
            From a list of places to the embeddings of these documents, for those
            without one.
        k : int, optional
            In place of ``k`` of the selector.
        hint : str
            What to do about documents without embeddings, for the message.
        """
        k = self.k if k is None else self._checked_k(k)
        candidates = self.candidates(found, embed, hint)
        self._warn(len(found.texts), k, candidates.tokens)
        return [int(place) for place in candidates.places[self._order(candidates, k)]]

    def candidates(
        self, found: Found, embed: Embed | None = None, hint: str = "give an embedder"
    ) -> Candidates:
        """Return the documents that are chosen among, as numbers."""
        count = self.count_tokens or count_words
        return gather(found, self.fetch_k, embed, count, hint)

    def _order(self, candidates: Candidates, k: int | None) -> IntArray:
        """Return numbers of candidates in the order of choice."""
        if self.model is not None:
            return self._learned.choose(candidates, k, self.budget, self.omega)
        return select(
            candidates.embeddings,
            self._relevance(candidates),
            len(candidates) if k is None else k,
            self.method or "dpp",
            trade_off=0.5 if self.diversity is None else self.diversity,
            budget=self.budget,
            costs=None if self.budget is None else candidates.tokens,
            random_state=0,
        )

    def _relevance(self, candidates: Candidates) -> FloatArray:
        if self.relevance == "rank" or candidates.scores is None:
            return candidates.by_place
        return candidates.scores

    @cached_property
    def _learned(self) -> LearnedChooser:
        from variegate.integrations.learned import as_chooser

        return as_chooser(self.model)

    def _warn(self, n_found: int, k: int | None, tokens: FloatArray) -> None:
        if n_found == k and n_found > 1:
            warnings.warn(
                f"{n_found} documents were handed over, and as many are to be chosen: "
                f"let the retriever find fetch_k={self.fetch_k}",
                ContextWarning,
                stacklevel=4,
            )
        if self.budget is not None and np.all(tokens > self.budget):
            warnings.warn(
                f"no document fits {self.budget:g} tokens, the shortest has "
                f"{tokens.min():g}: none is chosen",
                ContextWarning,
                stacklevel=4,
            )
