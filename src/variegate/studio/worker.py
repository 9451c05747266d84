"""The process that learns, started by :class:`variegate.studio.partner.Partner`.

Messages come on standard input and go out on standard output
(:mod:`variegate._processes`); it ends with standard input.
"""

from __future__ import annotations

import os
import pickle
import queue
import sys
import threading
from dataclasses import dataclass
from typing import IO, Any

from variegate._processes import own_output
from variegate._typing import IntArray
from variegate.ground_set import GroundSet
from variegate.kernels import Kernel
from variegate.studio.comparing import Comparison, compare
from variegate.studio.learned import Learned
from variegate.studio.lessons import Lesson
from variegate.studio.pupil import Pupil

__all__ = ["Compare", "Follow", "Open", "Outcome", "Teach", "main"]

#: Times in a row that newer picks may cut thorough work short: then it is finished.
_PATIENCE = 2


@dataclass(frozen=True, eq=False)
class Open:
    """All groups, and what can be learned from them."""

    ground_sets: list[GroundSet]
    kernels: dict[str, Kernel]
    feature_names: list[str]


@dataclass(frozen=True, eq=False)
class Teach:
    """Groups with their picks, in the order in which they were done."""

    serial: int
    done: dict[int, IntArray]


@dataclass(frozen=True, eq=False)
class Compare:
    """As :class:`Teach`, to compare similarities on."""

    serial: int
    done: dict[int, IntArray]


@dataclass(frozen=True, eq=False)
class Follow:
    """A lesson to learn by from now on."""

    lesson: Lesson
    sentence: str


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came out of a message, and whether there is no more to come of it."""

    serial: int
    is_last: bool
    learned: Learned | None = None
    comparison: Comparison | None = None
    problem: str | None = None


class _SupersededError(Exception):
    """There are newer picks."""


class _Worker:
    def __init__(self, inbox: queue.Queue[Any], out: IO[bytes]) -> None:
        self._inbox = inbox
        self._out = out
        self._pupil: Pupil | None = None
        self._n_cut = 0

    def run(self) -> None:
        """Answer messages, one after the other; the end of them ends the process."""
        while True:
            message = self._inbox.get()
            if isinstance(message, Open):
                self._pupil = Pupil(
                    message.ground_sets, message.kernels, message.feature_names
                )
                self._pupil.warm_up()
                continue
            assert self._pupil is not None
            if isinstance(message, Follow):
                self._pupil.follow(message.lesson, message.sentence)
                continue
            if isinstance(message, Teach) and self._has_newer():
                continue
            self._answer(message, self._pupil)

    def _answer(self, message: Teach | Compare, pupil: Pupil) -> None:
        try:
            if isinstance(message, Teach):
                self._teach(message, pupil)
            else:
                examples = [
                    (pupil.ground_sets[g], picks) for g, picks in message.done.items()
                ]
                found = compare(pupil.lessons, examples)
                self._send(Outcome(message.serial, True, comparison=found))
        except _SupersededError:
            self._n_cut += 1
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            self._send(Outcome(message.serial, True, problem=problem))

    def _teach(self, message: Teach, pupil: Pupil) -> None:
        def publish(learned: Learned) -> None:
            self._send(Outcome(message.serial, False, learned))

        def check() -> None:
            if self._n_cut < _PATIENCE and self._has_newer():
                raise _SupersededError

        learned = pupil.learn(message.done, publish, check)
        self._n_cut = 0
        self._send(Outcome(message.serial, True, learned))

    def _has_newer(self) -> bool:
        with self._inbox.mutex:
            return any(isinstance(message, Teach) for message in self._inbox.queue)

    def _send(self, outcome: Outcome) -> None:
        pickle.dump(outcome, self._out)
        self._out.flush()


def _read(stream: IO[bytes], inbox: queue.Queue[Any]) -> None:
    """Put messages in the inbox; the end of them is the end of the process."""
    try:
        while True:
            inbox.put(pickle.load(stream))
    except (EOFError, OSError, pickle.UnpicklingError):
        os._exit(0)  # in the middle of whatever is learned: nobody waits for it


def main() -> None:
    """Learn what comes on standard input."""
    from threadpoolctl import threadpool_limits

    out = own_output()
    inbox: queue.Queue[Any] = queue.Queue()
    threading.Thread(target=_read, args=(sys.stdin.buffer, inbox), daemon=True).start()
    # Threads of BLAS wait for each other longer than small matrices take, and the page
    # has the other core.
    with threadpool_limits(1):
        _Worker(inbox, out).run()
