"""``variegate fit``, ``evaluate``, ``select`` and ``describe``, end to end."""

import csv
import datetime
import json
import os
import pty
import re
import signal
import sys
import time
from collections import Counter
from decimal import Decimal
from importlib.resources import files
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import variegate as vg
from table_instances import (
    COLUMNS,
    INTERRUPTIBLE,
    MAIN,
    QUICK,
    caller,
    fails,
    interrupt,
    names_in,
    process,
    small_table,
    succeeds,
    with_cell,
    with_column,
    write_csv,
)
from variegate.cli import progress
from variegate.tables import TableFile, write_table

FORMATS = ["parquet", "csv", "jsonl", "arrow"]
METHODS = [
    "dpp", "mmr", "facility-location", "k-medoids", "max-min", "top", "random",
]  # fmt: skip
SUMMARIZER = files("variegate.text") / "models" / "news.json"
PICKER = files("variegate.video") / "models" / "videos.json"
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    """One table in every format, another to choose from, and a model."""
    folder = tmp_path_factory.mktemp("samples")
    train, new = small_table(), small_table(8, random_state=1)
    for name in ("parquet", "jsonl", "arrow"):
        write_table(train, folder / f"train.{name}")
        write_table(new, folder / f"new.{name}")
    write_csv(train, folder / "train.csv")
    write_csv(new, folder / "new.csv")
    selector = vg.tables.TableSelector(
        group="query",
        label="chosen",
        item="item",
        quality=["score", "freshness"],
        similarity="embedding",
        omega=1.0,
        lam=1.0,
    )
    selector.fit(train).save(folder / "model.json")
    return folder


@pytest.fixture
def variegate(monkeypatch, capsys, tmp_path, samples):
    """Run a command in a folder with the tables and the model."""
    monkeypatch.chdir(tmp_path)
    for path in samples.iterdir():
        os.link(path, tmp_path / path.name)
    return caller(monkeypatch, capsys)


def read(path):
    """Return a file as an Arrow table."""
    return pa.Table.from_batches(
        list(TableFile(path).batches()), TableFile(path).schema
    )


def ranks(table, group="query"):
    """Return the ranks of every group, in the order of the rows."""
    found = {}
    names = table[group].to_pylist() if group else ["all"] * table.num_rows
    for name, rank in zip(names, table["selection_rank"].to_pylist(), strict=True):
        found.setdefault(name, []).append(int(rank))
    return found


def from_one(found):
    return all(sorted(rank) == list(range(1, len(rank) + 1)) for rank in found.values())


# All of it --------------------------------------------------------------------------


def test_a_similarity_that_calls_all_alike_is_noted(variegate, monkeypatch):
    monkeypatch.setattr("variegate.estimator.alike._ALIKE", -1.0)  # as all now do
    status, _, messages = variegate("fit", "train.csv", *COLUMNS, "-o", "fitted.json")
    assert status == 0
    noted = [line for line in messages.splitlines() if "alike" in line]
    assert len(noted) == 1
    assert noted[0].startswith("variegate: note: the learned similarity calls nearly ")
    assert noted[0].endswith("how many are wanted more than their diversity")


def test_subtopics_are_printed_beside_other_scores(variegate):
    command = ["evaluate", "new.parquet", "--model", "model.json", "--methods", "top"]
    status, output, _ = variegate(*command, "--subtopics", "kind")
    assert status == 0
    head = output.split("\n\n")[1].splitlines()[0]
    assert head.split("  ")[-1].strip() == "IA precision"
    for name in ("precision", "recall", "F", "subtopic recall", "alpha-nDCG"):
        assert name in head
    assert "subtopic recall: share of a group's subtopics that are chosen" in output
    status, output, _ = variegate(*command, "--subtopics", "kind", "--json")
    found = json.loads(output)
    for scores in (*found["scores"].values(), *found["less"].values()):
        assert list(scores)[-3:] == [
            "subtopic_recall",
            "alpha_ndcg",
            "intent_aware_precision",
        ]
    assert 0.0 < found["scores"]["model.json"]["alpha_ndcg"]["mean"] <= 1.0
    _, output, _ = variegate(*command)
    assert "subtopic" not in output
    status, _, messages = variegate(*command, "--subtopics", "nothing")
    assert status == 2
    assert "there is no column 'nothing'" in messages


@pytest.mark.parametrize("kind", FORMATS)
def test_fit_evaluate_select_describe(variegate, kind):
    status, output, messages = variegate(
        "fit", f"train.{kind}", *COLUMNS, "--omega", "1", "-o", "fitted.json"
    )
    assert status == 0
    assert "score" in output
    assert messages.splitlines()[-1] == "written: fitted.json"
    judged = succeeds(variegate("evaluate", f"new.{kind}", "--model", "fitted.json"))
    assert "8 groups" in judged
    assert re.search(r"^fitted\.json +\d\.\d{3} \[", judged, re.MULTILINE)
    for way in ("dpp", "mmr", "top"):
        assert re.search(rf"^{way} \(k = \d\) +\d\.\d{{3}} \[", judged, re.MULTILINE)
    out = f"chosen.{kind}"
    if kind == "csv":
        assert TableFile("new.csv").schema.field("embedding").type == pa.string()
    status, output, messages = variegate(
        "select", f"new.{kind}", "--model", "fitted.json", "-o", out
    )
    assert (status, messages) == (0, f"written: {out}\n")
    n_chosen = int(re.match(r"(\d+) of 48 rows chosen from 8 groups\n$", output)[1])
    chosen = read(out)
    assert 0 < chosen.num_rows == n_chosen
    assert from_one(ranks(chosen))
    described = succeeds(variegate("describe", "fitted.json"))
    for word in ("score", "freshness", "embedding", "query", "chosen"):
        assert word in described


def test_every_format_gives_the_same(variegate):
    chosen = []
    for kind in FORMATS:
        succeeds(variegate("fit", f"train.{kind}", *QUICK, "-o", f"{kind}.json"))
        out = f"{kind}.jsonl"
        succeeds(
            variegate("select", f"new.{kind}", "--model", f"{kind}.json", "-o", out)
        )
        found = read(out)
        chosen.append([found[name].to_pylist() for name in ("query", "item")])
    assert all(other == chosen[0] for other in chosen)


@pytest.mark.faults
def test_in_processes_of_their_own(samples, tmp_path):
    steps = [
        ["fit", samples / "train.csv", *QUICK, "-o", "model.json", "--json"],
        ["select", samples / "new.csv", "--model", "model.json", "-o", "chosen.csv",
         "--json"],
    ]  # fmt: skip
    for step in steps:
        started = process(*step, cwd=tmp_path)
        output, messages = started.communicate(timeout=120)
        assert started.returncode == 0, messages
        assert json.loads(output)
        assert messages == f"written: {step[step.index('-o') + 1]}\n"
    assert names_in(tmp_path) == ["chosen.csv", "model.json"]


# fit --------------------------------------------------------------------------------


def fitted(variegate, *options, table="train.parquet", columns=COLUMNS):
    """Return the model and what was printed as JSON."""
    arguments = [*columns, "-o", "fitted.json", "--json", *options]
    output = succeeds(variegate("fit", table, *arguments))
    return vg.load("fitted.json"), json.loads(output)


def test_lambda_and_omega(variegate):
    model, told = fitted(variegate, "--lam", "0.5", "--omega", "2", "--seed", "3")
    assert (model.lam_, model.omega_, model.random_state) == (0.5, 2.0, 3)
    assert (told["lam"], told["omega"]) == (0.5, 2.0)
    omegas = [point["omega"] for point in told["path"]["points"]]
    assert omegas == [0.125, 0.5, 2.0, 8.0, 32.0]
    assert told["path"]["chosen"] == 2.0


def test_json_of_a_fit(variegate):
    model, told = fitted(variegate, "--omega", "1")
    assert set(told) == {
        "data", "columns", "lam", "omega", "validation", "path", "weights",
        "intercept", "kernel", "history", "training", "k", "ordering", "has_fallback",
    }  # fmt: skip
    assert told["data"]["n_rows"] == 72
    assert (told["data"]["n_learned_from"], told["data"]["n_held_out"]) == (10, 2)
    assert told["weights"] == model.weights_
    assert set(told["validation"]) == {"precision", "recall", "f", "size"}
    assert told["columns"]["group"] == "query"
    described = json.loads(succeeds(variegate("describe", "fitted.json", "--json")))
    assert described == told


@pytest.mark.parametrize(
    "options",
    [
        ["--tune"],
        ["--tune", "--omega", "4"],
        ["--target", "recall=0.7"],
        ["--target", "precision=0.7"],
    ],
    ids=lambda options: " ".join(options[:2]),
)
def test_tuning(variegate, options):
    _, told = fitted(variegate, *options, "--jobs", "1")
    assert told["lam"] in (0.0, 4.0, 16.0)
    assert told["data"]["n_tuned"] == 10
    assert told["path"]["chosen"] == told["omega"]
    if "--tune" not in options:
        target = options[1].removesuffix("=0.7")
        assert told["path"]["target"] == [target, 0.7]


def test_without_validation(variegate):
    _, told = fitted(variegate, "--validation", "0", "--omega", "1")
    assert told["validation"] is None
    assert told["data"]["n_held_out"] == 0
    text = succeeds(variegate("describe", "fitted.json"))
    assert "held out 0 groups" in " ".join(text.split())


def test_a_linear_kernel(variegate):
    _, told = fitted(variegate, "--kernel", "linear", "--omega", "1")
    assert told["kernel"]["name"] == "Linear"


def test_a_table_that_takes_more_memory(variegate):
    model, _ = fitted(variegate, "--memory", "1KB")
    much, _ = fitted(variegate, "--memory", "1GB", "--force")
    assert model.weights_ == much.weights_
    # The same rows, also where records are on a file.
    for memory, name in (("1KB", "little.csv"), ("1GB", "much.csv")):
        succeeds(
            variegate("select", "new.csv", "--model", "fitted.json", "-o", name,
                      "--memory", memory)
        )  # fmt: skip
    with open("little.csv", "rb") as one, open("much.csv", "rb") as other:
        assert one.read() == other.read()


def test_columns_in_a_file_and_options_win(variegate, tmp_path):
    (tmp_path / "columns.toml").write_text(
        'group = "query"\nlabel = "chosen"\nitem = "item"\nquality = ["popularity"]\n'
        'categorical = ["kind"]\nsimilarity = ["emb*"]\ncost = "tokens"\n'
        'missing = "indicator"\n'
    )
    options = ["--columns", "columns.toml", "--quality", "score,freshness"]
    model, told = fitted(variegate, "--omega", "1", *options, columns=())
    assert model.columns_.quality == ("score", "freshness", "kind")
    assert model.columns_.similarity == ("embedding",)
    assert model.columns_.missing == "indicator"
    assert told["columns"]["cost"] == "tokens"
    assert "kind = news" in told["weights"]
    model, _ = fitted(
        variegate,
        "--omega",
        "1",
        *options,
        "--columns",
        "missing=mean",
        "--force",
        columns=(),
    )
    assert model.columns_.missing == "mean"


def test_roles_on_the_command_line_win_over_those_of_a_file(variegate, tmp_path):
    (tmp_path / "c.toml").write_text('missing = "mean"\ncost = "tokens"\n')
    roles = ["cost=popularity", "categorical=kind", "similarity=place=x_*"]
    table = small_table()
    for k in (1, 2):
        values = [1.0 + row % (k + 2) for row in range(len(table))]
        table = with_column(table, f"x_{k}", values)
    write_table(table, "more.parquet")
    given = [word for role in roles for word in ("--columns", role)]
    columns = ["--group", "query", "--label", "chosen", "--quality", "score"]
    columns += [*given, "--columns", "c.toml"]
    model, _ = fitted(variegate, "--omega", "1", table="more.parquet", columns=columns)
    assert model.columns_.cost == "popularity"
    assert model.columns_.categorical == ("kind",)
    assert model.columns_.vectors == {"place": ("x_1", "x_2")}
    assert model.columns_.missing == "mean"


def test_every_column_of_numbers_is_quality(variegate):
    columns = ["--group", "query", "--label", "chosen", "--similarity", "embedding"]
    model, _ = fitted(variegate, "--omega", "1", columns=columns)
    assert model.columns_.quality == ("score", "freshness", "popularity", "tokens")


@pytest.mark.parametrize(("how", "left_out"), [("keep", 0), ("drop", 1)])
def test_groups_of_which_nothing_was_chosen(variegate, how, left_out):
    table = small_table()
    flags = [
        flag and query != "q0002"
        for flag, query in zip(
            table["chosen"].to_pylist(), table["query"].to_pylist(), strict=True
        )
    ]
    write_table(with_column(table, "chosen", flags), "some.parquet")
    _, told = fitted(
        variegate, "--omega", "1", "--empty-groups", how, table="some.parquet"
    )
    assert told["data"]["n_left_out"] == left_out
    output = succeeds(
        variegate("evaluate", "some.parquet", "--model", "fitted.json", "--methods",
                  "none", "--empty-groups", how, "--json")
    )  # fmt: skip
    assert json.loads(output)["groups"] == 12 - left_out


@pytest.mark.parametrize("missing", ["mean", "indicator"])
def test_empty_cells(variegate, missing):
    write_table(with_cell(small_table(), "score", 5, None), "some.parquet")
    _, told = fitted(
        variegate,
        "--omega",
        "1",
        "--columns",
        f"missing={missing}",
        table="some.parquet",
    )
    assert ("score is missing" in told["weights"]) == (missing == "indicator")
    options = ["--model", "fitted.json", "-o", "out.parquet"]
    assert succeeds(variegate("select", "some.parquet", *options))


def test_a_page_that_needs_nothing_else(variegate, tmp_path):
    status, _, messages = variegate(
        "fit", "train.parquet", *QUICK, "-o", "fitted.json", "--report", "page.html",
        "--columns", "relevance=score", "--show", "item,kind",
    )  # fmt: skip
    assert status == 0
    assert messages.splitlines()[-2:] == ["written: fitted.json", "written: page.html"]
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.startswith("<!")
    for reference in re.findall(r'(?:src|href)="([^"]*)"', page):
        assert reference.startswith(("data:", "#"))
    assert "url(http" not in page
    assert "<script src" not in page
    assert "score" in page
    # The columns to show, and not those that are shown by default.
    heads = re.findall(r"<th[^>]*>([^<]*)</th>", page)
    assert "kind" in heads


def test_a_report_in_a_folder(variegate, tmp_path):
    succeeds(
        variegate("fit", "train.parquet", *QUICK, "-o", "fitted.json", "--report",
                  "new/report")
    )  # fmt: skip
    folder = tmp_path / "new" / "report"
    words = (folder / "report.md").read_text(encoding="utf-8")
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]*)\)", words)
    assert pictures
    assert names_in(folder) == sorted({"report.md", *pictures})
    for picture in pictures:
        assert (folder / picture).read_bytes().startswith(PNG)


def test_force(variegate, tmp_path):
    (tmp_path / "fitted.json").write_text("older")
    (tmp_path / "page.html").write_text("older")
    options = [*QUICK, "-o", "fitted.json", "--report", "page.html"]
    before = names_in(tmp_path)
    result = variegate("fit", "train.parquet", *options)
    assert fails(result, "fitted.json exists: name another file, or replace it with --")
    assert (tmp_path / "fitted.json").read_text() == "older"
    succeeds(variegate("fit", "train.parquet", *options, "--force"))
    assert vg.load("fitted.json")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") != "older"
    assert names_in(tmp_path) == before


def test_a_fit_that_stops_early_says_so(variegate):
    status, output, messages = variegate(
        "fit", "train.parquet", *COLUMNS, "--omega", "1", "--max-iter", "1", "-o",
        "fitted.json",
    )  # fmt: skip
    assert status == 0
    assert "stopped at max_iter=1 " in output
    assert "Raise max_iter" in output
    assert messages.splitlines()[-1] == "written: fitted.json"


# evaluate ---------------------------------------------------------------------------


def judged(variegate, *options, models=("model.json",)):
    arguments = [word for name in models for word in ("--model", name)]
    status, output, messages = variegate(
        "evaluate", "new.parquet", *arguments, "--json", *options
    )
    assert status == 0, messages
    return json.loads(output), messages


def test_json_of_an_evaluation(variegate):
    told, messages = judged(variegate)
    assert set(told) == {
        "groups", "wanted", "scores", "over_rows", "diversity", "reference", "less",
        "endings",
    }  # fmt: skip
    assert told["reference"] == "model.json"
    assert list(told["over_rows"]) == list(told["scores"])
    assert list(told["diversity"]) == [*told["scores"], "wanted rows"]
    # How searches ended; methods do not search.
    ((name, ending),) = told["endings"].items()
    assert name == "model.json"
    assert sum(ending["stop_reasons"].values()) == 8
    assert ending["n_optimal"] == 0
    assert ending["largest_gap"] is None
    assert told["groups"] == 8
    assert told["wanted"] == pytest.approx(
        small_table(8, 1)["chosen"].to_numpy().mean() * 6
    )
    assert next(iter(told["scores"])) == "model.json"
    assert len(told["scores"]) == 4
    assert set(told["less"]) == set(told["scores"]) - {"model.json"}
    for scores in told["scores"].values():
        assert set(scores) == {"precision", "recall", "f", "size"}
        for interval in scores.values():
            assert interval["low"] <= interval["mean"] <= interval["high"]
    assert messages == (
        "variegate: note: untrained methods go by 'score'; --relevance names another\n"
    )


def test_scores_are_those_of_the_selection(variegate):
    """F by hand, from what select writes."""
    told, _ = judged(variegate, "--methods", "none")
    succeeds(
        variegate("select", "new.parquet", "--model", "model.json", "--all", "-o",
                  "all.parquet")
    )  # fmt: skip
    table = read("all.parquet")
    wanted, chosen = (table[name].to_numpy() for name in ("chosen", "selected"))
    query = np.array(table["query"].to_pylist())
    scores = []
    for name in dict.fromkeys(query.tolist()):
        w, c = wanted[query == name], chosen[query == name]
        scores.append(2.0 * (w & c).sum() / (w.sum() + c.sum()))
    assert told["scores"]["model.json"]["f"]["mean"] == pytest.approx(np.mean(scores))
    assert told["less"] == {}


def test_two_models(variegate):
    succeeds(variegate("fit", "train.parquet", *QUICK, "--lam", "0", "-o", "mle.json"))
    models = ("model.json", "mle.json")
    told, messages = judged(variegate, "--methods", "none", models=models)
    assert list(told["scores"]) == [*models]
    assert list(told["less"]) == ["mle.json"]
    difference = told["less"]["mle.json"]["f"]["mean"]
    one, other = (told["scores"][name]["f"]["mean"] for name in models)
    assert difference == pytest.approx(one - other)
    assert messages == ""
    text = succeeds(
        variegate("evaluate", "new.parquet", "--model", models[0], "--model", models[1])
    )
    assert "F of model.json less that of" in text


def test_how_many_untrained_methods_choose(variegate):
    told, messages = judged(variegate, "--k", "3", "--relevance", "popularity")
    assert messages == ""
    for name in ("dpp (k = 3)", "mmr (k = 3)", "top (k = 3)"):
        assert told["scores"][name]["size"]["mean"] == 3.0
    told, _ = judged(variegate, "--k", "wanted", "--methods", "mmr,random")
    for name in ("mmr (as many as wanted)", "random (as many as wanted)"):
        assert told["scores"][name]["size"]["mean"] == pytest.approx(told["wanted"])
        # As many chosen as wanted: precision and recall are one.
        scores = told["scores"][name]
        assert scores["precision"]["mean"] == pytest.approx(scores["recall"]["mean"])


def test_models_on_the_same_terms(variegate):
    told, _ = judged(variegate, "--k", "2", "--methods", "top")
    assert list(told["scores"]) == ["model.json", "model.json (k = 2)", "top (k = 2)"]
    assert told["scores"]["model.json (k = 2)"]["size"]["mean"] == 2.0
    assert told["reference"] == "model.json (k = 2)"
    assert set(told["less"]) == {"model.json", "top (k = 2)"}
    # One chosen row has no pair.
    told, _ = judged(variegate, "--k", "1", "--methods", "top")
    assert told["diversity"]["top (k = 1)"]["similarity"] == {
        "mean": None, "low": None, "high": None
    }  # fmt: skip
    options = ("new.parquet", "--model", "model.json", "--k", "1", "--methods", "top")
    text = succeeds(variegate("evaluate", *options))
    assert re.search(
        r"^top \(k = 1\) +\d\.\d{3} \[.*\]  - +0\.000 ", text, re.MULTILINE
    )


def test_precision_over_rows_from_what_select_writes(variegate):
    told, _ = judged(variegate, "--methods", "none")
    options = ("--model", "model.json", "--all", "-o", "all.parquet")
    succeeds(variegate("select", "new.parquet", *options))
    table = read("all.parquet")
    wanted, chosen = (table[name].to_numpy() for name in ("chosen", "selected"))
    found = told["over_rows"]["model.json"]
    assert found["precision"]["mean"] == pytest.approx(wanted[chosen].mean())
    assert found["recall"]["mean"] == pytest.approx(chosen[wanted].mean())


def test_a_budget_for_all(variegate):
    options = ("--budget", "300", "--cost", "tokens", "--methods", "mmr,top")
    told, _ = judged(variegate, *options, "--train", "train.parquet")
    names = list(told["scores"])
    assert names[:2] == ["model.json", "model.json (budget 300)"]
    assert names[-2:] == ["mmr (budget 300)", "top (budget 300)"]
    assert len(names) == 10
    told, _ = judged(variegate, *options, "--k", "1")
    assert told["scores"]["mmr (k = 1, budget 300)"]["size"]["mean"] <= 1.0
    # As select chooses within it.
    how = ("--budget", "300", "--cost", "tokens", "-o", "some.parquet")
    succeeds(variegate("select", "new.parquet", "--model", "model.json", *how))
    size = judged(variegate, *options)[0]["scores"]["model.json (budget 300)"]["size"]
    assert size["mean"] == pytest.approx(read("some.parquet").num_rows / 8)


def test_learned_rivals(variegate):
    told, _ = judged(variegate, "--train", "train.parquet", "--methods", "none")
    names = list(told["scores"])
    assert names[0] == "model.json"
    assert [re.sub(r" \(k = \d+\)$", "", name) for name in names[1:]] == [
        f"{name} + {method}"
        for name in ("logistic", "boosting")
        for method in ("top", "mmr", "dpp")
    ]
    options = ("evaluate", "new.parquet", "--model", "model.json")
    text = succeeds(variegate(*options, "--train", "train.parquet"))
    assert re.search(r"^boosting \+ dpp \(k = \d\) +\d\.\d{3} \[", text, re.MULTILINE)
    assert re.search(
        r"^ +precision of rows +similarity +near copies( +kinds)?$", text, re.MULTILINE
    )
    assert re.search(r"^wanted rows +\d\.\d{3} \[", text, re.MULTILINE)
    assert max(map(len, text.splitlines())) <= 100
    assert "--train" not in text
    assert "--train TABLE adds baselines" in succeeds(variegate(*options))


def test_kinds_of_an_evaluation(variegate):
    selector = vg.tables.TableSelector(
        group="query", label="chosen", quality="score", similarity="embedding",
        omega=1.0, kernel=vg.Kinds(3), max_iter=3, tol=1e6,
    )  # fmt: skip
    selector.fit(small_table()).save("kinds.json")
    told, _ = judged(variegate, "--methods", "none", models=["kinds.json"])
    assert 1.0 <= told["diversity"]["wanted rows"]["kinds"]["mean"] <= 3.0
    text = succeeds(variegate("evaluate", "new.parquet", "--model", "kinds.json"))
    assert re.search(r"near copies +kinds$", text, re.MULTILINE)
    assert re.search(r"^wanted rows .* \d\.\d$", text, re.MULTILINE)


def test_the_relevance_matters(variegate):
    tops = []
    for name in ("score", "popularity"):
        told, _ = judged(variegate, "--methods", "top", "--relevance", name, "--k", "1")
        tops.append(told["scores"]["top (k = 1)"]["f"]["mean"])
    table = small_table(8, random_state=1)
    for name, found in zip(("score", "popularity"), tops, strict=True):
        values = table[name].to_numpy().reshape(8, 6)
        wanted = table["chosen"].to_numpy().reshape(8, 6)
        hits = wanted[np.arange(8), values.argmax(axis=1)]
        assert found == pytest.approx(np.mean(2.0 * hits / (wanted.sum(axis=1) + 1)))


def test_omega_of_an_evaluation(variegate):
    sizes = [
        judged(variegate, "--omega", omega, "--methods", "none")[0]["scores"][
            "model.json"
        ]["size"]["mean"]
        for omega in ("0.25", "8")
    ]
    assert sizes[0] <= sizes[1]


def test_another_label(variegate):
    table = small_table(8, random_state=1)
    table = table.rename_columns(
        ["good" if name == "chosen" else name for name in table.column_names]
    )
    write_table(table, "good.parquet")
    options = ["--model", "model.json", "--methods", "none", "--json"]
    told = json.loads(
        succeeds(variegate("evaluate", "good.parquet", *options, "--label", "good"))
    )
    assert told == judged(variegate, "--methods", "none")[0]


# select -----------------------------------------------------------------------------


def selected(variegate, *options, table="new.parquet", out="out.parquet"):
    """Return what a selection by the model wrote."""
    if "--method" not in options:
        options = ("--model", "model.json", *options)
    told = json.loads(
        succeeds(variegate("select", table, "-o", out, "--json", "--force", *options))
    )
    assert set(told) == {"rows", "groups", "empty_groups", "chosen", "file", "endings"}
    assert told["file"] == out
    is_learned = "--method" not in options
    assert len(told["endings"]) == (told["groups"] if is_learned else 0)
    for ending in told["endings"]:
        assert set(ending) == {"group", "stop_reason", "gap", "is_optimal"}
    return read(out)


def rich_table():
    """Columns of many types, rows of two groups taking turns."""
    plain = small_table(2)
    n = plain.num_rows
    zone = pa.timestamp("us", tz="Europe/Zurich")
    start = datetime.datetime(2024, 2, 29, 12, 30, tzinfo=datetime.UTC)
    times = [None, *(start + datetime.timedelta(hours=row) for row in range(n - 1))]
    nested = pa.struct([("tags", pa.list_(pa.string())), ("n", pa.int8())])
    extra = {
        "shop": pa.array(["a", "b", None] * (n // 3)).dictionary_encode(),
        "price": pa.array(
            [Decimal(f"{row}.10") for row in range(n)], pa.decimal128(9, 2)
        ),
        "seen": pa.array(times, zone),
        "day": pa.array([datetime.date(2024, 1, 1 + row) for row in range(n)]),
        "more": pa.array([{"tags": ["x", None], "n": row} for row in range(n)], nested),
        "empty": pa.nulls(n),
        "small": pa.array(range(n), pa.uint16()),
        "bytes": pa.array([bytes([row]) for row in range(n)], pa.binary()),
    }
    for name, values in extra.items():
        plain = plain.append_column(name, values)
    fields = [
        field.with_metadata({"unit": "points"}) if field.name == "score" else field
        for field in plain.schema
    ]
    schema = pa.schema(fields, metadata={"made by": "a test"})
    turns = np.arange(n).reshape(2, -1).T.ravel()
    return plain.cast(schema).take(pa.array(turns))


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_rows_keep_order_columns_and_types(variegate, kind):
    table = rich_table()
    write_table(table, f"rich.{kind}")
    name = f"out.{kind}"
    chosen = selected(variegate, table=f"rich.{kind}", out=name)
    n = table.num_columns
    assert chosen.schema.names[n:] == ["selection_rank", "inclusion_probability"]
    assert chosen.schema.types[n:] == [pa.int32(), pa.float64()]
    before = TableFile(f"rich.{kind}").schema
    for place in range(n):
        assert chosen.schema.field(place).equals(table.schema.field(place))
        assert chosen.schema.field(place).equals(
            before.field(place), check_metadata=True
        )
    assert chosen.schema.metadata[b"made by"] == b"a test"
    assert chosen.schema.field("score").metadata[b"unit"] == b"points"
    # The same rows, by the one column that tells them apart.
    rows = {value: row for row, value in enumerate(table["small"].to_pylist())}
    places = [rows[value] for value in chosen["small"].to_pylist()]
    assert places == sorted(places)
    assert chosen.select(range(n)).to_pylist() == table.take(places).to_pylist()
    found = ranks(chosen)
    assert len(found) == 2
    assert from_one(found)
    probability = chosen["inclusion_probability"].to_numpy()
    assert ((probability > 0.0) & (probability <= 1.0)).all()


def test_scattered_groups_give_what_groups_together_give(variegate):
    table = small_table(8, random_state=1)
    order = np.random.default_rng(0).permutation(table.num_rows)
    write_table(table.take(pa.array(order)), "scattered.parquet")
    together, scattered = (
        {
            (row["query"], row["item"], row["selection_rank"])
            for row in selected(variegate, table=name).to_pylist()
        }
        for name in ("new.parquet", "scattered.parquet")
    )
    assert together == scattered


def test_cells_of_csv_stay_as_they_are(variegate, tmp_path):
    with open("new.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for number, row in enumerate(rows):
        row["code"] = ["007", "1e3", " x ", "", "NA", 'a "b", c', "TRUE"][number % 7]
        row["score"] = row["score"] + "000"
    with open("odd.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    selected(variegate, table="odd.csv", out="out.csv")
    with open("out.csv", encoding="utf-8", newline="") as file:
        chosen = list(csv.DictReader(file))
    known = {(row["query"], row["item"]): row for row in rows}
    assert chosen
    for row in chosen:
        assert int(row.pop("selection_rank")) >= 1
        assert 0.0 < float(row.pop("inclusion_probability")) <= 1.0
        assert row == known[row["query"], row["item"]]


def test_the_file_of_columns_of_fit_serves_select_too(variegate):
    Path("columns.toml").write_text(
        'group = "query"\nlabel = "chosen"\nquality = ["score", "freshness"]\n'
        'similarity = "embedding"\ncost = "tokens"\n'
    )
    plain = selected(variegate)
    assert selected(variegate, "--columns", "columns.toml").equals(plain)
    chosen = selected(variegate, "--columns", "columns.toml", "--budget", 300)
    assert 0 < chosen.num_rows < plain.num_rows


def test_k(variegate):
    for k in (1, 3):
        found = ranks(selected(variegate, "--k", k))
        assert len(found) == 8
        assert all(sorted(rank) == list(range(1, k + 1)) for rank in found.values())
    # All of a group, if it has no more.
    assert selected(variegate, "--k", 100).num_rows == 48


def test_budget(variegate):
    for budget in (300, 1000):
        chosen = selected(variegate, "--budget", budget, "--cost", "tokens")
        spent = {}
        for query, cost in zip(
            chosen["query"].to_pylist(), chosen["tokens"].to_pylist(), strict=True
        ):
            spent[query] = spent.get(query, 0) + cost
        assert spent
        assert max(spent.values()) <= budget
    nothing = selected(variegate, "--budget", "0.5", "--cost", "tokens")
    assert nothing.num_rows == 0
    assert nothing.schema.names[-1] == "inclusion_probability"


def test_omega(variegate):
    sizes = [selected(variegate, "--omega", omega).num_rows for omega in (0.25, 2, 8)]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]


def test_at_most_so_many_of_each(variegate):
    options = ("--at-most", "1", "--per", "kind")
    few = selected(variegate, *options)
    pairs = zip(few["query"].to_pylist(), few["kind"].to_pylist(), strict=True)
    assert max(Counter(pairs).values()) == 1
    both = selected(variegate, *options, "--at-most", "2", "--per", "query")
    assert max(Counter(both["query"].to_pylist()).values()) <= 2
    result = variegate(
        "select", "new.parquet", "--method", "mmr", "--k", "6", "--group", "query",
        "--similarity", "embedding", *options, "-o", "few.parquet", "--force",
    )  # fmt: skip
    assert result[0] == 0
    assert "note: fewer than 6 rows could be chosen from 8 of 8 groups: at" in result[2]
    told, _ = judged(variegate, *options, "--methods", "top", "--relevance", "score")
    assert "model.json (at most 1 per kind)" in told["scores"]


def test_all_rows(variegate):
    table = small_table(8, random_state=1)
    everything = selected(variegate, "--all")
    assert everything.schema.names == [
        *table.schema.names, "selected", "selection_rank", "inclusion_probability",
    ]  # fmt: skip
    assert everything.select(table.schema.names).equals(table)
    chosen = everything["selected"].to_numpy()
    rank = everything["selection_rank"].to_numpy()
    assert ((rank > 0) == chosen).all()
    few = selected(variegate)
    assert few.equals(everything.filter(pa.array(chosen)).drop_columns("selected"))


def test_drop(variegate):
    chosen = selected(variegate, "--drop", "embedding,score", out="out.csv")
    names = [n for n in small_table(1).column_names if n not in ("embedding", "score")]
    assert chosen.column_names == [*names, "selection_rank", "inclusion_probability"]


def test_another_group(variegate):
    table = small_table(8, random_state=1)
    names = ["q" if name == "query" else name for name in table.column_names]
    write_table(table.rename_columns(names), "other.parquet")
    chosen = selected(variegate, "--group", "q", table="other.parquet")
    assert ranks(chosen, "q") == ranks(selected(variegate))


def test_categories_that_training_never_saw(variegate):
    succeeds(
        variegate("fit", "train.parquet", *QUICK, "--columns", "categorical=kind", "-o",
                  "kinds.json")
    )  # fmt: skip
    write_table(with_cell(small_table(8), "kind", 4, "podcast"), "odd.parquet")
    status, _, messages = variegate(
        "select", "odd.parquet", "--model", "kinds.json", "-o", "out.parquet"
    )
    assert status == 0
    note, written = messages.splitlines()
    assert note.startswith(
        "variegate: note: 1 rows have a value of 'kind' that was not"
    )
    assert written == "written: out.parquet"


def test_labels_are_not_needed(variegate):
    table = small_table(8, random_state=1).drop_columns(["chosen", "item", "tokens"])
    write_table(table, "bare.parquet")
    with pytest.raises(AssertionError, match="no column 'item'"):
        selected(variegate, table="bare.parquet")
    succeeds(
        variegate("fit", "train.parquet", *COLUMNS[:4], *COLUMNS[6:], "--omega", "1",
                  "-o", "bare.json")
    )  # fmt: skip
    chosen = variegate("select", "bare.parquet", "--model", "bare.json", "-o", "o.csv",
                       "--drop", "embedding")  # fmt: skip
    assert succeeds(chosen)


@pytest.mark.parametrize("method", METHODS)
def test_methods(variegate, method):
    common = ["--method", method, "--relevance", "score", "--similarity", "embedding"]
    chosen = selected(variegate, *common, "--group", "query", "--k", 2)
    assert chosen.column_names == [*small_table(1).column_names, "selection_rank"]
    found = ranks(chosen)
    assert len(found) == 8
    assert all(sorted(rank) == [1, 2] for rank in found.values())
    # Without a group, all rows are one.
    together = selected(variegate, *common, "--k", 5)
    assert sorted(ranks(together, None)["all"]) == [1, 2, 3, 4, 5]
    # With nothing but relevance, the best by it.
    if method in ("dpp", "mmr", "facility-location"):
        best = selected(variegate, *common, "--k", 1, "--diversity", "0")
        assert best["score"][0].as_py() == max(
            small_table(8, random_state=1)["score"].to_pylist()
        )
    affordable = selected(variegate, *common, "--budget", 500, "--cost", "tokens")
    assert affordable.num_rows > 0
    assert sum(affordable["tokens"].to_pylist()) <= 500


def test_top_and_what_it_ranks(variegate):
    options = ["--method", "top", "--relevance", "popularity", "--group", "query"]
    chosen = selected(variegate, *options, "--k", 2)
    table = small_table(8, random_state=1)
    for query in dict.fromkeys(table["query"].to_pylist()):
        all_of_it = table.filter(pa.compute.equal(table["query"], query))
        best = sorted(all_of_it["popularity"].to_pylist(), reverse=True)[:2]
        here = chosen.filter(pa.compute.equal(chosen["query"], query)).to_pylist()
        here.sort(key=lambda row: row["selection_rank"])
        assert [row["popularity"] for row in here] == best


def test_the_seed(variegate):
    def drawn(seed):
        options = ["--method", "random", "--k", 3, "--group", "query", "--seed", seed]
        return selected(variegate, *options)

    assert drawn(1).equals(drawn(1))
    assert not drawn(1).equals(drawn(2))


def test_replacing_a_file(variegate, tmp_path):
    (tmp_path / "out.csv").write_text("older")
    options = ["--model", "model.json", "-o", "out.csv", "--drop", "embedding"]
    result = variegate("select", "new.parquet", *options)
    assert fails(result, "out.csv exists: name another file, or replace it with --forc")
    assert (tmp_path / "out.csv").read_text() == "older"
    succeeds(variegate("select", "new.parquet", *options, "--force"))
    assert read("out.csv").num_rows


# describe ---------------------------------------------------------------------------


@pytest.fixture
def plain_model(tmp_path):
    data = vg.datasets.make_synthetic(n_sets=10, random_state=0)
    model = vg.LargeMarginDPP(decoder="greedy", kernel=vg.MultipleKernel([1.0, 3.0]))
    model.fit(data.ground_sets, data.subsets).save(tmp_path / "plain.json")
    return tmp_path / "plain.json"


@pytest.mark.parametrize("kind", ["table", "plain", "summarizer", "keyframes"])
def test_describe(variegate, plain_model, tmp_path, kind):
    path = {
        "table": "model.json",
        "plain": plain_model,
        "summarizer": SUMMARIZER,
        "keyframes": PICKER,
    }[kind]
    status, words, messages = variegate("describe", path, "--png", "picture.png")
    assert (status, messages) == (0, "written: picture.png\n")
    assert (tmp_path / "picture.png").read_bytes().startswith(PNG)
    told = json.loads(succeeds(variegate("describe", path, "--json")))
    assert {"lam", "omega", "weights", "intercept", "kernel"} <= set(told)
    model = vg.load(path)
    inner = getattr(model, "models_", (model,))[0]
    assert len(told["weights"]) == len(inner.theta_)
    assert told["kernel"]["name"] == type(inner.kernel_).__name__
    assert told["kernel"]["name"] in words
    assert told["training"]["status"] in words
    if kind != "table":
        assert told["model"] == type(model).__name__
        assert told["model"] in words
    for name in list(told["weights"])[:3]:
        assert name in words


def test_a_picture_is_not_replaced_unasked(variegate, tmp_path):
    (tmp_path / "picture.png").write_bytes(b"older")
    result = variegate("describe", "model.json", "--png", "picture.png")
    assert fails(result, "picture.png exists")
    assert (tmp_path / "picture.png").read_bytes() == b"older"
    succeeds(variegate("describe", "model.json", "--png", "picture.png", "--force"))
    assert (tmp_path / "picture.png").read_bytes().startswith(PNG)


# Stopped in the middle --------------------------------------------------------------

#: Waits in the middle of writing, with rows already in the file, and says so.
SLOW = (
    "import sys, time\n"
    "import variegate.tables.writing as writing\n"
    "original = writing._ParquetWriter.write\n"
    "def write(self, batch):\n"
    "    original(self, batch)\n"
    "    self._write_group()\n"
    "    print('writing', flush=True)\n"
    "    time.sleep(60)\n"
    "writing._ParquetWriter.write = write\n"
)


def started_selection(samples, folder):
    folder.mkdir()
    started = process(
        "select", samples / "new.parquet", "--model", samples / "model.json", "-o",
        folder / "out.parquet", code=INTERRUPTIBLE + SLOW + MAIN,
    )  # fmt: skip
    assert started.stdout.readline() == "writing\n"
    return started


@pytest.mark.faults
@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="needs files without names")
def test_a_killed_selection_leaves_nothing(samples, tmp_path):
    started = started_selection(samples, tmp_path / "out")
    started.send_signal(signal.SIGKILL)
    started.communicate(timeout=60)
    assert started.returncode == -signal.SIGKILL
    assert names_in(tmp_path / "out") == []


@pytest.mark.faults
def test_an_interrupted_selection(samples, tmp_path):
    started = started_selection(samples, tmp_path / "out")
    status, output, messages = interrupt(started)
    assert (status, output) == (130, "")
    assert messages.lstrip() == "variegate: interrupted; it must start again\n"
    assert names_in(tmp_path / "out") == []


@pytest.mark.faults
def test_an_interrupted_fit(samples, tmp_path):
    # In the middle of learning, as Ctrl-C does it.
    code = (
        "import time\n"
        "from variegate.tables import fitting\n"
        "def train(*arguments):\n"
        "    signal.raise_signal(signal.SIGINT)\n"
        "    time.sleep(60)\n"
        "fitting.train = train\n"
    )
    started = process(
        "fit", samples / "train.parquet", *QUICK, "-o", tmp_path / "model.json",
        code=INTERRUPTIBLE + code + MAIN,
    )  # fmt: skip
    output, messages = started.communicate(timeout=60)
    assert (started.returncode, output) == (130, "")
    assert messages.lstrip() == "variegate: interrupted; it must start again\n"
    assert names_in(tmp_path) == []


# Progress ---------------------------------------------------------------------------


COMMANDS = {
    "fit": (["fit", "train.parquet", *QUICK, "-o", "fitted.json"], "learning"),
    "evaluate": (["evaluate", "new.parquet", "--model", "model.json"], "judging"),
    "select": (
        ["select", "new.parquet", "--model", "model.json", "-o", "out.parquet"],
        "choosing",
    ),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_progress_on_a_terminal(variegate, monkeypatch, watch, command):
    arguments, stage = COMMANDS[command]
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    drawn = watch()
    status, output, messages = variegate(*arguments)
    assert status == 0
    lines = drawn(messages)
    assert any(re.match(r"reading ━+ +[\d,]+ rows", line) for line in lines)
    assert any(re.match(rf"{stage} [━╸╺]+ +\d+%", line) for line in lines)
    assert max(len(line) for line in lines if "━" in line) <= 60
    # The line is wiped before anything else is said.
    assert "\x1b" not in messages.split("\x1b[2K")[-1]
    assert "\x1b" not in output


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_is_said_early(variegate, monkeypatch, command):
    assert progress.PATIENCE == 2.0
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(progress, "PATIENCE", 1000.0)
    _, _, messages = variegate(*COMMANDS[command][0])
    assert not set("\r\x1b") & set(messages)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_progress_without_a_terminal(variegate, monkeypatch, command):
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    _, output, messages = variegate(*COMMANDS[command][0])
    assert not set("\r\x1b") & set(output + messages)


def test_progress_on_a_real_terminal(samples, tmp_path):
    code = "from variegate.cli import progress\nprogress.PATIENCE = -1.0\n"
    ours, theirs = pty.openpty()
    started = process(
        "select", samples / "new.parquet", "--model", samples / "model.json", "-o",
        tmp_path / "out.parquet", code=code + MAIN, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    seen = b""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        seen += piece
    os.close(ours)
    output = started.stdout.read()
    started.stdout.close()
    assert started.wait(60) == 0
    assert b"reading " in seen
    assert b"reading" not in seen.rpartition(b"\x1b[2K")[2]
    assert output.endswith("rows chosen from 8 groups\n")
    assert not set("\r\x1b") & set(output)
