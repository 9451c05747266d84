"""Names in any script in pictures: fonts that are there, and one note where none is."""

import io
import logging
import warnings

import numpy as np
import pytest
from matplotlib import font_manager

from variegate.report import figures
from variegate.report.figures import as_svg, find_font_families, new_figure, to_png

#: Of a script that no font can have: it is private.
UNKNOWN = "\U0010ff00\U0010ff01"


@pytest.fixture(autouse=True)
def untold(monkeypatch):
    monkeypatch.setattr(figures, "_noted", set())


def charmap(name):
    path = font_manager.findfont(name, fallback_to_default=False)
    return set(map(chr, font_manager.get_font(path).get_charmap()))


def only_elsewhere():
    """Return a letter that the usual font lacks, and one that comes with it has.

    A mark that stands on no letter has no width, and Matplotlib may draw nothing of it.
    """
    usual = charmap("DejaVu Sans")
    found = sorted(charmap("STIXGeneral") - usual)
    return next(character for character in found if character.isalpha())


def labelled(text):
    figure, (axes,) = new_figure(2, 2)
    axes.set_xlabel(text)
    return figure


def test_fonts_that_have_the_characters_are_added():
    character = only_elsewhere()
    families, lacking = find_font_families(frozenset({"a", "ω", character}))
    assert families[0] == "DejaVu Sans"
    assert len(families) == 2
    assert character in charmap(families[1])
    assert lacking == frozenset()
    assert find_font_families(frozenset("aω")) == (("DejaVu Sans",), frozenset())


def test_what_another_font_has_is_drawn(caplog):
    from PIL import Image

    def pixels(text):
        with Image.open(io.BytesIO(to_png(labelled(text)))) as image:
            return np.array(image)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn = pixels(only_elsewhere())
    assert caplog.records == []
    # No box, and not nothing.
    assert not np.array_equal(drawn, pixels(""))
    assert not np.array_equal(drawn, pixels(UNKNOWN[0]))


def test_what_no_font_has_is_noted_once_and_never_warned_of(caplog, tmp_path):
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING, "variegate"):
        warnings.simplefilter("error")
        labelled(UNKNOWN).savefig(tmp_path / "a.png")
        to_png(labelled(UNKNOWN))
    assert len(caplog.records) == 1
    assert "no font of this machine has the characters" in caplog.text
    assert UNKNOWN in caplog.text


def test_pages_have_fonts_of_their_own(caplog):
    assert UNKNOWN in as_svg(labelled(UNKNOWN), "name", "about")
    assert caplog.records == []
