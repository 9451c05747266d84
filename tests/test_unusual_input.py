"""Input that is unusual but has one meaning, and input whose meaning would be lost."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_predict

import variegate as vg
from variegate.decoding import MBR, ExpectedF
from variegate.partitions import PairPartitions
from variegate.tables import TableSelector


@pytest.fixture(scope="module")
def data():
    return vg.datasets.make_synthetic(n_sets=8, random_state=0)


# NumPy scalars ------------------------------------------------------------------------

SCALARS = [
    {"lam": np.float32(0.5)},
    {"lam": np.int64(1)},
    {"l2": np.float32(0.5)},
    {"omega": np.float16(2.0)},
    {"max_iter": np.int32(500)},
    {"fit_intercept": np.bool_(False)},
    {"random_state": np.int64(3)},
    {"decoder": MBR(n_samples=np.int64(10))},
    {"decoder": ExpectedF(beta=np.float32(2.0))},
    {"kernel": vg.Gaussian(np.float32(1.0))},
]


@pytest.mark.parametrize("settings", SCALARS, ids=str)
def test_models_with_numpy_scalars_are_saved(settings, data, tmp_path):
    settings = {"random_state": 0} | settings
    model = vg.LargeMarginDPP(**settings).fit(data.ground_sets, data.subsets)
    model.save(tmp_path / "model.json")
    again = vg.load(tmp_path / "model.json")
    for mine, other in zip(
        model.predict(data.ground_sets), again.predict(data.ground_sets), strict=True
    ):
        np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize("settings", [{"lam": 0.5}, {"l2": 1}])
def test_checkpoints_of_runs_with_numpy_scalars(settings, data, tmp_path):
    path, seen = tmp_path / "run", []
    pairs = PairPartitions(
        [lambda: zip(data.ground_sets, data.subsets, strict=True)], key="data"
    )

    def stop_after_three(step):
        seen.append(path.exists())
        if len(seen) == 3:
            raise KeyboardInterrupt

    def model(kind=float):
        given = {name: kind(value) for name, value in settings.items()}
        return vg.LargeMarginDPP(max_iter=8, random_state=0, **given)

    with pytest.raises(KeyboardInterrupt):
        model(np.float32).set_params(callback=stop_after_three).fit(
            pairs, checkpoint=path
        )
    assert path.exists()
    # A run with equal numbers of another type is the same run.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        resumed, whole = model().fit(pairs, checkpoint=path), model().fit(pairs)
    np.testing.assert_array_equal(resumed.theta_, whole.theta_)


# Complex numbers ----------------------------------------------------------------------

COMPLEX = np.eye(3) * (1 + 1j)
TAKES_NUMBERS = {
    "quality": lambda: vg.GroundSet(COMPLEX),
    "similarity": lambda: vg.GroundSet(np.eye(3), COMPLEX),
    "sparse": lambda: vg.GroundSet(np.eye(3), sparse.csr_array(COMPLEX)),
    "costs": lambda: vg.GroundSet(np.eye(3), costs=COMPLEX[0] + 1),
    "L": lambda: vg.LEnsemble(COMPLEX),
    "S": lambda: vg.LEnsemble.from_quality(COMPLEX, np.zeros(3)),
    "log_quality": lambda: vg.LEnsemble.from_quality(np.eye(3), COMPLEX[0]),
    "factor": lambda: vg.LEnsemble.from_factor(COMPLEX),
    "decode": lambda: vg.LEnsemble(np.eye(3)).decode("greedy", None, 2.0, COMPLEX[0]),
    "embeddings": lambda: vg.select(COMPLEX, k=2),
    "relevance": lambda: vg.select(np.eye(3), COMPLEX[0], k=2),
    "loss": lambda: vg.large_margin_loss(COMPLEX, [0]),
}


@pytest.mark.parametrize("name", TAKES_NUMBERS)
def test_complex_numbers_are_refused(name):
    with pytest.raises(ValueError, match="complex"):
        TAKES_NUMBERS[name]()


# Features and subsets -----------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array]
)
def test_sparse_features_are_copied(kind):
    features = kind(np.eye(3))
    ground_set = vg.GroundSet(np.eye(3), features)
    features.data[:] = 7.0
    np.testing.assert_array_equal(ground_set.similarity.toarray(), np.eye(3))


def test_names_of_blocks_that_are_equal_as_text_are_refused():
    with pytest.raises(ValueError, match="two blocks of similarity are called '1'"):
        vg.GroundSet(np.eye(3), {1: np.eye(3), "1": np.eye(3)})


@pytest.mark.parametrize(
    "subset",
    [
        np.array([True, False, True], dtype=object),
        np.array([np.True_, np.False_, np.True_], dtype=object),
        np.array([0, 2], dtype=object),
        pd.Series([True, False, True], dtype=object),
    ],
)
def test_subsets_of_python_objects(subset):
    ensemble = vg.LEnsemble(np.diag([1.0, 2.0, 3.0]))
    assert ensemble.log_prob(subset) == ensemble.log_prob([0, 2])


@pytest.mark.parametrize(
    ("subset", "message"),
    [
        (np.array([True, 2], dtype=object), "not both"),
        (np.array([0, None], dtype=object), "object values"),
        (np.array([0, "1"], dtype=object), "object values"),
        (np.array([True, False], dtype=object), "mask has length 2"),
    ],
)
def test_other_objects_are_refused(subset, message):
    with pytest.raises(ValueError, match=message):
        vg.LEnsemble(np.eye(3)).log_prob(subset)


def test_samples_of_no_stated_size_are_refused():
    with pytest.raises(ValueError, match="k must be a whole number, got None"):
        vg.LEnsemble(np.eye(3)).sample_k(None)


def test_a_chain_over_no_items_stays_at_the_empty_subset():
    drawn = vg.sampling.sample_chain(vg.LEnsemble(np.zeros((0, 0))), 5)
    assert drawn.samples.shape == (5, 0)
    assert drawn.effective_size == 5.0


# Estimators ---------------------------------------------------------------------------


@pytest.mark.parametrize("first", [True, False])
def test_partial_fit_goes_on_when_the_intercept_comes_or_goes(first, data):
    model = vg.LargeMarginDPP(fit_intercept=first)
    model.partial_fit(data.ground_sets, data.subsets, n_steps=3)
    before = model.theta_
    model.set_params(fit_intercept=not first)
    model.partial_fit(data.ground_sets, data.subsets)
    # A step of Adam is no longer than its rate in a coordinate: it went on from there.
    assert np.abs(model.theta_ - before).max() <= 0.05 + 1e-9
    assert (model.intercept_ != 0.0) == (not first)


@pytest.mark.parametrize("n_items", [(4, 6, 9, 5), (5, 5, 5, 5)])
def test_cross_val_predict_returns_one_subset_a_ground_set(n_items):
    rng = np.random.default_rng(0)
    ground_sets = [vg.GroundSet(rng.standard_normal((n, 2))) for n in n_items]
    subsets = [np.flatnonzero(gs.quality[:, 0] > 0) for gs in ground_sets]
    found = cross_val_predict(
        vg.LargeMarginDPP(random_state=0), ground_sets, subsets, cv=2
    )
    assert len(found) == 4
    for part, rest in (([0, 1], [2, 3]), ([2, 3], [0, 1])):
        model = vg.LargeMarginDPP(random_state=0).fit(
            [ground_sets[i] for i in rest], [subsets[i] for i in rest]
        )
        expected = model.predict([ground_sets[i] for i in part])
        for i, subset in zip(part, expected, strict=True):
            np.testing.assert_array_equal(found[i], subset)


# Choosing -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(30))
def test_mmr_does_not_depend_on_the_scale_of_relevance(seed):
    rng = np.random.default_rng(seed)
    # Few values of both, so that many scores are equal.
    embeddings = np.eye(3)[rng.integers(0, 3, 12)]
    relevance = rng.integers(0, 3, 12) / 10.0
    orders = [
        vg.select(embeddings, scale * relevance + shift, 12, "mmr", diversity=0.5)
        for scale in (1.0, 3.0, 0.1, 1e-9, 1e9)
        for shift in (0.0, scale)
    ]
    for order in orders[1:]:
        np.testing.assert_array_equal(order, orders[0])


@pytest.mark.parametrize("decoder", ["relaxed", "local"])
def test_no_feasible_case_is_refused(decoder):
    """Against all subsets: of independent rows, exactly k, within the budget."""
    n_feasible = 0
    for seed in [*range(60), 372]:  # of the last, greedy repair ends too early
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 7))
        B = rng.integers(-2, 3, (n, int(rng.integers(1, n + 1)))).astype(float)
        B *= np.exp(rng.normal(0, rng.choice([0.1, 2]), (n, 1)))
        costs = rng.integers(1, 5, n).astype(float)
        k, budget = int(rng.integers(1, n + 1)), float(rng.integers(1, 10))
        feasible = any(
            costs[list(y)].sum() <= budget and np.linalg.matrix_rank(B[list(y)]) == k
            for y in itertools.combinations(range(n), k)
        )
        n_feasible += feasible
        ensemble = vg.LEnsemble(B @ B.T)
        if not feasible:
            with pytest.raises(ValueError, match=r"no subset of|no \d+ items fit"):
                ensemble.decode(decoder, k, budget, costs)
            continue
        chosen = ensemble.decode(decoder, k, budget, costs).indices
        assert len(chosen) == k
        assert costs[chosen].sum() <= budget
        assert np.linalg.matrix_rank(B[chosen]) == k
    assert n_feasible >= 15


@pytest.mark.parametrize("unit", [0.1, 0.7, 1.1, 1e-3])
def test_tables_and_ensembles_round_budgets_alike(unit):
    """A budget that is met exactly on paper has room for all, however it is summed."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"g": np.repeat(np.arange(4), 10), "x": rng.random(40)})
    table["cost"] = unit
    table["wanted"] = table["x"] > 0.5
    selector = TableSelector(group="g", label="wanted", cost="cost").fit(table)
    for k in range(1, 11):
        budget = k * unit
        ensemble = vg.LEnsemble(np.eye(10))
        found = ensemble.decode("greedy", k, budget, np.full(10, unit))
        assert len(found) == k
        chosen = selector.choose(table, k=k, budget=budget).selected
        assert chosen.reshape(4, 10).sum(axis=1).tolist() == [k] * 4
