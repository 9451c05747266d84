"""Draw key frames side by side in one picture, each with its time beneath.

Pictures are arrays of shape (height, width, 3), red, green and blue, 0 to 255.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from variegate.video.picture import check_image
from variegate.video.reading import Picture, cv2, time_label
from variegate.video.summary import Keyframe

# Red, green and blue.
_PAPER = (253, 252, 250)  # ground
_INK = (34, 33, 31)  # times
_QUIET = (101, 97, 90)  # numbers of frames
_RULE = (221, 216, 208)  # lines
_BARS = (238, 235, 230)  # beside a picture of another shape

# Pixels.
_GAP = 16  # between pictures; twice as many at the edge of the sheet
_NARROWEST = 80  # width of a picture with a readable label
_NARROW = 104  # width of a picture where the number of columns is not given
_LINE = 18  # from one line of a label to the next


def encode_png(image: Picture) -> bytes:
    """Return a picture (red, green and blue, 0 to 255) as the bytes of a PNG file."""
    return _encoded(image, ".png", [])


def encode_jpeg(image: Picture, quality: int = 85) -> bytes:
    """Return a picture as the bytes of a JPEG file, of a quality from 1 to 100."""
    return _encoded(image, ".jpg", [cv2.IMWRITE_JPEG_QUALITY, quality])


def _encoded(image: Picture, suffix: str, settings: list[int]) -> bytes:
    check_image(image)
    # OpenCV writes blue first.
    blue_first = np.ascontiguousarray(image[:, :, ::-1])
    return cv2.imencode(suffix, blue_first, settings)[1].tobytes()


def storyboard(
    keyframes: Sequence[Keyframe], columns: int | None = None, width: int = 1280
) -> Picture:
    """Put key frames on one sheet, row by row in the order of their times.

    All pictures get boxes of one size, with the median shape of the pictures; one of
    another shape is fitted into its box, not stretched.  Beneath are its time and its
    frame number.  A single small picture is not enlarged to the width of the sheet.

    Without a number of columns the sheet, ``width`` pixels across, is about as many
    pictures high as wide, as long as they are wide enough for their labels.
    """
    for keyframe in keyframes:
        check_image(keyframe.image)
    ordered = sorted(keyframes, key=lambda keyframe: keyframe.time)
    aspect = usual_aspect(ordered)
    if columns is None:
        # As many as rows, or more if pictures are upright.
        columns = math.ceil(math.sqrt(len(ordered) / min(1.0, aspect)))
        most = (width - 3 * _GAP) // (_NARROW + _GAP)
        columns = max(1, min(columns, len(ordered), most))
    if columns < 1:
        raise ValueError(f"columns is the number of pictures in a row, got {columns}")
    column = (width - 3 * _GAP) // columns - _GAP
    if column < _NARROWEST:
        raise ValueError(
            f"in a width of {width}, each of {columns} columns has {max(column, 0)} "
            f"pixels, but a label needs {_NARROWEST}; take fewer columns or more width"
        )
    largest = max(width // 2, *(k.image.shape[1] for k in ordered))
    # A sheet of one upright picture is not much higher than wide.
    cell_width = max(1, min(column, largest, round(aspect * width)))
    cell = _Cell(ordered, cell_width, aspect)
    step = cell.total_height + _GAP
    sheet = _ground(math.ceil(len(ordered) / columns) * step + 3 * _GAP, width)
    margin = (width - columns * (column + _GAP) + _GAP) // 2
    for place, keyframe in enumerate(ordered):
        row, across = divmod(place, columns)
        left = margin + across * (column + _GAP) + (column - cell_width) // 2
        _put(sheet, cell.draw(keyframe), 2 * _GAP + row * step, left)
    return sheet


class _Cell:
    """A box of ``width`` by ``height`` for a picture, and its label beneath."""

    def __init__(
        self, keyframes: Sequence[Keyframe], width: int, aspect: float
    ) -> None:
        one_line = max(
            _text_width(time_label(k.time), bold=True)
            + _text_width(f"frame {k.number}")
            for k in keyframes
        )
        self.width, self.height = width, max(1, round(width / aspect))
        self.n_lines = 2 if one_line + _GAP // 2 > width else 1
        self.total_height = self.height + self.n_lines * _LINE + 8

    def draw(self, keyframe: Keyframe) -> Picture:
        cell = _ground(self.total_height, self.width)
        box = cell[: self.height]
        box[:] = _BARS
        picture = fitted(keyframe.image, self.width, self.height)
        height, width = picture.shape[:2]
        _put(box, picture, (self.height - height) // 2, (self.width - width) // 2)
        # The line separates a white picture from the ground.
        cv2.rectangle(box, (0, 0), (self.width - 1, self.height - 1), _RULE)
        time, line, start = time_label(keyframe.time), self.height + _LINE, 0
        _write(cell, time, (0, line), self.width, bold=True)
        if self.n_lines == 1:
            start = _text_width(time, bold=True) + _GAP // 2
        where = (start, line + (self.n_lines - 1) * _LINE)
        _write(cell, f"frame {keyframe.number}", where, self.width - start)
        return cell


def _put(ground: Picture, picture: Picture, top: int, left: int) -> None:
    height, width = picture.shape[:2]
    ground[top : top + height, left : left + width] = picture


def _ground(height: int, width: int) -> Picture:
    return np.full((height, width, 3), _PAPER, dtype=np.uint8)


def usual_aspect(keyframes: Sequence[Keyframe]) -> float:
    """Return the upper median of width over height."""
    if not keyframes:
        raise ValueError("a storyboard needs at least one key frame")
    ratios = sorted(float(k.image.shape[1] / k.image.shape[0]) for k in keyframes)
    return ratios[len(ratios) // 2]


def fitted(image: Picture, width: int, height: int) -> Picture:
    """Return a picture in the largest size that fits, without change of its shape."""
    scale = min(width / image.shape[1], height / image.shape[0])
    across = min(width, max(1, round(scale * image.shape[1])))
    down = min(height, max(1, round(scale * image.shape[0])))
    method = cv2.INTER_AREA if scale < 1.0 else cv2.INTER_CUBIC
    # OpenCV takes no views with reversed axes.
    picture = np.ascontiguousarray(image)
    return np.asarray(cv2.resize(picture, (across, down), interpolation=method))


def _font(bold: bool) -> int:
    return cv2.FONT_HERSHEY_DUPLEX if bold else cv2.FONT_HERSHEY_SIMPLEX


def _text_width(text: str, bold: bool = False, scale: float = 0.5) -> int:
    # The fonts of OpenCV 4 and 5 are of different widths.
    return int(cv2.getTextSize(text, _font(bold), scale, 1)[0][0])


def _write(
    ground: Picture, text: str, where: tuple[int, int], width: int, bold: bool = False
) -> None:
    """Write a line into a picture, smaller if it would be wider than ``width``."""
    scale = 0.5
    while scale > 0.3 and _text_width(text, bold, scale) > width:
        scale -= 0.02
    colour: Any = _INK if bold else _QUIET
    cv2.putText(ground, text, where, _font(bold), scale, colour, 1, cv2.LINE_AA)
