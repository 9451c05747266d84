"""What is run on a worker: a function on some items, and sums of results.

Functions travel as bytes, pickled once by the driver, so that the scheduler passes them
on without looking inside.  Each call says which Variegate sent it, so that a worker
that joined later with another one refuses it.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from variegate.dask.errors import VersionMismatchError
from variegate.dask.versions import code_version
from variegate.partitions.tree import add_up

__all__ = ["add_results", "evaluate"]


def evaluate(version: str, function: bytes, items: bytes, add: bytes | None) -> Any:
    """Call a function on one item; on several, add up the results in their order."""
    _check(version)
    call = _loaded(function)
    results = [call(item) for item in pickle.loads(items)]
    return results[0] if add is None else add_up(_loaded(add), results)


def add_results(version: str, add: bytes, results: Sequence[Any]) -> Any:
    """Add up what other tasks have returned."""
    _check(version)
    return add_up(_loaded(add), results)


@lru_cache(maxsize=8)
def _loaded(function: bytes) -> Callable[..., Any]:
    loaded: Callable[..., Any] = pickle.loads(function)
    return loaded


def _check(version: str) -> None:
    if version != code_version():
        raise VersionMismatchError(
            f"a worker that joined the cluster has Variegate {code_version()}, the "
            f"driver has {version}: start that worker with the driver's, then start "
            "this again; it goes on where it stopped"
        )
