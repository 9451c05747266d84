"""Tables whose groups are sequences, learned and chosen segment by segment."""

import json
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

import variegate as vg
from folder_instances import Pickling, cut, learn_folder, write_folder
from table_instances import caller, fails, succeeds, with_cell, with_column
from test_tables_given import FIT
from variegate.application.table_defaults import default_estimator
from variegate.estimator.sequence_search import SequenceSearch
from variegate.integrations import ContextSelector, Found
from variegate.partitions import Threads
from variegate.tables import (
    Columns,
    TableError,
    TableSelector,
    make_table,
    select_untrained,
    write_table,
)
from variegate.tables import segments as segments_module
from variegate.tables.encoded import GroupReader
from variegate.tables.errors import TableFileError
from variegate.tables.table import as_table

N_ITEMS, N_GROUPS = 12, 16

#: One fit, fast to choose from.
QUICK = {
    "group": "query",
    "label": "chosen",
    "segment": "scene",
    "quality": ["score", "freshness"],
    "similarity": "embedding",
    "cost": "tokens",
    "omega": 1.0,
    "decoder": "greedy",
    "kernel": "linear",
}

#: Without the hinge, at whose kinks solvers stop early.
SMOOTH = {"lam": 0.0, "tol": 1e-6}


def table_of_scenes(n_groups=N_GROUPS, seed=0):
    """Return groups of four scenes, whose rows are scattered in the group."""
    table = make_table(n_groups, N_ITEMS, 4, random_state=seed)
    rng = np.random.default_rng(seed)
    scenes = [rng.permutation(np.arange(N_ITEMS) % 4) for _ in range(n_groups)]
    return table.append_column("scene", pa.array(np.concatenate(scenes)))


def flags(table, name):
    return table[name].to_numpy(zero_copy_only=False).astype(bool)


def as_sequences(table, given=None):
    """Return sequences encoded by hand: their rows, items, wanted ones, boundaries."""
    numbers = [table[n].to_numpy() for n in ("score", "freshness")]
    X = np.column_stack([(x - x.mean()) / x.std() for x in numbers])
    F = np.array(table["embedding"].to_pylist(), dtype=float)
    F /= np.linalg.norm(F, axis=1, keepdims=True)
    scenes, queries = table["scene"].to_pylist(), table["query"].to_pylist()
    found = []
    for query in dict.fromkeys(queries):
        here = [row for row, name in enumerate(queries) if name == query]
        order, starts = [], []
        for scene in dict.fromkeys(scenes[row] for row in here):
            starts.append(len(order))
            order += [row for row in here if scenes[row] == scene]
        one = vg.GroundSet(
            X[order],
            F[order],
            costs=table["tokens"].to_numpy()[order],
            given=() if given is None else flags(table, given)[order],
        )
        wanted = np.flatnonzero(flags(table, "chosen")[order])
        found.append((np.array(order), one, wanted, starts))
    return map(list, zip(*found, strict=True))


@pytest.fixture(scope="module")
def table():
    return table_of_scenes()


@pytest.fixture(scope="module")
def selector(table):
    return TableSelector(**QUICK).fit(table)


@pytest.fixture(scope="module")
def sequential(table):
    """The model of the same sequences in lists."""
    return learn_lists(table)


def learn_lists(table, kernel=None, given=None, **settings):
    """Return a SequentialDPP of the sequences in a table."""
    model = default_estimator().set_params(kernel=kernel or vg.Linear(), **SMOOTH)
    model.set_params(random_state=0)
    _, sequences, subsets, starts = as_sequences(table, given)
    return vg.SequentialDPP(model, **settings).fit(sequences, subsets, starts)


def chosen_rows(predictions, orders):
    """Return sorted row numbers of all items that were predicted."""
    pairs = zip(predictions, orders, strict=True)
    return sorted(row for items, order in pairs for row in order[items].tolist())


# Learning -------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["linear", "multiple"])
@pytest.mark.parametrize("memory", [1, 2])
def test_a_table_teaches_what_lists_teach(table, kernel, memory):
    settings = QUICK | SMOOTH | {"kernel": kernel}
    selector = TableSelector(**settings, segment_memory=memory)
    kernels = {"linear": vg.Linear(), "multiple": vg.MultipleKernel()}
    expected = learn_lists(table, kernels[kernel], memory=memory).estimator_
    learned = selector.fit(table).model_
    np.testing.assert_allclose(learned.theta_, expected.theta_, rtol=1e-5)
    assert learned.intercept_ == pytest.approx(expected.intercept_, rel=1e-5)


def test_memory_and_segments_change_the_model(table, selector):
    found = [selector.model_.theta_]
    for other in ({"segment_memory": 3}, {"segment": None}):
        found.append(TableSelector(**QUICK | other).fit(table).model_.theta_)
    distances = [np.abs(a - b).max() for a in found for b in found if a is not b]
    assert min(distances) > 1e-3


@pytest.mark.parametrize("kernel", ["linear", "multiple"])
def test_one_segment_a_group_leaves_every_bit(table, kernel):
    settings = QUICK | {"kernel": kernel, "validation_fraction": 0.25}
    single = with_column(table, "scene", ["all"] * table.num_rows)
    first = TableSelector(**settings).fit(single)
    second = TableSelector(**settings | {"segment": None}).fit(table)
    np.testing.assert_array_equal(first.model_.theta_, second.model_.theta_)
    one, other = first.choose(single), second.choose(table)
    np.testing.assert_array_equal(one.rank, other.rank)
    np.testing.assert_array_equal(one.probability, other.probability)
    assert first.training_ == second.training_


@pytest.mark.parametrize(
    "settings", [{}, {"kernel": "multiple"}, {"quality_model": "boosting"}], ids=str
)
def test_folders_give_the_bits_of_one_file(tmp_path, table, settings):
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
        np.testing.assert_array_equal(
            there.choose(folder).rank, home.choose(table).rank
        )


def test_values_in_text_are_the_same_segments(table, selector):
    text = with_column(table, "scene", [f"s{n}" for n in table["scene"].to_pylist()])
    other = TableSelector(**QUICK).fit(text)
    np.testing.assert_array_equal(other.model_.theta_, selector.model_.theta_)


def test_rows_that_are_there_already_are_given_to_their_segment(table):
    rng = np.random.default_rng(1)
    shown = ~flags(table, "chosen") & (rng.uniform(size=table.num_rows) < 0.3)
    # A whole segment is there.
    scenes, chosen = table["scene"].to_numpy(), flags(table, "chosen")
    group = np.arange(table.num_rows) // N_ITEMS
    whole = next(
        rows
        for number in range(N_GROUPS)
        for scene in range(4)
        for rows in [(group == number) & (scenes == scene)]
        if not chosen[rows].any()
    )
    table = table.append_column("shown", pa.array(shown | whole))
    selector = TableSelector(**QUICK, **SMOOTH, given="shown").fit(table)
    model = learn_lists(table, given="shown")
    np.testing.assert_allclose(
        selector.model_.theta_, model.estimator_.theta_, rtol=1e-5
    )
    orders, sequences, _, starts = as_sequences(table, "shown")
    for k in (None, 3):
        choices = selector.choose(table, k=k)
        expected = model.predict(sequences, k=k, boundaries=starts)
        assert np.flatnonzero(choices.selected).tolist() == chosen_rows(
            expected, orders
        )
        np.testing.assert_array_equal(np.isnan(choices.probability), shown | whole)


def test_whole_groups_are_held_out(monkeypatch):
    table = table_of_scenes(20, 3)
    seen = []
    settings = QUICK | {"kernel": None, "decoder": None, "omega": None}

    def fold_labels(fold, seed):
        seen.append((set(fold.labels[fold.learned]), set(fold.units)))
        return fold

    monkeypatch.setattr("variegate.tuning.kernel_search.boosted_fold", fold_labels)
    monkeypatch.setattr(
        "variegate.tuning.kernel_search.trees_predict_better", lambda fold: False
    )
    selector = TableSelector(**settings).fit(table)
    assert seen
    assert all(len(learned | held) == 20 for learned, held in seen)
    assert not any(learned & held for learned, held in seen)
    # Scores are of groups, and no number of rows is fixed.
    kernels = selector.training_["compared"]["kernels"]
    assert kernels[0]["n_groups"] == 20
    assert {one["k"] for one in kernels} == {None}
    assert "logistic regression" not in {one["name"] for one in kernels}
    assert selector.k_ is None


def test_tuning_holds_out_whole_groups(table, monkeypatch):
    seen = []
    fit = vg.LargeMarginDPPCV.fit

    def keep_groups(search, X, y, groups=None):
        seen.append(groups)
        return fit(search, X, y, groups)

    monkeypatch.setattr(vg.LargeMarginDPPCV, "fit", keep_groups)
    TableSelector(**QUICK | {"omega": None}, tune=True, lams=[1.0]).fit(table)
    assert seen[0].tolist() == np.repeat(np.arange(N_GROUPS), 4).tolist()
    whole = QUICK | {"omega": None, "segment": None}
    TableSelector(**whole, tune=True, lams=[1.0]).fit(table)
    assert seen[1] is None


def test_a_model_file_has_segments(tmp_path, table):
    selector = TableSelector(**QUICK, segment_memory=2).fit(table)
    selector.save(tmp_path / "m.json")
    known = vg.load(tmp_path / "m.json")
    assert (known.columns_.segment, known.segment_memory) == ("scene", 2)
    np.testing.assert_array_equal(known.choose(table).rank, selector.choose(table).rank)


# Choosing -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "limits", [{}, {"k": 1}, {"k": 4}, {"k": N_ITEMS}, {"budget": 700.0}], ids=str
)
@pytest.mark.parametrize("memory", [1, 2])
def test_choices_are_those_of_lists(table, selector, limits, memory):
    orders, sequences, _, starts = as_sequences(table)
    model = vg.SequentialDPP(selector.model_, memory=memory)
    model.estimator_ = selector.model_
    expected = model.predict(sequences, boundaries=starts, **limits)
    other = selector.with_columns()
    other.segment_memory = memory
    choices = other.choose(table, **limits)
    assert np.flatnonzero(choices.selected).tolist() == chosen_rows(expected, orders)
    # Ranks rise with the segments, without a gap.
    for order, start in zip(orders, starts, strict=True):
        ranks = choices.rank[order]
        by_segment = [one[one > 0] for one in np.split(ranks, start[1:])]
        joined = np.concatenate([np.sort(one) for one in by_segment])
        assert joined.tolist() == list(range(1, len(joined) + 1))
    tokens = (table["tokens"].to_numpy() * choices.selected).reshape(-1, N_ITEMS)
    assert tokens.sum(axis=1).max() <= limits.get("budget", np.inf)


@pytest.mark.parametrize("limits", [{}, {"k": 4}], ids=str)
def test_probabilities_are_beside_the_last_choices(table, selector, limits):
    choices, model = selector.choose(table, **limits), selector.model_
    orders, sequences, _, starts = as_sequences(table)
    for order, one, start in zip(orders, sequences, starts, strict=True):
        u = one.quality @ model.theta_ + model.intercept_
        bounds = [*start, len(one)]
        earlier = np.zeros(0, dtype=int)
        for first, end in pairwise(bounds):
            both = np.concatenate([earlier, np.arange(first, end)])
            F = one.similarity[both]
            S = F @ F.T
            S += model.jitter * np.mean(np.diag(S)) * np.eye(len(S))
            ensemble = vg.LEnsemble.from_quality(S, u[both])
            conditional = ensemble.condition(include=range(len(earlier)))
            found = choices.probability[order[first:end]]
            np.testing.assert_allclose(found, conditional.marginals(), atol=1e-4)
            earlier = first + np.flatnonzero(choices.selected[order[first:end]])


def test_scores_are_of_groups(table, selector):
    _, sequences, subsets, starts = as_sequences(table)
    model = vg.SequentialDPP()
    model.estimator_ = selector.model_
    expected = model.score(sequences, subsets, starts)
    assert selector.score(table) == pytest.approx(expected)
    found = selector.evaluate(table, k="wanted")
    np.testing.assert_array_equal(found.counts["model (as many as wanted)"][:, 1],
                                  [len(one) for one in subsets])  # fmt: skip
    assert found.intervals()["model"]["f"].mean == pytest.approx(expected)


def test_another_omega_chooses_more(table, selector):
    sizes = [selector.choose(table, omega=w).selected.sum() for w in (0.1, 1.0, 10.0)]
    assert sizes[0] < sizes[1] < sizes[2]


def test_copies_are_left_out_of_the_next_segment_alone(table, selector):
    # All rows of a group are good, and copies of the first one.
    scene = np.repeat(np.arange(4), 3).tolist()
    one = with_column(table.slice(0, N_ITEMS), "scene", scene)
    vectors = [one["embedding"][0].as_py()] * N_ITEMS
    one = with_column(one, "embedding", vectors, one.schema.field("embedding").type)
    one = with_column(one, "score", [30.0] * N_ITEMS)
    assert flags(one, "chosen").size == N_ITEMS
    choices = selector.choose(one)
    by_scene = choices.selected.reshape(4, 3).sum(axis=1)
    assert by_scene.tolist() == [1, 0, 1, 0]
    other = selector.with_columns()
    other.segment_memory = 3
    assert other.choose(one).selected.reshape(4, 3).sum(axis=1).tolist() == [1, 0, 0, 0]


def test_untrained_methods_choose_from_whole_groups(table, selector):
    roles = {"group": "query", "similarity": ("embedding",), "relevance": "score"}
    frame = select_untrained(table, Columns(**roles, segment="scene"), "mmr", 3)
    assert frame == select_untrained(table, Columns(**roles), "mmr", 3)
    whole = TableSelector(**QUICK | {"segment": None}).fit(table)
    judged = {"methods": ["mmr"], "k": 3, "train": table, "relevance": "score"}
    found, expected = (
        selector.evaluate(table, **judged),
        whole.evaluate(table, **judged),
    )
    others = [name for name in expected.scores if not name.startswith("model")]
    assert len(others) > 1
    for name in others:
        np.testing.assert_array_equal(found.scores[name], expected.scores[name])


def test_a_folder_of_choices(tmp_path, table, selector):
    folder = write_folder(tmp_path / "t", cut(table, 48, 96))
    found = selector.select(folder, out=tmp_path / "out", engine=Pickling())
    assert found.n_chosen == selector.choose(table).selected.sum()
    assert set(found.stop_reasons) == {"segments are chosen one by one"}
    other = selector.with_columns()
    other.segment_memory = 2
    with pytest.raises(TableFileError, match="another model"):
        other.select(folder, out=tmp_path / "out", engine=Pickling())


def test_documents_that_are_found_are_one_segment(table):
    roles = {"group": "query", "label": "chosen", "kernel": "linear", "omega": 1.0}
    names = {"score": "score", "embedding": "embedding"}
    model = TableSelector(
        **roles, quality="score", similarity="embedding", segment="scene"
    ).fit(table.select(["query", "chosen", "scene", *names]))
    rows = table.slice(0, N_ITEMS)
    found = Found(rows["item"].to_pylist(), *(rows[n].to_pylist() for n in names))
    chosen = ContextSelector(fetch_k=N_ITEMS, model=model).choose(found)
    single = with_column(rows, "scene", [0] * N_ITEMS)
    expected = model.choose(single.select(["query", "scene", *names]))
    assert sorted(chosen) == np.flatnonzero(expected.selected).tolist()


# Messages -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"at_most": 1, "per": "kind"}, "at_most is for groups without segments"),
        ({"k": 2, "budget": 9.0}, "within one limit: leave out k or budget"),
        (
            {"omega": 2.0, "budget": 9.0},
            "omega does not change choices within a budget",
        ),
    ],
    ids=str,
)
def test_limits_over_several_segments(table, selector, limits, message):
    with pytest.raises(TableError, match=message):
        selector.choose(table, **limits)


def test_large_segments(table, selector, monkeypatch):
    monkeypatch.setattr(segments_module, "MAX_CANDIDATES", 2)
    message = "group .*: a segment has 3 rows, .* of at most 2: cut the group"
    with pytest.raises(TableError, match=message):
        selector.choose(table, k=2)
    assert selector.predict(table).any()


def test_cells_of_a_segment_column(table, selector):
    wrong = with_cell(table, "scene", 4, None)
    for call in (TableSelector(**QUICK).fit, selector.choose):
        with pytest.raises(TableError, match="'scene' is empty in row 5"):
            call(wrong)
    with pytest.raises(TableError, match="does not fit the model: there is no column"):
        selector.choose(table.drop_columns("scene"))
    with pytest.raises(TableError, match=r"'scne' \(did you mean 'scene'"):
        TableSelector(**QUICK | {"segment": "scne"}).fit(table)


def test_errors_name_the_group_of_a_segment(table):
    rows = np.flatnonzero(flags(table, "chosen") & (np.arange(len(table)) >= N_ITEMS))
    scenes = table["scene"].to_numpy()
    one = int(rows[0])
    group = one // N_ITEMS
    other = next(
        row
        for row in range(group * N_ITEMS, (group + 1) * N_ITEMS)
        if row != one and scenes[row] == scenes[one]
    )
    vectors = table["embedding"].to_pylist()
    vectors[other] = vectors[one]
    kind = table.schema.field("embedding").type
    wrong = with_column(table, "embedding", vectors, kind)
    wrong = with_cell(wrong, "chosen", other, True)
    name = table["query"][one].as_py()
    estimator = default_estimator().set_params(jitter=0.0)
    for settings in ({}, {"kernel": vg.Linear(), "memory": 4000}):
        selector = TableSelector(**QUICK | settings, estimator=estimator)
        with pytest.raises(TableError, match=f"a segment of group '{name}': "):
            selector.fit(wrong)


@pytest.mark.parametrize("role", ["group", "label", "item", "given"])
def test_a_column_has_one_role(table, role):
    settings = QUICK | {role: "scene"}
    with pytest.raises(TableError, match=f"'scene' cannot be both {role} and segment"):
        TableSelector(**settings).fit(table)


def test_a_segment_is_not_a_quality(table):
    selector = TableSelector(**QUICK | {"quality": None}).fit(table)
    assert "scene" not in selector.columns_.quality


def test_memory_of_segments_is_a_count(table):
    with pytest.raises(ValueError, match="segment_memory must be"):
        TableSelector(**QUICK, segment_memory=0).fit(table)


def test_readers_of_other_processes_know_the_memory():
    reader = GroupReader(None, None, segment_memory=3)
    assert reader.__getstate__()["segment_memory"] == 3


def test_a_segment_that_is_there_uses_up_memory(sequential):
    rng = np.random.default_rng(0)
    one = vg.GroundSet(
        rng.standard_normal((9, 2)), rng.standard_normal((9, 4)), given=[3, 4, 5]
    )
    search = SequenceSearch(sequential.estimator_, one, [0, 3, 6, 9], 1)
    alone = SequenceSearch(sequential.estimator_, one.take(range(6, 9)), [0, 3], 1)
    for name, argument in (("forward", ()), ("by_beam", (2,))):
        found = getattr(search, f"choose_{name}")(*argument)
        last = getattr(alone, f"choose_{name}")(*argument)
        assert (np.sort(found[found >= 6]) - 6).tolist() == np.sort(last).tolist()


# On the command line --------------------------------------------------------------


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    return caller(monkeypatch, capsys)


def test_from_fit_to_evaluate(call, table):
    table = table.rename_columns({"scene": "place"})
    write_table(table, "train.parquet")
    write_table(table.rename_columns({"place": "cut"}), "new.parquet")
    fit = ("fit", "train.parquet", *FIT, "--segment", "place", "--segment-memory", 2)
    succeeds(call(*fit, "-o", "m.json", "--report", "report.html"))
    model = vg.load("m.json")
    assert (model.columns_.segment, model.segment_memory) == ("place", 2)
    select = ("select", "new.parquet", "--model", "m.json", "-o", "all.jsonl")
    message = "does not fit the model: there is no column 'place'; the table has"
    assert fails(call(*select, "--k", 3), message)
    succeeds(call(*select, "--k", 3, "--columns", "segment=cut", "--all"))
    rows = next(iter(as_table("all.jsonl").batches())).to_pylist()
    ranks = [row["selection_rank"] for row in rows]
    assert ranks == model.choose(table, k=3).rank.tolist()
    judge = ("evaluate", "train.parquet", "--model", "m.json", "--methods", "mmr")
    numbers = json.loads(succeeds(call(*judge, "--json")))
    expected = model.evaluate(table).intervals()["model"]["f"].mean
    assert numbers["scores"]["m.json"]["f"]["mean"] == pytest.approx(expected)
    assert fails(
        call(*judge, "--at-most", "1", "--per", "kind"),
        "--at-most is for groups without segments: leave it out, or choose by a model",
    )
