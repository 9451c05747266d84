"""Films that tests make, frame by frame."""

import cv2
import numpy as np


def write_film(path, frames, rate):
    """Write pictures of red, green and blue as a film, and return its path."""
    height, width = frames[0].shape[:2]
    code = cv2.VideoWriter.fourcc(*"MJPG")
    writer = cv2.VideoWriter(str(path), code, rate, (width, height))
    assert writer.isOpened()
    for frame in frames:
        writer.write(np.ascontiguousarray(frame[:, :, ::-1]))
    writer.release()
    return path
