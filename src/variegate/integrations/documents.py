"""Documents of a retriever: texts, scores, embeddings and numbers of tokens, checked.

A place is the position of a document in the list of the retriever, from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, TypeAlias

import numpy as np

from variegate._typing import FloatArray, IntArray

#: A function from the text of a document to the number of its tokens.
TokenCounter: TypeAlias = Callable[[str], int]

#: Begins messages about documents in the prompt.
IN_PROMPT = "documents in the prompt (given)"


def count_words(text: str) -> int:
    """Return the number of words between spaces, as a count of tokens."""
    return len(text.split())


@dataclass(frozen=True, eq=False)
class Found:
    """Documents as a retriever returns them, best first.

    Attributes
    ----------
    texts : sequence of str
    scores : sequence of float or None
        Larger is better; None for a document without a score.
    embeddings : sequence of vectors, None for a document without an embedding
    metadata : sequence of dict, optional, with the columns of a learned model
    embed : callable, optional
        From a list of places to the embeddings of these documents, for those without.
    hint : how to get embeddings, for the message about documents without one
    """

    texts: Sequence[str]
    scores: Sequence[float | None]
    embeddings: Sequence[Any]
    metadata: Sequence[Mapping[str, Any]] = field(default_factory=list)
    embed: Callable[[list[int]], Sequence[Any]] | None = None
    hint: str = "give an embedder"


@dataclass(frozen=True, eq=False)
class Candidates:
    """The N documents to choose from, or those in the prompt.

    Attributes
    ----------
    places : array of shape (N,)
        Places of the candidates among the documents that were found, best first.
    scores : array of shape (N,), or None
        Scores of the retriever; None if it gave none.
    embeddings : array of shape (N, D)
    tokens : array of shape (N,), the numbers of tokens, at least one for each
    metadata : list of dict
    """

    places: IntArray
    scores: FloatArray | None
    embeddings: FloatArray
    tokens: FloatArray
    metadata: Sequence[Mapping[str, Any]]

    def __len__(self) -> int:
        """Return the number of candidates."""
        return len(self.places)


def check_scores(scores: Sequence[float | None]) -> FloatArray | None:
    """Return scores as an array (n,), None if all are; ValueError if some are bad."""
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


def collect_embeddings(found: Found, places: IntArray) -> FloatArray:
    """Return the embeddings (N, D) of the documents at ``places``.

    Missing ones are made by ``found.embed``; ValueError for bad or no embeddings.
    """
    vectors = {place: found.embeddings[place] for place in places.tolist()}
    missing = [place for place, vector in vectors.items() if vector is None]
    if missing:
        if found.embed is None:
            raise ValueError(
                f"{len(missing)} of {len(places)} documents have no embedding, "
                f"document {missing[0]} for one: {found.hint}"
            )
        made = found.embed(missing)
        if len(made) != len(missing):
            raise ValueError(
                f"the embedder made {len(made)} embeddings of {len(missing)} documents"
            )
        vectors |= dict(zip(missing, made, strict=True))
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
        if not np.isfinite(row).all():
            raise ValueError(f"the embedding of document {place} holds NaN or infinity")
        if rows and len(row) != len(rows[0]):
            raise ValueError(
                f"embeddings are of different lengths: {len(rows[0])} numbers in "
                f"document {places[0]}, {len(row)} in document {place}; all of them "
                "must come from one embedder"
            )
        rows.append(row)
    return np.array(rows)


def tokens_of(count_tokens: TokenCounter, text: str, place: int) -> float:
    """Return a text's tokens, at least 1; ValueError names the place of a bad count."""
    count = count_tokens(text)
    is_number = isinstance(count, Real) and not isinstance(count, bool)
    if not is_number or not np.isfinite(count) or count < 0:
        raise ValueError(
            f"count_tokens must return a number of tokens, and returned {count!r} for "
            f"document {place}"
        )
    return max(1.0, float(count))
