"""Documents that are made to be slow, or to end the process, when they are read."""

import re
from collections import Counter
from email.message import EmailMessage

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.hostile_files import FAMILIES
from benchmarks.reader_growth import LEAST, MOST, exponent, measure, read_file
from variegate.text import Cluster, Document
from variegate.text.columns import Piece, columns_of, text_pages
from variegate.text.html_source import limit_attributes
from variegate.text.mail import mail_document
from variegate.text.markup import HTML_READER, html_document, page_document
from variegate.text.pages import _paragraph_text
from variegate.text.readers import read_documents
from variegate.text.restructured import (
    _LONGEST_PARAGRAPH,
    _MOST_MARKS,
    _cut_at_spaces,
    _cut_by_marks,
    restructured_document,
)
from variegate.text.sentences import _ADDRESS, split_cluster

PROSE = "The storm reached the coast at noon. Two houses were lost in the village."

# Sentences ----------------------------------------------------------------------------

#: The pattern without its conditions on what is before a match, which make it linear.
SLOW_ADDRESS = re.compile(
    r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+|(?:https?://|www\.)[^\s<>]+|\w+(?:\.\w+)+\("
)


@given(st.text("ab1.-+@( ", max_size=30) | st.text("aw.:/ph()@ ", max_size=30))
def test_addresses_are_those_of_the_slow_pattern(text):
    slow = [match.span() for match in SLOW_ADDRESS.finditer(text)]
    fast = [match.span() for match in _ADDRESS.finditer(text)]
    # Only where an address begins right after another may they differ.
    if all(text[start - 1 : start] in ("", " ") for start, _ in slow):
        assert fast == slow


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 5)), max_size=6))
def test_code_is_replaced_by_names_of_its_length(spans):
    text = "abcdefghi jklmnop. qrstuvw xyz 12345"
    code = [(start, min(start + size, len(text))) for start, size in spans]
    document = Document(text, blocks=None, unbroken=code)
    for sentence in split_cluster(Cluster((document,))):
        assert sentence.text == text[sentence.start : sentence.end]
    assert document.code_starts == {start for start, _ in code}


@pytest.mark.parametrize("text", ["1.1.1.1.", "1. May 2020.", "1.1.2020.\n\n\n"])
def test_a_text_that_is_a_date_is_read(text):
    (sentence,) = split_cluster(Cluster((Document(text),)))
    assert (sentence.text, sentence.kind) == (text.strip(), "dateline")


# HTML ---------------------------------------------------------------------------------


def test_attributes_after_the_200th_are_left_out():
    many = " ".join(f'a{n}="<{n}>"' for n in range(300))
    page = f"<html><p {many} hidden>Hidden?</p><p hidden>No.</p><p>{PROSE}</p>"
    short = limit_attributes(page)
    assert 'a199="<199>"' in short
    assert 'a200="' not in short
    assert short.endswith(f">Hidden?</p><p hidden>No.</p><p>{PROSE}</p>")
    assert PROSE in html_document(page).text


@given(
    st.lists(
        st.sampled_from(
            [
                *("<p>", "<p a>", "<p a='>'>", '<a b="<c>" d>', "<img a=b/>", "</p>"),
                *("<", ">", '"', "'", "=", "/", " ", "a", "<!--", "-->", "<!", "<?x"),
                *("<script>", "</script>", "<STYLE>", "</style>", "<textarea>"),
            ]
        ),
        max_size=12,
    ).map("".join)
)
def test_pages_with_fewer_attributes_stay_as_they_are(page):
    assert limit_attributes(page) == page


def test_script_is_not_taken_for_attributes():
    script = "<script>if (a<b " + "c d " * 500 + "</script>"
    page = f"{script}<!-- <p {'a ' * 500} --><p>{PROSE}</p>"
    assert limit_attributes(page) == page


@pytest.mark.parametrize(
    "page",
    [
        "<main><main>{}</main></main>",
        "<main><div role=main>{}</div></main>",
        "<div role=main><main>{}</main></div>",
        "<div role=main><div role=main>{}</div></div>",
    ],
)
def test_main_content_inside_main_content_is_read_once(page):
    assert html_document(f"<p>Before.</p>{page.format(PROSE)}").text == PROSE


@pytest.mark.parametrize(
    "page",
    [
        "<div>" * 300 + f"<p>{PROSE}</p>" + "</div>" * 300,
        f"<p>{PROSE}</p><table><tr>" + "<td>a</td>" * 1001 + "</tr></table>",
    ],
)
def test_extreme_pages_are_left_to_the_built_in_reader(page):
    document = page_document(page)
    assert document.reader.startswith(f"{HTML_READER} (the page is nested too deeply")
    assert PROSE in document.text


def test_pages_on_which_the_extractor_fails_are_read_without_it(monkeypatch):
    import trafilatura

    def fail(*_, **__):
        raise RecursionError

    monkeypatch.setattr(trafilatura, "extract", fail)
    document = page_document(f"<p>{PROSE}</p>")
    assert document.reader == f"{HTML_READER} (trafilatura failed: RecursionError)"
    assert document.text == PROSE


# Pages of text ------------------------------------------------------------------------


def test_columns_are_divided_a_bounded_number_of_times():
    row = "".join(f"{'word ' * 5}{number:<8}   " for number in range(40))
    pieces = text_pages(f"{row}\n" * 6)[0]
    columns = list(columns_of(pieces, 1.0))
    assert sorted(piece.text for column in columns for piece in column) != []
    found = " ".join(piece.text for column in columns for piece in column).split()
    assert sorted(found) == sorted(row.split() * 6)


def slow_paragraph_text(lines, words):
    """Join lines by looking at all of the text so far, for each of them."""
    text = ""
    for line in lines:
        broken = re.search(r"([^\W\d_]+)-$", text)
        following = re.match(r"[^\W\d_]+", line)
        if not (broken and following and following[0][0].islower()):
            is_open = not text or re.search(r"https?://\S*[/.&=?_-]$", text)
            text += line if is_open else f" {line}"
        elif words[f"{broken[1].lower()}-{following[0]}"]:
            text += line
        else:
            text = text[:-1] + line
    return " ".join(text.split())


@given(
    st.lists(st.sampled_from(["in-", "ner", "Ner-", "http://a.", "b/c", "- ", "1-"])),
    st.booleans(),
)
def test_lines_are_joined_as_by_looking_at_the_whole_text(lines, is_hyphenated):
    words = Counter({"in-ner": 1} if is_hyphenated else {"inner": 1, "x": 9})
    pieces = [Piece(line, 0, 1, row, 1.0) for row, line in enumerate(lines)]
    assert _paragraph_text(pieces, words) == slow_paragraph_text(lines, words)


# Mail ---------------------------------------------------------------------------------


def test_long_headers_are_cut():
    head = b"From: a@example.org\nSubject: " + b"storm " * 1000
    document = mail_document(head + b"\n\n" + PROSE.encode())
    subject, body = document.text.split("\n\n")
    assert subject == ("storm " * 1000)[:1000].strip()
    assert body == PROSE


@pytest.mark.parametrize(
    "header", ["Content-Type", "Content-Disposition", "Content-Transfer-Encoding"]
)
def test_headers_that_are_nested_too_deeply_are_refused(header):
    data = f"From: a@example.org\n{header}: {'(' * 5000}\n\n{PROSE}".encode()
    with pytest.raises(ValueError, match=r"nested too deeply: save its text \(\.txt\)"):
        mail_document(data)


def test_headers_of_a_usual_length_stay_whole():
    message = EmailMessage()
    message["From"], message["Subject"] = "a@example.org", "é" * 300
    message.set_content(PROSE)
    assert mail_document(message.as_bytes()).text == f"{'é' * 300}\n\n{PROSE}"


def test_headers_on_which_the_parser_fails_are_refused(monkeypatch):
    def fail(*_, **__):
        raise AttributeError

    monkeypatch.setattr(EmailMessage, "get_body", fail)
    with pytest.raises(
        ValueError, match=r"cannot be read \(AttributeError\): save its"
    ):
        mail_document(f"From: a@example.org\n\n{PROSE}".encode())


# reStructuredText ---------------------------------------------------------------------


def test_markup_on_which_docutils_fails_is_refused():
    definition = ".. |a| replace:: |a"
    with pytest.raises(ValueError, match=r"docutils fails .*KeyError.*: save it as pl"):
        restructured_document(f"{definition}|\n{definition}{definition}|\n{definition}")


@given(st.text("ab\n *`", max_size=400), st.integers(1, 40))
def test_pieces_together_are_the_text(text, most):
    with pytest.MonkeyPatch.context() as patch:
        place = "variegate.text.restructured."
        patch.setattr(f"{place}_MOST_MARKS", most)
        patch.setattr(f"{place}_MARKS_OF_PIECE", most)
        patch.setattr(f"{place}_LONGEST_PARAGRAPH", most)
        patch.setattr(f"{place}_PIECE_OF_PARAGRAPH", most)
        assert "".join(_cut_by_marks(text)) == text
        assert "".join(_cut_at_spaces(text)) == text
        assert all(len(piece) <= most for piece in _cut_at_spaces(text))


def test_usual_texts_are_not_cut():
    text = "*a* ``b``\n\n" * (_MOST_MARKS // 4)
    assert list(_cut_by_marks(text)) == [text]
    assert list(_cut_at_spaces("a " * (_LONGEST_PARAGRAPH // 2))) == [
        "a " * (_LONGEST_PARAGRAPH // 2)
    ]


def test_texts_with_many_marks_are_read_in_pieces():
    part = f"Title\n=====\n\n*One* and ``two``. {PROSE}\n\n"
    whole = restructured_document(part * 2).text
    many = restructured_document(part * 2000).text
    assert many == "\n\n".join([whole] * 1000)


# Growth -------------------------------------------------------------------------------


def test_the_exponent_is_that_of_the_last_two_sizes():
    assert exponent([10, 100, 1000], [9.0, 1.0, 10.0]) == pytest.approx(1.0)
    assert exponent([10, 20], [1.0, 4.0]) == pytest.approx(2.0)
    assert exponent([10, 100], [LEAST / 10, LEAST / 2]) is None
    assert exponent([10, 100], [1.0, float("nan")]) == float("inf")


def refusal_of(path):
    """Return the error of a file that cannot be read, or else its path."""
    try:
        read_file(path)
    except ValueError as error:
        return str(error)
    return str(path)


@pytest.mark.parametrize("suffix", FAMILIES)
def test_small_files_of_every_family_are_read_or_refused(suffix, tmp_path):
    path = tmp_path / f"a{suffix}"
    for make in FAMILIES[suffix].values():
        path.write_text(make(1000), encoding="utf-8")
        assert str(path) in refusal_of(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suffix", "family"),
    [(suffix, name) for suffix, families in FAMILIES.items() for name in families],
)
def test_time_grows_with_the_size_of_hostile_files(suffix, family, tmp_path):
    path = tmp_path / f"a{suffix}"
    for name in ("rows", "body", "paragraphs", "lines"):  # loads what reads it
        if name in FAMILIES[suffix]:
            path.write_text(FAMILIES[suffix][name](200), encoding="utf-8")
            read_file(path)
    sizes, seconds = (100, 1000), []
    for size in sizes:
        path.write_text(FAMILIES[suffix][family](1000 * size), encoding="utf-8")
        seconds.append(measure(read_file, path).seconds)
    growth = exponent(sizes, seconds)
    assert growth is None or growth <= MOST, seconds


def test_a_reader_that_is_killed_has_no_time(tmp_path):
    (tmp_path / "a.txt").write_text(PROSE)

    def work(path):
        while True:
            pass

    found = measure(work, tmp_path / "a.txt", limit=1)
    assert (str(found.seconds), found.problem) == ("nan", "killed")
    assert read_documents(tmp_path / "a.txt")[0].text == PROSE
