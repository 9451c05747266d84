"""Pages and Markdown from templates, and the tables in them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from variegate._install import explain_missing
from variegate.report.figures import as_svg
from variegate.report.wording import count, one_line

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.figure import Figure

#: Characters that no page may hold: control characters and halves of surrogate pairs.
_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\ud800-\udfff]")


def render(room: str, template: str, **facts: Any) -> str:
    """Return an HTML page from a template and the escaped ``facts`` that it shows.

    ``room`` is a package of variegate, such as "text".  Templates are looked for in its
    folder ``templates``, then in that of this package.
    """
    found = template_environment(room, autoescape=True).get_template(template)
    page = found.render(facts, pieces="pieces.html")
    return _UNWRITABLE.sub("\ufffd", page)


def render_markdown(room: str, template: str, **facts: Any) -> str:
    """Return Markdown from a template and ``facts``, which the template escapes."""
    found = template_environment(room, autoescape=False).get_template(template)
    text = found.render(facts, pieces="pieces.md")
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


@lru_cache
def template_environment(
    room: str | Path, autoescape: bool, extra: str = ""
) -> Environment:
    """Return the Jinja2 environment of a package's templates, or of a folder's.

    ``extra`` is the pip extra that installs Jinja2, by default called as the room.
    """
    with explain_missing("reports need Jinja2", str(extra or room)):
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    rooms = Path(__file__).parent.parent
    own = room if isinstance(room, Path) else rooms / room / "templates"
    found = Environment(
        autoescape=autoescape,
        keep_trailing_newline=True,
        loader=FileSystemLoader([own, rooms / "report" / "templates"]),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    found.filters |= {
        "count": count,
        "file_name": lambda path: re.split(r"[/\\]", path.rstrip("/\\"))[-1],
        "md": lambda text: re.sub(r"([\\`*_\[\]<>|~&#])", r"\\\1", one_line(text)),
        "share": lambda number: f"{100.0 * min(max(number, 0.0), 1.0):.1f}",
        "svg": _svg,
    }
    return found


def _svg(figure: Figure, name: str, about: str) -> str:
    """Return a figure as an SVG element that templates do not escape."""
    from markupsafe import Markup

    return Markup(as_svg(figure, name, about))


# Tables -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """A cell of a table: ``text``, and how it is shown.

    ``small`` is small print, on a line of its own if ``below``.  A page draws a
    ``span`` (low end, high end and mean) or a ``share`` as a bar, all from 0 to 1.  A
    ``mark`` stands before the text, on a page by the style sheet; ``style`` is a class
    of the style sheet.
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
