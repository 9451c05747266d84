"""Commands under a limit of memory work, or end with a message; none waits forever."""

import errno
import subprocess
import sys

import pytest

from table_instances import MAIN, QUICK, SELECT, small_table
from variegate._install import explain_missing, install_command
from variegate._memory import find_memory_error
from variegate.tables import write_table

resource = pytest.importorskip("resource", reason="needs limits of POSIX")
linux = pytest.mark.skipif(
    sys.platform != "linux", reason="other systems do not enforce the limits"
)

LIMITS = {"-v": resource.RLIMIT_AS, "-d": resource.RLIMIT_DATA}
COMMANDS = {
    "select": SELECT,
    "fit": ("fit", "table.parquet", *QUICK, "-o", "out.json"),
}  # fmt: skip


def run_limited(arguments, option, limit, place):
    """Run a command with at most ``limit`` MiB; return its status and messages."""
    done = subprocess.run(
        [sys.executable, "-c", MAIN, *arguments],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(LIMITS[option], (limit << 20,) * 2),
    )
    return done.returncode, done.stderr


def check_limited_end(name, option, limit, place):
    """Check that a command works, or that its message tells of the memory."""
    write_table(small_table(40), place / "table.parquet")
    status, messages = run_limited(COMMANDS[name], option, limit, place)
    assert status in (0, 2), messages
    if status:
        assert "memory" in messages
        assert "pip install" not in messages
        assert len(messages.strip().splitlines()) == 1, messages
    return status


@linux
@pytest.mark.faults
@pytest.mark.parametrize(
    ("option", "limit", "status"),
    [
        *(("-v", 256, 2), ("-v", 640, 2), ("-v", 768, 0), ("-v", 1024, 0)),
        *(("-d", 256, 2), ("-d", 512, 0)),
    ],
)
def test_select_under_a_limit(option, limit, status, tmp_path):
    assert check_limited_end("select", option, limit, tmp_path) == status


@linux
@pytest.mark.slow
@pytest.mark.parametrize("option", LIMITS)
@pytest.mark.parametrize("limit", range(256, 4097, 128))
@pytest.mark.parametrize("name", COMMANDS)
def test_commands_under_every_limit(name, option, limit, tmp_path):
    check_limited_end(name, option, limit, tmp_path)


@linux
@pytest.mark.faults
def test_a_limit_that_is_too_low_is_named(tmp_path):
    assert run_limited(["--version"], "-v", 300, tmp_path) == (
        2,
        "variegate: the limit of memory is 300 MiB, and commands need at least 768: "
        "raise it with 'ulimit -v unlimited'\n",
    )


# Messages -----------------------------------------------------------------------------

#: Errors as the loader of glibc, that of Windows, NumPy and Python raise them.
LACKING = [
    MemoryError(),
    ImportError("libx.so.3: failed to map segment from shared object"),
    ImportError("libx.so: cannot allocate memory for program header"),
    ImportError("libx.so: cannot create object: Cannot allocate memory"),
    ImportError("DLL load failed: The paging file is too small for this operation"),
    OSError(errno.ENOMEM, "Cannot allocate memory"),
    RuntimeError("can't start new thread"),
]
OTHERS = [
    None,
    ModuleNotFoundError("No module named 'pyarrow'"),
    ImportError("libx.so.3: cannot open shared object file: No such file"),
    ImportError("libgomp.so.1: cannot allocate memory in static TLS block"),
    OSError(errno.ENOSPC, "No space left on device"),
    ValueError("no column 'cannot allocate memory'"),
    RuntimeError("dictionary changed size during iteration"),
]


@pytest.mark.parametrize("error", LACKING, ids=repr)
def test_want_of_memory_is_found_in_causes(error):
    assert find_memory_error(error) is error
    wrapped = ImportError("numpy could not be imported: read this advice")
    wrapped.__cause__ = error
    assert find_memory_error(wrapped) is error


@pytest.mark.parametrize("error", OTHERS, ids=repr)
def test_other_errors_are_not_want_of_memory(error):
    assert find_memory_error(error) is None


def test_a_missing_package_is_to_be_installed():
    with (
        pytest.raises(ImportError, match=r"^tables need pyarrow: pip install") as found,
        explain_missing("tables need pyarrow", "tables"),
    ):
        raise ModuleNotFoundError("No module named 'pyarrow'")
    assert str(found.value).endswith(install_command("tables"))


def test_a_package_that_is_broken_says_why():
    with (
        pytest.raises(
            ImportError,
            match=r"^tables need pyarrow, which cannot be loaded \(libx: old\): pip",
        ),
        explain_missing("tables need pyarrow", "tables"),
    ):
        raise ImportError("libx: old")


def test_a_package_that_memory_cannot_hold_is_not_to_be_installed():
    with (
        pytest.raises(
            MemoryError, match=r"^to load a library: libx\.so: failed to map"
        ),
        explain_missing("tables need pyarrow", "tables"),
    ):
        raise ImportError("libx.so: failed to map segment from shared object")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        ("MemoryError()", "there is not enough memory: free some"),
        ("MemoryError('1 GiB')", "there is not enough memory (1 GiB): free some"),
        (
            'RuntimeError("can\'t start new thread")',
            "there is not enough memory (can't start new thread): free some",
        ),
        (
            "ImportError('libx: failed to map segment')",
            "there is not enough memory (libx: failed to map segment): free some",
        ),
    ],
)
def test_commands_say_that_memory_is_missing(error, message, tmp_path):
    code = (
        "from variegate.cli.app import app, run\n"
        "def fail(**options):\n"
        f"    raise {error}\n"
        "app.get_command(None, 'describe').callback = fail\n"
        "run()"
    )
    (tmp_path / "model.json").write_text("{}")
    done = subprocess.run(
        [sys.executable, "-c", code, "describe", str(tmp_path / "model.json")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr == f"variegate: {message}, or raise its limit\n"
