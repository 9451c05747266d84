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
    return _encode(image, ".png", [])


def encode_jpeg(image: Picture, quality: int = 85) -> bytes:
    """Return a picture as the bytes of a JPEG file, of a quality from 1 to 100."""
    return _encode(image, ".jpg", [cv2.IMWRITE_JPEG_QUALITY, quality])


def _encode(image: Picture, suffix: str, settings: list[int]) -> bytes:
    """Return a picture as the bytes of a file; ``settings`` are OpenCV's."""
    check_image(image)
    # OpenCV writes blue first.
    blue_first = np.ascontiguousarray(image[:, :, ::-1])
    return cv2.imencode(suffix, blue_first, settings)[1].tobytes()


def storyboard(
    keyframes: Sequence[Keyframe], columns: int | None = None, width: int = 1280
) -> Picture:
    """Return one picture of key frames, row by row in the order of their times.

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
    across = max(1, min(column, largest, round(aspect * width)))
    down = max(1, round(across / aspect))
    step = down + 2 * _LINE + 8 + _GAP
    n_rows = math.ceil(len(ordered) / columns)
    sheet = np.full((n_rows * step + 3 * _GAP, width, 3), _PAPER, dtype=np.uint8)
    margin = (width - columns * (column + _GAP) + _GAP + column - across) // 2
    for place, keyframe in enumerate(ordered):
        row, number = divmod(place, columns)
        top, left = 2 * _GAP + row * step, margin + number * (column + _GAP)
        cell = sheet[top : top + step - _GAP, left : left + across]
        _draw_in_box(cell[:down], keyframe.image)
        _write_text(cell, time_label(keyframe.time), down + _LINE, bold=True)
        _write_text(cell, f"frame {keyframe.number}", down + 2 * _LINE)
    return sheet


def _draw_in_box(box: Picture, image: Picture) -> None:
    """Fill ``box``, in place, with a picture scaled to fit between bars, framed."""
    box[:] = _BARS
    height, width = box.shape[:2]
    picture = resize_to_fit(image, width, height)
    top = (height - picture.shape[0]) // 2
    left = (width - picture.shape[1]) // 2
    box[top : top + picture.shape[0], left : left + picture.shape[1]] = picture
    # The line separates a white picture from the ground.
    cv2.rectangle(box, (0, 0), (width - 1, height - 1), _RULE)


def _write_text(cell: Picture, text: str, line: int, bold: bool = False) -> None:
    """Write text into ``cell``, in place, ``line`` pixels down, shrunk to its width."""
    font = cv2.FONT_HERSHEY_DUPLEX if bold else cv2.FONT_HERSHEY_SIMPLEX
    colour: Any = _INK if bold else _QUIET
    scale = 0.5
    # The fonts of OpenCV 4 and 5 are of different widths.
    while scale > 0.3 and cv2.getTextSize(text, font, scale, 1)[0][0] > cell.shape[1]:
        scale -= 0.02
    cv2.putText(cell, text, (0, line), font, scale, colour, 1, cv2.LINE_AA)


def usual_aspect(keyframes: Sequence[Keyframe]) -> float:
    """Return the upper median of the width of key frames over their height."""
    if not keyframes:
        raise ValueError("a storyboard needs at least one key frame")
    ratios = sorted(float(k.image.shape[1] / k.image.shape[0]) for k in keyframes)
    return ratios[len(ratios) // 2]


def resize_to_fit(image: Picture, width: int, height: int) -> Picture:
    """Return a picture, shrunk or enlarged in proportion to fit a box in pixels."""
    scale = min(width / image.shape[1], height / image.shape[0])
    across = min(width, max(1, round(scale * image.shape[1])))
    down = min(height, max(1, round(scale * image.shape[0])))
    method = cv2.INTER_AREA if scale < 1.0 else cv2.INTER_CUBIC
    # OpenCV takes no views with reversed axes.
    picture = np.ascontiguousarray(image)
    return np.asarray(cv2.resize(picture, (across, down), interpolation=method))
