"""Similarities of low rank, as factors side by side, and learned ensembles.

``N`` is the number of items, ``φ_i`` row ``i`` of the factors side by side, and a
kernel's ``parameters`` are the weights of the factors, or empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from variegate._typing import FloatArray, IntArray
from variegate.ensemble import LEnsemble
from variegate.ground_set import GroundSet, name_items
from variegate.kernels import Kernel
from variegate.learning.objective import impossible_item_error
from variegate.linalg.determinants import log_det_and_pivot, with_jitter
from variegate.linalg.limits import (
    FACTORED_SHARE,
    FEWEST_FACTORED,
    MATRIX_ITEMS,
    RANK_TOLERANCE,
    TAME_TRACE,
)
from variegate.linalg.representations import Factored
from variegate.linalg.representations.graded import Graded

#: Rows that are worked on at a time.
_ROWS = 4096


@dataclass(frozen=True, eq=False)
class Factors:
    """A similarity ``S = Σ_k w_k F_k F_kᵀ``, the factors side by side.

    Attributes
    ----------
    columns : (N, D)
        ``Φ = [F_1 ... F_K]``.
    owner : (D,)
        The number ``k`` of the factor that each column belongs to.
    squared : (N, K)
        Squared lengths of the rows of each factor: the diagonals of ``F_k F_kᵀ``.
    """

    columns: FloatArray
    owner: IntArray
    squared: FloatArray

    @classmethod
    def concatenate(cls, factors: Sequence[FloatArray]) -> Factors:
        """Return factors ``F_k`` (N, D_k), side by side; ValueError for NaN or inf."""
        columns = (
            np.ascontiguousarray(factors[0])
            if len(factors) == 1
            else np.concatenate(factors, axis=1)
        )
        squared = np.stack([np.einsum("ij,ij->i", F, F) for F in factors], axis=1)
        owner = np.repeat(np.arange(len(factors)), [F.shape[1] for F in factors])
        if not np.isfinite(squared).all():
            raise ValueError(
                "the similarity holds NaN or infinite values: the features are too "
                "large for this kernel"
            )
        return cls(columns, owner, squared)

    @property
    def n_factors(self) -> int:
        """The number ``K`` of factors, each with one weight."""
        return int(self.squared.shape[1])

    def weights(self, parameters: FloatArray) -> FloatArray:
        """Return the weights (K,): the kernel's parameters, or ones if it has none."""
        return parameters if len(parameters) else np.ones(self.n_factors)

    def scaled_factor(
        self, parameters: FloatArray, log_scale: FloatArray
    ) -> FloatArray:
        """Return ``B`` with ``B Bᵀ = diag(e^u) S diag(e^u)``, ``u`` the ``log_scale``.

        Of shape (N, D), or fewer columns: without those of weight zero.  Overflow gives
        inf.
        """
        root = np.sqrt(self.weights(parameters)[self.owner])
        used = root > 0.0
        B = self.columns * root if used.all() else self.columns[:, used] * root[used]
        with np.errstate(over="ignore"):
            B *= np.exp(log_scale)[:, None]
        return B

    def _row_chunks(self) -> Iterator[slice]:
        """Yield slices of at most ``_ROWS`` rows."""
        for start in range(0, len(self.columns), _ROWS):
            yield slice(start, start + _ROWS)

    def gram(self, weight: FloatArray) -> FloatArray:
        """Return ``Φᵀ diag(weight) Φ`` (D, D) for weights of the rows (N,)."""
        size = self.columns.shape[1]
        total = np.zeros((size, size))
        is_root, root = bool((weight >= 0.0).all()), np.sqrt(np.abs(weight))
        for rows in self._row_chunks():
            columns = self.columns[rows]
            if is_root:
                scaled = root[rows, None] * columns
                total += scaled.T @ scaled  # which BLAS does by halves
            else:
                total += (weight[rows, None] * columns).T @ columns
        return total

    def squared_lengths(self, right: FloatArray) -> FloatArray:
        """Return ``‖φ_iᵀ right‖²`` (N,) for a matrix with ``D`` rows."""
        result = np.empty(len(self.columns))
        for rows in self._row_chunks():
            product = self.columns[rows] @ right
            np.einsum("ij,ij->i", product, product, out=result[rows])
        return result

    def quadratic_forms(self, middle: FloatArray) -> FloatArray:
        """Return ``φ_iᵀ middle φ_i`` (N,) for a matrix of shape (D, D)."""
        result = np.empty(len(self.columns))
        for rows in self._row_chunks():
            chunk = self.columns[rows]
            np.einsum("ij,ij->i", chunk @ middle, chunk, out=result[rows])
        return result

    def sum_by_factor(self, values: FloatArray) -> FloatArray:
        """Return sums (K,) of values of the columns (D,), by factor."""
        totals = np.bincount(self.owner, values, minlength=self.n_factors)
        return np.asarray(totals, dtype=np.float64)


def low_rank_factors(kernel: Kernel, ground_set: GroundSet) -> Factors | None:
    """Return the factors of a kernel's similarity; None unless :func:`is_low_rank`."""
    if not is_low_rank(0, len(ground_set)):
        return None
    factors = kernel.factors(ground_set)
    n_columns = None if factors is None else sum(F.shape[1] for F in factors)
    if factors is None or not is_low_rank(n_columns, len(ground_set)):
        return None
    return Factors.concatenate(factors)


def prepare_low_rank_embedding(kernel: Kernel, ground_set: GroundSet) -> Any | None:
    """Return a ground set as ``kernel.embedding`` takes it; None if not of low rank."""
    if not is_low_rank(0, len(ground_set)):
        return None
    most = (len(ground_set) - 1) // FACTORED_SHARE
    return kernel.prepare_embedding(ground_set, most)


def is_low_rank(n_columns: int | None, n_items: int) -> bool:
    """Tell whether factors of ``n_columns`` in all are faster than N x N matrices.

    False for None, which stands for a similarity without factors.
    """
    return (
        n_columns is not None
        and n_items >= FEWEST_FACTORED
        and FACTORED_SHARE * n_columns < n_items
    )


def learned_ensemble(
    ground_set: GroundSet,
    kernel: Kernel,
    parameters: FloatArray,
    log_quality: FloatArray,
    jitter: float,
) -> LEnsemble:
    """Return the ensemble of a fitted kernel, flat ``parameters`` and qualities ``u``.

    ``jitter`` is a ridge relative to the diagonal.  Of more than ``MATRIX_ITEMS`` items
    with a similarity of low rank, the ensemble is held as a factor, without the jitter;
    where qualities are extreme, as unit rows and log-qualities, to keep their digits.

    Beside given items it is the ensemble of the candidates, whose numbers are its
    ``items``: see :func:`_condition_factors` for one that is held as a factor.
    """
    given, candidates = ground_set.given, ground_set.candidates
    if len(ground_set) > MATRIX_ITEMS:
        factors, weights = _low_rank_and_weights(ground_set, kernel, parameters)
        if factors is not None and len(given) == 0:
            return _ensemble_of_factor(factors, weights, log_quality)
        if factors is not None:
            factors = _condition_factors(factors, weights, ground_set, jitter)
            no_weights, u = np.zeros(0), log_quality[candidates]
            ensemble = _ensemble_of_factor(factors, no_weights, u)
            ensemble.items = candidates
            return ensemble
    S = with_jitter(kernel.similarity(ground_set, parameters), jitter)
    if len(given) == 0:
        return LEnsemble.from_quality(S, log_quality)
    # Their own quality cancels.
    u = log_quality.copy()
    u[given] = 0.0
    try:
        return LEnsemble.from_quality(S, u).condition(include=given)
    except ValueError:
        raise _impossible_given_error(S, given) from None


def _condition_factors(
    factors: Factors, weights: FloatArray, ground_set: GroundSet, jitter: float
) -> Factors:
    r"""Return factors of the candidates' similarity, given the given items ``A``.

    With ``B = Φ w^{1/2}`` and the ridge ``D = jitter · diag(S_AA)`` on the given items,

    .. math:: S_{rr} - S_{rA} (S_{AA} + D)^{-1} S_{Ar} = B_r T^{-1} B_r^T, \qquad
        T = I + B_A^T D^{-1} B_A,

    so that ``B_r`` times the inverse root of ``T`` is the factor.  Any number of given
    items is possible, more than the factor has columns too.  Where ``jitter`` is less
    than ``RANK_TOLERANCE``, that is the ridge.
    """
    B = factors.scaled_factor(weights, np.zeros(len(ground_set)))
    rows = B[ground_set.given]
    own = np.einsum("ij,ij->i", rows, rows)
    if not (own > 0.0).all():
        item = int(ground_set.given[np.argmin(own)])
        raise impossible_item_error(0, item, is_given=True)
    rows = rows / np.sqrt(max(jitter, RANK_TOLERANCE) * own)[:, None]
    T = rows.T @ rows
    T[np.diag_indices_from(T)] += 1.0
    lower = np.linalg.cholesky(T)
    conditional = solve_triangular(lower, B[ground_set.candidates].T, lower=True).T
    return Factors.concatenate([conditional])


def _impossible_given_error(S: FloatArray, given: IntArray) -> ValueError:
    """Return the error that names the first given item which depends on others."""
    for size in range(1, len(given) + 1):
        some = given[:size]
        if log_det_and_pivot(S[np.ix_(some, some)])[1] <= RANK_TOLERANCE:
            break
    return ValueError(
        f"the {name_items(given)} cannot all be there: the similarity of item "
        f"{some[-1]} depends on the others (an item twice, or more items than the "
        "similarity has rank). Drop it from given, or raise jitter"
    )


def _low_rank_and_weights(
    ground_set: GroundSet, kernel: Kernel, parameters: FloatArray
) -> tuple[Factors | None, FloatArray]:
    """Return a similarity's factors, None unless of low rank, and their weights.

    Those are (K,), by the kernel's embedding if it has one of low rank, else the
    ``parameters`` themselves: empty for a kernel without, whose weights are one.
    """
    prepared = prepare_low_rank_embedding(kernel, ground_set)
    if prepared is None:
        return low_rank_factors(kernel, ground_set), parameters
    factors, weights, _ = kernel.embedding(prepared, parameters)
    return Factors.concatenate(factors), weights


def _ensemble_of_factor(
    factors: Factors, weights: FloatArray, u: FloatArray
) -> LEnsemble:
    """Return the ensemble of ``L = diag(e^u) (Σ_k w_k F_k F_kᵀ) diag(e^u)``.

    ``weights`` (K,) may be empty for ones.  The ensemble is held as a factor, or where
    qualities are extreme as unit rows and log-qualities.
    """
    own = factors.squared @ factors.weights(weights)
    if float(own @ np.exp(2.0 * np.minimum(u, 300.0))) <= TAME_TRACE:
        # Qualities may then spread further than from_factor knows to be safe.
        return LEnsemble._from_representation(
            Factored(factors.scaled_factor(weights, u))
        )
    length = np.sqrt(np.where(own > 0.0, own, 1.0))
    rows = factors.scaled_factor(weights, -np.log(length))
    return LEnsemble._from_representation(Graded.of_unit_rows(rows, u + np.log(length)))
