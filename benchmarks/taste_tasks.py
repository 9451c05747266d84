"""Tasks with known truths: what is shown of items, and who chose among them how.

A task makes tables to learn from and to be judged by.  Their columns are ``group``,
``chosen``, ``q0``, ``q1``, ... for the quality, and for the similarity ``vector`` or
``s0``, ``s1``, ...
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from sklearn.datasets import load_digits, load_wine

import variegate as vg
from variegate.tables import make_table

COLUMNS = {"group": "group", "label": "chosen", "quality": "q*"}


@dataclass(frozen=True)
class Group:
    """The items of a group: what is shown of them, and which were chosen."""

    quality: np.ndarray
    similarity: np.ndarray
    chosen: np.ndarray


@dataclass(frozen=True)
class Task:
    """A truth; ``make(rng, n_train, n_test)`` returns two lists of groups."""

    name: str
    make: Callable[..., tuple[list[Group], list[Group]]]
    #: Whether the truth goes by kinds that were there in training.
    has_kinds: bool = False
    #: Whether the similarity is a vector, or numbers with units of their own.
    is_vector: bool = True

    def tables(self, seed, n_train, n_test):
        """Return a table to learn from, and one to be judged by."""
        rng = np.random.default_rng([sum(map(ord, self.name)), seed])
        parts = self.make(rng, n_train, n_test)
        return [as_table(part, self.is_vector) for part in parts]

    @property
    def columns(self):
        """What the columns of its tables are."""
        return COLUMNS | {"similarity": "vector" if self.is_vector else "s*"}


def as_table(groups, is_vector):
    """Return groups as one table."""
    sizes = [len(group.quality) for group in groups]
    chosen = [
        np.isin(np.arange(n), g.chosen) for n, g in zip(sizes, groups, strict=True)
    ]
    columns = {
        "group": np.repeat(np.arange(len(groups)), sizes),
        "chosen": np.concatenate(chosen).astype(np.int8),
    }
    quality = np.concatenate([group.quality for group in groups])
    columns |= {f"q{i}": column for i, column in enumerate(quality.T)}
    similarity = np.concatenate([group.similarity for group in groups])
    if is_vector:
        flat = pa.array(similarity.ravel())
        columns["vector"] = pa.FixedSizeListArray.from_arrays(flat, similarity.shape[1])
    else:
        columns |= {f"s{i}": column for i, column in enumerate(similarity.T)}
    return pa.table(columns)


def best_of_each(kind, merit):
    """Return the item of the greatest merit of each kind."""
    items = [np.flatnonzero(kind == one) for one in np.unique(kind)]
    return np.sort([of[np.argmax(merit[of])] for of in items])


def times(n, make):
    """Return so many groups."""
    return [make() for _ in range(n)]


def editor(n_kinds, n_here, noise=0.25, styles=4, are_new=False, n_items=24, d=64):
    """Return a truth: the best item of each hidden kind.

    A vector is the sum of what its kind is, of a style that has nothing to do with it,
    and of noise; merit is a sum of numbers that are seen and a little that is not.
    """

    def make(rng, n_train, n_test):
        n_all = 2 * n_kinds if are_new else n_kinds
        basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
        kinds = 0.6 * rng.standard_normal((n_all, 12)) @ basis[:12]
        taste = rng.standard_normal(4)

        def group(among):
            here = rng.choice(among, n_here, replace=False)
            kind = rng.choice(here, n_items)
            vectors = kinds[kind] + noise * rng.standard_normal((n_items, d))
            vectors += rng.standard_normal((n_items, styles)) @ basis[12 : 12 + styles]
            quality = rng.standard_normal((n_items, 4))
            merit = quality @ taste + 0.3 * rng.standard_normal(n_items)
            return Group(quality, vectors, best_of_each(kind, merit))

        old, new = np.arange(n_kinds), np.arange(n_all)[-n_kinds:]
        return times(n_train, lambda: group(old)), times(n_test, lambda: group(new))

    return make


def digits(rng, n_train, n_test):
    """20 pictures a page, the sharpest of each digit; no picture is in both parts."""
    data = load_digits()
    pictures = data.images / 16.0
    sharp = sum((np.diff(pictures, axis=a) ** 2).sum(axis=(1, 2)) for a in (1, 2))
    quality = np.column_stack([sharp, pictures.mean(axis=(1, 2))])
    vectors = data.data / 16.0
    order = rng.permutation(len(pictures))

    def page(among):
        items = rng.choice(among, 20, replace=False)
        chosen = best_of_each(data.target[items], sharp[items])
        return Group(quality[items], vectors[items], chosen)

    first, second = order[:900], order[900:]
    return times(n_train, lambda: page(first)), times(n_test, lambda: page(second))


def wine(rng, n_train, n_test):
    """15 wines, the darkest of each cultivar; no wine is in both parts."""
    data = load_wine()
    colour = data.data[:, data.feature_names.index("color_intensity")]
    order = rng.permutation(len(colour))

    def table(among):
        items = rng.choice(among, 15, replace=False)
        chosen = best_of_each(data.target[items], colour[items])
        return Group(colour[items, None], data.data[items], chosen)

    half = len(order) // 2
    return (
        times(n_train, lambda: table(order[:half])),
        times(n_test, lambda: table(order[half:])),
    )


def search(rng, n_train, n_test):
    """Return the generated table of the five minutes, 50 results of each query."""

    def groups(n):
        table = make_table(n, 50, random_state=int(rng.integers(2**31)))
        names = ("score", "freshness", "popularity")
        kinds = table["kind"].to_numpy(zero_copy_only=False)
        quality = [table[name].to_numpy() for name in names]
        quality += [(kinds == one).astype(float) for one in sorted(set(kinds))]
        quality, vectors = (
            np.column_stack(quality),
            np.array(table["embedding"].to_pylist()),
        )
        chosen = np.asarray(table["chosen"]).astype(bool)
        return [
            Group(quality[rows], vectors[rows], np.flatnonzero(chosen[rows]))
            for rows in (slice(50 * one, 50 * one + 50) for one in range(n))
        ]

    return groups(n_train), groups(n_test)


def gaussians(rng, n_train, n_test):
    """Choose the most probable set of a DPP of several Gaussians, greedily."""
    theta = rng.standard_normal(5)

    def group():
        quality, points = rng.standard_normal((24, 5)), rng.standard_normal((24, 6))
        squared = ((points[:, None] - points[None]) ** 2).sum(axis=-1)
        S = (
            0.5 * np.exp(-squared / 2.0)
            + 0.3 * np.exp(-squared / 12.0)
            + 0.2 * np.eye(24)
        )
        q = np.exp(0.5 * quality @ theta - 0.3)
        L = q[:, None] * S * q
        return Group(quality, points, vg.LEnsemble(L).decode("greedy").indices)

    return times(n_train, group), times(n_test, group)


def two_stage(method, d):
    """Return a truth that is relevance, and then an untrained method, six items."""

    def make(rng, n_train, n_test):
        theta = rng.standard_normal(5)

        def group():
            quality, vectors = (
                rng.standard_normal((24, 5)),
                rng.standard_normal((24, d)),
            )
            score = quality @ theta + 0.3 * rng.standard_normal(24)
            return Group(quality, vectors, vg.select(vectors, score, 6, method))

        return times(n_train, group), times(n_test, group)

    return make


TASKS = [
    Task("digits", digits, has_kinds=True),
    Task("wine", wine, has_kinds=True, is_vector=False),
    Task("12 kinds", editor(12, 8), has_kinds=True),
    Task("50 kinds", editor(50, 14), has_kinds=True),
    Task("new kinds", editor(12, 8, noise=0.1, styles=0, are_new=True)),
    Task("new kinds, styles", editor(12, 8, are_new=True)),
    Task("search results", search),
    Task("DPP of Gaussians", gaussians, is_vector=False),
    Task("regression + DPP", two_stage("dpp", 16)),
    Task("regression + MMR", two_stage("mmr", 8)),
]
