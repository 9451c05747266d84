"""An engine that brings the work to a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from distributed import Client, KilledWorker, get_client

from variegate._progress import StageProgress, ignore
from variegate._validation import check_number
from variegate.dask.errors import ClusterError, WorkerKilledError
from variegate.dask.graph import Affinity, Graph, Key, name_of
from variegate.dask.versions import check_alike, environment_there
from variegate.dask.waiting import StrandedError, Submitted, Watch
from variegate.partitions.tree import add_in_tree

T = TypeVar("T")
R = TypeVar("R")

#: Seconds that all processes of the cluster together may take to say what they run.
_CENSUS = 30.0


class DaskEngine:
    """The two verbs of :class:`~variegate.partitions.Engine` on a Dask cluster.

    Tasks bring all that they need along, so that the work goes on when workers are
    lost, all of them included, and others come; sums are added on the workers, in the
    order of the tree, and only the total travels to the driver.  An item goes to the
    worker that had it before, and to another only if that one is lost or far behind.

    Every wait has an end: there is an error of its own for a cluster without workers,
    for a lost scheduler, and for an item that ends each worker that takes it on.  An
    error that the function raises is raised as it is, and not tried again.

    Parameters
    ----------
    client : distributed.Client, optional
        The connection to the cluster, not an asynchronous one; by default the client
        that was made last.
    no_workers_timeout : float, default=60.0
        Seconds to wait for a worker while there is none.
    scheduler_timeout : float, default=30.0
        Seconds to wait for an answer of the scheduler.

    Examples
    --------
    >>> from distributed import Client
    >>> from operator import add
    >>> with Client(processes=False, dashboard_address="127.0.0.1:0") as client:
    ...     DaskEngine(client).tree_sum(abs, [-1, 2, -3], add)
    6
    """

    def __init__(
        self,
        client: Client | None = None,
        *,
        no_workers_timeout: float = 60.0,
        scheduler_timeout: float = 30.0,
    ) -> None:
        check_number("no_workers_timeout", no_workers_timeout, positive=True)
        check_number("scheduler_timeout", scheduler_timeout, positive=True)
        if client is None:
            client = _last_client()
        if not isinstance(client, Client):
            raise ValueError(f"client must be a distributed.Client, got {client!r}")
        if client.asynchronous:
            raise ValueError("client is an asynchronous one; give a plain one")
        self.client = client
        self._watch = Watch(client, no_workers_timeout, scheduler_timeout)
        self._affinity = Affinity()
        self._is_checked = False
        self._n_threads = 0

    @property
    def n_workers(self) -> int:
        """The number of workers that take work."""
        return len(self._watch.workers())

    def map(
        self,
        function: Callable[[T], R],
        items: Sequence[T],
        progress: StageProgress = ignore,
        ordered: bool = True,
    ) -> Iterator[R]:
        """Yield the results in the order of the items, or else as they are finished.

        All items are worked on at once.
        """
        if not items:
            return
        left = dict(enumerate(items))
        graph = Graph(function)
        try:
            keys = graph.add_leaves(items, self._owners(items))
            with self._submitted(graph, keys) as tasks:
                for k, result in tasks.results(progress, ordered):
                    del left[k]
                    yield result
        except (KilledWorker, StrandedError):
            n_done = len(items) - len(left)
            for result in self._carefully(function, list(left.values())):
                n_done += 1
                progress(n_done, len(items))
                yield result

    def tree_sum(
        self,
        function: Callable[[T], R],
        items: Sequence[T],
        add: Callable[[R, R], R],
    ) -> R:
        """Return the sum of the results, added on the workers in the tree's order."""
        if not items:
            raise ValueError("there is nothing to add up")
        graph = Graph(function)
        owners = self._owners(items)
        root = graph.add_tree(items, owners, add, self._n_threads)
        try:
            with self._submitted(graph, [root]) as tasks:
                total: R = tasks.result(0)
        except (KilledWorker, StrandedError):
            total = add_in_tree(add, self._carefully(function, items))
        return total

    def _owners(self, items: Sequence[Any]) -> list[str]:
        """Return the owners of items among the present workers.

        Before the first call, look at what each process of the cluster runs.
        """
        workers = self._watch.wait_for_workers()
        if not self._is_checked:
            self._compare_versions()
            self._is_checked = True
        self._n_threads = sum(workers.values())
        return self._affinity.owners(items, workers)

    @contextmanager
    def _submitted(self, graph: Graph, keys: list[Key]) -> Iterator[Submitted]:
        """Send tasks; an odd error may come from another Variegate over there."""
        try:
            with Submitted(graph, keys, self.client, self._watch) as tasks:
                yield tasks
        except ClusterError:
            raise
        except (ImportError, AttributeError, TypeError, RuntimeError):
            self._compare_versions()
            raise

    def _compare_versions(self) -> None:
        describe = environment_there()
        options: dict[str, Any] = {"callback_timeout": _CENSUS}
        try:
            found = self.client.run(describe, on_error="return", **options)
            there = {f"the worker at {address}": it for address, it in found.items()}
            there["the scheduler"] = self.client.run_on_scheduler(describe, **options)
        except TimeoutError:
            return  # each task looks for itself
        except Exception:
            self._watch.refuse_if_disconnected()
            raise
        # A worker that has died meanwhile returns an error.
        check_alike({name: it for name, it in there.items() if isinstance(it, dict)})

    def _carefully(self, function: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
        """Yield results in order, with no task waiting behind another one.

        For what is left of a call in which workers died more often than once or twice.
        A task that waits on a worker that dies is suspected as much as the one that
        was run there.  Here each thread has one task, so that the one that is given up
        is the reason; of several, each is run again with nothing else beside it.
        """
        start = 0
        while start < len(items):
            n_threads = sum(self._watch.wait_for_workers().values())
            part = items[start : start + n_threads]
            graph = Graph(function)
            with self._submitted(graph, graph.add_leaves(part, ())) as tasks:
                killed = tasks.killed()
                for k, item in enumerate(part):
                    if len(killed) > 1 and k in killed:
                        yield self._alone(function, item)
                    else:
                        with self._blamed(function, item):
                            result: R = tasks.result(k)
                        yield result
            start += len(part)

    def _alone(self, function: Callable[[T], R], item: T) -> R:
        graph = Graph(function)
        with (
            self._blamed(function, item),
            self._submitted(graph, graph.add_leaves([item], ())) as tasks,
        ):
            result: R = tasks.result(0)
        return result

    @contextmanager
    def _blamed(self, function: Callable[[T], R], item: T) -> Iterator[None]:
        """Raise an error that names the item that ends workers."""
        try:
            yield
        except KilledWorker as error:
            raise WorkerKilledError(
                f"{getattr(item, 'path', repr(item))} ended "
                f"{error.allowed_failures + 1} workers in a row that ran "
                f"{name_of(function)} on it{self._memory_words()}: give workers more "
                "memory, or make files (or their row groups) smaller, then start this "
                "again; it goes on where it stopped"
            ) from error

    def _memory_words(self) -> str:
        try:
            events = self._watch.ask("events", topic="worker-restart-memory", timeout=5)
        except Exception:  # whatever it is, the other error is the one to tell
            events = ()
        if not events:
            return ", perhaps for want of memory"
        return ", and workers have reached their limit of memory"


def _last_client() -> Client:
    try:
        return get_client()
    except ValueError as error:
        raise ValueError(
            "there is no cluster: give client=distributed.Client(...), or make such a "
            "client before"
        ) from error
