"""A model judged by the labels of a folder, file by file."""

import dataclasses

import numpy as np
import pytest

from folder_instances import (
    COLUMNS,
    Pickling,
    cut,
    evaluate_folder,
    folder_of,
    some_table,
    write_folder,
)
from table_instances import with_column
from variegate.partitions import Serial
from variegate.tables import TableError, TableFileError, TableSelector, evaluation


@pytest.fixture(scope="module")
def fitted():
    settings = COLUMNS | {"cost": "tokens", "kernel": "linear", "omega": 0.5}
    return TableSelector(**settings).fit(some_table(random_state=5))


@pytest.fixture
def folder(tmp_path):
    return folder_of(tmp_path / "t")


def same(there, home):
    """Whether two evaluations say the same, the bits of all scores included."""
    assert list(there.scores) == list(home.scores)
    for part in ("scores", "counts", "diversity"):
        for name, numbers in getattr(home, part).items():
            np.testing.assert_array_equal(getattr(there, part)[name], numbers)
    assert there.wanted_size == pytest.approx(home.wanted_size)
    assert there.endings == home.endings
    assert there.reference == home.reference
    assert there.intervals() == home.intervals()
    assert there.differences(there.reference) == home.differences(home.reference)
    return True


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"omega": 0.7, "name": "mine"},
        {"at_most": 1, "per": "kind", "methods": ["mmr"]},
        {"k": 2, "methods": ("top", "mmr", "random"), "diversity": 0.3},
        {"methods": ("dpp",), "relevance": "popularity"},
        {"k": "wanted", "methods": ("mmr",)},
        {"budget": 200.0},
    ],
    ids=str,
)
def test_scores_are_those_of_home(fitted, folder, options):
    there = evaluate_folder(fitted, folder, Pickling(), **options)
    assert same(there, fitted.evaluate(folder, **options))
    assert there.n_in_all == there.n_groups == 24


def test_rivals_learn_from_the_same_sample(fitted, folder, tmp_path):
    train = folder_of(tmp_path / "train", random_state=1)
    there = evaluate_folder(fitted, folder, Pickling(), train=train)
    assert same(there, fitted.evaluate(folder, train=train))
    assert any("logistic" in name for name in there.scores)


def test_kinds_are_counted(folder):
    fitted = TableSelector(**COLUMNS, kernel="kinds", omega=1).fit(folder)
    there = evaluate_folder(fitted, folder, Pickling())
    assert same(there, fitted.evaluate(folder))
    assert "kinds" in there.diversities()["model"]


def test_groups_of_which_nothing_was_chosen(fitted, tmp_path):
    table = some_table()
    chosen = table["chosen"].to_pylist()
    chosen[:12] = [False] * 12
    table = with_column(table, "chosen", chosen)
    folder = write_folder(tmp_path / "t", cut(table, 30, 60))
    with pytest.raises(TableError, match=r"2 of 24 groups have no .* first is 'q0001'"):
        evaluate_folder(fitted, folder, Serial())
    for empty_groups, n_groups in (("drop", 22), ("keep", 24)):
        there = evaluate_folder(fitted, folder, Serial(), empty_groups=empty_groups)
        assert there.n_groups == n_groups
        assert same(there, fitted.evaluate(folder, empty_groups=empty_groups))


def test_too_many_groups_are_judged_by_a_sample(fitted, folder, monkeypatch):
    monkeypatch.setattr(evaluation, "MAX_JUDGED", 9)
    there = evaluate_folder(fitted, folder, Serial())
    assert (there.n_groups, there.n_in_all) == (9, 24)
    every = fitted.evaluate(folder).scores["model"].tolist()
    assert all(row in every for row in there.scores["model"].tolist())
    assert there.endings["model"].stop_reasons


def test_how_searches_ended_where_gaps_are_known(folder):
    fitted = TableSelector(**COLUMNS, kernel="linear", omega=1, decoder="exact")
    fitted.fit(folder)
    there = evaluate_folder(fitted, folder, Pickling())
    assert same(there, fitted.evaluate(folder))
    assert there.endings["model"].n_optimal == 24


def test_groups_that_lie_in_several_files(fitted, folder, tmp_path):
    scattered = some_table().take(np.random.default_rng(0).permutation(144))
    other = write_folder(tmp_path / "x", cut(scattered, 7, 60))
    found = evaluate_folder(fitted, other, Pickling())
    assert same(found, fitted.evaluate(scattered))


# What is refused ---------------------------------------------------------------------


def test_what_cannot_be_judged(fitted, folder, tmp_path):
    with pytest.raises(ValueError, match="unknown method 'best'"):
        evaluate_folder(fitted, folder, Serial(), methods=["best"])
    with pytest.raises(ValueError, match="omega must be a finite number > 0"):
        evaluate_folder(fitted, folder, Serial(), omega=0.0)
    unlabelled = write_folder(tmp_path / "u", [some_table().drop_columns("chosen")])
    with pytest.raises(TableError, match=r"u does not fit the model: .*'chosen'"):
        evaluate_folder(fitted, unlabelled, Serial())
    single = write_folder(tmp_path / "s", [some_table()[:6]])
    with pytest.raises(TableError, match=r"s has 1 group to judge by: intervals need"):
        evaluate_folder(fitted, single, Serial())


def test_a_model_that_knows_no_labels(folder):
    table = some_table()
    settings = {k: v for k, v in COLUMNS.items() if k != "label"}
    fitted = TableSelector(**settings, kernel="linear", omega=1)
    fitted.fit(table.drop_columns("chosen"), table["chosen"].to_pylist())
    with pytest.raises(TableError, match="label"):
        evaluate_folder(fitted, folder, Serial())
    assert evaluate_folder(fitted.with_columns(label="chosen"), folder, Serial())


def test_files_that_cannot_be_read(fitted, folder):
    path = folder / "part-003.parquet"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(TableFileError, match=r"part-003.parquet is not a"):
        evaluate_folder(fitted, folder, Serial())
    there = evaluate_folder(fitted, folder, Serial(), skip_unreadable=True)
    assert there.n_groups == 17
    assert there.unreadable == (str(path),)
    assert dataclasses.replace(there).unreadable == (str(path),)


@pytest.mark.parametrize("given", [{"y": [1]}, {"others": {"other": None}}])
def test_an_engine_judges_one_model_by_a_column_of_labels(fitted, folder, given):
    with pytest.raises(ValueError, match=r"column of the files, not y, and .* others"):
        fitted.evaluate(folder, engine=Serial(), **given)
