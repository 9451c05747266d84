"""Options, engine and progress of the commands that a cluster can carry out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import click

from variegate._progress import Progress
from variegate.cli.options import (
    COUNT,
    POSITIVE,
    Decorator,
    given_options,
    merge_options,
    option,
)
from variegate.cli.output import Interrupted, abbreviate_names, print_note
from variegate.cli.progress import Note, rows_note, show_progress
from variegate.report.wording import count

if TYPE_CHECKING:
    from variegate.dask import DaskEngine

_EITHER = "--cluster or --workers"

#: Stages whose steps are files.
_FILES = ("reading", "judging", "choosing", "dealing out", "writing")


def _engine_note(engine: DaskEngine, stage: str, done: float, total: float) -> str:
    """Return text on iterations or files done, and workers; "" for other stages."""
    if stage == "learning":
        text = f"iteration {done:,} of at most {total:,}"
    elif stage in _FILES and total:
        text = f"{done:,} of {total:,} files"
    else:  # this process works, and not the cluster
        return ""
    return f"{text}, {count(engine.n_workers, 'worker')}"


@dataclass(frozen=True)
class Cluster:
    """A cluster to connect to, or workers to start; false without either option."""

    address: str | None
    n_workers: int | None
    timeout: float  # seconds
    skip_unreadable: bool = False

    def __post_init__(self) -> None:
        """Raise UsageError for options that contradict each other."""
        if not self:
            given = given_options()
            for name in given.keys() & {"timeout", "skip_unreadable"}:
                raise click.UsageError(f"{given[name]} is for {_EITHER}")
            return
        if self.address is not None and self.n_workers is not None:
            raise click.UsageError("give --cluster or --workers, one of the two")
        if self.address and not re.fullmatch(r"(tcp|tls)://[^\s/]+:\d+", self.address):
            raise click.UsageError(
                "--cluster is the address of a scheduler, such as tcp://HOST:8786, not "
                f"{self.address!r}"
            )
        import variegate.dask  # noqa: F401 - says what to install

    def __bool__(self) -> bool:
        """Return whether --cluster or --workers is given."""
        return self.address is not None or self.n_workers is not None

    def refuse(self, **reasons: str) -> None:
        """Raise UsageError if an option is given that a cluster cannot use.

        These are --jobs, --separator, and the parameters for which ``reasons`` has a
        text.  Without a cluster nothing is refused.
        """
        reasons |= {
            "n_jobs": "each worker has one thread",
            "separator": "the files of a folder need none",
        }
        for name, written in given_options().items() if self else ():
            if name in reasons:
                raise click.UsageError(
                    f"{written} cannot be used with {_EITHER}: {reasons[name]}"
                )

    @contextmanager
    def engine_and_progress(
        self, resume: str | None = None
    ) -> Iterator[tuple[DaskEngine | None, Progress]]:
        """Yield an engine, None without a cluster, and a progress callback.

        In the with block, errors of the cluster or of a file become ClickException, and
        an interrupt Interrupted with the text ``resume``, unless that is None.
        """
        from variegate.partitions import PartitionError

        expected: tuple[type[Exception], ...] = (PartitionError,)
        engine: DaskEngine | None = None
        note: Note = rows_note
        try:
            with ExitStack() as stack:
                if self:
                    from variegate import dask

                    expected = (dask.ClusterError, PartitionError)
                    client = stack.enter_context(
                        dask.local_cluster(self.n_workers or 1)
                        if self.address is None
                        else dask.connect(self.address, timeout=self.timeout)
                    )
                    engine = dask.DaskEngine(client, no_workers_timeout=self.timeout)
                    note = partial(_engine_note, engine)
                yield engine, stack.enter_context(show_progress(note=note))
        except expected as error:
            raise click.ClickException(str(error)) from error
        except KeyboardInterrupt:
            if resume is None:
                raise
            raise Interrupted(resume) from None


_OPTIONS = [
    option(
        "--cluster ADDRESS", "Scheduler of a Dask cluster, such as tcp://HOST:8786, "
        "whose workers see the folder; tls://HOST:8786 is encrypted, with the "
        "certificates of Dask's configuration. Needs the extra dask.", name="address",
    ),
    option(
        "--workers N", "Worker processes on this machine, in place of --cluster.",
        COUNT, name="n_workers",
    ),
    option(
        "--timeout SECONDS", "Time to wait for the scheduler, or for a worker while "
        "there is none.", POSITIVE, default=60.0,
    ),
    option(
        "--skip-unreadable",
        "On a cluster, leave out files that cannot be read, and name them.",
    ),
]  # fmt: skip


def cluster_options(skip_unreadable: bool = True) -> Decorator:
    """Return a decorator that adds the options about a cluster to a command.

    The command gets a :class:`Cluster` as its argument ``cluster``.  The option
    --skip-unreadable is added only with ``skip_unreadable``.
    """
    names = ("address", "n_workers", "timeout", "skip_unreadable")
    n_used = len(names) - (not skip_unreadable)
    return merge_options(_OPTIONS[:n_used], Cluster, "cluster", *names[:n_used])


def note_unreadable(files: Sequence[str]) -> None:
    """Print a note that names files left out because they cannot be read."""
    if files:
        print_note(f"left out as they cannot be read: {abbreviate_names(files, 5)}")
