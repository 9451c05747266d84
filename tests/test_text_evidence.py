"""``EvidenceSelector``: learning, choosing and budgets."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from question_instances import (
    DATA,
    MADE,
    NEW,
    QUESTION,
    SENTENCES,
    boosted,
    given_vectors,
    linear,
    selector,
    vectors_of,
)
from variegate.text import Budget, Document, EvidenceSelector, EvidenceWarning
from variegate.text.evidence import MAX_CANDIDATES
from variegate.text.passages import Passages
from variegate.text.word_vectors import load_word_vectors

# Generated questions are easy: weights grow for as long as the solver runs.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def lists(choices):
    return [one.tolist() for one in choices]


# Learning -----------------------------------------------------------------------------


def test_questions_of_many_sentences_are_cut_to_candidates():
    texts = [[*one, *(f"Note {k}." for k in range(3_000))] for one in MADE.sentences]
    model = selector(n_copies=1, max_iter=5).fit(
        MADE.questions[:2], texts[:2], DATA[2][:2]
    )
    assert model.training_["n_sentences"] == 2 * MAX_CANDIDATES
    assert model.training_["n_wanted"] == 4


@pytest.mark.parametrize("model", [linear, boosted])
def test_it_learns_to_choose(model):
    assert lists(model().predict(NEW.questions, NEW.sentences)) == NEW.wanted


@pytest.mark.parametrize("model", [linear, boosted])
def test_predict_and_select_are_equal(model):
    found = model().predict(NEW.questions, NEW.sentences, "12w", titles=NEW.titles)
    for chosen, *args, titles in zip(
        found, NEW.questions, NEW.sentences, NEW.titles, strict=True
    ):
        evidence = model().select(*args, "12w", titles=titles)
        assert evidence.indices.tolist() == chosen.tolist()
        assert evidence.text.splitlines() == [args[1][k] for k in chosen]
        assert evidence.question == args[0]
        assert len(evidence.reasons) == len(chosen)


POOL = [
    *SENTENCES,
    *MADE.sentences[0],
    "They repaired the bridge of Ribe and the mill of Odense in 1934.",
    "The bridge",
    "7",
    "\u2026",
    "Мост через реку построили в 1934 году.",
    "这座桥很旧。",
]
SOME = st.lists(
    st.tuples(
        st.sampled_from([QUESTION, *NEW.questions, "Кто построил мост?", "the"]),
        st.lists(
            st.tuples(st.sampled_from(POOL), st.sampled_from(["", "Ribe", "The mill"])),
            min_size=1,
            max_size=9,
        ),
    ),
    min_size=1,
    max_size=6,
)


@pytest.mark.filterwarnings("ignore::variegate.text.EvidenceWarning")
@pytest.mark.parametrize("model", [linear, boosted])
@settings(max_examples=30, deadline=None)
@given(SOME, st.sampled_from([None, "9w", "2s"]))
def test_a_choice_does_not_depend_on_other_questions(model, several, budget):
    questions = [question for question, _ in several]
    texts = [[text for text, _ in pairs] for _, pairs in several]
    titles = [[title for _, title in pairs] for _, pairs in several]
    together = model().predict(questions, texts, budget, titles=titles)
    for chosen, *args, named in zip(together, questions, texts, titles, strict=True):
        alone = model().select(*args, budget, titles=named)
        assert chosen.tolist() == alone.indices.tolist()


def test_marks_may_be_numbers_or_masks():
    masks = [np.isin(np.arange(8), one) for one in MADE.wanted]
    other = selector().fit(*DATA[:2], masks)
    np.testing.assert_array_equal(other.models_[0].theta_, linear().models_[0].theta_)


def test_constant_features_that_rounding_blurs_do_not_stop_learning():
    # No question has a number: the mean of equal values differed from them by 1e-17,
    # which the solver took for the unit of a feature.
    model = selector(n_copies=1, max_iter=100).fit(*DATA)
    assert model.models_[0].solver_result_.n_iterations > 10
    assert lists(model.predict(NEW.questions, NEW.sentences)) == NEW.wanted


def test_auto_compares_both_on_held_out_questions():
    stages = []
    model = selector(quality_model="auto").fit(
        *DATA, progress=lambda *step: stages.append(step)
    )
    scores = model.training_["held_out_f"]
    assert scores["linear"] == 1.0
    assert 0.0 <= scores["boosting"] <= 1.0
    keeps_trees = scores["boosting"] >= scores["linear"] - 0.005
    assert (model.quality_.boosted is not None) == keeps_trees
    assert stages[-1] == ("comparing", 10, 10)
    assert "held-out F, linear quality: 1.000" in model.describe_training()
    assert "questions: 12\nsentences: 96\nwanted: 24" in model.describe_training()


@pytest.mark.parametrize(
    ("data", "groups"),
    [
        (DATA, ["one text"] * 12),
        (DATA, ["one text", "another"] * 6),
        ((*DATA[:2], [[]] * 12), None),
        ((*DATA[:2], [range(8)] * 12), None),
    ],
    ids=["one group", "two groups", "none wanted", "all wanted"],
)
def test_auto_is_linear_where_trees_cannot_be_learned(data, groups):
    model = selector(quality_model="auto", max_iter=3).fit(*data, groups=groups)
    assert model.quality_.boosted is None
    assert model.training_["held_out_f"] == {}


def test_given_and_computed_vectors_agree():
    given_model = selector().fit(*DATA, embeddings=given_vectors(MADE))
    computed = selector(embed=vectors_of).fit(*DATA)
    pair = [
        given_model.predict(
            NEW.questions, NEW.sentences, embeddings=given_vectors(NEW)
        ),
        computed.predict(NEW.questions, NEW.sentences),
    ]
    assert lists(pair[0]) == lists(pair[1])
    thetas = [one.models_[0].theta_ for one in (given_model, computed)]
    np.testing.assert_array_equal(*thetas)
    assert "cosine of embeddings" in given_model.feature_names_


def test_word_vectors():
    pytest.importorskip("wordllama", reason="needs 'variegate[vectors]'")
    model = selector(embed="wordllama").fit(*DATA)
    assert lists(model.predict(NEW.questions, NEW.sentences)) == NEW.wanted
    assert "near terms" in model.feature_names_
    vectors = load_word_vectors().embed([NEW.questions[0], *NEW.sentences[0]])
    with pytest.raises(ValueError, match=r'set embed="wordllama"'):
        model.select(NEW.questions[0], NEW.sentences[0], embeddings=vectors)
    chosen = EvidenceSelector.pretrained("wordllama").select(QUESTION, SENTENCES, "1s")
    assert chosen.text == SENTENCES[0]


# Choosing -----------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(0, 7), min_size=1, unique=True),
    st.sampled_from(["characters", "words", "sentences", "bytes", "tokens"]),
    st.integers(1, 60),
)
def test_a_budget_is_never_exceeded(rows, unit, amount):
    texts = [NEW.sentences[0][row] for row in rows]
    budget = Budget(amount, unit)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvidenceWarning)
        try:
            text = linear().select(NEW.questions[0], texts, budget).text
        except ValueError as error:
            assert "no sentence fits the budget" in str(error)  # noqa: PT017
            assert budget.costs(texts).min() > budget.limit
            return
    size = {
        "characters": len(text),
        "bytes": len(text.encode()),
        "words": len(text.split()),
        "sentences": len(text.splitlines()),
        "tokens": len(text.encode()) / 4,
    }
    assert size[unit] <= amount
    left = budget.limit - budget.costs(text.splitlines()).sum() if text else amount
    others = [one for one in texts if one not in text.splitlines()]
    assert all(cost > left for cost in budget.costs(others)) or not others


def test_tokens_with_a_counter():
    texts = ["a b c bridge", "repaired bridge", "x y"]
    budget = Budget(6, "tokens", count_tokens=lambda text: len(text.split()))
    chosen = linear().select(QUESTION, texts, budget)
    # A newline counts as a token: 2 + 1 + 2, but 4 + 1 + 2 is too many.
    assert 0 < sum(len(one.split()) + 1 for one in chosen.text.splitlines()) <= 7
    with pytest.raises(ValueError, match=r"budget of 1 token: the shortest takes 2"):
        linear().select(QUESTION, texts, Budget(1, "tokens", budget.count_tokens))


def test_more_are_chosen_the_larger_omega():
    model = EvidenceSelector.pretrained()
    sizes = [
        len(model.select(QUESTION, SENTENCES, omega=omega).sentences)
        for omega in (0.01, 0.3, 1.0, 3.0, 30.0, 1e4)
    ]
    assert sizes == sorted(sizes)
    assert (sizes[0], sizes[-1]) == (1, 4)


def test_a_budget_with_omega_is_not_filled():
    model = EvidenceSelector.pretrained()
    assert len(model.select(QUESTION, SENTENCES, "4s").sentences) == 4
    assert len(model.select(QUESTION, SENTENCES, "4s", omega=0.01).sentences) == 1


TEXT = (
    "# The bridge\n\nThe bridge was built in 1891. Masons repaired it in 1934.\n\n"
    "# The mill\n\nThe mill grinds wheat. Masons repaired it in 1934.\n"
)


def test_documents_have_headings_and_sections():
    second = Document("Rain fell hard. Why? The mill stood.", "b")
    passages = Passages.from_documents([Document(TEXT, "a"), second], "english")
    assert passages.texts == [
        "The bridge was built in 1891.",
        "Masons repaired it in 1934.",  # the repetition cannot be chosen
        "The mill grinds wheat.",
        "Rain fell hard.",
        "The mill stood.",
    ]
    bridge, mill = "# The bridge", "# The mill"
    assert passages.titles == [bridge, bridge, mill, "", ""]
    assert (np.diff(passages.sections) != 0).tolist() == [False, True, True, False]


def test_evidence_of_documents_knows_their_language():
    model = EvidenceSelector.pretrained()
    documents = [Document(TEXT, "a")]
    evidence = model.select(QUESTION, documents, "1s")
    assert evidence.language == "english"
    assert evidence.reasons == ['has "repaired"; its heading has "bridge"']
    assert repr(evidence) == "<Evidence: 1 of 6 sentences>"
    assert "Evidence: 1 of 6 sentences" in evidence._repr_html_()
    assert model.select(QUESTION, documents, "1s", language="none").language is None
    (sentence,) = (one for one in evidence.as_dict()["sentences"] if one["chosen"])
    assert sentence["text"] == "Masons repaired it in 1934."
    assert sentence["reason"] == evidence.reasons[0]
    assert TEXT[sentence["start"] : sentence["end"]] == sentence["text"]


def test_a_sentence_without_a_word_of_the_question_has_a_feature_as_reason():
    evidence = EvidenceSelector.pretrained().select(QUESTION, SENTENCES, "4s")
    assert evidence.reasons[1].startswith("largest effect: ")
    assert evidence.reasons[1].removeprefix("largest effect: ") in (
        EvidenceSelector.pretrained().feature_names_
    )


@pytest.mark.parametrize("model", [linear, boosted, EvidenceSelector.pretrained])
def test_one_sentence(model):
    assert model().select(QUESTION, SENTENCES[:1], "1s").text == SENTENCES[0]


def test_of_many_sentences_the_best_by_bm25_are_candidates():
    texts = [f"Town {k} has a mill." for k in range(9_900)]
    texts[5_000:5_000] = [f"Mason {k} repaired the bridge." for k in range(100)]
    evidence = EvidenceSelector.pretrained().select(QUESTION, texts, "5s")
    candidates = [one for one in evidence.marked if one.probability is not None]
    assert len(candidates) == MAX_CANDIDATES
    assert {one.sentence.text for one in candidates} >= set(texts[5_000:5_100])
    assert ((evidence.indices >= 5_000) & (evidence.indices < 5_100)).all()


def test_a_question_in_another_language():
    with pytest.warns(
        EvidenceWarning, match=r"no sentence has a word of the quest.*Wer"
    ):
        linear().select("Wer hat das gebaut?", SENTENCES)


@pytest.mark.parametrize(
    ("question", "texts"),
    [
        ("谁修了桥？", ["石匠修了桥。", "下雨了。"]),
        ("Кто построил мост?", ["Мост построил мастер.", "Шёл дождь."]),
        ("من رمم الجسر؟", ["رمم الجسر عمال.", "هطل المطر."]),
        ("a \ud800 bridge\x00?", ["The \ud800 bridge.\x00", ""]),
    ],
    ids=["Chinese", "Russian", "Arabic", "control characters"],
)
def test_other_scripts(question, texts):
    evidence = EvidenceSelector.pretrained().select(question, texts, "1s")
    assert evidence.indices.tolist() == [0]


def test_processes_share_questions():
    model, questions = EvidenceSelector.pretrained("wordllama"), [QUESTION] * 120
    together = model.predict(questions, [SENTENCES] * 120, n_jobs=2)
    alone = model.predict([QUESTION], [SENTENCES])[0]
    assert len(together) == 120
    assert all(np.array_equal(one, alone) for one in together)
