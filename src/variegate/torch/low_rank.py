r"""The large-margin loss of features, ``S = F Fᵀ``, without any N x N matrix.

The resolvent ``(L + I)⁻¹`` by Woodbury's identity, as in
:mod:`variegate.learning.dual` with one factor of weight one.  With a ridge of ``ε``
times the diagonal, ``s_i = ‖φ_i‖²``, ``p = min(e^u, 1)``, ``c = min(e^{-u}, 1)`` and
``E = c² + ε p² s``, let ``share = p² / E`` and ``kept = c² / E`` be numbers of each
item.  For a diagonal matrix ``W``,

.. math::

    \Gamma = F^T \mathrm{share} F, \quad A = (I + \Gamma)^{-1}, \quad
    \Delta = F^T \mathrm{share}\,\mathrm{kept}\,W F, \quad
    h_i = \mathrm{share}_i\,\phi_i^T A \phi_i, \quad
    g_i = \mathrm{share}_i\,\phi_i^T A \Delta A \phi_i .

- ``log det(L + I) = Σ_i (log E_i + 2 max(u_i, 0)) + log det(I + Γ)``,
- ``K_ii = ε p_i² s_i / E_i + kept_i h_i`` and ``1 - K_ii = kept_i (1 - h_i)``,
- with ``G`` the gradient of ``log det(L + I) + Σ_i W_i K_ii`` in ``S + ε diag S``,
  ``G F = share ((1 + kept W) F A - F A Δ A)`` and ``G_ii = share_i (1 - h_i +
  kept_i W_i ((1 - h_i)² - h_i²) + g_i)``; in ``F`` it is ``2 (G + ε diag G) F``.

Given items have ``u = 0`` and ``c = 0``, as in :mod:`variegate.torch.dense`, so that
``E = ε s`` there: they need a ridge.

For the loss, ``λ / m`` is within the weights ``W`` and ``⟨S_y⁻¹⟩`` is subtracted from
``G``.  Time is ``O(N D²)``.  Temporaries are of a chunk of rows at a time, all but the
gradient itself; sums over items and ``D x D`` matrices are in double precision.
Autograd in place of these gradients takes 3.4 times as long for 10^5 items of 64
features, and eight times the memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from variegate.torch.dense import TargetInverse, factor_cholesky, fill_given
from variegate.torch.targets import (
    Evaluation,
    LossSettings,
    Targets,
    apply_closed_form,
    evaluate_loss,
)

#: Numbers of features that are worked on at a time.
_ENTRIES_CPU, _ENTRIES_GPU = 2**18, 2**26

#: Rows of one product of a sum over many: a GPU makes such products side by side.
_SUMMED_ROWS = 1024

#: The largest ``share_i s_i``; rounding is below 1e-3 of the identity.
_LONGEST_ROW = {torch.float64: 1e12, torch.float32: 1e4}


def loss(
    F: Tensor, log_quality: Tensor | None, targets: Targets, settings: LossSettings
) -> tuple[Tensor, Tensor]:
    """Return losses (B,), differentiable, and codes of failures (B,), 0 for none.

    ``F`` (B, N, D) are features, ``log_quality`` is (B, N), None for zeros.  Codes are
    the constants of :mod:`variegate.torch.targets`.
    """
    members, jitter = targets.members, settings.jitter

    def evaluate(_: bool) -> Evaluation:
        """Return losses, failures, ``F`` to be saved, and pull_back."""
        features = _without_padding(F, targets.mask)
        resolvent = DualResolvent(
            features, log_quality, targets.mask, jitter, targets.is_given
        )
        F_y = _member_rows(features, members)
        target = TargetInverse(F_y @ F_y.mT, targets, settings)
        marginals = partial(resolvent.marginals, features)
        value, W, active, failed = evaluate_loss(
            resolvent, target, marginals, log_quality, targets, settings
        )

        def pull_back(by_set: Tensor, F: Tensor) -> tuple[Tensor, ...]:
            """Return gradients in F, u and ε; ``by_set`` (B,) is that in the losses."""
            features = _without_padding(F, targets.mask)
            scale = by_set.masked_fill(~active, 0.0)[:, None]
            own = target.inverse.diagonal(dim1=-2, dim2=-1)
            own = torch.zeros_like(resolvent.share).scatter_add_(1, members, own)
            in_F, *others = resolvent.gradients(
                features, W, scale, targets.indicator, own
            )
            rows = (target.inverse @ _member_rows(features, members)) * -2.0
            rows = (rows * scale[:, :, None]).masked_fill_(~active[:, None, None], 0.0)
            in_F.scatter_add_(1, members[:, :, None].expand_as(rows), rows)
            return in_F, *others

        return value, failed, (F,), pull_back

    ridge = jitter if isinstance(jitter, Tensor) else None
    return apply_closed_form(evaluate, F, log_quality, ridge)


def marginals(
    F: Tensor,
    log_quality: Tensor | None,
    mask: Tensor | None,
    jitter: float | Tensor,
    given: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return inclusion probabilities (B, N), differentiable, and successes (B,).

    ``K_ii`` is 0 where ``mask`` (B, N) is False and at ``given`` items (B, N).  A set
    succeeds, True, or has NaN if a row is beyond ``_LONGEST_ROW`` or a number not
    finite.  ``jitter`` is ``ε``.
    """

    def evaluate(_: bool) -> Evaluation:
        """Return probabilities, successes, ``F`` to be saved, and pull_back."""
        features = _without_padding(F, mask)
        resolvent = DualResolvent(features, log_quality, mask, jitter, given)
        included, _ = resolvent.marginals(features)
        included = fill_given(included, given)
        failed = ~resolvent.definite[:, None]

        def pull_back(W: Tensor, F: Tensor) -> tuple[Tensor, ...]:
            """Return gradients in F and u from ``W``, that in ``K_ii``; 0 if failed."""
            scale = (~failed).to(F.dtype)
            W = W.masked_fill(failed, 0.0)
            return resolvent.gradients(_without_padding(F, mask), W, scale)[:2]

        included = included.masked_fill(failed, torch.nan)
        return included, resolvent.definite, (F,), pull_back

    return apply_closed_form(evaluate, F, log_quality)


def _without_padding(F: Tensor, mask: Tensor | None) -> Tensor:
    """Return features (B, N, D) with rows of zeros where ``mask`` is False."""
    return F if mask is None else F.masked_fill(~mask[:, :, None], 0.0)


def _member_rows(F: Tensor, members: Tensor) -> Tensor:
    """Return the rows (B, k, D) of features for item numbers ``members`` (B, k)."""
    return F.gather(1, members[:, :, None].expand(*members.shape, F.shape[-1]))


# The resolvent --------------------------------------------------------------------


class DualResolvent:
    """Share, kept, ``A`` (as a root) and ``h`` of the module docstring, for B sets.

    ``h`` is computed, and kept as ``leverage``, when :meth:`marginals` is called.
    """

    def __init__(
        self,
        F: Tensor,
        log_quality: Tensor | None,
        mask: Tensor | None,
        jitter: float | Tensor,
        given: Tensor | None = None,
    ) -> None:
        """Factor ``I + Γ`` of features (B, N, D); a log-quality of None is zeros."""
        squared = torch.linalg.vector_norm(F, dim=-1) ** 2
        u = torch.zeros_like(squared) if log_quality is None else log_quality
        if mask is not None:
            u = u.masked_fill(~mask, 0.0)
        u = fill_given(u, given)
        above = u.clamp(min=0.0)
        p_squared = torch.exp(2.0 * u.clamp(max=0.0))
        c_squared = fill_given(torch.exp(-2.0 * above), given)
        ridge = jitter * p_squared * squared
        E = c_squared + ridge
        short = p_squared * squared <= _LONGEST_ROW[F.dtype] * E
        self.jitter, self.squared = jitter, squared  # ``ε``, ``s``
        self.share, self.kept = p_squared / E, c_squared / E
        #: (B, N): ``ε p² s / E``, the part of ``K_ii`` that comes from the ridge
        self.ridge = ridge / E
        #: double (B, D, D): ``A = root rootᵀ``
        self.root, log_det = _inverse_root(_weighted_gram(F, self.share))
        # Where the quality is at most one, c = 1 and small ridges keep their digits.
        is_scaled = above > 0.0 if given is None else (above > 0.0) | given
        log_E = torch.where(is_scaled, torch.log(E) + 2.0 * above, torch.log1p(ridge))
        #: double (B,): ``log det(L + I)``
        self.log_det = log_det + log_E.sum(dim=-1, dtype=torch.float64)
        #: boolean (B,): whether the factorisation can be trusted
        self.definite = ((E > 0.0) & short).all(dim=-1) & torch.isfinite(self.log_det)
        #: (B, N): ``h``, once :meth:`marginals` were asked for
        self.leverage: Tensor | None = None

    def marginals(self, F: Tensor) -> tuple[Tensor, Tensor]:
        """Return ``K_ii`` and ``1 - K_ii`` (B, N); ``F`` is that of the constructor."""
        if self.leverage is None:
            root = self.root.to(F.dtype)
            h = torch.empty_like(self.share)
            for sets, rows in _chunks(F):
                part = F[sets, rows] @ root[sets]
                h[sets, rows] = torch.linalg.vector_norm(part, dim=-1)
            self.leverage = (self.share * h**2).clamp_(0.0, 1.0)
        included = (self.ridge + self.kept * self.leverage).clamp_(0.0, 1.0)
        return included, self.kept * (1.0 - self.leverage)

    def gradients(
        self,
        F: Tensor,
        W: Tensor | None,
        scale: Tensor,
        wanted: Tensor | None = None,
        minus_diagonal: Tensor | float = 0.0,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return gradients in ``F`` (B, N, D), ``u`` (B, N) and ``ε`` (), times scale.

        Those of ``Σ_i W_i K_ii``, ``W`` (B, N) or None for 0, and, unless ``wanted`` is
        None, of ``log det(L + I)`` less ``2 u_i`` of the items that are True in
        ``wanted`` (B, N).  ``minus_diagonal`` (B, N) is subtracted from ``diag G``.
        Sets of ``scale`` (B, 1) zero have gradients of zero, whatever their features.
        """
        included, excluded = self.marginals(F)
        assert self.leverage is not None
        h, of_log_det = self.leverage, float(wanted is not None)
        slope = torch.zeros_like(h)
        if wanted is not None:
            slope = torch.where(wanted, -excluded, included)
        diagonal = of_log_det * (1.0 - h)
        by_row = 2.0 * scale * self.share
        in_F, g = self._feature_gradient(F, W, of_log_det, by_row)
        if W is not None:
            others = self.kept * (g - W * self.kept * h**2)
            slope = slope + (W * included * excluded - others)
            diagonal = diagonal + W * self.kept * (1.0 - 2.0 * h) + g
        diagonal = self.share * diagonal - minus_diagonal
        if isinstance(self.jitter, Tensor) or self.jitter:
            in_F.addcmul_(F, (2.0 * self.jitter * scale * diagonal)[..., None])
        flat = scale == 0.0
        in_ridge = (scale * diagonal * self.squared).masked_fill_(flat, 0.0).sum()
        in_u = (2.0 * scale * slope).masked_fill_(flat, 0.0)
        return in_F.masked_fill_(flat[:, :, None], 0.0), in_u, in_ridge

    def _feature_gradient(
        self, F: Tensor, W: Tensor | None, of_log_det: float, by_row: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return ``by_row ((of_log_det + kept W) F A - F A Δ A)``, and ``g`` (B, N).

        ``by_row`` is (B, N), the first result (B, N, D); ``of_log_det`` is 0 or 1.
        """
        A = self.root @ self.root.mT
        in_F = torch.empty(F.shape, dtype=F.dtype, device=F.device)
        g = torch.zeros_like(self.share)
        if W is not None:
            factor = of_log_det + self.kept * W
            delta = _weighted_gram(F, self.share * self.kept * W)
            Q = (A @ delta @ A).neg_().to(F.dtype)
        A = A.to(F.dtype)
        for sets, rows in _chunks(F):
            part, out = F[sets, rows], in_F[sets, rows]
            torch.matmul(part, A[sets], out=out)
            if W is not None:
                other = part @ Q[sets]
                torch.addcmul(other, out, factor[sets, rows, None], out=out)
                other *= part
                g[sets, rows] = -self.share[sets, rows] * other.sum(dim=-1)
            out *= by_row[sets, rows, None]
        return in_F, g


def _chunks(F: Tensor) -> Iterator[tuple[slice, slice]]:
    """Yield slices of sets and of rows of ``F``: several whole sets, or rows of one."""
    n_sets, n_items, n_columns = F.shape
    entries = _ENTRIES_CPU if F.device.type == "cpu" else _ENTRIES_GPU
    whole = max(n_items * n_columns, 1)
    if whole <= entries:
        step = entries // whole
        for start in range(0, n_sets, step):
            yield slice(start, start + step), slice(None)
        return
    n_rows = max(entries // n_columns, 1)
    for position in range(n_sets):
        for start in range(0, n_items, n_rows):
            yield slice(position, position + 1), slice(start, start + n_rows)


def _weighted_gram(F: Tensor, weight: Tensor) -> Tensor:
    """Return ``Fᵀ diag(weight) F`` (B, D, D) in double precision, ``weight`` (B, N)."""
    n_sets, _, D = F.shape
    total = torch.zeros(n_sets, D, D, dtype=torch.float64, device=F.device)
    for sets, rows in _chunks(F):
        part = F[sets, rows]
        weighted = part * weight[sets, rows, None]
        if F.device.type == "cpu" or len(part) > 1 or part.shape[1] < 2 * _SUMMED_ROWS:
            total[sets] += weighted.mT @ part
        else:
            total[sets] += _summed_products(weighted[0], part[0])
    return total


def _summed_products(left: Tensor, right: Tensor) -> Tensor:
    """Return ``leftᵀ right`` (D, D) of rows (n, D), as a sum of products of blocks."""
    n_parts = len(left) // _SUMMED_ROWS
    cut = n_parts * _SUMMED_ROWS
    shape = (n_parts, _SUMMED_ROWS, left.shape[1])
    parts = left[:cut].reshape(shape).mT @ right[:cut].reshape(shape)
    return parts.sum(dim=0, dtype=torch.float64) + left[cut:].mT @ right[cut:]


def _inverse_root(gamma: Tensor) -> tuple[Tensor, Tensor]:
    """Return ``R`` (B, D, D), ``R Rᵀ = (I + Γ)⁻¹``, and ``log det(I + Γ)`` (B,).

    The latter is NaN where ``I + Γ`` is singular; ``gamma`` is overwritten.
    """
    gamma.diagonal(dim1=-2, dim2=-1).add_(1.0)
    log_det, definite = factor_cholesky(gamma, 0.0)
    root = torch.zeros_like(gamma)
    root.diagonal(dim1=-2, dim2=-1).fill_(1.0)
    if gamma.numel():
        # The factor is lower in the transpose: gamma itself is its transpose.
        root = torch.linalg.solve_triangular(gamma.triu(), root, upper=True)
    return root, log_det.masked_fill(~definite, torch.nan)
