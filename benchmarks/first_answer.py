"""Time to the first answer, process start included, with and without compiled code.

    python -m benchmarks.first_answer [--out FILE.json] [--repeats 5] [--only NAME ...]

Every measurement is a fresh process on one BLAS thread: CPU seconds (user and system)
of the process and its children, and seconds on the clock.  "Cold" has an empty folder
for Numba's compiled code, "warm" one that the same work has filled before; Python's own
bytecode is there in both.  A cell is the least of all repeats and, in brackets, the
median.
"""

import argparse
import ast
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

from paper.text_tables import markdown_table

THREADS = ("MKL_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
STATES = ("cold", "warm")

#: Runs pieces of code, and prints the CPU seconds that this process has used and the
#: time of a clock, before the first and after each.
STEPS = """
import sys, time
marks, scope = [(time.process_time(), time.monotonic())], {}
for code in sys.argv[1:]:
    exec(code, scope)
    marks.append((time.process_time(), time.monotonic()))
print(marks)
"""

#: 1,000 embeddings, and 60 pages of 12 results of which three were picked.
DATA = "import numpy as np; X = np.random.default_rng(0).random((1000, 64))"
PAGES = """
import numpy as np, variegate as vg
rng = np.random.default_rng(0)
quality = rng.standard_normal((60, 12, 2))
pages = [vg.GroundSet(q, rng.standard_normal((12, 4))) for q in quality]
picks = [np.argsort(-q[:, 0])[:3] for q in quality]
"""

#: How peers choose 10 of the 1,000, by the modules that must be installed.
PEERS = {
    "pyversity": "pyversity.diversify(X, np.ones(1000), 10, strategy='dpp')",
    "apricot": "apricot.FacilityLocationSelection(10).fit(X)",
    "submodlib": "submodlib.FacilityLocationFunction(n=1000, mode='dense', data=X, "
    "metric='euclidean').maximize(10, show_progress=False)",
}

#: The steps of processes: their names (a step without a name is not shown), and code.
LIBRARIES = {
    "python": {"": "pass"},
    "vg.select": {
        "import variegate": "import variegate as vg",
        "": DATA,
        "imports of vg.select": "vg.select",
        "first vg.select, 10 from 1,000 × 64": "vg.select(X, k=10)",
        "second vg.select": "vg.select(X, k=10)",
    },
    "fit, predict": {
        "": PAGES,
        "imports of LargeMarginDPP": "model = vg.LargeMarginDPP()",
        "first fit, 60 sets of 12": "model.fit(pages, picks)",
        "first predict, 60 sets of 12": "model.predict(pages)",
        "second predict, 60 sets of 12": "model.predict(pages)",
    },
    "sklearn": {"import sklearn": "import sklearn"},
    **{
        name: {f"import {name}": f"import {name}", "": DATA, "first answer": code}
        for name, code in PEERS.items()
    },
}

#: CPU seconds that are promised, cold.
LIMITS = {
    "import variegate": 0.25,
    "first vg.select, 10 from 1,000 × 64": 0.05,
    "first fit, 60 sets of 12": 1.0,
    "first predict, 60 sets of 12": 0.2,
}

GROUPS = "--group query --similarity embedding"

#: Commands by the module that their extra brings; NEW is a name that is free.
COMMANDS = {
    "click": ["--help"],
    "pyarrow": [
        f"fit train.parquet {GROUPS} --quality score --label chosen -o NEW.json",
        "evaluate new.parquet --model model.json",
        "select new.parquet --model model.json -o NEW.parquet",
        f"select new.parquet --method dpp {GROUPS} --k 3 -o NEW.parquet",
        "gather train --group query -o NEW",
        "describe model.json",
    ],
    "syntok": [
        "summarize a.txt b.txt --budget 20w",
        "fit-summarizer topics.jsonl -o NEW.json",
        "rouge --system a.txt --reference b.txt",
    ],
    "cv2": [
        "keyframes film.avi -o NEW",
        "fit-keyframes . picks.csv -o NEW.json",
        "evaluate-keyframes picks.csv picks.csv --video film.avi",
    ],
}


def write_inputs(folder):
    """Write a small input for every command whose extra is installed."""
    storm = "A storm closed the harbour of Aarhus. Ferries stayed in port all day. "
    (folder / "a.txt").write_text(storm * 4)
    (folder / "b.txt").write_text("Nine ferries were cancelled in a storm. Rain fell.")
    topic = {"documents": [storm * 4], "references": ["Ferries stayed in port."]}
    (folder / "topics.jsonl").write_text(f"{json.dumps(topic)}\n" * 3)
    for module, write in (("pyarrow", write_tables), ("cv2", write_film)):
        if find_spec(module):
            write(folder)


def write_tables(folder):
    """Write tables of 60 and 20 groups, and a model of the first."""
    from variegate.tables import make_table, write_table

    for name, n_groups in (("train", 60), ("new", 20)):
        (folder / name).mkdir()
        table = make_table(n_groups, 12, random_state=n_groups)
        write_table(table, folder / name / "part.parquet")
        write_table(table, folder / f"{name}.parquet")
    run_command(COMMANDS["pyarrow"][0].replace("NEW", "model"), folder)


def write_film(folder):
    """Write ten seconds of four scenes, and what somebody picked."""
    import cv2
    import numpy as np

    code = cv2.VideoWriter.fourcc(*"MJPG")
    writer = cv2.VideoWriter(str(folder / "film.avi"), code, 10.0, (96, 64))
    for noise in np.random.default_rng(0).random((4, 8, 12, 3)):
        scene = cv2.resize((255 * noise).astype(np.uint8), (96, 64))
        for _ in range(25):
            writer.write(scene)
    writer.release()
    (folder / "picks.csv").write_text("video,time\nfilm.avi,2\nfilm.avi,4\nfilm.avi,9")


def run(arguments, folder, cache=None):
    """Run Python; return its output, CPU seconds and seconds on the clock."""
    arguments = [sys.executable, *arguments]
    variables = os.environ | dict.fromkeys(THREADS, "1")
    with TemporaryFile("w+") as output, TemporaryDirectory() as empty:
        variables["NUMBA_CACHE_DIR"] = str(cache or empty)
        started = time.monotonic()
        streams = {"stdout": output, "stderr": output}
        process = subprocess.Popen(arguments, cwd=folder, env=variables, **streams)
        # Unlike wait, wait4 tells what this process and its children have used.
        _, status, usage = os.wait4(process.pid, 0)
        elapsed = time.monotonic() - started
        output.seek(0)
        text = output.read()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(arguments)} failed:\n{text}")
    return text, usage.ru_utime + usage.ru_stime, elapsed


def run_command(line, *place):
    """Return the name of a command, and its seconds."""
    words = line.replace("NEW", f"new{time.monotonic_ns()}").split()
    name = f"variegate {line.split(' -o')[0].split(' --group')[0]}"
    return [(name, *run(["-m", "variegate", *words], *place)[1:])]


def run_steps(steps, *place):
    """Yield the steps of a process, and a process that ends with the first answer."""
    output, *_ = run(["-c", STEPS, *steps.values()], *place)
    marks = ast.literal_eval(output.splitlines()[-1])
    for name, (before, after) in zip(steps, itertools.pairwise(marks), strict=True):
        if name:
            yield name, after[0] - before[0], after[1] - before[1]
    first = "\n".join(code for name, code in steps.items() if "second" not in name)
    yield "all, from process start", *run(["-c", first], *place)[1:]


def measurements():
    """Yield names of groups, and functions that measure one process of each."""
    for name, steps in LIBRARIES.items():
        if name not in PEERS or find_spec(name):
            yield name, partial(run_steps, steps)
    for module, lines in COMMANDS.items():
        if find_spec(module):
            yield from (("commands", partial(run_command, line)) for line in lines)


def measure(repeats, only):
    """Return the seconds of every step and command, cold and warm in turn."""
    rows = defaultdict(lambda: defaultdict(list))
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_inputs(folder)
        groups = [pair for pair in measurements() if not only or pair[0] in only]
        for repeat in range(repeats + 1):  # the first fills the folder of "warm"
            print(f"repeat {repeat} of {repeats}", file=sys.stderr)
            for (group, once), state in itertools.product(groups, STATES):
                cache = folder / "compiled" if state == "warm" else None
                for what, cpu, clock in once(folder, cache):
                    if repeat:
                        rows[group, what][f"cpu_{state}_s"].append(cpu)
                        rows[group, what][f"clock_{state}_s"].append(clock)
    return [{"group": name[0], "what": name[1], **row} for name, row in rows.items()]


def table(rows):
    """Return the measurements as a table in Markdown."""
    head = {f"{k}_{s}_s": f"{k} s, {s}" for k in ("cpu", "clock") for s in STATES}
    lines = []
    for row in rows:
        cells = [f"{min(row[k]):.3f} ({statistics.median(row[k]):.3f})" for k in head]
        limit = str(LIMITS.get(row["what"], ""))
        lines.append([row["group"], row["what"], limit, *cells])
    return markdown_table(("", "what", "at most", *head.values()), lines)


def main():
    """Measure, print the table and write JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="JSON with all repeats")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", nargs="+", metavar="NAME", default=())
    arguments = parser.parse_args()
    rows = measure(arguments.repeats, arguments.only)
    print(table(rows))
    missing = [name for name in (*PEERS, *COMMANDS) if not find_spec(name)]
    print("\nleft out: studio (serves)", *missing, sep=", ")
    if arguments.out:
        arguments.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
