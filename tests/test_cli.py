"""The command line: in a process of its own, where that makes a difference."""

import os
import subprocess
import sys

import pytest

from table_instances import caller, fails
from variegate._install import install_command

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
    titles = ["Tables:", "Documents:", "Video:", "Any model:"]
    places = [text.index(title) for title in titles]
    assert places == sorted(places)
    assert places[1] < text.index("fit-summarizer") < places[2]


def test_help_lists_the_commands(call):
    status, text, _ = call("--help")
    assert status == 0
    assert "fit-summarizer" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["describe"], "Missing argument 'MODEL'"),
        (["rouge", "--system", __file__], "Missing option '--reference'"),
        (["describe", "nothing.json"], "'nothing.json' does not exist"),
        (["unknown"], "No such command 'unknown'"),
    ],
)
def test_bad_input_ends_with_one_line_and_status_2(
    arguments, message, tmp_path, call, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert fails(call(*arguments), message)


def test_bad_input_in_a_process_of_its_own(tmp_path):
    (tmp_path / "file").write_text("no model")
    result = variegate("describe", str(tmp_path / "file"))
    assert result.returncode == 2
    assert result.stdout == ""
    assert len(result.stderr.strip().splitlines()) == 1
    assert "is not a variegate model" in result.stderr


def without(package, tmp_path):
    """An environment in which importing ``package`` fails."""
    (tmp_path / f"{package}.py").write_text(f"raise ImportError('no {package}')")
    return {"PYTHONPATH": str(tmp_path)}


def test_without_click_it_says_what_to_install(tmp_path):
    result = variegate("--version", env=without("click", tmp_path))
    assert result.returncode == 2
    assert install_command("cli") in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


#: Python's own handler, also where the tests run in the background without it.
INTERRUPTIBLE = (
    "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
)


@pytest.mark.faults
def test_an_interrupt_of_what_cannot_go_on(tmp_path):
    code = (
        "from variegate.cli.app import app, run\n"
        "app.get_command(None, 'describe').callback = "
        "lambda **options: signal.raise_signal(signal.SIGINT)\n"
        "run()"
    )
    (tmp_path / "model.json").write_text("{}")
    arguments = ("describe", str(tmp_path / "model.json"))
    result = variegate(*arguments, code=INTERRUPTIBLE + code)
    assert result.returncode == 130
    assert result.stderr.lstrip() == "variegate: interrupted; it must start again\n"
