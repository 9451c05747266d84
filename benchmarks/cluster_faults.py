"""Random kills of a Dask cluster while a model is learned on it.

    python -m benchmarks.cluster_faults --runs 50 --out FOLDER   needs variegate[dask]

A driver learns from a folder of pairs on a scheduler and two workers with nannies, all
of them processes.  At a random time some are killed with signal 9: a worker, all
workers, workers again and again, the scheduler, or the driver.  The driver then ends
with the bits of an undisturbed run or with an error of ours; if it did not finish, it
is started again on a whole cluster, and must end with these bits.  Nothing may take
longer than the limit.  Writes faults.json and prints a table.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from functools import partial
from pathlib import Path

import joblib
import numpy as np
import psutil
from sklearn.exceptions import ConvergenceWarning

import variegate as vg
from variegate.dask import ClusterError, DaskEngine, connect
from variegate.partitions import PairPartitions

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "dask_cluster"))
from processes import ProcessCluster

SETTINGS = {"kernel": vg.MultipleKernel(), "l2": 1e-4, "max_iter": 12, "tol": 1e-9}
KINDS = ("a worker", "all workers", "workers, 3 times", "the scheduler", "the driver")
#: What the driver says by its exit status when it has an error of ours.
REFUSED = 3


def digest(model):
    """Return the learned numbers as text, to compare bit by bit."""
    parts = [model.theta_, [model.intercept_], model.kernel_parameters_]
    return np.concatenate(parts).tobytes().hex()


def partitions(folder):
    """Return the files of a folder as partitions of pairs."""
    files = sorted(map(str, Path(folder).iterdir()))
    return PairPartitions([partial(joblib.load, file) for file in files])


def drive(address, folder, checkpoint):
    """Learn on a cluster; what runs in the process that may be killed."""
    print("started", flush=True)
    try:
        with connect(address) as client:
            model = vg.LargeMarginDPP(**SETTINGS)
            model.fit(
                partitions(folder), engine=DaskEngine(client), checkpoint=checkpoint
            )
            print(digest(model))
    except ClusterError as error:
        print(f"{type(error).__name__}: {error}")
        raise SystemExit(REFUSED) from None


class Run:
    """One fit, and what happens to it."""

    def __init__(self, cluster, pairs, folder, limit):
        self.cluster = cluster
        self.limit = limit
        self.command = [
            sys.executable, "-m", "benchmarks.cluster_faults",
            "--drive", cluster.address, str(pairs), str(folder / "checkpoint"),
        ]  # fmt: skip

    def start(self):
        """Start the driver, and wait until it is at work."""
        self.driver = subprocess.Popen(
            self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.driver.stdout.readline()

    def end(self):
        """Return the exit status and the last line; a hang is an error here."""
        try:
            out, err = self.driver.communicate(timeout=self.limit)
        except subprocess.TimeoutExpired:
            self.driver.kill()
            raise
        lines = out.strip().splitlines() or err.strip().splitlines() or [""]
        return self.driver.returncode, lines[-1]


def worker_pids(cluster):
    """Return the workers' processes; their parents are nannies."""
    found = []
    for nanny in cluster.workers:
        try:
            children = psutil.Process(nanny.pid).children()
            found += [c.pid for c in children if "fork" in " ".join(c.cmdline())]
        except psutil.Error:
            continue
    return found


def kill(kind, run, rng, duration):
    """Do what the kind says, beginning at a random time."""
    time.sleep(rng.uniform(0.0, duration))
    if kind == "the driver":
        run.driver.kill()
        return
    if kind == "the scheduler":
        run.cluster.scheduler.kill()
        return
    for _ in range(3 if "3" in kind else 1):
        pids = worker_pids(run.cluster)
        if kind != "all workers" and pids:
            pids = [int(rng.choice(pids))]
        for pid in pids:
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                continue
        if "3" in kind:
            time.sleep(rng.uniform(0.0, 3.0))


def whole_cluster(folder):
    """Start a scheduler and two workers."""
    folder.mkdir()
    cluster = ProcessCluster(folder)
    for _ in range(2):
        cluster.start_worker(nanny=True)
    return cluster


def one(kind, cluster, pairs, folder, rng, options):
    """Return what happened in one run, and the cluster for the next."""
    folder.mkdir()
    run = Run(cluster, pairs, folder, options.limit)
    run.start()
    kill(kind, run, rng, options.duration)
    start = time.monotonic()
    status, said = run.end()
    result = {"kind": kind, "status": status, "said": said[:200]}
    result["seconds"] = round(time.monotonic() - start, 1)
    if kind == "the scheduler":
        cluster.close()
        cluster = whole_cluster(folder / "again")
    if status != 0:
        again = Run(cluster, pairs, folder, options.limit)
        again.start()
        status, said = again.end()
        result["run_again"] = {"status": status, "said": said[:200]}
    result["same_bits"] = status == 0 and said == options.expected
    result["outcome"] = _outcome(result)
    return result, cluster


def _outcome(result):
    if result["status"] == 0:
        return "finished"
    if result["status"] == -9:
        return "killed"
    return result["said"].split(":")[0] if result["status"] == REFUSED else "FAILED"


def main(options):
    """Kill at random, and report."""
    rng = np.random.default_rng(options.seed)
    data = vg.datasets.make_synthetic(n_sets=360, random_state=0)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        pairs = root / "pairs"
        pairs.mkdir()
        both = list(zip(data.ground_sets, data.subsets, strict=True))
        for k in range(0, len(both), 30):
            joblib.dump(both[k : k + 30], pairs / f"{k:03d}.joblib")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = vg.LargeMarginDPP(**SETTINGS)
            model.fit(partitions(pairs))
        options.expected = digest(model)
        results = []
        cluster = whole_cluster(root / "cluster")
        try:
            for k in range(options.runs):
                kind = KINDS[k % len(KINDS)]
                folder = root / f"run-{k}"
                result, cluster = one(kind, cluster, pairs, folder, rng, options)
                results.append(result)
                print(k, result, flush=True)
        finally:
            cluster.close()
    report(results, options.out)
    bad = [r for r in results if not r["same_bits"] or r["outcome"] == "FAILED"]
    raise SystemExit(1 if bad else 0)


def report(results, out):
    """Print and write how the runs of each kind ended."""
    kinds = defaultdict(list)
    for result in results:
        kinds[result["kind"]].append(result)
    print("killed | runs | ended with | longest wait | same bits in the end")
    for kind, some in kinds.items():
        ended = sorted({result["outcome"] for result in some})
        longest = max(result["seconds"] for result in some)
        same = sum(result["same_bits"] for result in some)
        words = [kind, len(some), ", ".join(ended), f"{longest} s", same]
        print(" | ".join(map(str, words)))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "faults.json").write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=240.0, help="seconds a run")
    parser.add_argument(
        "--duration", type=float, default=8.0, help="kills come within so many seconds"
    )
    parser.add_argument("--out", type=Path)
    parser.add_argument("--drive", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.drive:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            drive(*options.drive)
    else:
        main(options)
