"""Tables of what people chose, and folders of pictures."""

import re

import cv2
import numpy as np
import pytest

from variegate.video.picks import (
    PickedVideo,
    frames_at,
    parse_time,
    read_choices,
    read_picks,
    read_pictures,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        ("12.5", 12.5),
        (" 7 ", 7.0),
        (".25", 0.25),
        ("3.", 3.0),
        ("0:07", 7.0),
        ("1:02.5", 62.5),
        ("90:00", 5400.0),
        ("1:00:00", 3600.0),
        ("10:59:59.5", 39599.5),
    ],
)
def test_times(text, seconds):
    assert parse_time(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        *("", "soon", "1:7", "1:60", "1:2:03", "1:60:00", "1:2:3:4", "12,5", "nan"),
        *("inf", "1e3", "0x10", "1 2", "--3", "-", ":30", "1:", "١٢", "12.5s"),
    ],
)
def test_what_is_no_time(text):
    with pytest.raises(ValueError, match=r"is not a time: write seconds \(12\.5\), m:"):
        parse_time(text)


@pytest.mark.parametrize("text", ["-3", "-0:30", "- 3.5", "-1:00:00"])
def test_negative_times(text):
    with pytest.raises(ValueError, match=f"the time {text} is negative"):
        parse_time(text)


# read_picks -----------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    """A folder with three files that are called videos, and one that is not."""
    videos = tmp_path / "videos"
    videos.mkdir()
    for name in ("beach.mp4", "beach.txt", "town.avi", "town.mkv", "été, 2.mov"):
        (videos / name).write_bytes(b"")
    return videos


def table(folder, text, encoding="utf-8"):
    path = folder.parent / "picks.csv"
    path.write_bytes(text.encode(encoding))
    return path


def test_picks_by_video_and_user(folder):
    text = (
        "user,time,note,video\n"
        "anna,0:10,,town.avi\n"
        "\n"
        "ben,3.5,good,beach\n"
        "anna,2,,beach.mp4\n"
        'anna,1,,"été, 2.mov"\n'
        "anna,5,,town.avi\n"
        "anna,5.0,again,town.avi\n"
    )
    assert read_picks(table(folder, text), folder) == [
        PickedVideo(folder / "town.avi", ((5.0, 10.0),)),
        PickedVideo(folder / "beach.mp4", ((3.5,), (2.0,))),
        PickedVideo(folder / "été, 2.mov", ((1.0,),)),
    ]


def test_without_users(folder):
    text = "video,time\nbeach,4\nbeach,1\n"
    expected = [PickedVideo(folder / "beach.mp4", ((1.0, 4.0),))]
    assert read_picks(table(folder, text), folder) == expected
    # As spreadsheets write it.
    marked = table(folder, text.replace("\n", "\r\n"), "utf-8-sig")
    assert read_picks(str(marked), str(folder)) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "picks.csv is empty: its first line must name the columns, video and"),
        ("\n\n", "picks.csv is empty: its first line must name the columns, video and"),
        ("video,time\n", "there are no rows in picks.csv after its first line"),
        ("Video,time\nbeach,1\n", "line 1: there is no column 'video'; did you mean"),
        ("video,times\nbeach,1\n", "no column 'time'; did you mean 'times'?"),
        ("video,when\nbeach,1\n", "no column 'time'; the columns are 'video', 'when'"),
        ("video;time\nbeach;1\n", "line 1: the columns must be separated by commas"),
        ("video,time,time\nbeach,1,2\n", "line 1: there are two columns 'time'"),
        ("video,time\nbeach,1\nbeach,soon\n", "line 3: 'soon' is not a time: write"),
        ("video,time\n\nbeach,\n", "line 3: '' is not a time"),
        ("video,time\nbeach,-1\n", "line 2: the time -1 is negative"),
        ("video,time\nbeach,1,5\n", "line 2 has 3 values, but the first line names 2"),
        ("video,time\nbeach\n", "line 2 has 1 value, but the first line names 2"),
        ("video,time\n,3\n", "line 2: there is no name of a video"),
        ("video,time\nbench.mp4,3\n", "no video 'bench.mp4' in videos; did you mean"),
        ("video,time\nxyz,3\n", "line 2: there is no video 'xyz' in videos"),
        ("video,time\ntown,3\n", "'town' may be town.avi and town.mkv; write the"),
        ("video,time\n../a.mp4,3\n", "'../a.mp4' is a path; give the name of a file"),
        ("video,time\n..,3\n", "line 2: '..' is a path; give the name of a file in"),
        ("video,time\nbeach,\0\n", "picks.csv is not a text file: it has zero bytes"),
    ],
)
def test_bad_tables(folder, monkeypatch, text, message):
    monkeypatch.chdir(folder.parent)
    path = table(folder, text).relative_to(folder.parent)
    with pytest.raises(ValueError, match=re.escape(message)):
        read_picks(path, folder.relative_to(folder.parent))


def test_other_encodings_and_fields_without_end(folder):
    with pytest.raises(ValueError, match=r"is not in utf-8: byte .*; save the table"):
        read_picks(table(folder, "video,time\né,1\n", "latin-1"), folder)
    with pytest.raises(ValueError, match=r"picks\.csv, line 2 is not CSV: field lar"):
        read_picks(table(folder, "video,time\n" + 200_000 * "x"), folder)


def test_missing_files(folder, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*gone\.csv"):
        read_picks(tmp_path / "gone.csv", folder)
    with pytest.raises(IsADirectoryError, match="videos is a folder, not a file"):
        read_picks(folder, folder)
    with pytest.raises(NotADirectoryError, match=r"there is no folder .*gone"):
        read_picks(table(folder, "video,time\n"), tmp_path / "gone")
    with pytest.raises(NotADirectoryError, match="is a file, not a folder of videos"):
        read_picks(table(folder, "video,time\n"), tmp_path / "picks.csv")


# read_choices ---------------------------------------------------------------------


def test_choices_of_one_video(folder):
    path = table(folder, "time\n0:03\n1\n")
    assert read_choices(path, "beach.mp4") == {"": (1.0, 3.0)}
    path = table(folder, "time,user,video\n3,a,beach\n4,b,beach.mp4\n5,a,town.avi\n")
    assert read_choices(path, folder / "beach.mp4") == {"a": (3.0,), "b": (4.0,)}
    assert read_choices(path) == {"a": (3.0, 5.0), "b": (4.0,)}
    with pytest.raises(ValueError, match=r"picks\.csv: no row has the video 'été, 2"):
        read_choices(path, "été, 2.mov")
    with pytest.raises(ValueError, match=r"line 1: there is no column 'time'"):
        read_choices(table(folder, "seconds\n1\n"))


# frames_at ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def counting(tmp_path_factory):
    """A video of 30 frames, 10 a second, each lighter than the one before."""
    path = tmp_path_factory.mktemp("video") / "counting.avi"
    code = cv2.VideoWriter.fourcc(*"MJPG")
    writer = cv2.VideoWriter(str(path), code, 10.0, (32, 32))
    for number in range(30):
        writer.write(np.full((32, 32, 3), 8 * number, dtype=np.uint8))
    writer.release()
    return path


def test_the_first_frame_at_or_after_a_time(counting):
    times = [1.0, 0.0, 0.95, 2.9, 1.01, 0.9, 1.0]
    found = [(time, frame.number) for time, frame in frames_at(counting, times)]
    numbers = [(0.0, 0), (0.9, 9), (0.95, 10), (1.0, 10), (1.01, 11), (2.9, 29)]
    assert found == numbers
    for _, frame in frames_at(counting, times):
        assert abs(float(frame.image.mean()) - 8 * frame.number) < 4


def test_times_rounded_to_milliseconds_find_their_frame(tmp_path):
    path = tmp_path / "thirds.avi"
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"MJPG"), 3.0, (32, 32))
    for _ in range(9):
        writer.write(np.zeros((32, 32, 3), dtype=np.uint8))
    writer.release()
    times = [round(number / 3.0, 3) for number in range(9)]
    assert [frame.number for _, frame in frames_at(path, times)] == list(range(9))


def test_times_after_the_end_are_left_out(counting):
    seen = []
    found = frames_at(counting, [2.0, 3.0], lambda *where: seen.append(where))
    assert [time for time, _ in found] == [2.0]
    assert [(stage, round(10 * time)) for stage, time, _ in seen] == [
        ("reading", number) for number in range(30)
    ]
    assert {total for *_, total in seen} == {3.0}
    assert list(frames_at("gone.avi", [])) == []


def test_reading_stops_at_the_last_time(counting):
    seen = []
    list(frames_at(counting, [0.5], lambda stage, time, total: seen.append(time)))
    assert len(seen) == 6


# read_pictures --------------------------------------------------------------------


def test_pictures_in_natural_order(tmp_path):
    red = np.zeros((4, 6, 3), dtype=np.uint8)
    red[:, :, 2] = 200
    names = ["f10.png", "F9.PNG", "f9-2.jpeg", "f2.jpg"]
    for name in [*names, "storyboard.png", ".hidden.png"]:
        _, data = cv2.imencode(tmp_path.joinpath(name).suffix.lower(), red)
        (tmp_path / name).write_bytes(data.tobytes())
    (tmp_path / "notes.txt").write_text("not a picture")
    (tmp_path / "folder.png").mkdir()
    found = list(read_pictures(tmp_path))
    assert [path.name for path, _ in found] == [
        "f2.jpg",
        "f9-2.jpeg",
        "F9.PNG",
        "f10.png",
    ]
    for _, image in found:
        assert image.shape == (4, 6, 3)
        assert np.abs(image.astype(int) - (200, 0, 0)).max() < 10


def test_no_pictures_and_damaged_ones(tmp_path):
    with pytest.raises(ValueError, match="there are no pictures in the folder"):
        next(read_pictures(tmp_path))
    for content in (b"", b"no picture"):
        (tmp_path / "a.jpg").write_bytes(content)
        with pytest.raises(ValueError, match=r"a\.jpg cannot be read as a picture"):
            list(read_pictures(tmp_path))
