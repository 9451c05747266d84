"""Exact samples of a batch of determinantal point processes.

``L = A Aᵀ`` by a pivoted Cholesky factorisation, ``A = C diag(d)`` with the entries of
``C`` at most one and the pivots ``d`` falling, however widely the qualities spread.
Then ``I + AᵀA = I + d CᵀC d`` is factored with large pivots divided out: ``r = min(d,
1)``, ``c = min(1/d, 1)``, ``r CᵀC r + c² = TTᵀ``.  With ``Q = T⁻¹ r Cᵀ`` the marginal
kernel is ``K = QᵀQ``.

Two methods draw from the same law.  By eigenvectors, any number of samples share one
eigendecomposition: the eigenvectors ``w`` of ``Q Qᵀ``, of the size of the rank, give
the eigenvectors ``v = Qᵀ w / √κ`` of ``K``, each kept with the probability ``κ`` (Hough
et al., 2006), which has an absolute error of rounding whatever the qualities.  Item
after item (Poulson, 2020), each is taken with its probability given the decisions
before: the pivot of an elimination of ``K``, less one wherever the item was left out.
Without eigenvectors, that is twice as fast on a CPU for up to four samples of each of
many kernels of 10 to 50 items.

For exactly ``k`` items ``L`` is first scaled so that about ``k`` items are expected,
which does not change the law: the eigenvalues that matter are then neither near zero
nor near one, and keep all digits.

An elementary process picks ``k`` items from the span of ``k`` orthonormal vectors: the
next item with probability proportional to its squared residual outside the span of the
items picked before.  As in :mod:`variegate.linalg.compiled.elementary`, items are
proposed by the residuals before any pick and accepted with the share that is left of
their residual.  Every sample takes the first accepted of several proposals in a round,
so that nearly every round adds an item to every sample.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Generator, Tensor
from torch.nn.functional import normalize, pad

from variegate.torch.greedy import Residuals, choose_items

#: A pivot of ``L`` below this adds less than rounding to any probability.
_NO_PART = math.log(1e-20)

#: Bisections for the multiple of ``L``, of which only the order of magnitude matters:
#: to 1e-3 of an interval of thousands.
_HALVINGS = 24

#: The largest distance of a logarithm of an eigenvalue from the pivots.
_BEYOND = 40.0

#: Random numbers that are drawn at a time, or entries of matrices that are eliminated.
_COINS = {"cuda": 2**26, "cpu": 2**22}

#: Proposals in the first round, and in the last.
_FEWEST_PROPOSALS = 2
_MOST_PROPOSALS = 32

#: A residual up to this share of an item is rounding: it lies in the span of the picks.
_ROUNDING = 1e-12

#: Numbers in the largest temporary of a block of samples: enough to fill a GPU, and few
#: enough for the cache of a CPU.
_BLOCK_ENTRIES = {"cuda": 2**24, "cpu": 2**20}


class ElementaryMixture(NamedTuple):
    """B processes, each a mixture of elementary ones by its eigenvectors."""

    kept: Tensor  # (B, M): eigenvalues of ``K`` between 0 and 1, ascending
    vectors: Tensor  # (B, M, N): orthonormal rows, zero where ``kept`` is


def marginal_roots(
    residuals: Residuals, rounds: int, k: int | None
) -> tuple[Tensor, Tensor]:
    """Return roots ``Q`` (B, R, N) of marginal kernels, ``K = QᵀQ``, and ranks (B,).

    ``residuals`` are those of the kernels ``L`` before any item but given ones is
    taken, in double precision and with columns; they are updated.  ``rounds`` is the
    largest rank.  Beside given items ``L`` is that of the conditional process.  With
    ``k``, ``K`` belongs to the multiple of ``L`` that expects about ``k`` items.
    """
    first = residuals.count
    above = _NO_PART if k is None else -torch.inf
    _, gains = choose_items(residuals, rounds, above=above, open_ended=True)
    there = gains > -torch.inf
    rank = there.sum(dim=1)
    gains, there = gains[:, : int(rank.max())], there[:, : int(rank.max())]
    pivots = 0.5 * torch.where(there, gains, 0.0)
    # An item with a nonzero entry has a residual of at least 1e-6 of its length, which
    # is at most the pivot: larger exponents belong to entries of zero.
    exponent = 0.5 * residuals.twice_log_scale[:, None, :] - pivots[:, :, None]
    columns = residuals.columns[:, first : first + gains.shape[1]]
    C = columns * exponent.clamp_(max=16.0).exp_()
    if k is not None:
        pivots = pivots + 0.5 * _log_multiple(gains, k)[:, None]
    r = torch.where(there, pivots.clamp(max=0.0).exp(), 0.0)
    c = torch.where(there, (-pivots.clamp(min=0.0)).exp(), 1.0)
    C = C * r[:, :, None]
    M = torch.bmm(C, C.mT)
    torch.diagonal(M, dim1=1, dim2=2).add_(c * c)
    T = torch.linalg.cholesky_ex(M).L
    return torch.linalg.solve_triangular(T, C, upper=False), rank


def elementary_mixture(Q: Tensor) -> ElementaryMixture:
    """Return processes with ``K = QᵀQ``, ``Q`` (B, R, N), as elementary mixtures."""
    kept, W = torch.linalg.eigh(torch.bmm(Q, Q.mT))
    kept = kept.clamp(0.0, 1.0)
    # Smaller eigenvalues are rounding.
    rounding = max(kept.shape[1], 1) * torch.finfo(kept.dtype).eps
    kept = torch.where(kept > rounding, kept, 0.0)
    most = int((kept > 0.0).sum(dim=1).max()) if len(kept) else 0
    kept, W = kept[:, kept.shape[1] - most :], W[:, :, kept.shape[1] - most :]
    scale = torch.where(kept > 0.0, kept.rsqrt(), 0.0)
    return ElementaryMixture(kept, torch.bmm(W.mT * scale[:, :, None], Q))


def _log_multiple(gains: Tensor, k: int) -> Tensor:
    """Return ``log z`` (B,) such that the process of ``z L`` expects about ``k`` items.

    ``gains`` (B, R) are the log pivots of ``L``, -inf after the last.
    """
    there = gains > -torch.inf
    low = -torch.where(there, gains, -torch.inf).amax(dim=1) - _BEYOND
    high = -torch.where(there, gains, torch.inf).amin(dim=1) + _BEYOND
    low, high = low.nan_to_num(), high.nan_to_num()
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        expected = torch.where(there, (gains + middle[:, None]).sigmoid(), 0.0)
        few = expected.sum(dim=1) < k
        low, high = torch.where(few, middle, low), torch.where(few, high, middle)
    return 0.5 * (low + high)


def draw_from_mixture(
    mixture: ElementaryMixture,
    n_samples: int,
    k: int | None,
    generator: Generator | None,
) -> Tensor:
    """Draw item numbers (B, n_samples, largest size): subsets of every ground set.

    They ascend, -1 after the last.  With ``k``, subsets have ``k`` items, and no set
    may have a smaller rank.  A ``generator`` of None is PyTorch's own.
    """
    coins = _COINS[mixture.kept.device.type]
    at_once = max(1, coins // max(*mixture.vectors.shape[1:], 1))
    samples = min(n_samples, at_once)
    sets = max(1, at_once // samples)
    drawn = []
    for kept, vectors in zip(*(part.split(sets) for part in mixture), strict=True):
        choose_kept = _make_keep_sampler(kept, k, generator)
        counts = [min(samples, n_samples - i) for i in range(0, n_samples, samples)]
        row = [sample_elementary(vectors, choose_kept(n), generator) for n in counts]
        drawn.append(_concat_padded(row, dim=1))
    return _concat_padded(drawn, dim=0)


def _make_keep_sampler(
    kept: Tensor, k: int | None, generator: Generator | None
) -> Callable[[int], Tensor]:
    """Return a function that draws which vectors n samples keep, boolean (B, n, M).

    ``kept`` (B, M) are eigenvalues of ``K``; with ``k``, each keeps ``k`` vectors.
    """
    if k is None:
        n_sets, n_vectors = kept.shape
        return lambda n_samples: (
            kept.new_empty(n_sets, n_samples, n_vectors).uniform_(generator=generator)
            < kept[:, None, :]
        )
    # One minus an eigenvalue has an error of rounding.
    least = torch.finfo(kept.dtype).eps
    log_values = kept.log() - (1.0 - kept).clamp(min=least).log()
    probabilities = keep_probabilities(log_values, k)
    return lambda n_samples: choose_eigenvectors(probabilities, n_samples, generator)


def _concat_padded(parts: list[Tensor], dim: int) -> Tensor:
    """Concatenate parts (B, n, k) along ``dim``, padded with -1 to the largest k."""
    largest = max(part.shape[2] for part in parts)
    parts = [pad(part, (0, largest - part.shape[2]), value=-1) for part in parts]
    return torch.cat(parts, dim=dim)


def keep_probabilities(log_values: Tensor, k: int) -> Tensor:
    """Return the probabilities (M, B, k + 1) by which a k-DPP keeps eigenvectors.

    Entry ``[m - 1, b, j]``: if ``j`` of the first ``m`` are wanted, the ``m``-th is
    kept with probability ``λ_m e_{j-1}(m - 1) / e_j(m)`` (Kulesza and Taskar, 2011),
    0 for ``j = 0``.  The elementary symmetric polynomials of the first ``m`` values,
    ``e_j(m) = e_j(m - 1) + λ_m e_{j-1}(m - 1)``, have no subtraction: in log space no
    digit is lost.  ``log_values`` (B, M) are ``log λ``, up to a constant for each set.
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
    """Draw booleans (B, n_samples, M), the vectors kept, by ``keep_probabilities``."""
    n_values, n_sets, wanted = probabilities.shape
    shape, device = (n_values, n_sets, n_samples), probabilities.device
    uniform = probabilities.new_empty(shape).uniform_(generator=generator)
    kept = torch.empty(shape, dtype=torch.bool, device=device)
    missing = torch.full(shape[1:], wanted - 1, device=device)
    for m in reversed(range(n_values)):
        torch.lt(uniform[m], probabilities[m].gather(1, missing), out=kept[m])
        missing -= kept[m].long()
    return kept.permute(1, 2, 0)


def draw_sequentially(K: Tensor, n_samples: int, generator: Generator | None) -> Tensor:
    """Draw subsets as :func:`draw_from_mixture`, by marginal kernels (B, N, N)."""
    entries = _COINS[K.device.type]
    at_once = max(1, entries // max(n_samples * K.shape[1] ** 2, 1))
    parts = [_decide_items(part, n_samples, generator) for part in K.split(at_once)]
    chosen = torch.cat(parts)
    numbers = torch.arange(chosen.shape[2], device=K.device)
    items = _sort_items(torch.where(chosen, numbers, -1), chosen.shape[2])
    return items[:, :, : int(chosen.sum(dim=2).max()) if chosen.numel() else 0]


def _sort_items(items: Tensor, n_items: int) -> Tensor:
    """Return item numbers sorted, negative ones and ``n_items`` as -1 at the end."""
    items = torch.where(items < 0, n_items, items).sort(dim=-1).values
    return torch.where(items == n_items, -1, items)


def _decide_items(K: Tensor, n_samples: int, generator: Generator | None) -> Tensor:
    """Return samples (B, n_samples, N), boolean, by ``K`` (B, N, N), item by item."""
    n_sets, n_items, _ = K.shape
    total = n_sets * n_samples
    own = torch.arange(n_sets, device=K.device).repeat_interleave(n_samples)
    uniform = K.new_empty(n_items, total).uniform_(generator=generator)
    taken = torch.empty((n_items, total), dtype=torch.bool, device=K.device)
    rows = K.new_empty(total, n_items, n_items)
    over_pivots = K.new_empty(total, 1, n_items)
    for i in range(n_items):
        row = K[own, i]
        if i:
            weights = rows[:, :i, i].unsqueeze(1) * over_pivots[:, :, :i]
            row = row.unsqueeze(1).baddbmm(weights, rows[:, :i], alpha=-1.0).squeeze(1)
        torch.lt(uniform[i], row[:, i], out=taken[i])
        rows[:, i] = row
        over_pivots[:, 0, i] = 1.0 / (row[:, i] - (~taken[i]).to(K.dtype))
    return taken.T.reshape(n_sets, n_samples, n_items)


# Elementary processes ------------------------------------------------------------


@dataclass
class _Samples:
    """Samples that are being drawn, ``T`` of them, each with up to ``k`` items."""

    number: Tensor  # (T,): the row of the sample in the result
    rows: Tensor  # (T, k): row numbers of its vectors, then of a vector of zeros
    cumulative: Tensor  # (T, N): sums of the residuals before any pick
    sizes: Tensor  # (T,): the number of items at the end
    counts: Tensor  # (T,): the number of items now
    basis: Tensor  # (T, k + 1, k): of the span of the picks, zero after the last
    items: Tensor  # (T, k + 1): item numbers, -1 after the last

    def select(self, which: Tensor) -> _Samples:
        """Return the samples at the positions ``which``."""
        return _Samples(*(values[which] for values in vars(self).values()))


def sample_elementary(
    vectors: Tensor, kept: Tensor, generator: Generator | None
) -> Tensor:
    """Return a subset for every choice ``kept``, boolean (B, n, M), of eigenvectors.

    Its size is the number of vectors.  ``vectors`` (B, M, N) are orthonormal rows of
    double precision.  The result (B, n, largest size) has item numbers, ascending, -1
    after the last.
    """
    n_sets, n_samples, _ = kept.shape
    n_items = vectors.shape[2]
    sizes = kept.sum(dim=2).flatten()
    largest = int(sizes.max()) if sizes.numel() else 0
    items = torch.full((len(sizes), largest), n_items, device=vectors.device)
    if largest == 0:
        return items.view(n_sets, n_samples, 0)
    # The last vector of a set is zero, and fills up the vectors of small samples.
    padded = pad(vectors, (0, 0, 0, 1)).flatten(0, 1)
    rows = _list_kept_rows(kept, largest)
    cumulative = torch.bmm(kept.to(vectors.dtype), vectors.square()).cumsum(dim=2)
    cumulative = cumulative.flatten(0, 1)
    # Samples of about the same size go together.
    entries = _BLOCK_ENTRIES[vectors.device.type]
    order = sizes.argsort(descending=True)
    while len(order) and (k := int(sizes[order[0]])):
        which = order[: max(1, entries // max(n_items, _MOST_PROPOSALS * k, k * k))]
        block = _Samples(
            which,
            rows[which, :k],
            cumulative[which],
            sizes[which],
            counts=torch.zeros_like(which),
            basis=vectors.new_zeros(len(which), k + 1, k),
            items=torch.full((len(which), k + 1), -1, device=which.device),
        )
        for done in _draw_until_complete(block, padded, generator):
            items[done.number, :k] = done.items[:, :k]
        order = order[len(which) :]
    return _sort_items(items, n_items).view(n_sets, n_samples, largest)


def _list_kept_rows(kept: Tensor, largest: int) -> Tensor:
    """Return the row numbers (B n, largest) of the vectors that each sample keeps.

    ``kept`` is (B, n, M).  Each set has ``M + 1`` consecutive rows: its vectors, and
    one of zeros, whose number stands after the last vector of a sample.
    """
    n_sets, n_samples, n_vectors = kept.shape
    own, sample, vector = kept.nonzero(as_tuple=True)
    place = (kept.cumsum(dim=2) - 1)[own, sample, vector]
    first = torch.arange(n_sets, device=kept.device) * (n_vectors + 1)
    rows = (first + n_vectors)[:, None, None].repeat(1, n_samples, largest)
    rows[own, sample, place] = first[own] + vector
    return rows.flatten(0, 1)


def _draw_until_complete(
    samples: _Samples, vectors: Tensor, generator: Generator | None
) -> list[_Samples]:
    """Draw until all samples have their size; return them in groups, as they finish.

    ``vectors`` (B (M + 1), N) are those that ``samples.rows`` refer to.
    """
    k = samples.rows.shape[1]
    finished, rounds = [], 0
    while True:
        if rounds >= k:  # from here on some may have finished
            done = samples.counts >= samples.sizes
            finished.append(samples.select(done.nonzero().squeeze(1)))
            samples = samples.select((~done).nonzero().squeeze(1))
            if len(samples.sizes) == 0:
                return finished
        left = max(k - rounds, 1)
        n_proposals = min(max(2 * k // left, _FEWEST_PROPOSALS), _MOST_PROPOSALS)
        _add_proposed_items(samples, vectors, n_proposals, min(rounds, k), generator)
        rounds += 1


def _add_proposed_items(
    samples: _Samples,
    vectors: Tensor,
    n_proposals: int,
    n_directions: int,
    generator: Generator | None,
) -> None:
    """Add to each sample, in place, the first accepted of ``n_proposals`` items.

    Samples without one, or complete already, stay.  No basis has more than
    ``n_directions`` rows in use.
    """
    n_samples = len(samples.sizes)
    shape = (2, n_samples, n_proposals)
    proposed, uniform = vectors.new_empty(shape).uniform_(generator=generator)
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
    direction = normalize(direction.squeeze(1), dim=1)
    samples.basis[numbers, samples.counts] = torch.where(found[:, None], direction, 0.0)
    picked = torch.where(found, item[numbers, first], -1)
    samples.items[numbers, samples.counts] = picked
    samples.counts += found
