"""Matching the frames of two summaries of one video."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from variegate._typing import BoolArray, FloatArray

__all__ = ["Matching", "frame_distances", "n_matches"]

#: How frames are paired.
Matching = Literal["maximum", "vsumm"]


def frame_distances(one: Any, other: Any) -> FloatArray:
    """Return the L1 distances of histograms, (A, B) for (A, bins) and (B, bins)."""
    first, second = np.atleast_2d(one), np.atleast_2d(other)
    return np.asarray(np.abs(first[:, None] - second).sum(axis=2))


def n_matches(alike: BoolArray, matching: Matching = "maximum") -> int:
    """Return how many pairs of alike frames can be formed, each frame in one at most.

    Parameters
    ----------
    alike : boolean array of shape (user frames, system frames)
    matching : {"maximum", "vsumm"}
        As many pairs as there can be, as the paper describes it; or as VSUMM's
        evaluator does: user frames in their order, each taking the first system frame
        that is alike and still free, which can leave pairs unformed.
    """
    if matching == "maximum":
        from scipy import sparse
        from scipy.sparse.csgraph import maximum_bipartite_matching

        graph = sparse.csr_array(alike)
        return int((maximum_bipartite_matching(graph, perm_type="column") >= 0).sum())
    if matching != "vsumm":
        raise ValueError(f"unknown matching {matching!r}; there are maximum, vsumm")
    free = np.ones(alike.shape[1], dtype=bool)
    count = 0
    for row in alike:
        candidates = np.flatnonzero(row & free)
        if len(candidates):
            free[candidates[0]] = False
            count += 1
    return count
