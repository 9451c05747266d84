"""Commands under a limit of memory (``ulimit -v``, ``ulimit -d``).

Libraries of linear algebra, tables and threads reserve far more addresses than they
use.  Under a limit, some of them wait forever for addresses that never become free.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

#: MiB that the smallest command needs, by the limit and its option of ``ulimit``.
_LEAST = {"RLIMIT_AS": ("-v", 768), "RLIMIT_DATA": ("-d", 512)}

#: MiB, and MiB a core, from which on libraries may reserve addresses as they like.
_PLENTY = 4096, 256

#: One thread for each library, and no memory that is reserved in advance.
_SAVING = {
    **dict.fromkeys(
        (
            "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS",
            "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMBA_NUM_THREADS",
            "LOKY_MAX_CPU_COUNT", "ARROW_IO_THREADS", "MALLOC_ARENA_MAX",
        ),
        "1",
    ),
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}  # fmt: skip

#: The parameter of glibc's ``mallopt`` that is MALLOC_ARENA_MAX in the environment.
_ARENA_MAX = -8


def adapt_to_memory_limit() -> None:
    """Let libraries of this process save memory if it is limited.

    Call this before they are imported.

    Raises
    ------
    MemoryError
        If the limit is below the memory that every command needs.
    """
    with suppress(ImportError):  # not on Windows
        import resource

        for name, (option, least) in _LEAST.items():
            soft, _ = resource.getrlimit(getattr(resource, name))
            if soft == resource.RLIM_INFINITY:
                continue
            if soft < least << 20:
                raise MemoryError(
                    f"the limit of memory is {soft >> 20} MiB, and commands need at "
                    f"least {least}: raise it with 'ulimit {option} unlimited'"
                )
            base, per_core = _PLENTY
            if soft < base + per_core * (os.cpu_count() or 1) << 20:
                _save_memory()


def _save_memory() -> None:
    """Set one thread, and no reserves, for libraries of this process and its own."""
    os.environ |= _SAVING
    if sys.platform == "linux":
        import ctypes

        with suppress(AttributeError):  # a C library without it
            ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)
