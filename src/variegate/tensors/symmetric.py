"""Choosing ``k`` eigenvectors, by elementary symmetric polynomials in log space."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

__all__ = ["choose_eigenvectors", "keep_probabilities"]


def keep_probabilities(log_values: Tensor, k: int) -> Tensor:
    """Return the probability to keep each eigenvector when some are still wanted.

    With ``j`` of the first ``m`` wanted, the ``m``-th is kept with probability
    ``λ_m e_{j-1}(m - 1) / e_j(m)`` (Kulesza and Taskar, 2011), where
    ``e_j(m) = e_j(m - 1) + λ_m e_{j-1}(m - 1)`` has no subtraction: in log space no
    digit is lost whatever the scale of the values.

    Parameters
    ----------
    log_values : tensor of shape (B, M)
        Logarithms of eigenvalues, up to a common constant for each set.
    k : int

    Returns
    -------
    tensor of shape (M, B, k + 1)
        Zero where none is wanted.
    """
    n_sets, n_values = log_values.shape
    probabilities = log_values.new_zeros(n_values, n_sets, k + 1)
    polynomials = log_values.new_full((n_sets, k + 1), -torch.inf)
    polynomials[:, 0] = 0.0
    for m in range(n_values):
        with_it = polynomials[:, :-1] + log_values[:, m, None]
        total = torch.logaddexp(polynomials[:, 1:], with_it)
        probabilities[m, :, 1:] = (with_it - total).exp_().nan_to_num_(nan=0.0)
        polynomials[:, 1:] = total
    return probabilities


def choose_eigenvectors(
    probabilities: Tensor, n_samples: int, generator: Generator | None
) -> Tensor:
    """Choose ``k`` eigenvectors, from the last to the first.

    Parameters
    ----------
    probabilities : tensor of shape (M, B, k + 1)
    n_samples : int
        Samples of each of the ``B`` sets.
    generator : torch.Generator, optional

    Returns
    -------
    boolean tensor of shape (B, n_samples, M)
    """
    n_values, n_sets, wanted = probabilities.shape
    shape = (n_values, n_sets, n_samples)
    uniform = torch.rand(
        shape, generator=generator, device=probabilities.device, dtype=torch.float64
    )
    kept = torch.empty(shape, dtype=torch.bool, device=probabilities.device)
    missing = torch.full(shape[1:], wanted - 1, device=probabilities.device)
    for m in reversed(range(n_values)):
        torch.lt(uniform[m], probabilities[m].gather(1, missing), out=kept[m])
        missing -= kept[m].long()
    return kept.permute(1, 2, 0)
