"""Ctrl-C at any moment ends a command quietly, with one line and status 130."""

import gc
import os
import signal
import subprocess
import sys
import time
import weakref

import numpy as np
import pytest

from table_instances import INTERRUPTIBLE, QUICK, SELECT, small_table
from variegate.cli.interrupts import InterruptWatch
from variegate.tables import write_table

pytestmark = pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs POSIX")

#: The file says that Python has started, which no program can guard.
START = f"""{INTERRUPTIBLE}
from variegate.cli import main
if __name__ == "__main__":
    open("started", "w").close()
    main()
"""

COMMANDS = {
    "select": SELECT,
    "fit": ("fit", "table.parquet", *QUICK, "-o", "out.json"),
    "fit --jobs": ("fit", "table.parquet", *QUICK[:-2], "--tune", "--jobs", "2",
                   "-o", "out.json"),
    "fit --workers": ("fit", "folder", *QUICK, "--workers", "2", "-o", "out.json"),
    "studio": ("studio", "table.parquet", "--group", "query", "--no-browser"),
}  # fmt: skip


@pytest.fixture
def place(tmp_path):
    (tmp_path / "folder").mkdir()
    table = small_table(40)
    write_table(table, tmp_path / "table.parquet")
    for part in range(4):
        write_table(table.slice(60 * part, 60), tmp_path / f"folder/{part}.parquet")
    return tmp_path


def interrupt_after(seconds, arguments, place):
    """Interrupt all processes of a command, as a terminal does; return its end."""
    started = subprocess.Popen(
        [sys.executable, "-c", START, *arguments],
        cwd=place,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        start_new_session=True,
    )
    try:
        while not (place / "started").exists():
            assert started.poll() is None, started.communicate()[1]
            time.sleep(0.001)
        time.sleep(seconds)
        if started.poll() is None:
            os.killpg(started.pid, signal.SIGINT)
        _, messages = started.communicate(timeout=120)
    finally:
        started.kill()
        started.communicate()
    return started.returncode, messages


def check_interrupted_end(name, seconds, place):
    """Check status and messages of a command that is interrupted after some seconds."""
    if "workers" in name:
        pytest.importorskip("distributed", reason="needs 'variegate[dask]'")
    if name == "studio":
        pytest.importorskip("starlette", reason="needs 'variegate[studio]'")
    status, messages = interrupt_after(seconds, COMMANDS[name], place)
    lines = messages.strip().splitlines()
    assert status in (0, 130), messages
    if status == 130:
        assert lines[-1].startswith("variegate: interrupted; "), messages
        del lines[-1]
    # Nothing else than what the studio and a finished command say.
    said = ("written: ", "Ctrl-C ends", "the picks are in", "40 groups of")
    assert [line for line in lines if not line.startswith(said)] == [], messages


@pytest.mark.faults
@pytest.mark.parametrize("seconds", [0.05, 0.4, 1.2])
@pytest.mark.parametrize("name", COMMANDS)
def test_commands_end_quietly(name, seconds, place):
    check_interrupted_end(name, seconds, place)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("name", COMMANDS)
def test_commands_end_quietly_at_random_moments(name, seed, place):
    check_interrupted_end(name, 3.0 * np.random.default_rng(seed).random(), place)


@pytest.fixture
def interruptible():
    """Python's own handler, also where the tests run in the background without it."""
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, former)


@pytest.mark.usefixtures("interruptible")
def test_signals_are_restored():
    hook, alarm = sys.unraisablehook, signal.getsignal(signal.SIGALRM)
    with InterruptWatch():
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGALRM) is alarm
    assert sys.unraisablehook is hook


def test_ignored_interrupts_stay_ignored():
    former = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with InterruptWatch() as watch:
            signal.raise_signal(signal.SIGINT)
        assert not watch.arrived
    finally:
        signal.signal(signal.SIGINT, former)


def interrupted_import():
    """Fail as a library does whose import is interrupted."""
    with InterruptWatch():
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise ImportError("half a library") from None


@pytest.mark.usefixtures("interruptible")
def test_an_error_of_an_interrupted_import_is_an_interrupt():
    with pytest.raises(KeyboardInterrupt) as found:
        interrupted_import()
    assert isinstance(found.value.__cause__, ImportError)


@pytest.mark.usefixtures("interruptible")
def test_an_error_without_an_interrupt_is_itself():
    with pytest.raises(ImportError, match="half a library"), InterruptWatch():
        raise ImportError("half a library")


class Thing:
    pass


def interrupted_callback():
    """Interrupt a callback, which forgets its errors; then wait ten seconds."""
    thing = Thing()
    with InterruptWatch():
        reference = weakref.ref(thing, lambda _: signal.raise_signal(signal.SIGINT))
        del thing
        gc.collect()
        time.sleep(10)
        return reference


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_that_a_callback_swallows_is_raised_again():
    with pytest.raises(KeyboardInterrupt):
        interrupted_callback()
