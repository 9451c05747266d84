"""Files that are made to be slow to read: families of texts of any size.

Each function of ``FAMILIES`` takes a number of bytes and returns a text of about that
size; families are grouped by the suffix of the file.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

Family = Callable[[int], str]

_PROSE = "The storm reached the coast at noon. Nobody was hurt in the village. "


def _repeat(piece: str, before: str = "", after: str = "") -> Family:
    """Return a family of a repeated piece, with fixed text before and after it."""
    return lambda n: before + piece * max(1, n // len(piece)) + after


def _wrap(opening: str, inner: str, closing: str, before: str = "") -> Family:
    """Return a family of nested text: openings, ``inner``, and as many closings."""

    def make(n: int) -> str:
        """Return nested text of about n bytes."""
        depth = max(1, n // len(opening + closing))
        return before + opening * depth + inner + closing * depth

    return make


def _numbered(piece: str, before: str = "", after: str = "") -> Family:
    """Return a family of pieces in which ``#`` is a number that counts up."""

    def make(n: int) -> str:
        """Return numbered pieces of about n bytes."""
        pieces, size = [], 0
        for number in count():
            pieces.append(piece.replace("#", str(number)))
            size += len(pieces[-1])
            if size >= n:
                return before + "".join(pieces) + after
        raise AssertionError

    return make


def _growing(mark: str, between: str) -> Family:
    """Return a family of runs of a mark, each longer than the last by one."""

    def make(n: int) -> str:
        """Return runs of about n bytes."""
        pieces, size = [], 0
        for length in count(1):
            pieces.append(mark * length + between)
            size += len(pieces[-1])
            if size >= n:
                return "".join(pieces)
        raise AssertionError

    return make


def _columns(n: int) -> str:
    """Return CSV of two rows with as many columns as fit."""
    names = [f"c{number}" for number in range(max(2, n // 9))]
    return ",".join(names) + "\n" + ",".join("1" for _ in names) + "\n"


def _keys_of_rows(n: int) -> str:
    """Return JSON lines whose every row has a key of its own, from 100 keys."""
    return "".join(f'{{"k{row % 100}": {row}}}\n' for row in range(n // 13))


def _underlines(n: int) -> str:
    """Return reStructuredText of nested sections with many styles of underline."""
    marks = "=-~^*+#\"'`"
    pieces = (f"Title\n{marks[k % 10] * 5}\n\nA sentence.\n\n" for k in range(n // 26))
    return "".join(pieces) or "Title"


def _grid(n: int) -> str:
    """Return a reStructuredText grid table of about n bytes."""
    side = max(1, int((n / 8) ** 0.5))
    rule = "+---" * side + "+\n"
    return rule + ("| a " * side + "|\n" + rule) * side


def _wide_table(n: int) -> str:
    """Return a Markdown table whose first rows are wide and others have one cell."""
    width = max(2, n // 16)
    return "|a" * width + "|\n" + "|-" * width + "|\n" + "|a\n" * width


_FROM = "From: a@example.org\nSubject: Rain\n"
_MIXED = "Content-Type: multipart/mixed; boundary=b\n\n"

FAMILIES: dict[str, dict[str, Family]] = {
    ".html": {
        "attributes": _numbered('a#="x" ', "<p ", f">{_PROSE}</p>"),
        "one attribute repeated": _repeat('a="x" ', "<p ", f">{_PROSE}</p>"),
        "elements with attributes": _repeat('<p a="1" b="2" c="3" d="4">x'),
        "long attribute": _repeat(" ", '<p style="display', f'">{_PROSE}</p>'),
        "nested blocks": _wrap("<div>", _PROSE, "</div>"),
        "nested inline": _wrap("<b>", _PROSE, "</b>"),
        "nested links": _wrap("<a href=x>", _PROSE, "</a>"),
        "nested main": _wrap("<main>", _PROSE, "</main>"),
        "nested role": _wrap("<div role=main>", _PROSE, "</div>"),
        "nested tables": _wrap("<table><tr><td>", _PROSE, "</td></tr></table>"),
        "nested lists": _wrap("<ul><li>", _PROSE, "</li></ul>"),
        "nested code": _wrap("<code>", _PROSE, "</code>"),
        "nests of code": _repeat("<code>" * 150 + "x" + "</code>" * 150),
        "deep nests of code": _repeat("<code>" * 1500 + "x" + "</code>" * 1500),
        "deep nests of tables": _repeat(
            "<table><tr><td>" * 400 + "x" + "</td></tr></table>" * 400
        ),
        "nests of bold": _repeat("<p>" + "<b>" * 150 + "x" + "</b>" * 150),
        "nests of divisions": _repeat("<div>" * 150 + _PROSE + "</div>" * 150),
        "one list": _repeat("<li>A short item.", "<ul>", "</ul>"),
        "one paragraph of bold": _repeat("<b>a</b> ", "<p>", "</p>"),
        "definitions": _repeat("<dt>a<dd>b", "<dl>", "</dl>"),
        "pictures": _repeat("<img src=a.png alt=a>"),
        "quotations": _repeat(f"<blockquote>{_PROSE}</blockquote>"),
        "main": _repeat(f"<main>{_PROSE}</main>"),
        "angle brackets": _repeat("<"),
        "ampersands": _repeat("&"),
        "entities": _repeat("&amp;"),
        "spaces": _repeat(" ", "<p>a", "b</p>"),
        "open paragraphs": _repeat("<p>"),
        "open bold": _repeat("<p><b><i>x"),
        "breaks": _repeat("a<br>"),
        "code": _repeat("<code>x</code> ", "<p>", "</p>"),
        "one paragraph": _repeat(_PROSE, "<p>", "</p>"),
        "paragraphs": _repeat(f"<p>{_PROSE}</p>"),
        "short paragraphs": _repeat("<p>x.</p>"),
        "links": _repeat("<a href=x>y</a> "),
        "list items": _repeat("<li>A short item."),
        "cells": _repeat("<td>a</td>", "<table><tr>", "</tr></table>"),
        "rows": _repeat("<tr><td>a</td></tr>", "<table>", "</table>"),
        "headings": _repeat("<h2>A heading</h2>"),
        "comments": _repeat("<!-- x -->"),
        "hidden": _repeat("<p hidden>x</p>"),
        "unknown elements": _numbered("<x#>y</x#>"),
        "json in script": _repeat('{"a":', "<script type=application/ld+json>"),
        "metas": _repeat('<meta name="author" content="a">', "<head>"),
        "dates": _repeat("2020-01-01 "),
    },
    ".md": {
        "brackets": _repeat("["),
        "closing brackets": _repeat("]"),
        "nested brackets": _wrap("[", "a", "]"),
        "nested links": _wrap("[", "a", "](b)"),
        "link starts": _repeat("[a]("),
        "bracket pairs": _repeat("[]"),
        "empty links": _repeat("[]()"),
        "two brackets": _repeat("[a][b] "),
        "lines of brackets": _repeat("[\n"),
        "link titles": _repeat('[a](b "'),
        "definition titles": _repeat('[a]: b "'),
        "footnote starts": _repeat("[^"),
        "link angles": _repeat("[a](<b"),
        "images": _repeat("![a"),
        "references": _numbered("[a#]: b\n"),
        "reference uses": _repeat("[a] ", "[a]: b\n\n"),
        "footnotes": _repeat("[^1]: A note.\n"),
        "stars": _repeat("*"),
        "open emphasis": _repeat("*a "),
        "mixed emphasis": _repeat("*a **b _c __d "),
        "closed emphasis": _repeat("a** *b "),
        "strikethrough": _repeat("~~a "),
        "growing backticks": _growing("`", "a"),
        "backticks": _repeat("`a ``b "),
        "nested quotes": _repeat("> ", "", "a"),
        "growing quotes": _growing(">", "a\n"),
        "nested lists": _repeat("- ", "", "a"),
        "list items": _repeat("- a\n"),
        "loose items": _repeat("- a\n\n\n"),
        "indented lists": lambda n: "".join(
            " " * (2 * depth) + "- a\n" for depth in range(int(n**0.5))
        ),
        "front matter": _repeat("---\n"),
        "open front matter": _repeat("a: b\n", "---\n"),
        "front matter of rules": _repeat("--- a\n", "---\n"),
        "front matter of spaces": _repeat("---" + " " * 60 + "a\n", "---\n"),
        "front matter of fields": _repeat("---\na: b\n"),
        "lists of front matter": _repeat("- a: b\n", "---\n", "---\n"),
        "plus front matter": _repeat("+++\n"),
        "spaces before a break": _repeat(" ", "---", "a\n"),
        "line of spaces": _repeat(" ", "a", "b"),
        "angle brackets": _repeat("<"),
        "open elements": _repeat("<a "),
        "open comments": _repeat("a <!-- b "),
        "open instructions": _repeat("a <? b "),
        "open sections": _repeat("a <![CDATA[ b "),
        "elements": _repeat("<b>"),
        "attributes": _numbered('a#="x" ', "a <p ", ">"),
        "ampersands": _repeat("&"),
        "escapes": _repeat("\\"),
        "wide table": _wide_table,
        "table bars": _repeat("|"),
        "table rows": _repeat("| a | b |\n", "| a | b |\n|---|---|\n"),
        "headings": _repeat("# A\n"),
        "underlined headings": _repeat("a\n=\n"),
        "one paragraph": _repeat(_PROSE),
        "lines of a paragraph": _repeat("a\n"),
        "paragraphs": _repeat(f"{_PROSE}\n\n"),
        "alerts": _repeat("> [!NOTE]\n"),
        "fences": _repeat("```\n"),
        "tabs": _repeat("\t"),
        "blank lines": _repeat("\n", "a", "b"),
    },
    ".txt": {
        "quotes": _repeat('"'),
        "spaced quotes": _repeat('" '),
        "apostrophes": _repeat("'"),
        "quotes after a stop": _repeat('."'),
        "closing quotes": _repeat("»"),
        "spaced closing quotes": _repeat(" »", "A."),
        "curly quotes": _repeat("“”"),
        "quoted words": _repeat('"a" '),
        "quoted sentences": _repeat('"A storm." '),
        "quotes and stops": _repeat('". '),
        "quotes at line ends": _repeat('."\n'),
        "lines of quotes": _repeat('"\n'),
        "quotes in words": _repeat('a"'),
        "apostrophes in words": _repeat("a'"),
        "double apostrophes": _repeat("'' "),
        "back quotes": _repeat("``"),
        "low quotes": _repeat("„“"),
        "quotes and brackets": _repeat('("'),
        "full stops": _repeat("."),
        "spaced full stops": _repeat(". "),
        "marks": _repeat("!?"),
        "initials": _repeat("A. "),
        "brackets": _repeat("("),
        "closing brackets": _repeat(")"),
        "brackets after a stop": _repeat(")", "A."),
        "open brackets and stops": _repeat("(A. b "),
        "spaces": _repeat(" ", "a", "b"),
        "tabs": _repeat("\t", "a", "b"),
        "blank lines": _repeat("\n", "a", "b"),
        "invisible": _repeat("\u200b", "a", "b"),
        "accents": _repeat("\u0301", "a"),
        "digits": _repeat("1"),
        "decimal numbers": _repeat("1.1."),
        "numbering": _repeat("1. "),
        "addresses": _repeat("a@b.c "),
        "open addresses": _repeat("a@"),
        "dotted names": _repeat("a."),
        "dashed words": _repeat("a-"),
        "links": _repeat("http://"),
        "one word": _repeat("a"),
        "one capital word": _repeat("A"),
        "underscores": _repeat("_"),
        "one line": _repeat(_PROSE),
        "lines": _repeat(f"{_PROSE}\n"),
        "wrapped lines": _repeat("the storm reached the coast and " * 2 + "the\n"),
        "short lines": _repeat("a\n"),
        "quoted lines": _repeat("> a\n"),
        "list items": _repeat("- a\n"),
        "fields": _repeat("Name: a\n"),
        "pages": _repeat("a\f"),
        "pages of lines": _repeat(f"{_PROSE}\n" * 40 + "\f"),
        "one wide page": _repeat("a    b    ", "", "\f"),
        "page of short lines": _repeat("a\n", "", "\f"),
        "page of gaps": _repeat("a" + " " * 60 + "b\n", "", "\f"),
        "unspaced": _repeat("雨"),
        "unspaced ends": _repeat("雨。"),
        "devanagari": _repeat("है."),
        "arabic": _repeat("مطر "),
        "hebrew": _repeat("גשם. "),
        "emoji": _repeat("🌧"),
        "gaps": _repeat("a" + " " * 7),
        "long line of gaps": _repeat("    a"),
        "et al": _repeat(" ", "et al.", "("),
        "copyright": _repeat("copyright "),
        "rules": _repeat("-"),
        "page numbers": _repeat("[Page 1]\n"),
        "log": _repeat("12:00:00 INFO started\n"),
        "semicolons": _repeat(";"),
        "commas": _repeat(","),
        "ellipses": _repeat("…"),
        "abbreviations": _repeat("e.g. "),
        "hyphens at ends": _repeat("a-\n"),
    },
    ".csv": {
        "columns": _columns,
        "rows": _repeat("1,2\n", "a,b\n"),
        "one column": _repeat("1\n", "a\n"),
        "quotes": _repeat('""', 'a,b\n"', '",1\n'),
        "open quote": _repeat("1,2\n", 'a,b\n"'),
        "commas": _repeat(","),
        "blank lines": _repeat("\n", "a,b\n"),
        "one cell": _repeat("x", "a,b\n", ",1\n"),
        "one name": _repeat("x", "", ",b\n1,2\n"),
        "vectors": _repeat('1,"[0.1, 0.2]"\n', "a,b\n"),
        "one vector": _repeat("0,", 'a,b\n1,"[', '0]"\n'),
        "nested lists": _wrap("[", "", "]", "a\n"),
        "nested vectors": lambda n: "a,b\n1," + _wrap("[", "", "]")(n) + "\n",
    },
    ".jsonl": {
        "rows": _repeat('{"a": 1, "b": "x"}\n'),
        "keys": lambda n: "{" + _numbered('"k#":1,')(n)[:-1] + "}\n",
        "a key a row": _keys_of_rows,
        "a new key a row": _numbered('{"k#": 1}\n'),
        "keys, then empty rows": lambda n: (
            _numbered('{"k#": 1}\n')(n // 50) + "{}\n" * (n // 3)
        ),
        "empty rows": _repeat("{}\n"),
        "blank lines": _repeat("\n", '{"a": 1}\n'),
        "one text": _repeat("x", '{"a": "', '"}\n'),
        "escapes": _repeat("\\u0041", '{"a": "', '"}\n'),
        "backslashes": _repeat("\\\\", '{"a": "', '"}\n'),
        "one number": _repeat("1", '{"a": ', "}\n"),
        "one list": _repeat("1,", '{"a": [', "1]}\n"),
        "lists of lists": _repeat("[1],", '{"a": [', "[1]]}\n"),
        "nested lists": lambda n: '{"a": ' + _wrap("[", "", "]")(n) + "}\n",
        "nested objects": _wrap('{"a":', "1", "}"),
        "open lists": _repeat("[", '{"a": '),
        "rows of nested lists": _repeat('{"a": ' + "[" * 40 + "]" * 40 + "}\n"),
    },
    ".eml": {
        "body": _repeat(f"{_PROSE}\n", f"{_FROM}\n"),
        "quoted lines": _repeat("> a\n", f"{_FROM}\n"),
        "signatures": _repeat("-- \n", f"{_FROM}\n"),
        "attributions": _repeat("On a\n", f"{_FROM}\n"),
        "attribution words": _repeat("wrote ", f"{_FROM}\nOn "),
        "attribution verbs": _repeat("schrieb ", f"{_FROM}\nOn "),
        "spaces": _repeat(" ", f"{_FROM}\nOn a", "b"),
        "dashes": _repeat("-", f"{_FROM}\n"),
        "dashes and spaces": _repeat("- ", f"{_FROM}\n-"),
        "dash and spaces": _repeat(" ", f"{_FROM}\n-", "b"),
        "blank lines": _repeat("\n", f"{_FROM}\na", "b"),
        "froms": _repeat("From: a\n", f"{_FROM}\n"),
        "diffs": _repeat("--- a\n", f"{_FROM}\n"),
        "diff statistics": _repeat(" a | b ", f"{_FROM}\n"),
        "salutation": _repeat("a ", f"{_FROM}\n"),
        "headers": _numbered("X-#: a\n", _FROM, "\nBody."),
        "folded subject": _repeat(" a\n", "From: a\nSubject: a\n", "\nBody."),
        "subject": _repeat("a", "From: a\nSubject: ", "\n\nBody."),
        "encoded subject": _repeat("=?utf-8?q?a?= ", "From: a\nSubject: ", "\n\nB."),
        "open encoded subject": _repeat("=?", "From: a\nSubject: ", "\n\nBody."),
        "type comments": _repeat("(", f"{_FROM}Content-Type: ", "\n\nBody."),
        "type comment": _repeat(
            "a ", f"{_FROM}Content-Type: text/plain (", ")\n\nBody."
        ),
        "type parameters": _numbered(
            "; a#=b", f"{_FROM}Content-Type: text/plain", "\n\nBody."
        ),
        "parameter sections": _numbered(
            "; a*#=b", f"{_FROM}Content-Type: text/plain", "\n\nBody."
        ),
        "semicolons": _repeat(";", f"{_FROM}Content-Type: text/plain", "\n\nBody."),
        "quotes in a type": _repeat(
            '"', f"{_FROM}Content-Type: text/plain; a=", "\n\nBody."
        ),
        "disposition": _repeat("(", f"{_FROM}Content-Disposition: ", "\n\nBody."),
        "encoding": _repeat("(", f"{_FROM}Content-Transfer-Encoding: ", "\n\nBody."),
        "addresses": _repeat("(a", "Subject: a\nFrom: ", "\n\nBody."),
        "identifiers": _repeat("<", f"{_FROM}Message-ID: ", "\n\nBody."),
        "types": _repeat("Content-Type: text/plain\n", _FROM, "\nBody."),
        "parts": _repeat("--b\n\na\n", f"{_FROM}{_MIXED}", "--b--\n"),
        "alternatives": _repeat(
            "--b\nContent-Type: text/html\n\na\n",
            f"{_FROM}Content-Type: multipart/alternative; boundary=b\n\n",
            "--b--\n",
        ),
        "related": _repeat(
            "--b\nContent-ID: <x>\n\na\n",
            f"{_FROM}Content-Type: multipart/related; boundary=b; start=y\n\n",
            "--b--\n",
        ),
        "nested parts": _numbered(
            "Content-Type: multipart/mixed; boundary=b#\n\n--b#\n", _FROM
        ),
        "nested messages": _repeat("Content-Type: message/rfc822\n\n", _FROM),
        "boundary": _repeat(
            "b", f"{_FROM}Content-Type: multipart/mixed; boundary=", "\n\n--b\n"
        ),
        "base64": _repeat("QQ==\n", f"{_FROM}Content-Transfer-Encoding: base64\n\n"),
        "quoted printable": _repeat(
            "=\n", f"{_FROM}Content-Transfer-Encoding: quoted-printable\n\n"
        ),
    },
    ".rst": {
        "stars": _repeat("*"),
        "open emphasis": _repeat("*a "),
        "open strong": _repeat("**a "),
        "open literals": _repeat("``a "),
        "open roles": _repeat("`a "),
        "open substitutions": _repeat("|a "),
        "substitutions": _repeat("|a| "),
        "closed emphasis": _repeat("*a* "),
        "roles": _repeat(":ref:`a` "),
        "unknown roles": _repeat(":x:`a <b>` "),
        "role prefixes": _repeat("a:", ":"),
        "angles in a role": _repeat("<", ":ref:`a ", "`"),
        "spaces in a role": _repeat(" ", ":ref:`a", "<`"),
        "references": _repeat("a_ "),
        "anonymous references": _repeat("`a`__ "),
        "footnote references": _repeat("[1]_ "),
        "targets": _numbered(".. _a#: b\n"),
        "same targets": _repeat(".. _a: b\n"),
        "inline targets": _repeat("_`a` "),
        "substitution definitions": _numbered(".. |a#| replace:: b\n"),
        "substitution doubling": _numbered(".. |a#| replace:: |a| |a|\n"),
        "footnotes": _repeat(".. [#] a\n"),
        "footnotes and references": _repeat(".. [#] a [#]_\n"),
        "citations": _numbered(".. [a#] b\n"),
        "directives": _repeat(".. note:: a\n"),
        "unknown directives": _repeat(".. a:: b\n"),
        "comments": _repeat(".. a\n"),
        "nested lists": _repeat("- ", "", "a"),
        "list items": _repeat("- a\n"),
        "numbered items": _repeat("#. a\n"),
        "option lists": _repeat("-a  b\n"),
        "field lists": _repeat(":a: b\n"),
        "definitions": _repeat("a\n  b\n"),
        "nested definitions": lambda n: "".join(
            " " * depth + "a\n" for depth in range(int((2 * n) ** 0.5))
        ),
        "nested quotes": lambda n: "".join(
            " " * depth + "a\n\n" for depth in range(int((2 * n) ** 0.5))
        ),
        "line blocks": _repeat("| a\n"),
        "sections": _underlines,
        "same sections": _repeat("Title\n=====\n\n"),
        "rules": _repeat("----\n\n"),
        "one rule": _repeat("="),
        "grid table": _grid,
        "grid rules": _repeat("+--", "", "+\n"),
        "simple table": _repeat("a  b\n", "=  =\n", "=  =\n"),
        "wide simple table": lambda n: "= " * (n // 4) + "\n" + "a " * (n // 4) + "\n",
        "one paragraph": _repeat(_PROSE),
        "paragraphs": _repeat(f"{_PROSE}\n\n"),
        "lines": _repeat("a\n"),
        "blank lines": _repeat("\n", "a", "b"),
        "tabs": _repeat("\t", "a", "b"),
        "links": _repeat("http://a "),
        "link starts": _repeat("http://"),
        "addresses": _repeat("a@b.c "),
        "open addresses": _repeat("a@"),
        "quotes": _repeat('"'),
        "escapes": _repeat("\\"),
        "colons": _repeat(":"),
        "literal blocks": _repeat("a::\n\n b\n\n"),
        "doctests": _repeat(">>> a\n"),
    },
}
