"""What workers of the tests are told to do: functions of a module that they import."""

import os
import time
from pathlib import Path

import numpy as np

from variegate.partitions import UnreadablePartitionError


def add(first, second):
    return first + second


def wave(scale, item):
    """Numbers whose sum depends on the order in which they are added."""
    return scale * np.sin(1000.0 * item + np.arange(5)) * 10.0 ** (item % 13)


def slow_wave(scale, seconds, item):
    time.sleep(seconds)
    return wave(scale, item)


def marked_wave(scale, seconds, folder, item):
    """Leave a mark when the work on an item begins."""
    with open(Path(folder) / "begun", "a") as file:
        file.write(f"{item}\n")
    return slow_wave(scale, seconds, item)


def where(item):
    return os.getpid()


def threads(item):
    from threadpoolctl import threadpool_info

    return max(library["num_threads"] for library in threadpool_info())


def refuse(item):
    if item == 5:
        raise UnreadablePartitionError("part-5.parquet", "cannot be read: it is torn")
    return item


def too_late(item):
    raise TimeoutError("the task's own")


def wants_memory(item):
    """Take gigabytes for one item, and nothing for the others."""
    if item == 3:
        taken = []
        for _ in range(100):
            taken.append(np.ones(5_000_000))
            time.sleep(0.02)
    return np.array([float(item)])


def die(item):
    """End the worker, as the system does when memory runs out."""
    if item == 2:
        os.kill(os.getpid(), 9)
    time.sleep(0.2)
    return item


_HELD = []


def hold_memory(limit, item):
    """Keep so much memory that the worker takes no more work, and is not restarted."""
    import psutil

    while psutil.Process().memory_info().rss < 0.87 * limit:
        _HELD.append(np.ones(500_000))
    return item
