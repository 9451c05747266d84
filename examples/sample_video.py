"""A video made by code, with known scenes: for the page on key frames and for tests.

``python examples/sample_video.py sample.mp4`` writes one and prints when its
scenes begin and end.

A scene is one large picture, the canvas, drawn once.  Every pixel of it belongs to
one of three areas, which look like a landscape, a town, a close-up of round things or
a map of coloured patches.  Each area has one hue, and no two scenes have the same
three.  A camera moves slowly over the canvas while one or two objects cross the
frame.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import permutations
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from variegate._random import as_generator
from variegate.video.picture import N_BINS
from variegate.video.reading import require_cv2

__all__ = ["Scene", "write_sample_video"]

#: Codecs that OpenCV's wheels bring along, by the suffix of the file.
_CODECS = {".mp4": "mp4v", ".avi": "MJPG"}

#: Seconds of black between some scenes.
_GAP = 1.0

#: The longest scene lasts so many times as long as the shortest.
_LONGEST = 10.0

#: Mean seconds of a scene; with fewer, the shortest would have less than one second.
_MEAN_LENGTH = 5.0

#: Shares of the three areas in a frame, nearly the same in every layout.
_SHARES = (0.42, 0.33, 0.25)

#: Width and height of the canvas in frames, and how far the camera zooms.
_CANVAS = (2.2, 1.15)
_ZOOM = (0.9, 1.1)

_Floats = NDArray[np.float64]
_Image = NDArray[np.uint8]


@dataclass(frozen=True)
class Scene:
    """One stretch of a sample video.

    Attributes
    ----------
    start, end : float
        Seconds from the start of the video; the frame at ``end`` is the next one's.
    kind : {"scene", "black"}
    scene : int or None
        Which scene is seen, from 0.  A scene that returns has the same number twice,
        and black has none.
    """

    start: float
    end: float
    kind: Literal["scene", "black"]
    scene: int | None = None


def write_sample_video(
    path: str | PathLike[str],
    duration: float = 180.0,
    size: tuple[int, int] = (352, 240),
    rate: float = 25.0,
    n_scenes: int = 12,
    random_state: int | np.random.Generator | None = 0,
) -> list[Scene]:
    """Write a video of different scenes, and return when each is seen.

    The longest scene lasts ten times as long as the shortest; with the defaults, they
    last 33 and 3 seconds.  The video begins with a second of black, and there are at
    least two more such gaps between scenes.  One scene is seen twice, with others
    between, from another place of the camera.  One canvas is held at a time, so that
    memory does not grow with the duration.

    The hue histograms of frames of two scenes are more than 0.5 apart (sum of absolute
    differences), and mostly those of one scene are less.  With more than about 60
    scenes, a few pairs are closer, for lack of hues.

    Parameters
    ----------
    path : str or path
        A file that ends in ``.mp4`` (MPEG-4) or ``.avi`` (Motion JPEG).  An older
        file of that name is replaced.
    duration : float
        Seconds, at least 5 for each scene on average, and 1 for each gap.
    size : (width, height)
        Pixels, even numbers of at least 32.
    rate : float
        Frames a second, from 1 to 120.
    n_scenes : int
        Different scenes, at least 2.
    random_state : int, generator or None
        The same seed gives the same video.

    Returns
    -------
    list of Scene
        In order of time and without holes, from 0 to the end.

    Raises
    ------
    ValueError
        If an argument is out of range.
    OSError
        If the folder is missing or the file cannot be written.
    """
    file = Path(path)
    _check(file, size, rate, n_scenes)
    rng = as_generator(random_state)
    scenes = _timetable(duration, rate, n_scenes, rng)
    require_cv2()
    import cv2

    writer = cv2.VideoWriter(
        str(file), cv2.VideoWriter.fourcc(*_CODECS[file.suffix.lower()]), rate, size
    )
    try:
        if not writer.isOpened():
            raise OSError(f"{file} cannot be written as a video; try another suffix")
        for image in _images(scenes, size, rate, n_scenes, rng):
            writer.write(image)
    finally:
        writer.release()
    return scenes


def _check(file: Path, size: tuple[int, int], rate: float, n_scenes: int) -> None:
    if file.suffix.lower() not in _CODECS:
        raise ValueError(
            f"a sample video ends in {' or '.join(_CODECS)}, got {file.name!r}"
        )
    if not file.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {file.parent}; make it first")
    whole = len(size) == 2 and all(isinstance(side, Integral) for side in size)
    if not whole or any(side < 32 or side % 2 for side in size):
        raise ValueError(
            f"size is the width and height, even numbers of at least 32, got {size}"
        )
    if not 1.0 <= rate <= 120.0:
        raise ValueError(f"rate is the frames a second, from 1 to 120, got {rate}")
    if not isinstance(n_scenes, Integral) or n_scenes < 2:
        raise ValueError(
            f"n_scenes must be a whole number of at least 2, got {n_scenes}"
        )


def _timetable(
    duration: float, rate: float, n_scenes: int, rng: np.random.Generator
) -> list[Scene]:
    """Return what is seen when, in whole frames."""
    n_shown = n_scenes + 1
    n_gaps = max(3, n_shown // 4)
    needed = n_shown * _MEAN_LENGTH + n_gaps * _GAP
    if not needed <= duration < math.inf:
        raise ValueError(
            f"{n_scenes} scenes need a duration of at least {needed:.0f} seconds, "
            f"got {duration}"
        )
    shown = list(range(n_scenes))
    again = int(rng.integers(n_scenes // 2))
    shown.insert(int(rng.integers(again + 2, n_shown)), again)
    weights = rng.permutation(np.geomspace(1.0, _LONGEST, n_shown))
    lengths = weights / weights.sum() * (duration - n_gaps * _GAP)
    gaps = {0, *(1 + rng.choice(n_shown - 1, n_gaps - 1, replace=False)).tolist()}

    stretches: list[tuple[float, int | None]] = []
    for position, (number, length) in enumerate(zip(shown, lengths, strict=True)):
        if position in gaps:
            stretches.append((_GAP, None))
        stretches.append((float(length), number))
    ends = np.cumsum([length for length, _ in stretches])
    frames = np.floor(ends * rate + 0.5) / rate
    starts = [0.0, *frames[:-1].tolist()]
    return [
        Scene(start, end, "black" if number is None else "scene", number)
        for start, end, (_, number) in zip(
            starts, frames.tolist(), stretches, strict=True
        )
    ]


def _images(
    scenes: list[Scene],
    size: tuple[int, int],
    rate: float,
    n_scenes: int,
    rng: np.random.Generator,
) -> Iterator[_Image]:
    """Yield the frames of the video, blue, green and red, as OpenCV writes them."""
    palettes = _palettes(n_scenes, rng)
    # A scene that returns is drawn anew from its seed, and need not be kept.
    seeds = rng.integers(2**63, size=n_scenes)
    width, height = size
    noise = np.rint(rng.normal(0.0, 2.0, (height + 16, width + 16, 3))).astype(np.int8)
    for scene in scenes:
        n_frames = round((scene.end - scene.start) * rate)
        if scene.scene is None:
            for _ in range(n_frames):
                yield np.zeros((height, width, 3), dtype=np.uint8)
            continue
        hues = palettes[scene.scene]
        layout = _LAYOUTS[scene.scene % len(_LAYOUTS)]
        canvas = _canvas(size, hues, layout, np.random.default_rng(seeds[scene.scene]))
        yield from _filmed(canvas, size, hues, n_frames, rate, noise, rng)


def _palettes(n_scenes: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return three hues in degrees for each scene, far from those of the others.

    Each scene takes, of all triples of bins, one whose expected histogram is farthest
    from the nearest one taken before.
    """
    triples = np.array(
        [
            triple
            for triple in permutations(range(N_BINS), 3)
            if all(
                2 <= (one - other) % N_BINS <= N_BINS - 2
                for one, other in permutations(triple, 2)
            )
        ]
    )
    histograms = np.zeros((len(triples), N_BINS))
    np.put_along_axis(histograms, triples, np.array([_SHARES]), axis=1)
    nearest = np.full(len(triples), 2.0)
    chosen = []
    for _ in range(n_scenes):
        pick = rng.choice(np.flatnonzero(nearest > nearest.max() - 1e-9))
        distances = np.abs(histograms - histograms[pick]).sum(axis=1)
        nearest = np.minimum(nearest, distances)
        chosen.append(triples[pick])
    # Bins hold 16 of the 255 values into which 360 degrees are cut.
    return np.asarray((np.array(chosen) + 0.5) * 16 * 360 / 255)


def _canvas(
    size: tuple[int, int],
    hues: _Floats,
    layout: Callable[[int, int, float, np.random.Generator], tuple[_Image, _Floats]],
    rng: np.random.Generator,
) -> _Image:
    """Return the picture of a scene, larger than a frame."""
    import cv2

    unit = float(size[1])
    width, height = (math.ceil(c * s) for c, s in zip(_CANVAS, size, strict=True))
    areas, light = layout(width, height, unit, rng)
    coarse = _texture(width, height, unit / 2, rng)
    fine = _texture(width, height, unit / 10, rng) + _texture(
        width, height, max(unit / 60, 1.5), rng
    )
    # Areas darken towards their edges, which gives them depth.
    relief = np.zeros((height, width))
    for area in range(3):
        inside = (areas == area).astype(np.uint8)
        depth = cv2.distanceTransform(inside, cv2.DIST_L2, 3) / (0.12 * unit)
        relief += inside * np.minimum(depth, 1.0)
    # Some areas are smooth, as the sky, and others rough.
    fine *= rng.permutation([0.1, 0.5, 1.0])[areas]
    saturation = rng.uniform(0.45, 0.75, 3)[areas] + 0.06 * fine + 0.06 * coarse
    value = rng.permutation([0.55, 0.7, 0.85])[areas]
    top, bottom = rng.permutation([0.85, 1.2])
    slope = np.linspace(top, bottom, height)[:, None]
    value = value * light * slope * (0.75 + 0.25 * relief)
    value = value * (1.0 + 0.12 * coarse + 0.14 * fine)
    # Hues stay within 8 degrees: a bin has 22.
    colours = np.dstack(
        [
            (hues[areas] + 5.0 * coarse + 1.5 * fine) % 360.0,
            np.clip(saturation, 0.35, 0.9),
            np.clip(value, 0.25, 1.0),
        ]
    ).astype(np.float32)
    painted = cv2.cvtColor(colours, cv2.COLOR_HSV2BGR)
    return np.asarray(cv2.GaussianBlur(painted, (3, 3), 0.6) * 255.0, dtype=np.uint8)


def _texture(
    width: int, height: int, grain: float, rng: np.random.Generator
) -> _Floats:
    """Return smooth noise from -1 to 1 with patches of about ``grain`` pixels."""
    import cv2

    shape = (math.ceil(height / grain) + 1, math.ceil(width / grain) + 1)
    noise = rng.uniform(-1.0, 1.0, shape)
    smooth = cv2.resize(noise, (width, height), interpolation=cv2.INTER_CUBIC)
    return np.clip(np.asarray(smooth, dtype=np.float64), -1.0, 1.0)


def _landscape(
    width: int, height: int, unit: float, rng: np.random.Generator
) -> tuple[_Image, _Floats]:
    """Lay out a sky, hills and the ground before them."""
    rows = np.arange(height)[:, None]
    areas = np.zeros((height, width), dtype=np.uint8)
    for area, level, rise in ((1, 0.42, 0.12), (2, 0.75, 0.05)):
        line = np.full(width, level * height)
        # Waves shorter than a frame keep the shares the same wherever one looks.
        for wave in (0.9, 0.5, 0.23, 0.11):
            turns = np.arange(width) / (wave * unit) + rng.random()
            line += rise * wave * unit * np.sin(2.0 * np.pi * turns)
        areas[rows > line] = area
    return areas, np.ones((height, width))


def _town(
    width: int, height: int, unit: float, rng: np.random.Generator
) -> tuple[_Image, _Floats]:
    """Lay out houses with windows between the sky and a street."""
    areas = np.zeros((height, width), dtype=np.uint8)
    light = np.ones((height, width))
    street = round(0.75 * height)
    areas[street:] = 2
    step = max(unit / 16, 3.0)
    left, tall = 0, bool(rng.integers(2))
    while left < width:
        right = left + round(unit * rng.uniform(0.22, 0.36))
        # Tall houses and low ones take turns.
        top = round(height * ((0.27 if tall else 0.52) + rng.uniform(-0.06, 0.06)))
        areas[top:street, left:right] = 1
        light[top:street, left:right] = rng.uniform(0.8, 1.1)
        for y in np.arange(top + step / 2, street - step, step):
            for x in np.arange(left + step / 2, min(right, width) - step, step):
                pane = np.s_[int(y) : int(y + step / 2), int(x) : int(x + step / 2)]
                light[pane] = rng.choice([0.55, 1.5])
        left, tall = right, not tall
    return areas, light


def _round_things(
    width: int, height: int, unit: float, rng: np.random.Generator
) -> tuple[_Image, _Floats]:
    """Lay out discs of two colours, like fruit or flowers seen from near."""
    import cv2

    areas = np.zeros((height, width), dtype=np.uint8)
    light = np.ones((height, width))
    cell = 0.3 * unit
    for row in range(-1, math.ceil(height / cell) + 1):
        for column in range(-1, math.ceil(width / cell) + 1):
            area = 1 + (row + column) % 2
            radius = cell * math.sqrt(2.0 * _SHARES[area] / np.pi)
            radius *= rng.uniform(0.85, 1.1)
            x, y = cell * (np.array([column, row]) + rng.uniform(0.35, 0.65, 2))
            centre, axes = (round(x), round(y)), (round(radius), round(0.88 * radius))
            angle = rng.uniform(0.0, 180.0)
            cv2.ellipse(areas, centre, axes, angle, 0.0, 360.0, (area,), -1)
            brightness = rng.uniform(0.85, 1.15)
            cv2.ellipse(light, centre, axes, angle, 0.0, 360.0, (brightness,), -1)
    return areas, light


def _patches(
    width: int, height: int, unit: float, rng: np.random.Generator
) -> tuple[_Image, _Floats]:
    """Lay out patches of three colours, like fields seen from the air."""
    heights = _texture(width, height, 0.28 * unit, rng)
    heights += 0.25 * _texture(width, height, 0.08 * unit, rng)
    limits = np.quantile(heights, np.cumsum(_SHARES[:2]))
    return np.digitize(heights, limits).astype(np.uint8), np.ones((height, width))


_LAYOUTS = (_landscape, _town, _round_things, _patches)


def _filmed(
    canvas: _Image,
    size: tuple[int, int],
    hues: _Floats,
    n_frames: int,
    rate: float,
    noise: NDArray[np.int8],
    rng: np.random.Generator,
) -> Iterator[_Image]:
    """Move a camera over the canvas, and objects through its view."""
    import cv2

    width, height = size
    # The view is larger than a frame by 1 / zoom, and stays on the canvas.
    low, high = _ZOOM
    zooms = low + (high - low) * _drift(n_frames / rate, n_frames, rng)
    room = np.array(canvas.shape[1::-1]) - np.array(size) / zooms
    corners = room * np.hstack([_drift(n_frames / rate, n_frames, rng) for _ in size])
    movers = [_Mover.random(size, hues, rng) for _ in range(rng.integers(1, 3))]
    shifts = rng.integers(17, size=(n_frames, 2))
    for number, ((zoom,), (x, y)) in enumerate(zip(zooms, corners, strict=True)):
        view = np.array([[1.0 / zoom, 0.0, x], [0.0, 1.0 / zoom, y]])
        image = cv2.warpAffine(
            canvas,
            view,
            size,
            flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
            borderMode=cv2.BORDER_REPLICATE,
        )
        for mover in movers:
            mover.draw(np.asarray(image, dtype=np.uint8), number / rate)
        down, right = shifts[number]
        grain = noise[down : down + height, right : right + width]
        yield np.asarray(cv2.add(image, grain, dtype=cv2.CV_8U), dtype=np.uint8)


def _drift(seconds: float, n_frames: int, rng: np.random.Generator) -> _Floats:
    """Return a slow way within 0 to 1, as a column with one row a frame."""
    start, goal = rng.random(2)
    end = start + np.clip(goal - start, -0.06 * seconds, 0.06 * seconds)
    return np.asarray(np.linspace(start, end, n_frames)[:, None])


@dataclass(frozen=True)
class _Mover:
    """A figure of a body and a head that crosses the view again and again."""

    size: tuple[int, int]
    radius: float
    level: float
    speed: float
    phase: float
    colours: tuple[tuple[float, ...], ...]

    @classmethod
    def random(
        cls, size: tuple[int, int], hues: _Floats, rng: np.random.Generator
    ) -> _Mover:
        import cv2

        # In the scene's own hues, so that its histogram hardly changes.
        hue = rng.choice(hues)
        paints = np.array([[[hue, 0.85, 0.95], [hue, 0.6, 0.4]]], dtype=np.float32)
        colours = 255.0 * np.asarray(cv2.cvtColor(paints, cv2.COLOR_HSV2BGR))[0]
        return cls(
            size=size,
            radius=size[1] * rng.uniform(0.05, 0.09),
            level=rng.uniform(0.45, 0.8),
            speed=rng.choice([-1.0, 1.0]) * rng.uniform(0.06, 0.15),
            phase=rng.random(),
            colours=tuple(map(tuple, colours.tolist())),
        )

    def draw(self, image: _Image, time: float) -> None:
        """Draw the figure into an image, as it stands after so many seconds."""
        import cv2

        width, height = self.size
        # The way is a little wider than the view: figures leave and come back.
        x = ((self.phase + self.speed * time) % 1.0 * 1.3 - 0.15) * width
        y = (self.level + 0.02 * math.sin(5.0 * time)) * height
        bright, dark = self.colours
        r = self.radius
        for down, across, tall, colour in (
            (0.0, 0.75, 1.4, dark),
            (-0.1, 0.6, 1.2, bright),
            (-1.7, 0.5, 0.5, dark),
            (-1.7, 0.36, 0.36, bright),
        ):
            # OpenCV takes whole numbers, here of sixteenths of a pixel.
            centre = (round(16 * x), round(16 * (y + down * r)))
            axes = (round(16 * across * r), round(16 * tall * r))
            cv2.ellipse(
                image, centre, axes, 0.0, 0.0, 360.0, colour, -1, cv2.LINE_AA, 4
            )


if __name__ == "__main__":
    for scene in write_sample_video(sys.argv[1]):
        print(scene)
