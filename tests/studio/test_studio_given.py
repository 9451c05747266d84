"""Rows that are there already: shown, not picked, and left out of proposals."""

import io
import shlex

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from click.testing import CliRunner
from studio_fakes import FakeMaterial, open_client, open_session

import variegate as vg
from variegate.cli.app import app
from variegate.linalg.cosine import unit_rows
from variegate.material.base import MaterialError
from variegate.material.opening import open_material
from variegate.material.selecting import _choose_items
from variegate.studio.export import export_file
from variegate.studio.group_learner import GroupLearner, LearningResult
from variegate.studio.kernel_candidates import candidates_for, fit_model, odds_family
from variegate.studio.proposals import Proposer
from variegate.tables import make_table

COLUMNS = {
    "group": "query",
    "item": "item",
    "quality": ["score", "freshness"],
    "similarity": "embedding",
    "given": "shown",
}
N_ITEMS = 20


def table_with_given(n_groups=6):
    """Return a table in which up to four of the chosen rows of a group are shown."""
    table = make_table(n_groups, random_state=0)
    chosen = table["chosen"].to_numpy(zero_copy_only=False).reshape(-1, N_ITEMS)
    shown = chosen & (np.cumsum(chosen, axis=1) <= np.arange(n_groups)[:, None] % 5)
    return table.append_column("shown", pa.array(shown.ravel()))


@pytest.fixture(scope="module")
def material(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "items.parquet"
    parquet.write_table(table_with_given(), path)
    return open_material(path, columns=COLUMNS)


@pytest.fixture
def examples(material):
    """Return ground sets and picks beside the given rows of every group."""
    table = table_with_given()
    wanted = np.array(table["chosen"]) & ~np.array(table["shown"])
    return {
        group: (material.ground_set(group), np.flatnonzero(picks))
        for group, picks in enumerate(wanted.reshape(-1, N_ITEMS))
    }


@pytest.fixture
def model(material, examples):
    candidate = candidates_for(material.kernels, material._ground_sets)["Gaussians"]
    return fit_model(candidate, list(examples.values()))


@pytest.fixture
def proposer(material, model):
    return Proposer(material, LearningResult(6, odds_family(model)))


def test_a_material_knows_what_is_given(material):
    shown = np.array(table_with_given()["shown"]).reshape(-1, N_ITEMS)
    for group, flags in enumerate(shown):
        assert material.given(group).tolist() == np.flatnonzero(flags).tolist()


def test_groups_of_given_rows_alone_are_left_out(tmp_path):
    table = table_with_given()
    place = table.column_names.index("shown")
    flags = np.array(table["shown"])
    flags[:N_ITEMS] = True
    path = tmp_path / "some.parquet"
    parquet.write_table(table.set_column(place, "shown", pa.array(flags)), path)
    material = open_material(path, columns=COLUMNS)
    assert len(material.names) == len(material.sizes) == 5
    flags[:] = True
    parquet.write_table(table.set_column(place, "shown", pa.array(flags)), path)
    with pytest.raises(MaterialError, match="all rows are given by column 'shown'"):
        open_material(path, columns=COLUMNS)


@pytest.mark.parametrize("omega", [0.25, 1.0, 16.0])
def test_proposals_are_those_of_the_model(proposer, material, model, omega):
    for group in range(6):
        ground_set = material.ground_set(group)
        found = proposer.propose(group, omega)
        assert proposer.choose(group, omega).tolist() == found.chosen.tolist()
        assert not np.intersect1d(found.chosen, ground_set.given).size
        by_odds = odds_family(model).at(omega)
        ensemble = by_odds.ensemble(ground_set)
        expected = ensemble.items[ensemble.decode("greedy").indices]
        assert found.chosen.tolist() == expected.tolist()
        assert np.isnan(found.probability[ground_set.given]).all()
        np.testing.assert_array_equal(
            found.probability[ground_set.candidates], ensemble.marginals()
        )


def test_limits_are_for_new_items(proposer, material, model, monkeypatch):
    def labels(per, group):
        return ["x" if n in material.given(group) else "y" for n in range(N_ITEMS)]

    monkeypatch.setattr(material, "_labels", labels)
    monkeypatch.setattr(material, "_limits", [(2, "kind")])
    limits = material.limits(4)
    assert limits == {"at_most": [2], "per": [["y"] * 16]}
    assert len(proposer.choose(4, 16.0)) == 2
    assert len(proposer.propose(4, 16.0).chosen) == 2
    order, probability = _choose_items(model, material.ground_set(4), None, limits)
    assert len(order) <= 2
    assert np.isnan(probability[material.ground_set(4).given]).all()


def test_choices_from_large_groups_keep_given_items(material, model, monkeypatch):
    ground_set = material.ground_set(4)
    whole, _ = _choose_items(model, ground_set, 3, {})
    assert not np.intersect1d(whole, ground_set.given).size
    monkeypatch.setattr("variegate.material.selecting._MOST_CANDIDATES", 8)
    order, probability = _choose_items(model, ground_set, 3, {})
    u = model.log_quality(ground_set.quality)[ground_set.candidates]
    best = np.sort(ground_set.candidates[np.argsort(-u)[:8]])
    assert np.flatnonzero(~np.isnan(probability)).tolist() == best.tolist()
    some = ground_set.take(
        np.union1d(best, ground_set.given),
        np.isin(np.union1d(best, ground_set.given), ground_set.given),
    )
    (expected,) = model.predict([some], k=3, order="importance")
    names = np.union1d(best, ground_set.given)
    assert sorted(order) == sorted(names[expected])


def test_why_names_the_nearest_of_chosen_and_given_rows(proposer, material):
    ground_set = material.ground_set(4)
    given, item = ground_set.given.tolist(), int(ground_set.candidates[3])
    chosen = [int(ground_set.candidates[0])]
    why = proposer.why(4, item, chosen)
    F = unit_rows(ground_set.similarity)
    others = sorted([*given, *chosen])
    similarity = np.clip(F[others] @ F[item], 0.0, 1.0)
    assert why["like"]["n"] == others[int(np.argmax(similarity))]
    assert why["like"]["similarity"] == pytest.approx(similarity.max())
    assert 0.0 <= why["probability"] <= 1.0
    of_given = proposer.why(4, given[0], chosen)
    assert (of_given["probability"], of_given["quality"]) == (None, [])


def test_picks_are_learned_beside_given_rows(material, examples):
    learner = GroupLearner(
        material._ground_sets, material.kernels, material.feature_names
    )
    learner.warm_up()
    done = {group: picks for group, (_, picks) in list(examples.items())[1:5]}
    learned = learner.learn(done)
    candidate = learner.candidate
    alone = fit_model(candidate, [examples[group] for group in done])
    np.testing.assert_allclose(learned.family.at(1.0).theta_, alone.theta_)
    assert set(learned.confidence) == {0, 5}
    assert learned.curve
    proposer = Proposer(material)
    for group in range(6):
        chosen = proposer.choose(group)
        assert len(chosen)
        assert not np.intersect1d(chosen, material.ground_set(group).given).size


def test_exports_keep_the_mark(material, examples, model, tmp_path, monkeypatch):
    picks = {group: chosen for group, (_, chosen) in examples.items()}
    learned = LearningResult(6, odds_family(model))
    table = parquet.read_table(
        io.BytesIO(export_file("picks.parquet", material, picks, learned))
    )
    known = table_with_given()
    assert table["shown"].to_pylist() == known["shown"].to_pylist()
    shown = np.array(table["shown"])
    assert not (shown & (np.array(table["picked"]) == 1)).any()
    (tmp_path / "picks.parquet").write_bytes(
        export_file("picks.parquet", material, picks, learned)
    )
    (tmp_path / "model.json").write_bytes(
        export_file("model.json", material, picks, learned)
    )
    exported = vg.load(tmp_path / "model.json")
    assert exported.columns_.given == "shown"
    assert not exported.predict(known)[shown].any()
    text = export_file("command.txt", material, picks, learned).decode()
    assert "--given shown" in text
    fit = shlex.split(text.replace("\\\n", " ").splitlines()[-1])
    monkeypatch.chdir(tmp_path)
    fit += ["--kernel", "linear", "--omega", "1"]
    result = CliRunner().invoke(app, fit[1:])
    assert result.exit_code == 0, result.output
    assert vg.load("fitted.json").columns_.given == "shown"


# The page -----------------------------------------------------------------------------


class ShownMaterial(FakeMaterial):
    """Groups of five items, of which the last is there already."""

    def given(self, group):
        return np.array([4])


def test_given_rows_cannot_be_picked(tmp_path):
    session = open_session(tmp_path / "picks.sqlite", ShownMaterial())
    try:
        client = open_client(session)
        items = client.get("/api/groups/0").json["items"]
        assert [item["given"] for item in items] == [False] * 4 + [True]
        body = {"group": 0, "item": 4, "picked": True}
        answer = client.post("/api/pick", body)
        assert answer.status == 400
        assert "row 4 of group 0 is there already: pick others" in answer.error
        assert client.post("/api/pick", body | {"item": 3}).status == 200
        # What was picked before it was given is not learned from, and can be left.
        session.done(0)
        assert session.done_picks()[0].tolist() == [0, 1, 3]
        session.material.given = lambda group: np.array([3, 4])
        assert session.done_picks()[0].tolist() == [0, 1]
        assert (
            client.post("/api/pick", body | {"item": 3, "picked": False}).status == 200
        )
    finally:
        session.close()


def test_probabilities_of_given_rows_are_empty(tmp_path, proposer, material):
    session = open_session(tmp_path / "picks.sqlite")
    try:
        session.material, session.proposer = material, proposer
        found = open_client(session).get("/api/groups/4/proposal").json
        empty = [p is None for p in found["probability"]]
        assert np.flatnonzero(empty).tolist() == material.given(4).tolist()
    finally:
        session.close()
