"""Words and numbers as all reports write them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

#: Numbered names in a row that are shown as one, at least.
_LEAST = 4


def count(number: int, noun: str) -> str:
    """Return "1 row" or "2,000 rows" for a number and a noun in the singular."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def percent(probability: float) -> str:
    """Return a probability (0 to 1) as text in percent: "25 %", "2.5 %"."""
    share = 100.0 * probability
    if 0.0 < share < 0.1:
        return "under 0.1 %"
    return f"{share:.0f} %" if share >= 10.0 else f"{share:.1f} %"


def one_line(text: str) -> str:
    """Return text in one line, each run of white space and control marks a space."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def find_numbered_runs(names: Sequence[str]) -> list[tuple[int, int]]:
    """Divide names into runs that are numbered in sequence; return (start, end) pairs.

    Four or more, such as e1, e2, e3 and e4, are a run ``names[start:end]``; any other
    name is one by itself.
    """
    found: list[tuple[int, int]] = []
    for _, run in groupby(enumerate(names), _run_key):
        places = [place for place, _ in run]
        if len(places) >= _LEAST:
            found.append((places[0], places[-1] + 1))
        else:
            found += [(place, place + 1) for place in places]
    return found


def _run_key(placed: tuple[int, str]) -> tuple[str, int]:
    """Return a key of (position, name) that neighbours numbered in sequence share.

    It is the name without its number, and the number less the position.
    """
    place, name = placed
    stem = name.rstrip("0123456789")
    digits = name[len(stem) :]
    # A longer number is a code, not a count.
    if stem and 0 < len(digits) < 10:
        return stem, int(digits) - place
    return "", place


def abbreviate_runs(names: Sequence[str]) -> list[str]:
    """Return names with each run of four or more numbered ones as "e1 … e32"."""
    return [
        names[first] if end - first == 1 else f"{names[first]} … {names[end - 1]}"
        for first, end in find_numbered_runs(names)
    ]


def shorten_middle(text: str, longest: int) -> str:
    """Return text in one line of at most ``longest`` characters, its middle cut."""
    text = one_line(text)
    if len(text) <= longest:
        return text
    head = (longest - 1) * 2 // 3
    return f"{text[:head]}…{text[len(text) - (longest - 1 - head) :]}"
