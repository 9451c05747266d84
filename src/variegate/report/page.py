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


def render(package: str, template: str, **facts: Any) -> str:
    """Return an HTML page from a template and the escaped ``facts`` that it shows.

    ``package`` is a subpackage of variegate, such as "text".  ``template`` is a file in
    its folder ``templates`` or, if not there, in ``variegate/report/templates``.
    """
    found = template_environment(package, autoescape=True).get_template(template)
    page = found.render(facts, pieces="pieces.html")
    return _UNWRITABLE.sub("\ufffd", page)


def render_markdown(package: str, template: str, **facts: Any) -> str:
    """Return Markdown from a template, found as by :func:`render`, and ``facts``.

    The template itself escapes them.  Runs of blank lines become one.
    """
    found = template_environment(package, autoescape=False).get_template(template)
    text = found.render(facts, pieces="pieces.md")
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


@lru_cache
def template_environment(
    package: str | Path, autoescape: bool, extra: str = ""
) -> Environment:
    """Return the Jinja2 environment of a subpackage's templates, or of a folder's.

    ``package`` is the name of the one or the path of the other; ``extra`` is the pip
    extra that installs Jinja2, by default named as the package.
    """
    with explain_missing("reports need Jinja2", str(extra or package)):
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    root = Path(__file__).parent.parent
    own = package if isinstance(package, Path) else root / package / "templates"
    found = Environment(
        autoescape=autoescape,
        keep_trailing_newline=True,
        loader=FileSystemLoader([own, root / "report" / "templates"]),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    found.filters |= {
        "count": count,
        "file_name": lambda path: re.split(r"[/\\]", path.rstrip("/\\"))[-1],
        "md": lambda text: re.sub(r"([\\`*_\[\]<>|~&#])", r"\\\1", one_line(text)),
        "share": lambda number: f"{100.0 * min(max(number, 0.0), 1.0):.1f}",
        "svg": _as_markup,
    }
    return found


def _as_markup(figure: Figure, name: str, about: str) -> str:
    """Return the text of :func:`as_svg` as one that templates do not escape."""
    from markupsafe import Markup

    return Markup(as_svg(figure, name, about))


# Tables -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """A cell of a table: ``text``, and how it is shown.

    ``small`` is small print, on a line of its own if ``below``.  A page draws a
    ``span`` (low end, high end and mean) or a ``share`` as a bar, all from 0 to 1.  A
    ``mark`` stands before the text, on a page by the style sheet; ``style`` is a class
    of the style sheet.  ``str`` is the text in Markdown, without bars.
    """

    text: str = ""
    small: str = ""
    below: bool = False
    span: tuple[float, float, float] | None = None
    share: float | None = None
    mark: str = ""
    style: str = ""

    def __str__(self) -> str:
        """Return the cell as text for Markdown, without bars."""
        small = f"({self.small})" if self.below else self.small
        return " ".join(part for part in (self.mark, self.text, small) if part)


@dataclass(frozen=True)
class Row:
    """Cells beside each other; ``style`` is a class of the style sheet."""

    cells: Sequence[Cell | str]
    style: str = ""
