import re
import struct
import sys
from itertools import pairwise

import cv2
import numpy as np
import pytest

from variegate._install import install_command
from variegate.video.reading import (
    TruncatedVideoWarning,
    VideoError,
    _frame_rate,
    _frame_time,
    _warn_if_truncated,
    read_frames,
)

HEIGHT, WIDTH = 48, 64
RED, GREEN, BLUE = (220, 20, 20), (20, 220, 20), (20, 20, 220)


def plain(colour):
    return np.full((HEIGHT, WIDTH, 3), colour, dtype=np.uint8)


def write_video(path, images, fps=25.0, codec="MJPG"):
    """Write images, red, green and blue, to a file."""
    code = cv2.VideoWriter_fourcc(*codec)
    writer = cv2.VideoWriter(str(path), code, fps, (WIDTH, HEIGHT))
    assert writer.isOpened()
    for image in images:
        writer.write(cv2.cvtColor(image, cv2.COLOR_RGB2BGR))
    writer.release()
    return path


def cut(path, share):
    """Keep only the first bytes of a file."""
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    return path


FORMATS = [("video.avi", "MJPG"), ("video.mp4", "mp4v")]


@pytest.mark.parametrize(("name", "codec"), FORMATS)
def test_scenes(tmp_path, name, codec):
    scenes = [plain(c) for c in (RED, GREEN, BLUE) for _ in range(25)]
    path = write_video(tmp_path / name, scenes, codec=codec)
    frames = list(read_frames(path))
    assert [frame.number for frame in frames] == [0, 25, 50]
    for frame, colour in zip(frames, (RED, GREEN, BLUE), strict=True):
        assert frame.image.shape == (HEIGHT, WIDTH, 3)
        assert frame.image.dtype == np.uint8
        # The codecs lose a few grey values; swapped colours would lose 200.
        assert np.abs(frame.image.astype(int) - colour).max() < 20


@pytest.mark.parametrize(("name", "codec"), FORMATS)
def test_times(tmp_path, name, codec):
    path = write_video(tmp_path / name, [plain(RED)] * 60, codec=codec)
    frames = list(read_frames(str(path), every=0.5))
    # 25 frames a second: the first at or after 0.5 s is frame 13, at 0.52 s.
    assert [frame.number for frame in frames] == [0, 13, 25, 38, 50]
    assert [frame.time for frame in frames] == pytest.approx(
        [0.0, 0.52, 1.0, 1.52, 2.0], abs=1e-6
    )


def test_short_step_takes_every_frame(tmp_path):
    path = write_video(tmp_path / "video.avi", [plain(RED)] * 12)
    assert [frame.number for frame in read_frames(path, 0.001)] == list(range(12))


@pytest.mark.parametrize(("name", "codec"), FORMATS)
def test_one_frame(tmp_path, name, codec):
    path = write_video(tmp_path / name, [plain(BLUE)], codec=codec)
    (frame,) = read_frames(path)
    assert (frame.number, frame.time) == (0, 0.0)


def with_durations(content, runs):
    """Rewrite the table of durations (stts) of an MP4 whose index comes last.

    Parameters
    ----------
    runs : list of (number of frames, halves of the old duration)
        The durations must add up to the old sum, which stands elsewhere, too.
    """
    at = content.index(b"stts") - 4
    size, _, _, n_runs, _, old = struct.unpack(">I4sIIII", content[at : at + 24])
    assert n_runs == 1
    entries = b"".join(struct.pack(">II", n, old * halves // 2) for n, halves in runs)
    table = struct.pack(">I4sII", 16 + len(entries), b"stts", 0, len(runs)) + entries
    changed = bytearray(content[:at] + table + content[at + size :])
    for box in (b"moov", b"trak", b"mdia", b"minf", b"stbl"):
        start = content.index(box) - 4
        (old_size,) = struct.unpack(">I", content[start : start + 4])
        changed[start : start + 4] = struct.pack(">I", old_size + len(table) - size)
    return bytes(changed)


def test_variable_frame_rate(tmp_path):
    path = write_video(tmp_path / "video.mp4", [plain(RED)] * 40, codec="mp4v")
    content = path.read_bytes()
    assert content.index(b"mdat") < content.index(b"moov")
    # 20 frames of 0.02 s, then 20 of 0.06 s, in place of 40 of 0.04 s.
    path.write_bytes(with_durations(content, [(20, 1), (20, 3)]))
    times = [0.02 * k for k in range(20)] + [0.4 + 0.06 * k for k in range(20)]
    frames = list(read_frames(path, every=0.001))
    assert [frame.time for frame in frames] == pytest.approx(times, abs=1e-6)
    # 0.52, 1.0 and 1.54 s; at a constant rate it would be 0, 13, 25 and 38.
    assert [frame.number for frame in read_frames(path, 0.5)] == [0, 22, 30, 39]


def test_missing_file(tmp_path):
    path = tmp_path / "nowhere.mp4"
    with pytest.raises(VideoError, match=re.escape(f"there is no file {path}")):
        read_frames(path)


def test_folder(tmp_path):
    with pytest.raises(VideoError, match="is a folder; give the path of a video"):
        read_frames(tmp_path)


@pytest.mark.parametrize("text", ["", "This is no video.\n" * 40])
def test_not_a_video(tmp_path, text):
    path = tmp_path / "text.mp4"
    path.write_text(text)
    with pytest.raises(VideoError, match=r"text\.mp4 cannot be opened as a video"):
        read_frames(path)


def test_lost_index(tmp_path):
    path = write_video(tmp_path / "video.mp4", [plain(RED)] * 50, codec="mp4v")
    with pytest.raises(VideoError, match="its start or index is lost"):
        read_frames(cut(path, 0.5))


def test_no_frames(tmp_path):
    path = write_video(tmp_path / "video.avi", [])
    with pytest.raises(VideoError, match=r"video\.avi is a video without frames"):
        next(read_frames(path))


def test_truncated(tmp_path):
    path = write_video(tmp_path / "video.avi", [plain(RED)] * 100)
    cut(path, 0.5)
    with pytest.warns(TruncatedVideoWarning, match="promises 100 frames") as caught:
        numbers = [frame.number for frame in read_frames(path, every=0.4)]
    assert caught[0].filename == __file__
    # The headers take some of the half, and all frames the same number of bytes.
    assert 30 < numbers[-1] <= 50
    assert numbers == list(range(0, numbers[-1] + 1, 10))


@pytest.mark.parametrize(
    ("promised", "n_read"),
    [(100, 100), (100, 95), (1000, 980), (0, 10), (-9.2e18, 1), (float("nan"), 10)],
)
def test_small_gaps_are_not_truncation(tmp_path, promised, n_read):
    _warn_if_truncated(tmp_path, promised, n_read, 1.0, 25.0)  # a warning is an error


@pytest.mark.parametrize(
    ("promised", "n_read", "time", "rate"),
    [
        (100, 75, 2.96, 25.0),  # the last second of four
        (1000, 970, 38.8, 25.0),
        (888, 590, 19.6, 30.0),
        (30, 15, 0.48, 30.0),  # the second half of a second
    ],
)
def test_clear_gaps_are_truncation(tmp_path, promised, n_read, time, rate):
    with pytest.warns(TruncatedVideoWarning, match=f"only {n_read} could be read"):
        _warn_if_truncated(tmp_path, promised, n_read, time, rate)


@pytest.mark.parametrize(
    ("promised", "n_read", "time", "rate"),
    [
        (888, 590, 29.5, 30.0),  # 29.6 s; frames are not evenly spaced
        (100, 80, 3.16, 25.0),
        (30, 20, 0.63, 30.0),
    ],
)
def test_less_than_a_second_is_not_truncation(tmp_path, promised, n_read, time, rate):
    _warn_if_truncated(tmp_path, promised, n_read, time, rate)  # a warning is an error


def test_a_film_without_its_last_frames_is_not_truncated(tmp_path):
    path = write_video(tmp_path / "video.avi", [plain(RED)] * 740, fps=25.0)  # 29.6 s
    content = path.read_bytes()
    starts = [found.start() for found in re.finditer(b"00dc", content)]
    path.write_bytes(content[: starts[720]])  # 20 frames are missing, 2.7 %
    *_, last = read_frames(path, every=0.1)  # a warning is an error
    assert last.time == pytest.approx(28.8, abs=0.1)
    path.write_bytes(content[: starts[710]])
    with pytest.warns(TruncatedVideoWarning, match="promises 740 frames"):
        list(read_frames(path))


def times_of(reported, rate):
    times = [-np.inf]
    for number, seconds in enumerate(reported):
        times.append(_frame_time(seconds, number, rate, times[-1]))
    return times[1:]


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        ([0.0, 0.1, 0.5, 0.6], [0.0, 0.1, 0.5, 0.6]),
        ([0.0, 0.0, 0.0, 0.0], [0.0, 0.25, 0.5, 0.75]),
        ([-1.0, -1.0, -1.0], [0.0, 0.25, 0.5]),
        ([float("nan")] * 3, [0.0, 0.25, 0.5]),
        # A clip that starts again at 0 half-way goes on by number / rate.
        ([0.0, 0.25, 0.0, 0.25], [0.0, 0.25, 0.5, 0.75]),
        # One time that goes back where the file is slower than its rate says.
        ([0.0, 2.0, 1.0, 6.0], [0.0, 2.0, 2.25, 6.0]),
    ],
)
def test_times_without_sound_timestamps(reported, expected):
    times = times_of(reported, rate=4.0)
    assert times == expected
    assert all(early < late for early, late in pairwise(times))


@pytest.mark.parametrize(
    ("reported", "rate"),
    [(30.0, 30.0), (0.0, 25.0), (-1.0, 25.0), (np.inf, 25.0), (np.nan, 25.0)],
)
def test_frame_rate(reported, rate):
    assert _frame_rate(reported) == rate


@pytest.mark.parametrize("every", [0.0, -1.0, 1e-9, np.inf, np.nan])
def test_bad_step(tmp_path, every):
    with pytest.raises(ValueError, match="every is the seconds between frames"):
        read_frames(tmp_path / "video.avi", every)


def test_undecodable_frame_leaves_its_step_to_the_next(tmp_path, monkeypatch):
    class Damaged:
        """Six frames, a second apart, of which the second cannot be decoded."""

        def __init__(self, path):
            self.number = -1
            self.released = False

        def isOpened(self):
            return True

        def grab(self):
            self.number += 1
            return self.number < 6

        def retrieve(self):
            decoded = self.number != 1
            return decoded, plain(RED) if decoded else None

        def get(self, which):
            return {cv2.CAP_PROP_POS_MSEC: 1000.0 * self.number}.get(which, 0.0)

        def release(self):
            self.released = True

    path = tmp_path / "video.avi"
    path.touch()
    captures = []
    monkeypatch.setattr(
        cv2, "VideoCapture", lambda name: captures.append(Damaged(name)) or captures[-1]
    )
    assert [frame.number for frame in read_frames(path, 1.0)] == [0, 2, 3, 4, 5]
    assert captures[0].released


def test_stopping_early_is_fine(tmp_path):
    path = write_video(tmp_path / "video.avi", [plain(RED)] * 30)
    frames = read_frames(path, 0.04)
    assert next(frames).number == 0
    frames.close()


def test_without_opencv(tmp_path, monkeypatch):
    path = tmp_path / "video.avi"
    path.touch()
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(ImportError, match=re.escape(install_command("video"))):
        read_frames(path)
