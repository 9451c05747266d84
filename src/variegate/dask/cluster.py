"""Local clusters, and connections to running ones."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from tempfile import TemporaryDirectory

import dask
from distributed import Client, LocalCluster

from variegate._processes import delay_interrupts
from variegate._validation import check_count, check_number
from variegate.dask.errors import SchedulerLostError

#: Seconds that ending may take before the rest is left to the system.
_CLOSING = 10.0

#: A short-lived cluster of one user needs no dashboard.  Workers never count as lost:
#: one that is down when the time-out of an earlier lost worker ends would not be
#: restarted.
_CONFIG = {
    "distributed.deploy.lost-worker-timeout": "365 days",
    "distributed.scheduler.allowed-failures": 2,  # each one costs seconds here
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.worker.profile.enabled": False,
    "distributed.diagnostics.nvml": False,
}


@contextmanager
def local_cluster(n_workers: int) -> Iterator[Client]:
    """Start worker processes, yield a client, and end them at the end of the block.

    The processes run on this machine.  Each has one thread, also in linear algebra, and
    an even share of the machine's memory.  Connections are encrypted with a certificate
    that these processes alone have, and temporary files are in a folder of this user,
    so that neither another machine nor another user of this one can reach them.  No
    dashboard is served.  If this process is killed, the workers end by themselves.
    Ctrl-C waits while they start or end.

    For other settings, such as a limit of memory, give :class:`DaskEngine` a
    ``distributed.Client`` of your own ``distributed.LocalCluster``.

    A script that is run needs ``if __name__ == "__main__":`` around this, because each
    worker process reads the script too.
    """
    check_count("n_workers", n_workers)
    with ExitStack() as stack:
        # Dask's own folder is shared: another user may have made it, and could put
        # modules and pickled data in it.
        folder = stack.enter_context(
            TemporaryDirectory(prefix="variegate-", ignore_cleanup_errors=True)
        )
        stack.enter_context(dask.config.set({**_CONFIG, "temporary-directory": folder}))
        with delay_interrupts():
            cluster = LocalCluster(
                n_workers=n_workers,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                security=True,
                dashboard_address="127.0.0.1:0",
                scheduler_kwargs={"dashboard": False},
                silence_logs=logging.CRITICAL,  # faults become errors of the engine
            )
            stack.callback(_close_cluster, cluster)
            client = Client(cluster, set_as_default=False)
            stack.enter_context(_close_client_at_end(client))
        yield client


def _close_cluster(cluster: LocalCluster) -> None:
    """Close a cluster; leave the rest to the system after some seconds."""
    with delay_interrupts(), suppress(TimeoutError):
        cluster.close(timeout=_CLOSING)


@contextmanager
def connect(address: str, *, timeout: float = 30.0) -> Iterator[Client]:
    """Yield a client of the cluster at ``address``; close it at the end of the block.

    Parameters
    ----------
    address : str
        Such as "tcp://HOST:8786", or "tls://HOST:8786" for an encrypted connection with
        the certificates of Dask's configuration (``distributed.comm.tls``).
    timeout : float, default=30.0
        Seconds until a scheduler that does not answer is an error.

    Raises
    ------
    SchedulerLostError
        If no scheduler answers there in time.
    ValueError
        If Dask's configuration lacks the certificates of an encrypted connection.
    """
    check_number("timeout", timeout, positive=True)
    try:
        client = Client(address, set_as_default=False, timeout=timeout)
    except OSError as error:  # a time-out is one, too
        raise SchedulerLostError(
            f"no scheduler answers at {address} within {timeout:.0f} s: {error}"
        ) from error
    except TypeError as error:
        raise ValueError(
            f"an encrypted connection to {address} needs ca-file, client.cert and "
            "client.key of distributed.comm.tls in Dask's configuration, such as "
            f"DASK_DISTRIBUTED__COMM__TLS__CA_FILE=ca.pem: {error}"
        ) from error
    with _close_client_at_end(client):
        yield client


@contextmanager
def _close_client_at_end(client: Client) -> Iterator[Client]:
    """Close the client when the block ends, also if the scheduler is gone."""
    try:
        yield client
    finally:
        # A scheduler that is gone cannot say goodbye.
        with delay_interrupts(), suppress(OSError):
            client.close(timeout=_CLOSING)
