"""Tasks of one call as a graph that the scheduler takes in one message."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import uuid4

import dask
from distributed import Client, Future
from distributed.protocol.pickle import dumps

from variegate.dask.task import add_results, evaluate
from variegate.dask.versions import code_version
from variegate.partitions.tree import FAN_IN, bundles

__all__ = ["Graph", "Key", "name_of"]

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
    """Tasks, and where each should run; their names say what they are.

    Parameters
    ----------
    function : callable
        Pickled once, with the parameters that are in it; every task brings it along.
        So nothing needs to be kept for a worker that is yet to come.
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
            self.tasks[key] = (evaluate, code_version(), *arguments)
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
        """Send all of it; the futures are those of ``keys``, in their order."""
        with dask.annotate(workers=self.places.get, allow_other_workers=True):
            futures: list[Future] = client.get(self.tasks, keys, sync=False)
        return futures
