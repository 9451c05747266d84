"""The large-margin loss as a module."""

from __future__ import annotations

from collections import deque
from typing import Any

import torch
from torch import Tensor, nn

from variegate._validation import check_choice, check_flag, check_number
from variegate.torch.ensembles import LEnsembles
from variegate.torch.targets import raise_if_failed

REDUCTIONS = ("none", "sum", "mean")


class LargeMarginLoss(nn.Module):
    r"""The large-margin loss of a batch of kernels (eq. 13-14).

    For each set, with ``K = L (L + I)⁻¹``, wanted subset ``y`` and costs ``a``, ``b``,

    .. math::

        \Bigl[ \log\det(L + I) - \log\det L_y + \lambda \log \Bigl(
            \sum_{i \notin y} a_i K_{ii} + \sum_{i \in y} b_i (1 - K_{ii})
        \Bigr) \Bigr]_+ .

    The gradient is a closed form, computed with the loss: about the cost of one
    Cholesky factorisation, one inverse and one product of ``N x N`` matrices, and three
    of them in memory.  It cannot be differentiated again.

    Beside given items ``A`` the loss is that of the conditional process: ``L_{A ∪ y}``
    stands for ``L_y``, the identity has zeros at ``A``, and sums leave ``A`` out.

    Parameters
    ----------
    lam : float, default=1.0
        Weight ``λ`` of the margin term; 0 is the negative log-likelihood.
    omega : float, default=1.0
        Cost of missing an item relative to choosing a wrong one.
    hinge : bool, default=True
        Whether a loss below zero counts as zero.
    reduction : {"mean", "sum", "none"}
        Over the sets; "none" keeps one loss a set.
    check : bool, optional
        Whether sets without a loss raise an error: True at once, which waits for a
        GPU, False never; by default at once on the CPU, and on a GPU at a later call.
        Until then the loss of such a set is infinite or NaN, and its gradient zero.

    Notes
    -----
    In double precision values and gradients equal :func:`variegate.large_margin_loss`
    to ten digits.  In single precision six digits of the loss are right; of the
    gradient five or more for random features and for sets of up to 50 items, and three
    for 1000 items with a smooth (Gaussian) similarity and a jitter of 1e-3.  A subset
    is refused whose squared pivots are below 1e-8 of the diagonal (2e-4 in single
    precision, where expected errors count as at least 1e-36, which log-qualities beyond
    40 would make smaller).

    Examples
    --------
    >>> import torch
    >>> import variegate.torch as vt
    >>> L = torch.eye(2, dtype=torch.float64, requires_grad=True)
    >>> loss = vt.LargeMarginLoss(lam=0.0)
    >>> value = loss(vt.LEnsembles(L), torch.tensor([True, False]))
    >>> round(value.item(), 4)  # P({0}) = 1 / det(2 I) = 1/4
    1.3863
    >>> value.backward()
    >>> L.grad.round(decimals=4).tolist()
    [[-0.5, 0.0], [0.0, 0.5]]
    """

    def __init__(
        self,
        lam: float = 1.0,
        omega: float = 1.0,
        hinge: bool = True,
        *,
        reduction: str = "mean",
        check: bool | None = None,
    ) -> None:
        super().__init__()
        check_number("lam", lam)
        check_number("omega", omega)
        check_flag("hinge", hinge)
        check_choice("reduction", reduction, REDUCTIONS)
        self.lam, self.omega, self.hinge = lam, omega, hinge
        self.reduction, self.checks = reduction, check
        self._calls = 0
        # The number of a call, its flags on their way from a GPU, and their arrival.
        self._late: deque[tuple[int, Tensor, Any]] = deque()

    def forward(
        self,
        ensembles: LEnsembles,
        targets: Tensor,
        *,
        false_positive: Tensor | None = None,
        false_negative: Tensor | None = None,
    ) -> Tensor:
        """Return the loss, of no axes, or (B,) without reduction.

        Parameters
        ----------
        ensembles : LEnsembles
        targets : boolean tensor of shape (B, N), or item numbers (B, k)
            The wanted subsets, without given items; rows of item numbers are padded
            with -1.  On a GPU, boolean targets of large sets are waited for once, for
            the size of the largest subset; item numbers are not, unless items are
            given.
        false_positive, false_negative : tensor of shape (B, N), optional
            Costs of wrongly choosing and of missing each item, in place of 1 and
            ``omega``.
        """
        self._raise_received(wait=False)
        batch = ensembles.batch(
            targets,
            "targets",
            false_positive=_check_costs("false_positive", false_positive),
            false_negative=_check_costs("false_negative", false_negative),
        )
        batch.check_given_ridge()
        targets = batch.targets(self.omega)
        value, failed = batch.losses(targets, self.lam, self.hinge)
        self._calls += 1
        raise_if_failed(failed, self.checks)
        if self.checks is None and failed.device.type != "cpu":
            self._send_failures(failed)
        if self.reduction == "none":
            return batch.without_axis(value)
        return value.sum() if self.reduction == "sum" else value.mean()

    def check(self) -> None:
        """Wait for all losses so far; raise ValueError for the first that failed."""
        self._raise_received(wait=True)

    def _send_failures(self, failed: Tensor) -> None:
        """Begin to copy reasons of failures (B,) from the GPU; a later call raises."""
        flags = torch.empty(failed.shape, dtype=failed.dtype, pin_memory=True)
        flags.copy_(failed, non_blocking=True)
        arrived = torch.cuda.Event()
        arrived.record(torch.cuda.current_stream(failed.device))
        self._late.append((self._calls, flags, arrived))

    def _raise_received(self, *, wait: bool) -> None:
        """Raise ValueError for the first failure among the flags copied from the GPU.

        Without ``wait``, only flags that have arrived are looked at.
        """
        while self._late:
            call, flags, arrived = self._late[0]
            if wait:
                arrived.synchronize()
            elif not arrived.query():
                return
            self._late.popleft()
            raise_if_failed(flags, prefix=f"call {call}, ")

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to copy or pickle, without flags on their way."""
        return {**self.__dict__, "_late": deque()}

    def extra_repr(self) -> str:
        """Return the settings as text, for ``repr``."""
        names = ("lam", "omega", "hinge", "reduction")
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in names)


def _check_costs(name: str, costs: Any) -> Any:
    """Return a tensor of costs without gradient, and other values as they are.

    On a CPU costs are refused if negative or not finite; on a GPU that would wait.
    """
    if not isinstance(costs, Tensor):
        return costs
    is_fine = torch.isfinite(costs) & (costs >= 0)
    if costs.device.type == "cpu" and not is_fine.all():
        raise ValueError(f"{name} must be finite and not negative")
    return costs.detach()
