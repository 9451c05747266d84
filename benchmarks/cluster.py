"""Learning and choosing on a cluster of this machine, and what it costs elsewhere.

    python -m benchmarks.cluster data     1,000,000 groups of 10 rows in 64 files
    python -m benchmarks.cluster fit      at home, with 1 and with 2 workers
    python -m benchmarks.cluster select   10,000,000 rows, killed twice and run again
    python -m benchmarks.cluster model    the cost model: fitted, tried, extended

``data`` is made by the others where it is missing.  ``--n-groups``, ``--n-files`` and
``--max-iter`` make all of it smaller; it lies under ``--out`` (a folder in /tmp by
default), and is made again if it was made in another size.

What is measured, and how:

- every fit runs in a process of its own, for a fixed number of iterations, with the
  kernel and omega given; its time is that of ``fit`` alone, from the first look at the
  files to the fitted model, without the start of Python and of the cluster;
- the memory of a worker is the largest resident set of its process (``VmHWM``), which
  counts pages of mapped files, and so is no less than what it needs;
- bytes over the network are those that the loopback device carried during an
  evaluation (``/proc/net/dev``): all messages between driver, scheduler and workers,
  with headers, heartbeats, and what other programs send to this machine itself.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
import warnings
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

import variegate as vg
from benchmarks.cluster_costs import model
from benchmarks.cluster_kills import select
from benchmarks.cluster_tools import (
    Recorder,
    loopback_bytes,
    make_folder,
    resident,
    selector,
)

N_ITEMS = 10
N_DIMENSIONS = 13  # with three columns of quality, 16 numbers a row


def data(options):
    """Write the folder, unless it is there in the same size."""
    folder = options.out / "data"
    size = [options.n_groups, options.n_files, N_ITEMS, N_DIMENSIONS]
    note = options.out / "data.json"
    if note.exists() and json.loads(note.read_text()) == size:
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    started = time.perf_counter()
    make_folder(folder, *size)
    note.write_text(json.dumps(size))
    n_bytes = sum(path.stat().st_size for path in folder.iterdir())
    seconds = time.perf_counter() - started
    print(
        f"{options.n_groups:,} groups of {N_ITEMS} rows in {options.n_files} files, "
        f"{n_bytes / 2**20:,.0f} MB, written in {seconds:.0f} s",
        flush=True,
    )
    return folder


def _few(folder):
    """Return some groups, enough for a model to choose by."""
    warnings.simplefilter("ignore")  # that it has not converged
    first = parquet.ParquetFile(sorted(folder.iterdir())[0])
    return pa.Table.from_batches([next(first.iter_batches(300 * N_ITEMS))])


# Learning -----------------------------------------------------------------------------


def fit(options):
    """Compare the fits, each in a process of its own."""
    folder = data(options)
    # What is compiled is kept on disk, for all processes to come.
    selector(options.kernel, 2).fit(_few(folder))
    found = {}
    for name in ("home", "1", "2"):
        command = [sys.executable, "-m", "benchmarks.cluster", "one-fit"]
        command += ["--where", name]
        command += ["--out", options.out, "--max-iter", options.max_iter]
        command += ["--kernel", options.kernel]
        done = subprocess.run(
            list(map(str, command)), stdout=subprocess.PIPE, text=True, check=True
        )
        found[name] = json.loads(done.stdout.splitlines()[-1])
        print(_line(name, found[name]), flush=True)
    home, one, two = (_parameters(options.out / f"{name}.json") for name in found)
    print(f"\n1 and 2 workers: bit-identical: {(one == two).all()}")
    difference = np.abs(two - home).max() / np.abs(home).max()
    each = np.abs(two - home) / np.maximum(np.abs(home), np.finfo(float).tiny)
    print(
        f"2 workers and home: largest relative difference {each.max():.1e} of a "
        f"parameter, {difference:.1e} of the largest one (at most 1e-9 is asked for)"
    )
    ratio = found["2"]["seconds"] / found["home"]["seconds"]
    print(f"time of 2 workers: {ratio:.2f} of home's n_jobs=2 (at most 1.25)")
    peak = max(found["2"]["resident"] + found["1"]["resident"])
    print(f"memory of a worker: {peak / 1e6:,.0f} MB at most (under 1,000)")
    (options.out / "fit.json").write_text(json.dumps(found, indent=1) + "\n")


def one_fit(options):
    """Fit in this process; print what was measured as JSON."""
    folder, where = options.out / "data", options.where
    learner = selector(options.kernel, options.max_iter)
    warnings.simplefilter("ignore")
    if where == "home":
        learner.set_params(n_jobs=2, memory=2**50)
        started = time.perf_counter()
        learner.fit(folder)
        found = {"seconds": time.perf_counter() - started, "resident": [resident()]}
    else:
        found = _on_workers(learner, folder, int(where))
    model = learner.model_
    found["iterations"] = model.history_[-1].iteration
    found["objective"] = model.history_[-1].objective
    learner.save(options.out / f"{where}.json")
    print(json.dumps(found))


def _on_workers(learner, folder, n_workers):
    from variegate.dask import DaskEngine, local_cluster

    with local_cluster(n_workers) as client:
        engine = Recorder(DaskEngine(client))
        started = time.perf_counter()
        learner.fit(folder, engine=engine)
        seconds = time.perf_counter() - started
        # As long again as an evaluation, with nothing to do.
        seconds_each = float(np.median([one.seconds for one in engine.evaluations]))
        before = loopback_bytes()
        time.sleep(seconds_each)
        idle = loopback_bytes() - before
        return {
            "seconds": seconds,
            "resident": list(client.run(resident).values()),
            "seconds_each": seconds_each,
            "first": engine.evaluations[0].seconds,
            "evaluations": len(engine.evaluations),
            "bytes_each": float(np.median([one.n_bytes for one in engine.evaluations])),
            "bytes_idle": idle,
        }


def _line(name, found):
    where = "home, n_jobs=2" if name == "home" else f"{name} worker{'s' * (name > '1')}"
    memory = " and ".join(f"{n / 1e6:,.0f}" for n in found["resident"])
    text = (
        f"{where}: {found['seconds']:.1f} s for {found['iterations']} iterations, "
        f"{memory} MB, objective {found['objective']:.12g}"
    )
    if name != "home":
        text += (
            f"; {found['evaluations']} evaluations of {found['seconds_each']:.2f} s "
            f"(the first, with reading, {found['first']:.2f} s), each with "
            f"{found['bytes_each']:,.0f} bytes over the network "
            f"({found['bytes_idle']:,.0f} in the same time without work)"
        )
    return text


def _parameters(path):
    """Return all parameters of a model as one vector."""
    learned = vg.load(path).model_
    parts = [learned.theta_, learned.intercept_, learned.alpha_, learned.beta_]
    numbers = [np.ravel(part).astype(float) for part in parts if part is not None]
    return np.concatenate(numbers)


# --------------------------------------------------------------------------------------


def chosen(options):
    """Choose from all rows, killed twice."""
    folder = data(options)
    learned = options.out / "model-for-select.json"
    selector(options.kernel, 20).fit(_few(folder)).save(learned)
    select(folder, learned, options.out / "chosen")


def costs(options):
    """Fit, try and extend the cost model."""
    options.out.mkdir(parents=True, exist_ok=True)
    model(options.out / "costs", options.n_groups, options.max_iter)


COMMANDS = {"data": data, "fit": fit, "select": chosen, "model": costs}
COMMANDS["one-fit"] = one_fit


def main():
    """Run the command that is named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("--n-groups", type=int, default=1_000_000)
    parser.add_argument("--n-files", type=int, default=64)
    parser.add_argument("--max-iter", type=int, default=20)
    parser.add_argument("--kernel", default="multiple")
    parser.add_argument("--out", type=Path, default=Path("/tmp/variegate-cluster"))
    parser.add_argument("--where", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    COMMANDS[options.command](options)


if __name__ == "__main__":
    main()
