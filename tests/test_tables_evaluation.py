import json
import re

import numpy as np
import pyarrow as pa
import pytest

import variegate as vg
from variegate.tables import TableError, TableSelector, make_table, write_table
from variegate.tables.choosing import ByMethod, Choice
from variegate.tables.comparison import method_choosers
from variegate.tables.encoded import Group
from variegate.tables.evaluation import (
    COUNTS,
    N_BOOTSTRAP,
    NEAR_COPY,
    SCORES,
    WANTED_ROWS,
    DiversityJudge,
    Evaluation,
    evaluate_choosers,
)
from variegate.tables.limits import Limit
from variegate.tables.table import MemoryTable
from variegate.tuning.held_out import scores_of


def make_group(number, chosen):
    n = len(chosen)
    rng = np.random.default_rng(number)
    return Group(
        f"g{number}",
        number,
        np.arange(n),
        rng.standard_normal((n, 2)),
        {"v": rng.standard_normal((n, 2))},
        None if chosen is None else np.array(chosen, dtype=bool),
        None,
        rng.standard_normal(n),
    )


GROUPS = [
    make_group(0, [1, 0, 1, 0]),
    make_group(1, [0, 0, 0]),
    make_group(2, [1]),
    make_group(3, [1, 1, 1, 1, 1]),
    make_group(4, [0, 1]),
]


def nothing(group):
    return Choice(np.zeros(0, dtype=np.intp), None)


def first(group):
    return Choice(np.array([0]), None)


def everything(group):
    return Choice(np.arange(len(group))[::-1], None)


def sets(numbers):
    return {int(number) for number in numbers}


# Subtopics ------------------------------------------------------------------------

TOPICS = {
    "group": [1, 1, 1, 1, 2, 2, 2, 3, 3],
    "chosen": [1, 1, 1, 0, 1, 1, 0, 1, 0],
    "score": [4.0, 3.0, 2.0, 1.0, 3.0, 2.0, 1.0, 2.0, 1.0],
    "topic": [["a"], ["a"], ["b", "c"], ["d"], ["x"], [], ["y"], None, ["z"]],
}


@pytest.fixture(scope="module")
def by_score():
    columns = {"group": "group", "label": "chosen", "quality": "score"}
    return TableSelector(**columns, kernel="linear", max_iter=5).fit(pa.table(TOPICS))


def test_subtopics_of_wanted_rows_are_scored(by_score):
    found = by_score.evaluate(pa.table(TOPICS), methods=["top"], k=2, subtopics="topic")
    top = next(name for name in found.subtopics if name.startswith("top"))
    # Top 2 of group 1: a and a of {a, b, c}; the ideal for three wanted rows takes b
    # and c, then a, then a; of group 2: x and a row without; group 3 has no subtopic.
    ndcg = (1 + 0.5 / np.log2(3)) / (2 + 1 / np.log2(3) + 0.5 / 2)
    np.testing.assert_allclose(
        found.subtopics[top],
        [[1 / 3, ndcg, 1 / 3], [1.0, 1.0, 0.5], [np.nan] * 3],
    )
    means = found.intervals()[top]
    assert means["subtopic_recall"].mean == pytest.approx((1 / 3 + 1) / 2)
    assert means["alpha_ndcg"].mean == pytest.approx((ndcg + 1) / 2)
    assert means["intent_aware_precision"].mean == pytest.approx((1 / 3 + 0.5) / 2)
    model = found.reference
    difference = found.differences(top)[model]["subtopic_recall"].mean
    expected = found.subtopics[top][:2, 0] - found.subtopics[model][:2, 0]
    assert difference == pytest.approx(expected.mean())


def test_without_a_column_of_subtopics_nothing_is_added(by_score):
    found = by_score.evaluate(pa.table(TOPICS))
    assert found.subtopics == {}
    assert list(found.intervals()["model"]) == list(SCORES)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_subtopics_are_read_from_text_and_lists(by_score, tmp_path, kind):
    path = tmp_path / f"table.{kind}"
    cells = ["a", " a ", '["b", "c"]', "d", "x", "", "y", None, "z"]
    table = pa.table(TOPICS if kind == "parquet" else TOPICS | {"topic": cells})
    write_table(table, path)
    found = by_score.evaluate(path, subtopics="topic")
    expected = by_score.evaluate(pa.table(TOPICS), subtopics="topic")
    for name, rows in expected.subtopics.items():
        np.testing.assert_array_equal(found.subtopics[name], rows)


@pytest.mark.parametrize("cell", ['["a"', '[["a"]]', '[{"a": 1}]'])
def test_cells_that_are_not_subtopics_are_refused(by_score, cell):
    table = pa.table(TOPICS | {"topic": ["a", cell, *["b"] * 7]})
    with pytest.raises(
        TableError,
        match=f"column 'topic' holds {re.escape(repr(cell))} in row 2, which is "
        "neither a name nor a list of names",
    ):
        by_score.evaluate(table, subtopics="topic")


def test_a_column_of_subtopics_that_is_not_there_is_refused(by_score):
    with pytest.raises(
        TableError, match=r"there is no column 'topics' \(did you mean 'topic'\?\)"
    ):
        by_score.evaluate(pa.table(TOPICS), subtopics="topics")


def test_subtopics_are_not_part_of_a_model(by_score, tmp_path):
    by_score.evaluate(pa.table(TOPICS), subtopics="topic")
    by_score.save(tmp_path / "model.json")
    assert (
        "subtopics" not in json.loads((tmp_path / "model.json").read_text())["columns"]
    )


# Scores ---------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_scores_from_first_principles(n_jobs):
    ways = {"nothing": nothing, "first": first, "everything": everything}
    found = evaluate_choosers(iter(GROUPS), ways, n_jobs)
    assert found.n_groups == 5
    assert found.wanted_size == (2 + 0 + 1 + 5 + 1) / 5
    assert list(found.scores) == list(ways)
    for name, way in ways.items():
        for row, group in zip(found.scores[name], GROUPS, strict=True):
            chosen, wanted = sets(way(group).order), sets(np.flatnonzero(group.chosen))
            both = len(chosen & wanted)
            empty = float(not chosen and not wanted)
            expected = [
                both / len(chosen) if chosen else empty,
                both / len(wanted) if wanted else empty,
                2 * both / (len(chosen) + len(wanted)) if chosen | wanted else 1.0,
                len(chosen),
            ]
            np.testing.assert_allclose(row, expected)


def test_nothing_chosen_and_nothing_wanted_is_right():
    assert scores_of([], np.zeros(0, dtype=int)) == (1.0, 1.0, 1.0, 0.0)
    assert scores_of([], [1]) == (0.0, 0.0, 0.0, 0.0)


def test_there_must_be_groups_and_labels():
    with pytest.raises(TableError, match="there are no groups to evaluate on"):
        evaluate_choosers([], {"first": first})
    group = Group("q", 0, np.arange(1), np.zeros((1, 1)), {}, None, None, None)
    with pytest.raises(TableError, match="group 'q': there are no labels to compare"):
        evaluate_choosers([group], {"first": first})


# Intervals ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def evaluation():
    rng = np.random.default_rng(0)
    wide = rng.random((40, 4))
    return Evaluation(
        {"a": wide, "b": wide * 0.9, "c": rng.random((40, 4)), "d": np.ones((40, 4))},
        {},
    )


def test_intervals_are_those_of_a_plain_bootstrap(evaluation):
    rng = np.random.default_rng(123)
    intervals = evaluation.intervals()
    for name, rows in evaluation.scores.items():
        means = np.array(
            [rows[rng.integers(40, size=40)].mean(axis=0) for _ in range(N_BOOTSTRAP)]
        )
        low, high = np.quantile(means, [0.025, 0.975], axis=0)
        # A quantile of 2000 samples has an error of about 0.06 standard deviations.
        tolerance = 0.3 * means.std(axis=0).max() + 1e-12
        for column, what in enumerate(SCORES):
            interval = intervals[name][what]
            assert interval.mean == pytest.approx(rows[:, column].mean(), abs=1e-12)
            assert interval.low == pytest.approx(low[column], abs=tolerance)
            assert interval.high == pytest.approx(high[column], abs=tolerance)
            assert interval.low <= interval.mean <= interval.high


def test_the_same_seed_gives_the_same_intervals(evaluation):
    assert evaluation.intervals(3) == evaluation.intervals(3)
    assert evaluation.intervals(3) != evaluation.intervals(4)
    # All ways see the same groups: nine tenths of a score is that of the interval.
    a, b = (evaluation.intervals()[name]["f"] for name in "ab")
    np.testing.assert_allclose(b, 0.9 * np.array(a))


def test_differences_are_in_pairs_and_antisymmetric(evaluation):
    assert sorted(evaluation.differences("a")) == ["b", "c", "d"]
    for name in "bcd":
        there = evaluation.differences("a")[name]
        back = evaluation.differences(name)["a"]
        for what in SCORES:
            mean, low, high = there[what]
            np.testing.assert_allclose(back[what], [-mean, -high, -low], atol=1e-12)
    gap = evaluation.differences("a")["b"]["f"]
    alone = evaluation.intervals()["a"]["f"]
    assert gap.high - gap.low < 0.2 * (alone.high - alone.low)


def test_one_group_has_an_interval_of_no_width():
    one = Evaluation({"a": np.array([[0.5, 1.0, 0.7, 3.0]])}, {})
    assert one.intervals()["a"]["f"] == (0.7, 0.7, 0.7)


# Over rows ------------------------------------------------------------------------


WAYS = {"nothing": nothing, "first": first, "everything": everything}


def test_counts_and_scores_over_all_rows_by_hand():
    found = evaluate_choosers(GROUPS, WAYS)
    over_rows = found.over_rows()
    n_wanted = sum(len(group.wanted()) for group in GROUPS)
    for name, way in WAYS.items():
        chosen = [sets(way(group).order) for group in GROUPS]
        wanted = [sets(group.wanted()) for group in GROUPS]
        hits = [len(c & w) for c, w in zip(chosen, wanted, strict=True)]
        expected = [hits, list(map(len, chosen)), list(map(len, wanted))]
        np.testing.assert_array_equal(found.counts[name], np.transpose(expected))
        recall = over_rows[name]["recall"]
        assert recall.mean == pytest.approx(sum(hits) / n_wanted)
        assert recall.low <= recall.mean <= recall.high
        precision = over_rows[name]["precision"]
        if name == "nothing":
            assert np.isnan(precision).all()
        else:
            assert precision.mean == pytest.approx(sum(hits) / sum(expected[1]))
    assert COUNTS == ("hits", "chosen", "wanted")


def test_groups_of_which_nothing_is_chosen_do_not_bend_precision():
    counts = np.array([[1.0, 2.0, 2.0]] * 10 + [[0.0, 0.0, 2.0]] * 30)
    half = Evaluation({"a": np.zeros((40, 4))}, {"a": counts})
    assert half.over_rows()["a"]["precision"] == (0.5, 0.5, 0.5)
    assert half.over_rows()["a"]["recall"].mean == 10 / 80


def test_intervals_over_rows_are_those_of_a_plain_bootstrap():
    rng = np.random.default_rng(5)
    chosen = rng.integers(0, 8, 60)
    counts = np.column_stack([rng.binomial(chosen, 0.6), chosen, chosen + 2])
    found = Evaluation({"a": np.zeros((60, 4))}, {"a": counts}).over_rows()
    samples = []
    for _ in range(N_BOOTSTRAP):
        hits, size, wanted = counts[rng.integers(60, size=60)].sum(axis=0)
        samples.append((hits / size, hits / wanted))
    low, high = np.quantile(samples, [0.025, 0.975], axis=0)
    for column, name in enumerate(("precision", "recall")):
        # A quantile of 2000 samples has an error of about 0.06 standard deviations.
        tolerance = 0.3 * np.std(samples, axis=0)[column]
        assert found["a"][name].low == pytest.approx(low[column], abs=tolerance)
        assert found["a"][name].high == pytest.approx(high[column], abs=tolerance)


# Diversity ------------------------------------------------------------------------


def cosine(a, b):
    lengths = np.linalg.norm(a) * np.linalg.norm(b)
    return a @ b / lengths if lengths else 0.0


def diversity_by_hand(vectors, chosen):
    pairs = [
        (i, j, cosine(vectors[i], vectors[j])) for i in chosen for j in chosen if i != j
    ]
    copies = {i for i, _, similarity in pairs if similarity > NEAR_COPY}
    similarity = np.mean([s for _, _, s in pairs]) if pairs else np.nan
    return similarity, len(copies)


@pytest.mark.parametrize("n_blocks", [0, 1, 2])
def test_diversity_pair_by_pair(n_blocks, monkeypatch):
    monkeypatch.setattr("variegate.tables.evaluation._CHUNK", 3)
    rng = np.random.default_rng(n_blocks)
    X = rng.standard_normal((12, 3))
    X[4], X[7], X[9] = X[1] * 3.0, X[1] + 0.01, 0.0
    blocks = {"a": X, "b": X[:, :2] ** 2}
    blocks = {name: blocks[name] for name in list(blocks)[:n_blocks]}
    group = Group("q", 0, np.arange(12), X, blocks, None, None, None)
    vectors = np.hstack([X, X[:, :2] ** 2]) if n_blocks == 2 else X
    judge = DiversityJudge()
    for size in (0, 1, 2, 5, 12):
        chosen = rng.permutation(12)[:size]
        similarity, copies, kinds = judge(group, chosen)
        expected = diversity_by_hand(vectors, chosen)
        np.testing.assert_allclose([similarity, copies], expected, atol=1e-12)
        assert np.isnan(kinds)
    if n_blocks < 2:
        # A longer vector of the same direction is a copy.
        assert judge(group, np.array([1, 4]))[:2] == (pytest.approx(1.0), 2.0)


def test_diversities_are_means_over_groups_and_rows():
    found = evaluate_choosers(GROUPS, WAYS, diversity=DiversityJudge())
    assert list(found.diversity) == [*WAYS, WANTED_ROWS]
    diversities = found.diversities()
    choosing = WAYS | {WANTED_ROWS: lambda group: Choice(group.wanted(), None)}
    for name, way in choosing.items():
        each = [
            diversity_by_hand(group.blocks["v"], way(group).order) for group in GROUPS
        ]
        similarities, copies = np.transpose(each)
        assert set(diversities[name]) == {"similarity", "copies"}
        if name in ("nothing", "first"):
            assert np.isnan(diversities[name]["similarity"]).all()
        else:
            mean = diversities[name]["similarity"].mean
            assert mean == pytest.approx(np.nanmean(similarities))
        n_chosen = sum(len(way(group).order) for group in GROUPS)
        share = copies.sum() / n_chosen if n_chosen else np.nan
        assert diversities[name]["copies"].mean == pytest.approx(share, nan_ok=True)
    assert evaluate_choosers(GROUPS, WAYS).diversities() == {}


@pytest.mark.parametrize("is_mixed", [False, True])
def test_kinds_that_are_covered(table, is_mixed):
    kernel = vg.Kinds(3)
    if is_mixed:
        kernel = vg.Mixture([vg.Linear(), kernel, vg.Metric(2)])
    kinds = TableSelector(
        group="query", label="chosen", quality="score", similarity="embedding",
        omega=1.0, kernel=kernel, max_iter=5, tol=1e6,
    ).fit(table)  # fmt: skip
    found = kinds.evaluate(table, methods=["mmr"], k=2)
    choices = kinds.choose(table)
    of_row = kinds.kinds(table).kind
    groups = list(kinds._read_groups(MemoryTable(table), kinds._required_columns(True)))
    for name, is_chosen in (
        ("model", lambda group: choices.selected[group.rows]),
        (WANTED_ROWS, lambda group: group.chosen),
    ):
        expected = [
            len(set(of_row[group.rows[is_chosen(group)]].tolist())) for group in groups
        ]
        assert found.diversity[name][:, 2].tolist() == expected
        assert found.diversities()[name]["kinds"].mean == pytest.approx(
            np.mean(expected)
        )
    assert found.diversities()["mmr (k = 2)"]["kinds"].mean <= 2.0


def test_a_kernel_without_kinds(selector):
    assert DiversityJudge.of(selector.model_).kinds is None


# A contest ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table():
    return make_table(n_groups=8, n_items=6, n_dimensions=4)


@pytest.fixture(scope="module")
def selector(table):
    return TableSelector(
        group="query",
        label="chosen",
        quality=["score", "freshness"],
        similarity="embedding",
        omega=1.0,
        decoder="greedy",
        kernel="linear",
    ).fit(table)


@pytest.mark.filterwarnings("ignore::variegate.estimator.AllAlikeWarning")
def test_the_stand_in_for_a_relevance(selector, table):
    assert selector.default_relevance() == "score"
    kinds = TableSelector(
        group="query", label="chosen", quality="kind", categorical="kind", omega=1.0
    ).fit(table)
    assert kinds.default_relevance() is None


def test_methods_are_named_by_how_many_they_choose():
    group = GROUPS[0]
    three = method_choosers(["top", "random"], Limit(3), 0.5)
    assert list(three) == ["top (k = 3)", "random (k = 3)"]
    order = three["top (k = 3)"](group).order
    assert order.tolist() == np.argsort(-group.relevance)[:3].tolist()
    wanted = method_choosers(["dpp"], Limit("wanted"), 0.2, seed=1)
    ((name, way),) = wanted.items()
    assert name == "dpp (as many as wanted)"
    expected = vg.select(group.blocks["v"], group.relevance, k=2, diversity=0.2)
    assert way(group).order.tolist() == expected.tolist()
    assert way(GROUPS[1]).order.tolist() == []


def test_a_contest_scores_all_on_the_same_groups(selector, table):
    other = TableSelector(
        group="query", label="chosen", quality="score", omega=1.0, decoder="greedy"
    ).fit(table)
    stages = set()
    found = selector.evaluate(
        table,
        name="one",
        others={"two": other},
        methods=["top"],
        k=2,
        relevance="score",
        progress=lambda stage, done, total: stages.add(stage),
    )
    limited = ["one (k = 2)", "two (k = 2)", "top (k = 2)"]
    assert list(found.scores) == ["one", "two", *limited]
    assert found.n_groups == 8
    assert "judging" in stages
    f = found.scores["one"][:, SCORES.index("f")].mean()
    assert f == pytest.approx(selector.score(table))
    f = found.scores["two"][:, SCORES.index("f")].mean()
    assert f == pytest.approx(other.score(table))
    # The rows of a query are listed by their scores.
    flags = table["chosen"].to_numpy(zero_copy_only=False).reshape(8, 6)
    precision = found.scores["top (k = 2)"][:, SCORES.index("precision")]
    np.testing.assert_allclose(precision, flags[:, :2].mean(axis=1))


def test_all_are_judged_by_the_columns_of_the_first(selector, table):
    """Another model has other columns, and rows are as alike as before."""
    other = TableSelector(
        group="query", label="chosen", quality="score", omega=1.0, decoder="greedy"
    ).fit(table)
    found = selector.evaluate(table, others={"other": other})
    chosen = other.choose(table).selected
    groups = list(
        selector._read_groups(MemoryTable(table), selector._required_columns(True))
    )
    for group, numbers in zip(groups, found.diversity["other"], strict=True):
        order = np.flatnonzero(chosen[group.rows])
        expected = diversity_by_hand(group.blocks["embedding"], order)
        np.testing.assert_allclose(numbers[:2], expected, atol=1e-12)
    assert list(found.endings) == ["model", "other"]
    assert sum(found.endings["other"].stop_reasons.values()) == 8


def test_a_contest_needs_two_groups(selector, table):
    with pytest.raises(
        TableError, match="the table has 1 group to judge by: intervals"
    ):
        selector.evaluate(table.slice(0, 6))


def test_a_contest_on_groups_without_a_chosen_row(selector, table):
    flags = table["chosen"].to_numpy(zero_copy_only=False).copy()
    flags[:6] = False
    changed = table.set_column(table.column_names.index("chosen"), "chosen", [flags])
    for empty_groups, n_groups in (("keep", 8), ("drop", 7)):
        found = selector.evaluate(changed, empty_groups=empty_groups)
        assert found.n_groups == n_groups
    with pytest.raises(TableError, match="1 of 8 groups has no chosen row"):
        selector.evaluate(changed)


def test_a_method_judged_alone():
    found = evaluate_choosers(GROUPS, {"dpp": ByMethod("dpp", Limit(1))})
    assert (found.scores["dpp"][:, 3] == 1.0).all()
