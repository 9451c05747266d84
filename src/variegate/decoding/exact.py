"""Exact MAP: every subset of few items, branch and bound of more."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.random import Generator

from variegate._typing import BoolArray, FloatArray, IntArray
from variegate._validation import check_number
from variegate.decoding.at_most import labels_and_room
from variegate.decoding.base import Constraint
from variegate.decoding.greedy import Greedy
from variegate.linalg import lapack
from variegate.linalg.determinants import log_principal_minors
from variegate.linalg.limits import EXACT_ITEMS, RANK_TOLERANCE, TABLED_ITEMS
from variegate.linalg.representations import Dense, Factored, Graded, Representation
from variegate.linalg.volume import log_volumes
from variegate.selection import Ensemble, Selection

#: Beyond this the square of an entry of L may overflow.
_LARGEST_LOG_SCALE = 170.0

#: Rounding in a Schur complement for each item, as a share of the diagonal.
_ROUNDING = 1e-15

#: The same where it is made of residuals of rows.
_ROUNDING_OF_ROWS = 1e-18

#: Where no squared pivot is smaller, Schur complements keep their digits.
_TAME_PIVOT = 1e-4

#: The error of an entry of a similarity that is replaced by rows, which leave out parts
#: within ``RANK_TOLERANCE``.
_DOUBT = 2.0 * RANK_TOLERANCE

#: Nodes between two readings of the clock, some ten milliseconds.
_NODES_AT_A_TIME = 500


@dataclass(frozen=True)
class Exact:
    """The most probable feasible subset.

    Up to 14 items by trying all subsets (ties go to the subset whose mask, read as a
    binary number with item 0 as the lowest digit, is smallest); beyond, by branch and
    bound, which starts from the greedy answer and proves its result, up to 1e-9 in the
    log-probability, as bounds include their own rounding.  The time depends on the
    kernel: tens of milliseconds for 40 items of a typical one, exponential at worst.

    Parameters
    ----------
    time_limit : float, optional
        Seconds after which the best subset so far is returned, with an upper bound for
        all others.
    """

    time_limit: float | None = None

    def __call__(
        self, ensemble: Ensemble, constraint: Constraint, generator: Generator
    ) -> Selection:
        """Return the best subset as a selection; ``generator`` is not used."""
        if self.time_limit is not None:
            check_number("time_limit", self.time_limit)
        if len(ensemble) > EXACT_ITEMS:
            raise ValueError(
                f"exact decoding takes at most {EXACT_ITEMS} items, got "
                f"{len(ensemble)}: use 'greedy' or 'mbr'"
            )
        if len(ensemble) <= TABLED_ITEMS:
            return _try_all_subsets(ensemble, constraint)
        return self._branch_and_bound(ensemble, constraint)

    def _branch_and_bound(
        self, ensemble: Ensemble, constraint: Constraint
    ) -> Selection:
        """Return the best subset found in the time limit; ValueError if none is."""
        start = _greedy_incumbent(ensemble, constraint)
        search = _Search(ensemble.representation, constraint, start)
        limit = np.inf if self.time_limit is None else self.time_limit
        deadline = time.monotonic() + limit
        while search.n_open and time.monotonic() < deadline:
            search.visit_nodes()
        indices = search.best_subset()
        if indices is None:
            if search.n_open:
                raise ValueError(
                    f"no feasible subset of {constraint.k} items was found within "
                    f"{self.time_limit:g} seconds"
                )
            raise _infeasible_error(constraint.k)
        log_prob = ensemble.log_prob(indices)
        if not search.n_open:
            reason = f"proved the best after {search.n_nodes} nodes"
            return Selection(indices, log_prob, reason, upper_bound=log_prob)
        normalizer = ensemble.representation.log_det(indices) - log_prob
        return Selection(
            indices,
            log_prob,
            f"stopped at time_limit={self.time_limit:g} seconds after "
            f"{search.n_nodes} nodes",
            upper_bound=max(search.upper_bound() - normalizer, log_prob),
        )


def _try_all_subsets(ensemble: Ensemble, constraint: Constraint) -> Selection:
    """Return the best feasible subset; ValueError if none has positive probability."""
    n_items = len(ensemble)
    allowed = np.ones(2**n_items, dtype=bool)
    if not constraint.is_free:
        allowed = constraint.allows(all_subsets(n_items))
    log_dets = _largest_log_dets(ensemble.representation, allowed)
    best = int(np.argmax(log_dets))
    if log_dets[best] == -np.inf:
        raise _infeasible_error(constraint.k)
    indices = np.flatnonzero(best >> np.arange(n_items) & 1)
    log_prob = partial(ensemble.log_prob, indices)
    return Selection(indices, log_prob, "looked at every subset", upper_bound=log_prob)


def _largest_log_dets(kernel: Representation, allowed: BoolArray) -> FloatArray:
    """Return ``log det L_y`` (2^N,) of all subsets, exact where it may be the largest.

    Bit ``i`` of an index tells whether the subset has item ``i``.  Subsets not in the
    mask ``allowed`` have -inf.  Where the kernel is ill-conditioned, so have all that
    cannot be the largest; if a single one can, it has its lower bound.
    """
    S = kernel.submatrix(np.arange(len(kernel)))
    if not _is_ill_conditioned(kernel):
        return np.where(allowed, log_principal_minors(S, kernel.log_scale), -np.inf)
    lower, upper = _log_det_bounds(S, kernel.log_scale)
    least = lower[allowed].max(initial=-np.inf)
    candidates = np.flatnonzero(allowed & (upper >= least))
    log_dets = np.full(len(allowed), -np.inf)
    if len(candidates) == 1 and least > -np.inf:
        log_dets[candidates] = least
    else:
        graded = _graded_representation(kernel)
        log_dets[candidates] = _graded_log_dets(graded, candidates)
    return log_dets


def _log_det_bounds(S: FloatArray, log_scale: FloatArray) -> tuple[FloatArray, ...]:
    """Return lower and upper bounds (2^N,) of ``log det L_y`` of all subsets.

    ``L`` is ``S`` (N, N), of unit diagonal, scaled by ``exp(log_scale)`` on both sides;
    bit ``i`` of an index is item ``i``, as in :func:`log_principal_minors`.  With ``w``
    the weights by which the chosen items explain another, an error ``e`` in the entries
    of ``S`` changes its residual by up to ``e (1 + |w|)²``.  When item ``j`` is chosen,
    ``1 + |w_i|`` grows by at most ``|r_ij| (1 + |w_j|)``, ``r_ij`` the share of ``i``
    that ``j`` explains.  An item whose residual may be zero is not taken out of the
    others: their residuals are then upper bounds, and the lower bound is -inf.
    """
    matrices, spread = S[None], np.ones((1, len(S)))
    lower = upper = np.zeros(1)
    with np.errstate(divide="ignore", invalid="ignore"):
        for item in range(len(S)):
            pivot, error = matrices[:, 0, 0], _DOUBT * spread[:, 0] ** 2
            is_sure = pivot > 2.0 * error
            column, without = matrices[:, 1:, 0], matrices[:, 1:, 1:]
            ratio = np.where(is_sure[:, None], column / pivot[:, None], 0.0)
            schur = without - ratio[:, :, None] * column[:, None, :]
            grown = spread[:, 1:] + np.abs(ratio) * spread[:, :1]
            least = np.where(is_sure, np.log(pivot - error), -np.inf)
            most = np.log(np.minimum(np.maximum(pivot, 0.0) + error, S[item, item]))
            gain = 2.0 * log_scale[item]
            matrices = np.concatenate([without, schur])
            spread = np.concatenate([spread[:, 1:], grown])
            lower = np.concatenate([lower, lower + (least + gain)])
            upper = np.concatenate([upper, upper + (most + gain)])
    return lower, upper


def _graded_log_dets(kernel: Graded, subsets: IntArray) -> FloatArray:
    """Return ``log det L_y`` (n,) of subsets: bit ``i`` of a number is item ``i``."""
    is_member = (subsets[:, None] >> np.arange(len(kernel)) & 1).astype(bool)
    sizes = is_member.sum(axis=1)
    log_dets = np.full(len(subsets), -np.inf)
    for size in range(kernel.rank + 1):
        places = np.flatnonzero(sizes == size)
        members = np.nonzero(is_member[places])[1].reshape(len(places), size)
        scale = 2.0 * kernel.log_scale[members].sum(axis=1)
        volumes = log_volumes(kernel.rows[members], kernel.floor[members])
        log_dets[places] = scale + volumes
    return log_dets


def _infeasible_error(k: int | None) -> ValueError:
    """Return the error that no feasible subset has positive probability."""
    return ValueError(f"no feasible subset of {k} items has positive probability")


def all_subsets(n_items: int) -> BoolArray:
    """Return all subsets as masks (2^N, N); bit ``i`` of a row number is item ``i``."""
    return (np.arange(2**n_items)[:, None] >> np.arange(n_items) & 1).astype(bool)


def _greedy_incumbent(ensemble: Ensemble, constraint: Constraint) -> IntArray | None:
    """Return the greedy subset; None if singular or of fewer than ``k`` items."""
    greedy = Greedy()(ensemble, constraint, np.random.default_rng(0))
    if constraint.k is not None and len(greedy) < constraint.k:
        return None  # which proves nothing
    if ensemble.representation.log_det(greedy.indices) == -np.inf:
        return None
    return greedy.indices


def _is_ill_conditioned(kernel: Representation) -> bool:
    """Tell whether Schur complements lose digits: if not dense, or a pivot is small."""
    if isinstance(kernel, Dense):
        return kernel.conditioning[0] < _TAME_PIVOT
    return isinstance(kernel, Factored | Graded)


def _graded_representation(kernel: Representation) -> Graded:
    """Return any kernel held as rows, whose products are ``S``, to keep digits."""
    if isinstance(kernel, Dense):
        return Graded.of_similarity(kernel.S, kernel.log_scale)
    if isinstance(kernel, Factored):
        return Graded.of_unit_rows(kernel.unit_rows(), kernel.log_scale)
    assert isinstance(kernel, Graded)
    return kernel


class _Search:
    """A branch and bound: its open nodes, and the best subset, ``start`` at first.

    ``n_open`` nodes are to be visited, ``n_nodes`` were.  ``start`` may be None.
    """

    def __init__(
        self, kernel: Representation, constraint: Constraint, start: IntArray | None
    ) -> None:
        from variegate.linalg.compiled import branch_bound, read_only

        n_items = len(kernel)
        if kernel.log_scale.max() > _LARGEST_LOG_SCALE:
            raise ValueError(
                "exact decoding of more than "
                f"{TABLED_ITEMS} items needs log-qualities of at most "
                f"{_LARGEST_LOG_SCALE:g}, got {kernel.log_scale.max():.0f}"
            )
        scale = np.exp(kernel.log_scale)
        L = scale[:, None] * kernel.submatrix(np.arange(n_items)) * scale
        self._levels = np.empty((n_items + 1, n_items, n_items))
        self._levels[0] = L
        tolerance = np.full(n_items, RANK_TOLERANCE)
        self._rows = np.empty((0, 0, 0))
        slack = _ROUNDING * n_items * np.diagonal(L)
        self._graded = (
            _graded_representation(kernel) if _is_ill_conditioned(kernel) else None
        )
        self._is_in_doubt = False
        if (graded := self._graded) is not None:
            self._rows = np.empty((n_items + 1, n_items, graded.rank))
            self._rows[0] = scale[:, None] * graded.rows
            tolerance = graded.floor
            slack = _ROUNDING_OF_ROWS * np.diagonal(L)
        labels, room = labels_and_room(constraint.at_most, np.arange(n_items))
        self._problem = branch_bound.Problem(
            read_only(tolerance * np.diagonal(L)),
            read_only(slack),
            read_only(constraint.costs),
            -1 if constraint.k is None else constraint.k,
            constraint.largest_cost(),
            labels,
            room,
        )
        size = 2 * n_items + 2
        self._nodes = branch_bound.OpenNodes(
            undecided=np.ones((size, n_items), dtype=bool),
            path=np.zeros((size, n_items), dtype=np.int64),
            counts=np.zeros(size, dtype=np.int64),
            values=np.zeros(size),
            bounds=np.full(size, np.inf),
            spent=np.zeros(size),
        )
        self._best_set = np.zeros(n_items, dtype=np.int64)
        self._best_value, self._best_count = -np.inf, -1
        if start is not None:
            self._best_value, self._best_count = kernel.log_det(start), len(start)
            self._best_set[: len(start)] = start
        numbers = lapack.dsyev_arguments(n_items)
        self._room = branch_bound.WorkArrays(
            lapack.SYMMETRIC_EIGENVALUES,
            numbers,
            work=np.empty((2, numbers[3])),
            small=np.empty(n_items * n_items),
            members=np.empty(n_items, dtype=np.int64),
            left=np.empty_like(room),
        )
        self.n_open = 1
        self.n_nodes = 0

    def visit_nodes(self) -> None:
        """Visit up to 500 open nodes by the compiled search, updating the best subset.

        It stops early at a node whose value may be rounding alone; the next call
        computes this value by rows, then continues.
        """
        from variegate.linalg.compiled.branch_bound import search_nodes

        is_certain = self._is_in_doubt and self._evaluate_next_node()
        progress = (self.n_open, self._best_value, self._best_count, is_certain)
        tree = self._problem, self._levels, self._rows, self._nodes, self._room
        found = search_nodes(*tree, _NODES_AT_A_TIME, progress, self._best_set)
        self.n_open, self._best_value, self._best_count, visited, in_doubt = found
        self.n_nodes, self._is_in_doubt = self.n_nodes + visited, in_doubt

    def _evaluate_next_node(self) -> bool:
        """Compute the next node's value by rows; if -inf, close it and return False."""
        assert self._graded is not None
        last, nodes = self.n_open - 1, self._nodes
        value = self._graded.log_det(nodes.path[last, : nodes.counts[last]])
        if value == -np.inf:  # and so is every set with these items
            self.n_open, self.n_nodes = last, self.n_nodes + 1
            return False
        nodes.values[last] = value
        return True

    def best_subset(self) -> IntArray | None:
        """Return the best subset so far as sorted item numbers, or None."""
        if self._best_count < 0:
            return None
        return np.sort(self._best_set[: self._best_count])

    def upper_bound(self) -> float:
        """Return a bound on all feasible ``log det L_y``, while nodes are open."""
        return float(max(self._nodes.bounds[: self.n_open].max(), self._best_value))
