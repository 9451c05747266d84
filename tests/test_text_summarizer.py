import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import variegate as vg
from text_instances import BAKERY, CLUSTERS, STORM, STORM_AGAIN
from variegate.files.models import ModelFileError
from variegate.text import Budget, Cluster, Document, Summarizer


@pytest.fixture(scope="module")
def model():
    return Summarizer(
        budget="30w", omega=(0.25, 1.0, 4.0), lam=4.0, n_samples=200, max_iter=1000
    ).fit(CLUSTERS)


def test_a_summary_is_made_of_sentences_in_reading_order(model):
    summary = model.summarize([STORM, STORM_AGAIN], "30w", language="english")
    assert 0 < len(summary.text.split()) <= 30
    places = [(s.document, s.start) for s in summary.sentences]
    assert places == sorted(places)
    for sentence in summary.sentences:
        assert sentence.text in (STORM, STORM_AGAIN)[sentence.document]
    assert str(summary) == summary.text


@pytest.mark.parametrize(
    ("budget", "length"),
    [
        ("20w", lambda text: len(text.split())),
        ("90c", len),
        ("2s", lambda text: len(text.split("\n"))),
        ("120b", lambda text: len(text.encode())),
    ],
)
def test_budgets_are_kept_and_filled(model, budget, length):
    amount = Budget.parse(budget).amount
    summary = model.summarize([STORM], budget)
    assert length(summary.text) <= amount
    left = [
        entry.sentence.plain
        for entry in summary.marked
        if entry.probability is not None and not entry.chosen
    ]
    assert all(length(f"{summary.text}\n{text}") > amount for text in left)


def test_every_sentence_is_accounted_for(model):
    summary = model.summarize([STORM, STORM_AGAIN], "2s", language="english")
    kinds = [entry.sentence.kind for entry in summary.marked]
    assert kinds.count("headline") == 2
    for entry in summary.marked:
        if entry.sentence.kind != "body":
            assert entry.probability is None
            assert not entry.chosen
    # The repeated sentence is a candidate once.
    repeated = [e for e in summary.marked if "Monday morning" in e.sentence.text]
    assert [entry.probability is None for entry in repeated] == [False, True]
    plain = json.loads(json.dumps(summary.as_dict()))
    assert plain["summary"] == summary.text
    assert sum(entry["chosen"] for entry in plain["sentences"]) == 2
    chosen = [i for i, entry in enumerate(summary.marked) if entry.chosen]
    assert summary.selection.indices.tolist() == chosen
    assert plain["stop_reason"] == summary.selection.stop_reason
    assert plain["stop_reason"].startswith(
        "no further item fits the budget: mean ROUGE"
    )
    assert (plain["gap"], plain["is_optimal"]) == (None, False)


def test_larger_omegas_want_more(model):
    def expected_size(omega):
        summary = model.summarize([STORM, STORM_AGAIN], omega=omega)
        return sum(entry.probability or 0.0 for entry in summary.marked)

    sizes = [expected_size(omega) for omega in (0.25, 0.5, 1.0, 2.0, 4.0)]
    assert sizes == sorted(sizes)
    assert sizes[-1] > sizes[0]


def test_between_learned_omegas_parameters_are_mixed(model):
    low, middle, high = model.models_
    assert model.family_.at(1.0) is middle
    mixed = model.family_.at(2.0)  # half way in log(omega)
    assert mixed.theta_ == pytest.approx((middle.theta_ + high.theta_) / 2)
    assert low.theta_ != pytest.approx(mixed.theta_)
    assert model.summarize([STORM], omega=2.0).omega == 2.0


def test_same_seed_same_summary(model):
    texts = {model.summarize([STORM, BAKERY], "20w").text for _ in range(3)}
    assert len(texts) == 1


def test_many_sentences_are_reduced_to_the_best(model, monkeypatch):
    monkeypatch.setattr("variegate.text.summarizer.MAX_CANDIDATES", 4)
    summary = model.summarize([STORM, BAKERY], "10w")
    with_probability = [e for e in summary.marked if e.probability is not None]
    assert len(with_probability) == 4
    assert summary.text


def test_vectors_of_ones_own():
    calls = []

    def embed(texts):
        calls.append(len(texts))
        return np.random.default_rng(0).standard_normal((len(texts), 5))

    model = Summarizer(embed=embed, budget="30w", n_samples=100, max_iter=1000)
    assert model.fit(CLUSTERS).summarize([STORM], "20w").text
    assert len(calls) == 3


def test_files_do_not_depend_on_the_order_of_sets(tmp_path):
    code = (
        "import sys; from text_instances import *; from variegate.text import *; "
        "model = Summarizer(budget='1s', max_iter=2); "
        "model.fit(CLUSTERS).save(sys.argv[1])"
    )
    paths = [tmp_path / "1.json", tmp_path / "2.json"]
    for path in paths:
        command = [sys.executable, "-W", "ignore", "-c", code, str(path)]
        places = [str(Path(__file__).parent), *filter(None, sys.path)]
        chosen = {"PYTHONPATH": os.pathsep.join(places), "PYTHONHASHSEED": path.stem}
        subprocess.run(command, env=os.environ | chosen, check=True)
    first, second = (path.read_bytes() for path in paths)
    assert first == second


# Keeping ---------------------------------------------------------------------------


def test_saved_and_loaded_it_says_the_same(model, tmp_path):
    path = tmp_path / "model.json"
    model.save(path)
    for loaded in (Summarizer.load(path), vg.load(path)):
        assert isinstance(loaded, Summarizer)
        assert loaded.omegas_ == model.omegas_
        assert loaded.training_ == model.training_
        for omega in (0.25, 2.0, 4.0):
            one = model.summarize([STORM, BAKERY], "25w", omega)
            other = loaded.summarize([STORM, BAKERY], "25w", omega)
            assert one.as_dict() == other.as_dict()


def test_files_that_are_no_summarizer(model, tmp_path):
    path = tmp_path / "model.json"
    model.save(path)
    good = json.loads(path.read_text())

    def refuse(change, message):
        path.write_text(json.dumps(good | change))
        with pytest.raises(ModelFileError, match=message):
            Summarizer.load(path)

    known = "evidence-selector, keyframe-picker, .*summarizer"  # and those installed
    refuse({"type": "oracle"}, f"unknown type of model 'oracle'; known are {known}")
    refuse({"models": []}, 'the section "models" is missing')
    refuse({"settings": {"mood": 1}}, "unknown settings: mood")
    refuse({"settings": {"features": "dice"}}, "unknown features 'dice'")
    model.models_[0].save(path)
    with pytest.raises(ModelFileError, match="holds a LargeMarginDPP, no summarizer"):
        Summarizer.load(path)


def test_parameters_follow_scikit_learn(model):
    copied = clone(model)
    assert copied.get_params()["omega"] == model.omega
    assert not hasattr(copied, "models_")


# Bad input -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"similarity": "jaccard"}, "unknown similarity 'jaccard'; there are mkr, cos"),
        ({"features": "all"}, "unknown features 'all'; there are paper, full"),
        ({"omega": -1.0}, "omega must be one or more positive numbers"),
        ({"omega": ()}, "omega must be one or more positive numbers"),
        ({"budget": "250"}, "has no unit"),
        ({"n_samples": 0}, "n_samples must be a whole number"),
    ],
)
def test_bad_settings(options, message):
    with pytest.raises(ValueError, match=message):
        Summarizer(**options).fit(CLUSTERS)


def test_bad_clusters():
    with pytest.raises(ValueError, match="there are no clusters to learn from"):
        Summarizer().fit([])
    bare = Cluster([Document(STORM)], id="storm-7")
    with pytest.raises(ValueError, match=r"cluster 1 \(storm-7\) has no reference"):
        Summarizer().fit([CLUSTERS[0], bare])


def test_bad_questions(model):
    with pytest.raises(ValueError, match="there is no text to summarize"):
        model.summarize(["  \n "])
    with pytest.raises(ValueError, match="no sentence fits the budget of 5 characters"):
        model.summarize([STORM], "5c")
    with pytest.raises(ValueError, match=r"learned for 0\.25 to 4"):
        model.summarize([STORM], omega=9.0)
    with pytest.raises(ValueError, match="unknown language"):
        model.summarize([STORM], language="klingon")
    with pytest.raises(ValueError, match="learned for 1 only; learn several"):
        Summarizer(budget="30w", similarity="cos").fit(CLUSTERS).summarize(
            [STORM], omega=2.0
        )


def test_one_sentence_is_its_own_summary(model):
    text = "A storm closed the harbour of Aarhus on Monday morning."
    assert model.summarize(text, "1s").text == text


def test_sentences_of_weightless_words_can_be_chosen():
    # Their tf-idf vectors are zero: with the cosine they would be like nothing at all,
    # not even themselves.
    text = (
        "To be or not to be that is. Rain fell in Oslo today. Cats sleep all day long."
    )
    cluster = Cluster([Document(text)], ["To be or not to be."], "english")
    model = Summarizer(budget="30w", similarity="cos").fit([cluster])
    summary = model.summarize([text], "8w", language="english")
    assert all(entry.probability > 0.0 for entry in summary.marked)
    alone = model.summarize(["Rain fell in Oslo today."], "1s")
    assert alone.text == "Rain fell in Oslo today."


def test_trouble_while_learning_names_the_cluster(monkeypatch):
    def odd(self, view, rows=None):
        n_features = 1 + (view.cluster.id == CLUSTERS[1].id)
        return vg.GroundSet(np.ones((len(view), n_features)))

    monkeypatch.setattr(Summarizer, "_ground_set", odd)
    with pytest.raises(ValueError, match=r"^cluster 1 \(bakery\): .*quality"):
        Summarizer().fit(CLUSTERS)


def test_what_was_learned_with_vectors_needs_them(tmp_path):
    def embed(texts):
        return np.random.default_rng(0).standard_normal((len(texts), 5))

    path = tmp_path / "m.json"
    Summarizer(embed=embed, budget="30w", random_state=7).fit(CLUSTERS).save(path)
    with pytest.raises(ValueError, match="learned with vectors of your own: set embed"):
        Summarizer.load(path).summarize([STORM], "20w")
    loaded = Summarizer.load(path, embed=embed)
    assert loaded.random_state == 7
    assert loaded.summarize([STORM], "20w").text


def test_numbers_of_numpy_can_be_saved(tmp_path):
    omegas = (np.float32(0.5), np.int64(2))
    settings = {"budget": Budget(30, "words"), "similarity": "cos", "max_iter": 1000}
    model = Summarizer(omega=omegas, **settings)
    model.fit(CLUSTERS).save(tmp_path / "m.json")
    assert Summarizer.load(tmp_path / "m.json").omegas_ == (0.5, 2.0)


def test_training_budgets_that_nothing_fits():
    with pytest.raises(ValueError, match=r"cluster 0 \(storm\): no sentence fits the "):
        Summarizer(budget="2w").fit(CLUSTERS)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"embedded": 1}, '"embedded"'),
        ({"models": [{"omega": 0}]}, "makes no sense|section"),
    ],
)
def test_files_that_make_no_sense(model, tmp_path, change, message):
    path = tmp_path / "model.json"
    model.save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ModelFileError, match=message):
        Summarizer.load(path)


def test_weights_of_another_set_of_features(model, tmp_path):
    path = tmp_path / "model.json"
    model.save(path)
    document = json.loads(path.read_text())
    document["settings"]["features"] = "paper"
    path.write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match="25 weights for 17 features"):
        Summarizer.load(path)


def test_wrong_types(model):
    with pytest.raises(TypeError, match="document 0 is a int: documents are texts"):
        model.summarize([3])
    with pytest.raises(TypeError, match="references must be a list of summaries"):
        Summarizer().fit([Cluster([Document(STORM)], "one text")])
