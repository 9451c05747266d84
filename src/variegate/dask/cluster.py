"""Local clusters, and connections to running ones."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

import dask
from distributed import Client, LocalCluster
from distributed.security import Security

from variegate._validation import check_count, check_number
from variegate.dask.errors import SchedulerLostError

#: Seconds that ending may take before the rest is left to the system.
_CLOSING = 10.0

#: What a short-lived cluster of one user does without; and a worker that is down just
#: when this time has passed since an earlier end of it would be lost for good.
_CONFIG = {
    "distributed.deploy.lost-worker-timeout": "365 days",
    "distributed.scheduler.allowed-failures": 2,  # each one costs seconds here
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.worker.profile.enabled": False,
    "distributed.diagnostics.nvml": False,
}


@contextmanager
def local_cluster(
    n_workers: int, *, memory_limit: int | float | str | None = None
) -> Iterator[Client]:
    """Start worker processes on this machine, and end them at the end of the block.

    Each has one thread, also in linear algebra.  Nothing can be reached from another
    machine, and no dashboard is served.  The processes end with the block, by whatever
    error or signal it ends; if this process is killed, they end by themselves.

    Parameters
    ----------
    n_workers : int
    memory_limit : int, float or str, optional
        The most memory of one worker, such as "1GB": at 80 % of it, it takes no new
        work; at 95 %, it is restarted.  By default, an even share of the machine's.

    Yields
    ------
    distributed.Client

    Notes
    -----
    A script that is run needs ``if __name__ == "__main__":`` around this, because each
    worker process reads the script too.
    """
    check_count("n_workers", n_workers)
    limit = "auto" if memory_limit is None else memory_limit
    with _ended_by_signals(), dask.config.set(_CONFIG):
        cluster = LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            memory_limit=limit,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
            silence_logs=logging.CRITICAL,  # faults are told in our own words
        )
        try:
            with _closing(Client(cluster, set_as_default=False)) as client:
                yield client
        finally:
            with suppress(TimeoutError):
                cluster.close(timeout=_CLOSING)


@contextmanager
def connect(
    address: str,
    *,
    tls_ca: str | Path | None = None,
    tls_cert: str | Path | None = None,
    tls_key: str | Path | None = None,
    timeout: float = 30.0,
) -> Iterator[Client]:
    """Connect to the scheduler of a cluster, and leave it at the end of the block.

    Parameters
    ----------
    address : str
        Such as "tcp://HOST:8786".
    tls_ca, tls_cert, tls_key : path, optional
        The authority that signed the cluster's certificates, and one's own certificate
        and key, in PEM format.  All three or none; with them, the connection is
        encrypted.
    timeout : float, default=30.0
        Seconds until a scheduler that does not answer is an error.

    Yields
    ------
    distributed.Client

    Raises
    ------
    SchedulerLostError
        If no scheduler answers there in time.
    """
    check_number("timeout", timeout, positive=True)
    security = None
    if address.startswith("tls://") or any((tls_ca, tls_cert, tls_key)):
        security = _security(tls_ca, tls_cert, tls_key)
        address = "tls://" + address.rpartition("://")[2]
    try:
        client = Client(
            address, set_as_default=False, timeout=timeout, security=security
        )
    except (OSError, TimeoutError) as error:
        raise SchedulerLostError(
            f"no scheduler answers at {address} within {timeout:.0f} s: {error}"
        ) from error
    with _ended_by_signals(), _closing(client):
        yield client


def _security(
    ca: str | Path | None, cert: str | Path | None, key: str | Path | None
) -> Security:
    if ca is None or cert is None or key is None:
        raise ValueError(
            "an encrypted connection needs three files: the certificate of the "
            "authority, one's own certificate, and its key"
        )
    for path in (ca, cert, key):
        if not Path(path).is_file():
            raise ValueError(f"there is no file {path}")
    return Security(
        tls_ca_file=str(ca),
        tls_client_cert=str(cert),
        tls_client_key=str(key),
        require_encryption=True,
    )


@contextmanager
def _closing(client: Client) -> Iterator[Client]:
    try:
        yield client
    finally:
        # A scheduler that is gone cannot say goodbye.
        with suppress(TimeoutError, OSError):
            client.close(timeout=_CLOSING)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let a request to terminate end the block as an error does, unless it is heard."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
