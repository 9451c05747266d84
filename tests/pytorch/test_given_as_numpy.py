"""Learning beside given items on a device against that of NumPy and compiled code."""

import numpy as np
import pytest
from neural_cases import ragged, small
from test_device_problem import (
    CASES,
    LOW_RANK,
    a_point,
    both,
    check_alike,
    eight,
    examples_of,
)

import variegate as vg
from variegate.ground_set import GroundSetError
from variegate.learning.examples import check_examples
from variegate.learning.objective import LargeMarginLoss
from variegate.learning.parameters import InfeasibleError
from variegate.torch.problem import DeviceProblem


def with_given(examples, seed=7):
    """The examples with none to all of the items given that are not wanted."""
    rng, found = np.random.default_rng(seed), []
    for example in examples:
        old = example.ground_set
        others = rng.permutation(np.setdiff1d(np.arange(len(old)), example.members))
        most = min(len(others), len(old) - 1, 40)
        given = others[: rng.integers(most + 1)]
        new = vg.GroundSet(old.quality, old.similarity, given=given)
        found.append(example._replace(ground_set=new))
    return found


@pytest.mark.parametrize("lam", [0.0, 2.0])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_kernel_has_the_same_objective(case, lam, device):
    sizes = [1, 2, 3, 5, 7, 7, 9, 12, 12, 17, 40, 70, 75]
    examples = with_given(examples_of(sizes, case.features, costs=True))
    here, there = both(examples, case.kernel, device, lam)
    np.testing.assert_array_equal(there.coordinates.root, here.coordinates.root)
    point = a_point(here)
    check_alike(here, there, point)
    assert there.expected_f(point) == pytest.approx(here.expected_f(point), rel=1e-9)


@pytest.mark.parametrize("name", LOW_RANK)
def test_large_sets_of_low_rank(name, device):
    sizes = [1, 5, 160, 80, 170, 300, 160]
    examples = with_given(examples_of(sizes, eight))
    here, there = both(examples, LOW_RANK[name], device)
    point = a_point(here)
    check_alike(here, there, point, rtol=1e-8)
    assert there.expected_f(point) == pytest.approx(here.expected_f(point), rel=1e-8)


@pytest.mark.parametrize("scale", [30.0, 300.0])
def test_extreme_qualities(scale, device):
    examples = with_given(examples_of([1, 2, 5, 9, 9, 20, 40], eight))
    here, there = both(examples, vg.MultipleKernel([0.5, 2.0]), device)
    point = a_point(here)
    here.space.unpack(point)["theta"][:] *= scale
    check_alike(here, there, point)


@pytest.mark.parametrize("n_items", [4, 200], ids=["matrix", "factors"])
def test_copies_among_given_items_have_the_same_message(n_items, device):
    features = np.random.default_rng(0).standard_normal((n_items, 6))
    features[1] = features[0]
    ground_set = vg.GroundSet(np.ones((n_items, 1)), features, given=[0, 1])
    examples = check_examples([ground_set], [[3]], 1.0)
    kernel = vg.MultipleKernel([2.0], linear=True)
    here, there = both(examples, kernel, device, jitter=0.0)
    messages = []
    for problem in (here, there):
        with pytest.raises(InfeasibleError, match="given items 0 and 1") as error:
            problem.value_and_gradient(a_point(problem))
        messages.append(str(error.value))
    assert messages[0] == messages[1]


def test_a_given_item_without_features_is_named(device):
    features = np.ones((5, 2))
    features[3] = 0.0
    ground_set = vg.GroundSet(np.ones((5, 1)), features, given=[3])
    examples = check_examples([ground_set], [[2]], 1.0)
    with pytest.raises(GroundSetError, match="ground set 0: item 3 is given, but its"):
        DeviceProblem(examples, vg.Linear(), LargeMarginLoss(), device=device)


def test_the_estimator_learns_the_same_on_a_device(device):
    examples = with_given(examples_of([6, 7, 9, 12, 15] * 4, eight))
    ground_sets = [example.ground_set for example in examples]
    subsets = [example.members for example in examples]
    here, there = (
        vg.LargeMarginDPP(
            kernel=vg.MultipleKernel([2.0, 5.0]), decoder="greedy", device=where
        ).fit(ground_sets, subsets)
        for where in (None, device)
    )
    np.testing.assert_allclose(there.theta_, here.theta_, rtol=1e-3, atol=1e-4)
    for one, other in zip(
        here.predict(ground_sets), there.predict(ground_sets), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_networks_never_choose_given_items(device):
    ground_sets, subsets = ragged()
    examples = with_given(check_examples(ground_sets, subsets, 1.0))
    ground_sets = [example.ground_set for example in examples]
    model = small(device).fit(ground_sets, subsets)
    chosen = model.predict(ground_sets)
    one_each = model.predict(ground_sets, k=1, order="importance")
    for ground_set, first, second in zip(ground_sets, chosen, one_each, strict=True):
        assert not set(first.tolist()) & set(ground_set.given.tolist())
        assert len(second) == 1
        assert second[0] in ground_set.candidates
        greedy = model.ensemble(ground_set).decode("greedy").indices
        np.testing.assert_array_equal(first, ground_set.candidates[greedy])
    assert 0.0 < model.score(ground_sets, subsets) <= 1.0
