"""Processes that do not outlive the one that started them, however that one ends."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import IO, Any, TypeAlias

from joblib import Parallel

__all__ = [
    "Piped",
    "end_piped",
    "end_with",
    "in_processes",
    "own_output",
    "start_piped",
]

#: A process that is spoken with by pipes.
Piped: TypeAlias = "subprocess.Popen[bytes]"

#: Seconds between two looks at whether the parent is still there.
_PERIOD = 0.5

#: Seconds that a process which was killed has to be gone.
_GRACE = 1.0


def in_processes(n_jobs: int | None, **options: Any) -> Any:
    """Return joblib's ``Parallel``, whose worker processes end with this process.

    What they leave in shared memory and temporary folders is removed by the tracker of
    joblib, a process that waits until all others have ended.
    """
    return Parallel(n_jobs=n_jobs, initializer=_end_with_parent, **options)


def start_piped(module: str, niceness: int = 0) -> Piped:
    """Start ``main()`` of a module, with its priority lowered.

    It takes pickles on standard input and sends pickles on standard output, between two
    processes of one program, and has to end when its standard input does: then it ends
    with this process.  The module goes by its full name, so that what it sends is of
    the classes that are known here.
    """
    code = f"import {module} as module; module.main()"
    if niceness and hasattr(os, "nice"):
        code = f"import os; os.nice({niceness}); {code}"
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # What can be imported here can be imported there.
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        # Ctrl-C is for this process, which ends the others in order.
        start_new_session=True,
    )


def end_piped(process: Piped) -> None:
    """End a process at once: it holds nothing that could be lost."""
    process.kill()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE)


def own_output() -> IO[bytes]:
    """Return standard output, and let what others print go to standard error.

    Whatever a library prints must not be taken for a message.
    """
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return out


def end_with(parent: int) -> None:
    """End this process as soon as the process that started it is gone."""
    # A thread that looks, for signals at a parent's death are Linux's alone, and are
    # sent at the end of the parent's thread.  Windows never names another parent.
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_PERIOD)
    os._exit(1)  # at once, in the middle of whatever the other threads do


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    # Without a sentinel it is loky's worker, which no server stands above.
    if parent is not None and parent.sentinel is None and parent.pid is not None:
        end_with(parent.pid)
