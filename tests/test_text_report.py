"""The page: nothing of the source is lost, and what was chosen can be found."""

from html.parser import HTMLParser

import pytest

from variegate.text import Cluster, Document, MarkedSentence, Summary
from variegate.text.sentences import split_cluster
from variegate.text.summary import html_report

TEXTS = (
    "Floods in the north\n\nMonday, March 3, 2014\n\n"
    "The river rose by two metres. Roads   were closed;\ttrains & buses stopped.\n\n"
    "***\n\nNobody was hurt, Dr. Olsen said.  Schools opened again on Friday.\n",
    "  \n<script>alert('x')</script> is not run. It's \"quoted\" & <b>kept</b>.\n",
)


class Page(HTMLParser):
    """The parts of a page that the tests look at."""

    VOID = ("meta", "link", "img", "br")

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.texts, self.marks = [], [], [], []
        self.ids, self.links, self.summary = [], [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append((tag, attrs))
        if tag not in self.VOID:
            self.open.append((tag, attrs))
        if tag == "article":
            self.texts.append("")
        if tag == "mark" and self.inside("article"):
            self.marks.append("")
        self.ids += [attrs["id"]] if "id" in attrs else []
        self.links += [attrs["href"]] if "href" in attrs else []

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        if self.inside("article"):
            self.texts[-1] += data
        if self.inside("article") and self.inside("mark"):
            self.marks[-1] += data
        if self.inside("ol"):
            self.summary += data

    def inside(self, tag):
        return any(name == tag for name, _ in self.open)

    def all(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


def summary(texts=TEXTS, chosen=(3, 5), language="english", budget="40w", names=None):
    names = names or [f"folder/{number}.txt" for number in range(len(texts))]
    documents = [Document(t, name) for t, name in zip(texts, names, strict=True)]
    sentences = split_cluster(Cluster(documents, language=language))
    marked = [
        MarkedSentence(
            sentence,
            min(1.0, 0.003 * 4**place) if sentence.kind == "body" else None,
            place in chosen,
        )
        for place, sentence in enumerate(sentences)
    ]
    return Summary(documents, marked, budget, 1.5, language)


def test_every_character_of_the_documents_is_there_in_order():
    page = Page(html_report(summary()))
    assert page.texts == list(TEXTS)
    assert page.open == []


def test_chosen_sentences_are_marked_and_summarized():
    made = summary()
    page = Page(html_report(made))
    assert page.marks == [sentence.text for sentence in made.sentences]
    for sentence in made.sentences:
        assert sentence.plain in page.summary


def test_links_lead_to_ids_and_back():
    page = Page(html_report(summary()))
    assert len(set(page.ids)) == len(page.ids)
    assert page.links == ["#s1", "#s2", "#n1", "#n2"]
    assert {link[1:] for link in page.links} <= set(page.ids)


def test_candidates_are_shaded_and_say_their_probability():
    made = summary(chosen=())
    page = Page(html_report(made))
    spans = [attrs for attrs in page.all("span") if "title" in attrs]
    assert [attrs["title"] for attrs in spans] == [
        "not a candidate",
        "not a candidate",
        "probability 4.8 %",
        "probability 19 %",
        "probability 77 %",
        "probability 100 %",
        "probability 100 %",
        "probability 100 %",
    ]
    assert [attrs.get("class") for attrs in spans[1:5]] == [None, "p1", "p2", "p4"]
    assert "No sentence was chosen." in html_report(made)


@pytest.mark.parametrize(
    ("probability", "words"),
    [(0.0, "0.0 %"), (1e-9, "under 0.1 %"), (0.002, "0.2 %"), (1.0, "100 %")],
)
def test_probabilities_in_words(probability, words):
    made = summary(("A sentence of the body.",), chosen=())
    entry = MarkedSentence(made.marked[0].sentence, probability, False)
    page = html_report(Summary(made.documents, [entry], None, 1.0, None))
    assert f'title="probability {words}"' in page


def test_headlines_and_date_lines():
    text = html_report(summary())
    page = Page(text)
    assert len(page.all("h3")) == 1
    assert [attrs for attrs in page.all("p") if attrs.get("class") == "date"]
    # a rule of stars is no sentence, but it is a paragraph
    assert "***\n\n</p>" in text


def test_nothing_of_a_document_becomes_markup():
    made = summary(names=["a", '"><script>alert(1)</script>'])
    text = html_report(made, title="<b>Title</b> & more")
    page = Page(text)
    assert page.all("script") == []
    assert page.all("b") == []
    assert "<title>&lt;b&gt;Title&lt;/b&gt; &amp; more</title>" in text


def test_nothing_comes_from_outside():
    page = Page(html_report(summary()))
    assert not page.all("link") + page.all("img") + page.all("script")
    assert all(link.startswith("#") for link in page.links)


def test_the_facts():
    text = html_report(summary())
    for fact in ("12 words", "74 characters", "2 sentences", "40 words", "1.5"):
        assert f"<dd>{fact}" in text or f", {fact}" in text
    assert "2 documents, 8 sentences" in text
    assert "none: the model chose the length" in html_report(summary(budget=None))
    assert "1 document, " in html_report(summary(TEXTS[:1], chosen=(2,)))


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("hebrew", "הגשם ירד אתמול בצפון הארץ. הכבישים נסגרו בערב."),
        ("arabic", "هطلت الأمطار في الشمال أمس. أغلقت الطرق في المساء."),
    ],
)
def test_right_to_left(language, text):
    page = Page(html_report(summary((text,), chosen=(0,), language=language)))
    for tag in ("article", "ol"):
        assert [attrs["dir"] for attrs in page.all(tag)] == ["rtl"]
    assert "dir" not in page.all("p")[-1]
    # not told the language, each paragraph finds out
    page = Page(html_report(summary((text,), chosen=(0,), language=None)))
    assert page.all("article") == [{"class": "text"}]
    assert page.all("p")[-1] == {"dir": "auto"}


def test_a_sentence_over_two_paragraphs_stays_whole():
    text = "One half\n\nand the other. Then an end."
    sentences = split_cluster(Cluster([Document(text)]))
    first = type(sentences[0])(0, 0, 24, text[:24])
    rest = type(sentences[0])(0, 25, len(text), text[25:])
    entries = [MarkedSentence(first, 0.5, True), MarkedSentence(rest, 0.1, False)]
    page = Page(html_report(Summary([Document(text)], entries, None, 1.0, None)))
    assert page.texts == [text]
    assert page.marks == [text[:24]]


def test_what_no_page_can_hold_is_replaced():
    text = html_report(
        summary(("A bell\x07 and half a pair \ud83d here.",), chosen=(0,))
    )
    assert "A bell\ufffd and half a pair \ufffd here." in text
    text.encode("utf-8")
