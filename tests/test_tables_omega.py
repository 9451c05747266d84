"""Omega when rows are chosen: it moves the end of one ranking."""

import copy
import itertools

import numpy as np
import pytest

import variegate as vg
from variegate.tables import (
    TableSelector,
    make_table,
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

OMEGAS = (1e-6, 1 / 16, 1 / 4, 1.0, 4.0, 16.0, 1e6)

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


def same_choices(one, other):
    np.testing.assert_array_equal(one.rank, other.rank)
    np.testing.assert_array_equal(one.probability, other.probability)


@pytest.mark.parametrize("name", RULES)
def test_omega_moves_the_end_of_the_ranking(table, name):
    selector = TableSelector(**QUICK | RULES[name], validation_fraction=0.25)
    selector.fit(table)
    limit = {"at_most": 1, "per": "kind"}
    for limits in ({}, limit):
        choices = [selector.choose(table, omega=w, **limits) for w in OMEGAS]
        for smaller, larger in itertools.pairwise(choices):
            kept = smaller.selected
            np.testing.assert_array_equal(larger.rank[kept], smaller.rank[kept])
        sizes = [int(choice.selected.sum()) for choice in choices]
        assert sizes[0] < sizes[3] < sizes[-1]
        own = selector.choose(table, omega=selector.omega_, **limits)
        same_choices(own, selector.choose(table, **limits))
    # The scores of the path at the omega of the model are those of its own choice.
    (point,) = [p for p in selector.path_ if p.omega == selector.path_.chosen]
    assert point.omega == selector.omega_
    for score, (mean, _, _) in selector.training_["validation"].items():
        assert getattr(point, score) == pytest.approx(mean)


def test_omega_multiplies_the_odds_of_every_row(selector, table):
    (group, *_) = selector._read_groups(
        MemoryTable(table), selector._required_columns(False)
    )
    for omega in OMEGAS:
        model = copy.copy(selector.model_)
        model.intercept_ += 0.5 * np.log(omega)
        expected = model.ensemble(group.ground_set).decode("greedy").indices
        found = selector._make_chooser(omega)(group).order
        assert sorted(found.tolist()) == expected.tolist()


def test_a_path_is_around_the_omega_of_the_model(table):
    settings = QUICK | {"omega": 2.0, "validation_fraction": 0.25}
    path = TableSelector(**settings).fit(table).path_
    assert path.omega.tolist() == [0.125, 0.5, 2.0, 8.0, 32.0]
    assert path.chosen == 2.0
    assert (np.diff(path.size) >= 0.0).all()
    assert (np.diff(path.recall) >= 0.0).all()
