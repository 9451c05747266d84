"""Models, learned rivals and methods on the same terms: numbers of rows and budgets."""

import numpy as np
import pytest

from variegate.baselines.learned import learned_rivals
from variegate.metrics import f_score
from variegate.tables import TableError, TableSelector, make_table
from variegate.tables import comparison as room
from variegate.tables.comparison import (
    learn_rivals,
    rival_choosers,
)
from variegate.tables.evaluation import SCORES
from variegate.tables.fitting import split_groups
from variegate.tables.limits import Limit
from variegate.tables.table import MemoryTable

F, SIZE = SCORES.index("f"), SCORES.index("size")

LEARNED = [
    f"{name} + {method}"
    for name in ("logistic", "boosting")
    for method in ("top", "mmr", "dpp")
]


@pytest.fixture(scope="module")
def train():
    return make_table(n_groups=20, n_items=8, n_dimensions=4, random_state=0)


@pytest.fixture(scope="module")
def new():
    return make_table(n_groups=10, n_items=8, n_dimensions=4, random_state=1)


@pytest.fixture(scope="module")
def selector(train):
    return TableSelector(
        group="query", label="chosen", quality=["score", "freshness"], cost="tokens",
        similarity="embedding", omega=1.0, kernel="linear", tol=1.0,
    ).fit(train)  # fmt: skip


def groups_of(selector, table):
    groups = selector._read_groups(
        MemoryTable(table), selector._required_columns(True, Limit(budget=1.0))
    )
    return list(groups)


def without(table, *names):
    return table.drop(list(names))


# Limits -------------------------------------------------------------------------------


def test_terms_in_words():
    assert str(Limit(5)) == "k = 5"
    assert str(Limit("wanted", 800.0)) == "as many as wanted, budget 800"
    assert str(Limit(budget=0.5)) == "budget 0.5"
    assert not Limit()
    assert Limit(budget=2.0)
    assert Limit(budget=2.0).with_k(3) == Limit(3, 2.0)
    assert Limit("wanted").with_k(3) == Limit("wanted")


def test_a_model_by_itself_and_on_terms(selector, new):
    budget = 700.0
    found = selector.evaluate(new, k=3, budget=budget, methods=["mmr"])
    assert list(found.scores) == [
        "model",
        "model (k = 3, budget 700)",
        "mmr (k = 3, budget 700)",
    ]
    assert found.reference == "model (k = 3, budget 700)"
    free, bound = selector.choose(new), selector.choose(new, k=3, budget=budget)
    costs = new["tokens"].to_numpy()
    for name, choices in (("model", free), (found.reference, bound)):
        for group, scores in zip(
            groups_of(selector, new), found.scores[name], strict=True
        ):
            chosen = np.flatnonzero(choices.selected[group.rows])
            assert scores[F] == pytest.approx(f_score(chosen, group.wanted()))
            if name != "model":
                assert len(chosen) <= 3
                assert costs[group.rows[chosen]].sum() <= budget
    assert sum(found.endings[found.reference].stop_reasons.values()) == 10


def test_as_many_as_wanted_where_nothing_is(selector, new):
    flags = new["chosen"].to_numpy(zero_copy_only=False).copy()
    flags[:8] = False
    table = new.set_column(new.column_names.index("chosen"), "chosen", [flags])
    found = selector.evaluate(table, k="wanted", empty_groups="keep")
    sizes = found.scores["model (as many as wanted)"][:, SIZE]
    assert sizes.tolist() == flags.reshape(10, 8).sum(axis=1).tolist()


# Rivals ---------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [None, 900.0])
def test_rivals_are_those_of_the_training_table(selector, train, new, budget):
    found = selector.evaluate(new, train=train, budget=budget)
    groups = groups_of(selector, train)
    learned = learned_rivals(
        [group.ground_set for group in groups],
        [group.wanted() for group in groups],
        selector.seed_,
        budget=budget,
    )
    names = [name for name in found.scores if "+" in name]
    assert [name.split(" (")[0] for name in names] == LEARNED
    for name, short in zip(names, LEARNED, strict=True):
        rival = learned[short]
        if budget is None:
            assert name == f"{short} (k = {rival.k})"
            assert (found.scores[name][:, SIZE] == min(rival.k, 8)).all()
        else:
            assert name == f"{short} (budget 900)"
        for group, scores in zip(
            groups_of(selector, new), found.scores[name], strict=True
        ):
            chosen = rival(group.ground_set)
            if budget is None:
                assert scores[F] == pytest.approx(f_score(chosen, group.wanted()))
            else:
                assert scores[SIZE] <= rival.k


def test_a_budget_is_kept_by_rivals(selector, train, new):
    groups = selector._read_groups(
        MemoryTable(train), selector._required_columns(True, Limit(budget=1.0))
    )
    rivals = learn_rivals(groups, np.arange(20), budget=900.0, memory=2**30)
    ways = rival_choosers(rivals, Limit(budget=900.0))
    for group in groups_of(selector, new):
        for way in ways.values():
            assert group.costs[way(group).order].sum() <= 900.0


def test_rivals_on_the_terms_of_all(selector, train, new):
    found = selector.evaluate(new, train=train, k=2)
    for name in LEARNED:
        assert (found.scores[f"{name} (k = 2)"][:, SIZE] == 2.0).all()


def test_labels_of_the_training_table_beside_it(selector, train, new):
    y = train["chosen"].to_numpy(zero_copy_only=False)
    one = selector.evaluate(new, train=train)
    other = selector.evaluate(new, train=(without(train, "chosen"), y))
    assert list(one.scores) == list(other.scores)
    for name, scores in one.scores.items():
        np.testing.assert_array_equal(scores, other.scores[name])


def test_without_training_data_there_are_no_rivals(selector, new):
    assert list(selector.evaluate(new).scores) == ["model"]


def test_bounded_training(selector, train, monkeypatch):
    groups = selector._read_groups(MemoryTable(train), selector._required_columns(True))
    every = np.arange(20)
    assert groups.sample(every, 0, 2000, 2**20).tolist() == every.tolist()
    drawn = groups.sample(every, 0, 6, 2**20)
    assert len(set(drawn.tolist())) == 6
    assert (np.diff(drawn) > 0).all()
    # Eight rows a group.
    assert len(groups.sample(every, 0, 6, 24)) == 3
    assert len(groups.sample(every, 0, 6, 23)) == 2
    assert len(groups.sample(every, 0, 6, 0)) == 1
    monkeypatch.setattr(room, "MAX_GROUPS", 6)
    seen = []
    monkeypatch.setattr(
        room, "learned_rivals", lambda sets, *rest, **more: seen.append(len(sets)) or {}
    )
    steps = []
    learn_rivals(groups, every, memory=2**30, progress=lambda *step: steps.append(step))
    assert seen == [6]
    assert steps == [("learning baselines", 0, 1), ("learning baselines", 1, 1)]


def test_what_rivals_cannot_learn_from(selector, train, new):
    for table, budget, message in (
        (without(train, "freshness"), None, "baselines cannot .*no column 'fresh"),
        (without(train, "chosen"), None, "baselines cannot .*no column 'chosen"),
        (without(train, "tokens"), 9.0, "baselines cannot .*no column 'tokens"),
    ):
        with pytest.raises(TableError, match=message):
            selector.evaluate(new, train=table, budget=budget)
    flags = np.zeros(train.num_rows)
    with pytest.raises(TableError, match="cannot learn: no row is labelled 1"):
        selector.evaluate(new, train=(train, flags))
    with pytest.raises(TableError, match="cannot learn: y must have one label"):
        selector.evaluate(new, train=(train, flags.reshape(2, -1)))
    groups = selector._read_groups(MemoryTable(train), selector._required_columns(True))
    with pytest.raises(TableError, match="no groups that baselines could learn from"):
        learn_rivals(groups, np.arange(0), memory=2**30)


def test_empty_groups_of_the_training_table(selector, train, new):
    flags = train["chosen"].to_numpy(zero_copy_only=False).copy()
    flags[:8] = False
    with pytest.raises(TableError, match="cannot learn: 1 of 20 groups has no"):
        selector.evaluate(new, train=(train, flags))
    found = selector.evaluate(new, train=(train, flags), empty_groups="drop")
    groups = selector._read_groups(
        MemoryTable(train), selector._required_columns(False), labels=flags
    )
    learned = learn_rivals(groups, np.arange(1, 20), selector.seed_, memory=2**30)
    assert [name for name in found.scores if "+" in name] == [
        f"{name} (k = {rival.k})" for name, rival in learned.items()
    ]


# The report -----------------------------------------------------------------------


def test_rivals_of_a_report_learn_from_what_the_model_did(train):
    selector = TableSelector(
        group="query", label="chosen", quality=["score", "freshness"], tol=1.0,
        similarity="embedding", omega=1.0, kernel="linear", validation_fraction=0.25,
    ).fit(train)  # fmt: skip
    groups = selector._read_groups(MemoryTable(train), selector._required_columns(True))
    learned_from, held_out = split_groups(selector, groups.survey)
    rivals = learn_rivals(groups, learned_from, selector.seed_, memory=2**30)
    ways = rival_choosers(rivals, Limit())
    plain = selector.report(train).comparison
    assert list(plain.scores) == ["learned", *ways]
    for name, way in ways.items():
        expected = [
            f_score(way(group).order, group.wanted()) for group in groups.only(held_out)
        ]
        np.testing.assert_allclose(plain.scores[name][:, F], expected)
    assert list(plain.diversity) == ["learned", *ways, "wanted rows"]
    whole = selector.report(train, relevance="score").comparison
    assert [name.split(" ")[0] for name in list(whole.scores)[7:]] == [
        "dpp",
        "mmr",
        "top",
    ]
