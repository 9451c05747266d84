"""Log-odds of being wanted by boosted trees: a quality feature that is not linear.

The quality of a model is linear in its features.  Trees add thresholds and interactions
of features, as one more feature: their log-odds.  Rows that a model of trees was fitted
to get log-odds that are too good, so that a weight learned from them would be too
large.  :meth:`BoostedQuality.fit_out_of_fold` therefore scores every row by trees that
were fitted to other groups, and these scores are to be learned from.

scikit-learn fits the trees; they are kept as plain numbers, so that model files need
neither pickle nor another package.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from variegate._random import as_generator
from variegate._typing import BoolArray, FloatArray, IntArray, RandomState
from variegate._validation import check_count
from variegate.files.model_format import ModelFileError
from variegate.files.schema import ListOf, Number, Record

__all__ = ["BoostedQuality"]

#: The largest numbers of rows, and of their values, that trees are fitted to.
MAX_ROWS = 100_000
MAX_VALUES = 4_000_000

#: Leaves of a tree: a byte has a bit for each.
MAX_LEAVES = 8

#: Trees of a model that is read, and their features.
MAX_TREES = 1000
MAX_FEATURES = 1_000_000

#: Rows of a leaf, except where there are fewer than fifty times as many in all.
_LEAF_ROWS = 20

#: Settings of scikit-learn's ``GradientBoostingClassifier``.
_SETTINGS: Mapping[str, Any] = {
    "n_estimators": 120,
    "learning_rate": 0.05,
    "max_leaf_nodes": MAX_LEAVES,
    "subsample": 0.5,
    "max_features": 0.3,
}

#: Rows that are scored at a time.
_CHUNK = 256

_Floats: TypeAlias = npt.NDArray[np.float32]
_Bytes: TypeAlias = npt.NDArray[np.uint8]

_FLOAT32 = np.finfo(np.float32)
_CHILD = Number(-MAX_LEAVES, most=MAX_LEAVES, is_whole=True)
_SHAPE = Record(
    {
        "n_features": Number(1, most=MAX_FEATURES, is_whole=True),
        "prior": Number(),
        "trees": ListOf(
            Record(
                {
                    "feature": ListOf(Number(0, is_whole=True), most=MAX_LEAVES - 1),
                    "threshold": ListOf(
                        Number(float(_FLOAT32.min), most=float(_FLOAT32.max)),
                        most=MAX_LEAVES - 1,
                    ),
                    "left": ListOf(_CHILD, most=MAX_LEAVES - 1),
                    "right": ListOf(_CHILD, most=MAX_LEAVES - 1),
                    "value": ListOf(Number(), least=1, most=MAX_LEAVES),
                }
            ),
            most=MAX_TREES,
        ),
    }
)


@dataclass(frozen=True)
class _Tree:
    """A tree of splits, the root first, and leaves.

    A row goes left at a split if its ``feature`` is at most the ``threshold``.  A child
    is the number of a later split, or ``-1 - n`` for the leaf with number ``n``.
    """

    feature: tuple[int, ...]
    threshold: tuple[float, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]
    value: tuple[float, ...]

    @classmethod
    def from_sklearn(cls, tree: Any, learning_rate: float) -> Self:
        """Return a copy of a fitted tree of scikit-learn, values times the rate."""
        is_leaf = tree.children_left < 0
        number = np.where(is_leaf, -np.cumsum(is_leaf), np.cumsum(~is_leaf) - 1)
        splits = np.flatnonzero(~is_leaf)
        return cls(
            tuple(tree.feature[splits].tolist()),
            tuple(_round_down(tree.threshold[splits]).tolist()),
            tuple(number[tree.children_left[splits]].tolist()),
            tuple(number[tree.children_right[splits]].tolist()),
            tuple((learning_rate * tree.value[is_leaf, 0, 0]).tolist()),
        )

    def check(self, n_features: int) -> None:
        """Raise ModelFileError unless these are the splits and leaves of one tree."""
        n_splits = len(self.feature)
        parts = (self.threshold, self.left, self.right, self.value[1:])
        if any(len(part) != n_splits for part in parts):
            raise ModelFileError("a tree's lists do not have one entry for each split")
        if max(self.feature, default=0) >= n_features:
            raise ModelFileError(
                f"a tree splits by feature {max(self.feature)} of {n_features}"
            )
        children = [*self.left, *self.right]
        every = [*range(-len(self.value), 0), *range(1, n_splits)]
        is_late = all(
            child < 0 or child > parent
            for parent, pair in enumerate(zip(self.left, self.right, strict=True))
            for child in pair
        )
        if n_splits and (sorted(children) != every or not is_late):
            raise ModelFileError(
                "a tree's splits and leaves must each be the child of one earlier split"
            )

    def leaf_order(self) -> tuple[list[int], list[int]]:
        """Return leaf numbers from left to right, and a number for each split.

        Its bit ``i`` tells whether the leaf at place ``i`` is below the left child.
        """
        below = {-1 - leaf: [leaf] for leaf in range(len(self.value))}
        n_splits = len(self.feature)
        for split in reversed(range(n_splits)):
            below[split] = below[self.left[split]] + below[self.right[split]]
        order = below[0 if n_splits else -1]
        place = {leaf: position for position, leaf in enumerate(order)}
        bits = [sum(1 << place[leaf] for leaf in below[child]) for child in self.left]
        return order, bits


@dataclass(frozen=True, eq=False)
class BoostedQuality:
    r"""Log-odds of being wanted by boosted trees.

    The log-odds of a row :math:`x` are :math:`b + \sum_t v_t(x)`, where :math:`v_t(x)`
    is the value of the leaf of tree :math:`t` that the row falls into.  They are not
    standardized: 0 stands for even odds, and a weight of 1 uses them as they are.  To
    standardize, take mean and scale of the scores out of fold for new rows too.

    Make one with :meth:`fit_out_of_fold` or :meth:`decode`.

    Examples
    --------
    >>> import numpy as np
    >>> from variegate.estimator import BoostedQuality
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((600, 2))
    >>> groups = np.arange(600) // 10
    >>> model, scores = BoostedQuality.fit_out_of_fold(X, X[:, 0] * X[:, 1] > 0, groups)
    >>> model.scores([[1.0, 1.0], [1.0, -1.0]]) > 0.0
    array([ True, False])
    """

    n_features: int
    prior: float
    trees: tuple[_Tree, ...]

    # Learning ---------------------------------------------------------------------

    @classmethod
    def fit_out_of_fold(
        cls,
        X: npt.ArrayLike,
        wanted: npt.ArrayLike,
        groups: npt.ArrayLike,
        n_folds: int = 5,
        random_state: RandomState = 0,
        *,
        max_values: int = MAX_VALUES,
    ) -> tuple[Self, FloatArray]:
        """Fit to all rows, and score each row by trees fitted to other groups.

        Groups are dealt to folds of equal numbers at random.  Of more than 100,000
        rows, or more values than ``max_values``, trees are fitted to a sample of whole
        groups; all rows are scored.

        Parameters
        ----------
        X : array (n_rows, n_features)
        wanted : array of bool (n_rows,)
        groups : array of int (n_rows,)
            Rows with the same number are in the same fold.
        n_folds : int, default=5
            At most as many as there are groups.
        random_state : None, int or numpy.random.Generator, default=0
        max_values : int, default=4,000,000
            The largest number of values of ``X`` that trees are fitted to, except that
            two groups are used in any case.  Fitting takes about 5 µs a value and fold.

        Returns
        -------
        model : BoostedQuality
            Fitted to all rows, or the sample, for rows of new groups.
        scores : array (n_rows,)
            Log-odds of every row by a model that did not see its group.
        """
        X, wanted, groups = _check_rows(X, wanted, groups)
        check_count("n_folds", n_folds, least=2)
        check_count("max_values", max_values)
        rng = as_generator(random_state)
        names, group = np.unique(groups, return_inverse=True)
        n_folds = min(n_folds, len(names))
        place = rng.permutation(len(names))
        fold = (place % n_folds)[group]
        used = _choose_rows(group, place, min(MAX_ROWS, max_values // X.shape[1]))
        model, others = cls.fit_by_fold(X[used], wanted[used], fold[used], n_folds, rng)
        scores = np.empty(len(X))
        for number, other in enumerate(others):
            scores[fold == number] = other.scores(X[fold == number])
        return model, scores

    @classmethod
    def fit_by_fold(
        cls,
        X: npt.ArrayLike,
        wanted: npt.ArrayLike,
        fold: npt.ArrayLike,
        n_folds: int,
        random_state: RandomState = 0,
    ) -> tuple[Self, list[Self]]:
        """Return a model fitted to all rows, and a list of models without each fold.

        ``fold`` is the number of each row's fold, from 0; ``X`` and ``wanted`` are as
        for :meth:`fit_out_of_fold`.
        """
        X, wanted, fold = _check_rows(X, wanted, fold)
        seeds = as_generator(random_state).integers(2**31, size=n_folds + 1).tolist()
        others = [
            cls._fit(X[fold != number], wanted[fold != number], seeds[number])
            for number in range(n_folds)
        ]
        return cls._fit(X, wanted, seeds[-1]), others

    @classmethod
    def _fit(cls, X: _Floats, wanted: BoolArray, seed: int) -> Self:
        """Return a model of all rows, without trees if all or none are wanted."""
        n_rows, n_wanted = len(X), int(wanted.sum())
        if n_wanted in (0, n_rows):
            prior = np.log((n_wanted + 0.5) / (n_rows - n_wanted + 0.5))
            return cls(X.shape[1], float(prior), ())
        classifier = _make_classifier(n_rows, seed).fit(X, wanted)
        share = classifier.init_.class_prior_[1]
        prior = float(np.log(share / (1.0 - share)))
        trees = [one.tree_ for one in classifier.estimators_[:, 0]]
        rate = classifier.learning_rate
        return cls(
            X.shape[1], prior, tuple(_Tree.from_sklearn(one, rate) for one in trees)
        )

    # Scoring ----------------------------------------------------------------------

    def scores(self, X: npt.ArrayLike) -> FloatArray:
        """Return the log-odds of rows ``X`` (n_rows, n_features) to be wanted.

        Numbers are compared in single precision, as scikit-learn does.
        """
        X = _as_features(X)
        if X.shape[1] != self.n_features:
            raise ValueError(
                f"X has {X.shape[1]} features, but the trees were fitted to "
                f"{self.n_features}: give the same features in the same order"
            )
        found = np.full(len(X), self.prior)
        for start in range(0, len(X) if self.trees else 0, _CHUNK):
            rows = slice(start, start + _CHUNK)
            found[rows] += self._sum_of_leaves(X[rows])
        return found

    @cached_property
    def _arrays(self) -> tuple[IntArray, _Floats, _Bytes, FloatArray]:
        """Features, thresholds and leaf bits (splits, trees); values (trees, leaves).

        Bit ``i`` of a split tells whether the leaf at place ``i`` from the left is in
        its left branch.  Splits that a tree lacks send no row right.
        """
        n_trees, n_splits = len(self.trees), MAX_LEAVES - 1
        feature = np.zeros((n_splits, n_trees), dtype=np.intp)
        threshold = np.full((n_splits, n_trees), np.inf, dtype=np.float32)
        bits = np.zeros((n_splits, n_trees), dtype=np.uint8)
        value = np.zeros((n_trees, MAX_LEAVES))
        for t, tree in enumerate(self.trees):
            order, left = tree.leaf_order()
            size = len(left)
            feature[:size, t] = tree.feature
            threshold[:size, t] = _round_down(np.array(tree.threshold))
            bits[:size, t] = left
            value[t, : len(order)] = np.array(tree.value)[order]
        return feature, threshold, bits, value

    def _sum_of_leaves(self, X: _Floats) -> FloatArray:
        """Return the sum (n,) of the values of the leaves that each row falls into.

        A split that sends a row right rules out the leaves on its left.  Of the leaves
        that no split of the tree rules out, the row is in the leftmost (Lucchese et
        al., QuickScorer, 2015).
        """
        feature, threshold, bits, value = self._arrays
        goes_right = X.T[feature] > threshold[..., None]
        ruled_out = np.bitwise_or.reduce(
            goes_right.view(np.uint8) * bits[..., None], axis=0
        )
        leaf = _FIRST_ZERO[ruled_out]
        leaf += np.arange(0, value.size, MAX_LEAVES)[:, None]
        return np.asarray(value.ravel()[leaf].sum(axis=0))

    # Keeping ----------------------------------------------------------------------

    def encode(self) -> dict[str, Any]:
        """Return the model as plain values: "n_features", "prior" and "trees"."""
        return {
            "n_features": self.n_features,
            "prior": self.prior,
            "trees": [
                {name: list(part) for name, part in vars(tree).items()}
                for tree in self.trees
            ],
        }

    @classmethod
    def decode(cls, document: Any, place: str = "boosted_quality") -> Self:
        """Return the model of plain values, whose ``place`` in a file errors name.

        SchemaError or ModelFileError is raised for values that are not such a model.
        """
        _SHAPE.check(document, place)
        n_features = document["n_features"]
        trees = tuple(
            _Tree(**{name: tuple(part) for name, part in tree.items()})
            for tree in document["trees"]
        )
        for number, tree in enumerate(trees):
            try:
                tree.check(n_features)
            except ModelFileError as error:
                raise ModelFileError(f'"{place}.trees[{number}]": {error}') from None
        return cls(n_features, float(document["prior"]), trees)


#: The lowest bit that is not set, by byte; a byte with all bits set does not occur.
_FIRST_ZERO = np.array(
    [(~byte & (byte + 1)).bit_length() - 1 for byte in range(256)], dtype=np.intp
)


def _make_classifier(n_rows: int, seed: int) -> Any:
    """Return an unfitted classifier by gradient boosting for a number of rows."""
    from sklearn.ensemble import GradientBoostingClassifier

    return GradientBoostingClassifier(
        **_SETTINGS,
        min_samples_leaf=min(_LEAF_ROWS, max(1, n_rows // 50)),
        random_state=seed,
    )


def _choose_rows(group: IntArray, place: IntArray, most: int) -> BoolArray:
    """Return a mask (rows,) of rows to fit to: the first groups, up to ``most`` rows.

    Two groups are used in any case.  ``group`` (rows,) has each row's group, ``place``
    (groups,) the place of each group in a random order.
    """
    sizes = np.bincount(group)[np.argsort(place)]
    n_groups = int(np.searchsorted(np.cumsum(sizes), most, "right"))
    return (place < max(2, n_groups))[group]


def _check_rows(
    X: npt.ArrayLike, wanted: npt.ArrayLike, groups: npt.ArrayLike
) -> tuple[_Floats, BoolArray, IntArray]:
    """Return ``X``, ``wanted`` and ``groups`` as arrays of one entry for each row.

    ValueError unless there are two groups, and rows that are wanted and others.
    """
    X, wanted, groups = _as_features(X), np.asarray(wanted), np.asarray(groups)
    if wanted.dtype != bool:
        raise ValueError(f"wanted must be an array of bool, got {wanted.dtype}")
    if not wanted.shape == groups.shape == (len(X),):
        raise ValueError(
            f"wanted {wanted.shape} and groups {groups.shape} must have one entry for "
            f"each of the {len(X)} rows of X"
        )
    if len(groups) == 0 or (groups == groups[0]).all():
        raise ValueError(
            "boosting scores each group by trees fitted to others, and the rows are of "
            "fewer than two groups: give more groups, or use a linear quality"
        )
    if wanted.all() or not wanted.any():
        raise ValueError(
            f"boosting cannot learn as {'all' if wanted.any() else 'none'} of the rows "
            "are wanted: give groups with rows of both classes, or use a linear quality"
        )
    return X, wanted, groups


def _as_features(X: npt.ArrayLike) -> _Floats:
    """Return finite ``X`` (n_rows, n_features) in single precision, or ValueError."""
    numbers = np.asarray(X)
    if numbers.ndim != 2 or numbers.shape[1] == 0 or numbers.dtype.kind not in "fiub":
        raise ValueError(
            "X must be an array of real numbers, (n_rows, n_features), with at least "
            f"one feature; got shape {numbers.shape} of {numbers.dtype}"
        )
    if not np.isfinite(numbers).all():
        raise ValueError("X holds NaN or infinity: replace them by numbers")
    if numbers.dtype != np.float32:
        numbers = np.clip(numbers, _FLOAT32.min, _FLOAT32.max).astype(np.float32)
    return numbers


def _round_down(thresholds: FloatArray) -> _Floats:
    """Return the largest single-precision numbers that are at most the thresholds.

    A number ``x`` of single precision is at most a threshold if and only if it is at
    most this one.
    """
    single = thresholds.astype(np.float32)
    return np.where(
        single.astype(np.float64) > thresholds, np.nextafter(single, -np.inf), single
    ).astype(np.float32)
