"""Words by number, terms (the stems of content words), and texts as vectors of them."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from threading import RLock

import numpy as np

from variegate._typing import BoolArray, FloatArray, IntArray
from variegate.text.languages import LANGUAGES
from variegate.text.rouge_tokens import stem

_HASHED = 256  # columns of hashed terms
_MOST_WORDS = 1 << 17  # of a vocabulary
_FACTS = ("term", "name", "lower", "hash", "pronoun", "digit")
_LOCK = RLock()  # words are numbered by one thread at a time

#: English pronouns, also with a capital.
_PRONOUNS = LANGUAGES["english"].pronouns | {
    "this", "these", "that", "those", "his", "its",
}  # fmt: skip
_PRONOUNS |= set(map(str.capitalize, _PRONOUNS))

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


class Vocabulary(dict[str, int]):
    """Numbers of the words of a language, given at first use, and facts about each.

    Attributes
    ----------
    terms : list of str
        Terms by number; number 0, "", is that of function words and pronouns.
    facts : dict of arrays
        Entry ``k`` of each is a fact about word ``k``: the number of its "term"; of its
        "name", the term of a word with a capital, else 0; and of the word in "lower"
        case; the "hash" of its term, a column; and whether it is a "pronoun" or has a
        "digit", 1 or 0.
    """

    def __init__(self, language: str | None) -> None:
        super().__init__()
        self._ignored: frozenset[str] = frozenset()
        if language is not None:
            lists = LANGUAGES[language]
            self._ignored = lists.function_words | lists.pronouns
        if language == "english":
            self._ignored |= frozenset(_ASKING.split())
        self.terms = [""]
        self._number_of_term = {"": 0}
        self.facts = {name: np.zeros(1024, dtype=np.intp) for name in _FACTS}

    def __missing__(self, word: str) -> int:
        """Give a number to a word, and look up its facts."""
        with _LOCK:
            known = self.get(word)
            if known is not None:  # another thread has just met it
                return known
            lower = word.lower()
            lower_number = len(self) if lower == word else self[lower]
            number = len(self)
            if number == len(self.facts["term"]):
                self.facts = {
                    name: np.concatenate([values, np.zeros_like(values)])
                    for name, values in self.facts.items()
                }
            text = "" if lower in self._ignored else as_term(word)
            term = self.number_of_term(text)
            name = term if word[0].isupper() else 0
            has_digit = any(map(str.isdecimal, word))
            found = (
                term, name, lower_number, _hash_column(text), word in _PRONOUNS,
                has_digit,
            )  # fmt: skip
            for fact, value in zip(_FACTS, found, strict=True):
                self.facts[fact][number] = value
            self[word] = number
            return number

    def number_of_term(self, text: str) -> int:
        """Return the number of a term, a new one at first use."""
        with _LOCK:
            number = self._number_of_term.setdefault(text, len(self.terms))
            if number == len(self.terms):
                self.terms.append(text)
            return number


_VOCABULARIES: dict[str | None, Vocabulary] = {}


def vocabulary_of(language: str | None) -> Vocabulary:
    """Return the vocabulary of a language; None for languages without word lists.

    A new one replaces it once it has many words.
    """
    known = _VOCABULARIES.get(language)
    if known is None or len(known) >= _MOST_WORDS:
        known = _VOCABULARIES[language] = Vocabulary(language)
    return known


@dataclass(frozen=True, eq=False)
class Tokens:
    """The words of N texts, one after the other.

    ``words`` are their numbers in a ``vocabulary``, ``texts`` the numbers of the texts
    that they are of, from 0 to ``n_texts - 1``, ascending.
    """

    vocabulary: Vocabulary
    words: IntArray
    texts: IntArray
    n_texts: int

    @classmethod
    def of(cls, vocabulary: Vocabulary, texts: Sequence[Sequence[str]]) -> Tokens:
        """Return the words of texts, which are lists of words."""
        lengths = np.fromiter(map(len, texts), np.intp, len(texts))
        numbers = map(vocabulary.__getitem__, chain.from_iterable(texts))
        words = np.fromiter(numbers, np.intp, int(lengths.sum()))
        owner = np.repeat(np.arange(len(texts)), lengths)
        return cls(vocabulary, words, owner, len(texts))

    def content(self) -> Tokens:
        """Return the words that have a term."""
        kept = self.facts("term") > 0
        words, texts = self.words[kept], self.texts[kept]
        return Tokens(self.vocabulary, words, texts, self.n_texts)

    def facts(self, name: str) -> IntArray:
        """Return a fact about each word: see :class:`Vocabulary`."""
        return self.vocabulary.facts[name][self.words]

    def count(self, marked: BoolArray | None = None) -> IntArray:
        """Return the number (N,) of words of each text, or of ``marked`` ones."""
        texts = self.texts if marked is None else self.texts[marked]
        return np.bincount(texts, minlength=self.n_texts)

    def has(self, marked: BoolArray) -> FloatArray:
        """Return 1 for texts (N,) with a word that is ``marked``, else 0."""
        found = np.zeros(self.n_texts)
        found[self.texts[marked]] = 1.0
        return found


@dataclass(frozen=True, eq=False)
class TermMatrix:
    """Tf-idf vectors of unit length of texts, entry by entry.

    ``rows``, ``columns``, ``times`` and ``values`` are those of the entries; ``terms``
    are the sorted numbers of the columns' terms, ``hashes`` their hash columns, and
    ``rarity`` their weights.
    """

    rows: IntArray
    columns: IntArray
    times: IntArray
    values: FloatArray
    terms: IntArray
    hashes: IntArray
    rarity: FloatArray
    n_rows: int

    @classmethod
    def of_tokens(cls, tokens: Tokens) -> TermMatrix:
        """Return the vectors of texts from their content words."""
        terms, first, columns = np.unique(
            tokens.facts("term"), return_index=True, return_inverse=True
        )
        width = max(1, len(terms))
        cells, times = np.unique(tokens.texts * width + columns, return_counts=True)
        rows, columns = np.divmod(cells, width)
        found = np.bincount(columns, minlength=len(terms))
        rarity = np.maximum(rarity_of(found, tokens.n_texts), 0.0)
        values = times * rarity[columns]
        norms = np.sqrt(np.bincount(rows, values**2, tokens.n_texts))
        values = values / np.where(norms > 0.0, norms, 1.0)[rows]
        hashes = tokens.facts("hash")[first]
        return cls(rows, columns, times, values, terms, hashes, rarity, tokens.n_texts)

    def counts_of(self, terms: Sequence[int]) -> FloatArray:
        """Return how often each row has each of some distinct terms, (n_rows, T)."""
        counts = np.zeros((self.n_rows, len(terms)))
        place, columns = self._columns_of(terms)
        place_of = np.full(len(self.terms), -1)
        place_of[columns] = place
        places = place_of[self.columns]
        asked = places >= 0
        counts[self.rows[asked], places[asked]] = self.times[asked]
        return counts

    def _columns_of(self, terms: Sequence[int]) -> tuple[IntArray, IntArray]:
        """Return places in ``terms`` of those that any row has, and their columns."""
        numbers = np.array(terms, dtype=np.intp)
        columns = np.searchsorted(self.terms, numbers)
        known = np.flatnonzero(columns < len(self.terms))
        known = known[self.terms[columns[known]] == numbers[known]]
        return known, columns[known]

    def hashed_vectors(self) -> FloatArray:
        """Return the vectors (n_rows, 256), with terms hashed to columns."""
        cells = self.rows * _HASHED + self.hashes[self.columns]
        flat = np.bincount(cells, self.values, self.n_rows * _HASHED)
        return np.asarray(flat.reshape(self.n_rows, _HASHED))

    def cosines(self, terms: Sequence[int]) -> FloatArray:
        """Return the cosine (n_rows,) of every row with a text of distinct terms."""
        _, known = self._columns_of(terms)
        vector = np.zeros(len(self.terms))
        vector[known] = self.rarity[known]
        return self._products(vector / max(1e-9, float(np.linalg.norm(vector))))

    def cosines_to_row(self, row: int) -> FloatArray:
        """Return the cosine (n_rows,) of every row with row number ``row``."""
        vector = np.zeros(len(self.terms))
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


def _hash_column(term: str) -> int:
    """Return the column of a term, from 0 to 255, by its checksum."""
    return zlib.crc32(term.encode("utf-8", "surrogatepass")) % _HASHED
