"""Numba's ``njit``, also where compiled code cannot be kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

__all__ = ["njit"]


Function = TypeVar("Function", bound=Callable[..., Any])


def njit(**options: Any) -> Callable[[Function], Function]:
    """Return what compiles a function, with the options of Numba.

    Where no folder for its cache can be written, as with a package installed for
    everybody and no home, the function is compiled anew in every process.

    A function of which nothing is said about ``fastmath`` would take it from whichever
    function calls it first, and its results from the order of calls in a process.

    Give ``inline="always"`` to a function with one caller: it is then compiled as a
    part of that, not once by itself and once more there.
    """
    # Nothing passes these functions on as values, which is what the wrapper is for.
    options = {"fastmath": False, "no_cfunc_wrapper": True, **options}

    def compiling(function: Function) -> Function:
        try:
            compiled: Function = numba.njit(**options)(function)
        except RuntimeError:
            compiled = numba.njit(**{**options, "cache": False})(function)
        return compiled

    return compiling
