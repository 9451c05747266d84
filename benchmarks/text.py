"""Summarizing a cluster against sumy's LexRank, and a text of many sentences."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import numpy as np

from benchmarks.timing import Row, measure_time, optional, row
from variegate.text import load_default

_WORDS = 3000
_SENTENCE = 22


def measure(quick: bool = False) -> list[Row]:
    """Compare the packaged summarizer on generated clusters."""
    rows = []
    for per_document in (8,) if quick else (11, 17, 25):
        documents = make_documents(10, per_document)
        summarize = partial(load_default().summarize, documents, "250w")
        ours = measure_time(summarize, 3 if quick else 5)
        sumy = optional("sumy.summarizers.lex_rank")
        theirs = None
        if sumy is not None:
            theirs = measure_time(partial(_lexrank, sumy, documents), 1 if quick else 3)
        case = "summary of 10 documents, 250 words"
        rows.append(row(case, ours, "sumy LexRank", theirs, 10 * per_document))
    return rows


def make_documents(n_documents: int, n_sentences: int, seed: int = 0) -> list[str]:
    """Return documents of made-up words, some of them frequent, on one topic."""
    rng = np.random.default_rng(seed)
    chance = 1.0 / np.arange(1, _WORDS + 1)
    vocabulary = np.array([_word(number) for number in range(_WORDS)])
    documents = []
    for _ in range(n_documents):
        lengths = rng.integers(_SENTENCE - 8, _SENTENCE + 8, n_sentences)
        drawn = rng.choice(vocabulary, int(lengths.sum()), p=chance / chance.sum())
        sentences = np.split(drawn, np.cumsum(lengths)[:-1])
        documents.append(" ".join(" ".join(s).capitalize() + "." for s in sentences))
    return documents


def _word(number: int) -> str:
    syllables = ("ba", "ke", "li", "mo", "nu", "ra", "se", "ti", "vo", "zu")
    return "".join(syllables[int(digit)] for digit in f"{number:03d}")


class _Tokenizer:
    """What sumy asks of a tokenizer; its own needs a download."""

    def to_sentences(self, text: str) -> list[str]:
        return re.split(r"(?<=\.)\s+", text)

    def to_words(self, text: str) -> list[str]:
        return re.findall(r"[a-z]+", text.lower())


def _lexrank(sumy: Any, documents: list[str]) -> None:
    parser = optional("sumy.parsers.plaintext").PlaintextParser
    text = parser.from_string("\n\n".join(documents), _Tokenizer())
    sumy.LexRankSummarizer()(text.document, 11)
