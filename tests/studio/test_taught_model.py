"""The model of the studio, exported, chooses from new data as the studio proposes."""

import csv
import json

import cv2
import numpy as np
import pyarrow.parquet as parquet
import pytest

import variegate as vg
from films import write_film
from table_instances import caller, fails
from variegate.material.base import MaterialError
from variegate.material.opening import open_material
from variegate.material.picture_selector import PictureSelector
from variegate.material.selecting import select_items
from variegate.studio.export import export_file
from variegate.studio.group_learner import GroupLearner
from variegate.studio.proposals import Proposer
from variegate.tables import TableSelector, make_table
from variegate.text import Summarizer
from variegate.video import KeyframePicker


@pytest.fixture
def call(monkeypatch, capsys):
    return caller(monkeypatch, capsys)


PLACES = ["Oslo", "Bergen", "Tromso", "Bodo", "Molde", "Narvik", "Alta", "Hamar"]


def write_pictures(folder, n_groups=4, size=8, seed=0):
    """Write sub-folders of noise in four colours."""
    rng = np.random.default_rng(seed)
    for group in range(n_groups):
        (folder / f"g{group}").mkdir(parents=True, exist_ok=True)
        for n in range(size):
            image = np.full((24, 24, 3), 60.0)
            image[..., n % 3] += 120.0
            image += rng.uniform(2, 50) * rng.standard_normal(image.shape)
            path = folder / f"g{group}" / f"{n}.png"
            assert cv2.imwrite(str(path), image.clip(0, 255).astype(np.uint8))
    return folder


def write_documents(folder, n_groups=4, seed=0):
    """Write texts whose sentences have different lengths and words."""
    rng = np.random.default_rng(seed)
    folder.mkdir()
    for group in range(n_groups):
        sentences = [
            f"In {PLACES[rng.integers(8)]} it rained for {rng.integers(2, 90)} days"
            + " and people stayed at home" * int(rng.integers(3))
            + "."
            for _ in range(8)
        ]
        (folder / f"{group}.txt").write_text(" ".join(sentences))
    return folder


def write_videos(folder, n_videos=3):
    """Write films whose shots differ in colour and pattern."""
    folder.mkdir()
    for number in range(n_videos):
        rng = np.random.default_rng(number)
        frames = []
        for _ in range(6):
            blocks = rng.integers(0, 255, (6, 8, 3), dtype=np.uint8)
            frames += [np.repeat(np.repeat(blocks, 16, axis=0), 16, axis=1)] * 12
        write_film(folder / f"{number}.avi", frames, 6)
    return folder


def taught(material):
    """Return what is learned from the first three groups, and their picks."""
    sets = [material.ground_set(group) for group in range(len(material.names))]
    picks = {group: np.array([0, 2]) for group in range(3)}
    limits = {group: material.limits(group) for group in range(len(sets))}
    learner = GroupLearner(sets, material.kernels, material.feature_names, limits)
    return learner.learn(picks), picks


def export_model(material, path):
    """Write the model; return what the studio proposes in every group."""
    learned, picks = taught(material)
    path.write_bytes(export_file("model.json", material, picks, learned))
    proposer = Proposer(material, learned, picks)
    return {
        name: proposer.choose(group).tolist()
        for group, name in enumerate(material.names)
    }


def read_rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def place(row):
    """Return the file of an item, and the number or time in it."""
    return row["file"], float(row.get("sentence") or row.get("time") or 0.0)


MADE = {
    "images": (write_pictures, PictureSelector),
    "documents": (write_documents, Summarizer),
    "video": (write_videos, KeyframePicker),
}


@pytest.mark.parametrize("kind", MADE)
def test_the_command_chooses_what_the_studio_proposes(kind, tmp_path, call):
    write, sort = MADE[kind]
    folder, model = write(tmp_path / "data"), tmp_path / "model.json"
    material = open_material(folder)
    assert material.kind == kind
    proposed = export_model(material, model)
    assert isinstance(vg.load(model), sort)
    again = Proposer(open_material(folder, model=vg.load(model)))
    for group, items in enumerate(proposed.values()):
        assert again.choose(group).tolist() == items
    out, html = tmp_path / "chosen.csv", tmp_path / "chosen.html"
    written = ("-o", out, "--html", html, "--json")
    status, output, messages = call("select", folder, "--model", model, *written)
    assert status == 0, messages
    rows = read_rows(out)
    found = {name: set() for name in proposed}
    for row in rows:
        found[row["group"]].add(place(row))
    for group, (name, items) in enumerate(proposed.items()):
        table = material.places_table({group: np.array(items, dtype=int)})
        assert found[name] == {place(row) for row in table.to_pylist()}
    for name in proposed:
        ranks = [int(row["selection_rank"]) for row in rows if row["group"] == name]
        assert ranks == list(range(1, len(ranks) + 1))
    assert all(0.0 < float(row["inclusion_probability"]) <= 1.0 for row in rows)
    numbers = json.loads(output)
    assert numbers["chosen"] == len(rows)
    assert numbers["chosen_by_group"] == {n: len(i) for n, i in proposed.items()}
    page = html.read_text()
    assert page.count("data:image") == (0 if kind == "documents" else len(rows))
    assert "http" not in page.replace("http://www.w3.org", "")


def test_features_of_new_pictures_are_on_the_scale_of_the_taught_ones(tmp_path):
    """The same picture alone in another folder keeps its log-quality."""
    old = write_pictures(tmp_path / "old")
    export_model(open_material(old), tmp_path / "model.json")
    (tmp_path / "new").mkdir()
    picture = (old / "g0" / "3.png").read_bytes()
    (tmp_path / "new" / "same.png").write_bytes(picture)
    model = vg.load(tmp_path / "model.json")
    expected = open_material(old, model=model).ground_set(0).quality[3]
    found = open_material(tmp_path / "new", model=model).ground_set(0).quality[0]
    assert np.allclose(found, expected)


def test_a_folder_of_new_pictures_is_a_group_without_pages(tmp_path):
    export_model(open_material(write_pictures(tmp_path / "old")), tmp_path / "m.json")
    new = write_pictures(tmp_path / "new", n_groups=1, size=130)
    for path in list((new / "g0").iterdir())[:30]:
        path.rename(new / path.name)
    found = select_items(new, vg.load(tmp_path / "m.json"), k=3)
    assert sorted(found.material.names) == ["g0", "new"]
    assert sorted(found.material.sizes) == [30, 100]
    assert [len(items) for items in found.chosen.values()] == [3, 3]


def test_several_limits_hold_together(tmp_path):
    folder = write_documents(tmp_path / "data")
    export_model(open_material(folder), tmp_path / "m.json")
    model = vg.load(tmp_path / "m.json")
    both = {"at_most": [3, 1], "per": ["document", "sentence"]}
    found = select_items(folder, model, omega=64.0, **both)
    assert {len(items) for items in found.chosen.values()} == {3}


def test_a_long_video_is_one_group(tmp_path, monkeypatch):
    from variegate.material import videos

    monkeypatch.setattr(videos, "_TOGETHER", 3)
    material = open_material(write_videos(tmp_path / "old"))
    assert len(material.names) > 3
    export_model(material, tmp_path / "m.json")
    found = select_items(tmp_path / "old" / "1.avi", vg.load(tmp_path / "m.json"))
    assert found.material.names == ["1.avi"]


@pytest.mark.parametrize(
    ("kind", "per"), [("documents", "document"), ("video", "shot")]
)
def test_at_most_so_many_of_a_source(kind, per, tmp_path):
    folder = tmp_path / "data"
    material = open_material(MADE[kind][0](folder))
    export_model(material, tmp_path / "m.json")
    model = vg.load(tmp_path / "m.json")
    found = select_items(folder, model, omega=64.0, at_most=[1], per=[per])
    for group, items in found.chosen.items():
        fields = [dict(material.items(group)[item].fields) for item in items]
        labels = [one.get(per, "the only document") for one in fields]
        assert len(labels) == len(set(labels)) > 0
    with pytest.raises(MaterialError, match="have no 'brand', of which to choose"):
        select_items(folder, model, at_most=[1], per=["brand"])
    with pytest.raises(MaterialError, match="give a number at_most for each per"):
        select_items(folder, model, at_most=[1])


# Tables -------------------------------------------------------------------------------


def test_the_model_of_a_table_chooses_what_the_studio_proposes(tmp_path, call):
    path = tmp_path / "items.parquet"
    parquet.write_table(make_table(n_groups=6, random_state=0), path)
    roles = {"group": "query", "item": "item", "label": "chosen"}
    material = open_material(path, columns={**roles, "categorical": "kind"})
    proposed = export_model(material, tmp_path / "m.json")
    selector = vg.load(tmp_path / "m.json")
    assert type(selector) is TableSelector
    out = tmp_path / "c.parquet"
    status, _, messages = call(
        "select", path, "--model", tmp_path / "m.json", "-o", out
    )
    assert status == 0, messages
    chosen = parquet.read_table(out).to_pylist()
    found = {name: set() for name in proposed}
    for row in chosen:
        found[row["query"]].add(row["item"])
    for group, (name, items) in enumerate(proposed.items()):
        titles = material.items(group)
        assert found[name] == {titles[item].title for item in items}
    assert "training data" in str(selector.describe())


def test_pages_of_a_table_are_no_group_of_its_model(tmp_path):
    path = tmp_path / "items.parquet"
    parquet.write_table(make_table(n_groups=6, random_state=0), path)
    material = open_material(path, columns={"label": "chosen"}, page=20)
    export_model(material, tmp_path / "m.json")
    assert vg.load(tmp_path / "m.json").columns_.group is None


def test_a_table_of_pictures_is_described_again(tmp_path, call):
    folder = write_pictures(tmp_path / "pictures")
    rows = "\n".join(f"{g},g{g}/{n}.png,{n}" for g in range(4) for n in range(8))
    path = folder / "t.csv"
    path.write_text(f"page,picture,note\n{rows}\n")
    material = open_material(path, columns={"group": "page", "item": "note"})
    proposed = export_model(material, tmp_path / "m.json")
    out = tmp_path / "chosen.csv"
    status, _, messages = call(
        "select", path, "--model", tmp_path / "m.json", "-o", out
    )
    assert status == 0, messages
    rows = read_rows(out)
    assert list(rows[0]) == [
        "page", "picture", "note", "selection_rank", "inclusion_probability",
    ]  # fmt: skip
    found = {(row["page"], int(row["note"])) for row in rows}
    assert found == {(name, item) for name in proposed for item in proposed[name]}


# Refusals -----------------------------------------------------------------------------


@pytest.fixture
def models(tmp_path):
    """Models of pictures and of documents, and their data."""
    pictures = write_pictures(tmp_path / "pictures")
    export_model(open_material(pictures), tmp_path / "pictures.json")
    documents = write_documents(tmp_path / "documents")
    export_model(open_material(documents), tmp_path / "documents.json")
    return tmp_path


def test_other_data_than_a_model_was_learned_from_is_refused(models, call):
    given = ("--model", models / "pictures.json", "-o", "c.csv")
    why = "holds documents, but the model was learned from pictures: give such data"
    assert fails(call("select", models / "documents", *given), why)
    model = vg.load(models / "documents.json")
    with pytest.raises(MaterialError, match="holds pictures, but the model was"):
        open_material(models / "pictures", model=model)
    with pytest.raises(MaterialError, match="LargeMarginDPP does not say how feature"):
        open_material(models / "pictures", model=vg.LargeMarginDPP())


def test_pictures_are_refused_by_the_model_of_a_table(models, tmp_path, call):
    path = tmp_path / "items.parquet"
    parquet.write_table(make_table(n_groups=4, random_state=0), path)
    columns = {"group": "query", "label": "chosen"}
    export_model(open_material(path, columns=columns), tmp_path / "t.json")
    given = ("--model", tmp_path / "t.json", "-o", "c.csv")
    why = "holds no tables, but the model was learned from a table"
    assert fails(call("select", models / "pictures", *given), why)


def test_options_of_tables_are_refused(models, call):
    given = ("select", models / "pictures", "--model", models / "pictures.json", "-o")
    found = call(*given, "c.csv", "--budget", "3", "--all")
    assert fails(found, "--budget, --all: only for tables")
    found = call(*given, models / "c.txt")
    assert fails(found, "'.txt' is of no known table format")
    (models / "c.html").write_text("")
    found = call(*given, models / "c.csv", "--html", models / "c.html")
    assert fails(found, "c.html exists: name another file, or replace it with --force")


def test_a_contact_sheet_is_not_for_tables(tmp_path, call):
    path = tmp_path / "items.parquet"
    parquet.write_table(make_table(n_groups=4, random_state=0), path)
    method = ("--method", "mmr", "--k", "2", "--group", "query")
    method = (*method, "--similarity", "embedding")
    written = ("-o", tmp_path / "c.parquet", "--html", tmp_path / "c.html")
    found = call("select", path, *method, *written)
    assert fails(found, "--html is for pictures, documents and videos")


def test_a_model_with_vectors_of_its_owner_is_refused(tmp_path):
    folder = write_documents(tmp_path / "documents")
    material = open_material(folder)
    learned, picks = taught(material)
    model = material.model(learned.family, picks, ())
    model.embedded_ = True
    with pytest.raises(MaterialError, match="vectors of its owner, which no file"):
        open_material(folder, model=model)
