"""Items from elementary processes, for a batch of samples at once.

An elementary process picks ``k`` items from the span of ``k`` orthonormal vectors: the
next item with probability proportional to its squared residual outside the span of the
items picked before.  As in :mod:`variegate.compiled.elementary`, items are proposed
from the residuals before any pick and accepted with the share that is left of their
residual.  Here every sample looks at several proposals in a round, takes the first that
is accepted, if any is, and forgets the others: so nearly every round adds an item to
every sample.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

__all__ = ["sample_elementary"]

#: Proposals in a round: at first this many, at last so many.
_FEWEST_PROPOSALS = 2
_MOST_PROPOSALS = 32

#: What is left of an item up to this share is rounding: it was picked, or lies in the
#: span of what was.
_ROUNDING = 1e-12

#: Numbers in the largest temporary of a block of samples: enough to fill a GPU, and for
#: a processor few enough to stay near it.
_BLOCK_ENTRIES = {"cuda": 2**24}
_BLOCK_ENTRIES_ELSEWHERE = 2**20


@dataclass
class _Samples:
    """Samples that are being drawn, ``T`` of them.

    Attributes
    ----------
    number : (T,)
        Which sample it is.
    rows : (T, k)
        Where among the vectors its own are; a vector of zeros fills up.
    cumulative : (T, N)
        Sums of the residuals before any pick.
    sizes, counts : (T,)
        How many items it will have, and has.
    basis : (T, k + 1, k)
        Orthonormal; of the items picked, zero after the last.
    items : (T, k + 1)
        Item numbers, -1 after the last.
    """

    number: Tensor
    rows: Tensor
    cumulative: Tensor
    sizes: Tensor
    counts: Tensor
    basis: Tensor
    items: Tensor

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
    """Draw one subset for every choice of eigenvectors.

    Parameters
    ----------
    vectors : tensor of shape (B, M, N)
        Orthonormal vectors in rows, of double precision.
    kept : boolean tensor of shape (B, n, M)
        The vectors that span each of ``n`` samples of each of ``B`` sets.
    generator : torch.Generator, optional

    Returns
    -------
    tensor of shape (B, n, k)
        Item numbers, ascending, -1 after the last; ``k`` is the largest size.
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
