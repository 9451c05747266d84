"""Progress of work that has several parts."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Progress", "part_of"]

#: Called with the numbers of finished and of all steps.
Progress = Callable[[int, int], object]


def part_of(progress: Progress | None, before: int, total: int) -> Progress:
    """Return what a part of the work calls, ``before`` steps into ``total``."""

    def advance(done: int, of_the_part: int) -> None:
        if progress is not None:
            progress(before + done, total)

    return advance
