"""Learning from a folder on an engine: the same as at home, and what is said of it."""

import os

import numpy as np
import pytest
from sklearn.base import clone

import variegate as vg
from folder_instances import (
    COLUMNS,
    Pickling,
    cut,
    folder_of,
    learn_folder,
    some_table,
    write_folder,
)
from table_instances import with_column
from variegate import load
from variegate.files.run_store import CheckpointError, RunStore
from variegate.partitions import (
    PartitionError,
    Serial,
)
from variegate.tables import (
    Columns,
    FolderTable,
    TableError,
    TableFileError,
    TableSelector,
    evaluation,
)
from variegate.tables.groups import Groups
from variegate.tables.survey import learn_encoding, survey_table

LINEAR = COLUMNS | {"kernel": "linear", "omega": 1.0}


@pytest.fixture
def folder(tmp_path):
    return folder_of(tmp_path / "t", 60, groups_a_file=(5, 1, 31, 23))


def alike(there, home):
    """Whether two selectors have learned the same, to the last bit."""
    assert str(there.policy_) == str(home.policy_)
    assert (there.omega_, there.seed_) == (home.omega_, home.seed_)
    assert there.columns_ == home.columns_
    assert list(there.feature_names_in_) == list(home.feature_names_in_)
    for name in ("theta_", "intercept_", "kernel_parameters_"):
        one, other = (getattr(found.model_, name) for found in (there, home))
        assert np.array_equal(one, other)
    assert there.training_ == home.training_
    return True


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"kernel": "multiple", "validation_fraction": 0.25},
        {"omega": None, "validation_fraction": 0.2, "random_state": 7},
        {"lam": 0.0, "omega": 2.0, "categorical": None},
        {"similarity": None, "max_iter": 30, "tol": 0.1},
        {"quality_model": "boosting", "validation_fraction": 0.2},
        {"quality_model": "boosting", "similarity": None},
    ],
    ids=str,
)
def test_what_is_learned_is_what_home_learns(folder, settings):
    settings = LINEAR | settings
    there = TableSelector(**settings)
    assert learn_folder(there, folder, Pickling()) is there
    home = TableSelector(**settings).fit(folder)
    assert alike(there, home)
    assert there.select(folder).equals(home.select(folder))


def test_ages_and_vectors_of_columns(tmp_path):
    table = some_table()
    days = np.random.default_rng(0).integers(0, 9000, table.num_rows)
    dates = np.datetime64("2000-01-01") + days
    numbers = np.array(table["embedding"].to_pylist())
    table = table.drop_columns("embedding")
    for k in range(4):
        table = table.append_column(f"e{k}", [numbers[:, k]])
    table = table.append_column("date", [dates])
    folder = write_folder(tmp_path / "t", cut(table, 30, 60))
    settings = LINEAR | {"quality": ["score", "age:date"], "similarity": "vector=e*"}
    there = learn_folder(TableSelector(**settings), folder, Pickling())
    assert there.columns_.ages["date"].startswith(str(dates.max()))
    assert alike(there, TableSelector(**settings).fit(folder))


def test_groups_of_which_nothing_was_chosen(tmp_path):
    table = some_table()
    chosen = table["chosen"].to_pylist()
    chosen[30:42] = [False] * 12
    table = with_column(table, "chosen", chosen)
    folder = write_folder(tmp_path / "t", cut(table, 36, 60))
    with pytest.raises(TableError, match=r"2 of 24 groups .* the first is 'q0006'"):
        learn_folder(TableSelector(**LINEAR), folder, Serial())
    for empty_groups in ("drop", "keep"):
        settings = LINEAR | {"empty_groups": empty_groups, "validation_fraction": 0.2}
        there = learn_folder(TableSelector(**settings), folder, Pickling())
        assert alike(there, TableSelector(**settings).fit(folder))
        assert there.training_["n_left_out"] == 2 * (empty_groups == "drop")


# Examples --------------------------------------------------------------------------


def examples_of(folder, numbers, learned_from=range(24), **changed):
    """Return examples as the source reads them, and groups as home does."""
    listed = FolderTable(folder)
    columns = Columns.of(**COLUMNS | changed).resolve(listed.schema)
    found = survey_table(listed, columns, engine=Pickling())
    encoding = learn_encoding(found, np.array(learned_from))
    groups = Groups(found, encoding, engine=Pickling())
    return groups.source(np.array(numbers)), groups.only(np.array(numbers))


@pytest.mark.parametrize("similarity", [None, "embedding", ["embedding", "popularity"]])
def test_examples_are_the_groups_that_are_learned_from(tmp_path, similarity):
    # Rows of groups need not be next to each other in their file.
    table = some_table()
    order = np.random.default_rng(0).permutation(60)
    parts = [table[:60].take(order), table[:0], table[60:]]
    folder = write_folder(tmp_path / "t", parts)
    numbers = [0, 3, 9, 10, 22]
    source, groups = examples_of(folder, numbers, similarity=similarity)
    found = [one for part in source.partitions for one in source.read(part)]
    assert [example.position for example in found] == [0, 1, 2, 3, 4]
    for example, group in zip(found, groups, strict=True):
        assert (example.ground_set.quality == group.ground_set.quality).all()
        assert example.ground_set.blocks.keys() == group.ground_set.blocks.keys()
        for name, block in group.ground_set.blocks.items():
            assert (example.ground_set.blocks[name] == block).all()
        assert example.members.tolist() == group.wanted().tolist()
        assert not example.ground_set.quality.flags.writeable


def test_sources_of_other_groups_or_features_have_other_keys(folder):
    keys = {
        examples_of(folder, numbers, quality=quality)[0].key
        for numbers in ([1, 2], [1, 3])
        for quality in ("score", "freshness")
    }
    assert len(keys) == 4
    assert examples_of(folder, [1, 2], quality="score")[0].key in keys


def test_the_same_item_twice(tmp_path):
    table = some_table()
    items = table["item"].to_pylist()
    items[64] = items[62]
    folder = write_folder(tmp_path / "t", cut(with_column(table, "item", items), 60))
    with pytest.raises(
        TableError,
        match=r"rows 3 of .*part-001.parquet and 5 of .* of group 'q0011' have the",
    ):
        learn_folder(TableSelector(**LINEAR), folder, Pickling())


@pytest.mark.filterwarnings("ignore:overflow")
def test_features_that_overflow(tmp_path):
    # In a group that features were not learned from.
    table = some_table()
    scores = np.where(np.arange(table.num_rows) % 2, 1e-300, -1e-300)
    scores[63] = 1e300
    table = with_column(table, "score", scores.tolist())
    folder = write_folder(tmp_path / "t", cut(table, 60))
    source, _ = examples_of(folder, range(11), learned_from=range(10))
    with pytest.raises(TableError, match=r"row 64 has a quality feature that is not"):
        source.read(source.partitions[0])
    source, _ = examples_of(folder, range(11, 20), learned_from=range(10))
    assert len(source.read(source.partitions[0])) == 9


# A sample --------------------------------------------------------------------------


def test_what_is_tuned_is_tuned_on_the_sample_of_home(folder):
    settings = LINEAR | {"tune": True, "lams": (0.0, 4.0), "omega": None}
    there = learn_folder(TableSelector(**settings), folder, Pickling())
    home = TableSelector(**settings).fit(folder)
    assert alike(there, home)
    assert there.training_["n_tuned"] == home.training_["n_tuned"] == 60


def test_kernels_are_compared_on_a_sample(tmp_path):
    folder = folder_of(tmp_path / "t")
    settings = COLUMNS | {"max_iter": 20}
    there = learn_folder(TableSelector(**settings), folder, Pickling())
    assert alike(there, TableSelector(**settings, memory=20_000).fit(folder))
    assert there.training_["n_compared"] == 24
    assert "In cross-validation on 24 groups" in str(there.describe())
    there.save(tmp_path / "m.json")
    assert load(tmp_path / "m.json").training_ == there.training_


def test_too_many_held_out_groups_are_judged_by_a_sample(folder, monkeypatch):
    monkeypatch.setattr(evaluation, "MAX_JUDGED", 9)
    monkeypatch.setattr("variegate.tables.fitting.MAX_JUDGED", 9)
    settings = LINEAR | {"validation_fraction": 0.5}
    there = learn_folder(TableSelector(**settings), folder, Pickling())
    assert there.training_["n_held_out"] == 30
    assert there.training_["n_judged"] == 9
    words = str(there.describe())
    assert "9 of the held-out groups, drawn at random" in words
    assert "on 9 held-out groups" in words


def test_the_report_is_that_of_home(folder):
    settings = LINEAR | {"validation_fraction": 0.5, "relevance": "popularity"}
    fitted = learn_folder(TableSelector(**settings), folder, Pickling())
    there, home = fitted.report(folder, engine=Pickling()), fitted.report(folder)
    assert there.examples == home.examples
    assert there.show == home.show
    assert there.comparison.intervals() == home.comparison.intervals()


def test_learned_kinds_have_typical_rows(folder):
    settings = LINEAR | {"kernel": vg.Kinds(2), "max_iter": 60, "tol": 1.0}
    there = learn_folder(TableSelector(**settings), folder, Pickling())
    home = TableSelector(**settings).fit(folder)
    assert alike(there, home)
    (kinds,), (at_home,) = there.training_["kinds"], home.training_["kinds"]
    assert kinds["n_rows"] == at_home["n_rows"] == 360
    for one, other in zip(kinds["kinds"], at_home["kinds"], strict=True):
        assert one["typical"] == other["typical"]
    assert there.report(folder, engine=Serial()).typical


# Going on --------------------------------------------------------------------------


class KilledError(Exception):
    """Nobody is left to work."""


class Mortal(Serial):
    """Works for some sums only, and counts them."""

    def __init__(self, n_sums=10**9):
        self.n_left = n_sums
        self.n_sums = 0

    def tree_sum(self, function, items, add):
        if self.n_sums == self.n_left:
            raise KilledError
        self.n_sums += 1
        return super().tree_sum(function, items, add)


@pytest.mark.parametrize("quality_model", ["linear", "boosting"])
def test_a_run_that_was_killed_goes_on_with_the_same_bits(
    folder, tmp_path, quality_model
):
    settings = LINEAR | {"validation_fraction": 0.25, "quality_model": quality_model}
    checkpoint = tmp_path / "checkpoint"
    n_done = 0
    for n_sums in (1, 2, 4):
        with pytest.raises(KilledError):
            learn_folder(
                TableSelector(**settings), folder, Mortal(n_sums), checkpoint=checkpoint
            )
        n_done += n_sums
    engine = Mortal()
    there = learn_folder(
        TableSelector(**settings), folder, engine, checkpoint=checkpoint
    )
    assert not checkpoint.exists()
    counting = Mortal()
    again = learn_folder(
        TableSelector(**settings), folder, counting, checkpoint=tmp_path / "other"
    )
    assert (there.model_.theta_ == again.model_.theta_).all()
    assert there.training_ == again.training_
    # Nothing was summed up twice.
    assert engine.n_sums + n_done == counting.n_sums


@pytest.mark.parametrize("make", [lambda _: None, np.random.RandomState])
def test_a_seed_is_drawn_once(folder, tmp_path, make):
    checkpoint = tmp_path / "checkpoint"
    first, second = (
        TableSelector(**LINEAR | {"random_state": make(seed)}) for seed in (1, 2)
    )
    with pytest.raises(KilledError):
        learn_folder(first, folder, Mortal(1), checkpoint=checkpoint)
    learn_folder(second, folder, Serial(), checkpoint=checkpoint)
    assert second.seed_ == first.seed_


def test_several_runs_in_one_checkpoint_are_told_apart(folder, tmp_path):
    checkpoint = RunStore(tmp_path / "checkpoint")
    for settings in (
        {"validation_fraction": 0.3},
        {"similarity": None},
        {"quality_model": "boosting"},
        {},
    ):
        settings = LINEAR | settings
        there = TableSelector(**settings)
        learn_folder(there, folder, Serial(), checkpoint=checkpoint)
        alone = learn_folder(TableSelector(**settings), folder, Serial())
        assert there.training_ == alone.training_
        assert (there.model_.theta_ == alone.model_.theta_).all()
    n_known, engine = len(checkpoint), Mortal()
    learn_folder(TableSelector(**settings), folder, engine, checkpoint=checkpoint)
    assert len(checkpoint) == n_known
    assert engine.n_sums == 0


def test_a_checkpoint_of_other_settings_or_files(folder, tmp_path):
    checkpoint = tmp_path / "checkpoint"
    selector = TableSelector(**LINEAR)
    with pytest.raises(KilledError):
        learn_folder(selector, folder, Mortal(2), checkpoint=checkpoint)
    other = clone(selector).set_params(l2=0.5)
    with pytest.raises(CheckpointError, match=r"l2 was 'None' and is '0.5'"):
        learn_folder(other, folder, Serial(), checkpoint=checkpoint)
    os.utime(folder / "part-001.parquet", ns=(1, 1))
    with pytest.raises(CheckpointError, match="files was"):
        learn_folder(selector, folder, Serial(), checkpoint=checkpoint)


# What is refused ---------------------------------------------------------------------


def test_files_that_cannot_be_read(folder, tmp_path):
    path = folder / "part-002.parquet"
    path.write_bytes(path.read_bytes()[:-9])
    selector = TableSelector(**LINEAR)
    with pytest.raises(TableFileError, match=r"part-002.parquet is not a"):
        learn_folder(selector, folder, Pickling())
    learn_folder(selector, folder, Pickling(), skip_unreadable=True)
    assert selector.training_["unreadable"] == ["part-002.parquet"]
    assert selector.training_["n_groups"] == 29
    assert "part-002.parquet: they could not be read" in str(selector.describe())
    path.unlink()
    selector.training_["unreadable"] = []
    assert alike(selector, TableSelector(**LINEAR).fit(folder))


def test_a_file_that_changes_meanwhile(folder):
    class Changing(Mortal):
        def tree_sum(self, function, items, add):
            if self.n_sums == 5:
                os.utime(folder / "part-003.parquet", ns=(1, 1))
            return super().tree_sum(function, items, add)

    with pytest.raises(PartitionError, match=r"part-003.parquet has changed since"):
        learn_folder(TableSelector(**LINEAR, memory=1000), folder, Changing())


def test_what_home_refuses_too(folder, tmp_path):
    with pytest.raises(TableError, match="there is no column 'scores'"):
        learn_folder(TableSelector(**LINEAR | {"quality": "scores"}), folder, Serial())
    with pytest.raises(TableError, match="label"):
        learn_folder(TableSelector(**LINEAR | {"label": None}), folder, Serial())
    with pytest.raises(ValueError, match="tol"):
        learn_folder(TableSelector(**LINEAR | {"tol": -1.0}), folder, Serial())
    settings = LINEAR | {"validation_fraction": 0.001}
    with pytest.raises(TableError, match="cannot be split"):
        learn_folder(TableSelector(**settings), folder, Serial())


def test_all_that_is_wrong_with_columns_is_said_at_once(folder):
    settings = LINEAR | {"label": "chsen", "item": "itm", "categorical": None}
    wrong = TableSelector(**settings | {"quality": ["score", "kind"]})
    with pytest.raises(TableError, match="3 problems:") as refused:
        learn_folder(wrong, folder, Serial())
    assert [str(setting) for setting in refused.value.fixes] == [
        "label='chosen'",
        "item='item'",
        "categorical=['kind']",
    ]


def test_a_group_that_cannot_be_learned_from_is_named(tmp_path):
    # Two rows with the same features cannot both be chosen without jitter.
    table = some_table()
    embeddings = table["embedding"].to_pylist()
    embeddings[61] = embeddings[60]
    chosen = table["chosen"].to_pylist()
    chosen[60:62] = [True, True]
    table = with_column(table, "embedding", embeddings, table["embedding"].type)
    table = with_column(table, "chosen", chosen)
    folder = write_folder(tmp_path / "t", cut(table, 36))
    settings = LINEAR | {"estimator": vg.LargeMarginDPP(jitter=0.0)}
    with pytest.raises(TableError, match="group 'q0011'") as at_home:
        TableSelector(**settings).fit(folder)
    with pytest.raises(TableError, match="group 'q0011'") as there:
        learn_folder(TableSelector(**settings), folder, Pickling())
    assert str(there.value) == str(at_home.value)


def test_labels_beside_a_folder(folder):
    labels = np.concatenate([np.array(t["chosen"]) for t in [some_table(60)]])
    columns = {name: c for name, c in LINEAR.items() if name != "label"}
    beside = TableSelector(**columns).fit(folder, labels)
    column = TableSelector(**LINEAR).fit(folder)
    assert np.array_equal(beside.model_.theta_, column.model_.theta_)
    with pytest.raises(TableError, match="make them a column of its files"):
        TableSelector(**columns, memory=1000).fit(folder, labels)
