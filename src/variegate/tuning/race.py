"""A race of contenders on held-out ground sets: learned DPPs and a regression.

Parts of the data are held out in turn: contenders are fitted to the rest and scored on
the part.  After each part, those that are clearly behind the leader drop out.  ``part``
is the number of such a part, from 0, or its :class:`Fold`.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from variegate import metrics
from variegate._progress import Progress, ignore
from variegate._typing import FloatArray, IntArray
from variegate.baselines.learned import Ordering, f_by_ordering, f_of_first
from variegate.decoding import Decoder
from variegate.decoding.residuals import rank_members
from variegate.ensemble import LEnsemble
from variegate.estimator import AllAlikeWarning, LargeMarginDPP
from variegate.ground_set import (
    GroundSet,
    map_positions_in_errors,
    name_position_in_errors,
)
from variegate.learning.problem import SharedExamples
from variegate.subsets import as_indicator
from variegate.tuning.boosting import boosted_fold
from variegate.tuning.family import fit_by_steps
from variegate.tuning.held_out import Fold, not_clearly_behind, paired_difference

#: Of the rules of a contender, the first that is at most this many standard errors
#: behind the best is taken.
AS_GOOD = 0.5

#: Standard errors behind the best at which a rule is not tried on further parts.  There
#: are dozens of rules: the best of them is partly so by luck.
RULE_DROPPED_AT = 3.0


class Rule(NamedTuple):
    """How items are chosen: by a decoder, or by a method of :func:`variegate.select`.

    ``k`` is the number of items to choose, None where the decoder decides.
    """

    how: str | Decoder | Ordering
    k: int | None = None


class Contender(Protocol):
    """A model to be fitted and compared, with the rules that may choose items by it."""

    @property
    def name(self) -> str:
        """The name in reports."""

    @property
    def rules(self) -> Sequence[Rule]:
        """The rules to be judged by; of equally good ones the first is taken."""

    def fit(self, examples: SharedExamples, part: int) -> Any:
        """Return a model for ``scores``, fitted to ``examples``, all but the part."""

    def scores(
        self, fitted: Any, ground_sets: Sequence[GroundSet], wanted: Sequence[IntArray]
    ) -> dict[Rule, FloatArray]:
        """Return each rule's F-scores (ground sets,) against the subsets ``wanted``."""


@dataclass(eq=False)
class Standing:
    """The fits and scores of a contender so far, with the rule that suits it best."""

    #: A ``Contender``, with those of its rules that have not been dropped.
    contender: Any
    #: Fitted models, one for each part it was scored on.
    fitted: list[Any] = field(default_factory=list)
    #: By rule, F-scores of all ground sets held out so far, the first part's first.
    by_rule: dict[Rule, FloatArray] = field(default_factory=dict)
    #: Mean score of the winner less that of this one, on the same ground sets, and the
    #: standard error of that difference, NaN for one ground set.  Both are NaN until
    #: :meth:`Race.run` ends.
    behind: float = np.nan
    behind_error: float = np.nan

    @property
    def name(self) -> str:
        """The name of the contender."""
        return str(self.contender.name)

    @property
    def rule(self) -> Rule:
        """The first rule at most ``AS_GOOD`` standard errors behind the best."""
        return self._best_rule()[0]

    @property
    def scores(self) -> FloatArray:
        """F-scores of ``rule`` on all ground sets held out so far."""
        return self._best_rule()[1]

    @property
    def mean(self) -> float:
        """The mean of ``scores``."""
        return float(self.scores.mean())

    def fit_and_score(self, part: Fold, examples: SharedExamples) -> None:
        """Fit the contender to ``examples``, score it on ``part``, drop weak rules.

        Adds to ``fitted`` and ``by_rule``, in place; a rule is dropped when it is
        ``RULE_DROPPED_AT`` standard errors behind the contender's best.
        """
        with map_positions_in_errors(part.learned):
            fitted = self.contender.fit(examples, len(self.fitted))
        with map_positions_in_errors(part.held_out):
            found = self.contender.scores(fitted, part.judged, part.wanted)
        found = {rule: part.mean_by_unit(scores) for rule, scores in found.items()}
        if known := self.by_rule:
            found = {rule: np.append(known[rule], found[rule]) for rule in known}
        left = set(not_clearly_behind(found, RULE_DROPPED_AT))
        self.by_rule = {rule: found[rule] for rule in found if rule in left}
        self.contender = replace(self.contender, rules=list(self.by_rule))
        self.fitted.append(fitted)

    def _best_rule(self) -> tuple[Rule, FloatArray]:
        """Return ``rule`` and its F-scores."""
        best = max(self.by_rule.values(), key=lambda scores: float(scores.mean()))
        for rule, scores in self.by_rule.items():
            mean, error = paired_difference(best, scores)
            if mean <= AS_GOOD * error or mean == 0.0:
                return rule, scores
        raise AssertionError("the best rule is as good as itself")


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
    #: A label for each ground set; those of one label stay in one part.
    groups: Any = None
    parts: list[Fold] = field(init=False)
    #: The examples to learn from for each part.
    examples: list[SharedExamples] = field(init=False)

    def __post_init__(self) -> None:
        """Divide data at random into ``n_parts`` or, if fewer, a part for each set."""
        n_sets = len(self.ground_sets)
        labels = np.arange(n_sets)
        if self.groups is not None:
            labels = np.unique(self.groups, return_inverse=True)[1]
            n_sets = int(labels.max(initial=-1)) + 1
        if n_sets < 2:
            raise ValueError(f"a race needs two ground sets at least, got {n_sets}")
        order = np.random.default_rng(self.seed).permutation(n_sets)
        pieces = np.array_split(order, min(self.n_parts, n_sets))
        self.parts = [
            Fold(
                self.ground_sets,
                self.subsets,
                np.flatnonzero(~is_held_out),
                np.flatnonzero(is_held_out),
                labels,
            )
            for piece in pieces
            for is_held_out in [np.isin(labels, piece)]
        ]
        self.examples = [part.shared_examples() for part in self.parts]

    def run(
        self,
        contenders: Sequence[Contender],
        most: int | None = None,
        keep: Sequence[str] = (),
    ) -> list[Standing]:
        """Return the standings of all contenders, the winner first, then by ``behind``.

        After each part, contenders clearly behind the leader drop out; at most ``most``
        of the others continue, all for None.  Those whose names are in ``keep`` also
        continue if they are not clearly behind the best one in ``keep``.  The winner
        has the best mean of those scored on all parts.
        """
        standings = [Standing(contender) for contender in contenders]
        racing, n_fits, n_done = standings, len(self.parts) * len(standings), 0
        for number, part in enumerate(self.parts):
            examples = self.examples[number]
            for standing in racing:
                standing.fit_and_score(part, examples)
                n_done += 1
                self.progress("comparing", n_done, n_fits)
            examples.release_prepared()
            left = len(self.parts) - number - 1
            kept = _leaders(one for one in racing if one.name in keep)
            racing = list(dict.fromkeys([*_leaders(racing)[:most], *kept]))
            n_fits = n_done + left * len(racing)
        return rank_standings(standings, max(racing, key=lambda one: one.mean))

    def with_boosting(self) -> Race:
        """Return a race on the same parts, with boosted log-odds as a last feature."""
        other = copy.copy(self)
        other.parts = [boosted_fold(part, self.seed) for part in self.parts]
        other.examples = [part.shared_examples() for part in other.parts]
        return other


def rank_standings(standings: Iterable[Standing], winner: Standing) -> list[Standing]:
    """Return the winner, then the others by ``behind``, which is set in each here."""
    standings, best = list(standings), winner.scores
    for standing in standings:
        scores = standing.scores
        standing.behind, standing.behind_error = paired_difference(
            best[: len(scores)], scores
        )
    return sorted(standings, key=lambda one: (one is not winner, one.behind))


def _leaders(standings: Iterable[Standing]) -> list[Standing]:
    """Return the standings that are not clearly behind the best, the best first."""
    return not_clearly_behind({standing: standing.scores for standing in standings})


# Contenders ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LearnedDPP:
    """A contender: a large-margin DPP, with decoders and greedy choices of k items.

    A rule with ``k`` chooses greedily, whatever its ``how``.
    """

    name: str
    model: LargeMarginDPP
    rules: Sequence[Rule]
    #: Fitted models to start from, one for each part of the data, or none at all.
    starts: Sequence[LargeMarginDPP] = ()

    def fit(self, examples: SharedExamples, part: int) -> LargeMarginDPP:
        """Return a model fitted to ``examples``, from ``starts[part]`` if there."""
        model: Any = clone(self.model)
        if self.starts:
            model = copy.copy(self.starts[part])
            settings = self.model.get_params(deep=False)
            model.set_params(**settings | {"warm_start": True})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", AllAlikeWarning)  # few of many are kept
            fitted: LargeMarginDPP = model.fit(examples)
        return fitted

    def scores(
        self,
        fitted: LargeMarginDPP,
        ground_sets: Sequence[GroundSet],
        wanted: Sequence[IntArray],
    ) -> dict[Rule, FloatArray]:
        """Return the F-scores (ground sets,) of each rule's choices by ``fitted``."""
        largest = max(rule.k or 0 for rule in self.rules)
        rows = []
        for position, ground_set in enumerate(ground_sets):
            with name_position_in_errors(position):
                ensemble = fitted.ensemble(ground_set)
                # Numbers among the candidates, as given items are never chosen.
                members = np.searchsorted(ensemble.items, wanted[position])
                items = np.arange(len(ensemble))
                order = rank_members(ensemble, items, largest)
                by_size = f_of_first(as_indicator(members, len(items)), order, largest)
                rows.append(
                    [
                        by_size[rule.k - 1]
                        if rule.k
                        else metrics.f_score(_decode(ensemble, rule), members)
                        for rule in self.rules
                    ]
                )
        return dict(zip(self.rules, np.array(rows).T, strict=True))

    def learn(self, omega: float, ground_sets: Any, subsets: Any) -> LargeMarginDPP:
        """Return the model fitted for an omega to ground sets and wanted items."""
        return fit_by_steps(self.model, omega, ground_sets, subsets)


def _decode(ensemble: LEnsemble, rule: Any) -> IntArray:
    """Return positions of items chosen by a rule whose ``how`` is a decoder."""
    return ensemble.decode(rule.how, random_state=0).indices


@dataclass(frozen=True, eq=False)
class TwoStage:
    """A logistic regression of scikit-learn, and an untrained diversifier.

    Relevance is the logit of a logistic regression of choices on the quality
    features; then :func:`variegate.select` chooses a fixed number of items.
    """

    #: The model that :meth:`learn` fits, with the regression's logit for its feature.
    model: LargeMarginDPP
    #: Pairs of an ``Ordering`` and a number of items.
    rules: Sequence[Rule]
    name: str = "logistic regression"

    def fit(self, examples: SharedExamples, part: int) -> FloatArray:
        """Return the regression's coefficients (features,); ``part`` is not used."""
        _, ground_sets, subsets, *_ = zip(*examples, strict=True)
        return _regression_direction(ground_sets, subsets)

    def scores(
        self,
        fitted: FloatArray,
        ground_sets: Sequence[GroundSet],
        wanted: Sequence[IntArray],
    ) -> dict[Rule, FloatArray]:
        """Return each rule's F-scores (ground sets,), by coefficients ``fitted``."""
        orderings: Any = list(dict.fromkeys(rule.how for rule in self.rules))
        largest = max(rule.k or 0 for rule in self.rules)
        curves = []
        for ground_set, members in zip(ground_sets, wanted, strict=True):
            relevance = ground_set.candidate_quality @ fitted
            flags = as_indicator(members, len(ground_set))[ground_set.candidates]
            curves.append(
                f_by_ordering(ground_set, relevance, flags, largest, orderings)
            )
        table = np.array(curves)
        return {
            rule: table[:, orderings.index(rule.how), (rule.k or 0) - 1]
            for rule in self.rules
        }

    def learn(self, omega: float, ground_sets: Any, subsets: Any) -> LargeMarginDPP:
        """Return a fitted DPP, its ``θ`` a multiple of the regression's coefficients.

        The length of ``θ``, the intercept and the kernel's parameters are learned.
        """
        direction = _regression_direction(ground_sets, subsets)
        along = [
            GroundSet((gs.quality @ direction)[:, None], gs.similarity, given=gs.given)
            for gs in ground_sets
        ]
        model = fit_by_steps(self.model, omega, along, subsets)
        model.theta_ = model.theta_[0] * direction
        model.n_features_in_ = len(direction)
        return model


def _regression_direction(
    ground_sets: Sequence[GroundSet], subsets: Sequence[IntArray]
) -> FloatArray:
    """Return coefficients (features,) of a logistic regression, zeros for one class.

    It learns from candidates, not from given items.
    """
    from sklearn.linear_model import LogisticRegression  # slow to import

    X = np.concatenate([ground_set.candidate_quality for ground_set in ground_sets])
    flags = [
        as_indicator(members, len(ground_set))[ground_set.candidates]
        for ground_set, members in zip(ground_sets, subsets, strict=True)
    ]
    chosen = np.concatenate(flags)
    scale = X.std(axis=0)
    scale[scale == 0.0] = 1.0
    if chosen.all() or not chosen.any():
        return np.zeros(X.shape[1])
    centred = (X - X.mean(axis=0)) / scale
    found = LogisticRegression(max_iter=1000).fit(centred, chosen)
    return np.asarray(found.coef_[0] / scale, dtype=np.float64)
