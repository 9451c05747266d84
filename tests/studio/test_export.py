"""What leaves the studio: picks, models that the usual commands take, and pages."""

import io
import json
import shlex

import numpy as np
import pyarrow.csv as arrow_csv
import pyarrow.parquet as parquet
import pytest
from click.testing import CliRunner

import variegate as vg
from films import write_film
from variegate.cli.app import app
from variegate.material.base import MaterialError
from variegate.material.opening import open_material
from variegate.studio.export import export_file
from variegate.tables import TableSelector, make_table
from variegate.text import Summarizer
from variegate.text.readers import read_clusters
from variegate.video import KeyframePicker
from variegate.video.picks import read_picks

COLUMNS = {
    "group": "query",
    "item": "item",
    "label": "chosen",
    "quality": ["score", "freshness"],
    "categorical": "kind",
    "similarity": "embedding",
}


def export(name, material, picks, learned=None, omega=1.0):
    return export_file(name, material, picks, learned, omega)


@pytest.fixture(scope="module")
def table():
    return make_table(n_groups=6, random_state=0)


@pytest.fixture
def material(table, tmp_path):
    parquet.write_table(table, tmp_path / "items.parquet")
    return open_material(tmp_path / "items.parquet", columns=COLUMNS)


@pytest.fixture
def picks():
    """Three groups, not in the order of the table, one without picks."""
    return {
        4: np.array([0, 3, 19]),
        1: np.array([2]),
        2: np.zeros(0, dtype=np.intp),
    }


def test_picks_are_the_rows_of_the_groups_with_a_column_more(material, table, picks):
    content = export("picks.parquet", material, picks)
    found = parquet.read_table(io.BytesIO(content)).to_pylist()
    expected = []
    groups = {material.names[g]: set(items.tolist()) for g, items in picks.items()}
    places = dict.fromkeys(groups, 0)
    for row in table.drop_columns(["chosen"]).to_pylist():
        if row["query"] in groups:
            place = places[row["query"]]
            places[row["query"]] += 1
            expected.append(row | {"picked": int(place in groups[row["query"]])})
    assert found == expected


def test_every_format_holds_the_same(material, picks):
    rows = parquet.read_table(
        io.BytesIO(export("picks.parquet", material, picks))
    ).to_pylist()
    lines = export("picks.jsonl", material, picks).decode().splitlines()
    for line, row in zip(lines, rows, strict=True):
        read = json.loads(line)
        assert read.pop("embedding") == pytest.approx(row.pop("embedding"))
        assert read == pytest.approx(row)
    csv = arrow_csv.read_csv(io.BytesIO(export("picks.csv", material, picks)))
    assert csv.column("picked").to_pylist() == [row["picked"] for row in rows]
    vectors = [json.loads(cell) for cell in csv.column("embedding").to_pylist()]
    expected = material.picks_table(picks).column("embedding").to_pylist()
    assert np.allclose(vectors, expected)


def commands(text):
    """Return the words of each command of a file."""
    lines = text.replace("\\\n", " ").splitlines()
    return [shlex.split(line) for line in lines if not line.startswith("#")]


def run(words, folder, monkeypatch):
    """Run a command where its files lie."""
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(app, words[1:])
    assert result.exit_code == 0, result.output


def test_the_command_learns_from_the_picks(material, picks, tmp_path, monkeypatch):
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "picks.parquet").write_bytes(export("picks.parquet", material, picks))
    _, fit = commands(export("command.txt", material, picks).decode())
    run(fit, folder, monkeypatch)
    found = vg.load(folder / "fitted.json")
    roles = {name: COLUMNS[name] for name in ("group", "item", "quality", "similarity")}
    expected = TableSelector(
        **roles, categorical="kind", label="picked", missing="mean", empty_groups="keep"
    ).fit(folder / "picks.parquet")
    assert found.weights_ == pytest.approx(expected.weights_)


def test_the_command_chooses_as_the_page_does(material, picks):
    select, _ = commands(export("command.txt", material, picks).decode())
    assert select == [
        "variegate",
        "select",
        "NEW.csv",
        "--model",
        "model.json",
        "-o",
        "chosen.csv",
    ]
    material.limit([2], ["kind"])
    select, _ = commands(export("command.txt", material, picks, omega=4.0).decode())
    assert select[7:] == ["--at-most", "2", "--per", "kind", "--omega", "4"]


def test_names_are_quoted_in_commands(tmp_path):
    rows = make_table(n_groups=3, random_state=0)
    rows = rows.rename_columns(
        ["$(rm -rf .)" if name == "score" else name for name in rows.schema.names]
    )
    path = tmp_path / "a b;c.parquet"
    parquet.write_table(rows, path)
    given = {"group": "query", "label": "chosen", "quality": ["$(rm -rf .)"]}
    material = open_material(path, columns=given)
    command = export("command.txt", material, {0: np.array([1])}).decode()
    _, words = commands(command)
    assert words[words.index("--quality") + 1] == "$(rm -rf .)"


def test_the_report_is_a_page_without_anything_from_outside(material, picks):
    page = export("report.html", material, picks).decode()
    assert page.startswith("<!DOCTYPE html>")
    assert "<script" not in page
    assert "http" not in page.replace("http://www.w3.org", "")


def test_nothing_done_and_unknown_files_are_refused(material, picks):
    with pytest.raises(MaterialError, match="no group is done yet"):
        export("picks.csv", material, {})
    with pytest.raises(MaterialError, match="nothing is learned yet: export the model"):
        export("model.json", material, picks)
    with pytest.raises(MaterialError, match=r"there is no picks\.zip; there are picks"):
        export("picks.zip", material, picks)


# Documents ----------------------------------------------------------------------------

TEXT = (
    "Rain fell in Oslo today. It was the first rain in many weeks. Farmers in the "
    "valley were glad of every drop. The river rose by half a metre in the night. "
    "Children played in <b>puddles</b> & mud until it was dark."
)


@pytest.fixture
def documents(tmp_path):
    folder = tmp_path / "docs"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.txt").write_text(f"{TEXT} This is number {number} of all.")
    return open_material(folder)


def test_picked_sentences_are_summaries_to_learn_from(documents, tmp_path, monkeypatch):
    picks = {0: np.array([0, 3]), 2: np.array([1]), 1: np.zeros(0, dtype=np.intp)}
    folder = tmp_path / "out"
    folder.mkdir()
    for name in ("picks.jsonl", "picks.parquet", "report.html", "command.txt"):
        (folder / name).write_bytes(export(name, documents, picks))
    clusters = read_clusters(folder / "picks.jsonl")
    assert [cluster.id for cluster in clusters] == ["0.txt", "2.txt"]
    assert clusters[0].references == (
        "Rain fell in Oslo today.\nThe river rose by half a metre in the night.",
    )
    _, fit = commands((folder / "command.txt").read_text())
    run(fit, folder, monkeypatch)
    assert isinstance(vg.load(folder / "summarizer.json"), Summarizer)
    page = (folder / "report.html").read_text()
    assert "Rain fell in Oslo today." in page
    assert "<b>puddles" not in page
    rows = parquet.read_table(folder / "picks.parquet").to_pylist()
    assert sum(row["picked"] for row in rows) == 3
    assert len(rows) == sum(documents.sizes)
    assert rows[0] == {
        "group": "0.txt",
        "file": "0.txt",
        "sentence": 1,
        "text": "Rain fell in Oslo today.",
        "picked": 1,
    }


# Videos -------------------------------------------------------------------------------


@pytest.fixture
def film(tmp_path):
    rng = np.random.default_rng(0)
    frames = []
    for _ in range(6):
        blocks = rng.integers(0, 255, (6, 8, 3), dtype=np.uint8)
        frames += [np.repeat(np.repeat(blocks, 16, axis=0), 16, axis=1)] * 12
    (tmp_path / "films").mkdir()
    return write_film(tmp_path / "films" / "film.avi", frames, 6)


def test_picked_frames_are_times_to_learn_from(film, tmp_path, monkeypatch):
    material = open_material(film)
    picks = {0: np.array([0, 2])}
    folder = tmp_path / "out"
    folder.mkdir()
    for name in ("picks.csv", "command.txt"):
        (folder / name).write_bytes(export(name, material, picks))
    (video,) = read_picks(folder / "picks.csv", film.parent)
    rows = material.picks_table(picks).to_pylist()
    times = [row["time"] for row in rows if row["picked"]]
    assert list(video.users[0]) == pytest.approx(times)
    _, fit = commands((folder / "command.txt").read_text())
    run(fit, folder, monkeypatch)
    assert isinstance(vg.load(folder / "keyframes.json"), KeyframePicker)
