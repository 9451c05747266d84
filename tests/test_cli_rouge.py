"""``variegate rouge``, as a user meets it."""

import json
import sys

import pytest

from variegate.cli.app import run


@pytest.fixture
def variegate(capsys, monkeypatch, tmp_path):
    """Run the command line; return its status, output and errors."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["variegate", *arguments])
        with pytest.raises(SystemExit) as end:
            run()
        output = capsys.readouterr()
        return end.value.code or 0, output.out, output.err

    return call


@pytest.fixture(autouse=True)
def files(tmp_path):
    (tmp_path / "one.txt").write_text("The cat sat on the mat.\n")
    (tmp_path / "two.txt").write_text("A cat sat on a mat.\n")
    (tmp_path / "r1.txt").write_text("A cat sat on a mat.\n")
    (tmp_path / "r2.txt").write_text("Dogs ran.\n")
    (tmp_path / "hindi.txt").write_text("नमस्ते दुनिया\n", encoding="utf-8")
    (tmp_path / "latin1.txt").write_bytes("caf\xe9 cat\n".encode("latin-1"))
    (tmp_path / "empty.txt").write_text(" \n")
    (tmp_path / "dots.txt").write_text("...\n")
    (tmp_path / "forms.tsv").write_text("dogs\tdog\n")
    (tmp_path / "broken.tsv").write_text("dogs\tdog\nran run\n")


ONE = ("rouge", "--system", "one.txt")
PAIR = (*ONE, "--reference", "r1.txt")


def lines(output):
    return [line.split() for line in output.splitlines()]


def test_a_table(variegate):
    # 4 of 6 words and 2 of 5 pairs are shared.
    status, out, err = variegate(*PAIR)
    assert (status, err) == (0, "")
    assert lines(out) == [
        ["system", "measure", "P", "R", "F"],
        ["one.txt", "rouge-1", "0.66667", "0.66667", "0.66667"],
        ["one.txt", "rouge-2", "0.40000", "0.40000", "0.40000"],
    ]


def test_several_systems_have_a_mean(variegate):
    status, out, _ = variegate(*PAIR, "--system", "two.txt", "--n", "1")
    assert status == 0
    assert lines(out)[1:] == [
        ["one.txt", "rouge-1", "0.66667", "0.66667", "0.66667"],
        ["two.txt", "rouge-1", "1.00000", "1.00000", "1.00000"],
        ["mean", "rouge-1", "0.83333", "0.83333", "0.83333"],
    ]


def test_several_references(variegate):
    # 4 hits; 6 + 2 words wanted, 2 · 6 offered.
    pooled = variegate(*PAIR, "--reference", "r2.txt", "--n", "1")[1]
    assert lines(pooled)[1][2:4] == ["0.33333", "0.50000"]
    best = variegate(*PAIR, "--reference", "r2.txt", "--n", "1", "--best")[1]
    assert lines(best)[1][2:4] == ["0.66667", "0.66667"]


def test_json(variegate):
    status, out, _ = variegate(*PAIR, "--system", "two.txt", "--n", "2", "--json")
    assert status == 0
    result = json.loads(out)
    assert [row["system"] for row in result["systems"]] == ["one.txt", "two.txt"]
    assert result["systems"][0]["scores"] == {
        "rouge-2": {"precision": 0.4, "recall": 0.4, "f": 0.4}
    }
    assert result["mean"]["rouge-2"]["f"] == pytest.approx(0.7)


def test_all_measures(variegate):
    out = variegate(*PAIR, "--su", "4")[1]
    assert [row[1] for row in lines(out)[1:]] == ["rouge-1", "rouge-2", "rouge-su4"]


def test_stop_words_and_limits(variegate, tmp_path):
    (tmp_path / "stop.txt").write_text("the A\non\n")
    # cat sat mat on both sides
    out = variegate(*PAIR, "--n", "1", "--stop-words", "stop.txt")[1]
    assert lines(out)[1][4] == "1.00000"
    # "The cat" and "A cat"
    out = variegate(*PAIR, "--n", "1", "--max-words", "2")[1]
    assert lines(out)[1][4] == "0.50000"
    # "The c" and "A cat"
    out = variegate(*PAIR, "--n", "1", "--max-bytes", "5")[1]
    assert lines(out)[1][4] == "0.00000"


def test_stems_without_wordnet_bring_a_note(variegate):
    status, out, err = variegate(*PAIR, "--stem")
    assert status == 0
    assert "note" not in out
    assert err.startswith("variegate: note: plain Porter stems; irregular forms differ")
    assert variegate(*PAIR, "--stem", "--wordnet", "forms.tsv")[2] == ""


def test_wordnet_is_used(variegate, tmp_path):
    (tmp_path / "dog.txt").write_text("dog\n")
    (tmp_path / "dogs.txt").write_text("dogx\n")
    (tmp_path / "table.tsv").write_text("dogx\tdog\n")
    pair = ("rouge", "--system", "dog.txt", "--reference", "dogs.txt", "--n", "1")
    out = variegate(*pair, "--stem", "--wordnet", "table.tsv")[1]
    assert lines(out)[1][4] == "1.00000"
    _, out, err = variegate(*pair, "--wordnet", "table.tsv")
    assert lines(out)[1][4] == "0.00000"
    assert "--wordnet does nothing without --stem" in err


def test_other_scripts_and_encodings(variegate):
    pair = ("rouge", "--system", "hindi.txt", "--reference", "hindi.txt", "--n", "1")
    assert lines(variegate(*pair, "--unicode")[1])[1][4] == "1.00000"
    latin = ("rouge", "--system", "latin1.txt", "--reference", "latin1.txt")
    out = variegate(*latin, "--encoding", "latin-1", "--unicode")[1]
    assert lines(out)[1][4] == "1.00000"


def test_letters_that_do_not_count_bring_a_note(variegate, tmp_path):
    (tmp_path / "mixed.txt").write_text("नमस्ते दुनिया cat", encoding="utf-8")
    status, _, err = variegate(*ONE, "--reference", "mixed.txt")
    assert status == 0
    assert err == (
        "variegate: note: mixed.txt: letters outside ASCII do not count "
        "without --unicode\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rouge"], "Missing option '--system'"),
        ([*ONE], "Missing option '--reference'"),
        ([*ONE, "--reference", "no.txt"], "File 'no.txt' does not exist"),
        ([*ONE, "--reference", "."], "'.' is a directory"),
        (
            [*ONE, "--reference", "latin1.txt"],
            "latin1.txt is not in utf-8: byte ",
        ),
        (
            [*PAIR, "--system", "latin1.txt"],
            "latin1.txt is not in utf-8: byte ",
        ),
        ([*PAIR, "--reference", "empty.txt"], "empty.txt: the reference is empty"),
        (
            [*ONE, "--reference", "hindi.txt", "--stem"],
            "hindi.txt: the reference has no words that count; --unicode counts",
        ),
        (
            [*ONE, "--reference", "dots.txt", "--unicode"],
            "dots.txt: the reference has no words that count",
        ),
        (
            [*PAIR, "--stem", "--wordnet", "broken.tsv"],
            "broken.tsv, line 2: expected 'form<TAB>base', got 'ran run'",
        ),
        ([*PAIR, "--encoding", "klingon"], "unknown encoding 'klingon'"),
        ([*PAIR, "--encoding", "hex"], "unknown encoding 'hex'"),
        ([*PAIR, "--n", "0"], "0 is not in the range"),
        ([*PAIR, "--su", "-1"], "-1 is not in the range"),
        ([*PAIR, "--max-words", "0"], "0 is not in the range"),
        ([*PAIR, "--max-words", "9", "--max-bytes", "9"], "give only one"),
    ],
)
def test_bad_input_ends_with_one_line_and_status_2(arguments, message, variegate):
    status, out, err = variegate(*arguments)
    assert status == 2
    assert out == ""
    assert len(err.splitlines()) == 1
    assert err.startswith("variegate: ")
    assert message in err


def test_the_help_names_every_option(variegate):
    status, out, _ = variegate("rouge", "--help")
    assert status == 0
    for option in ("--system", "--reference", "--su", "--wordnet", "--unicode"):
        assert option in out
