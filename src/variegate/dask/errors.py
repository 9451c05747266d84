"""Errors of a cluster.  None of them loses work: the same command resumes."""

from __future__ import annotations


class ClusterError(RuntimeError):
    """The cluster cannot continue the work."""


class NoWorkersError(ClusterError):
    """The cluster had no worker for longer than the time-out."""


class SchedulerLostError(ClusterError):
    """The scheduler is gone, or has not answered for longer than the time-out."""


class WorkerKilledError(ClusterError):
    """One item killed every worker that it ran on, mostly for want of memory."""


class VersionMismatchError(ClusterError):
    """Processes of the cluster run another Variegate than the driver."""
