"""The commands ``python -m paper`` and ``python -m benchmarks``."""

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from benchmarks.__main__ import app as bench
from paper import synthetic
from paper.__main__ import app
from paper.synthetic import Settings
from table_instances import INTERRUPTIBLE, caller
from variegate._install import install_command
from variegate.cli import progress
from variegate.cli.app import run

pytestmark = pytest.mark.paper

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def call(monkeypatch, capsys):
    return caller(monkeypatch, capsys, partial(run, app, "paper"))


def python(*arguments, env=None):
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **(env or {})},
        check=False,
    )


def test_the_package_is_the_command():
    done = python("-m", "paper", "--help")
    assert done.returncode == 0
    assert done.stdout.startswith("Usage: python -m paper [OPTIONS] COMMAND")
    for name in ("synthetic", "documents", "video"):
        assert name in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["synthetic"], "Missing option '--out'"),
        (["nothing"], "No such command 'nothing'"),
        (["synthetic", "--out", "x", "--jobs", "0"], "0 is not in the range"),
        (["synthetic", "--out", __file__], "is a file"),
        (["video", "--out", "x", "--row", "A"], "there is no row 'A'"),
    ],
)
def test_bad_input_ends_with_one_line_and_status_2(
    arguments, message, tmp_path, call, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    status, output, messages = call(*arguments)
    assert (status, output) == (2, "")
    assert len(messages.strip().splitlines()) == 1
    assert messages.startswith("paper: ")
    assert message in messages


def test_all_measures_of_rouge(call, tmp_path):
    (tmp_path / "one.txt").write_text("The cat sat on the mat.\n")
    (tmp_path / "two.txt").write_text("A cat sat on a mat.\n")
    files = ("--system", tmp_path / "one.txt", "--reference", tmp_path / "two.txt")
    more = ("--lcs", "--w", "1.2", "--skip", "4", "--su", "unlimited")
    status, output, _ = call("rouge", *files, *more, "--json")
    assert status == 0
    assert list(json.loads(output)["mean"]) == [
        *("rouge-1", "rouge-2", "rouge-l", "rouge-w-1.2", "rouge-s4", "rouge-su*")
    ]
    for wrong, message in {
        ("--su", "-1"): "'-1' is not a whole number or 'unlimited'",
        ("--w", "0.5"): "the weight w must be above 1, got 0.5",
    }.items():
        status, _, messages = call("rouge", *files, *wrong)
        assert status == 2
        assert message in messages


def test_an_unknown_benchmark(monkeypatch, capsys):
    call = caller(monkeypatch, capsys, partial(run, bench, "benchmarks"))
    status, output, messages = call("speed", "--out", "x")
    assert (status, output) == (2, "")
    assert "'speed' is not one of 'sampling', 'decoding'" in messages


def test_without_matplotlib_it_says_so_before_it_works(tmp_path):
    (tmp_path / "matplotlib.py").write_text("raise ImportError('no matplotlib')")
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    out = tmp_path / "out"
    done = python("-m", "paper", "synthetic", "--out", out, env={"PYTHONPATH": paths})
    assert done.returncode == 2
    assert install_command("plot") in done.stderr
    assert not out.exists()


def test_synthetic(tmp_path, monkeypatch, call):
    small = Settings(
        n_draws=2,
        train_sizes=(20, 30),
        n_holdout=10,
        n_test=15,
        bandwidths=(2.5, 40.0),
        bandwidth_train_size=30,
        lambdas=(0.0, 4.0),
        n_starts=1,
        with_gap=False,
    )
    monkeypatch.setattr(Settings, "quick", classmethod(lambda cls: small))
    status, output, messages = call(
        "synthetic", "--quick", "--out", tmp_path, "--jobs", "1"
    )
    assert status == 0
    assert "what the paper says" in output
    assert "written:" in messages
    assert "written:" not in output
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("clean.png", "fig1.png", "fig1a.png", "fig1b.png", "fig1c.png"),
        *("report.md", "results.json"),
    ]
    results = json.loads((tmp_path / "results.json").read_text())
    assert {"fig1a", "fig1b", "fig1c", "clean"} <= set(results)
    report = (tmp_path / "report.md").read_text()
    assert "`python -m paper synthetic --out DIR --quick`" in report


def test_progress_is_shown_before_the_first_piece(call, monkeypatch, watch, tmp_path):
    def stop(*arguments, **options):
        raise ValueError("nothing is done here")

    monkeypatch.setattr(progress, "PATIENCE", 1000.0)
    monkeypatch.setattr(synthetic, "reproduce", stop)
    drawn = watch()
    status, output, messages = call("synthetic", "--out", str(tmp_path))
    assert (status, output) == (2, "")
    assert any(line.startswith("fitting ━") for line in drawn(messages))
    assert drawn(messages)[-1] == "paper: nothing is done here"


@pytest.mark.parametrize(
    "experiment",
    [
        "synthetic",
        pytest.param("documents", marks=pytest.mark.slow),
        pytest.param("video", marks=pytest.mark.slow),
    ],
)
def test_an_interrupted_experiment_says_that_it_can_be_resumed(experiment, tmp_path):
    # A signal as Ctrl-C sends it, in the middle of the work.
    code = (
        "import runpy, time\n"
        f"import paper.{experiment} as experiment\n"
        "def work(*arguments, **options):\n"
        "    signal.raise_signal(signal.SIGINT)\n"
        "    time.sleep(60)\n"
        "experiment.reproduce = work\n"
        "runpy.run_module('paper', run_name='__main__')"
    )
    done = python("-c", INTERRUPTIBLE + code, experiment, "--out", tmp_path)
    assert done.returncode == 130
    assert done.stdout == ""
    # Click ends the line on which a terminal shows ^C.
    assert done.stderr.lstrip() == (
        "paper: interrupted; the same command goes on where it stopped\n"
    )


@pytest.mark.slow  # test_benchmarks.py has what it measures
def test_benchmarks(tmp_path):
    done = python("-m", "benchmarks", "decoding", "--quick", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "decoding.json").read_text())
    assert all(row["variegate_s"] > 0 for row in rows)
    assert (tmp_path / "decoding.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "decoding.md").read_text().strip() in done.stdout
    decoders = [row for row in rows if "log_prob" in row]
    exact = max(decoders, key=lambda row: row["log_prob"])
    assert exact["log_prob"] == next(
        row["log_prob"] for row in decoders if row["case"] == "decoder exact"
    )
