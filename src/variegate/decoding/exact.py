"""Exact MAP by looking at every subset."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from variegate._typing import BoolArray
from variegate.decoding.base import Constraint, Ensemble
from variegate.linalg import log_principal_minors
from variegate.selection import Selection

#: 2^20 determinants take a few dozen milliseconds; constraints, which need the
#: subsets themselves, a few hundred megabytes.
MAX_ITEMS = 20


@dataclass(frozen=True)
class Exact:
    """The most probable feasible subset, by exhaustive search.

    All ``2^N`` determinants come from one recursion of Schur complements (see
    :func:`variegate.linalg.log_principal_minors`).  Ties go to the subset whose
    mask, read as a binary number with item 0 as the lowest digit, is smallest.
    """

    def __call__(
        self,
        ensemble: Ensemble,
        constraint: Constraint,
        generator: np.random.Generator,
    ) -> Selection:
        """Choose a subset."""
        n_items = len(ensemble)
        if n_items > MAX_ITEMS:
            raise ValueError(
                f"exact decoding looks at every subset and takes at most {MAX_ITEMS} "
                f"items, got {n_items}: use 'greedy' or 'mbr'"
            )
        log_dets = log_principal_minors(
            ensemble.representation.submatrix(np.arange(n_items)),
            ensemble.representation.log_scale,
        )
        if constraint.k is not None or constraint.budget is not None:
            allowed = constraint.allows(all_subsets(n_items))
            log_dets = np.where(allowed, log_dets, -np.inf)
        best = int(np.argmax(log_dets))
        if log_dets[best] == -np.inf:
            raise ValueError(
                f"no feasible subset of {constraint.k} items has positive probability"
            )
        indices = np.flatnonzero(best >> np.arange(n_items) & 1)
        log_prob = ensemble.log_prob(indices)
        return Selection(
            indices, log_prob, "looked at every subset", upper_bound=log_prob
        )


def all_subsets(n_items: int) -> BoolArray:
    """Return all subsets as a boolean array (2^N, N); bit ``i`` is item ``i``."""
    return (np.arange(2**n_items)[:, None] >> np.arange(n_items) & 1).astype(bool)
