"""Growth of the time to read a file with its size, for files made to be slow.

    python -m benchmarks.reader_growth [--sizes 10,100,1000] [--only SUFFIX[:FAMILY]]

A line for each family of :mod:`benchmarks.hostile_files`: the processor seconds of
reading a file (and cutting documents into sentences) at each size in kB, the growth
exponent, and the error, if the file is refused.  Each file is read in a process of its
own, which starts with everything loaded and ends after ``LIMIT`` processor seconds.

The exponent is that of the line through the last two sizes, of logarithms.  It counts
where the larger one takes at least ``LEAST`` seconds; "-" stands for less.
"""

from __future__ import annotations

import argparse
import math
import os
import pickle
import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.hostile_files import FAMILIES

#: Processor seconds after which reading is given up.
LIMIT = 60
#: Processor seconds below which the growth is not judged.
LEAST = 0.2
#: The largest exponent that passes.
MOST = 1.2

_TABLES = (".csv", ".jsonl")


class Reading(NamedTuple):
    """Processor seconds of reading a file, NaN above ``LIMIT``, and the error or ""."""

    seconds: float
    problem: str


def read_file(path: Path) -> None:
    """Read a file to its end: rows of tables, sentences of documents."""
    if path.suffix in _TABLES:
        from variegate.tables.reading import TableFile

        for _ in TableFile(path).batches():
            pass
        return
    from variegate.text.documents import Cluster
    from variegate.text.readers import read_documents
    from variegate.text.sentences import split_cluster

    split_cluster(Cluster(read_documents(path), language="english"))


def measure(read: Callable[[Path], object], path: Path, limit: int = LIMIT) -> Reading:
    """Read a file in a forked process; a killed one has "killed" as its problem."""
    receiving, sending = os.pipe()
    child = os.fork()
    if not child:
        os.close(receiving)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        start, problem = time.process_time(), ""
        try:
            read(path)
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
        with os.fdopen(sending, "wb") as file:
            pickle.dump(Reading(time.process_time() - start, problem), file)
        os._exit(0)
    os.close(sending)
    with os.fdopen(receiving, "rb") as file:
        data = file.read()
    os.waitpid(child, 0)
    return pickle.loads(data) if data else Reading(math.nan, "killed")


def exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float | None:
    """Return the growth between the last two sizes; None where it is not judged."""
    if any(map(math.isnan, seconds)):
        return math.inf
    (small, large), (before, after) = sizes[-2:], seconds[-2:]
    if after < LEAST:
        return None
    # Less than a hundredth of a second is mostly what any file takes.
    return math.log(after / max(before, 0.01)) / math.log(large / small)


def warm_up(folder: Path) -> None:
    """Read a small file of each format, so that everything is loaded."""
    for suffix, families in FAMILIES.items():
        path = folder / f"warm{suffix}"
        for name in ("rows", "body", "paragraphs", "lines"):
            if name in families:
                path.write_text(families[name](200), encoding="utf-8")
                read_file(path)


def main() -> None:
    """Print a line for every family; exit with 1 if any grows too fast."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="10,100,1000", help="kB, comma-separated")
    parser.add_argument("--only", default="", help="SUFFIX or SUFFIX:FAMILY")
    parser.add_argument("--limit", type=int, default=LIMIT, help="processor seconds")
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    suffix, _, wanted = options.only.partition(":")
    warnings.simplefilter("ignore")
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        warm_up(folder)
        for kind, families in FAMILIES.items():
            for family, make in families.items():
                if (suffix and kind != suffix) or (wanted and family != wanted):
                    continue
                path, readings = folder / f"file{kind}", list[Reading]()
                for size in sizes:
                    path.write_text(make(1000 * size), encoding="utf-8")
                    readings.append(measure(read_file, path, options.limit))
                    if readings[-1].problem == "killed":
                        break
                growth = exponent(sizes, [one.seconds for one in readings])
                failed += growth is not None and growth > MOST
                times = " ".join(f"{one.seconds:7.2f}" for one in readings)
                problem = readings[-1].problem.replace(str(path), "FILE")
                verdict = "    -" if growth is None else f"{growth:5.2f}"
                print(f"{kind:6} {family:26} {times} {verdict}  {problem:.90}")
                sys.stdout.flush()
    print(f"{failed} families grow faster than size ** {MOST}")
    raise SystemExit(failed > 0)


if __name__ == "__main__":
    main()
