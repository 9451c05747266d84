"""The kernel for small sets agrees with the closed form that it stands for.

Without a GPU, Triton interprets it.
"""

import importlib.util

import numpy as np
import pytest
import torch

if importlib.util.find_spec("triton") is None:
    pytest.skip("needs Triton, which make test-torch installs", allow_module_level=True)

import variegate as vg
from variegate.learning.examples import check_examples
from variegate.learning.objective import LargeMarginLoss
from variegate.learning.problem import TrainingProblem
from variegate.torch import dense, fused
from variegate.torch.dense import plain_loss_terms
from variegate.torch.problem import DeviceProblem
from variegate.torch.targets import LossSettings, Targets

TOLERANCE = {torch.float64: 1e-11, torch.float32: 2e-3}


def batch(device, dtype, n_sets, n_items, seed, spread=1.0):
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    F = normal(n_sets, n_items, n_items + 3)
    S = F @ F.mT / n_items
    u = spread * normal(n_sets, n_items)
    wanted = torch.rand(n_sets, n_items, generator=generator) < 0.3
    cost = torch.rand(n_sets, n_items, generator=generator, dtype=torch.float64)
    return [
        each.to(device, dtype if each.is_floating_point() else None)
        for each in (S, u, wanted, cost)
    ]


def compare(X, u, targets, *, lam=1.0, hinge=False, gradient=True, jitter=0.0):
    settings = LossSettings(lam, hinge, jitter)
    ours = fused.fused_loss_terms(X, u, targets, settings, gradient=gradient)
    theirs = plain_loss_terms(X, u, targets, settings, gradient=gradient)
    assert torch.equal(ours.failed, theirs.failed)
    for mine, other in zip(ours, theirs, strict=True):
        assert (mine is None) == (other is None)
        if mine is not None:
            rtol = TOLERANCE[X.dtype]
            most = other[other.isfinite()].abs().max() if other.numel() else 0.0
            torch.testing.assert_close(
                mine, other, rtol=rtol, atol=rtol * float(most), equal_nan=True
            )
    return ours


def of(wanted, cost, mask=None):
    return Targets(
        wanted,
        cost.shape[1],
        false_positive=cost,
        false_negative=2.0 * cost,
        mask=mask,
        dtype=cost.dtype,
    )


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("n_items", [1, 2, 10, 17, 33, 64])
@pytest.mark.parametrize("with_quality", [True, False])
def test_loss_and_gradient(device, dtype, n_items, with_quality):
    S, u, wanted, cost = batch(device, dtype, 3, n_items, seed=n_items)
    if not with_quality:
        q = torch.exp(u)
        S, u = q[:, :, None] * S * q[:, None, :], None
    compare(S, u, of(wanted, cost))


@pytest.mark.parametrize(
    "setting",
    [
        {"lam": 0.0},
        {"lam": 2.5, "hinge": True},
        {"jitter": 1e-3},
        {"gradient": False},
        {"gradient": False, "lam": 0.0},
    ],
)
@pytest.mark.parametrize("n_items", [9, 40])
def test_settings(device, setting, n_items):
    S, u, wanted, cost = batch(device, torch.float64, 4, n_items, seed=5)
    compare(S, u, of(wanted, cost), **setting)


def test_hinge_makes_everything_zero(device):
    S, u, wanted, cost = batch(device, torch.float64, 3, 6, seed=1)
    u = torch.where(wanted, 12.0, -12.0).to(u)
    terms = compare(S, u, of(wanted, cost), hinge=True)
    assert (terms.value == 0.0).all()
    assert (terms.similarity_gradient == 0.0).all()


@pytest.mark.parametrize("n_items", [10, 40])
def test_item_numbers(device, n_items):
    S, u, _, cost = batch(device, torch.float64, 3, n_items, seed=2)
    numbers = torch.tensor([[3, -1, 0], [-1, -1, -1], [9, 1, 5]], device=device)
    compare(S, u, of(numbers, cost))
    nothing = numbers[:, :0]
    compare(S, u, of(nothing, cost))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32])
def test_item_numbers_of_any_type(device, dtype):
    S, u, _, cost = batch(device, torch.float64, 3, 9, seed=2)
    numbers = torch.tensor([[3, 0], [8, 1], [4, 120]], device=device)
    terms = compare(S, u, of(numbers.to(dtype), cost))
    assert terms.failed.tolist() == [0, 0, 3]


@pytest.mark.parametrize("shape", [(3, 1), (1, 9), (9,), ()])
def test_costs_that_are_shared(device, shape):
    S, u, wanted, _ = batch(device, torch.float64, 3, 9, seed=8)
    cost = torch.rand(shape, dtype=torch.float64, device=device)
    targets = Targets(wanted, 9, false_positive=cost, false_negative=2.0 * cost)
    compare(S, u, targets)


@pytest.mark.parametrize("n_items", [12, 35])
def test_padding_of_any_content(device, n_items):
    S, u, wanted, cost = batch(device, torch.float64, 3, n_items, seed=3)
    mask = torch.ones_like(wanted)
    mask[0, 4:7] = False
    mask[2, 1:] = False
    for each in (S.mT, S, u, cost):
        each[~mask] = torch.nan
    terms = compare(S, u, of(wanted & mask, cost, mask))
    assert (terms.quality_gradient[~mask] == 0.0).all()
    assert (terms.similarity_gradient[~mask] == 0.0).all()


def test_item_numbers_that_are_padding_or_none(device):
    S, u, _, cost = batch(device, torch.float64, 5, 9, seed=9)
    mask = torch.arange(9, device=device) < torch.tensor([[9], [4], [4], [9], [9]]).to(
        device
    )
    numbers = [[1, 8], [3, -1], [3, 7], [2, 2], [0, 9]]
    targets = of(torch.tensor(numbers, device=device), cost, mask)
    terms = compare(S, u, targets)
    assert terms.failed.tolist() == [0, 0, 3, 3, 3]


def test_qualities_of_hundreds(device):
    S, u, wanted, cost = batch(device, torch.float64, 6, 12, seed=4, spread=100.0)
    terms = compare(S, u, of(wanted, cost))
    assert terms.value.isfinite().all()
    assert terms.similarity_gradient.isfinite().all()


@pytest.mark.parametrize("n_items", [8, 40])
def test_failures_are_those_of_the_closed_form(device, n_items):
    S, u, wanted, cost = batch(device, torch.float64, 8, n_items, seed=6)
    wanted[:] = False
    wanted[:, :2] = True
    S[0, 1] = S[0, 0]  # an item twice, both wanted
    S[0, :, 1] = S[0, :, 0]
    S[1, 3, 3] = -1.0
    u[2, 0] = torch.nan
    S[3, 5, 6] = S[3, 6, 5] = torch.nan
    u[4, 5] = torch.nan  # of an item that is not wanted
    cost[5, 5] = torch.nan
    u[6, 5] = torch.inf
    terms = compare(S, u, of(wanted, cost))
    assert terms.failed.tolist() == [1, 2, 2, 2, 2, 2, 1, 0]


def test_what_lies_anyhow_in_memory(device):
    S, u, wanted, cost = batch(device, torch.float64, 2, 9, seed=7)
    spread = torch.zeros(2, 9, 18, dtype=S.dtype, device=device)
    spread[:, :, ::2] = S
    compare(spread[:, :, ::2], u.T.contiguous().T, of(wanted, cost))
    compare(
        S[:1].expand(4, 9, 9),
        u[:1].expand(4, 9),
        of(wanted[:1].expand(4, 9), cost[:1].expand(4, 9)),
    )


@pytest.mark.parametrize("lam", [0.0, 2.0])
def test_learning_goes_by_the_kernel(device, lam, monkeypatch):
    monkeypatch.setattr(dense, "_has_triton", lambda device_type: True)
    rng = np.random.default_rng(0)
    sizes = [1, 3, 5, 7, 7, 8, 17, 18, 70]
    ground_sets = [vg.GroundSet(rng.standard_normal((n, 3))) for n in sizes]
    subsets = [[0]] * len(sizes)
    examples = check_examples(ground_sets, subsets, 2.0)
    kernel = vg.MultipleKernel([1.0, 2.0]).fit(ground_sets)
    what = (examples, kernel, LargeMarginLoss(lam))
    here, there = TrainingProblem(*what), DeviceProblem(*what, device=device)
    point = here.space.center()
    value, gradient = here.value_and_gradient(point)
    found, slope = there.value_and_gradient(point)
    assert found == pytest.approx(value, rel=1e-11)
    np.testing.assert_allclose(slope, gradient, rtol=1e-9, atol=1e-10)
