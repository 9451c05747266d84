"""Checkpoints of a training: weights and plain values in a run store.

Tensors are stored in the format of safetensors, and reading them runs nothing.  They
are written so often that writing takes a small share of the time.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from variegate.files.atomic import plain
from variegate.files.run_store import CheckpointError, RunStore

__all__ = ["Checkpoint", "Kept"]

#: The share of the time that writing may take.
_SHARE = 0.1


@dataclass(frozen=True, eq=False)
class Kept:
    """Tensors by part and name, and the state of the run."""

    tensors: Mapping[str, Tensor]
    state: Mapping[str, Any]

    def part(self, name: str) -> dict[str, Tensor]:
        """Return the tensors of one part."""
        start = f"{name}/"
        return {
            key.removeprefix(start): value
            for key, value in self.tensors.items()
            if key.startswith(start)
        }


class Checkpoint:
    """The run store of one training; without a path nothing is written.

    ``run`` holds the settings and a description of the data, ``seed`` the seed of the
    run if the file is new.
    """

    def __init__(
        self, path: str | Path | None, run: Mapping[str, Any], seed: int
    ) -> None:
        self._last = time.monotonic()
        self._pause = 0.0
        self._store = RunStore(path, run)
        self.seed = int(self._store.remember("seed", lambda: str(seed).encode()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._store.close()

    def read(self) -> Kept | None:
        """Return the tensors and state that were written last, if any."""
        state, tensors = self._store.get("state"), self._store.get("tensors")
        if state is None or tensors is None:
            return None
        try:
            return Kept(load(tensors), json.loads(state))
        except (SafetensorError, ValueError) as error:
            raise CheckpointError(f"{self._store.path} is damaged: {error}") from None

    def is_due(self) -> bool:
        """Return whether it is time to write."""
        is_stored = self._store.path is not None
        return is_stored and time.monotonic() - self._last >= self._pause

    def write(
        self, parts: Mapping[str, Mapping[str, Tensor]], state: Mapping[str, Any]
    ) -> None:
        """Write tensors and state, both or neither."""
        started = time.monotonic()
        tensors = {
            # Copies, as safetensors cannot hold two names of one tensor.
            f"{part}/{name}": value.detach().to("cpu", copy=True).contiguous()
            for part, values in parts.items()
            for name, value in values.items()
        }
        self._store.put_all(
            {
                "tensors": save(tensors),
                "state": json.dumps(state, default=plain).encode(),
            }
        )
        self._last = time.monotonic()
        self._pause = (self._last - started) / _SHARE

    def remove(self) -> None:
        """Remove the file, as the run is complete."""
        self._store.remove()
