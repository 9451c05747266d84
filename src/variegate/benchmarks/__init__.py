"""Benchmarks: one question a file, every competitor measured in the same process.

Run by ``variegate bench``.  What counts is the ratio of medians, one thread each.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from variegate.benchmarks.timing import Row

__all__ = ["BENCHMARKS", "USUAL", "load_benchmark"]

#: The names that the command takes, and those that it takes if none is given: PyTorch
#: is not there for everyone.
BENCHMARKS = ("sampling", "decoding", "text", "learning", "torch")
USUAL = ("sampling", "decoding", "text", "learning")


def load_benchmark(name: str) -> Callable[[bool], list[Row]]:
    """Return the function that measures; what only one needs is loaded only then."""
    if name == "torch":
        import_module("variegate.torch")  # raises with a remedy without PyTorch
    module = import_module(f"variegate.benchmarks.{name}")
    return module.measure  # type: ignore[no-any-return]
