"""Learning in mini-batches: steps, validation, partial_fit."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import variegate as vg
from instances import KERNELS, random_ground_set
from variegate.learning import objective as objective_module
from variegate.learning.batched_problem import BatchedProblem
from variegate.learning.examples import check_examples, check_pairs
from variegate.learning.objective import LargeMarginLoss
from variegate.learning.problem import TrainingProblem
from variegate.linalg import limits
from variegate.solvers import (
    LBFGS,
    MiniBatch,
    Step,
    Stop,
    as_solver,
)
from variegate.solvers.adam import Adam


@pytest.fixture(scope="module")
def data():
    return vg.datasets.make_synthetic(n_sets=120, random_state=0)


def pairs_of(data):
    return list(zip(data.ground_sets, data.subsets, strict=True))


def quick(**options):
    return MiniBatch(**{"batch_size": 16, "n_epochs": 3, "report_every": 4} | options)


def model_with(solver, **options):
    defaults = {"kernel": vg.Linear(), "random_state": 0, "l2": 1e-2}
    return vg.LargeMarginDPP(solver=solver, **defaults | options)


def learned(model):
    return np.concatenate([model.theta_, [model.intercept_], model.kernel_parameters_])


@pytest.mark.parametrize("more", [0, 1])
def test_all_examples_decide_whether_loops_are_compiled(data, more, monkeypatch):
    # Of 120 sets of ten, all of them: each batch is told, however small it is.
    monkeypatch.setattr(limits, "COMPILED_ENTRIES", 12_000 + more)
    by_numpy = objective_module.stacked_loss
    used = []

    def recorded(*arguments):
        used.append(len(arguments[2]))
        return by_numpy(*arguments)

    monkeypatch.setattr(objective_module, "stacked_loss", recorded)
    learned(model_with(quick(n_epochs=1)).fit(pairs_of(data)))
    assert bool(used) == bool(more)


def objective(model, ground_sets, subsets, lam=1.0):
    """Return the objective of learning at what a model has learned."""
    problem = TrainingProblem(
        check_examples(ground_sets, subsets, model.omega),
        model.kernel_,
        LargeMarginLoss(lam),
        fit_intercept=model.fit_intercept,
        l2=model.l2,
        jitter=model.jitter,
    )
    parts = {
        "theta": model.theta_,
        "intercept": np.full(
            int(model.fit_intercept),
            model.intercept_ + problem.coordinates.center @ model.theta_,
        ),
        "kernel": model.kernel_parameters_,
    }
    return problem.value_and_gradient(problem.space.pack(parts))[0]


def generated(n_pairs):
    rng = np.random.default_rng(0)
    for _ in range(n_pairs):
        ground_set = vg.GroundSet(rng.standard_normal((6, 3)))
        yield ground_set, ground_set.quality[:, 0] > 0.5


# Against the other solvers --------------------------------------------------------


@pytest.mark.parametrize("lam", [0.0, 2.0])
@pytest.mark.parametrize("kernel", [vg.Linear(), vg.MultipleKernel()], ids=repr)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_comes_close_to_lbfgs(data, kernel, lam, fit_intercept):
    options = {"kernel": kernel, "lam": lam, "fit_intercept": fit_intercept}
    ends = [
        objective(
            model_with(solver, **options).fit(data.ground_sets, data.subsets),
            data.ground_sets,
            data.subsets,
            lam,
        )
        for solver in (LBFGS(), MiniBatch(batch_size=32, n_epochs=60))
    ]
    assert ends[1] == pytest.approx(ends[0], rel=0.01)


def test_shifted_features_change_nothing_but_the_intercept(data):
    # Batches centre features by their own means; the model must not notice.
    shift = np.arange(5.0)
    moved = [vg.GroundSet(gs.quality + shift, gs.quality) for gs in data.ground_sets]
    plain = [vg.GroundSet(gs.quality, gs.quality) for gs in data.ground_sets]
    first = model_with(quick()).fit(plain, data.subsets)
    second = model_with(quick()).fit(moved, data.subsets)
    np.testing.assert_allclose(first.theta_, second.theta_, atol=1e-9)
    assert second.intercept_ == pytest.approx(first.intercept_ - shift @ first.theta_)


def test_gradient_of_a_batch_in_the_coordinates_of_all(data):
    problem = BatchedProblem(
        list(check_pairs(pairs_of(data), 1.0)),
        vg.MultipleKernel().fit(data.ground_sets),
        LargeMarginLoss(1.0),
        l2=0.1,
    )
    batch = problem.batch(range(7))
    rng = np.random.default_rng(0)
    at = problem.space.center() + 0.1 * rng.standard_normal(problem.space.size)
    at = problem.space.project(at)
    _, gradient = batch.value_and_gradient(at)
    # Step eps^(1/3): rounding and truncation of central differences are then equal.
    step = 6e-6
    for k in range(problem.space.size):
        e = step * np.eye(problem.space.size)[k]
        rise = batch.value_and_gradient(at + e)[0] - batch.value_and_gradient(at - e)[0]
        assert gradient[k] == pytest.approx(rise / (2 * step), rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("case", KERNELS, ids=str)
def test_learns_with_every_kernel(case):
    rng = np.random.default_rng(0)
    ground_sets = [random_ground_set(case, rng, n) for n in (6, 7, 6, 5)]
    if case.name == "user":
        ground_sets = [gs for gs in ground_sets if gs.features().shape[1] == 8]
    subsets = [[0, 1], [2], [], [4]][: len(ground_sets)]
    model = model_with(quick(batch_size=2), kernel=case.kernel, l2=0.1)
    model.fit(ground_sets, subsets, validation=(ground_sets, subsets))
    assert np.isfinite(learned(model)).all()
    assert 0.0 < model.history_[-1].expected_f < 1.0
    domain = model.kernel_.domain
    np.testing.assert_allclose(
        domain.project(model.kernel_parameters_), model.kernel_parameters_, atol=1e-9
    )


# Batches --------------------------------------------------------------------------


def test_pairs_and_lists_give_the_same_answer(data):
    listed = model_with(quick()).fit(data.ground_sets, data.subsets)
    streamed = model_with(quick()).fit(pairs_of(data))
    np.testing.assert_array_equal(learned(listed), learned(streamed))
    assert listed.history_ == streamed.history_


def test_a_batch_that_holds_all_of_the_data_is_named(data):
    model = vg.LargeMarginDPP(
        kernel=vg.Linear(), solver=MiniBatch(batch_size=256), random_state=0
    )
    with pytest.warns(ConvergenceWarning, match="in 10 steps. That is too little"):
        model.fit(pairs_of(data))
    assert "Lower batch_size (now 256)" in model.solver_result_.remedy


@pytest.mark.parametrize("n_sets", [20, 80])
def test_few_pairs_are_learned_as_well_as_by_lbfgs(n_sets):
    listed, streamed = [], []
    for seed in range(3):
        data = vg.datasets.make_synthetic(n_sets=n_sets + 100, random_state=seed)
        sets, subsets = data.ground_sets, data.subsets
        for solver, scores in (("lbfgs", listed), ("minibatch", streamed)):
            model = vg.LargeMarginDPP(
                kernel=vg.Linear(), decoder="greedy", solver=solver, random_state=0
            ).fit(sets[:n_sets], subsets[:n_sets])
            scores.append(model.score(sets[n_sets:], subsets[n_sets:]))
    # Ten steps of Adam, one a pass, are behind by 0.05 and more.
    assert np.mean(streamed) > np.mean(listed) - 0.015


@pytest.mark.parametrize(
    ("n_pairs", "n_epochs", "n_steps"),
    [(5, 2, 10), (80, 1, 80), (80, 10, 100), (300, 200, 200)],
)
def test_steps_of_few_pairs(n_pairs, n_epochs, n_steps):
    data = vg.datasets.make_synthetic(n_sets=n_pairs, n_items=4, random_state=0)
    model = vg.LargeMarginDPP(
        kernel=vg.Linear(), solver=MiniBatch(n_epochs=n_epochs), random_state=0
    ).fit(data.ground_sets, data.subsets)
    assert model.solver_result_.n_iterations == n_steps


@pytest.mark.parametrize("seed", [0, 7])
def test_the_same_seed_gives_the_same_answer(data, seed):
    first, second, other = (
        learned(model_with(quick(), random_state=s).fit(pairs_of(data)))
        for s in (seed, seed, seed + 1)
    )
    np.testing.assert_array_equal(first, second)
    assert np.abs(first - other).max() > 1e-9


def test_every_pair_is_seen_once_an_epoch():
    seen = []

    class Recorded(BatchedProblem):
        def batch(self, numbers):
            seen.append(list(numbers))
            return super().batch(numbers)

    problem = Recorded(
        list(check_pairs(generated(100), 1.0)), vg.Linear(), LargeMarginLoss()
    )
    solver = MiniBatch(batch_size=10, n_epochs=2)
    result = solver.solve(problem, problem.space.center(), seed=0)
    positions = [p for batch in seen for p in batch]
    first, second = positions[:100], positions[100:]
    assert sorted(first) == sorted(second) == list(range(100))
    assert first != second
    assert {len(batch) for batch in seen} == {10}
    assert result.n_iterations == 20
    assert result.history[-1].n_seen == 200


def test_no_batch_is_tiny():
    problem = BatchedProblem(
        list(check_pairs(generated(52), 1.0)), vg.Linear(), LargeMarginLoss()
    )
    seen = []
    solver = MiniBatch(batch_size=10, n_epochs=1, report_every=1)
    solver.solve(problem, problem.space.center(), lambda step: seen.append(step.n_seen))
    assert seen == [11, 22, 32, 42, 52]


def test_errors_name_the_place_of_the_pair():
    rng = np.random.default_rng(0)
    pairs = [(rng.standard_normal((4, 2)), [0]) for _ in range(30)]
    pairs[17] = (pairs[17][0], [0, 1, 2])
    with pytest.raises(ValueError, match="ground set 17: its subset has probability"):
        model_with(quick(), jitter=0.0).fit(pairs)


def test_error_costs_of_lists_are_used(data):
    n = len(data.ground_sets)
    dear = [np.full(10, 5.0)] * n
    by_omega = model_with(quick(), omega=5.0).fit(data.ground_sets, data.subsets)
    by_costs = model_with(quick()).fit(
        data.ground_sets, data.subsets, false_negative=dear
    )
    np.testing.assert_array_equal(learned(by_omega), learned(by_costs))
    with pytest.raises(ValueError, match="false_negative are for lists"):
        model_with(quick()).fit(pairs_of(data), false_negative=dear)


@pytest.mark.parametrize(
    ("options", "arguments", "message"),
    [
        (
            {"solver": quick(), "n_starts": 2},
            {},
            "MiniBatch starts once, but n_starts=2",
        ),
        ({"solver": quick()}, {"validation": 3}, "validation must be a pair of lists"),
        (
            {"solver": quick()},
            {"validation": ([np.eye(3)], [[0]])},
            "validation holds <GroundSet: 3 items.* but the data to learn from",
        ),
        ({"solver": quick(patience=2)}, {}, "patience=2 needs data that is held out"),
        ({"solver": quick(batch_size=0)}, {}, "batch_size must be a whole number"),
        ({"solver": quick(learning_rate=0)}, {}, "learning_rate must be a finite"),
    ],
)
def test_bad_options(data, options, arguments, message):
    model = vg.LargeMarginDPP(**{"kernel": vg.Linear()} | options)
    with pytest.raises(ValueError, match=message):
        model.fit(pairs_of(data), **arguments)


def test_validation_is_for_batches_and_a_checkpoint_for_partitions(data):
    examples = data.ground_sets, data.subsets
    with pytest.raises(ValueError, match='validation is for solver="minibatch"'):
        vg.LargeMarginDPP().fit(*examples, validation=([], []))
    for solver in ("lbfgs", "minibatch"):
        with pytest.raises(ValueError, match="checkpoint is for data in partitions"):
            vg.LargeMarginDPP(solver=solver).fit(*examples, checkpoint="run")


def test_a_whole_problem_is_refused(data):
    examples = check_examples(data.ground_sets[:2], data.subsets[:2], 1.0)
    problem = TrainingProblem(examples, vg.Linear(), LargeMarginLoss())
    with pytest.raises(ValueError, match="needs a problem that comes in batches"):
        MiniBatch().solve(problem, problem.space.center())


def test_the_name_stands_for_the_defaults():
    assert as_solver("minibatch", 7, 1e-3) == MiniBatch()


def test_a_model_learned_in_batches_can_be_stored(data, tmp_path):
    model = model_with(quick(), decoder="greedy").fit(pairs_of(data))
    model.save(tmp_path / "model.json")
    again = vg.load(tmp_path / "model.json")
    assert again.solver == model.solver
    np.testing.assert_array_equal(learned(again), learned(model))


# Adam -----------------------------------------------------------------------------


class Walled:
    """A parabola with its minimum at 3, infinite from 0.04 on."""

    is_smooth = True

    def __init__(self):
        from variegate.kernels.domains import Free
        from variegate.learning.parameters import ParameterSpace

        self.space = ParameterSpace({"theta": Free(1)})

    def value_and_gradient(self, flat):
        from variegate.learning.parameters import InfeasibleError

        if flat[0] >= 0.04:
            raise InfeasibleError(0, "too far")
        return float((flat[0] - 3.0) ** 2), 2.0 * (flat - 3.0)


def test_a_step_into_the_infinite_is_taken_back():
    problem = Walled()
    adam = Adam.start_at(problem.space, np.zeros(1))
    adam.step(problem, 0.05, 100.0)
    assert adam.free[0] == pytest.approx(0.05)
    assert adam.step(problem, 0.01, 100.0) == 9.0


def test_adam_follows_its_formulas():
    # Kingma and Ba, algorithm 1; weights t (t + 1) ... (t + 7) in the average.
    rng = np.random.default_rng(0)

    class Noisy(Walled):
        def value_and_gradient(self, flat):
            self.last = rng.standard_normal(1)
            return 0.0, self.last

    problem = Noisy()
    adam = Adam.start_at(problem.space, np.zeros(1))
    m = v = x = 0.0
    points, weights = [], []
    for t in range(1, 20):
        adam.step(problem, 0.1, 10.0)
        g = float(problem.last[0])
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        rate = 0.1 / np.sqrt(1 + (t - 1) / 10)
        x -= rate * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        assert adam.free[0] == pytest.approx(x)
        points.append(x)
        weights.append(float(np.prod([t + k for k in range(8)])))
        average = np.average(points, weights=weights)
        assert adam.average[0] == pytest.approx(average)


# Judging --------------------------------------------------------------------------


def test_reports_are_about_what_is_held_out(data):
    reports = []
    held_out = data.ground_sets[:20], data.subsets[:20]
    model = model_with(quick(), callback=reports.append).fit(
        data.ground_sets[20:], data.subsets[20:], validation=held_out
    )
    assert all(isinstance(step, Step) for step in reports)
    assert model.history_ == reports
    # 100 pairs: six batches an epoch, a report every four.
    assert [step.iteration for step in reports] == [4, 8, 12, 16, 18]
    assert reports[-1].n_seen == 300
    best = min(reports, key=lambda step: step.objective)
    assert model.solver_result_.objective == best.objective
    assert objective(model, *held_out) == pytest.approx(best.objective)
    scores = []
    for ground_set, wanted in zip(*held_out, strict=True):
        K = model.ensemble(ground_set).marginals()
        scores.append(2 * K[wanted].sum() / (K.sum() + len(wanted)))
    assert best.expected_f == pytest.approx(np.mean(scores))


def test_without_held_out_data_the_running_mean_is_reported(data):
    model = model_with(quick(n_epochs=30)).fit(pairs_of(data))
    assert all(step.expected_f is None for step in model.history_)
    true = objective(model, data.ground_sets, data.subsets)
    assert model.solver_result_.objective == pytest.approx(true, rel=0.1)


def test_early_stopping_keeps_the_best():
    # Three training sets and many features: learning them by heart does harm.
    rng = np.random.default_rng(0)
    pairs = [(rng.standard_normal((6, 12)), rng.random(6) < 0.4) for _ in range(43)]
    validation = tuple(zip(*pairs[:40], strict=True))
    solver = MiniBatch(
        batch_size=3, n_epochs=400, learning_rate=0.1, report_every=1, patience=6
    )
    model = model_with(solver, l2=0.0, kernel=vg.Gaussian(3.0))
    model.fit(pairs[40:], validation=validation)
    objectives = [step.objective for step in model.history_]
    assert model.solver_result_.stop is Stop.EARLY
    assert "patience=6 reports" in model.solver_result_.status
    assert len(objectives) < 400
    assert int(np.argmin(objectives)) == len(objectives) - 7
    assert model.solver_result_.objective == min(objectives)
    ground_sets = [vg.GroundSet(X) for X in validation[0]]
    subsets = [np.flatnonzero(mask) for mask in validation[1]]
    assert objective(model, ground_sets, subsets) == pytest.approx(min(objectives))


def test_the_callback_stops_learning(data):
    model = model_with(quick(), callback=lambda step: step.n_seen >= 60)
    model.fit(pairs_of(data))
    assert model.solver_result_.stop is Stop.CALLBACK
    assert model.history_[-1].n_seen == 60
    last_report = model_with(quick(report_every=1000), callback=lambda step: True).fit(
        pairs_of(data)
    )
    assert last_report.solver_result_.stop is Stop.CALLBACK


# A little at a time ---------------------------------------------------------------


def test_partial_fit_improves_on_held_out_data(data):
    held_out = data.ground_sets[80:], data.subsets[80:]
    model = model_with(quick(learning_rate=0.1), kernel=vg.MultipleKernel())
    ends = []
    for _ in range(8):
        for k in range(0, 80, 20):
            model.partial_fit(data.ground_sets[k : k + 20], data.subsets[k : k + 20])
        ends.append(objective(model, *held_out))
    assert ends[-1] < ends[0] - 0.1
    whole = model_with("lbfgs", kernel=vg.MultipleKernel())
    whole.fit(data.ground_sets[:80], data.subsets[:80])
    assert ends[-1] < objective(whole, *held_out) * 1.05
    assert model.solver_result_.n_iterations == 32
    assert "took 32 steps of partial_fit" in model.solver_result_.status
    assert len(model.predict(data.ground_sets[:3])) == 3


def test_partial_fit_takes_several_steps(data):
    batch = data.ground_sets[:20], data.subsets[:20]
    at_once = model_with("minibatch").partial_fit(*batch, n_steps=5)
    one_by_one = model_with("minibatch")
    for _ in range(5):
        one_by_one.partial_fit(*batch)
    np.testing.assert_array_equal(learned(at_once), learned(one_by_one))


def test_partial_fit_goes_on_from_fit(data, tmp_path):
    batch = data.ground_sets[:20], data.subsets[:20]
    model = model_with("lbfgs", decoder="greedy").fit(data.ground_sets, data.subsets)
    before = learned(model)
    model.save(tmp_path / "model.json")
    loaded = vg.load(tmp_path / "model.json")
    for other in (model, loaded):
        other.partial_fit(*batch)
        # One step of the first rate, in every coordinate but the intercept's mix.
        np.testing.assert_allclose(learned(other)[:-1], before[:-1], atol=0.051)
        assert np.abs(learned(other) - before).max() > 1e-3
    np.testing.assert_array_equal(learned(model), learned(loaded))
    assert model.fit(data.ground_sets, data.subsets).solver_result_.converged
    np.testing.assert_array_equal(learned(model), before)


def test_bad_input_to_partial_fit(data):
    model = model_with("minibatch")
    with pytest.raises(ValueError, match="n_steps must be a whole number"):
        model.partial_fit(data.ground_sets, data.subsets, n_steps=0)
    with pytest.raises(ValueError, match="1 subsets for 120 ground sets"):
        model.partial_fit(data.ground_sets, data.subsets[:1])
    model.partial_fit(data.ground_sets, data.subsets)
    with pytest.raises(ValueError, match=r"3 quality features, but .* fitted with 5"):
        model.partial_fit([np.eye(3)], [[0]])
