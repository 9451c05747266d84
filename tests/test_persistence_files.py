"""What a model file chooses, worked out from its numbers by a few lines of NumPy.

A change of the library that no longer means what the files say shows up here, even if
it saves and loads alike.
"""

import json
from importlib.resources import files

import numpy as np
import pyarrow as pa
import pytest

import variegate as vg
from text_instances import CLUSTERS
from variegate.tables import TableSelector
from variegate.text import Summarizer

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

#: The picker that the package comes with.
PICKER = files("variegate.video") / "models" / "videos.json"


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


def saved(model, folder):
    """Return a model's file, and the model that it is loaded as."""
    model.save(folder / "model.json")
    document = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    return document, vg.load(folder / "model.json")


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


def plain_model():
    data = vg.datasets.make_synthetic(n_sets=20, n_features=2, random_state=0)
    kernel = vg.MultipleKernel(bandwidths=[1.0, 4.0], linear=True)
    model = vg.LargeMarginDPP(lam=2.0, kernel=kernel, max_iter=30)
    return model.fit(data.ground_sets, data.subsets)


def summarizer():
    return Summarizer(features="paper", omega=[0.5, 2.0], max_iter=20).fit(CLUSTERS)


#: Models, and the sizes of the blocks of features that they compare items by.
MODELS = {
    "plain": (plain_model, {None: 2}),
    "summarizer": (summarizer, {None: 5}),
    "picker": (lambda: vg.load(PICKER), {"layout": 6, "patterns": 6}),
}


@pytest.mark.parametrize("name", MODELS)
def test_what_the_numbers_of_a_file_choose(name, tmp_path):
    make, blocks = MODELS[name]
    model = make()
    document, loaded = saved(model, tmp_path)
    assert type(loaded) is type(model)
    sections = document.get("models", [document])
    models = getattr(loaded, "models_", (loaded,))
    sizes = set()
    for section, one in zip(sections, models, strict=True):
        quality, features = items(len(section["fitted"]["theta"]), blocks)
        ground_set = vg.GroundSet(quality, features.get(None, features))
        ensemble = one.ensemble(ground_set)
        for k in (None, 3):
            chosen = ensemble.decode("greedy", k=k).indices.tolist()
            assert chosen == sorted(greedy(section, quality, features, k))
            sizes.add(len(chosen))
    assert sizes - {0}


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


def training_table(n_groups=30, seed=0):
    """Return groups in which recent rows of high scores are chosen, one of a kind."""
    rng = np.random.default_rng(seed)
    n = 6 * n_groups
    score, freshness = rng.normal(15.0, 4.0, n), rng.uniform(0.0, 1.0, n)
    kind = rng.choice(["news", "blog", "reference", "video", "forum"], n)
    chosen = np.zeros(n, dtype=bool)
    for group in range(n_groups):
        rows = np.arange(6 * group, 6 * group + 6)
        best = rows[np.argsort(-(score[rows] + 4.0 * freshness[rows]))[:2]]
        chosen[best] = True
    score[::7] = np.nan
    return pa.table(
        {
            "query": np.repeat([f"q{g}" for g in range(n_groups)], 6),
            "item": [str(i) for i in range(n)],
            "score": pa.array([None if np.isnan(x) else x for x in score]),
            "freshness": freshness,
            "kind": kind,
            "tokens": rng.integers(10, 400, n),
            "embedding": rng.normal(size=(n, 4)).tolist(),
            "chosen": chosen,
        }
    )


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


def test_what_the_table_selector_chooses(tmp_path):
    selector = TableSelector(
        group="query",
        label="chosen",
        item="item",
        quality=["score", "freshness"],
        categorical=["kind"],
        similarity="embedding",
        cost="tokens",
        missing="indicator",
        kernel="multiple",
        decoder="greedy",
        lam=1.0,
        omega=0.5,
        max_iter=60,
    ).fit(training_table())
    document, loaded = saved(selector, tmp_path)
    assert loaded.omega_ == 0.5
    assert document["columns"]["missing"] == "indicator"
    found = []
    (section,) = document["models"]
    for omega in (0.5, 4.0):
        expected = ranks_by_hand(document, section)
        section["fitted"]["intercept"] += 0.5 * np.log(4.0 / 0.5)
        chosen = loaded.choose(TABLE, omega=omega)
        assert chosen.rank.tolist() == expected
        assert chosen.selected.tolist() == [rank > 0 for rank in expected]
        found.append(expected)
    assert max(found[0]) > 0
    assert found[0] != found[1]
