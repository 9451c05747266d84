"""Rows beyond the paper: similarities that learn their features, and expected F.

The paper weighs similarities that are given.  "KINDS" and "METRIC" learn what counts as
alike (:class:`variegate.Kinds`, :class:`variegate.Metric`); "expected-f" chooses the
set whose F-score of items is expected to be the largest, where "mbr" looks for
agreement as the experiment judges it.  These rows are computed where they are asked
for by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from paper.held_out import Choice
from variegate._typing import FloatArray
from variegate.decoding import ExpectedF
from variegate.kernels import Kernel, Kinds, Metric

__all__ = [
    "DECODERS",
    "ROWS",
    "SIMILARITIES",
    "best_choices",
    "expected_f",
    "kernel_choices",
    "kernel_of",
]

#: The rows: a similarity, and what chooses.  "MKR" with "mbr" is in the paper.
ROWS = {
    "LME+MKR, expected-f": ("MKR", "expected-f"),
    "LME+KINDS": ("KINDS", "mbr"),
    "LME+KINDS, expected-f": ("KINDS", "expected-f"),
    "LME+METRIC": ("METRIC", "mbr"),
    "LME+METRIC, expected-f": ("METRIC", "expected-f"),
}

#: The similarities that are learned.
SIMILARITIES = ("KINDS", "METRIC")

#: Decoders to choose from: "mbr", which has no settings of its own here, then
#: "expected-f" with how much recall counts and how much repetition does.
DECODERS: tuple[Choice, ...] = (
    {},
    *(
        {"beta": beta, "repetition": repetition}
        for beta in (1.0, 2.0)
        for repetition in (0.0, 1.0)
    ),
)


def kernel_choices(
    blocks: Iterable[str], sizes: Sequence[int], penalties: Sequence[float]
) -> list[Choice]:
    """Return the settings of a learned similarity to choose from."""
    return [
        {"block": block, "size": size, "penalty": penalty}
        for block in blocks
        for size in sizes
        for penalty in penalties
    ]


def kernel_of(similarity: str, choice: Choice) -> Kernel:
    """Return the kernel of a learned similarity with chosen settings."""
    settings = {name: choice[name] for name in ("block", "penalty")}
    if similarity == "KINDS":
        return Kinds(n_kinds=choice["size"], **settings)
    return Metric(rank=choice["size"], **settings)


def best_choices(choices: Sequence[Choice], totals: FloatArray) -> dict[str, Choice]:
    """Return what is best for "mbr" and for "expected-f".

    ``totals`` (choices, decoders) are the scores on what was held out.
    """
    columns = {"mbr": [0], "expected-f": range(1, len(DECODERS))}
    pairs = {
        decoder: max(
            ((row, column) for row in range(len(choices)) for column in of_decoder),
            key=lambda pair: float(totals[pair]),
        )
        for decoder, of_decoder in columns.items()
    }
    return {
        decoder: choices[row] | DECODERS[column]
        for decoder, (row, column) in pairs.items()
    }


def expected_f(choice: Choice) -> ExpectedF | None:
    """Return "expected-f" with chosen settings; None where "mbr" was chosen."""
    if "beta" not in choice:
        return None
    return ExpectedF(choice["beta"], choice["repetition"])
