"""Readers on files put together at random from the pieces of their formats.

Every file is read, or refused by a ValueError that names it.
"""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from variegate.tables.reading import TableFile
from variegate.text import Cluster
from variegate.text.readers import read_documents
from variegate.text.sentences import split_cluster

PROSE = [
    "The storm came.",
    " Two houses",
    "were lost. ",
    "a",
    "A. ",
    "1.",
    "\n",
    "\n\n",
]
MARKS = [
    *'"“»)(.!?…-–_*`|~^#:;,<>&@/\\=+',
    "\t",
    "    ",
    "\u200b",
    "\u0301",
    "雨。",
    "है.",
]

#: Pieces of each format, beside prose and marks.
PIECES = {
    ".txt": [
        "- ",
        "> ",
        "\f",
        "1) ",
        "Name: ",
        "http://a.b",
        "[Page 1]\n",
        "\r",
        "\x85",
    ],
    ".md": [
        "# ",
        "---\n",
        "```\n",
        "[a](b)",
        "![",
        "](",
        "| a |\n",
        "|-|\n",
        "<b>",
        "[^1]",
    ],
    ".html": [
        *("<p>", "</p>", "<div role=main>", "</div>", "<main>", "<code>", "</code>"),
        *("<table>", "<tr>", "<td>", "</table>", "<a href=b>", "</a>", "<li>", "<br>"),
        *(
            "<h1>",
            "<script>",
            "</script>",
            "<!--",
            "-->",
            "<p hidden>",
            "&amp;",
            "&#0;",
        ),
        *("<pre>", "</pre>", "<svg>", "<b a='>'>", "<![CDATA[", "<?x", "</html>"),
    ],
    ".rst": [
        *(
            "=====\n",
            "-----\n",
            ".. note:: ",
            ".. _a: b\n",
            "::\n\n  ",
            "``a``",
            ":ref:`a`",
        ),
        *(
            "[1]_",
            ".. [1] ",
            "|a|",
            ".. |a| replace:: |a|\n",
            "+---+\n",
            "| a |\n",
            "`_",
        ),
        *("- ", "  ", "#. ", ":a: b\n", ">>> ", ".. include:: /etc/passwd\n", "a__ "),
    ],
    ".eml": [
        *(
            "From: a\n",
            "Subject: b\n",
            "Content-Type: text/html\n",
            "> ",
            "-- \n",
            "--b\n",
        ),
        *(
            "Content-Type: multipart/mixed; boundary=b\n\n",
            "--b--\n",
            "=?utf-8?q?=41?=",
        ),
        *("Content-Transfer-Encoding: base64\n", "QQ==", "=41", "On a wrote:\n"),
        *("Content-Type: message/rfc822\n\n", "; charset=x", "diff --git a b\n"),
    ],
    ".csv": ["a,b\n", "1,2\n", '"', '""', ",", '"[1, 2]"', "\r\n", "\ufeff", "nan"],
    ".jsonl": [
        *(
            '{"a": ',
            "}\n",
            "[",
            "]",
            "1",
            "null",
            '"b"',
            ", ",
            '"c": ',
            "1e999",
            "\\u0000",
        ),
        *('{"a": 1}\n', '{"a": "2020-01-01"}\n', '{"a": [1, [2]]}\n', "{}\n"),
    ],
}


def nest(pieces):
    """Return a strategy of texts: pieces in a row, repeated, and inside of pieces."""
    one = st.sampled_from(pieces)
    return st.recursive(
        st.lists(one, max_size=8).map("".join),
        lambda inner: (
            st.tuples(one, inner, one).map("".join)
            | st.lists(inner, max_size=4).map("".join)
            | st.tuples(inner, st.sampled_from([2, 20, 150])).map(
                lambda pair: pair[0][:40] * pair[1]
            )
        ),
        max_leaves=8,
    )


def read(path):
    """Read a file to its end, and check that offsets are those of the texts."""
    if path.suffix in (".csv", ".jsonl"):
        for batch in TableFile(path).batches():
            batch.validate(full=True)
        return
    documents = read_documents(path)
    for document in documents:
        ends = [0]
        for block in document.blocks or ():
            assert ends[-1] <= block.start < block.end <= len(document.text)
            ends.append(block.end)
    for one in split_cluster(Cluster(documents, language="english")):
        assert one.text == documents[one.document].text[one.start : one.end] != ""


def refusal_of(path):
    """Return the error of a file that cannot be read, or else its path."""
    try:
        read(path)
    except ValueError as error:
        return str(error)
    return str(path)


@pytest.mark.fuzz
@pytest.mark.parametrize("suffix", PIECES)
def test_files_of_random_structure_are_read_or_refused(suffix, tmp_path):
    path = tmp_path / f"a{suffix}"
    pieces = [*PIECES[suffix], *PIECES[suffix], *PROSE, *MARKS]

    @settings(
        max_examples=120,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(nest(pieces))
    def check(text):
        path.write_text(text, encoding="utf-8", newline="")
        assert str(path) in refusal_of(path)

    check()


@pytest.mark.fuzz
@pytest.mark.parametrize("suffix", PIECES)
def test_files_of_random_bytes_are_read_or_refused(suffix, tmp_path):
    path = tmp_path / f"a{suffix}"

    @settings(max_examples=60, deadline=None)
    @given(st.binary(max_size=300))
    def check(data):
        path.write_bytes(data)
        assert str(path) in refusal_of(path)

    check()
