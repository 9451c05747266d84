"""Checkpoints of a training: weights and plain values in one safetensors file.

Such a file holds numbers and text, and reading it runs nothing.  It is written whole or
not at all, and so often that writing takes a small share of the time.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from variegate._files import plain, write_atomic
from variegate.solvers.checkpoint import CheckpointError, check_folder, check_run

__all__ = ["Checkpoint", "Kept"]

FORMAT = "variegate-neural-checkpoint"
VERSION = 1

#: The share of the time that writing may take.
_SHARE = 0.1


@dataclass(frozen=True, eq=False)
class Kept:
    """The content of a file: tensors, and the seed and state of the run."""

    tensors: Mapping[str, Tensor]
    seed: int
    state: Mapping[str, Any]

    def part(self, name: str) -> dict[str, Tensor]:
        """Return the tensors of one part."""
        start = f"{name}/"
        return {
            key.removeprefix(start): value
            for key, value in self.tensors.items()
            if key.startswith(start)
        }


@dataclass(eq=False)
class Checkpoint:
    """The file of one run."""

    path: Path
    # settings and a description of the data; a file of another run is refused
    run: Mapping[str, Any]
    seed: int  # of the run, if there is no file yet
    kept: Kept | None = field(init=False)

    def __post_init__(self) -> None:
        """Read the file, if there is one."""
        self._last = time.monotonic()
        self._pause = 0.0
        self.kept = _read(self.path, self.run)
        if self.kept is not None:
            self.seed = self.kept.seed

    def read(self) -> Kept | None:
        """Return the content of the file, once."""
        kept, self.kept = self.kept, None
        return kept

    def is_due(self) -> bool:
        """Tell whether it is time to write."""
        return time.monotonic() - self._last >= self._pause

    def write(
        self, parts: Mapping[str, Mapping[str, Tensor]], state: Mapping[str, Any]
    ) -> None:
        """Write tensors and state, whole or not at all."""
        started = time.monotonic()
        tensors = {
            # Copies, as a file cannot hold two names of one tensor.
            f"{part}/{name}": value.detach().to("cpu", copy=True).contiguous()
            for part, values in parts.items()
            for name, value in values.items()
        }
        head = {
            "format": FORMAT,
            "version": str(VERSION),
            "run": json.dumps(self.run, default=plain),
            "seed": str(self.seed),
            "state": json.dumps(state, default=plain),
        }
        write_atomic(self.path, save(tensors, head))
        self._last = time.monotonic()
        self._pause = (self._last - started) / _SHARE

    def remove(self) -> None:
        """Remove the file, as the run is over."""
        self.path.unlink(missing_ok=True)


def _read(path: Path, run: Mapping[str, Any]) -> Kept | None:
    check_folder(path)
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            head = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise CheckpointError(
            f"{path} is not a checkpoint, or is damaged: {error}"
        ) from None
    if head.get("format") != FORMAT:
        raise CheckpointError(f'{path} is not a checkpoint: "format" is not "{FORMAT}"')
    if head.get("version") != str(VERSION):
        raise CheckpointError(
            f"{path} has format version {head.get('version')}, but this variegate "
            f"reads {VERSION}"
        )
    try:
        there, state = json.loads(head["run"]), json.loads(head["state"])
        seed = int(head["seed"])
    except (KeyError, ValueError) as error:
        raise CheckpointError(f"{path} is damaged: {error}") from None
    check_run(path, there, run)
    return Kept(tensors, seed, state)
