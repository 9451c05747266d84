"""Ground sets of equal size that are evaluated together, and what is made of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from variegate._typing import FloatArray, IntArray
from variegate.ground_set import GroundSet, naming
from variegate.kernels import Kernel
from variegate.linalg.limits import STACK_ENTRIES, STACK_LIMIT, STACK_SETS

__all__ = ["costs_of", "groups_of_equal_size", "prepared_stack"]


def groups_of_equal_size(
    ground_sets: Sequence[GroundSet], stackable: bool
) -> list[list[int]]:
    """Return the places of ground sets that are evaluated together."""
    by_size: dict[int, list[int]] = defaultdict(list)
    for position, ground_set in enumerate(ground_sets):
        by_size[len(ground_set)].append(position)
    groups: list[list[int]] = []
    for size, positions in by_size.items():
        step = 1
        if stackable and size <= STACK_LIMIT:
            step = min(STACK_SETS, max(1, STACK_ENTRIES // size**2))
        groups += [positions[k : k + step] for k in range(0, len(positions), step)]
    return groups


def costs_of(costs: Sequence[FloatArray | float], n_items: int) -> FloatArray:
    """Return costs of errors as an array of shape (B, N), or (B, 1) for one an item."""
    if all(isinstance(cost, float | int) for cost in costs):
        return np.array(costs, dtype=np.float64)[:, None]
    return np.stack([np.broadcast_to(cost, n_items) for cost in costs])


def prepared_stack(
    kernel: Kernel, positions: IntArray, ground_sets: Sequence[GroundSet]
) -> Any:
    """Return ground sets as a kernel needs them, as one if it is stackable."""
    together = kernel.prepare_together(ground_sets) if kernel.stackable else None
    if together is not None:
        return together
    prepared = []
    for position, ground_set in zip(positions.tolist(), ground_sets, strict=True):
        with naming(position):
            prepared.append(kernel.prepare(ground_set))
    return kernel.stack(prepared) if kernel.stackable else prepared[0]
