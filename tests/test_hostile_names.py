"""Script and commands to a terminal, in names and cells: shown, never obeyed."""

import json
import re
import sys
from html.parser import HTMLParser

import pytest
from sample_video import write_sample_video

from table_instances import caller, small_table, succeeds, with_column
from variegate.cli.output import print_json
from variegate.tables import write_table

#: Markup that runs something where it is not escaped, within text and attributes.
SCRIPT = "<script>alert(1)</script>\"><img src=x onerror='alert(1)'><svg onload=a()>"

#: The same for names of files, which have no slashes.
FILE = SCRIPT.replace("/", "")

#: Clears a screen, gives the window a title, turns to red, goes back and over a line.
COMMANDS = "\x1b[2J\x1b]0;title\x07\x9b31m\x08\rx"


@pytest.fixture
def variegate(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    return caller(monkeypatch, capsys)


class Elements(HTMLParser):
    """The elements of a page: names, with the attributes that each has."""

    def __init__(self, page):
        super().__init__()
        self.found, self.text = [], ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data

    def kinds(self):
        return {(tag, *sorted(attributes)) for tag, attributes in self.found}

    def number(self, *tags):
        return sum(tag in tags for tag, _ in self.found)


def check_page(page, harmless):
    """Check that a page has no other elements than one with harmless names."""
    found, expected = Elements(page), Elements(harmless)
    assert "alert(1)" in found.text, "nothing of the names is on the page"
    assert found.kinds() <= expected.kinds()
    for tag in ("script", "img", "svg", "iframe", "object", "embed", "link", "style"):
        assert found.number(tag) == expected.number(tag), tag
    for _, attributes in found.found:
        assert not [name for name in attributes if name.startswith("on")]
        for name in ("href", "src", "xlink:href"):
            assert "alert" not in (attributes.get(name) or "")


def test_the_check_finds_what_is_not_escaped():
    for page in (f"<p>{SCRIPT}</p>", f'<p title="{SCRIPT}">alert(1)</p>'):
        with pytest.raises(AssertionError):
            check_page(page, '<p title="x">alert(1)</p>')
    check_page("<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>", "<p>alert(1)</p>")


# Pages --------------------------------------------------------------------------


def named_table(name):
    """Return a table with something in its names and cells, and its columns."""
    table = small_table()
    for column in ("query", "item"):
        values = [f"{name}{value}" for value in table[column].to_pylist()]
        table = with_column(table, column, values)
    kinds = [f"{name}{number % 3}" for number in range(len(table))]
    table = with_column(table, "kind", kinds)
    table = table.rename_columns([f"{each}{name}" for each in table.column_names])
    columns = {
        "--group ": "query", "--columns item=": "item", "--label ": "chosen",
        "--quality ": "score", "--columns categorical=": "kind",
        "--similarity ": "embedding",
    }  # fmt: skip
    return table, [
        part
        for option, each in columns.items()
        for part in f"{option}{each}{name}".split(" ", 1)
    ]


def fit(variegate, name, file):
    """Learn from a table; return what was printed."""
    table, columns = named_table(name)
    write_table(table, f"{file}.parquet")
    return variegate(
        "fit", f"{file}.parquet", *columns, "--omega", "1", "--kernel", "linear",
        "-o", f"{file}.json", "--report", f"{file}.html",
    )  # fmt: skip


def test_a_report_on_a_table(variegate, tmp_path):
    for name, file in (("", "harmless"), (SCRIPT, FILE)):
        succeeds(fit(variegate, name, file))
    pages = [(tmp_path / f"{file}.html").read_text() for file in (FILE, "harmless")]
    check_page(*pages)


def summarize(variegate, name, file):
    """Summarize a document with a name in its title and sentences."""
    text = (
        f"# {name} Storm\n\nA storm {name} hit the coast on Monday. "
        f"Thousands of people left the town. {name} spoke of forty years.\n"
    )
    for suffix in ("md", "txt"):
        with open(f"{file}.{suffix}", "w", encoding="utf-8") as document:
            document.write(text)
    return variegate(
        "summarize", f"{file}.md", f"{file}.txt", "--html", f"{file}.html"
    )  # fmt: skip


def test_a_page_of_a_summary(variegate, tmp_path):
    for name, file in (("Mayor", "harmless"), (SCRIPT, FILE)):
        succeeds(summarize(variegate, name, file))
    pages = [(tmp_path / f"{file}.html").read_text() for file in (FILE, "harmless")]
    check_page(*pages)


def test_a_page_of_key_frames(variegate, tmp_path):
    pages = []
    for file in (FILE, "harmless"):
        write_sample_video(tmp_path / "video.avi", 18.0, (96, 64), 10.0, 2, 0)
        (tmp_path / "video.avi").rename(tmp_path / f"{file}.avi")
        succeeds(variegate("keyframes", f"{file}.avi", "-o", f"{file} out"))
        (page,) = (tmp_path / f"{file} out").rglob("*.html")
        pages.append(page.read_text())
    check_page(*pages)


# Terminals ----------------------------------------------------------------------

OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@pytest.fixture
def terminal(variegate, monkeypatch):
    """Run commands on a terminal that nobody watches: nothing is left out for pipes."""
    monkeypatch.setenv("TERM", "dumb")

    def call(run, *arguments):
        for stream in (sys.stdout, sys.stderr):
            monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
        return run(variegate, *arguments)

    return call


def plain(variegate, *arguments):
    return variegate(*arguments)


def check_terminal(result):
    status, output, messages = result
    assert OBEYED.findall(output + messages) == []
    return status, output + messages


def test_nothing_in_a_table_commands_a_terminal(terminal):
    status, words = check_terminal(terminal(fit, COMMANDS, f"a{COMMANDS}"))
    assert status == 0, words
    assert "score" in words
    files = [f"a{COMMANDS}.parquet", "--model", f"a{COMMANDS}.json"]
    for command in (
        ("select", *files, "-o", f"b{COMMANDS}.parquet"),
        ("evaluate", *files),
        ("describe", files[-1]),
    ):
        status, words = check_terminal(terminal(plain, *command))
        assert status == 0, words


def test_nothing_in_a_document_commands_a_terminal(terminal):
    status, words = check_terminal(terminal(summarize, COMMANDS, f"a{COMMANDS}"))
    assert status == 0, words
    assert "hit the coast" in words


def test_nothing_in_an_error_commands_a_terminal(terminal):
    for command in (
        ("describe", f"no{COMMANDS}.json"),
        ("summarize", f"no{COMMANDS}.txt"),
        ("select", f"no{COMMANDS}.csv", "--method", f"{COMMANDS}"),
        (f"{COMMANDS}",),
        ("fit", f"--{COMMANDS}"),
    ):
        status, words = check_terminal(terminal(plain, *command))
        assert status == 2
        assert words.startswith("variegate: ")


def test_json_on_a_terminal_has_every_character(capsys, monkeypatch):
    everything = {"".join(map(chr, range(0x250))): [1.5, None, "é\u2028"]}
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    print_json(everything)
    text = capsys.readouterr().out
    assert OBEYED.findall(text) == []
    assert json.loads(text) == everything


def test_the_check_of_terminals_finds_commands(terminal, monkeypatch):
    # What was printed before anybody looked: a terminal gets it as it is.
    monkeypatch.setattr("variegate.cli.output._CONTROL", re.compile("(?!)"))
    with pytest.raises(AssertionError):
        check_terminal(terminal(summarize, COMMANDS, "a"))
