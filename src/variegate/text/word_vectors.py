"""Vectors of single words that an installed package brings, read without a download."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from variegate._install import explain_missing
from variegate._typing import FloatArray
from variegate.text.words import split_words

#: The package that brings the vectors.
WORDLLAMA = "wordllama"

_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_MOST_KNOWN = 1 << 17  # words that are kept


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Static vectors of words and texts, (..., D).

    ``weights`` are the vectors of the pieces of words into which ``tokenizer`` splits;
    the vector of a word is their sum, and that of a text the sum of its words'.
    """

    weights: FloatArray
    tokenizer: Any
    _known: dict[str, FloatArray] = field(default_factory=dict, repr=False)

    def __call__(self, words: Sequence[str]) -> FloatArray:
        """Return the vector of each word, (n, D)."""
        known = self._known
        new = [word for word in dict.fromkeys(words) if word not in known]
        if len(known) + len(new) > _MOST_KNOWN:
            known.clear()
            new = list(dict.fromkeys(words))
        if new:
            encoded = self.tokenizer.encode_batch_fast(new, add_special_tokens=False)
            for word, pieces in zip(new, encoded, strict=True):
                known[word] = self.weights[pieces.ids].sum(axis=0)
        return np.array([known[word] for word in words]).reshape(len(words), -1)

    def __reduce__(self) -> tuple[Any, tuple[()]]:
        """Let another process read the files of the package itself."""
        return load_word_vectors, ()

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """Return the vector of each text, (n, D); zeros without words."""
        lists = [split_words(text.lower()) for text in texts]
        column = {
            word: k for k, word in enumerate({w: 0 for one in lists for w in one})
        }
        vectors = self(list(column))
        found = np.zeros((len(lists), self.weights.shape[1]))
        for row, words in enumerate(lists):
            if words:
                found[row] = vectors[[column[word] for word in words]].sum(axis=0)
        return found


@cache
def load_word_vectors() -> WordVectors:
    """Return the 256-dimensional vectors of the package wordllama, read once.

    The files are read directly: wordllama's own loader asks the network.
    """
    with explain_missing("word vectors need wordllama", "vectors"):
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        spec = find_spec("wordllama")
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError("wordllama")
    folder = Path(spec.origin).parent
    (weights,) = load_file(folder / _WEIGHTS).values()
    tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
    return WordVectors(weights.astype(np.float32), tokenizer)
