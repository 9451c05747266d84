"""Pairs, and an engine with a mind of its own, for tests of partitions."""

import pickle
import random
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

import variegate as vg
from variegate.partitions import PairPartitions
from variegate.partitions.engine import split_into_bundles, sum_bundle


def pairs_of(n_sets=60, seed=0):
    """Return ragged ground sets, and subsets that follow their features."""
    rng = np.random.default_rng(seed)
    pairs = []
    for _ in range(n_sets):
        n = int(rng.integers(3, 9))
        X = rng.normal(size=(n, 3))
        chosen = np.flatnonzero(X @ [1.0, -1.0, 0.5] + rng.normal(size=n) > 0.8)
        pairs.append((vg.GroundSet(X * [1.0, 2.0, 0.5] + [0.0, 3.0, 0.0]), chosen))
    return pairs


def lists(pairs):
    return [p[0] for p in pairs], [p[1] for p in pairs]


def cut(pairs, size):
    """Return pairs in partitions of a size."""
    parts = [pairs[k : k + size] for k in range(0, len(pairs), size)]
    return PairPartitions([partial(list, part) for part in parts])


class Threads:
    """An engine with its own mind: several at once, done in any order."""

    def __init__(self, n_threads, seed=0):
        self.pool = ThreadPoolExecutor(n_threads)
        self.rng = random.Random(seed)

    def _shuffled(self, function, items):
        order = list(range(len(items)))
        self.rng.shuffle(order)
        journey = lambda item: pickle.loads(pickle.dumps(function))(item)  # noqa: E731
        futures = {k: self.pool.submit(journey, items[k]) for k in order}
        return [futures[k].result() for k in range(len(items))]

    def map(self, function, items, progress=lambda *_: None, ordered=True):
        return iter(self._shuffled(function, items))

    def tree_sum(self, function, items, add):
        level = self._shuffled(function, items)
        while len(level) > 1:
            level = [sum_bundle(add, bundle) for bundle in split_into_bundles(level)]
        return level[0]


def assert_same_bits(one, other):
    assert one.theta_.tobytes() == other.theta_.tobytes()
    assert one.intercept_ == other.intercept_
    assert one.kernel_parameters_.tobytes() == other.kernel_parameters_.tobytes()
    assert one.history_ == other.history_
