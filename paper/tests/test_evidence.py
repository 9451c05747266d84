"""The experiment on evidence, on generated questions and reviews."""

import json
from functools import partial

import numpy as np
import pytest

from paper import evidence
from paper.evidence.rivals import _dpp, order_by_mmr
from paper.evidence.settings import OURS, Settings

pytestmark = pytest.mark.paper

THINGS = ["bridge", "mill", "tower", "harbour", "castle", "market"]
DEEDS = ["built", "repaired", "painted", "sold"]


def write_data(folder, n=8):
    """Write sets whose wanted sentences share words with the question."""
    rng = np.random.default_rng(0)
    lines = {name: [] for name in ("hotpotqa", "multirc", "oposum")}
    for number in range(n):
        thing, deed = THINGS[number % 6], DEEDS[number % 4]
        texts = [f"The {t} was {d} in {1700 + number}." for t in THINGS for d in DEEDS]
        texts = [texts[k] for k in rng.permutation(len(texts))[:9]]
        texts += [f"Masons {deed} the {thing}.", f"The {thing} is old and was {deed}."]
        question = {
            "id": str(number), "question": f"Who {deed} the old {thing}?",
            "sentences": texts, "wanted": [9, 10],
        }  # fmt: skip
        titles = [f"Part {k // 3}" for k in range(len(texts))]
        lines["hotpotqa"].append(question | {"titles": titles})
        lines["multirc"].append(question | {"text": str(number // 2)})
        wanted = [[0, 9], [9, 10], [10]]
        reviews = {"segments": texts, "review": titles, "wanted": wanted}
        lines["oposum"].append({"id": str(number)} | reviews)
    for name, records in lines.items():
        text = "\n".join(map(json.dumps, records))
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")


def test_the_experiment_on_held_out_questions(tmp_path):
    data = tmp_path / "evidence"
    data.mkdir()
    write_data(data)
    run = partial(evidence.reproduce, tmp_path / "out", Settings(2, 0, 100), "command")
    outcome = run(data=tmp_path, test_data=data)
    rows = {(row["set"], row["method"]): row for row in outcome.results["rows"]}
    sets = ("hotpotqa", "multirc", "oposum")
    for name in sets:
        assert rows[name, OURS]["n_questions"] == 8
        # Judged on what was learned from: the wanted sentences can be told.
        assert rows[name, OURS]["f"] > rows[name, "BM25, top k"]["f"] - 0.05
        for row in rows.values():
            assert 0.0 <= row["precision"] <= 1.0
    compared = {(c["set"], c["less"]) for c in outcome.results["comparisons"]}
    assert all((name, "boosting, top k") in compared for name in sets)
    for one in outcome.results["comparisons"]:
        assert one["low"] <= one["difference"] <= one["high"]
    report = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert all(f"## {name}" in report for name in sets)
    with pytest.raises(ValueError, match=r"no hotpotqa\.jsonl in .*--data"):
        evidence.reproduce(tmp_path / "out", Settings(), "command", tmp_path / "out")


def test_maximal_marginal_relevance_skips_a_copy():
    features = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    scores = np.array([2.0, 1.9, 0.0])
    assert order_by_mmr(scores, features, 1.0).tolist() == [0, 1, 2]
    assert order_by_mmr(scores, features, 0.5).tolist() == [0, 2, 1]


def test_the_dpp_of_coverage_is_independent_without_similarity():
    # Items of odds 1/9, 1 and 9 are in the set with probability 0.1, 0.5 and 0.9.
    scores = np.log([1 / 9, 1.0, 9.0])
    chosen = _dpp(1.0, 1.0, 0.0, scores, np.eye(3))
    assert chosen.tolist() == [1, 2]
