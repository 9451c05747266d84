"""Probabilities on tensors against the NumPy library and finite differences."""

import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import pad_sequence
from torch_cases import as_numbers, leaves, random_kernels, random_targets

import variegate as vg
import variegate.torch as vt


@pytest.mark.parametrize("as_given", [np.asarray, as_numbers])
def test_probabilities_as_by_numpy(device, as_given):
    rng = np.random.default_rng(0)
    L, subsets = random_kernels(rng, 6, 8), random_targets(rng, 6, 8)
    kernel = torch.tensor(L, device=device)
    found = vt.LEnsembles(kernel).log_prob(
        torch.tensor(as_given(subsets), device=device)
    )
    normalizer = vt.LEnsembles(kernel).log_normalizer()
    marginals, size = (
        vt.LEnsembles(kernel).marginals(),
        vt.LEnsembles(kernel).expected_size(),
    )
    for position in range(6):
        ensemble = vg.LEnsemble(L[position])
        expected = ensemble.log_prob(np.flatnonzero(subsets[position]))
        assert found[position].item() == pytest.approx(expected, rel=1e-10)
        assert normalizer[position].item() == pytest.approx(
            np.linalg.slogdet(L[position] + np.eye(8))[1], rel=1e-12
        )
        expected = ensemble.marginals()
        np.testing.assert_allclose(marginals[position].cpu(), expected, rtol=1e-10)
        assert size[position].item() == pytest.approx(expected.sum(), rel=1e-10)


def test_probabilities_sum_to_one(device):
    rng = np.random.default_rng(1)
    L = torch.tensor(random_kernels(rng, 1, 5, rank=3)[0], device=device)
    everything = torch.tensor(
        [[bool(number >> item & 1) for item in range(5)] for number in range(32)],
        device=device,
    )
    probabilities = vt.LEnsembles(L).log_prob(everything).exp()
    # Of rank three, so more than three items are never chosen.
    assert (probabilities[everything.sum(dim=1) > 3] == 0.0).all()
    assert probabilities.sum().item() == pytest.approx(1.0, abs=1e-12)
    chosen = (probabilities[:, None] * everything).sum(dim=0)
    torch.testing.assert_close(vt.LEnsembles(L).marginals(), chosen)


@pytest.mark.parametrize("low_rank", [False, True])
@pytest.mark.parametrize("jitter", [0.0, 0.1])
def test_gradients_against_finite_differences(device, low_rank, jitter):
    rng = np.random.default_rng(2)
    F, u = leaves(device, rng.normal(size=(2, 5, 3)), rng.normal(size=(2, 5)))
    mask = torch.ones(2, 5, dtype=torch.bool, device=device)
    mask[1, 3] = False
    subsets = torch.tensor([[0, 1], [2, -1]], device=device)

    def call(function, *given):
        def of(F, u):
            kernel = vt.LowRank(F) if low_rank else F @ F.mT
            ensembles = vt.LEnsembles(kernel, log_quality=u, mask=mask, jitter=jitter)
            return function(ensembles, *given)

        return of

    for function, *given in (
        (vt.LEnsembles.log_prob, subsets),
        (vt.LEnsembles.log_normalizer,),
        (vt.LEnsembles.marginals,),
        (vt.LEnsembles.expected_size,),
    ):
        assert torch.autograd.gradcheck(call(function, *given), (F, u))


def test_gradients_of_marginals_of_a_kernel(device):
    rng = np.random.default_rng(3)
    (F,) = leaves(device, 3.0 * rng.normal(size=(2, 4, 6)))
    assert torch.autograd.gradcheck(lambda F: vt.LEnsembles(F @ F.mT).marginals(), (F,))


@pytest.mark.parametrize("low_rank", [False, True])
def test_sets_of_different_sizes_side_by_side(device, low_rank):
    rng = np.random.default_rng(4)
    sizes = [3, 8, 2, 17]
    F = [torch.tensor(rng.normal(size=(n, 20)), device=device) for n in sizes]
    u = [torch.tensor(rng.normal(size=n), device=device) for n in sizes]
    mask = pad_sequence([torch.ones(n, dtype=torch.bool) for n in sizes], True)
    padded = pad_sequence(F, True)
    ensembles = vt.LEnsembles(
        vt.LowRank(padded) if low_rank else padded @ padded.mT,
        log_quality=pad_sequence(u, True),
        mask=mask.to(device),
    )
    marginals = ensembles.marginals()
    size, normalizer = ensembles.expected_size(), ensembles.log_normalizer()
    for position, n in enumerate(sizes):
        features = F[position]
        one = vt.LEnsembles(features @ features.mT, log_quality=u[position])
        torch.testing.assert_close(marginals[position, :n], one.marginals())
        torch.testing.assert_close(size[position], one.expected_size())
        torch.testing.assert_close(normalizer[position], one.log_normalizer())


def test_items_at_padding_are_never_chosen(device):
    L = torch.full((1, 3, 3), torch.nan, device=device)
    L[:, :2, :2] = torch.eye(2, device=device)
    mask = torch.tensor([[True, True, False]], device=device)
    assert vt.LEnsembles(L, mask=mask).marginals().tolist() == [
        pytest.approx([0.5, 0.5, 0.0])
    ]
    assert vt.LEnsembles(L, mask=mask).log_normalizer().item() == pytest.approx(
        np.log(4.0)
    )


def test_a_subset_without_probability(device):
    (L,) = leaves(device, np.ones((2, 3, 3)) + np.diag([1.0, 0.0, 0.0]))
    found = vt.LEnsembles(L).log_prob(torch.tensor([[0, 1], [1, 2]], device=device))
    assert found[1].item() == -np.inf
    assert found[0].item() == pytest.approx(np.log(1.0 / 7.0))
    found[0].backward()
    assert (L.grad[1] == 0.0).all()


def test_without_a_check_the_rest_goes_on(device):
    L = torch.diag_embed(torch.tensor([[1.0, 3.0], [1.0, -2.0]], device=device))
    calls = {
        vt.LEnsembles.marginals: [pytest.approx([0.5, 0.75]), [np.nan, np.nan]],
        vt.LEnsembles.expected_size: [pytest.approx(1.25), np.nan],
        vt.LEnsembles.log_normalizer: [pytest.approx(np.log(8.0)), np.nan],
    }
    for function, (first, second) in calls.items():
        found = function(vt.LEnsembles(L), check=False).tolist()
        assert found[0] == first
        np.testing.assert_array_equal(found[1], second)
        with pytest.raises(ValueError, match="set 1: its kernel is not positive semid"):
            function(vt.LEnsembles(L), check=True)
    subsets = torch.tensor([[0], [0]], device=device)
    found = vt.LEnsembles(L).log_prob(subsets, check=False).tolist()
    assert found[0] == pytest.approx(np.log(1.0 / 8.0))
    assert np.isnan(found[1])
    with pytest.raises(ValueError, match="set 1: its kernel is not positive semid"):
        vt.LEnsembles(L).log_prob(subsets, check=True)


def test_what_is_refused():
    bad = torch.diag(torch.tensor([1.0, -2.0]))
    for call in (
        lambda: vt.LEnsembles(bad).marginals(),
        lambda: vt.LEnsembles(bad).expected_size(),
        lambda: vt.LEnsembles(bad).log_normalizer(),
        lambda: vt.LEnsembles(bad).log_prob(torch.tensor([0])),
    ):
        with pytest.raises(ValueError, match="set 0: its kernel is not positive semid"):
            call()
    with pytest.raises(ValueError, match="subsets must be boolean, or item numbers"):
        vt.LEnsembles(torch.eye(2)).log_prob(torch.zeros(2))
    with pytest.raises(ValueError, match=r"subsets has shape \(3,\)"):
        vt.LEnsembles(torch.eye(2)).log_prob(torch.zeros(3, dtype=torch.bool))
    with pytest.raises(ValueError, match="jitter must be a finite number"):
        vt.LEnsembles(torch.eye(2), jitter=-1.0).marginals()
    ensembles = vt.LEnsembles(torch.eye(2), jitter=0.1)
    for choose in (ensembles.greedy, ensembles.sample):
        with pytest.raises(ValueError, match="add it to the diagonal"):
            choose()
