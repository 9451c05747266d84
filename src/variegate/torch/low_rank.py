r"""The large-margin loss of features, ``S = F Fᵀ``, without any N x N matrix.

The resolvent ``(L + I)⁻¹`` comes by Woodbury's identity.  The formulas are those of
:mod:`variegate.learning.dual` with one factor of weight one.  With a ridge of ``ε``
times the diagonal, ``s_i = ‖φ_i‖²``, ``p = min(e^u, 1)``, ``c = min(e^{-u}, 1)`` and
``E = c² + ε p² s``, write per item ``share = p² / E`` and
``kept = c² / E``.  For a diagonal matrix ``W``,

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

Time is ``O(N D²)``.  Temporaries are of a chunk of rows at a time, all but the gradient
itself; sums over items and ``D x D`` matrices are in double precision.

For the loss, with ``λ / m`` within the weights ``W``, the gradient in the features is

.. math::

    \partial f / \partial F = 2 (G + \varepsilon\,\mathrm{diag}\,G) F, \qquad
    G F = \mathrm{share} \bigl( (1 + \mathrm{kept}\,W) F A - F A \Delta A \bigr)
        - \langle S_y^{-1} \rangle F .

The loss reads ``F`` to sum ``Γ`` and ``Δ``, and again for the marginals; the gradient,
computed when it is asked for, reads it once more and writes one tensor of its size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from variegate.torch.dense import (
    expected_error,
    failures,
    inverse_of_present,
    judged,
    wanted_sum,
)
from variegate.torch.resolvent import factor, full_precision, raise_diagonal
from variegate.torch.targets import LossSettings, Targets

__all__ = [
    "DualGradients",
    "DualPoint",
    "DualResolvent",
    "dual_gradients",
    "dual_value",
    "without_padding",
]

#: Numbers of features that are worked on at a time.
_ENTRIES_CPU, _ENTRIES_GPU = 2**18, 2**26

#: Rows of one product of a sum over many: a GPU makes such products side by side.
_SUMMED_ROWS = 1024


class DualPoint(NamedTuple):
    """The losses of a batch, and the terms of their gradients."""

    value: Tensor  # (B,)
    failed: Tensor  # uint8 (B,): as in :class:`variegate.torch.dense.LossTerms`
    active: Tensor  # boolean (B,): whether a loss has a gradient that is not zero
    resolvent: DualResolvent
    weights: Tensor | None  # (B, N): ``λ W / m``
    delta: Tensor | None  # double (B, D, D): ``Δ`` of these weights
    targets: Targets
    target_inverse: Tensor  # (B, k, k): ``S_y⁻¹``, zero at padding


class DualGradients(NamedTuple):
    """Gradients in features (B, N, D), log-qualities (B, N) and the ridge ``ε`` ()."""

    features: Tensor
    log_quality: Tensor
    ridge: Tensor


def dual_value(
    F: Tensor, log_quality: Tensor | None, targets: Targets, settings: LossSettings
) -> DualPoint:
    """Return the losses of features (B, N, D); no log-quality is all zeros."""
    F = without_padding(F, targets.mask)
    signs = targets.signs if settings.lam else None
    with full_precision(F):
        resolvent, delta = DualResolvent.of(
            F, log_quality, targets.mask, settings.jitter, signs
        )
        F_y = _rows(F, targets.members)
        S_y = F_y @ F_y.mT
        raise_diagonal(S_y, settings.jitter)
        log_det, inverse, _, definite = inverse_of_present(
            S_y, targets, settings.tolerance
        )
        failed = failures(targets, definite, resolvent.definite)
        value = resolvent.log_det - log_det
        if log_quality is not None:
            value = value - 2.0 * wanted_sum(log_quality, targets)
        weights = None
        if signs is not None and delta is not None:
            error = expected_error(targets, *resolvent.marginals(F))
            value = value + settings.lam * torch.log(error)
            weights = (settings.lam / error)[:, None].to(F.dtype) * signs
            delta = delta * (settings.lam / error)[:, None, None]
    value, active, failed = judged(value, failed, settings.hinge, F.dtype)
    return DualPoint(value, failed, active, resolvent, weights, delta, targets, inverse)


def dual_gradients(at: DualPoint, F: Tensor, scale: Tensor) -> DualGradients:
    """Return the gradients of ``Σ_b scale_b f_b``.

    ``F`` are the features that the point was computed from.
    """
    targets, resolvent = at.targets, at.resolvent
    F = without_padding(F, targets.mask)
    members, inverse = targets.members, at.target_inverse
    scale = scale.masked_fill(~at.active, 0.0)[:, None]
    own = inverse.diagonal(dim1=-2, dim2=-1)
    own = torch.zeros_like(resolvent.share).scatter_add_(1, members, own)
    with full_precision(F):
        in_F, in_u, in_ridge = resolvent.gradients(
            F, at.weights, at.delta, scale, wanted=targets.indicator, minus_diagonal=own
        )
        rows = (inverse @ _rows(F, members)) * (-2.0 * scale[:, :, None])
    rows.masked_fill_(~at.active[:, None, None], 0.0)
    in_F.scatter_add_(1, members[:, :, None].expand_as(rows), rows)
    return DualGradients(in_F, in_u, in_ridge)


def without_padding(F: Tensor, mask: Tensor | None) -> Tensor:
    """Return features with rows of zeros for padding."""
    return F if mask is None else F.masked_fill(~mask[:, :, None], 0.0)


def _rows(F: Tensor, members: Tensor) -> Tensor:
    """Return the rows (B, k, D) of members (B, k)."""
    return F.gather(1, members[:, :, None].expand(*members.shape, F.shape[-1]))


# The resolvent --------------------------------------------------------------------


def longest_row(dtype: torch.dtype) -> float:
    """Return the largest ``share_i s_i``; rounding is below 1e-3 of the identity."""
    return 1e12 if dtype == torch.float64 else 1e4


@dataclass(eq=False)
class DualResolvent:
    """The matrices and numbers that the module docstring names."""

    jitter: float  # ``ε``
    share: Tensor  # (B, N)
    kept: Tensor  # (B, N)
    squared: Tensor  # (B, N): ``s``
    # (B, N): ``ε p² s / E``, the part of ``K_ii`` that comes from the ridge
    ridge: Tensor
    log_det: Tensor  # double (B,): ``log det(L + I)``
    definite: Tensor  # boolean (B,): whether the factorisation can be trusted
    root: Tensor  # double (B, D, D): ``A = root rootᵀ``
    # (B, N): ``h``, once :meth:`marginals` were asked for
    leverage: Tensor | None = None

    @classmethod
    def of(
        cls,
        F: Tensor,
        log_quality: Tensor | None,
        mask: Tensor | None,
        jitter: float,
        W: Tensor | None = None,
    ) -> tuple[DualResolvent, Tensor | None]:
        """Factor ``I + Γ``; return ``Δ`` too, if there is a ``W``."""
        squared = torch.linalg.vector_norm(F, dim=-1) ** 2
        u = torch.zeros_like(squared) if log_quality is None else log_quality
        if mask is not None:
            u = u.masked_fill(~mask, 0.0)
        above = u.clamp(min=0.0)
        p_squared = torch.exp(2.0 * u.clamp(max=0.0))
        c_squared = torch.exp(-2.0 * above)
        ridge = jitter * p_squared * squared
        E = c_squared + ridge
        short = p_squared * squared <= longest_row(F.dtype) * E
        share, kept = p_squared / E, c_squared / E
        gamma, delta = _grams(F, share, None if W is None else kept * W)
        root, log_det = _root(gamma)
        # Where the quality is at most one, c = 1 and small ridges keep their digits.
        log_E = torch.where(above > 0.0, torch.log(E) + 2.0 * above, torch.log1p(ridge))
        log_det = log_det + log_E.sum(dim=-1, dtype=torch.float64)
        definite = ((E > 0.0) & short).all(dim=-1) & torch.isfinite(log_det)
        made = cls(jitter, share, kept, squared, ridge / E, log_det, definite, root)
        return made, delta

    def marginals(self, F: Tensor) -> tuple[Tensor, Tensor]:
        """Return ``K_ii`` and ``1 - K_ii``, neither by cancellation."""
        if self.leverage is None:
            root = self.root.to(F.dtype)
            h = torch.empty_like(self.share)
            for sets, rows in _chunks(F):
                h[sets, rows] = torch.linalg.vector_norm(
                    F[sets, rows] @ root[sets], dim=-1
                )
            self.leverage = (self.share * h**2).clamp_(0.0, 1.0)
        included = (self.ridge + self.kept * self.leverage).clamp_(0.0, 1.0)
        return included, self.kept * (1.0 - self.leverage)

    def delta(self, F: Tensor, W: Tensor) -> Tensor:
        """Return ``Δ``."""
        return _gram(F, self.share * self.kept * W)

    def gradients(
        self,
        F: Tensor,
        W: Tensor | None,
        delta: Tensor | None,
        scale: Tensor,
        *,
        wanted: Tensor | None,
        minus_diagonal: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return gradients in ``F`` (B, N, D), ``u`` (B, N) and ``ε`` (), times scale.

        Of ``Σ_i W_i K_ii`` and, if there are ``wanted`` items, of ``log det(L + I)``
        less their ``2 u_i``.  Sets whose ``scale`` is zero have gradients of zero,
        whatever their features are.

        Parameters
        ----------
        F : the features that the resolvent was made of
        W : (B, N) or None
        delta : (B, D, D) or None
            ``Δ`` of this ``W``.
        scale : (B, 1)
        wanted : boolean (B, N) or None
        minus_diagonal : (B, N), optional
            Subtracted from ``diag G``.
        """
        included, excluded = self.marginals(F)
        assert self.leverage is not None
        h, of_log_det = self.leverage, float(wanted is not None)
        slope = torch.zeros_like(h)
        if wanted is not None:
            slope = torch.where(wanted, -excluded, included)
        diagonal = of_log_det * (1.0 - h)
        factor = torch.full_like(h, of_log_det)
        if W is not None:
            factor = factor + self.kept * W
        in_F, g = self._feature_gradient(F, delta, factor, 2.0 * scale * self.share)
        if W is not None:
            others = self.kept * (g - W * self.kept * h**2)
            slope = slope + (W * included * excluded - others)
            diagonal = diagonal + W * self.kept * (1.0 - 2.0 * h) + g
        diagonal = self.share * diagonal
        if minus_diagonal is not None:
            diagonal = diagonal - minus_diagonal
        if self.jitter:
            in_F.addcmul_(F, (2.0 * self.jitter * scale * diagonal)[..., None])
        flat = scale == 0.0
        in_ridge = (scale * diagonal * self.squared).masked_fill_(flat, 0.0).sum()
        in_u = (2.0 * scale * slope).masked_fill_(flat, 0.0)
        return in_F.masked_fill_(flat[:, :, None], 0.0), in_u, in_ridge

    def _feature_gradient(
        self, F: Tensor, delta: Tensor | None, factor: Tensor, by_row: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return ``by_row (factor F A - F A Δ A)``, and ``g``, by chunks."""
        A = self.root @ self.root.mT
        Q = None if delta is None else (A @ delta @ A).neg_().to(F.dtype)
        A = A.to(F.dtype)
        in_F = torch.empty(F.shape, dtype=F.dtype, device=F.device)
        g = torch.zeros_like(self.share)
        for sets, rows in _chunks(F):
            part, out = F[sets, rows], in_F[sets, rows]
            torch.matmul(part, A[sets], out=out)
            if Q is not None:
                other = part @ Q[sets]
                torch.addcmul(other, out, factor[sets, rows, None], out=out)
                other *= part
                g[sets, rows] = -self.share[sets, rows] * other.sum(dim=-1)
            out *= by_row[sets, rows, None]
        return in_F, g


def _chunks(F: Tensor) -> Iterator[tuple[slice, slice]]:
    """Yield sets and rows: many whole sets, or part of the rows of one."""
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


def _grams(
    F: Tensor, weight: Tensor, more: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """Return ``Fᵀ weight F`` and ``Fᵀ weight more F``, reading ``F`` once."""
    n_sets, _, n_columns = F.shape
    first = torch.zeros(
        n_sets, n_columns, n_columns, dtype=torch.float64, device=F.device
    )
    second = None if more is None else torch.zeros_like(first)
    for sets, rows in _chunks(F):
        part = F[sets, rows]
        weighted = part * weight[sets, rows, None]
        first[sets] += _products(weighted, part)
        if more is not None and second is not None:
            weighted *= more[sets, rows, None]
            second[sets] += _products(weighted, part)
    return first, second


def _gram(F: Tensor, weight: Tensor) -> Tensor:
    return _grams(F, weight, None)[0]


def _products(left: Tensor, right: Tensor) -> Tensor:
    """Return ``leftᵀ right`` of (b, n, D) in double precision."""
    n_sets, n_items, _ = left.shape
    if left.device.type == "cpu" or n_sets > 1 or n_items < 2 * _SUMMED_ROWS:
        return (left.mT @ right).double()
    return _summed_products(left[0], right[0])[None]


def _summed_products(left: Tensor, right: Tensor) -> Tensor:
    """Return ``leftᵀ right`` of many rows (n, D), by products side by side."""
    n_parts = len(left) // _SUMMED_ROWS
    cut = n_parts * _SUMMED_ROWS
    shape = (n_parts, _SUMMED_ROWS, left.shape[1])
    parts = left[:cut].reshape(shape).mT @ right[:cut].reshape(shape)
    return parts.sum(dim=0, dtype=torch.float64) + left[cut:].mT @ right[cut:]


def _root(gamma: Tensor) -> tuple[Tensor, Tensor]:
    """Return a root of ``(I + Γ)⁻¹``, and ``log det(I + Γ)``, NaN where it has none."""
    gamma.diagonal(dim1=-2, dim2=-1).add_(1.0)
    log_det, definite = factor(gamma, 0.0)
    root = torch.zeros_like(gamma)
    root.diagonal(dim1=-2, dim2=-1).fill_(1.0)
    if gamma.numel():
        # The factor is lower in the transpose: gamma itself is its transpose.
        root = torch.linalg.solve_triangular(gamma.triu(), root, upper=True)
    return root, log_det.masked_fill(~definite, torch.nan)
