"""A race of contenders on held-out ground sets: learned DPPs and a regression.

All contenders are fitted on the same parts of the data and judged on the rest.  After
each part, those that are clearly behind the leader drop out, so that most of the time
goes to those that are close.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from variegate import metrics
from variegate._progress import Progress, ignore
from variegate._typing import BoolArray, FloatArray, IntArray
from variegate.baselines.learned import (
    ORDERINGS,
    Ordering,
    embeddings_of,
    f_of_first,
)
from variegate.decoding import Decoder
from variegate.decoding.residuals import ranked
from variegate.estimator import LargeMarginDPP
from variegate.ground_set import GroundSet, naming, renumbering
from variegate.learning.problem import SharedExamples
from variegate.tuning.family import OmegaFamily
from variegate.tuning.held_out import Fold, paired

#: Standard errors behind the leader at which a contender drops out.
DROPPED_AT = 1.5

#: A rule that comes first is taken if it is no more standard errors behind the best.
AS_GOOD = 0.5


class Rule(NamedTuple):
    """How items are chosen: by a decoder, or by a method of :func:`variegate.select`.

    ``k`` is their number, None where the model decides.
    """

    how: str | Decoder | Ordering
    k: int | None = None


class Contender(Protocol):
    """A chooser that learns from examples."""

    @property
    def name(self) -> str:
        """The name in reports."""

    def fit(self, examples: SharedExamples, part: int) -> Any:
        """Learn from the data without the part with this number.

        Returns an object with a method ``scores(ground_sets, wanted)``: the F-score of
        every ground set, by rule; mildest rules first.
        """


@dataclass(frozen=True, eq=False)
class Standing:
    """How a contender did, with the rule that suits it best."""

    contender: Contender
    rule: Rule
    #: F-scores of the held-out ground sets, those of the first part first.
    scores: FloatArray
    #: Mean score of the winner less that of this one, on the same ground sets, and the
    #: standard error of that difference; NaN where there is one ground set.
    behind: float
    behind_error: float
    #: The fitted contender of each part.
    judged: list[Any]

    @property
    def name(self) -> str:
        """The name of the contender."""
        return self.contender.name

    @property
    def mean(self) -> float:
        """The mean F-score."""
        return float(self.scores.mean())


@dataclass(eq=False)
class Race:
    """Several contenders on the same data, of which parts are held out in turn.

    ``progress`` is called with "comparing" and the numbers of finished and all fits.
    """

    ground_sets: Sequence[GroundSet]
    subsets: Sequence[IntArray]
    n_parts: int = 3
    seed: int = 0
    progress: Progress = ignore
    parts: list[Fold] = field(init=False)

    def __post_init__(self) -> None:
        """Divide the data."""
        n_sets = len(self.ground_sets)
        if n_sets < 2:
            raise ValueError(f"a race needs two ground sets at least, got {n_sets}")
        order = np.random.default_rng(self.seed).permutation(n_sets)
        pieces = np.array_split(order, min(self.n_parts, n_sets))
        self.parts = [
            Fold.of(self.ground_sets, self.subsets, np.setdiff1d(order, piece), piece)
            for piece in map(np.sort, pieces)
        ]

    def run(
        self,
        contenders: Sequence[Contender],
        most: int | None = None,
        keep: Sequence[str] = (),
    ) -> list[Standing]:
        """Return how all contenders did, the winner first.

        After each part those that are clearly behind drop out, so that at ``most`` so
        many go on, besides those whose names are in ``keep``.
        """
        runners = [_Runner(contender) for contender in contenders]
        racing, n_fits, n_done = runners, len(self.parts) * len(runners), 0
        for number, part in enumerate(self.parts):
            shared = part.shared()
            for runner in racing:
                runner.run(part, shared)
                n_done += 1
                self.progress("comparing", n_done, n_fits)
            left = len(self.parts) - number - 1
            going_on = _still_racing(racing)[:most]
            kept = [runner for runner in racing if runner.contender.name in keep]
            racing = going_on + [runner for runner in kept if runner not in going_on]
            n_fits = n_done + left * len(racing)
        winner = max(racing, key=lambda runner: runner.mean)
        ended = [runner.standing(winner) for runner in runners]
        return sorted(
            ended,
            key=lambda one: (one.contender is not winner.contender, one.behind),
        )


@dataclass(eq=False)
class _Runner:
    """A contender on the way."""

    contender: Contender
    judged: list[Any] = field(default_factory=list)
    found: dict[Rule, list[FloatArray]] = field(default_factory=dict)

    def run(self, part: Fold, shared: SharedExamples) -> None:
        with renumbering(part.learned):
            judged = self.contender.fit(shared, len(self.judged))
        with renumbering(part.held_out):
            scores = judged.scores(part.judged, part.wanted)
        for rule, values in scores.items():
            self.found.setdefault(rule, []).append(values)
        self.judged.append(judged)

    def scores(self) -> tuple[Rule, FloatArray]:
        """Return the best rule and its scores; of rules as good, the first."""
        table = {rule: np.concatenate(parts) for rule, parts in self.found.items()}
        best = max(table.values(), key=lambda scores: float(scores.mean()))
        for rule, scores in table.items():
            mean, error = paired(best, scores)
            if mean <= AS_GOOD * error or mean == 0.0:
                return rule, scores
        raise AssertionError("the best rule is as good as itself")

    @property
    def mean(self) -> float:
        return float(self.scores()[1].mean())

    def standing(self, winner: _Runner) -> Standing:
        rule, scores = self.scores()
        behind, error = paired(winner.scores()[1][: len(scores)], scores)
        return Standing(self.contender, rule, scores, behind, error, self.judged)


def _still_racing(runners: Sequence[_Runner]) -> list[_Runner]:
    """Return the runners that are not clearly behind, the best first."""
    runners = sorted(runners, key=lambda runner: -runner.mean)
    first = runners[0].scores()[1]
    left = []
    for runner in runners:
        behind, error = paired(first, runner.scores()[1])
        if not behind > DROPPED_AT * error or np.isnan(error):
            left.append(runner)
    return left


# Contenders ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LearnedDPP:
    """A large-margin DPP, chosen from by its decoders, or a fixed number greedily."""

    name: str
    model: LargeMarginDPP
    #: For choices of as many items as the model finds right.
    decoders: Sequence[str | Decoder]
    #: The largest fixed number of items that is tried; 0 for none.
    largest: int = 0
    #: Fitted models to start from, one for each part of the data, if any.
    starts: Sequence[LargeMarginDPP] = ()

    def fit(self, examples: SharedExamples, part: int) -> _FittedDPP:
        """Learn, where there are starts from one of them."""
        model = clone(self.model)
        if self.starts:
            model = copy.copy(self.starts[part])
            settings = self.model.get_params(deep=False)
            model.set_params(**settings | {"warm_start": True})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(examples)
        return _FittedDPP(model, self.decoders, self.largest)

    def family(
        self, omegas: Sequence[float], ground_sets: Any, subsets: Any, **others: Any
    ) -> OmegaFamily:
        """Learn a model for each omega."""
        return OmegaFamily.fit(self.model, omegas, ground_sets, subsets, **others)


@dataclass(frozen=True, eq=False)
class _FittedDPP:
    model: LargeMarginDPP
    decoders: Sequence[str | Decoder]
    largest: int

    def scores(
        self, ground_sets: Sequence[GroundSet], wanted: Sequence[IntArray]
    ) -> dict[Rule, FloatArray]:
        """Return F-scores by decoder, then by the number of items."""
        rows = []
        for position, pair in enumerate(zip(ground_sets, wanted, strict=True)):
            with naming(position):
                rows.append(self._row(*pair))
        rules = [Rule(decoder) for decoder in self.decoders]
        rules += [Rule("greedy", k) for k in range(1, self.largest + 1)]
        return dict(zip(rules, np.array(rows).T, strict=True))

    def _row(self, ground_set: GroundSet, wanted: IntArray) -> list[float]:
        ensemble = self.model.ensemble(ground_set)
        row = [
            metrics.f_score(ensemble.decode(decoder, random_state=0).indices, wanted)
            for decoder in self.decoders
        ]
        order = ranked(ensemble, np.arange(len(ground_set)), self.largest)
        if self.largest:
            row += f_of_first(
                is_wanted(ground_set, wanted), order, self.largest
            ).tolist()
        return row


@dataclass(frozen=True, eq=False)
class TwoStage:
    """A logistic regression of scikit-learn, and an untrained diversifier.

    Relevance is the logit of a logistic regression of what was chosen on the quality
    features; then :func:`variegate.select` chooses a fixed number of items.
    """

    #: The largest number of items that is tried.
    largest: int
    #: The model that :meth:`family` fits, with the regression for a quality.
    model: LargeMarginDPP
    name: str = "logistic regression"

    def fit(self, examples: SharedExamples, part: int) -> _FittedTwoStage:
        """Regress."""
        direction = _regression(
            [one.ground_set for one in examples],
            [one.members for one in examples],
        )
        return _FittedTwoStage(direction, self.largest)

    def family(
        self, omegas: Sequence[float], ground_sets: Any, subsets: Any, **others: Any
    ) -> OmegaFamily:
        """Learn a DPP for each omega whose quality is a multiple of the logit.

        How much it counts against the similarity, and how many items that makes, is
        learned; the direction of ``θ`` is that of the regression.
        """
        direction = _regression(ground_sets, subsets)
        along = [
            GroundSet((gs.quality @ direction)[:, None], gs.similarity)
            for gs in ground_sets
        ]
        family = OmegaFamily.fit(self.model, omegas, along, subsets, **others)
        for model in family.models:
            model.theta_ = model.theta_[0] * direction
            model.n_features_in_ = len(direction)
        return family


@dataclass(frozen=True, eq=False)
class _FittedTwoStage:
    direction: FloatArray
    largest: int

    def scores(
        self, ground_sets: Sequence[GroundSet], wanted: Sequence[IntArray]
    ) -> dict[Rule, FloatArray]:
        """Return F-scores by method and number of items."""
        methods = ORDERINGS
        curves = np.empty((len(methods), len(ground_sets), self.largest))
        for place, ground_set in enumerate(ground_sets):
            relevance = ground_set.quality @ self.direction
            features = embeddings_of(ground_set)
            flags = is_wanted(ground_set, wanted[place])
            for number, method in enumerate(methods):
                order = method(features, relevance, self.largest)
                curves[number, place] = f_of_first(flags, order, self.largest)
        return {
            Rule(method, k + 1): curve
            for method, table in zip(methods, curves, strict=True)
            for k, curve in enumerate(table.T)
        }


def _regression(
    ground_sets: Sequence[GroundSet], subsets: Sequence[IntArray]
) -> FloatArray:
    """Return the direction of a logistic regression of what was chosen."""
    from sklearn.linear_model import LogisticRegression  # slow to import

    X = np.concatenate([ground_set.quality for ground_set in ground_sets])
    chosen = np.concatenate(list(map(is_wanted, ground_sets, subsets)))
    scale = X.std(axis=0)
    scale[scale == 0.0] = 1.0
    if chosen.all() or not chosen.any():
        return np.zeros(X.shape[1])
    centred = (X - X.mean(axis=0)) / scale
    found = LogisticRegression(max_iter=1000).fit(centred, chosen)
    return np.asarray(found.coef_[0] / scale, dtype=np.float64)


def is_wanted(ground_set: GroundSet, wanted: IntArray) -> BoolArray:
    """Return a flag for every item."""
    flags = np.zeros(len(ground_set), dtype=bool)
    flags[wanted] = True
    return flags
