"""LexRank: the sentence that a random walk over similar sentences visits most."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from variegate._typing import FloatArray

__all__ = ["lexrank"]

#: Sentences at most this similar are not linked (Erkan and Radev, 2004).
_THRESHOLD = 0.1

#: The chance of a jump to any sentence.
_JUMP = 0.15

#: Above this number, links are weighted by similarity, whose matrix is never formed.
_LARGEST_GRAPH = 4000

_TOLERANCE = 1e-10
_MAX_STEPS = 200


def lexrank(vectors: sparse.csr_array) -> FloatArray:
    """Return the share of time that the walk spends at each sentence.

    The sentences are rows of unit length or zero.  Links go from one to all whose
    cosine similarity exceeds 0.1.  Above 4000 sentences the walk goes along all
    similarities instead, in proportion to them (continuous LexRank), which takes no
    matrix of all pairs.
    """
    n = vectors.shape[0]
    if n <= _LARGEST_GRAPH:
        graph = sparse.csr_array(vectors @ vectors.T)
        graph.data = (graph.data > _THRESHOLD).astype(np.float64)
        graph.eliminate_zeros()
        left, right = graph, sparse.eye_array(n, format="csr")
    else:
        left, right = vectors, vectors.T.tocsr()
    degree = left @ (right @ np.ones(n))
    linked = degree > 0.0
    inverse = np.where(linked, 1.0 / np.where(linked, degree, 1.0), 0.0)
    rank = np.full(n, 1.0 / max(n, 1))
    for _ in range(_MAX_STEPS):
        # Symmetric links, so the walk against them is the walk along them.
        arrived = left @ (right @ (rank * inverse))
        lost = float(rank[~linked].sum())
        new = _JUMP / n + (1.0 - _JUMP) * (arrived + lost / n)
        change = float(np.abs(new - rank).sum())
        rank = new
        if change < _TOLERANCE:
            break
    return rank
