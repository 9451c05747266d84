"""How well it works on groups that were not learned from.

Every group that is done is held out in turn.  When it is first done it is dealt to one
of four parts, that with the fewest groups so far, and stays there.  Four models are
learned beside the one that proposes, each without the groups of one part, and a group
is only ever judged by the model that has not seen it.  So nothing is wasted, and
nothing is judged by what has learned it.

The curve has a point for 2, 3, 4, 6, 8, 12, ... groups: what the four models of that
time choose in all groups that are done now.  As they learn without a quarter of the
groups, both curve and path are a little pessimistic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from variegate import metrics
from variegate._typing import IntArray
from variegate.estimator import LargeMarginDPP
from variegate.ground_set import GroundSet
from variegate.studio.learned import CurvePoint, PathPoint
from variegate.studio.lessons import OMEGAS, Example, Lesson, over_omega
from variegate.studio.untrained import untrained_choice, usual_size

__all__ = ["N_PARTS", "Check", "Judge", "is_on_curve"]

N_PARTS = 4

#: Groups that are judged, and about how many items of them, at most; evenly spread over
#: those that are done.
_MOST_JUDGED = 100
_MOST_ITEMS = 20_000

#: Omegas of the path.
_PATH: tuple[float, ...] = tuple(np.geomspace(OMEGAS[0], OMEGAS[-1], 13).tolist())

#: Asked between steps; raises to give up.
Check = Callable[[], None]


def is_on_curve(n: int) -> bool:
    """Return whether the curve has a point there: 2, 3, 4, 6, 8, 12, 16, 24, ..."""
    return n >= 2 and (
        n & (n - 1) == 0 or (n % 3 == 0 and (n // 3) & (n // 3 - 1) == 0)
    )


@dataclass(eq=False)
class Judge:
    """Models that have not seen a part of the groups, and what they are worth.

    ``done`` are groups with their picks, in the order in which they were done.
    """

    lesson: Lesson
    part_of: dict[int, int] = field(default_factory=dict)
    models: dict[int, LargeMarginDPP] = field(default_factory=dict)
    #: The models of each part after so many groups.
    points: dict[int, dict[int, LargeMarginDPP]] = field(default_factory=dict)
    #: How many groups were done when a model was learned.
    _seen: dict[int, int] = field(default_factory=dict)
    #: F-scores by number of groups and group.
    _scores: dict[tuple[int, int], float] = field(default_factory=dict)

    def deal(self, groups: Sequence[int]) -> None:
        """Give every new group its part."""
        counts = Counter(self.part_of.values())
        for group in groups:
            if group not in self.part_of:
                part = min(range(N_PARTS), key=lambda p: (counts[p], p))
                self.part_of[group] = part
                counts[part] += 1

    def learn(self, done: Mapping[int, Example], check: Check) -> None:
        """Bring the four models up to date, and give the curve its points.

        That which is farthest behind comes first, should there be no time for all.
        """
        self.deal(list(done))
        for part in sorted(range(N_PARTS), key=lambda p: self._seen.get(p, 0)):
            others = self._without(part, done)
            if others:
                check()
                self.models[part] = self.lesson.fit(others)
                self._seen[part] = len(done)
        for n in [n for n in self.points if n > len(done)]:
            self._forget(n)
        if len(done) >= 2:
            self._keep(len(done))

    def catch_up(self, done: Mapping[int, Example], check: Check) -> bool:
        """Learn a point of the curve that is missing; return whether there was one.

        Points are missing where the studio was started again, or learns otherwise now.
        """
        for n in range(2, len(done)):
            if is_on_curve(n) and n not in self.points:
                first = dict(list(done.items())[:n])
                models = {}
                for part in range(N_PARTS):
                    others = self._without(part, first)
                    if others:
                        check()
                        models[part] = self.lesson.fit(others)
                self.points[n] = models
                return True
        return False

    def _keep(self, n: int) -> None:
        """Keep the models of now as a point; the last point may be any number."""
        for other in [m for m in self.points if not is_on_curve(m)]:
            self._forget(other)
        self._forget(n)
        self.points[n] = dict(self.models)

    def _forget(self, n: int) -> None:
        self.points.pop(n, None)
        for key in [key for key in self._scores if key[0] == n]:
            del self._scores[key]

    def _without(self, part: int, done: Mapping[int, Example]) -> list[Example]:
        return [example for g, example in done.items() if self.part_of[g] != part]

    # What it comes to -------------------------------------------------------------

    def curve(
        self, done: Mapping[int, Example], check: Check
    ) -> tuple[CurvePoint, ...]:
        """Return the mean F-score after so many groups, on all groups done by now."""
        judged = _spread(done)
        sizes = {group: len(picks) for group, (_, picks) in done.items()}
        untrained = {}
        for group in judged:
            k = usual_size(size for other, size in sizes.items() if other != group)
            ground_set, picks = done[group]
            untrained[group] = metrics.f_score(untrained_choice(ground_set, k), picks)
        curve = []
        for n, models in sorted(self.points.items()):
            check()
            able = [group for group in judged if self.part_of[group] in models]
            if able:
                scores = [self._score(n, group, done[group]) for group in able]
                base = [untrained[group] for group in able]
                curve.append(
                    CurvePoint(n, float(np.mean(scores)), float(np.mean(base)))
                )
        return tuple(curve)

    def _score(self, n: int, group: int, example: Example) -> float:
        ground_set, picks = example
        if (n, group) not in self._scores:
            model = self.points[n][self.part_of[group]]
            chosen = self._choose(model, ground_set)
            self._scores[n, group] = float(metrics.f_score(chosen, picks))
        return self._scores[n, group]

    def path(self, done: Mapping[int, Example], check: Check) -> tuple[PathPoint, ...]:
        """Return precision, recall, size and F-score by omega, on held-out groups."""
        able = [g for g in _spread(done) if self.part_of.get(g) in self.models]
        if not able:
            return ()
        families = {part: over_omega(model) for part, model in self.models.items()}
        points = []
        for omega in _PATH:
            check()
            rows = []
            for group in able:
                ground_set, picks = done[group]
                model = families[self.part_of[group]].at(omega)
                rows.append(_scores(self._choose(model, ground_set), picks))
            precision, recall, size, f = np.mean(rows, axis=0).tolist()
            points.append(PathPoint(float(omega), precision, recall, size, f))
        return tuple(points)

    def _choose(self, model: LargeMarginDPP, ground_set: GroundSet) -> IntArray:
        return model.ensemble(ground_set).decode(self.lesson.decoder).indices


def _scores(chosen: IntArray, picks: IntArray) -> list[float]:
    return [
        float(metrics.precision(chosen, picks)),
        float(metrics.recall(chosen, picks)),
        float(len(chosen)),
        float(metrics.f_score(chosen, picks)),
    ]


def _spread(done: Mapping[int, Example]) -> list[int]:
    """Return the groups that are judged."""
    groups = list(done)
    mean = sum(len(ground_set) for ground_set, _ in done.values()) / max(1, len(done))
    most = max(1, min(_MOST_JUDGED, int(_MOST_ITEMS / max(1.0, mean))))
    if len(groups) <= most:
        return groups
    places = np.linspace(0, len(groups) - 1, most).round().astype(int)
    return [groups[place] for place in places]
