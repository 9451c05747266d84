"""Random sets with given items, and all subsets of their candidates."""

import itertools

import numpy as np
import torch
from scipy.special import logsumexp

import variegate.torch as vt

JITTER = 1e-6


def log_probabilities(S, u, is_given):
    """All subsets of the candidates, as boolean rows, and their log-probabilities.

    By ``det L_{A ∪ y}`` alone: the quality of given items would cancel.
    """
    candidates = np.flatnonzero(~is_given)
    subsets, weights = [], []
    for bits in itertools.product([False, True], repeat=len(candidates)):
        subset = np.zeros(len(S), dtype=bool)
        subset[candidates] = bits
        items = np.flatnonzero(subset | is_given)
        sign, log_det = np.linalg.slogdet(S[np.ix_(items, items)])
        assert sign == 1.0
        subsets.append(subset)
        weights.append(log_det + 2.0 * u[subset].sum())
    return np.array(subsets), np.array(weights) - logsumexp(weights)


def brute_loss(S, u, is_given, wanted, lam, omega):
    """The loss without hinge: log-likelihood, and the mean error over all subsets."""
    subsets, log_p = log_probabilities(S, u, is_given)
    own = (subsets == wanted).all(axis=1)
    cost = (subsets & ~wanted).sum(axis=1) + omega * (wanted & ~subsets).sum(axis=1)
    margin = lam * logsumexp(log_p, b=cost) if lam else 0.0
    return margin - log_p[own][0]


def near_copies(rng, n_sets, n_items, n_copies, step=1e-2):
    """Unit features of which the first ones nearly agree."""
    F = rng.standard_normal((n_sets, n_items, n_items + 2))
    F[:, :n_copies] = F[:, :1] + step * F[:, :n_copies]
    return F / np.linalg.norm(F, axis=2, keepdims=True)


def with_ridge(F):
    """The similarities of unit features, with the jitter of these tests."""
    return F @ F.swapaxes(-1, -2) + JITTER * np.eye(F.shape[-2])


def random_given(rng, n_sets, n_items):
    """From none to all but one of the items are given."""
    is_given = np.zeros((n_sets, n_items), dtype=bool)
    for row in is_given:
        row[rng.permutation(n_items)[: rng.integers(n_items)]] = True
    return is_given


def forms(F, u, device):
    """The same kernels as similarities, as features and as matrices ``L``."""
    F, u = (torch.tensor(each, device=device) for each in (F, u))
    q = torch.exp(u)
    return [
        (F @ F.mT, {"log_quality": u}),
        (vt.LowRank(F), {"log_quality": u}),
        (q[:, :, None] * (F @ F.mT) * q[:, None, :], {}),
    ]
