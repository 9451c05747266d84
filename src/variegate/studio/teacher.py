"""The teacher: learning in processes of their own, so that the page never waits.

After each group a model is learned at once, from where the last one stood; then again
from the start, and judged (:mod:`variegate.studio.group_learner`).  Kernels are
compared in another process when 4, 8, 16, 32, ... groups are done, and the best is
learned with from then on (:mod:`variegate.studio.kernel_candidates`).
"""

from __future__ import annotations

import pickle
import queue
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from threading import Condition, Thread
from typing import Any, NoReturn

from threadpoolctl import threadpool_limits

from variegate._processes import (
    ChildProcess,
    ProcessCall,
    ProcessCallError,
    connect_to_parent,
)
from variegate._typing import IntArray
from variegate.material.base import Material, Picks
from variegate.studio.group_learner import (
    GroupLearner,
    LearningResult,
    NothingToLearnError,
)
from variegate.studio.kernel_candidates import Comparison, compare, is_compared

#: Times in a row that a process which ended by itself is started again, and that newer
#: picks may interrupt learning: then it is finished.
_RESTARTS = 3
_INTERRUPTIONS = 2


@dataclass(frozen=True, eq=False)
class Task:
    """Groups to learn from, with their picks, in the order in which they were done."""

    #: The number of the task; a later task replaces earlier ones.
    serial: int
    done: dict[int, IntArray]


@dataclass(frozen=True, eq=False)
class Answer:
    """A result of a task, or its end: ``is_last``, with any error as ``problem``."""

    #: That of the task.
    serial: int
    learned: LearningResult | None = None
    is_last: bool = False
    problem: str | None = None


class Teacher:
    """Learns from picks in processes of its own, and ``compares`` kernels in one."""

    def __init__(self, material: Material, compares: bool = True) -> None:
        #: The last result.
        self.learned: LearningResult | None = None
        #: Why learning last failed; None if it did not.
        self.problem: str | None = None
        #: Called after a process has changed something, in a thread of its own.
        self.listener: Callable[[], None] = lambda: None
        self._changed = Condition()
        #: The numbers of the last task, and of the last that is finished.
        self._serial = self._finished = 0
        self._done: dict[int, IntArray] = {}
        self._comparison: Comparison | None = None
        #: The number of groups that were done when kernels were last compared.
        self._compared_at = 0
        self._comparing: ProcessCall | None = None
        groups = range(len(material.names))
        self._ground_sets = [material.ground_set(group) for group in groups]
        self._kernels = dict(material.kernels)
        limits = {group: material.limits(group) for group in groups}
        names = list(material.feature_names)
        #: Arguments of ``GroupLearner``, the first message to a process.
        self._data = self._ground_sets, self._kernels, names, limits
        self._compares = compares and len(self._kernels) > 1
        self._is_closed = False
        self._n_ended = 0
        self._start_process()

    @property
    def is_learning(self) -> bool:
        """Whether a result is to come for the picks that were taught last."""
        return self._finished < self._serial

    @contextmanager
    def _notify_after_change(self) -> Iterator[None]:
        """Hold the lock in a with block; then wake :meth:`wait`, call ``listener``."""
        with self._changed:
            yield
            self._changed.notify_all()
        self.listener()

    def teach(self, picks: Picks) -> None:
        """Start to learn from the picks of groups, in the order of their end.

        Returns at once.  Earlier picks that are not learned from yet are dropped;
        without any picks, so is the last result.
        """
        with self._changed:
            self._serial += 1
            self._done = dict(picks)
            if not picks:
                self.learned, self._finished = None, self._serial
            else:
                self._outbox.put(Task(self._serial, self._done))
                self._compare_if_due()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until no results are to come; return False after ``timeout`` seconds."""
        with self._changed:
            return self._changed.wait_for(
                lambda: not self.is_learning and self._comparing is None, timeout
            )

    def close(self) -> None:
        """End the processes."""
        with self._changed:
            self._is_closed = True
        self._process.end()
        if self._comparing is not None:
            self._comparing.end()

    # The process that learns ----------------------------------------------------------

    def _start_process(self) -> None:
        """Start a process with its threads, and send it data and the last messages."""
        self._process = process = ChildProcess(__name__)
        self._outbox: queue.Queue[Any] = queue.Queue()
        self._outbox.put(self._data)
        self._send_known()
        for work in (_send_messages, self._receive_answers):
            arguments = (process, self._outbox)
            Thread(target=work, args=arguments, daemon=True).start()

    def _send_known(self) -> None:
        """Send the last comparison and task to the process."""
        if self._comparison is not None:
            self._outbox.put(self._comparison)
        if self._done:
            self._outbox.put(Task(self._serial, self._done))

    def _receive_answers(self, process: ChildProcess, outbox: queue.Queue[Any]) -> None:
        """Take answers until the process ends; start another if it was not closed.

        After ``_RESTARTS`` ends in a row without an answer, set ``problem`` instead.
        A None in ``outbox`` ends the thread that sends its messages.
        """
        with suppress(EOFError, OSError, ValueError, pickle.PickleError):
            while True:
                self._take_answer(process.receive())
        outbox.put(None)
        process.close()
        with self._notify_after_change():
            self._n_ended += 1
            if not self._is_closed and self._n_ended <= _RESTARTS:
                self._start_process()
            elif not self._is_closed:
                self.problem = "the process that learns ended again and again"
                self._finished = self._serial

    def _take_answer(self, answer: Answer) -> None:
        """Keep the result or problem of an answer; drop results of older tasks."""
        with self._notify_after_change():
            self._n_ended = 0
            if answer.problem is not None:
                self.problem = answer.problem
                # Number 0: there is no learner, and nothing to compare kernels by.
                self._compares = self._compares and answer.serial > 0
                self._finished = max(self._finished, answer.serial)
            elif answer.serial == self._serial:
                self.problem = None
                self.learned = answer.learned or self.learned
                if answer.is_last:
                    self._finished = answer.serial

    # Comparisons ----------------------------------------------------------------------

    def _compare_if_due(self) -> None:
        """Start to compare kernels if enough groups are done and no comparison runs."""
        n = len(self._done)
        if not self._compares or self._comparing is not None:
            return
        if any(is_compared(m) for m in range(self._compared_at + 1, n + 1)):
            self._compared_at = n
            examples = [(self._ground_sets[g], p) for g, p in self._done.items()]
            compared = partial(compare, self._kernels, self._ground_sets, examples)
            self._comparing = call = ProcessCall(compared)
            Thread(target=self._await_comparison, args=(call,), daemon=True).start()

    def _await_comparison(self, call: ProcessCall) -> None:
        """Wait for a comparison in a thread, then learn again with the best candidate.

        If it failed, set ``problem`` and learn as before.
        """
        try:
            found, problem = call.result(), None
        except ProcessCallError as error:
            found, problem = None, f"similarities cannot be compared: {error}"
        with self._notify_after_change():
            self._comparing = None
            if found is None:
                self.problem = problem
                return
            self._comparison = found
            self._serial += bool(self._done)
            self._send_known()
            self._compare_if_due()


def _send_messages(process: ChildProcess, outbox: queue.Queue[Any]) -> None:
    """Send messages of an outbox to a process, in a thread, until one is None."""
    # Messages that a process does not take any more are sent to the next one.
    with suppress(OSError, ValueError):
        while (message := outbox.get()) is not None:
            process.send(message)


# In the process that learns -----------------------------------------------------------


class _InterruptedError(Exception):
    """There are newer picks."""


class _MessageLoop:
    """Works on messages of the parent: first data, then tasks and comparisons."""

    def __init__(
        self, messages: queue.Queue[Any], send: Callable[[Answer], None]
    ) -> None:
        self._messages = messages
        self._send = send
        self._n_interrupted = 0

    def run(self) -> None:
        """Work on messages; never returns, the process ends with its parent.

        If no model can be learned from the data, that is the answer to every task, and
        the answer number 0 before the first.
        """
        try:
            learner = GroupLearner(*self._messages.get())
        except NothingToLearnError as error:
            self._refuse_tasks(str(error))
        except Exception as error:
            self._refuse_tasks(f"{type(error).__name__}: {error}")
        # A group that cannot be learned from is the problem of tasks that have it.
        with suppress(ValueError):
            learner.warm_up()
        while True:
            message = self._messages.get()
            if isinstance(message, Comparison):
                learner.follow(message)
            elif not self._has_newer_task():
                self.answer(message, learner)

    def _refuse_tasks(self, problem: str) -> NoReturn:
        """Answer every task with a problem, for ever."""
        serial = 0
        while True:
            self._send(Answer(serial, is_last=True, problem=problem))
            while not isinstance(message := self._messages.get(), Task):
                pass
            serial = message.serial

    def answer(self, task: Task, learner: GroupLearner) -> None:
        """Learn from a task, sending its results and its end.

        Newer picks interrupt it, and then nothing more is sent.
        """

        def publish(learned: LearningResult) -> None:
            """Send a result of this task."""
            self._send(Answer(task.serial, learned))

        def check() -> None:
            """Raise if a newer task waits, unless that happened too often in a row."""
            if self._n_interrupted < _INTERRUPTIONS and self._has_newer_task():
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

    def _has_newer_task(self) -> bool:
        """Return whether another task is waiting."""
        with self._messages.mutex:
            return any(isinstance(message, Task) for message in self._messages.queue)


def main() -> None:
    """Learn for the parent process until it ends, with one thread of BLAS."""
    # Threads of BLAS wait for each other longer than small matrices take, and the page
    # has the other core.
    with threadpool_limits(1):
        _MessageLoop(*connect_to_parent()).run()
