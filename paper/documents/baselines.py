r"""Summaries without learning, to compare with.

All of them choose among the candidates of a :class:`ClusterView`, whose tf-idf vectors
``f_i`` have unit length (or are zero), so that ``w_ij = f_i · f_j`` is the cosine
similarity.  The centroid is the mean of the ``f_i``.  None was tuned on any data.

================  ====================================================================
lead              the first document from its beginning, then the second, ...
lead round-robin  the first sentences of all documents, then the second ones, ...
centroid          the most similar to the centroid first, without those whose
                  similarity with a chosen one exceeds 0.7 [1]_
lexrank           the same, by LexRank [2]_
mmr               next is the largest ``0.5 f_j · c - 0.5 max_{i ∈ Y} w_ij``, with ``c``
                  the direction of the centroid and ``Y`` the chosen sentences [3]_
lin-bilmes        greedy on :class:`CoverageAndDiversity`, gain for cost [4]_ [5]_
k-means           as many clusters as sentences of average cost fit; of each the
                  sentence nearest to its centre, that of the largest cluster first
random            a random order, each with the same probability
================  ====================================================================

A sentence that does not fit into what is left of the budget is skipped.  Ties go to the
smaller number.

References
----------
.. [1] Radev, Jing, Styś, Tam. Centroid-based summarization of multiple documents. 2004.
.. [2] Erkan, Radev. LexRank: graph-based lexical centrality as salience in text
   summarization. 2004.
.. [3] Carbonell, Goldstein. The use of MMR, diversity-based reranking for reordering
   documents and producing summaries. SIGIR 1998.
.. [4] Lin, Bilmes. A class of submodular functions for document summarization.
   ACL 2011.
.. [5] Lin, Bilmes. Multi-document summarization via budgeted maximization of submodular
   functions. NAACL 2010.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from scipy import sparse

from variegate._typing import BoolArray, FloatArray, IntArray
from variegate.linalg.cosine import round_off
from variegate.text.budget import Budget
from variegate.text.cluster_view import ClusterView, lexrank

__all__ = ["BASELINES", "CoverageAndDiversity", "choose_within"]

#: From candidates, a budget and chance to the numbers of the chosen, in order.
Baseline: TypeAlias = Callable[[ClusterView, Budget, np.random.Generator], IntArray]

#: In "centroid" and "lexrank", what is more similar to a chosen sentence repeats it.
_REDUNDANT = 0.7

#: The weight of redundancy in "mmr"; the rest is that of relevance.
_TRADE_OFF = 0.5

#: Starts of k-means, of which the best counts.
_N_STARTS = 4


class CoverageAndDiversity:
    r"""The objective of Lin and Bilmes (2011) for a growing summary ``S``.

    .. math::

       f(S) = \sum_i \min\Big(\sum_{j \in S} w_{ij}, \frac{a}{N} \sum_j w_{ij}\Big)
       + \lambda \sum_k \sqrt{\sum_{j \in S \cap P_k} \frac{1}{N} \sum_i w_{ij}}

    Sentence ``i`` is covered by what is similar to it, up to a share ``a / N`` of all
    that is; and there is a reward for the first sentences of every cluster ``P_k``.
    Both parts are monotone and submodular.

    The ``w_ij`` are symmetric, none negative, (N, N); ``labels`` are the clusters of
    the sentences, from 0.  The defaults of ``saturation`` and ``weight``, ``a`` and
    ``λ``, are the usual ones for DUC 2004 and are not tuned again here.
    """

    def __init__(
        self,
        similarity: FloatArray,
        labels: IntArray,
        saturation: float = 5.0,
        weight: float = 6.0,
    ) -> None:
        self._similarity = similarity
        self._labels = labels
        self._weight = weight
        total = similarity.sum(axis=1)
        self._most = saturation / len(similarity) * total
        self._reward = total / len(similarity)
        self._covered = np.zeros(len(similarity))
        self._rewards = np.zeros(int(labels.max(initial=0)) + 1)

    @property
    def value(self) -> float:
        """The objective of the summary."""
        coverage = np.minimum(self._covered, self._most).sum()
        return float(coverage + self._weight * np.sqrt(self._rewards).sum())

    def gains(self, items: IntArray) -> FloatArray:
        """Return by how much each of some sentences would raise the objective."""
        room = self._most - self._covered
        is_open = np.flatnonzero(room > 0.0)
        more = np.minimum(
            self._similarity[np.ix_(is_open, items)], room[is_open, None]
        ).sum(axis=0)
        rewards = self._rewards[self._labels[items]]
        diversity = np.sqrt(rewards + self._reward[items]) - np.sqrt(rewards)
        return np.asarray(more + self._weight * diversity)

    def add(self, item: int) -> None:
        """Add a sentence."""
        self._covered = self._covered + self._similarity[:, item]
        self._rewards[self._labels[item]] += self._reward[item]


def choose_within(
    objective: CoverageAndDiversity,
    costs: FloatArray,
    limit: float,
    exponent: float = 0.3,
) -> list[int]:
    """Choose greedily by gain for cost, or one sentence if that alone is better.

    Algorithm 1 of Lin and Bilmes (2010).  The comparison with the best single sentence
    is what gives the greedy choice a guarantee.

    The objective is that of the empty summary, and is left with the greedy one.  Costs
    are positive, (N,), and those of the chosen, returned in the order of choice, add up
    to at most ``limit``.  A gain is divided by its cost to the power ``exponent``;
    1 favours short sentences.
    """
    chosen: list[int] = []
    spent = 0.0
    alone: tuple[float, int] | None = None
    free: BoolArray = np.ones(len(costs), dtype=bool)
    while True:
        items = np.flatnonzero(free & (spent + costs <= limit))
        if len(items) == 0:
            break
        gains = objective.gains(items)
        if alone is None:
            best = int(np.argmax(round_off(gains)))
            alone = float(gains[best]), int(items[best])
        item = int(items[np.argmax(round_off(gains / costs[items] ** exponent))])
        objective.add(item)
        chosen.append(item)
        free[item] = False
        spent += float(costs[item])
    if alone is not None and alone[0] > objective.value + 1e-12:
        return [alone[1]]
    return chosen


def _fill(
    order: Iterable[int],
    view: ClusterView,
    budget: Budget,
    similarity: FloatArray | None = None,
) -> IntArray:
    """Choose in order what fits and, given similarities, repeats nothing chosen."""
    costs = budget.costs(view.texts)
    chosen: list[int] = []
    spent = 0.0
    for item in order:
        if spent + costs[item] > budget.limit:
            continue
        if similarity is not None and (similarity[item, chosen] > _REDUNDANT).any():
            continue
        chosen.append(int(item))
        spent += float(costs[item])
    return np.array(sorted(chosen), dtype=np.intp)


def _similarity(view: ClusterView) -> FloatArray:
    vectors = view.vectors
    return round_off((vectors @ vectors.T).toarray())


def _to_centroid(view: ClusterView) -> FloatArray:
    vectors = view.vectors
    total = np.asarray(vectors.sum(axis=0)).ravel()
    length = float(np.linalg.norm(total))
    return round_off(vectors @ total / (length if length > 0.0 else 1.0))


def _by(score: FloatArray) -> IntArray:
    return np.argsort(-round_off(score), kind="stable")


def _clusters(
    vectors: sparse.csr_array, n_clusters: int, rng: np.random.Generator
) -> IntArray:
    """Return the cluster of each vector; some may be empty if vectors are the same."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    # KMeans takes short indices only.
    short = sparse.csr_array(
        (vectors.data, vectors.indices.astype(np.int32), vectors.indptr.astype("i4")),
        shape=vectors.shape,
    )
    model = KMeans(n_clusters, n_init=_N_STARTS, random_state=int(rng.integers(2**31)))
    # Several threads add up in an order that changes from run to run.
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore", ConvergenceWarning)
        return np.asarray(model.fit_predict(short), dtype=np.intp)


def _in_order(
    order: Callable[[ClusterView, np.random.Generator], IntArray],
    without_repeats: bool = False,
) -> Baseline:
    """Return what chooses in an order, perhaps without what repeats the chosen."""

    def choose(view: ClusterView, budget: Budget, rng: np.random.Generator) -> IntArray:
        similarity = _similarity(view) if without_repeats else None
        return _fill(order(view, rng), view, budget, similarity)

    return choose


def _mmr(view: ClusterView, budget: Budget, rng: np.random.Generator) -> IntArray:
    similarity, relevance = _similarity(view), _to_centroid(view)
    left, costs = budget.limit, budget.costs(view.texts)
    nearest = np.zeros(len(view))
    free: BoolArray = np.ones(len(view), dtype=bool)
    while (fits := free & (costs <= left)).any():
        score = round_off((1.0 - _TRADE_OFF) * relevance - _TRADE_OFF * nearest)
        item = int(np.argmax(np.where(fits, score, -np.inf)))
        free[item] = False
        left -= float(costs[item])
        np.maximum(nearest, similarity[item], out=nearest)
    return np.flatnonzero(~free)


def _lin_bilmes(
    view: ClusterView, budget: Budget, rng: np.random.Generator
) -> IntArray:
    n_clusters = max(1, round(0.2 * len(view)))
    labels = _clusters(view.vectors, n_clusters, rng)
    objective = CoverageAndDiversity(_similarity(view), labels)
    chosen = choose_within(objective, budget.costs(view.texts), budget.limit)
    return np.array(sorted(chosen), dtype=np.intp)


def _k_means(view: ClusterView, budget: Budget, rng: np.random.Generator) -> IntArray:
    vectors = view.vectors
    that_fit = int(budget.limit // budget.costs(view.texts).mean())
    labels = _clusters(vectors, min(max(1, that_fit), len(view)), rng)
    nearest = []
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        rows = vectors[members].toarray()
        distance = round_off(((rows - rows.mean(axis=0)) ** 2).sum(axis=1))
        nearest.append((-len(members), int(members[np.argmin(distance)])))
    return _fill([item for _, item in sorted(nearest)], view, budget)


#: What is defined at the top of this module, by name: from a view, a budget and a
#: generator to sorted numbers of candidates whose costs add up to at most the limit.
BASELINES: Mapping[str, Baseline] = MappingProxyType(
    {
        "lead": _in_order(lambda view, _: np.lexsort((view.position, view.document))),
        "lead round-robin": _in_order(
            lambda view, _: np.lexsort((view.document, view.position))
        ),
        "centroid": _in_order(lambda view, _: _by(_to_centroid(view)), True),
        "lexrank": _in_order(lambda view, _: _by(lexrank(view.vectors)), True),
        "mmr": _mmr,
        "lin-bilmes": _lin_bilmes,
        "k-means": _k_means,
        "random": _in_order(lambda view, rng: rng.permutation(len(view))),
    }
)
