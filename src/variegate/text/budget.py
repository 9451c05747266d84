"""The length of a summary in characters, bytes, words, sentences or tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from variegate._typing import FloatArray
from variegate.text.token_counts import count_bytes, estimate_tokens
from variegate.text.words import count_spaced_words

Unit = Literal["characters", "words", "sentences", "bytes", "tokens"]
_UNITS: dict[str, Unit] = {unit[0]: unit for unit in get_args(Unit)}
_FORMS = ", ".join(f"{letter} ({unit})" for letter, unit in _UNITS.items())


@dataclass(frozen=True)
class Budget:
    """The most a summary may hold: an ``amount`` of at least 1 of a ``unit``.

    A summary of sentences joined by newlines fits exactly when the costs of its
    sentences add up to at most :attr:`limit`:

    * characters and bytes (of UTF-8): length + 1, limit = amount + 1, because k
      sentences are joined by k - 1 newlines;
    * words, separated by white space, or letters of scripts that put no spaces between
      words (Chinese, Japanese, Thai): their number, limit = amount;
    * sentences: 1 each, limit = amount;
    * tokens of a language model: ``count_tokens(sentence)`` + 1, limit = amount + 1.
      Without ``count_tokens`` four bytes of UTF-8 are taken for a token.

    Examples
    --------
    >>> Budget.parse("3 words").costs(["Rain fell.", "Cats sleep here."])
    array([2., 3.])
    >>> Budget(800, "tokens", count_tokens=lambda text: len(text.split())).limit
    801.0
    """

    amount: int
    unit: Unit
    count_tokens: Callable[[str], int] | None = field(
        default=None, compare=False, repr=False
    )

    def __post_init__(self) -> None:
        """Raise TypeError or ValueError for an invalid amount or unit."""
        if self.unit not in _UNITS.values():
            raise ValueError(
                f"unknown unit {self.unit!r} of a budget: "
                f"use one of {', '.join(_UNITS.values())}"
            )
        amount = self.amount
        if isinstance(amount, bool) or not isinstance(amount, int | np.integer):
            raise TypeError(f"a budget is a whole number, not {amount!r}")
        if amount < 1:
            raise ValueError(f"a budget must be at least 1, not {amount}")
        if self.count_tokens is not None and self.unit != "tokens":
            raise ValueError(f"count_tokens is for a budget of tokens, not {self.unit}")

    @classmethod
    def parse(cls, text: str) -> Budget:
        """Read a budget such as ``"665c"``, ``"250 words"``, ``"5s"`` or ``"665b"``."""
        match = re.fullmatch(r"\s*([+-]?[0-9]+)\s*([a-zA-Z]*)\s*", text)
        if match is None:
            raise ValueError(
                f"cannot read the budget {text!r}: write a whole number and a unit, "
                f"one of {_FORMS}; for example 250w"
            )
        number, letters = match.groups()
        if not letters:
            raise ValueError(
                f"the budget {text!r} has no unit: add one of {_FORMS}; "
                f"for example {number}w"
            )
        for letter, unit in _UNITS.items():
            if letters.lower() in (letter, unit, unit[:-1]):
                return cls(int(number), unit)
        raise ValueError(f"unknown unit {letters!r} in {text!r}: use one of {_FORMS}")

    def __str__(self) -> str:
        return f"{self.amount}{self.unit[0]}"

    @property
    def _separator(self) -> float:
        """The cost of the newline after a sentence: 1, else 0 (sentences or words)."""
        return float(self.unit in ("characters", "bytes", "tokens"))

    @property
    def limit(self) -> float:
        """The largest sum of :meth:`costs` of the sentences of a summary."""
        return self.amount + self._separator

    def costs(self, texts: Sequence[str]) -> FloatArray:
        """Return the cost of each text (n,) as one sentence of a summary."""
        return np.array([self._length(text) + self._separator for text in texts])

    def affordable_costs(self, texts: Sequence[str]) -> FloatArray:
        """Return the costs of texts; raise ValueError if none of them fits."""
        costs = self.costs(texts)
        if costs.min() > self.limit:
            raise ValueError(
                f"no sentence fits the budget of {self.describe()}: the shortest "
                f"takes {int(costs.min() - self.limit) + self.amount}"
            )
        return costs

    def describe(self) -> str:
        """Return text such as ``"665 characters"`` or ``"1 sentence"``."""
        return f"{self.amount} {self.unit if self.amount > 1 else self.unit[:-1]}"

    def _length(self, text: str) -> int:
        """Return the length of a text in the budget's unit, 1 in sentences."""
        if self.unit == "words":
            return count_spaced_words(text)
        if self.unit == "bytes":
            return count_bytes(text)
        if self.unit == "tokens":
            count = self.count_tokens or estimate_tokens
            return int(count(text))
        return len(text) if self.unit == "characters" else 1


def as_budget(budget: str | Budget) -> Budget:
    """Return a budget, parsed if it is text."""
    return budget if isinstance(budget, Budget) else Budget.parse(str(budget))
