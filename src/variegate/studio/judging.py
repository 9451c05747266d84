"""Scores on groups that were not learned from, by number of groups and by omega.

Every group that is done is held out in turn.  When it is first done it joins one of
four folds, that with the fewest groups so far, and stays there.  Four models are
learned beside the one that proposes, each without the groups of one fold, and a group
is only ever judged by the model that has not seen it.

The curve has a point for 2, 3, 4, 6, 8, 12, ... groups: the score of the four models of
that time in all groups that are done now.  As they learn without a quarter of the
groups, both curve and path are a little pessimistic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from variegate import metrics
from variegate._typing import IntArray
from variegate.estimator import LargeMarginDPP
from variegate.ground_set import GroundSet
from variegate.studio.choices import untrained_choice, usual_size
from variegate.studio.kernel_candidates import Example, fit_model, odds_family
from variegate.tuning.family import ODDS_OMEGAS
from variegate.tuning.folds import Trial
from variegate.tuning.held_out import scores_of
from variegate.tuning.path import PathPoint

N_FOLDS = 4

#: The largest number of groups that are judged, evenly spread over those that are done,
#: and about the largest number of their items.
_MOST_JUDGED = 100
_MOST_ITEMS = 20_000

#: Omegas of the path.
_PATH: tuple[float, ...] = tuple(
    np.geomspace(ODDS_OMEGAS[0], ODDS_OMEGAS[-1], 13).tolist()
)

#: Called between fits and scores; raises an exception to give up.
Check = Callable[[], None]

#: Groups with their picks, in the order in which they were done.
Examples = Mapping[int, Example]

#: Models by the number of the fold that they have not seen.
_Models = dict[int, LargeMarginDPP]


def is_on_curve(n: int) -> bool:
    """Return whether the curve has a point for n groups: 2, 3, 4, 6, 8, 12, 16, ..."""
    return n >= 2 and (
        n & (n - 1) == 0 or (n % 3 == 0 and (n // 3) & (n // 3 - 1) == 0)
    )


@dataclass(frozen=True)
class CurvePoint:
    """Mean F-score on held-out groups after ``n`` groups, learned and untrained."""

    n: int
    f: float
    untrained_f: float


@dataclass(eq=False)
class Judge:
    """Models that have not seen one fold of the groups, and their scores."""

    #: The estimator, with its kernel, that is fitted.
    candidate: LargeMarginDPP
    #: By number of a group, limits on choices from it: arguments of ``decode``.
    limits: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    #: The fold, from 0, by number of a group.
    fold_of: dict[int, int] = field(default_factory=dict)
    #: The models of all groups that are done.
    models: _Models = field(default_factory=dict)
    #: The models of each point of the curve, by number of groups.
    points: dict[int, _Models] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._cached_choice = lru_cache(4096)(self._choose)

    def assign(self, groups: Sequence[int]) -> None:
        """Add every new group to ``fold_of``, in the fold with the fewest groups."""
        counts = Counter(self.fold_of.values())
        for group in groups:
            if group not in self.fold_of:
                fold = min(range(N_FOLDS), key=lambda k: (counts[k], k))
                self.fold_of[group] = fold
                counts[fold] += 1

    def learn(self, done: Examples, check: Check) -> None:
        """Set ``models``, each fitted without one fold, also as the last point."""
        self.assign(list(done))
        self.models = self._fit_folds(done, check)
        n = len(done)
        # The last point may be at any number, the others are on the curve.
        self.points = {
            m: models for m, models in self.points.items() if m < n and is_on_curve(m)
        }
        if n >= 2:
            self.points[n] = self.models

    def catch_up(self, done: Examples, check: Check) -> bool:
        """Fit models for the curve's first missing point; return False without one.

        Points are missing after a start of the studio, or of another candidate.
        """
        for n in range(2, len(done)):
            if is_on_curve(n) and n not in self.points:
                self.points[n] = self._fit_folds(dict(list(done.items())[:n]), check)
                return True
        return False

    def _fit_folds(self, done: Examples, check: Check) -> _Models:
        """Return models by the fold they leave out, unless that leaves no groups."""
        models = {}
        for fold in range(N_FOLDS):
            others = [done[group] for group in done if self.fold_of[group] != fold]
            if others:
                check()
                models[fold] = fit_model(self.candidate, others)
        return models

    def curve(self, done: Examples, check: Check) -> tuple[CurvePoint, ...]:
        """Return a point for each number of groups, all scored on the same groups."""
        judged = _groups_to_judge(done)
        sizes = {group: len(picks) for group, (_, picks) in done.items()}
        untrained = {}
        for group in judged:
            k = usual_size(size for other, size in sizes.items() if other != group)
            ground_set, picks = done[group]
            chosen = untrained_choice(ground_set, k, **self.limits.get(group, {}))
            untrained[group] = metrics.f_score(chosen, picks)
        curve = []
        for n, models in sorted(self.points.items()):
            check()
            scores = []
            for group in judged:
                if self.fold_of[group] in models:
                    ground_set, picks = done[group]
                    model = models[self.fold_of[group]]
                    chosen = self._cached_choice(model, ground_set, group)
                    scores.append((metrics.f_score(chosen, picks), untrained[group]))
            if scores:
                f, untrained_f = (float(np.mean(s)) for s in zip(*scores, strict=True))
                curve.append(CurvePoint(n, f, untrained_f))
        return tuple(curve)

    def path(self, done: Examples, check: Check) -> tuple[PathPoint, ...]:
        """Return mean held-out scores by omega; () while no group can be held out."""
        able = [g for g in _groups_to_judge(done) if self.fold_of.get(g) in self.models]
        if not able:
            return ()
        families = {fold: odds_family(model) for fold, model in self.models.items()}
        points = []
        for omega in _PATH:
            check()
            rows = []
            for group in able:
                ground_set, picks = done[group]
                model = families[self.fold_of[group]].at(omega)
                rows.append(scores_of(self._choose(model, ground_set, group), picks))
            trial = Trial([], [np.array(rows)])
            means, errors = trial.means(), trial.standard_errors(np.arange(len(able)))
            points.append(PathPoint(omega, *means.tolist(), *errors.tolist()))
        return tuple(points)

    def _choose(
        self, model: LargeMarginDPP, ground_set: GroundSet, group: int
    ) -> IntArray:
        """Return the items that greedy decoding chooses, within ``limits[group]``."""
        ensemble = model.ensemble(ground_set)
        limits = self.limits.get(group, {})
        return ensemble.items[ensemble.decode("greedy", **limits).indices]


def _groups_to_judge(done: Examples) -> list[int]:
    """Return the numbers of groups to judge: all, or ``_MOST_JUDGED`` evenly spread."""
    groups = list(done)
    mean = sum(len(ground_set) for ground_set, _ in done.values()) / max(1, len(done))
    most = max(1, min(_MOST_JUDGED, int(_MOST_ITEMS / max(1.0, mean))))
    if len(groups) <= most:
        return groups
    places = np.linspace(0, len(groups) - 1, most).round().astype(int)
    return [groups[place] for place in places]


def verdict_on(curve: Sequence[CurvePoint]) -> str:
    """Return a sentence on whether learned proposals have a higher F than untrained."""
    if not curve or curve[-1].n < 4:
        return "From 4 groups on, this says whether learning pays."
    f, untrained = round(curve[-1].f, 2), round(curve[-1].untrained_f, 2)
    agree = "agree" if f > untrained else "do not yet agree"
    return (
        f"Learned proposals {agree} better with your picks (F {f:.2f}) than untrained "
        f"ones ({untrained:.2f}), in cross-validation."
    )
