"""Learning beside given items on a device, against sums over all subsets."""

import numpy as np
import pytest
import torch
from given_cases import brute_loss, log_probabilities, near_copies, random_given
from neural_cases import assert_same_weights, ragged, small
from torch_cases import nothing_waits, random_targets

import variegate as vg
from reference import central_differences
from variegate.ground_set import GroundSetError
from variegate.learning.examples import check_examples
from variegate.learning.objective import LargeMarginLoss
from variegate.learning.parameters import InfeasibleError
from variegate.linalg.determinants import with_jitter
from variegate.torch.neural.networks import Items
from variegate.torch.neural.training import Training
from variegate.torch.problem import DeviceProblem

OMEGA, JITTER = 2.0, 1e-5


def examples_of(sizes, seed=0, n_copies=2, rank=None):
    """Unit features, the first ones near copies, and all numbers of given items."""
    rng = np.random.default_rng(seed)
    ground_sets, subsets = [], []
    for n in sizes:
        features = near_copies(rng, 1, n, min(n, n_copies), step=0.1)[0]
        is_given = random_given(rng, 1, n)[0]
        subset = random_targets(rng, 1, n)[0] & ~is_given
        quality, features = rng.standard_normal((n, 3)), features[:, :rank]
        ground_sets.append(vg.GroundSet(quality, features, given=is_given))
        subsets.append(np.flatnonzero(subset)[: rank and rank // 2])
    return check_examples(ground_sets, subsets, OMEGA)


def device_problem(examples, kernel, device, lam=1.5, **options):
    kernel = kernel.fit([example.ground_set for example in examples])
    loss = LargeMarginLoss(lam, hinge=False)
    options = {"jitter": JITTER} | options
    return DeviceProblem(examples, kernel, loss, device=device, **options)


def a_point(problem, scale=1.0):
    point = problem.space.center()
    parts = problem.space.unpack(point)
    rng = np.random.default_rng(3)
    parts["theta"][:] = scale * rng.standard_normal(len(parts["theta"]))
    parts["intercept"][:] = -0.5
    return point


def sets_at(problem, examples, point):
    """The similarity, log-qualities and given items of every set, by NumPy."""
    parts = problem.space.unpack(point)
    for example in examples:
        ground_set = example.ground_set
        S = problem.kernel.value(problem.kernel.prepare(ground_set), parts["kernel"])
        rows = ground_set.quality - problem.coordinates.center
        is_given = np.isin(np.arange(len(ground_set)), ground_set.given)
        yield with_jitter(S, problem.jitter), rows @ parts["theta"] - 0.5, is_given


@pytest.mark.parametrize("scale", [1.0, 30.0])
@pytest.mark.parametrize("lam", [0.0, 1.5])
@pytest.mark.parametrize(
    "kernel", [vg.Gaussian(1.5), vg.Linear(), vg.MultipleKernel([0.8, 3.0])], ids=repr
)
def test_the_objective_is_that_of_all_subsets(kernel, lam, scale, device):
    examples = examples_of([1, 2, 3, 4, 5, 6, 7, 8] * 2)
    problem = device_problem(examples, kernel, device, lam)
    point = a_point(problem, scale)

    def objective(point):
        losses = [
            brute_loss(
                *parts, np.isin(np.arange(len(parts[1])), example.members), lam, 2
            )
            for parts, example in zip(
                sets_at(problem, examples, point), examples, strict=True
            )
        ]
        parts = problem.space.unpack(point)
        return np.mean(losses) + kernel.penalty_and_gradient(parts["kernel"])[0]

    value, gradient = problem.value_and_gradient(point)
    assert value == pytest.approx(objective(point), rel=1e-8)
    own = problem.space.unpack(np.arange(len(point)))["theta"]
    expected = central_differences(objective, point)[own]
    size = np.abs(expected).max()
    np.testing.assert_allclose(gradient[own], expected, atol=1e-6 * size)


def test_expected_f_scores_do_not_count_given_items(device):
    examples = examples_of([3, 5, 6, 8])
    problem = device_problem(examples, vg.Gaussian(1.5), device)
    point, scores = a_point(problem), []
    for parts, example in zip(sets_at(problem, examples, point), examples, strict=True):
        subsets, log_p = log_probabilities(*parts)
        included = np.exp(log_p) @ subsets
        total = included.sum() + len(example.members)
        scores.append(2.0 * included[example.members].sum() / total)
    assert problem.expected_f(point) == pytest.approx(np.mean(scores), rel=1e-9)


class AsMatrix(vg.FixedKernel):
    """The linear kernel, for which there is no form of low rank."""

    def matrix(self, ground_set):
        return ground_set.similarity @ ground_set.similarity.T


def test_large_sets_of_low_rank_as_by_matrices(device):
    examples = examples_of([160, 300, 161, 5], rank=8)
    as_rows = device_problem(examples, vg.Linear(), device)
    as_matrix = device_problem(examples, AsMatrix(), device)
    point = a_point(as_rows, 0.3)
    value, gradient = as_rows.value_and_gradient(point)
    expected, slope = as_matrix.value_and_gradient(point)
    assert value == pytest.approx(expected, rel=1e-7)
    np.testing.assert_allclose(gradient, slope, atol=1e-7 * np.abs(slope).max())
    other = as_matrix.expected_f(point)
    assert as_rows.expected_f(point) == pytest.approx(other, rel=1e-7)


@pytest.mark.parametrize("n_items", [4, 200], ids=["matrix", "factors"])
def test_copies_among_given_items_are_named(n_items, device):
    features = np.random.default_rng(0).standard_normal((n_items, 6))
    features[1] = features[0]
    ground_sets = [
        vg.GroundSet(np.ones((n_items, 1)), features, given=items)
        for items in ([0, 2], [0, 1])
    ]
    examples = check_examples(ground_sets, [[3]] * 2, 1.0)
    problem = device_problem(examples, vg.Linear(), device)
    assert np.isfinite(problem.value_and_gradient(a_point(problem))[0])
    problem = device_problem(examples, vg.Linear(), device, jitter=0.0)
    if n_items == 4:
        with pytest.raises(InfeasibleError, match="ground set 1: its subset has prob"):
            problem.value_and_gradient(a_point(problem))
    else:  # without a ridge there is no form of low rank for given items
        with pytest.raises(InfeasibleError, match="ground set 0: L \\+ I is not posit"):
            problem.value_and_gradient(a_point(problem))


@pytest.mark.parametrize("n_items", [5, 400], ids=["matrix", "factors"])
def test_a_given_item_without_features_is_named(n_items, device):
    features = np.ones((n_items, 2))
    features[3] = 0.0
    ground_set = vg.GroundSet(np.ones((n_items, 1)), features, given=[3])
    examples = check_examples([ground_set], [[2]], 1.0)
    with pytest.raises(GroundSetError, match="ground set 0: item 3 is "):
        device_problem(examples, vg.Linear(), device)


# Networks -------------------------------------------------------------------------


def with_given_items(ground_sets, subsets, replaced=None):
    """Ground sets with given items that are not wanted, and perhaps other qualities."""
    rng, found = np.random.default_rng(5), []
    for ground_set, subset in zip(ground_sets, subsets, strict=True):
        others = np.setdiff1d(np.arange(len(ground_set)), subset)
        given = others[: rng.integers(len(others) + 1)]
        quality = ground_set.quality.copy()
        if replaced is not None:
            quality[given] = replaced
        found.append(vg.GroundSet(quality, ground_set.similarity, given=given))
    assert sum(len(each.given) for each in found) > len(found)
    return found


@pytest.fixture(scope="module")
def data():
    ground_sets, subsets = ragged()
    return with_given_items(ground_sets, subsets), subsets


@pytest.fixture(scope="module")
def fitted(data, device):
    return small(device, max_epochs=6).fit(*data)


@torch.no_grad()
def network_output(model, ground_set):
    """The similarity, with jitter, and the log-qualities of a network."""
    (example,) = check_examples([ground_set], [[]], 1.0)
    items = Items([example], model.network_)
    u, S = (
        each[0].cpu().numpy() for each in model.network_(*items.batch(np.array([0])))
    )
    return with_jitter(S, model.jitter), u


def test_losses_and_scores_of_networks_are_those_of_all_subsets(fitted, data):
    items = Items(check_examples(*data, fitted.omega), fitted.network_)
    training = Training(fitted.network_, items, None, fitted, 0)
    losses, scores = [], []
    for ground_set, subset in zip(*data, strict=True):
        S, u = network_output(fitted, ground_set)
        is_given = np.isin(np.arange(len(u)), ground_set.given)
        wanted = np.isin(np.arange(len(u)), subset)
        losses.append(max(brute_loss(S, u, is_given, wanted, 1.0, 1.0), 0.0))
        subsets, log_p = log_probabilities(S, u, is_given)
        included = np.exp(log_p) @ subsets
        total = included.sum() + len(subset)
        scores.append(2.0 * included[subset].sum() / total)
        ensemble = fitted.ensemble(ground_set)
        np.testing.assert_array_equal(ensemble.items, ground_set.candidates)
        expected = included[ground_set.candidates]
        np.testing.assert_allclose(ensemble.marginals(), expected, atol=1e-6)
    loss, score = training._evaluate(items)
    assert loss == pytest.approx(np.mean(losses), rel=1e-5)
    assert score == pytest.approx(np.mean(scores), rel=1e-5)


def test_the_quality_of_given_items_does_not_change_networks(fitted, data, device):
    ground_sets, subsets = ragged()
    changed = with_given_items(ground_sets, subsets, replaced=50.0)
    again = small(device, max_epochs=6).fit(changed, subsets)
    assert_same_weights(fitted, again)
    for one, other in zip(data[0], changed, strict=True):
        np.testing.assert_array_equal(
            fitted.ensemble(one).marginals(), again.ensemble(other).marginals()
        )


def test_networks_learn_from_items_that_are_given(fitted):
    _, first, *_, last = fitted.history_
    assert last.training < first.training


def test_steps_of_networks_do_not_wait_for_the_device(fitted, data, device):
    if device == "cpu":
        pytest.skip("only a GPU can be waited for")
    items = Items(check_examples(*data, fitted.omega), fitted.network_)
    training = Training(fitted.network_, items, None, fitted, 0)
    numbers = np.arange(6)
    training._compute_losses(items, numbers)  # what is compiled once
    with nothing_waits(device):
        *_, losses = training._compute_losses(items, numbers)
        losses.sum().backward()
