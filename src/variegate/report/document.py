"""A report before it is a page or a file of Markdown: its facts, in order.

Numbers are written into it once, as text, so that they are the same wherever they are
read.  The template ``document.html`` makes a page of it, and
:func:`variegate.report.markdown.markdown` Markdown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from variegate.report.figures import as_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "Block",
    "Cell",
    "Code",
    "Column",
    "Document",
    "Facts",
    "Folded",
    "Part",
    "Picture",
    "Row",
    "Sheet",
    "Words",
]


@dataclass(frozen=True)
class Column:
    """The head of a column.

    ``style`` is "head" (of a row), "number", "drawn" (what only a page can show), or
    another class of the style sheet.
    """

    name: str
    style: str = "cell"


@dataclass(frozen=True)
class Cell:
    """What a cell says.

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

    @property
    def plain(self) -> str:
        """All that it says, in one line."""
        small = f"({self.small})" if self.below else self.small
        return " ".join(part for part in (self.mark, self.text, small) if part)


@dataclass(frozen=True)
class Row:
    """Cells beside each other; ``style`` is a class of the style sheet."""

    cells: Sequence[Cell]
    style: str = ""


@dataclass(frozen=True)
class Sheet:
    """A table; ``label`` says what of, for those who cannot see it."""

    kind: ClassVar = "sheet"
    label: str
    columns: Sequence[Column]
    rows: Sequence[Row]


@dataclass(frozen=True)
class Words:
    """A paragraph; in small print where it is only a note."""

    kind: ClassVar = "words"
    text: str
    is_note: bool = False


@dataclass(frozen=True)
class Facts:
    """Names and values, one below the other."""

    kind: ClassVar = "facts"
    values: Mapping[str, str]


@dataclass(frozen=True)
class Code:
    """Lines to be copied as they are."""

    kind: ClassVar = "code"
    text: str


@dataclass(frozen=True)
class Picture:
    """A figure, called by a word that no other of the report has.

    ``about`` says what it shows, for those who cannot see it.
    """

    kind: ClassVar = "picture"
    name: str
    figure: Figure
    about: str
    caption: str = ""

    @property
    def svg(self) -> str:
        """The figure as an element of a page."""
        return as_svg(self.figure, self.name, self.about)

    @property
    def is_broad(self) -> bool:
        """Whether it had rather scroll than shrink."""
        return bool(self.figure.get_size_inches()[0] > 7.0)


@dataclass(frozen=True)
class Folded:
    """A long table: a page opens it when asked, elsewhere ``brief`` stands for it."""

    kind: ClassVar = "folded"
    summary: str
    sheet: Sheet
    brief: Sequence[Block]


@dataclass(frozen=True)
class Part:
    """Blocks under a heading, with notes beside it."""

    kind: ClassVar = "part"
    heading: str
    blocks: Sequence[Block]
    notes: Sequence[str] = ()


Block: TypeAlias = Words | Facts | Sheet | Picture | Folded | Code | Part


@dataclass(frozen=True)
class Document:
    """A report: what matters most in a sentence or two, facts at a glance, parts."""

    title: str
    lead: str
    facts: Mapping[str, str]
    parts: Sequence[Part]
