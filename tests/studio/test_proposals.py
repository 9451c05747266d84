"""What is proposed, why, and which group comes next."""

from concurrent.futures import ThreadPoolExecutor
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made import MadeMaterial

import variegate as vg
from variegate.studio.choices import untrained_choice, usual_size
from variegate.studio.group_learner import LearningResult, expected_f
from variegate.studio.kernel_candidates import candidates_for, fit_model, odds_family
from variegate.studio.proposals import Proposer, omega_on_path
from variegate.tuning import PathPoint


@pytest.fixture(scope="module")
def material():
    return MadeMaterial()


@pytest.fixture(scope="module")
def family(material):
    candidate = candidates_for(material.kernels, material.sets)["4 kinds"]
    examples = list(zip(material.sets, material.wanted, strict=True))
    return odds_family(fit_model(candidate, examples[:6]))


@pytest.fixture
def proposer(material, family):
    return Proposer(material, LearningResult(6, family))


def subsets(n):
    return [c for size in range(n + 1) for c in combinations(range(n), size)]


def test_confidence_is_the_ratio_of_expectations_over_all_subsets(material, family):
    ground_set = vg.GroundSet(
        material.sets[7].quality[:8], material.sets[7].similarity[:8]
    )
    ensemble = family.at(1.0).ensemble(ground_set)
    chosen = ensemble.decode().indices
    wanted = subsets(8)
    probability = np.exp([ensemble.log_prob(list(y)) for y in wanted])
    hits = sum(
        p * len({*y} & {*chosen}) for p, y in zip(probability, wanted, strict=True)
    )
    size = sum(p * len(y) for p, y in zip(probability, wanted, strict=True))
    expected = 2.0 * hits / (len(chosen) + size)
    assert expected_f(ensemble.marginals(), chosen) == pytest.approx(expected)


def test_nothing_chosen_where_nothing_is_wanted_is_sure():
    assert expected_f(np.zeros(3), np.zeros(0, dtype=int)) == 1.0


# Untrained ----------------------------------------------------------------------------


def test_untrained_is_select(material):
    vectors = material.sets[0].similarity
    expected = np.sort(vg.select(vectors, k=4))
    assert untrained_choice(material.sets[0]).tolist() == expected.tolist()  # 12 / 3
    assert Proposer(material).choose(0).tolist() == expected.tolist()
    several = untrained_choice(material.sets[0], 2)
    assert several.tolist() == np.sort(vg.select(vectors, k=2)).tolist()


def test_before_anything_is_learned_the_usual_number_is_proposed(material):
    assert len(Proposer(material).propose(0).chosen) == 4
    picks = {1: np.arange(2), 2: np.arange(3), 3: np.arange(1)}
    proposer = Proposer(material, picks=picks)
    assert len(proposer.propose(0).chosen) == 2
    # Omega asks for fewer or more.
    sizes = [len(proposer.propose(0, omega).chosen) for omega in (1 / 64, 1.0, 64.0)]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]


def test_usual_size():
    assert usual_size([]) is None
    assert usual_size([0, 0]) == 1
    assert usual_size([2, 5]) == 4  # 3.5 goes to the even number


def test_before_anything_is_learned_no_probability_is_known(material):
    proposer = Proposer(material)
    assert proposer.propose(0).probability is None
    why = proposer.why(0, 3, [0, 5])
    assert (why["probability"], why["quality"]) == (None, [])
    vectors = material.sets[0].similarity
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = {n: float(units[3] @ units[n]) for n in (0, 5)}
    best = max(cosines, key=cosines.get)
    expected = {"n": best, "similarity": pytest.approx(max(0.0, cosines[best]))}
    assert why["like"] == expected


# By a model ---------------------------------------------------------------------------


@pytest.mark.parametrize("omega", [1 / 64, 0.25, 1.0, 8.0])
def test_proposals_are_those_of_the_family(proposer, material, family, omega):
    found = proposer.propose(7, omega)
    assert proposer.choose(7, omega).tolist() == found.chosen.tolist()
    model = family.at(omega)
    assert found.chosen.tolist() == model.predict([material.sets[7]])[0].tolist()
    expected = model.ensemble(material.sets[7]).marginals()
    assert np.allclose(found.probability, expected)


def test_an_omega_beyond_what_was_learned_is_the_nearest(proposer):
    low, high = proposer.omegas()
    assert proposer.choose(7, 1e9).tolist() == proposer.choose(7, high).tolist()
    assert proposer.propose(7, 1e-9).omega == low
    assert proposer.propose(7, 1e9).omega == high


def test_a_larger_omega_only_adds(proposer):
    for group in range(6, 10):
        several = [
            set(proposer.propose(group, omega).chosen.tolist())
            for omega in np.geomspace(1 / 64, 64.0, 13)
        ]
        assert all(one <= other for one, other in pairwise(several))
        assert len(several[0]) < len(several[-1])


def test_omega_multiplies_the_odds_of_every_item(material, family):
    ground_set = material.sets[7]
    L = family.at(1.0).ensemble(ground_set).L
    assert np.allclose(family.at(8.0).ensemble(ground_set).L, 8.0 * L)
    assert np.allclose(family.at(0.3).ensemble(ground_set).L, 0.3 * L)


def test_what_was_learned_takes_the_place_of_what_was_kept(proposer, material):
    before = proposer.propose(7)
    assert proposer.propose(7) is before
    after = proposer.using(None, {}).propose(7)
    assert after.chosen.tolist() == untrained_choice(material.sets[7]).tolist()


def test_many_threads_see_the_same(proposer):
    asked = [(g, omega) for g in range(10) for omega in (0.1, 1.0, 5.0)] * 3
    with ThreadPoolExecutor(8) as pool:
        found = list(
            pool.map(lambda one: proposer.propose(*one).chosen.tolist(), asked)
        )
    assert found == [proposer.propose(*one).chosen.tolist() for one in asked]
    with ThreadPoolExecutor(8) as pool:
        chosen = list(pool.map(lambda one: proposer.choose(*one).tolist(), asked))
    assert chosen == found


# Limits -------------------------------------------------------------------------------


@pytest.mark.parametrize("at_most", [1, 2])
def test_proposals_keep_to_a_limit(material, family, at_most, monkeypatch):
    labels = np.arange(12) % 3
    limits = {"at_most": at_most, "per": labels}
    monkeypatch.setattr(MadeMaterial, "limits", lambda self, group: limits)
    untrained, learned = (
        Proposer(material),
        Proposer(material, LearningResult(6, family)),
    )
    for proposer in (untrained, learned):
        for omega in (0.25, 1.0, 64.0):
            chosen = proposer.choose(7, omega)
            assert chosen.tolist() == proposer.propose(7, omega).chosen.tolist()
            assert np.bincount(labels[chosen]).max(initial=0) <= at_most
    assert len(untrained.choose(7, 64.0)) == 3 * at_most  # as many as are allowed
    expected = family.at(64.0).ensemble(material.sets[7]).decode("greedy", **limits)
    assert learned.choose(7, 64.0).tolist() == expected.indices.tolist()


# Why ----------------------------------------------------------------------------------


def test_the_parts_of_the_quality_add_up(proposer, material, family):
    u = family.at(1.0).log_quality(material.sets[7].quality)
    for item in range(12):
        why = proposer.why(7, item, [0, 1])
        values = {part["name"]: part["value"] for part in why["quality"]}
        numbers = material.sets[7].quality[item]
        assert values == {
            name: f"{value:.3f}"
            for name, value in zip(material.feature_names, numbers, strict=True)
        }
        parts = [part["part"] for part in why["quality"]]
        assert sum(parts) == pytest.approx(u[item] - u.mean())
        sizes = [abs(part) for part in parts]
        assert sizes == sorted(sizes, reverse=True)


def test_an_item_is_like_the_most_similar_chosen_one(proposer, material, family):
    S = family.at(1.0).ensemble(material.sets[7]).S
    chosen = [1, 4, 9]
    for item in range(12):
        others = [other for other in chosen if other != item]
        like = proposer.why(7, item, chosen)["like"]
        assert like["n"] == max(others, key=lambda other: S[item, other])
        assert like["similarity"] == pytest.approx(S[item, like["n"]])
    assert proposer.why(7, 3, [3])["like"] is None


def test_the_first_quality_is_what_the_rule_goes_by(proposer, material):
    parts = [proposer.why(7, item, [])["quality"] for item in material.wanted[7]]
    assert {best["name"] for best, *_ in parts} == {"good"}


def test_a_map_of_kinds_has_the_items_of_a_kind_in_one_column(proposer, material):
    found = proposer.outline(7)
    assert found["kind"] == "kinds"
    x, y = np.array(found["x"]), np.array(found["y"])
    truth = np.argmax(material.sets[7].similarity, axis=1)
    for column in np.unique(x):
        assert len(np.unique(truth[x == column])) == 1
    assert x.max() == len(found["columns"]) - 1
    assert ((y > 0) & (y <= 1)).all()


@pytest.mark.parametrize("n_features", [2, 40])
def test_a_map_of_components_is_that_of_the_singular_vectors(n_features):
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((12, n_features))
    material = MadeMaterial(1)
    material.sets = [vg.GroundSet(np.ones((12, 1)), vectors)]
    found = Proposer(material).outline(0)
    F = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    U, s, _ = np.linalg.svd(F - F.mean(axis=0), full_matrices=False)
    for place, values in enumerate((found["x"], found["y"])):
        expected = U[:, place] * s[place]
        expected = expected / expected[np.argmax(np.abs(expected))]
        assert np.allclose(values, expected)


def test_a_map_of_one_item():
    material = MadeMaterial(1)
    material.sets = [vg.GroundSet(np.ones((1, 1)), np.ones((1, 3)))]
    found = Proposer(material).outline(0)
    assert found["x"] == found["y"] == [0.0]


# What comes next ----------------------------------------------------------------------


def test_the_next_group_is_the_least_sure(material, family):
    proposer = Proposer(material)
    assert proposer.next_group({0, 2}) == 1
    confidence = {3: 0.9, 5: 0.2, 6: 0.2, 7: 0.1}
    proposer = Proposer(material, LearningResult(6, family, confidence=confidence))
    assert proposer.next_group({7}) == 5  # of equals the first
    assert proposer.next_group({7}, "given") == 0
    assert proposer.next_group({3, 5, 6, 7}) == 0  # others come in their order
    assert proposer.next_group(range(10)) is None


# Targets ------------------------------------------------------------------------------


def path(recalls, precisions):
    omegas = 2.0 ** np.arange(len(recalls))
    return tuple(
        PathPoint(float(o), p, r, 0.5, 1.0, *[0.1] * 4)
        for o, p, r in zip(omegas, precisions, recalls, strict=True)
    )


@given(st.lists(st.floats(0.01, 1.0), min_size=2, max_size=8, unique=True), st.data())
def test_a_target_is_met_where_the_path_says_so(recalls, data):
    recalls = sorted(recalls)
    learned = LearningResult(1, None, path=path(recalls, recalls[::-1]))
    value = data.draw(st.floats(recalls[0], recalls[-1]))
    logs = np.arange(len(recalls))
    for name, scores in (("recall", recalls), ("precision", recalls[::-1])):
        omega = omega_on_path(learned, name, value)
        assert np.interp(np.log2(omega), logs, scores) == pytest.approx(value)


def test_a_target_out_of_reach_is_the_end_of_the_path():
    learned = LearningResult(1, None, path=path([0.2, 0.5, 0.6], [0.8, 0.7, 0.4]))
    assert omega_on_path(learned, "recall", 0.99) == 4.0
    assert omega_on_path(learned, "recall", 0.1) == 1.0
    assert omega_on_path(learned, "precision", 0.99) == 1.0
    assert omega_on_path(learned, "precision", 0.1) == 4.0
    assert omega_on_path(LearningResult(1, None), "recall", 0.5) == 1.0
