"""What a Dask cluster costs beside the work: seconds and bytes of one sum.

    python -m benchmarks.cluster_overhead --items 64 --workers 2   needs variegate[dask]

Sums an array over items that take no time, as an iteration of learning does with its
gradient.  Bytes are those that all processes send to each other, counted where Dask
writes them.  Also says how often an item came to the worker that had it before, if
items take as long as --seconds says.
"""

from __future__ import annotations

import argparse
import os
import time
from functools import partial

import numpy as np

from variegate.dask import DaskEngine, local_cluster


def count_bytes():
    """Count what this process sends from now on."""
    from distributed.comm.tcp import TCP

    if hasattr(TCP, "sent"):
        return
    TCP.sent = 0
    write = TCP.write

    async def counted(self, *arguments, **options):
        n_bytes = await write(self, *arguments, **options)
        TCP.sent += n_bytes or 0
        return n_bytes

    TCP.write = counted


def counted():
    """Return the bytes sent and the seconds of processor time so far."""
    from distributed.comm.tcp import TCP

    return TCP.sent, time.process_time()


def gradient(parameters, seconds, item):
    """Return a part of a gradient, after some seconds."""
    time.sleep(seconds)
    return parameters * item


def plus(one, other):
    """Return the sum of two parts."""
    return one + other


def where(seconds, item):
    """Return the worker's process, after seconds that depend on the item."""
    time.sleep(seconds * (1 + item % 5) / 3)
    return os.getpid()


def main(options):
    """Measure maps and sums, and print them."""
    items = list(range(options.items))
    with local_cluster(options.workers) as client:
        engine = DaskEngine(client)
        count_bytes()
        client.run(count_bytes)
        parameters = np.zeros(options.parameters)
        function = partial(gradient, parameters, 0.0)
        for _ in range(3):
            engine.tree_sum(function, items, plus)
        before, start = [counted(), *client.run(counted).values()], time.perf_counter()
        for _ in range(options.repeats):
            engine.tree_sum(function, items, plus)
        wall = (time.perf_counter() - start) / options.repeats
        after = [counted(), *client.run(counted).values()]
        used = (np.array(after) - before) / options.repeats
        print(f"{options.items} items, {options.workers} workers, a sum of "
              f"{options.parameters} numbers:")  # fmt: skip
        print(f"  {1000 * wall:.0f} ms on the clock")
        names = ("driver and scheduler", *(f"worker {k}" for k in range(len(used) - 1)))
        for name, (n_bytes, cpu) in zip(names, used, strict=True):
            print(f"  {name}: {1000 * cpu:.0f} ms of CPU, {n_bytes:,.0f} bytes sent")
        first = list(engine.map(partial(where, options.seconds), items))
        same = [
            np.mean(np.array(list(engine.map(partial(where, options.seconds), items)))
                    == first)
            for _ in range(5)
        ]  # fmt: skip
        print(f"  to the same worker again: {100 * np.mean(same):.0f} % of items")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=64)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--parameters", type=int, default=60)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=0.05)
    main(parser.parse_args())
