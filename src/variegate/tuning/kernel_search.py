"""Choose a similarity, and the rule to choose items by it, on held-out ground sets.

First, kernels race with the settings of an estimator against each other and against a
regression with an untrained diversifier.  Then the settings of the winner are varied,
each fit starting from the winner's; only a clear gain changes a setting.
"""

from __future__ import annotations

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
from variegate.tuning.held_out import paired_difference
from variegate.tuning.race import LearnedDPP, Race, Rule, Standing, TwoStage

#: Iterations of every fit: kernels can be told apart before their fits have ended.
MAX_ITER = 35

#: Iterations of a fit with other settings, which starts from a fitted model.
MAX_VARIED_ITER = 20

#: The largest fixed number of items that is tried, and by how much it may exceed the
#: size of the largest wanted subset.
MAX_LARGEST = 60
_MORE = 2

#: Variations of the settings tried on more than one part of the data.
_MOST_VARIED = 2

#: Values tried by setting; ``penalty`` is that of the kernel, as a multiple.
VARIED = {"penalty": (0.1, 10.0), "lam": (1.0,), "l2": (1e-2,)}

#: The largest number of ground sets read.
_MAX_SETS = 500

#: The share of training sets that count as unusual.
_UNUSUAL = 0.01


@dataclass(frozen=True, eq=False)
class Winner:
    """The contender with the best held-out scores, and the rule that chooses by it."""

    contender: LearnedDPP | TwoStage
    rule: Rule
    #: The best with a similarity that is not learned, for ground sets unlike those of
    #: training, where the winner has learned kinds.
    fallback: Winner | None = None
    #: All that were compared, the winner first.
    standings: Sequence[Standing] = ()
    #: The winner with other settings, the best first.
    varied: Sequence[Standing] = ()


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

    def run(
        self,
        ground_sets: Sequence[GroundSet],
        subsets: Sequence[IntArray],
        seed: int = 0,
        progress: Progress = ignore,
    ) -> Winner:
        """Return the winner of the race, after trying variations of its settings."""
        sizes: Sequence[int] = ()
        if self.tries_sizes:
            largest = min(max(map(len, subsets)) + _MORE, MAX_LARGEST)
            sizes = range(1, largest + 1)
        rules = [Rule(decoder) for decoder in self.decoders]
        rules += [Rule("greedy", k) for k in sizes]
        contenders: list[Any] = [
            LearnedDPP(name, self._loosely_fitted_model(kernel), rules)
            for name, kernel in self.kernels.items()
        ]
        if sizes:
            model = clone(self.estimator).set_params(kernel=self.cosine)
            two_stage = [Rule(ordering, k) for ordering in ORDERINGS for k in sizes]
            contenders.append(TwoStage(model, two_stage))
        race = Race(ground_sets, subsets, seed=seed, progress=progress)
        # What is needed for unfamiliar ground sets is cheap, and worth a good choice.
        standings = race.run(contenders, keep=(*self.fixed, TwoStage.name))
        first = standings[0]
        winner = Winner(
            self._restore_full_settings(first.contender), first.rule, None, standings
        )
        if isinstance(first.contender, LearnedDPP) and self.varies:
            winner = self._try_variations(race, winner)
        if first.name in self.kernels and first.name not in self.fixed:
            return replace(winner, fallback=self._find_fallback(standings))
        return winner

    def _loosely_fitted_model(self, kernel: Kernel) -> LargeMarginDPP:
        """Return an unfitted model with a kernel and at most ``MAX_ITER`` steps."""
        model: LargeMarginDPP = clone(self.estimator)
        most = min(model.max_iter, MAX_ITER)
        # A device would take longer to start than it saves.
        here = {"callback": None, "n_jobs": None, "device": None}
        model.set_params(kernel=kernel, max_iter=most, **here)
        return model

    def _restore_full_settings(self, contender: Any) -> Any:
        """Return a contender with the estimator's iterations, callback and device."""
        names = ("max_iter", "callback", "n_jobs", "device")
        model = clone(contender.model)
        model.set_params(**{name: getattr(self.estimator, name) for name in names})
        return replace(contender, model=model)

    def _try_variations(self, race: Race, winner: Winner) -> Winner:
        """Return the winner, with a variation of its settings if that clearly gains."""
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
            replace(base, name=name, model=model)
            for name, model in self._variations(base.model)
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
                return replace(winner, contender=better, varied=varied)
        return replace(winner, varied=varied)

    def _variations(
        self, model: LargeMarginDPP
    ) -> Iterator[tuple[str, LargeMarginDPP]]:
        """Yield the name and the model of every variation of one setting."""
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
        """Return the best that is a regression or has a kernel of ``fixed``, if any."""
        able = [
            s for s in standings if s.name not in self.kernels or s.name in self.fixed
        ]
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
        """Compute ``least`` from training sets; None for a kernel without kinds."""
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
    """Return the mean familiarity of the items, over all ``Kinds`` of the kernel."""
    return float(np.mean([kinds.familiarity(ground_set) for kinds in kinds_of(kernel)]))


def _chance_familiarity(kinds: Kinds, ground_sets: Sequence[GroundSet]) -> float:
    """Return the mean familiarity of items with shuffled principal components."""
    rng = np.random.default_rng(0)
    items = np.concatenate([kinds.prepare(ground_set) for ground_set in ground_sets])
    _, axes = np.linalg.eigh(items.T @ items)
    along: FloatArray = rng.permuted(items @ axes, axis=0)
    shuffled = GroundSet(
        along[:, :1], {kinds.block or "": along @ axes.T + kinds.center_}
    )
    return float(kinds.familiarity(shuffled).mean())
