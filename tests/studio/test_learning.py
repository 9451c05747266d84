"""Learning from picks: candidates, held-out groups, comparisons, and processes."""

import os
import signal
import time
from functools import partial

import numpy as np
import pytest
from made import MadeMaterial, groups
from sklearn.cluster import KMeans

import variegate as vg
from variegate import metrics
from variegate._processes import ProcessCall
from variegate.studio import judging
from variegate.studio.choices import untrained_choice
from variegate.studio.group_learner import GroupLearner
from variegate.studio.judging import N_FOLDS, Judge, is_on_curve
from variegate.studio.kernel_candidates import (
    Comparison,
    InitializedKinds,
    candidates_for,
    compare,
    fit_model,
    initialize_kernel,
    is_compared,
    odds_family,
)
from variegate.studio.teacher import Teacher
from variegate.tuning.family import ODDS_OMEGAS

KERNELS = {"4 kinds": vg.Kinds(4), "Gaussians": vg.MultipleKernel()}


@pytest.fixture(scope="module")
def made():
    return groups(40)


@pytest.fixture(scope="module")
def candidates(made):
    return candidates_for(KERNELS, [ground_set for ground_set, _ in made])


def mean_f(model, examples):
    chosen = model.predict([ground_set for ground_set, _ in examples])
    pairs = zip(chosen, examples, strict=True)
    return np.mean([metrics.f_score(one, picks) for one, (_, picks) in pairs])


# Kernels that are initialized ---------------------------------------------------------


def test_kinds_are_initialized_on_all_items(made):
    sets = [ground_set for ground_set, _ in made]
    kernel = initialize_kernel(vg.Kinds(4), sets)
    items = np.concatenate([ground_set.similarity for ground_set in sets])
    few = kernel.fit(sets[:1])
    assert np.allclose(few.center_, items.mean(axis=0))
    # They are centres of clusters of all items: no point of a centre moves any more.
    unit = items - items.mean(axis=0)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    again = KMeans(4, init=few.centers_, n_init=1).fit(unit)
    assert np.allclose(again.cluster_centers_, few.centers_, atol=1e-3)


def test_bandwidths_are_initialized_on_all_items(made):
    sets = [ground_set for ground_set, _ in made]
    expected = vg.MultipleKernel().fit(sets).bandwidths_[None]
    kernel = initialize_kernel(vg.MultipleKernel(), sets)
    assert np.allclose(kernel.fit(sets[:1]).bandwidths_[None], expected)


def test_initialized_kinds_without_a_state_are_kinds(made):
    sets = [ground_set for ground_set, _ in made[:5]]
    one, other = InitializedKinds(4).fit(sets), vg.Kinds(4).fit(sets)
    assert np.allclose(one.centers_, other.centers_)


# Candidates ---------------------------------------------------------------------------


def test_learning_finds_the_rule_from_few_groups(made, candidates):
    held_out = made[10:]
    model = fit_model(candidates["4 kinds"], made[:6])
    untrained = np.mean(
        [metrics.f_score(untrained_choice(g, len(p)), p) for g, p in held_out]
    )
    assert mean_f(model, held_out) > untrained + 0.2
    assert np.argmax(np.abs(model.theta_)) == 0  # "good"


def test_going_on_ends_near_where_a_fit_from_the_start_does(made, candidates):
    candidate = candidates["4 kinds"]
    warm = fit_model(candidate, made[:9], fit_model(candidate, made[:8]))
    cold = fit_model(candidate, made[:9])
    assert mean_f(warm, made[10:]) > mean_f(cold, made[10:]) - 0.05
    assert warm.solver_result_.objective < cold.solver_result_.objective + 0.05


def test_a_group_from_which_nothing_was_picked_is_learned_from(made, candidates):
    nothing = (made[0][0], np.zeros(0, dtype=np.intp))
    candidate = candidates["4 kinds"]
    fewer = fit_model(candidate, [*made[:3], nothing, nothing, nothing])
    sizes = [
        np.mean([len(one) for one in model.predict([g for g, _ in made[10:]])])
        for model in (fewer, fit_model(candidate, made[:3]))
    ]
    assert sizes[0] < sizes[1]


def test_a_family_goes_from_end_to_end(made, candidates):
    family = odds_family(fit_model(candidates["4 kinds"], made[:4]))
    assert family.omegas == ODDS_OMEGAS
    assert [model.omega for model in family.models] == list(ODDS_OMEGAS)


# Held-out groups ---------------------------------------------------------------------


def test_the_curve_has_points_at_these_numbers():
    expected = [2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96]
    assert [n for n in range(100) if is_on_curve(n)] == expected


def ignore():
    pass


def test_no_group_is_judged_by_what_has_seen_it(made, candidates, monkeypatch):
    seen, judged = [], []
    choose = Judge._choose

    def fit(candidate, examples):
        model = fit_model(candidate, examples)
        seen.append((model, {id(ground_set) for ground_set, _ in examples}))
        return model

    def watch(judge, model, ground_set, group):
        for one, learned_from in seen:
            if one is model:
                judged.append(id(ground_set) in learned_from)
        return choose(judge, model, ground_set, group)

    monkeypatch.setattr(judging, "fit_model", fit)
    monkeypatch.setattr(Judge, "_choose", watch)
    monkeypatch.setattr(judging, "odds_family", lambda model: _Same(model))
    judge = Judge(candidates["4 kinds"])
    for n in (1, 2, 3, 5, 9):
        done = {g: made[g] for g in range(n)}
        judge.learn(done, ignore)
        judge.curve(done, ignore)
        judge.path(done, ignore)
    # Taking a group back moves no other to another fold.
    folds = dict(judge.fold_of)
    done = {g: made[g] for g in (1, 2, 3, 5, 8, 9, 10)}
    judge.learn(done, ignore)
    judge.curve(done, ignore)
    judge.path(done, ignore)
    assert {g: judge.fold_of[g] for g in folds} == folds
    assert judged
    assert not any(judged)


class _Same:
    """A family that is one model, so that it is known again."""

    def __init__(self, model):
        self.model = model

    def at(self, omega):
        return self.model


def test_groups_are_dealt_evenly():
    judge = Judge(None)
    judge.assign([7, 3, 5])
    judge.assign([7, 3, 5, 1, 2])
    assert judge.fold_of == {7: 0, 3: 1, 5: 2, 1: 3, 2: 0}
    assert N_FOLDS == 4


def test_the_path_is_the_mean_over_groups_by_what_has_not_seen_them(made, candidates):
    judge = Judge(candidates["4 kinds"])
    done = {g: made[g] for g in range(6)}
    judge.learn(done, ignore)
    path = judge.path(done, ignore)
    middle = next(point for point in path if point.omega == pytest.approx(1.0))
    chosen = {
        g: judge.models[judge.fold_of[g]].predict([made[g][0]])[0] for g in range(6)
    }
    wanted = {g: set(made[g][1].tolist()) for g in range(6)}
    hits = {g: len(wanted[g] & set(chosen[g].tolist())) for g in range(6)}
    precision = np.mean([hits[g] / len(chosen[g]) for g in range(6)])
    recall = np.mean([hits[g] / len(wanted[g]) for g in range(6)])
    assert middle.precision == pytest.approx(precision)
    assert middle.recall == pytest.approx(recall)
    assert middle.size == pytest.approx(np.mean([len(c) for c in chosen.values()]))
    sizes = [point.size for point in path]
    assert sizes == sorted(sizes)


def test_held_out_choices_keep_to_the_limits(made, candidates):
    done = {g: made[g] for g in range(6)}
    limits = {g: {"at_most": 1, "per": np.arange(12) % 2} for g in range(6)}
    judge = Judge(candidates["4 kinds"], limits)
    judge.learn(done, ignore)
    assert judge.path(done, ignore)[-1].size == 2.0
    assert max(point.size for point in judge.path(done, ignore)) == 2.0


def test_a_curve_that_was_lost_is_learned_again(made, candidates):
    done = {g: made[g] for g in range(9)}
    judge = Judge(candidates["4 kinds"])
    judge.learn(done, ignore)
    assert [point.n for point in judge.curve(done, ignore)] == [9]
    while judge.catch_up(done, ignore):
        pass
    curve = judge.curve(done, ignore)
    assert [point.n for point in curve] == [2, 3, 4, 6, 8, 9]
    assert all(point.untrained_f == curve[0].untrained_f for point in curve)
    assert curve[-1].f > curve[-1].untrained_f


def test_undoing_takes_points_away(made, candidates):
    judge = Judge(candidates["4 kinds"])
    for n in (2, 3, 4, 5, 3):
        done = {g: made[g] for g in range(n)}
        judge.learn(done, ignore)
    assert [point.n for point in judge.curve(done, ignore)] == [2, 3]


# Comparing ----------------------------------------------------------------------------


def test_comparisons_are_made_at_these_numbers():
    assert [n for n in range(70) if is_compared(n)] == [4, 8, 16, 32, 64]


def test_the_similarity_of_the_rule_wins(made, candidates):
    # Gaussians of the same vectors are as good: what is to lose sees another block.
    rng = np.random.default_rng(5)
    blocks = [
        (
            vg.GroundSet(
                one.quality,
                {"kinds": one.similarity, "noise": rng.standard_normal((12, 4))},
            ),
            picks,
        )
        for one, picks in made[:24]
    ]
    kernels = {"noise": vg.Linear(block="noise"), "kinds": vg.Kinds(4, block="kinds")}
    found = compare(kernels, [ground_set for ground_set, _ in blocks], blocks)
    assert found.candidate.kernel.block == "kinds"
    assert found.sentence.startswith("In cross-validation on 24 groups, kinds did best")


# The learner --------------------------------------------------------------------------


def test_a_learner_learns_quickly_then_thoroughly():
    material = MadeMaterial(12)
    learner = GroupLearner(material.sets, material.kernels, material.feature_names)
    published = []
    learned = learner.learn({g: material.wanted[g] for g in range(5)}, published.append)
    assert published[0].n_groups == 5
    assert published[0].curve == ()
    assert learned.curve[-1].n == 5
    assert learned.weights[0][0] == "good"
    assert set(learned.confidence) == set(range(5, 12))
    assert all(0.0 <= sure <= 1.0 for sure in learned.confidence.values())
    assert sum(kind.share for kind in learned.kinds) == pytest.approx(1.0, abs=0.05)
    again = learner.learn({g: material.wanted[g] for g in range(6)})
    assert [point.n for point in again.curve] == [2, 3, 4, 6]


def test_a_learner_without_picks_knows_nothing():
    material = MadeMaterial(4)
    learner = GroupLearner(material.sets, material.kernels, material.feature_names)
    learner.learn({0: material.wanted[0]})
    assert learner.learn({}) is None
    assert learner.model is None


def test_another_candidate_is_followed_and_the_same_one_not_begun_again():
    material = MadeMaterial(6)
    learner = GroupLearner(material.sets, material.kernels, material.feature_names)
    learner.learn({g: material.wanted[g] for g in range(3)})
    model = learner.model
    learner.follow(Comparison(learner.candidate, "the same"))
    assert learner.model is model
    other = candidates_for(material.kernels, material.sets)["linear"]
    learner.follow(Comparison(other, "another"))
    assert learner.model is None
    learned = learner.learn({g: material.wanted[g] for g in range(3)})
    assert learned.comparison == "another"
    assert learned.kinds == ()


# The teacher --------------------------------------------------------------------------


@pytest.fixture
def teacher():
    teacher = Teacher(MadeMaterial(10), compares=False)
    yield teacher
    teacher.close()


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.faults
def test_a_teacher_learns_elsewhere(teacher):
    material = MadeMaterial(10)
    assert teacher.learned is None
    started = time.perf_counter()
    teacher.teach({g: material.wanted[g] for g in (4, 2, 7, 1)})
    assert time.perf_counter() - started < 1.0  # it would take seconds to learn
    assert teacher.is_learning
    assert teacher.wait(120)
    assert not teacher.is_learning
    learned = teacher.learned
    assert learned.n_groups == 4
    assert teacher.problem is None
    kinds = learned.to_json(material.items)["kinds"]
    assert kinds[0]["description"].startswith("item ")
    same = GroupLearner(material.sets, material.kernels, material.feature_names)
    expected = same.learn({g: material.wanted[g] for g in (4, 2, 7, 1)})
    assert dict(learned.weights) == pytest.approx(dict(expected.weights))
    assert learned.curve == expected.curve
    # Only the last of several tasks counts, and taking all back leaves nothing.
    for n in range(1, 6):
        teacher.teach({g: material.wanted[g] for g in range(n)})
    assert teacher.wait(120)
    assert teacher.learned.n_groups == 5
    teacher.teach({})
    assert teacher.learned is None
    assert not teacher.is_learning


@pytest.mark.faults
def test_a_process_that_is_killed_is_started_again(teacher):
    material = MadeMaterial(10)
    pid = teacher._process.pid
    teacher.teach({g: material.wanted[g] for g in range(2)})
    os.kill(pid, signal.SIGKILL)
    assert teacher.wait(120)
    assert teacher.learned.n_groups == 2
    assert teacher._process.pid != pid
    last = teacher._process.pid
    teacher.close()
    assert not is_running(last)


@pytest.mark.faults
def test_what_cannot_be_learned_from_is_said_in_words(teacher):
    material = MadeMaterial(10)
    teacher.teach({0: np.array([99])})
    assert teacher.wait(120)
    assert "99" in teacher.problem
    teacher.teach({0: material.wanted[0]})
    assert teacher.wait(120)
    assert teacher.problem is None
    assert teacher.learned.n_groups == 1


@pytest.mark.faults
def test_a_comparison_that_fails_is_said_and_does_not_end_learning(teacher):
    material = MadeMaterial(10)
    teacher.teach({g: material.wanted[g] for g in range(4)})
    teacher._await_comparison(ProcessCall(partial(int, "no")))
    assert teacher.problem.startswith("similarities cannot be compared: ValueError: ")
    assert teacher.wait(120)
    assert teacher.learned.n_groups == 4


@pytest.mark.faults
def test_a_teacher_compares_in_the_background():
    material = MadeMaterial(10)
    teacher = Teacher(material)
    try:
        teacher.teach({g: material.wanted[g] for g in range(8)})
        assert teacher.wait(170)
        assert "cross-validation on 8 groups" in teacher.learned.comparison
    finally:
        teacher.close()
