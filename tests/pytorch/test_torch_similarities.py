"""Similarities on tensors against the kernels of the library."""

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import nn

import variegate as vg
import variegate.torch as vt
from instances import KERNELS
from variegate.torch import similarities

#: The kernels that have a module.
WITH_MODULE = (vg.Linear, vg.Gaussian, vg.MultipleKernel, vg.Kinds, vg.Metric)


def has_module(case):
    kernel = case.kernel
    return (
        isinstance(kernel, WITH_MODULE)
        and getattr(kernel, "approximation", None) is None
        and getattr(kernel, "blocks", None) is None
    )


CASES = [case for case in KERNELS if has_module(case)]
LEARNED = [case for case in CASES if not isinstance(case.kernel, vg.FixedKernel)]


def instance(case, n=7, seed=0):
    """A ground set, a fitted kernel, and parameters of it."""
    rng = np.random.default_rng(seed)
    ground_sets = [
        vg.GroundSet(rng.standard_normal((n, 3)), case.features(rng, n))
        for _ in range(3)
    ]
    kernel = case.kernel.fit(ground_sets)
    return ground_sets[0], kernel, kernel.domain.random(rng)


def on(device, features):
    dense = features.toarray() if sparse.issparse(features) else np.array(features)
    return torch.from_numpy(dense).to(device)


def module_of(kernel, parameters):
    """Return the module with the parameters of a fitted kernel."""
    if isinstance(kernel, vg.Linear):
        return vt.LinearSimilarity(kernel.normalize)
    if isinstance(kernel, vg.Gaussian):
        return vt.GaussianSimilarity([kernel.bandwidth], False, kernel.anchored)
    if isinstance(kernel, vg.MultipleKernel):
        (bandwidths,) = kernel.bandwidths_.values()
        linear = bool(kernel.linear)
        module = vt.GaussianSimilarity(bandwidths.tolist(), linear, kernel.anchored)
        values = {"roots": np.sqrt(parameters)}
    elif isinstance(kernel, vg.Metric):
        weight = kernel.weights(parameters)
        module, values = vt.MetricSimilarity(weight.shape[1]), {"weight": weight}
    else:
        weight, bias = kernel.weights(parameters)
        module = vt.KindsSimilarity(weight.shape[1])
        odds = np.log(kernel.epsilon / (1.0 - kernel.epsilon)) + parameters[-1]
        values = {"weight": weight, "bias": bias, "log_odds": odds}
    for name, value in values.items():
        setattr(module, name, nn.Parameter(torch.tensor(value, dtype=torch.float64)))
    return module


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_module_is_its_kernel(case, device):
    ground_set, kernel, parameters = instance(case)
    items = on(device, ground_set.features(getattr(kernel, "block", None)))
    if isinstance(kernel, vg.Kinds):
        items = items - torch.from_numpy(kernel.center_).to(device)
    S = module_of(kernel, parameters).to(device)(items)
    expected = kernel.value(kernel.prepare(ground_set), parameters)
    np.testing.assert_allclose(S.detach().cpu(), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("case", LEARNED, ids=str)
def test_gradients_are_those_of_the_kernel(case, device):
    ground_set, kernel, parameters = instance(case)
    items = on(device, ground_set.features(getattr(kernel, "block", None)))
    rng = np.random.default_rng(1)
    G = rng.standard_normal((len(ground_set),) * 2)
    G = G + G.T
    wanted = kernel.pull_back(kernel.prepare(ground_set), parameters, G)
    found = gradient_in_parameters(kernel, parameters, items, torch.from_numpy(G))
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-11)


def gradient_in_parameters(kernel, parameters, items, G):
    """The gradient of ``⟨G, S⟩`` in the parameters, by PyTorch."""
    at = torch.tensor(parameters, device=items.device, requires_grad=True)
    if isinstance(kernel, vg.MultipleKernel):
        (bandwidths,) = kernel.bandwidths_.values()
        parts = [*similarities.gaussians(items, bandwidths, kernel.anchored)]
        if kernel.linear:
            parts.append(similarities.linear(items))
        S = sum(weight * part for weight, part in zip(at, parts, strict=True))
    elif isinstance(kernel, vg.Metric):
        start = torch.from_numpy(kernel.directions_).to(items)
        S = similarities.metric(items, start + at.view_as(start))
    else:
        weight, bias = (
            torch.from_numpy(start).to(items)
            for start in kernel.weights(np.zeros(len(parameters)))
        )
        center = torch.from_numpy(kernel.center_).to(items)
        S = similarities.kinds(
            similarities.unit_rows(items - center),
            weight + at[: weight.numel()].view_as(weight),
            bias + at[weight.numel() : -1],
            torch.sigmoid(np.log(kernel.epsilon / (1.0 - kernel.epsilon)) + at[-1]),
        )
    (slope,) = torch.autograd.grad((G.to(items) * S).sum(), at)
    return slope.cpu()


@pytest.mark.parametrize("n_features", [1, 5, 300])
def test_squared_distances(n_features, device):
    rng = np.random.default_rng(2)
    X = 100.0 + rng.standard_normal((2, 6, n_features))
    X[:, 1] = X[:, 0]  # twins
    found = similarities.squared_distances(torch.from_numpy(X).to(device)).cpu()
    expected = ((X[:, :, None] - X[:, None]) ** 2).sum(axis=-1)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-9)
    assert (torch.diagonal(found, dim1=1, dim2=2) == 0.0).all()
    if n_features < 256:
        assert (found[:, 0, 1] == 0.0).all()


@pytest.mark.parametrize("n_features", [3, 260])
def test_gradients_in_features_are_right(n_features, device):
    torch.manual_seed(0)
    X = torch.randn(2, 4, n_features, dtype=torch.float64, device=device)
    X.requires_grad_()
    check = torch.autograd.gradcheck
    assert check(similarities.squared_distances, X, fast_mode=True)
    assert check(lambda x: similarities.linear(x, normalize=True), X, fast_mode=True)


def test_small_distances_keep_their_digits(device):
    X = torch.tensor([[1e6], [1e6 + 1e-4]], dtype=torch.float64, device=device)
    apart = float(X[1, 0] - X[0, 0])
    assert similarities.squared_distances(X)[0, 1].item() == apart**2


def test_items_of_zeros_stay_and_have_a_finite_slope(device):
    X = torch.zeros(3, 2, dtype=torch.float64, device=device)
    X[0] = torch.tensor([3.0, 4.0])
    X[1] = 1e-200
    X.requires_grad_()
    S = similarities.linear(X, normalize=True)
    S.sum().backward()
    expected = [[1.0, 7 / 50**0.5, 0.0], [7 / 50**0.5, 1.0, 0.0], [0.0, 0.0, 0.0]]
    np.testing.assert_allclose(S.detach().cpu(), expected, atol=1e-15)
    assert torch.isfinite(X.grad).all()


@pytest.mark.parametrize(
    "similarity",
    [
        vt.LinearSimilarity(),
        vt.GaussianSimilarity([1.0, 2.0]),
        vt.GaussianSimilarity([1.0], anchored=True),
        vt.KindsSimilarity(4, n_kinds=3),
        vt.MetricSimilarity(4, rank=3),
    ],
    ids=["linear", "gaussian", "anchored", "kinds", "metric"],
)
def test_an_encoder_learns_through_every_similarity(similarity, device):
    torch.manual_seed(0)
    encoder = nn.Linear(6, 4)
    module = nn.Sequential(encoder, similarity).to(device)
    X = torch.randn(2, 5, 6, device=device)
    S = module(X)
    assert S.shape == (2, 5, 5)
    assert torch.linalg.eigvalsh(S.detach().double()).min() > -1e-5
    S[:, 0, 1:].sum().backward()
    assert encoder.weight.grad.abs().sum() > 0.0
    torch.testing.assert_close(module(X[1]), S[1])


def test_learning_weights_keeps_them_on_the_simplex(device):
    module = vt.GaussianSimilarity([0.5, 1.0, 4.0]).to(device)
    X = torch.randn(6, 3, device=device)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    for _ in range(5):
        optimizer.zero_grad()
        module(X).sum().backward()
        optimizer.step()
    weights = module.weights.detach().cpu()
    assert (weights >= 0.0).all()
    assert weights.sum().item() == pytest.approx(1.0)
    assert weights.max() > 0.3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: vt.GaussianSimilarity([0.0]), "a bandwidth must be a finite number"),
        (lambda: vt.GaussianSimilarity([], linear=False), "at least one bandwidth"),
        (lambda: vt.KindsSimilarity(0), "n_features must be a whole number"),
        (lambda: vt.KindsSimilarity(2, epsilon=1.0), "epsilon must be below 1"),
        (lambda: vt.MetricSimilarity(2, rank=0), "rank must be a whole number"),
    ],
)
def test_bad_settings_are_refused_in_words(make, message):
    with pytest.raises(ValueError, match=message):
        make()
