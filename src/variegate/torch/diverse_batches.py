"""Streams of items cut into diverse batches, several streams at a time.

Every stream has a pool, of a few batches.  A batch is drawn from it by the
determinantal point process whose marginal kernel is the projection on as many leading
eigenvectors of the pool's similarity as the batch has items, and the next items of the
stream take the place of those that have left.  So every item comes exactly once, and
the work for a batch does not depend on the length of a stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Generator, Tensor

from variegate.tensors.elementary import sample_elementary

__all__ = ["draw_batches", "median_distance"]

#: Ridge on the similarity of a pool, for items that are equal to be drawn too.
_JITTER = 1e-6


def _similarity(X: Tensor, bandwidth: float) -> Tensor:
    """Return ``exp(-‖x_i - x_j‖² / σ²)`` of rows (B, P, D), with a small ridge."""
    X = X / bandwidth
    squares = X.square().sum(dim=2)
    distances = torch.baddbmm(squares[:, :, None] + squares[:, None], X, X.mT, alpha=-2)
    S = distances.clamp_(min=0.0).neg_().exp_()
    torch.diagonal(S, dim1=1, dim2=2).fill_(1.0 + _JITTER)
    return S


def median_distance(X: Tensor) -> float:
    """Return the median distance of rows (n, D) that differ, one if none do."""
    distances = torch.nn.functional.pdist(X)
    distances = distances[distances > 0]
    return float(distances.median()) if len(distances) else 1.0


def draw_batches(
    streams: Tensor,
    lengths: list[int],
    rows: Callable[[Tensor], Tensor],
    pool: int,
    bandwidth: float,
    generator: Generator,
) -> Iterator[Tensor]:
    """Draw the batches of several streams, one of each in every round.

    Parameters
    ----------
    streams : tensor of shape (J, batches, batch_size)
        Item numbers, on the CPU.
    lengths : list of int
        Batches that each stream has, the longest first.
    rows : from item numbers to their vectors (..., D), of double precision
    pool : int
        Batches that a pool holds.
    bandwidth : float
    generator : torch.Generator

    Yields
    ------
    tensor of shape (batch_size,)
        Item numbers.
    """
    n_streams, longest, batch_size = streams.shape
    pool = min(pool, longest)
    items = streams[:, :pool].reshape(n_streams, -1)
    held = torch.tensor(lengths)[:, None] * batch_size > torch.arange(items.shape[1])
    X = rows(items)
    for number in range(longest):
        going = sum(length > number for length in lengths)
        items, held, X = items[:going], held[:going], X[:going]
        if bool((held.sum(dim=1) == batch_size).all()):  # what is left is the batch
            places = held.nonzero()[:, 1].view(going, batch_size)
        else:
            held_there = held.to(X.device)
            places = _draw_places(X, held_there, batch_size, bandwidth, generator)
        yield from items.gather(1, places)
        held.scatter_(1, places, False)
        coming = sum(length > number + pool for length in lengths)
        if coming:
            new = streams[:coming, number + pool]
            which = torch.arange(coming)[:, None].to(X.device)
            items[:coming].scatter_(1, places[:coming], new)
            held[:coming].scatter_(1, places[:coming], True)
            X[which, places[:coming].to(X.device)] = rows(new)


def _draw_places(
    X: Tensor, held: Tensor, batch_size: int, bandwidth: float, generator: Generator
) -> Tensor:
    """Draw from every pool (J, P, D), of which some places are held; on the CPU."""
    S = _similarity(X, bandwidth)
    S = torch.where(held[:, :, None] & held[:, None, :], S, 0.0)
    leading = torch.linalg.eigh(S).eigenvectors[:, :, -batch_size:].mT
    leading = leading * held[:, None, :]
    kept = held.new_ones(len(X), 1, batch_size)
    return sample_elementary(leading, kept, generator)[:, 0].cpu()
