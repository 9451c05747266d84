"""Decoders: from an ensemble to one subset, one algorithm a file.

To add one: write a class with the call signature of
:class:`variegate.decoding.base.Decoder` in a file of its own and name it here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from variegate.decoding.agreement import Agreement
from variegate.decoding.base import Constraint, Decoder
from variegate.decoding.exact import Exact, all_subsets
from variegate.decoding.expected_f import ExpectedF, expected_f_score
from variegate.decoding.greedy import Greedy
from variegate.decoding.local import Local
from variegate.decoding.mbr import MBR, GreedySearch
from variegate.decoding.relaxed import Relaxed

__all__ = [
    "DECODERS",
    "MBR",
    "Agreement",
    "Constraint",
    "Decoder",
    "Exact",
    "ExpectedF",
    "Greedy",
    "GreedySearch",
    "Local",
    "Relaxed",
    "all_subsets",
    "as_decoder",
    "expected_f_score",
]

#: The names that ``decode`` and the estimator take.
#:
#: :meta hide-value:
DECODERS: Mapping[str, type[Decoder]] = MappingProxyType(
    {
        "greedy": Greedy,
        "local": Local,
        "relaxed": Relaxed,
        "exact": Exact,
        "mbr": MBR,
        "expected-f": ExpectedF,
    }
)


def as_decoder(method: str | Decoder) -> Decoder:
    """Return the decoder that a name stands for, or the decoder itself."""
    if isinstance(method, str):
        if method not in DECODERS:
            raise ValueError(
                f"unknown decoding method {method!r}; there are "
                f"{', '.join(sorted(DECODERS))}"
            )
        return DECODERS[method]()
    if isinstance(method, type) or not callable(method):
        raise ValueError(f"a decoder is a name or an object like MBR(), got {method!r}")
    return method
