"""What is wrong with a table, a model or an option ends in one line and status 2."""

import json
import os
from importlib.resources import files

import numpy as np
import pyarrow as pa
import pytest

import variegate as vg
from table_instances import (
    QUICK,
    caller,
    fails,
    names_in,
    small_table,
    with_cell,
    with_column,
    write_csv,
)
from variegate.tables import TableSelector, write_table

SUMMARIZER = files("variegate.text") / "models" / "news.json"
METHOD = (
    "--method",
    "mmr",
    "--k",
    "2",
    "--group",
    "query",
    "--similarity",
    "embedding",
)


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    """A good table and model, and some that are bad in one way each."""
    folder = tmp_path_factory.mktemp("samples")
    table = small_table()
    write_table(table, folder / "train.parquet")
    write_csv(table, folder / "train.csv")
    TableSelector(
        group="query",
        label="chosen",
        item="item",
        quality=["score", "freshness"],
        similarity="embedding",
        omega=1.0,
        lam=1.0,
    ).fit(table).save(folder / "model.json")
    (folder / "cut.json").write_bytes((folder / "model.json").read_bytes()[:900])
    data = vg.datasets.make_synthetic(n_sets=5, random_state=0)
    plain = vg.LargeMarginDPP(decoder="greedy", kernel=vg.Linear(), max_iter=5, tol=1.0)
    plain.fit(data.ground_sets, data.subsets).save(folder / "plain.json")
    document = json.loads((folder / "model.json").read_text())
    document["encoding"]["quality"][0]["scale"] = [0.0]
    (folder / "odd.json").write_text(json.dumps(document))
    whole = (folder / "train.parquet").read_bytes()
    (folder / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    (folder / "empty.parquet").write_bytes(b"")
    (folder / "text.parquet").write_text("query,item\n" * 40)
    (folder / "wrong.csv").write_bytes(whole)
    (folder / "table.xlsx").write_bytes(b"PK")
    (folder / "rowless.csv").write_text("query,item,score,freshness,embedding,chosen\n")
    write_table(table.slice(0, 0), folder / "rowless.parquet")
    (folder / "folder.parquet").mkdir()
    (folder / "page.html").write_text("older")
    return folder


@pytest.fixture
def variegate(monkeypatch, capsys, tmp_path, samples):
    """Run a command in a folder with the samples."""
    monkeypatch.chdir(tmp_path)
    for path in samples.iterdir():
        if path.is_dir():
            (tmp_path / path.name).mkdir()
        else:
            os.link(path, tmp_path / path.name)
    return caller(monkeypatch, capsys)


@pytest.fixture
def refused(variegate, tmp_path):
    """Say whether a command is refused with these words, and leaves no file."""

    def call(arguments, *parts):
        before = names_in(tmp_path)
        assert fails(variegate(*arguments), *parts)
        assert names_in(tmp_path) == before
        return True

    return call


def fit(table="train.parquet", *options, columns=QUICK):
    return ["fit", table, *columns, "-o", "new.json", *options]


def select(table="train.parquet", *options, out="out.parquet"):
    return ["select", table, "--model", "model.json", "-o", out, *options]


def evaluate(table="train.parquet", *options):
    return ["evaluate", table, "--model", "model.json", *options]


# Rivals and budgets of an evaluation ------------------------------------------------


def test_an_evaluation_with_a_budget_and_no_costs(refused):
    assert refused(
        evaluate("train.parquet", "--budget", "100"),
        "a budget needs a column of costs: name it with --cost",
    )
    assert refused(
        evaluate("train.parquet", "--budget", "100", "--cost", "token"),
        "there is no column 'token' (did you mean 'tokens'?)",
    )
    assert refused(evaluate("train.parquet", "--budget", "0"), "Invalid value")


def test_rivals_that_cannot_learn(refused):
    write_table(small_table().drop(["freshness"]), "bad.parquet")
    options = ["--train", "bad.parquet"]
    assert refused(
        evaluate("train.parquet", *options),
        "baselines cannot learn: bad.parquet does not fit the model: ",
        "there is no column 'freshness'",
    )
    write_table(small_table().drop(["chosen"]), "bad.parquet")
    assert refused(
        evaluate("train.parquet", *options),
        "baselines cannot learn: bad.parquet does not fit the model: ",
        "there is no column 'chosen'",
    )
    write_table(small_table().drop(["tokens"]), "bad.parquet")
    assert refused(
        evaluate("train.parquet", *options, "--budget", "9", "--cost", "tokens"),
        "baselines cannot learn: bad.parquet does not fit the model: ",
        "there is no column 'tokens'",
    )
    write_table(with_labels([0] * 72), "bad.parquet")
    assert refused(
        evaluate("train.parquet", *options),
        "baselines cannot learn: no row is labelled 1 in column 'chosen'",
    )


def test_rivals_do_not_learn_from_what_they_are_judged_by(refused):
    assert refused(
        evaluate("train.parquet", "--train", "./train.parquet"),
        "train.parquet is the table to judge by: name another for --train",
    )


# Columns that are not there ---------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "typed", "meant"),
    [
        ("group", "qurey", "query"),
        ("label", "chose", "chosen"),
        ("item", "itm", "item"),
        ("quality", "score,fresness", "freshness"),
        ("similarity", "embeding", "embedding"),
        ("categorical", "kinds", "kind"),
        ("cost", "token", "tokens"),
        ("relevance", "Scores", "score"),
    ],
)
@pytest.mark.parametrize("table", ["train.parquet", "train.csv"])
def test_fit_with_a_column_that_is_not_there(refused, table, part, typed, meant):
    wrong = typed.split(",")[-1]
    is_option = part in ("group", "label", "quality", "similarity")
    named = (f"--{part}", typed) if is_option else ("--columns", f"{part}={typed}")
    assert refused(
        fit(table, *named),
        f"there is no column {wrong!r} (did you mean {meant!r}?); the table has query,",
    )


def test_the_relevance_is_looked_for_before_the_work(refused):
    # As with any report, which goes by it.
    assert refused(
        fit("train.parquet", "--columns", "relevance=scores", "--report", "new.html"),
        "there is no column 'scores' (did you mean 'score'?)",
    )


def test_a_relevance_that_is_no_number_is_refused_before_the_work(refused):
    assert refused(
        fit("train.parquet", "--columns", "relevance=kind", "--report", "new.html"),
        "column 'kind' holds '",
        "which is not a number",
    )


def test_columns_to_show_are_looked_for_before_the_work(refused):
    for report in ("new.html", "report"):
        assert refused(
            fit("train.parquet", "--show", "item,knid", "--report", report),
            "no column 'knid'",
            "(did you mean 'kind'?)",
        )


@pytest.mark.parametrize(
    ("part", "typed", "meant"),
    [
        ("group", "qurey", "query"),
        ("similarity", "embeding", "embedding"),
        ("relevance", "scor", "score"),
        ("cost", "token", "tokens"),
    ],
)
def test_select_with_a_column_that_is_not_there(refused, part, typed, meant):
    options = ["--budget", "9"] if part == "cost" else []
    assert refused(
        ["select", "train.parquet", *METHOD, *options, "-o", "out.csv", "--drop",
         "embedding", f"--{part}", typed],
        f"there is no column {typed!r} (did you mean {meant!r}?)",
    )  # fmt: skip


@pytest.mark.parametrize(
    "arguments",
    [
        select("train.parquet", "--group", "qurey"),
        evaluate("train.parquet", "--label", "qurey"),
        evaluate("train.parquet", "--relevance", "qurey"),
    ],
    ids=["select group", "evaluate label", "evaluate relevance"],
)
def test_a_model_and_a_column_that_is_not_there(refused, arguments):
    assert refused(arguments, "there is no column 'qurey' (did you mean 'query'?)")


def test_select_with_a_cost_that_is_not_there(refused):
    assert refused(
        select("train.parquet", "--budget", "100", "--cost", "token"),
        "there is no column 'token' (did you mean 'tokens'?)",
    )


def test_a_column_to_drop_that_is_not_there(refused):
    assert refused(
        select("train.parquet", "--drop", "embeding"),
        "there is no column 'embeding' (did you mean 'embedding'?)",
    )


def test_patterns_that_nothing_matches(refused):
    assert refused(
        fit("train.parquet", "--similarity", "vec_*"),
        "no column matches 'vec_*'; the table has query, item,",
    )


def test_a_column_with_two_parts(refused):
    assert refused(
        fit("train.parquet", "--quality", "score,chosen"),
        "column 'chosen' cannot be both the group, label, item, cost, given or ",
    )


def test_no_label(refused):
    assert refused(
        fit(columns=["--group", "query", "--similarity", "embedding"]), "label column"
    )


def test_no_types_and_no_quality(refused):
    columns = ["--group", "query", "--label", "chosen", "--similarity", "embedding"]
    assert refused(fit("train.csv", columns=columns), "name the quality columns")


# Labels -----------------------------------------------------------------------------


def with_labels(values, kind=None):
    return with_column(small_table(), "chosen", values, kind)


def test_nothing_was_chosen(refused):
    write_table(with_labels([0] * 72), "bad.parquet")
    message = "no row is labelled 1 in column 'chosen': nothing was chosen"
    assert refused(fit("bad.parquet"), message)
    assert refused(fit("bad.parquet", "--empty-groups", "drop"), message)
    assert refused(evaluate("bad.parquet"), message)


def test_a_group_of_which_nothing_was_chosen(refused):
    flags = np.array(small_table()["chosen"].to_pylist())
    flags[6:12] = False
    write_table(with_labels(flags.tolist()), "bad.parquet")
    message = "1 of 12 groups has no chosen row, the first is 'q0002'"
    ways_out = ("--empty-groups drop", "--empty-groups keep")
    assert refused(fit("bad.parquet"), message, *ways_out)
    assert refused(evaluate("bad.parquet"), message, *ways_out)


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([0, 1, 2, *[1] * 69], "holds 2 in row 3"),
        ([0.0, 0.5, *[1.0] * 70], "holds 0.5 in row 2"),
        (["no", "yes", *["no"] * 70], "holds 'no' in row 1"),
        ([True, None, *[True] * 70], "holds nothing in row 2"),
        ([1.0, 0.0, float("nan"), *[1.0] * 69], "in row 3"),
    ],
    ids=["two", "half", "text", "empty", "nan"],
)
def test_labels_that_are_not_0_or_1(refused, values, found):
    write_table(with_labels(values), "bad.parquet")
    message = "labels must be 1 (or true) for chosen rows and 0 (or false)"
    assert refused(fit("bad.parquet"), "column 'chosen'", found, message)
    assert refused(evaluate("bad.parquet"), "column 'chosen'", found, message)


@pytest.mark.parametrize(
    ("cell", "found"), [("2", "'2'"), ("", "nothing"), ("x", "'x'")]
)
def test_labels_of_csv(refused, cell, found):
    flags = ["0", "1", "0", cell, *["1"] * 68]
    write_csv_with(small_table(), {"chosen": flags}, "bad.csv")
    assert refused(fit("bad.csv"), f"column 'chosen' holds {found} in row 4: labels mu")


def write_csv_with(table, columns, path):
    """Write a table as CSV with the texts of some columns as they are."""
    write_csv(table, "plain.csv.tmp.csv")
    texts = vg.tables.TableFile("plain.csv.tmp.csv")
    plain = pa.Table.from_batches(list(texts.batches()))
    os.remove("plain.csv.tmp.csv")
    for name, values in columns.items():
        plain = with_column(plain, name, values)
    write_table(plain, path)


# Cells ------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, float("nan")])
def test_an_empty_cell(refused, value):
    write_table(with_cell(small_table(), "score", 4, value), "bad.parquet")
    n_rows = small_table().num_rows
    message = f"column 'score' has no value in row 5 (1 of {n_rows} cells is empty)"
    ways_out = ("--columns missing=mean (as", "--columns missing=indicator (a kind")
    assert refused(fit("bad.parquet"), message, *ways_out)
    # What a model was told when it was fitted.
    ways_out = ("missing=mean of 'variegate fit'", "indicator of 'variegate fit'")
    for arguments in (
        select("bad.parquet"),
        evaluate("bad.parquet", "--methods", "none"),
    ):
        assert refused(arguments, message, *ways_out)


def test_an_empty_relevance(refused):
    write_table(with_cell(small_table(), "popularity", 4, None), "bad.parquet")
    options = ["--methods", "top", "--relevance", "popularity"]
    assert refused(
        evaluate("bad.parquet", *options),
        "column 'popularity', the relevance, has no value in row 5: ",
        "name another column",
    )


@pytest.mark.parametrize("command", [fit, select, evaluate])
def test_infinity(refused, command):
    write_table(with_cell(small_table(), "freshness", 40, float("-inf")), "bad.parquet")
    assert refused(
        command("bad.parquet"),
        "column 'freshness' holds -inf in row 41: numbers must be finite",
    )


@pytest.mark.parametrize("command", [fit, select, evaluate])
@pytest.mark.parametrize(
    ("vector", "message"),
    [
        (
            [1.0, 2.0, 3.0],
            "holds a vector of 3 numbers in row 9, but the others have 4",
        ),
        (
            [1.0, float("nan"), 0.0, 0.0],
            "holds NaN, infinity or an empty cell in the v",
        ),
        (
            [1.0, None, 0.0, 0.0],
            "holds NaN, infinity or an empty cell in the vector of",
        ),
        (None, "has no vector in row 9: leave such rows out, or give them one"),
    ],
    ids=["uneven", "nan", "null", "none"],
)
def test_vectors(refused, command, vector, message):
    write_table(with_cell(small_table(), "embedding", 8, vector), "bad.parquet")
    assert refused(command("bad.parquet"), f"column 'embedding' {message}", "row 9")


def test_items_that_are_the_same(refused):
    write_table(with_cell(small_table(), "item", 10, "i01"), "bad.parquet")
    message = "rows 7 and 11 of group 'q0002' have the same 'item'"
    for command in (fit, select, evaluate):
        assert refused(command("bad.parquet"), message, "must differ")


def test_a_group_without_a_name(refused):
    write_table(with_cell(small_table(), "query", 30, None), "bad.parquet")
    for command in (fit, select, evaluate):
        assert refused(command("bad.parquet"), "column 'query' is empty in row 31")


def test_text_in_a_column_of_numbers_of_csv(refused):
    scores = ["1.5"] * 72
    scores[12] = "12,5"
    write_csv_with(small_table(), {"score": scores}, "bad.csv")
    for command in (fit, select, evaluate):
        assert refused(
            command("bad.csv", *(["--drop", "item"] * (command is select))),
            "column 'score' holds '12,5' in row 13, which is not a number",
        )


@pytest.mark.parametrize(
    ("value", "message"), [(0, "holds 0 in row 3"), (None, "no va")]
)
def test_costs(refused, value, message):
    write_table(with_cell(small_table(), "tokens", 2, value), "bad.parquet")
    assert refused(
        select("bad.parquet", "--budget", "500", "--cost", "tokens"),
        "column 'tokens', the cost,",
        message,
        "row 3",
    )


def test_a_column_of_text_as_quality(refused):
    assert refused(
        fit("train.parquet", "--quality", "kind"),
        "column 'kind' holds '",
        "in row 1, which is not a number",
        "or say that its values are names of kinds: --columns categorical=kind",
    )


# Files ------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [fit, select, evaluate])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gone.parquet", "there is no file gone.parquet"),
        ("cut.parquet", "cut.parquet is not a Parquet file, or is damaged"),
        ("text.parquet", "text.parquet is not a Parquet file, or is damaged"),
        ("empty.parquet", "empty.parquet is empty; write it again"),
        ("wrong.csv", "wrong.csv is a Parquet file under the suffix of another format"),
        ("table.xlsx", "table.xlsx: the suffix '.xlsx' is of no known table format"),
        (
            "folder.parquet",
            "there are no Parquet or Arrow files in folder.parquet",
        ),
        ("rowless.parquet", "rowless.parquet has no rows"),
        ("rowless.csv", "rowless.csv has no rows"),
    ],
)
def test_tables_that_cannot_be_read(refused, command, name, message):
    assert refused(command(name), message)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_table_that_may_not_be_read(refused, tmp_path):
    write_table(small_table(), "secret.parquet")
    (tmp_path / "secret.parquet").chmod(0)
    assert refused(
        fit("secret.parquet"), "cannot read secret.parquet: Permission denied"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (fit("train.parquet", "-o", "gone/m.json"), "there is no folder gone"),
        (fit("train.parquet", "-o", "folder.parquet"), "is a directory"),
        (fit("train.parquet", "--report", "gone/x.html"), "there is no folder gone"),
        (fit("train.parquet", "--report", "page.html"), "page.html exists"),
        (fit("train.parquet", "--report", "train.csv"), "is a file"),
        (fit("train.parquet", "-o", "model.json"), "model.json exists"),
        (
            select(out="gone/x.parquet"),
            "cannot write gone/x.parquet: there is no folde",
        ),
        (select(out="train.parquet"), "train.parquet is one of the files to read"),
        (select(out="x.xlsx"), "the suffix '.xlsx' is of no known table format"),
        (select(out="x"), "the suffix '' is of no known table format"),
        (select(out="x.csv"), "a .csv file cannot hold 'embedding' (list<"),
        (["describe", "model.json", "--png", "gone/x.png"], "there is no folder gone"),
        (["describe", "gone.json"], "gone.json"),
        (["describe", "train.csv"], "train.csv is not a variegate model, or is damage"),
    ],
)
def test_files_that_cannot_be_written(refused, arguments, message):
    assert refused(arguments, message)


def test_a_model_and_its_page_are_two_files(refused):
    assert refused(
        fit("train.parquet", "-o", "both", "--report", "both"), "both", "--report"
    )


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (fit("train.parquet", "-o", "train.parquet"), "train.parquet"),
        (select(out="train.parquet"), "train.parquet"),
        (["describe", "model.json", "--png", "model.json"], "model.json"),
    ],
    ids=["fit", "select", "describe"],
)
def test_no_file_replaces_what_it_is_made_from(refused, tmp_path, arguments, name):
    before = (tmp_path / name).read_bytes()
    assert refused(
        [*arguments, "--force"], f"{name} is one of the files to read: name another"
    )
    assert (tmp_path / name).read_bytes() == before


def test_a_list_column_and_csv(refused):
    assert refused(
        select(out="x.csv"), "write .parquet or .jsonl, or leave such columns out"
    )


@pytest.mark.parametrize(
    ("name", "options"),
    [("selection_rank", []), ("inclusion_probability", []), ("selected", ["--all"])],
)
def test_columns_that_are_there_already(refused, variegate, name, options):
    write_table(with_column(small_table(), name, [0] * 72), "twice.parquet")
    assert refused(
        select("twice.parquet", *options),
        f"the table already has a column {name!r}, which a selection adds: rename or",
    )
    dropped = select("twice.parquet", *options, "--drop", name)
    assert variegate(*dropped)[0] == 0


# Models -----------------------------------------------------------------------------


def test_a_table_without_a_column_of_the_model(refused):
    write_table(small_table().drop_columns("freshness"), "bad.parquet")
    for command in (select, evaluate):
        assert refused(
            command("bad.parquet"),
            "bad.parquet does not fit the model: there is no column 'freshness'",
        )


def test_vectors_of_another_length(refused):
    table = small_table()
    longer = [[*vector, 0.5] for vector in table["embedding"].to_pylist()]
    write_table(with_column(table, "embedding", longer), "bad.parquet")
    for command in (select, evaluate):
        assert refused(
            command("bad.parquet"),
            "column 'embedding' holds",
            "5 numbers",
            "4",
        )


def test_numbers_that_became_words(refused):
    words = ["low"] * len(small_table())
    write_table(with_column(small_table(), "score", words), "bad.parquet")
    for command in (select, evaluate):
        assert refused(command("bad.parquet"), "column 'score' holds 'low' in row 1")


def test_vectors_that_became_numbers(refused):
    write_table(with_column(small_table(), "embedding", [1.0] * 72), "bad.parquet")
    for command in (select, evaluate):
        assert refused(
            command("bad.parquet"),
            "column 'embedding' holds double values, not vectors",
        )


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("plain.json", "plain.json holds a LargeMarginDPP, which is not about tables"),
        ("cut.json", "cut.json is not a variegate model, or is damaged"),
        ("odd.json", 'odd.json: "encoding.quality[0].scale'),
        ("train.csv", "train.csv is not a variegate model, or is damaged"),
        ("gone.json", "'gone.json' does not exist"),
    ],
)
def test_models_that_cannot_be_used(refused, model, message):
    for command in (
        ["select", "train.parquet", "--model", model, "-o", "out.parquet"],
        ["evaluate", "train.parquet", "--model", model],
    ):
        assert refused(command, message)


def test_the_model_of_a_summarizer(refused):
    given = ["train.parquet", "--model", str(SUMMARIZER)]
    why = "train.parquet holds a table, but the model was learned from documents"
    assert refused(["select", *given, "-o", "out.csv"], why)
    assert refused(["evaluate", *given], "holds a Summarizer, which is not about table")


def test_omega_and_a_number_of_rows(refused):
    message = "--k fixes the number of rows, which --omega would change: leave out one"
    assert refused(select("train.parquet", "--omega", "4", "--k", "2"), message)


def test_limits_that_do_not_fit(refused):
    for command in (select, evaluate):
        message = "1 number in --at-most and 0 columns in --per: give a number for each"
        assert refused(command("train.parquet", "--at-most", "2"), message)
        limit = ("--at-most", "2", "--per", "knd")
        message = "no column 'knd' (did you mean 'kind'?)"
        assert refused(command("train.parquet", *limit), message)


# Options ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            'gruop = "query"',
            "unknown key 'gruop' (did you mean 'group'?); there are gr",
        ),
        ('zzz = "query"', "unknown key 'zzz'; there are group, label, item"),
        ("group = query", "columns.toml is not TOML: "),
        ("group = 3", "columns.toml: group must be the name of a column, got 3"),
        ('quality = ["score", 1]', "columns.toml: quality must be names of columns"),
        (
            'missing = "zero"',
            "columns.toml: unknown treatment of missing values 'zero'",
        ),
        (b"\xff\xfe", "columns.toml is not TOML: "),
    ],
)
def test_files_of_columns(refused, tmp_path, content, message):
    data = content if isinstance(content, bytes) else content.encode()
    (tmp_path / "columns.toml").write_bytes(data)
    options = ["--columns", "columns.toml"]
    assert refused(fit("train.parquet", *options), message)
    assert refused(select("train.parquet", *options), message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (fit("train.parquet", "--columns", "gone.toml"), "'gone.toml' does not exist"),
        (
            fit("train.parquet", "--columns", "price=a"),
            "'price' is not a role of columns; there are group, label, item, quality",
        ),
        (fit("train.parquet", "--columns", "categorical=a,,b"), "between two commas"),
        (fit("train.parquet", "--lam", "1", "--tune"), "lambda: leave out --lam"),
        (
            fit("train.parquet", "--lam", "1", "--target", "recall=0.5"),
            "lambda: leave out --lam",
        ),
        (
            fit("train.parquet", "--target", "f=0.5"),
            "'f=0.5' is not precision=SHARE or recall=SHARE",
        ),
        (fit("train.parquet", "--lam", "-1"), "-1.0 is not in the range x>=0.0"),
        (fit("train.parquet", "--lam", "nan"), "nan"),
        (fit("train.parquet", "--omega", "0"), "0.0 is not in the range x>0.0"),
        (fit("train.parquet", "--omega", "inf"), "'inf' is not a finite number"),
        (fit("train.parquet", "--target", "recall=1"), "1.0 is not in the range"),
        (fit("train.parquet", "--validation", "1"), "1.0 is not in the range"),
        (fit("train.parquet", "--validation", "0.01"), "12 groups cannot be split"),
        (fit("train.parquet", "--validation", "0.99"), "12 groups cannot be split"),
        (fit("train.parquet", "--kernel", "cubic"), "'cubic' is not one of"),
        (fit("train.parquet", "--max-iter", "0"), "0 is not in the range x>=1"),
        (fit("train.parquet", "--seed", "-1"), "-1 is not in the range x>=0"),
        (fit("train.parquet", "--jobs", "0"), "0 is not in the range x>=1"),
        (fit("train.parquet", "--quality", "a,,b"), "has nothing between two commas"),
        (fit("train.parquet", "--memory", "lots"), "'lots' is not an amount of memory"),
        (fit("train.parquet", "--memory", "0MB"), "'0MB' is not an amount of"),
        (fit("train.parquet", "--memory", "1.2.3GB"), "is not an amount of memory"),
        (
            select("train.parquet", "--similarity", "a", "--relevance", "score"),
            "--similarity and --relevance cannot be used with --model",
        ),
        (select("train.parquet", "--memory", "5 XB"), "'5 XB' is not an amount"),
        (evaluate("train.parquet", "--memory", "-1MB"), "is not an amount of memory"),
        (fit()[:-2], "Missing option '-o'"),
        (
            ["select", "train.parquet", "-o", "x.parquet"],
            "choose with --model or with --method, one of the two",
        ),
        (
            select("train.parquet", "--method", "mmr"),
            "choose with --model or with --method, one of the two",
        ),
        (select("train.parquet", "--k", "0"), "0 is not in the range x>=1"),
        (select("train.parquet", "--k", "many"), "'many' is not a valid int"),
        (select("train.parquet", "--budget", "0"), "0.0 is not in the range x>0"),
        (select("train.parquet", "--budget", "9"), "a budget needs a column of costs"),
        (select("train.parquet", "--diversity", "2"), "2.0 is not in the range 0.0<=x"),
        (
            ["select", "train.parquet", *METHOD, "--budget", "9", "-o", "x.parquet"],
            "a budget needs --cost, the column of costs",
        ),
        (
            ["select", "train.parquet", *METHOD, "--omega", "1", "-o", "x.parquet"],
            "--omega is for a --model",
        ),
        (
            ["select", "train.parquet", "--method", "mmr", "--similarity", "embedding",
             "-o", "x.parquet"],
            "say how many rows to choose: --k or --budget",
        ),
        (
            ["select", "train.parquet", "--method", "mmr", "--k", "2", "-o", "x.pq"],
            "method 'mmr' needs to know whether rows are alike: name a column of vecto",
        ),
        (
            ["select", "train.parquet", "--method", "top", "--k", "2", "-o", "x.pq"],
            "method 'top' needs a column that says how good a row is",
        ),
        (
            ["select", "train.parquet", "--method", "best", "--k", "2", "-o", "x.pq"],
            "'best' is not one of",
        ),
        (evaluate("train.parquet", "--methods", "mmr,best"), "unknown method 'best'"),
        (evaluate("train.parquet", "--k", "0"), "--k is a number of rows or 'wanted'"),
        (evaluate("train.parquet", "--k", "-2"), "--k is a number of rows or 'wanted'"),
        (evaluate("train.parquet", "--k", "some"), "--k is a number of rows or 'wante"),
        (["evaluate", "train.parquet"], "Missing option '--model'"),
    ],
)  # fmt: skip
def test_options(refused, arguments, message):
    assert refused(arguments, message)


@pytest.mark.parametrize("options", [[], ["--tune"]])
def test_one_group(refused, options):
    write_table(small_table(1), "one.parquet")
    assert refused(
        fit("one.parquet", *options),
        "1 group",
        "cannot be split into a share of 0.2 to hold out and the rest to learn from: "
        "give more groups, or hold out none",
    )


def test_one_group_is_not_enough_to_tune(refused):
    write_table(small_table(1), "one.parquet")
    assert refused(
        fit("one.parquet", "--tune", "--validation", "0"),
        "one group is not enough to choose lambda and omega by: give more groups",
    )


def test_one_group_is_not_enough_to_judge(refused):
    write_table(small_table(1), "one.parquet")
    assert refused(
        evaluate("one.parquet"),
        "one.parquet has 1 group to judge by: intervals need two at least",
    )
