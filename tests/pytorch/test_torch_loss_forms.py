"""Features, sets one after the other, precision, and what is refused."""

import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import pad_sequence
from torch_cases import (
    as_numbers,
    assert_close_by_set,
    leaves,
    nothing_waits,
    random_kernels,
)

import variegate.torch as vt
from variegate.torch import low_rank as features_module
from variegate.torch.dense import factor_cholesky, invert_by_product


@pytest.mark.parametrize("entries", [2**18, 60])
@pytest.mark.parametrize("jitter", [0.0, 0.02])
@pytest.mark.parametrize("lam", [0.0, 1.3])
def test_features_are_as_their_matrix(device, monkeypatch, lam, jitter, entries):
    monkeypatch.setattr(features_module, "_ENTRIES_CPU", entries)
    monkeypatch.setattr(features_module, "_ENTRIES_GPU", entries)
    rng = np.random.default_rng(0)
    features, u = rng.normal(size=(8, 30, 5)), 2.0 * rng.normal(size=(8, 30))
    mask = rng.random((8, 30)) < 0.8
    targets = mask & (rng.random((8, 30)) < 0.3)
    targets[:, 6:] = False
    features[~mask] = u[~mask] = np.nan
    results = []
    for low_rank in (True, False):
        F, quality = leaves(device, features, u)
        clean = F.masked_fill(~torch.tensor(mask, device=device)[:, :, None], 0.0)
        value = vt.LargeMarginLoss(lam=lam, omega=2.0, hinge=False, reduction="none")(
            vt.LEnsembles(
                vt.LowRank(F) if low_rank else clean @ clean.mT,
                log_quality=quality,
                mask=torch.tensor(mask, device=device),
                jitter=jitter,
            ),
            torch.tensor(as_numbers(targets), device=device),
        )
        value.sum().backward()
        results.append((value, F.grad, quality.grad))
    for found, expected in zip(*results, strict=True):
        assert_close_by_set(found, expected.detach().cpu().numpy(), 1e-9)


def test_features_alone_are_a_kernel(device):
    rng = np.random.default_rng(1)
    F = torch.tensor(rng.normal(size=(20, 4)), device=device)
    subset = torch.tensor([3, 7, 11], device=device)
    by_features = vt.LargeMarginLoss()(vt.LEnsembles(vt.LowRank(F)), subset)
    torch.testing.assert_close(
        by_features, vt.LargeMarginLoss()(vt.LEnsembles(F @ F.mT), subset)
    )


def test_sums_side_by_side(device, monkeypatch):
    monkeypatch.setattr(features_module, "_SUMMED_ROWS", 8)
    rng = np.random.default_rng(2)
    left, right = torch.tensor(rng.normal(size=(2, 1, 37, 3)), device=device)
    found = features_module._summed_products(left[0], right[0])
    torch.testing.assert_close(found, left[0].mT @ right[0])


@pytest.mark.parametrize("n_items", [6, 19, 600])
def test_inverse_by_a_product(device, n_items):
    rng = np.random.default_rng(3)
    M = random_kernels(rng, 9, n_items) + np.eye(n_items)
    M = torch.tensor(M if n_items < 500 else M[:1].repeat(9, axis=0), device=device)
    expected, log_det = torch.linalg.inv(M), torch.logdet(M)
    found, definite = factor_cholesky(M, 0.0)
    invert_by_product(M, torch.empty_like(M))
    assert definite.all()
    torch.testing.assert_close(found, log_det)
    torch.testing.assert_close(M, expected)


SIZES = [[3, 7, 2, 28, 3, 7], [4, 4, 4], [5, 9, 5, 5, 9], [70, 80, 2]]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("low_rank", [False, True])
def test_sets_of_different_sizes_side_by_side(device, sizes, low_rank):
    rng = np.random.default_rng(4)
    total = sum(sizes)
    features, u = leaves(
        device, rng.normal(size=(total, 80)) / 9, rng.normal(size=total)
    )
    wanted = torch.tensor(rng.random(total) < 0.4, device=device)
    costs = torch.tensor(rng.exponential(size=total), device=device)
    parts = [each.split(sizes) for each in (features, u, wanted, costs)]
    expected = [
        vt.LargeMarginLoss()(
            vt.LEnsembles(F @ F.mT, log_quality=own_u), own, false_negative=own_costs
        )
        for F, own_u, own, own_costs in zip(*parts, strict=True)
    ]
    slopes = torch.autograd.grad(sum(expected), (features, u))
    F, padded_u, padded, padded_costs = (pad_sequence(part, True) for part in parts)
    mask = pad_sequence([torch.ones_like(part) for part in parts[2]], True)
    kernel = vt.LowRank(F) if low_rank else F @ F.mT
    found = vt.LargeMarginLoss(reduction="none")(
        vt.LEnsembles(kernel, log_quality=padded_u, mask=mask),
        padded,
        false_negative=padded_costs,
    )
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)
    more = torch.autograd.grad(found.sum(), (features, u))
    for one, other in zip(more, slopes, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-10)


def relative_error(found, expected):
    return float((found.double() - expected).norm() / expected.norm())


@pytest.mark.parametrize("low_rank", [False, True])
def test_single_precision_keeps_the_digits_that_are_promised(device, low_rank):
    rng = np.random.default_rng(6)
    F = rng.normal(size=(20, 50, 80 if not low_rank else 10))
    F /= np.linalg.norm(F, axis=-1, keepdims=True)
    u = 2.0 * rng.normal(size=(20, 50))
    targets = torch.tensor(np.argsort(rng.random((20, 50)))[:, :5], device=device)
    results = []
    for dtype in (torch.float64, torch.float32):
        features, quality = leaves(device, F, u, dtype=dtype)
        kernel = vt.LowRank(features) if low_rank else features @ features.mT
        value = vt.LargeMarginLoss(reduction="none")(
            vt.LEnsembles(kernel, log_quality=quality, jitter=1e-3), targets
        )
        value.sum().backward()
        assert value.dtype == dtype
        results.append((value.detach(), features.grad, quality.grad))
    (value, *slopes), (rough, *rough_slopes) = results
    assert relative_error(rough, value) < 1e-6
    for found, expected in zip(rough_slopes, slopes, strict=True):
        assert relative_error(found, expected) < 1e-4


@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16])
def test_never_in_half_precision(device, half):
    rng = np.random.default_rng(7)
    F = torch.tensor(rng.normal(size=(3, 6, 9)), device=device, dtype=half)
    S = torch.eye(6, device=device, dtype=half) + 0.1 * (F @ F.mT)
    targets = torch.tensor([[0, 1]] * 3, device=device)
    S = ((S + S.mT) / 2).requires_grad_()
    expected = vt.LargeMarginLoss()(vt.LEnsembles(S.detach().float()), targets)
    with torch.autocast(torch.device(device).type, dtype=torch.bfloat16):
        inside = vt.LargeMarginLoss()(vt.LEnsembles(S), targets)
    inside.backward()
    assert inside.dtype == torch.float32
    assert S.grad.dtype == half
    torch.testing.assert_close(inside, expected, rtol=1e-6, atol=0.0)
    outside = vt.LargeMarginLoss()(vt.LEnsembles(S), targets)
    assert outside.item() == inside.item()


def test_fewer_digits_in_products_are_no_matter(device):
    rng = np.random.default_rng(8)
    L = torch.tensor(random_kernels(rng, 4, 100, 300) / 300, device=device).float()
    targets = torch.tensor([[0, 5]] * 4, device=device)
    expected = vt.LargeMarginLoss()(vt.LEnsembles(L), targets)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        found = vt.LargeMarginLoss()(vt.LEnsembles(L), targets)
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)
    assert found.item() == expected.item()


@pytest.mark.parametrize("low_rank", [False, True])
def test_the_gradient_cannot_be_differentiated(device, low_rank):
    rng = np.random.default_rng(9)
    (F,) = leaves(device, rng.normal(size=(4, 6)))
    kernel = vt.LowRank(F) if low_rank else F @ F.mT
    loss = vt.LargeMarginLoss()(vt.LEnsembles(kernel), torch.tensor([0], device=device))
    with pytest.raises(RuntimeError, match="closed form that cannot be differentiated"):
        torch.autograd.grad(loss, F, create_graph=True)
    size = vt.LEnsembles(kernel).expected_size()
    with pytest.raises(RuntimeError, match="closed form that cannot be differentiated"):
        torch.autograd.grad(size, F, create_graph=True)


def test_gradients_may_be_asked_for_again(device):
    rng = np.random.default_rng(10)
    (F,) = leaves(device, rng.normal(size=(4, 6)))
    subset = torch.tensor([0], device=device)
    for value in (
        vt.LargeMarginLoss()(vt.LEnsembles(F @ F.mT), subset),
        vt.LargeMarginLoss()(vt.LEnsembles(vt.LowRank(F)), subset),
        vt.LEnsembles(F @ F.mT).expected_size(),
        vt.LEnsembles(vt.LowRank(F)).expected_size(),
    ):
        (first,) = torch.autograd.grad(value, F, retain_graph=True)
        (second,) = torch.autograd.grad(2.0 * value, F)
        torch.testing.assert_close(2.0 * first, second)


@pytest.mark.parametrize("with_mask", [False, True])
@pytest.mark.parametrize("low_rank", [False, True])
def test_no_number_is_looked_at(low_rank, with_mask):
    # Tensors of this device have no numbers: whoever asked for one would fail here,
    # and wait on a GPU.
    like = {"dtype": torch.float64, "device": "meta", "requires_grad": True}
    F, u = torch.zeros(3, 600, 20, **like), torch.zeros(3, 600, **like)
    targets = torch.zeros(3, 4, dtype=torch.long, device="meta")
    mask = torch.ones(3, 600, dtype=torch.bool, device="meta") if with_mask else None
    given = {"log_quality": u, "mask": mask, "jitter": 1e-3}
    for function, *more in (
        (vt.LargeMarginLoss(check=False), targets),
        (vt.LEnsembles.log_prob, targets),
        (vt.LEnsembles.log_normalizer,),
        (vt.LEnsembles.marginals,),
        (vt.LEnsembles.expected_size,),
    ):
        ensembles = vt.LEnsembles(vt.LowRank(F) if low_rank else F @ F.mT, **given)
        slopes = torch.autograd.grad(function(ensembles, *more).sum(), (F, u))
        assert [slope.shape for slope in slopes] == [F.shape, u.shape]


def test_nothing_waits_for_a_gpu(device):
    rng = np.random.default_rng(12)
    F, u = leaves(device, rng.normal(size=(3, 90, 100)), rng.normal(size=(3, 90)))
    targets = torch.tensor([[0, 5, -1], [3, 4, 8], [2, -1, -1]], device=device)
    mask = torch.ones(3, 90, dtype=torch.bool, device=device)
    loss = vt.LargeMarginLoss(omega=0.3)
    with nothing_waits(device):
        for given in (None, mask):
            for kernel in (vt.LowRank(F), F @ F.mT):
                options = {"log_quality": u, "mask": given, "jitter": 1e-3}
                loss(vt.LEnsembles(kernel, **options), targets).backward()
        vt.LEnsembles(F @ F.mT, log_quality=u).expected_size().sum().backward()
    loss.check()
    assert torch.isfinite(F.grad).all()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="counts memory of a GPU")
def test_three_matrices_beside_the_input():
    L = torch.eye(1000, device="cuda", dtype=torch.float64).repeat(2, 1, 1)
    L.requires_grad_()
    targets = torch.tensor([[0, 1]] * 2, device="cuda")
    vt.LargeMarginLoss()(
        vt.LEnsembles(L[:, :100, :100]), targets
    ).backward()  # workspaces are there
    L.grad = None
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    vt.LargeMarginLoss(hinge=False)(vt.LEnsembles(L), targets).backward()
    more = torch.cuda.max_memory_allocated() - before
    assert more < 3.3 * L.numel() * 8
