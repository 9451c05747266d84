"""At most so many rows with the same value in a column."""

import copy
import warnings
from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import variegate as vg
from variegate.tables import (
    Columns,
    TableError,
    TableSelector,
    make_table,
    select_untrained,
)
from variegate.tables.table import MemoryTable

#: One fit, fast to choose from.
QUICK = {
    "group": "query",
    "label": "chosen",
    "quality": ["score", "freshness"],
    "similarity": "embedding",
    "omega": 1.0,
    "decoder": "greedy",
    "kernel": "linear",
}


RULES = {
    "greedy": {},
    "expected-f": {"decoder": "expected-f"},
    "mbr": {"decoder": "mbr"},
    "maximum likelihood": {"lam": 0.0, "decoder": "local"},
    "gaussians": {"kernel": "multiple", "lam": 1.0, "decoder": "expected-f"},
    "kinds": {"kernel": vg.Kinds(3), "tol": 1.0},
    "compared": {"kernel": None, "decoder": None, "omega": None},
}


@pytest.fixture(scope="module")
def table():
    return make_table(n_groups=12, n_items=7, n_dimensions=4, random_state=1)


@pytest.fixture(scope="module")
def selector(table):
    return TableSelector(**QUICK).fit(table)


def most_of_each(choices, table, column):
    """Return the largest number of chosen rows of a group with the same value."""
    names = zip(table["query"].to_pylist(), table[column].to_pylist(), strict=True)
    chosen = [n for n, flag in zip(names, choices.selected, strict=True) if flag]
    return max(Counter(chosen).values())


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("k", [None, 3])
def test_at_most_so_many_of_each(table, name, k):
    rng = np.random.default_rng(1)
    brand = pa.array(rng.choice(["x", "y", "z"], 84))
    table = table.append_column("brand", brand)
    selector = TableSelector(**QUICK | RULES[name]).fit(table)
    limits = {"at_most": (2, 1), "per": ("brand", "kind")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        choices = selector.choose(table, k, **limits)
        frame = selector.select(table.to_pandas(), at_most=1, per="brand")
    assert most_of_each(choices, table, "brand") <= 2
    assert most_of_each(choices, table, "kind") <= 1
    assert choices.selected.any()
    assert frame.groupby(["query", "brand"]).size().max() == 1


def test_limits_that_leave_fewer_rows(selector, table):
    # Groups of seven rows, of which all but one have the same brand.
    brand = pa.array((["x"] * 6 + ["y"]) * 12)
    table = table.append_column("brand", brand)
    message = (
        "fewer than 4 rows could be chosen from 12 of 12 groups: at most 2 per brand "
        "leaves no more"
    )
    with pytest.warns(UserWarning, match=message):
        choices = selector.choose(table, k=4, at_most=2, per="brand")
    assert choices.selected.sum() == 12 * 3
    assert choices.n_short == 12
    reason = "the limits allow no more than 3 rows"
    assert {one["stop_reason"] for one in choices.endings} == {reason}
    columns = Columns(group="query", similarity=("embedding",), relevance="score")
    with pytest.warns(UserWarning, match=message):
        chosen = select_untrained(table, columns, "mmr", 4, at_most=2, per="brand")
    assert chosen.num_rows == 12 * 3
    # A group that has no more rows than k is no reason to warn.
    assert selector.choose(table, k=9, at_most=6, per="brand").n_short == 0


def test_a_fixed_number_of_rows_that_limits_rule_out(selector, table):
    fixed = copy.copy(selector)
    fixed.policy_ = replace(selector.policy_, k=3)
    table = table.append_column("brand", pa.array(["x"] * 84))
    with pytest.warns(UserWarning, match="fewer than 3 rows could be chosen from 12"):
        choices = fixed.choose(table, at_most=2, per="brand")
    assert choices.selected.sum() == 12 * 2


@pytest.mark.parametrize("empty", [None, "", float("nan")])
def test_a_limit_needs_a_value_in_every_row(selector, table, empty):
    values = [1.5, 2.5] if empty != empty else ["x", "y"]
    brand = [*values * 42]
    brand[9] = empty
    table = table.append_column("brand", pa.array(brand))
    message = "column 'brand' is empty in row 10: every row needs a value there"
    with pytest.raises(TableError, match=message):
        selector.choose(table, at_most=2, per="brand")
    columns = Columns(group="query", similarity=("embedding",))
    with pytest.raises(TableError, match=message):
        select_untrained(table, columns, k=3, at_most=2, per="brand")


def test_at_most_in_evaluation(selector, table):
    brand = pa.array(np.resize(["x", "x", "y"], 84))
    table = table.append_column("brand", brand)
    limits = {"at_most": 1, "per": "brand"}
    found = selector.evaluate(table, methods=["top"], relevance="score", **limits)
    k = round(float(np.asarray(table["chosen"]).sum()) / 12)
    assert list(found.scores) == [
        "model",
        "model (at most 1 per brand)",
        f"top (k = {k}, at most 1 per brand)",
    ]
    assert found.reference == "model (at most 1 per brand)"
    sizes = {name: scores[:, 3] for name, scores in found.scores.items()}
    assert (sizes["model (at most 1 per brand)"] <= 2).all()
    assert sizes["model"].max() > 2
    choices = selector.choose(table, **limits)
    assert sizes[found.reference].sum() == choices.selected.sum()


def test_of_a_large_group_enough_candidates_meet_a_limit(selector, table, monkeypatch):
    monkeypatch.setattr("variegate.tables.choosing.MAX_CANDIDATES", 4)
    # The best rows of each group have the same brand.
    columns = selector._required_columns(False)
    groups = list(selector._read_groups(MemoryTable(table), columns))
    quality = selector.model_.log_quality(np.concatenate([g.quality for g in groups]))
    best = np.argsort(np.argsort(-quality.reshape(12, 7), axis=1), axis=1) < 5
    brand = np.where(best.ravel(), "x", "y")
    table = table.append_column("brand", pa.array(brand))
    choices = selector.choose(table, k=2, at_most=1, per="brand")
    assert choices.n_short == 0
    assert choices.selected.reshape(12, 7).sum(axis=1).tolist() == [2] * 12
