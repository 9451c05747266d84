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
- ``Φᵀ P M⁻¹ P Φ = Γ R`` and ``Φᵀ P M⁻¹ C W C M⁻¹ P Φ = Rᵀ Δ R`` with
  ``R = (I + w Γ)⁻¹``: traces of their blocks are the gradient in the weights.
- ``[M⁻¹]_ii = (1 - h_i) / E_i`` and ``[M⁻¹ C W C M⁻¹]_ii =
  (d_i² W_i ((1 - h_i)² - h_i²) + g_i) / E_i``, which the ridge needs.

No entry of ``E`` is below ``ε s_i`` where ``p_i = 1``, so log-qualities of hundreds
overflow nothing as long as there is a ridge.  Rounding is relative to the largest
``‖ψ_i‖²``, which is below ``1/ε`` and below ``q_i² s_i``: with the usual ridge of 1e-6
ten digits are left however good the items are, without one ``q_i² s_i`` may be no
more than 1e12.  Given items, of ``c_i = 0``, need a ridge.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack, solve_triangular

from variegate._typing import FloatArray, IntArray
from variegate.learning.factors import Factors
from variegate.learning.objective import LargeMarginLoss, Targets, ZeroProbabilityError
from variegate.linalg.determinants import (
    NotPositiveDefiniteError,
    finite_part,
    log_det_and_inverse,
)
from variegate.linalg.limits import DOUBTFUL_PIVOT

#: The largest ``‖ψ_i‖²``: beyond it, rounding is more than 1e-4 of the identity.
_LONGEST_ROW = 1e12


def log_det_and_inverse_of_target(
    factors: Factors, weights: FloatArray, ridge: FloatArray, members: IntArray
) -> tuple[float, FloatArray]:
    """Return ``log det S_y`` and ``S_y⁻¹`` (k, k) of the wanted items ``members`` (k,).

    ``S = Σ_k w_k F_k F_kᵀ + diag(ridge)`` with ``weights`` ``w`` (K,).
    ZeroProbabilityError if ``S_y`` is singular.
    """
    rows = factors.columns[members]
    S_y = (rows * weights[factors.owner]) @ rows.T
    S_y[np.diag_indices_from(S_y)] += ridge[members]
    try:
        log_det, inverse = log_det_and_inverse(S_y[None], DOUBTFUL_PIVOT)
    except NotPositiveDefiniteError:
        raise ZeroProbabilityError(0) from None
    return float(log_det[0]), inverse[0]


class DualPoint:
    """The loss ``value`` of one ground set at given parameters, and its gradients.

    ``G`` is the derivative of the loss in ``S``, which includes the ridge.  Where the
    hinge makes the loss zero, ``is_flat`` is true: all gradients are zero there, and
    the methods, which do not know of the hinge, must not be called.

    Parameters
    ----------
    loss : LargeMarginLoss
    factors : Factors
    weights : array of shape (K,), not negative
        ``w_k`` of the module docstring.
    ridge : array of shape (N,)
        Added to the diagonal of ``S``.
    log_quality : array of shape (N,)
        ``u``, infinite at given items.
    targets : Targets of one ground set

    Raises
    ------
    ZeroProbabilityError
        If the wanted items are linearly dependent and there is no ridge.
    NotPositiveDefiniteError
        If ``L + I`` is too large for its numbers.
    """

    def __init__(
        self,
        loss: LargeMarginLoss,
        factors: Factors,
        weights: FloatArray,
        ridge: FloatArray,
        log_quality: FloatArray,
        targets: Targets,
    ) -> None:
        members = targets.members[0][targets.present[0]]
        wanted, cost = targets.indicator[0], targets.error_cost[0]
        log_det_target, self.target_inverse = log_det_and_inverse_of_target(
            factors, weights, ridge, members
        )
        resolvent = LowRankResolvent(factors, weights, ridge, log_quality)
        self.factors, self.weights, self.members = factors, weights, members
        self.resolvent = resolvent
        W = np.where(wanted, -cost, cost)
        error = cost * np.where(wanted, resolvent.excluded, resolvent.included)
        margin, self.margin_slope = loss.margin_terms(float(error.sum()))
        value = resolvent.log_det - log_det_target
        value -= 2.0 * float(finite_part(log_quality)[members].sum())
        value += margin
        self.is_flat = loss.hinge and not value > 0.0
        self.value = 0.0 if self.is_flat else value
        self.W = W
        if loss.lam > 0.0 and not self.is_flat:
            self.delta = factors.gram(resolvent.share * resolvent.kept * W)
            middle = resolvent.root @ (resolvent.root.T @ self.delta @ resolvent.root)
            forms = factors.quadratic_forms(middle @ resolvent.root.T)
            self.g = resolvent.share * forms

    def quality_gradient(self) -> FloatArray:
        """Return ``∂f/∂u`` (N,), the gradient in the log-qualities."""
        resolvent, W = self.resolvent, self.W
        gradient = resolvent.included.copy()
        gradient[self.members] = -resolvent.excluded[self.members]
        if self.margin_slope > 0:
            kept, h = resolvent.kept, resolvent.leverage
            own = W * resolvent.included * resolvent.excluded
            others = kept * (self.g - W * kept * h**2)
            gradient += self.margin_slope * (own - others)
        return 2.0 * gradient

    def weight_gradient(self, jitter: float) -> FloatArray:
        """Return ``∂f/∂w`` (K,) where the ridge is ``jitter`` times the diagonal.

        ``⟨G, F_k F_kᵀ⟩``, plus ``jitter`` times ``⟨G, diag(F_k F_kᵀ)⟩``.
        """
        factors = self.factors
        solved = self.resolvent.inverse_for_weights(self.weights[factors.owner])
        traces = np.einsum("ij,ji->i", self.resolvent.gram, solved)
        if self.margin_slope > 0:
            squares = np.einsum("ij,ij->j", solved, self.delta @ solved)
            traces += self.margin_slope * squares
        rows = factors.columns[self.members]
        traces -= np.einsum("ij,ij->j", self.target_inverse @ rows, rows)
        in_ridge = self.diagonal() @ factors.squared
        return np.asarray(factors.sum_by_factor(traces) + jitter * in_ridge)

    def diagonal(self) -> FloatArray:
        """Return the diagonal (N,) of ``G``."""
        resolvent, W, h = self.resolvent, self.W, self.resolvent.leverage
        diagonal = resolvent.share * (1.0 - h)
        if self.margin_slope > 0:
            squares = W * resolvent.kept * ((1.0 - h) ** 2 - h**2) + self.g
            diagonal += self.margin_slope * resolvent.share * squares
        diagonal[self.members] -= self.target_inverse.diagonal()
        return diagonal

    def gradient_times_factor(self) -> FloatArray:
        """Return ``G Φ`` (N, D), from which the gradient in ``Φ`` follows.

        ``P M⁻¹ P Φ = (p²/E) Φ R`` and ``P M⁻¹ C W C M⁻¹ P Φ = (p²/E) (d² W Φ R -
        Φ A Δ R)``.
        """
        columns, resolvent = self.factors.columns, self.resolvent
        solved = resolvent.inverse_for_weights(self.weights[self.factors.owner])
        share = resolvent.share
        product = columns @ solved
        if self.margin_slope > 0:
            A = resolvent.root @ resolvent.root.T
            scale = 1.0 + self.margin_slope * resolvent.kept * self.W
            product *= (share * scale)[:, None]
            other = columns @ (self.margin_slope * A @ self.delta @ solved)
            other *= share[:, None]
            product -= other
        else:
            product *= share[:, None]
        product[self.members] -= self.target_inverse @ columns[self.members]
        return np.asarray(product)


class LowRankResolvent:
    """``(L + I)⁻¹`` of a similarity of low rank, by Woodbury's identity.

    Symbols are those of the module docstring, arguments those of :class:`DualPoint`.
    Raises NotPositiveDefiniteError where rounding would decide.

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

    def __init__(
        self,
        factors: Factors,
        weights: FloatArray,
        ridge: FloatArray,
        log_quality: FloatArray,
    ) -> None:
        above = np.maximum(log_quality, 0.0)
        counted = finite_part(above)
        p_squared = np.exp(2.0 * np.minimum(log_quality, 0.0))
        c_squared = np.exp(-2.0 * above)
        own = p_squared * (factors.squared @ weights)
        ridge = p_squared * ridge
        E = c_squared + ridge
        if not ((E > 0.0) & (own <= _LONGEST_ROW * E)).all():
            raise NotPositiveDefiniteError(0)
        self.share, self.kept = p_squared / E, c_squared / E
        self.gram = factors.gram(self.share)
        scale = np.sqrt(weights[factors.owner])
        T = scale[:, None] * self.gram * scale
        T[np.diag_indices_from(T)] += 1.0
        lower, info = lapack.dpotrf(T, lower=1)
        if info != 0 or not np.isfinite(lower).all():
            raise NotPositiveDefiniteError(0)
        self.root = solve_triangular(lower, np.diag(scale), lower=True).T
        self.leverage = (self.share * factors.squared_lengths(self.root)).clip(0.0, 1.0)
        # Where the quality is at most one, c = 1 and small ridges keep their digits.
        log_E = np.where(above > 0.0, np.log(E) + 2.0 * counted, np.log1p(ridge))
        self.log_det = float(log_E.sum() + 2.0 * np.log(lower.diagonal()).sum())
        self.included: FloatArray = (ridge / E + self.kept * self.leverage).clip(
            0.0, 1.0
        )
        self.excluded: FloatArray = self.kept * (1.0 - self.leverage)

    def inverse_for_weights(self, weights: FloatArray) -> FloatArray:
        """Return ``R = (I + w Γ)⁻¹`` (D, D) for weights ``w`` (D,) of the columns."""
        system = weights[:, None] * self.gram
        system[np.diag_indices_from(system)] += 1.0
        return np.asarray(np.linalg.inv(system))
