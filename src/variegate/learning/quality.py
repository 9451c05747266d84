"""Quality: how good an item is by itself (paper eq. 7)."""

from __future__ import annotations

from variegate._typing import FloatArray

__all__ = ["log_quality", "pull_back"]


def log_quality(X: FloatArray, theta: FloatArray, intercept: float) -> FloatArray:
    r"""Return ``u_i = θᵀ x_i + b``, so that ``q_i = exp(u_i)``.

    The library passes ``u`` around and never ``q``: see
    :mod:`variegate.linalg.determinants`.

    Parameters
    ----------
    X : array of shape (..., N, d)
    theta : array of shape (d,)
    intercept : float
        A constant factor ``exp(2b)`` on ``L``.  The paper has none; without it the
        features alone must set how many items are chosen.

    Returns
    -------
    array of shape (..., N)
    """
    return X @ theta + intercept


def pull_back(X: FloatArray, gradient: FloatArray) -> tuple[FloatArray, float]:
    """Return ``(∂f/∂θ, ∂f/∂b)`` from ``∂f/∂u``, summed over a stack.

    Parameters
    ----------
    X : array of shape (..., N, d)
    gradient : array of shape (..., N)
    """
    flat = X.reshape(-1, X.shape[-1])
    return gradient.reshape(-1) @ flat, float(gradient.sum())
