"""Limits on the items of each label: every decoder, against all subsets."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
import variegate as vg
from instances import KERNELS, random_ground_set, random_kernel_matrix
from variegate.decoding import (
    DECODERS,
    MBR,
    Constraint,
    Exact,
    ExpectedF,
    expected_f_score,
)
from variegate.decoding import exact as exact_module


def is_within(members, at_most, per):
    members = list(members)
    return all(
        sum(labels[j] == labels[i] for j in members) <= most
        for most, labels in zip(at_most, per, strict=True)
        for i in members
    )


def feasible_subsets(n, at_most, per, k=None, budget=None, costs=None):
    return [
        y
        for y in reference.all_subsets(n)
        if is_within(y, at_most, per)
        and (k is None or len(y) == k)
        and (budget is None or costs[list(y)].sum() <= budget + 1e-9)
    ]


def draw_limits(rng, n, n_limits):
    at_most = rng.integers(1, 3, n_limits).tolist()
    per = [[f"{row}-{c}" for c in rng.integers(0, 3, n)] for row in range(n_limits)]
    return at_most, per


def options_of(rng, n, n_limits, use_k, use_budget, rank):
    """Random limits, with k and a budget that some subset meets."""
    at_most, per = draw_limits(rng, n, n_limits)
    costs = rng.uniform(0.5, 2.0, n)
    options = {"at_most": at_most, "per": per}
    largest = max(map(len, feasible_subsets(n, at_most, per)))
    k = int(rng.integers(0, min(largest, rank) + 1)) if use_k else None
    budget = None
    if use_budget:
        sets = [y for y in feasible_subsets(n, at_most, per, k) if y or k == 0]
        least = min(costs[list(y)].sum() for y in sets)
        budget = least * 1.2 + 0.01
        options |= {"budget": budget, "costs": costs}
    if use_k:
        options["k"] = k
    return options, feasible_subsets(n, at_most, per, k, budget, costs)


modes = {
    "n_limits": st.integers(1, 3),
    "seed": st.integers(0, 10**6),
    "use_k": st.booleans(),
    "use_budget": st.booleans(),
}


@pytest.mark.parametrize("tabled", [0, 14])
@given(n=st.integers(1, 8), **modes)
def test_exact_equals_brute_force(tabled, n, n_limits, seed, use_k, use_budget):
    rng = np.random.default_rng(seed)
    L = 3.0 * random_kernel_matrix(rng, n)
    options, sets = options_of(rng, n, n_limits, use_k, use_budget, rank=n)
    best = max(np.log(reference.det_subset(L, y)) for y in sets)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(exact_module, "TABLED_ITEMS", tabled)
        selection = vg.LEnsemble(L).decode("exact", **options)
    found = tuple(selection.indices.tolist())
    assert found in sets
    assert np.log(reference.det_subset(L, found)) == pytest.approx(best, abs=1e-7)
    assert selection.is_optimal


@given(n=st.integers(2, 8), **modes)
def test_upper_bounds_hold_at_every_step(n, n_limits, seed, use_k, use_budget):
    rng = np.random.default_rng(seed)
    L = 3.0 * random_kernel_matrix(rng, n)
    options, sets = options_of(rng, n, n_limits, use_k, use_budget, rank=n)
    best = max(np.log(reference.det_subset(L, y)) for y in sets)
    limits = (options.get(name) for name in ("k", "budget", "costs", "at_most", "per"))
    constraint = Constraint.of(n, *limits)
    kernel = vg.LEnsemble(L).representation
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(exact_module, "_NODES_AT_A_TIME", 1)
        search = exact_module._Search(kernel, constraint, None)
        while search.n_open:
            assert best <= search.upper_bound() + 1e-8
            search.visit_nodes()
    assert kernel.log_det(search.best_subset()) == pytest.approx(best, abs=1e-7)


def test_a_gap_contains_the_truth():
    rng = np.random.default_rng(0)
    B = rng.standard_normal((40, 40)) / 4 + 1.2 * np.eye(40)
    ensemble, labels = vg.LEnsemble(B @ B.T), rng.integers(0, 8, 40)
    truth = ensemble.decode("exact", at_most=2, per=labels).log_prob
    for seconds in (0.0, 0.05):
        stopped = ensemble.decode(Exact(seconds), at_most=2, per=labels)
        assert stopped.log_prob <= truth + 1e-9 <= stopped.upper_bound + 2e-9
        assert np.bincount(labels[stopped.indices]).max() <= 2


@pytest.mark.filterwarnings("ignore:stopped at max_iter")
@pytest.mark.filterwarnings("ignore::variegate.estimator.AllAlikeWarning")
@pytest.mark.parametrize("case", KERNELS, ids=str)
def test_every_decoder_on_every_kernel(case):
    rng = np.random.default_rng(5)
    ground_set = random_ground_set(case, rng, 7)
    model = vg.LargeMarginDPP(kernel=case.kernel, max_iter=2)
    ensemble = model.fit([ground_set], [[0, 1]]).ensemble(ground_set)
    for method, n_limits, k in product(DECODERS, (1, 2), (None, 2)):
        at_most, per = draw_limits(rng, 7, n_limits)
        chosen = ensemble.decode(
            method, k, random_state=0, at_most=at_most, per=per
        ).indices
        assert k in (None, len(chosen))
        assert is_within(chosen, at_most, per)


methods = {
    **dict.fromkeys(DECODERS),
    "mbr-greedy": MBR(50, search="greedy"),
    "without-repetition": ExpectedF(repetition=0.5),
}


@pytest.mark.parametrize("method", methods)
@given(n=st.integers(1, 8), **modes)
def test_every_decoder_meets_all_constraints(
    method, n, n_limits, seed, use_k, use_budget
):
    rng = np.random.default_rng(seed)
    L = 3.0 * random_kernel_matrix(rng, n)
    options, sets = options_of(rng, n, n_limits, use_k, use_budget, rank=n)
    decoder = methods[method] or method
    selection = vg.LEnsemble(L).decode(decoder, random_state=0, **options)
    assert tuple(selection.indices.tolist()) in sets


@given(n=st.integers(1, 7), **modes)
def test_expected_f_equals_brute_force(n, n_limits, seed, use_k, use_budget):
    rng = np.random.default_rng(seed)
    ensemble = vg.LEnsemble(random_kernel_matrix(rng, n))
    options, sets = options_of(rng, n, n_limits, use_k, use_budget, rank=n)
    selection = ensemble.decode("expected-f", **options)
    best = max(expected_f_score(ensemble, list(y)) for y in sets)
    found = expected_f_score(ensemble, selection.indices)
    assert found == pytest.approx(best, rel=1e-9)
    assert "cut short" not in selection.stop_reason
    assert "at_most" in selection.stop_reason


@given(n=st.integers(1, 8), seed=st.integers(0, 10**6))
def test_greedy_equals_the_obvious_greedy(n, seed):
    rng = np.random.default_rng(seed)
    L = 3.0 * random_kernel_matrix(rng, n)
    at_most, per = draw_limits(rng, n, 2)
    chosen = []
    while True:
        larger = [[*chosen, i] for i in range(n) if i not in chosen]
        larger = [y for y in larger if is_within(y, at_most, per)]
        best = max(larger, key=lambda y: reference.det_subset(L, y), default=None)
        before = reference.det_subset(L, chosen)
        if best is None or reference.det_subset(L, best) <= before:
            break
        chosen = best
    for ensemble in (vg.LEnsemble(L), vg.LEnsemble.from_factor(np.linalg.cholesky(L))):
        selection = ensemble.decode("greedy", at_most=at_most, per=per)
        assert selection.indices.tolist() == sorted(chosen)


def test_several_limits_where_the_best_items_would_use_up_both():
    # Choosing item 0 first leaves no two items beside it.
    brands, authors = ["a", "a", "b", "c"], ["x", "y", "x", "x"]
    ensemble = vg.LEnsemble(np.diag([9.0, 2.0, 3.0, 1.0]))
    for method in DECODERS:
        selection = ensemble.decode(
            method, k=2, at_most=(1, 1), per=(brands, authors), random_state=0
        )
        assert selection.indices.tolist() == [1, 2]


def test_labels_of_any_kind():
    ensemble = vg.LEnsemble(np.diag([2.0, 3.0, 4.0]))
    for labels in (["a", "a", None], np.array([7, 7, 8]), (("p", 1), ("p", 1), "q")):
        selection = ensemble.decode(at_most=1, per=labels)
        assert selection.indices.tolist() == [1, 2]


def test_greedy_says_that_limits_end_the_search():
    ensemble = vg.LEnsemble(np.diag([4.0, 3.0, 2.0]))
    same = ["a", "a", "a"]
    reason = ensemble.decode(at_most=1, per=same).stop_reason
    assert reason == "no further item is within at_most"
    reason = ensemble.decode(at_most=1, per=same, budget=1.0).stop_reason
    assert reason == "no further item fits the budget and at_most"
    greedy = MBR(20, search="greedy")
    reason = ensemble.decode(greedy, at_most=1, per=same, random_state=0).stop_reason
    assert "no further item is within at_most" in reason


same = ["a", "a", "b"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"at_most": 2}, "at_most was given without per: give the label of every"),
        ({"per": same}, "per was given without at_most: give the largest number"),
        ({"at_most": 0, "per": same}, "at_most must be a whole number of at least 1"),
        ({"at_most": 1.5, "per": same}, "at_most must be a whole number"),
        ({"at_most": 2, "per": ["a"]}, "per has 1 labels for 3 items: give one"),
        ({"at_most": 2, "per": "abc"}, "per must be an array with one label"),
        ({"at_most": 2, "per": 3}, "per must be an array with one label"),
        ({"at_most": 2, "per": [[1], [2], [3]]}, r"per holds \[1\] for item 0, which"),
        ({"at_most": 2, "per": [1.0, np.nan, 2.0]}, "per holds NaN for item 1"),
        ({"at_most": (2, 3), "per": (same,)}, "at_most and per must have the same len"),
        ({"at_most": (), "per": ()}, "at_most and per must have the same length"),
        (
            {"at_most": 1, "per": same, "k": 3},
            "at_most allows no more than 2 items, and k is 3: give a smaller k",
        ),
        (
            {"at_most": (1, 1), "per": (["a", "b", "b"], ["x", "x", "x"]), "k": 2},
            "at_most allows no more than 1 items",
        ),
        (
            {"at_most": 1, "per": same, "k": 2, "budget": 4.0, "costs": [1, 2, 4]},
            "no 2 items fit the budget 4: the 2 cheapest within at_most cost 5",
        ),
    ],
)
def test_bad_limits(options, message):
    with pytest.raises(ValueError, match=message):
        vg.LEnsemble(np.eye(3)).decode(**options)


def test_limits_that_rule_out_k_only_together():
    limits = {"at_most": (1, 1), "per": (["a", "a", "b", "c"], ["x", "y", "z", "z"])}
    for one in (0, 1):
        alone = {name: value[one] for name, value in limits.items()}
        assert len(vg.LEnsemble(np.eye(4)).decode(k=3, **alone)) == 3
    with pytest.raises(ValueError, match="no 3 items meet all limits of at_most"):
        vg.LEnsemble(np.eye(4)).decode(k=3, **limits)


def test_predict_takes_labels_of_each_ground_set():
    data = vg.datasets.make_synthetic(n_sets=8, random_state=0)
    model = vg.LargeMarginDPP(kernel=vg.Linear(), decoder="exact")
    model.fit(data.ground_sets, data.subsets)
    per = [[i % 2 for i in range(len(one))] for one in data.ground_sets]
    for chosen in model.predict(data.ground_sets, at_most=1, per=per):
        assert np.bincount(chosen % 2, minlength=2).max() <= 1
    with pytest.raises(ValueError, match="per has labels of 1 ground sets, but there"):
        model.predict(data.ground_sets, at_most=1, per=per[:1])
    with pytest.raises(ValueError, match="per has 2 labels for"):
        model.predict(data.ground_sets[:1], at_most=1, per=[[0, 1]])
