"""What TLS costs a local cluster: ``fit --workers`` with and without it, in turns.

    python -m benchmarks.cluster_tls --groups 2000 --rounds 4   needs variegate[dask]

Prints CPU seconds of all processes and seconds on the clock: of starting and ending the
cluster, and of the whole command on a folder of 16 files.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from variegate.tables import make_table, write_table

#: A program that starts two workers, with TLS if its first argument is "tls".
CODE = """
import sys
from variegate.dask import cluster
if __name__ == "__main__":
    if sys.argv.pop(1) == "plain":
        LocalCluster = cluster.LocalCluster
        plain = {"security": None, "protocol": "tcp://"}
        cluster.LocalCluster = lambda **options: LocalCluster(**options | plain)
    if len(sys.argv) == 1:
        with cluster.local_cluster(2):
            pass
    else:
        from variegate.cli import main
        main()
"""
FIT = (
    "--group", "query", "--label", "chosen", "--columns", "item=item",
    "--quality", "score,freshness", "--similarity", "embedding", "--kernel", "linear",
    "--omega", "1", "--max-iter", "30", "--workers", "2", "--force",
)  # fmt: skip
WAYS = ("plain", "tls")


def measure(program, way, arguments):
    """Return seconds on the clock and of CPU of a program."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, program, way, *arguments]
    subprocess.run(command, check=True, capture_output=True)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, sum(after[:2]) - sum(before[:2])


def main(options):
    """Measure in turns, and print medians and ratios with their ranges."""
    with tempfile.TemporaryDirectory() as name:
        program, folder = Path(name, "program.py"), Path(name, "data")
        program.write_text(CODE)
        folder.mkdir()
        table = make_table(options.groups, 10, 16, random_state=0)
        size = 10 * -(-options.groups // 16)
        for k in range(16):
            write_table(table.slice(k * size, size), folder / f"{k:02}.parquet")
        fit = ("fit", folder, *FIT, "-o", Path(name, "model.json"))
        for title, arguments in {"start and end": (), "fit": fit}.items():
            times = np.array(
                [
                    [measure(program, way, arguments) for way in WAYS]
                    for _ in range(options.rounds)
                ]
            )
            for what, (plain, tls) in zip(("wall", "CPU"), times.T, strict=True):
                ratios = tls / plain
                print(f"{title}, {what}: {np.median(plain):.2f} s without TLS, "
                      f"{np.median(tls):.2f} s with it, ratio {np.median(ratios):.2f} "
                      f"({ratios.min():.2f} to {ratios.max():.2f})")  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--groups", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=4)
    main(parser.parse_args())
