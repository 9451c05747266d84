"""Processes beside the studio: how they are started, and what they must not do.

A process is a partner of the one that started it: it takes pickles on standard input,
and what it sends on standard output are pickles, between two processes of one program.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from typing import IO

__all__ = ["end_process", "own_output", "start_process"]

#: Seconds that a process which was killed has to be gone.
_GRACE = 1.0


def start_process(module: str, niceness: int = 0) -> subprocess.Popen[bytes]:
    """Start ``main()`` of a module of the studio, with its priority lowered.

    By its full name, so that what it sends is of the classes that are known here.
    """
    code = f"from variegate.studio import {module}; {module}.main()"
    if niceness and hasattr(os, "nice"):
        code = f"import os; os.nice({niceness}); {code}"
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # What can be imported here can be imported there.
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        # Ctrl-C is for the studio, which ends its processes in order.
        start_new_session=True,
    )


def end_process(process: subprocess.Popen[bytes]) -> None:
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
