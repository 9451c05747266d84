"""Tables of reports: numbers are written once, wherever they are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Cell", "Row"]


@dataclass(frozen=True)
class Cell:
    """What a cell says beyond plain text.

    ``small`` print, which has a line of its own if ``below``; what a page draws: a
    ``span``, of low end, high end and mean, or a ``share`` as a bar, all from 0 to 1; a
    ``mark`` before the text, which on a page the style sheet puts there; and ``style``,
    a class of the style sheet.
    """

    text: str = ""
    small: str = ""
    below: bool = False
    span: tuple[float, float, float] | None = None
    share: float | None = None
    mark: str = ""
    style: str = ""

    def __str__(self) -> str:
        small = f"({self.small})" if self.below else self.small
        return " ".join(part for part in (self.mark, self.text, small) if part)


@dataclass(frozen=True)
class Row:
    """Cells beside each other; ``style`` is a class of the style sheet."""

    cells: Sequence[Cell | str]
    style: str = ""
