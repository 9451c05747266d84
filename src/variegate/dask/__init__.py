"""Learning and choosing on a Dask cluster."""

try:
    from distributed import Client as _Client  # noqa: F401  (is it there?)
except ImportError as error:
    from variegate._install import install_command as _install_command

    raise ImportError(
        "this needs Dask's distributed, which is not installed: "
        f"{_install_command('dask')}"
    ) from error

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
