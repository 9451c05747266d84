"""The teacher: learning in processes of their own, so that the page never waits.

After each group a model is learned at once, from where the last one stood;
then again from the start, with what it is judged by (:mod:`variegate.studio.pupil`).
Similarities are compared in another process when 4, 8, 16, 32, ... groups are done
(:mod:`variegate.studio.comparing`), and the best is learned with from then on.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from variegate._typing import IntArray
from variegate.studio.comparing import Comparison, is_compared
from variegate.studio.learned import Kind, Learned
from variegate.studio.material.base import Material
from variegate.studio.partner import Partner
from variegate.studio.worker import Compare, Follow, Open, Outcome, Teach

__all__ = ["Teacher"]

#: What the priority of the process that compares is lowered by.
_NICENESS = 10


class Teacher:
    """Learns from picks in processes of its own.

    Parameters
    ----------
    material : Material
    compares : bool, default=True
        Whether similarities are compared in the background.
    """

    def __init__(self, material: Material, compares: bool = True) -> None:
        self._material = material
        self._changed = threading.Condition()
        self._serial = 0
        #: What was taught last of which something, and all, has come back.
        self._first = 0
        self._finished = 0
        self._done: dict[int, IntArray] = {}
        self._learned: Learned | None = None
        self._problem: str | None = None
        self._comparison: Comparison | None = None
        self._compared_at = 0
        self._is_comparing = False
        groups = range(len(material.names))
        opening = Open(
            [material.ground_set(group) for group in groups],
            dict(material.kernels),
            list(material.feature_names),
        )
        self._quick = Partner(opening, self._take, self._go_on)
        has_choice = compares and len(material.kernels) > 1
        self._thorough = (
            Partner(
                opening,
                self._take_comparison,
                self._give_up_comparing,
                niceness=_NICENESS,
            )
            if has_choice
            else None
        )

    # What is known ----------------------------------------------------------------

    @property
    def learned(self) -> Learned | None:
        """What was learned last."""
        return self._learned

    @property
    def is_learning(self) -> bool:
        """Whether something is to come for what was taught last."""
        return self._finished < self._serial

    @property
    def problem(self) -> str | None:
        """Why learning last failed, in words; None if it did not."""
        return self._problem

    # Teaching ---------------------------------------------------------------------

    def teach(self, examples: Sequence[tuple[int, Any]]) -> None:
        """Learn from groups and their picks, in the order in which they were done.

        Returns at once.  What was taught before and is not learned yet is dropped.
        """
        done = {
            int(group): np.sort(np.asarray(picks, dtype=np.intp))
            for group, picks in examples
        }
        with self._changed:
            self._serial += 1
            self._done = done
            if not done:
                self._learned, self._finished = None, self._serial
            else:
                self._quick.send(Teach(self._serial, done))
                self._compare_now_and_then()
            self._changed.notify_all()

    def _compare_now_and_then(self) -> None:
        n = len(self._done)
        if self._thorough is None or self._is_comparing or n <= self._compared_at:
            return
        if any(is_compared(m) for m in range(self._compared_at + 1, n + 1)):
            self._compared_at, self._is_comparing = n, True
            self._thorough.send(Compare(self._serial, self._done))

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until nothing more is to come; return whether that is so."""
        with self._changed:
            return self._changed.wait_for(
                lambda: not self.is_learning and not self._is_comparing, timeout
            )

    def wait_for_first(self, timeout: float | None = None) -> bool:
        """Wait until there is a model for what was taught last, however rough."""
        serial = self._serial
        with self._changed:
            return self._changed.wait_for(
                lambda: self._finished >= serial or self._first >= serial, timeout
            )

    def close(self) -> None:
        """End the processes that learn."""
        self._quick.close()
        if self._thorough is not None:
            self._thorough.close()

    # What comes back --------------------------------------------------------------

    def _take(self, outcome: Outcome) -> None:
        """Take what was learned, in the thread that reads it."""
        with self._changed:
            if outcome.problem is not None:
                self._problem = outcome.problem
                self._finished = max(self._finished, outcome.serial)
            elif outcome.serial == self._serial:
                self._problem = None
                if outcome.learned is not None:
                    self._learned = self._named(outcome.learned)
                    self._first = outcome.serial
                if outcome.is_last:
                    self._finished = outcome.serial
            self._changed.notify_all()

    def _take_comparison(self, outcome: Outcome) -> None:
        """Take what was compared; where that failed, learning goes on as before."""
        with self._changed:
            self._is_comparing = False
            if outcome.comparison is not None:
                self._follow(outcome.comparison)
            else:
                self._problem = f"similarities cannot be compared: {outcome.problem}"
            self._changed.notify_all()

    def _follow(self, comparison: Comparison) -> None:
        """Learn by what did best from now on, and at once from what is there."""
        self._comparison = comparison
        self._quick.send(Follow(comparison.lesson, comparison.sentence))
        if self._done:
            self._serial += 1
            self._quick.send(Teach(self._serial, self._done))
        self._compare_now_and_then()

    def _named(self, learned: Learned) -> Learned:
        """Return the same with typical items of kinds called by their titles."""
        return replace(learned, kinds=tuple(map(self._with_titles, learned.kinds)))

    def _with_titles(self, kind: Kind) -> Kind:
        titles = [
            self._material.items(group)[item].title for group, item in kind.typical
        ]
        return replace(kind, description=", ".join(titles))

    def _go_on(self, has_restarted: bool) -> None:
        """Teach a process that was started again what the last one knew."""
        with self._changed:
            if not has_restarted:
                self._problem = "the process that learns ended again and again"
                self._finished = self._serial
            else:
                if self._comparison is not None:
                    found = self._comparison
                    self._quick.send(Follow(found.lesson, found.sentence))
                if self._done:
                    self._quick.send(Teach(self._serial, self._done))
            self._changed.notify_all()

    def _give_up_comparing(self, has_restarted: bool) -> None:
        with self._changed:
            self._is_comparing = False
            self._changed.notify_all()
