"""Rows of a table that are there already: what is learned and chosen beside them."""

import itertools
import json

import numpy as np
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression

import variegate as vg
from folder_instances import Pickling, cut, learn_folder, write_folder
from table_instances import caller, fails, succeeds, with_cell, with_column
from variegate.application.table_defaults import default_estimator
from variegate.baselines.learned import Rival, candidate_embeddings
from variegate.integrations import ContextSelector, Found
from variegate.kernels import Linear
from variegate.learning.problem import SharedExamples
from variegate.linalg.determinants import with_jitter
from variegate.metrics import f_score
from variegate.partitions import Threads
from variegate.tables import (
    Columns,
    TableError,
    TableSelector,
    make_table,
    write_table,
)
from variegate.tables import choosing as choosing_module
from variegate.tables.boosting import boosted_groups
from variegate.tables.groups import Groups
from variegate.tables.problems import Inspection
from variegate.tables.survey import learn_encoding, resolve_columns, survey_table
from variegate.tables.table import MemoryTable, as_table
from variegate.tuning.boosting import boosted_fold, can_be_boosted
from variegate.tuning.held_out import Fold
from variegate.tuning.race import LearnedDPP, Rule, TwoStage

N_ITEMS = 8

#: One fit, fast to choose from.
QUICK = {
    "group": "query",
    "label": "chosen",
    "given": "shown",
    "quality": ["score", "freshness"],
    "similarity": "embedding",
    "cost": "tokens",
    "omega": 1.0,
    "decoder": "greedy",
    "kernel": "linear",
}


def table_with_given(n_groups=16, seed=0, n_items=N_ITEMS):
    """Return a table in which up to three rows of a group are shown, none chosen."""
    table = make_table(n_groups, n_items, 4, random_state=seed)
    rng = np.random.default_rng(seed)
    chosen = table["chosen"].to_numpy(zero_copy_only=False)
    shown = np.zeros(len(chosen), dtype=bool)
    for group in range(n_groups):
        rows = group * n_items + np.arange(n_items)
        others = rng.permutation(rows[~chosen[rows]])
        shown[others[: min(group % 4, len(others) - 1)]] = True
    return table.append_column("shown", pa.array(shown))


def flags(table, name):
    return table[name].to_numpy(zero_copy_only=False).astype(bool)


@pytest.fixture(scope="module")
def table():
    return table_with_given()


@pytest.fixture(scope="module")
def selector(table):
    return TableSelector(**QUICK).fit(table)


def as_lists(table, statistics_of=None):
    """Return ground sets and subsets of a table, encoded by hand."""
    numbers = {n: table[n].to_numpy() for n in ("score", "freshness")}
    usual = statistics_of or table
    columns = [
        (values - usual[n].to_numpy().mean()) / usual[n].to_numpy().std()
        for n, values in numbers.items()
    ]
    X = np.column_stack(columns)
    F = np.array(table["embedding"].to_pylist(), dtype=float)
    F /= np.linalg.norm(F, axis=1, keepdims=True)
    queries = np.array(table["query"].to_pylist())
    ground_sets, subsets = [], []
    for name in dict.fromkeys(queries):
        rows = queries == name
        shown = flags(table, "shown")[rows]
        costs = table["tokens"].to_numpy()[rows]
        ground_sets.append(vg.GroundSet(X[rows], F[rows], costs=costs, given=shown))
        subsets.append(np.flatnonzero(flags(table, "chosen")[rows]))
    return ground_sets, subsets


# Learning -------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["linear", "multiple"])
def test_a_table_teaches_what_lists_teach(table, kernel):
    selector = TableSelector(**QUICK | {"kernel": kernel}).fit(table)
    kernels = {"linear": vg.Linear(), "multiple": vg.MultipleKernel()}
    model = default_estimator().set_params(kernel=kernels[kernel], random_state=0)
    ground_sets, subsets = as_lists(table)
    model.fit(ground_sets, subsets)
    # Both stop at a gradient of 1e-2, summed in another order.
    np.testing.assert_allclose(selector.model_.theta_, model.theta_, rtol=1e-5)
    assert selector.model_.intercept_ == pytest.approx(model.intercept_, rel=1e-5)
    ranks = selector.choose(table).rank.reshape(-1, N_ITEMS)
    for rank, chosen in zip(
        ranks, model.predict(ground_sets, order="importance"), strict=True
    ):
        assert np.argsort(rank)[np.sort(rank) > 0].tolist() == chosen.tolist()


def test_the_quality_of_given_rows_changes_nothing_learned(table):
    shown = flags(table, "shown")
    groups, subsets = as_lists(table)
    rng = np.random.default_rng(0)
    others = []
    for one in groups:
        X = one.quality.copy()
        X[one.given] = rng.standard_normal((len(one.given), 2))
        others.append(vg.GroundSet(X, one.similarity, given=one.given))
    model = default_estimator().set_params(kernel=Linear())
    first = model.fit(groups, subsets).theta_
    np.testing.assert_array_equal(model.fit(others, subsets).theta_, first)
    blind = TableSelector(**QUICK | {"given": None}).fit(
        table.filter(pa.array(~shown)).drop_columns("shown")
    )
    # Without the rows, what is like them looks bad.
    assert np.abs(blind.model_.theta_ - first).max() > 1e-3


def test_a_column_without_given_rows_leaves_every_bit(table):
    nothing = with_column(table, "shown", [0] * table.num_rows)
    plain = table.drop_columns("shown")
    settings = {"quality_model": "boosting", "validation_fraction": 0.25}
    for more in ({}, settings):
        first = TableSelector(**QUICK | more).fit(nothing)
        second = TableSelector(**QUICK | more | {"given": None}).fit(plain)
        np.testing.assert_array_equal(first.model_.theta_, second.model_.theta_)
        one, other = first.choose(nothing, k=3), second.choose(plain, k=3)
        np.testing.assert_array_equal(one.rank, other.rank)
        np.testing.assert_array_equal(one.probability, other.probability)
        assert first.training_ == second.training_


@pytest.mark.parametrize(
    "settings",
    [{}, {"kernel": "multiple"}, {"quality_model": "boosting"}, {"similarity": None}],
    ids=str,
)
@pytest.mark.parametrize("is_scattered", [False, True])
def test_folders_give_the_bits_of_one_file(tmp_path, table, settings, is_scattered):
    if is_scattered:
        table = table.take(np.random.default_rng(0).permutation(table.num_rows))
    settings = QUICK | {"validation_fraction": 0.25} | settings
    folder = write_folder(tmp_path / "t", cut(table, 11, 12, 90))
    write_table(table, tmp_path / "t.parquet")
    home = TableSelector(**settings).fit(table)
    for there in (
        learn_folder(TableSelector(**settings), folder, Pickling()),
        TableSelector(**settings, memory=4000).fit(tmp_path / "t.parquet"),
        TableSelector(**settings).fit(folder, engine=Threads(2)),
    ):
        np.testing.assert_array_equal(there.model_.theta_, home.model_.theta_)
        assert there.training_ == home.training_
        found = there.choose(folder)
        np.testing.assert_array_equal(found.rank, home.choose(table).rank)
        np.testing.assert_array_equal(
            found.probability, home.inclusion_probability(table)
        )


def test_a_fit_that_resumes_remembers_given_rows(tmp_path, table):
    folder = write_folder(tmp_path / "t", cut(table, 40, 64))
    home = TableSelector(**QUICK).fit(table)
    there = TableSelector(**QUICK).fit(
        folder, engine=Pickling(), checkpoint=tmp_path / "c"
    )
    np.testing.assert_array_equal(there.model_.theta_, home.model_.theta_)


def test_a_model_file_has_the_column(tmp_path, selector, table):
    selector.save(tmp_path / "m.json")
    known = vg.load(tmp_path / "m.json")
    assert known.columns_.given == known.given == "shown"
    np.testing.assert_array_equal(known.predict(table), selector.predict(table))


# Choosing -------------------------------------------------------------------------


def test_probabilities_are_those_of_all_subsets_beside_given_rows(selector, table):
    model = selector.model_
    found = selector.inclusion_probability(table).reshape(-1, N_ITEMS)
    ground_sets, _ = as_lists(table)
    for one, probability in zip(ground_sets, found, strict=True):
        u = one.quality @ model.theta_ + model.intercept_
        u[one.given] = 0.0
        S = with_jitter(one.similarity @ one.similarity.T, model.jitter)
        L = np.exp(u)[:, None] * S * np.exp(u)
        total, expected = 0.0, np.zeros(N_ITEMS)
        for flags in itertools.product([False, True], repeat=len(one.candidates)):
            y = one.candidates[list(flags)]
            both = np.append(one.given, y)
            weight = np.linalg.det(L[np.ix_(both, both)])
            total += weight
            expected[y] += weight
        expected /= total
        # The ridge of 1e-6 leaves ten digits of determinants, and sums lose some.
        np.testing.assert_allclose(
            probability[one.candidates], expected[one.candidates], atol=1e-6
        )
        assert np.isnan(probability[one.given]).all()


RULES = {
    "greedy": {},
    "expected-f": {"decoder": "expected-f"},
    "mbr": {"decoder": "mbr"},
    "gaussians": {"kernel": "multiple", "lam": 1.0, "decoder": "local"},
    "kinds": {"kernel": vg.Kinds(3), "tol": 1.0},
    "boosting": {"quality_model": "boosting"},
}


@pytest.mark.parametrize("rule", RULES)
def test_given_rows_are_never_chosen_and_do_not_count(table, rule):
    selector = TableSelector(**QUICK | RULES[rule]).fit(table)
    shown = flags(table, "shown")
    kinds = table["kind"].to_pylist()
    tokens = table["tokens"].to_numpy()
    for limits in (
        {},
        {"omega": 0.25},
        {"omega": 16.0},
        {"k": 3},
        {"k": N_ITEMS},
        {"budget": 700.0},
        {"at_most": 1, "per": "kind"},
    ):
        choices = selector.choose(table, **limits)
        assert not choices.selected[shown].any()
        assert (choices.rank[shown] == 0).all()
        assert np.isnan(choices.probability[shown]).all()
        assert not np.isnan(choices.probability[~shown]).any()
        by_group = choices.selected.reshape(-1, N_ITEMS)
        n_candidates = (~shown).reshape(-1, N_ITEMS).sum(axis=1)
        if "k" in limits:
            wanted = np.minimum(limits["k"], n_candidates)
            assert by_group.sum(axis=1).tolist() == wanted.tolist()
        if "budget" in limits:
            spent = (tokens * choices.selected).reshape(-1, N_ITEMS).sum(axis=1)
            assert spent.max() <= 700.0
        if "per" in limits:
            chosen = [
                (row // N_ITEMS, kinds[row]) for row in np.flatnonzero(choices.selected)
            ]
            assert len(set(chosen)) == len(chosen)


def test_given_rows_do_not_use_up_a_budget_or_a_limit(selector, table):
    dear = np.where(flags(table, "shown"), 1e6, 1.0)
    table = with_column(table, "tokens", dear)
    kinds = np.where(flags(table, "shown"), "x", "y")
    table = with_column(table, "kind", kinds.tolist())
    free = selector.choose(table)
    np.testing.assert_array_equal(selector.choose(table, budget=50.0).rank, free.rank)
    limited = selector.choose(table, at_most=N_ITEMS, per="kind")
    np.testing.assert_array_equal(limited.rank, free.rank)


def test_near_copies_of_given_rows_are_not_chosen(selector, table):
    vectors = table["embedding"].to_pylist()
    shown = flags(table, "shown")
    copies = []
    for group in range(16):
        rows = group * N_ITEMS + np.arange(N_ITEMS)
        given, others = rows[shown[rows]], rows[~shown[rows]]
        for one, other in zip(given, others, strict=False):
            vectors[other] = vectors[one]
            copies.append(other)
    table = with_column(
        table, "embedding", vectors, table.schema.field("embedding").type
    )
    assert len(copies) > 10
    assert not selector.choose(table, k=1).selected[copies].any()
    plain = with_column(table, "shown", [False] * table.num_rows)
    assert selector.choose(plain, k=1).selected[copies].any()


def test_selected_rows_and_all_rows(tmp_path, selector, table):
    shown = flags(table, "shown")
    frame = selector.select(table, keep_all=True)
    assert flags(frame, "shown").tolist() == shown.tolist()
    assert not flags(frame, "selected")[shown].any()
    assert set(np.array(frame["selection_rank"])[shown]) == {0}
    selector.select(table, keep_all=True, out=tmp_path / "all.parquet")
    written = as_table(tmp_path / "all.parquet").batches()
    empty = [b["inclusion_probability"].is_null().to_pylist() for b in written]
    assert list(itertools.chain(*empty)) == shown.tolist()
    assert not flags(selector.select(table), "shown").any()


def test_a_folder_of_choices(tmp_path, selector, table):
    folder = write_folder(tmp_path / "t", cut(table, 40, 64))
    found = selector.select(folder, out=tmp_path / "out", engine=Pickling())
    chosen = selector.choose(table).selected
    assert found.n_chosen == chosen.sum()
    assert not selector.select(folder).column("shown").to_numpy().any()


def test_large_groups_keep_given_rows(selector, monkeypatch):
    table = table_with_given(4, seed=3, n_items=40)
    whole = selector.choose(table, k=3)
    monkeypatch.setattr(choosing_module, "MAX_CANDIDATES", 20)
    choices = selector.choose(table, k=3)
    assert not choices.selected[flags(table, "shown")].any()
    known = ~np.isnan(choices.probability).reshape(4, 40)
    assert known.sum(axis=1).tolist() == [20] * 4
    # Good rows are among the candidates.
    assert (choices.selected & whole.selected).sum() >= 9
    # More given rows than that: the best of them.
    ground_set = as_lists(table)[0][3]
    monkeypatch.setattr(choosing_module, "MAX_CANDIDATES", 2)
    chooser = selector._make_chooser()
    (group,) = list(selector._read_groups(as_table(table), selector.columns_))[3:]
    assert len(ground_set.given) == 3
    kept = chooser._given_rows(group)
    u = selector.model_.log_quality(group.quality)
    assert set(kept) == set(sorted(ground_set.given, key=lambda row: -u[row])[:2])


def all_shown_first(table):
    """Return the table with all rows of the first group shown, and none chosen."""
    for name, value in (("shown", True), ("chosen", False)):
        values = flags(table, name)
        values[:N_ITEMS] = value
        table = with_column(table, name, values)
    return table


def test_groups_whose_rows_are_all_given_are_left_out(selector, table):
    full = all_shown_first(table)
    choices = selector.choose(full)
    assert choices.rank[:N_ITEMS].max() == 0
    assert np.isnan(choices.probability[:N_ITEMS]).all()
    assert choices.endings[0]["stop_reason"] == "all rows are given"
    np.testing.assert_array_equal(
        choices.rank[N_ITEMS:], selector.choose(table).rank[N_ITEMS:]
    )
    rest = table.slice(N_ITEMS)
    for empty_groups in ("error", "keep", "drop"):
        settings = QUICK | {"empty_groups": empty_groups}
        first = TableSelector(**settings).fit(full)
        second = TableSelector(**settings).fit(rest)
        np.testing.assert_array_equal(first.model_.theta_, second.model_.theta_)
        assert first.training_["n_left_out"] == 1
        scores, others = first.evaluate(full).scores, first.evaluate(rest).scores
        np.testing.assert_array_equal(scores["model"], others["model"])


# Judging --------------------------------------------------------------------------


def test_scores_are_of_candidates(selector, table):
    evaluation = selector.evaluate(table)
    selected = selector.choose(table).selected.reshape(-1, N_ITEMS)
    wanted = flags(table, "chosen").reshape(-1, N_ITEMS)
    both = (selected & wanted).sum(axis=1)
    expected = 2.0 * both / (selected.sum(axis=1) + wanted.sum(axis=1))
    np.testing.assert_allclose(evaluation.scores["model"][:, 2], expected)


def test_models_with_other_given_columns_are_not_compared(selector, table):
    other = TableSelector(**QUICK | {"given": None}).fit(table)
    with pytest.raises(
        TableError, match="different columns of groups, labels or given"
    ):
        selector.evaluate(table, others={"other": other})
    renamed = table.append_column("seen", table["shown"])
    same = other.with_columns(given="seen")
    assert same.columns_.given == "seen"
    assert not same.predict(renamed)[flags(table, "shown")].any()
    names = {"one": other.with_columns(given="shown")}
    assert set(selector.evaluate(table, others=names).scores) == {"model", "one"}


@pytest.fixture(scope="module")
def examples(table):
    return as_lists(table)


def without_given(ground_sets, subsets):
    """Return ground sets of the candidates, and the positions of subsets in them."""
    rest = [
        vg.GroundSet(one.candidate_quality, one.similarity[one.candidates])
        for one in ground_sets
    ]
    inside = [
        np.searchsorted(one.candidates, subset)
        for one, subset in zip(ground_sets, subsets, strict=True)
    ]
    return rest, inside


def test_contenders_are_scored_on_candidates(examples):
    ground_sets, subsets = examples
    model = default_estimator().set_params(kernel=Linear())
    rules = [Rule("greedy"), Rule("greedy", 2)]
    contender = LearnedDPP("dpp", model, rules)
    fitted = contender.fit(SharedExamples(ground_sets, subsets), 0)
    scores = contender.scores(fitted, ground_sets, subsets)
    for rule in rules:
        chosen = fitted.predict(ground_sets, k=rule.k)
        expected = list(map(f_score, chosen, subsets))
        np.testing.assert_allclose(scores[rule], expected)


def test_a_regression_learns_from_candidates(examples):
    ground_sets, subsets = examples
    rest, inside = without_given(ground_sets, subsets)
    contender = TwoStage(default_estimator().set_params(kernel=Linear()), [])
    found = contender.fit(SharedExamples(ground_sets, subsets), 0)
    X = np.concatenate([one.quality for one in rest])
    y = np.concatenate(
        [np.isin(np.arange(len(one)), s) for one, s in zip(rest, inside, strict=True)]
    )
    spread = X.std(axis=0)
    regression = LogisticRegression(max_iter=1000)
    regression.fit((X - X.mean(axis=0)) / spread, y)
    np.testing.assert_allclose(found, regression.coef_[0] / spread, rtol=1e-6)
    learned = contender.learn(1.0, ground_sets, subsets)
    along = [
        vg.GroundSet((one.quality @ found)[:, None], one.similarity, given=one.given)
        for one in ground_sets
    ]
    model = default_estimator().set_params(kernel=Linear()).fit(along, subsets)
    np.testing.assert_allclose(learned.theta_, model.theta_[0] * found, rtol=1e-4)


def test_boosted_scores_are_learned_from_candidates(examples):
    ground_sets, subsets = examples
    order = np.arange(len(ground_sets))
    fold = Fold(ground_sets, subsets, order[4:], order[:4], order)
    rest = Fold(*without_given(ground_sets, subsets), order[4:], order[:4], order)
    assert can_be_boosted(fold)
    boosted, expected = boosted_fold(fold, 0), boosted_fold(rest, 0)
    for one, other, before in zip(
        boosted.ground_sets, expected.ground_sets, ground_sets, strict=True
    ):
        np.testing.assert_array_equal(one.candidate_quality, other.quality)
        assert one.given.tolist() == before.given.tolist()
        assert (one.quality[one.given, -1] == 0.0).all()
    # All candidates are wanted, but not all rows.
    everything = [one.candidates for one in ground_sets]
    some = Fold(ground_sets, everything, order[4:], order[:4], order)
    assert not can_be_boosted(some)


def test_boosted_scores_of_tables_are_learned_from_candidates(table):
    def boosted(table, **roles):
        columns = resolve_columns(as_table(table), Columns.of(**{**ROLES, **roles}))
        found = survey_table(as_table(table), columns)
        encoding = learn_encoding(found)
        groups = Groups(found, encoding)
        return boosted_groups(groups, np.arange(len(found)), 0), encoding

    ROLES = {n: QUICK[n] for n in ("group", "label", "quality", "similarity")}
    groups, encoding = boosted(table, given="shown")
    rest = table.filter(pa.array(~flags(table, "shown")))
    columns = resolve_columns(as_table(rest), Columns.of(**ROLES))
    found = survey_table(MemoryTable(rest), columns)
    same = boosted_groups(Groups(found, encoding), np.arange(len(found)), 0)
    for one, other in zip(groups, same, strict=True):
        np.testing.assert_array_equal(one.quality[one.candidates], other.quality)


def test_rivals_choose_candidates(examples, monkeypatch):
    ground_set = next(one for one in examples[0] if len(one.given) > 1)
    features, given = candidate_embeddings(ground_set)
    np.testing.assert_array_equal(
        features, ground_set.similarity[ground_set.candidates]
    )
    np.testing.assert_array_equal(given, ground_set.similarity[ground_set.given])
    seen = {}

    def select(embeddings, relevance, k, method, **how):
        seen.update(embeddings=embeddings, given=how["given"])
        return np.argsort(-relevance)[:k]

    monkeypatch.setattr("variegate.baselines.learned.select", select)
    rival = Rival(lambda X: X[:, 0], "top", 2, 0.5)
    chosen = rival(ground_set)
    best = ground_set.candidates[np.argsort(-ground_set.candidate_quality[:, 0])]
    assert chosen.tolist() == best[:2].tolist()
    np.testing.assert_array_equal(seen["given"], given)


# Messages -------------------------------------------------------------------------


def test_a_row_that_is_given_and_chosen(tmp_path, selector, table):
    row = int(np.flatnonzero(flags(table, "chosen"))[5])
    wrong = with_cell(table, "shown", row, True)
    message = (
        f"column 'shown' says that row {row + 1} is there already, but it is labelled "
        "1: a given row cannot be chosen. Correct one of the two"
    )
    with pytest.raises(TableError, match=message):
        TableSelector(**QUICK).fit(wrong)
    with pytest.raises(TableError, match=message):
        selector.evaluate(wrong)
    unlabelled = TableSelector(**QUICK | {"label": None})
    with pytest.raises(TableError, match=message):
        unlabelled.fit(wrong.drop_columns("chosen"), flags(wrong, "chosen"))
    # Labels play no part here.
    assert not selector.predict(wrong)[row]
    folder = write_folder(tmp_path / "t", cut(wrong, 3))
    place = f"row {row - 3 + 1} of .*part-001.parquet is there already"
    with pytest.raises(TableError, match=place):
        TableSelector(**QUICK).fit(folder, engine=Pickling())


@pytest.mark.parametrize(
    ("values", "found"), [([2], "2"), (["maybe"], "'maybe'"), ([None], "nothing")]
)
def test_cells_of_a_given_column(table, values, found):
    values = [0] * (table.num_rows - 1) if isinstance(values[0], int) else []
    kind = {"2": 2, "'maybe'": "maybe", "nothing": None}[found]
    cells = [kind, *([False] if kind is None else ["0"] if kind == "maybe" else [0])]
    cells += cells[1:] * (table.num_rows - 2)
    wrong = with_column(table, "shown", cells)
    message = (
        f"column 'shown' holds {found} in row 1: it must be 1 \\(or true\\) for rows "
        "that are there already and 0 \\(or false\\) for the others"
    )
    with pytest.raises(TableError, match=message):
        TableSelector(**QUICK).fit(wrong)


def test_all_problems_are_listed(table):
    wrong = with_cell(with_cell(table, "shown", 3, None), "query", 4, None)
    with pytest.raises(TableError, match=r"2 problems:(.|\n)*for rows that are there"):
        TableSelector(**QUICK).fit(wrong)
    with pytest.raises(TableError, match=r"no column 'shwn' \(did you mean 'shown'"):
        TableSelector(**QUICK | {"given": "shwn"}).fit(table)
    columns = Columns.of(**{n: QUICK[n] for n in ("group", "label", "quality")})
    error = Inspection(MemoryTable(table), columns.with_roles({"given": "shwn"}))
    found = error.list_problems(TableError("first"))
    assert any("'shwn'" in str(one) for one in found.problems)


def test_new_data_need_the_column(selector, table):
    with pytest.raises(TableError, match="does not fit the model: there is no column"):
        selector.choose(table.drop_columns("shown"))


@pytest.mark.parametrize("role", ["group", "label", "item"])
def test_a_column_has_one_role(table, role):
    settings = QUICK | {role: "shown"}
    message = f"column 'shown' cannot be both {role} and given"
    with pytest.raises(TableError, match=message):
        TableSelector(**settings).fit(table)


def test_given_is_not_a_quality(table):
    selector = TableSelector(**QUICK | {"quality": None}).fit(table)
    assert "shown" not in selector.columns_.quality
    assert "popularity" in selector.columns_.quality


# On the command line --------------------------------------------------------------


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    return caller(monkeypatch, capsys)


FIT = (
    "--group", "query", "--label", "chosen", "--quality", "score,freshness",
    "--similarity", "embedding", "--kernel", "linear", "--omega", "1",
)  # fmt: skip


def test_from_fit_to_evaluate(call, table):
    shown = flags(table, "shown")
    write_table(table, "train.parquet")
    write_table(table.rename_columns({"shown": "seen"}), "new.parquet")
    fit = ("fit", "train.parquet", *FIT, "--given", "shown", "-o", "m.json")
    succeeds(call(*fit))
    model = vg.load("m.json")
    assert model.columns_.given == "shown"
    select = ("select", "new.parquet", "--model", "m.json", "-o", "all.jsonl")
    assert fails(call(*select), "new.parquet does not fit the model", "'shown'")
    succeeds(call(*select, "--given", "seen", "--all"))
    rows = next(iter(as_table("all.jsonl").batches())).to_pylist()
    for row, is_shown in zip(rows, shown, strict=True):
        assert (row["inclusion_probability"] is None) == is_shown
        if is_shown:
            assert (row["selected"], row["selection_rank"]) == (False, 0)
    judge = ("evaluate", "new.parquet", "--model", "m.json", "--methods", "none")
    numbers = json.loads(succeeds(call(*judge, "--given", "seen", "--json")))
    expected = model.evaluate(table).intervals()["model"]["f"].mean
    assert numbers["scores"]["m.json"]["f"]["mean"] == pytest.approx(expected)
    wrong = with_cell(table, "shown", int(np.flatnonzero(~shown)[0]), True)
    wrong = with_column(wrong, "chosen", [True] * table.num_rows)
    write_table(wrong, "wrong.parquet")
    assert fails(
        call("fit", "wrong.parquet", *FIT, "--columns", "given=shown", "-o", "n.json"),
        "is there already, but it is labelled 1",
    )


# In retrieval pipelines ---------------------------------------------------------------


def test_documents_that_are_found_are_all_candidates(table):
    roles = {"group": "query", "label": "chosen", "kernel": "linear", "omega": 1.0}
    names = {"score": "score", "embedding": "embedding"}
    model = TableSelector(
        **roles, quality="score", similarity="embedding", given="shown"
    ).fit(table.select(["query", "chosen", "shown", *names]))
    rows = table.slice(0, N_ITEMS)
    found = Found(rows["item"].to_pylist(), *(rows[n].to_pylist() for n in names))
    selector = ContextSelector(fetch_k=N_ITEMS, model=model)
    chosen = selector.choose(found)
    plain = with_column(rows, "shown", [0] * N_ITEMS)
    expected = model.choose(plain.select(["query", "shown", *names]))
    assert sorted(chosen) == np.flatnonzero(expected.selected).tolist()
