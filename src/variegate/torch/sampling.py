"""Exact samples of a batch of processes.

Two methods with one law.  By eigenvectors, any number of samples share one
eigendecomposition.  Item after item (Poulson, 2020), each is taken with its probability
given the decisions before: the pivot of an elimination of ``K``, from which one is
subtracted wherever the item was left out.  That needs no eigenvectors, and is faster
for few samples of each of many small kernels.

An elementary process picks ``k`` items from the span of ``k`` orthonormal vectors: the
next item with probability proportional to its squared residual outside the span of the
items picked before.  As in :mod:`variegate.linalg.compiled.elementary`, items are
proposed from the residuals before any pick and accepted with the share that is left of
their residual.  Here every sample looks at several proposals in a round, takes the
first that is accepted, if any is, and forgets the others: so nearly every round adds an
item to every sample.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from variegate.torch.eigenvectors import (
    ElementaryMixture,
    choose_eigenvectors,
    keep_probabilities,
)

__all__ = ["draw", "draw_in_turn", "sample_elementary"]

#: Coins that are tossed at a time, or entries of matrices that are eliminated.
_COINS = {"cuda": 2**26}
_COINS_ELSEWHERE = 2**22

#: Proposals in the first round, and in the last.
_FEWEST_PROPOSALS = 2
_MOST_PROPOSALS = 32

#: A residual up to this share of an item is rounding: it was picked, or lies in the
#: span of those that were.
_ROUNDING = 1e-12

#: Numbers in the largest temporary of a block of samples: enough to fill a GPU, and for
#: a processor few enough to stay near it.
_BLOCK_ENTRIES = {"cuda": 2**24}
_BLOCK_ENTRIES_ELSEWHERE = 2**20


def draw(
    mixture: ElementaryMixture,
    n_samples: int,
    k: int | None,
    generator: Generator | None,
) -> Tensor:
    """Draw ``n_samples`` subsets of every set: (B, n_samples, largest size).

    Item numbers are ascending, -1 after the last.  With ``k``, no set may have a
    smaller rank.
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
    """Draw subsets (B, n_samples, N), boolean, by marginal kernels ``K`` (B, N, N)."""
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


# Elementary processes ------------------------------------------------------------


@dataclass
class _Samples:
    """Samples that are being drawn, ``T`` of them."""

    number: Tensor  # (T,): which sample it is
    rows: Tensor  # (T, k): places of its vectors, filled up with one of zeros
    cumulative: Tensor  # (T, N): sums of the residuals before any pick
    sizes: Tensor  # (T,): the number of items at the end
    counts: Tensor  # (T,): the number of items now
    basis: Tensor  # (T, k + 1, k): of the span of the picks, zero after the last
    items: Tensor  # (T, k + 1): item numbers, -1 after the last

    def of(self, which: Tensor) -> _Samples:
        """Return some of the samples, by their places."""
        return _Samples(*(getattr(self, name)[which] for name in self.__dict__))


def block_size(n_items: int, k: int, device: torch.device) -> int:
    """Return how many samples of ``k`` of ``n_items`` items are drawn at a time."""
    entries = _BLOCK_ENTRIES.get(device.type, _BLOCK_ENTRIES_ELSEWHERE)
    return max(1, entries // max(n_items, _MOST_PROPOSALS * k, k * k, 1))


def sample_elementary(
    vectors: Tensor, kept: Tensor, generator: Generator | None
) -> Tensor:
    """Draw one subset for every choice ``kept`` (B, n, M) of eigenvectors.

    ``vectors`` (B, M, N) are orthonormal rows of double precision.  The result (B, n,
    largest size) has item numbers, ascending, -1 after the last.
    """
    n_sets, n_samples, _ = kept.shape
    n_items = vectors.shape[2]
    sizes = kept.sum(dim=2).flatten()
    largest = int(sizes.max()) if sizes.numel() else 0
    items = torch.full((len(sizes), largest), n_items, device=vectors.device)
    if largest == 0:
        return items.view(n_sets, n_samples, 0)
    # The vector of zeros that fills up those of small samples is the last of a set.
    padded = torch.nn.functional.pad(vectors, (0, 0, 0, 1)).flatten(0, 1)
    rows = _rows_kept(kept, largest)
    cumulative = torch.bmm(kept.to(vectors.dtype), vectors.square()).cumsum(dim=2)
    cumulative = cumulative.flatten(0, 1)
    # Samples of about the same size go together.
    order = sizes.argsort(descending=True)
    start = 0
    while start < len(order):
        k = int(sizes[order[start]])
        if k == 0:
            break
        which = order[start : start + block_size(n_items, k, vectors.device)]
        block = _begin(which, rows[which, :k], cumulative[which], sizes[which])
        for done in _draw(block, padded, generator):
            items[done.number, :k] = done.items[:, :k]
        start += len(which)
    items = torch.where(items < 0, n_items, items).sort(dim=1).values
    items = torch.where(items == n_items, -1, items)
    return items.view(n_sets, n_samples, largest)


def _rows_kept(kept: Tensor, largest: int) -> Tensor:
    """Return where each sample's vectors are among those of all sets, (B n, k)."""
    n_sets, n_samples, n_vectors = kept.shape
    own, sample, vector = kept.nonzero(as_tuple=True)
    place = (kept.cumsum(dim=2) - 1)[own, sample, vector]
    first = torch.arange(n_sets, device=kept.device) * (n_vectors + 1)
    rows = (first + n_vectors)[:, None, None].repeat(1, n_samples, largest)
    rows[own, sample, place] = first[own] + vector
    return rows.flatten(0, 1)


def _begin(which: Tensor, rows: Tensor, cumulative: Tensor, sizes: Tensor) -> _Samples:
    n_samples, k = rows.shape
    return _Samples(
        number=which,
        rows=rows,
        cumulative=cumulative,
        sizes=sizes,
        counts=torch.zeros_like(sizes),
        basis=cumulative.new_zeros(n_samples, k + 1, k),
        items=torch.full((n_samples, k + 1), -1, device=rows.device),
    )


def _draw(
    samples: _Samples, vectors: Tensor, generator: Generator | None
) -> list[_Samples]:
    """Draw until all have their size; return them as they were finished."""
    k = samples.rows.shape[1]
    finished, rounds = [], 0
    while True:
        if rounds >= k:  # from here on some may have finished
            done = samples.counts >= samples.sizes
            finished.append(samples.of(done.nonzero().squeeze(1)))
            samples = samples.of((~done).nonzero().squeeze(1))
            if len(samples.sizes) == 0:
                return finished
        left = max(k - rounds, 1)
        n_proposals = min(max(2 * k // left, _FEWEST_PROPOSALS), _MOST_PROPOSALS)
        _add_one(samples, vectors, n_proposals, min(rounds, k), generator)
        rounds += 1


def _add_one(
    samples: _Samples,
    vectors: Tensor,
    n_proposals: int,
    n_directions: int,
    generator: Generator | None,
) -> None:
    """Add the first proposal that is accepted to every sample, if any is."""
    n_samples = len(samples.sizes)
    proposed, uniform = torch.rand(
        (2, n_samples, n_proposals),
        generator=generator,
        device=vectors.device,
        dtype=vectors.dtype,
    )
    target = proposed * samples.cumulative[:, -1:]
    item = torch.searchsorted(samples.cumulative, target, right=True)
    item.clamp_(max=vectors.shape[1] - 1)
    row = vectors[samples.rows[:, None, :], item[:, :, None]]
    basis = samples.basis[:, :n_directions]
    norm = row.square().sum(dim=2)
    residual = norm - torch.bmm(row, basis.mT).square().sum(dim=2)
    accepted = (uniform * norm < residual) & (residual > _ROUNDING * norm)
    first = accepted.to(torch.uint8).argmax(dim=1)
    numbers = torch.arange(n_samples, device=vectors.device)
    found = accepted[numbers, first] & (samples.counts < samples.sizes)
    direction = row[numbers, first].unsqueeze(1)
    for _ in range(2):  # twice, so that the basis stays orthogonal to rounding
        direction = direction - torch.bmm(torch.bmm(direction, basis.mT), basis)
    direction = torch.nn.functional.normalize(direction.squeeze(1), dim=1)
    samples.basis[numbers, samples.counts] = torch.where(found[:, None], direction, 0.0)
    samples.items[numbers, samples.counts] = torch.where(
        found, item[numbers, first], -1
    )
    samples.counts += found
