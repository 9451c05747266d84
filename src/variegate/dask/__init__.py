"""Learning and choosing on a Dask cluster."""

from variegate._install import explain_missing as _explain_missing

with _explain_missing("this needs Dask's distributed", "dask"):
    from distributed import Client as _Client  # noqa: F401  (is it there?)

from variegate.dask.cluster import connect, local_cluster
from variegate.dask.engine import DaskEngine
from variegate.dask.errors import (
    ClusterError,
    NoWorkersError,
    SchedulerLostError,
    VersionMismatchError,
    WorkerKilledError,
)

__all__ = [
    "ClusterError",
    "DaskEngine",
    "NoWorkersError",
    "SchedulerLostError",
    "VersionMismatchError",
    "WorkerKilledError",
    "connect",
    "local_cluster",
]
