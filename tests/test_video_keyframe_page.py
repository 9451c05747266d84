"""The page of key frames: all of them, where they come from, and nothing else."""

import base64
import re
from dataclasses import replace
from html.parser import HTMLParser

import cv2
import numpy as np
import pytest

from variegate.video.keyframe_page import html_report
from variegate.video.reading import time_label
from variegate.video.screening import BEST, Decision
from variegate.video.shots import Shot
from variegate.video.summary import Candidate, Keyframe, VideoSummary

REPEATS = "repeats the frame before"


class Page(HTMLParser):
    """The parts of a page that the tests look at."""

    VOID = ("meta", "img", "link", "br")

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.ids, self.links, self.cells = [], [], [], [], []
        self.text, self.titles = "", []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in self.VOID:
            self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")
        if tag == "title":
            self.titles.append("")

    def handle_startendtag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append((tag, attrs))
        self.ids += [attrs["id"]] if "id" in attrs else []
        self.links += [attrs["href"]] if "href" in attrs else []

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        last = self.open[-1] if self.open else ""
        if last in ("td", "th"):
            self.cells[-1] += data
        if last == "title":
            self.titles[-1] += data
        if last != "style":
            self.text += data

    def all(self, tag, style=None):
        return [
            attrs
            for name, attrs in self.tags
            if name == tag and (style is None or attrs.get("class") == style)
        ]

    def shades(self, place):
        """Return start and end of the stretches of a reason, as parts of 1."""
        (path,) = self.all("path", f"dropped r{place}")
        units = float(self.all("svg")[1]["viewbox"].split()[2])
        found = re.findall(r"M(\d+) \d+H(\d+)", path["d"])
        assert "".join(f"M{a} 500H{b}" for a, b in found) == path["d"]
        return [(int(a) / units, int(b) / units) for a, b in found]


def picture(seed, height=90, width=160):
    coarse = np.random.default_rng(seed).integers(0, 256, (9, 16, 3), dtype=np.uint8)
    return cv2.resize(coarse, (width, height), interpolation=cv2.INTER_NEAREST)


def decisions(reasons, every=1.0):
    return [
        Decision(round(30 * every * k), every * k, reason is None, reason)
        for k, reason in enumerate(reasons)
    ]


def summary(reasons, chosen=(0,), source="a.mp4", probability=0.5, every=1.0):
    looked_at = decisions(reasons, every)
    candidates = [
        Candidate(d.number, d.time, probability, place in chosen)
        for place, d in enumerate(d for d in looked_at if d.kept)
    ]
    keyframes = [
        Keyframe(c.number, c.time, c.probability, picture(c.number))
        for c in candidates
        if c.chosen
    ]
    return VideoSummary(
        source, keyframes, candidates, looked_at, 0.25, looked_at[-1].time
    )


MIXED = [
    None,
    "dark",
    "dark",
    None,
    REPEATS,
    "blurred",
    None,
    None,
    "dark",
    "flat",
    None,
]


@pytest.mark.parametrize(
    "made",
    [
        summary([None] * 40, chosen=range(40)),
        summary(MIXED, chosen=(0, 2, 4)),
        summary([None]),
        summary([None] * 3, chosen=()),
        summary([None, "dark"], every=4000.0),
    ],
)
def test_page_is_well_formed_and_holds_every_key_frame(made):
    page = Page(html_report(made, "Holidays"))
    assert page.open == []
    assert len(set(page.ids)) == len(page.ids)
    pictures = page.all("img")
    assert [attrs["alt"] for attrs in pictures] == [
        f"Frame {k.number} at {time_label(k.time)}" for k in made.keyframes
    ]
    for keyframe in made.keyframes:
        assert time_label(keyframe.time) in page.text
        assert f"frame {keyframe.number}" in page.text
    # every mark leads to its picture
    assert page.links == [f"#k{n}" for n in range(1, len(made.keyframes) + 1)]
    assert {link[1:] for link in page.links} <= set(page.ids)
    assert ("No frame was chosen." in page.text) == (not made.keyframes)


def test_pictures_are_those_of_the_key_frames_in_their_order():
    made = summary([None] * 5, chosen=(1, 3))
    page = Page(html_report(made))
    for attrs, keyframe in zip(page.all("img"), made.keyframes, strict=True):
        head, data = attrs["src"].split(",", 1)
        assert head == "data:image/jpeg;base64"
        image = cv2.imdecode(
            np.frombuffer(base64.b64decode(data), np.uint8), cv2.IMREAD_COLOR
        )
        difference = np.abs(image[:, :, ::-1].astype(int) - keyframe.image)
        assert difference.mean() < 12


@pytest.mark.parametrize(
    ("height", "width", "shown"),
    [(720, 1280, (480, 270)), (1280, 720, (270, 480)), (90, 160, (160, 90))],
)
def test_large_pictures_are_shrunk(height, width, shown):
    made = summary([None])
    keyframe = Keyframe(0, 0.0, 0.5, picture(0, height, width))
    made = VideoSummary("a", [keyframe], made.candidates, made.decisions, 1.0, 0.0)
    (attrs,) = Page(html_report(made)).all("img")
    assert (int(attrs["width"]), int(attrs["height"])) == shown


def test_facts():
    page = Page(html_report(summary(MIXED, chosen=(1, 2), source="/films/a b.mp4")))
    for fact in ("0:10.0", "11 frames", "5 frames", "2 frames", "0.25", "a b.mp4"):
        assert fact in page.text
    assert page.all("bdi")[0]["title"] == "/films/a b.mp4"


def test_the_page_says_why_likelier_frames_were_not_chosen():
    made = summary([None] * 4, chosen=(1,))
    why = "too similar to frame 30 at 0:01.0 <b>"
    refused = replace(made.candidates[3], why_not=why, like=30, similarity=0.9)
    with_one = replace(made, candidates=[*made.candidates[:3], refused])
    page = Page(html_report(with_one))
    assert page.open == []
    assert "1 more probable frame not chosen" in page.text
    assert why in page.text
    assert "likelier" not in html_report(made)


def test_shots_and_cuts():
    made = summary([None] * 11, chosen=(0, 3, 9))
    shots = [Shot(0.0, 2.0), Shot(2.0, 5.0), Shot(5.0, 10.0)]
    page = Page(html_report(replace(made, shots=shots)))
    assert "3, all shown" in page.text
    (cuts,) = page.all("path", "cuts")
    assert cuts["d"] == "M4000 0V1000M10000 0V1000"
    fewer = [*shots[:2], Shot(5.0, 8.0), Shot(8.0, 8.5), Shot(8.5, 10.0)]
    assert "5, 3 shown" in Page(html_report(replace(made, shots=fewer))).text
    one = Page(html_report(replace(made, shots=[Shot(0.0, 10.0)])))
    assert one.all("path", "cuts") == []
    many = [Shot(0.1 * k, 0.1 * (k + 1)) for k in range(101)]
    assert Page(html_report(replace(made, shots=many))).all("path", "cuts") == []
    assert "Shots" not in html_report(made)


def test_what_is_dropped_last_is_dropped_to_the_end():
    made = replace(summary([None, None, "dark"]), duration=4.0)
    page = Page(html_report(made))
    assert "0:04.0" in page.text
    assert page.shades(0) == [(1.5 / 4.0, 1.0)]


def test_nothing_becomes_markup():
    hostile = "<script>\"&'</script><img src=x>"
    reason = "<b>odd</b>"
    made = summary([None, reason, None], source=f'/films/{hostile[:8]}"&\x07\ud83d')
    text = html_report(made, hostile)
    page = Page(text)
    assert page.open == []
    assert not page.all("script")
    # one for the picture and one for its time, none from the title or the reason
    assert len(page.all("img")) == len(page.all("b")) == 1
    assert page.titles[0] == hostile
    assert page.all("bdi")[0]["title"] == '/films/<script>"&\ufffd\ufffd'
    assert reason in page.cells
    assert f"dropped: {reason}" in page.titles
    text.encode("utf-8")


def test_nothing_comes_from_outside():
    text = html_report(summary(MIXED, chosen=range(5)))
    page = Page(text)
    assert not re.search(r"https?://|url\(|@import", text)
    assert not page.all("script") + page.all("link")
    assert all(link.startswith("#") for link in page.links)


def test_dropped_stretches_are_merged_by_reason():
    page = Page(html_report(summary(MIXED)))
    # of 10 seconds; a frame reaches half way to its neighbours
    assert page.shades(0) == [(0.05, 0.25), (0.75, 0.85)]
    assert page.shades(1) == [(0.85, 0.95)]
    assert page.shades(2) == [(0.45, 0.55)]
    assert page.shades(3) == [(0.35, 0.45)]
    assert page.cells[4:] == [
        *("dark", "3", "27 %", "2"),
        *("flat", "1", "9.1 %", "1"),
        *("blurred", "1", "9.1 %", "1"),
        *(REPEATS, "1", "9.1 %", "1"),
        *("together", "6", "55 %", "5"),
    ]
    for reason in ("dark", "flat", "blurred", REPEATS):
        assert f"dropped: {reason}" in page.titles


def test_a_stretch_goes_on_to_the_ends():
    page = Page(html_report(summary(["dark", "dark", None, "flat"])))
    ((start, end),) = page.shades(0)
    assert (start, end) == (0.0, 0.5)
    ((start, end),) = page.shades(1)
    assert (start, end) == (pytest.approx(2.5 / 3, abs=1e-4), 1.0)


def test_a_kept_frame_parts_two_stretches():
    page = Page(html_report(summary(["dark", None, "dark"])))
    assert page.shades(0) == [(0.0, 0.25), (0.75, 1.0)]


def test_nothing_dropped():
    text = html_report(summary([None] * 4))
    page = Page(text)
    assert not page.all("details") + page.all("table")
    assert "No frame was dropped." in page.text
    assert "dropped:" not in page.text


def test_every_candidate_has_a_bar_as_high_as_its_probability():
    looked_at = decisions([None] * 5)
    probabilities = [0.0, 0.1, 0.2, 0.4, 0.3]
    candidates = [
        Candidate(d.number, d.time, p, p == 0.4)
        for d, p in zip(looked_at, probabilities, strict=True)
    ]
    keyframe = Keyframe(looked_at[3].number, 3.0, 0.4, picture(0))
    made = VideoSummary("a", [keyframe], candidates, looked_at, 1.0, looked_at[-1].time)
    page = Page(html_report(made))
    # the scale ends at the next of 100, 50, 20, 10, ... percent
    assert "full height: 50 %" in page.text
    (bars,), (chosen,) = page.all("path", "bars"), page.all("path", "bars chosen")
    found = re.findall(r"M(\d+) 1000V(\d+)", bars["d"])
    assert found == [("0", "1000"), ("5000", "800"), ("10000", "600"), ("20000", "400")]
    assert chosen["d"] == "M15000 1000V200"
    # the mark is above its bar, and says the time and the probability
    assert page.all("circle")[0]["cx"] == "75%"
    assert "0:03.0, probability 40 %" in page.titles


@pytest.mark.parametrize(
    ("probability", "scale"),
    [(0.0, 100), (1e-9, 0.0002), (0.02, 2), (0.021, 5), (0.5, 50), (1.0, 100)],
)
def test_the_scale_of_the_bars(probability, scale):
    text = html_report(summary([None], probability=probability))
    assert f"full height: {scale:g} %" in text


@pytest.mark.parametrize(
    ("count", "every", "labels"),
    [
        (5, 0.1, ["0:00.0", "0:00.1", "0:00.2", "0:00.3", "0:00.4"]),
        (
            4,
            1.0,
            ["0:00.0", "0:00.5", "0:01.0", "0:01.5", "0:02.0", "0:02.5", "0:03.0"],
        ),
        (180, 1.0, ["0:00", "0:30", "1:00", "1:30", "2:00", "2:30"]),
        (15, 1000.0, ["0:00", "1:00:00", "2:00:00", "3:00:00"]),
        (11, 36_000.0, ["0:00", "15:00:00", "30:00:00", "45:00:00", "60:00:00"]),
    ],
)
def test_times_on_the_axis(count, every, labels):
    text = html_report(summary([None] * count, every=every))
    found = re.findall(r"<text [^>]*>([^<]*)</text>", text)
    assert found[: len(labels)] == labels
    assert 1 <= len(found) <= 8


def test_one_frame_only():
    reason = f"dark{BEST}"
    looked_at = [Decision(0, 0.0, True, reason)]
    keyframe = Keyframe(0, 0.0, 1.0, picture(0))
    candidate = Candidate(0, 0.0, 1.0, True)
    made = VideoSummary("a", [keyframe], [candidate], looked_at, 1.0, 0.0)
    page = Page(html_report(made))
    assert page.open == []
    assert page.all("circle")[0]["cx"] == "50%"
    assert "No frame passed the checks" in page.text
    assert "No frame was dropped." in page.text
    assert "1 frame" in page.text
    assert "No frame passed" not in html_report(summary([None]))


def test_the_timeline_has_a_title():
    text = html_report(summary(MIXED, chosen=(0, 1)))
    page = Page(text)
    timeline = page.all("svg", "timeline")[0]
    assert timeline["aria-labelledby"] in page.ids
    assert "Timeline of 0:10.0 with 5 candidates and 2 chosen frames" in page.titles


@pytest.mark.parametrize(
    "reasons", [[None, REPEATS] * 7200, [None, "dark", "flat"] * 4800]
)
def test_a_long_video_stays_small(reasons):
    # nothing can be merged here, which is the worst case
    looked_at = decisions(reasons)
    kept = [d for d in looked_at if d.kept][::4][:1000]
    candidates = [Candidate(d.number, d.time, 0.3, False) for d in kept]
    made = VideoSummary("a", [], candidates, looked_at, 1.0, looked_at[-1].time)
    assert len(html_report(made)) < 250_000


def test_a_long_video_with_long_stretches_is_smaller_still():
    reasons = ([None] * 60 + [REPEATS] * 60 + ["dark"] * 60 + ["blurred"] * 60) * 60
    looked_at = decisions(reasons)
    kept = [d for d in looked_at if d.kept][:1000]
    candidates = [Candidate(d.number, d.time, 0.3, False) for d in kept]
    text = html_report(
        VideoSummary("a", [], candidates, looked_at, 1.0, looked_at[-1].time)
    )
    assert len(Page(text).shades(0)) == 60
    assert len(text) < 40_000
