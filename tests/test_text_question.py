"""Words, terms and features of a question, by hand and by direct formulas."""

import re
import unicodedata

import numpy as np
import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from variegate.text import terms
from variegate.text.evidence_model import MarkedQuestion
from variegate.text.languages import LANGUAGES
from variegate.text.question_features import find_phrases, quality_features
from variegate.text.question_input import ViewBuilder
from variegate.text.question_view import MOST_TERMS, QuestionView
from variegate.text.terms import TermMatrix, Tokens, Vocabulary, as_term
from variegate.text.word_vectors import load_word_vectors
from variegate.text.words import split_words

IGNORED = LANGUAGES["english"].function_words | LANGUAGES["english"].pronouns
IGNORED |= set(terms._ASKING.split())
QUESTION = "Who repaired the old bridge?"
SENTENCES = ["Masons repaired the bridge in 1934.", "The bridge is old.", "Rain fell."]
TITLES = ["Bridge", "Bridge", "Weather"]
REPAIR, OLD, BRIDGE = np.log([4 / 1.5, 4 / 1.5, 4 / 2.5])  # (n + 1) / (df + 0.5)


def tiny(**more):
    return QuestionView(QUESTION, SENTENCES, TITLES, np.array([0, 0, 1]), **more)


def town(n_sentences=12):
    """Return a view of four documents whose sentences share terms."""
    things = ["the old bridge", "a mill in Ribe", "the tower", "rain and wind"]
    texts = [
        f"Number {k} is about {things[k % 4]} and {things[k * k % 3]}."
        for k in range(n_sentences)
    ]
    documents = np.arange(n_sentences) // 3
    titles = [f"Part {things[k]}" for k in documents % 4]
    question = "Who repaired the old bridge and the mill of Ribe?"
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((1 + n_sentences, 5))
    return QuestionView(question, texts, titles, documents, vectors)


def term_texts(view, numbers):
    return [view.vocabulary.terms[number] for number in numbers]


def sentence_terms(view):
    """Return the terms of each sentence, as texts."""
    terms = term_texts(view, view.content.facts("term"))
    return [
        [term for term, row in zip(terms, view.content.texts, strict=True) if row == k]
        for k in range(len(view))
    ]


# Words --------------------------------------------------------------------------------

WORD = regex.compile(r"[\p{L}\p{N}][\p{L}\p{N}\p{M}]*")


@pytest.mark.parametrize(
    "text", ["The café's two mills, 1.5 km", "Мост через реку", ""]
)
def test_words_are_letters_digits_and_marks(text):
    assert split_words(text) == WORD.findall(text)


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(max_codepoint=0x7F), max_size=30))
def test_words_of_ascii_text(text):
    assert split_words(text) == WORD.findall(text)


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(max_codepoint=0x0DFF), max_size=30))
def test_words_of_any_text(text):
    # Latin text is split by another pattern, which must find the same words.
    assert split_words(text) == WORD.findall(unicodedata.normalize("NFC", text))


def test_terms_are_stems_of_content_words():
    view = tiny()
    assert term_texts(view, view.terms) == ["repair", "old", "bridg"]
    assert sentence_terms(view) == [
        ["mason", "repair", "bridg", "1934"],
        ["bridg", "old"],
        ["rain", "fell"],
    ]
    assert as_term("МОСТЫ") == "мосты"


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(st.characters(max_codepoint=0x24F), min_size=1), max_size=9))
def test_facts_about_words(texts):
    # More words than a vocabulary has room for at first.
    words = [
        *(word for text in texts for word in split_words(text)),
        *(f"Number{k}x" for k in range(1500)),
        "his", "His", "HIS", "the", "The", "7th",
    ]  # fmt: skip
    vocabulary = Vocabulary("english")
    tokens = Tokens.of(vocabulary, [words])
    names = {number: word for word, number in vocabulary.items()}
    assert [names[number] for number in tokens.words] == words
    assert [names[number] for number in tokens.facts("lower")] == list(
        map(str.lower, words)
    )
    found = [vocabulary.terms[number] for number in tokens.facts("term")]
    assert found[:-6] == [
        "" if word.lower() in IGNORED else as_term(word) for word in words[:-6]
    ]
    assert found[-6:] == ["", "", "", "", "", "7th"]
    is_name = [
        bool(term) and word[0].isupper()
        for word, term in zip(words, found, strict=True)
    ]
    assert ((tokens.facts("name") > 0) == is_name).all()
    assert tokens.facts("pronoun")[-6:].tolist() == [1, 1, 0, 0, 0, 0]
    has_digit = [re.search(r"\d", word) is not None for word in words]
    assert ((tokens.facts("digit") > 0) == has_digit).all()


def test_a_vocabulary_with_many_words_is_replaced(monkeypatch):
    monkeypatch.setattr(terms, "_VOCABULARIES", {})
    monkeypatch.setattr(terms, "_MOST_WORDS", 2)
    first = terms.vocabulary_of("english")
    _ = first["one"]
    assert terms.vocabulary_of("english") is first
    _ = first["two"]
    assert len(terms.vocabulary_of("english")) == 0


def test_a_question_of_function_words_has_all_of_them_as_terms():
    view = QuestionView(
        "Who is who?", ["This is the man.", "Rain."], ["", ""], np.r_[0, 0]
    )
    assert term_texts(view, view.terms) == ["who", "is"]
    assert view.has.tolist() == [[0, 0], [0, 0]]


# Weights, scores and features ---------------------------------------------------------


def test_weights_coverage_and_bm25():
    view = tiny()
    np.testing.assert_allclose(view.weights, [REPAIR, OLD, BRIDGE])
    total = REPAIR + OLD + BRIDGE
    expected = np.array([REPAIR + BRIDGE, BRIDGE + OLD, 0.0]) / total
    np.testing.assert_allclose(view.coverage, expected)
    lengths, weight = [4, 2, 2], {"repair": REPAIR, "old": OLD, "bridg": BRIDGE}
    scores = [
        sum(
            weight[term] * 2.2 / (1.0 + 1.2 * (0.25 + 0.75 * length / np.mean(lengths)))
            for term in terms
            if term in weight
        )
        for terms, length in zip(sentence_terms(view), lengths, strict=True)
    ]
    np.testing.assert_allclose(view.bm25, scores)


def test_features_by_hand():
    features = quality_features(tiny())
    total = REPAIR + OLD + BRIDGE
    first, second = (REPAIR + BRIDGE) / total, (BRIDGE + OLD) / total
    coverage = np.array([first, second, 0.0])
    expected = {
        "coverage": coverage,
        "coverage, standardized": (coverage - coverage.mean()) / coverage.std(),
        "coverage, rank": np.log1p([0, 1, 2]),
        "BM25, rank": np.log1p([1, 0, 2]),
        "pairs of terms": [0, 0, 0],
        "rarest term": [REPAIR, OLD, 0],
        "terms of no other": [REPAIR / total, OLD / total, 0],
        "terms beyond the best": [REPAIR / total, 0, 0],
        "names of the question": [0, 0, 0],
        "numbers of the question": [0, 0, 0],
        "has a number": [1, 0, 0],
        "number, if one is asked": [0, 0, 0],
        "begins with a pronoun": [0, 0, 0],
        "length": np.log([6, 4, 2]),
        "length squared": np.log([6, 4, 2]) ** 2,
        "place": np.log1p([0, 1, 0]),
        "first": [1, 0, 1],
        "coverage before": [0, first, 0],
        "coverage after": [second, 0, 0],
        "coverage beside": [second, first, 0],
        "coverage after, if a reason is asked": [0, 0, 0],
        "coverage of the document": [1, 1, 0],
        "coverage of the document, rank": np.log1p([0, 0, 1]),
        "best coverage in the document": [first, first, 0],
        "is best in the document": [1, first == second, 1],
        "share of the title": [1, 1, 0],
        "coverage with the title": coverage,
        "title in the question": [1, 1, 0],
        "title in other documents": [0, 0, 0],
        "other title": [0, 0, 0],
        "first, title in the question": [1, 0, 0],
    }
    for name, values in expected.items():
        np.testing.assert_allclose(features[name], values, atol=1e-12, err_msg=name)


def test_wording_and_mentions_by_hand():
    view = QuestionView(
        "Why did Anna Berg leave Ribe in 1934?",
        [
            "She wrote to Anna Berg in 1934.",
            "He met Otto Lund in Ribe.",
            "It was cold.",
        ],
        ["Letters", "Otto Lund (painter)", "Ribe"],
        np.array([0, 1, 2]),
    )
    features = quality_features(view)
    expected = {
        "pairs of terms": [1, 0, 0],
        "names of the question": [2 / 3, 1 / 3, 0],
        "numbers of the question": [1, 0, 0],
        "other names": np.log1p([0, 2, 0]),
        "begins with a pronoun": [1, 1, 1],
        "title in the question": [0, 0, 1],
        "title in other documents": [0, 0, view.coverage[1]],
        "other title": [0, 0, 0],
    }
    for name, values in expected.items():
        np.testing.assert_allclose(features[name], values, atol=1e-12, err_msg=name)


WORDS = st.lists(st.sampled_from(["a", "A", "b", "B", "c"]), max_size=5)


@settings(max_examples=200, deadline=None)
@given(st.lists(WORDS, max_size=4), st.lists(WORDS, min_size=1, max_size=4))
def test_phrases_in_texts(phrases, texts):
    found = find_phrases(Tokens.of(Vocabulary(None), texts), phrases)
    marked = [f" {' '.join(text)} ".lower() for text in texts]
    names = [f" {' '.join(words)} ".lower() for words in phrases]
    expected = [
        [bool(words) and name in text for text in marked]
        for words, name in zip(phrases, names, strict=True)
    ]
    assert found.tolist() == expected


def test_cosines_are_those_of_dense_vectors():
    view = town()
    texts = sentence_terms(view)
    names = sorted({term for text in texts for term in text})
    counts = np.array([[text.count(name) for name in names] for text in texts])
    rarity = np.log((len(texts) + 1) / ((counts > 0).sum(axis=0) + 0.5)).clip(0.0)
    rows = counts * rarity
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    matrix = TermMatrix.of_tokens(view.content)
    np.testing.assert_allclose(matrix.cosines_to_row(2), rows @ rows[2], atol=1e-12)
    asked = ["bridg", "mill", "nowhere"]
    numbers = list(map(view.vocabulary.number_of_term, asked))
    vector = rarity * np.isin(names, asked)
    expected = rows @ vector / np.linalg.norm(vector)
    np.testing.assert_allclose(matrix.cosines(numbers), expected, atol=1e-12)
    expected = [[text.count(term) for term in asked] for text in texts]
    np.testing.assert_array_equal(matrix.counts_of(numbers), expected)


# Similarity ---------------------------------------------------------------------------


def test_blocks():
    view = town()
    blocks = view.blocks()
    assert list(blocks) == ["words", "terms", "place", "embedding"]
    root = np.sqrt(view.weights)
    for j, k in ((0, 1), (3, 8), (5, 5)):
        a, b = (view.has[row] * root for row in (j, k))
        cosine = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
        assert blocks["terms"][j] @ blocks["terms"][k] == pytest.approx(cosine)
    assert blocks["terms"].shape == (12, MOST_TERMS)
    np.testing.assert_allclose(np.linalg.norm(blocks["words"], axis=1), 1.0, rtol=0.2)
    places = blocks["place"][:, 0]
    assert places[:4].tolist() == [0, 1, 2, 1000]
    centred = view.embeddings[1:] - view.embeddings[1:].mean(axis=0)
    centred /= np.linalg.norm(centred, axis=1, keepdims=True)
    np.testing.assert_allclose(blocks["embedding"], centred)


def test_of_many_terms_the_heaviest_are_compared():
    terms = [f"word{k}x" for k in range(40)]
    texts = [" ".join(terms[:k]) for k in range(1, 41)]
    view = QuestionView(" ".join(terms), texts, [""] * 40, np.zeros(40, dtype=int))
    used = (view.blocks()["terms"] != 0.0).any(axis=0)
    assert used.shape == (MOST_TERMS,)
    heaviest = np.argsort(-view.weights, kind="stable")[:MOST_TERMS]
    expected = view.has[:, heaviest].any(axis=1)
    assert ((view.blocks()["terms"] != 0.0).any(axis=1) == expected).all()


def test_leave_out_is_a_view_built_without_the_sentences():
    view = town()
    gone = np.array([1, 3, 4, 5, 9])
    kept = np.setdiff1d(np.arange(12), gone)
    fresh = QuestionView(
        view.question,
        [view.sentences[k] for k in kept],
        [view.titles[k] for k in kept],
        view.documents[kept],
        view.embeddings[np.r_[0, kept + 1]],
    )
    part = view.leave_out(gone)
    assert_same_features(part, fresh)


def assert_same_features(view, other):
    for found, expected in (
        (quality_features(view), quality_features(other)),
        (view.blocks(), other.blocks()),
    ):
        assert list(found) == list(expected)
        for name, values in found.items():
            np.testing.assert_array_equal(values, expected[name], err_msg=name)


def test_take_keeps_weights_and_places():
    view = town()
    rows = np.array([0, 2, 7])
    part = view.take(rows)
    assert part.sentences == [view.sentences[k] for k in rows]
    np.testing.assert_array_equal(part.weights, view.weights)
    np.testing.assert_array_equal(part.coverage, view.coverage[rows])
    np.testing.assert_array_equal(part.places, view.places[rows])
    np.testing.assert_array_equal(part.embeddings, view.embeddings[[0, 1, 3, 8]])


def test_a_question_within_a_number_of_sentences():
    view = town()
    question = MarkedQuestion(view, np.array([2, 11]), 4)
    assert question.limit_sentences(12) is question
    order = [k for k in np.argsort(-view.bm25, kind="stable") if k not in (2, 11)]
    part = question.limit_sentences(5)
    rows = sorted([2, 11, *order[:3]])
    assert part.view.sentences == [view.sentences[k] for k in rows]
    assert [rows[k] for k in part.wanted] == [2, 11]
    assert part.group == 4
    np.testing.assert_array_equal(part.view.coverage, view.coverage[rows])
    assert question.limit_sentences(1).view.sentences == [
        view.sentences[k] for k in (2, 11)
    ]


def test_copies_keep_the_wanted_sentences():
    question = MarkedQuestion(town(), np.array([2, 7]), 5)
    rng = np.random.default_rng(0)
    copies = list(question.copies(50, rng))
    wanted = [question.view.sentences[k] for k in (2, 7)]
    for copy in copies:
        assert [copy.view.sentences[k] for k in copy.wanted] == wanted
        rest = iter(question.view.sentences)
        assert all(one in rest for one in copy.view.sentences)  # in the same order
        assert copy.group == 5
        assert len(copy.view) > 2
    assert len({len(copy.view) for copy in copies}) > 3
    whole = MarkedQuestion(question.view, np.arange(12), 0)
    assert all(len(copy.view) == 12 for copy in whole.copies(5, rng))


# Vectors ------------------------------------------------------------------------------


def test_word_vectors_by_single_words():
    pytest.importorskip("wordllama", reason="needs 'variegate[vectors]'")
    vectors = load_word_vectors()
    view = ViewBuilder("wordllama").view(QUESTION, SENTENCES, TITLES, np.r_[0, 0, 1])
    words = [
        ["masons", "repaired", "bridge", "1934"],
        ["bridge", "old"],
        ["rain", "fell"],
    ]
    asked = vectors(["repaired", "old", "bridge"])
    for row, content in enumerate(words):
        of_words = vectors(content)
        norms = np.linalg.norm(asked, axis=1)[:, None] * np.linalg.norm(
            of_words, axis=1
        )
        nearest = (asked @ of_words.T / norms).max(axis=1)
        np.testing.assert_allclose(view.nearness[row], nearest.clip(0.0), rtol=1e-5)
    summed = vectors(["rain", "fell"]).sum(axis=0)
    np.testing.assert_allclose(view.embeddings[3], summed, rtol=1e-5)
    assert (view.kind_of_vectors, view.vector_size) == ("wordllama", 256)
    # Given as they are, they have the same features, without those of single words.
    given_view = tiny(embeddings=view.embeddings)
    features, more = quality_features(given_view), quality_features(view)
    for name, values in features.items():
        np.testing.assert_array_equal(values, more[name], err_msg=name)
    assert len(more) > len(features) > len(quality_features(tiny()))
    assert "near terms" in view.blocks()


def test_vectors_that_a_view_lacks():
    with pytest.raises(ValueError, match="nearness needs word vectors"):
        _ = tiny().nearness
