"""What all reports share: pages from templates, Markdown, tables for a terminal."""

import re
import sys
from importlib.resources import files

import pytest

from variegate._install import install_command
from variegate.report import page
from variegate.report.figures import new_figure
from variegate.report.page import Cell, Row, render, render_markdown
from variegate.report.terminal import align_columns

NASTY = "<script>x</script> & \"q\" 'a' | *b* \x07\ud83d"
ESCAPED = (
    "&lt;script&gt;x&lt;/script&gt; &amp; &#34;q&#34; &#39;a&#39; | *b* \ufffd\ufffd"
)


def figure():
    drawn, (axes,) = new_figure()
    axes.plot([0, 1], [0, 1], "o-", color="#0072b2", label="<b>&")
    axes.legend()
    return drawn


#: Every kind of piece, with what must not become markup wherever it can be.
PIECES = """
{% import pieces as show with context %}
{% set heads = [(x, "head"), (x, "cell"), (x, "drawn")] %}
{% call show.section(x) %}
{{ show.words(x) }}
{{ show.words(x, "note") }}
{{ show.fact_list({x: x}) }}
{{ show.table(x, heads, rows) }}
{{ show.folded(x, heads, rows, rows, x) }}
{{ show.picture(figures, "one", "about", x) }}
{{ show.picture(figures, "two", "about") }}
{% call show.group(x, [x]) %}{{ show.words(x) }}{% endcall %}
{{ show.code("x < y") }}
{% endcall %}
"""


@pytest.fixture
def pieces(tmp_path):
    """Return a function that renders PIECES as a page or as Markdown."""
    (tmp_path / "contents.jinja").write_text(PIECES)
    facts = {
        "title": NASTY,
        "verdict": [NASTY],
        "headings": [],
        "facts": {NASTY: NASTY},
        "x": NASTY,
        "rows": [Row([NASTY, Cell(NASTY, NASTY, mark="*"), Cell(span=(0, 1, 0.5))])],
        "figures": {"one": figure(), "two": figure()},
    }

    def rendered(function, template):
        environment = page.template_environment("pieces", autoescape=function is render)
        environment.loader.searchpath.insert(0, str(tmp_path))
        return function("pieces", template, **facts)

    page.template_environment.cache_clear()
    yield rendered
    page.template_environment.cache_clear()


@pytest.mark.parametrize("room", ["tables", "text", "video"])
def test_facts_are_escaped_on_every_page(room):
    # All pages write their facts by the same template.
    shown = render(room, "page.html", title=NASTY, facts={NASTY: NASTY})
    assert f"<title>{ESCAPED}</title>" in shown
    assert f"<dt>{ESCAPED}</dt><dd>{ESCAPED}</dd>" in shown
    assert "<script" not in shown
    shown.encode("utf-8")


def test_nothing_becomes_markup(pieces):
    shown = pieces(render, "report.html")
    assert "<script" not in shown
    assert "\x07" not in shown
    # twice as a title, the verdict, two in the facts, in the contents, and in PIECES
    assert shown.count(ESCAPED) == 6 + 24
    assert "<pre>x &lt; y</pre>" in shown
    ids = re.findall(r' id="([^"]*)"', shown)
    assert len(ids) == len(set(ids)) > 2
    assert set(re.findall(r"[\"(]#([\w-]+)[)\"]", shown)) <= set(ids)


def test_markdown_shows_everything_as_it_is(pieces):
    words = pieces(render_markdown, "report.md")
    assert "<script" not in words.replace("\\<", "")
    # A column that is drawn is for a page only, and marks are written out.
    cell = r"""\<script\>x\</script\> \& "q" 'a' \| \*b\*"""
    assert f"| {cell} | \\* {cell} {cell} |\n" in words
    assert words.count("| --- | --- |\n") == 2
    assert words.count("![about](") == 2
    assert "\n```\nx < y\n```\n" in words
    assert "\n\n\n" not in words


def test_a_template_needs_all_its_facts():
    from jinja2 import UndefinedError

    with pytest.raises(UndefinedError, match="title"):
        render("text", "page.html", facts={})


@pytest.mark.parametrize("room", ["tables", "text", "video"])
def test_what_to_install_for_pages(room, monkeypatch):
    page.template_environment.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=re.escape(install_command(room))):
        render(room, "page.html", title="a", facts={})


def test_what_to_install_for_tables_on_a_terminal(monkeypatch):
    for name in ("rich", "rich.cells"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=re.escape(install_command("cli"))):
        align_columns([("a", "b")])


def test_templates_and_the_style_sheet_are_in_the_package():
    for room, name in (
        ("report", "style.css"),
        ("report", "report.md"),
        ("tables", "contents.jinja"),
        ("text", "summary.html"),
        ("video", "keyframes.html"),
    ):
        assert files(f"variegate.{room}").joinpath("templates", name).is_file()


def test_columns_are_plain_text_whatever_the_terminal(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "10")
    rows = [("name", "n", "what"), ("種類", "1,000", "[b]a :smile:[/b]"), ("", "5", "")]
    assert align_columns(rows, numbers=[1], indent=2).splitlines() == [
        "  name      n  what",
        "  種類  1,000  [b]a :smile:[/b]",
        "            5",
    ]
    assert align_columns([]) == ""
    assert align_columns([("x" * 500, "y")]) == "x" * 500 + "  y"
