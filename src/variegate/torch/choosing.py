"""Subsets of a batch of kernels: greedily, or at random by their probability."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor

from variegate._validation import check_count
from variegate.torch.greedy import (
    DenseResiduals,
    FactoredResiduals,
    Residuals,
    Room,
    choose,
)
from variegate.torch.inputs import Collection, Kernels, LowRank, as_collection
from variegate.torch.sampling import draw, draw_in_turn, mixture_of, roots_of
from variegate.torch.targets import exact

#: Up to this many items, and samples of a set, a batch is drawn from item after item.
_ITEMS_IN_TURN = 128
_SAMPLES_IN_TURN = 4


class Subsets(NamedTuple):
    """One subset of every set, or several.

    Attributes
    ----------
    items : tensor of shape (..., k)
        Item numbers, padded with -1 after the last: what
        :func:`variegate.torch.large_margin_loss` takes as targets.
    sizes : tensor of shape (...)
        How many items each has.
    """

    items: Tensor
    sizes: Tensor

    def indicator(self, n_items: int) -> Tensor:
        """Return the subsets as a boolean tensor of shape (..., n_items)."""
        shape = (*self.items.shape[:-1], n_items + 1)
        chosen = torch.zeros(shape, dtype=torch.bool, device=self.items.device)
        chosen.scatter_(-1, torch.where(self.items < 0, n_items, self.items), True)
        return chosen[..., :n_items]


@torch.no_grad()
def greedy(
    kernel: Tensor | LowRank,
    k: int | None = None,
    *,
    log_quality: Tensor | None = None,
    mask: Tensor | None = None,
    budget: float | Tensor | None = None,
    costs: Tensor | None = None,
    include: Tensor | None = None,
) -> Subsets:
    """Choose a subset of every set greedily, as ``LEnsemble.decode("greedy")`` does.

    The item that raises the probability most comes first, then the one that raises it
    most given the first, and so on: by a Cholesky factorisation that grows by a column
    an item (Chen et al., 2018), in ``O(k N)`` memory a set and rounds of a few
    operations on the whole batch.  Ties go to the smallest number.

    Parameters
    ----------
    kernel, log_quality :
        As in :func:`large_margin_loss`.  One kernel serves a batch of log-qualities or
        masks.
    k : int, optional
        Choose ``k`` items.  Fewer are chosen where a set has no more, or the rank is
        used up, or nothing else fits the budget.  Without ``k`` a set ends when no item
        raises the probability.
    mask : boolean tensor of shape (B, N) or (N,), optional
        True where there is an item that may be chosen.
    budget : float or tensor of shape (B,), optional
        The largest sum of costs.  Items are then chosen by gain for their cost.
    costs : tensor of shape (B, N) or (N,), optional
        Positive; ones if there is a budget and no costs.
    include : tensor of shape (B, m) or (m,), optional
        Numbers of items that are chosen already, padded with -1, as those of
        ``LEnsemble.condition``: others are chosen next to them.  They count neither for
        ``k`` nor for the budget, and are not returned.

    Returns
    -------
    Subsets
        In the order of choice; ``items`` is (B, k), or (k,) of one set.

    Notes
    -----
    With ``k`` nothing waits for the device before the last check of the input.  In
    single precision an item counts as dependent on others where less than 1e-5 of its
    squared length is left, and gains within 1e-5 as equal; in double, 1e-12 and 1e-10.

    Examples
    --------
    >>> import torch
    >>> import variegate.torch as vt
    >>> vt.greedy(torch.tensor([[2.0, 1.9], [1.9, 2.1]]))  # good, but nearly equal
    Subsets(items=tensor([1]), sizes=tensor(1))
    """
    collection = as_collection(kernel, log_quality, mask, costs=costs)
    (kernels,) = collection.batches
    _check_k(k, kernels.n_items)
    included = _included(include, kernels)
    room = _room(kernels, k, budget, included)
    most = min(kernels.largest_rank, kernels.n_items if k is None else k)
    above = 0.0 if k is None else -torch.inf
    with exact(kernels.kernel):
        n_columns = None if k is None else most + included.shape[1]
        residuals = _residuals(kernels, kernels.kernel.dtype, n_columns)
        _refuse(~residuals.take_all(included), _IMPOSSIBLE)
        items, _ = choose(residuals, most, above=above, room=room, open_ended=k is None)
    _refuse(~residuals.is_sound(), _UNSOUND)
    if k is None:
        largest = int((items >= 0).sum(dim=1).max()) if len(items) else 0
        items = items[:, :largest]
    else:
        items = torch.nn.functional.pad(items, (0, k - items.shape[1]), value=-1)
    return _subsets(items, collection)


@torch.no_grad()
def sample(
    kernel: Tensor | LowRank,
    n: int = 1,
    k: int | None = None,
    *,
    log_quality: Tensor | None = None,
    mask: Tensor | None = None,
    generator: Generator | int | None = None,
) -> Subsets:
    """Draw subsets exactly, as ``LEnsemble.sample`` and ``sample_k`` do.

    Parameters
    ----------
    kernel, log_quality, mask :
        As for :func:`greedy`.
    n : int, default=1
        How many subsets of each set.
    k : int, optional
        Draw subsets of exactly ``k`` items, with the probabilities that they have given
        their number (a k-DPP).
    generator : torch.Generator or int, optional
        A generator of the kernel's device, or a seed for one.  The same seed draws the
        same subsets on the same device and version of PyTorch.

    Returns
    -------
    Subsets
        Items ascending; ``items`` is (B, n, largest size), or (n, largest size) of one
        set.

    Notes
    -----
    All of it is in double precision.  Marginal kernels are right to 1e-13, whatever the
    log-qualities (up to ±300 was tried), where similarities have full or low rank.  At
    the edge of a rank, as of smooth Gaussians of near points, an item of which others
    leave no more than 1e-12 of its squared length depends on them, and next to
    log-qualities of ±20 such decisions were seen to make up to 1e-6.  A kernel given as
    ``L`` has the digits that its entries have.

    Many samples of one kernel share an eigendecomposition of the size of the rank,
    after which a sample of ``m`` items takes ``O(N M + m³ log m)``, ``M`` being the
    number of eigenvalues of ``K`` that are not zero.
    """
    collection = as_collection(kernel, log_quality, mask)
    (kernels,) = collection.batches
    _check_k(k, kernels.n_items)
    check_count("n", n)
    stream = _stream(generator, kernels.device)
    if kernels.n_sets == 0:
        empty = torch.zeros((0, n, 0), dtype=torch.long, device=kernels.device)
        return _subsets(empty, collection)
    most = kernels.largest_rank
    residuals = _residuals(kernels, torch.float64, most, keep_columns=True)
    Q, rank = roots_of(residuals, most, k)
    _refuse(~residuals.is_sound(), _UNSOUND)
    if k is not None:
        _refuse(rank < k, f"no subset of {k} items has positive probability", rank)
    in_turn = kernels.n_items <= _ITEMS_IN_TURN and n <= _SAMPLES_IN_TURN
    if k is None and in_turn and kernels.n_sets > 1:
        subsets = draw_in_turn(torch.bmm(Q.mT, Q), n, stream)
    else:
        subsets = draw(mixture_of(Q), n, k, stream)
    return _subsets(subsets, collection)


def _subsets(items: Tensor, collection: Collection) -> Subsets:
    """Return subsets, without a batch axis if one set was given without it."""
    items = items[0] if collection.is_single else items
    return Subsets(items, (items >= 0).sum(dim=-1))


_UNSOUND = (
    "its kernel or log-qualities are not finite, or the kernel is not positive "
    "semidefinite"
)
_IMPOSSIBLE = (
    "the included items are not all there, are named twice, or have probability zero"
)


def _residuals(
    kernels: Kernels, dtype: torch.dtype, n_columns: int | None, **options: bool
) -> Residuals:
    numbers = kernels.kernel[:1] if kernels.is_shared else kernels.kernel
    u, mask = kernels.log_quality, kernels.mask
    if mask is None:  # which says how many sets there are
        shape = (kernels.n_sets, kernels.n_items)
        mask = torch.ones((), dtype=torch.bool, device=kernels.device).expand(shape)
    given = (numbers.to(dtype), None if u is None else u.to(dtype), mask, n_columns)
    if kernels.is_low_rank:
        return FactoredResiduals(*given, **options)
    return DenseResiduals(*given)


def _included(include: Tensor | None, kernels: Kernels) -> Tensor:
    """Return the numbers of included items as (B, m), after a check."""
    n_sets, n_items = kernels.n_sets, kernels.n_items
    if include is None:
        return torch.empty((n_sets, 0), dtype=torch.long, device=kernels.device)
    if not isinstance(include, Tensor) or include.dtype != torch.long:
        found = getattr(include, "dtype", type(include).__name__)
        raise ValueError(f"include must be a tensor of item numbers, got {found}")
    if include.ndim not in (1, 2) or (include.ndim == 2 and len(include) != n_sets):
        raise ValueError(
            f"include has shape {tuple(include.shape)}, expected one row of item "
            f"numbers for each of {n_sets} sets, or one for all"
        )
    if bool(((include < -1) | (include >= n_items)).any()):
        raise ValueError(
            f"include must name items from 0 to {n_items - 1}, padded with -1"
        )
    return include.to(kernels.device).expand(n_sets, -1)


def _check_k(k: Any, n_items: int) -> None:
    """Refuse a number of items that no set has."""
    if k is None:
        return
    if isinstance(k, bool) or not isinstance(k, Integral):
        raise ValueError(f"k must be a whole number, got {k!r}")
    if not 0 <= int(k) <= n_items:
        raise ValueError(f"k must be between 0 and {n_items} items, got {k}")


def _refuse(wrong: Tensor, problem: str, rank: Tensor | None = None) -> None:
    """Raise an error that names the first set with the problem."""
    if bool(wrong.any()):
        number = int(wrong.to(torch.uint8).argmax())
        known = "" if rank is None else f": its kernel has rank {int(rank[number])}"
        raise ValueError(f"set {number}: {problem}{known}")


def _room(
    kernels: Kernels, k: int | None, budget: float | Tensor | None, included: Tensor
) -> Room | None:
    costs = kernels.costs
    if budget is None:
        if costs is not None:
            raise ValueError("costs were given without a budget")
        return None
    n_sets = kernels.n_sets
    if isinstance(budget, bool) or not isinstance(budget, Real | Tensor):
        raise ValueError(f"budget must be a number or a tensor, got {budget!r}")
    limits = torch.as_tensor(budget, dtype=torch.float64, device=kernels.device)
    if limits.ndim > 1 or (limits.ndim == 1 and len(limits) != n_sets):
        raise ValueError(
            f"budget has shape {tuple(limits.shape)}, expected one number for each of "
            f"{n_sets} sets, or one for all"
        )
    limits = limits.expand(n_sets)
    _refuse(~(torch.isfinite(limits) & (limits > 0)), "its budget must be above zero")
    present = ~Subsets(included, included).indicator(kernels.n_items)
    if kernels.mask is not None:
        present &= kernels.mask
    if costs is None:
        costs = torch.ones_like(present, dtype=torch.float64)
    positive = torch.isfinite(costs) & (costs > 0)
    _refuse((present & ~positive).any(dim=1), "its costs must be positive and finite")
    room = Room(costs, limits, present, k)
    if k is not None:
        _refuse(~room.affords(), f"no {k} items fit its budget")
    return room


def _stream(generator: Generator | int | None, device: torch.device) -> Any:
    if generator is None or isinstance(generator, Generator):
        return generator
    is_seed = isinstance(generator, Integral) and not isinstance(generator, bool)
    if not is_seed or generator < 0:
        raise ValueError(
            "generator must be a torch.Generator, a non-negative integer or None, got "
            f"{generator!r}"
        )
    return Generator(device=device).manual_seed(int(generator))
