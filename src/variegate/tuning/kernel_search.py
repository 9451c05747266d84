"""Choose a similarity, and the rule to choose items by it, on held-out ground sets.

First, kernels race with the settings of an estimator against each other and against a
regression with an untrained diversifier.  Then the winner and the regression are tried
with boosted log-odds as one more quality feature, and the settings of the winner are
varied, each fit starting from the winner's; only a clear gain changes anything.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from variegate._progress import Progress, ignore
from variegate._typing import FloatArray, IntArray
from variegate.baselines.learned import ORDERINGS
from variegate.decoding import Decoder
from variegate.estimator import LargeMarginDPP
from variegate.ground_set import GroundSet
from variegate.kernels import Kernel, Kinds, Mixture
from variegate.kernels.mixture import scale_penalty
from variegate.learning.problem import kernel_settings
from variegate.tuning.boosting import boosted_fold, can_be_boosted, trees_predict_better
from variegate.tuning.held_out import paired_difference
from variegate.tuning.race import (
    LearnedDPP,
    Race,
    Rule,
    Standing,
    TwoStage,
    rank_standings,
)

#: Iterations of every fit: kernels can be told apart before their fits have ended.
MAX_ITER = 35

#: Iterations of a fit with other settings, which starts from a fitted model.
MAX_VARIED_ITER = 20

#: Fixed numbers of items are tried up to the size of the largest wanted subset plus
#: ``_MORE``, and at most ``MAX_LARGEST``.
MAX_LARGEST = 60
_MORE = 2

#: Variations of the settings tried on more than one part of the data.
_MOST_VARIED = 2

#: Values tried by setting; those of ``penalty`` multiply the kernel's penalty.
#: ``lam`` 0 is for "expected-f", which averages over probabilities that a margin bends.
VARIED = {"penalty": (0.1, 10.0), "lam": (0.0, 1.0), "l2": (1e-2,)}

#: Ends the names of contenders with boosted log-odds where others have none.
BOOSTED = ", boosted"

#: The largest number of training sets whose familiarity is computed.
_MAX_SETS = 500

#: The share of training sets that count as unusual: a quantile of their familiarity.
_UNUSUAL = 0.01


@dataclass(frozen=True, eq=False)
class Winner:
    """The contender with the best held-out scores, and the rule that chooses by it."""

    #: Not fitted, with all iterations of the estimator.
    contender: LearnedDPP | TwoStage
    rule: Rule
    #: The best with a similarity that is not learned, for ground sets unlike those of
    #: training, where the winner has learned kinds.
    fallback: Winner | None = None
    #: All that were compared, the winner first.
    standings: Sequence[Standing] = ()
    #: The winner with its own and with other settings, the best first.
    varied: Sequence[Standing] = ()
    #: Whether the quality has boosted log-odds.
    is_boosted: bool = False


@dataclass(frozen=True, eq=False)
class KernelSearch:
    """A search for the kernel and settings that do best on held-out ground sets."""

    #: All settings but the kernel.
    estimator: LargeMarginDPP
    kernels: Mapping[str, Kernel]
    #: The similarity of the untrained diversifier.
    cosine: Kernel
    #: Names of kernels whose similarity of two items does not depend on the training
    #: data; they suit any ground set.
    fixed: Sequence[str] = ()
    #: Decoders that decide how many items are chosen; the first is preferred.
    decoders: Sequence[str | Decoder] = ("greedy", "expected-f")
    #: Of ``VARIED``, the settings that may be changed.
    varies: Sequence[str] = tuple(VARIED)
    #: Whether fixed numbers of items, and the regression, which needs one, are tried.
    tries_sizes: bool = True
    #: "boosting": the quality of all has boosted log-odds; "linear": none has; "auto":
    #: these are tried with the winner and with the regression.
    quality_model: str = "linear"

    def run(
        self,
        ground_sets: Sequence[GroundSet],
        subsets: Sequence[IntArray],
        groups: Any = None,
        seed: int = 0,
        progress: Progress = ignore,
    ) -> Winner:
        """Return the winner of the race, after trying variations of its settings.

        ``subsets`` hold wanted item numbers; ``seed`` divides data, in which ground
        sets of one label in ``groups`` stay together.  ``progress`` gets "comparing"
        and the numbers of finished and all fits, anew for the variations.
        """
        sizes: Sequence[int] = ()
        if self.tries_sizes:
            largest = min(max(map(len, subsets)) + _MORE, MAX_LARGEST)
            sizes = range(1, largest + 1)
        rules = [Rule(decoder) for decoder in self.decoders]
        rules += [Rule("greedy", k) for k in sizes]
        contenders: list[Any] = [
            LearnedDPP(name, self._quick_model(kernel), rules)
            for name, kernel in self.kernels.items()
        ]
        if sizes:
            model = clone(self.estimator).set_params(kernel=self.cosine)
            two_stage = [Rule(ordering, k) for ordering in ORDERINGS for k in sizes]
            contenders.append(TwoStage(model, two_stage))
        race = Race(ground_sets, subsets, seed=seed, progress=progress, groups=groups)
        if self.quality_model == "boosting":
            race = race.with_boosting()
        # What is needed for unfamiliar ground sets is cheap, and worth a good choice.
        standings = race.run(contenders, keep=(*self.fixed, TwoStage.name))
        first = standings[0]
        winner = Winner(
            self._restore_full_settings(first.contender),
            first.rule,
            None,
            standings,
            is_boosted=self.quality_model == "boosting",
        )
        if self.quality_model == "auto" and all(map(can_be_boosted, race.parts)):
            again = [c for c in contenders if c.name in (first.name, TwoStage.name)]
            race, winner = self._try_boosting(race, winner, again)
        if isinstance(winner.contender, LearnedDPP) and self.varies:
            winner = self._try_variations(race, winner)
        name = winner.standings[0].name.removesuffix(BOOSTED)
        if name in self.kernels and name not in self.fixed:
            return replace(winner, fallback=self._find_fallback(standings))
        return winner

    def _quick_model(self, kernel: Kernel) -> LargeMarginDPP:
        """Return an unfitted model of few iterations, on one thread and no device."""
        model: LargeMarginDPP = clone(self.estimator)
        most = min(model.max_iter, MAX_ITER)
        # A device would take longer to start than it saves.
        here = {"callback": None, "n_jobs": None, "device": None}
        model.set_params(kernel=kernel, max_iter=most, **here)
        return model

    def _restore_full_settings(self, contender: Any) -> Any:
        """Return an unfitted contender with the estimator's iterations and device."""
        names = ("max_iter", "callback", "n_jobs", "device")
        model = clone(contender.model)
        model.set_params(**{name: getattr(self.estimator, name) for name in names})
        return replace(contender, model=model)

    def _try_boosting(
        self, race: Race, winner: Winner, contenders: Sequence[Any]
    ) -> tuple[Race, Winner]:
        """Return a boosted race and winner if the gain exceeds its standard error.

        ``contenders`` are fitted to the same parts with boosted log-odds.  This ends
        where trees predict no better than a logistic regression on the first part, and
        after parts on which none gains; ``race`` and ``winner`` are then returned.
        """
        linear = winner.standings[0]
        boosted, tried = copy.copy(race), []
        boosted.parts, boosted.examples = [], []
        for contender in contenders:
            name = f"{contender.name}{BOOSTED}"
            tried.append(Standing(replace(contender, name=name)))
        for number, part in enumerate(race.parts):
            part = boosted_fold(part, race.seed)
            if number == 0 and not trees_predict_better(part):
                return race, winner
            examples = part.shared_examples()
            boosted.parts.append(part)
            boosted.examples.append(examples)
            for n_done, standing in enumerate(tried, number * len(tried) + 1):
                standing.fit_and_score(part, examples)
                race.progress("boosting", n_done, len(tried) * len(race.parts))
            examples.release_prepared()
            best = max(tried, key=lambda one: one.mean)
            if best.mean <= linear.scores[: len(best.scores)].mean():
                break
        is_complete = len(boosted.parts) == len(race.parts)
        gain, error = np.nan, np.nan
        if is_complete:
            gain, error = paired_difference(best.scores, linear.scores)
        first = best if is_complete and gain > error else linear
        standings = rank_standings([*tried, *winner.standings], first)
        if first is linear:
            return race, replace(winner, standings=standings)
        found = self._restore_full_settings(first.contender)
        winner = Winner(found, first.rule, None, standings, is_boosted=True)
        return boosted, winner

    def _try_variations(self, race: Race, winner: Winner) -> Winner:
        """Return the winner, with the best variation of its settings if that gains.

        A variation replaces it if it ran on all parts of the data and its gain in F is
        above the standard error.  ``varied`` of the result holds all standings.
        """
        first: Any = winner.standings[0]
        best, rule = first.contender, first.rule
        model = clone(best.model)
        base = replace(
            best,
            name="as it is",
            model=model.set_params(max_iter=min(model.max_iter, MAX_VARIED_ITER)),
            rules=[rule],
            starts=first.fitted,
        )
        others = [
            replace(base, name=name, model=model, rules=self._rules_for(model, rule))
            for name, model in self._generate_variations(base.model)
        ]
        varied = race.run([base, *others], _MOST_VARIED, keep=[base.name])
        same = next(standing for standing in varied if standing.name == base.name)
        for standing in varied:
            n_both = min(len(standing.scores), len(same.scores))
            gain, error = paired_difference(
                standing.scores[:n_both], same.scores[:n_both]
            )
            if len(standing.fitted) == len(race.parts) and gain > error:
                found: Any = standing.contender
                better = self._restore_full_settings(
                    replace(found, name=best.name, starts=())
                )
                return replace(
                    winner, contender=better, rule=standing.rule, varied=varied
                )
        return replace(winner, varied=varied)

    def _rules_for(self, model: LargeMarginDPP, rule: Rule) -> list[Rule]:
        """Return ``rule``; for ``lam`` 0 also that of the decoder "expected-f"."""
        other = Rule("expected-f")
        is_tried = model.lam == 0.0 and "expected-f" in self.decoders
        return [rule, other] if is_tried and other != rule else [rule]

    def _generate_variations(
        self, model: LargeMarginDPP
    ) -> Iterator[tuple[str, LargeMarginDPP]]:
        """Yield name and unfitted model for each value in ``VARIED`` of ``varies``."""
        for name in self.varies:
            for value in VARIED[name]:
                other = clone(model)
                if name != "penalty":
                    yield f"{name} = {value:g}", other.set_params(**{name: value})
                    continue
                own: Any = model.kernel
                kernel = scale_penalty(own, value)
                if kernel_settings(kernel) != kernel_settings(own):
                    yield f"penalty x {value:g}", other.set_params(kernel=kernel)

    def _find_fallback(self, standings: Sequence[Standing]) -> Winner | None:
        """Return the best of the regression and the kernels of ``fixed``, None if none.

        Those that stayed longer in the race are better, then those of higher mean F.
        """
        able = [s for s in standings if s.name in (*self.fixed, TwoStage.name)]
        best = max(able, key=lambda one: (len(one.fitted), one.mean), default=None)
        if best is None:
            return None
        return Winner(self._restore_full_settings(best.contender), best.rule)


# Familiar ground sets -----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Familiarity:
    """A test whether the items of a ground set are of kinds seen in training.

    A kernel cannot tell apart kinds that were absent in training.  The familiarity of
    a ground set is the mean cosine of its items with the nearest centre of a kind.  It
    is unfamiliar unless above ``least``: the familiarity of training items whose
    principal components are shuffled, or, if that is less, the first percentile of the
    training sets, minus the distance from there to their median.
    """

    #: Fitted, with :class:`variegate.Kinds` in it.
    kernel: Kernel
    least: float

    @classmethod
    def fit(cls, kernel: Kernel, ground_sets: Sequence[GroundSet]) -> Self | None:
        """Return the test by a fitted kernel and training sets; None without kinds."""
        if not kinds_of(kernel):
            return None
        some = ground_sets[:: -(-len(ground_sets) // _MAX_SETS)]
        low, middle = np.quantile(
            [_mean_familiarity(kernel, one) for one in some], [_UNUSUAL, 0.5]
        )
        by_chance = [_chance_familiarity(kinds, some) for kinds in kinds_of(kernel)]
        least = min(float(low - (middle - low)), float(np.mean(by_chance)))
        return cls(kernel, least)

    def __call__(self, ground_set: GroundSet) -> bool:
        """Return whether a ground set is like those of training."""
        return _mean_familiarity(self.kernel, ground_set) > self.least


def kinds_of(kernel: Kernel) -> list[Kinds]:
    """Return the ``Kinds`` in a fitted kernel: itself, or parts of a mixture."""
    parts = kernel.kernels_ if isinstance(kernel, Mixture) else [kernel]
    return [part for part in parts if isinstance(part, Kinds)]


def _mean_familiarity(kernel: Kernel, ground_set: GroundSet) -> float:
    """Return the mean familiarity over all items and all ``Kinds`` of the kernel."""
    return float(np.mean([kinds.familiarity(ground_set) for kinds in kinds_of(kernel)]))


def _chance_familiarity(kinds: Kinds, ground_sets: Sequence[GroundSet]) -> float:
    """Return the mean familiarity of items, each principal component shuffled."""
    rng = np.random.default_rng(0)
    items = np.concatenate([kinds.prepare(ground_set) for ground_set in ground_sets])
    _, axes = np.linalg.eigh(items.T @ items)
    along: FloatArray = rng.permuted(items @ axes, axis=0)
    shuffled = GroundSet(
        along[:, :1], {kinds.block or "": along @ axes.T + kinds.center_}
    )
    return float(kinds.familiarity(shuffled).mean())
