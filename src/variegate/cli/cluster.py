"""Options, engine and progress of the commands that a cluster can carry out."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from variegate._progress import Progress, ignore
from variegate.cli.options import COUNT, POSITIVE
from variegate.cli.output import Interrupted, names_of, note
from variegate.cli.progress import rows_note, show_progress
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

    def client(self) -> AbstractContextManager[Client]:
        """Return a client, which closes its own cluster at the end."""
        from variegate.dask import connect, local_cluster

        if self.address is None:
            return local_cluster(self.n_workers or 1)
        return connect(self.address, timeout=self.timeout)


@contextmanager
def working(
    cluster: ClusterChoice | None, resume: str | None = None
) -> Iterator[tuple[WatchedEngine | None, Progress]]:
    """Yield the engine of a cluster, None without one, and a progress callback.

    Errors of the cluster or of a file end the command in one line, and so does an
    interrupt where a text says how to ``resume``.
    """
    from variegate.partitions import PartitionError

    expected: tuple[type[Exception], ...] = (PartitionError,)
    engine = None
    try:
        with ExitStack() as stack:
            if cluster is not None:
                from variegate.dask import ClusterError, DaskEngine

                expected = (ClusterError, PartitionError)
                client = stack.enter_context(cluster.client())
                engine = WatchedEngine(
                    DaskEngine(client, no_workers_timeout=cluster.timeout)
                )
            note = rows_note if engine is None else engine.note
            progress = stack.enter_context(show_progress(note=note))
            yield engine, progress or ignore
    except expected as error:
        text = str(error)
        if cluster is not None:  # a parameter of the library is an option here
            text = text.replace("skip_unreadable", "--skip-unreadable")
        raise click.ClickException(text) from error
    except KeyboardInterrupt:
        if resume is None:
            raise
        raise Interrupted(resume) from None


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
        for option, name in _given():
            if name in ("timeout", "skip_unreadable"):
                raise click.UsageError(f"{option} is for {_EITHER}")
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
