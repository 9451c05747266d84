"""``variegate evidence`` and ``variegate fit-evidence``."""

import io
import json
import sys

import pytest

from question_instances import as_rows, make_questions
from table_instances import caller, fails, names_in, succeeds
from variegate._install import install_command
from variegate.text import EvidenceSelector, load_default, read_questions
from variegate.text.word_vectors import load_word_vectors

BRIDGE = (
    "# The stone bridge\n\nThe stone bridge of Ribe was built in 1891. Masons from "
    "Kolding repaired it after the flood. Cars may not cross it.\n\n# The mill\n\nThe "
    "mill grinds wheat twice a week. Visitors buy flour. It closes in January.\n"
)
MINUTES = (
    "The council met on Monday. It decided that the bridge will be repaired again. "
    "A new roof of the school is needed.\n"
)
QUESTION = "Who repaired the bridge?"


@pytest.fixture
def variegate(monkeypatch, capsys, tmp_path):
    """Run a command in a folder with two texts."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.md").write_text(BRIDGE)
    (tmp_path / "b.txt").write_text(MINUTES)
    return caller(monkeypatch, capsys)


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    made = make_questions()
    model = EvidenceSelector(quality_model="linear", n_copies=0, max_iter=20)
    model.fit(made.questions, made.sentences, made.wanted)
    path = tmp_path_factory.mktemp("model") / "model.json"
    model.save(path)
    return path


# evidence -----------------------------------------------------------------------------


def test_one_sentence_a_line_in_reading_order(variegate):
    status, output, messages = variegate("evidence", QUESTION, ".", "--budget", "2s")
    assert (status, messages) == (0, "")
    lines = output.splitlines()
    assert len(lines) == 2
    places = [(BRIDGE + MINUTES).index(line) for line in lines]
    assert places == sorted(places)
    assert "Masons from Kolding repaired it after the flood." in lines


def test_standard_input(variegate, monkeypatch):
    stdin = io.TextIOWrapper(io.BytesIO(MINUTES.encode()), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", stdin)
    result = variegate("evidence", QUESTION, "--budget", "30t")
    assert "will be repaired" in succeeds(result)


def test_json_and_page(variegate, tmp_path):
    command = ["evidence", QUESTION, "a.md", "b.txt", "--budget", "20w"]
    lines = succeeds(variegate(*command)).splitlines()
    status, output, messages = variegate(*command, "--json", "--html", "page.html")
    assert (status, messages) == (0, "written: page.html\n")
    result = json.loads(output)
    assert result["question"] == QUESTION
    assert result["evidence"].splitlines() == lines
    assert (result["budget"], result["language"]) == ("20w", "english")
    chosen = [entry for entry in result["sentences"] if entry["chosen"]]
    assert [entry["text"] for entry in chosen] == lines
    assert all(entry["reason"] for entry in chosen)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"<h1>{QUESTION}</h1>" in page
    assert page.count('<span class="reason">') == len(lines)
    assert "Sentences of the evidence are highlighted" in page
    assert fails(variegate(*command, "--html", "page.html"), "page.html exists")
    assert fails(variegate(*command, "--html", "a.md"), "a.md is one of the files to")


def test_vectors_are_those_of_the_packaged_model(variegate):
    pytest.importorskip("wordllama", reason="needs 'variegate[vectors]'")
    output = succeeds(variegate("evidence", QUESTION, ".", "--vectors"))
    assert "Masons from Kolding repaired it" in output


def test_missing_vectors_give_the_command(variegate, monkeypatch):
    load_word_vectors.cache_clear()
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    result = variegate("evidence", QUESTION, ".", "--vectors")
    message = f"word vectors need wordllama: {install_command('vectors')}"
    assert fails(result, message)


def test_a_question_in_another_language_and_an_empty_choice(variegate):
    status, output, messages = variegate("evidence", "Wie viele Hunde?", ".")
    assert (status, output) == (0, "")
    assert messages == (
        "variegate: note: no sentence has a word of the question 'Wie viele Hunde?': "
        "is it in the language of the texts?\n"
        "variegate: note: the model chose no sentence; give a --budget to fill or a "
        "larger --omega\n"
    )


@pytest.mark.parametrize(
    ("given", "known"), [("none", None), ("German", None), ("fr", "french")]
)
def test_language(variegate, given, known):
    command = ["evidence", QUESTION, "b.txt", "--language", given]
    _, output, messages = variegate(*command, "--json", "--html", "page.html")
    assert json.loads(output)["language"] == known
    assert ("no word lists for German" in messages) == (given == "German")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.md"], "a.md is a file: write the question before the files"),
        (["?!", "a.md"], "the question is empty: give at least one word"),
        ([QUESTION, "gone.txt"], "there is no file gone.txt"),
        ([QUESTION, "a.md", "--budget", "1w"], "no sentence fits the budget of 1 word"),
        ([QUESTION, "a.md", "--budget", "9z"], "unknown unit 'z'"),
        ([QUESTION, "a.md", "--omega", "0"], "0.0 is not in the range x>0.0"),
        ([QUESTION, "a.md", "--model", "a.md"], "a.md is not a variegate model"),
        ([QUESTION, "a.md", "--model", "news.json"], "news.json holds a Summarizer"),
        (
            [QUESTION, "a.md", "--vectors", "--model", "news.json"],
            "--vectors is for the packaged model: leave it out",
        ),
        ([], "Missing argument 'QUESTION'"),
    ],
)
def test_bad_input(variegate, arguments, message):
    load_default().save("news.json")
    assert fails(variegate("evidence", *arguments), message)


# fit-evidence -------------------------------------------------------------------------


def write_rows(path, *rows):
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    path.write_text("\n".join(lines) + "\n")


def test_fit_then_select_and_describe(variegate, tmp_path):
    write_rows(tmp_path / "data.jsonl", *as_rows(make_questions()))
    options = ["--quality-model", "linear", "--lam", "0.5", "--max-iter", "30"]
    command = ["fit-evidence", "data.jsonl", "-o", "model.json", *options]
    status, output, messages = variegate(*command)
    assert status == 0
    assert output == "questions: 12\nsentences: 96\nwanted: 24\n"
    assert messages.endswith("written: model.json\n")
    model = EvidenceSelector.load("model.json")
    assert (model.quality_model, model.lam, model.max_iter) == ("linear", 0.5, 30)
    (tmp_path / "text.txt").write_text(
        " ".join(as_rows(make_questions())[0]["sentences"])
    )
    choice = variegate(
        *("evidence", "Who repaired the bridge of Ribe?", "text.txt"),
        *("--model", "model.json"),
    )
    lines = succeeds(choice).splitlines()
    assert sorted(lines) == [
        "The bridge was repaired by masons.", "They came to Ribe in May.",
    ]  # fmt: skip
    described = succeeds(variegate("describe", "model.json"))
    assert "EvidenceSelector" in described
    assert "coverage" in described
    assert fails(variegate(*command), "model.json exists")


def test_a_fit_that_stops_early_says_so(variegate, tmp_path):
    write_rows(tmp_path / "data.jsonl", *as_rows(make_questions(4)))
    options = ["--quality-model", "linear", "--max-iter", "1"]
    result = variegate("fit-evidence", "data.jsonl", "-o", "model.json", *options)
    assert result[2].startswith("variegate: note: stopped at max_iter=1 ")


def test_questions_of_a_text_are_one_group(tmp_path):
    (row, *_) = as_rows(make_questions(1))
    row.pop("titles")
    texts = [row | {"text": "a"}, row, row | {"text": "a"}, row, row | {"text": 7}]
    write_rows(tmp_path / "data.jsonl", "", *texts)
    found = read_questions(tmp_path / "data.jsonl")
    assert found["questions"] == [row["question"]] * 5
    assert found["wanted"] == [row["wanted"]] * 5
    assert found["titles"] == [[""] * 8] * 5
    first, second, third, fourth, last = found["groups"]
    assert first == third
    assert len({first, second, fourth, last}) == 4
    mask = [k in row["wanted"] for k in range(8)]
    write_rows(tmp_path / "data.jsonl", row | {"wanted": mask})
    assert read_questions(tmp_path / "data.jsonl")["wanted"] == [row["wanted"]]


ROW = {"question": "Who?", "sentences": ["A man.", "A dog."], "wanted": [0]}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{broken", "not JSON"),
        ("[" * 100_000, "lists or objects are nested more than 64 deep"),
        ('{"wanted": [' + "9" * 5000 + "]}", "a number is too long"),
        ("[1]", "not an object but [1]"),
        (ROW | {"question": None}, "'question' must be a text with at least one word"),
        (ROW | {"question": "?"}, "'question' must be a text with at least one word"),
        (ROW | {"sentences": []}, "there are no 'sentences' to choose from"),
        (ROW | {"sentences": "A man."}, "'sentences' must be a list, not 'A man.'"),
        (ROW | {"sentences": ["A", 3]}, "item 1 of 'sentences' must be a text, not 3"),
        (ROW | {"wanted": None}, "'wanted' must be a list of numbers of sentences"),
        (ROW | {"wanted": [2]}, "'wanted': item 2 is out of range: there are 2 items"),
        (ROW | {"wanted": [10**30]}, "'wanted': a subset holds item numbers"),
        (ROW | {"wanted": [True]}, "'wanted': the mask has length 1 but there are 2"),
        (ROW | {"wanted": [0.5]}, "'wanted': a subset holds item numbers"),
        (ROW | {"wanted": [[0]]}, "'wanted': a subset is a flat list"),
        (ROW | {"titles": ["A"]}, "2 'sentences', but 1 'titles'"),
        (ROW | {"titles": [None, "A"]}, "item 0 of 'titles' must be a text, not None"),
    ],
)
def test_bad_lines_are_named(variegate, tmp_path, row, message):
    write_rows(tmp_path / "data.jsonl", ROW, "", row)
    result = variegate("fit-evidence", "data.jsonl", "-o", "model.json")
    assert fails(result, "data.jsonl, line 3: ", message)
    assert names_in(tmp_path) == ["a.md", "b.txt", "data.jsonl"]


def test_no_data(variegate, tmp_path):
    command = ["fit-evidence", "data.jsonl", "-o", "model.json"]
    assert fails(variegate(*command), "there is no file data.jsonl")
    write_rows(tmp_path / "data.jsonl", "")
    assert fails(variegate(*command), "there are no questions in data.jsonl: the file ")
