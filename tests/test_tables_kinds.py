"""Learned kinds of tables: of every row, in the record, on terminal and page."""

import json
import re

import numpy as np
import pyarrow as pa
import pytest

import variegate as vg
from variegate.application.description import describe
from variegate.application.model_facts import (
    alike_in_words,
    kernel_parts,
    learned_parts,
)
from variegate.tables import TableError, TableSelector
from variegate.tables import kinds as module
from variegate.tables.report import html_page, markdown

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

NAMES = np.array(["bread", "cheese", "apples", "fish"])


def market(n_groups=20, n_items=8, seed=0, noise=0.2):
    """Return a table of days, of which the best item of every hidden kind is chosen.

    Its rows are in no order, so that those of a day are scattered.
    """
    centers = np.random.default_rng(9).standard_normal((len(NAMES), 6))
    rng = np.random.default_rng(seed)
    kind = rng.integers(len(NAMES), size=(n_groups, n_items))
    score = rng.standard_normal((n_groups, n_items))
    chosen = np.zeros((n_groups, n_items), dtype=int)
    for day, of in enumerate(kind):
        for k in np.unique(of):
            same = np.flatnonzero(of == k)
            chosen[day, same[np.argmax(score[day, same])]] = 1
    places = centers[kind] + noise * rng.standard_normal((n_groups, n_items, 6))
    order = rng.permutation(n_groups * n_items)
    day, number = np.divmod(order, n_items)
    return pa.table(
        {
            "day": [f"day {one}" for one in day],
            "item": [f"item {one}" for one in number],
            "score": score.ravel()[order],
            "embedding": list(places.reshape(-1, 6)[order]),
            "what": NAMES[kind.ravel()[order]],
            "chosen": chosen.ravel()[order],
        }
    )


def fitted(table, **given):
    settings = {"group": "day", "label": "chosen", "quality": "score", "omega": 1.0}
    settings |= {"similarity": "embedding", "max_iter": 40, "kernel": vg.Kinds(5)}
    return TableSelector(**settings | given).fit(table)


@pytest.fixture(scope="module")
def table():
    return market()


@pytest.fixture(scope="module")
def selector(table):
    return fitted(table, item="item")


def probabilities(selector, table):
    """Return the kinds of all rows by the estimator, from the cells of the table."""
    places = np.array(table["embedding"].to_pylist())
    places /= np.linalg.norm(places, axis=1, keepdims=True)
    everything = vg.GroundSet(np.zeros((len(places), 1)), places)
    model = selector.model_
    p = model.kernel_.kinds(everything, model.kernel_parameters_)
    return p, model.kernel_.prepare(everything)


# Of every row -------------------------------------------------------------------------


def test_every_row_has_its_kind(selector, table):
    found = selector.kinds(table)
    p, _ = probabilities(selector, table)
    np.testing.assert_array_equal(found.kind, p.argmax(axis=1))
    np.testing.assert_allclose(found.probability, p.max(axis=1))
    # Rows of one kind are what was hidden from the model.
    hidden = np.array(table["what"])
    for number in np.unique(found.kind):
        names, n_rows = np.unique(hidden[found.kind == number], return_counts=True)
        assert n_rows.max() >= 0.9 * n_rows.sum(), (number, names)
    kind, probability = selector.kinds(table.drop(["chosen"]))  # labels are not needed
    np.testing.assert_array_equal(kind, found.kind)
    assert len(probability) == len(table)


def test_kinds_are_asked_of_a_model_that_has_some(table):
    gaussians = fitted(table, kernel="multiple", max_iter=2)
    with pytest.raises(TableError, match=r"no kinds, its kernel is a MultipleKernel"):
        gaussians.kinds(table)
    assert "kinds" not in gaussians.training_


def test_a_mixture_has_kinds_by_block(table):
    kernel = vg.Mixture(
        [
            vg.Kinds(3, block="embedding"),
            vg.Gaussian(1.0, block="columns"),
            vg.Kinds(2, block="columns"),
        ]
    )
    mixed = fitted(table, similarity=["embedding", "score"], kernel=kernel, max_iter=5)
    with pytest.raises(TableError, match="name a block, of 'embedding', 'columns'"):
        mixed.kinds(table)
    with pytest.raises(TableError, match="no kinds of block 'what', but of"):
        mixed.kinds(table, block="what")
    assert set(mixed.kinds(table, block="columns").kind) <= {0, 1}
    first, second = mixed.training_["kinds"]
    assert [len(one["kinds"]) for one in (first, second)] == [3, 2]
    parts = kernel_parts(mixed.model_)
    assert [part.name for part in parts] == ["Kinds", "Gaussian", "Kinds"]
    assert first["weight"] == parts[0].weight
    assert second["weight"] == parts[2].weight
    assert sum(part.weight for part in parts) == pytest.approx(1.0)
    text = " ".join(str(mixed.describe()).split())
    assert "learned similarity: kinds of embedding" in text
    assert "of the similarity; its other parts" in text


def test_mixtures_of_mixtures_are_looked_through(table):
    kernel = vg.Mixture([vg.Linear(), vg.Mixture([vg.Gaussian(1.0), vg.Kinds(3)])])
    mixed = fitted(table, kernel=kernel, max_iter=5)
    (kinds,) = learned_parts(mixed.model_, vg.Kinds)
    outer, _ = mixed.model_.kernel_.split(mixed.model_.kernel_parameters_)
    assert 0.0 < kinds.weight <= outer[1]
    assert len(mixed.kinds(table).kind) == len(table)


# The record ---------------------------------------------------------------------------


def test_the_record_counts_the_training_rows(selector, table):
    (record,) = selector.training_["kinds"]
    p, _ = probabilities(selector, table)
    chosen = np.array(table["chosen"]) == 1
    shares = [kind["share"] for kind in record["kinds"]]
    np.testing.assert_allclose(shares, p.sum(axis=0) / len(table))
    np.testing.assert_allclose(
        [kind["chosen"] for kind in record["kinds"]], p[chosen].sum(axis=0) / 20
    )
    assert record["effective"] == pytest.approx(np.prod([s**-s for s in shares]))
    assert (record["n_rows"], record["n_groups"]) == (160, 20)
    model = selector.model_
    assert record["epsilon"] == model.kernel_.learned_epsilon(model.kernel_parameters_)
    json.dumps(record, allow_nan=False)


def test_typical_rows_are_nearest_to_the_mean_of_their_kind(selector, table):
    (record,) = selector.training_["kinds"]
    p, places = probabilities(selector, table)
    items, days = table["item"].to_pylist(), table["day"].to_pylist()
    for number, kind in enumerate(record["kinds"]):
        mean = np.average(places, axis=0, weights=p[:, number])
        of_it = [i for i in range(len(table)) if p[i].argmax() == number]
        nearest = sorted(of_it, key=lambda i: np.linalg.norm(places[i] - mean))[:5]
        assert [row["row"] - 1 for row in kind["typical"]] == nearest
        assert [row["item"] for row in kind["typical"]] == [items[i] for i in nearest]
        assert [row["group"] for row in kind["typical"]] == [days[i] for i in nearest]


def test_traits_are_where_a_kind_differs_most():
    rng = np.random.default_rng(0)
    n = 240
    hidden = rng.integers(0, 3, n)
    genre = np.array(["drama", "horror|short", "comedy"])[hidden]
    genre = np.where(rng.random(n) < 0.1, "short", genre)
    year = np.where(hidden == 0, 1950.0, 2010.0) + rng.integers(0, 5, n)
    table = pa.table(
        {
            "day": np.repeat([f"d{k}" for k in range(n // 8)], 8),
            "score": rng.standard_normal(n),
            "genre": genre,
            "year": year,
            "chosen": (rng.random(n) < 0.3).astype(int),
            "embedding": list(np.eye(3)[hidden] + 0.05 * rng.standard_normal((n, 3))),
        }
    )
    columns = {"quality": ["score", "genre", "year"], "categorical": "genre"}
    selector = fitted(table, kernel=vg.Kinds(3), **columns, empty_groups="keep")
    (record,) = selector.training_["kinds"]
    kind = selector.kinds(table).kind
    seen = set()
    for number, found in enumerate(record["kinds"]):
        inside = hidden[kind == number]
        (name,) = {*inside.tolist()} or {-1}
        seen.add(name)
        traits = {one["name"]: one for one in found["traits"]}
        expected = {0: "genre = drama", 1: "genre = horror", 2: "genre = comedy"}[name]
        assert expected in traits
        assert "score" not in traits
        has = np.array([expected[8:] in cell.split("|") for cell in genre.tolist()])
        trait = traits[expected]
        assert trait["is_share"]
        assert trait["overall"] == pytest.approx(has.mean())
        assert trait["mean"] == pytest.approx(has[kind == number].mean(), abs=0.01)
        if name == 0:
            mean, overall = year[kind == number].mean(), year.mean()
            assert traits["year"]["mean"] == pytest.approx(mean, rel=1e-3)
            assert traits["year"]["overall"] == pytest.approx(overall)
            assert not traits["year"]["is_share"]
    assert seen == {0, 1, 2}
    words = same(str(selector.describe()))
    assert re.search(r"genre = comedy \d\d % \(all: \d\d %\)", words)
    assert re.search(r"year 195\d \(all: 19[89]\d\)", words)
    assert "row " not in words.split("About")[0]  # not the number of a typical row


def test_copies_are_typical_once(table):
    twice = pa.concat_tables(
        [table, table.set_column(0, "day", [[f"{d} b" for d in table["day"]]])]
    )
    (record,) = fitted(twice, max_iter=5).training_["kinds"]
    vectors = twice["embedding"].to_pylist()
    for kind in record["kinds"]:
        shown = [tuple(vectors[row["row"] - 1]) for row in kind["typical"]]
        assert len(set(shown)) == len(shown)
        assert all(row["item"] is None for row in kind["typical"])


def test_the_record_is_of_bounded_size(table, monkeypatch):
    monkeypatch.setattr(module, "_MAX_ROWS", 50)
    monkeypatch.setattr(module, "_MAX_KINDS", 2)
    (record,) = fitted(table, max_iter=5).training_["kinds"]
    assert (record["n_groups"], record["n_rows"]) == (6, 48)
    by_share = sorted(record["kinds"], key=lambda kind: -kind["share"])
    assert [bool(kind["typical"]) for kind in by_share] == [True, True] + 3 * [False]
    # A group is never cut, and one is looked at in any case.
    monkeypatch.setattr(module, "_MAX_NUMBERS", 1)
    (record,) = fitted(table, max_iter=5).training_["kinds"]
    assert (record["n_groups"], record["n_rows"]) == (1, 8)


def test_only_groups_that_were_learned_from_are_looked_at(table):
    (record,) = fitted(table, validation_fraction=0.25, max_iter=5).training_["kinds"]
    assert record["n_groups"] == 15


def test_tables_larger_than_memory_have_a_record_too():
    (record,) = fitted(market(220, 4), memory=2**15, max_iter=3).training_["kinds"]
    assert record["n_groups"] == 220
    assert sum(kind["share"] for kind in record["kinds"]) == pytest.approx(1.0)


def test_one_group_has_no_name(table):
    (record,) = fitted(table, group=None, max_iter=3).training_["kinds"]
    assert {row["group"] for k in record["kinds"] for row in k["typical"]} == {None}


# On a terminal ------------------------------------------------------------------------


def same(text):
    """Return the section about the similarity, on one line."""
    section = text.split("learned similarity")[1].split("\n\n")[0]
    return re.sub(r"\s+", " ", section)


def test_the_text_has_every_kind(selector):
    (record,) = selector.training_["kinds"]
    words = same(str(selector.describe()))
    assert f"About {record['effective']:.3g} of 5 kinds are in use" in words
    assert "160 training rows of 20 groups" in words
    for number, kind in enumerate(record["kinds"]):
        if kind["share"] >= 0.01 and kind["typical"]:
            first = kind["typical"][0]
            listed = f"{number} {100 * kind['share']:.0f} % {8 * kind['share']:.2f} "
            listed += f"{kind['chosen']:.2f} {first['item']} ({first['group']})"
            assert listed in words
    # Four are hidden in the table, and no row is of the fifth.
    assert "1 kind with hardly any rows is not shown." in words
    assert selector.describe().numbers["kinds"] == [record]
    assert "kinds" not in selector.describe().numbers["data"]


def test_files_keep_kinds_and_older_files_do_without(selector, table, tmp_path):
    selector.save(tmp_path / "new.json")
    again = vg.load(tmp_path / "new.json")
    assert str(again.describe()) == str(selector.describe())
    np.testing.assert_array_equal(again.kinds(table).kind, selector.kinds(table).kind)
    document = json.loads((tmp_path / "new.json").read_text())
    del document["training"]["kinds"]
    (tmp_path / "old.json").write_text(json.dumps(document))
    old = vg.load(tmp_path / "old.json")
    assert same(str(old.describe())).startswith(" 5 kinds. Two rows that surely")
    assert "Learned similarity" not in html_page(old.report(table))


def test_a_model_without_a_table_says_how_alike_kinds_are():
    rng = np.random.default_rng(0)
    sets = [vg.GroundSet(rng.standard_normal((6, 3))) for _ in range(4)]
    model = vg.LargeMarginDPP(kernel=vg.Kinds(2), max_iter=3).fit(sets, [[0, 1]] * 4)
    found = describe(model)
    assert same(str(found)).startswith(" 2 kinds. Two items that surely belong to one")
    (kinds,) = found.numbers["kinds"]
    epsilon = model.kernel_.learned_epsilon(model.kernel_parameters_)
    assert kinds == {"block": None, "weight": 1.0, "n_kinds": 2, "epsilon": epsilon}
    metric = vg.LargeMarginDPP(kernel=vg.Metric(2), max_iter=3).fit(sets, [[0]] * 4)
    W = metric.kernel_.weights(metric.kernel_parameters_)
    largest = int(np.argmax(np.diag(W.T @ W)))
    assert f"the similarity features {largest} (" in same(str(describe(metric)))


@pytest.mark.parametrize("epsilon", [0.01, 0.2, 0.7])
def test_the_odds_of_a_second_one_are_those_of_the_determinant(epsilon):
    # Four items of quality 2: two surely of one kind, two alone.
    S = np.eye(4)
    S[0, 1] = S[1, 0] = 1.0 - epsilon
    ensemble = vg.LEnsemble(4.0 * S)
    p = {pair: np.exp(ensemble.log_prob(pair)) for pair in [(0, 1), (0, 2)]}
    percent = f"{100 * p[0, 1] / p[0, 2]:.{0 if epsilon > 0.05 else 1}f} %"
    words = alike_in_words(epsilon)
    assert f"the odds of the other to {percent} of their value" in words
    assert f"have similarity {1 - epsilon:.3f}" in words
    ending = {0.01: "usually enough", 0.2: "much better", 0.7: "nearly as easily"}
    assert ending[epsilon] in words


def test_what_is_hardly_apart_is_the_same():
    assert "have similarity 1." in alike_in_words(1e-5)


# Metrics ------------------------------------------------------------------------------


def sizes(seed=0):
    """Return a table whose chosen rows differ in one column, and not in another."""
    rng = np.random.default_rng(seed)
    side = rng.integers(2, size=(20, 6))
    side[:, :2] = [0, 1]
    score = rng.standard_normal((20, 6))
    best = np.stack(
        [np.where(side == k, score, -9.0).argmax(axis=1) for k in (0, 1)], axis=1
    )
    chosen = np.zeros((20, 6), dtype=int)
    np.put_along_axis(chosen, best, 1, axis=1)
    return pa.table(
        {
            "day": np.repeat(np.arange(20), 6),
            "score": score.ravel(),
            "side": side.ravel() + 0.1 * rng.standard_normal(120),
            "noise": rng.standard_normal(120),
            "chosen": chosen.ravel(),
        }
    )


@pytest.mark.filterwarnings("ignore::variegate.estimator.AllAlikeWarning")
def test_a_metric_goes_by_the_features_that_tell():
    selector = fitted(
        sizes(), similarity=["side", "noise"], kernel=vg.Metric(2), max_iter=60
    )
    (metric,) = learned_parts(selector.model_, vg.Metric)
    W = metric.kernel.weights(selector.model_.kernel_parameters_)
    diagonal = np.diag(W.T @ W)
    shares = selector.describe().numbers["metrics"][0]["features"]
    expected = dict(zip(["side", "noise"], diagonal / diagonal.sum(), strict=True))
    assert shares == pytest.approx(expected)
    assert shares["side"] > 0.8
    assert list(shares) == ["side", "noise"]
    assert "features of the metric side" in same(str(selector.describe()))
    page = html_page(selector.report(sizes()))
    assert "These features count most" in page
    assert page.index('<th scope="row">side</th>') < page.index(
        '<th scope="row">noise</th>'
    )


def test_a_long_vector_beside_others_counts_as_one():
    table = sizes()
    vectors = np.random.default_rng(1).standard_normal((120, 9))
    table = table.append_column("long", pa.array(list(vectors)))
    alone = fitted(table, similarity="long", kernel=vg.Metric(2), max_iter=2)
    (metric,) = alone.describe().numbers["metrics"]
    assert next(iter(metric["features"])).startswith("long[")
    assert len(metric["features"]) == 9
    both = fitted(
        table, quality=["score", "long"], similarity=None, kernel=vg.Metric(2),
        max_iter=2,
    )  # fmt: skip
    (metric,) = both.describe().numbers["metrics"]
    assert set(metric["features"]) == {"score", "long (9 numbers)"}
    assert sum(metric["features"].values()) == pytest.approx(1.0)


# On a page ----------------------------------------------------------------------------


def test_the_page_shows_typical_rows_in_the_columns_asked_for(selector, table):
    report = selector.report(table, show=["what", "score"])
    words, _ = markdown(report)
    section = words.split("## Learned similarity")[1].split("\n## ")[0]
    assert "| Kind | Share of the rows | In a group | Chosen of these |" in section
    assert "| Kind | what | score |" in section
    (record,) = selector.training_["kinds"]
    whats, scores = table["what"].to_pylist(), table["score"].to_pylist()
    for number, kind in enumerate(record["kinds"]):
        if kind["share"] < 0.005 or not kind["typical"]:
            continue  # hardly a row is of it
        first, second = (row["row"] - 1 for row in kind["typical"][:2])
        assert f"| {kind['chosen']:.2f} |\n" in section
        assert f"| {number} | {whats[first]} | {scores[first]:.4g} |" in section
        assert f"|  | {whats[second]} | {scores[second]:.4g} |" in section
    page = html_page(report)
    assert ">Learned similarity</h2>" in page
    assert page.count('<tr class="more">') == section.count("\n|  |")


def test_names_of_typical_rows_cannot_break_out(table):
    names = pa.array(["<b>&" + "|" * 3] * len(table))
    table = table.append_column("name", names)
    selector = fitted(table, max_iter=3)
    page = html_page(selector.report(table, show=["name"]))
    assert "<b>&" not in page
    words, _ = markdown(selector.report(table, show=["name"]))
    assert "\\<b\\>\\&\\|\\|\\|" in words
