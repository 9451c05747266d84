"""The softmax relaxation of MAP: climb inside the cube, then round to a corner."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from variegate._typing import FloatArray, IntArray
from variegate._validation import check_count
from variegate.decoding.base import Constraint
from variegate.decoding.residuals import Residuals, cheapest_possible_subset
from variegate.linalg.determinants import normalizer_and_marginal_kernel
from variegate.linalg.limits import RELAXED_ITEMS
from variegate.linalg.representations import Dense, Representation
from variegate.selection import Ensemble, Selection

#: ``exp`` of twice this is still a number.
MAX_LOG_QUALITY = 300.0

#: The distance of the climb from the faces of the cube, where the gradient of an item
#: is that of a ratio of two determinants, one of which may be zero.
MARGIN = 1e-6


@dataclass(frozen=True)
class Relaxed:
    r"""MAP by the softmax extension (Gillenwater, Kulesza and Taskar, 2012).

    For ``x`` in the cube ``[0, 1]^N`` let ``Y`` hold each item ``i`` with probability
    ``x_i``, independently.  The extension of ``log det L_y`` from corners to the cube,

    .. math:: F(x) = \log \mathbb E \det L_Y
        = \log \sum_y \prod_{i \in y} x_i \prod_{i \notin y} (1 - x_i) \det L_y
        = \log \det(\mathrm{diag}(x)(L - I) + I),

    is concave in every direction that is nowhere negative.

    **Climb.** ``x₁`` is a local maximum over the cube, ``x₂`` one over
    ``0 ≤ x ≤ 1 - x₁``, both by L-BFGS-B from the middle of their box.  The better of
    the two has at least a quarter of the largest ``log det L_y`` if no determinant is
    below one (their guarantee; here up to the accuracy of the climb and a margin of
    1e-6 at the faces).  See ``softmax_extension`` for the gradient.

    **Round.** ``exp F`` is linear in each coordinate, so moving one to 0 or to 1, the
    better of them, never lowers ``F``; after all have moved, ``F`` is ``log det L_y``.
    See ``round_to_subset``.  Both ``x₁`` and ``x₂`` are rounded, and the best of the
    two subsets and of the empty one is the answer.

    **Repair.** With a constraint the guarantee is lost: the relaxation ignores it.
    Items of the rounded subset are taken greedily while they fit, and then others.
    Where that leads to fewer than ``k``, the ``k`` cheapest independent items are the
    answer.

    Takes ``O(N³)`` time for each step of the climb, and as much for all the rounding.

    Parameters
    ----------
    max_iterations : int, default=500
        Of each of the two climbs.

    References
    ----------
    J. Gillenwater, A. Kulesza and B. Taskar.  Near-optimal MAP inference for
    determinantal point processes.  NIPS 2012.
    """

    max_iterations: int = 500

    def __call__(
        self, ensemble: Ensemble, constraint: Constraint, generator: Generator
    ) -> Selection:
        """Return the rounded maximum, made feasible; ``generator`` is not used."""
        check_count("max_iterations", self.max_iterations)
        kernel = _dense_representation(ensemble)
        members, reason = self._climb_and_round(kernel, ensemble.representation)
        if not constraint.is_free:
            members = _repair_subset(ensemble.representation, constraint, members)
            reason += ", then made it meet the constraint"
        return Selection(members, ensemble.log_prob(members), reason)

    def _climb_and_round(
        self, kernel: Dense, judge: Representation
    ) -> tuple[IntArray, str]:
        """Return the best rounded subset by ``judge.log_det``, and the stop reason.

        ``kernel`` is the dense form of ``judge``, the ensemble's representation.
        """
        nothing: IntArray = np.zeros(0, dtype=np.intp)
        if len(kernel) == 0:
            return nothing, "there are no items"
        ceiling = np.full(len(kernel), 1.0 - MARGIN)
        first, first_done = self._maximize_extension(kernel, ceiling)
        # The margin is taken off once, not twice: an item at one face of the first
        # box is at the other face of the second.
        second, second_done = self._maximize_extension(
            kernel, np.minimum(ceiling, 1.0 - first)
        )
        candidates = [
            nothing,
            round_to_subset(kernel, first),
            round_to_subset(kernel, second),
        ]
        best = int(np.argmax([judge.log_det(members) for members in candidates]))
        reason = "rounded the better of two local maxima of the relaxation"
        if not (first_done and second_done):
            reason = (
                "rounded the better of two points that the relaxation reached in "
                f"{self.max_iterations} iterations"
            )
        return candidates[best], reason

    def _maximize_extension(
        self, kernel: Dense, ceiling: FloatArray
    ) -> tuple[FloatArray, bool]:
        """Climb ``F`` up to ``ceiling``; return the last ``x``, and if it converged."""
        from scipy.optimize import minimize

        def negative_extension(x: FloatArray) -> tuple[float, FloatArray]:
            """Return ``-F(x)`` and its gradient."""
            value, gradient = softmax_extension(kernel, x)
            return -value, -gradient

        floor = np.full(len(kernel), MARGIN)
        result = minimize(
            negative_extension,
            (floor + ceiling) / 2.0,
            jac=True,
            method="L-BFGS-B",
            bounds=np.stack([floor, np.maximum(floor, ceiling)], axis=1),
            options={
                "maxiter": self.max_iterations,
                "maxfun": 20 * self.max_iterations,
                "ftol": 1e-13,
                "gtol": 1e-7,
            },
        )
        x = np.clip(result.x, floor, np.maximum(floor, ceiling))
        return x, result.status != 1


def softmax_extension(kernel: Dense, x: FloatArray) -> tuple[float, FloatArray]:
    r"""Return ``F(x) = log det(diag(x)(L - I) + I)`` and its gradient (N,).

    Inside the cube ``F`` is the normalizer of another L-ensemble.  With
    ``L̃_ij = e^{v_i + v_j} S_ij`` and ``v_i = u_i + ½ log(x_i / (1 - x_i))``,

    .. math:: F(x) = \sum_i \log(1 - x_i) + \log \det(\tilde L + I),

    so no entry of ``L`` is ever formed.  Let ``M = diag(x)(L - I) + I``.  From
    ``∂M / ∂x_i = e_i e_iᵀ (L - I)``,

    .. math:: \frac{\partial F}{\partial x_i} = [(L - I) M^{-1}]_{ii}
        = \frac{\tilde K_{ii}}{x_i} - \frac{1 - \tilde K_{ii}}{1 - x_i}
        = \frac{\tilde K_{ii} - x_i}{x_i (1 - x_i)},

    with ``K̃`` the marginal kernel of ``L̃``: ``M = diag(1 - x)(I + R L̃ R⁻¹)`` for a
    diagonal ``R``, hence ``[diag(x) L M⁻¹]_ii = K̃_ii`` and
    ``[diag(1 - x) M⁻¹]_ii = 1 - K̃_ii``.

    ``x`` (N,) is inside the cube, and ``u`` the kernel's ``log_scale``.
    """
    log_normalizer, K = _tilted_normalizer(kernel, x)
    gradient = (np.diagonal(K) - x) / (x * (1.0 - x))
    return float(np.log1p(-x).sum()) + log_normalizer, gradient


def _tilted_normalizer(kernel: Dense, x: FloatArray) -> tuple[float, FloatArray]:
    """Return ``log det(L̃ + I)`` and ``K̃`` (N, N) of :func:`softmax_extension`."""
    v = kernel.log_scale + 0.5 * (np.log(x) - np.log1p(-x))
    return normalizer_and_marginal_kernel(kernel.S, v)


def round_to_subset(kernel: Dense, x: FloatArray) -> IntArray:
    r"""Return a subset ``y`` with ``log det L_y ≥ F(x)``, for ``x`` inside the cube.

    ``exp F`` is linear in ``x_i``, with the values ``exp F · (1 - K̃_ii) / (1 - x_i)``
    at 0 and ``exp F · K̃_ii / x_i`` at 1.  Their mean, weighted by ``x_i``, is
    ``exp F``: the larger of them is no less.  The coordinate that raises ``F`` most
    is moved first.

    Moving one is to condition the ensemble of ``L̃`` on the item being in or out,
    which changes ``K̃`` of the others by

    .. math:: -\tilde K_{\cdot i} \tilde K_{i \cdot} / \tilde K_{ii}
        \quad\text{or}\quad
        +\tilde K_{\cdot i} \tilde K_{i \cdot} / (1 - \tilde K_{ii}):

    ``O(N²)`` a coordinate.  The divisor is no smaller than ``x_i`` or ``1 - x_i``,
    by the choice of the end.
    """
    _, K = _tilted_normalizer(kernel, x)
    open_items = np.ones(len(x), dtype=bool)
    chosen = np.zeros(len(x), dtype=bool)
    for _ in range(len(x)):
        included = np.clip(np.diagonal(K), 0.0, 1.0)
        rise_in = included / x
        rise_out = (1.0 - included) / (1.0 - x)
        rise = np.where(open_items, np.maximum(rise_in, rise_out), -np.inf)
        item = int(np.argmax(rise))
        open_items[item] = False
        chosen[item] = rise_in[item] > rise_out[item]
        divisor = -included[item] if chosen[item] else 1.0 - included[item]
        row = np.where(open_items, K[item], 0.0)
        K += np.outer(row / divisor, row)
    return np.flatnonzero(chosen)


def _dense_representation(ensemble: Ensemble) -> Dense:
    """Return the kernel as a matrix; refuse too many items or too large qualities."""
    kernel = ensemble.representation
    n_items = len(kernel)
    if n_items > RELAXED_ITEMS:
        raise ValueError(
            f"relaxed decoding inverts a matrix of all items and takes at most "
            f"{RELAXED_ITEMS}, got {n_items}: use 'greedy'"
        )
    highest = float(kernel.log_scale.max(initial=0.0))
    if highest > MAX_LOG_QUALITY:
        raise ValueError(
            f"relaxed decoding takes log-qualities up to {MAX_LOG_QUALITY:g}, got "
            f"{highest:.0f}: use 'greedy', or subtract a constant and choose k items"
        )
    if isinstance(kernel, Dense):
        return kernel
    return Dense(kernel.submatrix(np.arange(n_items)), kernel.log_scale)


def _repair_subset(
    kernel: Representation, constraint: Constraint, members: IntArray
) -> IntArray:
    """Return a feasible subset, sorted: greedily from ``members``, then from others."""
    state = Residuals(kernel)
    preferred = np.zeros(len(kernel), dtype=bool)
    preferred[members] = True
    state.grow(constraint, among=preferred)
    reason = state.grow(constraint)
    if constraint.k is not None and len(state.chosen) < constraint.k:
        return cheapest_possible_subset(kernel, constraint, reason)
    return np.sort(np.array(state.chosen, dtype=np.intp))
