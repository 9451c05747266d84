"""What a model remembers of how it was fitted, and what shows and tells of it."""

import json
import subprocess
import sys

import numpy as np
import pytest

from table_instances import QUICK as QUICK_OPTIONS
from table_instances import caller, small_table, succeeds, with_column
from variegate.tables import TableError, TableSelector, make_table, write_table

QUICK = {
    "group": "query",
    "label": "chosen",
    "quality": ["score", "freshness"],
    "similarity": "embedding",
    "omega": 1.0,
    "decoder": "greedy",
    "kernel": "linear",
}


@pytest.fixture(scope="module")
def table():
    return make_table(n_groups=12, n_items=7, n_dimensions=4, random_state=1)


@pytest.fixture
def variegate(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    return caller(monkeypatch, capsys)


def with_an_empty_group(table, rows=slice(6, 12)):
    flags = np.array(table["chosen"].to_pylist())
    flags[rows] = False
    return with_column(table, "chosen", flags.tolist())


# The relevance --------------------------------------------------------------------


def test_methods_go_by_the_relevance_of_the_selector(table, tmp_path):
    selector = TableSelector(**QUICK, relevance="popularity").fit(table)
    selector.save(tmp_path / "model.json")
    loaded = TableSelector.load(tmp_path / "model.json")
    assert loaded.relevance == loaded.columns_.relevance == "popularity"
    for one in (selector, loaded):
        found = one.evaluate(table, methods=["top"], k=2).scores["top (k = 2)"]
        named = one.evaluate(table, methods=["top"], k=2, relevance="popularity")
        other = one.evaluate(table, methods=["top"], k=2, relevance="score")
        assert np.array_equal(found, named.scores["top (k = 2)"])
        assert not np.array_equal(found, other.scores["top (k = 2)"])
    again = loaded.with_columns(relevance="score")
    chosen = again.evaluate(table, methods=["top"], k=2).scores["top (k = 2)"]
    assert np.array_equal(chosen, other.scores["top (k = 2)"])


def test_the_relevance_changes_nothing_else(table):
    plain = TableSelector(**QUICK).fit(table)
    selector = TableSelector(**QUICK, relevance="popularity").fit(table)
    assert plain.weights_ == selector.weights_
    # Rows are chosen without it.
    without = table.drop(["popularity"])
    assert (selector.predict(without) == plain.predict(table)).all()


def test_reports_go_by_the_relevance_of_the_selector(table):
    held_out = QUICK | {"validation_fraction": 0.4}
    selector = TableSelector(**held_out, relevance="popularity").fit(table)
    assert any(
        way.startswith("top") for way in selector.report(table).comparison.scores
    )
    plain = TableSelector(**held_out).fit(table)
    ways = plain.report(table).comparison.scores
    assert not any(way.startswith("top") for way in ways)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("popularty", r"no column 'popularty' \(did you mean 'popularity'\?\)"),
        ("kind", r"column 'kind' holds '\w+' in row 1, which is not a number"),
        ("chosen", "column 'chosen' cannot be both label and relevance"),
        (3, "relevance must be the name of a column, got 3"),
    ],
)
def test_a_bad_relevance_is_refused(table, name, message):
    with pytest.raises(TableError, match=message):
        TableSelector(**QUICK, relevance=name).fit(table)


def test_a_file_without_a_relevance_still_loads(table, tmp_path):
    path = tmp_path / "model.json"
    TableSelector(**QUICK).fit(table).save(path)
    document = json.loads(path.read_text())
    del document["settings"]["relevance"], document["columns"]["relevance"]
    path.write_text(json.dumps(document))
    assert TableSelector.load(path).default_relevance() == "score"


# Empty groups ---------------------------------------------------------------------


def test_empty_groups_are_judged_as_they_were_learned_from(table, tmp_path):
    sparse = with_an_empty_group(table, slice(0, 7))
    for how, n_groups in (("drop", 11), ("keep", 12)):
        TableSelector(**QUICK, empty_groups=how).fit(sparse).save(tmp_path / "m.json")
        selector = TableSelector.load(tmp_path / "m.json")
        assert selector.evaluate(sparse).n_groups == n_groups
        assert selector.evaluate(sparse, train=table).n_groups == n_groups
        with pytest.raises(TableError, match="1 of 12 groups has no chosen row"):
            selector.evaluate(sparse, empty_groups="error")
    with pytest.raises(TableError, match="1 of 12 groups has no chosen row"):
        TableSelector(**QUICK).fit(table).evaluate(sparse)


def test_the_commands_remember(variegate):
    write_table(with_an_empty_group(small_table()), "train.parquet")
    fit = ["fit", "train.parquet", *QUICK_OPTIONS, "-o", "model.json"]
    settings = ["--empty-groups", "drop"]
    succeeds(variegate(*fit, *settings, "--columns", "relevance=popularity"))
    settings += ["--relevance", "popularity"]
    evaluate = ["evaluate", "train.parquet", "--model", "model.json", "--json"]
    status, told, messages = variegate(*evaluate, "--methods", "top")
    assert (status, messages) == (0, "")  # no note: the relevance is known
    named = variegate(*evaluate, "--methods", "top", *settings)[1]
    other = variegate(*evaluate, "--methods", "top", "--relevance", "score")[1]
    assert json.loads(told)["groups"] == 11
    assert told == named != other
    kept = variegate(*evaluate, "--empty-groups", "keep")[1]
    assert json.loads(kept)["groups"] == 12


# Showing and telling --------------------------------------------------------------


def test_plot_draws_the_path_or_the_weights(table):
    one = TableSelector(**QUICK).fit(table).plot()
    assert one.axes[0].get_xlabel().startswith("weight")
    judged = QUICK | {"validation_fraction": 0.4}
    figure = TableSelector(**judged).fit(table).plot()
    assert {"recall", "precision"} <= {
        figure.axes[0].get_xlabel(),
        figure.axes[0].get_ylabel(),
    }


def test_verbose_tells_on_standard_error(table, capsys, tmp_path):
    quiet = TableSelector(**QUICK).fit(table)
    assert capsys.readouterr() == ("", "")
    selector = TableSelector(**QUICK, verbose=True).fit(table)
    told = capsys.readouterr()
    assert told.out == ""
    assert "TableSelector: learning, 1 of 1" in told.err
    selector.choose(table)
    assert "TableSelector: choosing, 12 of 12" in capsys.readouterr().err
    seen = []
    selector.fit(table, progress=lambda *step: seen.append(step))
    assert seen
    assert capsys.readouterr().err == ""
    assert selector.weights_ == quiet.weights_
    selector.save(tmp_path / "model.json")
    assert "verbose" not in (tmp_path / "model.json").read_text()
    with pytest.raises(ValueError, match="verbose must be True or False, got 1"):
        TableSelector(**QUICK, verbose=1).fit(table)


def test_a_model_loads_whatever_was_imported_before(table, tmp_path):
    TableSelector(**QUICK).fit(table).save(tmp_path / "model.json")
    code = (
        "from variegate.tables.report import html_page\nimport variegate as vg\n"
        "print(type(vg.load('model.json')).__name__)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert found.stdout == "TableSelector\n", found.stderr
