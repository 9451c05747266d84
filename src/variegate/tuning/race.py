"""Ways to choose, compared on held-out ground sets until it is clear who is ahead.

All contenders are fitted on the same parts of the data and judged on the rest.  After
each part, those that are clearly behind the leader drop out, so that most of the time
goes to those that are close.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from variegate._progress import Progress, ignore
from variegate._typing import FloatArray, IntArray
from variegate.baselines.ordering import Ordering
from variegate.decoding import Decoder
from variegate.ground_set import GroundSet, renumbering
from variegate.tuning.held_out import Fold, paired

__all__ = ["Contender", "Judged", "Race", "Rule", "Standing"]

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


class Judged(Protocol):
    """A contender that has learned."""

    def scores(
        self, ground_sets: Sequence[GroundSet], wanted: Sequence[IntArray]
    ) -> Mapping[Rule, FloatArray]:
        """Return the F-score of every ground set, by rule; mildest rules first."""


class Contender(Protocol):
    """A way to choose that learns from examples."""

    @property
    def name(self) -> str:
        """What it is called in reports."""

    def fit(
        self, ground_sets: Sequence[GroundSet], subsets: Sequence[IntArray], part: int
    ) -> Judged:
        """Learn from what is not in the part with this number."""


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
    judged: list[Judged]

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
            for runner in racing:
                runner.run(part)
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
    judged: list[Judged] = field(default_factory=list)
    found: dict[Rule, list[FloatArray]] = field(default_factory=dict)

    def run(self, part: Fold) -> None:
        """Learn from one part of the data, be judged by the other."""
        with renumbering(part.learned):
            judged = self.contender.fit(
                part.ground_sets, part.subsets, len(self.judged)
            )
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
    """Return those that are not clearly behind, the first first."""
    runners = sorted(runners, key=lambda runner: -runner.mean)
    first = runners[0].scores()[1]
    left = []
    for runner in runners:
        behind, error = paired(first, runner.scores()[1])
        if not behind > DROPPED_AT * error or np.isnan(error):
            left.append(runner)
    return left
