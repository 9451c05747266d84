"""Options, engine and progress of the commands that a cluster can carry out."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from variegate._progress import Progress, ignore
from variegate.cli.options import COUNT, POSITIVE
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

#: Stages whose steps are files.
_FILES = ("reading", "judging", "choosing", "dealing out", "writing")


class WatchedEngine:
    """An engine that measures its pace, and tells the number of workers."""

    def __init__(self, engine: DaskEngine) -> None:
        self._engine = engine
        self._rate = 0.0
        self.map = engine.map

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
        return f"{text}, {count(self._engine.n_workers, 'worker')}"


@dataclass(frozen=True)
class ClusterChoice:
    """A cluster to connect to, or workers to start on this machine."""

    address: str | None
    n_workers: int | None
    timeout: float
    skip_unreadable: bool

    def _client(self) -> AbstractContextManager[Client]:
        from variegate.dask import connect, local_cluster

        if self.address is None:
            return local_cluster(self.n_workers or 1)
        return connect(self.address, timeout=self.timeout)


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


_OPTIONS: list[Callable[[Any], Any]] = [
    click.option(
        "--cluster", "address", metavar="ADDRESS",
        help="Scheduler of a Dask cluster, such as tcp://HOST:8786, whose workers see "
        "the folder; tls://HOST:8786 is encrypted, with the certificates of Dask's "
        "configuration. Needs the extra dask.",
    ),
    click.option(
        "--workers", "n_workers", type=COUNT, metavar="N",
        help="Worker processes on this machine, in place of --cluster.",
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
            timeout: float,
            skip_unreadable: bool = False,
            **given: Any,
        ) -> Any:
            cluster = ClusterChoice(address, n_workers, timeout, skip_unreadable)
            return command(cluster=_checked(cluster), **given)

        for option in reversed(options):
            called = option(called)
        return called  # type: ignore[return-value]

    return add


def _checked(cluster: ClusterChoice) -> ClusterChoice | None:
    """Return the cluster if one is asked for, after checks of its options."""
    address = cluster.address
    if address is None and cluster.n_workers is None:
        refuse_locally("timeout", "skip_unreadable")
        return None
    if address is not None and cluster.n_workers is not None:
        raise click.UsageError("give --cluster or --workers, one of the two")
    if address and not re.fullmatch(r"(tcp|tls)://[^\s/]+:\d+", address):
        raise click.UsageError(
            f"--cluster is the address of a scheduler, such as tcp://HOST:8786, not "
            f"{address!r}"
        )
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


def refuse_locally(*names: str) -> None:
    """Refuse options, by their parameters, that are for a cluster only."""
    for option, name in _given():
        if name in names:
            raise click.UsageError(f"{option} is for {_EITHER}")


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
