"""Peak memory of reading pictures that are made to exhaust it.

    python -m benchmarks.hostile_pictures

A line for each picture of ``PICTURES``: the bytes of the file, the growth of the peak
memory and the processor seconds of describing it and making a thumbnail, and the error
if it is refused.  Each is read in a process of its own, with everything loaded.
"""

from __future__ import annotations

import io
import os
import pickle
import resource
import struct
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np


class Reading(NamedTuple):
    """Growth of the peak memory in MB, processor seconds, and the error or ""."""

    megabytes: float
    seconds: float
    problem: str


# Files ----------------------------------------------------------------------------


def _chunk(kind: bytes, data: bytes) -> bytes:
    """Return a chunk of a PNG file."""
    check = struct.pack(">I", zlib.crc32(kind + data))
    return struct.pack(">I", len(data)) + kind + data + check


def png(
    width: int,
    height: int,
    bits: int = 8,
    colour: int = 2,
    rows: int | None = None,
    interlaced: bool = False,
    extra: bytes = b"",
) -> bytes:
    """Return a PNG file of zeros, with only the first ``rows`` of its rows."""
    layers = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    row = bytes(1 + -(-width * layers * bits // 8))
    packer, packed = zlib.compressobj(6), []
    for _ in range(height if rows is None else rows):
        packed.append(packer.compress(row))
    data = b"".join([*packed, packer.flush()])
    header = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, interlaced)
    palette = _chunk(b"PLTE", bytes(range(6))) if colour == 3 else b""
    body = [_chunk(b"IHDR", header), extra, palette, _chunk(b"IDAT", data)]
    return b"\x89PNG\r\n\x1a\n" + b"".join(body) + _chunk(b"IEND", b"")


def jpeg_of(width: int, height: int) -> bytes:
    """Return a JPEG file whose header declares a size, with the data of 16 pixels."""
    data = saved("JPEG", 4, 4)
    place = data.index(b"\xff\xc0") + 5
    return data[:place] + struct.pack(">HH", height, width) + data[place + 4 :]


def bmp_of(width: int, height: int) -> bytes:
    """Return a BMP file whose header declares a size, with the data of 16 pixels."""
    data = saved("BMP", 4, 4)
    return data[:18] + struct.pack("<ii", width, height) + data[26:]


def webp_of(width: int, height: int) -> bytes:
    """Return a WebP file whose header declares a size, with the data of 16 pixels."""
    data = saved("WEBP", 4, 4, lossless=False)
    place = data.index(b"VP8 ") + 14
    return data[:place] + struct.pack("<HH", width, height) + data[place + 4 :]


def tiff_of(**tags: int) -> bytes:
    """Return a TIFF file of one grey pixel with other values of tags, by ``tN``."""
    values = {256: 1, 257: 1, 258: 8, 259: 1, 262: 1, 273: 8, 277: 1, 278: 1, 279: 1}
    values |= {int(name[1:]): value for name, value in tags.items()}
    entries = b"".join(
        struct.pack("<HHII", tag, 4, 1, value) for tag, value in sorted(values.items())
    )
    head = b"II*\0" + struct.pack("<I", 16) + bytes(8)
    return head + struct.pack("<H", len(values)) + entries + bytes(4)


def saved(
    kind: str, width: int, height: int, mode: str = "RGB", **options: object
) -> bytes:
    """Return a black picture as Pillow saves it."""
    from PIL import Image

    file = io.BytesIO()
    Image.new(mode, (width, height)).save(file, kind, **options)
    return file.getvalue()


def frames(kind: str, n_frames: int, side: int) -> bytes:
    """Return an animated picture, or one of many pages."""
    from PIL import Image

    images = [Image.new("RGB", (side, side), (k % 256, 0, 0)) for k in range(n_frames)]
    file = io.BytesIO()
    images[0].save(file, kind, save_all=True, append_images=images[1:])
    return file.getvalue()


def _text_bomb() -> bytes:
    """Return a chunk of a PNG file with 500 MB of compressed text."""
    packer = zlib.compressobj(9)
    packed = [packer.compress(bytes(2**20)) for _ in range(500)]
    return _chunk(b"zTXt", b"a\0\0" + b"".join(packed) + packer.flush())


#: Files by name, each with the suffix that it gets.
PICTURES: dict[str, tuple[str, Callable[[], bytes]]] = {
    "1 x 20,000": (".png", lambda: png(1, 20_000)),
    "20,000 x 1": (".png", lambda: png(20_000, 1)),
    "1 x 65,000": (".jpg", lambda: saved("JPEG", 1, 65_000)),
    "65,000 x 1": (".jpg", lambda: saved("JPEG", 65_000, 1)),
    "2 x 1,000,000": (".png", lambda: png(2, 1_000_000)),
    "63 x 1,000,000": (".png", lambda: png(63, 1_000_000, bits=1, colour=0)),
    "largest PNG declared": (".png", lambda: png(2**31 - 1, 2**31 - 1, rows=0)),
    "bomb of one bit": (".png", lambda: png(30_000, 30_000, bits=1, colour=0)),
    "largest decoded": (".png", lambda: png(8192, 8192)),
    "largest of 16 bits": (".png", lambda: png(8192, 8192, bits=16, colour=6)),
    "largest interlaced": (
        ".png",
        lambda: png(8192, 8192, colour=0, interlaced=True, rows=20_000),
    ),
    "rows of other data": (".png", lambda: png(8192, 8192, rows=1)),
    "grey with opacity": (".png", lambda: png(4000, 4000, colour=4)),
    "palette": (
        ".png",
        lambda: png(4000, 4000, colour=3, extra=b""),
    ),
    "text bomb": (".png", lambda: png(4, 4, extra=_text_bomb())),
    "truncated PNG": (".png", lambda: png(4000, 4000)[:2000]),
    "largest JPEG declared": (".jpg", lambda: jpeg_of(65_500, 65_500)),
    "JPEG of other data": (".jpg", lambda: jpeg_of(8191, 8191)),
    "largest progressive": (
        ".jpg",
        lambda: saved("JPEG", 8192, 8192, progressive=True),
    ),
    "CMYK": (".jpg", lambda: saved("JPEG", 4000, 4000, "CMYK")),
    "truncated JPEG": (".jpg", lambda: saved("JPEG", 4000, 4000)[:5000]),
    "JPEG of no frame": (".jpg", lambda: b"\xff\xd8" + b"\xff\xe0\x00\x02" * 100_000),
    "JPEG of fill bytes": (".jpg", lambda: b"\xff\xd8" + b"\xff" * 1_000_000),
    "largest BMP declared": (".bmp", lambda: bmp_of(2**31 - 1, -(2**31))),
    "BMP of other data": (".bmp", lambda: bmp_of(8192, -8192)),
    "largest WebP declared": (".webp", lambda: webp_of(16_383, 16_383)),
    "WebP of other data": (".webp", lambda: webp_of(8192, 8192)),
    "animated WebP": (".webp", lambda: frames("WEBP", 100, 500)),
    "animated PNG": (".png", lambda: frames("PNG", 100, 500)),
    "GIF under another suffix": (".png", lambda: frames("GIF", 100, 500)),
    "largest TIFF declared": (".tif", lambda: tiff_of(t256=2**31, t257=2**31)),
    "TIFF of large tiles": (".tif", lambda: tiff_of(t322=65_536, t323=65_536)),
    "TIFF of many rows": (".tif", lambda: tiff_of(t278=2**30)),
    "TIFF of many layers": (
        ".tif",
        lambda: tiff_of(t256=8192, t257=8192, t277=60_000),
    ),
    "TIFF of many pages": (".tif", lambda: frames("TIFF", 1000, 100)),
    "TIFF of a loop": (".tif", lambda: tiff_of()[:-4] + struct.pack("<I", 16)),
    "empty": (".png", lambda: b""),
    "text": (".jpg", lambda: b"not a picture\n" * 1000),
}


# Measuring ------------------------------------------------------------------------


def read_file(path: Path) -> None:
    """Describe a picture, and make its thumbnail."""
    from variegate.material.pictures import describe_picture, read_picture, thumbnail

    picture = read_picture(path)
    describe_picture(picture)
    thumbnail(picture, 640)


def measure(path: Path) -> Reading:
    """Read a picture in a forked process; a killed one has "killed" as its problem."""
    receiving, sending = os.pipe()
    child = os.fork()
    if not child:
        os.close(receiving)
        # A pipe in place of a terminal for the decoders' remarks.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        # The peak of this process begins with the memory that it has.
        Path("/proc/self/clear_refs").write_text("5")
        before, start, problem = _peak(), os.times().user, ""
        try:
            read_file(path)
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
        reading = Reading(_peak() - before, os.times().user - start, problem)
        with os.fdopen(sending, "wb") as file:
            pickle.dump(reading, file)
        os._exit(0)
    os.close(sending)
    with os.fdopen(receiving, "rb") as file:
        data = file.read()
    os.waitpid(child, 0)
    return pickle.loads(data) if data else Reading(np.nan, np.nan, "killed")


def _peak() -> float:
    """Return the peak memory of this process in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Print a line for every picture, and the largest peak."""
    print(f"{'picture':26} {'kB':>8} {'MB':>7} {'s':>6}")
    largest = 0.0
    with tempfile.TemporaryDirectory() as name:
        warm = Path(name) / "warm.png"
        warm.write_bytes(png(300, 200))
        read_file(warm)
        for picture, (suffix, make) in PICTURES.items():
            path = Path(name) / f"picture{suffix}"
            path.write_bytes(make())
            found, kb = measure(path), path.stat().st_size // 1000
            largest = max(largest, found.megabytes)
            numbers = f"{kb:8} {found.megabytes:7.0f} {found.seconds:6.2f}"
            print(f"{picture:26} {numbers}  {found.problem:.80}", flush=True)
    print(f"largest peak: {largest:.0f} MB")


if __name__ == "__main__":
    main()
