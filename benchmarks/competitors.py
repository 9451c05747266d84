"""Who else evaluates: the paper's appendix, PyTorch, and LAPACK's floor."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import lapack

from benchmarks.instances import Evaluation, Instance
from variegate._typing import FloatArray, IntArray

#: How far a competitor may be off, relative to the largest derivative.
_TOLERANCE = 1e-8


def appendix(instance: Instance) -> Evaluation:
    """Return the paper's eq. 14 and appendix B, ground set after ground set."""
    qualities = instance.centred_qualities()
    bases = instance.base_kernels()
    learned = instance.learned
    weights = instance.weights if learned else np.ones(1)

    def evaluate() -> tuple[float, FloatArray]:
        total, d_theta, d_intercept = 0.0, np.zeros_like(instance.theta), 0.0
        d_weights = np.zeros_like(weights)
        for X, S_k, y in zip(qualities, bases, instance.subsets, strict=True):
            S = np.tensordot(weights, S_k, axes=1) if learned else S_k[0]
            q = np.exp(X @ instance.theta + instance.intercept)
            value, G, L = appendix_loss(S, q, y)
            total += value
            d_u = 2.0 * (G * L).sum(axis=1)
            d_theta += X.T @ d_u
            d_intercept += d_u.sum()
            if learned:
                d_S = q[:, None] * G * q
                d_weights += [np.sum(d_S * matrix) for matrix in S_k]
        gradient = np.append(d_theta, d_intercept)
        gradient = np.append(gradient, d_weights) if learned else gradient
        return total / len(bases), gradient / len(bases)

    return evaluate


def appendix_loss(
    S: FloatArray, q: FloatArray, y: IntArray
) -> tuple[float, FloatArray, FloatArray]:
    """Return value, ``∂f/∂L`` and ``L`` of one ground set, at ω = 1 and λ = 1."""
    identity = np.eye(len(S))
    L = q[:, None] * S * q
    A_inverse = np.linalg.inv(L + identity)
    K = identity - A_inverse
    L_y = L[np.ix_(y, y)]
    log_prob = np.linalg.slogdet(L_y)[1] - np.linalg.slogdet(L + identity)[1]
    W = np.ones(len(S))
    W[y] = -1.0
    margin = (W * np.diag(K)).sum() + len(y)
    value = float(-log_prob + np.log(margin))
    if value <= 0.0:
        return 0.0, np.zeros_like(L), L
    G = A_inverse + A_inverse @ np.diag(W) @ A_inverse / margin
    G[np.ix_(y, y)] -= np.linalg.inv(L_y)
    return value, G, L


def autograd(torch: Any, instance: Instance) -> Evaluation:
    """Return the loss of one ground set as written for PyTorch.

    Of the ways to get the diagonal of ``(L + I)⁻¹`` that PyTorch differentiates, the
    inverse of the Cholesky factor is the fastest (against ``linalg.inv``,
    ``cholesky_inverse`` and ``cholesky_solve``).
    """
    X = torch.from_numpy(instance.centred_qualities()[0])
    bases = torch.from_numpy(instance.base_kernels()[0])
    n_items = len(X)
    identity = torch.eye(n_items, dtype=torch.float64)
    y = torch.from_numpy(instance.subsets[0])
    wanted = torch.zeros(n_items, dtype=torch.bool)
    wanted[y] = True
    learned = instance.learned
    parts = [instance.theta, np.array([instance.intercept])]
    parts += [instance.weights] if learned else []

    def evaluate() -> tuple[float, FloatArray]:
        leaves = [torch.tensor(part, requires_grad=True) for part in parts]
        q = torch.exp(X @ leaves[0] + leaves[1])
        flat = bases.view(len(bases), -1)
        S = (leaves[2] @ flat).view(n_items, n_items) if learned else bases[0]
        L = q[:, None] * S * q
        factor = torch.linalg.cholesky(L + identity)
        log_det = 2.0 * factor.diagonal().log().sum()
        inverse = torch.linalg.solve_triangular(factor, identity, upper=False)
        K_diagonal = 1.0 - (inverse**2).sum(dim=0)
        margin = torch.where(wanted, 1.0 - K_diagonal, K_diagonal).sum()
        log_prob = torch.linalg.slogdet(L[y][:, y])[1] - log_det
        value = torch.relu(-log_prob + torch.log(margin))
        value.backward()
        gradient = np.concatenate([leaf.grad.numpy() for leaf in leaves])
        return float(value.detach()), gradient

    return evaluate


#: What the floor is called.
FLOOR = "potrf + potri"


class Floor:
    """``potrf`` and ``potri`` in place, on a copy that is made beforehand."""

    def __init__(self, n_items: int) -> None:
        B = np.random.default_rng(0).standard_normal((n_items, n_items))
        self.matrix = np.asfortranarray(B @ B.T / n_items + np.eye(n_items))

    def prepare(self) -> FloatArray:
        """Return the copy that is overwritten."""
        return self.matrix.copy(order="F")

    def __call__(self, matrix: FloatArray) -> FloatArray:
        """Return the lower half of the inverse."""
        factor, failed = lapack.dpotrf(matrix, lower=1, clean=0, overwrite_a=1)
        inverse, failed_too = lapack.dpotri(factor, lower=1, overwrite_c=1)
        assert not failed
        assert not failed_too
        return np.asarray(inverse)


def check_agreement(ours: Evaluation, theirs: Evaluation, name: str) -> None:
    """Refuse to time a competitor that computes something else."""
    (value, gradient), (their_value, their_gradient) = ours(), theirs()
    here, there = np.append(gradient, value), np.append(their_gradient, their_value)
    scale = np.append(np.full_like(gradient, np.abs(gradient).max()), abs(value))
    apart = float(np.max(np.abs(here - there) / np.maximum(1.0, scale)))
    if not apart <= _TOLERANCE:
        raise RuntimeError(
            f"{name} and variegate differ by {apart:.2g}: nothing to compare"
        )
