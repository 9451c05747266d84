"""The look that all figures share; matplotlib is imported only when one is drawn.

matplotlib draws with one font and warns of every character missing from it.  Here the
machine's fonts with these characters are added as fallbacks, and characters that no
font has are logged once.
"""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from variegate._install import explain_missing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LOG = logging.getLogger("variegate")

#: Colours that people with colour blindness can tell apart (Okabe and Ito).
COLOURS = {"lme": "#0072B2", "mle": "#D55E00", "oracle": "#333333"}

#: Missing characters that were logged before.
_noted: set[str] = set()


def new_figure(
    width: float = 5.6, height: float | Sequence[float] = 3.8, panels: int = 1
) -> tuple[Figure, list[Axes]]:
    """Return a figure and a list of its axes, one for each of ``panels``.

    Sizes are in inches.  Panels are beside each other in a figure of one height; with a
    sequence of heights, one for each panel, they are below each other.
    """
    with explain_missing("figures need matplotlib", "plot"):
        new = _figure_class()
    heights = height if isinstance(height, Sequence) else [height]
    figure = new(figsize=(width, sum(heights)), layout="constrained")
    shape = (1, panels) if len(heights) == 1 else (panels, 1)
    row = list(figure.subplots(*shape, height_ratios=heights, squeeze=False).flat)
    for axes in row:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#dddddd", linewidth=0.8)
        axes.set_axisbelow(True)
    return figure, row


def to_png(figure: Figure) -> bytes:
    """Return the figure as the bytes of a PNG file, with 160 pixels an inch."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=160)
    return buffer.getvalue()


def as_svg(figure: Figure, name: str, about: str) -> str:
    """Return the figure as an SVG element of an HTML page.

    Text stays text, in the font of the page, whose style sheet also gives the colours
    for light and dark.  Identifiers are made from ``name``, unique in the page;
    ``about`` is the text for screen readers.
    """
    import matplotlib as mpl

    buffer = io.BytesIO()
    no_metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata=no_metadata, transparent=True)
    root = ElementTree.fromstring(buffer.getvalue())
    for element in root.iter():
        # Elements of a page have no namespaces.
        element.tag = element.tag.rpartition("}")[2]
        element.attrib = {
            key.rpartition("}")[2]: value for key, value in element.items()
        }
        if element.tag == "g":
            # Groups have the same names in all figures, and nothing refers to them.
            element.attrib.pop("id", None)
    width, height = (72.0 * inches for inches in figure.get_size_inches())
    root.attrib = {
        "class": "figure",
        "viewBox": f"0 0 {width:g} {height:g}",
        "role": "img",
        "style": f"max-width: {width * 96.0 / 72.0:.0f}px",
        "aria-label": about,
    }
    return ElementTree.tostring(root, encoding="unicode")


# Fonts --------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _figure_class() -> type[Figure]:
    """Return the class of figures with texts in any script, made when first needed."""
    from matplotlib.figure import Figure

    class AnyScriptFigure(Figure):
        """A figure that looks for fonts when it is drawn, and never warns of any."""

        def draw(self, renderer: Any) -> None:
            """Draw with fonts that have the characters of all texts."""
            _set_fonts(self)
            with _without_glyph_warnings():
                super().draw(renderer)

        def savefig(self, *arguments: Any, **options: Any) -> None:
            """Save with these fonts; log missing characters, except of an SVG."""
            lacking = _set_fonts(self)
            file = str(arguments[0]) if arguments else ""
            # A viewer draws the text of an SVG, with fonts of its own.
            if not (options.get("format") or file).endswith("svg"):
                _warn_once_of_missing(lacking)
            with _without_glyph_warnings():
                super().savefig(*arguments, **options)

    return AnyScriptFigure


def _set_fonts(figure: Figure) -> frozenset[str]:
    """Set the fonts of all texts in place; return the characters that no font has."""
    from matplotlib.text import Text

    texts = [text for text in figure.findobj(Text) if isinstance(text, Text)]
    wanted = {c for text in texts for c in text.get_text() if ord(c) > 0x7F}
    if not wanted:
        return frozenset()
    families, lacking = find_font_families(frozenset(wanted))
    if len(families) > 1:
        for text in texts:
            text.set_fontfamily(list(families))
    return lacking


def _warn_once_of_missing(lacking: frozenset[str]) -> None:
    """Log the characters in ``lacking``, each once in this process."""
    new = sorted(lacking - _noted)
    if new:
        _noted.update(new)
        _LOG.warning(
            "variegate: note: no font of this machine has the characters %s: pictures "
            "show boxes in their place. A font such as Noto Sans CJK has many; pages "
            "need none",
            "".join(new[:8]),
        )


@lru_cache(maxsize=32)
def find_font_families(
    wanted: frozenset[str],
) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return font families for ``wanted`` characters, and the set that none has.

    The first family is matplotlib's default; each further one has the most of the
    characters that are missing so far.
    """
    from matplotlib import font_manager

    path = font_manager.findfont(font_manager.FontProperties())
    families = [font_manager.get_font(path).family_name]
    lacking = wanted - _font_characters(path)
    others = {
        entry.name: entry.fname
        for entry in font_manager.fontManager.ttflist
        if entry.style == "normal"
        and entry.weight in (400, "normal", "regular")
        # Has a box for every script, and no letters.
        and not entry.name.startswith("Last Resort")
    }
    while lacking and others:
        best = max(
            others, key=lambda name: len(lacking & _font_characters(others[name]))
        )
        found = lacking & _font_characters(others.pop(best))
        if not found:
            break
        families.append(best)
        lacking -= found
    return tuple(families), frozenset(lacking)


@lru_cache(maxsize=1024)
def _font_characters(path: str) -> frozenset[str]:
    """Return the characters of a font file; none if it cannot be read."""
    from matplotlib import font_manager

    try:
        return frozenset(map(chr, font_manager.get_font(path).get_charmap()))
    except (OSError, RuntimeError, ValueError):
        return frozenset()


@contextmanager
def _without_glyph_warnings() -> Iterator[None]:
    """Suppress matplotlib's warnings about missing characters, in a with block."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not sup")
        yield
