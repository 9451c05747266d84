"""Limits on the items of each label in ``vg.select``."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import variegate as vg
from test_decoding_at_most import draw_limits, feasible_subsets, is_within
from variegate.baselines import METHODS, units
from variegate.baselines import select as plain_select
from variegate.baselines.items import Items
from variegate.linalg import greedy as greedy_rows

ONE_BY_ONE = ("dpp", "mmr", "max-min", "top")


def draw_items(rng, n):
    return rng.standard_normal((n, 4)), rng.standard_normal(n)


@pytest.mark.parametrize("method", METHODS)
@given(
    n=st.integers(1, 8),
    n_limits=st.integers(1, 3),
    seed=st.integers(0, 10**6),
    use_k=st.booleans(),
    use_budget=st.booleans(),
    n_included=st.integers(0, 1),
)
def test_every_method_meets_the_limits(
    method, n, n_limits, seed, use_k, use_budget, n_included
):
    rng = np.random.default_rng(seed)
    embeddings, relevance = draw_items(rng, n)
    at_most, per = draw_limits(rng, n, n_limits)
    included = rng.integers(0, n, n_included).tolist()
    sets = [y for y in feasible_subsets(n, at_most, per) if set(included) <= set(y)]
    largest = max(map(len, sets))
    options = {"at_most": at_most, "per": per, "include": included}
    k = max(1, int(rng.integers(n_included, largest + 1)))
    options |= {"k": k} if use_k else {}
    costs = rng.uniform(0.5, 1.0, n)
    options |= {"budget": 3.0, "costs": costs} if use_budget else {}
    chosen = vg.select(
        embeddings, relevance, method=method, random_state=0, **options
    ).tolist()
    assert chosen[: len(included)] == included
    assert len(set(chosen)) == len(chosen)
    assert is_within(chosen, at_most, per)
    if use_k and not use_budget:
        assert len(chosen) == k
    if use_budget:
        assert costs[chosen].sum() <= 3.0
        assert len(chosen) <= (k if use_k else n)
    if not use_k and not (use_budget and method not in ONE_BY_ONE):
        # No further item fits.
        spent = costs[chosen].sum() if use_budget else 0.0
        for item in set(range(n)) - set(chosen):
            is_dear = use_budget and spent + costs[item] > 3.0
            assert is_dear or not is_within([*chosen, item], at_most, per)


@pytest.mark.parametrize("method", METHODS)
def test_a_limit_that_nothing_reaches_changes_nothing(method):
    embeddings, relevance = draw_items(np.random.default_rng(0), 40)
    options = {"k": 8, "method": method, "include": [3], "random_state": 0}
    if method == "random":
        del options["k"]
        options |= {"k": 40, "order": "number"}
    free = vg.select(embeddings, relevance, **options)
    limited = vg.select(embeddings, relevance, **options, at_most=40, per=[0] * 40)
    assert limited.tolist() == free.tolist()


@pytest.mark.parametrize("method", ONE_BY_ONE)
@pytest.mark.parametrize("wide", [False, True])
def test_each_choice_is_the_best_of_the_open_items(method, wide):
    rng = np.random.default_rng(1)
    embeddings = rng.standard_normal((30, 12))
    # Qualities so far apart that the greedy search is in logarithms.
    diversity = 1e-3 if wide else 0.5
    relevance, labels = rng.standard_normal(30), rng.integers(0, 6, 30)
    options = {"method": method, "diversity": diversity}
    chosen = vg.select(embeddings, relevance, k=9, at_most=2, per=labels, **options)
    for step in range(1, 9):
        before = chosen[:step]
        full = np.flatnonzero(np.bincount(labels[before], minlength=6) >= 2)
        closed = np.isin(labels, full)
        closed[before] = False
        order = items_of(embeddings, relevance, before, diversity, closed)
        assert order(METHODS[method]) == chosen[step]


def items_of(embeddings, relevance, before, diversity, closed):
    """The next choice, where closed items are rows and relevance like no other."""
    F = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    places = np.arange(len(F))
    z = units.in_units(relevance, F, places, units.n_competing(9))
    open_items = np.flatnonzero(~closed)

    def order(method):
        some = Items(
            F[open_items],
            z[open_items],
            np.searchsorted(open_items, np.sort(before)),
            diversity,
            np.random.default_rng(0),
        )
        return open_items[method(some, 1)[0]]

    return order


def test_compiled_and_plain_rows_agree():
    rng = np.random.default_rng(2)
    embeddings, labels = rng.standard_normal((400, 16)), rng.integers(0, 12, 400)
    chosen = []
    for limit in (np.inf, 0):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(greedy_rows, "COMPILED_ROWS", limit)
            chosen.append(vg.select(embeddings, k=12, at_most=1, per=labels))
    assert chosen[0].tolist() == chosen[1].tolist()
    assert sorted(labels[chosen[0]]) == list(range(12))


def test_facility_location_covers_the_items_of_a_used_up_label():
    # The second brand is chosen for the items that it stands for, all of brand "a".
    embeddings = np.array(
        [[1.0, 0.0]] * 3 + [[0.0, 1.0]] * 5 + [[0.1, 1.0], [1.0, 0.1]]
    )
    brands = ["a"] * 8 + ["b", "b"]
    chosen = vg.select(
        embeddings, k=2, method="facility-location", at_most=1, per=brands, include=[0]
    )
    assert chosen.tolist() == [0, 8]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 3}, "at_most allows no more than 2 items, and k is 3: give a smaller"),
        ({"include": [0, 1]}, "2 included items have the label of item 0, and at_most"),
        ({"per": ["a"]}, "per has 1 labels for 4 items"),
        ({"per": None}, "at_most was given without per"),
        ({"at_most": None}, "per was given without at_most"),
        ({"k": 2, "exclude": [3]}, "at_most allows no more than 1 items, and k is 2"),
    ],
)
def test_bad_limits(options, message):
    limits = {"at_most": 1, "per": ["a", "a", "a", "b"]}
    with pytest.raises(ValueError, match=message):
        plain_select(np.eye(4), **(limits | options))


def test_fewer_are_chosen_without_k():
    labels = ["a", "a", "a", "b"]
    assert len(vg.select(np.eye(4), at_most=1, per=labels)) == 2
    assert len(vg.select(np.eye(4), k=9, at_most=1, per=labels)) == 2
