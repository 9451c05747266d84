from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import variegate as vg
from variegate.baselines import METHODS
from variegate.decoding import DECODERS, as_decoder
from variegate.decoding.residuals import rank_members
from variegate.ground_set import GroundSetError
from variegate.tables import TableError, choosing
from variegate.tables.choosing import ByMethod, ByModel, choose_from_groups
from variegate.tables.encoded import Group
from variegate.tables.limits import Limit


def make_group(rng, n, number=0, costs=False, rows=None, blocks=1):
    return Group(
        f"g{number}",
        number,
        np.arange(n) if rows is None else rows,
        rng.standard_normal((n, 2)),
        {f"v{b}": rng.standard_normal((n, 3)) for b in range(blocks)},
        rng.random(n) < 0.4,
        rng.random(n) + 0.2 if costs else None,
        rng.standard_normal(n),
    )


def make_groups(sizes, seed=0, **others):
    rng = np.random.default_rng(seed)
    rows = np.split(rng.permutation(sum(sizes)), np.cumsum(sizes)[:-1])
    return [
        make_group(rng, size, number, rows=np.sort(rows[number]), **others)
        for number, size in enumerate(sizes)
    ]


def fitted(groups, kernel=None):
    model = vg.LargeMarginDPP(kernel=kernel or vg.Linear(), l2=1e-2)
    sets = [group.ground_set for group in groups]
    subsets = [group.chosen if group.chosen.any() else [0] for group in groups]
    return model.fit(sets, subsets)


class Listed(list):
    """Groups of a table of 23 rows."""

    survey = SimpleNamespace(n_rows=23)

    def threads(self, n_jobs):
        return n_jobs

    def map(self, function, numbers, progress):
        """Yield the result of one partition."""

        def told():
            for done, group in enumerate(self, 1):
                yield group
                progress(done, len(self))

        yield function(told())


@pytest.fixture(scope="module")
def model():
    return fitted(make_groups([6, 5, 7, 4], costs=True))


@pytest.fixture(scope="module")
def groups():
    return make_groups([5, 1, 8, 3, 6], seed=1, costs=True)


# Ranks ----------------------------------------------------------------------------


def naive_order(ensemble, members):
    order = []
    for _ in members:
        left = [item for item in members if item not in order]
        values = [ensemble.log_prob([*order, item]) for item in left]
        order.append(left[int(np.argmax(values))])
    return order


@given(
    st.integers(0, 1000), st.integers(1, 7), st.sampled_from([0.3, 3.0, 30.0, 300.0])
)
def test_ranks_are_those_of_a_greedy_choice_among_the_members(seed, n, spread):
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((9, 12))
    S = F @ F.T
    ensemble = vg.LEnsemble.from_quality(S, spread * rng.standard_normal(9))
    members = np.sort(rng.permutation(9)[:n])
    assert rank_members(ensemble, members).tolist() == naive_order(
        ensemble, members.tolist()
    )


def test_ranks_of_rows_far_below_the_best():
    # Of two poor rows, the worse comes first if the other is nearly the best again.
    cosine = 0.999999
    S = np.array([[1.0, cosine, 0.0], [cosine, 1.0, 0.0], [0.0, 0.0, 1.0]])
    for depth in (0.0, 10.0, 30.0, 300.0):
        ensemble = vg.LEnsemble.from_quality(S, [0.0, -depth, -depth - 0.1])
        assert rank_members(ensemble, np.arange(3)).tolist() == [0, 2, 1]
        assert naive_order(ensemble, [0, 1, 2]) == [0, 2, 1]


def test_ranks_where_the_rank_is_used_up():
    rng = np.random.default_rng(0)
    ensemble = vg.LEnsemble.from_factor(rng.standard_normal((9, 3)))
    order = rank_members(ensemble, np.arange(1, 8))
    assert sorted(order) == list(range(1, 8))
    assert order[:3].tolist() == naive_order(ensemble, list(range(1, 8)))[:3]


def test_ranks_of_none_and_one():
    ensemble = vg.LEnsemble(np.eye(3))
    assert rank_members(ensemble, np.zeros(0, dtype=np.intp)).tolist() == []
    assert rank_members(ensemble, np.array([2])).tolist() == [2]


# By a model -----------------------------------------------------------------------


@pytest.mark.parametrize("decoder", ["greedy", "exact", "mbr", "local", "expected-f"])
def test_a_model_chooses_what_it_decodes(model, groups, decoder):
    chooser = ByModel(model, as_decoder(decoder), seed=3)
    for group in groups:
        ensemble = model.ensemble(group.ground_set)
        wanted = ensemble.decode(decoder, random_state=3)
        choice = chooser(group)
        assert sorted(choice.order.tolist()) == wanted.indices.tolist()
        assert choice.order.tolist() == naive_order(ensemble, wanted.indices.tolist())
        np.testing.assert_allclose(choice.probability, ensemble.marginals())
        assert choice.ending == wanted.ending()


def test_the_exact_choice_is_the_best_of_all(model, groups):
    chooser = ByModel(model, as_decoder("exact"), Limit(2))
    for group in groups:
        ensemble = model.ensemble(group.ground_set)
        k = min(2, len(group))
        best = max(combinations(range(len(group)), k), key=ensemble.log_prob)
        choice = chooser(group)
        assert sorted(choice.order.tolist()) == list(best)
        assert (choice.ending["gap"], choice.ending["is_optimal"]) == (0.0, True)


@pytest.mark.parametrize("decoder", sorted(DECODERS))
@pytest.mark.parametrize("k", [1, 3, 20])
def test_as_many_as_are_asked_for_or_all(model, groups, decoder, k):
    chooser = ByModel(model, as_decoder(decoder), Limit(k))
    for group in groups:
        order = chooser(group).order
        assert len(order) == len(set(order.tolist())) == min(k, len(group))


@pytest.mark.parametrize("decoder", ["greedy", "mbr", "exact", "expected-f"])
@pytest.mark.parametrize("budget", [0.1, 0.5, 1.3, 100.0])
@pytest.mark.parametrize("k", [None, 2])
def test_a_budget_is_kept(model, groups, decoder, budget, k):
    chooser = ByModel(model, as_decoder(decoder), Limit(k, budget))
    for group in groups:
        order = chooser(group).order
        assert group.costs[order].sum() <= budget + 1e-12
        assert k is None or len(order) <= k
        if budget < group.costs.min():
            assert len(order) == 0
            ending = {"stop_reason": "no row can be paid for", "gap": 0.0}
            assert chooser(group).ending == ending | {"is_optimal": True}


def test_a_budget_needs_costs(model):
    group = make_group(np.random.default_rng(0), 4)
    chooser = ByModel(model, as_decoder("greedy"), Limit(budget=1.0))
    with pytest.raises(
        TableError, match="group 'g0': a budget needs a column of costs"
    ):
        choose_from_groups(Listed([group]), chooser)
    with pytest.raises(TableError, match="a budget needs a column of costs"):
        choose_from_groups(Listed([group]), ByMethod("dpp", Limit(budget=1.0)))


def test_of_a_large_group_the_best_rows_are_looked_at(model, monkeypatch):
    group = make_group(np.random.default_rng(5), 30)
    u = group.quality @ model.theta_
    best = np.sort(np.argsort(-u)[:8])
    monkeypatch.setattr(choosing, "MAX_CANDIDATES", 8)
    choice = ByModel(model, as_decoder("greedy"))(group)
    few = vg.GroundSet(group.quality[best], group.blocks["v0"][best])
    ensemble = model.ensemble(few)
    wanted = best[ensemble.decode("greedy").indices]
    assert sorted(choice.order.tolist()) == wanted.tolist()
    # Of the others nothing is known.
    expected = np.full(30, np.nan)
    expected[best] = ensemble.marginals()
    np.testing.assert_allclose(choice.probability, expected)
    with pytest.raises(TableError, match="chooses at most 8 rows of a group as large"):
        ByModel(model, as_decoder("greedy"), Limit(12))(group)


def test_rows_that_cannot_be_afforded_leave_their_places_to_others(model, monkeypatch):
    group = make_group(np.random.default_rng(5), 30, costs=True)
    best = np.argsort(-(group.quality @ model.theta_))[:8]
    group.costs[best] = 50.0
    monkeypatch.setattr(choosing, "MAX_CANDIDATES", 8)
    choice = ByModel(model, as_decoder("greedy"), Limit(1, 2.0))(group)
    assert len(choice.order) == 1


def test_a_large_group_of_several_blocks(monkeypatch):
    several = make_groups([6, 5, 30], seed=2, blocks=2)
    kernel = vg.MultipleKernel(bandwidths=[1.0], blocks=["v0", "v1"])
    model = fitted(several, kernel)
    monkeypatch.setattr(choosing, "MAX_CANDIDATES", 8)
    assert len(ByModel(model, as_decoder("greedy"), Limit(3))(several[2]).order) == 3


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_a_choice_depends_on_its_group_alone(model, groups, n_jobs):
    chooser = ByModel(model, as_decoder(vg.decoding.MBR(n_samples=20)), seed=1)
    together = choose_from_groups(Listed(groups), chooser, n_jobs)
    for group in groups:
        alone = choose_from_groups(Listed([group]), chooser)
        for field in ("selected", "rank", "probability"):
            np.testing.assert_array_equal(
                getattr(together, field)[group.rows], getattr(alone, field)[group.rows]
            )


def test_choices_by_row(model, groups):
    chooser = ByModel(model, as_decoder("greedy"), Limit(3))
    steps = []
    choices = choose_from_groups(
        Listed(groups), chooser, 2, lambda *step: steps.append(step)
    )
    assert steps == [("choosing", done, 5) for done in range(1, 6)]
    np.testing.assert_array_equal(choices.selected, choices.rank > 0)
    for group in groups:
        choice = chooser(group)
        for place, item in enumerate(choice.order):
            assert choices.rank[group.rows[item]] == place + 1
        assert choices.selected[group.rows].sum() == min(3, len(group))
    assert choices.groups == [group.name for group in groups]
    assert choices.endings == [chooser(group).ending for group in groups]


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize(
    "error",
    # The position in a list of one says nothing.
    [ValueError("it is broken"), GroundSetError(0, "it is broken")],
)
def test_an_error_names_the_group(groups, n_jobs, error):
    def fail_on_third(group):
        if group.number == 2:
            raise error
        return ByMethod("top", Limit(1))(group)

    with pytest.raises(TableError, match=r"^group 'g2': it is broken"):
        choose_from_groups(Listed(groups), fail_on_third, n_jobs)


# By a method ----------------------------------------------------------------------


@pytest.mark.parametrize("method", sorted(METHODS))
@pytest.mark.parametrize("k", [1, 2, 4])
def test_a_method_chooses_as_select_does(groups, method, k):
    choices = choose_from_groups(
        Listed(groups), ByMethod(method, Limit(k), diversity=0.3, seed=7)
    )
    assert choices.probability is None
    assert choices.endings == []
    for group in groups:
        order = vg.select(
            group.blocks["v0"],
            group.relevance,
            k=min(k, len(group)),
            method=method,
            diversity=0.3,
            random_state=7,
        )
        expected = np.zeros(len(group), dtype=int)
        expected[order] = np.arange(1, len(order) + 1)
        np.testing.assert_array_equal(choices.rank[group.rows], expected)


@pytest.mark.parametrize("method", sorted(METHODS))
def test_a_method_without_a_number_ranks_all(groups, method):
    for group in groups:
        order = ByMethod(method)(group).order
        assert sorted(order.tolist()) == list(range(len(group)))


@pytest.mark.parametrize("method", ["dpp", "mmr", "max-min", "top"])
@pytest.mark.parametrize("budget", [0.1, 0.7, 2.0, 100.0])
@pytest.mark.parametrize("k", [None, 2])
def test_a_method_takes_what_fits(groups, method, budget, k):
    for group in groups:
        # Rows that cost more than the whole budget are as good as not there.
        rows = np.flatnonzero(group.costs <= budget)
        taken, spent = [], 0.0
        if len(rows):
            order = vg.select(
                group.blocks["v0"][rows], group.relevance[rows], len(rows), method
            )
            for item in rows[order]:
                if len(taken) != k and spent + group.costs[item] <= budget:
                    taken.append(int(item))
                    spent += group.costs[item]
        assert ByMethod(method, Limit(k, budget))(group).order.tolist() == taken


@pytest.mark.parametrize("method", ["facility-location", "k-medoids", "random"])
@pytest.mark.parametrize("budget", [0.1, 0.7, 2.0, 100.0])
def test_a_method_of_a_given_number_keeps_to_a_budget(groups, method, budget):
    for group in groups:
        order = ByMethod(method, Limit(budget=budget))(group).order
        assert group.costs[order].sum() <= budget
        assert len(order) > 0 or (group.costs > budget).all()
        assert len(set(order.tolist())) == len(order)


def test_a_method_told_to_choose_nothing(groups):
    assert ByMethod("dpp", Limit(0))(groups[0]).order.tolist() == []


def test_a_method_without_embeddings_and_relevance():
    group = Group(
        "a", 0, np.arange(4), np.zeros((4, 0)), {}, None, None, np.arange(4.0)
    )
    assert ByMethod("top", Limit(2))(group).order.tolist() == [3, 2]
    assert len(ByMethod("random", Limit(2))(group).order) == 2
