r"""The large-margin objective of one ground set, and its gradient (paper eq. 14).

For a ground set with kernel ``L``, marginal kernel ``K = L (L + I)⁻¹`` and target
subset ``y``, the loss is

.. math::

    f(L) = \Bigl[ -\log P(y; L) + \lambda \log m(L) \Bigr]_+ , \qquad
    \log P(y; L) = \log\det L_y - \log\det(L + I),

.. math::

    m(L) = \sum_{i \notin y} a_i K_{ii} + \sum_{i \in y} b_i (1 - K_{ii})
         = \sum_{y'} \ell(y, y') P(y'; L),

the expected error over all ``2^N`` subsets (paper eq. 13).  ``a_i`` is the cost of
choosing item ``i`` wrongly and ``b_i`` that of missing it; the paper's generalized
Hamming loss (eq. 11) is ``a_i = 1``, ``b_i = ω``.  ``λ = 0`` is maximum likelihood.

Write ``A = L + I`` and ``W`` for the diagonal matrix with ``a_i`` at ``i ∉ y`` and
``-b_i`` at ``i ∈ y``.  Then (paper, appendix B)

.. math::

    \partial f / \partial L = A^{-1} - \langle L_y^{-1} \rangle
        + \tfrac{\lambda}{m} A^{-1} W A^{-1},

where ``⟨·⟩`` puts a submatrix back in its place.

The kernel is always ``L = diag(q) S diag(q)`` with ``q = exp(u)``, and derivatives are
taken in ``S`` and ``u`` rather than in ``L``, because those stay finite when ``q``
does not (see :class:`variegate.linalg.determinants.Resolvent` for ``p``, ``c``, ``M``):

.. math::

    \partial f / \partial S &= P M^{-1} P - \langle S_y^{-1} \rangle
        + \tfrac{\lambda}{m} P M^{-1} C W C M^{-1} P, \\
    \partial f / \partial u_k &= 2 (K_{kk} - [k \in y])
        + \tfrac{2 \lambda}{m} \Bigl( W_{kk} K_{kk} (1 - K_{kk})
        - \sum_{i \ne k} W_{ii} K_{ik}^2 \Bigr).

The second needs only the inverse and elementwise work, and none of its terms is a
difference of nearly equal numbers.  Entries of symmetric matrices are treated as
independent variables, so ``∂f/∂S`` is symmetric and ``df = Σ_ij G_ij dS_ij``.

**Given items.**  Where the items ``A`` are there already, ``y`` is chosen from the
rest, the candidates, by the conditional process

.. math::

    P(y \mid A) = P(Y = A \cup y \mid A \subseteq Y)
        = \frac{\det L_{A \cup y}}{\det(L + I_{\bar A})},

``I_Ā`` the identity with zeros at ``A``.  The quality of a given item is a factor
``q_i²`` of both determinants and cancels; we let it tend to infinity, ``u_i = +inf``.
Then ``p_i = 1``, ``c_i = 0`` and ``K_ii = 1``, and with ``A`` counted among the wanted
items all formulas above hold as they stand: the terms of given items in ``m`` and in
``∂f/∂u`` are zero, and sums of log-qualities leave out the infinite ones.

Shapes: ``S`` is ``(..., N, N)``, ``u`` is ``(..., N)``; the leading axis is a stack of
ground sets of equal size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from variegate._typing import BoolArray, FloatArray, IntArray, SubsetLike
from variegate._validation import check_number
from variegate.ground_set import GroundSetError, check_error_costs
from variegate.linalg.determinants import (
    NotPositiveDefiniteError,
    Resolvent,
    finite_part,
    log_det_and_inverse,
    split_scale,
)
from variegate.linalg.limits import DOUBTFUL_PIVOT, STACK_LIMIT, should_use_compiled
from variegate.linalg.psd import check_semidefinite, check_symmetric
from variegate.subsets import as_indicator, as_members

#: About exp(-640): below any expected error at log-qualities within ±300.
SMALLEST_ERROR = 1e-280


class ZeroProbabilityError(NotPositiveDefiniteError):
    """The target subset has probability zero under a singular similarity."""


def impossible_item_error(
    position: int, item: int, is_given: bool = False
) -> GroundSetError:
    """Return the error for a wanted or given item of similarity zero to itself."""
    return GroundSetError(
        position,
        f"item {item} is {'given' if is_given else 'in the subset'}, but its "
        "similarity to itself is zero (its features are all zero), so it can never be "
        "chosen: drop it, or give it features",
    )


@dataclass(frozen=True, eq=False)
class Targets:
    """The wanted subsets of a stack of ground sets of equal size, with error costs.

    Attributes
    ----------
    indicator : boolean (B, N)
        Whether each item is wanted or given.
    members : (B, k)
        Item numbers, each row padded to the size ``k`` of the largest subset with
        items that are not in it.
    present : boolean (B, k)
        Which entries of ``members`` are not padding.
    error_cost : (B, N)
        The cost of an error at an item: of choosing it if it is not wanted, of
        missing it if it is.
    given : boolean (B, N), or None
        Whether each item is given; None if no item of the stack is.
    """

    indicator: BoolArray
    members: IntArray
    present: BoolArray
    error_cost: FloatArray
    given: BoolArray | None = None

    @classmethod
    def from_subsets(
        cls,
        subsets: Sequence[IntArray],
        n_items: int,
        false_positive: FloatArray | float = 1.0,
        false_negative: FloatArray | float = 1.0,
        given: Sequence[IntArray] = (),
    ) -> Targets:
        """Return targets of sorted item numbers, with costs that broadcast to (B, N).

        ``false_positive`` is the cost of choosing an item that is not wanted,
        ``false_negative`` that of missing a wanted one.  ``given`` are the given items
        of every ground set, or empty if there are none.
        """
        indicator = np.stack([as_indicator(subset, n_items) for subset in subsets])
        is_given: BoolArray | None = None
        if any(map(len, given)):
            is_given = np.stack([as_indicator(items, n_items) for items in given])
            indicator |= is_given
        sizes = indicator.sum(axis=1)
        largest = int(sizes.max(initial=0))
        present = np.arange(largest) < sizes[:, None]
        # Members first, in order; then, as padding, items that are not wanted.
        members = np.argsort(~indicator, axis=1, kind="stable")[:, :largest]
        cost = np.where(indicator, false_negative, false_positive)
        return cls(indicator, members, present, cost, is_given)

    def log_quality(self, u: FloatArray) -> FloatArray:
        """Return ``u`` (B, N), or (N,) of one ground set, infinite at given items."""
        if self.given is None:
            return u
        return np.where(self.given.reshape(u.shape), np.inf, u)

    def with_omega(self, omega: float) -> Targets:
        """Return a copy where missing a wanted item costs ``omega`` times as much."""
        cost = np.where(self.indicator, omega * self.error_cost, self.error_cost)
        return replace(self, error_cost=cost)

    def log_det_and_inverse(self, S: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return ``log det S_y`` (B,) and ``⟨S_y⁻¹⟩`` (B, N, N) of ``S`` (B, N, N).

        ZeroProbabilityError, with the index in the stack, if an ``S_y`` is singular.
        """
        stack = np.arange(len(S))[:, None, None]
        rows, columns = self.members[:, :, None], self.members[:, None, :]
        both = self.present[:, :, None] & self.present[:, None, :]
        # Padding becomes an identity block, which changes no determinant.
        S_y = np.where(both, S[stack, rows, columns], np.eye(self.members.shape[1]))
        try:
            log_det, inverse = log_det_and_inverse(S_y, DOUBTFUL_PIVOT)
        except NotPositiveDefiniteError as error:
            raise ZeroProbabilityError(error.index) from None
        embedded = np.zeros_like(S)
        embedded[stack, rows, columns] = np.where(both, inverse, 0.0)
        return log_det, embedded


class LossTerms(NamedTuple):
    """Losses (B,), ``∂f/∂S`` (B, N, N) or None, and ``∂f/∂u`` (B, N)."""

    value: FloatArray
    similarity_gradient: FloatArray | None
    quality_gradient: FloatArray


@dataclass(frozen=True)
class LargeMarginLoss:
    """The loss of the module docstring, for stacks of ground sets.

    Parameters
    ----------
    lam : float
        ``λ``, the weight of the margin; 0 is maximum likelihood.
    hinge : bool
        Whether losses below zero count as zero.  At the kink the subgradient is 0.
    """

    lam: float = 1.0
    hinge: bool = True

    def margin_terms(self, error: float) -> tuple[float, float]:
        """Return ``λ log m`` and ``λ / m`` of an expected error ``m = m(L)``."""
        m = max(error, SMALLEST_ERROR)
        return self.lam * float(np.log(m)), self.lam / m

    def value_and_gradient(
        self,
        S: FloatArray,
        log_quality: FloatArray,
        targets: Targets,
        *,
        target_log_det: FloatArray | None = None,
        similarity_gradient: bool = True,
        out: FloatArray | None = None,
        compiled: bool | None = None,
    ) -> LossTerms:
        """Return the losses at ``S`` (B, N, N) and ``u`` (B, N), and their gradients.

        ``u`` is infinite at given items.

        Parameters
        ----------
        S, log_quality, targets : of a stack
        target_log_det : array of shape (B,), optional
            ``log det S_y`` if it is known, as it is when the similarity has no
            parameters.  Only without ``similarity_gradient``.
        similarity_gradient : bool
            Whether to compute the gradient in ``S``, the larger part of the work.
        out : array of shape (B, N, N), optional
            The array to write the gradient in ``S`` to.
        compiled : bool, optional
            Whether to use compiled loops; by default, if they are faster here.
        """
        n_items = S.shape[-1]
        if compiled is None:
            compiled = should_use_compiled([n_items] * len(log_quality))
        if target_log_det is not None and similarity_gradient:
            raise ValueError("with a gradient in S, log det S_y is not known before")
        G: FloatArray | None = None
        if similarity_gradient:
            G = np.empty((*log_quality.shape, n_items)) if out is None else out
        evaluate = stacked_loss
        if compiled:
            from variegate.learning import compiled_loss

            is_large = n_items > STACK_LIMIT
            evaluate = (
                compiled_loss.large_set_losses
                if is_large
                else compiled_loss.small_set_losses
            )
        value, slope = evaluate(self, S, log_quality, targets, target_log_det, G)
        return LossTerms(value, G, slope)


def stacked_loss(
    loss: LargeMarginLoss,
    S: FloatArray,
    log_quality: FloatArray,
    targets: Targets,
    target_log_det: FloatArray | None,
    G: FloatArray | None,
) -> tuple[FloatArray, FloatArray]:
    """Return the losses (B,) and their gradients in ``log_quality`` (B, N), by NumPy.

    The twin of :mod:`variegate.learning.compiled_loss` for problems too small to
    compile for.  ``target_log_det`` (B,) is ``log det S_y``, computed if None; ``G``
    (B, N, N), unless None, is filled with the gradient in ``S``; it may be given only
    if ``target_log_det`` is None.
    """
    of_target: FloatArray | float = 0.0
    if target_log_det is None:
        target_log_det, of_target = targets.log_det_and_inverse(S)
    resolvent = Resolvent.of(S, log_quality, DOUBTFUL_PIVOT)
    wanted, cost = targets.indicator, targets.error_cost
    signed = np.where(wanted, -cost, cost)
    included, excluded = resolvent.included, resolvent.excluded
    inverse, p, c_squared = resolvent.inverse, resolvent.p, resolvent.c**2
    value = resolvent.log_det - target_log_det
    value -= 2.0 * np.where(wanted, finite_part(log_quality), 0.0).sum(axis=-1)
    slope = 2.0 * np.where(wanted, -excluded, included)
    if G is not None:
        G[:] = inverse
    if loss.lam > 0.0:
        errors = np.where(wanted, excluded, included)
        margin = np.maximum((cost * errors).sum(axis=-1), SMALLEST_ERROR)
        value += loss.lam * np.log(margin)
        factor = (loss.lam / margin)[:, None]
        squares = inverse**2
        np.einsum("bii->bi", squares)[:] = 0.0
        others = np.einsum("bij,bj->bi", squares, c_squared * signed)
        slope += 2.0 * factor * (signed * included * excluded - c_squared * others)
        if G is not None:
            G += (inverse * (factor * c_squared * signed)[:, None, :]) @ inverse
    if G is not None:
        G *= p[:, :, None]
        G *= p[:, None, :]
        G -= of_target
    if loss.hinge:
        is_met = ~(value > 0.0)
        value[is_met], slope[is_met] = 0.0, 0.0
        if G is not None:
            G[is_met] = 0.0
    return value, slope


def large_margin_loss(
    L: FloatArray,
    subset: SubsetLike,
    lam: float = 1.0,
    omega: float = 1.0,
    hinge: bool = True,
    *,
    false_positive: FloatArray | None = None,
    false_negative: FloatArray | None = None,
) -> tuple[float, FloatArray]:
    """Return the large-margin loss of one kernel and its gradient (eq. 13-14).

    Parameters
    ----------
    L : array of shape (N, N)
        Symmetric, positive semidefinite.  Refused where it, or its submatrix of
        the subset, is so nearly singular that the loss would be rounding.
    subset : item numbers or boolean mask
        The wanted subset ``y``.
    lam : float, default=1.0
        Weight ``λ`` of the margin term; 0 is the negative log-likelihood.
    omega : float, default=1.0
        Cost of missing an item relative to choosing a wrong one.
    hinge : bool, default=True
        Whether a loss below zero counts as zero.
    false_positive, false_negative : array of shape (N,), optional
        Costs of wrongly choosing and of missing each item, in place of 1 and ``omega``.

    Returns
    -------
    value : float
    gradient : array of shape (N, N)
        ``∂value/∂L``, entries taken as independent.

    Examples
    --------
    >>> import numpy as np
    >>> import variegate as vg
    >>> value, gradient = vg.large_margin_loss(np.eye(2), [0], lam=0.0)
    >>> round(value, 4)  # P({0}) = 1 / det(2 I) = 1/4
    1.3863
    >>> gradient
    array([[-0.5,  0. ],
           [ 0. ,  0.5]])
    """
    check_number("lam", lam)
    check_number("omega", omega)
    L = check_symmetric(L, "L")
    check_semidefinite(L, "L")
    n_items = len(L)
    members = as_members(subset, n_items)
    costs: list[FloatArray | float] = [1.0, omega]
    given = {"false_positive": false_positive, "false_negative": false_negative}
    for number, (name, values) in enumerate(given.items()):
        if values is not None:
            costs[number] = check_error_costs(values, n_items, name)
    targets = Targets.from_subsets([members], n_items, costs[0], costs[1])
    loss = LargeMarginLoss(lam, hinge)
    S, log_scale = split_scale(L)
    try:
        terms = loss.value_and_gradient(S[None], log_scale[None], targets)
    except ZeroProbabilityError:
        raise ValueError(
            "the subset has probability zero: L restricted to it is singular, or is "
            "so to rounding"
        ) from None
    except NotPositiveDefiniteError:
        raise ValueError(
            "L is singular and its entries are so large that L + I is singular to "
            "rounding: rescale it, or add a small multiple of its diagonal"
        ) from None
    assert terms.similarity_gradient is not None
    scale = np.exp(-log_scale)
    gradient = scale[:, None] * terms.similarity_gradient[0] * scale
    return float(terms.value[0]), gradient
