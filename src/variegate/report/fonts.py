"""Fonts for names in any script, as far as there are some on the machine.

matplotlib draws with one font and warns of every character that it lacks.  Here the
fonts that have those characters are added behind the first one, and of what no font has
one note is logged.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["families_for", "figure_class"]

_LOG = logging.getLogger("variegate")

#: Characters that have been told of already.
_told: set[str] = set()


@lru_cache(maxsize=1)
def figure_class() -> type[Figure]:
    """Return figures that look for fonts when they are drawn, and never warn of any."""
    from matplotlib.figure import Figure

    class AnyScriptFigure(Figure):
        """A figure whose texts may be in any script."""

        def draw(self, renderer: Any) -> None:
            """Draw with fonts that have the characters of all texts."""
            _set_fonts(self)
            with _without_glyph_warnings():
                super().draw(renderer)

        def savefig(self, *arguments: Any, **options: Any) -> None:
            """Save it, likewise."""
            lacking = _set_fonts(self)
            file = str(arguments[0]) if arguments else ""
            # Text of an SVG is drawn by whoever shows it, with fonts of its own.
            if not (options.get("format") or file).endswith("svg"):
                _tell_once(lacking)
            with _without_glyph_warnings():
                super().savefig(*arguments, **options)

    return AnyScriptFigure


def _set_fonts(figure: Figure) -> frozenset[str]:
    """Give texts the fonts they need, and return the characters that none has."""
    from matplotlib.text import Text

    texts = [text for text in figure.findobj(Text) if isinstance(text, Text)]
    wanted = {c for text in texts for c in text.get_text() if ord(c) > 0x7F}
    if not wanted:
        return frozenset()
    families, lacking = families_for(frozenset(wanted))
    if len(families) > 1:
        for text in texts:
            text.set_fontfamily(list(families))
    return lacking


def _tell_once(lacking: frozenset[str]) -> None:
    new = sorted(lacking - _told)
    if new:
        _told.update(new)
        _LOG.warning(
            "variegate: note: no font of this machine has the characters %s: pictures "
            "show boxes in their place. A font such as Noto Sans CJK has many; pages "
            "need none",
            "".join(new[:8]),
        )


@lru_cache(maxsize=32)
def families_for(wanted: frozenset[str]) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return families of fonts that have characters, and those that none has.

    The first is the one that is drawn with anyway; each of the others has the most of
    what those before it lack.
    """
    from matplotlib import font_manager

    usual = font_manager.FontProperties()
    path = font_manager.findfont(usual)
    families = [font_manager.get_font(path).family_name]
    lacking = wanted - _characters(path)
    others = {
        entry.name: entry.fname
        for entry in font_manager.fontManager.ttflist
        if entry.style == "normal"
        and entry.weight in (400, "normal", "regular")
        # Has a box for every script, and no letters.
        and not entry.name.startswith("Last Resort")
    }
    while lacking and others:
        counts = {name: len(lacking & _characters(f)) for name, f in others.items()}
        best = max(counts, key=lambda name: counts[name])
        if not counts[best]:
            break
        families.append(best)
        lacking -= _characters(others.pop(best))
    return tuple(families), frozenset(lacking)


@lru_cache(maxsize=1024)
def _characters(path: str) -> frozenset[str]:
    """Return the characters that a font has, none where it cannot be read."""
    from matplotlib import font_manager

    try:
        return frozenset(map(chr, font_manager.get_font(path).get_charmap()))
    except (OSError, RuntimeError, ValueError):
        return frozenset()


@contextmanager
def _without_glyph_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not sup")
        yield
