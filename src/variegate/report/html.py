"""Words and numbers as the pages of all applications write them."""

from __future__ import annotations

import html
import re

__all__ = ["count", "escape", "percent"]

# What no page may hold: control characters and halves of surrogate pairs.
_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\ud800-\udfff]")


def escape(text: str) -> str:
    """Return text that is safe between tags and in attributes."""
    return html.escape(_UNWRITABLE.sub("\ufffd", text))


def count(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is one."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def percent(probability: float) -> str:
    """Return a probability in percent, to two digits."""
    share = 100.0 * probability
    if 0.0 < share < 0.1:
        return "under 0.1 %"
    return f"{share:.0f} %" if share >= 10.0 else f"{share:.1f} %"
