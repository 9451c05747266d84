"""Words, counted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, pairwise
from typing import Any
from unicodedata import normalize

import numpy as np
from scipy import sparse

from variegate._typing import FloatArray
from variegate.text.scripts import UNSPACED

__all__ = ["WordCounts", "bigrams", "count_words", "unit_rows", "used_only", "words"]


@cache
def _word() -> Any:
    """Return the pattern of a word.

    A letter or digit and what follows it, with the marks that belong to it: the vowel
    signs of Hindi and the points of Hebrew and Arabic are part of their words.
    """
    try:
        import regex  # type: ignore[import-untyped]
    except ImportError as error:
        raise ImportError(
            "words of all scripts need regex: pip install 'variegate[text]'"
        ) from error
    return regex.compile(r"[\p{L}\p{N}][\p{L}\p{N}\p{M}]*")


@cache
def _clusters() -> Any:
    """Return the pattern of a letter with its marks."""
    import regex

    return regex.compile(r"\X")


_UNSPACED_RUN = re.compile(f"([{UNSPACED}]+)")


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, in any script.

    Scripts without spaces between words (Chinese, Japanese, Thai, Lao, Burmese, Khmer)
    give pairs of neighbouring letters, as is usual where there is no dictionary.
    """
    found: list[str] = _word().findall(normalize("NFC", text).lower())
    if _UNSPACED_RUN.search(text) is None:
        return found
    return [piece for word in found for piece in _pieces(word)]


def _pieces(word: str) -> Iterator[str]:
    for number, run in enumerate(_UNSPACED_RUN.split(word)):
        if number % 2 == 0:
            if run:
                yield run
            continue
        letters = _clusters().findall(run)
        if len(letters) == 1:
            yield run
        yield from (first + second for first, second in pairwise(letters))


def bigrams(tokens: Sequence[str]) -> list[tuple[str, str]]:
    """Return the pairs of neighbouring words."""
    return list(pairwise(tokens))


@dataclass(frozen=True, eq=False)
class WordCounts:
    """How often each word, or whatever is counted, is in each sentence.

    The matrix is (sentences, words); the vocabulary knows the column of each word.
    """

    matrix: sparse.csr_array
    vocabulary: dict[Any, int]

    def document_frequency(self) -> FloatArray:
        """Return the number of sentences that each word is in."""
        n_words = self.matrix.shape[1]
        return np.bincount(self.matrix.indices, minlength=n_words).astype(np.float64)


def count_words(tokens: Sequence[Sequence[Any]]) -> WordCounts:
    """Count the words of every sentence, or whatever can be told apart."""
    vocabulary: dict[Any, int] = {}
    columns = np.fromiter(
        (
            vocabulary.setdefault(word, len(vocabulary))
            for word in chain.from_iterable(tokens)
        ),
        dtype=np.int32,
    )
    pointers = np.concatenate([[0], np.cumsum([len(sentence) for sentence in tokens])])
    shape = (len(tokens), max(1, len(vocabulary)))
    matrix = sparse.csr_array((np.ones(len(columns)), columns, pointers), shape=shape)
    matrix.sum_duplicates()
    return WordCounts(matrix, vocabulary)


def used_only(matrix: sparse.csr_array) -> sparse.csr_array:
    """Return the columns that hold anything."""
    columns = np.unique(matrix.indices)
    return sparse.csr_array(matrix[:, columns])


def unit_rows(matrix: sparse.csr_array) -> sparse.csr_array:
    """Return the rows scaled to unit length; rows of zeros stay."""
    lengths = np.sqrt(matrix.multiply(matrix).sum(axis=1))
    scale = 1.0 / np.where(lengths > 0.0, lengths, 1.0)
    return sparse.csr_array(sparse.diags_array(scale) @ matrix)
