"""Text of e-mails: the subject as a headline, without quotations and signatures."""

from __future__ import annotations

import re
from collections.abc import Sequence
from email.errors import MessageError
from email.message import EmailMessage, MIMEPart
from email.parser import BytesParser
from email.policy import EmailPolicy
from typing import Any

from variegate.text.documents import Document
from variegate.text.layout import blocks_of
from variegate.text.markup import Passage, as_document, html_document, is_hidden

_SIGNATURE = re.compile(r"(?m)^-- ?$")
_FORWARDED = re.compile(
    r"(?mi)^-+\s*(?:original message|forwarded message|ursprüngliche nachricht|"
    r"message d'origine|původní zpráva)\s*-+\s*$"
    r"|^(?:From|Von|De|Od): [^\n]+\n(?:Sent|Date|Gesendet|Datum|Envoyé|Odesláno) ?: "
)
_ATTRIBUTION = re.compile(
    r"(?m)^(?:On|Am|Le|Dne|El|Il|Op)\b[^\n]*(?:\n[^\n>]*)?"
    r"(?:wrote|(?:schrieb|napsal|schreef)[^\n:]{0,200}|a écrit|escribió|ha scritto)"
    r"\s?:[ \t]*$"
)
_QUOTED = re.compile(r"(?m)^[ \t]*>[^\n]*$")
# A patch, the numbers of changed lines above it, and who signed it.
_PATCH = re.compile(r"(?m)^(?:diff --git |Index: \S+\n=|--- \S[^\n]*\n\+\+\+ )")
_ABOUT_PATCH = re.compile(
    r"(?m)^(?:---$| \S.*\| +(?:\d+ [-+]*|Bin .*)$| ?\d+ files? changed, .*$"
    r"| (?:create|delete) mode \d+ .*$|[A-Z][a-z]+(?:-[a-z]+)*-[Bb]y: .*$"
    r"|(?:Cc|CC|Fixes|Link|Closes|Message-Id|Change-Id): .*$)"
)
_SALUTATION = re.compile(r"(?:\S+ ){0,4}\S+[,!:]")
_QUOTED_HTML = re.compile(
    r"gmail_(?:quote|signature)|moz-(?:cite-prefix|signature)|yahoo_quoted"
)

_READER = "the built-in e-mail reader"
#: Characters of a header that are kept: its parser takes the square of their number.
_LONGEST_HEADER = 1000


class _Policy(EmailPolicy):
    """Cuts long headers, so that e-mails are read in time linear in their length."""

    def header_source_parse(self, sourcelines: Sequence[str]) -> tuple[str, str]:
        """Return the name and the first characters of a header."""
        name, value = super().header_source_parse(list(sourcelines))
        return name, value[:_LONGEST_HEADER]


def mail_document(data: bytes) -> Document:
    """Return the text of an e-mail, its subject first.

    Quoted lines, the lines that introduce them, forwarded originals, patches,
    signatures and attachments are left out.  HTML is read where there is no plain text.
    """
    try:
        return as_document(_read_passages(data), _READER)
    except RecursionError as error:
        raise ValueError(
            "the parts of the e-mail are nested too deeply: save its text (.txt)"
        ) from error
    except (AttributeError, LookupError, TypeError) as error:
        # Of Python's parser, on headers that it does not foresee.
        raise ValueError(
            f"the headers of the e-mail cannot be read ({type(error).__name__}): save "
            "its text (.txt)"
        ) from error


def _read_passages(data: bytes) -> list[Passage]:
    """Return the passages of an e-mail, its subject first."""
    parsed: Any = BytesParser(EmailMessage, policy=_Policy()).parsebytes(data)
    message: EmailMessage = parsed
    part = message.get_body(("plain", "html"))
    names = {name.lower() for name in message.keys()}  # noqa: SIM118
    if not names & {"from", "to", "subject", "date"}:
        raise ValueError(
            "not an e-mail: it has no From, To, Subject or Date; save a plain text as "
            ".txt"
        )
    text = "" if part is None else _text_of_part(part)
    passages = [] if part is None else _own_passages(part, text)
    if text.strip() and (subject := _subject(message)):
        passages.insert(0, Passage("headline", subject))
    return passages


def _subject(message: EmailMessage) -> str:
    """Return the subject on one line, "" where its encoding is broken."""
    try:
        return " ".join(str(message.get("subject", "")).split())
    except (MessageError, LookupError, ValueError):  # broken encoded words
        return ""


def _text_of_part(part: MIMEPart) -> str:
    """Return the text of a part; wrong bytes become U+FFFD, line ends newlines."""
    try:
        content = part.get_content()
    except (LookupError, ValueError):  # an unknown character set, a broken encoding
        payload = part.get_payload(decode=True)
        raw = payload if isinstance(payload, bytes) else b""
        content = raw.decode("utf-8", "replace")
    return str(content).replace("\r\n", "\n").replace("\0", "")


def _own_passages(part: MIMEPart, text: str) -> list[Passage]:
    """Return the sender's own paragraphs in a part's ``text``, without salutation."""
    if part.get_content_subtype() == "html":
        document = html_document(text, _is_quoted)
    else:
        for ending in (_SIGNATURE, _FORWARDED, _PATCH):
            found = ending.search(text)
            if found and text[: found.start()].strip():
                text = text[: found.start()]
        for part_of_others in (_ABOUT_PATCH, _ATTRIBUTION, _QUOTED):
            text = part_of_others.sub("\n", text)
        document = Document(text)
    passages = [
        Passage(one.kind, document.text[one.start : one.end])
        for one in blocks_of(document, None, is_mail=True)[0]
    ]
    return passages[bool(passages and _SALUTATION.fullmatch(passages[0].text)) :]


def _is_quoted(element: Any) -> bool:
    """Whether an lxml element of HTML is hidden, a quotation or a signature."""
    names = f"{element.get('class')} {element.get('id')}"
    is_quote = element.tag == "blockquote" or _QUOTED_HTML.search(names)
    return bool(is_quote) or is_hidden(element)
