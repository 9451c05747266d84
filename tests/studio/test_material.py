"""DATA of every sort: what is shown, what is learned from, and what is refused."""

import json
import os

import cv2
import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import variegate as vg
from films import write_film
from variegate.material.base import MaterialError
from variegate.material.opening import open_material
from variegate.material.pictures import PICTURE_NAMES, describe_picture
from variegate.tables import TableSelector, make_table
from variegate.tuning.family import ODDS_OMEGAS

COLUMNS = {
    "group": "query",
    "item": "item",
    "label": "chosen",
    "quality": ["score", "freshness"],
    "similarity": "embedding",
}


@pytest.fixture(scope="module")
def table():
    return make_table(n_groups=6, random_state=0)


def paint(path, seed=0, size=24):
    """Write a picture of noise; the larger the seed, the rougher."""
    rng = np.random.default_rng(seed)
    image = (128 + (10 + 5 * seed) * rng.standard_normal((size, size, 3))).clip(0, 255)
    path.parent.mkdir(parents=True, exist_ok=True)
    assert cv2.imwrite(str(path), image.astype(np.uint8))
    return path


# Tables -------------------------------------------------------------------------------


@pytest.fixture
def tables(table, tmp_path):
    parquet.write_table(table, tmp_path / "items.parquet")
    return tmp_path / "items.parquet"


def test_a_table_has_the_features_of_a_selector(tables, table):
    material = open_material(tables, columns=COLUMNS)
    selector = TableSelector(**COLUMNS, kernel="linear", omega=1.0, missing="mean")
    selector.fit(table)
    columns = selector._required_columns(False)
    groups = list(selector._read_groups(vg_table(table), columns))
    assert material.kind == "table"
    assert material.nouns == ("row", "rows")
    assert material.names == [str(group.name) for group in groups]
    assert material.sizes == [len(group) for group in groups]
    assert list(material.feature_names) == ["score", "freshness"]
    for number, group in enumerate(groups):
        ground_set = material.ground_set(number)
        assert np.allclose(ground_set.quality, group.quality)
        assert np.allclose(ground_set.similarity, group.blocks["embedding"])


def vg_table(table):
    from variegate.tables.table import as_table

    return as_table(table)


SHOWN = [
    ({"group": "query", "label": "chosen", "item": "item"}, (),
     ["score", "freshness", "popularity", "kind", "tokens"]),
    (COLUMNS, (), ["score", "freshness"]),
    (COLUMNS | {"similarity": "tokens"}, (), ["score", "freshness", "tokens"]),
    (COLUMNS | {"categorical": "kind"}, (), ["score", "freshness", "kind"]),
    (COLUMNS, ("tokens", "kind"), ["tokens", "kind"]),
]  # fmt: skip


@pytest.mark.parametrize(("columns", "show", "expected"), SHOWN)
def test_the_columns_shown_are_those_that_are_named(tables, columns, show, expected):
    items = open_material(tables, columns=columns, show=show).items(0)
    first = items[0]
    assert first.title == "i01"
    assert [name for name, _ in first.fields] == expected
    assert not first.has_image
    assert len({item.title for item in items}) == len(items)


def test_running_text_is_shown_where_it_is_named(tmp_path):
    path = tmp_path / "films.csv"
    lines = [f"{n},film {n},2001-02-0{n},{'A long story. ' * 9}" for n in range(1, 6)]
    path.write_text("\n".join(["stars,name,day,story", *lines]) + "\n")
    for given in ({"show": ["story"]}, {}):
        (first, *_) = open_material(path, **given).items(0)
        assert (first.title, first.text) == ("film 1", "A long story. " * 9)
    (first, *_) = open_material(path, columns={"quality": ["stars"]}).items(0)
    assert (first.text, first.fields) == (None, (("stars", "1"),))
    with pytest.raises(ValueError, match=r"'storey'.*did you mean 'story'"):
        open_material(path, show=["storey"])


def test_the_label_is_no_feature_and_is_not_shown(tables):
    material = open_material(tables, columns={"group": "query", "label": "chosen"})
    assert "chosen" not in material.feature_names
    assert "chosen" not in dict(material.items(0)[0].fields)


def test_csv_is_as_good_as_parquet(table, tmp_path, tables):
    rows = table.to_pylist()
    names = [name for name in table.schema.names if name != "embedding"]
    lines = [",".join([*names, "embedding"])]
    for row in rows:
        cells = [str(row[name]) for name in names]
        lines.append(",".join([*cells, f'"{json.dumps(row["embedding"])}"']))
    path = tmp_path / "items.csv"
    path.write_text("\n".join(lines) + "\n")
    one = open_material(path, columns={"group": "query", "label": "chosen"})
    other = open_material(tables, columns={"group": "query", "label": "chosen"})
    assert list(one.feature_names) == list(other.feature_names)
    for group in range(6):
        a, b = one.ground_set(group), other.ground_set(group)
        assert np.allclose(a.quality, b.quality)
        assert np.allclose(a.similarity, b.similarity)


def test_a_table_without_groups_comes_in_pages(tables):
    material = open_material(tables, columns={"label": "chosen"}, page=50)
    assert material.sizes == [50, 50, 20]
    assert material.names == ["page 1", "page 2", "page 3"]


def test_empty_cells_count_as_the_mean(tmp_path):
    path = tmp_path / "some.csv"
    path.write_text("g,x\na,1\na,\na,3\nb,2\n")
    material = open_material(path, columns={"group": "g"})
    assert material.ground_set(0).quality[1, 0] == 0.0


def test_empty_cells_are_counted_in_a_note(tmp_path):
    path = tmp_path / "some.csv"
    path.write_text('g,x,k,v\na,1,red,"[1, 0]"\na,,,\na,3,red,"[0, 1]"\nb,2,,\n')
    columns = {"group": "g", "quality": ["x"], "categorical": ["k"], "similarity": "v"}
    material = open_material(path, columns=columns)
    assert material.notes == [
        "empty cells count as the mean of their column: 1 of 'x', 2 of 'k', 2 of 'v' "
        "(of 4 rows); --missing says otherwise"
    ]
    # The mean direction of the vectors, in place of those that are empty.
    assert np.allclose(material.ground_set(0).similarity[1], np.sqrt([0.5, 0.5]))
    assert material.values(0, 1)[0] == "empty"
    indicated = open_material(path, columns=columns | {"missing": "indicator"})
    assert "x is missing" in indicated.feature_names
    assert not indicated.notes
    with pytest.raises(ValueError, match="column 'x' has no value in row 2"):
        open_material(path, columns=columns | {"missing": "error"})


def test_empty_vectors_of_a_typed_table_are_the_mean(tmp_path):
    vectors = [[2.0, 0.0], None, [0.0, 2.0], None]
    made = pa.table({"g": list("aabb"), "x": np.arange(4.0), "v": vectors})
    parquet.write_table(made, tmp_path / "t.parquet")
    material = open_material(tmp_path / "t.parquet", columns={"group": "g"})
    assert np.allclose(material.ground_set(1).similarity[1], np.sqrt([0.5, 0.5]))
    assert "2 of 'v' (of 4 rows)" in material.notes[0]


def test_values_are_those_of_the_table(tmp_path):
    path = tmp_path / "films.csv"
    path.write_text(
        "g,votes,stars,kind,day\n"
        "a,1234567,3.25,drama,2020-01-01\n"
        "a,12,,comedy,2020-01-11\n"
    )
    columns = {"group": "g", "quality": ["votes", "stars", "age:day"]}
    columns = columns | {"categorical": ["kind"], "missing": "indicator"}
    material = open_material(path, columns=columns)
    found = [
        dict(zip(material.feature_names, material.values(0, n), strict=True))
        for n in range(2)
    ]
    assert found[0] == {
        "votes": "1234567",
        "stars": "3.25",
        "stars is missing": "no",
        "age:day": "10 days",
        "kind = comedy": "no",
        "kind = drama": "yes",
    }
    assert found[1]["stars is missing"] == "yes"
    assert found[1]["stars"] == "empty"
    assert found[1]["age:day"] == "0 days"


def test_rows_are_identified_by_their_item_or_cells(table, tables, tmp_path):
    one = open_material(tables, columns=COLUMNS)
    names = table.column(COLUMNS["item"]).to_pylist()
    found = [text for group in range(len(one.names)) for text in one.identities(group)]
    assert sorted(found) == sorted(f"={name}" for name in names)
    without = {role: name for role, name in COLUMNS.items() if role != "item"}
    cells = open_material(tables, columns=without)
    parquet.write_table(table.slice(1), tmp_path / "less.parquet")
    less = open_material(tmp_path / "less.parquet", columns=without)
    assert cells.identities(1) == less.identities(1)
    assert cells.identities(0)[1:] == less.identities(0)
    assert len({*cells.identities(0)}) == cells.sizes[0]


@pytest.mark.parametrize("quality_model", ["linear", "boosting"])
def test_a_model_proposes_before_the_first_pick(tables, table, tmp_path, quality_model):
    settings = COLUMNS | {"quality_model": quality_model}
    selector = TableSelector(**settings, kernel="linear", omega=1.0).fit(table)
    selector.save(tmp_path / "model.json")
    material = open_material(tables, model=vg.load(tmp_path / "model.json"))
    assert material.prior.omegas == ODDS_OMEGAS
    assert len(material.values(0, 1)) == len(material.feature_names)
    # A model of picks has the same features.
    family, picks = material.prior, {0: [0, 1], 1: [2]}
    material.model(family, picks, ()).save(tmp_path / "picked.json")
    again = vg.load(tmp_path / "picked.json")
    assert again.feature_names_ == selector.feature_names_
    from variegate.studio.proposals import Proposer

    first = np.arange(table.num_rows) < len(material.ground_set(0))
    for omega in (0.25, 1.0, 4.0):  # as the model chooses by itself
        chosen = Proposer(material).propose(0, omega).chosen
        expected = selector.choose(table, omega=omega).selected
        assert chosen.tolist() == np.flatnonzero(expected & first).tolist()


def test_a_model_for_other_data_is_refused(tables, table, tmp_path):
    selector = TableSelector(**COLUMNS, kernel="linear", omega=1.0).fit(table)
    selector.save(tmp_path / "model.json")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("One sentence is here. Another one is.")
    model = vg.load(tmp_path / "model.json")
    with pytest.raises(MaterialError, match="but the model was learned from a table"):
        open_material(tmp_path / "docs", model=model)


# Pictures that tables name ------------------------------------------------------------


@pytest.fixture
def pictured(tmp_path):
    """A table of pictures, some of which it has no right to."""
    folder = tmp_path / "data"
    paint(folder / "pictures" / "a.png", 1)
    paint(folder / "pictures" / "b c.png", 2)
    paint(tmp_path / "secret.png")
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    cells = [
        "pictures/a.png",
        (folder / "pictures" / "b c.png").as_uri(),
        "../secret.png",
        str(tmp_path / "secret.png"),
        "link.png",
        "missing.png",
        "pictures/a\0.png",
    ]
    made = pa.table({"g": ["x"] * 7, "n": np.arange(7.0), "picture": cells})
    parquet.write_table(made, folder / "t.parquet")
    return folder / "t.parquet"


def test_pictures_of_the_folder_are_shown(pictured):
    material = open_material(pictured, columns={"group": "g", "quality": "n"})
    assert all(item.has_image for item in material.items(0))
    for item in (0, 1):
        content, kind = material.image(0, item, 100)
        assert kind == "image/png"
        shown = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR)
        assert shown.shape == (24, 24, 3)
    assert material.image(0, 0, 100) != material.image(0, 1, 100)


@pytest.mark.parametrize("item", range(2, 7))
def test_no_picture_from_elsewhere_is_shown(pictured, item):
    material = open_material(pictured, columns={"group": "g", "quality": "n"})
    with pytest.raises(MaterialError, match="there is no picture of this row"):
        material.image(0, item, 100)


def test_pictures_are_features_where_there_are_no_others(tmp_path):
    for number in range(6):
        paint(tmp_path / f"{number}.png", number)
    cells = [f"{number}.png" for number in range(6)]
    parquet.write_table(
        pa.table({"g": list("aabbbb"), "picture": cells}), tmp_path / "t.parquet"
    )
    material = open_material(tmp_path / "t.parquet", columns={"group": "g"})
    assert "sharpness" in material.feature_names
    assert set(material.ground_set(0).blocks) == {"shapes", "palette"}


# Folders of pictures ------------------------------------------------------------------


def test_a_folder_of_pictures_comes_in_pages_in_natural_order(tmp_path):
    for number in range(1, 13):
        paint(tmp_path / f"{number}.png", number)
    (tmp_path / "11.5.png").write_bytes(b"no picture")
    (tmp_path / ".hidden.png").write_bytes(b"no picture")
    material = open_material(tmp_path, page=5)
    assert material.kind == "images"
    assert material.names == ["page 1", "page 2", "page 3"]
    assert material.sizes == [5, 5, 2]
    shown = [item.title for group in range(3) for item in material.items(group)]
    assert shown == [f"{number}.png" for number in range(1, 13)]
    assert material.items(0)[0].fields == ()
    # Rougher pictures are sharper.
    sharp = list(material.feature_names).index("sharpness")
    values = [q for g in range(3) for q in material.ground_set(g).quality[:, sharp]]
    assert values == sorted(values)


def test_folders_in_a_folder_are_groups(tmp_path):
    for name in ("a/1.png", "a/2.png", "b/1.png", "3.png"):
        paint(tmp_path / name)
    material = open_material(tmp_path)
    assert sorted(material.names) == ["a", "b", "page 1"]


def test_links_out_of_the_folder_are_left_out(tmp_path):
    paint(tmp_path / "in" / "a.png")
    secret = paint(tmp_path / "secret.png")
    (tmp_path / "in" / "b.png").symlink_to(secret)
    material = open_material(tmp_path / "in")
    assert [item.title for item in material.items(0)] == ["a.png"]


def test_thumbnails_are_no_wider_than_asked(tmp_path):
    rng = np.random.default_rng(0)
    image = rng.integers(0, 255, (300, 400, 3), dtype=np.uint8)
    cv2.imwrite(str(tmp_path / "a.png"), image)
    content, kind = open_material(tmp_path).image(0, 0, 120)
    assert kind == "image/jpeg"
    shown = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR)
    assert shown.shape == (90, 120, 3)


def test_transparent_pictures_lie_on_white(tmp_path):
    red = np.zeros((90, 90, 4), dtype=np.uint8)
    red[..., 2] = 255
    red[:, :45, 3] = 255  # the left half is opaque
    cv2.imwrite(str(tmp_path / "a.png"), red)
    content, _ = open_material(tmp_path).image(0, 0, 90)
    shown = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR)
    assert shown[45, 80].tolist() == [255, 255, 255]
    assert shown[45, 10, 2] > 200 > 100 > shown[45, 10, 0]


def test_numbers_about_pictures_are_shown_as_they_are(tmp_path):
    for number in range(3):
        cv2.imwrite(str(tmp_path / f"{number}.png"), np.full((40, 40, 3), 80 * number))
    material = open_material(tmp_path)
    values = dict(zip(material.feature_names, material.values(0, 1), strict=True))
    assert values["brightness"] == "80"
    assert (values["n colours"], values["dark share"]) == ("1", "0.0 %")


@pytest.mark.parametrize("shape", [(1, 1), (1, 50), (3, 2), (64, 64), (900, 20)])
def test_any_picture_can_be_looked_at(shape):
    image = np.random.default_rng(0).integers(0, 255, (*shape, 3), dtype=np.uint8)
    statistics, palette, shapes = describe_picture(image)
    assert len(statistics) == len(PICTURE_NAMES)
    assert np.isfinite(statistics).all()
    assert np.linalg.norm(palette) == pytest.approx(1.0)
    assert np.linalg.norm(shapes) == pytest.approx(0.0 if shape == (1, 1) else 1.0)


def test_shapes_tell_directions_and_not_light_from_dark():
    stripes = np.zeros((32, 32, 3), dtype=np.uint8)
    stripes[:, ::8] = stripes[:, 1::8] = 255
    _, _, down = describe_picture(stripes)
    _, _, across = describe_picture(np.ascontiguousarray(stripes.transpose(1, 0, 2)))
    _, _, inverted = describe_picture(255 - stripes)
    assert down @ inverted > 0.99
    assert down @ across < 0.5


# Documents ----------------------------------------------------------------------------

TEXTS = {
    "rain": "Rain fell in Oslo today. It was the first rain in many weeks. Farmers in "
    "the valley were glad of every drop. The river rose by half a metre.",
    "cats": "Cats sleep for most of the day. A cat still hears every mouse. "
    "Nobody knows what cats dream of at night.",
}


@pytest.fixture
def documents(tmp_path):
    for name, text in TEXTS.items():
        (tmp_path / f"{name}.txt").write_text(text)
    return tmp_path


def test_every_file_of_a_folder_is_a_group(documents):
    material = open_material(documents)
    assert material.kind == "documents"
    assert material.names == ["cats.txt", "rain.txt"]
    assert material.sizes == [3, 4]
    assert material.items(1)[0].text == "Rain fell in Oslo today."
    assert material.ground_set(0).n_features == len(material.feature_names)
    with pytest.raises(MaterialError, match="sentences have no pictures"):
        material.image(0, 0, 100)


def test_values_of_sentences_are_not_standardized(documents):
    material = open_material(documents)
    values = dict(zip(material.feature_names, material.values(1, 1), strict=True))
    assert values["length"] == "8 words"
    assert (values["position 1"], values["position 2"]) == ("no", "yes")


def test_folders_of_documents_are_clusters(documents):
    (documents / "both").mkdir()
    for name in TEXTS:
        os.rename(documents / f"{name}.txt", documents / "both" / f"{name}.txt")
    material = open_material(documents)
    assert material.names == ["both"]
    assert material.sizes == [7]
    assert dict(material.items(0)[0].fields)["document"] == "cats.txt"


def test_documents_of_other_formats(tmp_path):
    text = "Rain fell in Oslo today. Nobody was hurt by it."
    (tmp_path / "a.rst").write_text(f"{text} See :doc:`more`.")
    (tmp_path / "b.eml").write_text(
        f"Subject: Rain\nTo: Anna\n\n{text}\n-- \nAnna Alm."
    )
    material = open_material(tmp_path)
    assert material.names == ["a.rst", "b.eml"]
    expected = ["Rain fell in Oslo today.", "Nobody was hurt by it."]
    assert [item.text for item in material.items(1)] == expected


@pytest.mark.parametrize("suffix", [".jsonl", ".ndjson"])
def test_clusters_may_be_lines_of_json(tmp_path, suffix):
    path = tmp_path / f"clusters{suffix}"
    row = {"id": "news", "documents": list(TEXTS.values())}
    path.write_text(json.dumps(row) + "\n")
    material = open_material(path)
    assert material.kind == "documents"
    assert material.names == ["news"]
    assert material.sizes == [7]


# Videos -------------------------------------------------------------------------------


def film(path, n_shots=6):
    """Write a film whose shots differ in colour and pattern."""
    rng = np.random.default_rng(0)
    frames = []
    for _ in range(n_shots):
        blocks = rng.integers(0, 255, (6, 8, 3), dtype=np.uint8)
        picture = np.repeat(np.repeat(blocks, 16, axis=0), 16, axis=1)
        frames += [picture] * 12
    return write_film(path, frames, 6)


def test_a_video_has_candidate_frames(tmp_path):
    path = film(tmp_path / "film.avi")
    material = open_material(path)
    assert material.kind == "video"
    assert material.names == ["film.avi"]
    assert material.sizes[0] >= 4
    items = material.items(0)
    everything = {0: np.arange(len(items))}
    times = material.picks_table(everything).column("time").to_pylist()
    assert times == sorted(times)
    assert all(item.has_image for item in items)
    pictures = set()
    for item in range(len(items)):
        content, kind = material.image(0, item, 64)
        assert kind == "image/jpeg"
        pictures.add(content)
    assert len(pictures) == len(items)


def test_a_long_video_comes_in_parts(tmp_path, monkeypatch):
    from variegate.material import videos

    monkeypatch.setattr(videos, "_TOGETHER", 3)
    film(tmp_path / "b.avi", 7)
    film(tmp_path / "a.avi", 2)
    material = open_material(tmp_path)
    assert material.names[0] == "a.avi"
    assert all(name.startswith("b.avi, part ") for name in material.names[1:])
    assert max(material.sizes) <= 3
    one = material.items(1)[0].title
    assert one not in [item.title for item in material.items(2)]


# What cannot be -----------------------------------------------------------------------


def test_what_is_nothing_to_pick_from_is_refused(tmp_path):
    with pytest.raises(MaterialError, match=r"there is no .*nowhere"):
        open_material(tmp_path / "nowhere")
    with pytest.raises(
        MaterialError, match="there are no tables, videos, documents or"
    ):
        open_material(tmp_path)
    (tmp_path / "a.zip").write_bytes(b"PK")
    with pytest.raises(MaterialError, match=r"a\.zip is nothing to pick from: give a"):
        open_material(tmp_path / "a.zip")
    paint(tmp_path / "one.png")
    with pytest.raises(MaterialError, match=r"one\.png is nothing to pick from"):
        open_material(tmp_path / "one.png")
    with pytest.raises(MaterialError, match="is not a table: leave out group"):
        open_material(tmp_path, columns={"group": "g"})
    with pytest.raises(MaterialError, match="is not a table: leave out group, show"):
        open_material(tmp_path, columns={"group": "g"}, show=["g"])
    os.remove(tmp_path / "one.png")
    (tmp_path / "two.png").write_bytes(b"no picture")
    with pytest.raises(MaterialError, match=r"no picture in .* that can be read"):
        open_material(tmp_path)


def test_a_bad_column_is_refused_in_words(tables):
    with pytest.raises(ValueError, match=r"'quer'.*did you mean 'query'"):
        open_material(tables, columns={"group": "quer"})


def test_an_empty_table_is_refused(tmp_path):
    (tmp_path / "none.csv").write_text("g,x\n")
    with pytest.raises(ValueError, match="no rows"):
        open_material(tmp_path / "none.csv", columns={"group": "g"})


def test_kernels_suit_the_data(tables, documents):
    vectors = open_material(tables, columns=COLUMNS)
    assert next(iter(vectors.kernels)) == "16 kinds"
    numbers = open_material(tables, columns=COLUMNS | {"similarity": "popularity"})
    assert next(iter(numbers.kernels)) == "Gaussians"
    for material in (vectors, numbers, open_material(documents)):
        for kernel in material.kernels.values():
            assert isinstance(kernel, vg.Kernel)
