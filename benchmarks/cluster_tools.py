"""What the benchmarks of a cluster share: data, an engine with a stopwatch, gauges."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from variegate.partitions.problem import Sums
from variegate.tables import TableSelector, make_table, write_table

QUALITY = ("score", "freshness", "popularity")


def make_folder(folder, n_groups, n_files, n_items, n_dimensions, first_seed=0):
    """Write files with about as many groups each; groups and rows are numbered."""
    Path(folder).mkdir(parents=True)
    ends = np.linspace(0, n_groups, n_files + 1).astype(int)
    for number, (first, end) in enumerate(pairwise(ends)):
        table = make_table(
            int(end - first), n_items, n_dimensions, random_state=first_seed + number
        )
        groups = np.repeat(np.arange(first, end), n_items)
        rows = np.arange(first * n_items, end * n_items)
        table = table.set_column(0, "query", pa.array(groups))
        table = table.set_column(1, "item", pa.array(rows))
        write_table(table, Path(folder) / f"part-{number:05}.parquet")


def selector(kernel, max_iter):
    """Return a learner of so many iterations, never fewer."""
    return TableSelector(
        group="query",
        label="chosen",
        quality=QUALITY,
        similarity="embedding",
        kernel=kernel,
        omega=1.0,
        max_iter=max_iter,
        tol=1e-300,
    )


class Asked(NamedTuple):
    """One evaluation of all partitions."""

    seconds: float
    n_bytes: int
    n_groups: int


class Recorder:
    """An engine that takes down how long every evaluation of the objective took."""

    def __init__(self, engine):
        self.engine = engine
        self.map = engine.map
        self.evaluations = []

    def tree_sum(self, function, items, add):
        """Sum by the engine; take down seconds and bytes of an evaluation."""
        before, started = loopback_bytes(), time.perf_counter()
        total = self.engine.tree_sum(function, items, add)
        seconds = time.perf_counter() - started
        if isinstance(total, Sums):
            n_bytes = loopback_bytes() - before
            self.evaluations.append(Asked(seconds, n_bytes, total.count))
        return total


def loopback_bytes():
    """Return how many bytes the loopback device has carried since the start."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == "lo":
            return int(numbers.split()[0])
    raise RuntimeError("there is no loopback device")


def resident():
    """Return the largest resident set that this process has had, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return 1024 * int(line.split()[1])
    raise RuntimeError("the system does not say")
