"""The law of the sampler, by chi-square tests on counts.

With fixed seeds a test either always passes or always fails; at the threshold of 1e-4
a correct sampler fails for one seed in ten thousand.
"""

import numpy as np
import pytest

import variegate as vg
from laws import KERNELS, P_VALUE, SIZE, factor, p_value
from variegate.linalg.compiled import elementary as compiled_elementary
from variegate.linalg.limits import COMPILED_SAMPLES, COMPILED_SAMPLES_TOGETHER
from variegate.linalg.spectrum import Eigenvectors
from variegate.sampling import elementary, sample_spectral, sequential, spectral
from variegate.sampling.chain import effective_sample_size, sample_chain

DRAWS = 20_000


REPRESENTATIONS = {
    "dense": vg.LEnsemble,
    "factored": lambda L: vg.LEnsemble.from_factor(factor(L)),
}


@pytest.fixture(params=["numpy", "compiled"])
def path(request, monkeypatch):
    """Draw by NumPy or by compiled loops, however many samples there are."""
    limit = np.inf if request.param == "numpy" else 0
    monkeypatch.setattr(spectral, "COMPILED_SAMPLES", limit)
    monkeypatch.setattr(spectral, "COMPILED_SAMPLES_TOGETHER", limit)
    return request.param


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("make", REPRESENTATIONS.values(), ids=REPRESENTATIONS)
@pytest.mark.parametrize("L", KERNELS.values(), ids=KERNELS)
def test_law(L, make):
    samples = make(L).sample(DRAWS, random_state=0)
    assert samples.shape == (DRAWS, SIZE)
    assert p_value(samples, L) > P_VALUE


@pytest.mark.parametrize("block", [4, 64])
@pytest.mark.parametrize("L", KERNELS.values(), ids=KERNELS)
def test_law_of_the_sequential_sampler(L, block, monkeypatch):
    monkeypatch.setattr(sequential, "_BLOCK", block)
    K = vg.LEnsemble(L).marginal_kernel()
    samples = sequential.sample_sequential(K, DRAWS // 8, np.random.default_rng(0))
    assert p_value(samples, L) > P_VALUE


@pytest.mark.parametrize("L", KERNELS.values(), ids=KERNELS)
def test_the_test_rejects_a_wrong_sampler(L):
    # Independent coins with the right marginals: the classic mistake.
    rng = np.random.default_rng(0)
    wrong = rng.random((DRAWS, SIZE)) < vg.LEnsemble(L).marginals()
    try:
        assert p_value(wrong, L) < P_VALUE
    except AssertionError as error:
        assert "impossible" in str(error)  # noqa: PT017 - drawing one is a rejection


def test_the_test_rejects_a_slightly_wrong_sampler():
    L = KERNELS["full rank"]
    values, vectors = np.linalg.eigh(L)
    keep = 1.1 * values / (1.0 + 1.1 * values)
    wrong = sample_spectral(
        keep, Eigenvectors(vectors.T.copy()), DRAWS, np.random.default_rng(0)
    )
    assert p_value(wrong, L) < P_VALUE


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("k", [0, 1, 3])
@pytest.mark.parametrize("make", REPRESENTATIONS.values(), ids=REPRESENTATIONS)
@pytest.mark.parametrize("L", KERNELS.values(), ids=KERNELS)
def test_law_of_a_fixed_number_of_items(L, make, k, scale):
    samples = make(L * scale).sample_k(k, DRAWS, random_state=0)
    assert (samples.sum(axis=1) == k).all()
    if k > 0:
        assert p_value(samples, L, k) > P_VALUE


def test_the_test_rejects_a_wrong_k_sampler():
    # Samples of three items by rejection from the wrong ensemble.
    L = KERNELS["full rank"]
    wrong = vg.LEnsemble(np.diag(np.diagonal(L))).sample_k(3, DRAWS, random_state=0)
    assert p_value(wrong, L, 3) < P_VALUE


@pytest.mark.parametrize(
    "choose",
    [compiled_elementary.choose_eigenvectors, spectral._choose_eigenvectors],
    ids=["compiled", "numpy"],
)
@pytest.mark.parametrize("scale", [1.0, 1e7, 1e-7])
def test_many_items_of_many_do_not_overflow(scale, choose):
    # A published library's polynomials overflow here, and the top eigenvector, which
    # is all but certain to be kept, is then never kept.
    rng = np.random.default_rng(0)
    n, k = 1000, 100
    X = rng.standard_normal((n, 10))
    L = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 20)
    values = np.linalg.eigvalsh(L)
    table = np.full((k + 1, n + 1), -np.inf)
    table[0] = 0.0
    log_values = np.log(np.maximum(values, 1e-300))
    for m in range(1, n + 1):
        table[1:, m] = np.logaddexp(
            table[1:, m - 1], table[:-1, m - 1] + log_values[m - 1]
        )
    expected = np.exp(log_values[-1] + table[k - 1, n - 1] - table[k, n])

    ensemble = vg.LEnsemble(L * scale)
    log_eigenvalues, _ = ensemble.representation.eigenpairs
    ours = spectral._log_polynomials(log_eigenvalues, k)
    kept = np.zeros((2000, n), dtype=bool)
    seeds = rng.integers(2**64, size=2000, dtype=np.uint64)
    choose(log_eigenvalues, ours, seeds, kept)
    assert (kept.sum(axis=1) == k).all()
    share = kept[:, n - 1].mean()
    assert share == pytest.approx(expected, abs=4 * np.sqrt(0.25 / 2000))
    assert expected > 0.99


def test_k_beyond_the_rank():
    with pytest.raises(ValueError, match=r"no subset of 4 items .*L has rank 3"):
        vg.LEnsemble(KERNELS["rank 3"]).sample_k(4)
    with pytest.raises(ValueError, match="k must be between 0 and 6 items, got 7"):
        vg.LEnsemble(KERNELS["rank 3"]).sample_k(7)


def test_samples_do_not_depend_on_how_many_are_drawn_after_them():
    # Each sample has a stream of its own.
    ensemble = vg.LEnsemble(KERNELS["full rank"])
    vectors = ensemble.representation.marginal_eigenpairs[1].all()
    kept = np.tile(np.arange(3), 4)
    seeds = np.arange(4, dtype=np.uint64)
    together, alone = np.empty(12, dtype=np.intp), np.empty(3, dtype=np.intp)
    draw = compiled_elementary.sample_elementary
    draw(vectors, kept, np.arange(5) * 3, seeds, together)
    draw(vectors, kept[:3], np.array([0, 3]), seeds[3:], alone)
    np.testing.assert_array_equal(together[9:], alone)
    spanning = np.tile(np.arange(len(vectors)) < 3, (4, 1))
    by_numpy = elementary.sample_elementary(vectors, spanning, seeds)
    alone = elementary.sample_elementary(vectors, spanning[:1], seeds[3:])
    np.testing.assert_array_equal(by_numpy[3], alone[0])


def ensemble_of(n_items, size, rank=None, seed=0):
    """Return an ensemble of some rank whose samples have ``size`` items on average."""
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((n_items, rank or n_items))
    values = np.linalg.svd(B, compute_uv=False) ** 2
    scale = np.geomspace(1e-6, 1e6, 2001)
    sizes = (scale[:, None] * values / (1.0 + scale[:, None] * values)).sum(axis=1)
    B *= np.sqrt(scale[np.argmin(np.abs(sizes - size))])
    return vg.LEnsemble.from_factor(B) if rank else vg.LEnsemble(B @ B.T)


@pytest.mark.parametrize(
    ("n_items", "size", "rank", "n"),
    [(1, 0.5, None, 50), (6, 2, None, 500), (12, 9, None, 500), (40, 13, None, 300),
     (70, 5, None, 300), (300, 8, 20, 50), (30, 4, 5, 300)],
)  # fmt: skip
def test_numpy_and_compiled_loops_draw_the_same(n_items, size, rank, n, monkeypatch):
    ensemble = ensemble_of(n_items, size, rank)
    drawn = []
    for limit in (np.inf, 0):
        monkeypatch.setattr(spectral, "COMPILED_SAMPLES", limit)
        k = max(1, int(size))
        drawn.append((ensemble.sample(n, 1), ensemble.sample_k(k, n, 1)))
    np.testing.assert_array_equal(drawn[0][0], drawn[1][0])
    np.testing.assert_array_equal(drawn[0][1], drawn[1][1])
    assert drawn[0][0].any()
    assert (drawn[0][1].sum(axis=1) == k).all()


def test_compiled_loops_draw_many_samples(monkeypatch):
    ensemble, by_numpy = ensemble_of(20, 5), elementary.sample_elementary
    work = 20 * ensemble.expected_size()
    calls = []

    def recorded(*arguments):
        calls.append(len(arguments[2]))
        return by_numpy(*arguments)

    monkeypatch.setattr(elementary, "sample_elementary", recorded)
    for n in (int(0.9 * COMPILED_SAMPLES / work), int(1.1 * COMPILED_SAMPLES / work)):
        ensemble.sample(n, 0)
    assert calls == [int(0.9 * COMPILED_SAMPLES / work)]
    few = ensemble.sample(10, 0)
    assert calls.pop() == 10
    ensemble.n_together = int(COMPILED_SAMPLES_TOGETHER / (10 * work)) + 1
    np.testing.assert_array_equal(ensemble.sample(10, 0), few)
    assert calls == [int(0.9 * COMPILED_SAMPLES / work)]


def test_same_seed_same_samples():
    ensemble = vg.LEnsemble(KERNELS["full rank"])
    first = ensemble.sample(50, random_state=3)
    np.testing.assert_array_equal(first, ensemble.sample(50, random_state=3))
    assert (first != ensemble.sample(50, random_state=4)).any()


def test_a_generator_is_advanced():
    ensemble = vg.LEnsemble(KERNELS["full rank"])
    rng = np.random.default_rng(3)
    assert (ensemble.sample(50, rng) != ensemble.sample(50, rng)).any()


def test_bad_random_state():
    with pytest.raises(ValueError, match="random_state must be None"):
        vg.LEnsemble(np.eye(2)).sample(1, random_state="seed")


def test_a_legacy_random_state_is_advanced():
    ensemble = vg.LEnsemble(KERNELS["full rank"])
    legacy = np.random.RandomState(0)
    first, second = (ensemble.sample(50, legacy) for _ in range(2))
    assert (first != second).any()
    again = ensemble.sample(50, np.random.RandomState(0))
    np.testing.assert_array_equal(first, again)


# The Markov chain ------------------------------------------------------------------


@pytest.mark.parametrize("make", REPRESENTATIONS.values(), ids=REPRESENTATIONS)
@pytest.mark.parametrize("k", [None, 2])
@pytest.mark.parametrize("name", ["full rank", "rank 3", "twins"])
def test_law_of_the_chain(name, k, make):
    # Sixty steps between states of six items leave no correlation to speak of.
    L = KERNELS[name]
    chain = sample_chain(make(L), DRAWS, k, thin=60, random_state=0)
    assert chain.samples.shape == (DRAWS, SIZE)
    assert p_value(chain.samples, L, k) > P_VALUE
    assert 0.0 < chain.acceptance < 1.0
    assert chain.effective_size > 0.5 * DRAWS


def test_the_chain_test_rejects_a_chain_that_has_not_moved():
    L = KERNELS["full rank"]
    stuck = sample_chain(vg.LEnsemble(L), DRAWS, thin=1, burn_in=0, random_state=0)
    assert stuck.effective_size < 0.5 * DRAWS
    assert p_value(stuck.samples, L) < P_VALUE


@pytest.mark.parametrize("bandwidth", [0.3, 3.0, 30.0])
@pytest.mark.parametrize("k", [None, 5])
def test_the_chain_always_finds_a_start(bandwidth, k):
    X = np.random.default_rng(0).standard_normal((60, 4))
    L = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / bandwidth**2)
    chain = sample_chain(vg.LEnsemble(L), 20, k, random_state=0)
    assert all(vg.LEnsemble(L).log_prob(y) > -np.inf for y in chain.samples)


def test_the_chain_agrees_with_exact_marginals():
    X = np.random.default_rng(1).standard_normal((40, 3))
    L = 2 * np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    ensemble = vg.LEnsemble(L)
    chain = sample_chain(ensemble, 4000, random_state=0)
    error = np.abs(chain.samples.mean(axis=0) - ensemble.marginals())
    assert error.max() < 5 * np.sqrt(0.25 / chain.effective_size) + 0.02
    again = sample_chain(ensemble, 4000, random_state=0)
    np.testing.assert_array_equal(chain.samples, again.samples)


def test_effective_sample_size_of_a_known_process():
    # An autoregression with coefficient a has n (1 - a) / (1 + a) effective samples.
    rng = np.random.default_rng(0)
    x, values = 0.0, []
    for noise in rng.standard_normal(200_000):
        x = 0.8 * x + noise
        values.append(x)
    assert effective_sample_size(values) == pytest.approx(200_000 / 9, rel=0.1)
    assert effective_sample_size(np.ones(10)) == 10.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "n must be a whole number of at least 1"),
        ({"thin": 0}, "thin must be a whole number of at least 1"),
        ({"burn_in": -1}, "burn_in must not be negative"),
        ({"k": 4}, "no subset of 4 items was found"),
    ],
)
def test_bad_chains(options, message):
    with pytest.raises(ValueError, match=message):
        sample_chain(vg.LEnsemble(KERNELS["rank 3"]), **options)
