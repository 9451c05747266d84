"""The large-margin loss as a function and as a module."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from variegate._validation import check_choice, check_flag, check_number
from variegate.torch import dense, low_rank
from variegate.torch.inputs import Collection, LowRank, as_collection
from variegate.torch.targets import (
    NOT_DEFINITE,
    WRONG_TARGET,
    ZERO_PROBABILITY,
    LossSettings,
)

REDUCTIONS = ("none", "sum", "mean")

_PROBLEMS = {
    ZERO_PROBABILITY: "its subset has probability zero: the kernel restricted to it is "
    "singular, or is so to rounding (a jitter helps)",
    NOT_DEFINITE: "its kernel is not positive semidefinite, holds NaN or infinite "
    "numbers, or is singular with entries so large that L + I is singular to rounding: "
    "add a jitter, or rescale it",
    WRONG_TARGET: "its subset names an item twice, or one that is not there",
}


def large_margin_loss(
    kernel: Tensor | LowRank,
    targets: Tensor,
    *,
    log_quality: Tensor | None = None,
    mask: Tensor | None = None,
    offsets: Sequence[int] | Tensor | None = None,
    lam: float = 1.0,
    omega: float = 1.0,
    hinge: bool = True,
    false_positive: Tensor | None = None,
    false_negative: Tensor | None = None,
    jitter: float = 0.0,
    reduction: str = "mean",
    check: bool | None = None,
) -> Tensor:
    r"""Return the large-margin loss of a batch of kernels (eq. 13-14).

    For each set, with ``K = L (L + I)⁻¹``, wanted subset ``y`` and costs ``a``, ``b``,

    .. math::

        \Bigl[ \log\det(L + I) - \log\det L_y + \lambda \log \Bigl(
            \sum_{i \notin y} a_i K_{ii} + \sum_{i \in y} b_i (1 - K_{ii})
        \Bigr) \Bigr]_+ .

    The gradient is a closed form, computed with the loss: about the cost of one
    Cholesky factorisation, one inverse and one product of ``N x N`` matrices, and three
    of them in memory.  It cannot be differentiated again.

    Parameters
    ----------
    kernel : tensor of shape (B, N, N) or (N, N), or LowRank
        Symmetric, positive semidefinite: the similarities ``S`` if there are
        log-qualities, else ``L``.  One without a batch axis is shared by all sets.
        ``LowRank(features)`` stands for ``F Fᵀ``, which is never formed: time and
        memory are linear in ``N``.
    targets : boolean tensor of shape (B, N), or item numbers (B, k)
        The wanted subsets; rows of item numbers are padded with -1.  On a GPU, boolean
        targets of large sets are waited for once, to learn the size of the largest
        subset; item numbers are not.
    log_quality : tensor of shape (B, N), optional
        ``u`` in ``L = diag(exp u) S diag(exp u)``.  Values of hundreds are fine in
        double precision.
    mask : boolean tensor of shape (B, N), optional
        True where there is an item; what stands elsewhere, NaN included, is never
        used, and its gradient is zero.
    offsets : list of B + 1 whole numbers, optional
        For sets that lie one after the other, without padding: where each begins, and
        the last ends.  Then boolean targets, log-qualities and costs have shape
        (total,), features (total, D), and a matrix kernel is all entries of all
        matrices, one after the other.  A tensor must be on the CPU.
    lam : float, default=1.0
        Weight ``λ`` of the margin term; 0 is the negative log-likelihood.
    omega : float, default=1.0
        Cost of missing an item relative to choosing a wrong one.
    hinge : bool, default=True
        Whether a loss below zero counts as zero.
    false_positive, false_negative : tensor of shape (B, N), optional
        Costs of wrongly choosing and of missing each item, in place of 1 and ``omega``.
    jitter : float, default=0.0
        Ridge on the kernel (on ``S``, if there are log-qualities), relative to its
        diagonal.
    reduction : {"mean", "sum", "none"}
        Over the sets; "none" keeps one loss a set.
    check : bool, optional
        Whether sets without a loss raise an error.  By default they do on the CPU; on
        a GPU that would wait for the result, so the loss of such a set is infinite or
        NaN there, and its gradient zero.

    Returns
    -------
    tensor
        Of no axes, or (B,) without reduction.

    Notes
    -----
    Computed in double precision if the kernel or the log-qualities are, else in single
    precision, never in half, autocast or not.  In double precision values and gradients
    are those of :func:`variegate.large_margin_loss` to ten digits.  In single precision
    six digits of the loss are right; of the gradient five or more for random features
    and for sets of up to 50 items, and three for 1000 items with a smooth (Gaussian)
    similarity and a jitter of 1e-3.  There, a subset is refused whose squared pivots
    are below 2e-4 of the diagonal (1e-8 in double precision), and expected errors count
    as at least 1e-36, which log-qualities beyond 40 would make smaller.

    Examples
    --------
    >>> import torch
    >>> import variegate.torch as vt
    >>> L = torch.eye(2, dtype=torch.float64, requires_grad=True)
    >>> loss = vt.large_margin_loss(L, torch.tensor([True, False]), lam=0.0)
    >>> round(loss.item(), 4)  # P({0}) = 1 / det(2 I) = 1/4
    1.3863
    >>> loss.backward()
    >>> L.grad.round(decimals=4).tolist()
    [[-0.5, 0.0], [0.0, 0.5]]
    """
    check_choice("reduction", reduction, REDUCTIONS)
    found = _losses(
        LossSettings(lam, hinge, jitter),
        omega,
        kernel,
        targets,
        log_quality=log_quality,
        mask=mask,
        offsets=offsets,
        false_positive=false_positive,
        false_negative=false_negative,
    )
    if is_checked(check, found.failed):
        raise_problem(found.failed)
    return found.reduced(reduction)


class LargeMarginLoss(nn.Module):
    """The large-margin loss of a batch of kernels.

    :func:`large_margin_loss` with its settings, and with a check that never waits: on
    a GPU, a set without a loss raises an error at a later call, when it is known; until
    then its loss is infinite or NaN and its gradient zero.

    Parameters
    ----------
    lam, omega, hinge, jitter, reduction :
        As in :func:`large_margin_loss`.
    check : bool, optional
        True raises at once, False never.  By default at once on the CPU, and at a
        later call on a GPU.

    Examples
    --------
    >>> import torch
    >>> import variegate.torch as vt
    >>> loss = vt.LargeMarginLoss(lam=0.0)
    >>> value = loss(torch.eye(2, dtype=torch.float64), torch.tensor([[0], [1]]))
    >>> round(value.item(), 4)
    1.3863
    """

    def __init__(
        self,
        lam: float = 1.0,
        omega: float = 1.0,
        hinge: bool = True,
        *,
        jitter: float = 0.0,
        reduction: str = "mean",
        check: bool | None = None,
    ) -> None:
        super().__init__()
        _check_settings(LossSettings(lam, hinge, jitter), omega)
        check_choice("reduction", reduction, REDUCTIONS)
        self.lam, self.omega, self.hinge = lam, omega, hinge
        self.jitter, self.reduction, self.checks = jitter, reduction, check
        self._calls = 0
        # The number of a call, its flags on their way from a GPU, and their arrival.
        self._late: deque[tuple[int, Tensor, Any]] = deque()

    def forward(
        self,
        kernel: Tensor | LowRank,
        targets: Tensor,
        *,
        log_quality: Tensor | None = None,
        mask: Tensor | None = None,
        offsets: Sequence[int] | Tensor | None = None,
        false_positive: Tensor | None = None,
        false_negative: Tensor | None = None,
    ) -> Tensor:
        """Return the loss; the arguments are those of :func:`large_margin_loss`."""
        self._raise_arrived(wait=False)
        found = _losses(
            LossSettings(self.lam, self.hinge, self.jitter),
            self.omega,
            kernel,
            targets,
            log_quality=log_quality,
            mask=mask,
            offsets=offsets,
            false_positive=false_positive,
            false_negative=false_negative,
        )
        self._calls += 1
        if is_checked(self.checks, found.failed):
            raise_problem(found.failed)
        elif self.checks is None:
            self._send(found.failed)
        return found.reduced(self.reduction)

    def check(self) -> None:
        """Wait for all losses so far; raise an error that names a set without one."""
        self._raise_arrived(wait=True)

    def _send(self, failed: Tensor) -> None:
        flags = torch.empty(failed.shape, dtype=failed.dtype, pin_memory=True)
        flags.copy_(failed, non_blocking=True)
        arrived = torch.cuda.Event()
        arrived.record(torch.cuda.current_stream(failed.device))
        self._late.append((self._calls, flags, arrived))

    def _raise_arrived(self, *, wait: bool) -> None:
        while self._late:
            call, flags, arrived = self._late[0]
            if wait:
                arrived.synchronize()
            elif not arrived.query():
                return
            self._late.popleft()
            raise_problem(flags, f"call {call}, ")

    def __getstate__(self) -> dict[str, Any]:
        # Flags on their way stay with the original when the module is copied.
        return {**self.__dict__, "_late": deque()}

    def extra_repr(self) -> str:
        """Return the settings."""
        names = ("lam", "omega", "hinge", "jitter", "reduction")
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in names)


class Losses(NamedTuple):
    """Losses (B,), reasons of failures, and whether one set was given alone."""

    value: Tensor
    failed: Tensor
    is_single: bool

    def reduced(self, reduction: str) -> Tensor:
        """Return the sum or mean of the losses, or the losses themselves."""
        if reduction == "sum":
            return self.value.sum()
        if reduction == "mean":
            return self.value.mean()
        return self.value[0] if self.is_single else self.value


def _losses(
    settings: LossSettings,
    omega: float,
    kernel: Tensor | LowRank,
    targets: Tensor,
    **given: Any,
) -> Losses:
    """Return the losses of all sets; see :func:`large_margin_loss`."""
    _check_settings(settings, omega)
    for name in ("false_positive", "false_negative"):
        given[name] = _checked_costs(name, given[name])
    return losses_of(as_collection(kernel, subsets=targets, **given), settings, omega)


def losses_of(
    collection: Collection, settings: LossSettings, omega: float = 1.0
) -> Losses:
    """Return the losses of all sets of a collection with subsets."""
    values, failed = [], []
    for each in collection.batches:
        form = low_rank if each.is_low_rank else dense
        found = form.loss(each.kernel, each.log_quality, each.targets(omega), settings)
        values.append(found[0])
        failed.append(found[1])
    return Losses(
        collection.per_set(values), collection.per_set(failed), collection.is_single
    )


def _check_settings(settings: LossSettings, omega: float) -> None:
    check_number("lam", settings.lam)
    check_number("omega", omega)
    check_flag("hinge", settings.hinge)
    check_number("jitter", settings.jitter)


def _checked_costs(name: str, costs: Any) -> Any:
    """Refuse negative and infinite costs, where that needs no waiting."""
    if not isinstance(costs, Tensor):
        return costs
    is_fine = torch.isfinite(costs) & (costs >= 0)
    if costs.device.type == "cpu" and not is_fine.all():
        raise ValueError(f"{name} must be finite and not negative")
    return costs.detach()


def is_checked(check: bool | None, found: Tensor) -> bool:
    """Return whether failures raise an error: by default where nothing waits."""
    return found.device.type == "cpu" if check is None else check


def raise_problem(failed: Tensor, prefix: str = "") -> None:
    """Raise an error that names the first set that failed, if one did."""
    places = failed.nonzero()
    if len(places):
        position = int(places[0])
        problem = _PROBLEMS[int(failed[position])]
        raise ValueError(f"{prefix}set {position}: {problem}")
