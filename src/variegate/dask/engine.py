"""An engine that brings the work to a Dask cluster.

Workers are given by their addresses.  Items and tasks are numbered from 0, in order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import dask
from dask.utils import parse_timedelta
from distributed import Client, Future, KilledWorker
from distributed.comm import CommClosedError
from distributed.scheduler import NoValidWorkerError, NoWorkerError

from variegate._progress import StageProgress, ignore
from variegate._validation import check_number
from variegate.dask.errors import (
    ClusterError,
    NoWorkersError,
    SchedulerLostError,
    WorkerKilledError,
)
from variegate.dask.graph import Affinity, Graph, Key, function_name
from variegate.dask.versions import compare_versions
from variegate.partitions.engine import Engine, tree_reduce

T = TypeVar("T")
R = TypeVar("R")

#: A finished task: its number, its result (None on failure), and its error or None.
Outcome = tuple[int, Any, Exception | None]

#: Seconds between two looks at the cluster while waiting for results.
_PERIOD = 1.0

_RESUME = "what was finished is kept, and the same call goes on from there"


class _StrandedError(NoWorkersError):
    """The scheduler has tasks that it will give to no worker, though there may be some.

    A task with a preferred worker goes to another if that worker is lost.  But if no
    worker is left at that moment, the scheduler waits for this one forever: distributed
    looks at ``allow_other_workers`` when workers go, not when they join.  A scheduler
    with a ``no-workers-timeout`` may give tasks up sooner than the driver does.
    """


class DaskEngine(Engine):
    """The methods of :class:`~variegate.partitions.Engine` on a Dask cluster.

    Tasks carry all that they need, so that the work continues when workers, even all of
    them, are lost and others join.  Sums are added on the workers in the order of the
    tree, and only the total travels to the driver.  An item goes to the worker that had
    it before, and to another only if that one is lost or far behind.

    Every wait ends: a cluster without workers, a lost scheduler, and an item that kills
    each worker it runs on have errors of their own.  An error of the function is raised
    unchanged, and not tried again.

    Parameters
    ----------
    client : distributed.Client, optional
        The connection to the cluster, not an asynchronous one; by default the client
        that was made last.
    no_workers_timeout : float, default=60.0
        Seconds to wait for a worker while there is none.  The scheduler may take as
        long to answer as Dask's ``distributed.comm.timeouts.tcp`` says.

    Attributes
    ----------
    n_workers : int
        The number of workers that took work at the beginning of the last call, updated
        every second while it waits.

    Examples
    --------
    >>> from distributed import Client
    >>> from operator import add
    >>> with Client(processes=False, dashboard_address="127.0.0.1:0") as client:
    ...     DaskEngine(client).tree_sum(abs, [-1, 2, -3], add)
    6
    """

    def __init__(
        self, client: Client | None = None, *, no_workers_timeout: float = 60.0
    ) -> None:
        check_number("no_workers_timeout", no_workers_timeout, positive=True)
        client = Client.current() if client is None else client
        if not isinstance(client, Client) or client.asynchronous:
            raise ValueError(
                "client must be a distributed.Client, and not an asynchronous one, got "
                f"{client!r}"
            )
        self.client = client
        self._no_workers_timeout = no_workers_timeout
        self.n_workers = 0
        self._affinity = Affinity()
        self._is_checked = False

    def map(
        self,
        function: Callable[[T], R],
        items: Sequence[T],
        progress: StageProgress = ignore,
        ordered: bool = True,
    ) -> Iterator[R]:
        """Yield ``function(item)`` for all items, as they finish unless ``ordered``.

        If several workers die, the items left are computed in isolation, in order.
        ``progress`` is called with the numbers of finished and of all items.
        """
        if not items:
            return
        left = dict(enumerate(items))
        try:
            graph = Graph(function)
            owners = self._affinity.assign_owners(items, self._wait_for_workers())
            keys = graph.add_leaves(items, owners)
            for k, result in self._submit_and_yield(graph, keys, progress, ordered):
                del left[k]
                yield result
        except (KilledWorker, _StrandedError):
            n_done = len(items) - len(left)
            for result in self._map_in_isolation(function, list(left.values())):
                n_done += 1
                progress(n_done, len(items))
                yield result

    def tree_sum(
        self, function: Callable[[T], R], items: Sequence[T], add: Callable[[R, R], R]
    ) -> R:
        """Return the sum of ``function(item)``, added on workers in tree order."""
        if not items:
            raise ValueError("there is nothing to add up")
        workers = self._wait_for_workers()
        graph = Graph(function)
        owners = self._affinity.assign_owners(items, workers)
        root = graph.add_tree(items, owners, add, sum(workers.values()))
        total: R
        try:
            [(_, total)] = self._submit_and_yield(graph, [root])
        except (KilledWorker, _StrandedError):
            total = tree_reduce(add, self._map_in_isolation(function, items))
        return total

    def _map_in_isolation(
        self, function: Callable[[T], R], items: Sequence[T]
    ) -> Iterator[R]:
        """Yield results in order, with no task waiting behind another one.

        Used after several workers died.  A task that waits on a worker that dies is
        suspected as much as the one that ran there.  Here each thread has one task; if
        workers die again, each of these tasks runs alone, which finds the cause.
        """
        start = 0
        while start < len(items):
            part = items[start : start + sum(self._wait_for_workers().values())]
            start += len(part)
            graph = Graph(function)
            results = self._submit_and_yield(graph, graph.add_leaves(part))
            try:
                found: list[R] = [result for _, result in results]
            except KilledWorker as error:
                if len(part) == 1:
                    raise WorkerKilledError(
                        f"{getattr(part[0], 'path', repr(part[0]))} ended "
                        f"{error.allowed_failures + 1} workers in a row that ran "
                        f"{function_name(function)} on it, perhaps for want of memory: "
                        "give workers more memory, or make files (or their row groups) "
                        "smaller, then start this again; it goes on where it stopped"
                    ) from error
                for item in part:
                    yield from self._map_in_isolation(function, [item])
            else:
                yield from found

    # Waiting --------------------------------------------------------------------------

    def _submit_and_yield(
        self,
        graph: Graph,
        keys: list[Key],
        progress: StageProgress = ignore,
        ordered: bool = True,
    ) -> Iterator[tuple[int, Any]]:
        """Submit a graph; yield the number, in ``keys``, and the result of each task.

        They come in the order of ``keys``, or as they finish unless ``ordered``.  The
        error of a task is raised.  ``progress`` is called as in :meth:`map`.
        """
        outcomes: SimpleQueue[Outcome] = SimpleQueue()
        held: dict[int, Outcome] = {}
        n_yielded = 0
        with self._explain_errors(), graph.submit(self.client, keys) as futures:
            for k, future in enumerate(futures):
                self.client.loop.add_callback(
                    self._fetch_result, k, future, outcomes.put
                )
            for n_received in range(len(futures)):
                outcome = self._next_outcome(outcomes, graph)
                held[outcome[0] if ordered else n_received] = outcome
                progress(n_received + 1, len(futures))
                while n_yielded in held:
                    k, result, error = held.pop(n_yielded)
                    if error is not None:
                        raise error
                    n_yielded += 1
                    yield k, result

    async def _fetch_result(
        self, k: int, future: Future, put: Callable[[Outcome], None]
    ) -> None:
        """Fetch the result of task ``k``, and call ``put`` with its outcome."""
        try:
            [result] = await self.client.gather([future], asynchronous=True)
        except Exception as error:
            put((k, None, error))
        else:
            future.release()
            put((k, result, None))

    def _next_outcome(self, outcomes: SimpleQueue[Outcome], graph: Graph) -> Outcome:
        """Wait for the next outcome; raise ClusterError if workers or scheduler fail.

        Every ``_PERIOD`` seconds, it looks whether there are workers, and whether tasks
        wait for a worker that was lost.
        """
        since = time.monotonic()
        while True:
            try:
                return outcomes.get(timeout=_PERIOD)
            except Empty:
                workers = self._running_workers(since)
            if not workers:
                continue
            since = time.monotonic()
            if not workers.keys() >= set(graph.places.values()):
                states = self._ask_scheduler("get_task_status", keys=list(graph.places))
                if "no-worker" in states.values():
                    raise _StrandedError(f"tasks wait for lost workers; {_RESUME}")

    def _wait_for_workers(self) -> dict[str, int]:
        """Wait for workers, and return the number of threads of each, by address.

        The first call compares versions of software with theirs.
        """
        since = time.monotonic()
        while not (found := self._running_workers(since)):
            time.sleep(0.1)
        if not self._is_checked:
            compare_versions(self.client)
            self._is_checked = True
        return found

    def _running_workers(self, since: float) -> dict[str, int]:
        """Return the number of threads of each worker that takes work, by address.

        A paused worker, whose memory is nearly full, takes none.  Updates
        ``n_workers``.  NoWorkersError if there is none, and the time ``since``
        (``time.monotonic``) is longer ago than the time-out.
        """
        found: dict[str, int] = self._ask_scheduler("ncores_running")
        self.n_workers = len(found)
        if not found and time.monotonic() - since > self._no_workers_timeout:
            n_paused = len(self._ask_scheduler("ncores"))
            paused = f" ({n_paused} paused for want of memory: give more)"
            raise NoWorkersError(
                f"the cluster has had no worker that takes work for "
                f"{self._no_workers_timeout:.0f} s{paused if n_paused else ''}: start "
                f"workers, then this again; {_RESUME}"
            )
        return found

    def _ask_scheduler(self, question: str, **arguments: Any) -> Any:
        """Return the answer of the scheduler's method ``question``.

        SchedulerLostError if it does not answer in time.
        """
        seconds = parse_timedelta(dask.config.get("distributed.comm.timeouts.tcp"))
        with self._explain_errors():
            handler = getattr(self.client.scheduler, question)
            try:
                return self.client.sync(handler, callback_timeout=seconds, **arguments)
            except TimeoutError as error:
                raise SchedulerLostError(
                    f"the scheduler has not answered for {seconds:.0f} s: {_RESUME}"
                ) from error

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        """Raise Dask's errors about lost workers and schedulers as ClusterErrors.

        A client that lost its scheduler forgets all tasks, even if it reconnects.
        """
        try:
            yield
        except ClusterError:
            raise
        except Exception as error:
            is_lost = isinstance(error, CancelledError | CommClosedError)
            if is_lost or self.client.status != "running":
                raise SchedulerLostError(
                    "the scheduler is gone, or has forgotten the work, as it does when "
                    f"it is restarted or tasks are cancelled: {_RESUME}"
                ) from error
            if isinstance(error, NoValidWorkerError | NoWorkerError):
                raise _StrandedError(
                    "the scheduler had no worker for longer than its own "
                    f"no-workers-timeout: start workers, then this again; {_RESUME}"
                ) from error
            if isinstance(error, ImportError | AttributeError | TypeError):
                compare_versions(self.client)  # a worker may have another Variegate
            raise
