"""Diverse mini-batches for training."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor

from variegate._validation import check_count, check_flag, check_number
from variegate.torch.sampling import sample_elementary

#: Batches of a stream for every batch of its pool: the share of batches that are drawn
#: from a pool that is running empty is one over this.
_LENGTH = 16

#: Streams that are drawn from together.
_STREAMS = 16

#: Items whose distances give the bandwidth, and the multiple of their median.  Random
#: batches of 16 handwritten digits have 8.1 kinds of 10; these have 9.0 with half a
#: median, 8.9 with one, 8.8 with one and a half.
_MEDIAN_ITEMS, _MEDIANS = 1000, 0.5

#: Ridge on the similarity of a pool, for items that are equal to be drawn too.
_JITTER = 1e-6


class DPPBatchSampler:
    r"""Batches of items that are unlike each other, for ``DataLoader(batch_sampler=)``.

    Every item is drawn exactly once an epoch, whose time is proportional to the number
    of items.  Items are shuffled and cut into streams, and every stream has
    a pool of ``pool`` batches.  A batch is an exact sample of ``batch_size`` items
    ``y`` of the pool with

    .. math:: P(y) = \det(K_y), \qquad K = V V^\top,

    the columns of ``V`` being the ``batch_size`` leading eigenvectors of the similarity
    ``exp(-‖x_i - x_j‖² / σ²)`` of the pool: of all the k-DPPs with these eigenvectors
    the one whose items keep furthest apart.  The next items of the stream then take the
    place of those that have left.  At the end of a stream its pool runs empty, so that
    its last few batches, one in sixteen, are nearer to random ones.

    Parameters
    ----------
    embeddings : array, memory map or tensor of shape (N, D)
        One row an item.  Rows are read when their items enter a pool.
    batch_size : int
    pool : int, default=2
        How many batches a pool holds.  Larger pools make batches more diverse; the time
        for a batch grows with the third power.  With 1 batches are random.
    bandwidth : float, optional
        ``σ``; by default half the median distance between a thousand items.
    drop_last : bool, default=False
        Whether to leave out the last items of the shuffle if they do not fill a batch.
        Otherwise the last batch of an epoch is smaller.
    seed : int, default=0
        Settles, with the epoch, all that is drawn.
    device : str or torch.device, optional
        Where batches are drawn; by default where the embeddings are.

    Attributes
    ----------
    epoch : int
        The epoch that is under way, or the next one.

    Examples
    --------
    >>> import numpy as np
    >>> import variegate.torch as vt
    >>> X = np.random.default_rng(0).standard_normal((1000, 8))
    >>> batches = vt.DPPBatchSampler(X, batch_size=32, drop_last=True)
    >>> len(batches), len({item for batch in batches for item in batch})
    (31, 992)
    """

    def __init__(
        self,
        embeddings: Any,
        batch_size: int,
        *,
        pool: int = 2,
        bandwidth: float | None = None,
        drop_last: bool = False,
        seed: int = 0,
        device: str | torch.device | None = None,
    ) -> None:
        _check_embeddings(embeddings)
        check_count("batch_size", batch_size)
        check_count("pool", pool)
        check_flag("drop_last", drop_last)
        check_count("seed", seed, least=0)
        if bandwidth is not None:
            check_number("bandwidth", bandwidth, positive=True)
        own = embeddings.device if isinstance(embeddings, Tensor) else "cpu"
        self.embeddings = embeddings
        self.batch_size, self.pool = int(batch_size), int(pool)
        self.bandwidth, self.drop_last, self.seed = bandwidth, drop_last, int(seed)
        self.device = torch.device(own if device is None else device)
        self.epoch = 0
        if len(self) == 0:
            raise ValueError(f"{len(embeddings)} items make no batch of {batch_size}")

    def __len__(self) -> int:
        """Return the number of batches of an epoch."""
        whole, left = divmod(len(self.embeddings), self.batch_size)
        return whole + (left > 0 and not self.drop_last)

    def set_epoch(self, epoch: int) -> None:
        """Set the number, from 0, of the epoch that the next iteration draws."""
        check_count("epoch", epoch, least=0)
        self.epoch = int(epoch)

    def __iter__(self) -> Iterator[list[int]]:
        """Yield the batches of an epoch, lists of item numbers; then go to the next."""
        shuffle = Generator().manual_seed(self._make_seed())
        order = torch.randperm(len(self.embeddings), generator=shuffle)
        whole = len(order) // self.batch_size
        batches = order[: whole * self.batch_size].view(whole, self.batch_size)
        n_streams = max(1, whole // (_LENGTH * self.pool))
        for number, first in enumerate(range(0, n_streams, _STREAMS)):
            edges = [
                whole * stream // n_streams
                for stream in range(first, min(first + _STREAMS, n_streams) + 1)
            ]
            for batch in self._draw_streams(number, edges, batches):
                yield batch.tolist()
        if whole < len(self):
            yield order[whole * self.batch_size :].tolist()
        self.epoch += 1

    def _draw_streams(
        self, number: int, edges: list[int], batches: Tensor
    ) -> Iterator[Tensor]:
        """Yield batches of item numbers (batch_size,), in turn one of each stream.

        ``batches`` (n, batch_size) are all items of the epoch, shuffled.  The ``S``
        streams of this call have its rows ``edges[s]`` to ``edges[s + 1] - 1``, with
        ``edges`` (S + 1,).  ``number`` counts the calls of an epoch, for the seed.
        """
        cuts = sorted(pairwise(edges), key=lambda cut: cut[0] - cut[1])
        lengths = torch.tensor([b - a for a, b in cuts])  # the longest first
        longest = int(lengths[0])
        # A shorter stream is filled up from its neighbours; that is never used.
        numbers = torch.tensor([a for a, _ in cuts])[:, None] + torch.arange(longest)
        streams = batches[numbers.clamp(max=len(batches) - 1)]
        seed = self._make_seed(1, number)
        generator = Generator(device=self.device).manual_seed(seed)
        pool = min(self.pool, longest)
        items = streams[:, :pool].flatten(1)
        held = lengths[:, None] * self.batch_size > torch.arange(items.shape[1])
        X = self._load_rows(items)
        for turn in range(longest):
            going = int((lengths > turn).sum())
            items, held, X = items[:going], held[:going], X[:going]
            if bool((held.sum(dim=1) == self.batch_size).all()):  # all that is left
                places = held.nonzero()[:, 1].view(going, self.batch_size)
            else:
                places = self._draw_places(X, held.to(X.device), generator)
            yield from items.gather(1, places)
            held.scatter_(1, places, False)
            coming = int((lengths > turn + pool).sum())
            if coming:
                new, places = streams[:coming, turn + pool], places[:coming]
                items[:coming].scatter_(1, places, new)
                held[:coming].scatter_(1, places, True)
                which = torch.arange(coming)[:, None].to(X.device)
                X[which, places.to(X.device)] = self._load_rows(new)

    def _draw_places(self, X: Tensor, held: Tensor, generator: Generator) -> Tensor:
        """Draw a batch from each of J pools, as positions in the pool (J, batch_size).

        ``X`` (J, P, D) are the vectors of the pools; only positions that are True in
        ``held`` (J, P) hold an item.  The result is on the CPU, ascending.
        """
        X = X / float(self.bandwidth or self._default_bandwidth)
        squares = X.square().sum(dim=2)
        sums = squares[:, :, None] + squares[:, None]
        distances = torch.baddbmm(sums, X, X.mT, alpha=-2)
        S = distances.clamp_(min=0.0).neg_().exp_()
        torch.diagonal(S, dim1=1, dim2=2).fill_(1.0 + _JITTER)
        S = torch.where(held[:, :, None] & held[:, None, :], S, 0.0)
        leading = torch.linalg.eigh(S).eigenvectors[:, :, -self.batch_size :].mT
        leading = leading * held[:, None, :]
        kept = held.new_ones(len(X), 1, self.batch_size)
        return sample_elementary(leading, kept, generator)[:, 0].cpu()

    def _make_seed(self, *use: int) -> int:
        """Return a seed that the sampler's seed, the epoch and ``use`` determine.

        ``use`` are numbers that keep different uses in one epoch apart.
        """
        sequence = np.random.SeedSequence([self.seed, self.epoch, *use])
        return int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(1))

    @cached_property
    def _default_bandwidth(self) -> float:
        """Half the median distance of sampled items that differ; 0.5 if none do."""
        draw = Generator().manual_seed(0)
        some = torch.randperm(len(self.embeddings), generator=draw)[:_MEDIAN_ITEMS]
        distances = torch.nn.functional.pdist(self._load_rows(some))
        distances = distances[distances > 0]  # of items that differ
        return _MEDIANS * float(distances.median()) if len(distances) else _MEDIANS

    def _load_rows(self, items: Tensor) -> Tensor:
        """Return the vectors (..., D) of items (...), double, on the sampler's device.

        Raise ValueError if they are not finite.
        """
        if isinstance(self.embeddings, Tensor):
            rows = self.embeddings[items.to(self.embeddings.device)]
        else:
            rows = torch.from_numpy(np.array(self.embeddings[items.numpy()], "f8"))
        rows = rows.to(self.device, torch.float64)
        finite = torch.isfinite(rows).all(dim=-1)
        if not bool(finite.all()):
            item = int(items.flatten()[~finite.flatten().cpu()][0])
            raise ValueError(f"row {item} of the embeddings is not finite")
        return rows


def _check_embeddings(embeddings: Any) -> None:
    """Refuse embeddings other than a real array or tensor of shape (N, D)."""
    if not isinstance(embeddings, np.ndarray | Tensor):
        raise ValueError(
            "embeddings must be an array, a memory map or a tensor, got "
            f"{type(embeddings).__name__}"
        )
    if isinstance(embeddings, Tensor):
        real = embeddings.is_floating_point()
    else:
        real = embeddings.dtype.kind in "fiu"
    if embeddings.ndim != 2 or not real:
        raise ValueError(
            "embeddings must hold real numbers, one row an item; got shape "
            f"{tuple(embeddings.shape)} of {embeddings.dtype}"
        )
