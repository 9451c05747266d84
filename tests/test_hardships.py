"""Commands under hardship: a full disk, kills, crowds, and no place for a cache."""

import os
import resource
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pytest

import variegate as vg
from table_instances import QUICK, names_in, process, small_table
from variegate.tables import TableSelector, write_table

pytestmark = pytest.mark.faults

#: A disk that is full after so many bytes, for one process.
FULL = (
    "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
    "from variegate.cli import main; main()"
)


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="needs RLIMIT_FSIZE")
def test_a_full_disk_leaves_what_was_there(inputs, tmp_path):
    picture = tmp_path / "weights.png"
    picture.write_text("before")
    command = ("describe", inputs / "model.json", "--png", picture, "--force")
    started = process(*command, code=FULL)
    _, messages = started.communicate(timeout=120)
    assert started.returncode == 2
    assert "Traceback" not in messages
    assert picture.read_text() == "before"
    assert names_in(tmp_path) == ["weights.png"]


# Killed at random moments ------------------------------------------------------------

NEWS = (
    "A storm hit the coast on Monday. Thousands of people left the town of Aberdell. "
    "The mayor spoke of the worst storm in forty years. Boats lay on the main road. "
    "Trains to the north stood still until noon. Schools stay closed until Thursday.\n"
)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Make what commands read."""
    folder = tmp_path_factory.mktemp("inputs")
    write_table(small_table(), folder / "table.parquet")
    (folder / "news.txt").write_text(NEWS)
    selector = TableSelector(
        group="query",
        label="chosen",
        quality=["score", "freshness"],
        similarity="embedding",
        kernel="linear",
        omega=1.0,
    )
    selector.fit(folder / "table.parquet").save(folder / "model.json")
    return folder


def commands(inputs, out):
    """Return commands that write files, all of them into one folder."""
    table, model = inputs / "table.parquet", inputs / "model.json"
    fit = ("fit", table, *QUICK, "--force", "-o", out / "model.json")
    return {
        "fit": fit,
        "fit and report": (*fit, "--report", out / "model.html"),
        "select": (
            *("select", table, "--model", model, "--force"),
            *("-o", out / "chosen.parquet"),
        ),
        "summarize": (
            *("summarize", inputs / "news.txt", "--budget", "30w", "--force"),
            *("--html", out / "news.html"),
        ),
    }


def finished(started):
    """Return what a command printed, which ended well."""
    output, messages = started.communicate(timeout=120)
    assert started.returncode == 0, messages
    return output


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def check_random_kills(name, inputs, tmp_path, seeds):
    """Kill a command at moments of its life: every file is whole, older or not there.

    The later half of them, as the first goes to imports.
    """
    out = tmp_path / "out"
    out.mkdir()
    command = commands(inputs, out)[name]
    start = time.monotonic()
    finished(process(*command))
    duration = time.monotonic() - start
    whole = contents(out)
    assert whole
    older = dict.fromkeys(whole, b"older")
    for seed in seeds:
        before = older if seed % 2 else {}
        shutil.rmtree(out)
        out.mkdir()
        for file, content in before.items():
            (out / file).write_bytes(content)
        started = process(*command)
        moment = duration * np.random.default_rng(seed).uniform(0.5, 1.0)
        time.sleep(moment)
        started.send_signal(signal.SIGKILL)
        started.communicate(timeout=60)
        found = contents(out)
        assert found.keys() <= whole.keys(), (seed, moment)
        assert before.keys() <= found.keys(), (seed, moment)
        for file, content in found.items():
            assert content in (whole[file], before.get(file)), (seed, moment, file)


WITHOUT_NAMES = pytest.mark.skipif(
    not hasattr(os, "O_TMPFILE"), reason="needs files without names"
)


@WITHOUT_NAMES
@pytest.mark.parametrize("name", ["fit", "select"])
def test_random_kills_leave_whole_files(name, inputs, tmp_path):
    check_random_kills(name, inputs, tmp_path, [1 if name == "select" else 0])


@WITHOUT_NAMES
@pytest.mark.slow
@pytest.mark.parametrize("name", ["fit and report", "select", "summarize"])
def test_many_random_kills_leave_whole_files(name, inputs, tmp_path):
    check_random_kills(name, inputs, tmp_path, range(2, 22))


# Eight at once -----------------------------------------------------------------------


def check_crowd(inputs, tmp_path, names, others=("b", "c"), **options):
    """Run commands at once, into one folder and into others: equal bytes everywhere."""
    folders = [tmp_path / name for name in ("same", "same", *others)]
    started = []
    for name in names:
        for folder in folders:
            folder.mkdir(exist_ok=True)
            started.append(process(*commands(inputs, folder)[name], **options))
    outputs = [finished(each) for each in started]
    assert len(outputs) == len(names) * len(folders)
    found = [contents(folder) for folder in folders]
    assert found[0]
    assert all(each == found[0] for each in found)
    return found[0]


def test_three_commands_at_once(inputs, tmp_path):
    files = check_crowd(inputs, tmp_path, ["select"], others=("b",))
    assert files.keys() == {"chosen.parquet"}


@pytest.mark.slow
def test_eight_commands_at_once(inputs, tmp_path):
    files = check_crowd(inputs, tmp_path, ["select", "summarize"])
    assert files.keys() == {"chosen.parquet", "news.html"}


@pytest.mark.slow
def test_eight_commands_at_once_with_a_cold_cache(inputs, tmp_path):
    cache = tmp_path / "cache"
    files = check_crowd(
        inputs,
        tmp_path,
        ["fit", "summarize"],  # a report names its own folder
        env={"NUMBA_CACHE_DIR": str(cache)},
    )
    assert files.keys() == {"model.json", "news.html"}
    assert list(cache.rglob("*.nbi"))


# No place for a cache ----------------------------------------------------------------


def test_a_cache_that_cannot_be_written(tmp_path):
    # A file where the cache would be, as root may write into every folder.
    package = tmp_path / "package" / "variegate"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(vg.__file__).parent, package, ignore=ignored)
    (package / "linalg" / "compiled" / "__pycache__").touch()
    nowhere = tmp_path / "file"
    nowhere.touch()
    env = {
        "PYTHONPATH": str(package.parent),
        "HOME": str(nowhere / "home"),
        "NUMBA_CACHE_DIR": str(nowhere / "cache"),
        "XDG_CACHE_HOME": str(nowhere / "cache"),
    }
    code = (
        "import numpy as np\n"
        "from variegate.linalg.compiled.pivoting import squared_lengths\n"
        "print(squared_lengths(np.diag([2.0, 3.0])).tolist())\n"
    )
    assert finished(process(code=code, env=env)) == "[4.0, 9.0]\n"
    assert nowhere.read_bytes() == b""
