"""``EvidenceSelector``: model files, whole and damaged, and bad input."""

import json

import numpy as np
import pytest

import variegate as vg
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
from variegate.files.models import ModelFileError
from variegate.text import Document, EvidenceSelector

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

# Model files --------------------------------------------------------------------------


@pytest.mark.parametrize("model", [linear, boosted])
def test_a_saved_model_is_the_same(model, tmp_path):
    model().save(tmp_path / "a.json")
    loaded = vg.load(tmp_path / "a.json")
    loaded.save(tmp_path / "b.json")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    args = (NEW.questions[0], NEW.sentences[0])
    a, b = (
        [one.probability for one in each.select(*args).marked]
        for each in (model(), loaded)
    )
    assert a == b
    assert loaded.training_ == model().training_


def test_a_model_of_given_vectors_is_loaded_with_them(tmp_path):
    selector(embed=vectors_of).fit(*DATA).save(tmp_path / "a.json")
    loaded = EvidenceSelector.load(tmp_path / "a.json")
    message = "learned with vectors of 5 numbers that were given: give embeddings"
    with pytest.raises(ValueError, match=message):
        loaded.select(QUESTION, SENTENCES)
    loaded = EvidenceSelector.load(tmp_path / "a.json", embed=vectors_of)
    found = loaded.predict(NEW.questions, NEW.sentences)
    assert [one.tolist() for one in found] == NEW.wanted


def put(**changes):
    """Return what changes sections of a file: values by dotted names."""

    def damage(document):
        for name, value in changes.items():
            *path, last = name.split("__")
            section = document
            for part in path:
                section = section[part]
            section[last] = value

    return damage


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda d: d.pop("quality"), "quality"),
        (lambda d: d["quality"]["mean"].pop(), "names of features, but"),
        (lambda d: d["quality"]["names"].pop(), "names of features, but"),
        (put(quality__names=[1]), r"quality.names\[0\].*not a text"),
        (put(quality__scale=[0.0]), r"quality.scale\[0\].*not a number above 0"),
        (put(quality__boosted=None), "features"),
        (put(quality__boosted__n_features=3), "trees of 3 features|feature"),
        (put(quality__boosted__trees=[{}]), "quality.boosted.trees"),
        (lambda d: d.pop("vectors"), "vectors"),
        (put(vectors__kind="glove"), "vectors.kind.*not one of none, wordllama, given"),
        (put(vectors__size=-1), "vectors.size.*not a whole number"),
        (lambda d: d.pop("training"), "training"),
        (put(training__n_wanted=None), "training.n_wanted"),
        (
            put(training__held_out_f={"trees": 1.0}),
            "unknown .training.held_out_f.trees",
        ),
        (put(models=[]), "models"),
        (put(settings__quality_model="forest"), "unknown quality_model 'forest'"),
        (put(settings__l2=-1), "l2 must be a finite number >= 0"),
        (put(settings__depth=3), "depth"),
    ],
)
def test_a_damaged_section_is_named(tmp_path, damage, message):
    path = tmp_path / "model.json"
    boosted().save(path)
    document = json.loads(path.read_text())
    damage(document)
    path.write_text(json.dumps(document))
    if message == "features":  # the kernel and theta still fit: told when it is used
        with pytest.raises(ValueError, match="learned with other quality features"):
            EvidenceSelector.load(path).select(QUESTION, SENTENCES)
        return
    with pytest.raises(ModelFileError, match=message):
        vg.load(path)


# Bad input ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (("  ", SENTENCES), {}, ValueError, "the question is empty: give at least"),
        ((None, SENTENCES), {}, TypeError, "a question is a text, not of the type"),
        ((QUESTION, []), {}, ValueError, "there are no sentences to choose from"),
        ((QUESTION, [Document("")]), {}, ValueError, "there are no sentences to"),
        ((QUESTION, "Rain."), {}, TypeError, "texts must be a list of sentences, or"),
        ((QUESTION, Document("Rain.")), {}, TypeError, "texts must be a list of"),
        ((QUESTION, ["Rain.", 3]), {}, TypeError, "number 1 has the type int"),
        ((QUESTION, ["A.", Document("B.")]), {}, TypeError, "number 1 has the type Do"),
        ((QUESTION, SENTENCES, "1w"), {}, ValueError, "no sentence fits the budget"),
        ((QUESTION, SENTENCES, "5"), {}, ValueError, "the budget '5' has no unit"),
        ((QUESTION, SENTENCES), {"omega": 0.0}, ValueError, "omega must be a finite"),
        ((QUESTION, SENTENCES), {"titles": "abcd"}, TypeError, "titles must be a list"),
        ((QUESTION, SENTENCES), {"titles": ["a"]}, ValueError, "4 sentences, but 1 ti"),
        (
            (QUESTION, SENTENCES), {"titles": [None] * 4}, TypeError,
            "titles must be texts, but number 0 has the type NoneType",
        ),
        (
            (QUESTION, [Document("Rain fell.")]), {"titles": ["a", "b"]}, ValueError,
            "1 documents, but 2 titles",
        ),
        (
            (QUESTION, [Document("Rain fell.")]), {"titles": "a"}, TypeError,
            "titles must be a list of texts, not one text",
        ),
        (
            (QUESTION, [Document("Rain fell.")]), {"language": "elvish"}, ValueError,
            "unknown language 'elvish'",
        ),
        (
            (QUESTION, SENTENCES), {"embeddings": np.ones((5, 2))}, ValueError,
            "learned without vectors: leave embed and embeddings out",
        ),
        (
            (QUESTION, SENTENCES), {"embeddings": np.ones((4, 2))}, ValueError,
            r"one for each of 4 sentences, got an array of shape \(4, 2\)",
        ),
        (
            (QUESTION, SENTENCES), {"embeddings": np.full((5, 2), np.nan)}, ValueError,
            "embeddings must be finite numbers",
        ),
        (
            (QUESTION, SENTENCES), {"embeddings": "vectors"}, ValueError,
            "embeddings must be numbers, one row for the question",
        ),
    ],
)  # fmt: skip
def test_bad_input_to_select(arguments, options, error, message):
    with pytest.raises(error, match=message):
        linear().select(*arguments, **options)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"questions": []}, ValueError, "there are no questions"),
        ({"questions": "Who?"}, TypeError, "questions must be a list of questions"),
        ({"questions": ["?"] * 12}, ValueError, "question 0: the question is empty"),
        ({"sentences": [["A."]]}, ValueError, "12 questions, but sentences has 1"),
        ({"sentences": ["A."] * 12}, TypeError, "question 0: sentences must be a list"),
        ({"wanted": [[0]]}, ValueError, "12 questions, but 1 lists wanted"),
        ({"wanted": [[8]] * 12}, ValueError, "question 0: wanted: item 8 is out of"),
        ({"wanted": ["abc"] * 12}, ValueError, "question 0: wanted: a subset is a"),
        ({"titles": [["a"]]}, ValueError, "12 questions, but titles has 1 entries"),
        ({"titles": [["a"]] * 12}, ValueError, "question 0: 8 sentences, but 1 titles"),
        ({"titles": ["a"] * 12}, TypeError, "question 0: titles must be a list of"),
        ({"groups": [1]}, ValueError, "12 questions, but 1 groups"),
        ({"groups": "abcdefghijkl"}, TypeError, "groups must be a list with one for"),
        (
            {"embeddings": [np.ones((9, 2 + (k == 3))) for k in range(12)]}, ValueError,
            "question 3: embeddings have 3 columns, but those of question 0 have 2",
        ),
    ],
)  # fmt: skip
def test_bad_input_to_fit(change, error, message):
    names = ("questions", "sentences", "wanted")
    arguments = dict(zip(names, DATA, strict=True)) | change
    with pytest.raises(error, match=message):
        selector().fit(**arguments)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"quality_model": "forest"}, "unknown quality_model 'forest'"),
        ({"embed": "glove"}, "unknown embed 'glove'; there are wordllama"),
        ({"embed": 3}, "unknown embed 3; there are wordllama"),
        ({"embed": lambda texts: None}, r"question 0: embeddings must .* shape \(\)"),
        ({"lam": -1.0}, "lam must be a finite number >= 0"),
        ({"l2": np.inf}, "l2 must be a finite number >= 0"),
        ({"max_iter": 0}, "max_iter must be a whole number"),
        ({"n_copies": -1}, "n_copies must be a whole number of at least 0"),
        ({"random_state": "x"}, "random_state must be None"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        selector(**settings).fit(*DATA)


def test_vectors_of_another_size_and_boosting_of_one_group():
    model = selector(max_iter=3).fit(*DATA, embeddings=given_vectors(MADE))
    with pytest.raises(ValueError, match="learned with vectors of 5 numbers"):
        model.select(QUESTION, SENTENCES, embeddings=np.ones((5, 3)))
    with pytest.raises(ValueError, match="fewer than two groups: give more groups, or"):
        selector(quality_model="boosting").fit(*DATA, groups=[0] * 12)
    with pytest.raises(ValueError, match="unknown embed 'glove'"):
        EvidenceSelector.pretrained("glove")
