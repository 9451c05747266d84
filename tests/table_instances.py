"""Tables, and how commands about them are called, for the tests of the command line."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from variegate.cli.app import run
from variegate.tables import make_table, write_table

MAIN = "from variegate.cli import main; main()"

#: Python's own handler, also where the tests run in the background without it.
INTERRUPTIBLE = (
    "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
)

#: What the columns of a generated table are.
COLUMNS = (
    "--group", "query", "--label", "chosen", "--columns", "item=item",
    "--quality", "score,freshness", "--similarity", "embedding",
)  # fmt: skip

#: Enough for a model that chooses something, and soon there.
QUICK = (*COLUMNS, "--kernel", "linear", "--omega", "1")

#: The command that chooses from a table without a model.
SELECT = (
    "select", "table.parquet", "-o", "out.parquet", "--method", "dpp", "--k", "2",
    "--group", "query", "--relevance", "score", "--similarity", "embedding",
)  # fmt: skip


def small_table(n_groups=12, random_state=0):
    return make_table(n_groups, 6, 4, random_state=random_state)


def with_column(table, name, values, kind=None):
    """Return a table with other values in a column, or with one more."""
    column = values if isinstance(values, pa.Array) else pa.array(values, kind)
    if name not in table.column_names:
        return table.append_column(name, column)
    return table.set_column(table.column_names.index(name), name, column)


def with_cell(table, name, row, value):
    """Return a table with another value in one cell."""
    values = table[name].to_pylist()
    values[row] = value
    return with_column(table, name, values, table.schema.field(name).type)


def write_csv(table, path):
    """Write a table as CSV, vectors as text."""
    vectors = [str(list(map(float, v))) for v in table["embedding"].to_pylist()]
    flags = [int(flag) for flag in table["chosen"].to_pylist()]
    table = with_column(table, "embedding", vectors)
    write_table(with_column(table, "chosen", flags), path)


def caller(monkeypatch, capsys, run=run):
    """Return what runs a command here, and gives status, output and messages."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["variegate", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            run()
        captured = capsys.readouterr()
        return stop.value.code or 0, captured.out, captured.err

    return call


def process(*arguments, cwd=None, code=MAIN, **options):
    """Start a command in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=cwd,
        text=True,
        stdout=options.pop("stdout", subprocess.PIPE),
        stderr=options.pop("stderr", subprocess.PIPE),
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"} | options.pop("env", {}),
        **options,
    )


def succeeds(result):
    """Return what a command printed, which had nothing to complain about."""
    status, output, messages = result
    assert status == 0, messages
    return output


def fails(result, *parts):
    """Whether a command ended as bad input does: one line and status 2."""
    status, output, messages = result
    # Messages by hand: only test modules have theirs written by pytest.
    for part in parts:
        assert part in messages, f"{part!r} is not in {messages!r}"
    assert (status, output) == (2, ""), f"status {status}, output {output!r}"
    assert len(messages.strip().splitlines()) == 1, messages
    assert messages.startswith("variegate: "), messages
    return True


def names_in(folder):
    return sorted(path.name for path in Path(folder).iterdir())


def interrupt(started):
    started.send_signal(signal.SIGINT)
    output, messages = started.communicate(timeout=60)
    return started.returncode, output, messages
