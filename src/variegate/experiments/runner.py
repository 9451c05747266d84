"""Run independent pieces of an experiment on several cores, and resume if interrupted.

Each piece is a pure function of its arguments whose result is plain JSON values.
Finished pieces are kept in the output folder until the experiment is complete, marked
with a fingerprint of the settings; a run with the same settings takes them up again.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from joblib import delayed, parallel_config

from variegate._files import write_atomic
from variegate._processes import in_processes

__all__ = ["discard_pieces", "fingerprint", "run_pieces"]

#: Called with (finished pieces, all pieces).
Progress = Callable[[int, int], None]

_FOLDER = ".unfinished"


def fingerprint(settings: Mapping[str, Any]) -> str:
    """Return a short name for settings that are plain JSON values."""
    text = json.dumps(settings, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def run_pieces(
    compute: Callable[..., Any],
    pieces: Sequence[tuple[Any, ...]],
    folder: Path,
    mark: str,
    jobs: int,
    progress: Progress | None = None,
) -> list[Any]:
    """Return ``[compute(*piece) for piece in pieces]``, in order.

    ``compute`` is importable by name, so that worker processes can find it; one job
    runs everything in this process.  ``mark`` is the fingerprint of the settings, under
    which finished pieces are kept in the output folder.
    """
    store = folder / _FOLDER / mark
    store.mkdir(parents=True, exist_ok=True)
    results = {
        piece: _read(path) for piece in pieces if (path := _path(store, piece)).exists()
    }
    missing = [piece for piece in pieces if piece not in results]
    if progress is not None:
        progress(len(results), len(pieces))
    with parallel_config("loky", inner_max_num_threads=1):
        finished = in_processes(jobs, return_as="generator_unordered")(
            delayed(_compute_piece)(compute, piece, _path(store, piece))
            for piece in missing
        )
        for piece, result in finished:
            results[piece] = result
            if progress is not None:
                progress(len(results), len(pieces))
    return [results[piece] for piece in pieces]


def discard_pieces(folder: Path, mark: str) -> None:
    """Remove what a run kept for resuming, once its results are written."""
    shutil.rmtree(folder / _FOLDER / mark, ignore_errors=True)
    with suppress(OSError):  # another run's pieces are still there
        (folder / _FOLDER).rmdir()


def _path(store: Path, piece: tuple[Any, ...]) -> Path:
    return store / ("-".join(str(part) for part in piece) + ".json")


def _read(path: Path) -> Any:
    return json.loads(path.read_text())


def _compute_piece(
    compute: Callable[..., Any], piece: tuple[Any, ...], path: Path
) -> tuple[tuple[Any, ...], Any]:
    result = compute(*piece)
    write_atomic(path, json.dumps(result))
    # Read back, so that fresh and resumed pieces are the same down to their types.
    return piece, _read(path)
