"""Inner loops that NumPy cannot express, compiled by Numba on first use.

Modules are imported inside the functions that need them, so that importing the package
costs nothing.  Tests compare each with plain NumPy.  Compiling takes seconds, once on a
machine, and prints a notice at a terminal or in a notebook.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np
import numpy.typing as npt
from numba.core import event

__all__ = ["FAST", "njit", "read_only"]

#: Sums may be taken in any order; nothing else of IEEE arithmetic is given up.
FAST = {"reassoc", "contract", "nsz"}

Function = TypeVar("Function", bound=Callable[..., Any])
Scalar = TypeVar("Scalar", bound=np.generic)


def njit(**options: Any) -> Callable[[Function], Function]:
    """Return a decorator that compiles a function, with the options of Numba.

    Where no folder for its cache can be written, as with a package installed for all
    users and no home, the function is compiled anew in every process.

    ``fastmath`` is False unless given: Numba would otherwise compile a function with
    the setting of the function that calls it first, so that results would depend on the
    order of calls in a process.

    Give ``inline="always"`` to a function with one caller: it is then compiled as a
    part of that, not once by itself and once more there.
    """
    # The wrapper is for functions that are passed on as values; none is.
    options = {"fastmath": False, "no_cfunc_wrapper": True, **options}

    def compile_function(function: Function) -> Function:
        """Wrap a function to be compiled at its first call, cached if asked for."""
        try:
            compiled: Function = numba.njit(**options)(function)
        except RuntimeError:
            compiled = numba.njit(**{**options, "cache": False})(function)
        return compiled

    return compile_function


def read_only(array: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    """Return a view of an array that is contiguous and cannot be written to.

    Numba compiles a function once more for an array that may be written to than for
    one that may not, and once more for one with gaps.
    """
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


class _CompileNotice(event.Listener):
    """A listener that prints once that loops are compiled, not read from the cache."""

    def __init__(self) -> None:
        self._is_printed = False

    def on_start(self, event: Any) -> None:
        """Print the notice, once, if a function of this package is being compiled."""
        module = getattr(event.data.get("dispatcher"), "__module__", "")
        is_ours = str(module).startswith(__name__)
        if self._is_printed or not is_ours or not _is_interactive():
            return
        self._is_printed = True
        print(
            "variegate: compiling inner loops, once on this machine: some seconds",
            file=sys.stderr,
            flush=True,
        )

    def on_end(self, event: Any) -> None:
        """Do nothing."""


def _is_interactive() -> bool:
    """Tell whether messages go to a terminal or a notebook."""
    in_notebook = "ipykernel" in sys.modules
    return in_notebook or (sys.stderr is not None and sys.stderr.isatty())


event.register("numba:compile", _CompileNotice())  # type: ignore[no-untyped-call, unused-ignore]
