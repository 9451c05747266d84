"""The law of samples drawn in batches, by chi-square tests on counts.

With fixed seeds a test either always passes or always fails; at the threshold of 1e-4
a correct sampler fails for one seed in ten thousand.
"""

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

import variegate as vg
import variegate.torch as vt
from laws import KERNELS, P_VALUE, SIZE, exact_probabilities, factor, p_value
from variegate.torch import sampling
from variegate.torch.greedy import DenseResiduals, FactoredResiduals
from variegate.torch.sampling import elementary_mixture, marginal_roots

torch.set_num_threads(1)

DRAWS = 20_000

FORMS = {
    "matrix": lambda L, device: torch.as_tensor(L, device=device),
    "features": lambda L, device: vt.LowRank(torch.as_tensor(factor(L), device=device)),
}


def as_array(subsets, n_items=SIZE):
    return subsets.indicator(n_items).cpu().numpy()


@pytest.fixture(params=[2**20, 2**15], ids=["one block", "blocks"])
def blocks(request, monkeypatch):
    """Temporaries of different sizes."""
    for name in ("_BLOCK_ENTRIES", "_COINS"):
        for device in ("cpu", "cuda"):
            monkeypatch.setitem(getattr(sampling, name), device, request.param)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("L", KERNELS.values(), ids=KERNELS)
def test_law(L, form, device, blocks):
    samples = vt.LEnsembles(form(L, device)).sample(DRAWS, generator=0)
    assert samples.items.shape[0] == DRAWS
    chosen = as_array(samples)
    assert (chosen.sum(axis=1) == samples.sizes.cpu().numpy()).all()
    assert p_value(chosen, L) > P_VALUE


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("k", [0, 1, 3])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("L", KERNELS.values(), ids=KERNELS)
def test_law_of_a_fixed_number_of_items(L, form, k, scale, device):
    samples = vt.LEnsembles(form(L * scale, device)).sample(DRAWS, k, generator=1)
    assert (samples.sizes == k).all()
    if k > 0:
        assert p_value(as_array(samples), L, k) > P_VALUE


def test_the_test_rejects_a_wrong_sampler(device):
    # The right sampler of a kernel that is a tenth too large.
    L = KERNELS["full rank"]
    wrong = vt.LEnsembles(torch.as_tensor(1.1 * L, device=device)).sample(
        DRAWS, generator=0
    )
    assert p_value(as_array(wrong), L) < P_VALUE
    other = torch.as_tensor(np.diag(np.diagonal(L)), device=device)
    wrong = vt.LEnsembles(other).sample(DRAWS, 3, generator=0)
    assert p_value(as_array(wrong), L, 3) < P_VALUE


def random_sets(n_sets, seed=0):
    """Similarities of all ranks, with qualities and items that are not there."""
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((n_sets, SIZE, SIZE))
    for s in range(n_sets):
        F[s, :, 2 + s % (SIZE - 1) :] = 0.0
    F /= np.linalg.norm(F, axis=2, keepdims=True)
    mask = rng.random((n_sets, SIZE)) < 0.85
    mask[:, :2] = True
    return F, rng.normal(0.0, 1.0, (n_sets, SIZE)), mask


def kernel_of(F, u, mask):
    B = np.where(mask, np.exp(u), 0.0)[:, None] * F
    return B @ B.T


@pytest.mark.parametrize("low_rank", [False, True])
@pytest.mark.parametrize("k", [None, 2])
@pytest.mark.parametrize("n", [1, DRAWS // 8])
def test_law_of_each_set_of_a_batch(n, k, low_rank, device, blocks):
    # Four sets, each as often in the batch as makes enough draws of it together.
    F, u, mask = random_sets(4)
    times = DRAWS // 8 // n
    repeated = [torch.as_tensor(np.repeat(x, times, 0), device=device) for x in (F, u)]
    features, log_quality = repeated
    kernel = vt.LowRank(features) if low_rank else features @ features.mT
    samples = vt.LEnsembles(
        kernel,
        log_quality=log_quality,
        mask=torch.as_tensor(np.repeat(mask, times, axis=0), device=device),
    ).sample(n, k, generator=2)
    chosen = as_array(samples).reshape(4, -1, SIZE)
    for s in range(4):
        L = kernel_of(F[s], u[s], mask[s])
        rank = np.linalg.matrix_rank(L)
        assert not chosen[s][:, ~mask[s]].any()
        there = chosen[s][:, mask[s]]
        assert p_of_batch(there, F[s][mask[s]], u[s][mask[s]], rank, k) > P_VALUE


def p_of_batch(samples, F, u, rank, k):
    """As p_value, with the rank given, for which rational numbers take rounding."""
    B = np.exp(u)[:, None] * F
    weights = {}
    for code in range(2 ** len(B)):
        y = [i for i in range(len(B)) if code >> i & 1]
        possible = len(y) <= rank and (k is None or len(y) == k)
        weights[code] = np.linalg.det(B[y] @ B[y].T) if possible else 0.0
    expected = np.array([weights[code] for code in range(2 ** len(B))])
    expected *= len(samples) / expected.sum()
    counts = np.bincount(samples @ (1 << np.arange(len(B))), minlength=len(expected))
    assert not counts[expected == 0].any()
    rare = expected < 5
    counts = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    keep = expected > 1
    expected = expected[keep] * counts[keep].sum() / expected[keep].sum()
    return chisquare(counts[keep], expected).pvalue


@pytest.mark.parametrize("spread", [5.0, 20.0, 300.0])
@pytest.mark.parametrize("rank", [3, 30])
def test_the_law_of_widely_spread_qualities(spread, rank, device):
    # Against the library, whose law is tested with rational numbers.
    rng = np.random.default_rng(7)
    for _ in range(2):
        F = rng.standard_normal((20, rank))
        F /= np.linalg.norm(F, axis=1, keepdims=True)
        u = rng.uniform(-spread, spread, 20)
        expected = vg.LEnsemble.from_quality(F @ F.T, u).marginals()
        tensors = [torch.as_tensor(x, device=device) for x in (F, u)]
        for kernel in (tensors[0] @ tensors[0].mT, vt.LowRank(tensors[0])):
            samples = vt.LEnsembles(kernel, log_quality=tensors[1]).sample(
                4000, generator=3
            )
            share = as_array(samples, 20).mean(axis=0)
            deviation = np.sqrt(expected * (1.0 - expected) / 4000)
            assert (np.abs(share - expected) <= 5 * deviation + 1e-3).all()


@pytest.mark.parametrize("rank", [10, 60, 80])
@pytest.mark.parametrize("spread", [0.0, 5.0, 20.0, 100.0, 300.0])
def test_marginal_kernels_whatever_the_qualities(spread, rank, device):
    rng = np.random.default_rng(10)
    F = rng.standard_normal((60, rank))
    F /= np.linalg.norm(F, axis=1, keepdims=True)
    u = rng.uniform(-spread, spread, 60)
    expected = vg.LEnsemble.from_quality(F @ F.T, u).marginal_kernel()
    features, log_quality = (torch.as_tensor(x, device=device)[None] for x in (F, u))
    mask = torch.ones_like(log_quality, dtype=torch.bool)
    dense = DenseResiduals(features @ features.mT, log_quality, mask, 60)
    factored = FactoredResiduals(features, log_quality, mask, rank, keep_columns=True)
    for residuals in (dense, factored):
        mixture = elementary_mixture(marginal_roots(residuals, min(rank, 60), None)[0])
        V, kept = mixture.vectors[0].cpu().numpy(), mixture.kept[0].cpu().numpy()
        np.testing.assert_allclose((V.T * kept) @ V, expected, rtol=0, atol=2e-13)
        # Those that are kept with some probability are orthonormal.
        V = V[kept > 1e-6]
        np.testing.assert_allclose(V @ V.T, np.eye(len(V)), rtol=0, atol=1e-9)


def test_marginals_and_sizes_of_many_items(device, blocks):
    rng = np.random.default_rng(8)
    X = rng.standard_normal((200, 3))
    L = 0.5 * np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    ensemble = vg.LEnsemble(L)
    n = 4000
    samples = vt.LEnsembles(torch.as_tensor(L, device=device)).sample(n, generator=4)
    share, expected = as_array(samples, 200).mean(axis=0), ensemble.marginals()
    assert (np.abs(share - expected) < 5 * np.sqrt(expected / n)).all()
    law = ensemble.size_distribution() * n
    counts = np.bincount(samples.sizes.cpu().numpy(), minlength=len(law))
    common = law > 5
    counts = np.append(counts[common], counts[~common].sum())
    assert chisquare(counts, np.append(law[common], law[~common].sum())).pvalue > 1e-4


def test_a_k_dpp_of_many_items(device):
    # Pairs of items, as often together as in samples of the library.
    rng = np.random.default_rng(9)
    X = rng.standard_normal((60, 2))
    u = rng.normal(0.0, 6.0, 60)
    S = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    ours = vt.LEnsembles(
        torch.as_tensor(S, device=device), log_quality=torch.as_tensor(u, device=device)
    ).sample(DRAWS, 10, generator=5)
    theirs = vg.LEnsemble.from_quality(S, u).sample_k(10, DRAWS, random_state=0)
    a, b = as_array(ours, 60).astype(float), theirs.astype(float)
    pairs_a, pairs_b = a.T @ a / DRAWS, b.T @ b / DRAWS
    deviation = np.sqrt(2 * pairs_b.clip(1e-3) / DRAWS)
    assert (np.abs(pairs_a - pairs_b) < 6 * deviation).all()


@pytest.mark.parametrize("k", [None, 2])
def test_eigenvalues_that_are_all_the_same(k, device):
    L = 1.5 * np.eye(SIZE)
    samples = vt.LEnsembles(torch.as_tensor(L, device=device)).sample(
        DRAWS, k, generator=8
    )
    assert p_value(as_array(samples), L, k) > P_VALUE


def test_in_turn_as_by_eigenvectors(device, monkeypatch):
    L = KERNELS["graded"]
    batch = torch.as_tensor(np.stack([L] * (DRAWS // 4)), device=device)
    samples = vt.LEnsembles(batch).sample(4, generator=6)
    assert p_value(as_array(samples).reshape(-1, SIZE), L) > P_VALUE
    monkeypatch.setattr(vt.choosing, "_SAMPLES_IN_TURN", 0)
    samples = vt.LEnsembles(batch[:1000]).sample(4, generator=6)
    assert p_value(as_array(samples).reshape(-1, SIZE), L) > P_VALUE


def test_seeds_and_generators(device):
    L = torch.as_tensor(KERNELS["full rank"], device=device)
    first = vt.LEnsembles(L).sample(50, generator=3).items
    torch.testing.assert_close(first, vt.LEnsembles(L).sample(50, generator=3).items)
    assert not torch.equal(
        vt.LEnsembles(L).sample(50, generator=3).indicator(SIZE),
        vt.LEnsembles(L).sample(50, generator=4).indicator(SIZE),
    )
    stream = torch.Generator(device=device).manual_seed(3)
    torch.testing.assert_close(
        first, vt.LEnsembles(L).sample(50, generator=stream).items
    )
    advanced = vt.LEnsembles(L).sample(50, generator=stream).indicator(SIZE)
    assert not torch.equal(
        advanced, vt.LEnsembles(L).sample(50, generator=3).indicator(SIZE)
    )
    torch.manual_seed(5)
    default = vt.LEnsembles(L).sample(50).items
    torch.manual_seed(5)
    torch.testing.assert_close(default, vt.LEnsembles(L).sample(50).items)


def test_items_ascend_and_are_padded(device):
    L = torch.as_tensor(KERNELS["full rank"], device=device)
    items, sizes = vt.LEnsembles(L).sample(200, generator=0)
    for row, size in zip(items.tolist(), sizes.tolist(), strict=True):
        assert row[:size] == sorted(set(row[:size]))
        assert row[size:] == [-1] * (len(row) - size)
    assert items.shape[1] == sizes.max()


def test_shapes(device):
    zeros = torch.zeros((3, 3), device=device)
    assert vt.LEnsembles(zeros).sample(4).items.shape == (4, 0)
    assert vt.LEnsembles(zeros.expand(2, 3, 3)).sample(4).items.shape == (2, 4, 0)
    assert vt.LEnsembles(zeros.expand(0, 3, 3)).sample(4).items.shape == (0, 4, 0)
    many = 1e6 * torch.eye(3, device=device)
    assert vt.LEnsembles(many).sample(2, 3).items.tolist() == [[0, 1, 2]] * 2


def test_rational_numbers_agree_with_the_batch_reference():
    L = KERNELS["full rank"]
    F, u = np.linalg.cholesky(L), np.zeros(SIZE)
    samples = vg.LEnsemble(L).sample(DRAWS, random_state=0)
    assert p_of_batch(samples, F, u, SIZE, None) == pytest.approx(
        p_value(samples, L), rel=0.5
    )
    assert sum(exact_probabilities(L).values()) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "n must be a whole number of at least 1"),
        ({"k": 7}, "k must be between 0 and 6 items, got 7"),
        ({"k": 4}, "set 0: no subset of 4 items .*: its kernel has rank 3"),
        ({"generator": "seed"}, "generator must be a torch.Generator"),
        ({"generator": -1}, "generator must be a torch.Generator"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(ValueError, match=message):
        vt.LEnsembles(torch.as_tensor(KERNELS["rank 3"])).sample(**options)


def test_a_log_quality_that_is_not_a_number():
    kernel, u = torch.as_tensor(KERNELS["rank 3"]), torch.full((6,), torch.nan)
    with pytest.raises(ValueError, match=r"set 0: .*not finite"):
        vt.LEnsembles(kernel, log_quality=u).sample()
