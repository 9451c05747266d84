"""Learning from partitions, against learning from the same examples in lists."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

import variegate as vg
from partition_instances import Threads, assert_same_bits, cut, lists, pairs_of
from variegate.files.run_store import RunStore
from variegate.kernels.known import PartlyLoaded
from variegate.learning import compiled_loss, objective
from variegate.learning.examples import Example, check_examples
from variegate.learning.objective import LargeMarginLoss
from variegate.learning.parameters import InfeasibleError
from variegate.learning.problem import TrainingProblem
from variegate.learning.quality import FeatureMoments
from variegate.linalg import limits
from variegate.partitions import (
    Limits,
    Partition,
    PartitionedExamples,
    Serial,
)
from variegate.partitions.examples import _first_examples, _read_rows_for_kernel
from variegate.partitions.problem import PartitionedProblem
from variegate.solvers import LBFGS, MiniBatch, Stop

#: The ways to evaluate losses: by NumPy, and by compiled loops.
LOSSES = [(objective, "stacked_loss"), (compiled_loss, "small_set_losses")]

OMEGA = 3.0


@pytest.fixture(scope="module")
def pairs():
    return pairs_of()


@pytest.fixture(scope="module")
def source(pairs):
    return cut(pairs, 7)


@pytest.fixture(scope="module")
def many():
    """Return more pairs, and partitions of them."""
    pairs = pairs_of(600, seed=3)
    return pairs, cut(pairs, 50)


KERNELS = [
    vg.MultipleKernel(),
    vg.Linear(),
    vg.Kinds(3),
    vg.Metric(2),
    vg.MultipleKernel(approximation="nystroem", rank=4),
    vg.Gaussian(1.0, approximation="fourier", rank=4),
    vg.Mixture([vg.Gaussian(2.0), vg.Kinds(2), vg.MultipleKernel()]),
]


# Settling ---------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_a_kernel_is_settled_as_it_is_by_a_list(kernel, pairs, source, monkeypatch):
    # So few that of all sets and items only some are looked at.
    monkeypatch.setattr("variegate.kernels.multiple.MEDIAN_SETS", 13)
    monkeypatch.setattr("variegate.kernels.features.POOLED_ITEMS", 50)
    expected = clone(kernel).fit(lists(pairs)[0]).get_state()
    there = PartitionedExamples(source).fit_kernel(clone(kernel))
    assert there.get_state() == expected


def test_no_more_is_brought_here_than_is_looked_at(pairs, source, monkeypatch):
    monkeypatch.setattr("variegate.kernels.features.POOLED_ITEMS", 20)
    kernel = vg.Kinds(3)
    examples = PartitionedExamples(source)
    looks = kernel.looks_at(examples.survey.sizes)
    assert sum(map(len, looks.values())) == 20
    known = examples._load_for_kernel(looks)
    assert isinstance(known, PartlyLoaded)
    assert sorted(known.known) == sorted(looks)
    assert len(known) == len(pairs)
    missing = next(k for k in range(len(pairs)) if k not in looks)
    with pytest.raises(LookupError, match=f"ground set {missing}, which looks_at"):
        known[missing]


class Odd(vg.Kernel):
    """A kernel of somebody's own."""

    def fit(self, ground_sets):
        return self

    def value(self, prepared, parameters):
        return np.eye(len(prepared))

    def pull_back(self, prepared, parameters, G):
        return np.zeros(0)


def test_a_kernel_of_your_own_must_say_what_it_looks_at(source):
    with pytest.raises(ValueError, match=r"Odd settles itself .* looks_at\(sizes\)"):
        PartitionedExamples(source).fit_kernel(Odd())


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_coordinates_are_those_of_a_list(pairs, source, fit_intercept):
    ground_sets, _ = lists(pairs)
    rows = np.concatenate([ground_set.quality for ground_set in ground_sets])
    survey = PartitionedExamples(source).survey
    found = survey.features.coordinates(fit_intercept)
    center = rows.mean(axis=0) if fit_intercept else np.zeros(rows.shape[1])
    np.testing.assert_allclose(found.center, center, rtol=1e-13)
    second = (rows - center).T @ (rows - center) / len(rows)
    spread = np.sqrt(np.diag(second))
    np.testing.assert_array_equal(found.scale, np.exp2(np.round(np.log2(spread))))
    ridge = 1e-4 * np.eye(len(center))
    covariance = second / np.outer(found.scale, found.scale)
    np.testing.assert_allclose(found.root.T @ found.root, covariance + ridge)
    of_list = FeatureMoments.from_ground_sets(ground_sets).coordinates(fit_intercept)
    np.testing.assert_allclose(found.root, of_list.root, atol=1e-13)
    assert survey.sizes.tolist() == [len(gs) for gs in ground_sets]
    assert survey.n_examples.tolist() == [7] * 8 + [4]


def test_enormous_and_constant_features_have_scales():
    rng = np.random.default_rng(0)
    columns = [1e200, 1e-200, 1.0]
    X = [rng.normal(size=(4, 3)) * columns for _ in range(9)]
    for rows in X:
        rows[:, 2] = 0.1
    ground_sets = [vg.GroundSet(rows) for rows in X]
    pairs = [(ground_set, [0]) for ground_set in ground_sets]
    survey = PartitionedExamples(cut(pairs, 2)).survey
    found = survey.features.coordinates(True)
    center, scale = found.center, found.scale
    spread = np.concatenate(X)[:, :2].std(axis=0, dtype=np.longdouble)
    np.testing.assert_array_equal(scale[:2], np.exp2(np.round(np.log2(spread))))
    assert center[2] == 0.1
    assert scale[2] == 1.0


class Weighing(Serial):
    """An engine that tells how large the sums are that workers add up."""

    def __init__(self):
        self.n_bytes = []

    def tree_sum(self, function, items, add):
        total = super().tree_sum(function, items, add)
        self.n_bytes.append(len(pickle.dumps(total)))
        return total


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_no_sum_of_workers_grows_with_the_examples(source, many):
    weights = []
    for where in (source, many[1]):
        engine = Weighing()
        examples = PartitionedExamples(where, engine, first_passes=1)
        vg.LargeMarginDPP(max_iter=3, random_state=0).fit(examples)
        weights.append(max(engine.n_bytes))
    assert weights[1] < weights[0] + 8


# The objective ----------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("lam", [0.0, 2.0])
def test_the_objective_is_that_of_a_list(kernel, lam, pairs, source):
    ground_sets, subsets = lists(pairs)
    listed = check_examples(ground_sets, subsets, OMEGA)
    kernel = clone(kernel).fit(ground_sets)
    loss, options = LargeMarginLoss(lam), {"l2": 0.1, "jitter": 1e-4}
    home = TrainingProblem(listed, kernel, loss, **options)
    examples = PartitionedExamples(source)
    there = PartitionedProblem(examples, kernel, loss, omega=OMEGA, **options)
    assert there.n_sets == home.n_sets
    assert there.is_smooth == home.is_smooth
    rng = np.random.default_rng(1)
    free = rng.normal(size=len(home.space.to_free(home.space.center())))
    flat = home.space.from_free(free)
    value, gradient = home.value_and_gradient(flat)
    found, slope = there.value_and_gradient(flat)
    assert found == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(slope, gradient, rtol=1e-9, atol=1e-12)


def test_batches_add_up_to_the_whole(source):
    examples = PartitionedExamples(source)
    kernel = vg.Linear()
    problem = PartitionedProblem(examples, kernel, LargeMarginLoss(1.0))
    flat = problem.space.center() + 0.1
    counts = examples.survey.n_examples
    parts = [[0, 3], [1, 2, 4, 5], [6, 7, 8]]
    total = sum(
        problem.batch(part).value_and_gradient(flat)[0] * counts[part].sum()
        for part in parts
    )
    whole, _ = problem.value_and_gradient(flat)
    assert total / counts.sum() == pytest.approx(whole, rel=1e-12)


class Infeasible(Serial):
    """An engine that comes back with a point that cannot be, and counts how often."""

    n_asked = 0

    def tree_sum(self, function, items, add):
        self.n_asked += 1
        if self.n_asked == 1:
            raise InfeasibleError(5, "has no room")
        return super().tree_sum(function, items, add)


def test_an_infeasible_point_is_an_answer_too(source, tmp_path):
    engine = Infeasible()
    for _ in range(2):
        with RunStore(tmp_path / "j") as store:
            examples = PartitionedExamples(source, engine, store=store)
            problem = PartitionedProblem(examples, vg.Linear(), LargeMarginLoss(1.0))
            flat = problem.space.center()
            with pytest.raises(InfeasibleError, match="ground set 5: has no room"):
                problem.value_and_gradient(flat)
    assert engine.n_asked == 1


# The estimator ----------------------------------------------------------------------


# Kernels that are well-conditioned here.  With others, such as a metric, a solver
# magnifies differences in rounding, those between two orders of one list as well.
# Fewer iterations than any of these fits needs: near the optimum, rounding decides
# whether the solver takes one more step.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kernel", [None, vg.Kinds(2), vg.Gaussian(2.0)], ids=str)
@pytest.mark.parametrize(
    "settings",
    [{"lam": 0.0}, {"omega": OMEGA, "lam": 0.3}, {"fit_intercept": False}],
    ids=str,
)
def test_what_is_learned_is_the_same_as_from_lists(kernel, settings, many):
    pairs, source = many
    model = vg.LargeMarginDPP(kernel=kernel, l2=0.05, max_iter=30, **settings)
    home = clone(model).fit(*lists(pairs))
    there = model.fit(PartitionedExamples(source))
    np.testing.assert_allclose(there.theta_, home.theta_, rtol=1e-9, atol=1e-9)
    assert there.intercept_ == pytest.approx(home.intercept_, abs=1e-9)
    np.testing.assert_allclose(
        there.kernel_parameters_, home.kernel_parameters_, rtol=1e-9, atol=1e-9
    )
    assert there.kernel_.get_state() == home.kernel_.get_state()


class OwnSolver(LBFGS):
    """A solver object of the user."""


@pytest.mark.filterwarnings("ignore")
def test_several_starts_and_another_solver_are_those_of_home(pairs, source):
    own = OwnSolver(20, 1e-5)
    for settings in ({"n_starts": 3, "random_state": 5}, {"solver": own}):
        model = vg.LargeMarginDPP(lam=0.0, l2=0.1, max_iter=20, **settings)
        home = clone(model).fit(*lists(pairs))
        there = model.fit(PartitionedExamples(source))
        np.testing.assert_allclose(there.theta_, home.theta_, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("more", [0, 1])
def test_all_partitions_together_decide_whether_loops_are_compiled(
    source, more, monkeypatch
):
    examples = PartitionedExamples(source, limits=Limits(0, 0))
    total = int((examples.survey.sizes.astype(int) ** 2).sum())
    monkeypatch.setattr(limits, "COMPILED_ENTRIES", total + more)
    used = []
    for module, name in LOSSES:
        evaluate = getattr(module, name)

        def recorded(*arguments, name=name, evaluate=evaluate):
            used.append(name)
            return evaluate(*arguments)

        monkeypatch.setattr(module, name, recorded)
    problem = PartitionedProblem(examples, vg.Linear(), LargeMarginLoss(1.0))
    problem.value_and_gradient(problem.space.center())
    assert len(examples.source.partitions) > 1
    assert set(used) == {"stacked_loss" if more else "small_set_losses"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first_passes", [0, 2])
def test_bits_depend_neither_on_engine_nor_on_what_is_kept(source, first_passes):
    engines = [Serial(), Threads(1), Threads(5, seed=3), Serial(), Serial()]
    kept = [None, None, None, Limits(memory=0), Limits(memory=0, disk=0)]
    models = [
        vg.LargeMarginDPP(max_iter=8, random_state=1).fit(
            PartitionedExamples(source, engine, first_passes=first_passes, limits=limit)
        )
        for engine, limit in zip(engines, kept, strict=True)
    ]
    for model in models[1:]:
        assert_same_bits(models[0], model)


@pytest.mark.filterwarnings("ignore")
def test_the_first_passes_come_near():
    source = cut(pairs_of(400, seed=2), 10)
    settings = {"kernel": vg.Linear(), "lam": 0.0, "l2": 0.01, "random_state": 0}
    full = vg.LargeMarginDPP(**settings).fit(PartitionedExamples(source))
    told = []
    after = vg.LargeMarginDPP(**settings, callback=told.append).fit(
        PartitionedExamples(source, first_passes=3)
    )
    assert after.solver_result_.converged
    np.testing.assert_allclose(after.theta_, full.theta_, rtol=1e-3, atol=1e-3)
    passes = [step for step in told if step.n_seen is not None]
    assert [step.n_seen for step in passes[39::40]] == [400, 800, 1200]
    begun = full.history_[0].objective - full.history_[-1].objective
    left = after.history_[0].objective - full.history_[-1].objective
    assert left < 0.1 * begun


def test_minibatch_learns_in_passes_alone(source):
    solver = MiniBatch(n_epochs=4, batch_size=14)
    model = vg.LargeMarginDPP(kernel=vg.Linear(), solver=solver, random_state=0)
    model.fit(PartitionedExamples(source))
    assert model.solver_result_.stop is Stop.DATA_USED
    assert "n_epochs=4 times, in 16 steps" in model.solver_result_.status
    assert model.solver_result_.n_iterations == 4 * 4
    assert model.history_[-1].n_seen == 4 * 60


def test_a_callback_stops_during_the_passes(source):
    model = vg.LargeMarginDPP(callback=lambda step: step.iteration == 3)
    model.fit(PartitionedExamples(source, first_passes=1))
    assert model.solver_result_.stop is Stop.CALLBACK
    assert model.solver_result_.n_iterations == 3


class OneBlock:
    """Reads ground sets that are views of one array, as files are read."""

    def __init__(self):
        self.rows = np.random.default_rng(0).standard_normal((600, 3))

    def read(self, partition):
        return [
            Example(
                number, vg.GroundSet.from_checked_arrays(rows), np.array([0]), 1.0, 1.0
            )
            for number, rows in enumerate(self.rows.reshape(100, 6, 3))
        ]


@pytest.mark.parametrize("rows", [None, np.array([1, 4])])
def test_what_is_brought_here_does_not_hold_the_rest_of_its_file(rows):
    reader = OneBlock()
    partition = Partition("somewhere", 0, 0)
    looked = _read_rows_for_kernel(reader, (partition, {3: rows, 7: rows}))
    heads = [example.ground_set for example in _first_examples(reader, partition)]
    for ground_set in heads if rows is not None else (*looked, *heads):
        assert not np.shares_memory(ground_set.quality, reader.rows)
    some = np.arange(6) if rows is None else rows
    np.testing.assert_array_equal(looked[1].features()[some], reader.rows[42 + some])
