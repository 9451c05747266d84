"""Texts that identify items from one start of a program to the next.

An item is known by its primary text: an identifier, or a digest of its content.  Items
that share one are told apart by their content.  Copies that share this as well are
interchangeable: they are numbered in order, together with how many there are.  So a
copy that is added or removed changes the texts of all copies, and picks of them are not
found again, rather than found on another copy.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

#: The end of the name of a page of a file or folder.
_PAGE = re.compile(r"(^|, )(page \d+|part \d+ of \d+)$")


def digest(*values: Any) -> str:
    """Return a digest of plain values: 32 hexadecimal digits."""
    return hashlib.sha256(repr(values).encode(errors="backslashreplace")).hexdigest()[
        :32
    ]


def row_digests(table: pa.Table) -> list[str]:
    """Return a digest of the cells of each row that are not empty, by column name."""
    columns = [
        [
            b"" if cell is None else b"%s=%d=%s" % (name.encode(), len(cell), cell)
            for cell in _cell_bytes(table.column(name))
        ]
        for name in sorted(table.schema.names)
    ]
    return [
        hashlib.blake2b(b"\0".join(filter(None, row)), digest_size=16).hexdigest()
        for row in zip(*columns, strict=True)
    ]


def _cell_bytes(column: pa.ChunkedArray) -> list[bytes | None]:
    """Return the cells of a column as bytes, None for empty ones."""
    if pa.types.is_fixed_size_list(column.type) and not column.null_count:
        flat = pc.list_flatten(column).to_numpy(zero_copy_only=False)
        if flat.dtype.kind in "fiu":
            return [row.tobytes() for row in flat.reshape(len(column), -1)]
    return [
        None if cell is None else repr(cell).encode(errors="backslashreplace")
        for cell in column.to_pylist()
    ]


def paged_file(group: str) -> str | None:
    """Return the file or folder of which a group is a page by its name, else None."""
    found = _PAGE.search(group)
    return None if found is None else group[: found.start()]


def unique_texts(primary: Sequence[str], contents: Sequence[str]) -> list[str]:
    """Return one text per item: its primary text, with more where that is not unique.

    ``contents`` are digests of the items.
    """
    shared = Counter(primary)
    texts = [
        text if shared[text] == 1 else f"+{text}:{content}"
        for text, content in zip(primary, contents, strict=True)
    ]
    copies, seen = Counter(texts), Counter[str]()
    for place, text in enumerate(texts):
        if copies[text] > 1:
            seen[text] += 1
            texts[place] = f"+{text}:{seen[text]}/{copies[text]}"
    return texts
