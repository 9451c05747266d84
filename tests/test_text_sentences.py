"""Sentences and paragraphs: boundaries set by hand, and what must hold for any text."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outside_data import outside_data
from variegate.text.documents import Cluster, Document
from variegate.text.sentences import split_cluster, split_sentences

BY_HAND = {
    "english": [
        "Mr. Brown met Dr. Smith of the U.S. Senate at 9:47 a.m. on Dec. 3.",
        'He asked: "Why did the U.N. wait?"',
        "Prices rose by 3.5.",
        "Vendors (who had hoped for more) left!",
        '"It is total chaos."',
        "(They were wrong.)",
        "Two ships sank; Japan sent help...",
        "Nobody's hurt.",
    ],
    "arabic": [
        "ضرب زلزال قوته 8.8 درجة سواحل تشيلي.",
        "هل صدر تحذير من امواج المد؟",
        "قال د. محمد ان الوضع صعب؛ ثم غادر المكان.",
        "«لم يصب احد بأذى.»",
        "وصلت المساعدات!",
    ],
    "czech": [
        "Dne 26. prosince 2004 zasáhla vlna např. Indii a tzv. Zlatý trojúhelník.",
        "Přišli i pan dr. Novák a ing. Dvořák.",
        "„Je to zlé.“",
        "Kdo to ví?",
        "Jednání začalo 8. 1. 2005 v Praze.",
    ],
    "french": [
        "M. Blair et Mme Martin ont parlé à George W. Bush.",
        "« La mer arrive ! »",
        "Qui a répondu ?",
        "Le séisme, de magnitude 6,9, a fait 150.000 morts.",
        "«\u00a0C'est fini.\u00a0»",
        "Ils sont partis.",
    ],
    "greek": [
        "Ο κ. Μπαν μίλησε στον Αγ. Παύλο.",
        "Ήταν μόνος του ή με άλλους;",
        "Ξέρεις τη διαδρομή;",
        "«Δεν είναι γνωστό.»",
        "Η ζημιά, π.χ. στο λιμάνι, ήταν 7.700 ευρώ.",
    ],
    "hebrew": [
        'ארה"ב שלחה 350 מיליון דולר לאזור.',
        'ראש הממשלה אמר: "זה כאוס מוחלט."',
        "האם מישהו נפגע?",
        "פרופ' לוי ומר כהן הגיעו ב-7.9 לחודש.",
    ],
    "hindi": [
        "डॉ. शर्मा ने सी.एस.सी. को 22 मिनट से हराया।",
        "क्या कोई घायल हुआ?",
        "यह 4.1 तीव्रता का था।",
        "“वह बहुत डरावना था।”",
        "चार लोग मारे गए |",
        "पुलिस आ गई है.",
    ],
}


def cut(text, language=None):
    return [text[start:end] for start, end in split_sentences(text, language)]


def kinds(text, language=None):
    cluster = Cluster([Document(text)], language=language)
    return [(one.kind, one.plain) for one in split_cluster(cluster)]


@pytest.mark.parametrize("separator", [" ", "\n", "\r\n", "\n\n", " \t\u00a0 "])
@pytest.mark.parametrize("language", BY_HAND)
def test_boundaries_set_by_hand(language, separator):
    sentences = BY_HAND[language]
    assert cut(separator.join(sentences), language) == sentences


@pytest.mark.parametrize("language", ["arabic", "hebrew", "hindi"])
def test_scripts_without_capitals_need_no_language(language):
    sentences = [one for one in BY_HAND[language] if not one.startswith("डॉ")]
    assert cut(" ".join(sentences)) == sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        # Without a space after the full stop.
        ("I love it.I use it daily.", ["I love it.", "I use it daily."]),
        ("It is great.Had the salad.", ["It is great.", "Had the salad."]),
        (
            "وقع الهجوم يوم الخميس.كما تم ذلك.",
            ["وقع الهجوم يوم الخميس.", "كما تم ذلك."],
        ),
        ("वह चला गया था.वह लंदन में है.", ["वह चला गया था.", "वह लंदन में है."]),
        # Tokenized text in lower case.
        ("nice place . the food is good !", ["nice place .", "the food is good !"]),
        ("no . Not for me .", ["no .", "Not for me ."]),
        # Brackets end no sentence, but may hold or follow one.
        ("Rob Hall (of Leeds) The Third won.", ["Rob Hall (of Leeds) The Third won."]),
        ("(My favourite). Nice too.", ["(My favourite).", "Nice too."]),
        # Full stops in addresses and names of functions end no sentence.
        ("Ask Ben.Birk@example.org now.", ["Ask Ben.Birk@example.org now."]),
        ("See www.A.org/B?C. It rains.", ["See www.A.org/B?C.", "It rains."]),
        ("Call sea.Port() today.", ["Call sea.Port() today."]),
        # A year after "et al." belongs to it.
        (
            "It is by Alm et al. (2009). It rains.",
            ["It is by Alm et al. (2009).", "It rains."],
        ),
        # A number is part of what it counts.
        ("1. Wash it. 12. Dry it.", ["1. Wash it.", "12. Dry it."]),
        ("Don't go. You can't.", ["Don't go.", "You can't."]),
        # An ellipsis and quotes of Windows, left over from a wrong conversion.
        (
            "\x93Wait\x85 It is late.\x94 Go.",
            ["\x93Wait\x85", "It is late.\x94", "Go."],
        ),
        # Nothing but punctuation.
        ("...", []),
        ("Yes. --- !!", ["Yes. --- !!"]),
        ("", []),
        (" \n\t\r\n\ufeff", []),
    ],
)
def test_special_cases(text, sentences):
    assert cut(text) == sentences


def test_abbreviations_belong_to_a_language():
    text = "Viz např. Brno a okolí."
    assert cut(text, "czech") == [text]
    assert len(cut(text)) == 2


@pytest.mark.parametrize("invisible", ["\ufeff", "\u200b", "\u200f", "\u00ad"])
def test_invisible_characters(invisible):
    text = f"{invisible}One is here.{invisible} Two{invisible}fold it is.{invisible}"
    assert cut(text) == ["One is here.", f"Two{invisible}fold it is."]


WRAPPED = """The committee that was set up in March to look into the matter has
published its first report.  It finds that nobody had been told of the
delay, and that letters were not answered for up to four weeks after
they had been received.  A second report is due in the autumn.
   Members of the opposition called the findings a disgrace, and asked
for the minister to step down at once."""


@pytest.mark.parametrize("line_end", ["\n", "\r\n", " \n"])
def test_wrapped_lines_are_joined(line_end):
    text = WRAPPED.replace("\n", line_end)
    found = [" ".join(one.split()) for one in cut(text)]
    assert [one.split()[0] for one in found] == ["The", "It", "A", "Members"]
    assert found[0].endswith("the matter has published its first report.")


def test_one_wrapped_line_needs_a_small_letter():
    first = "The committee that was set up in March to look into the matter"
    assert len(cut(f"{first}\nhas published its report.")) == 1
    assert len(cut(f"{first}\nNobody had been told of it.")) == 2


def test_list_items_are_not_joined():
    items = ["- " + "word " * 13 + "end", "- " + "word " * 14 + "end", "- last one"]
    assert cut("\n".join(items)) == items


def test_lines_of_many_lengths_are_not_wrapped():
    lines = ["Bread and butter", "Half a pound of the sweetest cherries there are now"]
    lines += ["Ten kilograms of potatoes, if there are any good ones to be had", "Tea"]
    assert cut("\n".join(lines)) == lines


BODY = "The court met on Monday to hear the case. It will meet again next week."
BODY_PARTS = [
    ("body", "The court met on Monday to hear the case."),
    ("body", "It will meet again next week."),
]


@pytest.mark.parametrize(
    ("language", "headline", "date"),
    [
        ("english", "Court hears the case; minister resigns", "Monday, May 2, 2005"),
        ("english", "2005/01/08 Court hears the case in the U.S.", "Jan. 8, 2005"),
        ("arabic", "اجتمعت المحكمة اليوم.", "السبت 8 يناير 2005"),
        ("czech", "Soud jednal o případu", "Sobota, 8. ledna 2005"),
        ("french", "La cour examine l'affaire", "Samedi 1er janvier 2005"),
        ("greek", "Το δικαστήριο συνεδρίασε.", "Σάββατο, 8 Ιανουαρίου 2005"),
        ("hebrew", "בית המשפט דן בתיק", "שבת, ה-1 בינואר, 2005"),
        ("hindi", "अदालत ने सुनवाई की।", "बुधवार, मार्च २३, २००७"),
        (None, "Court hears the case", "2 May 2005"),
        (None, "Court hears the case", "02.05.2005"),
        (None, "Court hears the case", "28 maart 2005"),
    ],
)
@pytest.mark.parametrize("separator", ["\n", "\n\n"])
def test_headlines_and_date_lines(language, headline, date, separator):
    text = separator.join([headline, date, BODY])
    expected = [("headline", headline), ("dateline", date), *BODY_PARTS]
    assert kinds(text, language) == expected
    assert kinds(separator.join([date, headline.rstrip(".।"), BODY]), language)[0] == (
        "dateline",
        date,
    )


def test_headings_but_not_lists():
    text = f"Court news\n\n{BODY}\n\nThe way ahead\n{BODY}\n\neggs\nmilk\ntea\n\n{BODY}"
    expected = [("headline", "Court news"), *BODY_PARTS, ("headline", "The way ahead")]
    expected += [*BODY_PARTS, ("body", "eggs"), ("body", "milk"), ("body", "tea")]
    assert kinds(text) == expected + BODY_PARTS


@pytest.mark.parametrize(
    "text",
    [
        "Loved it",
        "Loved it. Will buy again.",
        "eggs\nmilk\ntea and bread",
        f"The court has met.\n\n{BODY}",
        "On 3 May 2005 the court met in London again.\nIt was the first time.",
        "2 May 2005",
    ],
)
def test_no_headline(text):
    assert {kind for kind, _ in kinds(text)} == {"body"}


def test_split_cluster_counts_the_body_of_each_document():
    cluster = Cluster([Document(f"News\n\n{BODY}"), Document(BODY)])
    found = split_cluster(cluster)
    assert [(one.document, one.kind, one.position) for one in found] == [
        (0, "headline", 0),
        (0, "body", 0),
        (0, "body", 1),
        (1, "body", 0),
        (1, "body", 1),
    ]
    for one in found:
        assert cluster.documents[one.document].text[one.start : one.end] == one.text


CHARACTERS = "aZéाक।.!?;…|()[]\"'»«“” \t\n\r\u00a0\u200b\ufeff\u2029अшئ؟א0९-*_"
PHRASES = ["etc. ", "\r\n", " . ", "\n\n", "Mr. ", "8. ", "This is it. ", "word " * 15]
PIECES = st.sampled_from([*CHARACTERS, *PHRASES])


@given(
    st.lists(PIECES, max_size=40).map("".join) | st.text(max_size=60),
    st.sampled_from([None, *BY_HAND]),
)
def test_spans_cover_every_word_in_order(text, language):
    spans = split_sentences(text, language)
    ends = [0, *(end for _, end in spans)]
    assert all(
        last <= start < end for last, (start, end) in zip(ends, spans, strict=False)
    )
    covered = {number for span in spans for number in range(*span)}
    assert {match.start() for match in re.finditer(r"\w", text)} <= covered
    assert all(re.search(r"\w", text[start:end]) for start, end in spans)
    found = split_cluster(Cluster([Document(text)], language=language))
    assert all(text[one.start : one.end] == one.text for one in found)
    assert {(one.start, one.end) for one in found if one.kind == "body"} <= set(spans)


def test_a_long_line_is_one_sentence_or_many():
    assert len(cut("many words and no end " * 20_000)) == 1
    assert len(cut("This is a sentence. " * 5_000)) == 5_000


def data(name):
    path = outside_data("text") / name
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def test_news_has_a_headline_and_a_date_line():
    rows = [row for row in data("multiling2011.jsonl") if row["topic"] == "M003"]
    for row in rows:
        documents = [Document(one["text"]) for one in row["documents"]]
        found = split_cluster(Cluster(documents, language=row["language"]))
        for number in range(len(documents)):
            first = [one.kind for one in found if one.document == number][:3]
            assert first == ["headline", "dateline", "body"]


def test_reviews_have_no_headlines():
    for row in data("fewsum.jsonl")[::5]:
        documents = [Document(one["text"]) for one in row["documents"]]
        found = split_cluster(Cluster(documents, language="english"))
        assert {one.kind for one in found} == {"body"}
