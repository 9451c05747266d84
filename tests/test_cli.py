"""The command line: in a process of its own, where that makes a difference."""

import json
import os
import subprocess
import sys

import pytest

from table_instances import caller, fails
from variegate.experiments.synthetic import Settings

MAIN = "from variegate.cli import main; main()"


def variegate(*arguments, env=None, cwd=None, code=MAIN):
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, **(env or {})},
        check=False,
    )


@pytest.fixture
def call(monkeypatch, capsys):
    return caller(monkeypatch, capsys)


def test_the_package_is_the_command():
    result = subprocess.run(
        [sys.executable, "-m", "variegate", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.startswith("variegate, version 0.")
    assert result.stdout == variegate("--version").stdout


def test_help_groups_the_commands_and_cuts_nothing(call):
    status, text, _ = call("--help")
    assert status == 0
    assert "..." not in text.partition("Tables:")[2]
    titles = ["Tables:", "Documents:", "Video:", "Any model:", "Research:"]
    places = [text.index(title) for title in titles]
    assert places == sorted(places)
    assert places[1] < text.index("fit-summarizer") < places[2]


def test_help_lists_the_commands(call):
    status, text, _ = call("reproduce", "--help")
    assert status == 0
    assert "synthetic" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reproduce", "synthetic"], "Missing option '--out'"),
        (["reproduce", "nothing"], "No such command 'nothing'"),
        (
            ["reproduce", "synthetic", "--out", "x", "--jobs", "0"],
            "0 is not in the range",
        ),
        (["reproduce", "synthetic", "--out", __file__], "is a file"),
        (["reproduce", "video", "--out", "x", "--row", "A"], "there is no row 'A'"),
        (["unknown"], "No such command 'unknown'"),
        (["bench", "speed", "--out", "x"], "unknown benchmark 'speed'; there are samp"),
    ],
)
def test_bad_input_ends_with_one_line_and_status_2(
    arguments, message, tmp_path, call, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert fails(call(*arguments), message)


def test_bad_input_in_a_process_of_its_own(tmp_path):
    (tmp_path / "file").write_text("")
    result = variegate("reproduce", "synthetic", "--out", str(tmp_path / "file" / "x"))
    assert result.returncode == 2
    assert result.stdout == ""
    assert len(result.stderr.strip().splitlines()) == 1
    assert "Not a directory" in result.stderr


def without(package, tmp_path):
    """An environment in which importing ``package`` fails."""
    (tmp_path / f"{package}.py").write_text(f"raise ImportError('no {package}')")
    return {"PYTHONPATH": str(tmp_path)}


def test_without_click_it_says_what_to_install(tmp_path):
    result = variegate("--version", env=without("click", tmp_path))
    assert result.returncode == 2
    assert "pip install 'variegate[cli]'" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_without_matplotlib_it_says_so_before_it_works(tmp_path):
    result = variegate(
        "reproduce",
        "synthetic",
        "--out",
        str(tmp_path / "out"),
        env=without("matplotlib", tmp_path),
    )
    assert result.returncode == 2
    assert "pip install 'variegate[plot]'" in result.stderr
    assert not (tmp_path / "out").exists()


def test_reproduce_synthetic(tmp_path, monkeypatch):
    from click.testing import CliRunner

    from variegate.cli.app import app

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
    result = CliRunner().invoke(
        app,
        ["reproduce", "synthetic", "--quick", "--out", str(tmp_path), "--jobs", "1"],
        catch_exceptions=False,
    )
    assert result.exit_code == 0
    assert "what the paper says" in result.stdout
    assert "written:" in result.stderr
    assert "written:" not in result.stdout
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [
        "clean.png",
        "fig1.png",
        "fig1a.png",
        "fig1b.png",
        "fig1c.png",
        "report.md",
        "results.json",
    ]
    results = json.loads((tmp_path / "results.json").read_text())
    assert {"fig1a", "fig1b", "fig1c", "clean"} <= set(results)


def test_an_experiment_shows_its_progress_before_the_first_piece(
    call, monkeypatch, watch, tmp_path
):
    from variegate.cli import progress
    from variegate.experiments import synthetic

    def stop(*arguments, **options):
        raise ValueError("nothing is done here")

    monkeypatch.setattr(progress, "PATIENCE", 1000.0)
    monkeypatch.setattr(synthetic, "reproduce", stop)
    drawn = watch()
    status, output, messages = call("reproduce", "synthetic", "--out", str(tmp_path))
    assert status == 2
    assert output == ""
    assert any(line.startswith("fitting ━") for line in drawn(messages))
    assert drawn(messages)[-1] == "variegate: nothing is done here"


#: Python's own handler, also where the tests run in the background without it.
INTERRUPTIBLE = (
    "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
)


@pytest.mark.faults
@pytest.mark.parametrize(
    "experiment",
    [
        "synthetic",
        pytest.param("documents", marks=pytest.mark.slow),
        pytest.param("video", marks=pytest.mark.slow),
    ],
)
def test_an_interrupted_experiment_says_that_it_can_go_on(experiment, tmp_path):
    # A signal as Ctrl-C sends it, in the middle of the work.
    code = (
        "import time\n"
        f"import variegate.experiments.{experiment} as experiment\n"
        "def work(*arguments, **options):\n"
        "    signal.raise_signal(signal.SIGINT)\n"
        "    time.sleep(60)\n"
        "experiment.reproduce = work\n"
        "from variegate.cli import main; main()"
    )
    result = variegate(
        "reproduce", experiment, "--out", str(tmp_path), code=INTERRUPTIBLE + code
    )
    assert result.returncode == 130
    assert result.stdout == ""
    # Click ends the line on which a terminal shows ^C.
    assert result.stderr.lstrip() == (
        "variegate: interrupted; the same command goes on where it stopped\n"
    )


@pytest.mark.faults
def test_an_interrupt_of_what_cannot_go_on(tmp_path):
    code = (
        "from variegate.cli.app import app, run\n"
        "app.commands['bench'].callback = "
        "lambda **options: signal.raise_signal(signal.SIGINT)\n"
        "run()"
    )
    result = variegate("bench", "--out", str(tmp_path), code=INTERRUPTIBLE + code)
    assert result.returncode == 130
    assert result.stderr.lstrip() == "variegate: interrupted; it must start again\n"


@pytest.mark.slow  # what it does is tested in test_benchmarks.py
def test_bench(tmp_path):
    result = variegate("bench", "decoding", "--quick", "--out", str(tmp_path))
    assert result.returncode == 0, result.stderr
    rows = json.loads((tmp_path / "decoding.json").read_text())
    assert all(row["variegate_s"] > 0 for row in rows)
    assert (tmp_path / "decoding.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "decoding.md").read_text().strip() in result.stdout
    decoders = [row for row in rows if "log_prob" in row]
    exact = max(decoders, key=lambda row: row["log_prob"])
    assert exact["log_prob"] == next(
        row["log_prob"] for row in decoders if row["case"] == "decoder exact"
    )
