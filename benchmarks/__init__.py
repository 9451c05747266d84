"""Benchmarks: one question a file, every competitor measured in the same process.

``python -m benchmarks`` runs those of :data:`BENCHMARKS` against their peers, one
thread each: the ratio of medians counts.  The others are programs of their own, run by
``python -m benchmarks.NAME``; their docstrings say what they measure.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from benchmarks.timing import Row

__all__ = ["BENCHMARKS", "USUAL", "load_benchmark"]

#: The names that the command takes, and their modules.
BENCHMARKS = {
    "sampling": "sampling",
    "decoding": "decoding",
    "text": "text",
    "learning": "learning",
    "torch": "tensors",  # no file here may be called as a package that others import
}

#: The default: PyTorch is not installed everywhere.
USUAL = ("sampling", "decoding", "text", "learning")


def load_benchmark(name: str) -> Callable[[bool], list[Row]]:
    """Return the function that measures; its competitors are imported only now."""
    if name == "torch":
        import_module("variegate.torch")  # raises with a remedy without PyTorch
    module = import_module(f"benchmarks.{BENCHMARKS[name]}")
    return module.measure  # type: ignore[no-any-return]
