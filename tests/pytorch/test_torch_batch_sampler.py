"""Diverse mini-batches: each item once, and more diverse than chance."""

import itertools

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

import variegate.torch as vt

torch.set_num_threads(1)


def clusters(n, rng, n_clusters=10):
    kinds = rng.integers(0, n_clusters, n)
    centres = 4.0 * rng.standard_normal((n_clusters, 8))
    return centres[kinds] + 0.5 * rng.standard_normal((n, 8)), kinds


X, KINDS = clusters(700, np.random.default_rng(0))


def sampler(device, batch_size=16, X=X, **options):
    return vt.DPPBatchSampler(X, batch_size, device=device, **options)


@pytest.mark.parametrize("pool", [1, 2, 5])
@pytest.mark.parametrize("batch_size", [7, 33, 699, 700])
def test_every_item_once_an_epoch(device, batch_size, pool):
    some = sampler(device, batch_size, pool=pool)
    for _ in range(2):
        batches = list(some)
        assert len(batches) == len(some)
        assert all(len(batch) == batch_size for batch in batches[:-1])
        assert sorted(itertools.chain(*batches)) == list(range(len(X)))


def test_what_makes_no_whole_batch_is_dropped(device):
    some = sampler(device, 33, drop_last=True)
    batches = list(some)
    assert {len(batch) for batch in batches} == {33}
    assert len(batches) == len(some) == 700 // 33
    assert len(set(itertools.chain(*batches))) == 33 * len(some)


def test_a_batch_follows_its_law(device):
    # One stream of six items in two batches: the first is drawn from all of them.
    rng = np.random.default_rng(1)
    points = rng.standard_normal((6, 2))
    some = sampler(device, 3, points, bandwidth=1.0)
    S = np.exp(-((points[:, None] - points) ** 2).sum(axis=2))
    V = np.linalg.eigh(S)[1][:, -3:]
    subsets = list(itertools.combinations(range(6), 3))
    law = np.array([np.linalg.det((V @ V.T)[np.ix_(y, y)]) for y in subsets])
    assert law.sum() == pytest.approx(1.0)
    n = 1000
    drawn = [tuple(sorted(next(iter(some)))) for _ in epochs(some, n)]
    counts = np.array([drawn.count(y) for y in subsets])
    rare = law * n < 5
    counts = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(law[~rare], law[rare].sum()) * n
    assert chisquare(counts, expected).pvalue > 1e-4
    # And a random batch would not pass.
    wrong = np.full(len(subsets), n / len(subsets))
    wrong = np.append(wrong[~rare], wrong[rare].sum())
    assert chisquare(counts, wrong).pvalue < 1e-4


def epochs(some, n):
    for epoch in range(n):
        some.set_epoch(epoch)
        yield epoch


def kinds_a_batch(batches, kinds):
    return np.mean([len(set(kinds[batch])) for batch in batches])


def random_batches(n, batch_size, rng):
    order = rng.permutation(n)
    whole = n // batch_size * batch_size
    return order[:whole].reshape(-1, batch_size)


def test_batches_are_more_diverse_than_chance(device):
    rng = np.random.default_rng(2)
    ours = list(sampler(device, 10, drop_last=True))
    chance = [kinds_a_batch(random_batches(700, 10, rng), KINDS) for _ in range(200)]
    # Of ten kinds, chance gives 6.5 to a batch of ten.
    assert kinds_a_batch(ours, KINDS) > max(chance) + 1.0


def test_batches_of_digits(device):
    digits, labels = load_digits(return_X_y=True)
    some = sampler(device, 16, digits, drop_last=True)
    ours = [*some, *some]
    rng = np.random.default_rng(3)
    chance = [*random_batches(1797, 16, rng), *random_batches(1797, 16, rng)]
    assert kinds_a_batch(ours, labels) > kinds_a_batch(chance, labels) + 0.5
    unit = digits / np.linalg.norm(digits, axis=1, keepdims=True)

    def likeness(batches):
        return np.mean([(unit[b] @ unit[b].T).sum() - 16 for b in batches]) / 240

    assert likeness(ours) < likeness(chance) - 0.004


def test_a_real_data_loader(device):
    data = TensorDataset(torch.as_tensor(X), torch.arange(len(X)))
    loader = DataLoader(data, batch_sampler=sampler(device, 32))
    assert len(loader) == 22
    seen = torch.cat([number for _, number in loader])
    assert sorted(seen.tolist()) == list(range(len(X)))
    again = torch.cat([number for _, number in loader])
    assert sorted(again.tolist()) == list(range(len(X)))
    assert not torch.equal(seen, again)  # another epoch


def test_seeds_and_epochs(device):
    first = list(sampler(device, seed=1))
    assert first == list(sampler(device, seed=1))
    assert first != list(sampler(device, seed=2))
    some = sampler(device, seed=1)
    list(some)
    assert some.epoch == 1
    second = list(some)
    assert second != first
    some.set_epoch(0)
    assert list(some) == first
    other = sampler(device, seed=1)
    other.set_epoch(1)
    assert list(other) == second


def test_an_iteration_begins_at_the_beginning(device):
    some = sampler(device)
    head = list(itertools.islice(some, 5))
    assert list(some)[:5] == head


def test_streams_are_drawn_a_few_at_a_time(device, monkeypatch):
    # 175 batches in five streams, three of which are drawn from together.
    monkeypatch.setattr("variegate.torch.batch_sampler._STREAMS", 3)
    batches = list(sampler(device, 4))
    assert len(batches) == 175
    assert sorted(itertools.chain(*batches)) == list(range(len(X)))


def test_arrays_tensors_and_memory_maps(device, tmp_path):
    path = tmp_path / "embeddings.npy"
    np.save(path, X)
    expected = list(sampler(device))
    assert list(sampler(device, X=np.load(path, mmap_mode="r"))) == expected
    assert list(sampler(device, X=torch.as_tensor(X))) == expected
    own = vt.DPPBatchSampler(torch.as_tensor(X, device=device), 16)
    assert own.device.type == torch.device(device).type
    assert list(own) == expected


def test_equal_items(device):
    some = sampler(device, 8, np.ones((60, 3)))
    assert sorted(itertools.chain(*some)) == list(range(60))
    whole_numbers = np.arange(60).reshape(60, 1) // 2
    assert sorted(itertools.chain(*sampler(device, 8, whole_numbers))) == list(
        range(60)
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"embeddings": [[1.0]]},
            "embeddings must be an array, a memory map or a tens",
        ),
        ({"embeddings": np.ones(3)}, r"one row an item; got shape \(3,\)"),
        ({"embeddings": np.array([["a"]])}, "embeddings must hold real numbers"),
        ({"embeddings": torch.ones(3, 2).bool()}, "embeddings must hold real numbers"),
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1"),
        ({"pool": 1.5}, "pool must be a whole number of at least 1"),
        ({"bandwidth": 0.0}, "bandwidth must be a finite number > 0"),
        ({"drop_last": 1}, "drop_last must be True or False"),
        ({"seed": -1}, "seed must be a whole number of at least 0"),
        ({"batch_size": 701, "drop_last": True}, "700 items make no batch of 701"),
        ({"embeddings": np.ones((0, 3))}, "0 items make no batch"),
    ],
)
def test_bad_settings(options, message):
    with pytest.raises(ValueError, match=message):
        vt.DPPBatchSampler(**{"embeddings": X, "batch_size": 16, **options})


def test_rows_that_are_not_finite_are_named(device):
    spoilt = X.copy()
    spoilt[77, 3] = np.nan
    with pytest.raises(ValueError, match="row 77 of the embeddings is not finite"):
        list(sampler(device, X=spoilt, bandwidth=1.0))


def test_an_epoch_is_a_whole_number():
    with pytest.raises(ValueError, match="epoch must be a whole number"):
        sampler("cpu").set_epoch(-1)
