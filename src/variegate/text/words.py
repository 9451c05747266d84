"""Words of any script: found, counted, and weighed; sentences as vectors of them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

import numpy as np
from scipy import sparse

from variegate._install import explain_missing
from variegate._typing import FloatArray

# For character classes: letters of Chinese and Japanese, Thai, Lao, Burmese, Khmer.
UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e50-\u0e59\u0e81-\u0edf\u1000-\u1049\u1050-\u109f"
    "\u1780-\u17d3\u17d7\u17dc-\u17e9\u3005-\u3007\u3041-\u309f\u30a1-\u30fa"
    "\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003ffff"
)

# For character classes: marks outside ASCII that only end sentences, with the property
# ``Sentence_Break=STerm`` of Unicode (UAX #29): Armenian, Arabic, Urdu, Devanagari and
# its kin, Burmese, Amharic, Khmer, and wide marks.  Thai and Lao have none.
ENDS = (
    "\u0589\u061e\u061f\u06d4\u0964\u0965\u104b\u1362\u1367\u1368\u17d4\u17d5"
    "\u3002\ufe12\ufe15\ufe16\uff01\uff1f\uff61"
)

_AN_UNSPACED = re.compile(f"[{UNSPACED}]")
_SPACED_RUN = re.compile(rf"(?:(?![{UNSPACED}])\S)+")
_UNSPACED_RUN = re.compile(f"([{UNSPACED}]+)")
# Text without these has no combining marks: Python's own patterns split it, and faster.
_BEYOND_LATIN = re.compile("[^\\x00-\\u02ff\\u2000-\\u206f]")
_LATIN_WORD = re.compile(r"[^\W_]+")
# Spaces in place of ASCII characters that are not of words: the fastest way to split.
_SPACES = bytes(k if chr(k).isalnum() else ord(" ") for k in range(128)) + bytes(128)
_ENDS_SENTENCE = re.compile(
    rf"[.!?…‼⁇⁈⁉\uff0e\u037e{ENDS}][\s\"'’“”»›\u05f3\u05f4\x94*_)\]}}」』）】》]*+$"
)


def ends_sentence(text: str) -> bool:
    """Whether a text ends as sentences do; quotes and brackets may follow the mark."""
    return _ENDS_SENTENCE.search(text[-20:]) is not None


def count_spaced_words(text: str) -> int:
    """Return the number of words between spaces, plus that of ``UNSPACED`` letters."""
    if _AN_UNSPACED.search(text) is None:
        return len(text.split())
    count = 0
    for piece in text.split():
        letters, runs = _AN_UNSPACED.findall(piece), _SPACED_RUN.findall(piece)
        count += sum(unicodedata.category(one)[0] != "M" for one in letters)
        count += sum(not letters or any(map(str.isalnum, run)) for run in runs)
    return count


def import_regex() -> Any:
    """Return the module regex; raise with the command to install it if missing."""
    with explain_missing("words of all scripts need regex", "text"):
        import regex
    return regex


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, in any script.

    In scripts without spaces between words (Chinese, Japanese, Thai, Lao, Burmese,
    Khmer) they are pairs of neighbouring letters.
    """
    return split_words(text.lower())


def split_words(text: str) -> list[str]:
    """Return the words of a text as they are written, as :func:`words` splits it."""
    if text.isascii():
        return text.encode("ascii").translate(_SPACES).decode("ascii").split()
    if _BEYOND_LATIN.search(text) is None:
        return _LATIN_WORD.findall(text)
    regex, text = import_regex(), unicodedata.normalize("NFC", text)
    found: list[str] = regex.findall(r"[\p{L}\p{N}][\p{L}\p{N}\p{M}]*", text)
    if _UNSPACED_RUN.search(text) is None:
        return found
    pieces = []
    for run in filter(None, chain.from_iterable(map(_UNSPACED_RUN.split, found))):
        letters = regex.findall(r"\X", run) if _AN_UNSPACED.match(run) else [run]
        pairs = ["".join(pair) for pair in pairwise(letters)]
        pieces += pairs or [run]
    return pieces


@dataclass(frozen=True, eq=False)
class WordCounts:
    """How often each word is in each sentence, (N, W), and the column of each word."""

    matrix: sparse.csr_array
    vocabulary: dict[Any, int]


def count_words(tokens: Sequence[Sequence[Any]]) -> WordCounts:
    """Count the words, or other hashable units, in each of N sentences.

    Columns are in the order of first use; without any unit there is one, of zeros.
    """
    vocabulary: dict[Any, int] = {}
    every = chain.from_iterable(tokens)
    columns = np.fromiter(
        (vocabulary.setdefault(word, len(vocabulary)) for word in every), dtype=np.int32
    )
    pointers = np.concatenate([[0], np.cumsum([len(sentence) for sentence in tokens])])
    shape = (len(tokens), max(1, len(vocabulary)))
    matrix = sparse.csr_array((np.ones(len(columns)), columns, pointers), shape=shape)
    matrix.sum_duplicates()
    return WordCounts(matrix, vocabulary)


def used_only(matrix: sparse.csr_array) -> sparse.csr_array:
    """Return a matrix without its empty columns."""
    return sparse.csr_array(matrix[:, np.unique(matrix.indices)])


def unit_rows(matrix: sparse.csr_array) -> sparse.csr_array:
    """Return the rows scaled to unit length; rows of zeros stay."""
    lengths = np.sqrt(matrix.multiply(matrix).sum(axis=1))
    scale = 1.0 / np.where(lengths > 0.0, lengths, 1.0)
    return sparse.csr_array(sparse.diags_array(scale) @ matrix)


def word_weights(counts: WordCounts, ignored: Collection[str] = ()) -> FloatArray:
    """Return ``log(n / df)`` of each word (W,), which ``df`` of ``n`` sentences have.

    Ignored words weigh zero.
    """
    n_sentences, n_words = counts.matrix.shape
    frequency = np.bincount(counts.matrix.indices, minlength=n_words)
    weights = np.log(max(1, n_sentences) / np.maximum(frequency, 1.0))
    columns = [counts.vocabulary[word] for word in ignored if word in counts.vocabulary]
    weights[columns] = 0.0
    return np.asarray(weights)


def tfidf(counts: WordCounts, weights: FloatArray) -> sparse.csr_array:
    """Return counts times weights (W,) as rows (N, W), each scaled to unit length."""
    return unit_rows(sparse.csr_array(counts.matrix @ sparse.diags_array(weights)))
