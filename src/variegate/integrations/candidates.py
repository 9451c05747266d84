"""What a retriever has found, as numbers: scores, embeddings and tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, TypeAlias

import numpy as np

from variegate._typing import FloatArray, IntArray

__all__ = ["Candidates", "Embed", "Found", "TokenCounter", "count_words", "gather"]

#: From the text of a document to the number of its tokens.
TokenCounter: TypeAlias = Callable[[str], int]

#: From places among the documents to their embeddings, in that order.
Embed: TypeAlias = Callable[[list[int]], Sequence[Any]]


def count_words(text: str) -> int:
    """Return the number of words, where no tokenizer is given."""
    return len(text.split())


@dataclass(frozen=True, eq=False)
class Found:
    """Documents as a retriever hands them over, best first.

    Attributes
    ----------
    texts : sequence of str
    scores : sequence of float or None
        Those of the retriever, larger is better; None for a document without one.
    embeddings : sequence of vectors or None
        None for a document that does not have one with it.
    metadata : sequence of dict, optional
        Where the columns of a learned model are looked for.
    """

    texts: Sequence[str]
    scores: Sequence[float | None]
    embeddings: Sequence[Any]
    metadata: Sequence[Mapping[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Candidates:
    """The documents that are chosen among.

    Attributes
    ----------
    places : array of shape (N,)
        Which of the documents that were found these are, best first.
    scores : array of shape (N,), or None
        As the retriever gave them; None where it gave none.
    embeddings : array of shape (N, D)
    tokens : array of shape (N,)
        At least one for each.
    metadata : list of dict
    """

    places: IntArray
    scores: FloatArray | None
    embeddings: FloatArray
    tokens: FloatArray
    metadata: Sequence[Mapping[str, Any]]

    def __len__(self) -> int:
        return len(self.places)

    @property
    def by_place(self) -> FloatArray:
        """A relevance that falls from 1 to 0 in equal steps, best first."""
        return np.linspace(1.0, 0.0, len(self)) if len(self) > 1 else np.ones(len(self))

    @property
    def standard_scores(self) -> FloatArray | None:
        """Scores less their mean, over their standard deviation (zeros if equal)."""
        if self.scores is None:
            return None
        centred = self.scores - self.scores.mean()
        spread = float(self.scores.std())
        return centred / spread if spread > 0.0 else np.zeros(len(self))


def gather(
    found: Found,
    fetch_k: int,
    embed: Embed | None,
    count_tokens: TokenCounter,
    hint: str,
) -> Candidates:
    """Return the ``fetch_k`` best of the documents that were found.

    They are the best by score, in the order that they came in where scores are equal or
    there are none.  Only those are embedded that are among the best and have no
    embedding; ``hint`` says where embeddings could have come from.
    """
    n_found = len(found.texts)
    if n_found == 0:
        raise ValueError("there are no documents to choose from")
    scores = _scores(found.scores)
    order = np.arange(n_found) if scores is None else np.argsort(-scores, kind="stable")
    places = order[:fetch_k]
    metadata = found.metadata or [{}] * n_found
    return Candidates(
        places,
        None if scores is None else scores[places],
        _embeddings(found.embeddings, places, embed, hint),
        np.array([_count(count_tokens, found.texts[p], p) for p in places]),
        [metadata[place] for place in places],
    )


def _scores(scores: Sequence[float | None]) -> FloatArray | None:
    missing = [place for place, score in enumerate(scores) if score is None]
    if len(missing) == len(scores):
        return None
    if missing:
        raise ValueError(
            f"{len(missing)} of {len(scores)} documents have no score, document "
            f"{missing[0]} for one: give all of them one, or none"
        )
    try:
        array = np.array(scores, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"scores must be numbers: {error}") from None
    if not np.isfinite(array).all():
        place = int(np.argmin(np.isfinite(array)))
        raise ValueError(f"the score of document {place} is {array[place]}")
    return array


def _embeddings(
    given: Sequence[Any], places: IntArray, embed: Embed | None, hint: str
) -> FloatArray:
    vectors = {int(place): given[place] for place in places}
    missing = [place for place, vector in vectors.items() if vector is None]
    if missing and embed is None:
        raise ValueError(
            f"{len(missing)} of {len(places)} documents have no embedding, document "
            f"{missing[0]} for one: {hint}"
        )
    if missing and embed is not None:
        made = embed(missing)
        if len(made) != len(missing):
            raise ValueError(
                f"the embedder made {len(made)} embeddings of {len(missing)} documents"
            )
        vectors |= dict(zip(missing, made, strict=True))
    return np.array(_of_one_length(vectors))


def _of_one_length(vectors: Mapping[int, Any]) -> list[FloatArray]:
    rows: list[FloatArray] = []
    for place, vector in vectors.items():
        if vector is None:
            raise ValueError(f"the embedder made no embedding of document {place}")
        row = np.asarray(vector, dtype=np.float64)
        if row.ndim != 1 or len(row) == 0:
            raise ValueError(
                f"the embedding of document {place} has shape {row.shape}, not that of "
                "a vector"
            )
        if rows and len(row) != len(rows[0]):
            first = next(iter(vectors))
            raise ValueError(
                f"embeddings are of different lengths: {len(rows[0])} numbers in "
                f"document {first}, {len(row)} in document {place}; all of them must "
                "come from one embedder"
            )
        if not np.isfinite(row).all():
            raise ValueError(f"the embedding of document {place} holds NaN or infinity")
        rows.append(row)
    return rows


def _count(count_tokens: TokenCounter, text: str, place: int) -> float:
    count = count_tokens(text)
    is_number = isinstance(count, Real) and not isinstance(count, bool)
    if not is_number or not np.isfinite(count) or count < 0:
        raise ValueError(
            f"count_tokens must return a number of tokens, and returned {count!r} for "
            f"document {place}"
        )
    return max(1.0, float(count))
