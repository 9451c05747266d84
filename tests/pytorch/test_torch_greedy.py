"""Greedy choice in batches is that of the library for one kernel after another."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import variegate as vg
import variegate.torch as vt
from variegate.torch.greedy import (
    DenseResiduals,
    FactoredResiduals,
    RemainingBudget,
    choose_items,
)

torch.set_num_threads(1)


def random_batch(rng, n_sets, n_items, rank):
    """Kernels, features, log-qualities and masks, and the ensembles that they are."""
    F = rng.standard_normal((n_sets, n_items, rank)) / np.sqrt(rank)
    u = rng.normal(0.5, 1.0, (n_sets, n_items))
    mask = rng.random((n_sets, n_items)) < 0.8
    return F, u, mask


def ensemble(F, u, keep):
    return vg.LEnsemble.from_quality(F[keep] @ F[keep].T, u[keep])


def chosen(row):
    return [item for item in row.tolist() if item >= 0]


def kernels_of(F, device):
    """The same kernels in both forms."""
    F = torch.as_tensor(F, device=device)
    return {"matrix": F @ F.mT, "features": vt.LowRank(F)}


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(1, 12))
def test_item_by_item_as_the_library(device, seed, n_items, rank):
    rng = np.random.default_rng(seed)
    F, u, mask = random_batch(rng, 4, n_items, rank)
    u, mask = torch.as_tensor(u, device=device), torch.as_tensor(mask, device=device)
    for kernel in kernels_of(F, device).values():
        for k in [None, *range(n_items + 1)]:
            found = vt.LEnsembles(kernel, log_quality=u, mask=mask).greedy(k)
            for s in range(4):
                numbers = np.flatnonzero(mask[s].cpu())
                expected = ensemble(F[s], u[s].cpu().numpy(), numbers)
                size = None if k is None else min(k, len(numbers))
                indices = numbers[expected.decode("greedy", k=size).indices]
                assert sorted(chosen(found.items[s])) == indices.tolist()
                assert found.sizes[s] == len(indices)


def test_items_come_in_the_order_of_choice(device):
    F, _, _ = random_batch(np.random.default_rng(0), 3, 12, 20)
    for kernel in kernels_of(F, device).values():
        whole = vt.LEnsembles(kernel).greedy(6).items
        for k in range(1, 6):
            torch.testing.assert_close(
                vt.LEnsembles(kernel).greedy(k).items, whole[:, :k]
            )


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 9), st.sampled_from([None, 1, 2]))
def test_budgets_as_the_library(device, seed, n_items, k):
    rng = np.random.default_rng(seed)
    F, u, _ = random_batch(rng, 4, n_items, n_items + 2)
    costs = rng.integers(1, 6, (4, n_items)).astype(float)
    budget = np.sort(costs, axis=1)[:, :2].sum(axis=1) + rng.integers(0, 8, 4)
    for kernel in kernels_of(F, device).values():
        found = vt.LEnsembles(
            kernel, log_quality=torch.as_tensor(u, device=device)
        ).greedy(
            k,
            budget=torch.as_tensor(budget, device=device),
            costs=torch.as_tensor(costs, device=device),
        )
        for s in range(4):
            expected = ensemble(F[s], u[s], np.arange(n_items)).decode(
                "greedy", k=k, budget=budget[s], costs=costs[s]
            )
            assert sorted(chosen(found.items[s])) == expected.indices.tolist()


def test_a_budget_of_a_number_counts_items(device):
    L = 5.0 * torch.eye(6, dtype=torch.float64, device=device)
    assert chosen(vt.LEnsembles(L).greedy(budget=3).items) == [0, 1, 2]


def test_masked_items_are_never_looked_at(device):
    F, u, mask = random_batch(np.random.default_rng(1), 5, 10, 12)
    u, mask = torch.as_tensor(u, device=device), torch.as_tensor(mask, device=device)
    for kernel in kernels_of(F, device).values():
        clean = vt.LEnsembles(kernel, log_quality=u, mask=mask).greedy(5)
        spoilt_u = torch.where(mask, u, torch.nan)
        if isinstance(kernel, vt.LowRank):
            spoilt = torch.where(mask[:, :, None], kernel.features, torch.nan)
            spoilt = vt.LowRank(spoilt)
        else:
            both = mask[:, :, None] & mask[:, None, :]
            spoilt = torch.where(both, kernel, torch.nan)
        found = vt.LEnsembles(spoilt, log_quality=spoilt_u, mask=mask).greedy(5)
        torch.testing.assert_close(found.items, clean.items)


def test_one_kernel_serves_many_qualities(device):
    F, u, _ = random_batch(np.random.default_rng(2), 1, 10, 12)
    u = torch.as_tensor(np.stack([u[0], -u[0], 2 * u[0]]), device=device)
    for kernel in kernels_of(F[0], device).values():
        found = vt.LEnsembles(kernel, log_quality=u).greedy(4)
        assert found.items.shape == (3, 4)
        for s in range(3):
            alone = vt.LEnsembles(kernel, log_quality=u[s]).greedy(4)
            torch.testing.assert_close(found.items[s], alone.items)


def test_the_rank_ends_it(device):
    F = np.random.default_rng(3).standard_normal((2, 8, 3))
    for kernel in kernels_of(F, device).values():
        found = vt.LEnsembles(kernel).greedy(6)
        assert found.items.shape == (2, 6)
        assert found.sizes.tolist() == [3, 3]
        assert (found.items[:, 3:] == -1).all()


def test_qualities_beyond_what_can_be_exponentiated(device):
    F, u, _ = random_batch(np.random.default_rng(4), 3, 10, 12)
    u = torch.as_tensor(300.0 * u, device=device)
    for kernel in kernels_of(F, device).values():
        found = vt.LEnsembles(kernel, log_quality=u).greedy()
        for s in range(3):
            expected = ensemble(F[s], u[s].cpu().numpy(), np.arange(10))
            indices = expected.decode("greedy").indices
            assert sorted(chosen(found.items[s])) == indices.tolist()


def test_many_rounds_without_k(device):
    # More than the columns that there is room for at first.
    F, _, _ = random_batch(np.random.default_rng(5), 2, 60, 80)
    for kernel in kernels_of(3.0 * F, device).values():
        found = vt.LEnsembles(kernel).greedy()
        for s in range(2):
            expected = vg.LEnsemble.from_factor(3.0 * F[s]).decode("greedy").indices
            assert len(expected) > 33
            assert sorted(chosen(found.items[s])) == expected.tolist()


def test_single_precision_chooses_the_same(device):
    F, u, _ = random_batch(np.random.default_rng(6), 200, 20, 30)
    u = torch.as_tensor(u, device=device)
    for kernel in kernels_of(F, device).values():
        double = vt.LEnsembles(kernel, log_quality=u).greedy(8).items
        if isinstance(kernel, vt.LowRank):
            half = vt.LowRank(kernel.features.float())
        else:
            half = kernel.float()
        single = vt.LEnsembles(half, log_quality=u.float()).greedy(8).items
        # Gains that differ by less than rounding may change places.
        assert (double == single).all(dim=1).double().mean() > 0.98


def test_equal_items_go_by_number(device):
    L = torch.full((4, 4), 1.5, dtype=torch.float64, device=device)
    L = torch.block_diag(L, L)
    assert chosen(vt.LEnsembles(L).greedy().items) == [0, 4]


def test_subsets_as_indicators(device):
    items = torch.tensor([[2, 0, -1], [1, -1, -1]], device=device)
    subsets = vt.Subsets(items, (items >= 0).sum(dim=1))
    assert subsets.indicator(4).tolist() == [
        [True, False, True, False],
        [False, True, False, False],
    ]


@pytest.mark.parametrize("with_budget", [False, True])
def test_no_number_is_looked_at_in_the_rounds(with_budget):
    # Tensors of this device have no numbers: whoever asked for one would fail here, and
    # wait on a GPU.
    F = torch.zeros((3, 40, 50), device="meta")
    u, mask = (
        torch.zeros((3, 40), device="meta"),
        torch.ones((3, 40), device="meta") > 0,
    )
    for residuals in (
        DenseResiduals(F @ F.mT, u, mask, 10),
        FactoredResiduals(F, u, mask, 10),
    ):
        limits = torch.ones(3, device="meta")
        budget = (
            RemainingBudget(torch.ones_like(u), limits, mask, 10)
            if with_budget
            else None
        )
        assert choose_items(residuals, 10, budget=budget)[0].shape == (3, 10)


def test_half_precision_around_it_changes_nothing(device):
    F, _, _ = random_batch(np.random.default_rng(7), 300, 40, 20)
    for kernel in kernels_of(F.astype(np.float32), device).values():
        expected = vt.LEnsembles(kernel).greedy(15).items
        with torch.autocast(torch.device(device).type, dtype=torch.bfloat16):
            found = vt.LEnsembles(kernel).greedy(15).items
        assert torch.equal(found, expected)


def test_nothing_to_choose_from(device):
    empty = torch.zeros((0, 3, 3), device=device)
    assert vt.LEnsembles(empty).greedy(2).items.shape == (0, 2)
    assert vt.LEnsembles(torch.zeros((3, 3), device=device)).greedy().sizes == 0
    assert vt.LEnsembles(torch.zeros((0, 0), device=device)).greedy().sizes == 0


EYES = torch.eye(3).repeat(2, 1, 1)
OWN = {"log_quality", "mask"}  # of the kernel, not of the choice


@pytest.mark.parametrize(
    ("kernel", "options", "message"),
    [
        (np.eye(3), {}, "kernel must be a tensor of real numbers, or LowRank"),
        (torch.eye(3).long(), {}, "kernel must be a tensor of real numbers"),
        (torch.ones(3, 2), {}, r"kernel has shape \(3, 2\), expected \(N, N\)"),
        (vt.LowRank(torch.ones(3)), {}, r"expected \(N, D\) or \(B, N, D\)"),
        (EYES, {"k": 4}, "k must be between 0 and 3 items, got 4"),
        (EYES, {"k": 1.0}, "k must be a whole number"),
        (EYES, {"k": True}, "k must be a whole number"),
        (EYES, {"mask": torch.ones(3)}, "mask must be boolean"),
        (EYES, {"mask": torch.ones(2, 4) > 0}, r"mask has shape \(2, 4\)"),
        (EYES, {"log_quality": [1.0]}, "log_quality must be a tensor, got list"),
        (
            EYES,
            {"mask": torch.ones(3, device="meta") > 0},
            "mask is on meta, but the kernel on cpu",
        ),
        (EYES, {"log_quality": torch.ones(3, 3)}, "differ in the number of sets: 2, 3"),
        (EYES, {"costs": torch.ones(3)}, "costs were given without a budget"),
        (EYES, {"budget": "2"}, "budget must be a number or a tensor"),
        (EYES, {"budget": torch.ones(3)}, r"budget has shape \(3,\)"),
        (EYES, {"budget": -1.0}, "set 0: its budget must be above zero"),
        (
            EYES,
            {"budget": 2.0, "costs": torch.tensor([[1.0, 1, 1], [1, 0, 1]])},
            "set 1: its costs must be positive and finite",
        ),
        (
            EYES,
            {"budget": torch.tensor([4.0, 1.5]), "k": 2},
            "set 1: no 2 items fit its budget",
        ),
        (EYES * torch.tensor([1.0, -1.0])[:, None, None], {}, "set 1: its kernel"),
        (EYES * torch.tensor([torch.nan, 1])[:, None, None], {}, "set 0: .*not finite"),
        (EYES, {"log_quality": torch.tensor([0.0, torch.inf, 0.0])}, "not finite"),
        (torch.tensor([[1.0, 2.0], [2.0, 1.0]]), {"k": 2}, "semidefinite"),
    ],
)
def test_bad_input(kernel, options, message):
    given = {name: options[name] for name in OWN & options.keys()}
    choice = {name: options[name] for name in options.keys() - OWN}
    with pytest.raises(ValueError, match=message):
        vt.LEnsembles(kernel, **given).greedy(**choice)
