"""How far the work on a cluster has come."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from variegate.cli.progress import Progress, Show, Stage
from variegate.partitions.engine import unwatched
from variegate.report.words import count

if TYPE_CHECKING:
    from variegate.dask import DaskEngine

__all__ = ["WatchedEngine"]

T = TypeVar("T")
R = TypeVar("R")

#: Seconds for which it is taken for granted how many workers there are.
_LATELY = 1.0

#: Stages whose steps are files.
_FILES = ("reading", "judging", "choosing", "dealing out", "writing")


class WatchedEngine:
    """An engine that knows how fast it was, and how many workers there are."""

    def __init__(self, engine: DaskEngine) -> None:
        self._engine = engine
        self._rate = 0.0
        self._n_workers = 0
        self._asked = -_LATELY

    def map(
        self,
        function: Callable[[T], R],
        items: Sequence[T],
        progress: Progress = unwatched,
    ) -> Iterator[R]:
        """Yield what the engine does."""
        return self._engine.map(function, items, progress)

    def tree_sum(
        self,
        function: Callable[[T], R],
        items: Sequence[T],
        add: Callable[[R, R], R],
    ) -> R:
        """Return what the engine does, and look at the clock."""
        from variegate.partitions.problem import Sums

        started = time.monotonic()
        total = self._engine.tree_sum(function, items, add)
        if isinstance(total, Sums):  # of losses, over so many groups
            self._rate = total.count / max(time.monotonic() - started, 1e-9)
        return total

    def progress(self, show: Show | None) -> Stage:
        """Return what the library tells how far it has come."""

        def tell(stage: str, done: int, total: int) -> None:
            if show is not None:
                show(stage, done, total or None, self._note(stage, done, total))

        return tell

    def _note(self, stage: str, done: int, total: int) -> str:
        if stage == "learning":
            said = (
                f"iteration {done:,} of at most {total:,}, {self._rate:,.0f} groups/s"
            )
        elif stage in _FILES and total:
            said = f"{done:,} of {total:,} files"
        else:  # this process works, and not the cluster
            return ""
        return f"{said}, {count(self._workers(), 'worker')}"

    def _workers(self) -> int:
        """Ask the cluster, but not too often."""
        now = time.monotonic()
        if now - self._asked >= _LATELY:
            self._asked = now
            # What is wrong is said where the work is waited for.
            with suppress(RuntimeError):
                self._n_workers = self._engine.n_workers
        return self._n_workers
