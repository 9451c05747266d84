"""Settings shared by all tests; helpers live in tests/reference.py and instances.py."""

import re
import socket
import sys

import pytest
from hypothesis import settings

# The same examples every time: a test that fails only sometimes teaches nothing.
settings.register_profile("variegate", deadline=None, derandomize=True)
settings.load_profile("variegate")


@pytest.fixture
def no_network(monkeypatch):
    """Let every attempt to reach another machine fail the test."""

    def refuse(*args, **kwargs):
        raise AssertionError(f"the network was asked for: {args[-1]!r}")

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setenv("HAYSTACK_TELEMETRY_ENABLED", "False")
    monkeypatch.setenv("LANGSMITH_TRACING", "false")


@pytest.fixture
def watch(monkeypatch):
    """Make a terminal of standard error; what is returned finds the lines drawn on it.

    To be called in the test: what pytest captures by is another stream before.
    """

    def start(width=60):
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setenv("TERM", "xterm")
        return lines

    def lines(messages):
        plain = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", messages)
        return [line.rstrip() for line in re.split(r"[\r\n]", plain) if line.strip()]

    return start
