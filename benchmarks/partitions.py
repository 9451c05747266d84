"""Learning from a million ground sets on disk, in bounded memory.

Writes ground sets of 10 items with 5 quality and 5 similarity features to files of
10,000, then learns from them in a process of its own, and again in one that is killed
(``kill -9``) half way and started again.  The two must give the same model.

    python -m benchmarks.partitions [--n-sets N] [--folder DIR]
                                    [--kernel multiple|linear] [--out FILE.json]
"""

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import time
import warnings
from functools import partial
from itertools import islice
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import joblib
import numpy as np
from sklearn.exceptions import ConvergenceWarning

import variegate as vg
from variegate.partitions import PairPartitions

N_ITEMS = 10
N_FEATURES = 5
N_PAIRS = 10_000
MAX_ITER = 20
KERNELS = {"multiple": vg.MultipleKernel, "linear": vg.Linear}


def generated(n_sets, seed=0):
    """Yield pairs: good items that are not too near to a better one are chosen."""
    rng = np.random.default_rng(seed)
    theta = rng.standard_normal(N_FEATURES)
    for _ in range(n_sets):
        X = rng.standard_normal((N_ITEMS, N_FEATURES))
        features = rng.standard_normal((N_ITEMS, N_FEATURES))
        value = X @ theta + rng.gumbel(size=N_ITEMS)
        near = ((features[:, None] - features) ** 2).sum(axis=2) < 4.0
        beaten = (near & (value[None] > value[:, None])).any(axis=1)
        yield vg.GroundSet(X, features), (value > 0.5) & ~beaten


def partitions(folder):
    """Return the files of a folder as partitions of pairs."""
    files = sorted(folder.glob("*.joblib"))
    return PairPartitions([partial(joblib.load, file) for file in files])


def peak_mib():
    """Return the peak of this process's memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def learn(folder, kernel, checkpoint, progress):
    """Learn; print the time, the peak memory and the parameters."""
    reached = []

    def report(step):
        reached.append(step)
        if progress:
            Path(progress).write_text(str(step.iteration))

    model = vg.LargeMarginDPP(
        kernel=KERNELS[kernel](),
        max_iter=MAX_ITER,
        callback=report,
        random_state=0,
    )
    warnings.simplefilter("ignore", ConvergenceWarning)
    before = peak_mib()
    start, start_cpu = time.perf_counter(), time.process_time()
    model.fit(partitions(folder), checkpoint=checkpoint)
    print(
        json.dumps(
            {
                "seconds": time.perf_counter() - start,
                "cpu_seconds": time.process_time() - start_cpu,
                "peak_mib_before": before,
                "peak_mib": peak_mib(),
                "n_reports_here": len(reached),
                "objective": model.solver_result_.objective,
                "first_objective": model.history_[0].objective,
                "parameters": [
                    *model.theta_.tolist(),
                    model.intercept_,
                    *model.kernel_parameters_.tolist(),
                ],
            }
        )
    )


def in_a_process(arguments, kill_at=None):
    """Run this file with ``--learn``; kill it at iteration ``kill_at``."""
    folder = Path(arguments.folder)
    progress = folder / "progress"
    progress.unlink(missing_ok=True)
    command = [
        *(
            sys.executable,
            "-m",
            "benchmarks.partitions",
            "--learn",
            "--folder",
            str(folder),
        ),
        *("--kernel", arguments.kernel, "--checkpoint", str(folder / "run.checkpoint")),
        *("--progress", str(progress)),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    if kill_at is not None:
        while process.poll() is None:
            if progress.exists() and int(progress.read_text() or 0) >= kill_at:
                process.send_signal(signal.SIGKILL)
                process.wait()
                return None
            time.sleep(0.05)
        raise RuntimeError("the run ended before it could be killed")
    output, _ = process.communicate()
    return json.loads(output.splitlines()[-1])


def main():
    """Write pairs, learn, kill and resume."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n-sets", type=int, default=1_000_000)
    parser.add_argument("--folder", default="/tmp/variegate-partitions")
    parser.add_argument("--kernel", choices=KERNELS, default="multiple")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--learn", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--checkpoint", help=argparse.SUPPRESS)
    parser.add_argument("--progress", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    folder = Path(arguments.folder)
    pairs = folder / "pairs"
    if arguments.learn:
        learn(pairs, arguments.kernel, arguments.checkpoint, arguments.progress)
        return
    if not pairs.exists():
        pairs.mkdir(parents=True)
        start, made, k = time.perf_counter(), generated(arguments.n_sets), 0
        while part := list(islice(made, N_PAIRS)):
            joblib.dump(part, pairs / f"{k:04d}.joblib")
            k += 1
        print(f"written in {time.perf_counter() - start:.0f} s", flush=True)
    n_bytes = sum(path.stat().st_size for path in pairs.iterdir())
    n_pairs = arguments.n_sets
    print(f"{n_pairs} ground sets, {n_bytes / 2**20:.0f} MiB on disk", flush=True)
    (folder / "run.checkpoint").unlink(missing_ok=True)
    whole = in_a_process(arguments)
    print(
        f"{MAX_ITER} iterations: {whole['seconds']:.1f} s "
        f"({whole['cpu_seconds']:.1f} s of CPU), peak "
        f"{whole['peak_mib']:.0f} MiB resident ({whole['peak_mib_before']:.0f} before "
        f"learning), objective {whole['first_objective']:.4f} -> "
        f"{whole['objective']:.4f}",
        flush=True,
    )
    in_a_process(arguments, kill_at=MAX_ITER // 2)
    resumed = in_a_process(arguments)
    gap = np.abs(np.subtract(whole["parameters"], resumed["parameters"])).max()
    print(
        f"killed half way and resumed: {resumed['seconds']:.1f} s for the rest, peak "
        f"{resumed['peak_mib']:.0f} MiB; largest difference of a parameter {gap:g}"
    )
    if arguments.out:
        rows = {"n_pairs": n_pairs, "bytes": n_bytes, "gap": float(gap)}
        rows |= {"whole": whole, "resumed": resumed}
        arguments.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
