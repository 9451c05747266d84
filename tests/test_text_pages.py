"""PDF files and the output of pdftotext: reading order, running heads, paragraphs."""

import re
import sys

import pytest

from pdf_files import column, pdf
from variegate._install import install_command
from variegate.text.columns import text_pages
from variegate.text.documents import Cluster
from variegate.text.pages import pages_document
from variegate.text.readers import read_documents
from variegate.text.sentences import split_cluster

LEFT = [
    "The harbour of the town was closed by a",
    "storm that came in from the north on a",
    "Monday. Ferries stayed in port through-",
    "out the day. No boat of the well-known",
    "company was harmed, and the crews went",
]
RIGHT = [
    "home in the evening. The water rose by",
    "two metres at the old quay. It was the",
    "highest level that was measured in ten",
    "years. Some cellars of the houses were",
    "full of water. They are dry again now.",
]
SENTENCES = [
    "The harbour of the town was closed by a storm that came in from the north on a "
    "Monday.",
    "Ferries stayed in port throughout the day.",
    "No boat of the well-known company was harmed, and the crews went home in the "
    "evening.",
    "The water rose by two metres at the old quay.",
    "It was the highest level that was measured in ten years.",
    "Some cellars of the houses were full of water.",
    "They are dry again now.",
]


def sentences(document, kind="body"):
    found = split_cluster(Cluster((document,), language="english"))
    return [one.plain for one in found if one.kind == kind]


def layout(*rows):
    """Return two columns beside each other, as ``pdftotext -layout`` writes them."""
    return "\n".join(f"{left:<45}{right}".rstrip() for left, right in rows)


def read(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_documents(path)[0]


def test_columns_are_read_one_after_the_other():
    page = layout(*zip(LEFT, RIGHT, strict=True))
    document = pages_document(text_pages(page), "")
    assert sentences(document) == SENTENCES
    assert len(document.blocks) == 1


def test_three_columns():
    third = [line.replace("the", "our") for line in RIGHT]
    page = "\n".join(
        f"{a:<45}{b:<45}{c}" for a, b, c in zip(LEFT, RIGHT, third, strict=True)
    )
    text = pages_document(text_pages(page), "").text
    assert text.index("went home") < text.index("dry again") < text.index("our highest")


def test_a_title_over_two_columns_comes_first():
    title = (
        " " * 10 + "A storm in the harbour, and what it did to the houses of the town"
    )
    page = title + "\n\n" + layout(*zip(LEFT, RIGHT, strict=True))
    document = pages_document(text_pages(page), "")
    assert document.text.startswith("A storm in the harbour, and")
    assert sentences(document)[-6:] == SENTENCES[1:]


def test_running_heads_and_page_numbers(tmp_path):
    page = "Report of the harbour{gap}{n}\n\n{text}\n\n{foot}\n"
    pages = [
        page.format(gap=" " * 20, n=7, text="\n".join(LEFT), foot="- 7 -"),
        page.format(gap=" " * 20, n=8, text="\n".join(RIGHT), foot="Page 8 of 9"),
    ]
    document = read(tmp_path, "a.txt", "\f".join(pages))
    assert sentences(document) == SENTENCES
    assert len(document.blocks) == 1


def test_a_running_head_of_one_page_is_known_by_its_place():
    heads = ["The storm"] * 3 + ["The quay of the town"]
    more = [[line.swapcase() for line in lines] for lines in (LEFT, RIGHT)]
    bodies = [LEFT, RIGHT, *more]
    text = "\f".join(
        "\n".join([f"  {head}", "", *body])
        for head, body in zip(heads, bodies, strict=True)
    )
    document = pages_document(text_pages(text), "")
    assert "quay of the town" not in document.text
    assert sentences(document)[2 : len(SENTENCES)] == SENTENCES[2:]


def test_text_that_repeats_below_and_above_pages_stays():
    first = "\n".join([*RIGHT, "The mayor said that a wall will be built."])
    second = "\n".join(["The mayor said that a wall will be built.", *LEFT])
    document = pages_document(text_pages(f"{first}\f{second}"), "")
    assert document.text.count("The mayor said that a wall will be built.") == 2


def test_a_number_at_the_beginning_of_a_line_is_not_a_list_item():
    text = "The ferries to the town left the harbour at about\n10. Nobody was late."
    document = pages_document(text_pages(text), "")
    assert len(document.blocks) == 1
    text = "The ferries to the town leave at:\n10. in the morning\n11. at noon"
    assert len(pages_document(text_pages(text), "").blocks) == 3


def test_a_number_that_is_not_at_the_edge_of_a_page_stays():
    page = "\n".join([*LEFT, "1984", *RIGHT])
    assert "1984" in pages_document(text_pages(page), "").text


KINDS = """1   Introduction

The harbour was closed by a storm on Monday, and the ferries stayed in port.

3.7.4.2 The water of the old quay

Figure 3: The level of the water rose by two metres. It fell again on Tuesday.

Table 2. Levels of the water in metres.

Monday      1.20      3.40      5.60
Tuesday     2.20      4.40      6.60

x = 2.5 * (3 + 4) / 7

2 The old quay ................ 12

The cellars of some houses were full of water, and they are dry again now.

References

Anna Alm. The storms of the north. The journal of harbours. It appeared in May.
"""


def test_kinds_of_paragraphs():
    document = pages_document(text_pages(KINDS), "")
    assert sentences(document) == [
        "The harbour was closed by a storm on Monday, and the ferries stayed in port.",
        "The cellars of some houses were full of water, and they are dry again now.",
    ]
    assert sentences(document, "headline") == [
        "1 Introduction",
        "3.7.4.2 The water of the old quay",
        "References",
    ]


def test_contents_end_at_a_paragraph():
    text = """Contents

The storm

The harbour was closed by a storm on Monday, and the ferries stayed in port all day, as
the water rose by two metres at the old quay of the town.

Keywords: storms, harbours, ferries.

Index Terms

The storms of the north, and all of the harbours of the south and of the west.
"""
    assert sentences(pages_document(text_pages(text), "")) == [
        "The harbour was closed by a storm on Monday, and the ferries stayed in port "
        "all day, as the water rose by two metres at the old quay of the town."
    ]


def test_a_full_line_goes_on_with_a_name_on_the_next_page():
    first = "\n".join([*LEFT[:4], "company was harmed, as it was said by"])
    second = "Anna Alm on Monday. See http://a.org/\nstorms/ for more of the storm."
    found = sentences(pages_document(text_pages(f"{first}\f{second}"), ""))
    assert found[2:] == [
        "No boat of the well-known company was harmed, as it was said by Anna Alm on "
        "Monday.",
        "See http://a.org/storms/ for more of the storm.",
    ]


CONTENTS = """Contents

1. The storm of the year.
2. The old quay and its water.

1 The storm of the year

The harbour was closed by a storm on Monday, and the ferries stayed in port. The
water rose by two metres at the old quay. It was the highest level in ten years.

Some cellars of the houses were full of water, and the mayor of the town said that
a wall will be built next year. The ferries go again on Tuesday, in the morning.

Number    Date          What was changed         Name
1.2       2025-03-03    A chapter on the storm   Anna
                        and on the quay.

(close-harbour day)                                        Function

\uf0b7 The cellars of some houses were full of water, and they are dry again now.
"""


def test_contents_tables_and_bullets_of_symbol_fonts():
    document = pages_document(text_pages(CONTENTS), "")
    assert sentences(document) == [
        "The harbour was closed by a storm on Monday, and the ferries stayed in port.",
        "The water rose by two metres at the old quay.",
        "It was the highest level in ten years.",
        "Some cellars of the houses were full of water, and the mayor of the town said "
        "that a wall will be built next year.",
        "The ferries go again on Tuesday, in the morning.",
        "The cellars of some houses were full of water, and they are dry again now.",
    ]


def test_formulas_do_not_hide_columns():
    rows = [*zip(LEFT, RIGHT, strict=True)]
    formula = [(LEFT[n], "       x   +   y   =   z   (4)") for n in range(5)]
    page = layout(*rows, *formula, *rows, *formula)
    text = pages_document(text_pages(page), "").text
    assert "closed by a storm that came in from the north" in text


def test_a_bracket_goes_on_in_the_other_column():
    left = [*LEFT[:4], "company was harmed"]
    right = ["(so it was said). The water rose by", *RIGHT[1:]]
    document = pages_document(text_pages(layout(*zip(left, right, strict=True))), "")
    assert (
        "No boat of the well-known company was harmed (so it was said)."
        in sentences(document)
    )


@pytest.mark.parametrize(
    ("elsewhere", "expected"),
    [
        ("", "information"),
        ("The information is old.", "information"),
        ("An in-formation flight.", "in-formation"),
    ],
)
def test_hyphens_at_line_ends(elsewhere, expected):
    text = f"Nobody had told the people in the town any in-\nformation. {elsewhere}"
    assert f"any {expected}." in pages_document(text_pages(text), "").text


def test_compounds_of_words_that_stand_alone_keep_their_hyphen():
    text = (
        "It is large and the margin is wide. We learn by a large-\n"
        "margin method, as a large margin is what we want to have."
    )
    assert "a large-margin method" in pages_document(text_pages(text), "").text


def test_text_without_form_feeds_is_kept_as_it_is(tmp_path):
    assert read(tmp_path, "a.txt", "3\n\n  Some text.").text == "3\n\n  Some text."


@pytest.mark.parametrize("text", ["\f", "\f\f \n\f", "7\f8\f9"])
def test_pages_without_text(tmp_path, text):
    with pytest.raises(ValueError, match=r"there is no text in .*a\.txt"):
        read(tmp_path, "a.txt", text)


# PDF ------------------------------------------------------------------------------


def two_columns(by_row):
    """Return two pages, written column by column or row by row."""
    first, second = column(50, 700, LEFT), column(310, 700, RIGHT)
    if by_row:
        body = [one for pair in zip(first, second, strict=True) for one in pair]
    else:
        body = [*first, *second]
    head = (50, 770, 8, "Journal of Harbours 12")
    title = (120, 735, 18, "A storm in the harbour")
    note = (310, 100, 6, "This is a footnote of the first page.")
    last = column(50, 700, ["The mayor said that a wall will be built next year."])
    return pdf(
        [
            [head, title, *body, note, (300, 40, 9, "1")],
            [(50, 770, 8, "Journal of Harbours 13"), *last, (300, 40, 9, "2")],
        ]
    )


@pytest.mark.parametrize("by_row", [False, True])
def test_a_pdf_file_of_two_columns(tmp_path, by_row):
    pytest.importorskip("pypdfium2", reason="needs 'variegate[pdf]'")
    document = read(tmp_path, "a.pdf", two_columns(by_row))
    last = "The mayor said that a wall will be built next year."
    assert sentences(document) == [*SENTENCES, last]
    assert sentences(document, "headline") == ["A storm in the harbour"]
    assert "Journal" not in document.text
    assert document.reader.startswith("pypdfium2 ")


def test_accents_that_are_printed_over_letters(tmp_path):
    pytest.importorskip("pypdfium2", reason="needs 'variegate[pdf]'")
    acute = "\xc2"  # in the encoding of the font
    lines = [
        (50, 700, 10, "The caf"),
        (83, 700, 10, acute),
        (83, 700, 10, "e of the town was closed by the storm of"),
        (50, 688, 10, "the year, and Rene stayed in the harbour. Nobody was hurt."),
        (129.5, 688, 10, acute),
    ]
    assert sentences(read(tmp_path, "a.pdf", pdf([lines])))[0] == (
        "The café of the town was closed by the storm of the year, and René stayed in "
        "the harbour."
    )


def test_a_pdf_file_is_known_by_its_first_bytes(tmp_path):
    pytest.importorskip("pypdfium2", reason="needs 'variegate[pdf]'")
    page = column(50, 700, ["It rained in the north all day."])
    document = read(tmp_path, "paper", pdf([page]))
    assert document.text == "It rained in the north all day."


ONE = column(50, 700, ["It rained."])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", r"a\.pdf: the PDF file is damaged or not a PDF file: .*save it again"),
        (b"%PDF-1.4\nnothing", r"a\.pdf: the PDF file is damaged or not a PDF file"),
        (pdf([ONE])[:200], "the PDF file is damaged or not a PDF file"),
        (pdf([ONE], encrypted=True), "is encrypted: save it without a password"),
        (pdf([[]]), r"no text; if they are scanned, run text recognition \(OCR\)"),
        (pdf([ONE], n_pages=2001), "has 2,001 pages, more than 2,000: divide it"),
    ],
    ids=["empty", "broken", "cut", "encrypted", "scanned", "long"],
)
def test_pdf_files_that_cannot_be_read(tmp_path, data, message):
    pytest.importorskip("pypdfium2", reason="needs 'variegate[pdf]'")
    with pytest.raises(ValueError, match=message):
        read(tmp_path, "a.pdf", data)


def test_too_many_characters(tmp_path, monkeypatch):
    pytest.importorskip("pypdfium2", reason="needs 'variegate[pdf]'")
    monkeypatch.setattr("variegate.text.pdf._MOST_CHARACTERS", 15)
    with pytest.raises(ValueError, match="more than 15 characters: divide it"):
        read(tmp_path, "a.pdf", pdf([ONE], n_pages=2))


def test_damaged_bytes_give_text_or_a_message(tmp_path):
    pytest.importorskip("pypdfium2", reason="needs 'variegate[pdf]'")
    data = two_columns(False)
    texts, problems = [], []
    for place in range(0, len(data), 97):
        damaged = data[:place] + b"\xff" + data[place + 1 :]
        try:
            texts.append(read(tmp_path, "a.pdf", damaged).text)
        except ValueError as error:
            problems.append(str(error))
    assert texts
    assert all("PDF file" in problem for problem in problems)


def test_pdf_without_its_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    with pytest.raises(ImportError, match=re.escape(install_command("pdf"))):
        read(tmp_path, "a.pdf", pdf([ONE]))
