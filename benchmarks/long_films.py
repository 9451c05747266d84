"""Memory and CPU time that key frames of long films take, with and without segments.

    python -m benchmarks.long_films [--data DIR] [--minutes 10 30 120]

Films are made of the short clips of the data: each clip again and again, every time
with another brightness, crop, mirroring and colour, 160 x 120 pixels at 5 frames a
second, in a temporary folder.  Every measurement is a process of its own, which writes
the whole result folder of ``variegate keyframes``.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from paper.held_out import find_folder
from paper.text_tables import markdown_table

SIZE = (160, 120)
RATE = 5.0

Pictures = list[NDArray[np.uint8]]


def read_clip(path: Path) -> Pictures:
    """Return the pictures of a clip, five a second, a little larger than a film's."""
    capture = cv2.VideoCapture(str(path))
    step = capture.get(cv2.CAP_PROP_FPS) / RATE
    pictures: Pictures = []
    number = 0
    while capture.grab():
        if number >= len(pictures) * step:
            image = capture.retrieve()[1]
            larger = (SIZE[0] * 5 // 4, SIZE[1] * 5 // 4)
            pictures.append(np.asarray(cv2.resize(image, larger), dtype=np.uint8))
        number += 1
    capture.release()
    return pictures


def write_film(path: Path, clips: list[Pictures], minutes: float, seed: int) -> None:
    """Write a film of a length, of clips that are changed each time."""
    rng = np.random.default_rng(seed)
    code = cv2.VideoWriter.fourcc(*"MJPG")
    writer = cv2.VideoWriter(str(path), code, RATE, SIZE)
    left = round(60.0 * minutes * RATE)
    while left > 0:
        clip = clips[rng.integers(len(clips))]
        top, left_edge = (rng.integers(side // 4) for side in SIZE[::-1])
        gain, turn = rng.uniform(0.7, 1.3), rng.permutation(3)
        mirror = rng.random() < 0.5
        for picture in clip[:left]:
            part = picture[top : top + SIZE[1], left_edge : left_edge + SIZE[0], turn]
            part = part[:, ::-1] if mirror else part
            bright = np.clip(gain * part, 0.0, 255.0).astype(np.uint8)
            writer.write(np.ascontiguousarray(bright))
        left -= len(clip)
    writer.release()


def measure(film: Path, out: Path, options: list[str]) -> None:
    """Choose key frames by the command; print memory, time and counts as JSON."""
    from variegate.cli.app import app

    arguments = [str(film), "-o", str(out), "--json", "--force", *options]
    app(["keyframes", *arguments], standalone_mode=False)
    used = resource.getrusage(resource.RUSAGE_SELF)
    measured = {"mb": used.ru_maxrss / 1024, "cpu": used.ru_utime + used.ru_stime}
    print("\n" + json.dumps(measured))


def run(film: Path, out: Path, options: list[str]) -> tuple[str, ...]:
    """Return the cells of a row: memory, CPU time, candidates and key frames."""
    command = [sys.executable, "-m", "benchmarks.long_films", "--measure", str(film)]
    done = subprocess.run(
        [*command, str(out), *options], capture_output=True, text=True, check=True
    )
    report, _, measured = done.stdout.strip().rpartition("\n")
    (video,) = json.loads(report)
    numbers = json.loads(measured)
    return (
        f"{numbers['mb']:.0f}",
        f"{numbers['cpu']:.0f}",
        f"{len(video['candidates']):,}",
        f"{len(video['keyframes']):,}",
    )


def main() -> None:
    """Print a row for every film and way to choose."""
    if sys.argv[1:2] == ["--measure"]:
        measure(Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:])
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--minutes", type=float, nargs="+", default=[10, 30, 120])
    options = parser.parse_args()
    folder = find_folder(options.data, "moviepy_chaplin.mp4", ["video/clips", "clips"])
    clips = [read_clip(path) for path in sorted(folder.iterdir())]
    ways = [["--sequential"], ["--sequential", "--max", "60"], []]
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        films = [Path(temporary) / f"{k}.avi" for k in range(len(options.minutes))]
        for film, minutes in zip(films, options.minutes, strict=True):
            write_film(film, clips, minutes, seed=0)
        for way in ways:
            name = " ".join(way) or "all candidates at once"
            for film, minutes in zip(films, options.minutes, strict=True):
                cells = run(film, Path(temporary) / "out", way)
                rows.append((f"{minutes:g}", name, *cells))
                print(f"{minutes:g} minutes, {name}: {' '.join(cells)}", flush=True)
    header = ("minutes", "choice", "peak MB", "CPU s", "candidates", "key frames")
    print(markdown_table(header, rows))


if __name__ == "__main__":
    main()
