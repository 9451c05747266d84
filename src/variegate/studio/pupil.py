"""What learns: all that the process of a teacher knows, without the process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from variegate._typing import FloatArray, IntArray
from variegate.application.model_facts import learned_kinds
from variegate.estimator import LargeMarginDPP
from variegate.ground_set import GroundSet
from variegate.kernels import Kernel
from variegate.studio.judging import Check, Judge
from variegate.studio.learned import Kind, Learned
from variegate.studio.lessons import (
    Example,
    Lesson,
    lessons_for,
    over_omega,
    weights_of,
)
from variegate.studio.sureness import expected_f

__all__ = ["Pupil"]

#: Groups that are not done whose sureness is looked at after each lesson, and items of
#: them, at most: those that come first.
_LOOKED_AT = 100
_LOOKED_AT_ITEMS = 10_000

#: Items that kinds are described by, at most, typical ones that are named, and kinds.
_KIND_ITEMS = 2000
_TYPICAL = 3
_MOST_KINDS = 32

Publish = Callable[[Learned], None]


def _never() -> None:
    """Go on in any case."""


@dataclass(eq=False)
class Pupil:
    """Learns from groups that are done, in two steps.

    First, at once, from where the last model stood; then thoroughly, from the start,
    with all that is judged by: the curve, the path, and the sureness of other groups.

    Parameters
    ----------
    ground_sets : sequence of GroundSet
        Of all groups.
    kernels : mapping from name to Kernel
        Similarities; the first is learned with until a comparison says otherwise.
    feature_names : sequence of str
    """

    ground_sets: Sequence[GroundSet]
    kernels: Mapping[str, Kernel]
    feature_names: Sequence[str]

    def __post_init__(self) -> None:
        name, kernel = next(iter(self.kernels.items()))
        self._take_up(lessons_for({name: kernel}, self.ground_sets)[name])
        self.comparison: str | None = None

    @cached_property
    def lessons(self) -> dict[str, Lesson]:
        """A lesson for every similarity, all settled when one is asked for."""
        return lessons_for(self.kernels, self.ground_sets)

    def _take_up(self, lesson: Lesson) -> None:
        self.lesson = lesson
        self.model: LargeMarginDPP | None = None
        self.judge = Judge(lesson)
        self.last: Learned | None = None

    def follow(self, lesson: Lesson, sentence: str) -> None:
        """Learn by another lesson from now on, if it is another."""
        self.comparison = sentence
        if _settings(lesson) == _settings(self.lesson):
            return
        parts, last = self.judge.part_of, self.last
        self._take_up(lesson)
        self.judge.part_of, self.last = parts, last

    def warm_up(self) -> None:
        """Load what learning needs, so that the first group need not wait for it."""
        self.lesson.fit([(self.ground_sets[0], np.zeros(1, dtype=np.intp))])

    def learn(
        self,
        done: Mapping[int, IntArray],
        publish: Publish = lambda learned: None,
        check: Check = _never,
        is_judged: bool = True,
    ) -> Learned | None:
        """Learn from groups and their picks, in the order in which they were done.

        ``publish`` is called with what is there already as soon as it is better;
        ``check`` is asked between steps, and raises to give up.  Without being judged
        it has neither curve nor path.
        """
        if not done:
            self._take_up(self.lesson)
            return None
        examples = {g: (self.ground_sets[g], picks) for g, picks in done.items()}
        self.model = self.lesson.fit(list(examples.values()), self.model)
        publish(self._described(len(done)))
        check()
        self.model = self.lesson.fit(list(examples.values()))
        learned = self._described(len(done))
        learned = replace(learned, sureness=self._sureness(done, check))
        self.last = learned
        publish(learned)
        if not is_judged:
            return learned
        self.judge.learn(examples, check)
        learned = self._judged(learned, examples, check)
        publish(learned)
        while self.judge.catch_up(examples, check):
            learned = self._judged(learned, examples, check)
            publish(learned)
        return learned

    def _described(self, n_groups: int) -> Learned:
        """Return the model as it is, with what was judged before."""
        assert self.model is not None
        family = over_omega(self.model)
        model = family.at(1.0)
        learned = Learned(
            n_groups,
            family,
            self.lesson.decoder,
            weights_of(model, self.feature_names),
            self._kinds(model),
            comparison=self.comparison,
        )
        if self.last is not None:
            last = self.last
            learned = replace(
                learned, curve=last.curve, path=last.path, sureness=last.sureness
            )
        self.last = learned
        return learned

    def _judged(
        self, learned: Learned, examples: Mapping[int, Example], check: Check
    ) -> Learned:
        curve = self.judge.curve(examples, check)
        path = self.judge.path(examples, check)
        self.last = replace(learned, curve=curve, path=path)
        return self.last

    def _sureness(self, done: Mapping[int, IntArray], check: Check) -> dict[int, float]:
        """Return how sure the model is of the next groups that are not done."""
        assert self.model is not None
        others = [g for g in range(len(self.ground_sets)) if g not in done]
        found: dict[int, float] = {}
        n_items = 0
        for group in others[:_LOOKED_AT]:
            n_items += len(self.ground_sets[group])
            if found and n_items > _LOOKED_AT_ITEMS:
                break
            check()
            ensemble = self.model.ensemble(self.ground_sets[group])
            chosen = ensemble.decode(self.lesson.decoder).indices
            found[group] = expected_f(ensemble.marginals(), chosen)
        return found

    # Kinds ------------------------------------------------------------------------

    def _kinds(self, model: LargeMarginDPP) -> tuple[Kind, ...]:
        """Return the kinds of a model, by items of the first groups."""
        every = learned_kinds(model)
        if not every:
            return ()
        weightiest = max(every, key=lambda kinds: kinds.weight)
        p, places = [], []
        for group, ground_set in enumerate(self.ground_sets):
            p.append(weightiest.kernel.kinds(ground_set, weightiest.parameters))
            places += [(group, item) for item in range(len(ground_set))]
            if len(places) >= _KIND_ITEMS:
                break
        return _described_kinds(np.concatenate(p), places)


def _described_kinds(
    p: FloatArray, places: Sequence[tuple[int, int]]
) -> tuple[Kind, ...]:
    shares = p.mean(axis=0)
    order = np.argsort(-shares, kind="stable")[:_MOST_KINDS]
    kinds = []
    for k in order.tolist():
        best = np.argsort(-p[:, k], kind="stable")[:_TYPICAL]
        typical = tuple(places[i] for i in best if p[i].argmax() == k)
        if not typical:
            continue
        kinds.append(Kind(f"kind {k + 1}", float(shares[k]), "", typical))
    return tuple(kinds)


def _settings(lesson: Lesson) -> dict[str, str]:
    """Return what makes a lesson another one."""
    given = lesson.estimator.get_params(deep=False)
    kernel = lesson.estimator.kernel
    given["kernel"] = None if kernel is None else kernel.get_params()
    return {"name": lesson.name} | {name: repr(value) for name, value in given.items()}
