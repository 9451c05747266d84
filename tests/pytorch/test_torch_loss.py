"""The loss on tensors against the NumPy path, finite differences and brute force."""

import numpy as np
import pytest
import torch

import variegate as vg
import variegate.torch as vt

torch.set_num_threads(1)


def random_kernels(rng, n_sets, n_items, rank=None):
    factor = rng.normal(size=(n_sets, n_items, rank or n_items + 2))
    factor *= np.exp(rng.normal(size=(n_sets, n_items, 1)))
    return factor @ factor.transpose(0, 2, 1)


def random_targets(rng, n_sets, n_items):
    return rng.random((n_sets, n_items)) < rng.random((n_sets, 1))


def as_numbers(indicator):
    """The same subsets as rows of item numbers, padded with -1."""
    width = max(indicator.sum(axis=1).max(initial=0), 1)
    rows = np.full((len(indicator), width), -1)
    for row, one in zip(rows, indicator, strict=True):
        row[: one.sum()] = np.flatnonzero(one)
    return rows


def torch_loss(device, L, targets, **settings):
    L = torch.tensor(L, device=device, requires_grad=True)
    targets = torch.tensor(targets, device=device)
    value = vt.large_margin_loss(L, targets, reduction="none", **settings)
    value.sum().backward()
    return value.detach().cpu().numpy(), L.grad.cpu().numpy()


@pytest.mark.parametrize("settings", [{}, {"lam": 0.0}, {"lam": 2.0, "omega": 3.0}])
@pytest.mark.parametrize("as_given", [np.asarray, as_numbers])
def test_equals_the_numpy_path(device, settings, as_given):
    rng = np.random.default_rng(0)
    L, targets = random_kernels(rng, 20, 9), random_targets(rng, 20, 9)
    value, gradient = torch_loss(device, L, as_given(targets), **settings)
    for position in range(len(L)):
        expected = vg.large_margin_loss(L[position], targets[position], **settings)
        np.testing.assert_allclose(value[position], expected[0], rtol=1e-10)
        np.testing.assert_allclose(
            gradient[position], expected[1], atol=1e-10 * np.abs(expected[1]).max()
        )


def test_gradients_against_finite_differences(device):
    rng = np.random.default_rng(1)
    factor = torch.tensor(rng.normal(size=(3, 4, 5)), device=device, requires_grad=True)
    u = torch.tensor(rng.normal(size=(3, 4)), device=device, requires_grad=True)
    targets = torch.tensor(random_targets(rng, 3, 4), device=device)

    def loss(factor, u):
        return vt.large_margin_loss(
            factor @ factor.mT,
            targets,
            log_quality=u,
            lam=0.7,
            omega=2.0,
            hinge=False,
            jitter=0.1,
            reduction="none",
        )

    assert torch.autograd.gradcheck(loss, (factor, u))


def test_padding_changes_nothing_and_nan_does_not_leak(device):
    rng = np.random.default_rng(2)
    L, targets = random_kernels(rng, 4, 6), random_targets(rng, 4, 6)
    u = rng.normal(size=(4, 6))
    padded, mask = np.full((4, 9, 9), np.nan), np.zeros((4, 9), dtype=bool)
    places = np.array([0, 2, 3, 5, 6, 8])
    padded[:, places[:, None], places] = L
    mask[:, places] = True
    wanted, more = np.zeros((4, 9), dtype=bool), np.full((4, 9), np.nan)
    wanted[:, places], more[:, places] = targets, u
    plain = [torch.tensor(a, device=device, requires_grad=True) for a in (L, u)]
    with_padding = [
        torch.tensor(a, device=device, requires_grad=True) for a in (padded, more)
    ]
    first = vt.large_margin_loss(
        plain[0], torch.tensor(targets, device=device), log_quality=plain[1]
    )
    second = vt.large_margin_loss(
        with_padding[0],
        torch.tensor(wanted, device=device),
        log_quality=with_padding[1],
        mask=torch.tensor(mask, device=device),
    )
    first.backward()
    second.backward()
    torch.testing.assert_close(first, second, rtol=1e-12, atol=0.0)
    for one, other, index in zip(
        plain,
        with_padding,
        ((..., places[:, None], places), (..., places)),
        strict=True,
    ):
        torch.testing.assert_close(one.grad, other.grad[index], rtol=1e-10, atol=1e-12)
        rest = other.grad.clone()
        rest[index] = 0.0
        assert (rest == 0.0).all()
