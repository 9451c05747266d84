"""What all reports share: pages from templates, Markdown, tables for a terminal."""

import sys
from importlib.resources import files

import pytest

from variegate.report import page
from variegate.report.document import (
    Cell,
    Code,
    Column,
    Document,
    Facts,
    Folded,
    Part,
    Picture,
    Row,
    Sheet,
    Words,
)
from variegate.report.figures import new_figure
from variegate.report.markdown import markdown
from variegate.report.page import render
from variegate.report.terminal import columns, ruled_columns

NASTY = "<script>x</script> & \"q\" 'a' | *b* \x07\ud83d"
ESCAPED = (
    "&lt;script&gt;x&lt;/script&gt; &amp; &#34;q&#34; &#39;a&#39; | *b* \ufffd\ufffd"
)


def figure():
    drawn, (axes,) = new_figure()
    axes.plot([0, 1], [0, 1], "o-", color="#0072b2", label="<b>&")
    axes.legend()
    return drawn


def nasty_document():
    sheet = Sheet(
        NASTY,
        [Column(NASTY, "head"), Column(NASTY), Column(NASTY, "drawn")],
        [Row([Cell(NASTY), Cell(NASTY, NASTY, mark=NASTY), Cell(span=(0, 1, 0.5))])],
    )
    blocks = [
        Words(NASTY),
        Words(NASTY, is_note=True),
        Facts({NASTY: NASTY}),
        sheet,
        Picture("one", figure(), "about", NASTY),
        Picture("two", figure(), "about"),
        Folded(NASTY, sheet, [Words(NASTY)]),
        Part(NASTY, [Words(NASTY)], [NASTY]),
    ]
    return Document(NASTY, NASTY, {NASTY: NASTY}, [Part(NASTY, blocks)])


@pytest.mark.parametrize("room", ["tables", "text", "video"])
def test_facts_are_escaped_on_every_page(room):
    # All pages write their facts by the same template.
    shown = render(room, "page.html", title=NASTY, facts={NASTY: NASTY})
    assert f"<title>{ESCAPED}</title>" in shown
    assert f"<dt>{ESCAPED}</dt><dd>{ESCAPED}</dd>" in shown
    assert "<script" not in shown
    shown.encode("utf-8")


def test_nothing_in_a_document_becomes_markup():
    document = nasty_document()
    shown = render("tables", "document.html", **vars(document))
    assert "<script" not in shown
    # what is above the blocks, and all of them
    assert shown.count(ESCAPED) == 6 + 23
    assert "\x07" not in shown
    words, pictures = markdown(document)
    assert "<script" not in words.replace("\\<", "")
    assert set(pictures) == {"one.png", "two.png"}
    # a column that is drawn is for a page only
    assert "| --- | --- |\n" in words


def test_commands_stay_as_they_are():
    document = Document("a", "b", {}, [Part("c", [Code("x < y")])])
    assert "<pre>x &lt; y</pre>" in render("tables", "document.html", **vars(document))
    assert markdown(document)[0] == "# a\n\nb\n\n## c\n\n```\nx < y\n```\n"


def test_a_template_needs_all_its_facts():
    from jinja2 import UndefinedError

    with pytest.raises(UndefinedError, match="title"):
        render("text", "page.html", facts={})


@pytest.mark.parametrize("room", ["tables", "text", "video"])
def test_what_to_install_for_pages(room, monkeypatch):
    page._environment.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=rf"pip install 'variegate\[{room}\]'"):
        render(room, "page.html", title="a", facts={})


def test_what_to_install_for_tables_on_a_terminal(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "rich"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"pip install 'variegate\[cli\]'"):
        columns([("a", "b")])


def test_templates_and_the_style_sheet_are_in_the_package():
    for room, name in (
        ("report", "style.css"),
        ("report", "document.html"),
        ("text", "summary.html"),
        ("video", "keyframes.html"),
    ):
        assert files(f"variegate.{room}").joinpath("templates", name).is_file()


def test_columns_are_plain_text_whatever_the_terminal(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "10")
    rows = [("name", "n", "what"), ("種類", "1,000", "[b]a :smile:[/b]"), ("", "5", "")]
    assert columns(rows, numbers=[1], indent=2).splitlines() == [
        "  name      n  what",
        "  種類  1,000  [b]a :smile:[/b]",
        "            5",
    ]
    assert columns([]) == ""
    assert columns([("x" * 500, "y")]) == "x" * 500 + "  y"


def test_columns_with_lines_between_the_rows():
    table = ruled_columns(("head", "b"), [("one two three", "four")], widths=(7, 4))
    assert table.splitlines() == [
        "head     b",
        "───────  ────",
        "one two  four",
        "three",
        "───────  ────",
    ]
