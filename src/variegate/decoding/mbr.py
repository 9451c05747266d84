"""Minimum Bayes risk decoding (paper, appendix C)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from variegate._validation import check_count
from variegate.decoding.base import Constraint, Ensemble
from variegate.decoding.greedy import Greedy
from variegate.metrics import pairwise_f_score
from variegate.selection import Selection


@dataclass(frozen=True)
class MBR:
    r"""Of many samples, the one that agrees best with all the others.

    .. math:: \hat y = \arg\max_{y \in \mathcal S}
        \frac{1}{T} \sum_{t=1}^T F(y, y_t)

    with ``S = {y_1, ..., y_T}`` drawn from the ensemble and ``F`` the set F-score.
    Only feasible samples can be chosen, but all of them vote.  Among equals the more
    probable subset wins.  Where no sample is feasible, the greedy answer is taken.

    Parameters
    ----------
    n_samples : int, default=1000
    """

    n_samples: int = 1000

    def __call__(
        self,
        ensemble: Ensemble,
        constraint: Constraint,
        generator: np.random.Generator,
    ) -> Selection:
        """Choose a subset."""
        check_count("n_samples", self.n_samples)
        samples = ensemble.sample(self.n_samples, random_state=generator)
        # Repeated samples vote with their number; each is a candidate once.
        voters, votes = np.unique(samples, axis=0, return_counts=True)
        candidates = voters[constraint.allows(voters)]
        if len(candidates) == 0:
            selection = Greedy()(ensemble, constraint, generator)
            reason = (
                f"none of {self.n_samples} samples meets the constraint, so the greedy "
                f"answer is taken: {selection.stop_reason}"
            )
            return replace(selection, stop_reason=reason)
        consensus = pairwise_f_score(candidates, voters) @ votes / self.n_samples
        tied = np.flatnonzero(consensus >= consensus.max() - 1e-12)
        members = [np.flatnonzero(candidates[row]) for row in tied]
        log_probs = [ensemble.log_prob(subset) for subset in members]
        best = int(np.argmax(log_probs))
        return Selection(
            members[best],
            log_probs[best],
            f"best agreement among {self.n_samples} samples: "
            f"mean F-score {consensus.max():.3f}",
        )
