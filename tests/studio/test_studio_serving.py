"""Where the studio listens, and what it says where it cannot."""

import socket
import subprocess
import sys

import pytest

from variegate.studio import serving
from variegate.studio.serving import can_open_browser, is_loopback, serve


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "::1"])
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
    assert serving._as_name(host) == name


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


@pytest.mark.parametrize("module", ["starlette", "uvicorn"])
def test_the_extra_is_named_where_it_is_missing(module, tmp_path):
    done = without(module, "import variegate.studio")
    assert "ImportError: the studio needs Starlette and uvicorn" in done.stderr
    assert "pip install 'variegate[studio]'" in done.stderr
    called = "sys.argv = ['variegate', 'studio', '.']; "
    done = without(module, f"{called}from variegate.cli import main; main()")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "pip install 'variegate[studio]'" in done.stderr
