"""What the commands that a cluster can carry out have in common: options, an engine."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from variegate.cli.cluster_progress import WatchedEngine
from variegate.cli.notes import note
from variegate.cli.paths import FILE
from variegate.cli.progress import Stage, noted_progress
from variegate.cli.values import POSITIVE

if TYPE_CHECKING:
    from distributed import Client

    from variegate.tables.folder.files import FolderTable

__all__ = [
    "Cluster",
    "cluster_options",
    "note_unreadable",
    "refuse_elsewhere",
    "refuse_on_cluster",
]

_Command = TypeVar("_Command", bound=Callable[..., Any])

#: What the options are called here.
_EITHER = "--cluster or --workers"

#: Files that a note names.
_NAMED = 5

_TLS = ("tls_ca", "tls_cert", "tls_key")


@dataclass(frozen=True)
class Cluster:
    """Where the work is done: a cluster that is there, or workers on this machine."""

    address: str | None
    n_workers: int | None
    tls: Mapping[str, Path]
    timeout: float
    skip_unreadable: bool

    @contextmanager
    def engine(self) -> Iterator[tuple[WatchedEngine, Stage]]:
        """Yield what does the work, and what is told how far it has come.

        What is wrong with the cluster or with a file ends the command in one line.
        """
        from variegate.dask import ClusterError, DaskEngine
        from variegate.partitions import PartitionError

        try:
            with self._client() as client, noted_progress() as show:
                engine = WatchedEngine(
                    DaskEngine(client, no_workers_timeout=self.timeout)
                )
                yield engine, engine.progress(show)
        except (ClusterError, PartitionError) as error:
            # A parameter of the library is an option here.
            text = str(error).replace("skip_unreadable", "--skip-unreadable")
            raise click.ClickException(text) from error

    def _client(self) -> AbstractContextManager[Client]:
        from variegate.dask import connect, local_cluster

        if self.address is None:
            return local_cluster(self.n_workers or 1)
        return connect(self.address, timeout=self.timeout, **self.tls)

    def folder(self, path: Path) -> FolderTable:
        """Return a folder as workers find it, wherever they were started."""
        from variegate.tables.folder.files import as_folder

        if path.is_file():
            raise click.UsageError(
                f"{path} is a file, and a cluster works on a folder of Parquet or "
                f"Arrow files: name one, or leave out {_EITHER}"
            )
        return as_folder(path.absolute(), self.skip_unreadable)


def cluster_options(skip_unreadable: bool = True) -> Callable[[_Command], _Command]:
    """Add the options about a cluster; the command has them as ``cluster``.

    That is None where none is asked for.
    """
    options = list(_OPTIONS)
    if skip_unreadable:
        options.append(_SKIP_UNREADABLE)

    def add(command: _Command) -> _Command:
        @wraps(command)
        def called(**given: Any) -> Any:
            taken = {name: given.pop(name) for name in _NAMES if name in given}
            return command(cluster=_cluster_of(**taken), **given)

        for option in reversed(options):
            called = option(called)
        return called  # type: ignore[return-value]

    return add


_OPTIONS: list[Callable[[Any], Any]] = [
    click.option(
        "--cluster", "address", metavar="ADDRESS",
        help="Let a Dask cluster work on the files of a folder that all workers see: "
        "the address of its scheduler, such as tcp://HOST:8786. Needs the extra dask.",
    ),
    click.option(
        "--workers", "n_workers", type=click.IntRange(min=1), metavar="N",
        help="In place of --cluster, so many worker processes on this machine.",
    ),
    click.option(
        "--tls-ca", type=FILE, metavar="FILE",
        help="For an encrypted connection: who signed the cluster's certificates.",
    ),
    click.option(
        "--tls-cert", type=FILE, metavar="FILE", help="Your certificate.",
    ),
    click.option("--tls-key", type=FILE, metavar="FILE", help="Its key."),
    click.option(
        "--timeout", type=POSITIVE, default=60.0, show_default=True, metavar="SECONDS",
        help="How long to wait for the scheduler, or for a worker while there is none; "
        "what was finished by then is kept.",
    ),
]  # fmt: skip

_SKIP_UNREADABLE = click.option(
    "--skip-unreadable", is_flag=True,
    help="On a cluster, leave out files that cannot be read, and name them.",
)  # fmt: skip

_NAMES = ("address", "n_workers", *_TLS, "timeout", "skip_unreadable")


def _cluster_of(
    address: str | None,
    n_workers: int | None,
    timeout: float,
    skip_unreadable: bool = False,
    **tls: Path | None,
) -> Cluster | None:
    """Return what was asked for, if it goes together."""
    if address is None:
        refuse_elsewhere(*_TLS, needed="--cluster")
    if address is None and n_workers is None:
        refuse_elsewhere("timeout", "skip_unreadable")
        return None
    if address is not None and n_workers is not None:
        raise click.UsageError("give --cluster or --workers, one of the two")
    files = {name: path for name, path in tls.items() if path is not None}
    _check_address(address, len(files))
    import variegate.dask  # noqa: F401 - says what to install

    return Cluster(address, n_workers, files, timeout, skip_unreadable)


def _check_address(address: str | None, n_files: int) -> None:
    if address is None:
        return
    if not re.fullmatch(r"(tcp|tls)://[^\s/]+:\d+", address):
        raise click.UsageError(
            f"--cluster is the address of a scheduler, such as tcp://HOST:8786, not "
            f"{address!r}"
        )
    is_encrypted = address.startswith("tls://") or n_files > 0
    if is_encrypted and n_files < len(_TLS):
        raise click.UsageError(
            "an encrypted connection needs all of --tls-ca, --tls-cert and --tls-key"
        )


def refuse_on_cluster(reasons: Mapping[str, str]) -> None:
    """Refuse options, by their parameters, that a cluster has no use for."""
    for option, name in _given():
        if name in reasons:
            raise click.UsageError(
                f"{option} cannot be used with {_EITHER}: {reasons[name]}"
            )


def refuse_elsewhere(*names: str, needed: str = _EITHER) -> None:
    """Refuse options, by their parameters, that are for a cluster only."""
    for option, name in _given():
        if name in names:
            raise click.UsageError(f"{option} is for {needed}")


def note_unreadable(files: Sequence[str]) -> None:
    """Name files that were left out."""
    if files:
        some, more = ", ".join(files[:_NAMED]), len(files) - _NAMED
        others = f" and {more:,} more" if more > 0 else ""
        note(f"left out as they cannot be read: {some}{others}")


def _given() -> Iterator[tuple[str, str]]:
    """Yield options that were given, and their parameters."""
    context = click.get_current_context()
    for parameter in context.command.params:
        name = str(parameter.name)
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            yield parameter.opts[-1], name
