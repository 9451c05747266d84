"""All that is wrong with a table is said at once, with a command that would work."""

import csv
import shlex

import numpy as np
import pyarrow as pa
import pytest

from table_instances import caller, fails, small_table, succeeds, with_cell, with_column
from variegate.application.refusal import InPython, RefusalError, Setting
from variegate.tables import (
    TableError,
    TableFile,
    TableFileError,
    TableSelector,
    write_table,
)

QUICK = ("--kernel", "linear", "--omega", "1")
HEADER = ["query", "item", "score", "colour", "published", "price", "clicked"]


def messy_rows(repeated=False):
    """Return rows with an empty cell, an empty group, and perhaps an item twice."""
    rng = np.random.default_rng(0)
    rows = []
    for group in range(20):
        for item in range(8):
            score = rng.random()
            rows.append(
                [
                    f"q{group}",
                    f"d{item}",
                    f"{score:.3f}",
                    str(rng.choice(["red", "blue"])),
                    f"2026-01-{rng.integers(10, 31)}",
                    f"{rng.random():.3f}",
                    str(int(score > 0.6 and group != 3)),
                ]
            )
    rows[10][2] = ""
    if repeated:
        rows[20][1] = rows[19][1]
    return rows


def write_rows(path, rows, separator=","):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=separator).writerows([HEADER, *rows])


@pytest.fixture
def variegate(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    return caller(monkeypatch, capsys)


def refused(result, *parts):
    """Return the lines of a refusal that has several problems."""
    status, output, messages = result
    lines = messages.strip().splitlines()
    assert (status, output) == (2, "")
    for part in parts:
        assert any(part in line for line in lines), (part, messages)
    return lines


# Settings in messages -------------------------------------------------------------


def test_settings_are_written_as_parameters_or_otherwise():
    error = RefusalError("set ", Setting("a", "b"), InPython(", or c"), ".")
    assert str(error) == "set a='b', or c."
    assert error.written(lambda setting: f"--{setting.name}") == "set --a."
    assert error.problems == (error,)
    assert str(Setting("a")) == "a"
    assert str(Setting("a", ("b", "c"))) == "a=['b', 'c']"
    both = RefusalError.from_problems([error, RefusalError("no")], [Setting("a", "b")])
    assert str(both) == (
        "2 problems:\n- set a='b', or c.\n- no\nall are solved by a='b'"
    )
    assert len(both.problems) == 2
    assert str(error.with_prefix("x: ")) == "x: set a='b', or c."


# Commands -------------------------------------------------------------------------


def test_all_problems_and_a_command_that_works(variegate):
    write_rows("t.csv", messy_rows())
    fit = [
        "fit", "t.csv", "--group=qurey", "--columns=item=item", *QUICK,
        "--quality", "score,colour,published,price", "-o", "model.json",
    ]  # fmt: skip
    lines = refused(
        variegate(*fit),
        "variegate: 6 problems:",
        "there is no column 'qurey' (did you mean 'query'?)",
        "which rows were chosen? Name the label column with --label",
        "column 'score' has no value in row 11 (",
        "(--empty-groups drop)",
        "or say that its values are names of kinds: --columns categorical=colour",
        "which is a date and not a number: age:published makes days of it",
        "1 of 20 groups has no chosen row, the first is 'q3'",
        "this would work:",
    )
    assert len(lines) == 9
    program, *arguments = shlex.split(lines[-1])
    assert program == "variegate"
    assert "qurey" not in lines[-1]
    told = succeeds(variegate(*arguments))
    assert "age:published" in told


def test_repeated_items_may_be_left_out(variegate, tmp_path):
    write_rows("t.csv", messy_rows(repeated=True))
    fit = [
        "fit", "t.csv", "--group", "query", "--label", "clicked", "--quality",
        "score,price", *QUICK, "-o", "model.json",
    ]  # fmt: skip
    lines = refused(
        variegate(*fit, "--columns", "item=item"),
        "variegate: 3 problems:",
        "rows 20 and 21 of group 'q2' have the same 'item': items of a group must",
        "unless you leave out --columns item",
    )
    assert "item=" not in lines[-1]
    succeeds(variegate(*shlex.split(lines[-1])[1:]))
    # What is in a file cannot be left out by an option.
    (tmp_path / "columns.toml").write_text("item = 'item'\n")
    lines = refused(variegate(*fit, "--columns", "columns.toml", "--force"))
    assert len(lines) == 4


def test_what_cannot_be_solved_by_an_option_has_no_command(variegate):
    rows = messy_rows()
    rows[30][6] = "2"
    write_rows("t.csv", rows)
    fit = [
        "fit", "t.csv", "--group", "query", "--label", "clicked", "--quality", "score",
        "-o", "model.json",
    ]  # fmt: skip
    lines = refused(
        variegate(*fit),
        "variegate: 2 problems:",
        "column 'clicked' holds '2' in row 31: labels must be 1",
    )
    assert len(lines) == 3


def test_quality_is_found_where_nothing_says_what_numbers_are(variegate):
    write_rows("t.csv", messy_rows())
    fit = ["fit", "t.csv", "--group", "query", *QUICK, "-o", "model.json"]
    lines = refused(variegate(*fit), "name the quality columns with --quality: nothing")
    *_, line = lines
    assert "--label clicked" in line
    assert "--quality score,price" in line
    succeeds(variegate(*shlex.split(line)[1:]))


def test_options_win_over_the_columns_of_a_file(variegate, tmp_path):
    write_rows("t.csv", messy_rows())
    (tmp_path / "columns.toml").write_text(
        "group = 'query'\nlabel = 'clicked'\nquality = ['score', 'colour']\n"
    )
    fit = ["fit", "t.csv", "--columns", "columns.toml", *QUICK, "-o", "model.json"]
    *_, line = refused(variegate(*fit), "variegate: 3 problems:")
    succeeds(variegate(*shlex.split(line)[1:]))


def test_one_problem_is_one_line(variegate):
    rows = messy_rows()
    rows[10][2] = "0.5"
    write_rows("t.csv", rows)
    fit = [
        "fit", "t.csv", "--group", "query", "--label", "clicked", "--quality", "score",
        "-o", "model.json",
    ]  # fmt: skip
    assert fails(variegate(*fit), "1 of 20 groups has no chosen row", "--empty-groups")


def test_a_column_of_numbers_with_a_mistake_is_not_called_categorical(variegate):
    rows = messy_rows()
    rows[10][2] = "n/a"
    write_rows("t.csv", rows)
    fit = [
        "fit", "t.csv", "--group", "query", "--label", "clicked", "--quality", "score",
        "-o", "model.json",
    ]  # fmt: skip
    lines = refused(variegate(*fit), "column 'score' holds 'n/a' in row 11")
    assert not any("this would work" in line for line in lines)


def test_problems_of_a_table_for_a_model(variegate):
    table = small_table()
    write_table(table, "train.parquet")
    fit = [
        "fit", "train.parquet", "--group", "query", "--label", "chosen", *QUICK,
        "--quality", "score,freshness,popularity", "--similarity", "embedding",
        "-o", "model.json",
    ]  # fmt: skip
    succeeds(variegate(*fit))
    flags = np.array(table["chosen"].to_pylist())
    flags[6:12] = False
    bad = with_column(with_cell(table, "score", 4, None), "chosen", flags.tolist())
    write_table(bad.drop(["freshness", "popularity"]), "new.parquet")
    model = ["new.parquet", "--model", "model.json"]
    select = variegate("select", *model, "-o", "out.parquet")
    lines = refused(
        select,
        "new.parquet does not fit the model: there is no column 'freshness'",
        "new.parquet does not fit the model: there is no column 'popularity'",
        "column 'score' has no value in row 5",
        "--columns missing=mean of 'variegate fit'",
    )
    assert len(lines) == 4
    lines = refused(variegate("evaluate", *model), "(--empty-groups drop)")
    assert len(lines) == 5


def test_the_command_that_would_work_for_a_model(variegate):
    table = small_table()
    write_table(table, "train.parquet")
    fit = [
        "fit", "train.parquet", "--group", "query", "--label", "chosen", *QUICK,
        "--quality", "score", "--similarity", "embedding", "-o", "model.json",
    ]  # fmt: skip
    succeeds(variegate(*fit))
    flags = np.array(table["chosen"].to_pylist())
    flags[6:12] = False
    write_table(with_column(table, "chosen", flags.tolist()), "new.parquet")
    wrong = ["evaluate", "new.parquet", "--model", "model.json", "--label", "chose"]
    *_, line = refused(variegate(*wrong), "variegate: 2 problems:")
    succeeds(variegate(*shlex.split(line)[1:]))


# Python ---------------------------------------------------------------------------


def test_parameters_are_named_in_python():
    table = small_table()
    flags = np.array(table["chosen"].to_pylist())
    flags[6:12] = False
    bad = with_column(with_cell(table, "score", 4, None), "chosen", flags.tolist())
    selector = TableSelector(
        group="query", label="chosen", quality=["score", "kind"], similarity="embeding"
    )
    with pytest.raises(TableError) as caught:
        selector.fit(bad)
    lines = str(caught.value).splitlines()
    assert lines[0] == "4 problems:"
    assert len(caught.value.problems) == 4
    assert lines[-1] == (
        "all are solved by categorical=['kind'], similarity=['embedding'], "
        "missing='mean', empty_groups='drop'"
    )
    settings = {s.name: s.value for s in caught.value.fixes}
    selector.set_params(**settings, kernel="linear", omega=1.0).fit(bad)


def test_a_refusal_that_is_no_matter_of_columns_stays_as_it_is():
    table = small_table(n_groups=3)
    selector = TableSelector(
        group="query", label="chosen", quality="score", validation_fraction=0.01
    )
    with pytest.raises(
        TableError, match=r"^3 groups cannot be split into.*fraction=0$"
    ):
        selector.fit(table)


# Separators -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("separator", "said"), [(";", "';'"), ("\t", "a tab"), ("|", "'|'")]
)
def test_another_separator_is_suggested(variegate, separator, said):
    write_rows("t.csv", messy_rows(), separator)
    options = ["--columns", "missing=mean", "--empty-groups", "drop", *QUICK]
    options += ["--group", "query", "--label", "clicked", "--quality", "score,price"]
    fit = ["fit", "t.csv", *options, "-o", "model.json"]
    message = f"t.csv: its columns seem to be separated by {said}: give --separator"
    assert fails(variegate(*fit), message)
    given = ["--separator", separator.replace("\t", "\\t")]
    succeeds(variegate(*fit, *given))
    model = ["t.csv", "--model", "model.json"]
    succeeds(variegate("select", *model, "-o", "out.csv", *given))
    assert len(TableFile("out.csv").schema) == len(HEADER) + 2
    write_rows("train.csv", messy_rows(), separator)
    succeeds(variegate("evaluate", *model, "--train", "train.csv", *given))
    with pytest.raises(TableFileError, match="give separator="):
        TableFile("t.csv")


def test_a_separator_makes_the_same_table(tmp_path):
    write_rows(tmp_path / "a.csv", messy_rows())
    write_rows(tmp_path / "b.csv", messy_rows(), ";")
    first = pa.Table.from_batches(list(TableFile(tmp_path / "a.csv").batches()))
    second = TableFile(tmp_path / "b.csv", separator=";")
    assert first.equals(pa.Table.from_batches(list(second.batches())))


def test_one_column_whose_name_has_a_semicolon(tmp_path):
    (tmp_path / "a.csv").write_text("a;b\n1\n")
    assert TableFile(tmp_path / "a.csv", separator=",").schema.names == ["a;b"]


@pytest.mark.parametrize("separator", ["", ";;", '"', "\n", "é"])
def test_what_is_no_separator(tmp_path, separator):
    write_rows(tmp_path / "a.csv", messy_rows())
    with pytest.raises(TableFileError, match="a separator is one character, such as"):
        TableFile(tmp_path / "a.csv", separator=separator)


def test_a_separator_of_what_is_no_csv(variegate):
    write_table(small_table(), "train.parquet")
    fit = ["fit", "train.parquet", "--label", "chosen", "-o", "m.json"]
    assert fails(
        variegate(*fit, "--separator", ";"),
        "train.parquet is a Parquet file, which needs no separator",
    )
