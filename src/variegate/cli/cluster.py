"""Options, engine and progress of the commands that a cluster can carry out."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from variegate._progress import Progress, StageProgress, ignore
from variegate.cli.options import COUNT, FILE, POSITIVE, Parsed
from variegate.cli.output import names_of, note
from variegate.cli.progress import show_progress
from variegate.report.wording import count

if TYPE_CHECKING:
    from distributed import Client

    from variegate.dask import DaskEngine

_Command = TypeVar("_Command", bound=Callable[..., Any])
T = TypeVar("T")
R = TypeVar("R")

_EITHER = "--cluster or --workers"

#: Reasons why options, by their parameters, cannot be used with a cluster.
UNUSED = {
    "n_jobs": "each worker has one thread",
    "separator": "the files of a folder need none",
}

#: Seconds for which the number of workers is not asked for again.
_LATELY = 1.0

#: Stages whose steps are files.
_FILES = ("reading", "judging", "choosing", "dealing out", "writing")

_TLS = ("tls_ca", "tls_cert", "tls_key")


class WatchedEngine:
    """An engine that measures its pace, and knows the number of workers."""

    def __init__(self, engine: DaskEngine) -> None:
        self._engine = engine
        self._rate = 0.0
        self._n_workers = 0
        self._asked = -_LATELY

    def map(
        self,
        function: Callable[[T], R],
        items: Sequence[T],
        progress: StageProgress = ignore,
        ordered: bool = True,
    ) -> Iterator[R]:
        """Yield the results of the engine."""
        return self._engine.map(function, items, progress, ordered)

    def tree_sum(
        self,
        function: Callable[[T], R],
        items: Sequence[T],
        add: Callable[[R, R], R],
    ) -> R:
        """Return the sum of the engine, and measure the time it took."""
        from variegate.partitions.problem import Sums

        started = time.monotonic()
        total = self._engine.tree_sum(function, items, add)
        if isinstance(total, Sums):  # of losses of groups
            self._rate = total.count / max(time.monotonic() - started, 1e-9)
        return total

    def note(self, stage: str, done: float, total: float) -> str:
        """Return the progress of a stage in iterations or files, and the workers."""
        if stage == "learning":
            text = (
                f"iteration {done:,} of at most {total:,}, {self._rate:,.0f} groups/s"
            )
        elif stage in _FILES and total:
            text = f"{done:,} of {total:,} files"
        else:  # this process works, and not the cluster
            return ""
        return f"{text}, {count(self._workers(), 'worker')}"

    def _workers(self) -> int:
        now = time.monotonic()
        if now - self._asked >= _LATELY:
            self._asked = now
            # A lost cluster is an error where its work is waited for, not here.
            with suppress(RuntimeError):
                self._n_workers = self._engine.n_workers
        return self._n_workers


@dataclass(frozen=True)
class ClusterChoice:
    """A cluster to connect to, or workers to start on this machine."""

    address: str | None
    n_workers: int | None
    tls: Mapping[str, Path]
    timeout: float
    skip_unreadable: bool

    def _client(self) -> AbstractContextManager[Client]:
        from variegate.dask import connect, local_cluster

        if self.address is None:
            return local_cluster(self.n_workers or 1)
        return connect(self.address, timeout=self.timeout, **self.tls)


@contextmanager
def working(
    cluster: ClusterChoice | None,
) -> Iterator[tuple[WatchedEngine | None, Progress]]:
    """Yield the engine of a cluster, None without one, and a progress callback.

    Errors of the cluster or of a file end the command in one line.
    """
    from variegate.partitions import PartitionError

    if cluster is None:
        try:
            with show_progress() as progress:
                yield None, progress or ignore
        except PartitionError as error:
            raise click.ClickException(str(error)) from error
        return
    from variegate.dask import ClusterError, DaskEngine

    try:
        with cluster._client() as client:
            engine = WatchedEngine(
                DaskEngine(client, no_workers_timeout=cluster.timeout)
            )
            with show_progress(note=engine.note) as progress:
                yield engine, progress or ignore
    except (ClusterError, PartitionError) as error:
        # A parameter of the library is an option here.
        text = str(error).replace("skip_unreadable", "--skip-unreadable")
        raise click.ClickException(text) from error


# Options ------------------------------------------------------------------------------


def _tls_files(text: str) -> dict[str, Path]:
    names = text.split(",")
    if len(names) != len(_TLS):
        raise ValueError(
            "name three files: the certificate of who signed the cluster's, your "
            "certificate, and its key"
        )
    files = [Path(FILE.convert(name, None, None)) for name in names]
    return dict(zip(_TLS, files, strict=True))


_OPTIONS: list[Callable[[Any], Any]] = [
    click.option(
        "--cluster", "address", metavar="ADDRESS",
        help="Scheduler of a Dask cluster, such as tcp://HOST:8786, whose workers see "
        "the folder. Needs the extra dask.",
    ),
    click.option(
        "--workers", "n_workers", type=COUNT, metavar="N",
        help="Worker processes on this machine, in place of --cluster.",
    ),
    click.option(
        "--tls", type=Parsed("tls", _tls_files), default={}, metavar="CA,CERT,KEY",
        help="Files for an encrypted connection to --cluster.",
    ),
    click.option(
        "--timeout", type=POSITIVE, default=60.0, show_default=True, metavar="SECONDS",
        help="Time to wait for the scheduler, or for a worker while there is none.",
    ),
    click.option(
        "--skip-unreadable", is_flag=True,
        help="On a cluster, leave out files that cannot be read, and name them.",
    ),
]  # fmt: skip


def cluster_options(skip_unreadable: bool = True) -> Callable[[_Command], _Command]:
    """Add the options about a cluster; the command gets a ``Cluster`` or None."""
    options = _OPTIONS if skip_unreadable else _OPTIONS[:-1]

    def add(command: _Command) -> _Command:
        @wraps(command)
        def called(
            address: str | None,
            n_workers: int | None,
            tls: dict[str, Path],
            timeout: float,
            skip_unreadable: bool = False,
            **given: Any,
        ) -> Any:
            cluster = ClusterChoice(address, n_workers, tls, timeout, skip_unreadable)
            return command(cluster=_checked(cluster), **given)

        for option in reversed(options):
            called = option(called)
        return called  # type: ignore[return-value]

    return add


def _checked(cluster: ClusterChoice) -> ClusterChoice | None:
    """Return the cluster if one is asked for, after checks of its options."""
    address = cluster.address
    if address is None:
        refuse_locally("tls", needed="--cluster")
    if address is None and cluster.n_workers is None:
        refuse_locally("timeout", "skip_unreadable")
        return None
    if address is not None and cluster.n_workers is not None:
        raise click.UsageError("give --cluster or --workers, one of the two")
    if address is not None:
        if not re.fullmatch(r"(tcp|tls)://[^\s/]+:\d+", address):
            raise click.UsageError(
                f"--cluster is the address of a scheduler, such as tcp://HOST:8786, "
                f"not {address!r}"
            )
        if address.startswith("tls://") and not cluster.tls:
            raise click.UsageError("an encrypted connection needs --tls CA,CERT,KEY")
    import variegate.dask  # noqa: F401 - says what to install

    return cluster


def refuse_on_cluster(**reasons: str) -> None:
    """Refuse options, by their parameters, that cannot be used with a cluster."""
    reasons = UNUSED | reasons
    for option, name in _given():
        if name in reasons:
            raise click.UsageError(
                f"{option} cannot be used with {_EITHER}: {reasons[name]}"
            )


def refuse_locally(*names: str, needed: str = _EITHER) -> None:
    """Refuse options, by their parameters, that are for a cluster only."""
    for option, name in _given():
        if name in names:
            raise click.UsageError(f"{option} is for {needed}")


def is_given(name: str) -> bool:
    """Whether the option of a parameter was given."""
    return any(name == given for _, given in _given())


def _given() -> Iterator[tuple[str, str]]:
    """Yield options that were given, and their parameters."""
    context = click.get_current_context()
    for parameter in context.command.params:
        name = str(parameter.name)
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            yield parameter.opts[-1], name


def note_unreadable(files: Sequence[str]) -> None:
    """Name files that were left out."""
    if files:
        note(f"left out as they cannot be read: {names_of(files, 5)}")
