"""Learn rivals of a model: a relevance by scikit-learn, then a method that uses it.

Whether an item is chosen is learned from its quality features alone, by a logistic
regression (on standardised features) and by gradient boosting of trees; the log-odds
are the relevance that "top", "mmr" and "dpp" of :func:`variegate.select` go by, with
all similarity features side by side.  How many items to choose, and the diversity of
"mmr" and "dpp", are those with the best mean F-score on the ground sets learned from,
where the relevance of each is predicted by a classifier fitted to others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse
from threadpoolctl import ThreadpoolController

from variegate._typing import BoolArray, FloatArray, IntArray, SubsetLike
from variegate.baselines.selecting import select
from variegate.baselines.units import n_competing
from variegate.decoding import Constraint
from variegate.ground_set import (
    GroundSet,
    check_ground_sets,
    check_subsets,
    name_position_in_errors,
)
from variegate.subsets import as_indicator

__all__ = ["LEARNERS", "ORDERINGS", "Ordering", "Rival", "learned_rivals"]

#: From quality features to the relevance of every item.
Relevance: TypeAlias = Callable[[FloatArray], FloatArray]

#: Methods that choose by a relevance, one item after the other.
METHODS = ("top", "mmr", "dpp")

#: Candidate diversities of "mmr" and "dpp".
DIVERSITIES = (0.5, 0.25, 0.75)

#: Parts of the ground sets, each predicted by a classifier fitted to the others.
_N_FOLDS = 5

#: Sizes above the largest wanted that are tried.
_MORE = 5

_threads = cache(ThreadpoolController)


def _make_logistic(seed: int) -> Any:
    """Return an unfitted logistic regression; ``seed`` is not used."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def _make_boosting(seed: int) -> Any:
    """Return an unfitted classifier by gradient boosting of trees."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=seed)


#: From a seed to an unfitted classifier.
#:
#: :meta hide-value:
LEARNERS: Mapping[str, Callable[[int], Any]] = {
    "logistic": _make_logistic,
    "boosting": _make_boosting,
}


@dataclass(frozen=True)
class Ordering:
    """A method of :func:`variegate.select` with its settings."""

    method: str
    diversity: float = 0.5
    seed: int = 0

    def __call__(
        self,
        embeddings: FloatArray,
        relevance: FloatArray | None = None,
        k: int | None = None,
        limit: Constraint | None = None,
        given: FloatArray | None = None,
    ) -> IntArray:
        """Return at most ``k`` item numbers, by default all, in the order of choice.

        ``given`` (G, D) are embeddings of items that are there already.  Items beyond
        the ``limit`` (its budget and ``at_most``) are skipped.  Of methods
        that choose one by one ("dpp", "mmr", "max-min" and "top"), the choice of fewer
        items is the beginning of the choice of more.
        """
        if k == 0:
            return np.zeros(0, dtype=np.intp)
        limits: dict[str, Any] = {}
        if limit is not None and limit.budget is not None:
            limits = {"budget": limit.budget, "costs": limit.costs}
        if limit is not None and (at_most := limit.at_most) is not None:
            numbers = at_most.room[at_most.labels[:, 0]].tolist()
            limits |= {"at_most": numbers, "per": list(at_most.labels)}
        if given is not None and len(given):
            limits["given"] = given
        return select(
            embeddings,
            relevance,
            len(embeddings) if k is None else k,
            self.method,
            diversity=self.diversity,
            random_state=self.seed,
            **limits,
        )


def f_of_first(wanted: BoolArray, order: IntArray, largest: int) -> FloatArray:
    """Return F-scores (largest,) of the first 1, 2, ... items of ``order``.

    ``order`` has item numbers, ``wanted`` (N,) is a mask.  Beyond the end of
    ``order``, all its items are scored.
    """
    n_wanted = int(wanted.sum())
    if len(order) == 0:
        return np.full(largest, float(n_wanted == 0))
    hits = np.cumsum(wanted[order])
    f = 2.0 * hits / (np.arange(1, len(order) + 1) + n_wanted)
    return np.pad(f, (0, largest - len(order)), mode="edge")


#: Every method that follows a relevance, with every diversity.
ORDERINGS = [
    Ordering(method, diversity)
    for method in METHODS
    for diversity in (DIVERSITIES[:1] if method == "top" else DIVERSITIES)
]


def f_by_ordering(
    ground_set: GroundSet,
    relevance: FloatArray,
    wanted: BoolArray,
    largest: int,
    orderings: Sequence[Ordering] = ORDERINGS,
    limit: Constraint | None = None,
) -> FloatArray:
    """Return F-scores (orderings, largest) of choices of 1, 2, ... candidates.

    ``relevance`` and the mask ``wanted`` are of the N candidates, the items that are
    not given; choices meet the ``limit``.  Sizes with the same number of competing
    items (``n_competing``), and so the same unit of relevance, share one call of each
    ordering.
    """
    features, given = candidate_embeddings(ground_set)
    found = np.empty((len(orderings), largest))
    start = 0
    while start < largest:
        end = min(n_competing(start + 1) // 2, largest)
        for row, order in enumerate(orderings):
            chosen = order(features, relevance, end, limit, given)
            found[row, start:end] = f_of_first(wanted, chosen, end)[start:]
        start = end
    return found


@dataclass(frozen=True, eq=False)
class Rival:
    """A learned relevance and a method, "top", "mmr" or "dpp", that goes by it.

    The relevance is a function from the quality features (N, d) to the log-odds (N,) to
    be chosen, all equal where the labels learned from were; ``k`` is the number of
    items to choose, and diversity is from 0 (relevance only) to 1 (diversity only).
    """

    relevance: Relevance
    method: str
    k: int
    diversity: float

    def __call__(self, ground_set: GroundSet) -> IntArray:
        """Return ``k`` item numbers in the order of choice, or all if fewer.

        Given items are not chosen.
        """
        relevance = self.relevance(ground_set.candidate_quality)
        ordering = Ordering(self.method, self.diversity)
        features, given = candidate_embeddings(ground_set)
        return ground_set.candidates[ordering(features, relevance, self.k, given=given)]


def learned_rivals(
    ground_sets: Sequence[GroundSet],
    subsets: Sequence[SubsetLike],
    seed: int = 0,
    *,
    budget: float | None = None,
) -> dict[str, Rival]:
    """Learn six rivals from the items that were chosen from ground sets.

    Parameters
    ----------
    ground_sets : sequence of GroundSet
        With the same features.  A single one is both learned from and predicted, so
        that the number of items to choose is that of its own subset.
    subsets : sequence of item numbers or boolean masks
    seed : int, default=0
        For the parts that the ground sets are put in, and for gradient boosting.
    budget : float, optional
        The largest cost of the chosen items together; ``k`` is the best within it.

    Returns
    -------
    dict from names such as "logistic + mmr" to Rival
        Call one with a ground set for the items it chooses.

    Examples
    --------
    >>> import numpy as np
    >>> import variegate as vg
    >>> from variegate.baselines.learned import learned_rivals
    >>> rng = np.random.default_rng(0)
    >>> examples = [vg.GroundSet(rng.standard_normal((9, 2))) for _ in range(30)]
    >>> wanted = [np.argsort(-one.quality[:, 0])[:3] for one in examples]
    >>> rivals = learned_rivals(examples, wanted)
    >>> rivals["logistic + top"].k
    3
    """
    examples = _check_examples(ground_sets, subsets, budget)
    largest = max(int(example.wanted.sum()) for example in examples) + _MORE
    rivals = {}
    for name, make in LEARNERS.items():
        predicted = _predict_out_of_fold(make, examples, seed)
        f = np.zeros((len(ORDERINGS), largest))
        for example, relevant in zip(examples, predicted, strict=True):
            ground_set, wanted, limit = example
            f += f_by_ordering(ground_set, relevant, wanted, largest, limit=limit)
        f /= len(examples)
        relevance = _learn_relevance(make, examples, seed)
        for method in METHODS:
            mine = [n for n, one in enumerate(ORDERINGS) if one.method == method]
            best, size = np.unravel_index(np.argmax(f[mine]), f[mine].shape)
            diversity = ORDERINGS[mine[best]].diversity
            rival = Rival(relevance, method, int(size) + 1, diversity)
            rivals[f"{name} + {method}"] = rival
    return rivals


def embeddings_of(ground_set: GroundSet) -> FloatArray:
    """Return all similarity features side by side, as a dense array (N, D)."""
    blocks = [
        block.toarray() if sparse.issparse(block) else block
        for block in ground_set.blocks.values()
    ]
    return np.asarray(blocks[0] if len(blocks) == 1 else np.column_stack(blocks))


def candidate_embeddings(
    ground_set: GroundSet,
) -> tuple[FloatArray, FloatArray | None]:
    """Return ``embeddings_of`` the candidates, and of the given items or None."""
    features = embeddings_of(ground_set)
    if not len(ground_set.given):
        return features, None
    return features[ground_set.candidates], features[ground_set.given]


class _Example(NamedTuple):
    """A ground set, and of its candidates the mask (N,) of wanted ones and the budget.

    The budget is a constraint.
    """

    ground_set: GroundSet
    wanted: BoolArray
    limit: Constraint | None


def _check_examples(
    ground_sets: Sequence[GroundSet],
    subsets: Sequence[SubsetLike],
    budget: float | None,
) -> list[_Example]:
    """Return checked examples of the lists; ValueError for a budget without costs."""
    ground_sets = check_ground_sets(ground_sets)
    examples = []
    for position, members in enumerate(check_subsets(subsets, ground_sets)):
        ground_set = ground_sets[position]
        candidates = ground_set.candidates
        wanted = as_indicator(members, len(ground_set))[candidates]
        limit = None
        if budget is not None:
            with name_position_in_errors(position):
                if ground_set.costs is None:
                    raise ValueError("a budget needs the costs of the items")
                costs = ground_set.costs[candidates]
                limit = Constraint.of(len(wanted), None, budget, costs)
        examples.append(_Example(ground_set, wanted, limit))
    return examples


def _learn_relevance(
    make: Callable[[int], Any], examples: Sequence[_Example], seed: int
) -> Relevance:
    """Return a function from quality features (N, d) to log-odds (N,) to be wanted.

    They are those of ``make(seed)``, fitted to the examples; zeros if all items of the
    examples are wanted, or none.
    """
    y = np.concatenate([example.wanted for example in examples])
    if y.all() or not y.any():
        return _LogOdds(None)
    X = np.concatenate([example.ground_set.candidate_quality for example in examples])
    classifier = make(seed)
    with _limit_to_one_thread():
        classifier.fit(X, y)
    return _LogOdds(classifier)


@dataclass(frozen=True, eq=False)
class _LogOdds:
    """The log-odds of a fitted classifier; zeros without one."""

    classifier: Any

    def __call__(self, quality: FloatArray) -> FloatArray:
        """Return the log-odds (N,) of items to be chosen, from features (N, d)."""
        if self.classifier is None:
            return np.zeros(len(quality))
        with _limit_to_one_thread():
            return np.asarray(self.classifier.decision_function(quality))


def _limit_to_one_thread() -> Any:
    """Return a context manager that holds OpenMP to one thread."""
    # On a busy machine threads wait for each other, at every split of a tree.
    return _threads().limit(limits=1, user_api="openmp")


def _predict_out_of_fold(
    make: Callable[[int], Any], examples: Sequence[_Example], seed: int
) -> list[FloatArray]:
    """Return the log-odds (N,) of the candidates of each example, from fits to others.

    Classifiers are made by ``make(seed)``; a single example is predicted from itself.
    """
    n_folds = min(_N_FOLDS, len(examples))
    fold = np.random.default_rng(seed).permutation(len(examples)) % n_folds
    relevances: list[FloatArray] = [np.zeros(0)] * len(examples)
    for number in range(n_folds):
        own = np.flatnonzero(fold == number).tolist()
        others = [examples[k] for k in np.flatnonzero(fold != number).tolist()]
        # One by itself has no others.
        relevance = _learn_relevance(make, others or examples, seed)
        qualities = [examples[k].ground_set.candidate_quality for k in own]
        # All at once: a call takes longer than most items.
        ends = np.cumsum([*map(len, qualities)])
        parts = np.split(relevance(np.concatenate(qualities)), ends[:-1])
        for k, part in zip(own, parts, strict=True):
            relevances[k] = part
    return relevances
