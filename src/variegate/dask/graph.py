"""Tasks of one call: their graph, their workers, and the functions that workers run.

The owner of an item is the worker (by address) that its task should run on.  Functions
travel as bytes, pickled once by the driver, which the scheduler does not
unpickle.  Each task carries the driver's version of Variegate, so that a worker which
joined later with another version refuses it.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from math import ceil
from typing import Any
from uuid import uuid4

import dask
from distributed import Client, Future
from distributed.protocol.pickle import dumps

from variegate.dask.errors import VersionMismatchError
from variegate.dask.versions import code_version
from variegate.partitions.engine import FAN_IN, split_into_bundles, sum_bundle

#: As Dask writes keys: tasks with the same first part are of one kind and one call.
Key = tuple[str, int] | tuple[str, int, int]

#: Bundles for each thread from which on a bundle is one task.
_PLENTY = 8


def function_name(function: Callable[..., Any]) -> str:
    """Return the name of a function, or of the one in a ``partial``, for task keys."""
    while isinstance(function, partial):
        function = function.func
    return getattr(function, "__name__", type(function).__name__).strip("_<>")


class Graph:
    """Tasks of a call of one function on many items, for ``Client.get``."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.tasks: dict[Key, tuple[Any, ...]] = {}
        #: Addresses of the preferred workers, by key of a task.
        self.places: dict[Key, str] = {}
        self._name = f"{function_name(function)}-{uuid4().hex}"
        self._function = dumps(function)

    def add_leaves(
        self,
        items: Sequence[Any],
        owners: Sequence[str] = (),
        add: Callable[..., Any] | None = None,
    ) -> list[Key]:
        """Add a task for each item, or with ``add`` for each bundle; return the keys.

        A bundle is ``FAN_IN`` neighbouring items; its task returns the sum of their
        results, and runs on the owner of the first.  Without ``owners``, tasks run on
        any worker.
        """
        size = 1 if add is None else FAN_IN
        adder = None if add is None else dumps(add)
        keys: list[Key] = []
        for k, start in enumerate(range(0, len(items), size)):
            part = pickle.dumps(items[start : start + size])
            key = (self._name, k)
            self.tasks[key] = (run_task, code_version(), self._function, part, adder)
            self.places.update((key, owner) for owner in owners[start : start + 1])
            keys.append(key)
        return keys

    def add_tree(
        self,
        items: Sequence[Any],
        owners: Sequence[str],
        add: Callable[..., Any],
        n_threads: int,
    ) -> Key:
        """Add tasks for items and for their sum by ``add``; return the key of the sum.

        They form a tree: a task of a level adds a bundle of results of the level below.
        With many items for each of ``n_threads``, those of all workers, a leaf takes a
        bundle of items: the scheduler then has an eighth of the work, and the sum is
        the same.
        """
        plenty = len(items) >= _PLENTY * FAN_IN * n_threads
        keys = self.add_leaves(items, owners, add if plenty else None)
        adder = dumps(add)
        height = 0
        while len(keys) > 1:
            height += 1
            above: list[Key] = []
            for k, part in enumerate(split_into_bundles(keys)):
                key = (f"add-{self._name}", height, k)
                self.tasks[key] = (add_results, code_version(), adder, list(part))
                above.append(key)
            keys = above
        return keys[0]

    @contextmanager
    def submit(self, client: Client, keys: list[Key]) -> Iterator[list[Future]]:
        """Submit all tasks; yield the futures of ``keys``, released at the end.

        Tasks begin in the order of ``keys``.  Sums are added where most of their
        summands are.
        """
        with dask.annotate(
            workers=lambda key: [self.places[key]] if key in self.places else [],
            allow_other_workers=True,
            priority=lambda key: -key[1],
        ):
            futures: list[Future] = client.get(self.tasks, keys, sync=False)
        try:
            yield futures
        finally:
            for future in futures:
                future.release()


# On a worker ------------------------------------------------------------------


def run_task(version: str, function: bytes, items: bytes, add: bytes | None) -> Any:
    """Return the result for the one item in a pickled list, or, with ``add``, a sum.

    The sum is that of the results for all items of the list.  ``function`` and ``add``
    are pickled; ``version`` is the driver's.
    """
    call = _load_function(version, function)
    results = [call(item) for item in pickle.loads(items)]
    return results[0] if add is None else add_results(version, add, results)


def add_results(version: str, add: bytes, results: Sequence[Any]) -> Any:
    """Return the sum of results of other tasks by a pickled function ``add``."""
    return sum_bundle(_load_function(version, add), results)


@lru_cache(maxsize=8)
def _load_function(version: str, function: bytes) -> Callable[..., Any]:
    """Return a pickled function; VersionMismatchError for another driver's version."""
    if version != code_version():
        raise VersionMismatchError(
            f"a worker that joined the cluster has Variegate {code_version()}, the "
            f"driver has {version}: start that worker with the driver's, then start "
            "this again; it goes on where it stopped"
        )
    loaded: Callable[..., Any] = pickle.loads(function)
    return loaded


# Owners of items ---------------------------------------------------------


class Affinity:
    """Owners of items, which stay the same as long as the workers do.

    Neighbours have the same owner, which then adds their results.  When a worker is
    lost, only its items move; when one joins, others give up items above their share.
    """

    def __init__(self) -> None:
        #: The owner of each item, by the pickled item.
        self._owners: dict[bytes, str] = {}
        #: The number of threads of each worker.
        self._workers: dict[str, int] = {}

    def assign_owners(
        self, items: Sequence[Any], workers: Mapping[str, int]
    ) -> list[str]:
        """Return each item's owner, kept for later; ``workers`` have thread counts."""
        if self._workers != workers:
            self._workers = dict(sorted(workers.items()))
            self._owners = self._keep_owners(self._owners)
        names = [pickle.dumps(item) for item in items]  # some cannot be hashed
        shares = self._items_per_worker(len(names))
        for name in names:
            if name in self._owners:
                shares[self._owners[name]] -= 1
        for name in names:
            if name not in self._owners:
                owner = next((w for w, left in shares.items() if left > 0), None)
                owner = owner or max(shares, key=lambda w: shares[w])
                shares[owner] -= 1
                self._owners[name] = owner
        return [self._owners[name] for name in names]

    def _keep_owners(self, owners: Mapping[bytes, str]) -> dict[bytes, str]:
        """Return owners by pickled item, for items that the present workers keep."""
        shares = self._items_per_worker(len(owners))
        kept = {}
        for name, owner in owners.items():
            if shares.get(owner, 0) > 0:
                shares[owner] -= 1
                kept[name] = owner
        return kept

    def _items_per_worker(self, n_items: int) -> dict[str, int]:
        """Return each worker's share of items, by its threads, rounded up."""
        n_threads = sum(self._workers.values())
        return {
            worker: ceil(n_items * threads / n_threads)
            for worker, threads in self._workers.items()
        }
