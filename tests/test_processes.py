"""Processes that were started end with the one that started them, and leave nothing."""

import math
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import variegate as vg
from table_instances import INTERRUPTIBLE, QUICK, names_in, process, small_table
from variegate._processes import ProcessCall, ProcessCallError, delay_interrupts
from variegate.tables import write_table

ROOT = Path(__file__).parent.parent

#: What each worker does: say that it is there, then work without an end.
WORK = """
import os, sys, time
from pathlib import Path
def work(*_):
    (Path({folder!r}) / str(os.getpid())).touch()
    while True:
        sum(range(100_000))
        time.sleep(0.01)  # tests beside this one need the processor, too
"""

#: What starts workers: one script a way of the package.
WAYS = {
    "tuning": """
import numpy as np
import variegate as vg
rng = np.random.default_rng(0)
# Large enough for joblib to put it into a file for the workers.
sets = [
    vg.GroundSet(rng.normal(size=(300, 2)), rng.normal(size=(300, 500)))
    for _ in range(4)
]
model = vg.LargeMarginDPP(kernel=vg.Linear(), max_iter=1)
search = vg.LargeMarginDPPCV(model, cv=2, n_jobs=2, scoring=work)
search.fit(sets, [[0, 1]] * 4)
""",
    "an experiment": """
from paper.experiment import run_pieces
run_pieces(work, [(0,), (1,)], Path({out!r}), "mark", 2)
""",
    "a measurement": """
from benchmarks.timing import output_of
output_of({work!r} + "work()")
""",
}


def is_running(number):
    """Whether a process does anything; one that nobody has asked about does not."""
    with suppress(OSError):
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
        return state != "Z"
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return not Path("/proc/self").exists()


def soon(condition, seconds=300.0):
    """Whether something becomes true at all; a busy machine may take its time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def left_by(number, temporary):
    """Return what a process and those it started left for others to remove."""
    shared = Path("/dev/shm")
    names = [path.name for path in shared.iterdir()] if shared.is_dir() else []
    of_it = re.compile(rf"(?<!\d){number}(?!\d)")
    return names_in(temporary) + [name for name in names if of_it.search(name)]


@contextmanager
def started_work(way, tmp_path):
    """Start a script; yield it when its workers are at work, and their numbers."""
    folders = {name: tmp_path / name for name in ("workers", "temporary", "out")}
    for folder in folders.values():
        folder.mkdir()
    work = WORK.format(folder=str(folders["workers"]))
    code = WAYS[way].format(work=work, out=str(folders["out"]))
    started = process(
        code=INTERRUPTIBLE + work + code,
        cwd=ROOT,
        env={"TMPDIR": str(folders["temporary"])},
    )
    n_workers = 1 if way == "a measurement" else 2

    def workers():
        return [int(name) for name in names_in(folders["workers"])]

    try:
        assert soon(lambda: len(workers()) == n_workers or started.poll() is not None)
        assert started.poll() is None, started.communicate()[1]
        yield started, workers()
    finally:
        started.kill()
        for number in filter(is_running, workers()):
            os.kill(number, signal.SIGKILL)
        started.communicate()


#: Every way with the signal that leaves no time for anything, and others once.
CASES = [
    *((way, signal.SIGKILL) for way in WAYS),
    pytest.param("tuning", signal.SIGINT, marks=pytest.mark.slow),
    pytest.param("an experiment", signal.SIGTERM, marks=pytest.mark.slow),
]


@pytest.mark.faults
@pytest.mark.parametrize(("way", "how"), CASES)
def test_workers_end_with_the_process_that_started_them(way, how, tmp_path):
    with started_work(way, tmp_path) as (started, workers):
        assert all(map(is_running, workers))
        started.send_signal(how)
        # Ends when everybody who could write there has ended, joblib's trackers too.
        started.communicate(timeout=300)
        assert started.returncode in (-how, 1)
        assert soon(lambda: not any(map(is_running, workers)))
        assert soon(lambda: left_by(started.pid, tmp_path / "temporary") == [])


#: What starts processes, in whatever way.
STARTING = re.compile(
    r"import (subprocess|multiprocessing|joblib)\b|from (subprocess|multiprocessing)\b"
    r"|from joblib import .*\bParallel|ProcessPoolExecutor|os\.(fork|spawn)"
)


def test_processes_are_started_in_one_place():
    root = Path(vg.__file__).parent
    found = {
        path.name for path in root.rglob("*.py") if STARTING.search(path.read_text())
    }
    assert found == {"_processes.py"}


# Calls in processes of their own ------------------------------------------------------


def test_a_call_is_made_in_another_process():
    assert ProcessCall(os.getpid).result() != os.getpid()
    assert ProcessCall(partial(divmod, 17, 5)).result() == (3, 2)


def test_calls_have_a_low_priority():
    assert ProcessCall(partial(os.nice, 0)).result() >= min(19, os.nice(0) + 10)


def test_an_error_of_a_call_is_named():
    with pytest.raises(ProcessCallError, match=r"^ValueError: "):
        ProcessCall(partial(math.sqrt, -1)).result()


def test_a_call_whose_process_ends_by_itself():
    with pytest.raises(ProcessCallError, match="ended too early"):
        ProcessCall(partial(os._exit, 0)).result()


def test_printing_is_not_an_answer(capfd):
    assert ProcessCall(partial(print, "hello")).result() is None
    assert "hello" in capfd.readouterr().err


def test_a_call_that_is_ended_fails():
    call = ProcessCall(partial(time.sleep, 600))
    threading.Timer(0.2, call.end).start()
    with pytest.raises(ProcessCallError, match="ended too early"):
        call.result()


# Ctrl-C -------------------------------------------------------------------------------


def interrupted_block(finished, send):
    """Get an interrupt in a block that delays it; note whether the block finished."""
    with delay_interrupts():
        send()
        time.sleep(0.2)
        finished.append(True)


SENDERS = {
    "this thread": lambda: signal.raise_signal(signal.SIGINT),
    # A library's thread, which was started before.
    "the process": lambda: os.kill(os.getpid(), signal.SIGINT),
}


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="needs POSIX")
@pytest.mark.parametrize("send", SENDERS.values(), ids=SENDERS)
def test_an_interrupt_waits_for_the_end_of_a_block(send):
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    end = threading.Event()
    threading.Thread(target=end.wait).start()
    finished = []
    try:
        with pytest.raises(KeyboardInterrupt):
            interrupted_block(finished, send)
        assert finished == [True]
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    finally:
        end.set()
        signal.signal(signal.SIGINT, former)


# The current folder -------------------------------------------------------------------


@pytest.mark.faults
@pytest.mark.parametrize("way", ["a call", "--jobs", "--workers"])
def test_processes_import_nothing_from_the_current_folder(way, tmp_path):
    # Another user may have put modules there, for example in a temporary folder.
    folder = tmp_path / "current"
    (folder / "data").mkdir(parents=True)
    for name in ("multiprocessing", "numpy", "variegate", "json", "pickle", "tornado"):
        (folder / f"{name}.py").write_text(f"open('run-{name}', 'w')\nraise SystemExit")
    write_table(small_table(40), folder / "data" / "table.parquet")
    fit = ("fit", "data", *QUICK, "-o", "model.json")
    if way == "--workers":
        pytest.importorskip("distributed", reason="needs 'variegate[dask]'")
        arguments = (*fit, "--workers", "1")
    else:
        arguments = (*fit[:-4], "-o", "model.json", "--tune", "--jobs", "2")
    if way == "a call":
        code = "from variegate._processes import ProcessCall\nimport os\n"
        code += "ProcessCall(os.getpid).result()"
    else:
        code = "from variegate.cli import main\nif __name__ == '__main__': main()"
    script = tmp_path / "program.py"
    script.write_text(code)
    done = subprocess.run(
        [sys.executable, script, *arguments], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert [name for name in names_in(folder) if name.startswith("run-")] == []


# Commands -----------------------------------------------------------------------------


def commands(folder):
    """Return commands that have workers."""
    write_table(small_table(40), folder / "table.parquet")
    fit = ("fit", folder / "table.parquet", "-o", folder / "out" / "model.json")
    quick = ("synthetic", "--quick", "--jobs", "2", "--out", folder / "out")
    return {
        "fit": ("variegate", (*fit, *QUICK[:-2], "--tune", "--jobs", "2")),
        "experiment": ("paper", quick),
    }


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
@pytest.mark.parametrize("name", ["fit", "experiment"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("seed", range(4))
def test_commands_killed_at_random_moments_leave_no_processes(
    name, how, seed, tmp_path
):
    for folder in ("out", "temporary"):
        (tmp_path / folder).mkdir()
    temporary = tmp_path / "temporary"
    package, arguments = commands(tmp_path)[name]
    started = process(
        *arguments,
        code=INTERRUPTIBLE
        + f"import runpy; runpy.run_module({package!r}, run_name='__main__')",
        cwd=ROOT,
        env={"TMPDIR": str(temporary)},
    )
    # From the start of the workers to the middle of their work.
    assert soon(lambda: left_by(started.pid, temporary) != [])
    time.sleep(3.0 * np.random.default_rng(seed).random())
    if how is signal.SIGINT:  # loky's own clean-up, which leaves no time for another
        time.sleep(1.0)
    started.send_signal(how)
    started.communicate(timeout=300)
    assert soon(lambda: left_by(started.pid, temporary) == [])
    marked = f"TMPDIR={temporary}".encode()
    assert soon(lambda: not any(marked in each for each in environments()))


def environments():
    """Return the environments of the processes that are running."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            found.append(path.read_bytes())
    return found
