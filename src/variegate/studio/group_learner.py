"""The learner: models from the groups that are done, in the process of its caller."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from variegate._typing import FloatArray, IntArray
from variegate.application.model_facts import learned_parts
from variegate.estimator import LargeMarginDPP
from variegate.ground_set import GroundSet
from variegate.kernels import Kernel, Kinds
from variegate.material.base import Item
from variegate.studio.judging import Check, CurvePoint, Judge, verdict_on
from variegate.studio.kernel_candidates import (
    Comparison,
    candidates_for,
    fit_model,
    odds_family,
)
from variegate.tuning.family import OmegaFamily
from variegate.tuning.path import PathPoint

#: Confidence is computed in the first groups to be done: at most this number of groups,
#: and of items.
_MOST_GROUPS = 100
_MOST_ITEMS = 10_000

#: Kinds are described by about this number of items; of each kind, at most this number
#: of typical items is named; and at most this number of kinds.
_KIND_ITEMS = 2000
_TYPICAL = 3
_MOST_KINDS = 32


@dataclass(frozen=True)
class Kind:
    """A kind of items that a kernel has learned."""

    name: str
    #: The mean probability of an item to be of this kind.
    share: float
    #: Group and item numbers of the items that are most probably of it.
    typical: tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class LearningResult:
    """A family of models, and its scores.

    The family is one model, whose odds are multiplied by omega
    (:func:`variegate.studio.kernel_candidates.odds_family`).
    """

    #: The number of groups that were learned from.
    n_groups: int = 0
    family: OmegaFamily = field(default_factory=lambda: OmegaFamily((), ()))
    #: Name and weight of the quality features at omega 1, the strongest first.
    weights: tuple[tuple[str, float], ...] = ()
    #: The most common first; empty where the similarity has none.
    kinds: tuple[Kind, ...] = ()
    #: Scores on held-out groups, by number of groups learned from, and by omega.
    curve: tuple[CurvePoint, ...] = ()
    path: tuple[PathPoint, ...] = ()
    #: By number of a group that is not done: the F-score that the model expects of its
    #: own proposal.
    confidence: Mapping[int, float] = field(default_factory=dict)
    #: The result of the last comparison of similarities, in a sentence.
    comparison: str | None = None

    def to_json(self, items: Callable[[int], Sequence[Item]]) -> dict[str, Any]:
        """Return all fields but family and confidence, and a verdict, for the page.

        ``items(group)`` are the items of a group, whose titles describe kinds.
        """
        names = ("omega", "precision", "recall", "size", "f")

        def titles(kind: Kind) -> str:
            """Return the titles of the items typical of a kind, joined by commas."""
            return ", ".join(items(group)[item].title for group, item in kind.typical)

        return {
            "n_groups": self.n_groups,
            "curve": [asdict(point) for point in self.curve],
            "verdict": verdict_on(self.curve),
            "weights": [{"name": name, "weight": w} for name, w in self.weights],
            "kinds": [
                {**asdict(kind), "description": titles(kind)} for kind in self.kinds
            ],
            "path": [{n: getattr(point, n) for n in names} for point in self.path],
            "comparison": self.comparison,
        }


class NothingToLearnError(ValueError):
    """All items of all groups have the same features."""


@dataclass(eq=False)
class GroupLearner:
    """Learns from groups that are done, in two steps.

    First, at once, from where the last model stood; then thoroughly, from the start,
    with curve, path and the confidence in other groups.
    """

    #: Those of all groups, by number.
    ground_sets: Sequence[GroundSet]
    #: Candidates; the first is learned with until a comparison says otherwise.
    kernels: Mapping[str, Kernel]
    feature_names: Sequence[str]
    #: By number of a group, limits on choices from it: arguments of ``decode``.
    limits: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not _any_differ(self.ground_sets):
            raise NothingToLearnError(
                "nothing can be learned: all items have the same features. Picks are "
                "kept and can be exported; open DATA with columns that differ"
            )
        self._start_with(self._first_candidate())
        self.comparison: str | None = None

    def _first_candidate(self) -> LargeMarginDPP:
        """Return the candidate of the first kernel for which the groups suffice."""
        problems = []
        # The linear one last: it cannot choose items whose features are all zero.
        for name in sorted(self.kernels, key=lambda name: name == "linear"):
            kernels = {name: self.kernels[name]}
            try:
                return candidates_for(kernels, self.ground_sets)[name]
            except ValueError as error:
                problems.append(error)
        raise problems[0]

    def _start_with(self, candidate: LargeMarginDPP) -> None:
        """Learn with this unfitted estimator next; forget model, folds, last result."""
        self.candidate = candidate
        self.model: LargeMarginDPP | None = None
        self.judge = Judge(candidate, self.limits)
        self.last: LearningResult | None = None

    def follow(self, comparison: Comparison) -> None:
        """Learn with the best candidate of a comparison from now on.

        Where it is another than before, only folds and the last result are kept.
        """
        self.comparison = comparison.sentence
        known, found = self.candidate.get_params(), comparison.candidate.get_params()
        if repr(known) != repr(found):
            folds, last = self.judge.fold_of, self.last
            self._start_with(comparison.candidate)
            self.judge.fold_of, self.last = folds, last

    def warm_up(self) -> None:
        """Fit a model to one item and drop it, to load the code that learning needs."""
        first = self.ground_sets[0]
        fit_model(self.candidate, [(first, first.candidates[:1])])

    def learn(
        self,
        done: Mapping[int, IntArray],
        publish: Callable[[LearningResult], None] = lambda learned: None,
        check: Check = lambda: None,
    ) -> LearningResult | None:
        """Learn from the groups that are done, and return the most thorough result.

        ``done`` are picks by number of a group, in the order in which groups were done;
        without any, what was learned is forgotten, and None is returned.  ``publish``
        is called with every result on the way, each more thorough.  ``check`` is called
        between steps, and raises an exception to give up.
        """
        if not done:
            self._start_with(self.candidate)
            return None
        examples = {g: (self.ground_sets[g], picks) for g, picks in done.items()}
        self.model = fit_model(self.candidate, list(examples.values()), self.model)
        publish(self._keep_result(self.model, len(done)))
        check()
        self.model = fit_model(self.candidate, list(examples.values()))
        confidence = self._expected_scores(self.model, done, check)
        result = self._keep_result(self.model, len(done))
        learned = self.last = replace(result, confidence=confidence)
        publish(learned)
        self.judge.learn(examples, check)
        has_more = True
        while has_more:
            curve = self.judge.curve(examples, check)
            path = self.judge.path(examples, check)
            learned = self.last = replace(learned, curve=curve, path=path)
            publish(learned)
            has_more = self.judge.catch_up(examples, check)
        return learned

    def _keep_result(self, model: LargeMarginDPP, n_groups: int) -> LearningResult:
        """Set and return ``last``: the new model, and scores of the result before."""
        weights = zip(self.feature_names, model.theta_.tolist(), strict=True)
        self.last = replace(
            self.last or LearningResult(),
            n_groups=n_groups,
            family=odds_family(model),
            weights=tuple(sorted(weights, key=lambda pair: -abs(pair[1]))),
            kinds=self._describe_kinds(model),
            comparison=self.comparison,
        )
        return self.last

    def _expected_scores(
        self, model: LargeMarginDPP, done: Mapping[int, IntArray], check: Check
    ) -> dict[int, float]:
        """Return ``expected_f`` of proposals by group, in the first groups not done."""
        others = [g for g in range(len(self.ground_sets)) if g not in done]
        found: dict[int, float] = {}
        n_items = 0
        for group in others[:_MOST_GROUPS]:
            n_items += len(self.ground_sets[group])
            if found and n_items > _MOST_ITEMS:
                break
            check()
            ensemble = model.ensemble(self.ground_sets[group])
            chosen = ensemble.decode("greedy", **self.limits.get(group, {})).indices
            found[group] = expected_f(ensemble.marginals(), chosen)
        return found

    def _describe_kinds(self, model: LargeMarginDPP) -> tuple[Kind, ...]:
        """Return kinds of the ``Kinds`` with most weight, common ones first; or ()."""
        weightiest = max(
            learned_parts(model, Kinds), key=lambda kinds: kinds.weight, default=None
        )
        if weightiest is None:
            return ()
        p, places = [], []
        for group, ground_set in enumerate(self.ground_sets):
            p.append(weightiest.kernel.kinds(ground_set, weightiest.parameters))
            places += [(group, item) for item in range(len(ground_set))]
            if len(places) >= _KIND_ITEMS:
                break
        of_all = np.concatenate(p)
        shares = of_all.mean(axis=0)
        kinds = []
        for k in np.argsort(-shares, kind="stable")[:_MOST_KINDS].tolist():
            best = np.argsort(-of_all[:, k], kind="stable")[:_TYPICAL]
            typical = tuple(places[i] for i in best if of_all[i].argmax() == k)
            if typical:
                kinds.append(Kind(f"kind {k + 1}", float(shares[k]), typical))
        return tuple(kinds)


def _any_differ(ground_sets: Sequence[GroundSet]) -> bool:
    """Return whether any two items of any groups differ in any feature."""
    first = ground_sets[0]
    for one in ground_sets:
        pairs = [(one.quality, first.quality)]
        pairs += [(one.blocks[name], first.blocks[name]) for name in one.blocks]
        for features, of_first in pairs:
            # The features of one row, repeated, with sparse features still sparse.
            repeated = of_first[np.zeros(len(one), dtype=np.intp)]
            if (features != repeated).sum():
                return True
    return False


def expected_f(probability: FloatArray, chosen: IntArray) -> float:
    r"""Return an approximation of the F-score that a model expects of a choice.

    .. math:: \frac{2 \sum_{i \in A} p_i}{|A| + \sum_i p_i}

    with ``p`` the probabilities of items to be wanted: twice the expected number of
    wanted items in the choice ``A`` over the expected sum of both sizes.  1 where
    nothing is chosen and nothing wanted.
    """
    total = len(chosen) + float(probability.sum())
    if total <= 0.0:
        return 1.0
    return 2.0 * float(probability[chosen].sum()) / total
