"""An eye on the cluster while the driver waits, so that no wait is for ever."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from distributed import Client

from variegate.dask.errors import NoWorkersError, SchedulerLostError

__all__ = ["PERIOD", "RESUME", "Watch"]

T = TypeVar("T")

#: Seconds between two looks while waiting.
PERIOD = 1.0

#: Seconds that one answer of the scheduler may take; a busy one gets another chance.
_ANSWER = 5.0

#: How errors end that lose no work.
RESUME = "what was finished is kept, and the same call goes on from there"


class Watch:
    """Asks the scheduler who is there, and gives up after a while.

    Parameters
    ----------
    client : distributed.Client
    no_workers_timeout : float
        Seconds without any worker that takes work.
    scheduler_timeout : float
        Seconds without an answer of the scheduler.
    """

    def __init__(
        self, client: Client, no_workers_timeout: float, scheduler_timeout: float
    ) -> None:
        self._client = client
        self._no_workers_timeout = no_workers_timeout
        self._scheduler_timeout = scheduler_timeout
        self.begin()

    def begin(self) -> None:
        """Count time from now: between calls, nobody looked."""
        self._seen = self._heard = time.monotonic()

    def workers(self) -> dict[str, int]:
        """Return the threads of the workers that take work, by address; maybe none.

        A worker whose memory is nearly full takes none until it has freed some.

        Raises
        ------
        NoWorkersError, SchedulerLostError
            If there was nobody for too long.
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
        """Put a question to the scheduler, and wait so many seconds for the answer."""
        handler = getattr(self._client.scheduler, question)
        return self.within(timeout, handler, **arguments)

    def within(self, timeout: float, call: Callable[..., Any], **arguments: Any) -> Any:
        """Await what a coroutine function returns, so many seconds long."""
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
