"""Sampling by a Markov chain, for when even one factorisation is too much.

Add, drop and swap moves with Metropolis odds (Kang, NIPS 2013), updated incrementally:
a step costs ``O(|y|²)`` and never touches the whole kernel.  The samples are correlated
and only approximately from the law; the result says how much they are worth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from variegate._random import generator
from variegate._typing import BoolArray, FloatArray, RandomState
from variegate._validation import check_count
from variegate.linalg.limits import RANK_TOLERANCE
from variegate.linalg.representations import Dense, Factored, Graded
from variegate.selection import Ensemble, refuse_fewer

#: Rounding in the updated inverse grows slowly; it is computed anew this often.
_STEPS_BEFORE_RENEWAL = 2000


@dataclass(frozen=True, eq=False)
class ChainSamples:
    """States of a Markov chain.

    Attributes
    ----------
    samples : boolean array of shape (n, N)
    acceptance : float
        The share of proposed moves that were made.
    effective_size : float
        How many independent samples they are worth for estimating the mean of a sum
        of random weights of the chosen items.
    """

    samples: BoolArray
    acceptance: float
    effective_size: float


def sample_chain(
    ensemble: Ensemble,
    n: int = 1000,
    k: int | None = None,
    *,
    burn_in: int | None = None,
    thin: int | None = None,
    random_state: RandomState = None,
) -> ChainSamples:
    """Draw correlated samples by add, drop and swap moves.

    Parameters
    ----------
    ensemble : LEnsemble
    n : int
        How many states are kept.
    k : int, optional
        The number of items, for a k-DPP.
    burn_in : int, optional
        Steps before the first state that is kept; ten for each item, at least 1000.
    thin : int, optional
        Steps from one state to the next; one for each item by default.
    random_state : None, int or numpy.random.Generator

    Returns
    -------
    ChainSamples

    Notes
    -----
    The chain starts from the greedy subset, which always exists: an ensemble has a
    subset of positive probability, and one of ``k`` items if its rank allows.
    """
    check_count("n", n)
    n_items = len(ensemble)
    burn_in = max(1000, 10 * n_items) if burn_in is None else burn_in
    thin = max(1, n_items) if thin is None else thin
    check_count("thin", thin)
    if burn_in < 0:
        raise ValueError(f"burn_in must not be negative, got {burn_in}")
    greedy = ensemble.decode("greedy", k)
    refuse_fewer(len(greedy), k, greedy.stop_reason)
    if n_items == 0:  # no move is ever proposed
        return ChainSamples(np.zeros((n, 0), dtype=bool), 0.0, float(n))
    chain = _Chain(ensemble, greedy.indices, k is not None, generator(random_state))
    chain.advance(burn_in)
    samples = chain.sample(n, thin)
    weights = np.random.default_rng(0).standard_normal(n_items)
    effective_size = effective_sample_size(samples @ weights)
    return ChainSamples(samples, chain.accepted / chain.steps, effective_size)


class _Chain:
    """The state of a chain: who is in, and the inverse of their similarity."""

    def __init__(
        self, ensemble: Ensemble, start: Any, fixed_size: bool, rng: np.random.Generator
    ) -> None:
        kernel = ensemble.representation
        self.kernel = kernel
        self.fixed_size = fixed_size
        if isinstance(kernel, Factored):
            self.F: FloatArray = kernel.unit_rows()
            capacity = min(kernel.B.shape)
        elif isinstance(kernel, Graded):
            self.F, capacity = kernel.rows, kernel.rank
        elif isinstance(kernel, Dense):
            self.F, capacity = kernel.S, len(kernel)
        else:
            raise ValueError(f"no chain over a {type(kernel).__name__} kernel")
        self.dense = isinstance(kernel, Dense)
        self.diagonal = kernel.diagonal()
        self.size = len(start)
        self.members = np.zeros(max(capacity, 1), dtype=np.int64)
        self.members[: self.size] = start
        self.place = np.full(len(kernel), -1, dtype=np.int64)
        self.place[start] = np.arange(self.size)
        self.inverse = np.zeros((len(self.members), len(self.members)))
        self.state = rng.integers(2**64, dtype=np.uint64)
        self.accepted = self.steps = 0
        self._renew()

    def _renew(self) -> None:
        if isinstance(self.kernel, Graded):
            return  # which keeps no inverse
        members = self.members[: self.size]
        S_y = self.kernel.submatrix(members)
        self.inverse[: self.size, : self.size] = np.linalg.inv(S_y)

    def sample(self, n: int, thin: int) -> BoolArray:
        """Return the next ``n`` states, ``thin`` steps apart; count from here on."""
        self.accepted = self.steps = 0
        samples = np.zeros((n, len(self.kernel)), dtype=bool)
        for row in samples:
            self.advance(thin)
            row[self.members[: self.size]] = True
        return samples

    def advance(self, n_steps: int) -> None:
        """Take steps, renewing the inverse now and then."""
        if isinstance(self.kernel, Graded):
            self._advance_at_the_edge(self.kernel, n_steps)
            return
        from variegate.linalg.compiled import read_only
        from variegate.linalg.compiled.chain import run_chain

        while n_steps > 0:
            now = min(n_steps, _STEPS_BEFORE_RENEWAL)
            self.size, state, accepted = run_chain(
                read_only(self.F),
                self.dense,
                read_only(self.diagonal),
                read_only(self.kernel.log_scale),
                RANK_TOLERANCE,
                self.fixed_size,
                self.members,
                self.place,
                self.inverse,
                self.size,
                now,
                self.state,
            )
            # Compiled code hands back a plain integer, of which the type is lost.
            self.state = np.uint64(state)
            self.accepted += accepted
            self.steps += now
            n_steps -= now
            self._renew()

    def _advance_at_the_edge(self, kernel: Graded, n_steps: int) -> None:
        from variegate.linalg.compiled import read_only
        from variegate.linalg.compiled.chain import run_graded_chain

        self.size, state, accepted = run_graded_chain(
            read_only(kernel.rows),
            read_only(kernel.log_scale),
            read_only(kernel.floor),
            self.fixed_size,
            self.members,
            self.place,
            self.size,
            n_steps,
            self.state,
        )
        self.state = np.uint64(state)
        self.accepted += accepted
        self.steps += n_steps


def effective_sample_size(values: Any) -> float:
    """Return ``n / (1 + 2 Σ ρ_t)``, summed while pairs are positive (Geyer, 1992)."""
    x = np.asarray(values, dtype=np.float64)
    n = len(x)
    x = x - x.mean()
    variance = float(x @ x)
    if n < 4 or variance == 0.0:
        return float(n)
    padded = np.fft.rfft(x, 2 * n)
    correlation = np.fft.irfft(padded * np.conj(padded))[:n] / variance
    total = 0.0
    for lag in range(1, n - 1, 2):
        pair = correlation[lag] + correlation[lag + 1]
        if pair <= 0.0:
            break
        total += pair
    return float(min(n, n / (1.0 + 2.0 * total)))
