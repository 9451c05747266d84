"""A table selector that learns by networks."""

import json

import numpy as np
import pyarrow as pa
import pytest
from neural_cases import seeded_encoder, small

import variegate as vg
from variegate.files.models import ModelFileError
from variegate.partitions import Engine, Serial
from variegate.tables import (
    TableFile,
    TableSelector,
    make_table,
    write_table,
)
from variegate.tables.table import TableError

COLUMNS = {
    "group": "query",
    "label": "chosen",
    "quality": ["score", "freshness"],
    "similarity": "embedding",
}
TABLE = make_table(n_groups=40, random_state=0)
NEW = make_table(n_groups=20, random_state=1)


@pytest.fixture(scope="module")
def selector(device):
    estimator = small(device, max_epochs=10)
    return TableSelector(**COLUMNS, estimator=estimator, validation_fraction=0.2).fit(
        TABLE
    )


def test_it_fits_selects_and_evaluates(selector):
    chosen = selector.select(NEW)
    assert 0 < chosen.num_rows < NEW.num_rows
    per_group = selector.select(NEW, k=2)
    assert per_group.num_rows == 40
    assert per_group.column_names[-2:] == ["selection_rank", "inclusion_probability"]
    found = selector.evaluate(NEW, methods=["top"])
    assert found.intervals()["model"]["f"].mean > 0.2
    assert selector.score(NEW) == pytest.approx(found.intervals()["model"]["f"].mean)
    assert selector.training_["n_held_out"] == 8
    assert selector.training_["history"]["iteration"][0] == 0
    assert selector.omega_ == 1.0
    assert "KindsSimilarity" in selector._repr_html_()


def test_file_by_file_it_chooses_the_same_and_does_not_learn(
    selector, tmp_path, device
):
    folder = tmp_path / "new"
    folder.mkdir()
    write_table(NEW, folder / "all.parquet")
    selector.select(folder, out=tmp_path / "out", engine=Serial())
    chosen = TableFile(tmp_path / "out" / "all.parquet")
    assert pa.Table.from_batches(list(chosen.batches())).equals(selector.select(NEW))
    other = TableSelector(**COLUMNS, estimator=small(device))
    with pytest.raises(TableError, match="a NeuralDPP learns in memory, not on worker"):
        other.fit(folder, engine=OfWorkers())


class OfWorkers(Engine):
    """An engine that is not one of this process, but for its work."""

    def map(self, *given, **options):
        return Serial().map(*given, **options)


def test_saved_and_loaded_it_chooses_the_same(selector, tmp_path, device):
    path = tmp_path / "model.json"
    selector.save(path)
    loaded = TableSelector.load(path)
    assert type(loaded.estimator).__name__ == "NeuralDPP"
    for one in (loaded, vg.load(path)):
        one.model_.set_params(device=device)
        np.testing.assert_array_equal(one.predict(NEW), selector.predict(NEW))
        p = one.inclusion_probability(NEW)
        np.testing.assert_array_equal(p, selector.inclusion_probability(NEW))


def test_modules_of_the_users_own_are_given_back(tmp_path, device):
    n_features = len(TABLE["embedding"][0])
    encoder = seeded_encoder(n_features=n_features)
    estimator = small(device, encoder=encoder, omega=2.0)
    fitted = TableSelector(**COLUMNS, estimator=estimator).fit(TABLE)
    assert fitted.omega_ == 2.0
    path = tmp_path / "model.json"
    fitted.save(path)
    with pytest.raises(ModelFileError, match="its encoder is a module of your own"):
        TableSelector.load(path)
    again = vg.load(path, modules={"encoder": seeded_encoder(1, n_features=n_features)})
    again.model_.set_params(device=device)
    np.testing.assert_array_equal(again.predict(NEW), fitted.predict(NEW))


def test_progress_and_callback(device):
    steps, told = [], []
    estimator = small(device, callback=steps.append)
    TableSelector(**COLUMNS, estimator=estimator).fit(
        TABLE, progress=lambda *args: told.append(args)
    )
    assert [step.iteration for step in steps] == [0, 1, 2, 3, 4]
    assert ("learning", 4, 4) in told


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kernel": "kinds"}, "kernel='kinds' is for a LargeMarginDPP"),
        ({"quality_model": "boosting"}, "quality_model=.boosting. is for a LargeMa"),
        (
            {"l2": 0.1},
            "l2 is a setting of LargeMarginDPP, which NeuralDPP does not have",
        ),
        ({"max_iter": 3}, "max_iter is a setting of LargeMarginDPP"),
        ({"tune": True}, "tune, target_precision and target_recall are for a LargeMar"),
        ({"target_recall": 0.9}, "tune, target_precision and target_recall"),
        ({"lam": -1.0}, "lam must be a finite number"),
    ],
)
def test_what_networks_cannot_do_is_said(settings, message, device):
    selector = TableSelector(**COLUMNS, estimator=small(device), **settings)
    with pytest.raises(ValueError, match=message):
        selector.fit(TABLE)


def test_a_table_larger_than_memory_is_refused(device):
    selector = TableSelector(**COLUMNS, estimator=small(device), memory=1000)
    with pytest.raises(
        TableError, match=r"bytes, more than memory=1,000, and a NeuralDP"
    ):
        selector.fit(TABLE)


def test_there_are_no_weights_to_show(selector):
    for show in (
        selector.describe,
        selector.plot if len(selector.path_) < 2 else selector.describe,
        lambda: selector.report(TABLE),
        lambda: selector.kinds(TABLE),
    ):
        with pytest.raises(TableError, match="NeuralDPP has no weights of features"):
            show()
    with pytest.raises(AttributeError, match="weights_ is for models of a LargeMargin"):
        _ = selector.weights_


def test_a_damaged_model_within_is_refused(selector, tmp_path):
    path = tmp_path / "model.json"
    selector.save(path)
    document = json.loads(path.read_text())
    document["models"][0]["type"] = "table-selector"
    path.write_text(json.dumps(document))
    with pytest.raises(ModelFileError):
        vg.load(path)
