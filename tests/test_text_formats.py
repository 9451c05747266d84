"""ReStructuredText, e-mails, Word files, logs, and documents in two languages."""

import io
import json
import re
import sys
import zipfile
from email.message import EmailMessage

import pytest

from variegate._install import install_command
from variegate.text import Cluster, Document
from variegate.text.languages import in_other_language
from variegate.text.layout import lacks_prose
from variegate.text.readers import DOCUMENT_SUFFIXES, read_clusters, read_documents
from variegate.text.sentences import split_cluster


def read(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_documents(path)[0]


def sentences(document, kind="body"):
    found = split_cluster(Cluster((document,), language="english"))
    return [one.plain for one in found if one.kind == kind]


# reStructuredText -----------------------------------------------------------------

RST = """.. _top:

=========
The title
=========

:Author: Anna Alm wrote this page.

Use :func:`~os.path.join` or :meth:`read <io.read>`, and see :doc:`the guide </guide>`
for *more* of it [1]_. It follows ``a. B. c`` too\\ [Alm]_.

.. note:: Names are compared without regard to case.

.. versionadded:: 3.2
   This sentence is of a directive.

.. image:: a.png
   :alt: This text stands for a picture.

.. include:: /etc/hostname

.. figure:: b.png

   This caption has a full stop.

A *second* |unknown| paragraph ends in two colons::

    This is code, and not a sentence.

Heading two
-----------

- The first item is a sentence of its own.
- `One link <https://example.org>`_

term
   The definition of the term is a sentence.

===== =====
A row of a table is here.
===== =====

====  ============================
a     A cell of a table is here.
====  ============================

.. [1] This is a footnote.
.. [Alm] This is a citation.

.. This is a comment.

>>> print("This is a session.")
"""


def test_restructured_text(tmp_path):
    document = read(tmp_path, "a.rst", RST)
    assert sentences(document) == [
        "Use join or read, and see the guide for more of it.",
        "It follows a. B. c too.",
        "Names are compared without regard to case.",
        "The first item is a sentence of its own.",
        "The definition of the term is a sentence.",
    ]
    assert sentences(document, "headline") == ["The title", "Heading two"]
    for gone in ("Anna", "directive", "picture", "caption", "code", "cell", "footnote"):
        assert gone not in document.text
    assert document.reader == "docutils"


def test_roles_without_a_name_and_unknown_substitutions(tmp_path):
    text = """The |DBAPI|_ of :class:`.Ferry` takes `!str` and `~ferry.port()` as names.

The `name of a book` is kept as it is."""
    assert sentences(read(tmp_path, "a.rst", text)) == [
        "The DBAPI of Ferry takes str and port() as names.",
        "The name of a book is kept as it is.",
    ]


def test_restructured_text_without_its_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "docutils.core", None)
    with pytest.raises(ImportError, match=re.escape(install_command("text"))):
        read(tmp_path, "a.rst", "Text.")


def test_restructured_text_that_is_nested_too_deeply(tmp_path):
    source = "".join(f"{'  ' * depth}* a\n\n" for depth in range(200))
    with pytest.raises(ValueError, match=r"a\.rst: .*nested too deeply: save it as"):
        read(tmp_path, "a.rst", source)


@pytest.mark.parametrize(
    "text", ["A `b", "*a\n**\n", ":x:`", "====\n", ".. a::\n b\n\nc"]
)
def test_broken_restructured_text_is_read_without_an_error(tmp_path, text):
    document = read(tmp_path, "a.rst", f"{text}\n\nIt rained in the north all day.")
    assert "It rained in the north all day." in document.text


# e-mails --------------------------------------------------------------------------

MAIL = f"""Hello Ben,

the harbour was closed by the storm on Monday, and the ferries stayed in
port all day. Nobody was hurt.

On Mon, 3 Mar 2025 at 10:00, Ben Birk <ben@example.org>
wrote:
> Was the harbour closed on Monday?
>> Nobody knows it yet.

Yes, and it opens again on Tuesday.

--{" "}
Anna Alm is the head of the harbour.
"""


def mail(text="", html="", subject="The storm"):
    message = EmailMessage()
    message["From"], message["To"] = "anna@example.org", "ben@example.org"
    message["Subject"] = subject
    if text:
        message.set_content(text)
    if html:
        if text:
            message.add_alternative(html, subtype="html")
        else:
            message.set_content(html, subtype="html")
    return message


OF_MAIL = [
    "the harbour was closed by the storm on Monday, and the ferries stayed in port all "
    "day.",
    "Nobody was hurt.",
    "Yes, and it opens again on Tuesday.",
]


@pytest.mark.parametrize("subject", ["The storm", "Přístav – déjà vu"])
def test_a_mail(tmp_path, subject):
    message = mail(MAIL, "<p>This is the same in HTML.</p>", subject)
    message.add_attachment("This is an attachment.", filename="a.txt")
    document = read(tmp_path, "a.eml", message.as_bytes())
    assert sentences(document) == OF_MAIL
    assert sentences(document, "headline")[0] == subject
    for gone in ("wrote", "knows", "head of", "HTML", "attachment", "example.org"):
        assert gone not in document.text


def test_a_mail_of_html_alone(tmp_path):
    page = """<p>The harbour was closed by the storm.</p><blockquote>Was it closed?
    </blockquote><div class="gmail_quote">Ben wrote: Is it closed?</div>
    <p>It opens again on Tuesday.</p>"""
    document = read(tmp_path, "a.eml", mail(html=page).as_bytes())
    assert document.text.split("\n\n") == [
        "The storm",
        "The harbour was closed by the storm.",
        "It opens again on Tuesday.",
    ]


PATCH = """---
 harbour/ferry.c |    2 +-
 1 files changed, 1 insertions(+), 1 deletions(-)

diff --git a/harbour/ferry.c b/harbour/ferry.c
--- a/harbour/ferry.c
+++ b/harbour/ferry.c
@@ -68,7 +68,7 @@ static int close_harbour(void)
-	return 1;
+ * The harbour is closed by the storm.
"""


def test_a_patch_is_not_text_of_a_mail(tmp_path):
    text = f"""The harbour is closed in a storm, which is what this change does for
'ferry' by default.

The number of boats in the old harbour of the town is -1 on
Mondays, so that the ferries stayed in port. This line is long enough
for all.

Signed-off-by: Anna Alm <anna@example.org>
{PATCH}"""
    document = read(tmp_path, "a.eml", mail(text).as_bytes())
    assert sentences(document) == [
        "The harbour is closed in a storm, which is what this change does for 'ferry' "
        "by default.",
        "The number of boats in the old harbour of the town is -1 on Mondays, so that "
        "the ferries stayed in port.",
        "This line is long enough for all.",
    ]
    alone = read(tmp_path, "b.eml", mail(PATCH).as_bytes())
    assert alone.text == "The storm"


@pytest.mark.parametrize(
    "heading",
    [
        "-----Original Message-----\nFrom: Ben\n",
        "From: Ben Birk\nSent: Monday, March 3\nTo: Anna\n",
    ],
)
def test_the_original_below_an_answer_is_left_out(tmp_path, heading):
    text = f"It is closed today.\n\n{heading}\nIs the harbour closed today?\n"
    document = read(tmp_path, "a.eml", mail(text).as_bytes())
    assert document.text == "The storm\n\nIt is closed today."
    forwarded = read(
        tmp_path, "b.eml", mail(text[len("It is closed today.") :]).as_bytes()
    )
    assert "Is the harbour closed today?" in forwarded.text


def test_a_mail_of_an_unknown_character_set(tmp_path):
    data = (
        b"Subject: x\nContent-Type: text/plain; charset=klingon\n\nIt rained all day.\n"
    )
    assert "It rained all day." in read(tmp_path, "a.eml", data).text


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"It rained all day.", r"a\.eml: not an e-mail: .*save a plain text as \.txt"),
        (b"", "not an e-mail: it has no From, To, Subject or Date"),
        (b"Subject: nothing else\n\n", r"there is no text in .*a\.eml"),
        (
            b"Subject: x\n"
            + b"".join(
                b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (n, n)
                for n in range(1100)
            ),
            r"a\.eml: the parts of the e-mail are nested too deeply: save its text",
        ),
    ],
    ids=["text", "empty", "subject alone", "nested"],
)
def test_mails_that_cannot_be_read(tmp_path, data, message):
    with pytest.raises(ValueError, match=message):
        read(tmp_path, "a.eml", data)


# Word -----------------------------------------------------------------------------

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def docx(body, prolog="", part="word/document.xml"):
    xml = f"{prolog}<w:document xmlns:w='{WORD}'><w:body>{body}</w:body></w:document>"
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(part, xml)
    return data.getvalue()


def paragraph(*runs, style=""):
    named = f"<w:pPr><w:pStyle w:val='{style}'/></w:pPr>" if style else ""
    return (
        f"<w:p>{named}{''.join(f'<w:r><w:t>{run}</w:t></w:r>' for run in runs)}</w:p>"
    )


def test_a_word_file(tmp_path):
    table = f"<w:tbl><w:tr><w:tc>{paragraph('A cell.')}</w:tc></w:tr></w:tbl>"
    body = (
        paragraph("The ", "storm", style="Heading1")
        + paragraph("It rained &amp; ", "stormed all day.")
        + "<w:p><w:r><w:delText>This was deleted.</w:delText></w:r></w:p>"
        + table
        + f"<w:p><w:t>A box </w:t>{paragraph('In a box.')}<w:t>ends.</w:t></w:p>"
        + paragraph("Nobody was hurt.")
    )
    document = read(tmp_path, "a.docx", docx(body))
    assert document.text.split("\n\n") == [
        "The storm",
        "It rained & stormed all day.",
        "A box ends.",
        "In a box.",
        "Nobody was hurt.",
    ]
    assert sentences(document, "headline") == ["The storm"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", r"a\.docx: the Word file is damaged, encrypted or not a \.docx file"),
        (docx("")[:-30], "the Word file is damaged, encrypted or not"),
        (docx("", part="other.xml"), "save it again, without a password"),
        (docx("<w:p>"), r"the XML of the Word file is damaged \(Opening and ending"),
        (
            docx("&b;", "<!DOCTYPE d [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;&a;'>]>"),
            "declares a document type, which Word never writes",
        ),
        (docx(paragraph("")), r"there is no text in .*a\.docx"),
        (docx(" " * 3000), "has more than 2,000 bytes: divide it"),
    ],
    ids=["empty", "cut", "other", "xml", "entities", "no text", "bomb"],
)
def test_word_files_that_cannot_be_read(tmp_path, monkeypatch, data, message):
    monkeypatch.setattr("variegate.text.word._MOST_BYTES", 2000)
    with pytest.raises(ValueError, match=message):
        read(tmp_path, "a.docx", data)


# all formats ----------------------------------------------------------------------


def test_folders_and_clusters_take_all_formats(tmp_path):
    (tmp_path / "in").mkdir()
    text = "It rained in the north all day."
    read(tmp_path / "in", "a.rst", text)
    read(tmp_path / "in", "b.eml", mail(text).as_bytes())
    read(tmp_path / "in", "c.docx", docx(paragraph(text)))
    read(tmp_path / "in", "d.txt", text)
    assert all(text in one.text for one in read_documents(tmp_path / "in"))
    assert len(read_documents(tmp_path / "in")) == 4
    assert {".pdf", ".rst", ".eml", ".docx", ".txt", ".md"} < set(DOCUMENT_SUFFIXES)
    row = {
        "documents": [
            {"path": "in/b.eml"},
            {"id": "word", "path": "in/c.docx"},
            "Two.",
        ],
        "references": [text],
    }
    (tmp_path / "c.jsonl").write_text(json.dumps(row))
    (cluster,) = read_clusters(tmp_path / "c.jsonl")
    names = [str(tmp_path / "in" / "b.eml"), "word", "3"]
    assert [one.id for one in cluster.documents] == names
    assert sentences(cluster.documents[0], "headline") == ["The storm"]
    (tmp_path / "d.jsonl").write_text(json.dumps({"documents": [{"path": "gone.txt"}]}))
    with pytest.raises(FileNotFoundError, match=r"there is no file .*gone\.txt"):
        read_clusters(tmp_path / "d.jsonl", need_references=False)


# logs and languages ---------------------------------------------------------------

SYSLOG = "Mar  3 10:00:0{} host sshd[12]: Connection from 10.0.0.{} closed by peer.\n"
PYTHON = "2025-03-03 10:00:0{},123 INFO root Started worker {} of the pool.\n"
LEVELS = "[ERROR] worker {} of {} stopped after a fault.\n"
ACCESS = '10.0.0.{} - - [03/Mar/2025:10:00:00 +0000] "GET /page/{} HTTP/1.1" 200\n'
NUMBERS = "x{}\t1.25\t3.50\t{}\n"
DIARY = "3 March 202{}: We walked to the harbour {} times. Nobody was there.\n"
TIMES = "At 10:0{} the harbour was closed, and {} ferries stayed in port all day.\n"


@pytest.mark.parametrize("line", [SYSLOG, PYTHON, LEVELS, ACCESS, NUMBERS])
def test_logs_and_numbers_lack_prose(line):
    text = "".join(line.format(n, n) for n in range(9))
    assert lacks_prose(text)
    assert lacks_prose(f"A line before it.\n{text}")
    assert not lacks_prose(text + "And then we went to the harbour.\n" * 9)


@pytest.mark.parametrize(
    "line", [DIARY, TIMES, "", "1. It rained for {} days in {}.\n"]
)
def test_prose_with_dates_is_prose(line):
    assert not lacks_prose("".join(line.format(n, n) for n in range(9)))


ENGLISH = (
    "The harbour was closed by a storm on Monday, and all of the ferries had to stay "
    "in the port for the whole day."
)
FRENCH = (
    "Le port a été fermé par une tempête lundi, et tous les ferries ont dû rester dans "
    "le port pendant toute la journée."
)
GREEK = (
    "Το λιμάνι έκλεισε τη Δευτέρα από την καταιγίδα και όλα τα πλοία έμειναν στο "
    "λιμάνι όλη την ημέρα και τη νύχτα."
)


@pytest.mark.parametrize("other", [FRENCH, GREEK])
def test_only_the_main_language_of_a_document_is_body(other):
    text = f"{ENGLISH}\n\n{other}\n\n{ENGLISH[:-1]} again.\n\nA short end."
    assert sentences(Document(text)) == [
        ENGLISH,
        f"{ENGLISH[:-1]} again.",
        "A short end.",
    ]
    assert sentences(Document(text), "other") == [other]
    assert sentences(Document(other)) == [other]


def test_paragraphs_of_unknown_or_mixed_language_are_kept():
    names = "Anna Alm " * 20
    assert in_other_language([ENGLISH, names, f"{ENGLISH} {FRENCH}", FRENCH]) == [
        *(False, False, False),
        True,
    ]
    assert in_other_language([]) == []
    assert in_other_language(["", names]) == [False, False]
