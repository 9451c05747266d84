"""Inner loops that NumPy cannot express, compiled by Numba on first use.

Modules here are imported inside the functions that need them, so that importing the
package costs nothing.  Each has a plain NumPy twin in the tests.  The first time on a
machine, compiling takes seconds; who waits at a terminal or a notebook is told so.
"""

from __future__ import annotations

import sys
from typing import Any

from numba.core import event


class _Note(event.Listener):
    """Says once that loops are being compiled, not read from the cache."""

    def __init__(self) -> None:
        self._said = False

    def on_start(self, event: Any) -> None:
        module = getattr(event.data.get("dispatcher"), "__module__", "")
        if self._said or not str(module).startswith(__name__) or not _is_watched():
            return
        self._said = True
        print(
            "variegate: compiling inner loops, once on this machine: some seconds",
            file=sys.stderr,
            flush=True,
        )

    def on_end(self, event: Any) -> None:
        pass


def _is_watched() -> bool:
    """Whether somebody sees standard error: at a terminal, or in a notebook."""
    in_notebook = "ipykernel" in sys.modules
    return in_notebook or (sys.stderr is not None and sys.stderr.isatty())


event.register("numba:compile", _Note())  # type: ignore[no-untyped-call, unused-ignore]
