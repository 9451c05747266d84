"""``variegate keyframes``, ``evaluate-keyframes`` and ``fit-keyframes``."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import warnings
from html.parser import HTMLParser
from pathlib import Path

import cv2
import numpy as np
import pytest
from sample_video import write_sample_video
from sklearn.exceptions import ConvergenceWarning

from variegate._install import install_command
from variegate.cli import keyframes as commands
from variegate.cli import progress
from variegate.cli.app import run
from variegate.report.wording import shorten_middle
from variegate.video import (
    Candidate,
    Keyframe,
    KeyframePicker,
    PickedVideo,
    VideoSummary,
    hue_histogram,
    sequence,
)
from variegate.video.evaluation import score_against_user
from variegate.video.reading import time_label
from variegate.video.screening import Decision

SIZE = (96, 64)


def write_video(path, images, rate=10.0):
    """Write images, blue, green and red, to a file."""
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"MJPG"), rate, SIZE)
    assert writer.isOpened()
    for image in images:
        writer.write(image)
    writer.release()


def plain(blue, green, red):
    return np.full((SIZE[1], SIZE[0], 3), (blue, green, red), dtype=np.uint8)


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    """Two videos with known scenes, some odd ones, and a model learned from them."""
    folder = tmp_path_factory.mktemp("samples")
    picked = []
    for name, seed in (("a.mp4", 0), ("b.avi", 1)):
        scenes = write_sample_video(folder / name, 30.0, SIZE, 10.0, 4, seed)
        times = [(s.start + s.end) / 2 for s in scenes if s.kind == "scene"]
        picked.append(PickedVideo(folder / name, [times, times[::2]]))
    model = KeyframePicker(omega=(0.5, 2.0), n_samples=50, max_iter=50)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(picked).save(folder / "model.json")
    (folder / "text.mp4").write_text("This is no video.\n" * 40)
    (folder / "empty.mp4").write_bytes(b"")
    for name, whole in (("cut.avi", "b.avi"), ("cut.mp4", "a.mp4")):
        content = (folder / whole).read_bytes()
        (folder / name).write_bytes(content[: len(content) // 2])
    write_video(folder / "zero.avi", [])
    write_video(folder / "one.avi", [plain(20, 120, 200)])
    write_video(folder / "colour.avi", [plain(200, 60, 20)] * 40)
    write_video(folder / "black.avi", [plain(0, 0, 0)] * 40)
    return folder


@pytest.fixture
def variegate(monkeypatch, capsys, tmp_path, samples):
    """Run a command in a folder with the videos; return status, output, messages."""
    monkeypatch.chdir(tmp_path)
    for path in samples.iterdir():
        os.link(path, tmp_path / path.name)

    def call(command, *arguments):
        if command == "keyframes" and "--model" not in arguments:
            arguments = (*arguments, "--model", "model.json")
        words = ["variegate", command, *map(str, arguments)]
        monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as stop:
            run()
        captured = capsys.readouterr()
        return stop.value.code or 0, captured.out, captured.err

    return call


def fails(result, message):
    """Whether a command ended as bad input does: one line and status 2."""
    status, output, messages = result
    assert message in messages
    assert status == 2
    assert output == ""
    assert len(messages.strip().splitlines()) == 1
    assert messages.startswith("variegate: ")
    return True


def rows_of(folder):
    with (folder / "keyframes.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def pretend(monkeypatch):
    """Let the picker choose frames at the given times, whatever the video is."""

    def use(*times):
        frames = [
            Keyframe(round(10 * time), time, 0.5, plain(20, 80, 40 * number))
            for number, time in enumerate(times)
        ]
        candidates = [Candidate(k.number, k.time, k.probability, True) for k in frames]
        decisions = [Decision(0, 0.0, True), Decision(999, 99.9, True)]

        def pick(self, path, **options):
            return VideoSummary(str(path), frames, candidates, decisions, 1.0, 100.0)

        monkeypatch.setattr(KeyframePicker, "pick", pick)

    return use


# keyframes ------------------------------------------------------------------------


class _Images(HTMLParser):
    def __init__(self):
        super().__init__()
        self.sources, self.title, self.open = [], "", []

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        if tag == "img":
            self.sources.append(dict(attributes)["src"])

    def handle_data(self, data):
        if self.open[-1:] == ["title"] and not self.title:
            self.title = data


def test_one_video(variegate, tmp_path):
    status, output, messages = variegate("keyframes", "a.mp4", "-o", "deep/out")
    out = tmp_path / "deep" / "out"
    assert status == 0
    rows = rows_of(out)
    assert list(rows[0]) == ["video", "frame", "time", "probability", "file"]
    assert len(rows) >= 2
    files = [row["file"] for row in rows]
    assert names_in(out) == sorted(
        [*files, "keyframes.csv", "keyframes.html", "storyboard.png"]
    )
    assert messages == (
        f"written: deep/out: {len(rows)} pictures, keyframes.csv, storyboard.png, "
        "keyframes.html\n"
    )
    lines = [line.split("\t") for line in output.splitlines()]
    for n, (row, line) in enumerate(zip(rows, lines, strict=True), 1):
        time = float(row["time"])
        assert row["video"] == "a.mp4"
        assert int(row["frame"]) == round(10 * time)
        assert row["file"] == f"a-{n:03d}-{time:08.2f}s.jpg"
        assert line[0] == f"deep/out/{row['file']}"
        assert line[1] == f"0:{time:04.1f}"
        assert float(line[2]) == pytest.approx(float(row["probability"]), abs=6e-4)
    assert files == sorted(files)


def test_pictures_are_the_frames_of_the_video(variegate, tmp_path):
    status, _, _ = variegate(
        "keyframes", "a.mp4", "-o", "out", "--template", "{name}_{frame:06d}.png"
    )
    assert status == 0
    capture = cv2.VideoCapture("a.mp4")
    frames = []
    while (read := capture.read())[0]:
        frames.append(read[1])
    for row in rows_of(tmp_path / "out"):
        assert row["file"] == f"a_{int(row['frame']):06d}.png"
        picture = cv2.imread(str(tmp_path / "out" / row["file"]))
        assert np.array_equal(picture, frames[int(row["frame"])])


def test_sheet_and_page(variegate, tmp_path):
    variegate("keyframes", "a.mp4", "-o", "out")
    out = tmp_path / "out"
    assert cv2.imread(str(out / "storyboard.png")).shape[1] == 1280
    page = _Images()
    page.feed((out / "keyframes.html").read_text(encoding="utf-8"))
    assert page.title == "Key frames of a.mp4"
    assert len(page.sources) == len(rows_of(out))


def test_without_sheet_and_page(variegate, tmp_path):
    options = ["--no-storyboard", "--no-page", "--max", "1", "--template", "{name}.jpg"]
    status, output, messages = variegate("keyframes", "a.mp4", "-o", "out", *options)
    assert status == 0
    assert output.startswith("out/a.jpg\t")
    assert messages == "written: out: 1 picture, keyframes.csv\n"
    assert names_in(tmp_path / "out") == ["a.jpg", "keyframes.csv"]


def test_json(variegate, tmp_path):
    status, output, _ = variegate("keyframes", "a.mp4", "-o", "out", "--json")
    assert status == 0
    (result,) = json.loads(output)
    assert (result["source"], result["folder"]) == ("a.mp4", "out")
    assert result["table"] == "keyframes.csv"
    assert "mean F-score of matched frames" in result["stop_reason"]
    assert (result["gap"], result["is_optimal"]) == (None, False)
    assert (result["storyboard"], result["html"]) == (
        "storyboard.png",
        "keyframes.html",
    )
    listed = [
        {name: str(value) for name, value in entry.items()}
        for entry in result["keyframes"]
    ]
    assert [{"video": "a.mp4", **row} for row in listed] == rows_of(tmp_path / "out")
    chosen = [entry["frame"] for entry in result["candidates"] if entry["chosen"]]
    assert chosen == [entry["frame"] for entry in result["keyframes"]]


def test_the_knob_and_the_limit(variegate):
    few, many = (
        variegate("keyframes", "a.mp4", "-o", f"o{omega}", "--omega", omega)
        for omega in ("0.5", "2")
    )
    assert few[0] == many[0] == 0
    assert len(few[1].splitlines()) <= len(many[1].splitlines())
    assert len(many[1].splitlines()) > 1
    _, limited, _ = variegate("keyframes", "a.mp4", "-o", "o", "--max", "1")
    assert len(limited.splitlines()) == 1


def test_in_order_segment_by_segment(variegate, monkeypatch, tmp_path):
    whole = variegate("keyframes", "a.mp4", "-o", "whole", "--json")
    in_order = variegate("keyframes", "a.mp4", "-o", "order", "--sequential", "--json")
    (expected,), (found,) = json.loads(whole[1]), json.loads(in_order[1])
    assert found["stop_reason"].startswith("key frames of one segment")
    assert found.keys() == expected.keys()
    assert found["keyframes"] == expected["keyframes"]
    for path in Path("whole").iterdir():
        if path.suffix != ".html":
            assert (tmp_path / "order" / path.name).read_bytes() == path.read_bytes()
    assert {p.name for p in Path("whole").iterdir()} == {
        p.name for p in Path("order").iterdir()
    }
    monkeypatch.setattr(sequence, "SEGMENT", 4)
    how = ("--sequential", "--max", "2", "--omega", "0.6", "--json")
    status, output, _ = variegate("keyframes", "b.avi", "-o", "few", *how)
    (report,) = json.loads(output)
    assert status == 0
    assert report["omega"] == 0.6
    assert len(report["keyframes"]) == len(rows_of(Path("few"))) == 2
    assert report["stop_reason"].endswith("at most 2")


def test_a_film_that_fails_in_order_leaves_nothing(variegate, monkeypatch):
    monkeypatch.setattr(sequence, "SEGMENT", 4)

    def fail(self, shots):
        raise ValueError("the disk is full")

    monkeypatch.setattr(sequence.KeyframeSequence, "limit", fail)
    how = ("--sequential", "--max", "2")
    assert fails(variegate("keyframes", "b.avi", "-o", "out", *how), "disk is full")
    assert not Path("out").exists()


def test_too_many_frames_for_a_page(variegate, monkeypatch):
    monkeypatch.setattr(commands, "_MOST_SHOWN", 1)
    status, _, messages = variegate("keyframes", "a.mp4", "-o", "out", "--count", "3")
    assert status == 0
    assert "no storyboard and no page, which hold at most 1 key frames" in messages
    assert not (Path("out") / "keyframes.html").exists()
    assert not (Path("out") / "storyboard.png").exists()
    assert len(rows_of(Path("out"))) == 3


@pytest.mark.parametrize("count", [1, 3, 6])
def test_exactly_so_many(variegate, tmp_path, count):
    how = ("--count", count, "--omega", "0.5")
    status, output, _ = variegate("keyframes", "a.mp4", "-o", "out", *how)
    assert (status, len(output.splitlines())) == (0, count)
    assert len(rows_of(tmp_path / "out")) == count


def test_one_name_will_do_for_one_picture(variegate, tmp_path):
    how = ("--count", "1", "--template", "still.png")
    assert variegate("keyframes", "a.mp4", "-o", "out", *how)[0] == 0
    assert (tmp_path / "out" / "still.png").is_file()


def test_one_for_each_shot(variegate):
    status, output, _ = variegate(
        "keyframes", "b.avi", "-o", "out", "--per-shot", "--json"
    )
    assert status == 0
    (result,) = json.loads(output)
    shots, times = result["shots"], [k["time"] for k in result["keyframes"]]
    assert result["shots_shown"] == len(shots) == len(times)
    for shot, time in zip(shots, times, strict=True):
        assert shot["start"] <= time < shot["end"]


def test_json_and_page_say_why_a_likelier_frame_was_refused(variegate, tmp_path):
    status, output, _ = variegate(
        "keyframes", "a.mp4", "-o", "out", "--max", "2", "--json"
    )
    assert status == 0
    (result,) = json.loads(output)
    chosen = {k["frame"]: k for k in result["keyframes"]}
    least = min(k["probability"] for k in chosen.values())
    page = (tmp_path / "out" / "keyframes.html").read_text(encoding="utf-8")
    likelier = 0
    for candidate in result["candidates"]:
        if candidate["chosen"] or candidate["probability"] <= least:
            assert "why_not" not in candidate
            continue
        likelier += 1
        label = time_label(chosen[candidate["like"]]["time"])
        assert candidate["why_not"].endswith(f" frame {candidate['like']} at {label}")
        assert 0.0 <= candidate["similarity"] <= 1.0
        assert candidate["why_not"] in page
    assert ("more probable frame" in page) == (likelier > 0)


def test_a_folder_of_videos(variegate, tmp_path):
    """Sorted, those in its folders too; what is hidden or no video is left out."""
    films = tmp_path / "films"
    (films / "more").mkdir(parents=True)
    for name in ("b.avi", ".c.avi", "more/a.MP4", "x.txt", "w.srt", "y.txt", "z.txt"):
        shutil.copy("a.mp4" if name.endswith("MP4") else "b.avi", films / name)
    status, output, messages = variegate("keyframes", "films", "-o", "out", "--json")
    assert status == 0
    sources = [entry["source"] for entry in json.loads(output)]
    assert sources == ["films/b.avi", "films/more/a.MP4"]
    assert names_in(tmp_path / "out") == ["a", "b"]
    note, *written = messages.splitlines()
    assert note == (
        "variegate: note: films: left out files that are not videos by their names: "
        "w.srt, x.txt, y.txt and 1 more"
    )
    assert len(written) == 2


@pytest.mark.parametrize("files", [(), ("notes.txt", ".hidden.mp4")])
def test_a_folder_without_videos(variegate, tmp_path, files):
    (tmp_path / "films").mkdir()
    for name in files:
        (tmp_path / "films" / name).write_text("no video")
    result = variegate("keyframes", "films", "-o", "out")
    assert fails(
        result, "there are no videos in the folder films: files must end in .3"
    )
    assert not (tmp_path / "out").exists()


def test_several_videos(variegate, tmp_path):
    shutil.copy("b.avi", "a.avi")
    (tmp_path / "A").mkdir()
    shutil.copy("b.avi", "A/A.avi")
    videos = ["a.mp4", "a.avi", "A/A.avi", "./a.mp4"]
    status, output, messages = variegate("keyframes", *videos, "-o", "out", "--json")
    assert status == 0
    result = json.loads(output)
    assert [entry["source"] for entry in result] == videos[:3]
    assert [entry["folder"] for entry in result] == ["out/a", "out/a-2", "out/A-3"]
    assert names_in(tmp_path / "out") == ["A-3", "a", "a-2"]
    assert len(messages.splitlines()) == 3
    for entry in result:
        names = [row["file"] for row in rows_of(tmp_path / entry["folder"])]
        assert names == [frame["file"] for frame in entry["keyframes"]]
        assert all((tmp_path / entry["folder"] / name).is_file() for name in names)


def test_one_of_several_fails(variegate, tmp_path):
    videos = ["zero.avi", "a.mp4", "text.mp4"]
    status, output, messages = variegate("keyframes", *videos, "-o", "out")
    assert status == 2
    assert output.startswith("out/a/a-001-")
    first, second, third = messages.splitlines()
    assert first.startswith("variegate: text.mp4 cannot be opened as a video")
    assert second == "variegate: zero.avi is a video without frames that can be read"
    assert third.startswith("written: out/a: ")
    assert names_in(tmp_path / "out") == ["a"]


@pytest.mark.parametrize("name", ["one.avi", "colour.avi", "black.avi"])
def test_videos_with_little_in_them(variegate, tmp_path, name):
    status, output, messages = variegate("keyframes", name, "-o", "out")
    assert status == 0
    assert len(output.splitlines()) == 1
    assert messages.startswith("written: out: 1 picture, ")
    assert rows_of(tmp_path / "out")[0]["time"] == "0.0"


def test_a_cut_file_is_summarized_with_a_note(variegate):
    status, output, messages = variegate("keyframes", "cut.avi", "-o", "out")
    assert status == 0
    assert output
    note, written = messages.splitlines()
    assert note.startswith("variegate: note: cut.avi promises 300 frames, but only ")
    assert written.startswith("written: out: ")


def test_nothing_chosen(variegate, pretend, tmp_path):
    pretend()
    status, output, messages = variegate("keyframes", "a.mp4", "-o", "out")
    assert (status, output) == (0, "")
    note, written = messages.splitlines()
    assert note.startswith("variegate: note: a.mp4: the model chose no frame; a larger")
    assert written == "written: out: 0 pictures, keyframes.csv, keyframes.html"
    assert rows_of(tmp_path / "out") == []


def test_results_are_kept_without_force(variegate, tmp_path, pretend):
    pretend(1.0)
    for name in ("keyframes.csv", "storyboard.png", "keyframes.html"):
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / name).write_text("old")
        result = variegate("keyframes", "a.mp4", "-o", "out")
        assert fails(result, f"out has earlier results ({name}): name another folder")
        assert "--force" in result[2]
        assert names_in(tmp_path / "out") == [name]
        assert (tmp_path / "out" / name).read_text() == "old"
        shutil.rmtree(tmp_path / "out")


def test_a_picture_that_is_there_is_kept_without_force(variegate, tmp_path, pretend):
    pretend(1.0, 2.0)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a-2.jpg").write_text("mine")
    options = ["a.mp4", "-o", "out", "--template", "{name}-{n}.jpg"]
    result = variegate("keyframes", *options)
    assert fails(result, "out/a-2.jpg is already there: name another folder or --templ")
    assert names_in(tmp_path / "out") == ["a-2.jpg"]
    assert (tmp_path / "out" / "a-2.jpg").read_text() == "mine"
    assert variegate("keyframes", *options, "--force")[0] == 0
    assert (tmp_path / "out" / "a-2.jpg").read_bytes()[:2] == b"\xff\xd8"


def test_force_removes_what_the_earlier_run_wrote(variegate, tmp_path, pretend):
    out = tmp_path / "out"
    pretend(1.0, 2.0, 3.0)
    variegate("keyframes", "a.mp4", "-o", "out")
    with (out / "keyframes.csv").open("a") as table:
        for name in ("../outside.jpg", "thesis.odt", "..", "", str(tmp_path / "c.jpg")):
            table.write(f"a.mp4,1,1,1,{name}\n")
    others = [out / "thesis.odt", out / "holiday.jpg", tmp_path / "outside.jpg"]
    for path in [*others, tmp_path / "c.jpg"]:
        path.write_text("mine")
    pretend(4.0)
    options = ["--force", "--no-page", "--no-storyboard"]
    status, _, _ = variegate("keyframes", "a.mp4", "-o", "out", *options)
    assert status == 0
    assert names_in(out) == [
        "a-001-00004.00s.jpg",
        "holiday.jpg",
        "keyframes.csv",
        "thesis.odt",
    ]
    assert (tmp_path / "outside.jpg").exists()
    assert (tmp_path / "c.jpg").exists()


def test_force_with_a_table_of_another_kind(variegate, tmp_path, pretend):
    pretend(1.0)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "keyframes.csv").write_bytes(b"\xff\xfenothing\0,\n" * 3)
    assert variegate("keyframes", "a.mp4", "-o", "out", "--force")[0] == 0
    assert len(rows_of(tmp_path / "out")) == 1


def test_a_failure_with_force_keeps_the_earlier_results(variegate, tmp_path):
    variegate("keyframes", "one.avi", "-o", "out")
    before = names_in(tmp_path / "out")
    result = variegate("keyframes", "zero.avi", "-o", "out", "--force")
    assert fails(result, "zero.avi is a video without frames")
    assert names_in(tmp_path / "out") == before


def test_no_video_is_overwritten(variegate, tmp_path, pretend):
    pretend(1.0)
    # OpenCV takes a picture for a video of one frame.
    cv2.imwrite("still.png", plain(0, 100, 200))
    content = (tmp_path / "still.png").read_bytes()
    options = ["--max", "1", "--template", "{name}.png", "--force"]
    result = variegate("keyframes", "still.png", "-o", ".", *options)
    assert fails(result, "still.png is one of the files to read")
    assert (tmp_path / "still.png").read_bytes() == content


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gone.mp4"], "there is no file gone.mp4; check the path"),
        (["a.mp4", "gone.mp4"], "there is no file gone.mp4; check the path"),
        (["a.mp4", "--count", "0"], "0 is not in the range x>=1"),
        (
            ["a.mp4", "--count", "900"],
            "a.mp4: 900 frames were asked for, but there are only ",
        ),
        (
            ["a.mp4", "--count", "3", "--max", "4"],
            "--max and --count each say how many frames to choose; give one of them",
        ),
        (
            ["a.mp4", "--sequential", "--count", "3"],
            "--count needs all candidates at once: give --max with --sequential",
        ),
        (
            ["a.mp4", "--sequential", "--per-shot"],
            "--per-shot needs all candidates at once",
        ),
        (
            ["a.mp4", "--max", "4", "--per-shot", "--count", "3"],
            "--max and --count and --per-shot each say how many",
        ),
        (["text.mp4"], "text.mp4 cannot be opened as a video"),
        (["empty.mp4"], "empty.mp4 cannot be opened as a video"),
        (["cut.mp4"], "its start or index is lost"),
        (["zero.avi"], "zero.avi is a video without frames that can be read"),
        (["zero.avi", "--json"], "zero.avi is a video without frames"),
        ([], "Missing argument 'VIDEO...'"),
        (["a.mp4", "-o", "text.mp4"], "cannot write into text.mp4: text.mp4 is a file"),
        (["a.mp4", "-o", "text.mp4/x/y"], "text.mp4 is a file"),
        (["a.mp4", "-o", "/proc/x"], "cannot write into /proc/x: No such file"),
        (["a.mp4", "--omega", "9"], "omega=9, but this model was learned for 0.5 to 2"),
        (["a.mp4", "one.avi", "--omega", "nan"], "omega=nan, but this model was"),
        (["a.mp4", "--max", "0"], "0 is not in the range x>=1"),
        (["a.mp4", "--every", "0"], "0.0 is not in the range x>=0.001"),
        (["a.mp4", "--every", "nan"], "'--every': 'nan' is not a finite number"),
        (["a.mp4", "--model", "gone.json"], "'gone.json' does not exist"),
        (["a.mp4", "--model", "text.mp4"], "text.mp4"),
        *(
            (["a.mp4", "--template", bad], "is not a name for pictures: write a file")
            for bad in (
                "{n}",
                "{n}.gif",
                "{n.jpg",
                "{}.jpg",
                "{stem}.jpg",
                "{n.real}.jpg",
                "{n:{frame}}.jpg",
                "{n:09999999d}.jpg",
                "x/{n}.jpg",
                "..{n}.jpg",
                "x\\{n}.jpg",
            )
        ),
        (["a.mp4", "--template", "{time:d}.jpg"], "Unknown format code 'd' for object"),
        (
            ["a.mp4", "--template", "{n:300d}.jpg"],
            "gives names that a file cannot ha",
        ),
        (["a.mp4", "--template", "{n}\n.jpg"], "gives names that a file cannot have"),
        (
            ["a.mp4", "--template", "{name}.jpg"],
            "gives all pictures one name; add {n}",
        ),
    ],
)
def test_bad_input(variegate, tmp_path, arguments, message):
    before = names_in(tmp_path)
    if "-o" not in arguments:
        arguments = [*arguments, "-o", "some/out"]
    assert fails(variegate("keyframes", *arguments), message)
    assert names_in(tmp_path) == before


def test_the_folder_is_checked_before_any_video_is_read(variegate, monkeypatch):
    def never(*arguments, **options):
        raise AssertionError("a video was read")

    monkeypatch.setattr(KeyframePicker, "pick", never)
    monkeypatch.setattr("variegate.video.reading._open_capture", never)
    result = variegate("keyframes", "a.mp4", "one.avi", "-o", "text.mp4")
    assert fails(result, "cannot write into text.mp4/a: text.mp4 is a file")


def test_a_folder_without_permission(variegate, tmp_path, monkeypatch):
    def refuse(**options):
        raise PermissionError(13, "Permission denied")

    # Root, who may write anywhere, runs these tests too.
    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    (tmp_path / "locked").mkdir()
    result = variegate("keyframes", "a.mp4", "-o", "locked")
    assert fails(result, "cannot write into locked: Permission denied")


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{time:.0f}.jpg", "gives the name 2.jpg twice; add {n} or {frame}"),
        ("Storyboard.png", "gives the name Storyboard.png twice"),
        ("{name}" * 5 + "{n}.jpg", "gives a name that is too long for a file: xxx"),
    ],
)
def test_templates_that_only_fail_with_the_frames(
    variegate, tmp_path, pretend, template, message
):
    times = (2.0,) if "{" not in template else (2.0, 2.2)
    pretend(*times)
    shutil.copy("a.mp4", f"{'x' * 60}.mp4")
    options = ["--template", template, "--max", str(len(times))]
    result = variegate("keyframes", f"{'x' * 60}.mp4", "-o", "out", *options)
    assert fails(result, message)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("tab\tand\\.mp4", "tab_and_"),
        ("....mp4", "video"),
        ("é" * 100 + ".mp4", "é" * 50),
        ("a {n}.b.mp4", "a {n}.b"),
    ],
)
def test_names_of_videos_in_names_of_files(variegate, pretend, tmp_path, file, name):
    pretend(1.0)
    os.link("a.mp4", file)
    status, output, _ = variegate("keyframes", file, "one.avi", "-o", "out")
    assert status == 0
    assert output.startswith(f"out/{name}/{name}-001-00001.00s.jpg\t0:01.0\t0.500\n")
    assert names_in(tmp_path / "out") == sorted([name, "one"])
    assert rows_of(tmp_path / "out" / name)[0]["video"] == file


def test_an_interrupt_while_writing(variegate, monkeypatch, tmp_path, pretend):
    import variegate.files.atomic as files

    pretend(1.0, 2.0)
    whole, written = files.write_atomic, []

    def interrupted(path, content):
        if written and written[-1].name == "storyboard.png":
            raise KeyboardInterrupt
        whole(path, content)
        written.append(Path(path))

    monkeypatch.setattr(files, "write_atomic", interrupted)
    status, output, messages = variegate("keyframes", "a.mp4", "-o", "out")
    assert (status, output) == (130, "")
    # Click ends the line on which a terminal shows ^C.
    assert messages.lstrip() == "variegate: interrupted; it must start again\n"
    assert len(written) == 3
    assert not (tmp_path / "out").exists()


def test_an_interrupt_between_videos(variegate, monkeypatch, tmp_path):
    whole, picked = KeyframePicker.pick, []

    def interrupted(self, path, **options):
        if picked:
            raise KeyboardInterrupt
        picked.append(path)
        return whole(self, path, **options)

    monkeypatch.setattr(KeyframePicker, "pick", interrupted)
    status, output, messages = variegate("keyframes", "one.avi", "a.mp4", "-o", "out")
    assert status == 130
    assert len(output.splitlines()) == 1
    assert messages.splitlines()[-1] == (
        "variegate: interrupted; 1 of 2 videos are done; name only the others to go on"
    )
    assert names_in(tmp_path / "out") == ["one"]


def test_a_full_disk(variegate, monkeypatch, tmp_path, pretend):
    pretend(1.0)

    def full(path, content):
        raise OSError(f"cannot write {path}: No space left on device")

    monkeypatch.setattr("variegate.files.atomic.write_atomic", full)
    result = variegate("keyframes", "a.mp4", "-o", "out")
    assert fails(result, "a.mp4: cannot write out/a-001-00001.00s.jpg: No space left")
    assert not (tmp_path / "out").exists()


def test_progress_on_a_terminal(variegate, monkeypatch, watch):
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    drawn = watch(100)
    status, _, messages = variegate("keyframes", "a.mp4", "one.avi", "-o", "out")
    assert status == 0
    line = drawn(messages)[0]
    assert re.match(r"1/2 a.mp4 ━+ +0% 0:00.0 of 0:30.0  \d+ frames/s", line)
    # The line is wiped before anything else is said.
    assert "\x1b[2Kwritten: out/a: " in messages


def test_progress_without_a_duration_and_in_a_narrow_terminal(
    monkeypatch, capsys, watch
):
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    for width in (90, 50):
        drawn = watch(width)
        label = shorten_middle("x" * 40, 30)
        with progress.show_progress(label, progress.video_note()) as show:
            show("reading", 65.0, 0.0)
        line = drawn(capsys.readouterr().err)[0]
        assert len(line) <= width
        if width == 90:
            assert re.match(r"x{19}…x{10} ━+ +1:05.0  \d+ frames/s", line)


def test_nothing_is_said_early(variegate, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(progress, "PATIENCE", 1000.0)
    _, _, messages = variegate("keyframes", "one.avi", "-o", "out")
    assert not set("\r\x1b") & set(messages)


def test_without_model_the_packaged_one(variegate, monkeypatch, tmp_path):
    import variegate.video as video

    model = KeyframePicker.load(tmp_path / "model.json")
    monkeypatch.setattr(video, "load_default", lambda: model)
    with_model = variegate("keyframes", "a.mp4", "-o", "one", "--json")
    words = ["variegate", "keyframes", "a.mp4", "-o", "two", "--json"]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as stop:
        run()
    assert not stop.value.code
    assert with_model[0] == 0
    assert rows_of(tmp_path / "one") == rows_of(tmp_path / "two")


COMMANDS = [
    ["keyframes", "a.mp4", "-o", "out"],
    ["evaluate-keyframes", "one", "one"],
    ["fit-keyframes", ".", "picks.csv", "-o", "fitted.json"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_without_opencv(variegate, monkeypatch, tmp_path, command):
    (tmp_path / "one").mkdir()
    (tmp_path / "picks.csv").write_text("video,time\na.mp4,3\n")
    monkeypatch.setitem(sys.modules, "cv2", None)
    result = variegate(*command)
    assert fails(result, install_command("video"))
    assert not (tmp_path / "out").exists()


def own_process(*arguments, code="from variegate.cli import main; main()"):
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONUTF8": "1"},
        check=False,
    )


def test_nothing_heavy_is_imported_with_the_commands():
    code = (
        "import sys, variegate.cli.app\n"
        "print([m for m in sys.modules if m in ('cv2', 'variegate.video')])"
    )
    assert own_process(code=code).stdout == "[]\n"


def test_libraries_are_silent(samples, tmp_path):
    # FFmpeg has its own opinion of such a file.
    options = ["-o", str(tmp_path / "out"), "--model", str(samples / "model.json")]
    result = own_process("keyframes", str(samples / "cut.mp4"), *options)
    assert result.returncode == 2
    assert result.stderr.startswith(
        f"variegate: {samples / 'cut.mp4'} cannot be opened"
    )
    assert len(result.stderr.splitlines()) == 1


# evaluate-keyframes ---------------------------------------------------------------

HUES = {"red": (0, 0, 200), "green": (0, 200, 0), "blue": (200, 0, 0)}


def pictures(folder, *colours):
    folder.mkdir()
    for number, colour in enumerate(colours, 1):
        cv2.imwrite(str(folder / f"{number}.png"), plain(*HUES[colour]))


@pytest.fixture
def choices(tmp_path):
    pictures(tmp_path / "chosen", "red", "green", "red")
    pictures(tmp_path / "anna", "red", "blue")
    pictures(tmp_path / "ben", "red", "green", "red")


@pytest.mark.usefixtures("choices")
def test_scores_of_folders(variegate):
    status, output, messages = variegate("evaluate-keyframes", "chosen", "anna", "ben")
    assert (status, messages) == (0, "")
    assert output == (
        "user  frames  precision  recall      F   CUSa   CUSe\n"
        "anna       2      0.333   0.500  0.400  0.500  1.000\n"
        "ben        3      1.000   1.000  1.000  1.000  0.000\n"
        "mean              0.667   0.750  0.700  0.750  0.500\n"
    )
    _, alone, _ = variegate("evaluate-keyframes", "chosen", "anna")
    assert alone.splitlines() == output.splitlines()[:2]


@pytest.mark.usefixtures("choices")
def test_scores_as_json(variegate, tmp_path):
    status, output, _ = variegate(
        "evaluate-keyframes", "chosen", "anna", "ben", "--json", "--threshold", "2"
    )
    assert status == 0
    result = json.loads(output)
    assert (result["chosen"], result["frames"]) == ("chosen", 3)
    assert (result["matching"], result["threshold"]) == ("maximum", 2.0)
    histograms = {
        name: [hue_histogram(plain(*HUES[c])[:, :, ::-1]) for c in colours]
        for name, colours in {
            "chosen": ("red", "green", "red"),
            "anna": ("red", "blue"),
            "ben": ("red", "green", "red"),
        }.items()
    }
    for entry in result["users"]:
        user = histograms[entry.pop("user")]
        assert entry.pop("frames") == len(user)
        expected = score_against_user(user, histograms["chosen"], 2.0)
        assert entry == expected._asdict()
    scores = [[entry["f"], entry["cus_e"]] for entry in result["users"]]
    assert [result["mean"]["f"], result["mean"]["cus_e"]] == pytest.approx(
        np.mean(scores, axis=0)
    )


def test_the_two_matchings(variegate, tmp_path):
    def mixed(share):
        image = plain(*HUES["red"])
        image[: round(share * SIZE[1])] = HUES["green"]
        return image

    # In natural order: the first frame of the user is alike to both that were chosen,
    # takes the first of them, and leaves none for the other.
    for folder, shares in (
        ("chosen", {"2": 0.2, "10": 0.5}),
        ("user", {"2": 0.3, "10": 0.0}),
    ):
        (tmp_path / folder).mkdir()
        for name, share in shares.items():
            cv2.imwrite(str(tmp_path / folder / f"{name}.png"), mixed(share))
    recalls = {}
    for matching in ("maximum", "vsumm"):
        options = ["--matching", matching, "--json"]
        status, output, _ = variegate("evaluate-keyframes", "chosen", "user", *options)
        assert status == 0
        result = json.loads(output)
        assert result["matching"] == matching
        recalls[matching] = result["mean"]["recall"]
    assert recalls == {"maximum": 1.0, "vsumm": 0.5}


def test_scores_of_tables(variegate, tmp_path):
    images = [plain(*HUES[c]) for c in ("red", "green", "blue") for _ in range(10)]
    write_video(tmp_path / "three.avi", images)
    (tmp_path / "chosen.csv").write_text("time\n0.2\n1.2\n1.21\n1.25\n")
    (tmp_path / "users.csv").write_text(
        "video,user,time\nthree,anna,0:00.5\nthree.avi,ben,0.95\nthree,ben,2\nx,ben,0\n"
    )
    pictures(tmp_path / "cleo", "green")
    command = ["evaluate-keyframes", "chosen.csv", "users.csv", "cleo"]
    status, output, messages = variegate(*command, "--video", "three.avi", "--json")
    assert (status, messages) == (0, "")
    result = json.loads(output)
    # 1.21 and 1.25 are of one frame; 0.95 is answered by the one at 1.0, a green one.
    assert result["frames"] == 3
    scores = {entry["user"]: entry for entry in result["users"]}
    assert list(scores) == ["users.csv: anna", "users.csv: ben", "cleo"]
    assert scores["users.csv: anna"]["recall"] == 1.0
    assert scores["users.csv: ben"]["frames"] == 2
    assert scores["users.csv: ben"]["recall"] == 0.5
    assert scores["cleo"]["precision"] == pytest.approx(1 / 3)


def test_own_results_agree_with_themselves(variegate):
    variegate("keyframes", "a.mp4", "-o", "out", "--template", "{n}.png")
    status, output, messages = variegate(
        "evaluate-keyframes", "out", "out/keyframes.csv", "--video", "a.mp4", "--json"
    )
    assert (status, messages) == (0, "")
    assert json.loads(output)["mean"]["f"] == 1.0


@pytest.mark.usefixtures("choices")
def test_a_video_without_tables(variegate):
    status, _, messages = variegate(
        "evaluate-keyframes", "chosen", "ben", "--video", "one.avi"
    )
    assert status == 0
    assert messages.startswith("variegate: note: --video does nothing where all frames")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing argument 'CHOSEN'"),
        (["chosen"], "there is nothing to compare chosen with: name the folder"),
        (["gone", "anna"], "there is no folder or table gone"),
        (["chosen", "gone"], "there is no folder or table gone"),
        (["chosen", "nothing"], "there are no pictures in the folder nothing"),
        (["chosen", "broken"], "broken/1.png cannot be read as a picture"),
        (
            ["chosen", "t.csv"],
            "t.csv is not a folder; for a table of times, name",
        ),
        (["chosen", "t.csv", "--video", "gone.avi"], "there is no file gone.avi"),
        (["chosen", "t.csv", "--video", "text.mp4"], "text.mp4 cannot be opened as a"),
        (["chosen", "t.csv", "--video", "zero.avi"], "is a video without frames"),
        (["chosen", "t.csv", "--video", "one.avi"], "t.csv: the time 1.5 is after the"),
        (["t.csv", "chosen", "--video", "a.mp4"], "t.csv has the choices of several"),
        (["chosen", "bad.csv", "--video", "a.mp4"], "bad.csv, line 2: 'x' is not a ti"),
        (["chosen", "chosen/1.png", "--video", "a.mp4"], "1.png"),
        (["chosen", "anna", "--threshold", "0"], "0.0 is not in the range 0.0<x<=2.0"),
        (["chosen", "anna", "--threshold", "2.5"], "2.5 is not in the range"),
        (["chosen", "anna", "--threshold", "nan"], "'nan' is not a finite number"),
        (["chosen", "anna", "--matching", "best"], "'best' is not one of 'maximum'"),
    ],
)
@pytest.mark.usefixtures("choices")
def test_bad_choices(variegate, tmp_path, arguments, message):
    (tmp_path / "nothing").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "1.png").write_text("no picture")
    (tmp_path / "t.csv").write_text("time,user\n0,a\n1.5,b\n")
    (tmp_path / "bad.csv").write_text("time\nx\n")
    assert fails(variegate("evaluate-keyframes", *arguments), message)


# fit-keyframes --------------------------------------------------------------------


def test_fit_then_choose(variegate, tmp_path):
    rows = ["video,time,user", "a,0:05,anna", "a.mp4,20,ben", "b.avi,12.5,ben"]
    (tmp_path / "b.txt").write_text("notes")
    (tmp_path / "picks.csv").write_text("\n".join(rows))
    options = ["--omega", "2", "--omega", "0.5", "--lam", "1", "--max-iter", "100"]
    status, output, messages = variegate(
        "fit-keyframes", ".", "picks.csv", "-o", "fitted.json", *options
    )
    assert status == 0
    lines = output.splitlines()
    assert lines[0] == "videos: 2"
    assert lines[1].startswith("candidates: ")
    assert lines[2] == "users: 3"
    assert lines[3] == "learned for ω = 0.5, 2"
    assert lines[4].startswith("best choice of candidates: F ")
    assert messages.endswith("written: fitted.json\n")
    model = KeyframePicker.load(tmp_path / "fitted.json")
    assert (model.omegas_, model.lam) == ((0.5, 2.0), 1.0)
    status, output, _ = variegate(
        "keyframes", "b.avi", "-o", "out", "--model", "fitted.json"
    )
    assert status == 0
    assert output


def test_a_fit_that_stops_early_says_so_in_one_line(variegate, tmp_path):
    (tmp_path / "picks.csv").write_text("video,time\na.mp4,5\na.mp4,20\n")
    status, _, messages = variegate(
        "fit-keyframes", ".", "picks.csv", "-o", "fitted.json", "--max-iter", "1"
    )
    assert status == 0
    note, written = messages.splitlines()
    assert note.startswith("variegate: note: stopped at max_iter=1 ")
    assert written == "written: fitted.json"


@pytest.mark.parametrize(
    ("lost", "note"),
    [
        ([], None),
        (["900"], "1 pick is more than 2 s from any frame worth looking at and was"),
        (
            ["900", "15:01"],
            "2 picks are more than 2 s from any frame worth looking at and were",
        ),
    ],
)
def test_picks_that_no_frame_answers_are_counted(variegate, tmp_path, lost, note):
    # One user loses a pick of several, or all: both are counted.
    rows = ["video,time,user", "a.mp4,5,anna", "b.avi,12.5,ben"]
    videos = [("a.mp4", "anna"), ("b.avi", "cleo")]
    rows += [
        f"{video},{when},{user}"
        for (video, user), when in zip(videos, lost, strict=False)
    ]
    (tmp_path / "picks.csv").write_text("\n".join(rows))
    status, _, messages = variegate(
        "fit-keyframes", ".", "picks.csv", "-o", "fitted.json"
    )
    assert status == 0
    said = [line for line in messages.splitlines() if "frame worth" in line]
    assert said == ([] if note is None else [f"variegate: note: {note} left out"])
    model = KeyframePicker.load(tmp_path / "fitted.json")
    assert model.training_["n_lost"] == len(lost)


PICKS = "video,time\na.mp4,3\n"


@pytest.mark.parametrize(
    ("table", "arguments", "message"),
    [
        ("video,when\na.mp4,3\n", [], "picks.csv, line 1: there is no column 'time'"),
        ("video,time\na.mp4,x\n", [], "picks.csv, line 2: 'x' is not a time"),
        (
            "video,time\nc.mp4,3\n",
            [],
            "picks.csv, line 2: there is no video 'c.mp4'",
        ),
        ("video,time\n", [], "there are no rows in picks.csv"),
        ("video,time\na.mp4,900\n", [], "a.mp4: no picked time is within 2 s of a fra"),
        (PICKS + "text.mp4,1\n", [], "text.mp4 cannot be opened as a video"),
        (PICKS, ["-o", "gone/m.json"], "there is no folder gone"),
        (PICKS, ["-o", "picks.csv"], "picks.csv is one of the files to read"),
        (PICKS, ["-o", "a.mp4"], "a.mp4 is one of the files to read"),
        (PICKS, ["--omega", "0"], "0.0 is not in the range x>0.0"),
        (PICKS, ["--omega", "inf"], "'inf' is not a finite number"),
        (PICKS, ["--lam", "-1"], "-1.0 is not in the range x>=0.0"),
        (PICKS, ["--lam", "nan"], "'nan' is not a finite number"),
        (PICKS, ["--every", "0"], "0.0 is not in the range x>=0.001"),
        (PICKS, ["--max-iter", "0"], "0 is not in the range x>=1"),
    ],
)
def test_bad_picks(variegate, tmp_path, table, arguments, message):
    (tmp_path / "picks.csv").write_text(table)
    before = names_in(tmp_path)
    command = ["fit-keyframes", ".", "picks.csv", "-o", "fitted.json", *arguments]
    assert fails(variegate(*command), message)
    assert names_in(tmp_path) == before


def test_no_folder_and_no_table(variegate):
    result = variegate("fit-keyframes", "gone", "picks.csv", "-o", "fitted.json")
    assert fails(result, "there is no folder gone")
    result = variegate("fit-keyframes", ".", "gone.csv", "-o", "fitted.json")
    assert fails(result, "there is no file gone.csv")
    assert fails(variegate("fit-keyframes", ".", "gone.csv"), "Missing option '-o'")
