"""What is learned does not depend on the units of the quality features."""

import numpy as np
import pytest

import variegate as vg
from variegate.solvers import MiniBatch

SCALES = [1e-150, 1e-6, 0.3, 7.0, 1e6, 1e150]


def rescaled(ground_sets, scale):
    return [
        vg.GroundSet(scale * gs.quality, gs.similarity, gs.costs, gs.items)
        for gs in ground_sets
    ]


@pytest.fixture(scope="module")
def data():
    return vg.datasets.make_synthetic(n_sets=40, random_state=0)


@pytest.fixture(scope="module")
def learned(data):
    return vg.LargeMarginDPP(kernel=vg.Linear(), decoder="greedy").fit(
        data.ground_sets, data.subsets
    )


@pytest.mark.parametrize("scale", SCALES)
def test_lbfgs_learns_the_same_in_any_unit(scale, data, learned):
    ground_sets = rescaled(data.ground_sets, scale)
    model = vg.LargeMarginDPP(kernel=vg.Linear(), decoder="greedy")
    model.fit(ground_sets, data.subsets)
    np.testing.assert_allclose(
        model.solver_result_.objective, learned.solver_result_.objective, rtol=1e-6
    )
    np.testing.assert_allclose(model.theta_ * scale, learned.theta_, atol=2e-3)


@pytest.mark.parametrize("scale", SCALES)
def test_columns_in_different_units(scale, data, learned):
    units = np.array([scale, 1.0, 1.0 / scale, 1.0, scale])
    model = vg.LargeMarginDPP(kernel=vg.Linear(), decoder="greedy")
    model.fit(rescaled(data.ground_sets, units), data.subsets)
    np.testing.assert_allclose(model.theta_ * units, learned.theta_, atol=2e-3)


@pytest.mark.parametrize("scale", [2.0**-20, 2.0**20, 2.0**-400])
def test_steps_of_adam_are_the_same_in_any_unit(scale, data):
    # Powers of two, so that nothing is rounded and the numbers are equal.
    def fit(ground_sets):
        solver = MiniBatch(batch_size=10, n_epochs=3)
        model = vg.LargeMarginDPP(kernel=vg.Linear(), solver=solver, random_state=0)
        return model.fit(ground_sets, data.subsets)

    one, other = fit(data.ground_sets), fit(rescaled(data.ground_sets, scale))
    np.testing.assert_allclose(other.theta_ * scale, one.theta_, rtol=1e-9)


def test_partial_fit_keeps_the_scale_of_its_first_batch(data):
    first, second = data.ground_sets[:20], rescaled(data.ground_sets[20:], 64.0)
    model = vg.LargeMarginDPP(kernel=vg.Linear())
    model.partial_fit(first, data.subsets[:20], n_steps=50)
    before = model.theta_
    model.partial_fit(second, data.subsets[20:])
    # One step of Adam, averaged, is short in the coordinates of the first batch.
    assert np.abs(model.theta_ - before).max() < 0.1


# The mean of many times 0.1 is not 0.1; the last column is constant but for rounding.
@pytest.mark.parametrize(
    "constant", [1.0, 0.1, np.array([0.1, np.nextafter(0.1, 1.0)])], ids=str
)
def test_a_constant_feature_changes_nothing(constant, data):
    def with_constant(ground_set):
        column = np.resize(constant, (len(ground_set), 1))
        quality = np.hstack([ground_set.quality, column])
        return vg.GroundSet(quality, ground_set.similarity)

    ground_sets = list(map(with_constant, data.ground_sets))
    model = vg.LargeMarginDPP(kernel=vg.Linear()).fit(ground_sets, data.subsets)
    plain = vg.LargeMarginDPP(kernel=vg.Linear()).fit(data.ground_sets, data.subsets)
    assert model.history_[-1].objective == pytest.approx(
        plain.history_[-1].objective, rel=1e-9
    )
    np.testing.assert_allclose(model.theta_[:-1], plain.theta_, atol=1e-4)


def test_lbfgs_needs_no_more_iterations_for_correlated_features(data, learned):
    rng = np.random.default_rng(0)
    left, _, right = np.linalg.svd(rng.normal(size=(5, 5)))
    mix = left * np.geomspace(1.0, 0.05, 5) @ right
    ground_sets = [
        vg.GroundSet(gs.quality @ mix, gs.quality, gs.costs, gs.items)
        for gs in data.ground_sets
    ]
    model = vg.LargeMarginDPP(kernel=vg.Linear(), decoder="greedy")
    model.fit(ground_sets, data.subsets)
    np.testing.assert_allclose(mix @ model.theta_, learned.theta_, atol=2e-3)
    n_iterations = learned.solver_result_.n_iterations
    assert model.solver_result_.n_iterations <= 1.2 * n_iterations
