"""Engines that carry out the work on partitions: two verbs, serial and in threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol, TypeVar

from variegate._progress import StageProgress, ignore
from variegate.partitions.tree import add_in_tree

T = TypeVar("T")
R = TypeVar("R")


class Engine(Protocol):
    """Calls a function on many items, in this process or on workers.

    All that a function needs travels in it: it is one that can be pickled, such as a
    ``functools.partial`` of a function of a module with a few small arguments.  An
    engine should bring an item to the worker that had it before, which may still hold
    what it made of it, but nothing depends on that.  An error that the function raises
    is raised by the engine.
    """

    def map(
        self,
        function: Callable[[T], R],
        items: Sequence[T],
        progress: StageProgress = ignore,
        ordered: bool = True,
    ) -> Iterator[R]:
        """Yield the results in the order of the items, or else as they are finished."""
        ...

    def tree_sum(
        self,
        function: Callable[[T], R],
        items: Sequence[T],
        add: Callable[[R, R], R],
    ) -> R:
        """Return the sum of the results, added in the order of the tree.

        That is the order of ``variegate.partitions.tree.add_in_tree``; there must be at
        least one item.  ``add`` changes neither of its arguments.
        """
        ...


class Serial:
    """One item after another, in this process: what other engines are compared with."""

    def map(
        self,
        function: Callable[[T], R],
        items: Sequence[T],
        progress: StageProgress = ignore,
        ordered: bool = True,
    ) -> Iterator[R]:
        """Yield each result before the next is computed."""
        for n_done, item in enumerate(items):
            result = function(item)
            progress(n_done + 1, len(items))
            yield result

    def tree_sum(
        self,
        function: Callable[[T], R],
        items: Sequence[T],
        add: Callable[[R, R], R],
    ) -> R:
        """Return the sum, holding few results at a time."""
        return add_in_tree(add, map(function, items))


class Threads:
    """Several items at a time, in threads of this process.

    What takes the time in a partition is compiled, and leaves the interpreter to the
    other threads.
    """

    def __init__(self, n_jobs: int = 1) -> None:
        self.n_jobs = n_jobs

    def map(
        self,
        function: Callable[[T], R],
        items: Sequence[T],
        progress: StageProgress = ignore,
        ordered: bool = True,
    ) -> Iterator[R]:
        """Yield the results in the order of the items.

        At most one more than there are threads is begun before it is asked for.
        """
        if self.n_jobs == 1 or len(items) < 2:
            yield from Serial().map(function, items, progress)
            return
        waiting: deque[Future[R]] = deque()
        with ThreadPoolExecutor(self.n_jobs) as pool:
            try:
                for n_begun, item in enumerate(items):
                    waiting.append(pool.submit(function, item))
                    if len(waiting) > self.n_jobs:
                        yield waiting.popleft().result()
                        progress(n_begun + 1 - len(waiting), len(items))
                while waiting:
                    yield waiting.popleft().result()
                    progress(len(items) - len(waiting), len(items))
            finally:
                pool.shutdown(cancel_futures=True)

    def tree_sum(
        self,
        function: Callable[[T], R],
        items: Sequence[T],
        add: Callable[[R, R], R],
    ) -> R:
        """Return the sum, holding few results at a time."""
        return add_in_tree(add, self.map(function, items))
