"""Ground sets of several sizes, and small networks, for the tests of NeuralDPP."""

import numpy as np
import torch
from torch import nn

import variegate as vg
import variegate.torch as vt


def ragged(n_sets=24, seed=0, d=3, p=4):
    """The best item of each of two hidden kinds, in sets of two to nine items."""
    rng = np.random.default_rng(seed)
    ground_sets, subsets = [], []
    for _ in range(n_sets):
        n = int(rng.integers(2, 10))
        kind = rng.integers(2, size=n)
        features = rng.normal(size=(n, p)) + 3.0 * kind[:, None]
        quality = rng.normal(size=(n, d))
        best = [np.flatnonzero(kind == one) for one in np.unique(kind)]
        subsets.append(np.sort([of[np.argmax(quality[of, 0])] for of in best]))
        ground_sets.append(vg.GroundSet(quality, features))
    return ground_sets, subsets


def small(device, **settings):
    """A model that learns in a moment."""
    given = {
        "n_hidden": 8,
        "n_embedding": 4,
        "n_kinds": 4,
        "max_epochs": 4,
        "decoder": "greedy",
        "random_state": 0,
        "device": device,
    }
    return vt.NeuralDPP(**given | settings)


class Encoder(nn.Module):
    """A module of a user's own, with dropout and normalization over the batch."""

    def __init__(self, n_features=4, n_outputs=5):
        super().__init__()
        self.inward = nn.Linear(n_features, 6)
        self.norm = nn.BatchNorm1d(6)
        self.outward = nn.Linear(6, n_outputs)

    def forward(self, items):
        hidden = torch.relu(self.norm(self.inward(items)))
        return self.outward(nn.functional.dropout(hidden, 0.3, self.training))


def seeded_encoder(seed=0, **sizes):
    """Such a module, the same each time."""
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        return Encoder(**sizes)


def weights_of(model):
    """All numbers of a fitted network."""
    return {name: w.cpu() for name, w in model.network_.state_dict().items()}


def assert_same_weights(one, other):
    """Compare them bit by bit."""
    first, second = weights_of(one), weights_of(other)
    assert first.keys() == second.keys()
    for name, value in first.items():
        assert torch.equal(value, second[name]), name
