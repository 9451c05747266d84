import gc
import warnings
from pathlib import Path

import pytest

distributed = pytest.importorskip(
    "distributed", reason="needs 'variegate[dask]': make test has it"
)

from processes import ProcessCluster  # noqa: E402

from variegate.dask import DaskEngine, local_cluster  # noqa: E402


def pytest_collection_modifyitems(items):
    # Dask leaves sockets of connections that failed to the garbage collector.
    for item in items:
        if Path(item.path).parent == Path(__file__).parent:
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))


@pytest.fixture(autouse=True)
def no_socket_is_left_to_other_tests():
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="session")
def client():
    """One small cluster for all tests that leave it as it was."""
    with local_cluster(2) as client:
        yield client


@pytest.fixture
def engine(client):
    return DaskEngine(client)


@pytest.fixture
def processes(tmp_path):
    cluster = ProcessCluster(tmp_path)
    yield cluster
    cluster.close()
