"""Tasks that were sent, and the wait for their results, which is never for ever."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError
from typing import Any, Self

from distributed import Client, Future, KilledWorker
from distributed.scheduler import NoValidWorkerError, NoWorkerError

from variegate._progress import StageProgress, ignore
from variegate.dask.errors import NoWorkersError, SchedulerLostError
from variegate.dask.graph import Graph, Key

#: How many results are fetched at once at most.
_BATCH = 64

#: Seconds that fetching may take, doubled each time that it did not suffice.
_FETCH = 10.0

#: Seconds between two looks while waiting.
PERIOD = 1.0

#: Seconds that one answer of the scheduler may take; a busy one gets another chance.
_ANSWER = 5.0

#: How errors end that lose no work.
RESUME = "what was finished is kept, and the same call goes on from there"


class Watch:
    """Asks the scheduler for its workers, and gives up after a while.

    The time-outs are seconds without any worker that takes work, and without an answer
    of the scheduler.
    """

    def __init__(
        self, client: Client, no_workers_timeout: float, scheduler_timeout: float
    ) -> None:
        self._client = client
        self._no_workers_timeout = no_workers_timeout
        self._scheduler_timeout = scheduler_timeout
        self.begin()

    def begin(self) -> None:
        """Count time from now: between calls, nothing was asked."""
        self._seen = self._heard = time.monotonic()

    def workers(self) -> dict[str, int]:
        """Return the threads of the workers that take work, by address; maybe none.

        A worker whose memory is nearly full takes none until it has freed some.

        Raises
        ------
        NoWorkersError, SchedulerLostError
            If nothing answered for too long.
        """
        self.refuse_if_disconnected()
        try:
            # A handler of the scheduler, which older and newer versions have alike.
            found: dict[str, int] = self.ask("ncores_running", timeout=_ANSWER)
        except Exception as error:
            self.refuse_if_disconnected()
            if not isinstance(error, TimeoutError | OSError):
                raise
            if time.monotonic() - self._heard > self._scheduler_timeout:
                raise SchedulerLostError(
                    f"the scheduler at {self._address} has not answered for "
                    f"{self._scheduler_timeout:.0f} s: {RESUME}"
                ) from error
            return {}
        self._heard = time.monotonic()
        if found:
            self._seen = self._heard
        elif self._heard - self._seen > self._no_workers_timeout:
            raise NoWorkersError(
                f"the cluster at {self._address} has had no worker that takes work for "
                f"{self._no_workers_timeout:.0f} s{self._paused()}: start workers, "
                f"then this again; {RESUME}"
            )
        return found

    def wait_for_workers(self) -> dict[str, int]:
        """Return the workers as soon as there are some."""
        self.begin()
        while not (found := self.workers()):
            time.sleep(0.1)
        return found

    def ask(self, question: str, *, timeout: float, **arguments: Any) -> Any:
        """Call a handler of the scheduler, and wait for the answer."""
        handler = getattr(self._client.scheduler, question)
        return self.within(timeout, handler, **arguments)

    def within(self, timeout: float, call: Callable[..., Any], **arguments: Any) -> Any:
        """Await a coroutine function, at most ``timeout`` seconds."""
        return self._client.sync(call, callback_timeout=timeout, **arguments)

    def refuse_if_disconnected(self) -> None:
        """Refuse to go on without a scheduler.

        A client that lost its scheduler forgets all tasks at once, even if it finds the
        scheduler again.
        """
        if self._client.status != "running" or self._client.scheduler is None:
            raise SchedulerLostError(
                f"the scheduler at {self._address} is gone, or the connection to it: "
                f"{RESUME}"
            )

    @property
    def _address(self) -> str:
        return getattr(self._client.scheduler, "address", "an address no longer known")

    def _paused(self) -> str:
        """Say so where workers are there, but their memory is nearly full."""
        try:
            n = len(self.ask("ncores", timeout=_ANSWER))
        except (TimeoutError, OSError):
            return ""
        are = "is one" if n == 1 else f"are {n}"
        return f" (there {are}, paused for want of memory: give more)" if n else ""


#: Errors of tasks that the scheduler had no worker for, where it is told to give up.
_GIVEN_UP = (NoValidWorkerError, NoWorkerError)


class StrandedError(NoWorkersError):
    """The scheduler has tasks that it will give to no worker, though there may be some.

    A task that should go to a worker of its own goes to another one if that is gone.
    But if at that moment there is no worker at all, the scheduler sets it aside until
    just that worker comes back, which is never: distributed looks at
    ``allow_other_workers`` when workers go, and not when they come.  And one that has a
    ``no-workers-timeout`` gives tasks up when it has had no worker for so long, which
    may be sooner than the driver does.
    """


class Submitted:
    """Tasks of a graph on their way; they are given up at the end of the block.

    The results of ``keys`` are wanted, in this order.
    """

    def __init__(
        self, graph: Graph, keys: list[Key], client: Client, watch: Watch
    ) -> None:
        self._client = client
        self._watch = watch
        self._places = {key: at for key, at in graph.places.items() if at}
        self._owners = {owner for at in self._places.values() for owner in at}
        self._n_stranded = 0
        try:
            self._futures = graph.submit(client, keys)
        except Exception:
            watch.refuse_if_disconnected()
            raise
        self._watch.begin()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for future in self._futures:
            future.release()

    def results(
        self, progress: StageProgress = ignore, ordered: bool = True
    ) -> Iterator[tuple[int, Any]]:
        """Yield numbers and results of tasks; an error is raised in its turn."""
        waiting = dict(enumerate(self._futures))
        n, n_done = len(waiting), 0
        self._watch.begin()
        while waiting:
            first = next(iter(waiting))
            while not self._is_settled(waiting[first]):
                n_done = n - len(waiting) + sum(f.done() for f in waiting.values())
                progress(n_done, n)
                if not ordered and _with_results(waiting, ordered):
                    break
            ready = _with_results(waiting, ordered)
            if not ready:
                self._raise_error(waiting[first])
            results = self._fetch([waiting[k] for k in ready])
            for k, result in zip(ready, results, strict=True):
                waiting.pop(k).release()
                n_done = max(n_done, n - len(waiting))
                progress(n_done, n)
                yield k, result
            self._watch.begin()

    def killed(self) -> set[int]:
        """Return which of all tasks were given up, as workers died with them."""
        found = set()
        for k, future in enumerate(self._futures):
            while not self._is_settled(future):
                pass
            if future.status == "error":
                error = future.exception(timeout=_FETCH)
                found |= {k} if isinstance(error, KilledWorker) else set()
        return found

    def result(self, k: int) -> Any:
        """Return one result, or raise the error of that task."""
        future = self._futures[k]
        while not self._is_settled(future):
            pass
        if future.status != "finished":
            self._raise_error(future)
        return self._fetch([future])[0]

    def _is_settled(self, future: Future) -> bool:
        """Wait a moment for a result or error, which stays where it is."""
        try:
            future.exception(timeout=PERIOD)
        except TimeoutError:
            self._look()
            return False
        except Exception:
            self._watch.refuse_if_disconnected()  # closed clients raise several errors
            raise
        if future.cancelled():
            self._watch.refuse_if_disconnected()
            raise SchedulerLostError(
                "the scheduler has forgotten the work, as it does when it is restarted "
                "or somebody cancels: start this again; it goes on where it stopped"
            )
        return bool(future.done())

    def _look(self) -> None:
        workers = self._watch.workers()
        if not workers or self._owners <= set(workers):
            self._n_stranded = 0
            return
        try:
            states = self._watch.ask(
                "get_task_status", keys=list(self._places), timeout=_ANSWER
            )
        except (TimeoutError, OSError):
            return
        self._n_stranded += "no-worker" in states.values()
        if self._n_stranded > 1:  # not just in between
            raise StrandedError(
                f"workers went and came, and tasks lie between them; {RESUME}"
            )

    def _fetch(self, futures: list[Future]) -> list[Any]:
        """Bring results here; what is lost on the way is computed again."""

        async def gather() -> list[Any]:
            found: list[Any] = await self._client.gather(futures, asynchronous=True)
            return found

        seconds = _FETCH
        while True:
            try:
                results: list[Any] = self._watch.within(seconds, gather)
                return results
            except TimeoutError:
                if any(future.status == "error" for future in futures):
                    raise  # computed again, and that failed
                self._look()
                seconds *= 2
            except _GIVEN_UP as error:
                raise _given_up() from error
            except Exception:
                self._watch.refuse_if_disconnected()
                raise

    def _raise_error(self, future: Future) -> None:
        try:
            future.result(timeout=_FETCH)
        except _GIVEN_UP as error:
            raise _given_up() from error
        except CancelledError:
            self._watch.refuse_if_disconnected()
            raise


def _given_up() -> StrandedError:
    return StrandedError(
        "the scheduler had no worker for longer than its own no-workers-timeout: start "
        f"workers, then this again; {RESUME}"
    )


def _with_results(futures: Mapping[int, Future], ordered: bool) -> list[int]:
    """Return the numbers of some futures with results; if ordered, the first ones."""
    ready: list[int] = []
    for k, future in futures.items():
        if future.status == "finished":
            ready.append(k)
        elif ordered:
            break
        if len(ready) == _BATCH:
            break
    return ready
