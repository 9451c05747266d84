import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
import variegate as vg
from instances import random_kernel_matrix
from variegate.decoding import (
    DECODERS,
    MBR,
    Constraint,
    Exact,
    Greedy,
    all_subsets,
    as_decoder,
)
from variegate.decoding import exact as exact_module
from variegate.linalg import greedy as greedy_rows
from variegate.linalg.determinants import log_principal_minors, split_scale


def best_by_brute_force(L, k=None, budget=None, costs=None):
    costs = np.ones(len(L)) if costs is None else costs
    best, best_det = None, -1.0
    for y in reference.all_subsets(len(L)):
        if k is not None and len(y) != k:
            continue
        if budget is not None and costs[list(y)].sum() > budget:
            continue
        det = reference.det_subset(L, y)
        if det > best_det:
            best, best_det = y, det
    return best


@given(
    n=st.integers(1, 8),
    rank=st.integers(1, 8),
    seed=st.integers(0, 10**6),
    use_k=st.booleans(),
    use_budget=st.booleans(),
)
def test_exact_equals_brute_force(n, rank, seed, use_k, use_budget):
    rng = np.random.default_rng(seed)
    L = random_kernel_matrix(rng, n, rank=min(n, rank))
    costs = rng.uniform(0.5, 2.0, n)
    k = int(rng.integers(0, min(n, rank) + 1)) if use_k else None
    budget = float(np.sort(costs)[: k or 1].sum() + 0.5) if use_budget else None
    selection = vg.LEnsemble(L).decode(
        "exact", k=k, budget=budget, costs=costs if use_budget else None
    )
    expected = best_by_brute_force(L, k, budget, costs)
    assert selection.indices.tolist() == list(expected)
    assert selection.is_optimal
    assert selection.gap == 0.0
    assert np.exp(selection.log_prob) == pytest.approx(
        reference.probabilities(L)[expected], rel=1e-8
    )


def greedy_by_determinants(L, k=None, budget=None, costs=None):
    """Greedy with a determinant for every candidate, no incremental anything."""
    chosen, spent = [], 0.0
    costs = np.ones(len(L)) if costs is None else costs
    while k is None or len(chosen) < k:
        best, best_score, best_gain = None, -np.inf, None
        for item in set(range(len(L))) - set(chosen):
            if budget is not None and spent + costs[item] > budget:
                continue
            ratio = reference.det_subset(L, [*chosen, item]) / reference.det_subset(
                L, chosen
            )
            if ratio < 1e-11:
                continue
            gain = np.log(ratio)
            score = gain
            if budget is not None:
                score = gain / costs[item] if gain > 0 else gain * costs[item]
            if score > best_score:
                best, best_score, best_gain = item, score, gain
        if best is None or (k is None and best_gain <= 0):
            break
        chosen.append(best)
        spent += costs[best]
    return sorted(chosen)


@given(
    n=st.integers(1, 8),
    rank=st.integers(1, 8),
    seed=st.integers(0, 10**6),
    mode=st.sampled_from(["map", "k", "budget"]),
)
def test_greedy_equals_the_obvious_greedy(n, rank, seed, mode):
    rng = np.random.default_rng(seed)
    L = random_kernel_matrix(rng, n, rank=min(n, rank))
    costs = rng.uniform(0.5, 2.0, n)
    options = {
        "map": {},
        "k": {"k": min(n, rank) // 2},
        "budget": {"budget": 3.0, "costs": costs},
    }[mode]
    selection = vg.LEnsemble(L).decode("greedy", **options)
    assert selection.indices.tolist() == greedy_by_determinants(L, **options)


def greedy_by_both(B, k):
    """Choose from a factor by NumPy and by the compiled loop, which must agree."""
    chosen = []
    for limit in (np.inf, 0):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(greedy_rows, "COMPILED_ROWS", limit)
            chosen.append(vg.LEnsemble.from_factor(B).decode("greedy", k=k))
    assert chosen[0].indices.tolist() == chosen[1].indices.tolist()
    assert chosen[0].stop_reason == chosen[1].stop_reason
    return chosen[1]


@given(
    n=st.integers(1, 30),
    columns=st.integers(1, 8),
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(["random", "tied", "twins", "graded"]),
    use_k=st.booleans(),
)
def test_lazy_greedy_equals_plain_greedy(n, columns, seed, kind, use_k):
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((n, columns)) * 2
    if kind == "tied":
        B = np.sign(B)
    if kind == "twins":
        B = B[rng.integers(0, n, n)]
    if kind == "graded":
        B = B * np.exp(2 * rng.standard_normal(n))[:, None]
    k = int(np.linalg.matrix_rank(B)) // 2 if use_k else None
    lazy = greedy_by_both(B, k)
    plain = vg.LEnsemble(B @ B.T).decode("greedy", k=k)
    assert lazy.indices.tolist() == plain.indices.tolist()
    assert lazy.log_prob == pytest.approx(plain.log_prob, abs=1e-8)
    assert lazy.stop_reason == plain.stop_reason


@pytest.mark.parametrize("kind", ["one quality", "many qualities", "tied", "twins"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lazy_greedy_over_many_blocks(kind, dtype):
    # So many that blocks are passed over, and of one quality so that sweeps pay.
    rng = np.random.default_rng(3)
    F = rng.standard_normal((1500, 24))
    B = F / np.linalg.norm(F, axis=1, keepdims=True)
    if kind == "many qualities":
        B = B * np.exp(rng.standard_normal(1500))[:, None]
    if kind == "tied":
        B = np.sign(F)
    if kind == "twins":
        B = B[rng.integers(0, 300, 1500)]
    B = B.astype(dtype)
    lazy = greedy_by_both(B, 20)
    exactly = B.astype(np.float64)
    plain = vg.LEnsemble(exactly @ exactly.T).decode("greedy", k=20)
    assert lazy.indices.tolist() == plain.indices.tolist()


def test_greedy_says_why_it_stopped():
    strong = 10 * random_kernel_matrix(np.random.default_rng(0), 6, rank=2)
    assert "rank of L is used up" in vg.LEnsemble(strong).decode().stop_reason
    weak = vg.LEnsemble(np.diag([2.0, 0.5, 0.1]))
    assert weak.decode().indices.tolist() == [0]
    assert "no further item raises" in weak.decode().stop_reason
    assert weak.decode(k=2).indices.tolist() == [0, 1]
    assert "2 items that were asked for" in weak.decode(k=2).stop_reason
    rich = vg.LEnsemble(np.diag([4.0, 3.0, 2.0]))
    assert "fits the budget" in rich.decode(budget=2.0).stop_reason


def test_greedy_breaks_ties_by_number():
    assert vg.LEnsemble(2 * np.ones((4, 4))).decode().indices.tolist() == [0]


def mbr_by_loops(samples):
    best, best_score = None, -1.0
    for candidate in samples:
        score = np.mean(
            [
                reference.f_score(np.flatnonzero(candidate), np.flatnonzero(other))
                for other in samples
            ]
        )
        if score > best_score + 1e-12:
            best, best_score = np.flatnonzero(candidate), score
    return best, best_score


def test_mbr_takes_the_sample_with_most_agreement():
    L = random_kernel_matrix(np.random.default_rng(0), 7) / 2
    ensemble = vg.LEnsemble(L)
    samples = ensemble.sample(60, random_state=5)
    _, expected_score = mbr_by_loops(samples)
    selection = ensemble.decode(MBR(n_samples=60), random_state=5)
    mask = np.zeros(7, dtype=bool)
    mask[selection.indices] = True
    score = np.mean(
        [reference.f_score(selection.indices, np.flatnonzero(s)) for s in samples]
    )
    assert score == pytest.approx(expected_score)
    assert (samples == mask).all(axis=1).any()
    assert f"{expected_score:.3f}" in selection.stop_reason
    assert selection.upper_bound == np.inf
    assert not selection.is_optimal


def test_a_selection_says_how_its_search_ended():
    ensemble = vg.LEnsemble(np.diag([4.0, 3.0, 0.5]))
    sampled = ensemble.decode("mbr", random_state=0)
    assert sampled.ending() == {
        "stop_reason": sampled.stop_reason,
        "gap": None,
        "is_optimal": False,
    }
    proven = ensemble.decode("exact").ending()
    assert (proven["gap"], proven["is_optimal"]) == (0.0, True)


class Fixed:
    """An ensemble whose samples are given."""

    def __init__(self, ensemble, samples):
        self.ensemble = ensemble
        self.samples = np.array(samples, dtype=bool)

    def __getattr__(self, name):
        return getattr(self.ensemble, name)

    def __len__(self):
        return len(self.ensemble)

    def sample(self, n, random_state=None):
        return self.samples


def decode_fixed(samples, weights, budget=None):
    ensemble = Fixed(vg.LEnsemble(np.diag(weights)), samples)
    constraint = Constraint.of(len(weights), None, budget, None)
    decoder = MBR(n_samples=len(samples))
    return decoder(ensemble, constraint, np.random.default_rng(0)).indices.tolist()


def test_mbr_samples_that_cannot_be_chosen_still_vote():
    # Alone, {0} and {1} tie and the likelier {0} wins; the pair {1, 2} decides.
    samples = [[1, 0, 0], [0, 1, 0], [0, 1, 1]]
    assert decode_fixed(samples, [5.0, 1.0, 1.0], budget=1.0) == [1]


def test_mbr_breaks_ties_by_probability():
    assert decode_fixed([[1, 0], [0, 1]], [1.0, 3.0]) == [1]
    assert decode_fixed([[1, 0], [0, 1]], [3.0, 1.0]) == [0]


def test_exact_breaks_ties_by_the_smallest_mask():
    assert vg.LEnsemble(2 * np.ones((4, 4))).decode("exact").indices.tolist() == [0]
    flat = vg.LEnsemble(np.eye(3))
    assert flat.decode("exact").indices.tolist() == []
    assert flat.decode("exact", k=2).indices.tolist() == [0, 1]


def test_mbr_with_gains_of_ones_own():
    # The number of common items favours the largest sample.
    def common(candidates, voters):
        return candidates.astype(float) @ voters.T

    ensemble = vg.LEnsemble(random_kernel_matrix(np.random.default_rng(0), 6))
    samples = ensemble.sample(30, random_state=3)
    decoder = MBR(n_samples=30, agreement=common)
    chosen = ensemble.decode(decoder, random_state=3)
    scores = samples.astype(float) @ samples.sum(axis=0)
    mask = np.isin(np.arange(6), chosen.indices)
    assert mask @ samples.sum(axis=0) == scores.max()
    assert "mean gain" in chosen.stop_reason
    with pytest.raises(ValueError, match=r"gains must return finite numbers of shape"):
        ensemble.decode(MBR(30, agreement=lambda a, b: np.zeros(3)), random_state=3)


def test_agreement_is_a_function_or_an_object():
    class Common(vg.decoding.Agreement):
        name = "number of common items"

        def gains(self, candidates, voters):
            return candidates.astype(float) @ voters.T

    ensemble = vg.LEnsemble(random_kernel_matrix(np.random.default_rng(0), 6))
    common = Common()
    one = ensemble.decode(MBR(30, agreement=common), random_state=3)
    other = ensemble.decode(MBR(30, agreement=common.gains), random_state=3)
    assert one.indices.tolist() == other.indices.tolist()
    assert "mean number of common items" in one.stop_reason


@pytest.mark.parametrize("constraint", [{}, {"k": 3}, {"budget": 7.0}])
def test_mbr_by_greedy_search_is_the_greedy_one(constraint):
    L = random_kernel_matrix(np.random.default_rng(1), 7)
    ensemble = vg.LEnsemble(L)
    costs = np.arange(1.0, 8.0)
    if "budget" in constraint:
        constraint = constraint | {"costs": costs}
    k = constraint.get("k")
    samples = (
        ensemble.sample_k(k, 60, random_state=5)
        if k
        else ensemble.sample(60, random_state=5)
    )

    def mean(items):
        wanted = [np.flatnonzero(sample) for sample in samples]
        return np.mean([reference.f_score(items, one) for one in wanted])

    chosen = []
    while len(chosen) != k:
        spent = costs[chosen].sum()
        left = [i for i in range(7) if i not in chosen]
        if "budget" in constraint:
            left = [i for i in left if spent + costs[i] <= 7.0]
        gains = np.array([mean([*chosen, i]) - mean(chosen) for i in left])
        if len(left) == 0 or (k is None and gains.max() <= 0):
            break
        score = gains / costs[left] if "costs" in constraint else gains
        chosen.append(left[int(np.argmax(score))])
    selection = ensemble.decode(MBR(60, search="greedy"), random_state=5, **constraint)
    assert selection.indices.tolist() == sorted(chosen)
    assert f"mean F-score {mean(chosen):.3f} with 60 samples" in selection.stop_reason
    assert selection.log_prob == pytest.approx(ensemble.log_prob(chosen))


def test_mbr_refuses_an_unknown_search():
    with pytest.raises(ValueError, match="unknown search 'far'; there are samples"):
        vg.LEnsemble(np.eye(2)).decode(MBR(5, search="far"))


def test_mbr_with_voters_of_ones_own():
    def first_only(ensemble, constraint, n_samples, generator):
        return np.tile([True, False, False], (n_samples, 1))

    ensemble = vg.LEnsemble(np.eye(3))
    for search in ("samples", "greedy"):
        decoder = MBR(4, search=search, draw=first_only)
        assert ensemble.decode(decoder).indices.tolist() == [0]


def test_mbr_with_few_candidates():
    ensemble = vg.LEnsemble(random_kernel_matrix(np.random.default_rng(0), 6))
    samples = ensemble.sample(50, random_state=3)
    likeliest = max(ensemble.log_prob(sample) for sample in samples)
    chosen = ensemble.decode(MBR(50, n_candidates=1), random_state=3)
    assert chosen.log_prob == pytest.approx(likeliest)
    with pytest.raises(ValueError, match="n_candidates must be a whole number"):
        ensemble.decode(MBR(50, n_candidates=0))


def test_mbr_of_k_items_votes_among_subsets_of_k():
    ensemble = vg.LEnsemble(1e-9 * np.diag([1.0, 40.0, 20.0, 30.0]))
    selection = ensemble.decode(MBR(n_samples=200), k=3, random_state=0)
    assert selection.indices.tolist() == [1, 2, 3]
    assert "best agreement among 200 samples" in selection.stop_reason


def test_mbr_respects_constraints():
    ensemble = vg.LEnsemble(random_kernel_matrix(np.random.default_rng(0), 6))
    assert len(ensemble.decode("mbr", k=3, random_state=0)) == 3
    costs = np.arange(1.0, 7.0)
    chosen = ensemble.decode("mbr", budget=7.0, costs=costs, random_state=0)
    assert costs[chosen.indices].sum() <= 7.0


def test_mbr_same_seed_same_answer():
    ensemble = vg.LEnsemble(random_kernel_matrix(np.random.default_rng(0), 8))
    decoder = MBR(n_samples=20)
    first = ensemble.decode(decoder, random_state=1)
    assert (
        first.indices.tolist()
        == ensemble.decode(decoder, random_state=1).indices.tolist()
    )


@pytest.mark.parametrize("method", DECODERS)
def test_every_decoder_on_the_smallest_and_emptiest(method):
    assert vg.LEnsemble([[0.0]]).decode(method, random_state=0).indices.tolist() == []
    sure = vg.LEnsemble([[1e12]]).decode(method, random_state=0)
    assert sure.indices.tolist() == [0]
    assert sure.log_prob == pytest.approx(0.0, abs=1e-11)


@pytest.mark.parametrize("method", DECODERS)
def test_indices_are_sorted_and_scored(method):
    L = random_kernel_matrix(np.random.default_rng(2), 8)
    selection = vg.LEnsemble(L).decode(method, random_state=0)
    assert selection.indices.tolist() == sorted(selection.indices.tolist())
    expected = reference.probabilities(L)[tuple(selection.indices.tolist())]
    assert np.exp(selection.log_prob) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 9}, "k must be between 0 and 3 items, got 9"),
        ({"k": -1}, "k must be between 0 and 3 items, got -1"),
        ({"k": 1.5}, "k must be a whole number, got 1.5"),
        ({"k": True}, "k must be a whole number"),
        ({"budget": 0.0}, "budget must be a finite number > 0, got 0.0"),
        ({"budget": "1"}, "budget must be a finite number > 0, got '1'"),
        ({"costs": [1, 1, 1]}, "costs were given without a budget"),
        ({"budget": 1.0, "costs": [1, 1]}, r"costs has shape \(2,\), expected \(3,\)"),
        ({"budget": 1.0, "costs": [1, 0, 1]}, "costs must be positive"),
        ({"budget": 2.0, "k": 3}, "no 3 items fit the budget 2: the 3 cheapest cost 3"),
        ({"method": "guess"}, "unknown decoding method 'guess'; there are exact"),
        ({"method": MBR}, "a decoder is a name or an object"),
        (
            {"method": MBR(n_samples=0)},
            "n_samples must be a whole number of at least 1",
        ),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        vg.LEnsemble(np.eye(3)).decode(**options)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("mbr", "no subset of 4 items has positive probability: L has rank 2"),
        ("exact", "no feasible subset of 4 items has positive probability"),
        ("local", "no subset of 4 items was found: after 2 of 4 items, the rank of L"),
        ("relaxed", "no subset of 4 items was found: after 2 of 4 items, the rank of"),
    ],
)
def test_k_beyond_the_rank(method, message):
    L = random_kernel_matrix(np.random.default_rng(0), 6, rank=2)
    with pytest.raises(ValueError, match=message):
        vg.LEnsemble(L).decode(method, k=4)


@pytest.mark.parametrize("factored", [False, True])
def test_greedy_stops_at_the_rank_and_says_so(factored):
    B = np.random.default_rng(0).standard_normal((6, 2))
    ensemble = vg.LEnsemble.from_factor(B) if factored else vg.LEnsemble(B @ B.T)
    chosen = ensemble.decode("greedy", k=4)
    assert len(chosen) == 2
    assert chosen.stop_reason == "after 2 of 4 items, the rank of L is used up"
    assert np.isfinite(chosen.log_prob)


def test_mbr_without_a_feasible_sample_takes_the_greedy_answer():
    ensemble = vg.LEnsemble(1e9 * np.diag([1.0, 4.0, 2.0, 3.0]))
    selection = ensemble.decode(MBR(n_samples=50), budget=3.0, random_state=0)
    assert selection.indices.tolist() == [1, 2, 3]
    assert "none of 50 samples meets the constraint, so the" in selection.stop_reason


@pytest.mark.parametrize("method", DECODERS)
def test_k_and_budget_together(method):
    # The best item alone would use up what two others need.
    ensemble = vg.LEnsemble(np.diag([100.0, 2.0, 2.0]))
    selection = ensemble.decode(
        method, k=2, budget=3.0, costs=[3, 1, 1], random_state=0
    )
    assert selection.indices.tolist() == [1, 2]


@given(n=st.integers(1, 7), seed=st.integers(0, 10**6))
def test_greedy_always_finds_k_items_within_a_budget_that_allows_them(n, seed):
    rng = np.random.default_rng(seed)
    L = random_kernel_matrix(rng, n, rank=n + 2)
    costs = rng.uniform(0.5, 3.0, n)
    k = int(rng.integers(1, n + 1))
    budget = float(np.sort(costs)[:k].sum() * rng.uniform(1.0, 1.5))
    selection = vg.LEnsemble(L).decode("greedy", k=k, budget=budget, costs=costs)
    assert len(selection) == k
    assert costs[selection.indices].sum() <= budget * (1 + 1e-9)


def test_exact_refuses_what_it_cannot_hold():
    with pytest.raises(ValueError, match="at most 500 items, got 501"):
        vg.LEnsemble(np.eye(501)).decode("exact")
    with pytest.raises(ValueError, match="log-qualities of at most 170, got 200"):
        vg.LEnsemble.from_quality(np.eye(20), np.full(20, 200.0)).decode("exact")
    with pytest.raises(ValueError, match="time_limit must be a finite number >= 0"):
        vg.LEnsemble(np.eye(3)).decode(Exact(time_limit=-1))


def best_of_all(L, k, budget, costs):
    """Brute force, a little faster: the table of minors is tested by itself."""
    log_dets = log_principal_minors(*split_scale(L))
    masks = all_subsets(len(L))
    if k is not None:
        log_dets = np.where(masks.sum(axis=1) == k, log_dets, -np.inf)
    if budget is not None:
        log_dets = np.where(masks @ costs <= budget, log_dets, -np.inf)
    return log_dets.max()


@pytest.mark.parametrize("seed", range(100))
@pytest.mark.parametrize("mode", ["map", "k", "budget"])
def test_branch_and_bound_equals_brute_force(seed, mode):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 15))
    X = rng.standard_normal((n, 3))
    B = rng.standard_normal((n, int(rng.integers(1, n + 1)))) * rng.uniform(0.3, 3)
    q = np.exp(rng.standard_normal(n))
    smooth = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 4) * q * q[:, None]
    L = smooth if seed % 2 else B @ B.T
    costs = rng.uniform(0.5, 2.0, n)
    rank = np.linalg.matrix_rank(L, tol=1e-8)
    k = int(rng.integers(0, rank + 1)) if mode == "k" else None
    budget = float(rng.uniform(1.0, 0.6 * n)) if mode == "budget" else None
    ensemble = vg.LEnsemble(L)
    constraint = Constraint.of(n, k, budget, costs if mode == "budget" else None)
    selection = Exact()._branch_and_bound(ensemble, constraint)
    found = ensemble.representation.log_det(selection.indices)
    assert found == pytest.approx(best_of_all(L, k, budget, costs), abs=1e-8)
    assert selection.is_optimal
    assert constraint.allows(np.isin(np.arange(n), selection.indices)[None]).all()


def typical_kernel(rng, n):
    X = rng.standard_normal((n, 5))
    q = np.exp(0.5 * rng.standard_normal(n) + 1)
    return np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 16) * q * q[:, None]


def test_branch_and_bound_solves_forty_items():
    for seed in range(3):
        ensemble = vg.LEnsemble(typical_kernel(np.random.default_rng(seed), 40))
        exact, greedy = ensemble.decode("exact"), ensemble.decode("greedy")
        assert exact.is_optimal
        assert exact.log_prob >= greedy.log_prob
        assert "proved the best after" in exact.stop_reason


@pytest.mark.parametrize("mode", ["map", "k", "budget"])
def test_the_gap_contains_the_truth_after_every_node(mode, monkeypatch):
    # Stopped after one node, after two, ...: the best of all subsets is in the gap.
    monkeypatch.setattr(exact_module, "_NODES_AT_A_TIME", 1)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(6, 13))
        if seed % 2:
            L = typical_kernel(rng, n)
        else:
            L = random_kernel_matrix(rng, n, rank=max(3, n // 2))
        costs = rng.uniform(0.5, 2.0, n)
        k = int(rng.integers(1, 4)) if mode == "k" else None
        budget = float(rng.uniform(1.0, 0.6 * n)) if mode == "budget" else None
        truth = best_of_all(L, k, budget, costs)
        constraint = Constraint.of(n, k, budget, costs if budget else None)
        kernel = vg.LEnsemble(L).representation
        for start in (None, np.zeros(0, dtype=np.intp)):
            search = exact_module._Search(kernel, constraint, None if k else start)
            while search.n_open:
                search.visit_nodes()
                found = search.best_subset()
                if found is not None:
                    assert kernel.log_det(found) <= truth + 1e-9
                if search.n_open:
                    assert truth <= search.upper_bound() + 1e-9
            assert kernel.log_det(search.best_subset()) == pytest.approx(
                truth, abs=1e-8
            )


@pytest.mark.parametrize(("n", "k"), [(30, None), (60, None), (30, 6)])
def test_a_gap_contains_the_truth(n, k):
    # Without time it has looked at no node; with a little, at some.
    ensemble = vg.LEnsemble(typical_kernel(np.random.default_rng(0), n))
    truth = ensemble.decode("exact", k=k).log_prob
    previous = np.inf
    for seconds in (0.0, 0.05, 0.2):
        selection = ensemble.decode(Exact(time_limit=seconds), k=k)
        assert selection.log_prob <= selection.upper_bound <= previous + 1e-9
        assert selection.log_prob <= truth + 1e-9 <= selection.upper_bound + 2e-9
        previous = selection.upper_bound if seconds else np.inf
        if not selection.is_optimal:
            assert "stopped at time_limit" in selection.stop_reason


def test_branch_and_bound_beyond_the_rank():
    L = random_kernel_matrix(np.random.default_rng(0), 20, rank=4)
    with pytest.raises(ValueError, match="no feasible subset of 6 items"):
        vg.LEnsemble(L).decode("exact", k=6)


def test_names_and_objects():
    assert as_decoder("mbr") == MBR()
    assert as_decoder(Greedy()) == Greedy()
    assert isinstance(as_decoder("exact"), Exact)


def test_a_users_decoder():
    def first_item(ensemble, constraint, generator):
        return vg.Selection(np.array([0]), ensemble.log_prob([0]), "always the first")

    assert vg.LEnsemble(np.eye(3)).decode(first_item).indices.tolist() == [0]


def test_constraint_allows():
    constraint = Constraint.of(3, 2, 3.0, [1.0, 1.0, 5.0])
    subsets = np.array([[1, 1, 0], [1, 0, 1], [1, 0, 0]], dtype=bool)
    assert constraint.allows(subsets).tolist() == [True, False, False]


def test_an_agreement_that_says_nothing():
    class Silent(vg.decoding.Agreement):
        pass

    ensemble = vg.LEnsemble(np.eye(3))
    with pytest.raises(TypeError, match="Silent defines neither gains nor mean"):
        ensemble.decode(vg.decoding.MBR(10, agreement=Silent()), random_state=0)
