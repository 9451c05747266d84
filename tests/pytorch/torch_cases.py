"""Random kernels and subsets, and the loss of the NumPy path for stacks of them."""

import warnings
from contextlib import contextmanager

import numpy as np
import torch

import variegate.torch as vt
from variegate.learning import objective
from variegate.linalg.determinants import with_jitter

torch.set_num_threads(1)


def random_kernels(rng, n_sets, n_items, rank=None):
    """Kernels whose diagonals spread over two orders of magnitude."""
    factor = rng.normal(size=(n_sets, n_items, rank or n_items + 2))
    factor *= np.exp(rng.normal(size=(n_sets, n_items, 1)))
    return factor @ factor.transpose(0, 2, 1)


def random_targets(rng, n_sets, n_items):
    """Subsets of all sizes."""
    return rng.random((n_sets, n_items)) < rng.random((n_sets, 1))


def as_numbers(indicator):
    """The same subsets as rows of item numbers, padded with -1."""
    width = max(indicator.sum(axis=1).max(initial=0), 1)
    rows = np.full((len(indicator), width), -1)
    for row, one in zip(rows, indicator, strict=True):
        row[: one.sum()] = np.flatnonzero(one)
    return rows


def numpy_loss(S, u, targets, lam=1.0, hinge=True, jitter=0.0, costs=(1.0, 1.0)):
    """Values and gradients in ``S`` and ``u`` by the NumPy path, set by set."""
    loss = objective.LargeMarginLoss(lam, hinge)
    values, in_S, in_u = [], [], []
    for position in range(len(S)):
        wanted = objective.Targets.from_subsets(
            [np.flatnonzero(targets[position])],
            S.shape[-1],
            *(cost if np.ndim(cost) == 0 else cost[position] for cost in costs),
        )
        terms = loss.value_and_gradient(
            with_jitter(S[position], jitter)[None], u[position][None], wanted
        )
        values.append(terms.value[0])
        in_S.append(with_jitter(terms.similarity_gradient[0], jitter))
        in_u.append(terms.quality_gradient[0])
    return np.array(values), np.array(in_S), np.array(in_u)


def large_margin_loss(
    kernel,
    targets,
    *,
    false_positive=None,
    false_negative=None,
    lam=1.0,
    omega=1.0,
    hinge=True,
    reduction="mean",
    check=None,
    **given,
):
    """The loss of tensors, with all options in one call."""
    loss = vt.LargeMarginLoss(lam, omega, hinge, reduction=reduction, check=check)
    costs = {"false_positive": false_positive, "false_negative": false_negative}
    return loss(vt.LEnsembles(kernel, **given), targets, **costs)


def leaves(device, *arrays, dtype=torch.float64):
    """Arrays as tensors that gradients are wanted for."""
    return [
        torch.tensor(array, device=device, dtype=dtype, requires_grad=True)
        for array in arrays
    ]


def assert_close_by_set(found, expected, share=1e-10):
    """Each set is as expected, but for this share of its largest number."""
    found = found.detach().cpu().numpy() if isinstance(found, torch.Tensor) else found
    assert found.shape == expected.shape
    assert np.isfinite(found).all()
    n_sets = len(expected)
    error = np.abs(found - expected).reshape(n_sets, -1).max(axis=1, initial=0.0)
    largest = np.abs(expected).reshape(n_sets, -1).max(axis=1, initial=0.0)
    assert (error <= share * largest).all(), (error / largest).max()


@contextmanager
def nothing_waits(device):
    """Refuse whatever would wait for a GPU; on the CPU nothing does."""
    if torch.device(device).type != "cuda":
        yield
        return
    with warnings.catch_warnings():
        # Setting the mode warns of it once; as an error that would come after the mode
        # was set, and leave it so for all that follows.
        warnings.filterwarnings("ignore", "Synchronization debug mode")
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")
