"""Tables of reports: numbers are written once, wherever they are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Cell", "Row"]


@dataclass(frozen=True)
class Cell:
    """What a cell says beyond plain text.

    Attributes
    ----------
    text, small : str
        The second in small print.
    below : bool
        Whether the small print has a line of its own.
    span : (float, float, float), optional
        Low end, high end and mean, from 0 to 1, that a page draws.
    share : float, optional
        A number from 0 to 1 that a page draws as a bar.
    mark : str
        A sign before the text; on a page, the style sheet puts it there.
    style : str
        A class of the style sheet.
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
