"""Memory and CPU time of choosing from an endless feed, segment by segment.

    python -m benchmarks.stream [--items 1000000 10000000] [--segment 20]

``SequentialDPP.stream`` chooses by greedy search from items that are drawn as they are
needed: five quality features, and eight similarity features that wander, so that
neighbours resemble each other.  Every number of items is a process of its own.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np

import variegate as vg
from paper.text_tables import markdown_table

_BLOCK = 10_000  # items that are drawn at once


def feed(n_items: int, segment: int, seed: int) -> Iterator[vg.GroundSet]:
    """Yield the segments of a feed."""
    rng = np.random.default_rng(seed)
    place: np.ndarray = np.zeros(8)
    for _ in range(0, n_items, _BLOCK):
        quality = rng.standard_normal((_BLOCK, 5))
        steps = 0.3 * rng.standard_normal((_BLOCK, 8))
        # Pulled back to the middle, or it would leave it for good.
        walk = 0.5 * place + np.cumsum(steps, axis=0)
        place = walk[-1]
        for start in range(0, _BLOCK, segment):
            rows = slice(start, start + segment)
            yield vg.GroundSet(quality[rows], walk[rows])


def fitted_model(segment: int) -> vg.SequentialDPP:
    """Return a model of feeds whose items of a high first feature are wanted."""
    joined = list(feed(_BLOCK, 40, seed=1))[:20]
    wanted = [np.flatnonzero(one.quality[:, 0] > 1.0) for one in joined]
    estimator = vg.LargeMarginDPP(kernel=vg.Linear(), decoder="greedy", random_state=0)
    return vg.SequentialDPP(estimator, segment=segment).fit(joined, wanted)


def measure(n_items: int, segment: int) -> None:
    """Choose from a feed; print what it took as JSON."""
    stream = fitted_model(segment).stream()
    n_chosen, n_segments, choosing = 0, 0, 0.0
    at_start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    begin = time.process_time()
    for ground_set in feed(n_items, segment, seed=0):
        before = time.process_time()
        n_chosen += len(stream.choose(ground_set))
        choosing += time.process_time() - before
        n_segments += 1
    used = {
        "start_mb": at_start,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "cpu": time.process_time() - begin,
        "us": 1e6 * choosing / n_segments,
        "chosen": n_chosen,
    }
    print(json.dumps(used))


def main() -> None:
    """Print a row for every number of items."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, nargs="+", default=[10**6, 10**7])
    parser.add_argument("--segment", type=int, default=20)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.items[0], options.segment)
        return
    rows = []
    for n_items in options.items:
        command = [sys.executable, "-m", "benchmarks.stream", "--measure", "--items"]
        command += [str(n_items), "--segment", str(options.segment)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        used = json.loads(done.stdout)
        cells = (
            f"{n_items:,}",
            f"{used['chosen']:,}",
            f"{used['start_mb']:.0f}",
            f"{used['peak_mb']:.0f}",
            f"{used['cpu']:.0f}",
            f"{used['us']:.0f}",
        )
        print(" ".join(cells), flush=True)
        rows.append(cells)
    header = ("items", "chosen", "start MB", "peak MB", "CPU s", "µs a segment")
    print(markdown_table(header, rows))


if __name__ == "__main__":
    main()
