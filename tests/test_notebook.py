"""What a notebook shows of objects: HTML that says something, and only escaped text."""

from html.parser import HTMLParser

import numpy as np
import pytest

import variegate as vg
from variegate.tables import TableSelector, make_table
from variegate.text import Cluster, Document, Summarizer, load_default
from variegate.video.screening import Decision
from variegate.video.summary import Candidate, Keyframe, VideoSummary

BAD = "<script>alert(1)</script>"


class Reader(HTMLParser):
    """Collects elements and text; scikit-learn's diagram has scripts of its own."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.texts = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())


@pytest.fixture(scope="module")
def model():
    data = vg.datasets.make_synthetic(n_sets=20, random_state=0)
    return vg.LargeMarginDPP(random_state=0).fit(data.ground_sets, data.subsets), data


def test_ground_set():
    ground_set = vg.GroundSet(
        np.arange(21.0).reshape(7, 3), costs=np.arange(1.0, 8.0), items=[BAD] * 7
    )
    shown = Reader(ground_set._repr_html_())
    assert "Ground set of 7 items" in shown.text
    assert "costs 1 to 7" in shown.text
    assert "and 2 more items" in shown.text
    assert BAD in shown.text
    assert "script" not in shown.tags


def test_ensemble():
    ensemble = vg.LEnsemble(np.diag([1.0, 3.0]))
    shown = Reader(ensemble._repr_html_()).text
    assert "expected size 1.25" in shown  # 1/2 + 3/4
    assert "item log-quality probability 1 0.5493 0.75 0 0 0.5" in shown
    many = vg.LEnsemble.from_factor(np.ones((3000, 2)))
    assert "3,000 items" in Reader(many._repr_html_()).text


def test_selection():
    ensemble = vg.LEnsemble(np.diag([1.0, 3.0, 0.5]))
    shown = Reader(ensemble.decode("exact")._repr_html_()).text
    assert "items 1" in shown or "items 0, 1" in shown
    assert "gap to the best at most 0" in shown
    greedy = ensemble.decode("greedy")
    assert "log-probability" not in greedy._repr_html_()  # not worth its price
    assert greedy.log_prob < 0.0
    assert "log-probability" in greedy._repr_html_()


def test_estimators(model):
    fitted, data = model
    shown = Reader(fitted._repr_html_()).text
    assert "Learned" in shown
    assert f"{fitted.theta_[np.argmax(np.abs(fitted.theta_))]:+.4g}" in shown
    assert fitted.solver_result_.status in shown
    assert "Learned" in fitted._repr_mimebundle_()["text/html"]
    assert "Learned" not in vg.LargeMarginDPP()._repr_html_()
    search = vg.LargeMarginDPPCV(lams=[4.0], omegas=[1.0], cv=2, random_state=0)
    search.fit(data.ground_sets, data.subsets)
    assert "best lambda 4" in Reader(search._repr_html_()).text


def test_the_display_that_scikit_learn_is_set_to(model):
    from sklearn import config_context

    with config_context(display="text"):
        assert list(model[0]._repr_mimebundle_()) == ["text/plain"]


def test_table_selector():
    table = make_table(n_groups=20, random_state=0)
    table = table.rename_columns(
        [BAD if name == "score" else name for name in table.column_names]
    )
    selector = TableSelector(
        group="query", label="chosen", quality=[BAD, "freshness"],
        similarity="embedding", omega=1.0, kernel="linear",
    ).fit(table)  # fmt: skip
    page = selector._repr_html_()
    assert "script>alert" not in page.replace("&lt;script&gt;alert", "")
    assert "training data" in Reader(page).text.lower()


def test_summary():
    documents = [Document(f"One {BAD} storm came. It went.", BAD)]
    summary = load_default().summarize(documents, budget="1s")
    shown = Reader(summary._repr_html_())
    assert "1 of" in shown.text
    assert "script" not in shown.tags
    assert repr(summary).startswith("<Summary: 1 of")


def test_video_summary_prints_no_pixels():
    image = np.zeros((90, 160, 3), dtype=np.uint8)
    summary = VideoSummary(
        BAD,
        [Keyframe(3, 1.5, 0.75, image)],
        [Candidate(3, 1.5, 0.75, True), Candidate(9, 4.5, 0.25, False)],
        [Decision(9, 4.5, kept=True)],
        1.0,
        5.0,
    )
    assert repr(summary) == f"<VideoSummary: 1 of 2 frames of {BAD}>"
    assert "array" not in repr(summary.keyframes[0])
    shown = Reader(summary._repr_html_())
    assert "0:01.5, 75 %" in shown.text
    assert shown.tags.count("img") == 1
    assert "script" not in shown.tags


def test_a_summarizer_says_how_far_it_is(capsys):
    text = "Rain fell in Oslo today. It was the first rain in weeks. Cats sleep."
    cluster = Cluster([Document(text)], references=["Rain fell in Oslo."])
    Summarizer(budget="1s", verbose=True).fit([cluster])
    assert "Summarizer: fitting, 2 of 2" in capsys.readouterr().err
    Summarizer(budget="1s").fit([cluster])
    assert capsys.readouterr().err == ""
