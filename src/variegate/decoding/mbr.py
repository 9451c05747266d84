"""Minimum Bayes risk decoding (paper, appendix C)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from variegate._typing import BoolArray, FloatArray, IntArray
from variegate._validation import check_count
from variegate.decoding.base import Constraint, Ensemble
from variegate.decoding.greedy import Greedy
from variegate.decoding.residuals import refuse_fewer
from variegate.metrics import mean_f_score
from variegate.selection import Selection

#: From candidates (A, N) and voters (B, N), boolean, to the gain (A, B) of choosing the
#: one where the other is wanted.
Gains = Callable[[BoolArray, BoolArray], FloatArray]


@dataclass(frozen=True)
class MBR:
    r"""Of many samples, the one that agrees best with all the others.

    .. math:: \hat y = \arg\max_{y \in \mathcal S}
        \frac{1}{T} \sum_{t=1}^T g(y, y_t)

    with ``S = {y_1, ..., y_T}`` drawn from the ensemble and ``g`` the set F-score, or
    whatever the answer will be judged by.  Only feasible samples can be chosen, but all
    of them vote.  Among equals the more probable subset wins.  Where no sample is
    feasible, the greedy answer is taken.

    Parameters
    ----------
    n_samples : int, default=1000
        How many vote.
    n_candidates : int, optional
        How many of the feasible samples may be chosen: the most probable ones.  All of
        them by default.
    gains : callable, optional
        From boolean arrays of candidates (A, N) and voters (B, N) to gains (A, B).
        The set F-score by default.
    """

    n_samples: int = 1000
    n_candidates: int | None = None
    gains: Gains | None = None

    def __call__(
        self,
        ensemble: Ensemble,
        constraint: Constraint,
        generator: np.random.Generator,
    ) -> Selection:
        """Choose a subset."""
        check_count("n_samples", self.n_samples)
        if self.n_candidates is not None:
            check_count("n_candidates", self.n_candidates)
        samples = self._samples(ensemble, constraint, generator)
        # Repeated samples vote with their number; each is a candidate once.
        voters, votes = np.unique(samples, axis=0, return_counts=True)
        candidates = voters[constraint.allows(voters)]
        if len(candidates) == 0:
            selection = Greedy()(ensemble, constraint, generator)
            refuse_fewer(len(selection), constraint.k, selection.stop_reason)
            reason = (
                f"none of {self.n_samples} samples meets the constraint, so the greedy "
                f"answer is taken: {selection.stop_reason}"
            )
            return Selection(selection.indices, selection.log_prob, reason)
        if self.n_candidates is not None and len(candidates) > self.n_candidates:
            log_probs = [ensemble.log_prob(candidate) for candidate in candidates]
            candidates = candidates[np.argsort(log_probs)[-self.n_candidates :]]
        consensus = self._consensus(candidates, voters, votes)
        tied = np.flatnonzero(consensus >= consensus.max() - 1e-12)
        members = [np.flatnonzero(candidates[row]) for row in tied]
        log_probs = [ensemble.log_prob(subset) for subset in members]
        best = int(np.argmax(log_probs))
        name = "mean F-score" if self.gains is None else "mean gain"
        return Selection(
            members[best],
            log_probs[best],
            f"best agreement among {self.n_samples} samples: "
            f"{name} {consensus.max():.3f}",
        )

    def _samples(
        self, ensemble: Ensemble, constraint: Constraint, generator: np.random.Generator
    ) -> BoolArray:
        if constraint.k is None:
            return ensemble.sample(self.n_samples, random_state=generator)
        # Given a number of items, the others are judged given that number too.
        return ensemble.sample_k(constraint.k, self.n_samples, random_state=generator)

    def _consensus(
        self, candidates: BoolArray, voters: BoolArray, votes: IntArray
    ) -> FloatArray:
        """Return the mean gain of every candidate."""
        if self.gains is None:
            return mean_f_score(candidates, voters, votes)
        return self._gains(self.gains, candidates, voters) @ votes / self.n_samples

    def _gains(
        self, compute: Gains, candidates: BoolArray, voters: BoolArray
    ) -> FloatArray:
        gains = np.asarray(compute(candidates, voters), dtype=np.float64)
        expected = (len(candidates), len(voters))
        if gains.shape != expected or not np.isfinite(gains).all():
            raise ValueError(
                f"gains must return finite numbers of shape {expected}, one for each "
                f"candidate and voter, got shape {gains.shape}"
            )
        return gains
