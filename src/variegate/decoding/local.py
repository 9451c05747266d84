"""Local search: from the greedy answer, the best single move while any helps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from scipy.linalg import solve_triangular

from variegate._typing import BoolArray, FloatArray, IntArray
from variegate._validation import check_count
from variegate.decoding.base import Constraint
from variegate.decoding.greedy import Greedy
from variegate.decoding.residuals import cheapest_possible_subset
from variegate.linalg.cosine import chunks
from variegate.linalg.limits import RANK_TOLERANCE
from variegate.linalg.representations import Graded, Representation
from variegate.selection import Ensemble, Selection

#: A move must raise the log-probability by more than this, and two moves whose gains
#: differ by no more are equals: less than this is rounding.
ENOUGH = 1e-10

#: In a move, the place of the item where none comes in, or none goes out.
_NONE = -1


@dataclass(frozen=True)
class Local:
    r"""Local search by adding, dropping and swapping items, from the greedy answer.

    With log-qualities ``u``, ``V = S_y⁻¹``, ``c_j = S_yj`` and ``w_j = V c_j``, the
    residual of an item ``j`` that is not chosen is ``r_j = S_jj - c_jᵀ w_j``, and every
    move multiplies the determinant by a number that these give at once:

    .. math::
        \frac{\det L_{y + j}}{\det L_y} &= e^{2u_j} r_j \\
        \frac{\det L_{y - i}}{\det L_y} &= e^{-2u_i} V_{ii} \\
        \frac{\det L_{y - i + j}}{\det L_y}
            &= e^{2u_j - 2u_i} (V_{ii} r_j + w_{ji}^2)

    The last is the second times the residual of ``j`` given ``y - i``, because
    ``S_{y-i}⁻¹`` is ``V - V_i V_iᵀ / V_ii`` without its row and column ``i``.  All
    ``N |y|`` swaps cost no more than the ``w_j``: ``O(N |y|²)`` a step, in a few
    matrix products, and the memory of ``|y|`` columns.

    The best feasible move is taken while it raises the log-probability by more than
    1e-10.  With ``k`` only swaps are feasible.  Among equals the smallest number comes
    in, then the smallest goes out, and drops come first.  The answer is never less
    probable than the greedy one.  Where the greedy search ends before ``k`` items, the
    climb starts from the ``k`` cheapest independent ones.

    Parameters
    ----------
    max_steps : int, default=1000
        The largest number of moves that are tried.
    """

    max_steps: int = 1000

    def __call__(
        self, ensemble: Ensemble, constraint: Constraint, generator: Generator
    ) -> Selection:
        """Return a local maximum; ``generator`` is not used."""
        check_count("max_steps", self.max_steps)
        start, origin = Greedy()(ensemble, constraint, generator), "the greedy answer"
        if constraint.k is not None and len(start) < constraint.k:
            affordable = cheapest_possible_subset(
                ensemble.representation, constraint, start.stop_reason
            )
            found = ensemble.log_prob(affordable)
            start = Selection(affordable, found, "the cheapest")
            origin = f"the cheapest {constraint.k} items"
        if start.log_prob == -np.inf:
            # Singular to rounding in the order of its numbers: nothing to divide by.
            return start
        members, reason = self._search_locally(
            ensemble.representation, constraint, start.indices, origin
        )
        return Selection(members, ensemble.log_prob(members), reason)

    def _search_locally(
        self,
        kernel: Representation,
        constraint: Constraint,
        members: IntArray,
        origin: str = "the greedy answer",
    ) -> tuple[IntArray, str]:
        """Make the best move while one helps; return the sorted subset and the reason.

        ``members`` is the first subset, ``origin`` its name in the stop reason.
        """
        state = _Neighbourhood(kernel, constraint, members)
        log_det = kernel.log_det(members)
        refused: set[tuple[int, int]] = set()
        moves = 0
        for step in range(self.max_steps + 1):
            gain, move = state.best_move(refused)
            if gain <= ENOUGH:
                count = "1 move" if moves == 1 else f"{moves} moves"
                reason = f"after {count} from {origin}, no other raises the probability"
                return state.members, reason
            if step == self.max_steps:
                break
            candidate = state.members_after(move)
            reached = kernel.log_det(candidate)
            # Where S_y is nearly singular, a gain can be rounding.  The determinant
            # computed anew only rises, so the search does not run in circles.
            if reached > log_det + ENOUGH:
                state = _Neighbourhood(kernel, constraint, candidate, state.columns)
                log_det = reached
                refused.clear()
                moves += 1
            else:
                refused.add(move)
        return state.members, f"reached the limit of {self.max_steps} steps"


class _Neighbourhood:
    """A subset, and the gain of every move from it.

    A move is a pair of items, the one that comes in and the one that goes out; either
    may be -1, for none.  ``members`` (sorted) are ``y``, ``columns`` those of ``S`` by
    item, reused from an earlier subset; ``factor`` is a Cholesky factor of ``S_y``, and
    ``inverse_diagonal`` the diagonal of ``V = S_y⁻¹``.
    """

    def __init__(
        self,
        kernel: Representation,
        constraint: Constraint,
        members: IntArray,
        columns: dict[int, FloatArray] | None = None,
    ) -> None:
        self.kernel = kernel
        self.constraint = constraint
        self.members = members
        known = columns or {}
        # Kept from one subset to the next: a move needs at most one new column.
        self.columns = {
            item: known[item] if item in known else kernel.column(item)
            for item in members.tolist()
        }
        self.floor: FloatArray | float = RANK_TOLERANCE
        self.basis: FloatArray | None = None
        if isinstance(kernel, Graded):
            # Products of rows would lose the digits that tell them apart.
            self.basis, upper = np.linalg.qr(kernel.rows[members].T)
            self.factor = upper.T
            self.floor = kernel.floor
        else:
            self.factor = np.linalg.cholesky(kernel.submatrix(members))
        identity = np.eye(len(members))
        inverse_factor = solve_triangular(self.factor, identity, lower=True)
        self.inverse_diagonal = np.einsum("ij,ij->j", inverse_factor, inverse_factor)

    def members_after(self, move: tuple[int, int]) -> IntArray:
        """Return the members after a move, sorted; this subset stays as it is."""
        item, leaving = move
        after = set(self.members.tolist()) - {leaving}
        if item != _NONE:
            after.add(item)
        return np.array(sorted(after), dtype=np.intp)

    def best_move(self, refused: set[tuple[int, int]]) -> tuple[float, tuple[int, int]]:
        """Return gain and move of the best not ``refused``; a gain of -inf if none."""
        found = [self._best_dropping_move(refused)]
        for part in chunks(len(self.kernel)):
            items = np.arange(part.start, part.stop)
            found.append(self._best_entering_move(items, refused))
        top = max(gain for gain, _ in found)
        return next(pair for pair in found if pair[0] >= top - ENOUGH)

    def _best_dropping_move(
        self, refused: set[tuple[int, int]]
    ) -> tuple[float, tuple[int, int]]:
        """Return gain and move of the best drop; -inf if none, as always with ``k``."""
        if self.constraint.k is not None or len(self.members) == 0:
            return -np.inf, (_NONE, _NONE)
        gain = np.log(self.inverse_diagonal) - 2.0 * self.kernel.log_scale[self.members]
        for item, leaving in refused:
            if item == _NONE:
                gain[self.members == leaving] = -np.inf
        row = int(np.argmax(gain >= gain.max() - ENOUGH))
        return float(gain[row]), (_NONE, int(self.members[row]))

    def _best_entering_move(
        self, items: IntArray, refused: set[tuple[int, int]]
    ) -> tuple[float, tuple[int, int]]:
        """Return gain and move of the best addition or swap; -inf if none is feasible.

        It brings in one of ``items``, which are consecutive numbers.
        """
        gain = self._entry_gains(items)
        leaving = np.concatenate([[_NONE], self.members])
        for item, out in refused:
            if items[0] <= item <= items[-1]:
                gain[item - items[0], leaving == out] = -np.inf
        # Row by row: the smallest item that comes in, then the smallest that leaves.
        best = int(np.argmax(gain >= gain.max() - ENOUGH))
        row, column = np.unravel_index(best, gain.shape)
        return float(gain[row, column]), (int(items[row]), int(leaving[column]))

    def _entry_gains(self, items: IntArray) -> FloatArray:
        """Return gains (items, 1 + |y|) of additions (column 0) and swaps.

        They are -inf for members, and where a move is not feasible.
        """
        u = self.kernel.log_scale
        half, residual = self._entering_residuals(items)
        w = solve_triangular(self.factor, half, lower=True, trans="T").T

        # The residual of the item that comes in, given those that stay ...
        share = np.empty((len(items), 1 + len(self.members)))
        share[:, 0] = residual
        share[:, 1:] = residual[:, None] + w**2 / self.inverse_diagonal
        # ... times the share of the determinant without the one that goes.
        freed = np.concatenate(
            [[0.0], np.log(self.inverse_diagonal) - 2.0 * u[self.members]]
        )
        floor = self.floor if isinstance(self.floor, float) else self.floor[items, None]
        allowed = (share > floor) & self._feasible_moves(items)
        allowed[np.isin(items, self.members)] = False
        log_share = np.log(np.where(allowed, share, 1.0))
        gain = log_share + 2.0 * u[items, None] + freed
        return np.where(allowed, gain, -np.inf)

    def _entering_residuals(self, items: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return ``C⁻¹ S_yj`` (|y|, items), ``S_y = C Cᵀ``, and residuals (items,)."""
        if self.basis is not None and isinstance(self.kernel, Graded):
            rows = self.kernel.rows[items]
            half = self.basis.T @ rows.T
            left = rows - (self.basis @ half).T
            left = left - (left @ self.basis) @ self.basis.T
            return half, np.einsum("ij,ij->i", left, left)
        c = np.zeros((len(self.members), len(items)))
        for row, column in enumerate(self.columns.values()):
            c[row] = column[items]
        # Not by V itself: two triangular solves lose fewer digits.
        half = solve_triangular(self.factor, c, lower=True)
        residual = self.kernel.diagonal()[items] - np.einsum("ij,ij->j", half, half)
        return half, np.maximum(residual, 0.0)

    def _feasible_moves(self, items: IntArray) -> BoolArray:
        """Return a mask (items, 1 + |y|) of feasible additions (column 0) and swaps."""
        costs = self.constraint.costs
        spent = float(costs[self.members].sum())
        left = spent - np.concatenate([[0.0], costs[self.members]])
        feasible = np.asarray(self.constraint.affords(left + costs[items, None]))
        if self.constraint.k is not None:
            feasible[:, 0] = False
        if (at_most := self.constraint.at_most) is not None:
            is_open = at_most.count_by_label(self.members) < at_most.room
            for labels in at_most.labels:
                enters, leaves = labels[items, None], labels[self.members]
                feasible[:, 1:] &= is_open[enters] | (enters == leaves)
                feasible[:, 0] &= is_open[labels[items]]
        return feasible
