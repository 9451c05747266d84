"""Tables with given rows: untrained methods, rivals and comparisons with them."""

import numpy as np
import pyarrow as pa
import pytest

import variegate as vg
from table_instances import caller, succeeds
from test_tables_given import FIT, N_ITEMS, QUICK, as_lists, flags, table_with_given
from variegate.baselines import METHODS
from variegate.baselines.learned import embeddings_of, learned_rivals
from variegate.metrics import f_score
from variegate.studio.choices import untrained_choice
from variegate.tables import Columns, TableSelector, select_untrained, write_table
from variegate.tables.table import as_table

UNTRAINED = Columns(
    group="query", similarity=("embedding",), relevance="score", cost="tokens",
    given="shown",
)  # fmt: skip


@pytest.fixture(scope="module")
def table():
    return table_with_given()


def order_of(frame, group):
    """Return item names of a group in a selection, in the order of ranks."""
    rows = [row for row in frame.to_pylist() if row["query"] == group]
    rows.sort(key=lambda row: row["selection_rank"])
    return [row["item"] for row in rows]


@pytest.mark.parametrize("method", METHODS)
def test_methods_choose_what_select_does(table, method):
    frame = select_untrained(table, UNTRAINED, method, 3)
    ground_sets, _ = as_lists(table)
    score, items = table["score"].to_numpy(), table["item"].to_pylist()
    groups = table["query"].to_pylist()
    for number, one in enumerate(ground_sets):
        rows = number * N_ITEMS + one.candidates
        expected = vg.select(
            one.similarity[one.candidates],
            score[rows],
            3,
            method,
            given=one.similarity[one.given] if len(one.given) else None,
            random_state=0,
        )
        names = [items[row] for row in rows[expected]]
        assert order_of(frame, groups[rows[0]]) == names


def test_limits_of_methods_are_for_candidates(table):
    dear = np.where(flags(table, "shown"), 1e6, 1.0)
    place = table.column_names.index("tokens")
    table = table.set_column(place, "tokens", pa.array(dear))
    frame = select_untrained(table, UNTRAINED, "mmr", budget=2.0)
    assert not flags(frame, "shown").any()
    counts = np.unique(frame["query"].to_pylist(), return_counts=True)[1]
    assert counts.tolist() == [2] * 16
    with pytest.warns(UserWarning, match="at most 1 per shown leaves no more"):
        single = select_untrained(table, UNTRAINED, "mmr", 4, at_most=1, per="shown")
    assert single.num_rows == 16


def test_a_group_of_given_rows_alone(table):
    values = flags(table, "shown")
    values[:N_ITEMS] = True
    place = table.column_names.index("shown")
    table = table.set_column(place, "shown", pa.array(values))
    frame = select_untrained(table, UNTRAINED, "dpp", 2)
    assert len(set(frame["query"].to_pylist())) == 15


def test_rivals_learn_from_candidates_and_choose_them(table):
    ground_sets, subsets = as_lists(table)
    rivals = learned_rivals(ground_sets, subsets, budget=1500.0)
    rest = [
        vg.GroundSet(
            one.candidate_quality,
            one.similarity[one.candidates],
            costs=one.costs[one.candidates],
        )
        for one in ground_sets
    ]
    inside = [
        np.searchsorted(one.candidates, subset)
        for one, subset in zip(ground_sets, subsets, strict=True)
    ]
    others = learned_rivals(rest, inside, budget=1500.0)
    for name, rival in rivals.items():
        for one, other in zip(ground_sets, rest, strict=True):
            relevance = rival.relevance(one.candidate_quality)
            np.testing.assert_array_equal(
                relevance, others[name].relevance(other.quality)
            )
            chosen = rival(one)
            assert not np.intersect1d(chosen, one.given).size
            expected = vg.select(
                embeddings_of(other),
                relevance,
                rival.k,
                rival.method,
                diversity=rival.diversity,
                given=one.similarity[one.given] if len(one.given) else None,
            )
            assert chosen.tolist() == one.candidates[expected].tolist()


def test_everything_is_compared_on_candidates(table):
    train, test = table_with_given(40, 1), table_with_given(12, 2)
    settings = QUICK | {"kernel": None, "decoder": None, "omega": None}
    selector = TableSelector(**settings, validation_fraction=0.2).fit(train)
    assert selector.training_["n_compared"] == 32
    assert not selector.predict(test)[flags(test, "shown")].any()
    found = selector.evaluate(
        test, methods=["dpp", "top"], train=train, relevance="score", k=3
    )
    wanted = flags(test, "chosen").reshape(-1, N_ITEMS)
    frame = select_untrained(test, UNTRAINED, "top", 3, keep_all=True)
    chosen = flags(frame, "selected").reshape(-1, N_ITEMS)
    expected = [f_score(one, other) for one, other in zip(chosen, wanted, strict=True)]
    np.testing.assert_allclose(found.scores["top (k = 3)"][:, 2], expected)
    assert len(found.scores) == 10
    report = selector.report(train)
    assert report.comparison is not None
    probabilities = [row.probability for one in report.examples for row in one.rows]
    assert not np.isnan(probabilities).any()


def test_a_regression_with_a_method(table):
    # Nothing is alike here, so that a regression is as good as anything.
    settings = QUICK | {"kernel": None, "decoder": None, "omega": None}
    selector = TableSelector(**settings).fit(table)
    standings = [one["name"] for one in selector.training_["compared"]["kernels"]]
    assert "logistic regression" in standings


def test_untrained_proposals_of_the_studio(table):
    one = next(one for one in as_lists(table)[0] if len(one.given) > 1)
    chosen = untrained_choice(one, 3)
    expected = vg.select(
        one.similarity[one.candidates], k=3, given=one.similarity[one.given]
    )
    assert chosen.tolist() == np.sort(one.candidates[expected]).tolist()


def test_on_the_command_line(table, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    call = caller(monkeypatch, capsys)
    write_table(table, "train.parquet")
    fit = ("fit", "train.parquet", *FIT, "--given", "shown", "-o", "m.json")
    succeeds(call(*fit, "--report", "report.html"))
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "1 in rows that are there already" in page
    select = ("select", "train.parquet", "--method", "mmr", "--k", "3")
    select += ("--group", "query", "--similarity", "embedding", "--given", "shown")
    succeeds(call(*select, "-o", "c.parquet"))
    (batch,) = as_table("c.parquet").batches()
    assert not any(row["shown"] for row in batch.to_pylist())
