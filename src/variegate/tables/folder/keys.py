"""Keys of groups, and a hash of each that is the same wherever it is computed.

Python's own hashes of text differ from process to process, so that two workers would
not agree on where a group belongs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from variegate.linalg.compiled import read_only
from variegate.linalg.compiled.hashing import text_hashes
from variegate.tables.cells import Cells
from variegate.tables.columns import is_text

__all__ = ["HashArray", "hashes_of", "keys_of"]

HashArray = npt.NDArray[np.uint64]


def keys_of(column: Any, name: str, first: int = 0) -> Any:
    """Return the key of the group of every row; ``first`` rows come before them.

    Keys are equal where groups are: 0.0 and -0.0 are one, dictionaries are looked up.
    Where a row has none, it is refused.
    """
    keys = Cells(column, name, first).keys()
    if pa.types.is_float16(keys.type):
        keys = keys.cast(pa.float32())
    return pc.add(keys, 0.0) if pa.types.is_floating(keys.type) else keys


def hashes_of(keys: Any) -> HashArray:
    """Return 64 bits for every key: equal for equal keys, for others nearly never."""
    kind = keys.type
    if pa.types.is_boolean(kind):
        keys = keys.cast(pa.uint8())
    elif pa.types.is_floating(kind):
        keys = keys.cast(pa.float64()).view(pa.uint64())
    elif pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        keys = keys.view(pa.int64() if kind.bit_width == 64 else pa.int32())
    if pa.types.is_integer(keys.type):
        numbers = keys.to_numpy(zero_copy_only=False)
        return _mixed(numbers.astype(np.int64).view(np.uint64))
    return _mixed(_text_hashes(keys))


def _text_hashes(keys: Any) -> HashArray:
    if not (is_text(keys.type) or pa.types.is_binary(keys.type)):
        # Whatever else there is, such as decimals, differs where its text does.
        keys = pa.array([repr(key) for key in keys.to_pylist()], pa.large_string())
    texts = keys.cast(pa.large_binary())
    _, offsets, data = texts.buffers()
    window = slice(texts.offset, texts.offset + len(texts) + 1)
    places = (
        np.frombuffer(offsets, np.int64)[window] if len(texts) else np.zeros(1, int)
    )
    letters = np.frombuffer(data or b"", np.uint8)
    found: HashArray = text_hashes(read_only(letters), read_only(places))
    return found


def _mixed(values: HashArray) -> HashArray:
    """Return values whose bits all depend on all bits (the last step of SplitMix64)."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: HashArray = values ^ (values >> np.uint64(31))
    return mixed
