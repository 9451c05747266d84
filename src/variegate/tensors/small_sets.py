"""The loss of small ground sets on the CPU, by the compiled loop of the NumPy path.

LAPACK, called once a matrix, takes longer than the arithmetic of a small one.  Loss and
gradient of 1000 sets of 10 items take a third of the time that they take by
:mod:`variegate.tensors.dense`, of 32 sets of 50 items half.  Always in double
precision.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from variegate._typing import FloatArray, IntArray
from variegate.linalg.limits import STACK_LIMIT
from variegate.tensors.factorisation import doubtful_pivot
from variegate.tensors.resolvent import raise_diagonal
from variegate.tensors.targets import Targets

__all__ = ["evaluate", "is_available"]


def is_available(X: Tensor) -> bool:
    """Return whether these matrices are small ones on the CPU."""
    is_small = X.numel() > 0 and X.shape[-1] <= STACK_LIMIT
    return bool(is_small and X.device.type == "cpu")


def evaluate(
    X: Tensor,
    log_quality: Tensor | None,
    targets: Targets,
    mask: Tensor | None,
    lam: float,
    smallest_error: float,
    jitter: float,
    *,
    gradient: bool,
) -> tuple[Tensor, Tensor | None, Tensor, Tensor, Tensor]:
    """Return losses without a hinge, and what goes with them, in double precision.

    The arguments are those of :func:`variegate.tensors.dense.loss_terms`.

    Returns
    -------
    value : (B,)
    G : (B, N, N) or None
        ``∂f/∂X``, but for the ridge.
    slope : (B, N)
        ``∂f/∂u``.
    target_definite, definite : boolean (B,)
    """
    S, u, scale, possible = _similarity(X, log_quality, mask, jitter)
    n_sets, n_items = u.shape
    value, slope = np.zeros(n_sets), np.zeros((n_sets, n_items))
    G = np.zeros((n_sets if gradient else 0, n_items, n_items))
    problems = _evaluate_all(
        S.numpy(),
        u.numpy(),
        targets,
        (lam, doubtful_pivot(X.dtype), smallest_error),
        (value, slope, G),
    )
    in_X = None
    if gradient:
        in_X = torch.from_numpy(G)
        if scale is not None:
            in_X.mul_(scale[:, :, None]).mul_(scale[:, None, :])
        if mask is not None:
            in_X.masked_fill_(~(mask[:, :, None] & mask[:, None, :]), 0.0)
    found = torch.from_numpy(problems)
    return (
        torch.from_numpy(value),
        in_X,
        torch.from_numpy(slope),
        found != _ZERO_PROBABILITY,
        (found != _NOT_DEFINITE) & possible,
    )


#: What the compiled loop calls its failures.
_NOT_DEFINITE, _ZERO_PROBABILITY = 1, 2


def _similarity(
    X: Tensor, log_quality: Tensor | None, mask: Tensor | None, jitter: float
) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
    """Return ``S``, ``u``, ``dS/dX`` of an item, and whether a diagonal is possible."""
    S = X.double()
    if mask is not None:
        S = S.masked_fill(~(mask[:, :, None] & mask[:, None, :]), 0.0)
    diagonal = S.diagonal(dim1=-2, dim2=-1)
    possible = (diagonal >= 0.0).all(dim=-1)
    scale = None
    if log_quality is None:
        root = torch.where(diagonal > 0.0, diagonal, 1.0).sqrt()
        scale, u = 1.0 / root, root.log()
        S = S * scale[:, :, None] * scale[:, None, :]
    else:
        u = log_quality.double()
        if mask is not None:
            u = u.masked_fill(~mask, 0.0)
    if jitter:
        S = S.clone()
        raise_diagonal(S, jitter)
    return S, u, scale, possible


def _evaluate_all(
    S: FloatArray,
    u: FloatArray,
    targets: Targets,
    settings: tuple[float, float, float],
    results: tuple[FloatArray, FloatArray, FloatArray],
) -> IntArray:
    """Fill the results; return what each set failed by, going on after each."""
    from variegate.compiled.arguments import read_only
    from variegate.compiled.small_sets import evaluate_sets

    lam, tolerance, smallest_error = settings
    S, u = read_only(S), read_only(u)
    wanted = read_only(targets.indicator.numpy())
    cost = read_only(targets.error_cost.double().numpy())
    problems, start = np.zeros(len(S), dtype=np.int64), 0
    while start < len(S):
        value, slope, G = (result[start:] for result in results)
        place, problem = evaluate_sets(
            S[start:],
            u[start:],
            wanted[start:],
            cost[start:],
            read_only(np.empty(0)),
            float(lam),
            False,
            tolerance,
            smallest_error,
            value,
            slope,
            G,
        )
        if not problem:
            break
        problems[start + place] = problem
        start += place + 1
    return problems
