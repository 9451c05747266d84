"""``variegate summarize`` and ``variegate fit-summarizer``."""

import io
import json
import os
import subprocess
import sys

import pytest

from variegate._install import install_command
from variegate.cli.app import run
from variegate.text import Cluster, Document, Summarizer, Summary

TEXT = (
    "Rain fell in the north of the country for three days. The river rose by two "
    "metres and roads were closed in the evening. Nobody was hurt, the police said. "
    "Schools in the valley will open again on Friday. A cat slept through it all.\n"
)
OTHER = (
    "The river left its bed after three days of rain in the north. Trains between the "
    "two towns stopped. Helpers filled ten thousand bags with sand in one night.\n"
)
CLUSTER = {
    "documents": [{"id": "a", "text": TEXT}, OTHER],
    "references": ["Three days of rain in the north closed roads and schools."],
    "language": "english",
}
SENTENCES = [line + "." for line in (TEXT + OTHER).replace("\n", " ").split(". ")]


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    cluster = Cluster([Document(TEXT), Document(OTHER)], CLUSTER["references"])
    path = tmp_path_factory.mktemp("model") / "model.json"
    model = Summarizer(similarity="cos", omega=(0.5, 2.0), budget="20w", n_samples=50)
    model.fit([cluster]).save(path)
    return path


@pytest.fixture
def variegate(monkeypatch, capsys, tmp_path):
    """Run a command in a folder with two texts; return status, output, messages."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text(TEXT)
    (tmp_path / "b.md").write_text("# Floods\n\n" + OTHER)

    def call(*arguments, stdin=b"", terminal=False):
        stream = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
        monkeypatch.setattr(stream, "isatty", lambda: terminal, raising=False)
        monkeypatch.setattr(sys, "stdin", stream)
        monkeypatch.setattr(sys, "argv", ["variegate", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            run()
        captured = capsys.readouterr()
        return stop.value.code or 0, captured.out, captured.err

    return call


def fails(result, message):
    """Whether a command ended as bad input does: one line and status 2."""
    status, output, messages = result
    assert status == 2
    assert output == ""
    assert len(messages.strip().splitlines()) == 1
    assert messages.startswith("variegate: ")
    assert message in messages
    return True


# summarize ------------------------------------------------------------------------


def test_one_sentence_a_line(variegate, model_file):
    status, output, messages = variegate(
        "summarize", "a.txt", "b.md", "--model", model_file, "--budget", "25w"
    )
    assert (status, messages) == (0, "")
    lines = output.splitlines()
    assert lines
    assert all(any(line in sentence for sentence in SENTENCES) for line in lines)
    assert len(output.split()) <= 25


def test_a_folder_and_standard_input(variegate, model_file):
    options = ["--model", model_file, "--budget", "2s"]
    files = variegate("summarize", "a.txt", "b.md", *options)
    assert variegate("summarize", ".", *options) == files
    dash = variegate("summarize", "-", *options, stdin=TEXT.encode())
    assert dash[0] == 0
    assert dash == variegate("summarize", *options, stdin=TEXT.encode())
    assert dash == variegate("summarize", "a.txt", *options)


def test_the_model_decides_the_length(variegate, model_file):
    short, long = (
        variegate("summarize", ".", "--model", model_file, "--omega", omega)
        for omega in ("0.5", "2")
    )
    assert short[0] == long[0] == 0
    assert 0 < len(short[1]) <= len(long[1])


def test_json(variegate, model_file):
    options = ["--model", model_file, "--budget", "2s"]
    _, text, _ = variegate("summarize", "a.txt", *options)
    status, output, messages = variegate("summarize", "a.txt", *options, "--json")
    assert (status, messages) == (0, "")
    result = json.loads(output)
    assert result["summary"] == text.rstrip("\n")
    assert result["budget"] == "2s"
    assert result["language"] == "english"
    assert "fits the budget" in result["stop_reason"]
    assert (result["gap"], result["is_optimal"]) == (None, False)
    assert sum(entry["chosen"] for entry in result["sentences"]) == 2
    (document,) = result["documents"]
    assert document == {"id": "a.txt", "reader": None, "text": TEXT}
    for entry in result["sentences"]:
        assert TEXT[entry["start"] : entry["end"]] == entry["text"]


PAGE = f"<main><h1>Floods</h1><p>{TEXT}</p><pre>x = 1.</pre><p>{OTHER}</p></main>"


@pytest.mark.parametrize("extractor", [True, False])
def test_json_holds_the_text_that_offsets_refer_to(
    variegate, model_file, tmp_path, monkeypatch, extractor
):
    if not extractor:
        monkeypatch.setattr("trafilatura.extract", lambda *_, **__: None)
    (tmp_path / "c.html").write_text(PAGE)
    (tmp_path / "d.txt").write_bytes(b"Rain fell.\r\n\r\nIt rained on.\r\n")
    files = ["a.txt", "b.md", "c.html", "d.txt"]
    options = ["--model", model_file, "--budget", "2s", "--json"]
    status, output, _ = variegate("summarize", *files, *options)
    assert status == 0
    result = json.loads(output)
    documents = result["documents"]
    assert [one["id"] for one in documents] == files
    assert documents[0]["text"] == TEXT
    assert documents[1]["reader"] == "markdown-it-py"
    assert documents[2]["reader"]
    assert {entry["document_number"] for entry in result["sentences"]} == {0, 1, 2, 3}
    for entry in result["sentences"]:
        document = documents[entry["document_number"]]
        assert document["id"] == entry["document"]
        assert document["text"][entry["start"] : entry["end"]] == entry["text"]


def test_the_second_choice_of_readers_names_itself(
    variegate, model_file, tmp_path, monkeypatch
):
    monkeypatch.setattr("trafilatura.extract", lambda *_, **__: None)
    (tmp_path / "c.html").write_text(PAGE)
    options = ["--model", model_file, "--budget", "2s"]
    status, output, messages = variegate("summarize", "c.html", *options)
    assert status == 0
    assert "x = 1" not in output
    assert messages == (
        "variegate: note: c.html read by the built-in HTML reader (trafilatura found "
        "no text)\n"
    )
    (tmp_path / "e.html").write_text(PAGE)
    _, _, messages = variegate("summarize", "c.html", "e.html", *options)
    assert messages.startswith("variegate: note: 2 pages read by the built-in HTML ")


LOG = "".join(
    f"2025-03-03 10:00:0{n} INFO worker {n} of the pool was started.\n"
    for n in range(9)
)


def test_logs_are_left_out_with_a_note(variegate, model_file, tmp_path):
    options = ["--model", model_file, "--budget", "9s"]
    (tmp_path / "server.log").write_text(LOG)
    assert fails(
        variegate("summarize", "server.log", *options),
        "there is no prose in server.log, only records of a log or rows of numbers: "
        "give files with text in sentences",
    )
    (tmp_path / "a.txt").write_text("It rained in the north all day.")
    status, output, messages = variegate("summarize", "a.txt", "server.log", *options)
    assert (status, output) == (0, "It rained in the north all day.\n")
    assert messages == (
        "variegate: note: there is no prose in server.log, only records of a log or "
        "rows of numbers: left out\n"
    )


def test_a_missing_extra_gives_the_command(
    variegate, model_file, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    (tmp_path / "paper.pdf").write_bytes(b"%PDF-1.4")
    assert fails(
        variegate("summarize", "paper.pdf", "--model", model_file),
        f"reading PDF files needs pypdfium2: {install_command('pdf')}",
    )


def test_the_language_is_detected(variegate, model_file, tmp_path):
    (tmp_path / "f.txt").write_text(
        "La pluie est tombée dans le nord du pays. Les routes ont été fermées."
    )
    _, output, messages = variegate(
        "summarize", "f.txt", "--model", model_file, "--json"
    )
    assert json.loads(output)["language"] == "french"
    assert messages == ""


@pytest.mark.parametrize("given", ["de", "German"])
def test_a_language_without_word_lists(variegate, model_file, given):
    options = ["a.txt", "--model", model_file, "--json"]
    status, output, messages = variegate("summarize", *options, "--language", given)
    assert status == 0
    assert json.loads(output)["language"] is None
    assert messages == (
        "variegate: note: there are no word lists for German; sentences are split by "
        "the rules for all languages, as with --language none\n"
    )


@pytest.mark.parametrize(
    ("given", "used"), [("none", None), ("he", "hebrew"), ("Czech", "czech")]
)
def test_language(variegate, model_file, given, used):
    _, output, _ = variegate(
        "summarize", "a.txt", "--model", model_file, "--language", given, "--json"
    )
    assert json.loads(output)["language"] == used


def test_encoding(variegate, model_file, tmp_path):
    (tmp_path / "latin.txt").write_bytes("Où est la rivière, là-bas.".encode("latin-1"))
    options = ["latin.txt", "--model", model_file, "--json"]
    assert fails(variegate("summarize", *options), "--encoding latin-1")
    status, output, _ = variegate("summarize", *options, "--encoding", "latin-1")
    assert status == 0
    assert '"text": "Où est la rivière, là-bas."' in output


def test_an_empty_summary(variegate, model_file, monkeypatch):
    def nothing(self, documents, *arguments):
        return Summary(documents, [], None, 1.0, "english")

    monkeypatch.setattr(Summarizer, "summarize", nothing)
    status, output, messages = variegate("summarize", "a.txt", "--model", model_file)
    assert (status, output) == (0, "")
    assert messages.startswith("variegate: note: the model chose no sentence; give a")
    assert len(messages.splitlines()) == 1


def test_without_model_the_packaged_one(variegate, model_file, monkeypatch):
    import variegate.text as text

    monkeypatch.setattr(text, "load_default", lambda: Summarizer.load(model_file))
    options = ["summarize", "a.txt", "--budget", "2s"]
    assert variegate(*options) == variegate(*options, "--model", model_file)


def test_the_page(variegate, model_file, tmp_path):
    (tmp_path / "page.html").write_text("an older page")
    (tmp_path / "texts").mkdir()
    (tmp_path / "a.txt").rename(tmp_path / "texts" / "a.txt")
    arguments = ["summarize", "texts", "--model", model_file, "--html", "page.html"]
    result = variegate(*arguments)
    assert fails(result, "page.html exists: name another file, or replace it with --f")
    assert (tmp_path / "page.html").read_text() == "an older page"
    status, output, messages = variegate(*arguments, "--force")
    assert (status, messages) == (0, "written: page.html\n")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<h1>Summary of a.txt</h1>" in page
    assert output.splitlines()[0] in page
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["b.md", "page.html", "texts"]


def test_the_page_never_replaces_a_source(variegate, model_file, tmp_path):
    (tmp_path / "page.html").write_text(f"<p>{TEXT}</p>")
    for files in (["page.html"], ["."]):
        result = variegate(
            "summarize", *files, "--model", model_file, "--html", "page.html"
        )
        assert fails(result, "page.html is one of the files to read")
    assert (tmp_path / "page.html").read_text() == f"<p>{TEXT}</p>"


def test_no_files(variegate):
    assert fails(variegate("summarize", terminal=True), "no files: name text, ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gone.txt"], "there is no file gone.txt"),
        (["empty.txt"], "there is no text in empty.txt"),
        (["binary.txt"], "binary.txt is not a text file"),
        (["nothing"], "there is nothing to read in the folder nothing"),
        (["-"], "there is no text in standard input"),
        ([], "there is no text in standard input"),
        (["a.txt", "--encoding", "martian"], "unknown encoding 'martian'"),
        (["a.txt", "--budget", "0w"], "'--budget': a budget must be at least 1"),
        (["a.txt", "--budget", "250"], "'250' has no unit: add one of c (characters)"),
        (["a.txt", "--budget", "2w"], "no sentence fits the budget of 2 words"),
        (["a.txt", "--omega", "9"], "omega=9, but this model was learned for 0.5 to 2"),
        (["a.txt", "--omega", "nan"], "'nan' is not a finite number"),
        (["a.txt", "--language", "elvish"], "unknown language 'elvish': use one of en"),
        (["gone.txt", "--language", "de"], "there is no file gone.txt"),
        (["a.txt", "--model", "a.txt"], "a.txt"),
        (["a.txt", "--model", "gone.json"], "'gone.json' does not exist"),
        (["a.txt", "--html", "gone/page.html"], "there is no folder gone"),
        (["a.txt", "--html", "nothing"], "is a directory"),
    ],
)
def test_bad_input(variegate, model_file, tmp_path, arguments, message):
    (tmp_path / "empty.txt").write_text(" \n")
    (tmp_path / "binary.txt").write_bytes(b"\x7fELF\0\1\2")
    (tmp_path / "nothing").mkdir()
    if "--model" not in arguments:
        arguments = [*arguments, "--model", model_file]
    assert fails(variegate("summarize", *arguments), message)


def test_the_page_is_checked_before_any_work(variegate):
    result = variegate("summarize", "gone.txt", "--html", "gone/page.html")
    assert fails(result, "cannot write gone/page.html: there is no folder gone")


def test_in_a_process_of_its_own(model_file, tmp_path):
    text = "هطلت الأمطار في الشمال أمس بغزارة.\n"
    command = ["summarize", "--model", str(model_file), "--language", "ar", "--json"]
    result = subprocess.run(
        [sys.executable, "-c", "from variegate.cli import main; main()", *command],
        input=text.encode(),
        capture_output=True,
        env={**os.environ, "PYTHONUTF8": "1"},
        cwd=tmp_path,
        check=False,
    )
    assert result.returncode == 0
    assert json.loads(result.stdout)["sentences"][0]["text"] == text.strip()


# fit-summarizer -------------------------------------------------------------------


def write_clusters(path, *rows):
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    path.write_text("\n".join(lines) + "\n")


def test_fit_then_summarize(variegate, tmp_path):
    write_clusters(tmp_path / "data.jsonl", CLUSTER, CLUSTER)
    options = ["--budget", "20w", "--lam", "0.5", "--similarity", "cos"]
    options += ["--features", "paper", "--omega", "2", "--omega", "0.5"]
    status, output, messages = variegate(
        "fit-summarizer", "data.jsonl", "-o", "model.json", *options
    )
    assert status == 0
    assert "clusters: 2\n" in output
    assert "sentences: 16\n" in output
    assert "learned for ω = 0.5, 2\n" in output
    assert "best choice of sentences within 20 words: ROUGE-1 F 0." in output
    assert messages.endswith("written: model.json\n")
    model = Summarizer.load(tmp_path / "model.json")
    assert model.omegas_ == (0.5, 2.0)
    assert (model.lam, model.similarity, model.features) == (0.5, "cos", "paper")
    status, output, _ = variegate("summarize", "a.txt", "--model", "model.json")
    assert status == 0
    assert output


def test_a_fit_that_stops_early_says_so_in_one_line(variegate, tmp_path):
    write_clusters(tmp_path / "data.jsonl", CLUSTER)
    status, _, messages = variegate(
        "fit-summarizer", "data.jsonl", "-o", "model.json", "--max-iter", "1"
    )
    assert status == 0
    note, written = messages.splitlines()
    assert note.startswith("variegate: note: stopped at max_iter=1 ")
    assert written == "written: model.json"


@pytest.mark.parametrize(
    ("rows", "arguments", "message"),
    [
        ([CLUSTER, {"documents": ["x"]}], [], "data.jsonl, line 2: there are no 'ref"),
        ([CLUSTER, "", "{broken"], [], "data.jsonl, line 3: not JSON"),
        ([], [], "there are no clusters in data.jsonl"),
        ([CLUSTER], ["--budget", "0w"], "'--budget': a budget must be at least 1"),
        ([CLUSTER], ["--omega", "0"], "0.0 is not in the range x>0.0"),
        ([CLUSTER], ["--lam", "-1"], "-1.0 is not in the range x>=0.0"),
        ([CLUSTER], ["--similarity", "sin"], "'sin' is not one of"),
        ([CLUSTER], ["-o", "gone/model.json"], "there is no folder gone"),
    ],
)
def test_bad_data(variegate, tmp_path, rows, arguments, message):
    write_clusters(tmp_path / "data.jsonl", *rows)
    result = variegate("fit-summarizer", "data.jsonl", "-o", "model.json", *arguments)
    assert fails(result, message)
    assert not (tmp_path / "model.json").exists()


def test_no_data(variegate):
    result = variegate("fit-summarizer", "gone.jsonl", "-o", "model.json")
    assert fails(result, "there is no file gone.jsonl")
    assert fails(variegate("fit-summarizer", "a.txt"), "Missing option '-o'")
