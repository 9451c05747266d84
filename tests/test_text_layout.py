"""Plain text whose lines were wrapped: licences, mails, manuals, RFCs."""

import pytest

from variegate.text.documents import Cluster, Document, Sentence
from variegate.text.layout import sentence_kind
from variegate.text.sentences import split_cluster, split_sentences

LICENCE = """                    A PUBLIC LICENSE
                       Version 3, 29 June 2007

 Copyright (C) 2007 Some Software Foundation, Inc. <https://example.org/>
 Everyone is permitted to copy and distribute verbatim copies
 of this license document, but changing it is not allowed.

  0. Definitions of Terms.

  The "source code" for a work means the preferred form of the work for
making modifications to it.  "Object code" means any non-source
form of a work.

  A "Standard Interface" means an interface that either is an official
standard defined by a recognized standards body, or, in the case of
interfaces specified for a particular language, one that is widely used.

  You may convey a covered work under the following conditions, each
of which you have to meet in full:

    a) you must carry prominent notices stating that you modified it,
    and giving a relevant date; and

    b) license the entire work, as a whole, under this License to anyone
    who comes into possession of a copy.

1.1. "Contributor"
    means each individual or legal entity that creates, contributes to
    the creation of, or owns Covered Software.
"""


def found(text, kind="body"):
    document = Document(text)
    sentences = split_cluster(Cluster([document], language="english"))
    for one in sentences:
        assert text[one.start : one.end] == one.text
    return [one.plain for one in sentences if one.kind == kind]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_licence(line_end):
    body = found(LICENCE.replace("\n", line_end))
    body = [one.removeprefix("1.1. ") for one in body]
    assert body == [
        "Everyone is permitted to copy and distribute verbatim copies of this license "
        "document, but changing it is not allowed.",
        'The "source code" for a work means the preferred form of the work for making '
        "modifications to it.",
        '"Object code" means any non-source form of a work.',
        'A "Standard Interface" means an interface that either is an official standard '
        "defined by a recognized standards body, or, in the case of interfaces "
        "specified for a particular language, one that is widely used.",
        '"Contributor" means each individual or legal entity that creates, contributes '
        "to the creation of, or owns Covered Software.",
    ]


MAIL = """From: Ann Other <ann@example.org>
To: Ben Nobody <ben@example.org>
Subject: The minutes of our last meeting, and what is left to be done now

Dear Ben, the minutes of the meeting are not ready yet, since nobody has
written down what was said about the budget of the coming year, which is
rather long.

> Can you send me the minutes of the meeting before the end of this week,
> so that the others have time to read them?

They will be sent on Friday to all who were there, and to those who have
asked for them in time.

--
Ann Other
"""


def test_a_mail():
    assert found(MAIL) == [
        "Dear Ben, the minutes of the meeting are not ready yet, since nobody has "
        "written down what was said about the budget of the coming year, which is "
        "rather long.",
        "They will be sent on Friday to all who were there, and to those who have "
        "asked for them in time.",
    ]


RFC = """3.1.  Requests and What They Hold

   A request begins with a line that names the method and the target of
   the request, which is followed by header fields, one a line, and then
   by the content of the message, if there is any content to be sent to
   the server that

Fielding, et al.             Standards Track                   [Page 12]
\f
RFC 9999                     Messages of Mine                  June 2014


   receives it.  Servers answer every request that they have been able
   to read, even where nobody may be waiting for the answer any longer.

      method       target       what it asks for
      GET          a path       The thing itself.
"""


def test_pages_of_an_rfc():
    assert found(RFC) == [
        "Servers answer every request that they have been able to read, even where "
        "nobody may be waiting for the answer any longer."
    ]


MANUAL = """LS(1)                         User Commands                         LS(1)

NAME
       ls - list directory contents

SYNOPSIS
       ls [OPTION]... [FILE...]

DESCRIPTION
       List  information  about  the FILEs, which are in the current directory
       by default.  Entries are sorted by their names if no option asks for an
       order of another kind, and if the order has not been given in an  envi-
       ronment variable.

       -a, --all
              do not ignore entries starting with .

       -c     with -lt: sort by, and show, ctime (time of last modification of
              file status information); otherwise: sort by ctime.
"""


@pytest.mark.parametrize("tabs", [False, True])
def test_a_manual_page(tabs):
    text = MANUAL.replace("\n        ", "\n\t") if tabs else MANUAL
    assert found(text) == [
        "List information about the FILEs, which are in the current directory by "
        "default.",
        "Entries are sorted by their names if no option asks for an order of another "
        "kind, and if the order has not been given in an envi-ronment variable.",
    ]


def test_restructured_text():
    text = """Can I pass a function?
----------------------

As of some version functions can be passed as arguments to functions, and
the compiler sees which of them are meant where they are written as in::

    This is the code that follows the two colons, and it is not
    what anybody would call a sentence.

The functions are compiled when they are called for the first time, which
takes a moment that nobody minds who has been told of it before they have
called them.
"""
    assert found(text) == [
        "The functions are compiled when they are called for the first time, which "
        "takes a moment that nobody minds who has been told of it before they have "
        "called them."
    ]
    assert found(text, "headline") == ["Can I pass a function?"]


VERSE = """Shall I compare thee to a summer's day?
Thou art more lovely and more temperate:
Rough winds do shake the darling buds,
and summer's lease hath all too short a date."""


def test_verse_is_not_joined():
    assert [VERSE[start:end] for start, end in split_sentences(VERSE)] == (
        VERSE.split("\n")
    )


def test_one_sentence_a_line_stays_so():
    lines = [
        "The committee that was set up in March has published a first report",
        "Nobody had been told of the delay that letters would have to suffer",
        "Members of the opposition called the findings a disgrace for a city",
        "The mayor of the city has not yet said a word about any of this yet",
    ]
    text = "".join(f"{line}.\n" for line in lines)
    assert found(text) == [f"{line}." for line in lines]


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("Rain fell all day.", "body"),
        ("雨が降っている。", "body"),
        ("THERE IS NO WARRANTY.", "body"),
        ("1. You may copy it.", "body"),
        ("Is it whole?", "body"),
        ("2. Is it whole?", "headline"),
        ("1.1. Levels of the water.", "headline"),
        ("2. Grant of Copyright License.", "headline"),
        ("Effect of New Versions.", "headline"),
        ("Rain fell all", "other"),
        ("It is done as follows:", "other"),
        ("This is the case if it rains; and", "other"),
        ("Copyright (C) 2007 Some Foundation, Inc.", "other"),
        ("The Harbour Copyright©2013 by Anna Alm.", "other"),
        ("ls [OPTION]... [FILE...]", "other"),
        ("do not ignore entries starting with .", "other"),
        ("MAKE_MEM_DEFINED_IF_ADDRESSABLE.", "other"),
    ],
)
def test_what_is_a_sentence(sentence, kind):
    assert sentence_kind(sentence) == kind


def test_hyphens_at_line_ends_stay():
    text = "A no-\nlonger used up-\n to-date re\u2010\nport, 1-\n2 -\nyes."
    sentence = Sentence(0, 0, len(text), text)
    assert sentence.plain == ("A no-longer used up-to-date re\u2010port, 1- 2 - yes.")


def test_time_grows_with_the_text():
    """Ten times the text takes no hundred times the steps: it ends at all."""
    assert len(found(LICENCE * 100)) == 500
