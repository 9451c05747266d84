r"""The large-margin loss of a similarity of low rank, no N x N matrix ever made.

Where the similarity comes as factors, ``S = Σ_k w_k F_k F_kᵀ``, write
``Φ = [F_1 ... F_K]`` with ``D`` columns in all, ``φ_i`` for its rows, and ``w`` for the
weights repeated for the columns of each factor.  The loss of
:mod:`variegate.learning.objective`, with the same ridge ``ε`` (the ``jitter``), then
takes ``O(N D²)`` time and ``O(N D)`` memory.

With ``p``, ``c`` as in :class:`variegate.linalg.determinants.Resolvent` and
``s_i = S_ii``,

.. math::

    M = P (S + \varepsilon\,\mathrm{diag}(s)) P + C^2
      = E^{1/2} (I + \Psi w \Psi^T) E^{1/2}, \qquad
    E = C^2 + \varepsilon P^2 \mathrm{diag}(s), \quad \Psi = E^{-1/2} P \Phi .

Everything follows from two ``D x D`` matrices,

.. math:: \Gamma = \Psi^T \Psi, \qquad \Delta = \Psi^T (d^2 W) \Psi, \qquad
    d_i^2 = c_i^2 / E_i \le 1,

and from two quadratic forms a row, with ``T = I + w^{1/2} Γ w^{1/2}`` and
``A = w^{1/2} T⁻¹ w^{1/2}`` (Woodbury's identity):

.. math:: h_i = \psi_i^T A \psi_i, \qquad g_i = \psi_i^T A \Delta A \psi_i .

- ``log det(L + I) = Σ_i (log E_i + 2 max(u_i, 0)) + log det T``.
- ``K_ii = ε p_i² s_i / E_i + d_i² h_i`` and ``1 - K_ii = d_i² (1 - h_i)``.
- ``K_ij = d_i d_j ψ_iᵀ A ψ_j`` off the diagonal, hence
  ``Σ_{i≠k} W_i K_ik² = d_k² (g_k - W_k d_k² h_k²)``.
- ``Φᵀ P M⁻¹ P Φ = Γ N`` and ``Φᵀ P M⁻¹ C W C M⁻¹ P Φ = Nᵀ Δ N`` with
  ``N = (I + w Γ)⁻¹``: traces of their blocks are the gradient in the weights.
- ``[M⁻¹]_ii = (1 - h_i) / E_i`` and ``[M⁻¹ C W C M⁻¹]_ii =
  (d_i² W_i ((1 - h_i)² - h_i²) + g_i) / E_i``, which the ridge needs.

No entry of ``E`` is below ``ε s_i`` where ``p_i = 1``, so log-qualities of hundreds
overflow nothing as long as there is a ridge.  Rounding is relative to the largest
``‖ψ_i‖²``, which is below ``1/ε`` and below ``q_i² s_i``: with the usual ridge of 1e-6
ten digits are left however good the items are, without one ``q_i² s_i`` may be no
more than 1e12.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack, solve_triangular

from variegate._typing import FloatArray, IntArray
from variegate.learning.factors import Factors
from variegate.learning.objective import (
    LargeMarginLoss,
    Targets,
    ZeroProbabilityError,
    impossible_item,
)
from variegate.linalg.determinants import (
    RANK_TOLERANCE,
    NotPositiveDefiniteError,
    log_det_and_inverse,
)

__all__ = ["DualStack", "DualTerms", "dual_loss"]

#: The largest ``‖ψ_i‖²``: beyond it, rounding is more than 1e-4 of the identity.
_LONGEST_ROW = 1e12


class DualTerms(NamedTuple):
    """A loss and its derivatives.

    Attributes
    ----------
    value : float
    weight_gradient : (K,)
        In the weights of the factors; zeros where it was not asked for.
    quality_gradient : (N,)
        ``∂f/∂u``.
    """

    value: float
    weight_gradient: FloatArray
    quality_gradient: FloatArray


class _Target(NamedTuple):
    """``log det`` of the similarity of the wanted items, and its inverse."""

    log_det: float
    inverse: FloatArray

    @classmethod
    def of(
        cls, factors: Factors, weights: FloatArray, members: IntArray, jitter: float
    ) -> _Target:
        rows = factors.columns[members]
        S_y = (rows * weights[factors.owner]) @ rows.T
        S_y[np.diag_indices_from(S_y)] *= 1.0 + jitter
        try:
            log_det, inverse = log_det_and_inverse(S_y[None], RANK_TOLERANCE)
        except NotPositiveDefiniteError:
            raise ZeroProbabilityError(0) from None
        return cls(float(log_det[0]), inverse[0])

    def weight_gradient(
        self, factors: Factors, members: IntArray, jitter: float
    ) -> FloatArray:
        """Return the gradient of ``log det``."""
        rows = factors.columns[members]
        ridge = self.inverse.diagonal() @ factors.squared[members]
        traces = np.einsum("ij,ij->j", self.inverse @ rows, rows)
        return factors.sums(traces) + jitter * ridge


def dual_loss(
    loss: LargeMarginLoss,
    factors: Factors,
    weights: FloatArray,
    log_quality: FloatArray,
    targets: Targets,
    jitter: float,
    *,
    weight_gradient: bool = True,
) -> DualTerms:
    """Return the loss of one ground set and its gradients.

    Parameters
    ----------
    loss : LargeMarginLoss
    factors : Factors
    weights : array of shape (K,), not negative
    log_quality : array of shape (N,)
    targets : Targets of one ground set
    jitter : ridge on ``S``, relative to its diagonal
    weight_gradient : bool
        Whether the gradient in the weights is wanted.

    Raises
    ------
    ZeroProbabilityError
        If the wanted items are linearly dependent and there is no ridge.
    NotPositiveDefiniteError
        If ``L + I`` is too large for its numbers.
    """
    members = targets.members[0][targets.present[0]]
    wanted, cost = targets.indicator[0], targets.error_cost[0]
    target = _Target.of(factors, weights, members, jitter)
    resolvent = _LowRankResolvent.of(factors, weights, log_quality, jitter)
    error = cost * np.where(wanted, resolvent.excluded, resolvent.included)
    margin, factor = loss.margin(float(error.sum()))
    value = resolvent.log_det - target.log_det - 2.0 * float(log_quality[members].sum())
    value += margin
    if loss.hinge and not value > 0:
        return DualTerms(0.0, np.zeros(factors.n_factors), np.zeros(len(log_quality)))
    quality_gradient = 2.0 * np.where(wanted, -resolvent.excluded, resolvent.included)
    spread = None
    if loss.lam > 0:
        spread = _Spread.of(factors, resolvent, np.where(wanted, -cost, cost))
        quality_gradient += 2.0 * factor * spread.quality_gradient(resolvent)
    slope = np.zeros(factors.n_factors)
    if weight_gradient:
        slope = resolvent.weight_gradient(factors, weights, jitter, factor, spread)
        slope -= target.weight_gradient(factors, members, jitter)
    return DualTerms(value, slope, quality_gradient)


class _Spread(NamedTuple):
    """What the margin adds to the gradients; the names of the module docstring."""

    W: FloatArray
    delta: FloatArray
    g: FloatArray

    @classmethod
    def of(
        cls, factors: Factors, resolvent: _LowRankResolvent, W: FloatArray
    ) -> _Spread:
        delta = factors.gram(resolvent.share * resolvent.kept * W)
        middle = resolvent.root @ (resolvent.root.T @ delta @ resolvent.root)
        g = resolvent.share * factors.quadratic_forms(middle @ resolvent.root.T)
        return cls(W, delta, g)

    def quality_gradient(self, resolvent: _LowRankResolvent) -> FloatArray:
        """Return half the gradient of the expected error in ``u``."""
        h, kept = resolvent.leverage, resolvent.kept
        own = self.W * resolvent.included * resolvent.excluded
        return np.asarray(own - kept * (self.g - self.W * kept * h**2))


@dataclass(frozen=True, eq=False)
class _LowRankResolvent:
    """``(L + I)⁻¹`` by Woodbury's identity; the names of the module docstring.

    Attributes
    ----------
    log_det : float
        ``log det(L + I)``.
    share : (N,)
        ``p² / E``, so that ``ψ_i = √share_i φ_i``.
    kept : (N,)
        ``d² = c² / E``.
    gram : (D, D)
        ``Γ``.
    root : (D, D)
        A root of ``A``: ``A = root rootᵀ``.
    leverage : (N,)
        ``h``, between 0 and 1.
    included, excluded : (N,)
        ``K_ii`` and ``1 - K_ii``.
    """

    log_det: float
    share: FloatArray
    kept: FloatArray
    gram: FloatArray
    root: FloatArray
    leverage: FloatArray
    included: FloatArray
    excluded: FloatArray

    @classmethod
    def of(
        cls,
        factors: Factors,
        weights: FloatArray,
        log_quality: FloatArray,
        jitter: float,
    ) -> _LowRankResolvent:
        above = np.maximum(log_quality, 0.0)
        p_squared = np.exp(2.0 * np.minimum(log_quality, 0.0))
        c_squared = np.exp(-2.0 * above)
        own = p_squared * (factors.squared @ weights)
        ridge = jitter * own
        E = c_squared + ridge
        if not ((E > 0.0) & (own <= _LONGEST_ROW * E)).all():
            raise NotPositiveDefiniteError(0)
        share, kept = p_squared / E, c_squared / E
        gram = factors.gram(share)
        scale = np.sqrt(weights[factors.owner])
        T = scale[:, None] * gram * scale
        T[np.diag_indices_from(T)] += 1.0
        lower, info = lapack.dpotrf(T, lower=1)
        if info != 0 or not np.isfinite(lower).all():
            raise NotPositiveDefiniteError(0)
        root = solve_triangular(lower, np.diag(scale), lower=True).T
        leverage = (share * factors.squared_lengths(root)).clip(0.0, 1.0)
        # Where the quality is at most one, c = 1 and small ridges keep their digits.
        log_E = np.where(above > 0.0, np.log(E) + 2.0 * above, np.log1p(ridge))
        return cls(
            log_det=float(log_E.sum() + 2.0 * np.log(lower.diagonal()).sum()),
            share=share,
            kept=kept,
            gram=gram,
            root=root,
            leverage=leverage,
            included=(ridge / E + kept * leverage).clip(0.0, 1.0),
            excluded=kept * (1.0 - leverage),
        )

    def weight_gradient(
        self,
        factors: Factors,
        weights: FloatArray,
        jitter: float,
        factor: float,
        spread: _Spread | None,
    ) -> FloatArray:
        """Return the gradient of ``log det(L + I)``, and of ``factor`` times the error.

        With ``N = (I + w Γ)⁻¹`` for the weights of the columns.
        """
        system = weights[factors.owner, None] * self.gram
        system[np.diag_indices_from(system)] += 1.0
        N = np.linalg.inv(system)
        traces = np.einsum("ij,ji->i", self.gram, N)
        h = self.leverage
        diagonal = self.share * (1.0 - h)
        if spread is not None:
            traces += factor * np.einsum("ij,ij->j", N, spread.delta @ N)
            squares = spread.W * self.kept * ((1.0 - h) ** 2 - h**2) + spread.g
            diagonal += factor * self.share * squares
        return factors.sums(traces) + jitter * (diagonal @ factors.squared)


class DualStack:
    """One ground set with a similarity of low rank, in a training problem.

    Parameters
    ----------
    positions : list of one int
        Its place among the ground sets, for messages.
    X : array of shape (N, d)
        Quality features.
    factors : Factors
    targets : Targets of one ground set
    jitter : float
    learned : bool
        Whether the weights are learned.
    """

    def __init__(
        self,
        positions: list[int],
        X: FloatArray,
        factors: Factors,
        targets: Targets,
        jitter: float,
        learned: bool,
    ) -> None:
        self.positions = positions
        self.X = X
        self.factors = factors
        self.targets = targets
        self.jitter = jitter
        self.learned = learned
        members = targets.members[0][targets.present[0]]
        impossible = members[(factors.squared[members] <= 0.0).all(axis=1)]
        if len(impossible):
            raise impossible_item(positions[0], impossible[0])
        if not learned:  # say now what would fail later
            _Target.of(factors, factors.weights(np.zeros(0)), members, jitter)

    def marginals(self, parameters: FloatArray, u: FloatArray) -> FloatArray:
        """Return ``K_ii``, as the one row of a matrix."""
        weights = self.factors.weights(parameters)
        resolvent = _LowRankResolvent.of(self.factors, weights, u, self.jitter)
        return resolvent.included[None]

    def evaluate(
        self, loss: LargeMarginLoss, parameters: FloatArray, u: FloatArray
    ) -> tuple[float, FloatArray, FloatArray | None]:
        """Return the loss and its gradients in ``u`` and in learned weights."""
        terms = dual_loss(
            loss,
            self.factors,
            self.factors.weights(parameters),
            u,
            self.targets,
            self.jitter,
            weight_gradient=self.learned,
        )
        slope = terms.weight_gradient if self.learned else None
        return terms.value, terms.quality_gradient, slope
