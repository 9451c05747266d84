"""The hidden folder in which a folder is gathered, and how it becomes the result."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from variegate.files.run_store import CheckpointError, RunStore, StoreInUseError
from variegate.partitions import Partition
from variegate.tables.folder.gather_plan import Plan
from variegate.tables.reading import FORMATS
from variegate.tables.table import TableError

_STORE = "gather.sqlite"
_FULL = (errno.ENOSPC, errno.EDQUOT)


def check_out(folder: Path, out: Path, replace: bool) -> None:
    """Refuse a folder that cannot be written, or should not be replaced."""
    source, target = folder.resolve(), out.resolve()
    if source == target or source in target.parents or target in source.parents:
        raise TableError(f"{out} and {folder} overlap: name another folder to write")
    if not target.parent.is_dir():
        raise TableError(f"cannot write {out}: there is no folder {target.parent}")
    if not target.exists():
        return
    if not target.is_dir():
        raise TableError(f"cannot write {out}: it is no folder")
    names = sorted(path.name for path in target.iterdir())
    if names and not replace:
        raise TableError(f"{out} is not empty: name another folder, or replace it")
    for name in names:
        if Path(name).suffix.lower() not in FORMATS or (target / name).is_dir():
            raise TableError(
                f"{out} holds {name!r}, which is no table, and would be lost: name "
                "another folder"
            )


def opened(plan: Plan, partitions: Sequence[Partition]) -> RunStore:
    """Open the run store in the hidden folder; that of other work is removed."""
    path, run = plan.hidden / _STORE, plan.identity(partitions)
    # Without files, they were put in place just before the process was killed.
    if path.exists() and plan.files.is_dir():
        try:
            return RunStore(path, run)
        except StoreInUseError:
            raise TableError(
                f"{plan.hidden} is in use by another process: wait until that has "
                "ended, or name another folder to write"
            ) from None
        except CheckpointError:  # of other work, or damaged
            pass
    if plan.hidden.exists():
        shutil.rmtree(plan.hidden)
    _check_room(plan)
    plan.dealt.mkdir(parents=True)
    plan.files.mkdir()
    return RunStore(path, run)


def put_in_place(plan: Plan, out: Path) -> None:
    """Let the finished files appear as the folder, all at once."""
    out = out.resolve()
    shutil.rmtree(plan.dealt, ignore_errors=True)
    if out.exists():
        # Two steps: a process that is killed between them does the second next time.
        if any(out.iterdir()):
            os.rename(out, plan.hidden / "replaced")
        else:
            out.rmdir()  # which not every system replaces
    os.rename(plan.files, out)
    shutil.rmtree(plan.hidden)


def _check_room(plan: Plan) -> None:
    """Refuse, before the work, what the disk has no room for."""
    free = shutil.disk_usage(plan.hidden.parent).free
    if plan.n_bytes > free:
        raise OSError(f"{_no_room(plan)}, and {free / 1e9:.1f} GB are free")


@contextmanager
def named_if_full(plan: Plan) -> Iterator[None]:
    """Say what is needed where the disk is full."""
    try:
        yield
    except OSError as error:
        cause = error.__cause__ or error
        if isinstance(cause, OSError) and cause.errno in _FULL:
            raise OSError(
                f"{_no_room(plan)}; make room and run it again, and it resumes"
            ) from error
        raise


def _no_room(plan: Plan) -> str:
    return (
        f"the disk of {plan.hidden.parent} has no room: about "
        f"{plan.n_bytes / 1e9:.1f} GB are needed for a while, besides the result"
    )
