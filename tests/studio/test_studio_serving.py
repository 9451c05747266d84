"""Where the studio listens, and what it says where it cannot."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as parquet
import pytest
from studio_process import Server

from variegate._install import install_command
from variegate.cli.studio import can_open_browser
from variegate.studio import serving
from variegate.studio.serving import is_loopback, serve
from variegate.tables import make_table

pytestmark = pytest.mark.faults


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.8.8.8", "localhost", "localhost.", "::1"]
)
def test_addresses_of_this_machine_alone(host):
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.7", "::", "localhost.evil.org"])
def test_addresses_that_others_reach(host):
    assert not is_loopback(host)


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("0.0.0.0", "127.0.0.1"),
        ("::", "[::1]"),
        ("::1", "[::1]"),
        ("studio.lan", "studio.lan"),
    ],
)
def test_the_address_that_is_opened(host, name):
    assert serving._url_host(host) == name


def test_answers_are_not_held_back():
    with closing(serving._bind("127.0.0.1", 0)) as listener:
        with socket.create_connection(listener.getsockname()):
            taken, _ = listener.accept()
        with closing(taken):
            assert taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_port_that_is_taken(session):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1, port {port}"):
            serve(session, port=port)


def test_a_host_that_is_not_there(session):
    with pytest.raises(OSError, match=r"cannot listen on no\.such\.host\.invalid"):
        serve(session, host="no.such.host.invalid")


def test_a_browser_needs_a_screen(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert not can_open_browser()
    monkeypatch.setenv("DISPLAY", ":0")
    assert can_open_browser()
    monkeypatch.delenv("DISPLAY")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert can_open_browser()


def without(module, code):
    """Run code where a module is not installed."""
    code = f"import sys; sys.modules[{module!r}] = None\n{code}"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


@pytest.mark.parametrize(
    "module", ["starlette", pytest.param("uvicorn", marks=pytest.mark.slow)]
)
def test_the_extra_is_named_where_it_is_missing(module, tmp_path):
    done = without(module, "import variegate.studio")
    assert "ImportError: the studio needs Starlette and uvicorn" in done.stderr
    assert install_command("studio") in done.stderr
    called = "sys.argv = ['variegate', 'studio', '.']; "
    done = without(module, f"{called}from variegate.cli import main; main()")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert install_command("studio") in done.stderr


# How it ends --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "items.parquet"
    parquet.write_table(make_table(n_groups=24, n_items=60, random_state=0), path)
    return path


@pytest.fixture
def studio(data, tmp_path):
    """Run the command on a table, in a process of its own."""
    columns = ["--group", "query", "--quality", "score", "--similarity", "embedding"]
    options = ["--no-browser", "--store", tmp_path / "picks.sqlite"]
    process = subprocess.Popen(
        [sys.executable, "-m", "variegate", "studio", data, *columns, *options],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        server = Server(process.pid, process.stdout.readline().strip())
        server.process = process
        server.enter()
        yield server
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def children_of(pid):
    """Return the processes that the threads of a process have started."""
    threads = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for thread in threads for child in thread.read_text().split()]


def is_there(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="needs /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_soon_whatever_it_is_at(studio, number):
    # Eight groups are learned from and compared on.
    for _ in range(8):
        studio.request(
            "POST", "/api/done", {"group": studio.state()["group"]["number"]}
        )
    # A page listens, one takes its answers slowly, and one does not end its request.
    stream = studio.connect()
    stream.request("GET", "/api/events", headers={"cookie": studio.cookie})
    assert stream.getresponse().readline() == b"retry: 1000\n"
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    slow.connect(("127.0.0.1", studio.port))
    head = f"Host: 127.0.0.1:{studio.port}\r\nCookie: {studio.cookie}\r\n\r\n"
    slow.sendall(f"GET /api/groups/0 HTTP/1.1\r\n{head}".encode() * 20)
    half = socket.create_connection(("127.0.0.1", studio.port))
    half.sendall(b"POST /api/pick HTTP/1.1\r\nHost: 127.")
    children = children_of(studio.pid)
    assert len(children) == 2  # one learns, one compares
    assert studio.state()["learning"]
    began = time.monotonic()
    studio.signal(number)
    assert studio.process.wait(timeout=30) == 0
    assert time.monotonic() - began < 5.0
    for child in children:
        assert not is_there(child)
    for each in (stream, slow, half):
        each.close()
