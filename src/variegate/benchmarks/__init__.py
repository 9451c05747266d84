"""Benchmarks: one question a file, every competitor measured in the same process.

Run by ``variegate bench``.  What counts is the ratio of medians, one thread each.
"""

from variegate.benchmarks import decoding, sampling

__all__ = ["BENCHMARKS"]

#: From the names that the command takes to functions that return rows.
BENCHMARKS = {"sampling": sampling.measure, "decoding": decoding.measure}
