"""The loss on tensors against the NumPy path, finite differences and brute force."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_cases import (
    as_numbers,
    assert_close_by_set,
    large_margin_loss,
    leaves,
    numpy_loss,
    random_kernels,
    random_targets,
)

import variegate as vg
import variegate.torch as vt


def evaluate(device, kernel, targets, log_quality=None, **options):
    """Losses without reduction, and gradients in the kernel and the log-quality."""
    given = [kernel] if log_quality is None else [kernel, log_quality]
    tensors = leaves(device, *given)
    value = large_margin_loss(
        tensors[0],
        torch.tensor(targets, device=device),
        log_quality=None if log_quality is None else tensors[1],
        reduction="none",
        **options,
    )
    value.sum().backward()
    return value, *(tensor.grad for tensor in tensors)


@pytest.mark.parametrize("n_items", [1, 2, 3, 5, 8, 12, 20, 27, 33, 40])
def test_a_hundred_random_kernels_as_by_numpy(device, n_items):
    rng = np.random.default_rng(n_items)
    L, targets = random_kernels(rng, 100, n_items), random_targets(rng, 100, n_items)
    given = as_numbers(targets) if n_items % 2 else targets
    options = {
        "lam": float(rng.choice([0.0, 0.5, 2.0])),
        "omega": float(rng.uniform(0.2, 3.0)),
        "hinge": bool(rng.integers(2)),
    }
    value, gradient = evaluate(device, L, given, **options)
    expected = [
        vg.large_margin_loss(one, subset, **options)
        for one, subset in zip(L, targets, strict=True)
    ]
    assert_close_by_set(value, np.array([loss for loss, _ in expected]))
    assert_close_by_set(gradient, np.array([slope for _, slope in expected]))


@pytest.mark.parametrize("n_items", [100, 520])
def test_large_kernels_as_by_numpy(device, n_items):
    rng = np.random.default_rng(n_items)
    L = random_kernels(rng, 2, n_items) / n_items
    targets = np.arange(n_items) < np.array([[3], [30]])
    value, gradient = evaluate(device, L, targets)
    for position in range(2):
        expected = vg.large_margin_loss(L[position], targets[position])
        assert value[position].item() == pytest.approx(expected[0], rel=1e-10)
        assert_close_by_set(gradient[position][None], expected[1][None], 1e-9)


@pytest.mark.slow
def test_many_random_kernels_as_by_numpy(device):
    rng = np.random.default_rng(99)
    for _ in range(200):
        n_items = int(rng.integers(1, 120))
        L, targets = random_kernels(rng, 50, n_items), random_targets(rng, 50, n_items)
        u = rng.normal(size=(50, n_items))
        value, in_S, in_u = evaluate(device, L, targets, u, jitter=1e-3)
        expected = numpy_loss(L, u, targets, jitter=1e-3)
        assert_close_by_set(value, expected[0])
        assert_close_by_set(in_S, expected[1], 1e-9)
        assert_close_by_set(in_u, expected[2], 1e-9)


@pytest.mark.parametrize("n_items", [1, 4, 9, 17, 40])
def test_similarities_and_qualities_with_costs_as_by_numpy(device, n_items):
    rng = np.random.default_rng(n_items)
    S, targets = random_kernels(rng, 60, n_items), random_targets(rng, 60, n_items)
    u = 3.0 * rng.normal(size=(60, n_items))
    costs = rng.exponential(size=(2, 60, n_items))
    value, in_S, in_u = evaluate(
        device,
        S,
        targets,
        u,
        lam=1.7,
        jitter=0.01,
        false_positive=torch.tensor(costs[0], device=device),
        false_negative=torch.tensor(costs[1], device=device),
    )
    expected = numpy_loss(S, u, targets, lam=1.7, jitter=0.01, costs=costs)
    assert_close_by_set(value, expected[0])
    assert_close_by_set(in_S, expected[1])
    assert_close_by_set(in_u, expected[2])


def test_the_margin_is_the_mean_error_over_all_subsets(device):
    rng = np.random.default_rng(3)
    L = random_kernels(rng, 1, 5)[0]
    wanted = np.array([True, False, True, False, False])
    error = total = 0.0
    for chosen in itertools.product([False, True], repeat=5):
        chosen = np.array(chosen)
        weight = np.linalg.det(L[np.ix_(chosen, chosen)])
        total += weight
        error += weight * ((chosen & ~wanted).sum() + 2.0 * (wanted & ~chosen).sum())
    expected = np.log(total) - np.log(np.linalg.det(L[np.ix_(wanted, wanted)]))
    expected += 0.6 * np.log(error / total)
    value = vt.LargeMarginLoss(lam=0.6, omega=2.0, hinge=False)(
        vt.LEnsembles(torch.tensor(L, device=device)),
        torch.tensor(wanted, device=device),
    )
    assert value.item() == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("lam", [0.0, 0.7])
def test_gradients_against_finite_differences(device, lam):
    rng = np.random.default_rng(1)
    factor, u = leaves(device, rng.normal(size=(3, 4, 5)), rng.normal(size=(3, 4)))
    targets = torch.tensor(random_targets(rng, 3, 4), device=device)
    mask = torch.ones(3, 4, dtype=torch.bool, device=device)
    mask[1, 2] = False
    options = {"lam": lam, "omega": 2.0, "hinge": False, "jitter": 0.1}
    options |= {"mask": mask, "reduction": "none"}

    def by_similarity(factor, u):
        S = factor @ factor.mT
        return large_margin_loss(S, targets & mask, log_quality=u, **options)

    def by_kernel(factor):
        return large_margin_loss(4.0 * factor @ factor.mT, targets & mask, **options)

    def by_features(factor, u):
        low_rank = vt.LowRank(factor)
        return large_margin_loss(low_rank, targets & mask, log_quality=u, **options)

    assert torch.autograd.gradcheck(by_similarity, (factor, u))
    assert torch.autograd.gradcheck(by_kernel, (factor,))
    assert torch.autograd.gradcheck(by_features, (factor, u))


@settings(max_examples=40, deadline=None)
@given(data=st.data(), n_items=st.integers(1, 9), n_padded=st.integers(0, 4))
def test_order_and_padding_change_nothing(device, data, n_items, n_padded):
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    L, targets = random_kernels(rng, 3, n_items), random_targets(rng, 3, n_items)
    u = rng.normal(size=(3, n_items))
    width = n_items + n_padded
    places = np.array(data.draw(st.permutations(range(width))))[:n_items]
    with_padding = np.full((3, width, width), np.nan)
    with_padding[:, places[:, None], places] = L
    more, wanted = np.full((3, width), np.nan), np.zeros((3, width), dtype=bool)
    more[:, places], wanted[:, places] = u, targets
    mask = torch.zeros(3, width, dtype=torch.bool, device=device)
    mask[:, places] = True
    value, in_S, in_u = evaluate(device, L, targets, u)
    other, wide_S, wide_u = evaluate(device, with_padding, wanted, more, mask=mask)
    assert_close_by_set(other, value.detach().cpu().numpy(), 1e-9)
    wide_S, wide_u = wide_S.cpu().numpy(), wide_u.cpu().numpy()
    assert_close_by_set(wide_S[:, places[:, None], places], in_S.cpu().numpy(), 1e-8)
    assert_close_by_set(wide_u[:, places], in_u.cpu().numpy(), 1e-8)
    wide_S[:, places[:, None], places] = wide_u[:, places] = 0.0
    assert (wide_S == 0.0).all()
    assert (wide_u == 0.0).all()


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), n_items=st.integers(1, 12))
def test_quality_may_be_in_the_kernel(device, seed, n_items):
    rng = np.random.default_rng(seed)
    S, targets = random_kernels(rng, 2, n_items), random_targets(rng, 2, n_items)
    u = 2.0 * rng.normal(size=(2, n_items))
    L = np.exp(u)[:, :, None] * S * np.exp(u)[:, None, :]
    apart, in_S, _ = evaluate(device, S, targets, u)
    together, in_L = evaluate(device, L, targets)
    assert_close_by_set(together, apart.detach().cpu().numpy(), 1e-9)
    q = np.exp(u)
    in_L = q[:, :, None] * in_L.cpu().numpy() * q[:, None, :]
    assert_close_by_set(in_L, in_S.cpu().numpy(), 1e-8)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_log_qualities_of_hundreds(device, sign, dtype):
    rng = np.random.default_rng(5)
    S, targets = random_kernels(rng, 10, 6), random_targets(rng, 10, 6)
    u = 300.0 * np.sign(rng.normal(size=(10, 6)))
    u[0], u[1] = 300.0 * sign, -300.0 * sign
    tensors = leaves(device, S, u, dtype=dtype)
    wanted = torch.tensor(targets, device=device)
    for kernel in (tensors[0], vt.LowRank(torch.linalg.cholesky(tensors[0]))):
        value = vt.LargeMarginLoss(reduction="none")(
            vt.LEnsembles(kernel, log_quality=tensors[1], jitter=1e-3), wanted
        )
        value.sum().backward()
        assert torch.isfinite(value).all()
        assert all(torch.isfinite(tensor.grad).all() for tensor in tensors)
        if dtype == torch.float64:
            expected = numpy_loss(S, u, targets, jitter=1e-3)[0]
            assert_close_by_set(value, expected, 1e-9)


def test_any_layout_of_memory_will_do(device):
    rng = np.random.default_rng(6)
    L, targets = random_kernels(rng, 4, 7), random_targets(rng, 4, 7)
    value, gradient = evaluate(device, L, targets)
    (turned,) = leaves(device, np.ascontiguousarray(L.transpose(1, 2, 0)))
    wanted = torch.tensor(targets.T.copy(), device=device).T
    other = vt.LargeMarginLoss(reduction="none")(
        vt.LEnsembles(turned.permute(2, 0, 1)), wanted
    )
    other.sum().backward()
    assert_close_by_set(other, value.detach().cpu().numpy(), 1e-13)
    torch.testing.assert_close(turned.grad.permute(2, 0, 1), gradient)


@pytest.mark.parametrize("low_rank", [False, True])
def test_one_kernel_is_shared_by_all_sets(device, low_rank):
    rng = np.random.default_rng(7)
    shared, each = leaves(device, F := rng.normal(size=(6, 8)), np.stack([F, F, F]))
    targets = torch.tensor(random_targets(rng, 3, 6), device=device)
    u = torch.tensor(rng.normal(size=(3, 6)), device=device)
    first, second = (
        vt.LargeMarginLoss()(
            vt.LEnsembles(vt.LowRank(F) if low_rank else F @ F.mT, log_quality=u),
            targets,
        )
        for F in (shared, each)
    )
    (first + second).backward()
    torch.testing.assert_close(first, second)
    torch.testing.assert_close(shared.grad, each.grad.sum(dim=0))


def test_one_set_needs_no_batch_axis(device):
    L = torch.tensor([[2.0, 0.5], [0.5, 1.0]], device=device, dtype=torch.float64)
    single = vt.LargeMarginLoss(reduction="none")(
        vt.LEnsembles(L), torch.tensor([0], device=device)
    )
    assert single.shape == ()
    expected, _ = vg.large_margin_loss(L.cpu().numpy(), [0])
    assert single.item() == pytest.approx(expected)


@pytest.mark.parametrize("low_rank", [False, True])
@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (0, 0)])
def test_nothing_to_choose_from(device, shape, low_rank):
    n_sets, n_items = shape
    (u,) = leaves(device, np.zeros(shape))
    F = torch.zeros(*shape, 2, device=device, dtype=torch.float64, requires_grad=True)
    kernel = vt.LowRank(F) if low_rank else F @ F.mT
    targets = torch.zeros(shape, dtype=torch.bool, device=device)
    value = vt.LargeMarginLoss(reduction="none")(
        vt.LEnsembles(kernel, log_quality=u), targets
    )
    value.sum().backward()
    assert value.tolist() == [0.0] * n_sets
    assert F.grad.shape == (n_sets, n_items, 2)


@pytest.mark.parametrize("everything", [False, True])
def test_all_or_nothing_is_wanted(device, everything):
    rng = np.random.default_rng(8)
    L = random_kernels(rng, 5, 6)
    targets = np.full((5, 6), everything)
    value, gradient = evaluate(device, L, targets, lam=0.3)
    for position in range(5):
        expected = vg.large_margin_loss(L[position], targets[position], lam=0.3)
        assert value[position].item() == pytest.approx(expected[0], rel=1e-10)
        assert_close_by_set(gradient[position][None], expected[1][None])


def test_reductions(device):
    rng = np.random.default_rng(9)
    L = torch.tensor(random_kernels(rng, 3, 4), device=device)
    targets = torch.tensor(random_targets(rng, 3, 4), device=device)
    each = vt.LargeMarginLoss(reduction="none")(vt.LEnsembles(L), targets)
    total = vt.LargeMarginLoss(reduction="sum")(vt.LEnsembles(L), targets)
    mean = vt.LargeMarginLoss()(vt.LEnsembles(L), targets)
    assert each.shape == (3,)
    assert total.item() == pytest.approx(each.sum().item())
    assert mean.item() == pytest.approx(each.mean().item())
