"""Exact samples of a batch of processes.

Two ways with one law.  By eigenvectors (:mod:`variegate.tensors.elementary`) any number
of samples share one eigendecomposition.  Item after item (Poulson, 2020), each is taken
with its probability given what was decided before: the pivot of an elimination of
``K``, from which one is taken wherever the item was left out.  That needs no
eigenvectors, and is the better way to few samples of each of many small kernels.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Generator, Tensor

from variegate.tensors.elementary import sample_elementary
from variegate.tensors.mixture import Mixture
from variegate.tensors.symmetric import choose_eigenvectors, keep_probabilities

__all__ = ["draw", "draw_in_turn"]

#: Coins that are tossed at a time, or entries of matrices that are eliminated.
_COINS = {"cuda": 2**26}
_COINS_ELSEWHERE = 2**22


def draw(
    mixture: Mixture, n_samples: int, k: int | None, generator: Generator | None
) -> Tensor:
    """Draw ``n_samples`` subsets of every set.

    Parameters
    ----------
    mixture : Mixture
    n_samples : int
    k : int, optional
        Exactly so many items; no set may have a smaller rank.
    generator : torch.Generator, optional

    Returns
    -------
    tensor of shape (B, n_samples, largest size)
        Item numbers, ascending, -1 after the last.
    """
    n_sets, n_vectors, n_items = mixture.vectors.shape
    device = mixture.kept.device
    coins = _COINS.get(device.type, _COINS_ELSEWHERE)
    at_once = max(1, coins // max(n_vectors, n_items, 1))
    samples = min(n_samples, at_once)
    sets = max(1, at_once // max(samples, 1))
    drawn = []
    for first in range(0, n_sets, sets):
        part = slice(first, first + sets)
        toss = _coins(mixture.kept[part], k, generator)
        row = [
            sample_elementary(
                mixture.vectors[part], toss(min(samples, n_samples - start)), generator
            )
            for start in range(0, n_samples, samples)
        ]
        drawn.append(_joined(row, dim=1))
    return _joined(drawn, dim=0)


def _coins(
    kept: Tensor, k: int | None, generator: Generator | None
) -> Callable[[int], Tensor]:
    """Return a function from a number of samples to the vectors that they keep."""
    if k is None:

        def toss(n_samples: int) -> Tensor:
            shape = (len(kept), n_samples, kept.shape[1])
            uniform = torch.rand(
                shape, generator=generator, device=kept.device, dtype=kept.dtype
            )
            return uniform < kept[:, None, :]

        return toss
    # One minus an eigenvalue is known to rounding only, and matters no further.
    least = torch.finfo(kept.dtype).eps
    log_values = kept.log() - (1.0 - kept).clamp(min=least).log()
    probabilities = keep_probabilities(log_values, k)
    return lambda n_samples: choose_eigenvectors(probabilities, n_samples, generator)


def _joined(parts: list[Tensor], dim: int) -> Tensor:
    """Put parts together, those of smaller sizes filled up with -1."""
    largest = max(part.shape[2] for part in parts)
    filled = [
        torch.nn.functional.pad(part, (0, largest - part.shape[2]), value=-1)
        for part in parts
    ]
    return torch.cat(filled, dim=dim)


def draw_in_turn(K: Tensor, n_samples: int, generator: Generator | None) -> Tensor:
    """Draw ``n_samples`` subsets of every process with marginal kernel ``K``.

    Parameters
    ----------
    K : tensor of shape (B, N, N)
    n_samples : int
    generator : torch.Generator, optional

    Returns
    -------
    boolean tensor of shape (B, n_samples, N)
    """
    entries = _COINS.get(K.device.type, _COINS_ELSEWHERE)
    at_once = max(1, entries // max(n_samples * K.shape[1] ** 2, 1))
    parts = [_eliminate(part, n_samples, generator) for part in K.split(at_once)]
    return torch.cat(parts)


def _eliminate(K: Tensor, n_samples: int, generator: Generator | None) -> Tensor:
    """Decide about one item of all samples after another."""
    n_sets, n_items, _ = K.shape
    total = n_sets * n_samples
    own = torch.arange(n_sets, device=K.device).repeat_interleave(n_samples)
    uniform = torch.rand(
        (n_items, total), generator=generator, device=K.device, dtype=K.dtype
    )
    taken = torch.empty((n_items, total), dtype=torch.bool, device=K.device)
    rows = K.new_empty(total, n_items, n_items)
    over_pivots = K.new_empty(total, 1, n_items)
    for i in range(n_items):
        row = K[own, i]
        if i:
            weights = rows[:, :i, i].unsqueeze(1) * over_pivots[:, :, :i]
            row = torch.baddbmm(
                row.unsqueeze(1), weights, rows[:, :i], alpha=-1.0
            ).squeeze(1)
        torch.lt(uniform[i], row[:, i], out=taken[i])
        rows[:, i] = row
        over_pivots[:, 0, i] = 1.0 / (row[:, i] - (~taken[i]).to(K.dtype))
    return taken.T.reshape(n_sets, n_samples, n_items)
