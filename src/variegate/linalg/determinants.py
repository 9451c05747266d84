"""Determinants and inverses of L-ensembles, in log space.

Every quantity of a determinantal point process comes from ``(L + I)⁻¹`` and from
determinants of principal submatrices of ``L``.  With ``L = diag(q) S diag(q)`` and
``q = exp(u)`` both span hundreds of orders of magnitude while ``S`` is tame, so
nothing here exponentiates ``u`` upwards: see :class:`Resolvent`.

Functions take one matrix ``(N, N)`` or a stack ``(B, N, N)`` of equal size; many
small ground sets then cost one call instead of ``B``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack, qr

from variegate._typing import FloatArray, IntArray
from variegate.linalg.limits import COMPILED_PIVOTS, RANK_TOLERANCE, STACK_LIMIT

#: An inverse by Cholesky loses as many digits as its smallest squared pivot, as a
#: share of the diagonal, has zeros.  Small ground sets can afford to lose none.
_SMALL = 256
_ENOUGH_SMALL = 1e-3
_ENOUGH_LARGE = 1e-8


class NotPositiveDefiniteError(np.linalg.LinAlgError):
    """A matrix has no Cholesky factor; ``index`` is its place in the stack."""

    def __init__(self, index: int) -> None:
        super().__init__(f"matrix {index} of the stack is not positive definite")
        self.index = index


def log_det_and_inverse(
    M: FloatArray, tolerance: float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """Return ``log det M`` (...) and ``M⁻¹`` of positive definite ``M`` (..., N, N).

    A matrix counts as singular when a squared pivot of its Cholesky factor is no more
    than the share ``tolerance`` of the diagonal entry.  The first such matrix raises
    :class:`NotPositiveDefiniteError` with its place in the stack.
    """
    size = M.shape[-1]
    if size == 0:
        return np.zeros(M.shape[:-2]), M
    flat = M.reshape(-1, size, size)
    if len(flat) > 1 and size <= STACK_LIMIT:
        log_det, inverse = _invert_stack(flat, tolerance)
    else:
        log_det, inverse = np.empty(len(flat)), np.empty_like(flat)
        for index in range(len(flat)):
            log_det[index], inverse[index] = _invert_one(flat[index], tolerance, index)
    return log_det.reshape(M.shape[:-2]), inverse.reshape(M.shape)


def _invert_stack(M: FloatArray, tolerance: float) -> tuple[FloatArray, FloatArray]:
    """Do as :func:`log_det_and_inverse` for a stack of small matrices (B, N, N).

    Each step is one NumPy call for all matrices.
    """
    try:
        factor = np.linalg.cholesky(M)
    except np.linalg.LinAlgError:
        # NumPy does not say which matrix failed.
        for index in range(len(M)):
            _invert_one(M[index], tolerance, index)
        raise
    pivots = np.diagonal(factor, axis1=-2, axis2=-1)
    allowed = tolerance * np.diagonal(M, axis1=-2, axis2=-1)
    is_singular = ~(pivots**2 > allowed).all(axis=-1)
    if is_singular.any():
        raise NotPositiveDefiniteError(int(np.argmax(is_singular)))
    root = np.linalg.inv(factor)
    return 2.0 * np.log(pivots).sum(axis=-1), root.mT @ root


def _invert_one(
    M: FloatArray, tolerance: float, index: int
) -> tuple[float, FloatArray]:
    """Do as :func:`log_det_and_inverse` for one matrix, number ``index`` in errors."""
    factor, info = lapack.dpotrf(M, lower=1)
    pivots = factor.diagonal()
    if info != 0 or not (pivots**2 > tolerance * M.diagonal()).all():
        raise NotPositiveDefiniteError(index)
    log_det = 2.0 * float(np.log(pivots).sum())
    lower, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
    # potri fills one triangle; the other still holds zeros.
    return log_det, lower + np.tril(lower, -1).T


@dataclass(frozen=True, eq=False)
class Resolvent:
    r"""The resolvent ``A⁻¹ = (L + I)⁻¹`` of ``L = diag(q) S diag(q)``, ``q = exp(u)``.

    Split the quality as ``q = p / c`` with ``p = min(q, 1)`` and ``c = min(1/q, 1)``.
    Then

    .. math:: L + I = C^{-1} M C^{-1}, \qquad M = P S P + C^2,

    where ``P = diag(p)`` and ``C = diag(c)``.  No entry of ``M`` exceeds those of
    ``S + I``, so ``|u|`` in the hundreds neither overflows nor spoils the Cholesky
    factorisation, as long as ``S`` itself is positive definite.

    The marginal kernel (paper eq. 3) is ``K = I - A⁻¹ = I - C M⁻¹ C``.  Both
    ``K_ii`` and ``1 - K_ii`` are kept, each from a formula without cancellation when
    it is small because the quality is:

    - ``1 - K_ii = c_i² [M⁻¹]_ii``,
    - ``K_ii = Σ_j [PSP]_ij [M⁻¹]_ij``, because ``K = C⁻¹ (PSP) M⁻¹ C``.

    (A ``K_ii`` that is small because better items explain item ``i`` is accurate
    relative to ``S_ii`` and to the condition of ``M`` only.)

    **Given items** have ``u = +inf``, so that ``p = 1`` and ``c = 0``: they are chosen
    with certainty.  ``M`` then has no ridge at them, and with ``I_Ā`` the identity with
    zeros at the given items ``A``,

    .. math:: \det(L + I_{\bar A}) = \det M \prod_{i \notin A} c_i^{-2}
        \prod_{i \in A} q_i^2 .

    The quality of given items is a factor of ``det L_{A ∪ y}`` too, so it cancels in
    ``P(Y = A ∪ y | A ⊆ Y) = det L_{A ∪ y} / det(L + I_Ā)`` and is left out of both.

    Attributes
    ----------
    log_det : (...)
        ``log det(L + I) = log det M + 2 Σ_i max(u_i, 0)``, the sum without given items.
    p, c : (..., N)
    inverse : (..., N, N)
        ``M⁻¹``.
    included : (..., N)
        ``K_ii``, the probability that item ``i`` is chosen.
    excluded : (..., N)
        ``1 - K_ii``.
    """

    log_det: FloatArray
    p: FloatArray
    c: FloatArray
    inverse: FloatArray
    included: FloatArray
    excluded: FloatArray

    @classmethod
    def of(
        cls, S: FloatArray, log_quality: FloatArray, tolerance: float = 0.0
    ) -> Resolvent:
        """Return the resolvent of similarities (..., N, N) and log-qualities (..., N).

        ``tolerance`` and the error raised where ``M`` is singular are those of
        :func:`log_det_and_inverse`.
        """
        p = np.exp(np.minimum(log_quality, 0.0))
        c = np.exp(-np.maximum(log_quality, 0.0))
        scaled = p[..., :, None] * S * p[..., None, :]
        M = scaled.copy()
        add_to_diagonal(M, c**2)
        log_det, inverse = log_det_and_inverse(M, tolerance)
        diagonal = np.diagonal(inverse, axis1=-2, axis2=-1)
        return cls(
            log_det=log_det + 2.0 * finite_part(log_quality).clip(0.0).sum(axis=-1),
            p=p,
            c=c,
            inverse=inverse,
            included=np.einsum("...ij,...ij->...i", scaled, inverse).clip(0.0, 1.0),
            excluded=(c**2 * diagonal).clip(0.0, 1.0),
        )

    def marginal_kernel(self) -> FloatArray:
        """Return ``K = I - C M⁻¹ C`` (..., N, N), its diagonal free of cancellation."""
        K = -self.c[..., :, None] * self.inverse * self.c[..., None, :]
        rows = np.arange(K.shape[-1])
        K[..., rows, rows] = self.included
        return K


def finite_part(log_quality: FloatArray) -> FloatArray:
    """Return log-qualities with zeros in place of infinities, which given items have.

    The sum of the rest is what a determinant takes from them: see :class:`Resolvent`.
    """
    return np.where(np.isinf(log_quality), 0.0, log_quality)


def normalizer_and_marginal_kernel(
    S: FloatArray, log_scale: FloatArray
) -> tuple[float, FloatArray]:
    """Return ``log det(L + I)`` and ``K = L (L + I)⁻¹`` of one ground set.

    ``L = diag(exp u) S diag(exp u)`` with ``u = log_scale``, and ``S`` has a unit
    diagonal.  By :class:`Resolvent` where ``M`` is well conditioned.  Where ``S`` is
    nearly singular and qualities are large, ``M`` is ill-conditioned; then,
    ``S = F Fᵀ`` by pivoted Cholesky, ``B = diag(q) F``, and ``[B; I] = Q R``:
    ``log det(L + I) = 2 Σ log |R_ii|`` and ``K = Q₁ Q₁ᵀ`` with ``Q₁`` the rows of
    ``B``.  With rows in decreasing order and columns pivoted, Householder's method is
    stable row by row (Cox and Higham, 1998), however widely the qualities spread.
    """
    enough = _ENOUGH_SMALL if len(S) <= _SMALL else _ENOUGH_LARGE
    try:
        resolvent = Resolvent.of(S, log_scale, enough)
    except NotPositiveDefiniteError:
        factor = pivoted_cholesky(S, log_scale)
        log_normalizer, root = normalizer_of_rows(factor, log_scale)
        return log_normalizer, root @ root.T
    return float(resolvent.log_det), resolvent.marginal_kernel()


#: Rounding in an entry of a matrix that was a product, and was divided by its diagonal.
_ROUNDING = 8.0 * 2.0**-52


def pivoted_cholesky(S: FloatArray, log_scale: FloatArray) -> FloatArray:
    """Return ``F`` (N, rank) with ``S = F Fᵀ``, its rows in the order of the items.

    ``S`` has a unit diagonal.  The next pivot is the item with the largest residual in
    ``L = diag(exp u) S diag(exp u)``, ``u = log_scale``.  A residual of at most
    ``RANK_TOLERANCE``, or of no more than the effect of rounding in ``S``, is zero.

    With ``w`` the weights by which the pivots explain an item, an error ``ε`` in the
    entries of ``S`` changes its residual by up to ``ε (1 + Σ |w|)²``, and weights are
    large where pivots are nearly alike.
    """
    n = len(S)
    factor = np.zeros((n, n))
    if n >= COMPILED_PIVOTS:
        from variegate.linalg.compiled import pivoting, read_only

        rank = pivoting.pivoted_cholesky(
            read_only(S), read_only(log_scale), RANK_TOLERANCE, _ROUNDING, factor
        )
        return factor[:, :rank]
    residual, weights = np.diagonal(S).copy(), np.zeros((n, n))
    for rank in range(n):
        is_left = residual > RANK_TOLERANCE
        if not is_left.any():
            return factor[:, :rank]
        gain = np.log(np.where(is_left, residual, 1.0)) + 2.0 * log_scale
        pivot = int(np.argmax(np.where(is_left, gain, -np.inf)))
        root = np.sqrt(residual[pivot])
        before, explained = factor[:, :rank], weights[:, :rank]
        column = (S[:, pivot] - np.einsum("ik,k->i", before, before[pivot])) / root
        factor[:, rank] = np.where(is_left, column, 0.0)
        residual -= factor[:, rank] ** 2
        share = factor[:, rank] / root
        share[pivot] = 0.0
        explained -= share[:, None] * explained[pivot]
        weights[:, rank] = share
        total = 1.0 + np.abs(weights[:, : rank + 1]).sum(axis=1)
        is_rounding = residual <= np.maximum(RANK_TOLERANCE, _ROUNDING * total**2)
        residual[is_rounding] = 0.0
        residual[pivot] = 0.0
    return factor


def normalizer_of_rows(
    F: FloatArray, log_scale: FloatArray
) -> tuple[float, FloatArray]:
    """Return ``log det(L + I)`` and ``Q₁`` (N, R), ``K = Q₁ Q₁ᵀ``, for ``S = F Fᵀ``.

    ``F`` is (N, R), ``log_scale`` is ``u``: see :func:`normalizer_and_marginal_kernel`.
    """
    # Common factors of all qualities are kept out of the exponential.
    top = max(float(log_scale.max(initial=0.0)), 0.0)
    rows = np.exp(log_scale - top)[:, None] * F
    stacked = np.vstack([rows, np.exp(-top) * np.eye(F.shape[1])])
    order = np.argsort(-np.abs(stacked).max(axis=1, initial=0.0), kind="stable")
    Q_1 = np.empty_like(rows)
    if F.shape[1] == 0:
        return 0.0, Q_1
    Q, R, _ = qr(stacked[order], mode="economic", pivoting=True)
    kept = order < len(F)
    Q_1[order[kept]] = Q[kept]
    with np.errstate(divide="ignore"):
        log_diagonal = np.log(np.abs(np.diagonal(R))) + top
    # RᵀR = I + BᵀB, so no entry is below one but by underflow.
    return 2.0 * float(np.maximum(log_diagonal, 0.0).sum()), Q_1


def schur_complement(S: FloatArray, given: IntArray, rest: IntArray) -> FloatArray:
    """Return the Schur complement ``S_rr - S_rg S_gg⁻¹ S_gr``, rows in order of ``r``.

    ``g`` are the item numbers ``given`` and ``r`` those of the ``rest``.  Where a
    diagonal entry is at most ``RANK_TOLERANCE`` times its value in ``S``, it is set to
    exactly zero, with its row and column.
    """
    if len(given) == 0:
        return S[np.ix_(rest, rest)].copy()
    rows = S[given]
    # LAPACK itself: the checks of its callers take longer than a small matrix.
    factor, info = lapack.dpotrf(rows[:, given], lower=1)
    if info != 0:
        raise np.linalg.LinAlgError("the given items are dependent")
    explained, _ = lapack.dtrtrs(factor, rows[:, rest], lower=1)
    residual = S[np.ix_(rest, rest)] - explained.T @ explained
    gone = np.diagonal(residual) <= RANK_TOLERANCE * np.diagonal(S)[rest]
    residual[gone] = 0.0
    residual[:, gone] = 0.0
    return np.asarray(residual)


def with_jitter(S: FloatArray, jitter: float) -> FloatArray:
    """Return a copy of ``S`` (..., N, N), its diagonal multiplied by ``1 + jitter``.

    Relative to the diagonal, so that rescaling an item's features only changes its
    quality.  The map is linear and its own adjoint: applied to a gradient in the
    result, it returns the gradient in ``S``.
    """
    S = S.copy()
    add_jitter(S, jitter)
    return S


def add_jitter(S: FloatArray, jitter: float) -> None:
    """Multiply the diagonal of every matrix in ``S`` by ``1 + jitter``, in place."""
    add_to_diagonal(S, jitter * np.diagonal(S, axis1=-2, axis2=-1))


def add_to_diagonal(M: FloatArray, values: FloatArray | float) -> None:
    """Add ``values`` to the diagonal of every matrix in ``M``, in place."""
    rows = np.arange(M.shape[-1])
    M[..., rows, rows] += values


def split_scale(L: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return ``S`` with a unit diagonal and ``u``: ``L = diag(exp u) S diag(exp u)``.

    ``L`` is (..., N, N) and ``u`` (..., N).  An item with ``L_ii = 0`` has ``u_i = 0``,
    and its row of ``S`` is that of ``L``, zeros.
    """
    diagonal = np.diagonal(L, axis1=-2, axis2=-1)
    scale = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    S = L / scale[..., :, None] / scale[..., None, :]
    return S, np.log(scale)


def log_det_and_pivot(S: FloatArray) -> tuple[float, float]:
    """Return ``log det S`` of one matrix, and the smallest squared Cholesky pivot.

    Return -inf and 0 where the factorisation fails, 0 and 1 of no items.  With a unit
    diagonal, a squared pivot is the share of the item that earlier ones do not explain.
    """
    if len(S) == 0:
        return 0.0, 1.0
    factor, info = lapack.dpotrf(S, lower=1)
    diagonal = factor.diagonal()
    if info != 0:
        return -np.inf, 0.0
    return float(2.0 * np.log(diagonal).sum()), float(diagonal.min()) ** 2


def conditioning_of_correlation(S: FloatArray) -> tuple[float, float]:
    """Return the smallest squared pivot and the reciprocal condition number of ``S``.

    ``S`` has a unit diagonal; the condition is LAPACK's estimate in the 1-norm.  Both
    are 0 where the Cholesky factorisation fails, and 1 of no items.  The condition is
    needed too: in an unfavourable order of items a singular matrix may have no small
    pivot.
    """
    if len(S) == 0:
        return 1.0, 1.0
    # The transpose is in LAPACK's order already.
    factor, info = lapack.dpotrf(S.T, lower=1, clean=0)
    if info != 0:
        return 0.0, 0.0
    reciprocal, _ = lapack.dpocon(factor, lapack.dlange("1", S.T), uplo="L")
    return float(factor.diagonal().min()) ** 2, float(reciprocal)


def log_principal_minors(S: FloatArray, log_scale: FloatArray) -> FloatArray:
    """Return ``log det L_y`` of all ``2^N`` subsets ``y``, in ``O(2^N)`` operations.

    Bit ``i`` (item 0 is the lowest) of the position in the result (2^N,) says whether
    item ``i`` is in ``y``; of a singular ``L_y`` the result is -inf.

    Item by item, every partial choice is continued twice: without the item (drop its
    row and column) and with it (take the Schur complement).  After ``t`` items there
    are ``2^t`` matrices of size ``N - t``, so the whole table costs a small constant
    times ``2^N``, against ``2^N N^3`` for one factorisation a subset.

    ``L = diag(exp u) S diag(exp u)`` with a unit diagonal in ``S``.
    """
    n_items = len(S)
    matrices, log_dets = S[None], np.zeros(1)
    with np.errstate(divide="ignore", invalid="ignore"):
        for item in range(n_items):
            pivot = matrices[:, 0, 0]
            is_possible = pivot > RANK_TOLERANCE
            gain = np.where(is_possible, np.log(pivot) + 2.0 * log_scale[item], -np.inf)
            column, without = matrices[:, 1:, 0], matrices[:, 1:, 1:]
            ratio = np.where(is_possible[:, None], column / pivot[:, None], 0.0)
            schur = without - ratio[:, :, None] * column[:, None, :]
            matrices = np.concatenate([without, schur])
            log_dets = np.concatenate([log_dets, log_dets + gain])
    return log_dets
