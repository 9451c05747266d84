"""Subsets of a batch of kernels: greedily, or at random by their probability."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor

from variegate._validation import check_count
from variegate.decoding.base import check_k
from variegate.torch.greedy import (
    DenseResiduals,
    FactoredResiduals,
    RemainingBudget,
    Residuals,
    choose_items,
)
from variegate.torch.inputs import Kernels
from variegate.torch.sampling import (
    draw_from_mixture,
    draw_sequentially,
    elementary_mixture,
    marginal_roots,
)
from variegate.torch.targets import full_precision, make_indicator

#: Most items, and samples of a set, for a batch to be drawn from item after item.
_ITEMS_IN_TURN = 128
_SAMPLES_IN_TURN = 4


class Subsets(NamedTuple):
    """One or several subsets of every set.

    Attributes
    ----------
    items : tensor of shape (..., k)
        Item numbers, padded with -1 after the last: targets for
        :class:`variegate.torch.LargeMarginLoss`.
    sizes : tensor of shape (...)
        The number of items of each.
    """

    items: Tensor
    sizes: Tensor

    @classmethod
    def of(cls, items: Tensor) -> Subsets:
        """Return item numbers (..., k), padded with -1, as subsets with sizes."""
        return cls(items, (items >= 0).sum(dim=-1))

    def indicator(self, n_items: int) -> Tensor:
        """Return the subsets as a boolean tensor of shape (..., n_items)."""
        return make_indicator(self.items, n_items)


def choose_greedily(
    kernels: Kernels, k: int | None, budget: float | Tensor | None
) -> Tensor:
    """Return item numbers (B, k) chosen greedily, in the order of choice, then -1.

    Without ``k``, they are chosen while the probability rises, with columns for the
    largest subset.  The sum of ``kernels.costs`` (ones if None) in a set is at most the
    ``budget``, a number or (B,), None without limit.  ValueError for invalid input.
    """
    check_k(k, kernels.n_items)
    remaining = _remaining_budget(kernels, k, budget)
    most = min(kernels.largest_rank, kernels.n_items if k is None else k)
    above = 0.0 if k is None else -torch.inf
    with full_precision(kernels.kernel):
        n_columns = None if k is None else most
        residuals = _make_residuals(kernels, kernels.kernel.dtype, n_columns)
        items, _ = choose_items(
            residuals, most, above=above, budget=remaining, open_ended=k is None
        )
    _raise_for_first(~residuals.is_sound(), _UNSOUND)
    if k is None:
        largest = int((items >= 0).sum(dim=1).max()) if len(items) else 0
        items = items[:, :largest]
    else:
        items = torch.nn.functional.pad(items, (0, k - items.shape[1]), value=-1)
    return items


def draw_subsets(
    kernels: Kernels, n: int, k: int | None, generator: Generator | int | None
) -> Tensor:
    """Draw ``n`` subsets of each set: item numbers (B, n, largest size), then -1.

    With ``k``, all have ``k`` items; ValueError for sets of lower rank.  ``generator``
    may be a seed, or None for PyTorch's own.
    """
    check_k(k, kernels.n_items)
    check_count("n", n)
    stream = _make_generator(generator, kernels.device)
    if kernels.n_sets == 0:
        return torch.zeros((0, n, 0), dtype=torch.long, device=kernels.device)
    most = kernels.largest_rank
    residuals = _make_residuals(kernels, torch.float64, most, keep_columns=True)
    Q, rank = marginal_roots(residuals, most, k)
    _raise_for_first(~residuals.is_sound(), _UNSOUND)
    if k is not None:
        beside = "" if kernels.given is None else " beside the given ones"
        _raise_for_first(
            rank < k, f"no subset of {k} items{beside} has positive probability", rank
        )
    in_turn = kernels.n_items <= _ITEMS_IN_TURN and n <= _SAMPLES_IN_TURN
    if k is None and in_turn and kernels.n_sets > 1:
        return draw_sequentially(torch.bmm(Q.mT, Q), n, stream)
    return draw_from_mixture(elementary_mixture(Q), n, k, stream)


_UNSOUND = (
    "its kernel or log-qualities are not finite, or the kernel is not positive "
    "semidefinite"
)


def _make_residuals(
    kernels: Kernels, dtype: torch.dtype, n_columns: int | None, **options: bool
) -> Residuals:
    """Return the squared distances of items from the span of the given ones.

    ``n_columns`` is the number of items to be chosen, None if not known; ``options``,
    such as ``keep_columns``, are for low-rank kernels.
    """
    kernel = kernels.kernel[:1] if kernels.is_shared else kernels.kernel
    u = kernels.log_quality
    if u is None:
        u = kernel.new_zeros(()).expand(kernels.n_sets, kernels.n_items)
    n_given = 0
    if kernels.given is not None and kernels.given.numel():
        u = u.masked_fill(kernels.given, 0.0)
        n_given = int(kernels.given.sum(dim=1).max())  # on a GPU, this waits for it
    if n_columns is not None:
        n_columns += n_given
    parts = (kernel.to(dtype), u.to(dtype), kernels.present, n_columns)
    residuals: Residuals
    if kernels.is_low_rank:
        residuals = FactoredResiduals(*parts, **options)
    else:
        residuals = DenseResiduals(*parts)
    if n_given and kernels.given is not None:
        residuals.take_given(kernels.given, n_given)
    return residuals


def _raise_for_first(wrong: Tensor, problem: str, rank: Tensor | None = None) -> None:
    """Raise ValueError for the first set that is True in ``wrong`` (B,), if one is.

    The message is ``problem``, then the ``rank`` (B,) of its kernel if given.
    """
    if bool(wrong.any()):
        number = int(wrong.to(torch.uint8).argmax())
        known = "" if rank is None else f": its kernel has rank {int(rank[number])}"
        raise ValueError(f"set {number}: {problem}{known}")


def _remaining_budget(
    kernels: Kernels, k: int | None, budget: float | Tensor | None
) -> RemainingBudget | None:
    """Check costs and budgets of all sets; return them, or None without a budget.

    ``budget`` is a number for all sets, or (B,); costs, ``kernels.costs``, are 1 if
    not given.  Refuse budgets too small for ``k`` items, if ``k`` is given.
    """
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
    _raise_for_first(
        ~(torch.isfinite(limits) & (limits > 0)), "its budget must be above zero"
    )
    candidates = kernels.candidates
    if costs is None:
        costs = torch.ones_like(candidates, dtype=torch.float64)
    positive = torch.isfinite(costs) & (costs > 0)
    _raise_for_first(
        (candidates & ~positive).any(dim=1), "its costs must be positive and finite"
    )
    remaining = RemainingBudget(costs, limits, candidates, k)
    if k is not None:
        _raise_for_first(~remaining.affords(), f"no {k} items fit its budget")
    return remaining


def _make_generator(generator: Generator | int | None, device: torch.device) -> Any:
    """Return the generator itself, a new one for a seed, or None for PyTorch's own."""
    if generator is None or isinstance(generator, Generator):
        return generator
    is_seed = isinstance(generator, Integral) and not isinstance(generator, bool)
    if not is_seed or generator < 0:
        raise ValueError(
            "generator must be a torch.Generator, a non-negative integer or None, got "
            f"{generator!r}"
        )
    return Generator(device=device).manual_seed(int(generator))
