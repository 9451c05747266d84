"""Minimum Bayes risk decoding (paper, appendix C)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from variegate.decoding.base import Constraint, Ensemble
from variegate.metrics import pairwise_f_score
from variegate.selection import Selection


@dataclass(frozen=True)
class MBR:
    r"""Of many samples, the one that agrees best with all the others.

    .. math:: \hat y = \arg\max_{y \in \mathcal S}
        \frac{1}{T} \sum_{t=1}^T F(y, y_t)

    with ``S = {y_1, ..., y_T}`` drawn from the ensemble and ``F`` the set F-score.
    Only feasible samples can be chosen, but all of them vote.  Among equals the more
    probable subset wins.

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
        if self.n_samples < 1:
            raise ValueError(f"n_samples must be at least 1, got {self.n_samples}")
        samples = ensemble.sample(self.n_samples, random_state=generator)
        # Repeated samples vote with their number; each is a candidate once.
        voters, votes = np.unique(samples, axis=0, return_counts=True)
        candidates = voters[constraint.allows(voters)]
        if len(candidates) == 0:
            raise ValueError(
                f"none of {self.n_samples} samples meets the constraint "
                f"({_describe(constraint)}); the ensemble expects "
                f"{ensemble.expected_size():.1f} items. Draw more samples with "
                "MBR(n_samples=...) or use 'greedy'"
            )
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


def _describe(constraint: Constraint) -> str:
    parts = []
    if constraint.k is not None:
        parts.append(f"k={constraint.k}")
    if constraint.budget is not None:
        parts.append(f"budget={constraint.budget:g}")
    return ", ".join(parts)
