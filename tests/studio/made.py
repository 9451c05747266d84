"""Groups of rows with a rule that can be learned, for tests of the studio."""

import numpy as np

import variegate as vg
from variegate.material.base import Item

N_KINDS = 4


def group(rng, n_items=12):
    """Return items of four kinds, and the best of each by the first number."""
    kind = rng.integers(N_KINDS, size=n_items)
    vectors = np.eye(N_KINDS)[kind] + 0.1 * rng.standard_normal((n_items, N_KINDS))
    quality = rng.standard_normal((n_items, 3))
    best = [
        np.flatnonzero(kind == k)[np.argmax(quality[kind == k, 0])]
        for k in range(N_KINDS)
        if (kind == k).any()
    ]
    return vg.GroundSet(quality, vectors), np.sort(np.array(best))


def groups(n_groups, seed=0, n_items=12):
    """Return groups and their picks."""
    rng = np.random.default_rng(seed)
    return [group(rng, n_items) for _ in range(n_groups)]


class MadeMaterial:
    """Made groups as material; nothing of it is in a file."""

    kind = "table"
    nouns = ("row", "rows")
    prior = None

    def __init__(self, n_groups=10, seed=0, n_items=12):
        made = groups(n_groups, seed, n_items)
        self.sets = [one for one, _ in made]
        self.wanted = [picks for _, picks in made]
        self.names = [f"group {number}" for number in range(n_groups)]
        self.sizes = [len(one) for one in self.sets]
        self.feature_names = ["good", "noise", "more noise"]
        self.kernels = {"4 kinds": vg.Kinds(4), "linear": vg.Linear()}

    def ground_set(self, group):
        """Return the features of a group."""
        return self.sets[group]

    def given(self, group):
        """Return no given items."""
        return self.sets[group].given

    def limits(self, group):
        """Return no limits."""
        return {}

    def values(self, group, item):
        """Return the numbers as text."""
        return [f"{value:.3f}" for value in self.sets[group].quality[item]]

    def items(self, group):
        """Return names."""
        return [Item(f"item {n}") for n in range(self.sizes[group])]
