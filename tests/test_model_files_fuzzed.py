"""Damaged model files of every kind: they load and can be described, or are refused.

Every field is replaced by what it is not, left out or renamed; files are cut and bits
of them flipped.  ``python tests/test_model_files_fuzzed.py 2000`` tries many.
"""

import contextlib
import copy
import dataclasses
import json
import re
import sys
import tempfile
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

import variegate as vg
from question_instances import QUESTION, SENTENCES, boosted
from table_instances import caller, fails, small_table
from variegate.application.description import describe
from variegate.files.model_format import _TOOLS, TOOLS
from variegate.files.models import ModelFileError
from variegate.tables import TableSelector
from variegate.text import EvidenceSelector

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

#: What a field is not, one of which it may be after all.
WRONG = [
    None, True, [], {}, "", "nan", "1e308", "\ud800", "\x1b[2J", -1, 0, 1, 0.5, 1e-320,
    1e149, 1e308, -1e308, 10**30, 10**400, [[]], [None], [1e149, 1e149], [[1.0]],
    {"a": {"b": [1]}}, {"type": "os.system", "parameters": {}}, [{"omega": 1}],
]  # fmt: skip


def plain():
    """Return a model with all that a mixture can hold."""
    data = vg.datasets.make_synthetic(n_sets=8, random_state=0)
    kernel = vg.Mixture([vg.Gaussian(2.0), vg.Kinds(3), vg.Metric(2)])
    model = vg.LargeMarginDPP(
        kernel=kernel, decoder=vg.decoding.MBR(n_samples=9), max_iter=5
    )
    return model.fit(data.ground_sets, data.subsets)


def selector(**settings):
    settings = {"kernel": vg.Kinds(3)} | settings
    return TableSelector(
        group="query",
        label="chosen",
        item="item",
        quality=["score", "freshness"],
        similarity="embedding",
        omega=2.0,
        validation_fraction=0.2,
        max_iter=5,
        **settings,
    ).fit(small_table())


def with_more(document):
    """Return the file of a selector as if its kernel had been chosen by comparison."""
    contender = {"name": "8 kinds", "how": "greedy", "k": None, "f": 0.5}
    contender |= {"behind": 0.1, "error": 0.02, "n_groups": 9}
    document["training"]["n_compared"] = 9
    document["training"]["compared"] = {
        "kernels": [contender, contender | {"name": "logistic regression", "k": 3}],
        "settings": [contender | {"error": None}],
    }
    policy = document["policy"]
    policy["k"] = 2
    policy["ordering"] = {"method": "mmr", "diversity": 0.5}
    policy["fallback"] = {
        "least": 0.5,
        "k": None,
        "ordering": None,
        "models": copy.deepcopy(document["models"]),
    }
    return document


def kept(path):
    return json.loads(path.read_text(encoding="utf-8"))


def document_of(model):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save(path)
        return kept(path)


@cache
def _plain_text():
    return json.dumps(document_of(plain()))


@cache
def _selector_text():
    return json.dumps(document_of(selector(kernel="multiple")))


def plain_document():
    return json.loads(_plain_text())


def selector_document():
    """Return the file of a selector with Gaussians, for the default settings."""
    return json.loads(_selector_text())


DOCUMENTS = {
    "mixture": plain_document,
    "Gaussian table selector": selector_document,
    "table selector": lambda: with_more(document_of(selector())),
    "boosted table selector": lambda: document_of(
        selector(kernel="linear", quality_model="boosting")
    ),
    "summarizer": lambda: kept(files("variegate.text") / "models" / "news.json"),
    "evidence selector": lambda: document_of(boosted()),
    "keyframes": lambda: kept(files("variegate.video") / "models" / "videos.json"),
}


def places(value, path=()):
    """Return where values stand, of long lists those at both ends."""
    yield path
    keys = []
    if isinstance(value, dict):
        keys = list(value)
    elif isinstance(value, list):
        keys = sorted({*range(min(2, len(value))), *range(len(value))[-1:]})
    for key in keys:
        yield from places(value[key], (*path, key))


def changed(document, path, change):
    """Return a copy in which ``change`` was made to a section, at a key."""
    document = copy.deepcopy(document)
    section = document
    for key in path[:-1]:
        section = section[key]
    change(section, path[-1])
    return document


def damages(document, n, seed):
    """Return bytes of ``n`` damaged files."""
    rng = np.random.default_rng(seed)
    every = [path for path in places(document) if path]
    whole = json.dumps(document).encode()
    for number in range(n):
        if number % 10 == 9:
            yield whole[: rng.integers(len(whole))]
            continue
        if number % 10 == 8:
            flipped = bytearray(whole)
            flipped[rng.integers(len(whole))] ^= 1 << rng.integers(8)
            yield bytes(flipped)
            continue
        path = every[rng.integers(len(every))]
        wrong = WRONG[rng.integers(len(WRONG))]

        def change(section, key, wrong=wrong, number=number):
            if number % 10 == 7:
                section.pop(key)
            elif number % 10 == 6 and isinstance(section, dict):
                section[f"{key}x"] = section.pop(key)
            else:
                section[key] = wrong

        yield json.dumps(changed(document, path, change)).encode()


def loads(path):
    """Load and describe a file; return whether that was possible."""
    try:
        model = vg.load(path)
    except ModelFileError:
        return False
    description = describe(model)
    str(description).encode()
    json.dumps(description.numbers)
    return True


@pytest.mark.fuzz
@pytest.mark.parametrize("kind", DOCUMENTS)
def test_damaged_files_load_or_are_refused(kind, tmp_path):
    document = DOCUMENTS[kind]()
    path = tmp_path / "model.json"
    path.write_text(json.dumps(document))
    assert loads(path)
    n_refused = 0
    for data in damages(document, 60 if kind == "keyframes" else 150, seed=0):
        path.write_bytes(data)
        n_refused += not loads(path)
    assert n_refused > 20


def leaves(value, path=()):
    """Return where values stand that hold no others, of lists those at the ends."""
    for place in places(value, path):
        leaf = value
        for key in place:
            leaf = leaf[key]
        if not isinstance(leaf, dict | list) or not leaf:
            yield place


def choose(model):
    """Use a loaded model, on data that a whole one could be used on."""
    if isinstance(model, TableSelector):
        model.select(small_table())
    elif isinstance(model, EvidenceSelector):
        model.select(QUESTION, SENTENCES)
    elif isinstance(model, vg.LargeMarginDPP):
        rng = np.random.default_rng(0)
        quality = rng.normal(size=(6, len(model.theta_)))
        model.predict([vg.GroundSet(quality, rng.normal(size=(6, 5)))])


@pytest.mark.fuzz
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", DOCUMENTS)
def test_every_leaf_is_checked(kind, tmp_path):
    """What loads can be described, and used or refused in words."""
    document, path = DOCUMENTS[kind](), tmp_path / "model.json"
    rng = np.random.default_rng(0)
    for number, place in enumerate(leaves(document)):
        # Every wrong value at settings; one elsewhere, for time.
        every = place[0] == "settings" and kind == "mixture"
        some = WRONG if every else [WRONG[k] for k in rng.permutation(len(WRONG))[:1]]
        for wrong in some:

            def put(section, key, wrong=wrong):
                section[key] = wrong

            path.write_text(json.dumps(changed(document, place, put)))
            if loads(path) and (every or number % 4 == 0):
                with contextlib.suppress(ValueError):
                    choose(vg.load(path))


def test_the_schema_knows_all_parameters_of_decoders_and_solvers():
    assert TOOLS.keys() == _TOOLS.keys()
    for name, tool in _TOOLS.items():
        TOOLS[name].check(dataclasses.asdict(tool()))


@pytest.mark.parametrize(
    ("decoder", "message"),
    [
        (("MBR", {"n_samples": "x"}), "settings.decoder.parameters.n_samples"),
        (("MBR", {"agreement": "x"}), "is 'x', not null"),
        (("MBR", {"search": "x"}), "not one of samples, greedy"),
        (("Local", {"max_steps": 0}), "not a whole number of at least 1"),
        (("ExpectedF", {"beta": 0.0}), "not a number above 0"),
        (("Greedy", {"mood": 1}), "unknown 'settings.decoder.parameters.mood'"),
    ],
)
def test_parameters_of_decoders_are_checked(decoder, message, tmp_path):
    document = plain_document()
    name, parameters = decoder
    document["settings"]["decoder"] = {"type": name, "parameters": parameters}
    path = tmp_path / "model.json"
    path.write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match=re.escape(message)):
        vg.load(path)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["training", "n_groups"], [3], "not a whole number of at least 0"),
        (["training", "group_sizes", "mean"], "8", "not a number of at least 0"),
        (["training", "validation"], {"f": [1, 1, 1]}, "validation.precision"),
        (["training", "history", "objective"], [], "not of one length"),
        (["training", "mood"], 3, "unknown 'training.mood'"),
        (["training", "path"], {"lam": 1.0}, "training.path.points"),
        (["policy", "k"], 0, 'k" is 0, not a whole number of at least 1'),
        (["policy", "fallback", "least"], None, "fallback.least"),
        (["policy", "ordering", "diversity"], 1.5, "1.5, not a number from 0 to 1"),
        (["encoding", "quality", 0, "scale"], [0.0], "not a number above 0"),
        (["models", 0, "fitted", "kernel_parameters", 0], 1e308, "larger than"),
    ],
)
def test_describe_says_in_a_line_what_is_damaged(
    path, value, message, tmp_path, monkeypatch, capsys
):
    def put(section, key):
        section[key] = value

    document = with_more(selector_document())
    damaged = tmp_path / "model.json"
    damaged.write_text(json.dumps(changed(document, path, put)))
    assert fails(caller(monkeypatch, capsys)("describe", damaged), message)


def test_an_omega_that_is_nearly_nothing_is_described(tmp_path):
    document = selector_document()
    document["models"][0]["omega"] = 1e-320
    path = tmp_path / "model.json"
    path.write_text(json.dumps(document))
    assert loads(path)


def test_a_selector_has_one_model(tmp_path):
    document = selector_document()
    document["models"].append(document["models"][0] | {"omega": 1.0})
    path = tmp_path / "model.json"
    path.write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match="2 models, where one is expected"):
        vg.load(path)


def test_a_kernel_for_other_columns_is_refused(tmp_path):
    document = document_of(selector())
    for column in document["encoding"]["blocks"]["embedding"]:
        column["mean"], column["scale"] = column["mean"][1:], column["scale"][1:]
    path = tmp_path / "model.json"
    path.write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match="features"):
        vg.load(path)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        for kind, make in DOCUMENTS.items():
            document, outcomes = make(), []
            for data in damages(document, int(sys.argv[1]), seed=1):
                path.write_bytes(data)
                try:
                    outcomes.append("loaded" if loads(path) else "refused")
                except Exception as error:
                    outcomes.append(repr(error))
            print(kind, {o: outcomes.count(o) for o in sorted(set(outcomes))})
