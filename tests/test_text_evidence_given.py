"""Sentences that are in the prompt already, for ``EvidenceSelector``."""

from itertools import combinations

import numpy as np
import pytest

import variegate as vg
from question_instances import DATA, selector, vectors_of
from variegate.text import Document, EvidenceSelector
from variegate.text.evidence_model import MAX_CANDIDATES, as_ground_set
from variegate.text.passages import Passages
from variegate.text.question_input import ViewBuilder
from variegate.text.question_view import QuestionView
from variegate.text.word_vectors import load_word_vectors

QUESTION = "How much water does the tank hold, and who repairs the pump?"
SENTENCES = [
    "The tank holds ten litres of water.",
    "A fitter from the village repairs the pump.",
    "Paint the steel in spring.",
    "The pump is as loud as a tractor.",
]
PROMPT = ["Thank you.\nIts tank can hold about ten litres of water. Please ask again."]


def probabilities(model, **settings):
    return np.array(
        [
            one.probability
            for one in model.select(QUESTION, SENTENCES, **settings).marked
        ]
    )


def test_sentences_that_repeat_the_prompt_are_less_likely():
    model = EvidenceSelector.pretrained()
    alone, beside = probabilities(model), probabilities(model, given=PROMPT)
    assert beside[0] < 0.9 * alone[0]
    assert (beside / alone).argmin() == 0
    assert model.select(QUESTION, SENTENCES, "1s").indices.tolist() == [0]
    evidence = model.select(QUESTION, SENTENCES, "1s", given=PROMPT)
    assert evidence.indices.tolist() == [1]
    assert [one.sentence.text for one in evidence.marked] == SENTENCES
    documents = [Document(" ".join(SENTENCES))]
    evidence = model.select(QUESTION, documents, "1s", given=PROMPT)
    assert evidence.text == SENTENCES[1]


@pytest.mark.parametrize("given", [(), [], [""], ["Thank you.", "# Water"]])
def test_a_prompt_without_sentences_changes_nothing(given):
    model = EvidenceSelector.pretrained()
    for settings in ({}, {"budget": "12w"}, {"omega": 4.0}):
        one = model.select(QUESTION, SENTENCES, **settings)
        other = model.select(QUESTION, SENTENCES, given=given, **settings)
        assert one.as_dict() == other.as_dict()


@pytest.mark.parametrize("embed", [None, vectors_of, "wordllama"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_probabilities_are_those_beside_given_items(embed):
    words = None
    if embed == "wordllama":
        pytest.importorskip("wordllama", reason="needs 'variegate[vectors]'")
        words = load_word_vectors()
    model = EvidenceSelector.pretrained(embed if words else None)
    if embed is vectors_of:
        model = selector(embed=embed).fit(*DATA)
    told = Passages.from_documents([Document(PROMPT[0])]).texts
    every, n = [*SENTENCES, *told], len(SENTENCES)
    assert len(every) == 6

    def view(texts):
        documents = np.arange(len(texts)) // n  # those of the prompt are another one
        make, vectors = words.embed if words else embed, None
        if make is not None:
            vectors = np.asarray(make([QUESTION, *texts]), dtype=float)
        titles = [""] * len(texts)
        return QuestionView(QUESTION, texts, titles, documents, vectors, words)

    candidates, both = view(SENTENCES), view(every)
    both.__dict__["weights"] = candidates.weights  # terms are as rare as without
    quality = np.zeros((len(every), len(model.feature_names_)))
    quality[:n] = model.quality_.of(candidates)
    blocks, learned = both.blocks(), model.models_[0]
    found = probabilities(model, given=PROMPT)
    given = vg.GroundSet(quality, blocks, given=range(n, len(every)))
    np.testing.assert_allclose(
        found, learned.ensemble(given).marginals(), rtol=0, atol=1e-9
    )
    # By all subsets that hold the sentences of the prompt.
    ensemble, total, expected = learned.ensemble(vg.GroundSet(quality, blocks)), 0, 0
    for size in range(n + 1):
        for subset in map(list, combinations(range(n), size)):
            p = np.exp(ensemble.log_prob([*subset, *range(n, len(every))]))
            total, expected = total + p, expected + p * np.isin(np.arange(n), subset)
    np.testing.assert_allclose(found, expected / total, rtol=0, atol=1e-9)


def test_of_a_long_prompt_the_best_sentences_are_given():
    prompt = [f"Note number {k} is of no use here." for k in range(300)]
    prompt[250] = "The tank of the pump holds water."
    builder = ViewBuilder(None)
    sections = np.zeros(len(SENTENCES), dtype=np.intp)
    view = builder.view(QUESTION, SENTENCES, [""] * len(SENTENCES), sections)
    told = builder.prompt_view(view, prompt, None)
    assert len(told) == 300
    ground_set = as_ground_set(view, np.ones((4, 1)), None, told)
    assert ground_set.given.tolist() == list(range(4, 4 + MAX_CANDIDATES))
    places = ground_set.features("place")[:, 0]
    assert places[:4].tolist() == [0.0, 1.0, 2.0, 3.0]
    assert (np.diff(places)[3:] >= 1000.0).all()
    assert told.places[250] + places[3] + 1000.0 in places


def test_candidates_of_many_sentences_stand_beside_the_prompt():
    texts = [*SENTENCES, *(f"Note number {k} is of no use here." for k in range(300))]
    evidence = EvidenceSelector.pretrained().select(QUESTION, texts, "1s", given=PROMPT)
    assert evidence.indices.tolist() == [1]
    shown = [one.probability for one in evidence.marked if one.probability is not None]
    assert len(shown) == MAX_CANDIDATES


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_embeddings_have_no_rows_for_the_prompt():
    model = selector(max_iter=3, embed=vectors_of).fit(*DATA)
    vectors = vectors_of([QUESTION, *SENTENCES])
    beside = probabilities(model, embeddings=vectors, given=PROMPT)
    np.testing.assert_array_equal(beside, probabilities(model, given=PROMPT))
    model.embed = None
    with pytest.raises(ValueError, match="no rows for the sentences of given texts"):
        model.select(QUESTION, SENTENCES, embeddings=vectors, given=PROMPT)
