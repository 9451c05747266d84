"""Wanted subsets, costs of errors, and the steps that all forms of the loss share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

if TYPE_CHECKING:
    from variegate.torch.dense import Resolvent, TargetInverse
    from variegate.torch.low_rank import DualResolvent

#: Reasons of a failure: the subset has probability zero, ``L + I`` has no Cholesky
#: factor, the subset is not one of the candidates, or the given items have probability
#: zero.
ZERO_PROBABILITY, NOT_DEFINITE, WRONG_TARGET, IMPOSSIBLE_GIVEN = 1, 2, 3, 4

_PROBLEMS = {
    ZERO_PROBABILITY: "its subset has probability zero: the kernel restricted to it is "
    "singular, or is so to rounding (a jitter helps)",
    NOT_DEFINITE: "its kernel is not positive semidefinite, holds NaN or infinite "
    "numbers, is singular at its given items, or is singular with entries so large "
    "that L + I is singular to rounding: add a jitter, or rescale it",
    WRONG_TARGET: "its subset names an item twice, or one that is not there or is "
    "given",
    IMPOSSIBLE_GIVEN: "its given items have probability zero: the kernel restricted to "
    "them is singular, or is so to rounding (a jitter helps)",
}

#: The least expected error, whose logarithm is finite.
SMALLEST_ERROR = {torch.float64: 1e-280, torch.float32: 1e-36}


class LossSettings(NamedTuple):
    """The settings of a loss."""

    lam: float  # ``λ``
    hinge: bool  # whether a loss below zero counts as zero
    # ridge on the kernel, relative to its diagonal; a tensor where it is learned
    jitter: float | Tensor = 0.0
    # A subset has probability zero where a squared pivot is at most this share of the
    # diagonal; by default, where the pivot is in doubt.
    tolerance: float | None = None


class LossTerms(NamedTuple):
    """The losses of a batch and their derivatives.

    A set that failed has a loss of infinity (its subset has probability zero) or NaN
    (its kernel cannot be factored, its subset is not valid), and gradients of zero.
    """

    value: Tensor  # (B,)
    # (B, N, N) and (B, N): ``∂f/∂X`` and ``∂f/∂u``; None where not asked for
    similarity_gradient: Tensor | None
    quality_gradient: Tensor | None
    failed: Tensor  # uint8 (B,): 0, or the reason


@dataclass(frozen=True, eq=False)
class Targets:
    """The wanted subsets of a batch of ground sets, with the costs of errors.

    Nothing is computed before it is asked for: on a GPU, each step is a launch.
    """

    # boolean (B, N), or item numbers (B, k) padded with -1: as they were given
    subsets: Tensor
    n_items: int  # ``N``
    # (B, N) or float: costs of wrongly choosing and of missing each item
    false_positive: Tensor | float = 1.0
    false_negative: Tensor | float = 1.0
    mask: Tensor | None = None  # boolean (B, N): true where there is an item
    dtype: torch.dtype = torch.float64  # of the costs
    # boolean (B, N), or item numbers (B, g) padded with -1: the given items
    given: Tensor | None = None

    @cached_property
    def is_given(self) -> Tensor | None:
        """Which items (B, N) are given, False at padding; None if there are none."""
        if self.given is None:
            return None
        is_given = self.given
        if is_given.dtype != torch.bool:
            is_given = make_indicator(is_given, self.n_items)
        return is_given if self.mask is None else is_given & self.mask

    @property
    def indicator(self) -> Tensor:
        """Which items (B, N) are wanted or given; False at padding."""
        return self._resolved_subsets[1]

    @property
    def wanted(self) -> Tensor:
        """Which items (B, N) are wanted beside the given ones; False at padding."""
        if self.is_given is None:
            return self.indicator
        return self.indicator & ~self.is_given

    @property
    def is_invalid(self) -> Tensor:
        """Whether a subset (B,) has an item twice, or one given or not there."""
        return self._resolved_subsets[2]

    @cached_property
    def _resolved_subsets(self) -> tuple[Tensor | None, Tensor, Tensor]:
        """Item numbers (None if known as booleans), :attr:`indicator`, invalid sets.

        The numbers (B, k) are -1 for padding and for items that are not there.
        """
        numbers = None
        if self.subsets.dtype == torch.bool:
            indicator = self.subsets
            wrong = indicator.new_zeros(len(indicator))
        else:
            numbers = self.subsets.long()
            outside = (numbers < -1) | (numbers >= self.n_items)
            numbers = numbers.masked_fill(outside, -1)
            indicator = make_indicator(numbers, self.n_items)
            twice = indicator.sum(dim=1) < (numbers >= 0).sum(dim=1)
            wrong = outside.any(dim=1) | twice
        if self.mask is not None:
            wrong = wrong | (indicator & ~self.mask).any(dim=1)
            indicator = indicator & self.mask
        if self.given is not None and self.is_given is not None:
            wrong = wrong | (indicator & self.is_given).any(dim=1)
            indicator = indicator | self.is_given
            is_numbers = numbers is not None and self.given.dtype != torch.bool
            numbers = torch.cat([numbers, self.given], dim=1) if is_numbers else None
        return numbers, indicator, wrong

    @property
    def members(self) -> Tensor:
        """Item numbers (B, k), padded with 0 to the size of the largest subset."""
        return self._members_and_present[0]

    @property
    def present(self) -> Tensor:
        """Whether each entry of ``members`` (B, k) is an item, not padding."""
        return self._members_and_present[1]

    @cached_property
    def _members_and_present(self) -> tuple[Tensor, Tensor]:
        """The tensors :attr:`members` and :attr:`present`, (B, k) each."""
        numbers, indicator, _ = self._resolved_subsets
        if numbers is not None:
            return numbers.clamp(min=0), numbers >= 0
        sizes = indicator.sum(dim=1)
        # How wide the result is must be known here: on a GPU, this waits for it.
        largest = int(sizes.max()) if indicator.numel() else 0
        place = (indicator.cumsum(dim=1) - 1).masked_fill(~indicator, largest)
        items = torch.arange(self.n_items, device=sizes.device).expand_as(indicator)
        members = items.new_zeros(len(items), largest + 1).scatter_(1, place, items)
        present = torch.arange(largest, device=sizes.device) < sizes[:, None]
        return members[:, :largest].masked_fill(~present, 0), present

    @cached_property
    def error_cost(self) -> Tensor:
        """Costs (B, N) of missing a wanted item or choosing another, 0 at padding."""
        missing, wrongly = (
            given.to(self.dtype)
            if isinstance(given, Tensor)
            else torch.full((), given, dtype=self.dtype, device=self.subsets.device)
            for given in (self.false_negative, self.false_positive)
        )
        cost = torch.where(self.indicator, missing, wrongly)
        return cost if self.mask is None else cost.masked_fill(~self.mask, 0.0)

    @property
    def signs(self) -> Tensor:
        """Costs of errors :attr:`error_cost` (B, N), negative for wanted items."""
        return torch.where(self.indicator, -self.error_cost, self.error_cost)


def make_indicator(numbers: Tensor, n_items: int) -> Tensor:
    """Return booleans (..., n_items) from item numbers (..., k), padded with -1."""
    # Padding is marked in a column of its own, which is cut off.
    column = numbers.masked_fill(numbers < 0, n_items)
    marks = column.new_zeros(*column.shape[:-1], n_items + 1, dtype=torch.bool)
    return marks.scatter_(-1, column, True)[..., :n_items]


def raise_if_failed(
    failed: Tensor, check: bool | None = True, prefix: str = ""
) -> None:
    """Raise a ValueError that names the first set that failed, if one did.

    ``failed`` (B,) has the reasons, 0 for none.  ``check`` is whether to look; None
    looks on a CPU only, where nothing waits.  ``prefix`` begins the message.
    """
    if not (failed.device.type == "cpu" if check is None else check):
        return
    places = failed.nonzero()
    if len(places):
        position = int(places[0])
        problem = _PROBLEMS[int(failed[position])]
        raise ValueError(f"{prefix}set {position}: {problem}")


def evaluate_loss(
    resolvent: Resolvent | DualResolvent,
    target: TargetInverse,
    marginals: Callable[[], tuple[Tensor, Tensor]],
    log_quality: Tensor | None,
    targets: Targets,
    settings: LossSettings,
) -> tuple[Tensor, Tensor | None, Tensor, Tensor]:
    """Return losses (B,), ``W``, active sets, and reasons of failures (B,), 0 for none.

    ``W`` (B, N) are the derivatives of the loss by ``K_ii``, None if ``λ = 0``; active
    sets, True in (B,), have a gradient.  ``resolvent`` has ``log det(L + I)``,
    ``target`` that of the wanted items; ``marginals`` returns ``K_ii`` and ``1 - K_ii``
    (B, N), called only if ``λ > 0``.  A loss not finite for other reasons failed, too.
    """
    value, W = resolvent.log_det - target.log_det, None
    if log_quality is not None:
        wanted = log_quality.masked_fill(~targets.wanted, 0.0)
        value = value - 2.0 * wanted.sum(dim=-1, dtype=torch.float64)
    if settings.lam:
        included, excluded = marginals()
        errors = targets.error_cost * torch.where(targets.indicator, excluded, included)
        error = errors.sum(dim=-1, dtype=torch.float64)
        error = error.clamp(min=SMALLEST_ERROR[included.dtype])
        value = value + settings.lam * torch.log(error)
        W = (settings.lam / error)[:, None].to(included.dtype) * targets.signs
    failed = (~resolvent.definite).to(torch.uint8) * NOT_DEFINITE
    failed.masked_fill_(~target.definite, ZERO_PROBABILITY)
    if targets.is_given is not None:
        impossible = ~target.definite & ~resolvent.definite
        impossible = impossible & targets.is_given.any(dim=1)
        failed.masked_fill_(impossible, IMPOSSIBLE_GIVEN)
    failed.masked_fill_(targets.is_invalid, WRONG_TARGET)
    failed.masked_fill_(torch.isposinf(value) & (failed == 0), ZERO_PROBABILITY)
    failed.masked_fill_(~torch.isfinite(value) & (failed == 0), NOT_DEFINITE)
    active = failed == 0
    if settings.hinge:
        active = active & (value > 0.0)
        value = value.clamp(min=0.0)
    value = value.masked_fill(failed == ZERO_PROBABILITY, torch.inf)
    value = value.masked_fill_(failed >= NOT_DEFINITE, torch.nan)
    return value.to(target.inverse.dtype), W, active, failed


# Gradients in closed form ---------------------------------------------------------


#: A result, flags (B,) that are not differentiable, tensors to save, and the pull-back:
#: a function from the gradient in the result, and these tensors, to the gradients in
#: the inputs, None for inputs without.
Evaluation: TypeAlias = (
    "tuple[Tensor, Tensor, tuple[Tensor | None, ...], "
    "Callable[..., tuple[Tensor | None, ...]]]"
)


def apply_closed_form(
    evaluate: Callable[[bool], Evaluation], *inputs: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return the value and the flags of an evaluation, differentiable in ``inputs``.

    ``evaluate`` is called with whether any input needs a gradient; the pull-back that
    it returns gives the gradients in the inputs, in their order.
    """
    value, flags = _ClosedForm.apply(evaluate, *inputs)
    return value, flags


class _ClosedForm(torch.autograd.Function):
    """An evaluation whose gradients are the result of its own pull-back."""

    @staticmethod
    def forward(
        ctx: Any, evaluate: Callable[[bool], Evaluation], *inputs: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return value and flags; save what ``backward`` needs if an input needs it."""
        with full_precision(inputs[0]):
            value, flags, saved, pull_back = evaluate(any(ctx.needs_input_grad))
        if any(ctx.needs_input_grad):
            ctx.save_for_backward(*saved)
            ctx.pull_back = pull_back
        ctx.mark_non_differentiable(flags)
        return value, flags

    @staticmethod
    def backward(ctx: Any, slope: Tensor, _: Any) -> tuple[Tensor | None, ...]:
        """Return gradients in the inputs from ``slope``, that in the value."""
        if torch.is_grad_enabled():
            # It would count as a constant there, and second derivatives be wrong.
            raise RuntimeError(
                "this gradient is a closed form that cannot be differentiated again: "
                "ask for it without create_graph=True"
            )
        with full_precision(slope):
            found = ctx.pull_back(slope, *ctx.saved_tensors)
        needed = ctx.needs_input_grad[1:]
        return None, *(g if n else None for g, n in zip(found, needed, strict=True))


@contextmanager
def full_precision(X: Tensor) -> Iterator[None]:
    """Run the block without autocast, with all digits of single precision on a GPU.

    ``X`` tells the device and the precision.  Networks are often trained with fewer
    digits (``torch.set_float32_matmul_precision``), too few for inverses.
    """
    kind, before = X.device.type, torch.get_float32_matmul_precision()
    is_cut = kind != "cpu" and X.dtype == torch.float32 and before != "highest"
    autocast: AbstractContextManager[Any] = nullcontext()
    if torch.amp.is_autocast_available(kind):
        autocast = torch.autocast(kind, enabled=False)
    with autocast:
        if is_cut:
            torch.set_float32_matmul_precision("highest")
        try:
            yield
        finally:
            if is_cut:
                torch.set_float32_matmul_precision(before)
