"""Tasks of one call: their graph, their places, and the functions workers run.

Functions travel as bytes, pickled once by the driver, so that the scheduler passes them
on without looking inside.  Each call carries the version of Variegate that sent it, so
that a worker that joined later with another one refuses it.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from math import ceil
from typing import Any
from uuid import uuid4

import dask
from distributed import Client, Future
from distributed.protocol.pickle import dumps

from variegate.dask.errors import VersionMismatchError
from variegate.dask.versions import code_version
from variegate.partitions.tree import FAN_IN, add_up, bundles

#: As Dask writes keys: tasks with the same first part are of one kind and one call.
Key = tuple[str, int] | tuple[str, int, int]

#: Bundles are single tasks from so many a thread on.
_PLENTY = 8


def name_of(function: Callable[..., Any]) -> str:
    """Return the name of a function, as tasks have it."""
    while isinstance(function, partial):
        function = function.func
    return getattr(function, "__name__", type(function).__name__).strip("_<>")


@dataclass
class Graph:
    """Tasks that call a function, and where each should run.

    The function is pickled once, with the parameters that are in it, and every task
    brings it along, so that nothing is kept for a worker that is yet to come.
    """

    function: Callable[[Any], Any]
    tasks: dict[Key, tuple[Any, ...]] = field(default_factory=dict, init=False)
    places: dict[Key, list[str]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._name = name_of(self.function)
        self._token = uuid4().hex
        self._function = dumps(self.function)

    def add_leaves(
        self,
        items: Sequence[Any],
        owners: Sequence[str],
        add: Callable[..., Any] | None = None,
    ) -> list[Key]:
        """Put in a task for each item.

        With ``add``, one task for each bundle of the tree; the first item's owner gets
        it.
        """
        parts = [[item] for item in items] if add is None else bundles(items)
        pickled = None if add is None else dumps(add)
        step = 1 if add is None else FAN_IN
        keys: list[Key] = []
        for k, part in enumerate(parts):
            key = (f"{self._name}-{self._token}", k)
            arguments = (self._function, pickle.dumps(part), pickled)
            self.tasks[key] = (run_task, code_version(), *arguments)
            self.places[key] = list(owners[k * step : k * step + 1])
            keys.append(key)
        return keys

    def add_tree(
        self,
        items: Sequence[Any],
        owners: Sequence[str],
        add: Callable[..., Any],
        n_threads: int,
    ) -> Key:
        """Put in the tree of a sum, and return the key of its root.

        Where there are plenty of items, a task takes a bundle: the scheduler then has
        an eighth of the work, and the sum is the same.
        """
        plenty = len(items) >= _PLENTY * FAN_IN * n_threads
        keys = self.add_leaves(items, owners, add if plenty else None)
        pickled = dumps(add)
        height = 0
        while len(keys) > 1:
            height += 1
            above: list[Key] = []
            for k, part in enumerate(bundles(keys)):
                key = (f"add-{self._name}-{self._token}", height, k)
                self.tasks[key] = (add_results, code_version(), pickled, list(part))
                self.places[key] = []  # wherever most of the summands lie
                above.append(key)
            keys = above
        return keys[0]

    def submit(self, client: Client, keys: list[Key]) -> list[Future]:
        """Send all of it; the futures are those of ``keys``, in their order.

        Tasks begin in that order, too, so that results which are fetched in it are not
        long in coming.
        """
        with dask.annotate(
            workers=self.places.get,
            allow_other_workers=True,
            priority=lambda key: -key[1],
        ):
            futures: list[Future] = client.get(self.tasks, keys, sync=False)
        return futures


# On a worker ------------------------------------------------------------------


def run_task(version: str, function: bytes, items: bytes, add: bytes | None) -> Any:
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


# Places ------------------------------------------------------------------


class Affinity:
    """Owners of items, which stay the same as long as the workers do.

    Neighbours have the same owner, so that their results are added where they lie.
    Where a worker is lost, its items alone go to others; where one joins, the others
    give up what is above their share.
    """

    def __init__(self) -> None:
        self._owners: dict[Hashable, str] = {}
        self._workers: dict[str, int] = {}

    def owners(self, items: Sequence[Any], workers: Mapping[str, int]) -> list[str]:
        """Return the address of each item's owner, given the threads of workers.

        Items that cannot be hashed are known by their place.
        """
        if self._workers != workers:
            self._workers = dict(sorted(workers.items()))
            self._owners = self._kept(self._owners)
        names = [_name(item, k) for k, item in enumerate(items)]
        shares = self._shares(len(names))
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

    def _kept(self, owners: Mapping[Hashable, str]) -> dict[Hashable, str]:
        """Return the items that the present workers keep."""
        shares = self._shares(len(owners))
        kept = {}
        for name, owner in owners.items():
            if shares.get(owner, 0) > 0:
                shares[owner] -= 1
                kept[name] = owner
        return kept

    def _shares(self, n_items: int) -> dict[str, int]:
        n_threads = sum(self._workers.values())
        return {
            worker: ceil(n_items * threads / n_threads)
            for worker, threads in self._workers.items()
        }


def _name(item: Any, place: int) -> Hashable:
    try:
        hash(item)
    except TypeError:
        return place
    return item  # type: ignore[no-any-return]
