"""Learning and choosing on a Dask cluster."""

try:
    from distributed import Client as _Client  # noqa: F401  (is it there?)
except ImportError as error:
    raise ImportError(
        "this needs Dask's distributed, which is not installed: "
        "pip install 'variegate[dask]'"
    ) from error

from typing import TYPE_CHECKING, Any

from variegate.dask.cluster import connect, local_cluster
from variegate.dask.engine import DaskEngine
from variegate.dask.errors import (
    ClusterError,
    NoWorkersError,
    SchedulerLostError,
    UnlikeWorkersWarning,
    VersionMismatchError,
    WorkerKilledError,
)
from variegate.dask.large_margin import LargeMarginDPP

if TYPE_CHECKING:
    from variegate.dask.selector import TableSelector

__all__ = [
    "ClusterError",
    "DaskEngine",
    "LargeMarginDPP",
    "NoWorkersError",
    "SchedulerLostError",
    "TableSelector",
    "UnlikeWorkersWarning",
    "VersionMismatchError",
    "WorkerKilledError",
    "connect",
    "local_cluster",
]


def __getattr__(name: str) -> Any:
    """Load what needs the extra ``tables`` when it is asked for."""
    if name != "TableSelector":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from variegate.dask.selector import TableSelector

    return TableSelector
