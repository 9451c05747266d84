"""What can go wrong with a cluster, in words.

None of these loses work: what was finished is in the journal or among the files that
were written, and the same call goes on from there.
"""

from __future__ import annotations

__all__ = [
    "ClusterError",
    "NoWorkersError",
    "SchedulerLostError",
    "UnlikeWorkersWarning",
    "VersionMismatchError",
    "WorkerKilledError",
]


class ClusterError(RuntimeError):
    """The cluster cannot go on with the work."""


class NoWorkersError(ClusterError):
    """There was no worker for longer than the time-out."""


class SchedulerLostError(ClusterError):
    """The scheduler is gone, or has not answered for longer than the time-out."""


class WorkerKilledError(ClusterError):
    """One item ended every worker that worked on it, mostly for want of memory."""


class VersionMismatchError(ClusterError):
    """Processes of the cluster run another Variegate than the driver."""


class UnlikeWorkersWarning(UserWarning):
    """Processes of the cluster have other versions of what computes with numbers."""
