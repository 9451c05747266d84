"""The teacher: learning in processes of their own, so that the page never waits.

After each group a model is learned at once, from where the last one stood; then again
from the start, and judged (:mod:`variegate.studio.group_learner`).  Kernels are
compared in another process when 4, 8, 16, 32, ... groups are done, and the best is
learned with from then on (:mod:`variegate.studio.kernel_candidates`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from threading import Condition, Thread

from variegate._processes import ProcessCallError, ProcessCalls
from variegate._typing import IntArray
from variegate.studio.group_learner import Kind, LearningResult
from variegate.studio.kernel_candidates import Comparison, compare, is_compared
from variegate.studio.learner_process import Answer, LearnerProcess, Task
from variegate.studio.material.base import Material, Picks


class Teacher:
    """Learns from picks in processes of its own.

    Parameters
    ----------
    material : Material
    compares : bool, default=True
        Whether kernels are compared in the background.

    """

    def __init__(self, material: Material, compares: bool = True) -> None:
        #: The last result.
        self.learned: LearningResult | None = None
        #: Why learning last failed; None if it did not.
        self.problem: str | None = None
        self._material = material
        self._changed = Condition()
        self._n_changes = 0
        #: The last task, and the last that is finished.
        self._serial = self._finished = 0
        self._done: dict[int, IntArray] = {}
        self._comparison: Comparison | None = None
        self._compared_at = 0
        self._is_comparing = False
        groups = range(len(material.names))
        self._ground_sets = [material.ground_set(group) for group in groups]
        self._kernels = dict(material.kernels)
        self._compares = compares and len(self._kernels) > 1
        self._calls = ProcessCalls()
        opening = (self._ground_sets, self._kernels, list(material.feature_names))
        self._process = LearnerProcess(opening, self._take, self._resume)

    @property
    def is_learning(self) -> bool:
        """Whether a result is to come for the picks that were taught last."""
        return self._finished < self._serial

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Change something, and wake those that wait for it."""
        with self._changed:
            yield
            self._n_changes += 1
            self._changed.notify_all()

    def teach(self, picks: Picks) -> None:
        """Learn from the picks of groups, in the order in which they were done.

        Returns at once.  Picks that are not learned from yet are dropped.
        """
        with self._changing():
            self._serial += 1
            self._done = dict(picks)
            if not picks:
                self.learned, self._finished = None, self._serial
            else:
                self._process.send(Task(self._serial, self._done))
                self._compare_now_and_then()

    def _compare_now_and_then(self) -> None:
        n = len(self._done)
        if not self._compares or self._is_comparing:
            return
        if any(is_compared(m) for m in range(self._compared_at + 1, n + 1)):
            self._compared_at, self._is_comparing = n, True
            examples = [(self._ground_sets[g], p) for g, p in self._done.items()]
            call = partial(compare, self._kernels, self._ground_sets, examples)
            Thread(target=self._compare, args=(call,), daemon=True).start()

    def _compare(self, call: Callable[[], Comparison]) -> None:
        """Learn by the best candidate from then on, and at once from all picks.

        Where a comparison failed, learning goes on as before.
        """
        try:
            found, problem = self._calls.call(call), None
        except ProcessCallError as error:
            found, problem = None, f"similarities cannot be compared: {error}"
        with self._changing():
            self._is_comparing = False
            if found is None:
                self.problem = problem
                return
            self._comparison = found
            self._serial += bool(self._done)
            self._send_all()
            self._compare_now_and_then()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until no more results are to come; return whether that is so."""
        with self._changed:
            return self._changed.wait_for(
                lambda: not self.is_learning and not self._is_comparing, timeout
            )

    def wait_for_change(self, seen: int) -> int:
        """Wait until there were more than ``seen`` changes, and return their number."""
        with self._changed:
            self._changed.wait_for(lambda: self._n_changes > seen)
            return self._n_changes

    def close(self) -> None:
        """End the processes."""
        self._process.close()
        self._calls.close("the studio is ending")
        with self._changing():
            pass  # wakes the threads in wait_for_change

    def _take(self, answer: Answer) -> None:
        with self._changing():
            if answer.problem is not None:
                self.problem = answer.problem
                self._finished = max(self._finished, answer.serial)
            elif answer.serial == self._serial:
                self.problem = None
                if answer.learned is not None:
                    kinds = tuple(map(self._with_titles, answer.learned.kinds))
                    self.learned = replace(answer.learned, kinds=kinds)
                if answer.is_last:
                    self._finished = answer.serial

    def _with_titles(self, kind: Kind) -> Kind:
        titles = [
            self._material.items(group)[item].title for group, item in kind.typical
        ]
        return replace(kind, description=", ".join(titles))

    def _resume(self, has_restarted: bool) -> None:
        """Teach a process that was started again what the last one knew."""
        with self._changing():
            if has_restarted:
                self._send_all()
            else:
                self.problem = "the process that learns ended again and again"
                self._finished = self._serial

    def _send_all(self) -> None:
        if self._comparison is not None:
            self._process.send(self._comparison)
        if self._done:
            self._process.send(Task(self._serial, self._done))
