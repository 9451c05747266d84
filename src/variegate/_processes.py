"""Processes that do not outlive the one that started them, however that one ends."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
import time
from typing import Any

from joblib import Parallel

__all__ = ["end_with", "in_processes", "output_of"]

#: Seconds between two looks at whether the parent is still there.
_PERIOD = 0.5


def in_processes(n_jobs: int | None, **options: Any) -> Any:
    """Return joblib's ``Parallel``, whose worker processes end with this process.

    What they leave in shared memory and temporary folders is removed by the tracker of
    joblib, a process that waits until all others have ended.
    """
    return Parallel(n_jobs=n_jobs, initializer=_end_with_parent, **options)


def output_of(code: str) -> str:
    """Return what Python code prints in a process that ends with this one."""
    first = f"from {__name__} import end_with; end_with({os.getpid()})"
    command = [sys.executable, "-c", f"{first}\n{code}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


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
