"""Processes that end with the parent that started them, even if that is killed."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs
from joblib.externals.loky.backend import resource_tracker as loky_tracker
from threadpoolctl import threadpool_limits

__all__ = [
    "ChildProcess",
    "ProcessCall",
    "ProcessCallError",
    "connect_to_parent",
    "delay_interrupts",
    "exit_when_parent_dies",
    "parallel_processes",
]

#: Seconds between two looks at whether the parent is still there.
_PERIOD = 0.5

#: Seconds that a process which was killed has to be gone.
_GRACE = 1.0

#: By how much the priority of processes for single calls is lowered.
_NICENESS = 10


@contextmanager
def delay_interrupts() -> Iterator[None]:
    """Delay Ctrl-C to the end of the block.

    Threads and processes that are started in the block never get it.  A terminal
    sends it to all processes: this one ends the others in order.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    arrived: list[int] = []
    handler = signal.getsignal(signal.SIGINT)
    # Python runs handlers in the main thread, whichever thread got the signal.
    holds = (
        handler is not None and threading.current_thread() is threading.main_thread()
    )
    # This process ignores Ctrl-C, and its start would unblock it here.
    resource_tracker.ensure_running()
    if holds:
        signal.signal(signal.SIGINT, lambda number, frame: arrived.append(number))
    former = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, former)
        if holds:
            signal.signal(signal.SIGINT, handler)
            if arrived:
                signal.raise_signal(signal.SIGINT)


def parallel_processes(n_jobs: int | None, **options: Any) -> Any:
    """Return joblib's ``Parallel``, whose worker processes end with this process.

    They have been started.  Their shared memory and temporary folders are removed by
    the tracker of joblib, a process that waits until all others have ended.
    ``options`` are those of joblib.
    """
    options = {"initializer": _exit_loky_worker_with_parent, **options}
    if effective_n_jobs(n_jobs) > 1:
        start = Parallel(n_jobs, **options | {"return_as": "list"})
        loky_tracker.ensure_running()  # as that of multiprocessing
        with delay_interrupts():
            start([delayed(_do_nothing)()])
    return Parallel(n_jobs, **options)


def _do_nothing() -> None:
    """Return at once: the first call starts all workers."""


class ChildProcess:
    """A process that exchanges pickled messages with this one, and ends with it.

    It runs ``main()`` of a module (by its full name, so that both sides know the
    classes that are sent), which calls :func:`connect_to_parent`.  ``niceness`` lowers
    its priority.
    """

    def __init__(self, module: str, niceness: int = 0) -> None:
        code = f"import {module} as module; module.main()"
        if niceness and hasattr(os, "nice"):
            code = f"import os; os.nice({niceness}); {code}"
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # What can be imported here can be imported there, and nothing else: not
            # modules of the current folder, which may belong to another user.
            env=os.environ
            | {
                "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path),
                "PYTHONSAFEPATH": "1",
            },
            # Ctrl-C is for this process, which ends the others in order.
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def send(self, message: Any) -> None:
        """Send a message; OSError or ValueError if the process has ended."""
        pickle.dump(message, self._stdin)
        self._stdin.flush()

    def receive(self) -> Any:
        """Wait for the next message and return it; EOFError if the process ended."""
        return pickle.load(self._stdout)

    def end(self) -> None:
        """Kill the process, and wait a second at most until it is gone."""
        self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE)

    def close(self) -> None:
        """Wait for the end of the process, and close the pipes."""
        self._process.wait()
        for stream in (self._stdin, self._stdout):
            with suppress(OSError):
                stream.close()


def connect_to_parent() -> tuple[queue.Queue[Any], Callable[[Any], None]]:
    """Return a queue of messages from the parent, and a function that sends one to it.

    This process ends as soon as the parent closes the pipe or ends itself, in the
    middle of its work.  Standard output leads to standard error from now on:
    output of a library must not be taken for a message.
    """
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    # Not the object of standard input: Python could not end while a thread reads it.
    incoming = os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    messages: queue.Queue[Any] = queue.Queue()

    def read_messages() -> None:
        """Put messages in the queue until the pipe closes; then exit the process."""
        try:
            while True:
                messages.put(pickle.load(incoming))
        except EOFError:
            pass
        except Exception:
            traceback.print_exc()
        os._exit(0)

    def send(message: Any) -> None:
        """Send a message to the parent, if it is still there."""
        with suppress(BrokenPipeError):
            pickle.dump(message, out)
            out.flush()

    threading.Thread(target=read_messages, daemon=True).start()
    return messages, send


class ProcessCallError(RuntimeError):
    """A call in another process failed; the message is its error."""


class ProcessCall:
    """Calls a function without arguments in a process of its own with low priority.

    The function and the value that it returns must be picklable; :meth:`result` starts
    the call.
    """

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self._process = ChildProcess(__name__, _NICENESS)

    def result(self) -> Any:
        """Call the function and wait; return its value, or raise ProcessCallError."""
        try:
            self._process.send(self._function)
            result, problem = self._process.receive()
        except (EOFError, OSError, pickle.UnpicklingError):
            result, problem = None, "the process that was to do this ended too early"
        finally:
            self._process.end()
            self._process.close()
        if problem is not None:
            raise ProcessCallError(problem)
        return result

    def end(self) -> None:
        """Kill the process, so that :meth:`result` raises."""
        self._process.end()


def main() -> None:
    """Call the function that the parent sends; send (value, None) or (None, error)."""
    messages, send = connect_to_parent()
    function = messages.get()
    answer: tuple[Any, str | None]
    with threadpool_limits(1):
        try:
            answer = function(), None
        except Exception as error:
            answer = None, f"{type(error).__name__}: {error}"
    send(answer)


def exit_when_parent_dies(parent: int) -> None:
    """Exit this process, from a thread, soon after the process ``parent`` (id) died."""
    # A thread polls, because signals at a parent's death exist on Linux only, and are
    # sent at the end of the parent's thread.  Windows never names another parent.
    threading.Thread(target=_exit_without_parent, args=(parent,), daemon=True).start()


def _exit_without_parent(parent: int) -> None:
    """Wait until the parent process is another one than ``parent``; then exit."""
    while os.getppid() == parent:
        time.sleep(_PERIOD)
    os._exit(1)  # at once, in the middle of whatever the other threads do


def _exit_loky_worker_with_parent() -> None:
    """Exit soon after the parent dies, if this process is a worker of loky."""
    parent = multiprocessing.parent_process()
    # A worker of loky has no sentinel.
    if parent is not None and parent.sentinel is None and parent.pid is not None:
        exit_when_parent_dies(parent.pid)
