"""Choosing from a folder by a command that is killed twice and run again."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import numpy as np
import pyarrow.parquet as parquet


def select(folder, model, out):
    """Choose on 2 workers; kill all processes after a third and two thirds of it."""
    shutil.rmtree(out, ignore_errors=True)
    files = sorted(folder.iterdir())
    command = [sys.executable, "-m", "variegate", "select", folder, "--model", model]
    # All rows, so that one that is lost or there twice can be seen.
    command += ["--all", "--drop", "embedding", "--workers", "2", "-o", out]
    for share in (1 / 3, 2 / 3):
        seconds = _run_until(command, out, round(share * len(files)))
        print(
            f"killed after {seconds:.1f} s, with {_finished(out)} of {len(files)} "
            "files finished",
            flush=True,
        )
    before = {path.name: path.stat().st_mtime_ns for path in _files(out)}
    kept = _recorded(out) & set(before)
    started = time.perf_counter()
    subprocess.run(list(map(str, command)), check=True)
    print(f"run again: {time.perf_counter() - started:.1f} s")
    after = {path.name: path.stat().st_mtime_ns for path in _files(out)}
    touched = sum(after[name] != before[name] for name in kept)
    print(f"{len(kept)} files were there, {touched} of them written again")
    _check(files, out)


def _run_until(command, out, n_files):
    """Run a command in a group of processes, all killed when so many files are done."""
    started = time.perf_counter()
    process = subprocess.Popen(list(map(str, command)), start_new_session=True)
    while _finished(out) < n_files:
        if process.poll() is not None:
            raise SystemExit("the command ended before it was killed: take more groups")
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return time.perf_counter() - started


def _finished(out):
    return len(_files(out))


def _recorded(out):
    """Return the names of the files that the manifest has as written."""
    with closing(sqlite3.connect(out / ".manifest.sqlite")) as store:
        return {key for (key,) in store.execute("SELECT key FROM steps")} - {"inputs"}


def _files(out):
    return sorted(out.glob("*.parquet"))


def _check(files, out):
    """Compare the rows that were read with those that were written, file by file."""
    assert [path.name for path in _files(out)] == [path.name for path in files]
    n_rows = n_chosen = 0
    for path in files:
        rows = parquet.read_table(path, columns=["item"])["item"].to_numpy()
        found = parquet.read_table(out / path.name, columns=["item", "selected"])
        np.testing.assert_array_equal(found["item"].to_numpy(), rows)
        n_rows += len(rows)
        n_chosen += int(found["selected"].to_numpy().sum())
    print(
        f"{n_rows:,} rows, each there once and in the order of its file; "
        f"{n_chosen:,} chosen"
    )
