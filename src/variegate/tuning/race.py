r"""Which similarity to learn with, told by ground sets that were not learned from.

Contenders are fitted on part of the data and judged, by their F-scores, on the rest,
one part after another.  After each part those are given up that are behind the leader
by more than chance explains, on the same ground sets, so that most of the time goes
into those that may win.

Among the contenders stands what two lines of scikit-learn and an untrained diversifier
do: a logistic regression of which items were wanted, and then, by similarities that
nobody learned, a fixed number of items (:mod:`variegate.baselines`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from variegate import metrics
from variegate._typing import FloatArray, IntArray
from variegate.baselines import select
from variegate.estimator import LargeMarginDPP
from variegate.ground_set import GroundSet

__all__ = ["Contender", "Learned", "Race", "Standing", "TwoStage"]

#: Contenders further behind the leader than so many standard errors are given up.
_CLEARLY_BEHIND = 1.5

#: Numbers of items that a fixed choice is tried with, at most.
_MOST_ITEMS = 60


class Contender(Protocol):
    """Something that learns from part of the data and chooses from the rest."""

    name: str

    def fit(
        self, ground_sets: Sequence[GroundSet], subsets: Sequence[IntArray]
    ) -> Contender:
        """Return it fitted."""
        ...

    def scores(
        self, ground_sets: Sequence[GroundSet], subsets: Sequence[IntArray]
    ) -> dict[int | None, FloatArray]:
        """Return the F-score of every ground set, by the number of items chosen.

        ``None`` stands for as many as the contender thinks fit.
        """
        ...


@dataclass(frozen=True, eq=False)
class Learned:
    """A model to be learned.

    Attributes
    ----------
    name : str
    model : LargeMarginDPP
    """

    name: str
    model: LargeMarginDPP

    def fit(
        self, ground_sets: Sequence[GroundSet], subsets: Sequence[IntArray]
    ) -> Learned:
        """Learn."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return Learned(self.name, clone(self.model).fit(ground_sets, subsets))

    def scores(
        self, ground_sets: Sequence[GroundSet], subsets: Sequence[IntArray]
    ) -> dict[int | None, FloatArray]:
        """Return F-scores of what the model chooses by itself."""
        pairs = zip(self.model.predict(ground_sets), subsets, strict=True)
        return {None: np.array([metrics.f_score(*pair) for pair in pairs])}


@dataclass(frozen=True, eq=False)
class TwoStage:
    """Logistic regression, then an untrained method and a fixed number of items.

    Attributes
    ----------
    method : str
        Of :func:`variegate.select`.
    regression : fitted LogisticRegression, or None
    """

    method: str
    regression: Any = None

    @property
    def name(self) -> str:
        """What it is called."""
        return f"logistic regression, then {self.method}"

    def fit(
        self, ground_sets: Sequence[GroundSet], subsets: Sequence[IntArray]
    ) -> TwoStage:
        """Learn which items are wanted, one by one."""
        return TwoStage(self.method, regression_of(ground_sets, subsets))

    def scores(
        self, ground_sets: Sequence[GroundSet], subsets: Sequence[IntArray]
    ) -> dict[int | None, FloatArray]:
        """Return F-scores of every number of items, by one order of choice."""
        most = min(_MOST_ITEMS, max(len(ground_set) for ground_set in ground_sets))
        table = np.array(
            [
                f_by_number(self.order(ground_set, most), wanted, most)
                for ground_set, wanted in zip(ground_sets, subsets, strict=True)
            ]
        )
        return {k + 1: table[:, k] for k in range(most)}

    def order(self, ground_set: GroundSet, most: int) -> IntArray:
        """Return items in the order of choice."""
        relevance = self.regression.decision_function(ground_set.quality)
        return select(
            all_features(ground_set),
            relevance,
            k=min(most, len(ground_set)),
            method=self.method,
        )


def regression_of(ground_sets: Sequence[GroundSet], subsets: Sequence[IntArray]) -> Any:
    """Return a logistic regression of which items are wanted."""
    from sklearn.linear_model import LogisticRegression  # slow to import

    X = np.concatenate([ground_set.quality for ground_set in ground_sets])
    y = np.concatenate(
        [
            np.isin(np.arange(len(ground_set)), wanted)
            for ground_set, wanted in zip(ground_sets, subsets, strict=True)
        ]
    )
    return LogisticRegression(max_iter=1000).fit(X, y)


def all_features(ground_set: GroundSet) -> FloatArray:
    """Return the similarity features of all blocks side by side, as an array."""
    blocks = [ground_set.features(name) for name in ground_set.blocks]
    dense = [
        block.toarray() if hasattr(block, "toarray") else block for block in blocks
    ]
    return np.concatenate(dense, axis=1)


def f_by_number(order: IntArray, wanted: IntArray, most: int) -> FloatArray:
    """Return the F-scores of the first 1, 2, ..., ``most`` items of an order.

    Where there are fewer items, all of them are chosen.
    """
    hits = np.cumsum(np.isin(order, wanted))
    f = 2.0 * hits / (np.arange(1, len(order) + 1) + len(wanted))
    return np.concatenate([f, np.full(most - len(f), f[-1])])


@dataclass(eq=False)
class Standing:
    """How a contender has done so far.

    Attributes
    ----------
    contender : Contender
    scores : dict from number of items to list of arrays
        F-scores of ground sets, one array for each part that was judged.
    """

    contender: Contender
    scores: dict[int | None, list[FloatArray]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What the contender is called."""
        return self.contender.name

    @property
    def n_parts(self) -> int:
        """The number of parts that it was judged on."""
        return max((len(parts) for parts in self.scores.values()), default=0)

    @property
    def k(self) -> int | None:
        """The number of items that it does best with."""
        return max(self.scores, key=lambda k: float(np.mean(self._all(k))))

    def _all(self, k: int | None) -> FloatArray:
        return np.concatenate(self.scores[k])

    @property
    def f(self) -> FloatArray:
        """F-scores of all ground sets so far, with its best number of items."""
        return self._all(self.k)

    def add(self, scores: dict[int | None, FloatArray]) -> None:
        """Take the scores of one more part."""
        for k, values in scores.items():
            self.scores.setdefault(k, []).append(values)
        full = self.n_parts
        self.scores = {k: v for k, v in self.scores.items() if len(v) == full}


@dataclass(eq=False)
class Race:
    """Contenders, judged part by part.

    Parameters
    ----------
    contenders : sequence of Contender
    progress : callable, optional
        Called with the numbers of fits that are done and of all at most.
    """

    contenders: Sequence[Contender]
    progress: Callable[[int, int], object] | None = None
    standings: list[Standing] = field(default_factory=list)

    def run(
        self,
        ground_sets: Sequence[GroundSet],
        subsets: Sequence[IntArray],
        parts: Sequence[tuple[IntArray, IntArray]],
    ) -> Standing:
        """Judge on the second of each pair of positions; return the best at the end."""
        self.standings = [Standing(contender) for contender in self.contenders]
        running = list(self.standings)
        total = len(running) * len(parts)
        done = 0
        for train, held_out in parts:
            for standing in running:
                fitted = standing.contender.fit(
                    [ground_sets[i] for i in train], [subsets[i] for i in train]
                )
                standing.add(
                    fitted.scores(
                        [ground_sets[i] for i in held_out],
                        [subsets[i] for i in held_out],
                    )
                )
                done += 1
                if self.progress is not None:
                    self.progress(done, total)
            running = _still_running(running)
            total = done + len(running) * (total // max(len(self.standings), 1))
        return max(running, key=lambda standing: float(standing.f.mean()))

    def differences(self, winner: Standing) -> dict[str, tuple[float, float]]:
        """Return how far each is behind the winner, and its standard error.

        On the ground sets that it was judged on.
        """
        return {
            standing.name: _paired(winner.f[: len(standing.f)], standing.f)
            for standing in self.standings
            if standing is not winner
        }


def _paired(one: FloatArray, other: FloatArray) -> tuple[float, float]:
    """Return the mean difference and its standard error."""
    less = one - other
    error = float(less.std(ddof=1) / np.sqrt(len(less))) if len(less) > 1 else np.inf
    return float(less.mean()), error


def _still_running(running: list[Standing]) -> list[Standing]:
    """Leave out who is clearly behind the leader."""
    leader = max(running, key=lambda standing: float(standing.f.mean()))
    kept = []
    for standing in running:
        behind, error = _paired(leader.f, standing.f)
        if standing is leader or behind <= _CLEARLY_BEHIND * error:
            kept.append(standing)
    return kept
