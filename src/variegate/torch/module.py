"""The large-margin loss as a module."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from variegate._validation import check_choice, check_flag, check_number
from variegate.tensors.low_rank import LowRank
from variegate.torch.loss import REDUCTIONS, is_checked, losses, raise_problem

__all__ = ["LargeMarginLoss"]


class _Late(NamedTuple):
    """Flags on their way from a GPU."""

    call: int
    flags: Tensor
    arrived: Any


class LargeMarginLoss(nn.Module):
    """The large-margin loss of a batch of kernels.

    :func:`large_margin_loss` with settings kept, and with a check that waits for
    nothing: on a GPU, what is wrong with a set is said at a later call, when it is
    known; until then its loss is infinite or NaN and its gradient zero.

    Parameters
    ----------
    lam : float, default=1.0
        Weight ``λ`` of the margin term; 0 is the negative log-likelihood.
    omega : float, default=1.0
        Cost of missing an item relative to choosing a wrong one.
    hinge : bool, default=True
        Whether a loss below zero counts as zero.
    jitter : float, default=0.0
        Ridge on the kernel, relative to its diagonal.
    reduction : {"mean", "sum", "none"}
        Over the sets.
    check : bool, optional
        True refuses at once, False never.  By default at once on the CPU, and late on
        a GPU.

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
        check_number("lam", lam)
        check_number("omega", omega)
        check_flag("hinge", hinge)
        check_number("jitter", jitter)
        check_choice("reduction", reduction, REDUCTIONS)
        self.lam = lam
        self.omega = omega
        self.hinge = hinge
        self.jitter = jitter
        self.reduction = reduction
        self.checks = check
        self._calls = 0
        self._late: deque[_Late] = deque()

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
        found = losses(
            kernel,
            targets,
            log_quality=log_quality,
            mask=mask,
            offsets=offsets,
            lam=self.lam,
            omega=self.omega,
            hinge=self.hinge,
            false_positive=false_positive,
            false_negative=false_negative,
            jitter=self.jitter,
        )
        self._calls += 1
        if is_checked(self.checks, found.failed):
            raise_problem(found.failed)
        elif self.checks is None:
            self._send(found.failed)
        return found.reduced(self.reduction)

    def check(self) -> None:
        """Wait for all losses so far, and refuse sets that had none.

        Raises
        ------
        ValueError
            That names the call, the set and what is wrong with it.
        """
        self._raise_arrived(wait=True)

    def _send(self, failed: Tensor) -> None:
        flags = torch.empty(failed.shape, dtype=failed.dtype, pin_memory=True)
        flags.copy_(failed, non_blocking=True)
        arrived = torch.cuda.Event()
        arrived.record(torch.cuda.current_stream(failed.device))
        self._late.append(_Late(self._calls, flags, arrived))

    def _raise_arrived(self, *, wait: bool) -> None:
        while self._late:
            late = self._late[0]
            if wait:
                late.arrived.synchronize()
            elif not late.arrived.query():
                return
            self._late.popleft()
            raise_problem(late.flags, f"call {late.call}, ")

    def __getstate__(self) -> dict[str, Any]:
        # What is on its way stays here when the module is copied.
        return {**self.__dict__, "_late": deque()}

    def extra_repr(self) -> str:
        """Return the settings."""
        return (
            f"lam={self.lam}, omega={self.omega}, hinge={self.hinge}, "
            f"jitter={self.jitter}, reduction={self.reduction!r}"
        )
