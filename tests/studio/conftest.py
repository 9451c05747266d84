"""What the tests of the studio share; without its extra there is nothing to collect."""

import importlib.util
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

has_extra = all(map(importlib.util.find_spec, ("starlette", "uvicorn")))
collect_ignore_glob = [] if has_extra else ["test_*.py"]


@pytest.fixture
def session(tmp_path):
    """Open a session over fakes."""
    from studio_fakes import open_session

    session = open_session(tmp_path / "picks.sqlite")
    yield session
    session.close()


@pytest.fixture
def client(session):
    """Ask its application in process."""
    from studio_fakes import open_client

    return open_client(session)


@pytest.fixture(scope="session")
def start():
    """Start servers over fakes, each in a process of its own."""
    from studio_process import servers

    with servers() as start:
        yield start
