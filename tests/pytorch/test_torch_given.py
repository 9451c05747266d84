"""Probabilities and losses beside given items, against sums over all subsets."""

import numpy as np
import pytest
import torch
from given_cases import (
    JITTER,
    brute_loss,
    forms,
    log_probabilities,
    near_copies,
    random_given,
    with_ridge,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_cases import (
    as_numbers,
    assert_close_by_set,
    large_margin_loss,
    leaves,
    random_targets,
)

import variegate.torch as vt


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6), n_items=st.integers(1, 8), n_copies=st.integers(0, 5)
)
def test_probabilities_are_those_of_all_subsets(device, seed, n_items, n_copies):
    rng = np.random.default_rng(seed)
    F = near_copies(rng, 3, n_items, min(n_copies, n_items))
    u, is_given = rng.normal(size=(3, n_items)), random_given(rng, 3, n_items)
    S, flags = with_ridge(F), torch.tensor(is_given, device=device)
    picked = random_targets(rng, 3, n_items) & ~is_given
    for kernel, options in forms(F, u, device):
        beside = vt.LEnsembles(kernel, jitter=JITTER, given=flags, **options)
        by_mask = beside.log_prob(torch.tensor(picked, device=device))
        by_number = beside.log_prob(torch.tensor(as_numbers(picked), device=device))
        marginals, size = beside.marginals(), beside.expected_size()
        normalizer = beside.log_normalizer()
        for s in range(3):
            subsets, log_p = log_probabilities(S[s], u[s], is_given[s])
            own = log_p[(subsets == picked[s]).all(axis=1)][0]
            expected = np.exp(log_p) @ subsets
            assert by_mask[s].item() == pytest.approx(own, rel=1e-7, abs=1e-7)
            assert by_number[s].item() == pytest.approx(own, rel=1e-7, abs=1e-7)
            empty = -log_p[~subsets.any(axis=1)][0]
            assert normalizer[s].item() == pytest.approx(empty, rel=1e-7, abs=1e-7)
            np.testing.assert_allclose(marginals[s].cpu(), expected, atol=1e-7)
            assert size[s].item() == pytest.approx(expected.sum(), rel=1e-6, abs=1e-7)
            assert (marginals[s].cpu().numpy()[is_given[s]] == 0.0).all()


@pytest.mark.parametrize("scale", [1.0, 20.0, 300.0])
@pytest.mark.parametrize("lam", [0.0, 1.5])
def test_losses_are_sums_over_all_subsets(device, lam, scale):
    rng = np.random.default_rng(int(scale))
    for n_items in range(1, 9):
        F = near_copies(rng, 8, n_items, min(n_items, 3), step=0.3)
        u = scale * rng.uniform(-1.0, 1.0, size=(8, n_items))
        is_given = random_given(rng, 8, n_items)
        is_given[0], is_given[1] = False, np.arange(n_items) > 0  # none; all but one
        wanted = random_targets(rng, 8, n_items) & ~is_given
        expected = [
            brute_loss(*each, lam, 2.0)
            for each in zip(with_ridge(F), u, is_given, wanted, strict=True)
        ]
        kernels = forms(F, u, device)
        for kernel, options in kernels if scale == 1.0 else kernels[:2]:
            found = large_margin_loss(
                kernel,
                torch.tensor(wanted, device=device),
                lam=lam,
                omega=2.0,
                hinge=False,
                reduction="none",
                jitter=JITTER,
                given=torch.tensor(is_given, device=device),
                **options,
            )
            np.testing.assert_allclose(found.cpu(), expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("value", [0.0, 400.0, -400.0, np.inf, np.nan])
@pytest.mark.parametrize("low_rank", [False, True])
def test_the_quality_of_given_items_has_no_effect(device, low_rank, value):
    rng = np.random.default_rng(3)
    F, u = near_copies(rng, 4, 6, 3, step=0.3), rng.normal(size=(4, 6))
    flags = torch.tensor(random_given(rng, 4, 6), device=device)
    wanted = torch.tensor(random_targets(rng, 4, 6), device=device) & ~flags

    def evaluate(u):
        features, u = leaves(device, F, u)
        kernel = vt.LowRank(features) if low_rank else features @ features.mT
        ensembles = vt.LEnsembles(kernel, log_quality=u, jitter=1e-3, given=flags)
        loss = vt.LargeMarginLoss(omega=2.0)(ensembles, wanted)
        (loss + (ensembles.marginals() ** 2).sum()).backward()
        assert (u.grad[flags] == 0.0).all()
        chosen = vt.LEnsembles(kernel, log_quality=u, given=flags).greedy()
        return loss, features.grad, u.grad, chosen.items

    changed = np.where(flags.cpu().numpy(), value, u)
    for found, expected in zip(evaluate(changed), evaluate(u), strict=True):
        assert torch.equal(found, expected)


@pytest.mark.parametrize("lam", [0.0, 0.7])
def test_gradients_against_finite_differences(device, lam):
    rng = np.random.default_rng(1)
    F, u = leaves(device, rng.normal(size=(4, 5, 3)), rng.normal(size=(4, 5)))
    flags = torch.tensor(random_given(rng, 4, 5), device=device)
    flags[0, :4], flags[0, 4] = True, False
    mask = torch.ones(4, 5, dtype=torch.bool, device=device)
    mask[1, 2] = False
    wanted = torch.tensor(random_targets(rng, 4, 5), device=device) & ~flags & mask
    masks = {"given": flags, "mask": mask, "jitter": 0.1}

    def loss_of(kernel, **more):
        options = {"lam": lam, "omega": 2.0, "hinge": False, "reduction": "none"}
        return large_margin_loss(kernel, wanted, **options, **masks, **more)

    def all_of(kernel, **more):
        ensembles = vt.LEnsembles(kernel, **masks, **more)
        return (
            loss_of(kernel, **more),
            ensembles.marginals(),
            ensembles.log_prob(wanted),
            ensembles.log_normalizer(),
        )

    for call in (
        lambda F, u: all_of(F @ F.mT, log_quality=u),
        lambda F, u: all_of(vt.LowRank(F), log_quality=u),
        lambda F, u: all_of(4.0 * F @ F.mT * torch.exp(u).mean()),
    ):
        assert torch.autograd.gradcheck(call, (F, u))


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), n_padded=st.integers(0, 3))
def test_order_and_padding_change_nothing(device, seed, n_padded):
    rng = np.random.default_rng(seed)
    F, u = near_copies(rng, 3, 6, 2, step=0.3), rng.normal(size=(3, 6))
    is_given = random_given(rng, 3, 6)
    wanted = random_targets(rng, 3, 6) & ~is_given
    width = 6 + n_padded
    places = rng.permutation(width)[:6]
    wide_F, wide_u = np.full((3, width, 8), np.nan), np.full((3, width), np.nan)
    wide_F[:, places], wide_u[:, places] = F, u
    flags = np.ones((3, width), dtype=bool)  # at padding, they count for nothing
    mask, targets = ~flags, ~flags
    mask[:, places], flags[:, places], targets[:, places] = True, is_given, wanted

    def evaluate(F, u, wanted, **masks):
        masks = {
            name: torch.tensor(each, device=device) for name, each in masks.items()
        }
        wanted = torch.tensor(wanted, device=device)
        found = []
        for kernel, options in forms(F, u, device):
            ensembles = vt.LEnsembles(kernel, jitter=0.01, **options, **masks)
            loss = vt.LargeMarginLoss(hinge=False, reduction="none")(ensembles, wanted)
            found.append((loss, ensembles.marginals()))
        return found

    narrow = evaluate(F, u, wanted, given=is_given)
    wide = evaluate(wide_F, wide_u, targets, given=flags, mask=mask)
    for (loss, marginals), (other, others) in zip(narrow, wide, strict=True):
        assert_close_by_set(other, loss.cpu().numpy(), 1e-9)
        torch.testing.assert_close(others[:, places], marginals)
        assert (others[:, ~mask[0]] == 0.0).all()


def test_one_mask_may_be_shared_by_all_sets(device):
    rng = np.random.default_rng(4)
    F, u = near_copies(rng, 3, 5, 1), rng.normal(size=(3, 5))
    flags = torch.tensor([True, False, False, True, False], device=device)
    for kernel, options in forms(F, u, device):
        shared, each = (
            vt.LEnsembles(kernel, jitter=0.01, given=each, **options)
            for each in (flags, flags.expand(3, -1))
        )
        assert torch.equal(shared.marginals(), each.marginals())
    one = vt.LEnsembles(torch.eye(5, device=device), given=flags)
    assert one.marginals().tolist() == pytest.approx([0.0, 0.5, 0.5, 0.0, 0.5])


@pytest.mark.parametrize("low_rank", [False, True])
def test_a_mask_without_given_items_changes_nothing(device, low_rank):
    rng = np.random.default_rng(5)
    F, u = rng.normal(size=(4, 70, 5)), rng.normal(size=(4, 70))
    wanted = torch.tensor(as_numbers(np.arange(70) < np.array([[1], [2], [3], [0]])))
    found = []
    for flags in (None, torch.zeros(4, 70, dtype=torch.bool, device=device)):
        features, log_quality = leaves(device, F, u)
        kernel = vt.LowRank(features) if low_rank else features @ features.mT
        ensembles = vt.LEnsembles(
            kernel, log_quality=log_quality, jitter=0.01, given=flags
        )
        loss = vt.LargeMarginLoss(hinge=False)(ensembles, wanted.to(device))
        marginals = ensembles.marginals()
        (loss + (marginals**2).sum()).backward()
        found.append((loss, marginals, features.grad, log_quality.grad))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)


def test_single_precision(device):
    rng = np.random.default_rng(8)
    F, u = near_copies(rng, 30, 8, 3, step=0.3), 3.0 * rng.normal(size=(30, 8))
    flags = torch.tensor(random_given(rng, 30, 8), device=device)
    wanted = torch.tensor(random_targets(rng, 30, 8), device=device) & ~flags
    found = []
    for dtype in (torch.float32, torch.float64):
        features, log_quality = leaves(device, F, u, dtype=dtype)
        ensembles = vt.LEnsembles(
            features @ features.mT, log_quality=log_quality, jitter=1e-3, given=flags
        )
        loss = vt.LargeMarginLoss(hinge=False, reduction="none")(ensembles, wanted)
        loss.sum().backward()
        marginals = ensembles.marginals()
        found.append((loss, marginals, features.grad, log_quality.grad))
    for one, other in zip(*found, strict=True):
        assert one.dtype == torch.float32
        assert_close_by_set(one, other.detach().cpu().numpy(), 2e-3)


def test_the_kernel_for_small_sets_is_not_used_beside_given_items(monkeypatch):
    def refuse(X):
        raise AssertionError("it has no given items")

    monkeypatch.setattr("variegate.torch.dense.can_use_fused_kernel", refuse)
    beside = vt.LEnsembles(torch.eye(3), given=torch.tensor([True, False, False]))
    assert beside.log_prob(torch.tensor([1])).item() == pytest.approx(np.log(0.25))


# Errors ---------------------------------------------------------------------------


def test_invalid_arguments():
    L, flags = torch.eye(3), torch.tensor([True, False, False])
    with pytest.raises(ValueError, match="given must be boolean, True where an item"):
        vt.LEnsembles(L, given=torch.tensor([0]))
    with pytest.raises(ValueError, match="given must be a tensor, got list"):
        vt.LEnsembles(L, given=[0])
    with pytest.raises(ValueError, match=r"given has shape \(2,\), expected \(3,\)"):
        vt.LEnsembles(L, given=flags[:2]).marginals()
    low_rank = vt.LEnsembles(vt.LowRank(L), given=flags)
    for call in (
        low_rank.marginals,
        low_rank.log_normalizer,
        lambda: vt.LargeMarginLoss()(low_rank, torch.tensor([1])),
    ):
        with pytest.raises(
            ValueError, match="given items of a LowRank kernel need a j"
        ):
            call()
    with pytest.raises(ValueError, match="no subset of 3 items beside the given ones"):
        vt.LEnsembles(L, given=flags).sample(1, 3)


@pytest.mark.parametrize("subset", [[0, 1], [True, True, False]])
def test_a_given_item_in_the_subset_is_refused(subset):
    beside = vt.LEnsembles(torch.eye(3), given=torch.tensor([True, False, False]))
    message = "set 0: its subset names an item twice, or one that is not there or is gi"
    with pytest.raises(ValueError, match=message):
        beside.log_prob(torch.tensor(subset))
    with pytest.raises(ValueError, match=message):
        vt.LargeMarginLoss()(beside, torch.tensor(subset))


def test_given_items_of_probability_zero_are_named(device):
    F = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], device=device)
    kernel = torch.stack([torch.eye(3, device=device), F @ F.mT]).double()
    flags = torch.tensor([True, True, False], device=device)
    subsets = torch.tensor([[2], [2]], device=device)
    beside = vt.LEnsembles(kernel, given=flags)
    for call in (beside.log_prob, vt.LargeMarginLoss(check=True).forward):
        options = {"check": True} if call == beside.log_prob else {}
        arguments = (subsets,) if options else (beside, subsets)
        with pytest.raises(ValueError, match="set 1: its given items have probability"):
            call(*arguments, **options)
    found = beside.log_prob(subsets, check=False)
    assert found[0].item() == pytest.approx(np.log(0.5))
    assert torch.isnan(found[1])
    # A subset that is a copy of a given item has probability zero, and no error.
    beside = vt.LEnsembles(
        F @ F.mT, given=torch.tensor([True, False, False]).to(device)
    )
    assert beside.log_prob(torch.tensor([1], device=device)).item() == -np.inf
