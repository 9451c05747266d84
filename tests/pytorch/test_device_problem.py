"""The objective on a device against that of NumPy and compiled code."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_cases import nothing_waits

import variegate as vg
from instances import KERNELS, ScaledLinear
from variegate.ground_set import GroundSetError
from variegate.learning.examples import check_examples
from variegate.learning.objective import LargeMarginLoss
from variegate.learning.parameters import InfeasibleError
from variegate.learning.problem import TrainingProblem
from variegate.torch.problem import DeviceProblem

CASES = [case for case in KERNELS if case.name != "user"]
LOW_RANK = {
    "linear": vg.Linear(),
    "nystroem": vg.Gaussian(3.0, approximation="nystroem", rank=20),
    "fourier": vg.MultipleKernel([2.0, 4.0], approximation="fourier", rank=8),
    "mixture": vg.Mixture(
        [vg.Linear(), vg.Gaussian(2.0, approximation="fourier", rank=10)]
    ),
    "kinds": vg.Kinds(6, epsilon=0.2),
    "mixture-of-kinds": vg.Mixture([vg.Kinds(5), vg.Linear()]),
}


def examples_of(sizes, features, seed=0, costs=False):
    rng = np.random.default_rng(seed)
    ground_sets = [
        vg.GroundSet(rng.standard_normal((n, 3)), features(rng, n)) for n in sizes
    ]
    subsets = [np.sort(rng.permutation(n)[: max(1, min(n // 4, 7))]) for n in sizes]
    both_costs = [None, None]
    if costs:
        both_costs = [[rng.uniform(0.5, 2.0, n) for n in sizes] for _ in range(2)]
    return check_examples(ground_sets, subsets, 2.0, *both_costs)


def eight(rng, n):
    return rng.standard_normal((n, 8))


def both(examples, kernel, device, lam=2.0, jitter=1e-6):
    kernel = kernel.fit([example.ground_set for example in examples])
    what = (examples, kernel, LargeMarginLoss(lam))
    options = {"l2": 0.1, "jitter": jitter}
    return (
        TrainingProblem(*what, **options),
        DeviceProblem(*what, device=device, **options),
    )


def a_point(problem, seed=1):
    rng = np.random.default_rng(seed)
    point = problem.space.center()
    parts = problem.space.unpack(point)
    parts["theta"][:] = 0.3 * rng.standard_normal(len(parts["theta"]))
    parts["intercept"][:] = -0.5
    parts["kernel"][:] = problem.kernel.domain.random(rng)
    return point


def check_alike(here, there, point, rtol=1e-9):
    value, gradient = here.value_and_gradient(point)
    other, other_gradient = there.value_and_gradient(point)
    assert other == pytest.approx(value, rel=rtol)
    scale = np.abs(gradient).max()
    np.testing.assert_allclose(other_gradient, gradient, atol=rtol * scale, rtol=1e-7)


@pytest.mark.parametrize("lam", [0.0, 2.0])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_kernel_has_the_same_objective(case, lam, device):
    # Of every class of sizes, some that are padded.
    sizes = [1, 2, 3, 5, 7, 7, 9, 12, 12, 17, 40, 70, 75]
    here, there = both(
        examples_of(sizes, case.features, costs=True), case.kernel, device, lam
    )
    assert there.space.size == here.space.size
    np.testing.assert_array_equal(there.coordinates.root, here.coordinates.root)
    point = a_point(here)
    check_alike(here, there, point)
    assert there.expected_f(point) == pytest.approx(here.expected_f(point), rel=1e-9)


@settings(max_examples=25, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 24), min_size=1, max_size=8),
    share=st.sampled_from([0.0, 0.2, 0.5, 1.0]),
    lam=st.sampled_from([0.0, 1.0, 4.0]),
    scale=st.sampled_from([0.1, 1.0, 30.0]),
    seed=st.integers(0, 1000),
)
def test_any_sizes_subsets_and_qualities(device, sizes, share, lam, scale, seed):
    rng = np.random.default_rng(seed)
    ground_sets = [
        vg.GroundSet(rng.standard_normal((n, 2)), rng.standard_normal((n, 3)))
        for n in sizes
    ]
    subsets = [rng.random(n) < share for n in sizes]  # all empty, or all that there is
    examples = check_examples(ground_sets, subsets, 2.0)
    kernel = vg.MultipleKernel([0.5, 2.0])
    here, there = both(examples, kernel, device, lam)
    point = a_point(here, seed)
    here.space.unpack(point)["theta"][:] *= scale
    check_alike(here, there, point)
    assert there.expected_f(point) == pytest.approx(here.expected_f(point), rel=1e-9)


@pytest.mark.parametrize("name", LOW_RANK)
def test_large_sets_of_low_rank(name, device):
    sizes = [1, 5, 160, 80, 170, 300, 160]
    here, there = both(examples_of(sizes, eight), LOW_RANK[name], device)
    point = a_point(here)
    check_alike(here, there, point)
    assert there.expected_f(point) == pytest.approx(here.expected_f(point), rel=1e-9)


@pytest.mark.parametrize("name", ["linear", "fourier", "kinds"])
def test_a_set_of_three_thousand_items(name, device):
    here, there = both(examples_of([3000], eight), LOW_RANK[name], device)
    check_alike(here, there, a_point(here))


def test_factors_of_no_weight_have_their_gradient(device):
    here, there = both(examples_of([200, 210], eight), LOW_RANK["fourier"], device)
    point = a_point(here)
    here.space.unpack(point)["kernel"][:] = [0.0, 0.25, 0.75]
    check_alike(here, there, point)


@pytest.mark.parametrize("name", ["fourier", "kinds"])
def test_what_is_too_much_at_once_is_taken_in_parts(name, device, monkeypatch):
    sizes = [6, 5, 8, 7, 6, 160, 161, 175, 160]
    examples = examples_of(sizes, eight)
    entries = {"cpu": 130, "cuda": 130}
    monkeypatch.setattr("variegate.torch.batches._ENTRIES", entries)
    here, there = both(examples, LOW_RANK[name], device)
    assert len(there._stacks) > 4
    seen = [e.position for stack in there._stacks for e in stack.batch.examples]
    assert sorted(seen) == list(range(len(sizes)))
    check_alike(here, there, a_point(here))


def test_without_an_intercept(device):
    examples = examples_of([5, 6, 30], eight)
    kernel = vg.MultipleKernel([1.0, 2.0])
    what = (examples, kernel, LargeMarginLoss())
    here = TrainingProblem(*what, fit_intercept=False)
    there = DeviceProblem(*what, device=device, fit_intercept=False)
    assert there.space.size == 3 + 3
    check_alike(here, there, a_point(here))


def test_a_loss_below_the_hinge_is_nothing(device):
    # Costs so small that the margin takes the loss below zero.
    rng = np.random.default_rng(0)
    ground_sets = [vg.GroundSet(rng.standard_normal((5, 2))) for _ in range(3)]
    costs = [np.full(5, 1e-9)] * 3
    examples = check_examples(ground_sets, [[0]] * 3, 1.0, costs, costs)
    here, there = both(examples, vg.MultipleKernel([1.0]), device)
    point = a_point(here)
    here.space.unpack(point)["theta"][:] = 0.0
    value, gradient = there.value_and_gradient(point)
    assert value == 0.0
    assert (gradient == 0.0).all()


def test_evaluations_do_not_wait_for_the_device(device):
    if device == "cpu":
        pytest.skip("only a GPU can be waited for")
    for kernel in (vg.MultipleKernel([1.0, 2.0]), vg.Kinds(4), vg.Metric(3)):
        _, there = both(examples_of([7, 7, 8, 300], eight), kernel, device)
        point = a_point(there)
        there.value_and_gradient(point)  # what is computed once
        at = there.space.unpack(there.send(point).requires_grad_())
        with nothing_waits(device):
            for stack in there._stacks:
                kernels, loss = stack.build_kernels(at), there.loss
                losses, _ = kernels.losses(stack.batch.targets, loss.lam, loss.hinge)
                losses.sum().backward()


# What is wrong with ground sets ---------------------------------------------------


def test_a_subset_of_probability_zero_is_named(device):
    rng = np.random.default_rng(0)
    ground_sets = [vg.GroundSet(rng.standard_normal((n, 2))) for n in (9, 4, 9, 6)]
    subsets = [[0], [0, 1], [0, 1, 2], [0]]
    examples = check_examples(ground_sets, subsets, 1.0)
    _, there = both(
        examples, vg.Mixture([vg.Linear(), vg.Linear()]), device, jitter=0.0
    )
    message = "ground set 2: its subset has probability zero.*Raise jitter .now 0."
    with pytest.raises(InfeasibleError, match=message):
        there.value_and_gradient(a_point(there))


def test_qualities_that_are_too_extreme_are_named(device):
    twins = np.ones((4, 1))
    ground_sets = [
        vg.GroundSet(np.eye(4)),
        vg.GroundSet(1e3 * np.eye(4), np.hstack([twins, twins])),
    ]
    examples = check_examples(ground_sets, [[0], [0]], 1.0)
    here, there = both(examples, vg.Gaussian(1.0), device, jitter=0.0)
    point = np.array([1.0, 1.0, 1.0, 1.0, 0.0])
    for problem in (here, there):
        with pytest.raises(InfeasibleError, match="1: L \\+ I is not positive"):
            problem.value_and_gradient(point)
    with pytest.raises(InfeasibleError, match="1: L \\+ I is not positive"):
        there.expected_f(point)


@pytest.mark.parametrize("n_items", [5, 400], ids=["matrix", "factors"])
def test_a_wanted_item_without_features_is_named(n_items, device):
    features = np.ones((n_items, 2))
    features[3] = 0.0
    ground_sets = [
        vg.GroundSet(np.ones((n_items, 1)), np.ones((n_items, 2))),
        vg.GroundSet(np.ones((n_items, 1)), features),
    ]
    examples = check_examples(ground_sets, [[0], [2, 3]], 1.0)
    message = "ground set 1: item 3 is in the subset, but its similarity to itself"
    with pytest.raises(GroundSetError, match=message):
        DeviceProblem(examples, vg.Linear(), LargeMarginLoss(), device=device)


@pytest.mark.parametrize(
    "kernel", [vg.Linear(), vg.MultipleKernel([1.0])], ids=["fixed", "weighted"]
)
def test_similarities_that_are_not_finite_are_named(kernel, device):
    sets = [vg.GroundSet(np.ones((3, 1)), scale * np.eye(3)) for scale in (1.0, 1e200)]
    examples = check_examples(sets, [[0], [0]], 1.0)
    message = "ground set 1: the similarity holds NaN or infinite values"
    with pytest.raises(GroundSetError, match=message):
        DeviceProblem(examples, kernel, LargeMarginLoss(), device=device)


def test_other_features_than_those_fitted_are_named(device):
    rng = np.random.default_rng(0)
    sets = [vg.GroundSet(np.ones((4, 1)), eight(rng, 4)[:, :p]) for p in (8, 8, 7)]
    examples = check_examples(sets, [[0]] * 3, 1.0)
    kernel = vg.Kinds(2).fit(sets[:2])
    message = "ground set 2: 7 similarity features, but the kernel was fitted with 8"
    with pytest.raises(GroundSetError, match=message):
        DeviceProblem(examples, kernel, LargeMarginLoss(), device=device)


def test_sets_may_have_features_of_their_own(device):
    rng = np.random.default_rng(0)
    sets = [vg.GroundSet(np.ones((4, 1)), eight(rng, 4)[:, :p]) for p in (8, 5, 7)]
    examples = check_examples(sets, [[0]] * 3, 1.0)
    for kernel in (vg.Gaussian(2.0), vg.MultipleKernel([1.0, 2.0])):
        here, there = both(examples, kernel, device)
        check_alike(here, there, a_point(here))


@pytest.mark.parametrize(
    "kernel",
    [ScaledLinear(8), vg.Mixture([vg.Linear(), ScaledLinear(8)])],
    ids=["alone", "in a mixture"],
)
def test_a_kernel_without_a_form_for_devices_is_refused(kernel, device):
    examples = examples_of([5], eight)
    with pytest.raises(ValueError, match="ScaledLinear has parameters and no form"):
        DeviceProblem(examples, kernel, LargeMarginLoss(), device=device)


def test_matrices_that_are_too_large_are_refused(device):
    n = 20_001
    ground_set = vg.GroundSet(np.ones((n, 1)), np.ones((n, 1)))
    examples = check_examples([ground_set], [[0]], 1.0)
    message = "ground set 0: its similarity would be a matrix of 20,001 x 20,001"
    with pytest.raises(GroundSetError, match=message):
        DeviceProblem(examples, vg.Gaussian(1.0), LargeMarginLoss(), device=device)


def test_a_device_with_too_little_memory_is_said(device, monkeypatch):
    def too_much(*args, **kwargs):
        raise torch.OutOfMemoryError("tried to allocate 100 GiB")

    dense = "variegate.torch.dense"
    monkeypatch.setattr(f"{dense}.can_use_fused_kernel", lambda X: False)
    monkeypatch.setattr(f"{dense}.plain_loss_terms", too_much)
    _, there = both(examples_of([5], eight), vg.Linear(), device)
    with pytest.raises(MemoryError, match=f"memory of '{device}' is not enough.*batch"):
        there.value_and_gradient(a_point(there))


class Banded(vg.FixedKernel):
    """A user's kernel without parameters."""

    def matrix(self, ground_set):
        n = len(ground_set)
        return np.eye(n) + 0.3 * (np.eye(n, k=1) + np.eye(n, k=-1))


class Louder(vg.Linear):
    """A kernel that is derived from one of the library's, but is another."""

    def matrix(self, ground_set):
        return 2.0 * super().matrix(ground_set)


@pytest.mark.parametrize("kernel", [Banded(), Louder()], ids=repr)
def test_kernels_of_the_users_own_without_parameters(kernel, device):
    here, there = both(examples_of([3, 5, 5, 90, 200], eight), kernel, device)
    check_alike(here, there, a_point(here))
