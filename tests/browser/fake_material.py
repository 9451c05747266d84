"""Made-up groups for the stand-in of the studio's server."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np


def png(pixels: np.ndarray) -> bytes:
    """Return a grey picture as a file."""
    height, width = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels.astype(np.uint8))

    def chunk(name: bytes, body: bytes) -> bytes:
        check = zlib.crc32(name + body)
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", check)

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


@dataclass
class FakeMaterial:
    """Groups of items; ``score`` is what proposals go by."""

    kind: str
    nouns: tuple[str, str]
    names: list[str]
    items: list[list[dict[str, Any]]]
    picture: Any = None


def pictures(n_groups: int = 12, size: int = 20) -> FakeMaterial:
    """Return pages of handwritten digits."""
    from sklearn.datasets import load_digits

    images = 255 - load_digits().images * 15.9
    items = [
        [
            {
                "title": f"digit {g * size + n}",
                "text": None,
                "fields": [],
                "image": True,
            }
            for n in range(size)
        ]
        for g in range(n_groups)
    ]
    return FakeMaterial(
        "images",
        ("image", "images"),
        [f"Page {g + 1}" for g in range(n_groups)],
        items,
        lambda g, n: png(images[(g * size + n) % len(images)]),
    )


SENTENCES = (
    "The ferry left an hour late, and nobody on the pier seemed to mind.",
    "By noon the wind had turned, which the harbour master wrote down twice.",
    "A second inquiry found that the gauge had never been read at night.",
    "Its authors ask for a new gauge, and for somebody to read it.",
    "The council will vote on Thursday; two members have said that they will abstain, "
    "because the cost of the last repair is still being argued over in court, and no "
    "one can say what the next one would come to.",
    "Fishing goes on as before.",
)


def documents(n_groups: int = 6, size: int = 40) -> FakeMaterial:
    """Return clusters of sentences."""
    items = [
        [
            {
                "title": f"report-{n // 10 + 1}.txt, sentence {n % 10 + 1}",
                "text": SENTENCES[(n * 5 + g) % len(SENTENCES)],
                "fields": [],
                "image": False,
            }
            for n in range(size)
        ]
        for g in range(n_groups)
    ]
    names = [f"cluster-{g + 1}" for g in range(n_groups)]
    return FakeMaterial("documents", ("sentence", "sentences"), names, items)


def rows(n_groups: int = 5, size: int = 30, evil: str = "") -> FakeMaterial:
    """Return queries with their results; ``evil`` is put into all names and cells."""
    items = [
        [
            {
                "title": f"result {n + 1}{evil}",
                "text": f"{SENTENCES[n % len(SENTENCES)]}{evil}"
                if n % 3 == 0
                else None,
                "fields": [
                    [f"score{evil}", f"{(n * 37 % 100) / 100:.2f}"],
                    [f"site{evil}", f"example-{n % 7}.org{evil}"],
                    ["age", str(n * 13 % 365)],
                ],
                "image": False,
            }
            for n in range(size)
        ]
        for g in range(n_groups)
    ]
    names = [f"query {g + 1}{evil}" for g in range(n_groups)]
    return FakeMaterial("table", ("row", "rows"), names, items)
