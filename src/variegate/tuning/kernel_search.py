"""Which similarity, and how to choose by it, decided on held-out ground sets.

First, kernels race with the settings of an estimator against each other and against a
regression with an untrained diversifier.  Then the settings of the winner are varied,
each from what it has learned; a setting is changed only where that is a clear gain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from variegate._progress import Progress, ignore
from variegate._typing import FloatArray, IntArray
from variegate.decoding import Decoder
from variegate.estimator import LargeMarginDPP
from variegate.ground_set import GroundSet
from variegate.kernels import Kernel, Kinds, Mixture
from variegate.tuning.held_out import paired
from variegate.tuning.race import LearnedDPP, Race, Rule, Standing, TwoStage

#: Iterations of every fit: kernels can be told apart before their fits have ended.
MAX_ITER = 50

#: The largest fixed number of items that is tried, and by how many more than the most
#: that were wanted.
MAX_LARGEST = 60
_MORE = 2

#: Variations of the settings that are tried on more than one part of the data.
_MOST_VARIED = 2

#: What settings are varied to; ``penalty`` is that of the kernel, as a multiple.
VARIED = {
    "penalty": (0.1, 10.0),
    "lam": (1.0, 16.0),
    "l2": (1e-2,),
    "omega": (4.0,),
}

#: Ground sets that are looked at, at most.
_MAX_SETS = 500

#: The share of training sets below which the usual ends.
_UNUSUAL = 0.01


@dataclass(frozen=True, eq=False)
class Winner:
    """The contender that did best, and the rule that chooses by it."""

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
    #: Names of those kernels whose similarity of two items does not depend on what was
    #: seen in training; they are fit for anything.
    fixed: Sequence[str] = ()
    #: For as many items as the model finds right; the first is preferred.
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
        """Return the winner."""
        largest = self._largest(subsets) if self.tries_sizes else 0
        contenders: list[Any] = [
            LearnedDPP(name, self._quick(kernel), self.decoders, largest)
            for name, kernel in self.kernels.items()
        ]
        if largest:
            model = clone(self.estimator).set_params(kernel=self.cosine)
            contenders.append(TwoStage(largest, model))
        race = Race(ground_sets, subsets, seed=seed, progress=progress)
        # What is needed for unfamiliar ground sets is cheap, and worth a good choice.
        standings = race.run(contenders, keep=(*self.fixed, TwoStage.name))
        first = standings[0]
        winner = Winner(self._in_full(first.contender), first.rule, None, standings)
        if isinstance(first.contender, LearnedDPP) and self.varies:
            winner = self._varied(race, winner)
        if first.name in self.kernels and first.name not in self.fixed:
            return replace(winner, fallback=self._fallback(standings))
        return winner

    def _quick(self, kernel: Kernel) -> LargeMarginDPP:
        """Return a model that is fitted well enough to be compared."""
        model: LargeMarginDPP = clone(self.estimator)
        most = min(model.max_iter, MAX_ITER)
        # Of few ground sets: a device would be longer in starting.
        here = {"callback": None, "n_jobs": None, "device": None}
        model.set_params(kernel=kernel, max_iter=most, **here)
        return model

    def _in_full(self, contender: Any) -> Any:
        """Return a contender that is fitted to the end."""
        names = ("max_iter", "callback", "n_jobs", "device")
        model = clone(contender.model)
        model.set_params(**{name: getattr(self.estimator, name) for name in names})
        return replace(contender, model=model)

    def _largest(self, subsets: Sequence[IntArray]) -> int:
        return min(max(len(subset) for subset in subsets) + _MORE, MAX_LARGEST)

    def _varied(self, race: Race, winner: Winner) -> Winner:
        """Try other settings of the winner."""
        first: Any = winner.standings[0]
        best = first.contender
        starts = [one.model for one in first.judged]
        base = replace(best, name="as it is", starts=starts)
        others = [
            replace(base, name=name, model=model)
            for name, model in self._variations(best.model)
        ]
        varied = race.run([base, *others], _MOST_VARIED, keep=[base.name])
        same = next(standing for standing in varied if standing.name == base.name)
        for standing in varied:
            n_both = min(len(standing.scores), len(same.scores))
            gain, error = paired(standing.scores[:n_both], same.scores[:n_both])
            is_full = len(standing.judged) == len(race.parts)
            if is_full and gain > error:
                found: Any = standing.contender
                better = replace(found, name=best.name, starts=())
                return replace(
                    winner,
                    contender=self._in_full(better),
                    rule=standing.rule,
                    varied=varied,
                )
        return replace(winner, rule=same.rule, varied=varied)

    def _variations(
        self, model: LargeMarginDPP
    ) -> Iterator[tuple[str, LargeMarginDPP]]:
        """Yield models with other settings, and names of these."""
        # Another penalty is another kernel, which has to be prepared anew: last.
        for name in sorted(self.varies, key=lambda name: name == "penalty"):
            for value in VARIED[name]:
                other = clone(model)
                if name != "penalty":
                    yield f"{name} = {value:g}", other.set_params(**{name: value})
                elif _penalized(other.kernel):
                    for part in _penalized(other.kernel):
                        part.set_params(penalty=value * part.penalty)
                    yield f"penalty x {value:g}", other

    def _fallback(self, standings: Sequence[Standing]) -> Winner | None:
        """Return the best whose similarity is not learned."""
        able = [
            s for s in standings if s.name not in self.kernels or s.name in self.fixed
        ]
        if not able:
            return None
        best = max(able, key=lambda standing: (len(standing.judged), standing.mean))
        return Winner(self._in_full(best.contender), best.rule)


def _penalized(kernel: Any) -> list[Any]:
    """Return the parts of a kernel that are pulled towards their start."""
    parts = kernel.kernels if isinstance(kernel, Mixture) else [kernel]
    return [part for part in parts if hasattr(part, "penalty")]


# Familiar ground sets -----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Familiarity:
    """How near the items of a ground set are to the kinds that a kernel has seen.

    Kinds that were not there in training cannot be told apart by what was learned of
    others.  A ground set is unfamiliar if its items, on average, have no larger cosine
    with the nearest centre of a kind than ``least``: what training items have whose
    principal components are shuffled, or, if that is less, the first percentile of the
    training sets, less the distance from there to their median.

    Attributes
    ----------
    kernel : Kernel
        Settled, with :class:`variegate.Kinds` in it.
    least : float
    """

    kernel: Kernel
    least: float

    @classmethod
    def of(cls, kernel: Kernel, ground_sets: Sequence[GroundSet]) -> Self | None:
        """Return that of some training sets; None for a kernel without kinds."""
        if not kinds_of(kernel):
            return None
        some = ground_sets[:: -(-len(ground_sets) // _MAX_SETS)]
        low, middle = np.quantile([_mean(kernel, one) for one in some], [_UNUSUAL, 0.5])
        by_chance = [_by_chance(kinds, some) for kinds in kinds_of(kernel)]
        least = min(float(low - (middle - low)), float(np.mean(by_chance)))
        return cls(kernel, least)

    def __call__(self, ground_set: GroundSet) -> bool:
        """Return whether a ground set is like those of training."""
        return _mean(self.kernel, ground_set) > self.least


def kinds_of(kernel: Kernel) -> list[Kinds]:
    """Return the kinds in a settled kernel."""
    parts = kernel.kernels_ if isinstance(kernel, Mixture) else [kernel]
    return [part for part in parts if isinstance(part, Kinds)]


def _mean(kernel: Kernel, ground_set: GroundSet) -> float:
    return float(np.mean([kinds.familiarity(ground_set) for kinds in kinds_of(kernel)]))


def _by_chance(kinds: Kinds, ground_sets: Sequence[GroundSet]) -> float:
    """Return how near to a kind items are that have no kind, but the same spread."""
    rng = np.random.default_rng(0)
    items = np.concatenate([kinds.prepare(ground_set) for ground_set in ground_sets])
    _, axes = np.linalg.eigh(items.T @ items)
    along: FloatArray = rng.permuted(items @ axes, axis=0)
    shuffled = GroundSet(
        along[:, :1], {kinds.block or "": along @ axes.T + kinds.center_}
    )
    return float(kinds.familiarity(shuffled).mean())
