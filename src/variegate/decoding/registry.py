"""The decoders that have a name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from variegate.decoding.base import Decoder
from variegate.decoding.exact import Exact
from variegate.decoding.expected_f import ExpectedF
from variegate.decoding.greedy import Greedy
from variegate.decoding.local import Local
from variegate.decoding.mbr import MBR
from variegate.decoding.relaxed import Relaxed

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
    """Return the decoder of a name, with default options, or the given decoder.

    ValueError for anything else.
    """
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
