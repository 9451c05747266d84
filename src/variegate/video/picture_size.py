"""Sizes of pictures by the headers of their files, before anything is decoded.

Read are the formats JPEG, PNG, WebP, BMP and TIFF; sizes are (width, height).
"""

from __future__ import annotations

import struct
from collections.abc import Callable

#: The most pixels of a picture, and of a frame of a video, that are decoded.
MOST_PIXELS = 2**26

# JPEG: a start of a frame has the size; other markers without a length.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_BARE = frozenset({0x01, *range(0xD0, 0xD9)})

# TIFF: tags that say how many pixels a decoder holds, and the formats of their types.
_WIDTH, _HEIGHT, _TILE_WIDTH, _TILE_HEIGHT, _ROWS = 256, 257, 322, 323, 278
_NUMBERS = {1: "B", 3: "H", 4: "I", 16: "Q"}


def picture_size(data: bytes) -> tuple[int, int] | None:
    """Return width and height of the picture in a file's bytes; None if unknown."""
    for sign, read in _READERS.items():
        if data.startswith(sign):
            try:
                return read(data)
            except (struct.error, IndexError):
                return None
    return None


def has_size_to_decode(size: tuple[int, int] | None) -> bool:
    """Return whether a picture of this size is known and not too large to decode."""
    return size is not None and min(size) > 0 and size[0] * size[1] <= MOST_PIXELS


def _png_size(data: bytes) -> tuple[int, int] | None:
    """Return the size in the first chunk of a PNG file."""
    width, height = struct.unpack_from(">II", data, 16)
    return (width, height) if data[12:16] == b"IHDR" else None


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    """Return the size in the first frame header of a JPEG file."""
    place = 2
    while data[place] == 0xFF:
        marker = data[place + 1]
        if marker == 0xFF:  # a fill byte
            place += 1
        elif marker in _FRAMES:
            height, width = struct.unpack_from(">HH", data, place + 5)
            return width, height
        elif marker in _BARE:
            place += 2
        else:
            place += 2 + struct.unpack_from(">H", data, place + 2)[0]
    return None


def _bmp_size(data: bytes) -> tuple[int, int]:
    """Return the size in the header of a BMP file, whose rows may be upside down."""
    (header,) = struct.unpack_from("<I", data, 14)
    width, height = struct.unpack_from("<HH" if header == 12 else "<ii", data, 18)
    return abs(width), abs(height)


def _webp_size(data: bytes) -> tuple[int, int] | None:
    """Return the size of the canvas, or of the only picture, of a WebP file."""
    kind = data[12:16]
    if data[8:12] != b"WEBP":
        return None
    if kind == b"VP8X":
        numbers = (int.from_bytes(data[k : k + 3], "little") for k in (24, 27))
        width, height = (1 + number for number in numbers)
    elif kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        width, height = 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    elif kind == b"VP8 ":
        width, height = (n & 0x3FFF for n in struct.unpack_from("<HH", data, 26))
    else:
        return None
    return width, height


def _tiff_size(data: bytes) -> tuple[int, int] | None:
    """Return the size of a TIFF file's first picture, or of larger tiles or strips."""
    order = "<" if data.startswith(b"II") else ">"
    is_big = struct.unpack_from(order + "H", data, 2)[0] == 43
    n_bytes, offset, entry = (8, "Q", 20) if is_big else (4, "I", 12)
    (place,) = struct.unpack_from(order + offset, data, 8 if is_big else 4)
    count = "Q" if is_big else "H"
    (n_entries,) = struct.unpack_from(order + count, data, place)
    place += struct.calcsize(count)
    found: dict[int, int] = {}
    for start in range(place, place + entry * min(n_entries, 4096), entry):
        tag, kind = struct.unpack_from(order + "HH", data, start)
        if kind in _NUMBERS and struct.calcsize(_NUMBERS[kind]) <= n_bytes:
            at = start + 4 + n_bytes
            found[tag] = struct.unpack_from(order + _NUMBERS[kind], data, at)[0]
    width, height = found.get(_WIDTH, 0), found.get(_HEIGHT, 0)
    # Without a number of rows, or with the largest, a strip is the whole picture.
    rows = found.get(_ROWS, 0)
    rows = 0 if rows >= 2**31 else rows
    tile = found.get(_TILE_WIDTH, 0), max(found.get(_TILE_HEIGHT, 0), rows)
    return max(width, tile[0]), max(height, tile[1])


_READERS: dict[bytes, Callable[[bytes], tuple[int, int] | None]] = {
    b"\x89PNG\r\n\x1a\n": _png_size,
    b"\xff\xd8": _jpeg_size,
    b"BM": _bmp_size,
    b"RIFF": _webp_size,
    b"II*\0": _tiff_size,
    b"II+\0": _tiff_size,
    b"MM\0*": _tiff_size,
    b"MM\0+": _tiff_size,
}
