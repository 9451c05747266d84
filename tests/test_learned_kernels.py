"""Kinds and Metric: what they learn, what they keep, and what they refuse."""

import json

import numpy as np
import pytest
from sklearn.cluster import KMeans

import reference
import variegate as vg
from variegate.files.models import ModelFileError
from variegate.kernels.domains import Free, Product, Simplex
from variegate.linalg import limits


def one_of_each(n_groups, seed, n_kinds=5, n_items=12, noise=0.3):
    """Return groups of which the best item of every hidden kind is wanted."""
    centers = np.random.default_rng(99).standard_normal((n_kinds, 8))
    rng = np.random.default_rng(seed)
    ground_sets, subsets = [], []
    for _ in range(n_groups):
        kind = rng.integers(n_kinds, size=n_items)
        quality = rng.standard_normal(n_items)
        wanted = [
            max(np.flatnonzero(kind == k), key=lambda i: quality[i])
            for k in np.unique(kind)
        ]
        features = centers[kind] + noise * rng.standard_normal((n_items, 8))
        ground_sets.append(vg.GroundSet(quality[:, None], features))
        subsets.append(np.sort(wanted))
    return ground_sets, subsets


@pytest.fixture(scope="module")
def model():
    estimator = vg.LargeMarginDPP(kernel=vg.Kinds(5), decoder="greedy", tol=1e-2)
    return estimator.fit(*one_of_each(60, seed=0))


def test_kinds_are_found_where_gaussians_do_worse(model):
    test = one_of_each(60, seed=1)
    gaussians = vg.LargeMarginDPP(decoder="greedy", tol=1e-2)
    gaussians.fit(*one_of_each(60, seed=0))
    assert model.score(*test) > gaussians.score(*test) + 0.05


def test_items_of_one_kind_are_alike_and_others_are_not(model):
    centers = np.random.default_rng(99).standard_normal((5, 8))
    pairs = vg.GroundSet(np.zeros((10, 1)), np.repeat(centers, 2, axis=0))
    parameters = model.kernel_parameters_
    p = model.kernel_.kinds(pairs, parameters)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(p.argmax(axis=1)[::2], p.argmax(axis=1)[1::2])
    assert len(set(p.argmax(axis=1).tolist())) == 5
    S = model.kernel_.value(model.kernel_.prepare(pairs), parameters)
    same = np.kron(np.eye(5), np.ones((2, 2))) > 0
    assert S[same].min() > 0.9
    assert S[~same].max() < 0.3
    # At most one is worth choosing of each: what an item has of its own is little.
    assert model.kernel_.learned_epsilon(parameters) < 0.05


def test_similarity_is_as_documented():
    rng = np.random.default_rng(0)
    ground_set = vg.GroundSet(np.zeros((6, 1)), rng.standard_normal((6, 3)))
    kernel = vg.Kinds(4, sharpness=2.0, epsilon=0.2).fit([ground_set])
    added = 0.5 * rng.standard_normal(kernel.domain.size)
    X = ground_set.features() - kernel.center_
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    C = kernel.centers_
    logits = X @ (4.0 * C + added[:12].reshape(4, 3)).T
    logits += added[12:16] - 2.0 * (C**2).sum(axis=1)
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    odds = 0.25 * np.exp(added[16])
    epsilon = odds / (1.0 + odds)
    expected = (1.0 - epsilon) * np.sqrt(p) @ np.sqrt(p).T + epsilon * np.eye(6)
    value = kernel.value(kernel.prepare(ground_set), added)
    np.testing.assert_allclose(value, expected, rtol=1e-12)


@pytest.mark.parametrize(("few", "n_starts"), [(10_000, 4), (0, 1)])
def test_the_centres_at_the_start_are_those_of_k_means(few, n_starts, monkeypatch):
    monkeypatch.setattr("variegate.kernels.kinds._RESTARTED", few)
    ground_sets, _ = one_of_each(30, seed=0, noise=2.0)
    kernel = vg.Kinds(9, random_state=3).fit(ground_sets)
    X = np.concatenate([one.features() for one in ground_sets])
    X = X - X.mean(axis=0)
    X = np.unique(X / np.linalg.norm(X, axis=1)[:, None], axis=0)
    seed = int(np.random.default_rng(3).integers(2**31))
    means = KMeans(9, n_init=n_starts, random_state=seed).fit(X)
    np.testing.assert_allclose(kernel.centers_, means.cluster_centers_, atol=1e-12)


@pytest.mark.parametrize("limit", [np.inf, 0], ids=["numpy", "compiled"])
def test_a_metric_is_as_documented_and_starts_at_the_principal_components(
    limit, monkeypatch
):
    monkeypatch.setattr(limits, "COMPILED_ENTRIES", limit)
    rng = np.random.default_rng(0)
    features = rng.standard_normal((30, 4)) * [5.0, 3.0, 0.1, 0.1]
    ground_set = vg.GroundSet(np.zeros((30, 1)), features)
    kernel = vg.Metric(2, bandwidth=0.5).fit([ground_set])
    W = kernel.directions_
    # Two directions carry nearly everything, so distances are those of the plane.
    plane = features[:, :2]
    distances = ((plane[:, None] - plane[None]) ** 2).sum(axis=-1)
    scale = np.median(distances[distances > 0])
    S = kernel.value(kernel.prepare(ground_set), np.zeros(kernel.domain.size))
    np.testing.assert_allclose(-np.log(S) * 0.25 * scale, distances, atol=0.02 * scale)
    added = 0.1 * rng.standard_normal(W.size)
    moved = features @ (W + added.reshape(W.shape)).T
    expected = np.exp(-((moved[:, None] - moved[None]) ** 2).sum(axis=-1) / 2.0)
    value = kernel.value(kernel.prepare(ground_set), added)
    np.testing.assert_allclose(value, expected, rtol=1e-9, atol=1e-12)


def test_the_penalty_holds_parameters_near_their_start():
    sets = one_of_each(20, seed=0)
    lengths = [
        np.linalg.norm(
            vg.LargeMarginDPP(kernel=vg.Kinds(5, penalty=penalty), tol=1e-2, l2=1e-3)
            .fit(*sets)
            .kernel_parameters_
        )
        for penalty in (10.0, 1e-1, 1e-3)
    ]
    assert lengths == sorted(lengths)
    assert lengths[0] < 0.3 * lengths[2]


@pytest.mark.parametrize(
    "kernel",
    [vg.Kinds(3), vg.Metric(2), vg.Mixture([vg.Kinds(3), vg.Linear(), vg.Metric(2)])],
    ids=["kinds", "metric", "mixture"],
)
def test_kept_in_a_file(kernel, tmp_path):
    sets = one_of_each(8, seed=0)
    fitted = vg.LargeMarginDPP(kernel=kernel, max_iter=5, tol=10.0).fit(*sets)
    fitted.save(tmp_path / "m.json")
    loaded = vg.load(tmp_path / "m.json")
    for ground_set in sets[0]:
        one, other = (m.ensemble(ground_set).marginals() for m in (fitted, loaded))
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("kernel", "state"),
    [
        (vg.Kinds(3), {"center": [0.0], "centers": [[0.0, 1.0]]}),
        (vg.Kinds(3), {"center": [0.0, 0.0], "centers": []}),
        (vg.Kinds(3), {"center": [0.0, None], "centers": [[0.0, 1.0]]}),
        (vg.Metric(2), {"directions": [1.0, 2.0]}),
        (vg.Metric(2), {"directions": []}),
    ],
)
def test_damaged_files_are_refused(kernel, state, tmp_path):
    sets = one_of_each(4, seed=0)
    fitted = vg.LargeMarginDPP(kernel=kernel, max_iter=2, tol=10.0).fit(*sets)
    path = tmp_path / "m.json"
    fitted.save(path)
    document = json.loads(path.read_text())
    document["kernel"]["state"] = state
    path.write_text(json.dumps(document))
    with pytest.raises(ModelFileError):
        vg.load(path)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (vg.Kinds(0), "n_kinds must be a whole number of at least 1"),
        (vg.Kinds(sharpness=0.0), "sharpness must be a finite number > 0"),
        (vg.Kinds(epsilon=1.0), "epsilon must be below 1, got 1.0"),
        (vg.Kinds(epsilon=0.0), "epsilon must be a finite number > 0"),
        (vg.Kinds(penalty=-1.0), "penalty must be a finite number >= 0"),
        (vg.Kinds(block=3), "block must be a name or None"),
        (vg.Kinds(random_state=-1), "random_state of a kernel must be a whole number"),
        (vg.Metric(rank=0), "rank must be a whole number of at least 1"),
        (vg.Metric(bandwidth=-1.0), "bandwidth must be a finite number > 0"),
        (vg.Metric(penalty=np.nan), "penalty must be a finite number >= 0"),
    ],
)
def test_bad_settings(kernel, message):
    with pytest.raises(ValueError, match=message):
        vg.LargeMarginDPP(kernel=kernel).fit(*one_of_each(3, seed=0))


@pytest.mark.parametrize("kernel", [vg.Kinds(3), vg.Metric(2)], ids=["kinds", "metric"])
def test_bad_features(kernel):
    rng = np.random.default_rng(0)
    two = [vg.GroundSet(np.ones((4, 1)), rng.standard_normal((4, d))) for d in (3, 5)]
    with pytest.raises(ValueError, match=r"ground set 1: it has 5 similarity features"):
        vg.LargeMarginDPP(kernel=kernel).fit(two, [[0], [0]])
    fitted = vg.LargeMarginDPP(kernel=kernel, max_iter=2, tol=10.0)
    fitted.fit(two[:1], [[0]])
    with pytest.raises(ValueError, match="5 similarity features, but the kernel was "):
        fitted.ensemble(two[1])
    with pytest.raises(ValueError, match="not settled yet: call fit first"):
        kernel.prepare(two[0])


def test_a_metric_needs_items_that_differ():
    same = vg.GroundSet(np.ones((4, 1)), np.ones((4, 3)))
    with pytest.raises(ValueError, match="no two items differ in their similarity"):
        vg.LargeMarginDPP(kernel=vg.Metric(2)).fit([same], [[0]])


def test_fewer_items_than_kinds():
    rng = np.random.default_rng(0)
    few = vg.GroundSet(np.ones((3, 1)), rng.standard_normal((3, 4)))
    assert vg.Kinds(16).fit([few]).centers_.shape == (3, 4)


def test_a_product_of_domains():
    product = Product((Simplex(3), Free(2), Free(0)))
    assert product.size == 5
    rng = np.random.default_rng(0)
    for point in (product.center(), product.random(rng)):
        np.testing.assert_allclose(point[:3].sum(), 1.0)
        free = product.to_free(point)
        np.testing.assert_allclose(product.from_free(free), point, atol=1e-12)
    np.testing.assert_allclose(
        product.project(np.array([2.0, 0.0, 0.0, 5.0, -5.0])), [1, 0, 0, 5, -5]
    )
    slope, free = rng.standard_normal(5), rng.standard_normal(5)
    expected = reference.central_differences(
        lambda z: float(slope @ product.from_free(z)), free
    )
    np.testing.assert_allclose(product.pull_back(free, slope), expected, atol=1e-8)
