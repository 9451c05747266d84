"""Model files of the first version, kept for ever: they load and choose as they did.

What they must choose is worked out from the numbers in the files by a few lines of
NumPy, so that a change of the library shows up even if it saves and loads alike.
"""

import json
from importlib.resources import files
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import variegate as vg
from variegate.persistence import VERSION
from variegate.tables import TableSelector
from variegate.text import Summarizer
from variegate.video import KeyframePicker

FOLDER = Path(__file__).parent / "files"
#: The picker that the package comes with; its patterns are too much to keep twice.
PICKER = files("variegate.video") / "models" / "videos.json"
KEPT = {
    "model-version-1.json": vg.LargeMarginDPP,
    "summarizer-v1.json": Summarizer,
    "table-selector-v1.json": TableSelector,
}


def similarity(section, blocks):
    """Return ``S`` by equation 8: Gaussians block by block, then the linear parts."""
    kernel, weights = section["kernel"], section["fitted"]["kernel_parameters"]
    if kernel["type"] == "Linear":
        (features,) = blocks.values()
        return features @ features.T
    weights = iter(weights)
    S = 0.0
    for ladder in kernel["state"]["bandwidths"]:
        features = blocks[ladder["block"]]
        squared = ((features[:, None] - features) ** 2).sum(axis=2)
        for bandwidth in ladder["values"]:
            S = S + next(weights) * np.exp(-squared / bandwidth**2)
    for ladder, weight in zip(kernel["state"]["bandwidths"], weights, strict=True):
        S = S + weight * blocks[ladder["block"]] @ blocks[ladder["block"]].T
    return S


def greedy(section, quality, blocks, k=None):
    """Add what raises ``det L_y`` most: ``k`` times, or while anything raises it."""
    fitted = section["fitted"]
    q = np.exp(quality @ np.array(fitted["theta"]) + fitted["intercept"])
    S = similarity(section, blocks)
    S = S + section["settings"]["jitter"] * np.diag(np.diag(S))
    L = q[:, None] * S * q
    chosen, reached = [], 1.0
    while len(chosen) < (len(L) if k is None else k):
        dets = {
            item: np.linalg.det(L[np.ix_([*chosen, item], [*chosen, item])])
            for item in set(range(len(L))) - set(chosen)
        }
        best = max(dets, key=dets.get)
        if k is None and dets[best] <= reached:
            break
        chosen.append(best)
        reached = dets[best]
    return chosen


def test_every_kept_file_is_tested():
    assert {path.name for path in FOLDER.glob("*.json")} == set(KEPT)


@pytest.mark.parametrize("name", KEPT)
def test_kept_files_load(name):
    document = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    assert document["version"] == 1 <= VERSION
    assert type(vg.load(FOLDER / name)) is KEPT[name]
    assert (FOLDER / name).stat().st_size < 30_000


@pytest.mark.parametrize("name", KEPT)
def test_kept_files_can_be_written_again(name, tmp_path):
    model = vg.load(FOLDER / name)
    model.save(tmp_path / "again.json")
    again = vg.load(tmp_path / "again.json")
    assert type(again) is type(model)
    before, after = (getattr(m, "models_", (m,)) for m in (model, again))
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one.theta_, other.theta_)
        np.testing.assert_array_equal(one.kernel_parameters_, other.kernel_parameters_)


# Plain models and those of documents and videos -------------------------------------


def items(n_features, blocks, n_items=7):
    """Return features of items, the last two of which are alike but for quality."""
    rng = np.random.default_rng(0)
    quality = 3.0 * rng.normal(size=(n_items, n_features))
    features = {}
    for name, size in blocks.items():
        values = np.abs(rng.normal(size=(n_items, size)))
        values[-1] = values[-2]
        features[name] = values / np.linalg.norm(values, axis=1, keepdims=True)
    return quality, features


#: File, sizes of the blocks, and what is chosen for each omega: as many items as raise
#: the determinant, and three.
CASES = {
    "plain": ("model-version-1.json", {None: 2}, [[1, 3], [1, 3, 5]]),
    "summarizer": ("summarizer-v1.json", {None: 5}, [[2], [1, 2, 6], [2], [2, 4, 6]]),
}


@pytest.mark.parametrize("case", CASES)
def test_what_the_numbers_of_a_file_choose(case):
    name, blocks, expected = CASES[case]
    loaded = vg.load(FOLDER / name)
    document = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    sections = document.get("models", [document])
    models = getattr(loaded, "models_", (loaded,))
    found = []
    for section, model in zip(sections, models, strict=True):
        quality, features = items(len(section["fitted"]["theta"]), blocks)
        ensemble = model.ensemble(vg.GroundSet(quality, features[None]))
        for k in (None, 3):
            found.append(sorted(greedy(section, quality, features, k)))
            assert ensemble.decode("greedy", k=k).indices.tolist() == found[-1]
    assert found == expected


def test_the_packaged_picker():
    loaded = vg.load(PICKER)
    assert type(loaded) is KeyframePicker
    document = json.loads(PICKER.read_text(encoding="utf-8"))
    assert document["version"] == 1
    quality, features = items(9, {"layout": 6, "patterns": 6})
    ground_set = vg.GroundSet(quality, features)
    for section, model in zip(document["models"], loaded.models_, strict=True):
        for k in (None, 3):
            chosen = model.ensemble(ground_set).decode("greedy", k=k)
            assert chosen.indices.tolist() == sorted(
                greedy(section, quality, features, k)
            )


# Tables -----------------------------------------------------------------------------

#: Two groups, scattered, with empty cells and a kind that training never saw.
ROWS = [
    ("a", "1", 15.0, 0.9, "news", 100, [1.0, 0.0, 0.0, 0.0]),
    ("b", "1", 11.0, 0.5, "blog", 200, [0.0, 3.0, 0.1, 0.0]),
    ("a", "2", 16.0, 0.2, "reference", 300, [2.0, 0.2, 0.0, 0.1]),
    ("a", "3", None, 0.7, "video", 100, [0.0, 1.0, 0.0, 0.0]),
    ("b", "2", 19.0, 0.8, None, 50, [0.5, 0.5, 0.5, 0.5]),
    ("b", "3", 17.0, 0.4, "podcast", 80, [-0.5, 0.5, 0.1, 0.5]),
    ("a", "4", 13.0, 0.1, "forum", 400, [0.0, 0.0, 1.0, -1.0]),
    ("b", "4", 18.0, 0.9, "news", 60, [0.5, 0.5, 0.6, 0.5]),
    ("a", "5", 9.0, 0.6, "blog", 10, [-1.0, 0.0, 0.0, 1.0]),
    ("b", "5", 6.0, 0.3, "forum", 20, [0.0, -1.0, 0.0, 0.0]),
]
NAMES = ("query", "item", "score", "freshness", "kind", "tokens", "embedding")
TABLE = pa.table(dict(zip(NAMES, map(list, zip(*ROWS, strict=True)), strict=True)))

#: The ranks of these rows, for each omega.
RANKS = {
    0.5: [1, 0, 0, 0, 0, 2, 0, 1, 0, 0],
    4.0: [1, 0, 0, 2, 0, 2, 0, 1, 0, 0],
}


def quality_by_hand(columns, rows):
    """Return the features of rows as docs/tables.md describes them."""
    features = []
    for column in columns:
        place = NAMES.index(column["name"])
        cells = [row[place] for row in rows]
        if column["kind"] == "category":
            for level in column["levels"]:
                features.append([float(cell == level) for cell in cells])
        else:
            (mean,), (scale,) = column["mean"], column["scale"]
            features.append(
                [0.0 if cell is None else (cell - mean) / scale for cell in cells]
            )
        if column["has_indicator"]:
            features.append([float(cell is None) for cell in cells])
    return np.array(features).T


def ranks_by_hand(document, section):
    ranks = [0] * len(ROWS)
    for group in ("a", "b"):
        places = [place for place, row in enumerate(ROWS) if row[0] == group]
        rows = [ROWS[place] for place in places]
        vectors = np.array([row[-1] for row in rows])
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        quality = quality_by_hand(document["encoding"]["quality"], rows)
        for rank, item in enumerate(greedy(section, quality, {None: vectors}), 1):
            ranks[places[item]] = rank
    return ranks


def test_what_the_table_selector_chooses():
    path = FOLDER / "table-selector-v1.json"
    selector = vg.load(path)
    document = json.loads(path.read_text(encoding="utf-8"))
    assert selector.omegas_ == tuple(RANKS) == (0.5, 4.0)
    assert document["columns"]["missing"] == "indicator"
    for section in document["models"]:
        omega = section["omega"]
        assert ranks_by_hand(document, section) == RANKS[omega]
        chosen = selector.choose(TABLE, omega=omega)
        assert chosen.rank.tolist() == RANKS[omega]
        assert chosen.selected.tolist() == [rank > 0 for rank in RANKS[omega]]
