"""Sampling by a Markov chain, where even one factorisation takes too long.

Add, drop and swap moves with Metropolis odds (Kang, NIPS 2013), updated incrementally:
a step costs ``O(|y|²)`` and never touches the whole kernel.  The samples are correlated
and only approximately from the law; the result says how much they are worth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from variegate._random import as_generator
from variegate._typing import BoolArray, RandomState
from variegate._validation import check_count
from variegate.linalg.limits import RANK_TOLERANCE
from variegate.linalg.representations import Dense, Factored, Graded
from variegate.selection import Ensemble, check_found_enough

#: Rounding in the updated inverse grows slowly; it is computed anew this often.
_STEPS_BEFORE_RENEWAL = 2000


@dataclass(frozen=True, eq=False)
class ChainSamples:
    """States of a Markov chain.

    Attributes
    ----------
    samples : boolean array of shape (n, N)
    acceptance : float
        The share of proposed moves that were accepted.
    effective_size : float
        The number of independent samples that estimate the mean of a sum of random
        weights of the chosen items as well.
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

    The chain starts from the greedy subset, which always exists: an ensemble has a
    subset of positive probability, and one of ``k`` items if its rank allows.

    Parameters
    ----------
    ensemble : LEnsemble
    n : int
        The number of states to keep.
    k : int, optional
        The number of items, for a k-DPP.
    burn_in : int, optional
        Steps before the first state that is kept; ten for each item, at least 1000.
    thin : int, optional
        Steps from one state to the next; one for each item by default.
    random_state : None, int or numpy.random.Generator
    """
    check_count("n", n)
    n_items = len(ensemble)
    burn_in = max(1000, 10 * n_items) if burn_in is None else burn_in
    thin = max(1, n_items) if thin is None else thin
    check_count("thin", thin)
    if burn_in < 0:
        raise ValueError(f"burn_in must not be negative, got {burn_in}")
    greedy = ensemble.decode("greedy", k)
    check_found_enough(len(greedy), k, greedy.stop_reason)
    if n_items == 0:  # no move is ever proposed
        return ChainSamples(np.zeros((n, 0), dtype=bool), 0.0, float(n))
    chain = _Chain(ensemble, greedy.indices, k is not None, as_generator(random_state))
    chain.advance(burn_in)
    samples = chain.sample(n, thin)
    weights = np.random.default_rng(0).standard_normal(n_items)
    effective_size = effective_sample_size(samples @ weights)
    return ChainSamples(samples, chain.accepted / chain.steps, effective_size)


class _Chain:
    """A chain over subsets of an ensemble: its current subset and its next seed.

    ``start`` are the item numbers of the first subset; with ``fixed_size`` its size
    stays.  ``accepted`` and ``steps`` count since the last call of :meth:`sample`.
    """

    def __init__(
        self, ensemble: Ensemble, start: Any, fixed_size: bool, rng: np.random.Generator
    ) -> None:
        from variegate.linalg.compiled import chain, read_only

        self.kernel = kernel = ensemble.representation
        self.fixed_size = fixed_size
        self._run_chain = chain.run_chain
        if isinstance(kernel, Graded):
            F, floor = kernel.rows, kernel.floor
        else:
            assert isinstance(kernel, Dense | Factored)
            F = kernel.S if isinstance(kernel, Dense) else kernel.unit_rows()
            floor = np.full(len(kernel), RANK_TOLERANCE)
        self._entries = chain.Kernel(
            read_only(F),
            isinstance(kernel, Dense),
            isinstance(kernel, Graded),
            read_only(kernel.diagonal()),
            read_only(kernel.log_scale),
            read_only(floor),
        )
        self.size = len(start)
        members = np.zeros(max(min(F.shape), 1), dtype=np.int64)
        members[: self.size] = start
        place = np.full(len(kernel), -1, dtype=np.int64)
        place[start] = np.arange(self.size)
        inverse = np.zeros((len(members), len(members)))
        self.state = chain.State(members, place, inverse)
        self.seed = rng.integers(2**64, dtype=np.uint64)
        self.accepted = self.steps = 0
        self._recompute_inverse()

    def _recompute_inverse(self) -> None:
        """Compute the inverse of ``S_y``, ``y`` the current subset, to remove rounding.

        ``S`` is the similarity; graded kernels keep no inverse.
        """
        if isinstance(self.kernel, Graded):
            return
        S_y = self.kernel.submatrix(self.state.members[: self.size])
        self.state.inverse[: self.size, : self.size] = np.linalg.inv(S_y)

    def sample(self, n: int, thin: int) -> BoolArray:
        """Return ``n`` subsets (n, N), boolean, ``thin`` steps from one to the next.

        Counts of steps and accepted moves begin anew.
        """
        self.accepted = self.steps = 0
        samples = np.zeros((n, len(self.kernel)), dtype=bool)
        for row in samples:
            self.advance(thin)
            row[self.state.members[: self.size]] = True
        return samples

    def advance(self, n_steps: int) -> None:
        """Take and count ``n_steps`` steps; compute the inverse anew every 2000."""
        while n_steps > 0:
            now = min(n_steps, _STEPS_BEFORE_RENEWAL)
            self.size, seed, accepted = self._run_chain(
                self._entries, self.state, self.size, self.fixed_size, now, self.seed
            )
            # Compiled code hands back a plain integer, of which the type is lost.
            self.seed = np.uint64(seed)
            self.accepted += accepted
            self.steps += now
            n_steps -= now
            self._recompute_inverse()


def effective_sample_size(values: Any) -> float:
    """Return ``n / (1 + 2 Σ ρ_t)``, at most ``n``, of a series (n,).

    The autocorrelations ``ρ_t`` are summed in pairs ``ρ_1 + ρ_2``, ``ρ_3 + ρ_4``, ...
    up to the first that is not positive (Geyer, 1992).
    """
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
