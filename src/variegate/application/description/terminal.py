"""Weights and kernels as a terminal shows them: in columns, with bars beside them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from variegate.application.description.parts import KernelPart, Weight, strongest
from variegate.report.terminal import columns

__all__ = ["kernel_lines", "weight_lines", "with_bars"]

#: Weights that are printed.
_MOST = 30

#: Characters of the longest bar to one side.
_BAR = 16


def weight_lines(weights: Sequence[Weight], intercept: float) -> str:
    """Return a heading and a line for each of the largest weights."""
    shown, note = strongest(weights, _MOST)
    lines = [
        f"weights of the quality (intercept {intercept:.3g})",
        with_bars([w.label(40) for w in shown], [w.value for w in shown]),
    ]
    return "\n".join([*lines, f"  {note}"] if note else lines)


def kernel_lines(parts: Sequence[KernelPart]) -> str:
    """Return a heading and a line for each part of a kernel, or nothing."""
    if not parts:
        return ""
    bars = with_bars([part.label for part in parts], [part.weight for part in parts])
    return f"weights of the similarity\n{bars}"


def with_bars(names: Sequence[str], values: Sequence[float]) -> str:
    """Return names, numbers and bars, those of negative numbers to the left."""
    largest = max(map(abs, values), default=0.0)
    # So many decimals that the largest has three digits.
    digits = min(max(2 - math.floor(math.log10(largest)), 0), 9) if largest else 2
    room = _BAR if any(value < 0.0 for value in values) else 0
    rows = [
        (
            name,
            # No sign for what is zero as far as it is written.
            f"{round(value, digits) + 0.0:.{digits}f}",
            _bar(value / (largest or 1.0), room),
        )
        for name, value in zip(names, values, strict=True)
    ]
    return columns(rows, numbers=[1], indent=2)


def _bar(share: float, room: int) -> str:
    halves = round(2 * _BAR * abs(share))
    full, half = divmod(halves, 2)
    if share < 0.0:
        return ("▐" * half + "█" * full).rjust(room) + "│"
    return " " * room + "│" + "█" * full + "▌" * half
