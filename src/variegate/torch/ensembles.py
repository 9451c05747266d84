"""Batches of determinantal point processes: probabilities, and choosing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Generator, Tensor

from variegate.linalg.limits import RANK_TOLERANCE
from variegate.torch.choosing import Subsets, choose_greedily, draw_subsets
from variegate.torch.inputs import (
    Kernels,
    LowRank,
    check_kernels,
    check_tensors,
    with_batch_axis,
)
from variegate.torch.targets import NOT_DEFINITE, ZERO_PROBABILITY, raise_if_failed

#: The share of its diagonal below which a squared pivot is rounding.
_ROUNDING = {torch.float64: RANK_TOLERANCE, torch.float32: 1e-6}


class LEnsembles:
    """A batch of determinantal point processes on tensors.

    Parameters
    ----------
    kernel : tensor of shape (B, N, N) or (N, N), or LowRank
        Symmetric, positive semidefinite: the similarities ``S`` if there are
        log-qualities, else ``L``.  One without a batch axis is shared by all sets.
        ``LowRank(features)`` stands for ``F Fᵀ``, which is never formed: time and
        memory are linear in ``N``.
    log_quality : tensor of shape (B, N) or (N,), optional
        ``u`` in ``L = diag(exp u) S diag(exp u)``.  Values of hundreds are fine in
        double precision.
    mask : boolean tensor of shape (B, N) or (N,), optional
        True where there is an item; other entries, NaN included, are never used, and
        have a gradient of zero.
    given : boolean tensor of shape (B, N) or (N,), optional
        True for items that are there already, such as the first page of results.
        Subsets are chosen from the other items, the candidates, beside the given ones:
        every probability is conditional on them.  Their own quality has no effect.
    jitter : float, default=0.0
        Ridge on the kernel (on ``S``, if there are log-qualities), relative to its
        diagonal.

    Notes
    -----
    Computed in double precision if the kernel or the log-qualities are, else in single
    precision, never in half, autocast or not.  Probabilities are differentiable.  A set
    without one is NaN, or raises an error if ``check`` is true: by default on the CPU
    alone, as on a GPU that would wait for the result.

    Beside given items ``A``, with ``I_Ā`` the identity but for zeros at ``A``,
    ``P(y | A) = det L_{A ∪ y} / det(L + I_Ā)`` and ``K_ii = 1 - [(L + I_Ā)⁻¹]_ii``.
    Kernels of ``LowRank`` then need a jitter; in single precision, with one of 1e-3,
    two digits of their gradient were right.  A GPU is waited for once, for the largest
    number of items in ``A`` and ``y``.

    Examples
    --------
    >>> import torch
    >>> import variegate.torch as vt
    >>> ensembles = vt.LEnsembles(torch.diag(torch.tensor([1.0, 3.0])))
    >>> ensembles.marginals(), ensembles.expected_size()
    (tensor([0.5000, 0.7500]), tensor(1.2500))
    >>> ensembles.log_prob(torch.tensor([1])).exp()  # 1/2 * 3/4
    tensor(0.3750)
    >>> L = torch.tensor([[1.0, 0.8, 0.0], [0.8, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> beside_first = vt.LEnsembles(L, given=torch.tensor([True, False, False]))
    >>> beside_first.marginals()  # 0.36 / 1.36 for the item that is like the given one
    tensor([0.0000, 0.2647, 0.5000])
    """

    def __init__(
        self,
        kernel: Tensor | LowRank,
        *,
        log_quality: Tensor | None = None,
        mask: Tensor | None = None,
        jitter: float = 0.0,
        given: Tensor | None = None,
    ) -> None:
        self._kernels = check_kernels(kernel, log_quality, mask, jitter, given)

    def batch(
        self, subsets: Tensor | None = None, name: str = "subsets", **costs: Any
    ) -> Kernels:
        """Return the kernels with subsets and costs, checked, all with a batch axis.

        ``subsets`` are boolean or item numbers padded with -1, called ``name`` in
        messages; ``costs`` are, as tensors or None, ``false_positive``,
        ``false_negative``, and ``costs``, those of choosing an item.
        """
        check_tensors({**costs, name: subsets}, self._kernels.device)
        if subsets is not None:
            if subsets.is_floating_point() or subsets.is_complex():
                raise ValueError(
                    f"{name} must be boolean, or item numbers padded with -1; got "
                    f"{subsets.dtype}"
                )
            if subsets.ndim not in (1, 2):
                raise ValueError(
                    f"{name} has shape {tuple(subsets.shape)}, expected one row of "
                    "items a set"
                )
        return with_batch_axis(replace(self._kernels, subsets=subsets, **costs), name)

    # Probabilities ----------------------------------------------------------------

    def log_prob(self, subsets: Tensor, check: bool | None = None) -> Tensor:
        """Return the log-probability of one subset of each set.

        ``log det L_y - log det(L + I)``, (B,); minus infinity, with a gradient of zero,
        where ``L_y`` is singular.  Subsets are boolean (B, N), or item numbers (B, k)
        padded with -1.  Beside given items, that of choosing ``y`` from the others.
        """
        return -self._negative_log_probs(self.batch(subsets), check)

    def log_normalizer(self, check: bool | None = None) -> Tensor:
        """Return ``log det(L + I)`` of each set (B,).

        Beside given items ``A``, that of their conditional process,
        ``log det(L + I_Ā) - log det L_A``.
        """
        # The probability of the empty set is one over the normalizer.
        return self._negative_log_probs(self.batch(), check)

    def _negative_log_probs(self, batch: Kernels, check: bool | None) -> Tensor:
        """Return ``log det(L + I) - log det L_y`` (B,), or () of one set.

        ``y`` are the subsets of ``batch``, empty if it has none; infinite where ``L_y``
        is singular.  ``check`` tells whether failed sets raise an error.
        """
        batch.check_given_ridge()
        tolerance = _ROUNDING[self._kernels.kernel.dtype]
        value, failed = batch.losses(batch.targets(1.0), 0.0, False, tolerance)
        raise_if_failed(failed.masked_fill(failed == ZERO_PROBABILITY, 0), check)
        return batch.without_axis(value)

    def marginals(self, check: bool | None = None) -> Tensor:
        """Return the probability ``K_ii`` that each item is chosen (B, N).

        0 at padding, and at given items, which are never chosen.
        """
        batch = self.batch()
        batch.check_given_ridge()
        included, definite = batch.marginals()
        raise_if_failed(~definite * NOT_DEFINITE, check)
        return batch.without_axis(included)

    def expected_size(self, check: bool | None = None) -> Tensor:
        """Return the expected number of chosen items of each set (B,), ``Σ_i K_ii``."""
        return self.marginals(check).sum(dim=-1)

    # Choosing ---------------------------------------------------------------------

    @torch.no_grad()
    def greedy(
        self,
        k: int | None = None,
        *,
        budget: float | Tensor | None = None,
        costs: Tensor | None = None,
    ) -> Subsets:
        """Choose a subset of every set greedily, as ``decode("greedy")`` does.

        Every item is the one that raises the probability most given those before it, of
        ties the smallest number: by a Cholesky factorisation that grows by a column an
        item (Chen et al., 2018), in ``O(k N)`` memory a set and rounds of a few
        operations on the whole batch.  Items are chosen beside the given ones.

        Parameters
        ----------
        k : int, optional
            Choose ``k`` items, or fewer where a set or the rank has no more, or nothing
            else fits the budget.  Without ``k`` a set ends when no item raises the
            probability.
        budget : float or tensor of shape (B,), optional
            The largest sum of costs.  Items are then chosen by gain for their cost.
        costs : tensor of shape (B, N) or (N,), optional
            Positive; ones if there is a budget and no costs.

        Returns
        -------
        Subsets
            In the order of choice; ``items`` is (B, k), or (k,) of one set.

        Notes
        -----
        With ``k`` nothing waits for the device before the last check of the input,
        unless items are given.  Given items that depend on others add nothing.  An item
        counts as dependent on others where less than 1e-12 of its squared length
        is left (1e-5 in single precision), and gains within 1e-10 (1e-5) as equal.
        """
        batch = self._batch_for_choosing(costs=costs)
        return Subsets.of(batch.without_axis(choose_greedily(batch, k, budget)))

    @torch.no_grad()
    def sample(
        self,
        n: int = 1,
        k: int | None = None,
        *,
        generator: Generator | int | None = None,
    ) -> Subsets:
        """Draw subsets exactly, as ``LEnsemble.sample`` and ``sample_k`` do.

        Items are drawn beside the given ones, from the conditional process.

        Parameters
        ----------
        n : int, default=1
            The number of subsets of each set.
        k : int, optional
            Draw subsets of exactly ``k`` items, with the probabilities that they have
            given their number (a k-DPP).
        generator : torch.Generator or int, optional
            A generator of the kernel's device, or a seed for one.  The same seed draws
            the same subsets on the same device and version of PyTorch.

        Returns
        -------
        Subsets
            Items ascending; ``items`` is (B, n, largest size), or (n, largest size) of
            one set.

        Notes
        -----
        All of it is in double precision.  Marginal kernels are right to 1e-13, whatever
        the log-qualities (up to ±300 was tried), where similarities have full or low
        rank.  At the edge of a rank, as of smooth Gaussians of near points, an item
        depends on others that leave no more than 1e-12 of its squared length; with
        log-qualities of ±20 the error was then up to 1e-6.

        Many samples of one kernel share an eigendecomposition of the size of the rank,
        after which a sample of ``m`` items takes ``O(N M + m³ log m)``, ``M`` being the
        number of eigenvalues of ``K`` that are not zero.
        """
        batch = self._batch_for_choosing()
        return Subsets.of(batch.without_axis(draw_subsets(batch, n, k, generator)))

    def _batch_for_choosing(self, **costs: Any) -> Kernels:
        """Return ``batch(**costs)``; raise ValueError if the kernels have a jitter."""
        if self._kernels.jitter:
            raise ValueError(
                "kernels with a jitter cannot be chosen from: add it to the diagonal"
            )
        return self.batch(**costs)
