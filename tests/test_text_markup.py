"""HTML and Markdown: what is main content, what is a heading, what is no sentence."""

import re
import sys

import pytest

from variegate._install import install_command
from variegate.text.documents import Cluster
from variegate.text.markup import (
    HTML_READER,
    html_document,
    markdown_document,
    page_document,
)
from variegate.text.sentences import split_cluster

#: The parts of a page of an mdBook: menu, sidebar, help, content, code.
BOOK = """<!DOCTYPE html><html><head><title>Ownership - The Book</title>
<style>p {color: red}</style></head><body>
<div id="mdbook-help-container"><div id="mdbook-help-popup">
<h2>Keyboard shortcuts</h2><p>Press <kbd>S</kbd> or <kbd>/</kbd> to search in the
book.</p><p>Press Esc to hide this help.</p></div></div>
<nav id="sidebar"><ol><li><a href="a.html">What Is Ownership?</a></li></ol></nav>
<dialog open><p>This site wants to store cookies.</p></dialog>
<div id="menu-bar"><h1 class="menu-title">The Book</h1></div>
<main>
<h1><a class="header" href="#o">What Is Ownership?</a></h1>
<p>Ownership is a set of rules that govern how a program manages memory. All programs
have to manage the way they use memory while running, and <code>drop. It</code> ends
their life.</p>
<p hidden>This paragraph is for nobody to see.</p>
<p style="display: none">Nor is this paragraph for anybody.</p>
<div aria-hidden="true">An icon speaks here.</div>
<p>For example, this code takes ownership:</p>
<pre><code>let s = String::from("hello"); // s is valid from here.</code></pre>
<p>then prints it, although nobody asked for it to be printed.</p>
<p>The memory is returned once <code><a href="c.html">the_variable</a>() &gt; 0</code>
that <a href="d.html">owns it</a><!-- ignore --> goes out of scope, and the compiler
checks that nobody uses it later.</p><p><tt>MAKE_MEM_DEFINED_IF_ADDRESSABLE.</tt></p>
<ul><li><a href="b.html">The first chapter of this book explains it.</a></li></ul>
<table><tr><td>stack</td><td>It is fast.</td></tr></table>
</main>
<footer><p>All rights are reserved by somebody.</p></footer>
<script>if (a < b) document.write("<p>no</p>")</script></body></html>"""

BODY = [
    "Ownership is a set of rules that govern how a program manages memory.",
    "All programs have to manage the way they use memory while running, and drop. It "
    "ends their life.",
    "The memory is returned once the_variable() > 0 that owns it goes out of scope, "
    "and the compiler checks that nobody uses it later.",
]


def sentences(document, kind="body"):
    found = split_cluster(Cluster([document], language="english"))
    for one in found:
        assert document.text[one.start : one.end] == one.text
    return [one.plain for one in found if one.kind == kind]


def test_the_built_in_reader_takes_the_visible_text_of_main():
    document = html_document(BOOK)
    assert sentences(document) == BODY
    assert sentences(document, "headline") == ["What Is Ownership?"]
    for gone in (
        "Press",
        "cookies",
        "nobody to see",
        "anybody",
        "icon",
        "let s",
        "no<",
    ):
        assert gone not in document.text
    assert document.reader == HTML_READER


def test_the_extractor_takes_main_content_only():
    document = page_document(BOOK)
    assert document.reader.startswith("trafilatura ")
    assert sentences(document) == BODY
    assert sentences(document, "headline") == ["What Is Ownership?"]
    for gone in ("Press", "cookies", "let s", "rights"):
        assert gone not in document.text


@pytest.mark.parametrize("package", ["trafilatura", "lxml"])
def test_without_a_package_the_message_says_what_to_install(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    install = re.escape(install_command("text"))
    with pytest.raises(ImportError, match=f"HTML needs .*{install}"):
        page_document(BOOK)


def test_where_the_extractor_finds_nothing_the_reader_names_itself(monkeypatch):
    monkeypatch.setattr("trafilatura.extract", lambda *_, **__: None)
    document = page_document("<ul><li>Rain</li></ul>")
    assert document.text == "Rain"
    assert document.reader == f"{HTML_READER} (trafilatura found no text)"


def test_pictures_and_scripts_do_not_divide_a_sentence():
    page = "<p>Rain <svg><text>wet</text></svg>fell <script>x</script>in the north.</p>"
    assert html_document(page).text == "Rain fell in the north."


def test_unclosed_elements_hide_no_more_than_themselves():
    page = "<p hidden>Not this.<p>But this is read.<nav/><img class='menu'><p>And this."
    assert html_document(page).text == "But this is read.\n\nAnd this."


@pytest.mark.parametrize("page", ["", "<", "</p></div>", "<pre>x", "<p", "&#0;"])
def test_broken_pages_are_read_without_an_error(page):
    assert html_document(page).text.strip("<p&#0;\ufffd") == ""
    assert page_document(page).text.strip("<p&#0;\ufffd") == ""


MARKDOWN = """+++
title = "no text"
+++
# The `url` module

[![Build](badge.svg)](https://example.org) [![Cov](c.svg)](https://example.org)

* [Class: URL](#class-url)
  * [Properties of the class are here.](#properties)

The `url.parse()` method and `fs. Read` take a string. `x` is another name of `y`. It
is ~~not~~ used.[^1]

#### urlSearchParams.has(name[, value])

> [!NOTE]
> Names are compared without regard to case.

* aduh95 - **Antoine** <<someone@example.org>> (he/him)
* Ann Other <<ann@example.org>>
* Returns the value of the first pair, if there is one.
* `{string}`

| name | meaning |
| ---- | ------- |
| a    | It is a name. |

```js
const text = "This is not a sentence of the body.";
```

    This is an indented block of code, too.

<!-- YAML
added: It was added in this version. -->

[^1]: Nobody knows who wrote this footnote.
"""


def test_markdown_sentences():
    document = markdown_document(MARKDOWN)
    assert sentences(document) == [
        "The url.parse() method and fs. Read take a string.",
        "x is another name of y.",
        "It is used.",
        "Names are compared without regard to case.",
        "Returns the value of the first pair, if there is one.",
        "Nobody knows who wrote this footnote.",
    ]
    headings = ["The url module", "urlSearchParams.has(name[, value])"]
    assert sentences(document, "headline") == headings
    assert document.reader == "markdown-it-py"


def test_notes_without_full_stops_are_still_candidates():
    from variegate.text.cluster_view import ClusterView

    document = markdown_document(
        "# Notes\n\n* rain in the north\n* trains were very late\n"
    )
    view = ClusterView.from_cluster(Cluster([document]))
    assert "rain in the north" in view.texts
    assert "trains were very late" in view.texts
