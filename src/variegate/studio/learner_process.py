"""The process that learns, from tasks that the teacher sends."""

from __future__ import annotations

import queue
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from threadpoolctl import threadpool_limits

from variegate._processes import connect_to_parent
from variegate._typing import IntArray
from variegate.studio.group_learner import GroupLearner, LearningResult
from variegate.studio.kernel_candidates import Comparison

#: Times in a row that newer picks may interrupt learning: then it is finished.
_INTERRUPTIONS = 2


@dataclass(frozen=True, eq=False)
class Task:
    """Groups to learn from, with their picks, in the order in which they were done."""

    serial: int
    done: dict[int, IntArray]


@dataclass(frozen=True, eq=False)
class Answer:
    """A result of a task, or its end, which may have come by an error."""

    serial: int
    learned: LearningResult | None = None
    is_last: bool = False
    problem: str | None = None


class _InterruptedError(Exception):
    """There are newer picks."""


class _Loop:
    """Works on messages one after the other."""

    def __init__(
        self, messages: queue.Queue[Any], send: Callable[[Answer], None]
    ) -> None:
        self._messages = messages
        self._send = send
        self._n_interrupted = 0

    def run(self) -> None:
        learner = GroupLearner(*self._messages.get())
        learner.warm_up()
        while True:
            message = self._messages.get()
            if isinstance(message, Comparison):
                learner.follow(message)
            elif not self._has_newer():
                self.answer(message, learner)

    def answer(self, task: Task, learner: GroupLearner) -> None:
        def publish(learned: LearningResult) -> None:
            self._send(Answer(task.serial, learned))

        def check() -> None:
            if self._n_interrupted < _INTERRUPTIONS and self._has_newer():
                raise _InterruptedError

        problem = None
        try:
            learner.learn(task.done, publish, check)
            self._n_interrupted = 0
        except _InterruptedError:
            self._n_interrupted += 1
            return
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
        self._send(Answer(task.serial, is_last=True, problem=problem))

    def _has_newer(self) -> bool:
        with self._messages.mutex:
            return any(isinstance(message, Task) for message in self._messages.queue)


def main() -> None:
    """Work on the tasks of the parent process."""
    # Threads of BLAS wait for each other longer than small matrices take, and the page
    # has the other core.
    with threadpool_limits(1):
        _Loop(*connect_to_parent()).run()
