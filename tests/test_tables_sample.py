import numpy as np
import pytest

from variegate.tables.sample import make_table

TYPES = {
    "query": "string",
    "item": "string",
    "score": "double",
    "freshness": "double",
    "popularity": "double",
    "kind": "string",
    "tokens": "int32",
    "embedding": "list<item: float>",
    "chosen": "bool",
}


def by_group(table, name, n_groups):
    column = table[name].combine_chunks()
    if name == "embedding":
        values = column.values.to_numpy()
        return values.reshape(n_groups, table.num_rows // n_groups, -1)
    return column.to_numpy(zero_copy_only=False).reshape(n_groups, -1)


@pytest.fixture(scope="module")
def table():
    return make_table(random_state=3)


def test_columns_and_their_types(table):
    assert {field.name: str(field.type) for field in table.schema} == TYPES
    assert table.num_rows == 300 * 20
    assert all(column.null_count == 0 for column in table.columns)


@pytest.mark.parametrize(
    ("n_groups", "n_items", "n_dimensions"), [(1, 1, 1), (7, 3, 5)]
)
def test_sizes(n_groups, n_items, n_dimensions):
    table = make_table(n_groups, n_items, n_dimensions)
    assert table.num_rows == n_groups * n_items
    assert by_group(table, "embedding", n_groups).shape[2] == n_dimensions
    assert by_group(table, "chosen", n_groups).any(axis=1).all()


def test_names_are_unique_in_their_group_and_sort_as_they_are_listed():
    table = make_table(2, 120, 2)
    queries, items = (by_group(table, name, 2) for name in ("query", "item"))
    assert [sorted(set(row)) for row in queries] == [["q0001"], ["q0002"]]
    for row in items:
        assert row.tolist() == sorted(set(row))


def test_same_seed_same_table(table):
    assert make_table(random_state=3).equals(table)
    assert not make_table(random_state=4).equals(table)
    assert make_table(5).equals(make_table(5, random_state=0))
    generator = np.random.default_rng(3)
    assert make_table(random_state=generator).equals(table)
    assert not make_table(random_state=generator).equals(table)


def test_values_are_what_they_are_said_to_be(table):
    score = by_group(table, "score", 300)
    assert (np.diff(score, axis=1) <= 0).all()
    for name in ("freshness", "popularity"):
        values = by_group(table, name, 300)
        assert ((values >= 0) & (values <= 1)).all()
    assert by_group(table, "tokens", 300).min() >= 1
    lengths = np.linalg.norm(by_group(table, "embedding", 300), axis=2)
    np.testing.assert_allclose(lengths, 1.0, atol=1e-5)
    kinds = {"news", "blog", "forum", "video", "reference"}
    assert set(table["kind"].to_pylist()) == kinds


@pytest.mark.parametrize(("n_items", "few", "many"), [(20, 3, 7), (50, 6, 11)])
def test_an_editor_picks_a_few_and_how_many_varies(n_items, few, many):
    table = make_table(1000, n_items)
    sizes = by_group(table, "chosen", 1000).sum(axis=1)
    assert sizes.min() >= 1
    # Of a thousand groups, a tenth is known to 0.01.
    assert np.quantile(sizes, [0.1, 0.9]) == pytest.approx([few, many], abs=1)


def test_what_is_picked_is_better_by_every_signal(table):
    chosen = by_group(table, "chosen", 300)
    gaps = {}
    for name in ("score", "freshness", "popularity", "tokens"):
        values = by_group(table, name, 300).astype(float)
        gap = values[chosen].mean() - values[~chosen].mean()
        gaps[name] = gap / values.std()
    assert gaps["score"] > gaps["freshness"] > gaps["popularity"] > 0.1
    kinds = by_group(table, "kind", 300)
    rates = [chosen[kinds == kind].mean() for kind in ("forum", "news", "reference")]
    assert rates == sorted(rates)


def test_an_editor_avoids_what_is_alike_but_for_mistakes(table):
    chosen = by_group(table, "chosen", 300)
    embeddings = by_group(table, "embedding", 300)
    alike = embeddings @ embeddings.transpose(0, 2, 1) > 0.85
    alike &= ~np.eye(20, dtype=bool)
    pairs = chosen[:, :, None] & chosen[:, None, :]
    assert alike.mean() > 0.05
    assert 0 < alike[pairs].mean() < 0.1 * alike.mean()


def test_an_editor_in_plain_words():
    """The editors, against one who compares each item with all picks."""
    from variegate.tables import sample

    rng = np.random.default_rng(0)
    utility = rng.standard_normal((50, 12))
    embeddings = rng.standard_normal((50, 12, 3))
    embeddings /= np.linalg.norm(embeddings, axis=2, keepdims=True)
    bar, alike, overlooks, does_not_notice = editors = sample._draw_editors(
        rng, (50, 12)
    )
    chosen = sample._simulate_picks(utility, embeddings, *editors)
    for group in range(50):
        picked = []
        for item in np.argsort(-utility[group]):
            if utility[group, item] < bar[group] + 0.15 * len(picked):
                break
            cosines = [embeddings[group, item] @ embeddings[group, p] for p in picked]
            too_alike = max(cosines, default=-1.0) > alike[group]
            if overlooks[group, item]:
                continue
            if not too_alike or does_not_notice[group, item]:
                picked.append(item)
        picked = picked or [np.argmax(utility[group])]
        assert np.flatnonzero(chosen[group]).tolist() == sorted(picked)


@pytest.mark.parametrize("name", ["n_groups", "n_items", "n_dimensions"])
@pytest.mark.parametrize("value", [0, 2.5, True])
def test_what_is_not_a_count_is_refused(name, value):
    with pytest.raises(ValueError, match=f"{name} must be a whole number"):
        make_table(**{name: value})
