"""Tables at scale, by the commands that people type.

    python -m benchmarks.tables contest   models against other ways, 2,000 x 50
    python -m benchmarks.tables decoders  one model, chosen from in several ways
    python -m benchmarks.tables large     fit on 2 GB of Parquet in 1 GB of memory
    python -m benchmarks.tables million   select from a million rows in 10,000 groups
    python -m benchmarks.tables kill      kill -9 in the middle of select

Each writes what it needs under --out (4 GB at most) and prints what it measured.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import variegate as vg
from variegate.decoding import MBR, ExpectedF, Greedy
from variegate.tables import TableSelector, make_table, write_table
from variegate.tables.limits import Limit
from variegate.tables.table import as_table

COMMAND = Path(sys.executable).with_name("variegate")
COLUMNS = [
    "--group", "query", "--columns", "item=item", "--label", "chosen",
    "--quality", "score,freshness,popularity", "--columns", "categorical=kind",
    "--similarity", "embedding",
]  # fmt: skip


def variegate(*arguments, quiet=False):
    """Run a command; return the seconds it took and the most memory it held, in MB."""
    command = [COMMAND, *map(str, arguments)]
    print("$ variegate", *arguments, flush=True)
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL if quiet else None)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    if status:
        raise SystemExit(f"the command ended with status {status}")
    print(f"  {seconds:.1f} s, {usage.ru_maxrss / 1024:.0f} MB at most\n", flush=True)
    return seconds, usage.ru_maxrss / 1024


def contest(out):
    """Compare models and baselines on generated queries."""
    train, test = out / "contest-train.parquet", out / "contest-test.parquet"
    write_table(make_table(2000, 50, random_state=0), train)
    write_table(make_table(500, 50, random_state=1), test)
    gaussians = ["--kernel", "multiple"]
    settings = {"tuned": ["--tune"], "auto": []}
    settings |= {"lme": gaussians, "mle": [*gaussians, "--lam", "0"]}
    models = {name: out / f"contest-{name}.json" for name in settings}
    for name, how in settings.items():
        variegate(
            "fit", train, *COLUMNS, *how, "-o", models[name], "--force", quiet=True
        )
    named = {name: ["--model", path] for name, path in models.items()}
    every = [option for options in named.values() for option in options]
    others = ["--relevance", "score", "--train", train]
    variegate("evaluate", test, *every, *others)
    variegate("evaluate", test, *every, *others, "--k", 8)


def decoders(out):
    """Compare ways to choose by the same model, on three tables of 150 groups."""
    ways = {
        "greedy": Greedy(),
        "mbr": MBR(),
        "expected-f": ExpectedF(),
        "expected-f, repetition 0.5": ExpectedF(repetition=0.5),
        "expected-f, repetition 1": ExpectedF(repetition=1.0),
    }
    found = {(name, k): [] for k in (None, 8) for name in ways}
    for seed in (2, 3, 4):
        selector = TableSelector(
            group="query", item="item", label="chosen", similarity="embedding",
            quality=["score", "freshness", "popularity"], categorical="kind",
            kernel="multiple",
        )  # fmt: skip
        selector.fit(make_table(300, 50, random_state=100 + seed))
        test = make_table(150, 50, random_state=200 + seed)
        vectors = np.array(test["embedding"].to_pylist())
        vectors /= np.linalg.norm(vectors, axis=1)[:, None]
        columns = selector._required_columns(True)
        groups = list(selector._read_groups(as_table(test), columns))
        for (name, k), rows in found.items():
            way = replace(selector._make_chooser(None, Limit(k)), how=ways[name])
            way(groups[0])
            for group in groups:
                started = time.perf_counter()
                chosen = way(group).order
                seconds = time.perf_counter() - started
                cosines = np.tril(
                    vectors[group.rows[chosen]] @ vectors[group.rows[chosen]].T, -1
                )
                alike = (np.maximum(cosines, cosines.T) > 0.9).any(axis=1).sum()
                f = vg.metrics.f_score(chosen, group.wanted())
                rows.append([f, len(chosen), alike, 1e3 * seconds])
    print("| decoder | k | F | less greedy | rows | near copies | ms |")
    for (name, k), rows in found.items():
        rows = np.array(rows)
        less = rows[:, 0] - np.array(found["greedy", k])[:, 0]
        spread = 1.96 * less.std() / len(less) ** 0.5
        f, size, alike, milliseconds = rows.mean(axis=0)
        print(
            f"| {name} | {k or ''} | {f:.3f} | {less.mean():+.3f} ± {spread:.3f} "
            f"| {size:.1f} | {alike / size:.1%} | {milliseconds:.1f} |"
        )


def large(out, n_groups=20_000, n_items=50, size=512):
    """Write 20,000 groups of 50 rows with vectors of 512 numbers, then learn."""
    path = out / "large.parquet"
    if not path.exists():
        rng = np.random.default_rng(0)
        writer = None
        for first in range(0, n_groups, 500):
            part = make_table(500, n_items, 32, random_state=first)
            # Directions are kept by an orthogonal map into more dimensions.
            if first == 0:
                basis = np.linalg.qr(rng.standard_normal((size, 32)))[0].T
            vectors = np.array(part["embedding"].to_pylist()) @ basis
            flat = pa.array(vectors.astype(np.float32).ravel())
            lists = pa.FixedSizeListArray.from_arrays(flat, size)
            names = [f"{first}-{q}" for q in part["query"].to_pylist()]
            place = part.schema.get_field_index("embedding")
            part = part.set_column(place, "embedding", lists)
            part = part.set_column(0, "query", pa.array(names))
            if writer is None:
                writer = pq.ParquetWriter(path, part.schema, compression="none")
            writer.write_table(part)
        writer.close()
    print(f"{path}: {path.stat().st_size / 1e9:.2f} GB")
    variegate(
        "fit", path, *COLUMNS, "--memory", "256MB", "-o", out / "large.json", "--force"
    )


def million(out):
    """Select from a million rows, and check the result."""
    path, model = _million(out)
    chosen = out / "million-chosen.parquet"
    variegate("select", path, "--model", model, "-o", chosen, "--force")
    table, result = pq.read_table(path), pq.read_table(chosen)
    assert result.schema.names[: len(table.schema)] == table.schema.names
    assert [f.type for f in result.schema][: len(table.schema)] == table.schema.types
    place = {pair: row for row, pair in enumerate(_pairs(table))}
    rows = np.array([place[pair] for pair in _pairs(result)])
    assert (np.diff(rows) > 0).all(), "rows are out of order"
    assert result.select(table.schema.names).equals(table.take(rows))
    print(f"{len(rows):,} rows, equal to those of the table, in its order and types")


def _pairs(table):
    return zip(table["query"].to_pylist(), table["item"].to_pylist(), strict=True)


def _million(out):
    path, model = out / "million.parquet", out / "million.json"
    if not path.exists():
        table = make_table(10_000, 100, random_state=0)
        write_table(table, path)
        train = table.slice(0, 100_000)
        write_table(train, out / "million-train.parquet")
        variegate(
            "fit", out / "million-train.parquet", *COLUMNS, "-o", model, "--force",
            quiet=True,
        )  # fmt: skip
    return path, model


def kill(out):
    """Kill a selection at some moments, and check what is left."""
    path, model = _million(out)
    folder = out / "killed"
    folder.mkdir(exist_ok=True)
    for wait in (5.0, 10.0, 15.0, 20.0, 25.0):
        process = subprocess.Popen(
            [
                *(COMMAND, "select", path, "--model", model),
                *("-o", folder / "chosen.parquet", "--force"),
            ],
            stdout=subprocess.DEVNULL,
        )
        time.sleep(wait)
        is_running = process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait()
        left = [
            f"{entry.name}, whole, of {pq.read_table(entry).num_rows:,} rows"
            for entry in folder.iterdir()
        ]
        print(f"killed after {wait:g} s (running: {is_running}): {left or 'nothing'}")
        for entry in folder.iterdir():
            entry.unlink()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "what", choices=["contest", "decoders", "large", "million", "kill"]
    )
    parser.add_argument("--out", type=Path, default=Path("out/tables"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    globals()[given.what](given.out)
