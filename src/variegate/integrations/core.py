"""Choose the context of a language model from documents that a retriever returned.

A place is the position of a document in the list of the retriever, from 0.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from variegate._typing import FloatArray, IntArray
from variegate._validation import check_choice, check_count, check_number
from variegate.baselines import METHODS, select
from variegate.baselines.inputs import check_embeddings
from variegate.baselines.redundancy import find_copies
from variegate.baselines.selecting import check_diversity
from variegate.integrations.documents import (
    IN_PROMPT,
    Candidates,
    Found,
    TokenCounter,
    check_scores,
    collect_embeddings,
    tokens_of,
)
from variegate.text.token_counts import estimate_tokens

RELEVANCES = ("score", "rank")
_WITHOUT_DIVERSITY = ("top", "max-min", "random")  # methods without diversity


class ContextWarning(UserWarning):
    """Documents leave nothing to choose."""


@dataclass(frozen=True, eq=False)
class ContextSelector:
    """Chooses documents that are relevant and do not repeat each other.

    The parts of the three frameworks choose with a selector.

    Parameters
    ----------
    fetch_k : int
        Number of documents to choose from: the best by score, or the first if there
        are no scores.  The retriever must find that many.  Larger than ``k``.
    k : int, optional
        Number of documents to choose; all if there are no more.
    budget : float, optional
        Most tokens that the chosen documents may have together; documents that do not
        fit are skipped.  A method needs ``k``, ``budget`` or both; a learned model
        without either decides how many documents are worth choosing.
    method : str, optional
        A method of :func:`variegate.select`, which learns nothing: "dpp" (the default),
        "mmr", "facility-location", "k-medoids", "max-min", "top" or "random".
    model : path, TableSelector or LargeMarginDPP, optional
        A learned model, in place of a method: see
        :func:`~variegate.integrations.training_table`.  A file is read when it is first
        needed.
    diversity : float, optional
        For a method: from 0 (relevance only) to 1 (diversity only), 0.5 by default; the
        ``diversity`` of :func:`variegate.select`.
    omega : float, optional
        For a learned model: below 1 few documents and precise, above 1 many and
        complete.  By default that of the model.
    relevance : {"score", "rank"}, default="score"
        Relevance for a method.  Scores are centred and divided by their standard
        deviation over the documents to choose from, but those of different retrievers
        are not comparable.  "rank" is the place of a document instead, from 1 to 0 in
        equal steps, and is used if no document has a score; use it if documents come
        from several retrievers.
    count_tokens : callable, optional
        From a text to its number of tokens, at least 1; by default one for four bytes.
    at_most : int, optional
        For a method: most documents with the same value of the metadata ``per``, such
        as ``at_most=2, per="source"``.  Where that leaves fewer than ``k`` documents,
        fewer are chosen.
    per : str, optional, the name of metadata that every document has

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
    at_most: int | None = None
    per: str | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for settings that are invalid, or do not go together."""
        check_count("fetch_k", self.fetch_k)
        self._check_k(self.k)
        check_choice("relevance", self.relevance, RELEVANCES)
        for name in ("budget", "omega"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), positive=True)
        if self.count_tokens is not None and not callable(self.count_tokens):
            raise ValueError(
                f"count_tokens must be a function, got {self.count_tokens!r}"
            )
        if (self.at_most is None) != (self.per is None):
            raise ValueError(
                "give both at_most, a number of documents, and per, the name of "
                f"metadata: got at_most={self.at_most!r} and per={self.per!r}"
            )
        if self.at_most is not None:
            check_count("at_most", self.at_most)
        if self.model is None:
            self._check_method()
        else:
            self._check_model()

    def _check_method(self) -> None:
        """Raise ValueError where a setting does not suit the choice by a method."""
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
        if self.diversity is not None:
            check_diversity(self.diversity)
            if self.method in _WITHOUT_DIVERSITY:
                raise ValueError(f"method {self.method!r} has no diversity to set")

    def _check_model(self) -> None:
        """Raise ValueError where a setting does not suit a model, or it is not one."""
        of_methods = ("method", "diversity", "at_most")
        unfit = [name for name in of_methods if getattr(self, name) is not None]
        if self.relevance != RELEVANCES[0]:
            unfit.append("relevance")
        if unfit:
            raise ValueError(
                f"{unfit[0]} is of methods that learn nothing, and a model is given: "
                "leave one of the two out. A model goes by the columns it was learned "
                "with ('place' for the rank), has learned its own diversity, and has "
                "omega, below 1 for few documents, above 1 for many"
            )
        if not isinstance(self.model, str | Path):
            _ = self._model_chooser  # raises where it is not a model

    def _check_k(self, k: int | None) -> int | None:
        """Return ``k`` as an int or None; ValueError unless it is below ``fetch_k``."""
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

    def settings(self) -> dict[str, Any]:
        """Return parameters by name, ``model`` as path or None; else ValueError."""
        if not isinstance(self.model, str | Path | None):
            raise ValueError(
                'a model cannot be written: save it (model.save("model.json")) and '
                "give the selector the path of the file"
            )
        settings = {field.name: getattr(self, field.name) for field in fields(self)}
        return settings | {"model": None if self.model is None else str(self.model)}

    def choose(
        self, found: Found, k: int | None = None, given: Found | None = None
    ) -> list[int]:
        """Return the places of the chosen documents, in the order of choice.

        The first is the best, and each of the others adds most to those before it.
        ``k`` replaces that of the selector.  Documents of ``given`` are in the prompt
        already, and the choice does not repeat them.  They count neither in ``k`` nor
        in the budget and ``at_most``, and need no scores.  A model needs their metadata
        only if its similarity has such columns.  Warns with ``ContextWarning`` where
        there is nothing to choose.
        """
        k = self.k if k is None else self._check_k(k)
        prompt = self._prompt(given)
        candidates = self.candidates(found)
        n_found, tokens = len(found.texts), candidates.tokens
        problems = []
        if n_found == k and n_found > 1:
            problems.append(
                f"{n_found} documents were given, and as many are to be chosen: "
                f"let the retriever find fetch_k={self.fetch_k}"
            )
        if self.budget is not None and np.all(tokens > self.budget):
            problems.append(
                f"no document fits {self.budget:g} tokens, the shortest has "
                f"{tokens.min():g}: none is chosen"
            )
        for problem in problems:
            warnings.warn(problem, ContextWarning, stacklevel=3)
        chosen = self._choose_candidates(candidates, k, prompt)
        return [int(place) for place in candidates.places[chosen]]

    def _prompt(self, given: Found | None) -> Candidates | None:
        """Return all documents in the prompt, in their order; None without any.

        They have scores only if all do.
        """
        if given is None or len(given.texts) == 0:
            return None
        scored = self.model is not None and None not in given.scores
        places = np.arange(len(given.texts))
        try:
            scores = check_scores(given.scores) if scored else None
            return self._collect(given, places, scores)
        except ValueError as error:
            raise ValueError(f"{IN_PROMPT}: {error}") from None

    def candidates(self, found: Found) -> Candidates:
        """Return the ``fetch_k`` best documents: places, scores, embeddings, tokens.

        They are the best by score, in their order where scores are equal or missing.
        Of these, documents without an embedding are embedded.  ValueError for no
        documents, and where scores, embeddings or counts of tokens are invalid.
        """
        n_found = len(found.texts)
        if n_found == 0:
            raise ValueError("there are no documents to choose from")
        scores = check_scores(found.scores)
        order = -scores if scores is not None else np.zeros(n_found)
        places: IntArray = np.argsort(order, kind="stable")[: self.fetch_k]
        return self._collect(found, places, None if scores is None else scores[places])

    def _collect(
        self, found: Found, places: IntArray, scores: FloatArray | None
    ) -> Candidates:
        """Return the documents at ``places`` with embeddings, tokens and metadata."""
        count = self.count_tokens or estimate_tokens
        metadata = found.metadata or [{}] * len(found.texts)
        return Candidates(
            places,
            scores,
            collect_embeddings(found, places),
            np.array([tokens_of(count, found.texts[p], p) for p in places.tolist()]),
            [metadata[place] for place in places.tolist()],
        )

    def _choose_candidates(
        self, candidates: Candidates, k: int | None, prompt: Candidates | None
    ) -> IntArray:
        """Return positions of the chosen candidates, best first; ``k`` may be None."""
        if self.model is not None:
            return self._model_chooser(candidates, k, self.budget, self.omega, prompt)
        given = None if prompt is None else prompt.embeddings
        by_rank = self.relevance == "rank" or candidates.scores is None
        k, labels = len(candidates) if k is None else k, None
        if self.at_most is not None and self.per is not None:
            found = [known.get(self.per) for known in candidates.metadata]
            if None in found:
                raise ValueError(
                    f"document {candidates.places[found.index(None)]} has no metadata "
                    f"{self.per!r}, which per names: give it to every document"
                )
            labels = list(map(str, found))  # lists are not hashable
            is_copy = find_copies(*check_embeddings(candidates.embeddings, given))
            rest = [labels[place] for place in np.flatnonzero(~is_copy)]
            counts = Counter(rest).values()
            k = max(1, min(k, sum(min(count, self.at_most) for count in counts)))
        return select(
            candidates.embeddings,
            np.linspace(1.0, 0.0, len(candidates)) if by_rank else candidates.scores,
            k,
            self.method or "dpp",
            diversity=0.5 if self.diversity is None else self.diversity,
            budget=self.budget,
            costs=None if self.budget is None else candidates.tokens,
            random_state=0,
            at_most=self.at_most,
            per=labels,
            given=given,
        )

    @cached_property
    def _model_chooser(self) -> Callable[..., IntArray]:
        """A function of candidates, k, budget, omega and prompt to positions."""
        from variegate.integrations.learned_models import as_chooser

        return as_chooser(self.model)
