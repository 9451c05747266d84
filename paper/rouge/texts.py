"""Texts by sentences, which ROUGE-L and ROUGE-W compare."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from variegate.text.rouge_tokens import Tokenizer, Words, first_bytes

__all__ = ["SentenceTokenizer", "TokenizedText", "Words"]


class TokenizedText(Words):
    """The words of a text, and the same by ``sentences``."""

    sentences: tuple[Words, ...]

    @classmethod
    def of(cls, sentences: Iterable[Words]) -> TokenizedText:
        """Return the text of these sentences."""
        kept = tuple(sentence for sentence in sentences if sentence)
        text = cls(chain.from_iterable(kept))
        text.sentences = kept
        return text


class SentenceTokenizer(Tokenizer):
    """How a text becomes sentences of words; each line is a sentence.

    As in ROUGE-1.5.5, the limit of bytes holds for the words of a text, but only line
    by line for its sentences.
    """

    def read(self, text: str) -> TokenizedText:
        """Return the words of a text, and its sentences."""
        lines = self.lines_of(text)
        words = TokenizedText.of(tuple(self.words_of(line)) for line in lines)
        if self.max_bytes is None:
            return words
        whole = _up_to_long_line(text.split("\n"), self.max_bytes)
        by_line = TokenizedText.of(tuple(self.words_of(line)) for line in whole)
        words.sentences = by_line.sentences
        return words


def _up_to_long_line(lines: list[str], limit: int) -> list[str]:
    """Return the lines up to the first that reaches the limit by itself, cut."""
    for number, line in enumerate(lines):
        if len(line.encode("utf-8", "replace")) >= limit:
            return [*lines[:number], *first_bytes([line], limit)]
    return lines
