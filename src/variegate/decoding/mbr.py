"""Minimum Bayes risk decoding (paper, appendix C)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from variegate._typing import BoolArray, IntArray
from variegate._validation import check_choice, check_count
from variegate.decoding.agreement import Agreement, Gains, as_agreement, grow_subset
from variegate.decoding.base import Constraint
from variegate.decoding.greedy import Greedy
from variegate.selection import Ensemble, Selection, check_found_enough
from variegate.subsets import distinct_rows

#: From an ensemble, a constraint, a number of subsets and a generator to the subsets
#: that vote, a boolean array.
Draw = Callable[[Any, Constraint, int, Generator], BoolArray]


@dataclass(frozen=True)
class GreedySearch:
    """Items added one by one while that raises the mean agreement.

    Parameters
    ----------
    fill : bool, default=False
        Whether to add items that lower it, too, while one fits the budget.
    nonempty : bool, default=False
        Whether to choose the likeliest item where all samples are empty.
    """

    fill: bool = False
    nonempty: bool = False


@dataclass(frozen=True)
class MBR:
    r"""The subset that agrees best with many samples.

    .. math:: \hat y = \arg\max_{y \in \mathcal S}
        \frac{1}{T} \sum_{t=1}^T g(y, y_t)

    with ``y_1, ..., y_T`` drawn from the ensemble and ``g`` the set F-score, or another
    agreement.  As in the paper, ``S`` is these samples: only feasible ones can be
    chosen, but all of them vote; among equals the more probable subset wins, and where
    no sample is feasible, the greedy answer is taken.  Or ``S`` is all feasible
    subsets, and a greedy search adds the item that raises the mean most.

    Parameters
    ----------
    n_samples : int, default=1000
        The number of samples that vote.
    n_candidates : int, optional
        The number of feasible samples that can be chosen, the most probable ones; all
        of them by default.
    agreement : Agreement or callable, optional
        ``g``: the set F-score by default.  A function takes boolean arrays of
        candidates (A, N) and voters (B, N) and returns gains (A, B).
    search : {"samples", "greedy"} or GreedySearch
        ``S``, and the search.
    draw : callable, optional
        The voters, from (ensemble, constraint, n_samples, generator).  By default
        samples of the ensemble, of ``k`` items where ``k`` is given.
    """

    n_samples: int = 1000
    n_candidates: int | None = None
    agreement: Agreement | Gains | None = None
    search: str | GreedySearch = "samples"
    draw: Draw | None = None

    def __call__(
        self, ensemble: Ensemble, constraint: Constraint, generator: Generator
    ) -> Selection:
        """Draw samples from ``generator``, and return the subset of best agreement."""
        check_count("n_samples", self.n_samples)
        if self.n_candidates is not None:
            check_count("n_candidates", self.n_candidates)
        if not isinstance(self.search, GreedySearch):
            check_choice("search", self.search, ("samples", "greedy"))
        samples = (self.draw or _draw_samples)(
            ensemble, constraint, self.n_samples, generator
        )
        # Repeated samples vote with their number; each is a candidate once.
        first, _, votes = distinct_rows(samples)
        voters = samples[first]
        if self.search == "samples":
            return self._choose_sample(ensemble, constraint, voters, votes)
        return self._grow_selection(ensemble, constraint, voters, votes)

    def _choose_sample(
        self,
        ensemble: Ensemble,
        constraint: Constraint,
        voters: BoolArray,
        votes: IntArray,
    ) -> Selection:
        """Return the feasible voter of the best mean agreement with all voters.

        ``voters`` (B, N) are the distinct samples, ``votes`` (B,) their numbers.  Of
        equals the most probable; the greedy selection if none is feasible.
        """
        agreement, n_samples = as_agreement(self.agreement), int(votes.sum())
        candidates = voters[constraint.allows(voters)]
        if len(candidates) == 0:
            selection = Greedy()(ensemble, constraint, np.random.default_rng())
            check_found_enough(len(selection), constraint.k, selection.stop_reason)
            reason = (
                f"none of {n_samples} samples meets the constraint, so the greedy "
                f"answer is taken: {selection.stop_reason}"
            )
            return Selection(selection.indices, selection.log_prob, reason)
        if self.n_candidates is not None and len(candidates) > self.n_candidates:
            log_probs = [ensemble.log_prob(candidate) for candidate in candidates]
            candidates = candidates[np.argsort(log_probs)[-self.n_candidates :]]
        means = agreement.mean(candidates, voters, votes)
        tied = np.flatnonzero(means >= means.max() - 1e-12)
        members = [np.flatnonzero(candidates[row]) for row in tied]
        log_probs = [ensemble.log_prob(subset) for subset in members]
        best = int(np.argmax(log_probs))
        return Selection(
            members[best],
            log_probs[best],
            f"best agreement among {n_samples} samples: "
            f"mean {agreement.name} {means.max():.3f}",
        )

    def _grow_selection(
        self,
        ensemble: Ensemble,
        constraint: Constraint,
        voters: BoolArray,
        votes: IntArray,
    ) -> Selection:
        """Return the subset that greedy search grows by mean agreement with voters."""
        search = (
            self.search if isinstance(self.search, GreedySearch) else GreedySearch()
        )
        agreement = as_agreement(self.agreement)
        growing = agreement.growing(voters, votes)
        chosen, reason = grow_subset(growing, constraint, search.fill)
        if not chosen and search.nonempty:
            room = constraint.leaves_room([])
            chosen = [int(np.argmax(np.where(room, ensemble.marginals(), -1.0)))]
            reason = "no item gains anything, so the likeliest is taken"
            growing.add(chosen[0])
        mean = f"mean {agreement.name} {growing.value:.3f}"
        reason += f": {mean} with {votes.sum()} samples"
        return Selection.from_items(ensemble, chosen, reason)


def _draw_samples(
    ensemble: Ensemble, constraint: Constraint, n_samples: int, generator: Generator
) -> BoolArray:
    """Draw subsets (n_samples, N), of ``k`` items where ``k`` is given."""
    if constraint.k is None:
        return ensemble.sample(n_samples, random_state=generator)
    # Given a number of items, the others are judged given that number too.
    return ensemble.sample_k(constraint.k, n_samples, random_state=generator)
