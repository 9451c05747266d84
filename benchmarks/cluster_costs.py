"""What an iteration costs, by the sizes of data and cluster.

An evaluation of the objective by W workers, over G groups of n rows in F files, takes

    seconds = (G t(n) + c F) / W * (how uneven the shares are) + a + b T(F, W)

- t(n) = t1 n + t2 n^2 + t3 n^3, seconds a group, by kernel;
- c: what a worker adds for each file;
- a + b T: what the driver and the scheduler add for T tasks, one for each file, or for
  eight of them where there are plenty, and those that add up.

The first evaluation also reads: G r(n) / W more, with r(n) = r1 n + r2 n^2.  Numbers
are fitted to measurements on two workers, with files of hardly any groups (a, b, c) and
with one large file each (t, r): both at once, since cores share a machine's memory.
They are tried on a size and a number of files that were not among them.
"""

from __future__ import annotations

import shutil
import time
import warnings
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from scipy.optimize import nnls

from benchmarks.cluster_tools import (
    Recorder,
    loopback_bytes,
    make_folder,
    selector,
)
from variegate.dask import DaskEngine, local_cluster
from variegate.partitions import Limits, cache
from variegate.partitions.engine import FAN_IN

KERNELS = ("linear", "multiple")
SIZES = (5, 10, 20, 40)
UNSEEN = 15
N_NUMBERS = 50  # a row: three of quality, the others of similarity
N_FILES = 16

#: What is extended to: groups, their rows, workers, and what a network carries.
GROUPS, ROWS = 10**8, 10
WORKERS = (1, 4, 16, 64, 250, 1000)
LINK = 1.25e9  # bytes a second of the scheduler: 10 Gbit/s
STORAGE = 1e8  # bytes a second that each worker reads from storage
EVALUATIONS = 100  # of a whole fit
KEPT = Limits().memory + Limits().disk  # bytes that a worker keeps, at most


@dataclass
class Costs:
    """The fitted numbers; seconds and bytes."""

    evaluation: dict[str, Any]
    reading: dict[str, Any]
    kept: dict[str, Any]
    stored: float
    fixed: float
    task: float
    file: float
    bytes_task: float = 0.0

    def group(self, kernel, n):
        """Return the seconds of a group of n rows."""
        return float(_powers(n, 3) @ self.evaluation[kernel])

    def read(self, kernel, n):
        """Return the seconds that reading and preparing it takes."""
        return float(_powers(n, 2) @ self.reading[kernel])

    def compute(self, kernel, n, n_groups, n_files, n_workers):
        """Return the seconds of the worker with the largest share."""
        share = ceil(n_files / n_workers) / n_files
        return (n_groups * self.group(kernel, n) + n_files * self.file) * share

    def overhead(self, n_files, n_workers):
        """Return the seconds of driver and scheduler."""
        return self.fixed + self.task * n_tasks(n_files, n_workers)


def _powers(n, most):
    return np.power.outer(np.asarray(n, dtype=float), np.arange(1, most + 1))


def n_tasks(n_files, n_workers):
    """Return how many tasks an evaluation is."""
    plenty = n_files >= 8 * FAN_IN * n_workers
    level = ceil(n_files / FAN_IN) if plenty else n_files
    total = level
    while level > 1:
        level = ceil(level / FAN_IN)
        total += level
    return total


# Measuring ----------------------------------------------------------------------------


def learned(engine, folder, kernel, max_iter):
    """Learn for a while; return the evaluations, the first of which also reads."""
    recorder = Recorder(engine)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has not converged
        limits = Limits(memory=2**31)
        selector(kernel, max_iter).fit(folder, engine=recorder, limits=limits)
    return recorder.evaluations


def warm_up(place, engine):
    """Let all processes load what they compute with, before the clock runs."""
    folder = place / "few"
    if not folder.exists():
        make_folder(folder, 200, 8, 6, N_NUMBERS - 3)
    for kernel in KERNELS:
        learned(engine, folder, kernel, 2)


def forget():
    """Let a worker keep nothing."""
    cache.CACHE.clear()


def kept_bytes():
    """Return how much a worker keeps."""
    return sum(cache.CACHE.bytes_kept())


def groups(place, client, n_rows, max_iter, costs_of_files):
    """Measure seconds a group, of evaluating and of reading, by size and kernel.

    Each of the two workers has a file; what files and tasks cost is taken off.
    """
    found = {}
    fixed, task, file = costs_of_files
    for n in SIZES:
        folder = place / f"rows-{n}"
        make_folder(folder, max(20, 2 * n_rows // n), 2, n, N_NUMBERS - 3)
        for kernel in KERNELS:
            client.run(forget)
            evaluations = learned(DaskEngine(client), folder, kernel, max_iter)
            each = evaluations[0].n_groups / 2
            usual = float(np.median([one.seconds for one in evaluations[1:]]))
            reading = max(evaluations[0].seconds - usual, 0.0) / each
            usual -= fixed + task * n_tasks(2, 2) + file
            kept = sum(client.run(kept_bytes).values()) / 2
            found[kernel, n] = usual / each, reading, kept / each
            print(
                f"{kernel}, {n} rows: {1e6 * usual / each:.1f} µs a group, "
                f"{1e6 * reading:.1f} µs to read it, {kept / each:,.0f} bytes kept",
                flush=True,
            )
    smallest = place / f"rows-{SIZES[0]}"
    stored = sum(path.stat().st_size for path in smallest.iterdir())
    return found, stored / (max(20, 2 * n_rows // SIZES[0]) * SIZES[0])


def overheads(place, engine, n_workers, max_iter):
    """Measure files of hardly any groups; return a, b and c."""
    columns, seconds = [], []
    for n_files in (8, 32, 96, 256, 512):
        folder = place / f"files-{n_files}"
        make_folder(folder, 2 * n_files, n_files, 6, N_NUMBERS - 3)
        evaluations = learned(engine, folder, "linear", max_iter)
        seconds.append(float(np.median([one.seconds for one in evaluations[1:]])))
        tasks = n_tasks(n_files, n_workers)
        columns.append([1.0, tasks, ceil(n_files / n_workers)])
        print(f"{n_files} files, {tasks} tasks: {1e3 * seconds[-1]:.1f} ms", flush=True)
    return fitted(np.array(columns), np.array(seconds))


def fitted(columns, values):
    """Return coefficients, none below 0, of the least relative error."""
    return nnls(columns / values[:, None], np.ones(len(values)))[0]


# The model ----------------------------------------------------------------------------


def model(place, n_groups, max_iter):
    """Fit the model, try it on what it has not seen, and extend it."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    n_rows = min(10 * n_groups, 200_000)
    sizes = np.array(SIZES, dtype=float)

    def by_size(kernel, which, most):
        values = np.array([found[kernel, n][which] for n in SIZES])
        return fitted(_powers(sizes, most), np.maximum(values, 1e-12))

    with local_cluster(2) as client:
        engine = DaskEngine(client)
        warm_up(place, engine)
        fixed, task, file = overheads(place, engine, 2, max_iter)
        found, stored = groups(place, client, n_rows, max_iter, (fixed, task, file))
        client.run(forget)
        costs = Costs(
            {kernel: by_size(kernel, 0, 3) for kernel in KERNELS},
            {kernel: by_size(kernel, 1, 2) for kernel in KERNELS},
            {kernel: found[kernel, ROWS][2] for kernel in KERNELS},
            stored,
            fixed,
            task,
            file,
        )
        folder = place / "unseen"
        make_folder(folder, 6 * n_rows // UNSEEN, N_FILES, UNSEEN, N_NUMBERS - 3)
        for kernel in KERNELS:
            tried(costs, engine, folder, kernel, max_iter)
    table(costs)


def tried(costs, engine, folder, kernel, max_iter):
    """Compare the model with a measurement that it has not seen."""
    evaluations = learned(engine, folder, kernel, max_iter)
    before = loopback_bytes()
    n_groups = evaluations[0].n_groups
    measured = float(np.median([one.seconds for one in evaluations[1:]]))
    predicted = costs.compute(kernel, UNSEEN, n_groups, N_FILES, 2)
    predicted += costs.overhead(N_FILES, 2)
    usual = float(np.median([one.n_bytes for one in evaluations[1:]]))
    costs.bytes_task = max(costs.bytes_task, usual / n_tasks(N_FILES, 2))
    print(
        f"\nunseen: {kernel}, {n_groups:,} groups of {UNSEEN} rows in {N_FILES} files, "
        f"2 workers\n  an iteration: predicted {predicted:.3f} s, measured "
        f"{measured:.3f} s: {predicted / measured - 1:+.1%} (within 25 % is asked for)"
    )
    first = predicted + n_groups * costs.read(kernel, UNSEEN) / 2
    print(
        f"  the first one: predicted {first:.2f} s, measured "
        f"{evaluations[0].seconds:.2f} s: {first / evaluations[0].seconds - 1:+.1%}"
    )
    time.sleep(measured)
    idle = loopback_bytes() - before
    print(f"  over the network: {usual:,.0f} bytes an iteration, {idle:,} when idle")


def table(costs):
    """Print the numbers and the table for docs/cluster.md."""
    print("\n| | linear | multiple |\n|---|---|---|")
    names = ("t₁", "t₂", "t₃")
    for k, name in enumerate(names):
        cells = " | ".join(f"{1e6 * costs.evaluation[x][k]:.3g} µs" for x in KERNELS)
        print(f"| {name} | {cells} |")
    for k, name in enumerate(("r₁", "r₂")):
        cells = " | ".join(f"{1e6 * costs.reading[x][k]:.3g} µs" for x in KERNELS)
        print(f"| {name} | {cells} |")
    cells = " | ".join(f"{costs.kept[x]:,.0f}" for x in KERNELS)
    print(f"| bytes kept a group of {ROWS} | {cells} |")
    print(
        f"\na = {1e3 * costs.fixed:.1f} ms, b = {1e3 * costs.task:.2f} ms a task, "
        f"c = {1e3 * costs.file:.2f} ms a file, {costs.bytes_task:,.0f} bytes a task, "
        f"{costs.stored:.0f} bytes a row stored"
    )
    for kernel in KERNELS:
        _extended(costs, kernel)


def _extended(costs, kernel):
    print(f"\n{GROUPS:,} groups of {ROWS} rows with {N_NUMBERS} numbers, {kernel}\n")
    print(
        "| workers | files | computing | scheduler | network | reading again "
        "| an iteration | reading at first | kept a worker | processor hours |"
    )
    print("|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for n_workers in WORKERS:
        n_files = max(1000, 4 * n_workers)
        computing = costs.compute(kernel, ROWS, GROUPS, n_files, n_workers)
        scheduler = costs.overhead(n_files, n_workers)
        network = costs.bytes_task * n_tasks(n_files, n_workers) / LINK
        stored = GROUPS * ROWS * costs.stored
        reading = GROUPS * costs.read(kernel, ROWS) / n_workers
        reading = max(reading, stored / n_workers / STORAGE)
        kept = GROUPS * costs.kept[kernel] / n_workers
        # What a worker cannot keep, it reads for every evaluation.
        again = max(0.0, 1.0 - KEPT / kept) * reading
        whole = computing + scheduler + network + again
        hours = (EVALUATIONS * whole + reading) * n_workers / 3600
        cells = [
            f"{n_workers:,}", f"{n_files:,}", *map(_time, (computing, scheduler)),
            _time(network), _time(again) if again else "", _time(whole),
            _time(reading), f"{kept / 1e9:.1f} GB", f"{hours:,.0f}",
        ]  # fmt: skip
        print("| " + " | ".join(cells) + " |")


def _time(seconds):
    if seconds < 1.0:
        return f"{1e3 * seconds:.0f} ms"
    if seconds < 120.0:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200.0 else f"{seconds / 3600:.1f} h"
