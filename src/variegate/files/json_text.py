"""JSON of users: parsed only where lists and objects are not nested too deeply.

Parsers are recursive.  Arrow's ends the process on a text of 100,000 brackets, and on
lines of null; values near Python's limit cannot be printed or written again.
"""

from __future__ import annotations

import io
import json
import re
from typing import Any

#: The most lists and objects around a value.
DEEPEST = 64

_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[{]|[\]}]', re.DOTALL)
_NULL_LINE = re.compile(rb"\n(?:\xef\xbb\xbf)?[ \t\r]*+null")
_KEY = re.compile(rb'"([^"\\]*+)"[ \t]*+:')
#: The most cells of lines that are read together, with those of absent keys.
_MOST_CELLS = 50_000_000
#: All bytes but opening brackets and line ends.
_OTHERS = bytes(byte for byte in range(256) if byte not in b"[{\n")


class DepthError(ValueError):
    """Lists and objects of JSON are nested more than ``DEEPEST`` deep."""

    def __init__(self) -> None:
        super().__init__(f"lists or objects are nested more than {DEEPEST} deep")


def load_json(text: str | bytes, **hooks: Any) -> Any:
    """Return the values of a JSON text; ``hooks`` are arguments of ``json.loads``.

    Raises ``json.JSONDecodeError`` for other text, DepthError for values nested too
    deeply, and ValueError for integers of thousands of digits: all are ValueErrors.
    """
    if isinstance(text, bytes):
        check_depth(text)
    elif text.count("[") + text.count("{") > DEEPEST:
        check_depth(text.encode(errors="replace"))
    return json.loads(text, **hooks)


def check_depth(data: bytes) -> None:
    """Raise DepthError where a JSON text is nested too deeply; takes linear time."""
    if data.count(b"[") + data.count(b"{") <= DEEPEST:
        return
    depth = 0
    for token in _TOKEN.finditer(data):
        mark = token[0]
        if mark in b"[{":
            depth += 1
            if depth > DEEPEST:
                raise DepthError
        elif mark in b"]}":
            depth = max(depth - 1, 0)


def check_lines(data: bytes) -> None:
    """Raise ValueError for a line of JSON that is null or nested too deeply."""
    # Arrow ends the process on a null at the beginning of a block.
    if _NULL_LINE.search(b"\n" + data):
        raise ValueError("a line is null, not an object")
    brackets = data.translate(None, _OTHERS).split(b"\n")
    if max(map(len, brackets)) > DEEPEST:
        for line in data.split(b"\n"):
            check_depth(line)


class JsonLines(io.FileIO):
    """A file of JSON lines, opened to be read; ``read`` raises ValueError.

    A line is checked before its end is returned: no parser must begin one before.  Of
    one longer than ``longest`` bytes, which the parser refuses, not all is checked.
    Lines must not need too many cells of the ``n_columns``; by default their own keys.
    """

    def __init__(self, path: str, longest: int, n_columns: int | None = None) -> None:
        super().__init__(path)
        self._longest, self._n_columns = longest, n_columns
        self._line = b""  # the beginning of a line that is not complete

    def read(self, size: int | None = -1, /) -> bytes:
        """Return at most ``size`` bytes, after checking the lines they end."""
        data = super().read(-1 if size is None else size) or b""
        text = self._line + data
        self._line = text[text.rfind(b"\n") + 1 :][: self._longest]
        check_lines(text)
        n_columns = self._n_columns or len(set(_KEY.findall(text)))
        if text.count(b"\n") * n_columns > _MOST_CELLS:
            raise ValueError(
                f"of {n_columns:,} different keys, rows have few each, and a table of "
                "all would be too large"
            )
        return data
