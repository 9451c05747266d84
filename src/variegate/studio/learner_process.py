"""The learner in a process of its own, which is started again if it ends by itself."""

from __future__ import annotations

import contextlib
import pickle
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from threadpoolctl import threadpool_limits

from variegate._processes import ChildProcess, connect_to_parent
from variegate._typing import IntArray
from variegate.studio.group_learner import GroupLearner, LearningResult
from variegate.studio.kernel_candidates import Comparison

#: Times in a row that a process which ended by itself is started again.
_RESTARTS = 3

#: Times in a row that newer picks may interrupt learning: then it is finished.
_INTERRUPTIONS = 2


@dataclass(frozen=True, eq=False)
class Task:
    """Groups to learn from, with their picks, in the order in which they were done."""

    serial: int
    done: dict[int, IntArray]


@dataclass(frozen=True, eq=False)
class Answer:
    """A result of a task; ``is_last`` where no other will follow."""

    serial: int
    is_last: bool
    learned: LearningResult | None = None
    problem: str | None = None


class LearnerProcess:
    """A process with a learner, which takes tasks and comparisons.

    ``opening`` are the arguments of ``GroupLearner``.
    ``on_answer`` is called in a thread of its own; ``on_end`` when a process has ended
    by itself, with whether another was started: tasks without an answer are lost.
    """

    def __init__(
        self,
        opening: tuple[Any, ...],
        on_answer: Callable[[Answer], None],
        on_end: Callable[[bool], None],
    ) -> None:
        self._opening = opening
        self._on_answer = on_answer
        self._on_end = on_end
        self._is_closed = False
        self._n_ended = 0
        self._lock = threading.Lock()
        self._start()

    def send(self, message: Task | Comparison) -> None:
        """Send a message; returns at once."""
        self._outbox.put(message)

    def _start(self) -> None:
        self.process = ChildProcess(__name__)
        self._outbox: queue.Queue[Any] = queue.Queue()
        self._outbox.put(self._opening)
        for work in (self._write, self._read):
            arguments = (self.process, self._outbox)
            threading.Thread(target=work, args=arguments, daemon=True).start()

    def _write(self, process: ChildProcess, outbox: queue.Queue[Any]) -> None:
        # Messages that a process does not take any more are sent to the next one.
        with contextlib.suppress(OSError, ValueError):
            while (message := outbox.get()) is not None:
                process.send(message)

    def _read(self, process: ChildProcess, outbox: queue.Queue[Any]) -> None:
        with contextlib.suppress(EOFError, OSError, ValueError, pickle.PickleError):
            while True:
                self._on_answer(process.receive())
                self._n_ended = 0
        outbox.put(None)
        process.close()
        with self._lock:
            if self._is_closed:
                return
            self._n_ended += 1
            if self._n_ended <= _RESTARTS:
                self._start()
        self._on_end(self._n_ended <= _RESTARTS)

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._is_closed = True
        self.process.end()


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
            self._send(Answer(task.serial, False, learned))

        def check() -> None:
            if self._n_interrupted < _INTERRUPTIONS and self._has_newer():
                raise _InterruptedError

        try:
            learned = learner.learn(task.done, publish, check)
        except _InterruptedError:
            self._n_interrupted += 1
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            self._send(Answer(task.serial, True, problem=problem))
        else:
            self._n_interrupted = 0
            self._send(Answer(task.serial, True, learned))

    def _has_newer(self) -> bool:
        with self._messages.mutex:
            return any(isinstance(message, Task) for message in self._messages.queue)


def main() -> None:
    """Work on the tasks of the parent process."""
    # Threads of BLAS wait for each other longer than small matrices take, and the page
    # has the other core.
    with threadpool_limits(1):
        _Loop(*connect_to_parent()).run()
