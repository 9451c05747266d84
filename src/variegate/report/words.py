"""Words and numbers as all reports write them."""

from __future__ import annotations

__all__ = ["count", "one_line", "percent", "shortened"]


def count(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is one."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def percent(probability: float) -> str:
    """Return a probability in percent, to two digits."""
    share = 100.0 * probability
    if 0.0 < share < 0.1:
        return "under 0.1 %"
    return f"{share:.0f} %" if share >= 10.0 else f"{share:.1f} %"


def one_line(text: str) -> str:
    """Return text without line breaks and characters that no page can show."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def shortened(text: str, longest: int) -> str:
    """Return text in one line, its middle left out where it is too long.

    What tells features apart is often at the end.
    """
    text = one_line(text)
    if len(text) <= longest:
        return text
    head = (longest - 1) * 2 // 3
    return f"{text[:head]}…{text[len(text) - (longest - 1 - head) :]}"
