"""Terms: the stems of content words, and texts as vectors of them."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain

import numpy as np

from variegate._typing import FloatArray, IntArray
from variegate.text.languages import LANGUAGES
from variegate.text.rouge_tokens import stem

_HASHED = 256  # columns of hashed terms
_MOST_WORDS = 1 << 17  # whose terms are kept

#: Words of English questions that name nothing, beside its function words.
_ASKING = """
    who whom whose which what when where why how many much s also name according did
    done doing does
"""


@lru_cache(maxsize=1 << 16)
def as_term(word: str) -> str:
    """Return the term of a word: in lower case, an English word without its ending."""
    lower = word.lower()
    return stem(lower) if len(lower) > 3 and lower.isascii() else lower


class Terms(dict[str, str]):
    """The term of each word of a language; "" for function words and pronouns.

    Terms are computed at first use and kept, up to a number of words.
    """

    def __init__(self, language: str | None) -> None:
        super().__init__()
        self._ignored: frozenset[str] = frozenset()
        if language is not None:
            lists = LANGUAGES[language]
            self._ignored = lists.function_words | lists.pronouns
        if language == "english":
            self._ignored |= frozenset(_ASKING.split())
        self.names = _Names(self)

    def __missing__(self, word: str) -> str:
        """Compute the term of a word, and keep it."""
        if len(self) >= _MOST_WORDS:
            self.clear()
        lower = word.lower()
        term = self[word] = "" if lower in self._ignored else as_term(word)
        return term


class _Names(dict[str, str]):
    """The term of each word with a capital; "" for other words."""

    def __init__(self, terms: Terms) -> None:
        super().__init__()
        self._terms = terms

    def __missing__(self, word: str) -> str:
        """Look up the term of a word, and keep it."""
        if len(self) >= _MOST_WORDS:
            self.clear()
        name = self[word] = self._terms[word] if word[0].isupper() else ""
        return name


#: The terms of a language by its name; None for languages without word lists.
terms_of_language = cache(Terms)


@dataclass(frozen=True, eq=False)
class TermMatrix:
    """Tf-idf vectors of unit length of texts, entry by entry.

    ``rows``, ``columns`` and ``values`` are those of the entries, ``columns`` by
    ``vocabulary``; ``rarity`` is the weight of each column.
    """

    rows: IntArray
    columns: IntArray
    values: FloatArray
    vocabulary: dict[str, int]
    rarity: FloatArray
    n_rows: int

    @classmethod
    def from_terms(cls, texts: Sequence[Sequence[str]]) -> TermMatrix:
        """Return the vectors of texts, which are lists of terms."""
        counted = [Counter(text) for text in texts]
        vocabulary = {
            term: k
            for k, term in enumerate(dict.fromkeys(chain.from_iterable(counted)))
        }
        lengths = [len(one) for one in counted]
        total = sum(lengths)
        entries = map(vocabulary.__getitem__, chain.from_iterable(counted))
        columns = np.fromiter(entries, np.intp, total)
        rows = np.repeat(np.arange(len(texts)), lengths)
        times = np.fromiter(
            chain.from_iterable(map(Counter.values, counted)), float, total
        )
        found = np.bincount(columns, minlength=len(vocabulary))
        rarity = np.maximum(rarity_of(found, len(texts)), 0.0)
        values = times * rarity[columns]
        norms = np.sqrt(np.bincount(rows, values**2, len(texts)))
        values = values / np.where(norms > 0.0, norms, 1.0)[rows]
        return cls(rows, columns, values, vocabulary, rarity, len(texts))

    def hashed_vectors(self) -> FloatArray:
        """Return the vectors (n_rows, 256), with terms hashed to columns."""
        hashes = np.fromiter(map(_hash_column, self.vocabulary), np.intp)
        cells = self.rows * _HASHED + hashes[self.columns]
        flat = np.bincount(cells, self.values, self.n_rows * _HASHED)
        return np.asarray(flat.reshape(self.n_rows, _HASHED))

    def cosines(self, terms: Collection[str]) -> FloatArray:
        """Return the cosine (n_rows,) of every row with a text of distinct terms."""
        known = [self.vocabulary[term] for term in terms if term in self.vocabulary]
        vector = np.zeros(len(self.vocabulary))
        vector[known] = self.rarity[known]
        return self._products(vector / max(1e-9, float(np.linalg.norm(vector))))

    def cosines_to_row(self, row: int) -> FloatArray:
        """Return the cosine (n_rows,) of every row with row number ``row``."""
        vector = np.zeros(len(self.vocabulary))
        here = self.rows == row
        vector[self.columns[here]] = self.values[here]
        return self._products(vector)

    def _products(self, vector: FloatArray) -> FloatArray:
        """Return the product of every row with a vector over the vocabulary."""
        products = self.values * vector[self.columns]
        return np.asarray(np.bincount(self.rows, products, self.n_rows), np.float64)


def rarity_of(n_having: FloatArray | IntArray, n_texts: int) -> FloatArray:
    """Return the inverse document frequency (T,) of terms ``n_having`` texts have."""
    return np.asarray(np.log((n_texts + 1.0) / (n_having + 0.5)))


@lru_cache(maxsize=1 << 16)
def _hash_column(term: str) -> int:
    """Return the column of a term, from 0 to 255, by its checksum."""
    return zlib.crc32(term.encode("utf-8", "surrogatepass")) % _HASHED
