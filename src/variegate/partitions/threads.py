"""BLAS held to one thread, so that no bit depends on the number of cores."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["one_thread"]

_lock = threading.Lock()
_n_inside = 0
_limit: Any = None


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold BLAS to one thread while any thread of this process is inside."""
    global _n_inside, _limit
    with _lock:
        if _n_inside == 0:
            _limit = _controller().limit(limits=1, user_api="blas")
        _n_inside += 1
    try:
        yield
    finally:
        with _lock:
            _n_inside -= 1
            if _n_inside == 0:
                _limit.restore_original_limits()
