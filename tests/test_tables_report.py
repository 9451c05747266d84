"""The report of a fitted selector: as a page, as Markdown, as text, for programs."""

import html
import json
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pytest

import variegate as vg
from variegate.application.model_facts import kernel_parts
from variegate.report.terminal import format_bars
from variegate.report.wording import shorten_middle
from variegate.tables import TableSelector, make_table
from variegate.tables.choosing import ByMethod, ByModel
from variegate.tables.evaluation import (
    DiversityJudge,
    Evaluation,
    evaluate_choosers,
)
from variegate.tables.limits import Limit
from variegate.tables.report import (
    Report,
    facts,
    html_page,
    markdown,
    write_markdown,
)
from variegate.tables.report.contents import all_figures, commands, learning_figure
from variegate.tables.report.gathering import ExampleGroup, ExampleRow, example_groups
from variegate.tables.table import as_table
from variegate.tuning.path import format_omega


def text(selector):
    return str(selector.describe())


def as_json(selector):
    return selector.describe().numbers


PNG = b"\x89PNG\r\n"
SHOWN = ("item", "kind", "score")


class Page(HTMLParser):
    """The parts of a page that the tests look at; wrong nesting is an error."""

    VOID = ("meta", "br")

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.ids, self.used, self.rows = [], [], [], [], []
        self.headings, self.text = [], ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag in ("h1", "h2", "h3"):
            self.headings.append("")

    def handle_startendtag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append((tag, attrs))
        self.ids += [attrs["id"]] if "id" in attrs else []
        for value in attrs.values():
            self.used += re.findall(r"^#(.+)|url\(#(.*?)\)", value or "")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data
        if (
            self.open
            and self.open[-1] in ("h1", "h2", "h3", "bdi")
            and ({"h1", "h2", "h3"} & set(self.open))
        ):
            self.headings[-1] += data
        if "style" not in self.open:
            self.text += data

    def row(self, first):
        return next(row for row in self.rows if row and row[0] == first)


@pytest.fixture(scope="module")
def table():
    return make_table(n_groups=32, n_items=10, n_dimensions=4, random_state=0)


def fitted(table, **given):
    settings = {"max_iter": 25, "omega": 1.0, "kernel": "multiple"}
    settings |= {"quality": ["score", "freshness"]}
    settings |= {"group": "query", "label": "chosen", "similarity": "embedding"} | given
    return TableSelector(**settings).fit(table)


def chooser(selector):
    return ByModel(selector.model_, vg.decoding.as_decoder("greedy"))


def report_of(selector, table, n_examples=2):
    source = as_table(table)
    columns = selector._required_columns(True, relevance="score")
    every = selector._read_groups(source, columns)
    groups = list(every)
    examples = example_groups(every, groups[:n_examples], chooser(selector), SHOWN)
    ways = {"model": chooser(selector), "top 3": ByMethod("top", Limit(3))}
    ways["random 3"] = ByMethod("random", Limit(3))
    comparison = evaluate_choosers(groups, ways, diversity=DiversityJudge())
    return Report(selector, "train.parquet", SHOWN, tuple(examples), comparison)


@pytest.fixture(scope="module")
def judged(table):
    """A model judged on held-out groups, with categories and costs."""
    selector = fitted(
        table,
        quality=["score", "freshness"],
        categorical="kind",
        item="item",
        cost="tokens",
        omega=1.0,
        validation_fraction=0.25,
        missing="mean",
    )
    return report_of(selector, table)


@pytest.fixture(scope="module")
def judged_page(judged):
    return html_page(judged)


@pytest.fixture(scope="module")
def judged_markdown(judged):
    return markdown(judged)


pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

OTHERS = {
    "several blocks": {"similarity": ["embedding", "tokens", "popularity"]},
    "linear": {"kernel": "linear"},
    "linear of blocks": {"kernel": "linear", "similarity": ["embedding", "tokens"]},
    "quality for both": {"similarity": None},
    "tuned": {"tune": True, "lams": (0.0, 1.0), "omega": None},
    "maximum likelihood": {"lam": 0.0, "validation_fraction": 0.25},
}


def check_page(page):
    """Check what holds for every page, and return it parsed."""
    parsed = Page(page)
    assert "://" not in page
    tags = {tag for tag, _ in parsed.tags}
    assert not tags & {"script", "link", "img", "iframe", "image", "object"}
    assert not any("src" in attrs or "xlink:href" in attrs for _, attrs in parsed.tags)
    assert all(attrs["href"][0] == "#" for _, attrs in parsed.tags if "href" in attrs)
    assert len(parsed.ids) == len(set(parsed.ids))
    assert {one or other for one, other in parsed.used} <= set(parsed.ids)
    assert page.startswith("<!DOCTYPE html>")
    page.encode("utf-8")
    return parsed


# The page -------------------------------------------------------------------------


def test_the_page_has_all_sections_and_nothing_from_outside(judged_page):
    page = check_page(judged_page)
    assert page.headings == [
        "Model learned from train.parquet",
        "Scores on held-out groups",
        "Precision and recall by ω",
        "Weights of the quality",
        "Weights of the similarity",
        "Example groups",
        "q0001",
        "Training",
        "Using the model",
    ]
    # The contents are links to them.
    links = [attrs["href"] for tag, attrs in page.tags if tag == "a"]
    assert links == [f"#s{number}" for number in range(1, 8)]
    assert judged_page.index('class="contents"') < judged_page.index("<h2")
    for folded in ("Similarity of the chosen rows", "Learning curve", "q0002: F-score"):
        assert f"<summary>{folded}" in judged_page
    figures = [attrs for tag, attrs in page.tags if tag == "svg"]
    assert len(figures) == 5
    assert all(attrs["aria-label"] and attrs["viewbox"] for attrs in figures)


def test_numbers_on_the_page_are_those_of_the_training(judged, judged_page):
    selector = judged.selector
    record = selector.training_
    alone = check_page(html_page(replace(judged, comparison=None)))
    for name, label in (("precision", "Precision"), ("recall", "Recall")):
        mean, low, high = record["validation"][name]
        assert alone.row(label)[1:3] == [f"{mean:.3f}", f"{low:.3f} to {high:.3f}"]
    page = check_page(judged_page)
    for point in selector.path_:
        name = format_omega(point.omega) + " (chosen)" * (point.omega == 1.0)
        assert page.row(name)[1] == (
            f"{point.precision:.3f} ± {point.precision_error:.3f}"
        )
    for name, value in selector.weights_.items():
        assert page.row(name)[1] == f"{value:.5g}"
    assert page.row("(intercept)")[1] == f"{selector.model_.intercept_:.5g}"
    for fact in ("320", "32", "24 groups", "8 groups"):
        assert fact in page.text
    assert selector.model_.solver_result_.status in page.text


def test_numbers_are_the_same_wherever_they_are_read(
    judged, judged_page, judged_markdown
):
    selector = judged.selector
    page, words = check_page(judged_page), judged_markdown[0]
    alone = replace(judged, comparison=None)
    scores, lines = check_page(html_page(alone)), markdown(alone)[0]
    for name, label in facts.SCORE_NAMES.items():
        interval = facts.held_out_scores(selector)[name]
        digits = 2 if name == "size" else 3
        mean, low, high = (f"{value:.{digits}f}" for value in interval)
        assert scores.row(label)[1:3] == [mean, f"{low} to {high}"]
        assert f"| {label} | {mean} | {low} to {high} |" in lines
        assert re.search(rf"(?i:{label}) +{mean} +{low} to {high}\n", text(selector))
    for name, found in judged.comparison.intervals().items():
        size = found["size"]
        row = page.row(name)
        assert row[6] == f"{size.mean:.2f}{size.low:.2f} to {size.high:.2f}"
        assert f"| {size.mean:.2f} ({size.low:.2f} to {size.high:.2f}) |" in words


def test_the_style_sheet_knows_the_colours_of_all_figures(judged_page):
    style, _, body = judged_page.partition("</style>")
    drawn = set(re.findall(r"(?:fill|stroke): #[0-9a-f]{6}", body))
    assert drawn
    assert all(f'.figure [style*="{colour}"]' in style for colour in drawn)


def test_the_columns_say_how_they_are_encoded(judged, judged_page):
    page = check_page(judged_page)
    rows = [row for row in page.rows if row[0] in ("quality", "similarity", "cost")]
    (score,) = (column for column in judged.selector.encoding_.quality[:1])
    assert rows == [
        ["cost", "tokens", "for budgets"],
        [
            "quality",
            "score",
            f"number, standardised (mean {score.mean[0]:.4g}, standard deviation "
            f"{score.scale[0]:.4g})",
        ],
        ["quality", "freshness", rows[2][2]],
        [
            "quality",
            "kind",
            "5 categories: blog, forum, news, reference, video",
        ],
        ["similarity", "embedding", "vector of 4 numbers, scaled to unit length"],
    ]
    assert "An empty cell counts as the mean of its column" in page.text


def test_a_comparison_has_intervals_and_paired_differences(judged, judged_page):
    page = check_page(judged_page)
    comparison = judged.comparison
    interval = comparison.intervals()["top 3"]["f"]
    (row, _) = (row for row in page.rows if row[0] == "top 3")
    assert row[1] == f"{interval.mean:.3f}{interval.low:.3f} to {interval.high:.3f}"
    less = comparison.differences("model")["top 3"]["f"]
    mark = "▼" if less.low > 0 else "▲" if less.high < 0 else "≈"
    assert row[3] == f"{-less.mean:+.3f} {mark}{-less.high:+.3f} to {-less.low:+.3f}"


@pytest.mark.parametrize(
    ("gap", "message"),
    [
        (0.2, "is clearly worse. Its F-score is 0.300; that of the model is 0.500"),
        (0.0, "is not clearly better or worse. Its F-score is 0.500; that of the"),
        (-0.2, "is clearly better: use it, or give more groups or other columns."),
    ],
)
def test_the_verdict_is_about_the_best_other_method(judged, gap, message):
    f = np.tile([0.4, 0.6], 10)
    scores = {
        name: np.column_stack([f - less] * 3 + [f])
        for name, less in {"model": 0.0, "poor": 0.3, "a *rival*": gap}.items()
    }
    counts = dict.fromkeys(scores, np.ones((20, 3)))
    report = replace(judged, comparison=Evaluation(scores, counts))
    words = facts.verdict(report.selector, report.comparison)[1]
    assert words.startswith("The best other method, a *rival*, is")
    assert message in words
    page = html_page(report)
    assert words in html.unescape(page).split("</header>")[0]
    assert f"a \\*rival\\*, {message[:8]}" in markdown(report)[0]


def test_the_verdict_says_what_helps_where_learning_did_not_converge(table):
    selector = fitted(table, kernel="linear", max_iter=1)
    words = " ".join(facts.verdict(selector, None))
    assert "Learning did not converge. Raise max_iter (now 1), add a little l2" in words


def test_a_comparison_says_how_alike_chosen_rows_are(
    judged, judged_page, judged_markdown
):
    page, words = check_page(judged_page), judged_markdown[0]
    comparison = judged.comparison
    over_rows, diversities = comparison.over_rows(), comparison.diversities()
    for name in (*comparison.scores, "wanted rows"):
        row = [row for row in page.rows if row[0] == name][-1]
        own = over_rows.get(name, {})
        expected = [
            *(own.get(score) for score in ("precision", "recall")),
            *(diversities[name][score] for score in ("similarity", "copies")),
        ]
        ends = [
            "" if i is None else f"{i.mean:.3f}{i.low:.3f} to {i.high:.3f}"
            for i in expected
        ]
        assert row[1:] == ends
    similarity = diversities["wanted rows"]["similarity"]
    assert f"| {similarity.mean:.3f} ({similarity.low:.3f} to " in words
    assert "a cosine above 0.95 to another chosen row." in page.text


def test_kinds_are_a_column_where_the_model_has_them(table):
    selector = fitted(table, kernel=vg.Kinds(3), max_iter=5, validation_fraction=0.25)
    page = check_page(html_page(selector.report(table)))
    heads = next(row for row in page.rows if "Near copies" in row)
    assert heads[-1] == "Kinds"
    kinds = selector.report(table).comparison.diversities()["learned"]["kinds"]
    row = [row for row in page.rows if row[0] == "learned"][-1]
    assert row[-1] == f"{kinds.mean:.2f}{kinds.low:.2f} to {kinds.high:.2f}"
    assert "Kinds are the number of learned kinds" in page.text


def test_rows_of_examples_are_marked_in_words():
    rows = (
        ExampleRow(("a",), 1, 0.9, True),
        ExampleRow(("b",), 2, 0.4, False),
        ExampleRow(("c",), 0, 0.3, True),
        ExampleRow(("d",), 0, 0.0, False),
    )
    selector = fitted(make_table(n_groups=8, n_items=6), kernel="linear")
    group = ExampleGroup("one", rows, 0.5)
    given = Report(selector, "t.csv", ("name",), (group,), None)
    whole = html_page(given)
    page = check_page(whole)
    first = next(place for place, row in enumerate(page.rows) if row[0] == "right")
    assert page.rows[first : first + 4] == [
        ["right", "1", " 90 %", "a"],
        ["wrong", "2", " 40 %", "b"],
        ["missed", "", " 30 %", "c"],
        ["left out", "", " 0.0 %", "d"],
    ]
    assert "1 right, 1 wrong, 1 missed" in page.text
    styles = [attrs.get("class") for tag, attrs in page.tags if tag == "tr"]
    marked = [style for style in styles if style is not None]
    assert marked == ["right", "wrong", "missed", "other"]
    widths = re.findall(r'<i style="width: ([\d.]+)%"', whole)
    assert widths == ["90.0", "40.0", "30.0", "0.0"]
    # Without names of columns, rows are shown by their number.
    assert '<th scope="col">Row</th>' in html_page(replace(given, show=()))
    words = markdown(given)[0]
    assert "| ✔ right | 1 | 90 % | a |" in words
    assert "| ✗ wrong | 2 | 40 % | b |" in words
    assert "| ○ missed |  | 30 % | c |" in words


@pytest.mark.parametrize("name", OTHERS)
def test_every_kind_of_selector_has_a_report(table, name, tmp_path):
    selector = fitted(table, **OTHERS[name])
    report = Report(selector, "train.csv")
    page = check_page(html_page(report))
    assert ("Weights of the similarity" in page.headings) == (name not in ("linear",))
    is_judged = name == "maximum likelihood"
    assert ("Precision and recall by ω" in page.headings) == is_judged
    assert "Example groups" not in page.headings
    write_markdown(report, tmp_path / "a" / "b")
    check_links(tmp_path / "a" / "b")
    json.dumps(as_json(selector), allow_nan=False)
    assert selector.model_.solver_result_.status in text(selector)
    if name == "tuned":
        recall = selector.training_["tuned"]["recall"]
        assert "In cross-validation on 32 groups" in page.text
        assert f"{100 * recall:.0f} % (recall)" in page.text


def test_scores_are_only_promised_where_they_are_known(table):
    selector = fitted(table, kernel="linear")
    assert "does not show how well" in facts.scores_in_words(selector)
    assert "held-out" not in text(selector)


def test_mini_batches_show_how_many_groups_were_seen():
    table = make_table(60, 5, 3, random_state=0)
    solver = vg.solvers.MiniBatch(batch_size=8, n_epochs=2)
    estimator = vg.LargeMarginDPP(lam=4.0, kernel=vg.Linear(), solver=solver)
    selector = fitted(table, kernel=None, estimator=estimator)
    history = selector.training_["history"]
    assert history["n_seen"][-1] > 0
    (axes,) = learning_figure(selector.training_).axes
    assert axes.get_xlabel() == "groups seen"
    known = [
        n for n, f in zip(history["n_seen"], history["objective"], strict=True) if f
    ]
    assert list(axes.lines[0].get_xdata()) == known
    check_page(html_page(Report(selector, "train.parquet")))


def test_a_model_from_a_file_has_the_same_report(judged, judged_page, tmp_path):
    judged.selector.save(tmp_path / "model.json")
    again = vg.load(tmp_path / "model.json")
    report = replace(judged, selector=again)
    assert html_page(report) == judged_page
    assert text(again) == text(judged.selector)
    assert as_json(again) == as_json(judged.selector)


# Nasty names ----------------------------------------------------------------------

NASTY = '<script>alert(\'x\')</script> "q" & $a_1$ #000000 id="x" | *b* `c` \x07\n'


def nasty_table():
    table = make_table(n_groups=8, n_items=6, n_dimensions=3, random_state=1)
    names = {"score": NASTY, "embedding": "</svg>" + NASTY, "kind": "種類 𝛼 kind"}
    table = table.rename_columns([names.get(n, n) for n in table.column_names])
    queries = [f"{NASTY}{name}" for name in table["query"].to_pylist()]
    kinds = [f"{NASTY}{kind}" for kind in table["種類 𝛼 kind"].to_pylist()]
    for name, values in (("query", queries), ("種類 𝛼 kind", kinds)):
        place = table.column_names.index(name)
        table = table.set_column(place, name, pa.array(values))
    return table, names


def test_names_cannot_break_out(tmp_path):
    table, names = nasty_table()
    selector = fitted(
        table,
        quality=[names["score"]],
        categorical=names["kind"],
        similarity=[names["embedding"], "tokens"],
        validation_fraction=0.25,
    )
    source = as_table(table)
    every = selector._read_groups(source, selector._required_columns(True))
    groups = list(every)
    shown = tuple(names.values())
    examples = example_groups(every, groups[:2], chooser(selector), shown)
    comparison = evaluate_choosers(
        groups, {NASTY: chooser(selector), "x<b>": ByMethod("top", Limit(2))}
    )
    report = Report(selector, NASTY, shown, tuple(examples), comparison, NASTY)
    whole = html_page(report)
    page = check_page(whole)
    assert "<script>alert('x')</script>" in page.text
    # In figures too names are as they are, however much they look like SVG.
    kind = "kind = <script>alert('x')</script>"
    assert "#000000" in page.text
    assert kind in page.text
    assert "\x07" not in whole
    write_markdown(report, tmp_path)
    words = check_links(tmp_path)
    assert "<script>" not in words.split("## Using the model")[0]
    for line in words.splitlines():
        if line.startswith("| "):
            assert len(re.findall(r"(?<!\\)\|", line)) in (3, 4, 5, 6, 7)
    assert "\x07" not in text(selector)


# Markdown -------------------------------------------------------------------------


def check_links(folder):
    """Check that all pictures are there and shown, and return the words."""
    words = (folder / "report.md").read_text(encoding="utf-8")
    linked = re.findall(r"!\[[^]]*\]\(([^)]*)\)", words)
    files = {path.name for path in folder.iterdir()} - {"report.md"}
    assert files == set(linked)
    for name in files:
        assert (folder / name).read_bytes().startswith(PNG)
    return words


def test_markdown_shows_its_pictures(judged, judged_markdown, tmp_path):
    words, files = judged_markdown
    names = {"weights", "learning", "path", "omega", "kernel"}
    assert set(files) == {f"{name}.png" for name in names}
    write_markdown(judged, tmp_path / "new" / "folder")
    assert check_links(tmp_path / "new" / "folder") == words
    assert "variegate select new.parquet --model model.json" in words
    # Every table has as many cells in each row as in its head.
    for block in re.findall(r"(?:^\|.*\|\n)+", words, flags=re.MULTILINE):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(widths) == 1


def test_the_command_quotes_the_name_of_the_model():
    words = commands("my model's.json")
    assert """--model 'my model'"'"'s.json' -o""" in words
    assert """vg.load("my model's.json")""" in words


# Text and JSON --------------------------------------------------------------------


def test_the_text_has_aligned_weightswith_bars(judged):
    selector = judged.selector
    lines = text(selector).splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith("weights of"))
    bars = lines[start + 1 : start + 1 + len(selector.weights_)]
    assert len({line.index("│") for line in bars}) == 1
    by_effect = facts.weights(selector)
    for line, weight in zip(bars, by_effect, strict=True):
        assert line.strip().startswith(weight.label(40))
        side = line.split("│")[0 if weight.value < 0 else 1]
        drawn = side.count("█") + 0.5 * (side.count("▌") + side.count("▐"))
        length = 16 * abs(weight.effect / by_effect[0].effect)
        assert drawn == pytest.approx(length, abs=0.3)
        assert float(re.search(r"(-?[\d.]+)  [ █▐]*│", line)[1]) == pytest.approx(
            weight.value, abs=6e-4
        )
    assert "Bars: weight times the standard deviation" in text(selector)


def test_the_effect_of_a_category_is_that_of_its_rows(judged):
    selector = judged.selector
    kinds = selector.encoding_.quality[2]
    assert kinds.kind == "category"
    n_rows = selector.training_["n_learned_rows"]
    assert sum(kinds.counts) == n_rows
    found = {weight.name: weight for weight in facts.weights(selector)}
    for level, n in zip(kinds.levels, kinds.counts, strict=True):
        weight = found[f"kind = {level}"]
        flags = np.repeat([1.0, 0.0], [n, n_rows - n])
        assert weight.n_rows == n
        assert weight.effect == pytest.approx(weight.value * flags.std())
    assert found["score"].effect == found["score"].value


def test_the_text_has_scores_path_and_kernel(judged):
    selector = judged.selector
    words = text(selector)
    mean, low, high = selector.training_["validation"]["recall"]
    assert re.search(rf"recall +{mean:.3f} +{low:.3f} to {high:.3f}", words)
    assert all(line in words for line in str(selector.path_).splitlines())
    for sigma, alpha in zip(
        selector.model_.kernel_.bandwidths_[None], selector.model_.alpha_, strict=True
    ):
        assert re.search(rf"Gaussian, σ = {sigma:.3g} +{alpha:.3f} ", words)
    assert not re.search(r"[ \t]$", words, flags=re.MULTILINE)


def test_wide_letters_are_aligned_too():
    assert format_bars(["ab", "種類"], [1.0, 0.5]).splitlines() == [
        "  ab    1.00  │████████████████",
        "  種類  0.50  │████████",
    ]


def test_json_is_plain_and_complete(judged):
    selector = judged.selector
    found = json.loads(json.dumps(as_json(selector), allow_nan=False))
    record = selector.training_
    assert found["weights"] == selector.weights_
    assert found["validation"]["f"]["low"] == record["validation"]["f"][1]
    assert found["data"]["n_rows"] == 320
    assert found["path"] == record["path"]
    assert sum(part["weight"] for part in found["kernel"]["parts"]) == pytest.approx(1)
    assert found["columns"]["group"] == "query"
    assert found["training"]["status"] == selector.model_.solver_result_.status


# Figures --------------------------------------------------------------------------


def bar_names(figure):
    return [label.get_text() for label in figure.axes[0].get_yticklabels()]


def test_bars_are_the_weights_from_the_largest(judged):
    selector = judged.selector
    figure = all_figures(selector)["weights"]
    drawn = dict(
        zip(
            bar_names(figure),
            (bar.get_width() for bar in figure.axes[0].patches),
            strict=True,
        )
    )
    expected = {
        w.name + ("" if w.n_rows is None else f" ({w.n_rows} rows)"): w.effect
        for w in facts.weights(selector)
    }
    assert drawn == expected
    assert [abs(w) for w in drawn.values()] == sorted(map(abs, drawn.values()))[::-1]
    assert f"{selector.model_.intercept_:.3g}" in figure.axes[0].get_xlabel()


def test_a_vector_as_quality_is_one_bar():
    table = make_table(n_groups=16, n_items=8, n_dimensions=12, random_state=0)
    selector = fitted(table, quality=["score", "embedding"])
    theta = selector.model_.theta_
    (score, vector) = sorted(
        facts.weights(selector), key=lambda weight: weight.n_features
    )
    assert (score.name, score.value) == ("score", theta[0])
    assert (vector.name, vector.n_features) == ("embedding", 12)
    assert vector.value == pytest.approx(np.linalg.norm(theta[1:]))
    figure = all_figures(selector)["weights"]
    assert set(bar_names(figure)) == {"score", "embedding (12 numbers)"}
    assert "norm" in figure.axes[0].get_xlabel()
    assert "embedding (length of 12)" in text(selector)
    # The table below the figure has all of them.
    page = check_page(html_page(Report(selector, "a")))
    assert page.row("embedding[11]")[1] == f"{theta[12]:.5g}"


def test_at_most_thirty_bars_and_a_line_about_the_rest():
    table = make_table(n_groups=16, n_items=8, random_state=0)
    levels = [f"level {k % 41}" for k in range(table.num_rows)]
    table = table.append_column("level", pa.array(levels))
    selector = fitted(table, quality=["score"], categorical="level")
    figure = all_figures(selector)["weights"]
    assert len(figure.axes[0].patches) == 30
    note = "Not shown: 12 features of smaller effect."
    assert note in figure.axes[0].get_xlabel()
    assert note in text(selector)
    few = all_figures(fitted(table, quality=["score"]))["weights"]
    assert few.get_size_inches()[1] < figure.get_size_inches()[1] / 3


def test_kernel_bars_are_the_coefficients_block_by_block(table):
    selector = fitted(table, similarity=["embedding", "tokens"])
    model = selector.model_
    figure = all_figures(selector)["kernel"]
    names = bar_names(figure)
    assert [name.split(":")[0] for name in names] == ["embedding"] * 8 + ["columns"] * 8
    widths = [bar.get_width() for bar in figure.axes[0].patches]
    assert widths[:7] == model.alpha_[:7].tolist()
    assert widths[8:15] == model.alpha_[7:].tolist()
    assert [widths[7], widths[15]] == model.beta_.tolist()
    parts = kernel_parts(selector.model_)
    assert [part.bandwidth for part in parts[:7]] == (
        model.kernel_.bandwidths_["embedding"].tolist()
    )
    assert "kernel" not in all_figures(fitted(table, kernel="linear"))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("short", "short"),
        ("a  b\n\tc", "a b c"),
        ("x" * 30 + "tail", "xxxxxxxxxxxx…xxxtail"),
    ],
)
def test_long_names_lose_their_middle(given, expected):
    assert shorten_middle(given, 20) == expected
    assert len(shorten_middle("y" * 99, 20)) == 20


def test_text_needs_no_matplotlib():
    code = (
        "import sys; import variegate.tables.report; "
        "sys.exit('matplotlib' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# Words and widths -------------------------------------------------------------------


def test_paths_are_about_rows_and_groups(table):
    selector = fitted(table, validation_fraction=0.5)
    told = str(selector.path_)
    assert told.splitlines()[1].split()[-1] == "rows"
    assert "item" not in told
    labels = [
        label
        for axes in selector.plot().axes
        for label in (axes.get_xlabel(), axes.get_ylabel())
    ]
    assert "mean over held-out groups" in labels
    assert "ω: what a missed row costs against a wrong one" in labels
    assert not any("item" in label or "ground set" in label for label in labels)


def test_figures_of_a_page_are_narrow(judged):
    # What is wider scrolls on a phone, so that its right side is not seen.
    figures = all_figures(judged.selector)
    assert {"path", "omega", "learning"} <= set(figures)
    assert all(figure.get_figwidth() < 7.0 for figure in figures.values())
    assert 'class="scroll broad"' not in html_page(judged)


def test_what_is_drawn_beside_numbers_has_a_class_of_its_own(judged):
    # The style sheet leaves such columns out where there is no room.
    page = html_page(judged)
    n_heads = page.count('<th scope="col" class="drawn"')
    assert n_heads == 1
    assert page.count('<td class="drawn"') >= n_heads
