"""Engines that carry out the work on partitions, and the order of their sums.

Sums of floating-point numbers depend on their order.  Here it follows from the number
of summands alone: :data:`FAN_IN` neighbours are added from left to right, then as many
neighbouring sums, until one is left.  So the result has the same bits at any number of
workers, whichever is done first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import reduce
from typing import Protocol, TypeVar

from variegate._progress import StageProgress, ignore

T = TypeVar("T")
R = TypeVar("R")

#: Neighbours that are added in one step.
FAN_IN = 8


class Engine(Protocol):
    """Calls a function on many items, in this process or on workers.

    All that a function needs travels in it: it is one that can be pickled, such as a
    ``functools.partial`` of a function of a module with a few small arguments.  An
    engine should bring an item to the worker that had it before, which may still hold
    its prepared form, but nothing depends on that.  An error that the function raises
    is raised by the engine.
    """

    def map(
        self,
        function: Callable[[T], R],
        items: Sequence[T],
        progress: StageProgress = ignore,
        ordered: bool = True,
    ) -> Iterator[R]:
        """Yield ``function(item)`` for all items, as they finish unless ``ordered``.

        ``progress`` is called with the numbers of finished and of all items.
        """
        ...

    def tree_sum(
        self, function: Callable[[T], R], items: Sequence[T], add: Callable[[R, R], R]
    ) -> R:
        """Return the sum of ``function(item)`` by ``add``, in the order of the tree.

        There is at least one item, and ``add`` changes neither of its arguments.
        """
        return tree_reduce(add, self.map(function, items))


class Serial(Engine):
    """An engine that works on one item after another, in this process."""

    def map(
        self,
        function: Callable[[T], R],
        items: Sequence[T],
        progress: StageProgress = ignore,
        ordered: bool = True,
    ) -> Iterator[R]:
        """Yield ``function(item)`` in order, whatever ``ordered``, one at a time."""
        for n_done, item in enumerate(items):
            result = function(item)
            progress(n_done + 1, len(items))
            yield result


class Threads(Serial):
    """An engine that works on ``n_jobs`` items at a time, in threads of this process.

    The slow steps of a partition are compiled, and leave the interpreter to the other
    threads.
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
        """Yield ``function(item)`` in the order of the items, whatever ``ordered``.

        At most ``n_jobs`` are begun beyond the result that is asked for.
        """
        if self.n_jobs == 1 or len(items) < 2:
            yield from super().map(function, items, progress)
            return
        results = map_in_threads(function, items, self.n_jobs, self.n_jobs)
        for n_done, result in enumerate(results):
            yield result
            progress(n_done + 1, len(items))


def map_in_threads(
    function: Callable[[T], R], items: Iterable[T], n_jobs: int, ahead: int
) -> Iterator[R]:
    """Yield ``function(item)`` in order, computed in ``n_jobs`` threads.

    At most ``ahead`` items are begun beyond the result that is asked for.
    """
    waiting: deque[Future[R]] = deque()
    with ThreadPoolExecutor(n_jobs) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def split_into_bundles(summands: Sequence[R]) -> list[Sequence[R]]:
    """Return lists of ``FAN_IN`` neighbouring summands, the last perhaps shorter."""
    return [summands[k : k + FAN_IN] for k in range(0, len(summands), FAN_IN)]


def sum_bundle(add: Callable[[R, R], R], summands: Sequence[R]) -> R:
    """Return the sum of the summands of a bundle, added from left to right."""
    return reduce(add, summands)


def tree_reduce(add: Callable[[R, R], R], summands: Iterable[R]) -> R:
    """Return the sum of summands in the order of the tree of the module docstring.

    At most one bundle of each level is held in memory.  Without summands: ValueError.
    """
    levels: list[list[R]] = []

    def insert(height: int, value: R) -> None:
        """Append to the bundle at a height; pass the sum of a full one up."""
        if height == len(levels):
            levels.append([])
        levels[height].append(value)
        if len(levels[height]) == FAN_IN:
            total, levels[height] = sum_bundle(add, levels[height]), []
            insert(height + 1, total)

    for summand in summands:
        insert(0, summand)
    if not levels:
        raise ValueError("there is nothing to add up")
    for height in range(len(levels) - 1):
        if levels[height]:
            insert(height + 1, sum_bundle(add, levels[height]))
    return sum_bundle(add, levels[-1])


def is_local(engine: Engine | None) -> bool:
    """Return whether an engine works in this process, as None (the default) does."""
    return engine is None or isinstance(engine, Serial)
