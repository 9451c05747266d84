"""Gaussian kernels of low rank: ``exp(-‖x - z‖² / σ²) ≈ f(x)ᵀ f(z)``.

Two ways to features ``f`` of a given number of columns, both settled once from the
training data:

- random Fourier features (Rahimi and Recht, NIPS 2007): cosines and sines of ``xᵀω`` at
  random frequencies ``ω ~ N(0, 2/σ² I)``.  Unbiased, with an error of about
  ``1/√rank`` in every entry; the diagonal is exactly one.
- Nyström's method (Williams and Seeger, NIPS 2000): similarities to landmarks ``Z``
  among the training items, ``f(x) = K_zz^{-1/2} k_z(x)``.  Exact at the landmarks, the
  diagonal at most one.  The error falls as fast as the kernel's spectrum: quickly for
  wide Gaussians and few dimensions.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.spatial.distance import cdist

from variegate._typing import FloatArray, IntArray
from variegate._validation import check_choice, check_count, check_flag, check_number
from variegate.files.schema import MATRIX, Shape
from variegate.ground_set import GroundSet, name_position_in_errors
from variegate.kernels.base import Kernel, PullBack, check_block
from variegate.kernels.known import Looks, ground_set_sizes, loaded_ground_sets
from variegate.linalg.limits import POOLED_ITEMS

APPROXIMATIONS = ("nystroem", "fourier")

#: Rows that are worked on at a time.
_ROWS = 4096

#: Eigenvalues of the landmarks' similarity below this share of the largest are
#: rounding: landmarks that are nearly the same.
_SMALLEST_EIGENVALUE = 1e-12


class FeatureMap:
    """Features of items, for any bandwidth: "fourier" or "nystroem".

    ``numbers`` are the landmarks (m, p) of "nystroem"; or, of "fourier", standard
    normal numbers (p, rank / 2): ``√2 / σ`` times them are the frequencies.
    """

    def __init__(self, approximation: str, numbers: FloatArray) -> None:
        self.approximation = approximation
        self.numbers = numbers

    @property
    def n_features(self) -> int:
        """Return ``p``, the number of columns of the items that the map takes."""
        return int(self.numbers.shape[0 if self.approximation == "fourier" else 1])

    def __call__(self, X: Any, bandwidth: float) -> FloatArray:
        """Return the features (N, rank) of items ``X`` (N, p), an array or CSR."""
        check_n_features(X, self.n_features)
        prepare = (
            _make_fourier_map if self.approximation == "fourier" else _make_nystroem_map
        )
        compute = prepare(self.numbers, bandwidth)
        first = compute(X[:_ROWS])
        result = np.empty((X.shape[0], first.shape[1]))
        result[:_ROWS] = first
        for start in range(_ROWS, X.shape[0], _ROWS):
            result[start : start + _ROWS] = compute(X[start : start + _ROWS])
        return result


def _make_fourier_map(
    numbers: FloatArray, bandwidth: float
) -> Callable[[Any], FloatArray]:
    """Return a function from rows (n, p) to their Fourier features (n, rank)."""
    frequencies = numbers * (np.sqrt(2.0) / bandwidth)
    half = frequencies.shape[1]

    def compute(rows: Any) -> FloatArray:
        """Return cosines, then sines, of ``xᵀω``, divided by ``√(rank / 2)``."""
        angles = np.asarray(rows @ frequencies)
        features = np.empty((len(angles), 2 * half))
        np.cos(angles, out=features[:, :half])
        np.sin(angles, out=features[:, half:])
        features /= np.sqrt(half)
        return features

    return compute


def _make_nystroem_map(
    landmarks: FloatArray, bandwidth: float
) -> Callable[[Any], FloatArray]:
    """Return a function from rows (n, p) to features (n, r) ``k_z(x) K_zz^{-1/2}``.

    ``r`` is the rank of ``K_zz`` (m, m), the similarity of the landmarks ``Z`` (m, p).
    """

    def similarity(rows: Any) -> FloatArray:
        """Return the Gaussian similarity (n, m) of rows to the landmarks."""
        if sparse.issparse(rows):
            from sklearn.metrics.pairwise import euclidean_distances  # slow to import

            squared = np.asarray(euclidean_distances(rows, landmarks, squared=True))
        else:
            squared = np.asarray(cdist(rows, landmarks, "sqeuclidean"))
        squared /= -bandwidth  # twice, so that no square overflows
        squared /= bandwidth
        return np.asarray(np.exp(squared, out=squared))

    values, vectors = eigh(similarity(landmarks))
    used = values > _SMALLEST_EIGENVALUE * values[-1]
    root = vectors[:, used] / np.sqrt(values[used])
    return lambda rows: np.asarray(similarity(rows) @ root)


def check_approximation(kernel: Any) -> None:
    """Raise ValueError if the approximation, rank, seed or ``anchored`` is invalid."""
    check_flag("anchored", kernel.anchored)
    approximation, rank = kernel.approximation, kernel.rank
    if approximation is None:
        if rank is not None:
            raise ValueError(
                f"rank={rank!r} needs an approximation: give approximation='nystroem' "
                "or 'fourier'"
            )
        return
    check_choice("approximation", approximation, APPROXIMATIONS)
    if rank is None:
        raise ValueError(
            f"approximation={approximation!r} needs a rank, the number of columns for "
            "each Gaussian: give, for example, rank=64"
        )
    check_count("rank", rank)
    if approximation == "fourier" and rank % 2:
        raise ValueError(
            f"rank must be even, because cosines and sines come in pairs, got {rank}"
        )
    check_seed(kernel.random_state)


def check_seed(random_state: Any) -> None:
    """Raise ValueError unless a seed is an integer of at least 0."""
    is_seed = isinstance(random_state, Integral) and not isinstance(random_state, bool)
    if not is_seed or random_state < 0:
        raise ValueError(
            "random_state of a kernel must be a whole number of at least 0, which the "
            f"model file can hold, got {random_state!r}"
        )


def fit_feature_map(
    kernel: Any, ground_sets: Sequence[GroundSet], block: str | None
) -> FeatureMap:
    """Return a map with drawn frequencies, or landmarks from :func:`pool_of_items`.

    ``kernel`` gives ``approximation``, ``rank``, ``random_state`` and ``anchored``;
    ``block`` is the block of features, None for the only one.
    """
    rank = kernel.rank
    generator = np.random.default_rng(kernel.random_state)
    n_features = common_n_features(ground_sets, block)
    if kernel.approximation == "fourier":
        return FeatureMap("fourier", generator.standard_normal((n_features, rank // 2)))
    pool = pool_of_items(ground_sets, block, generator)
    landmarks = _choose_landmarks(pool, rank - bool(kernel.anchored), generator)
    if kernel.anchored:  # exact at the origin too, from which all is seen
        landmarks = np.vstack([np.zeros((1, n_features)), landmarks])
    return FeatureMap("nystroem", landmarks)


def _choose_landmarks(
    pool: FloatArray, count: int, generator: np.random.Generator
) -> FloatArray:
    """Return up to ``count`` rows of a pool of items, spread out as by k-means++."""
    if len(pool) <= count or count == 0:
        return pool[:count]
    from sklearn.cluster import kmeans_plusplus  # slow to import, seldom needed

    seed = int(generator.integers(2**31))
    landmarks, _ = kmeans_plusplus(pool, count, random_state=seed)
    return np.ascontiguousarray(landmarks)


def approximate_features(
    feature_map: FeatureMap, items: Any, bandwidth: float, anchored: bool
) -> FloatArray:
    """Return the features (N, rank) of items whose products approximate a Gaussian.

    If ``anchored``, they are ``σ/√2 (f(x) - f(0))``, as seen from the origin: see
    :class:`variegate.kernels.Gaussian`.
    """
    features = feature_map(items, bandwidth)
    if anchored:
        features -= feature_map(np.zeros((1, feature_map.n_features)), bandwidth)
        features *= bandwidth / np.sqrt(2.0)
    return features


def check_n_features(X: Any, fitted: int) -> None:
    """Raise ValueError unless items ``X`` have ``fitted`` features."""
    if X.shape[1] != fitted:
        raise ValueError(
            f"{X.shape[1]} similarity features, but the kernel was fitted with {fitted}"
        )


def common_n_features(ground_sets: Sequence[GroundSet], block: str | None) -> int:
    """Return the number of similarity features; refuse ground sets that differ."""
    n_features = -1
    for position, ground_set in loaded_ground_sets(ground_sets):
        with name_position_in_errors(position):
            found = int(ground_set.features(block).shape[1])
            if n_features < 0:
                n_features = found
            elif found != n_features:
                raise ValueError(
                    f"it has {found} similarity features but the first has "
                    f"{n_features}: this kernel needs the same ones"
                )
    return n_features


def as_dense(features: Any) -> FloatArray:
    """Return features, sparse or dense, as a dense array."""
    dense: FloatArray = features.toarray() if sparse.issparse(features) else features
    return dense


def stack_features(
    ground_sets: Sequence[GroundSet], block: str | None
) -> FloatArray | None:
    """Return the features of a block (B, N, p) of B ground sets with N items each.

    None where they are sparse, differ in ``p``, or lack the block.
    """
    try:
        features = [ground_set.features(block) for ground_set in ground_sets]
        return None if any(map(sparse.issparse, features)) else np.stack(features)
    except ValueError:  # no such block, or of different widths
        return None


def decode_feature_map(approximation: str, numbers: Any) -> FeatureMap:
    """Return a feature map from its ``numbers`` as lists, as a model file has them."""
    MATRIX.check(numbers, "features")
    return FeatureMap(approximation, np.array(numbers, dtype=np.float64))


def fitted_maps(kernel: Any) -> Any:
    """Return ``features_`` of a kernel; ValueError before ``fit``.

    A :class:`FeatureMap` of a ``Gaussian``, a dict by block of a ``MultipleKernel``.
    """
    if not hasattr(kernel, "features_"):
        raise ValueError("the approximation is not settled yet: call fit first")
    return kernel.features_


def pool_of_items(
    ground_sets: Sequence[GroundSet], block: str | None, generator: np.random.Generator
) -> FloatArray:
    """Return the features (n, p) of all items, or of ``POOLED_ITEMS`` random ones."""
    rows = choose_pooled_rows(ground_set_sizes(ground_sets), generator).items()
    parts = [as_dense(ground_sets[i].features(block)[some]) for i, some in rows]
    return np.concatenate(parts)


def choose_pooled_rows(sizes: IntArray, generator: np.random.Generator) -> Looks:
    """Return the rows that :func:`pool_of_items` takes, by index of the ground set.

    ``sizes`` (n,) are the numbers of items; ground sets without such rows are left out.
    """
    ends = np.cumsum(sizes, dtype=np.int64)
    n_items = int(ends[-1])
    chosen = np.arange(min(n_items, POOLED_ITEMS))
    if n_items > POOLED_ITEMS:
        chosen = np.sort(generator.choice(n_items, POOLED_ITEMS, replace=False))
    upto = np.searchsorted(chosen, ends)
    first = np.concatenate([[0], upto[:-1]])
    return {
        place: chosen[first[place] : upto[place]] - (ends[place] - int(sizes[place]))
        for place in np.flatnonzero(first < upto).tolist()
    }


def looks_of_approximation(kernel: Any, sizes: IntArray) -> Looks:
    """Return the rows that :func:`fit_feature_map` reads, by index of ground set."""
    if kernel.approximation is None:
        return {}
    if kernel.approximation == "fourier":  # only the number of features
        return {0: np.zeros(0, dtype=np.int64)}
    return choose_pooled_rows(sizes, np.random.default_rng(kernel.random_state))


class KernelWithStart(Kernel):
    """A kernel whose parameters are differences from a start that ``fit`` finds.

    A subclass has the attributes ``penalty``, ``block`` and ``random_state``, and
    defines :meth:`find_start` and :meth:`value_and_pull_back`.
    """

    #: The arrays that ``fit`` finds, by their names in the model file: attributes of
    #: these names, with an underscore.  The last one determines the start.
    fitted_arrays: ClassVar[dict[str, Shape]]
    start_name: ClassVar[str]  # subject and verb of a message: "the kinds are"

    stackable = True
    makes_new = True

    penalty: float
    block: str | None
    random_state: int

    def check(self) -> None:
        """Raise ValueError for invalid arguments of the constructor."""
        check_number("penalty", self.penalty)
        check_block(self.block)
        check_seed(self.random_state)

    def looks_at(self, sizes: IntArray) -> Looks:
        """Return the row numbers that ``fit`` reads, by index of the ground set."""
        return choose_pooled_rows(sizes, np.random.default_rng(self.random_state))

    def fit(self, ground_sets: Sequence[GroundSet]) -> Self:
        """Set the fitted arrays from ground sets of equal features; return itself."""
        self.check()
        common_n_features(ground_sets, self.block)
        generator = np.random.default_rng(self.random_state)
        self.find_start(pool_of_items(ground_sets, self.block, generator), generator)
        return self

    @abstractmethod
    def find_start(self, items: FloatArray, generator: np.random.Generator) -> None:
        """Set the fitted arrays from training items (n, d), ``n ≤ POOLED_ITEMS``."""

    def start(self) -> FloatArray:
        """Return the array that parameters are added to; ValueError before ``fit``."""
        *_, name = self.fitted_arrays
        if not hasattr(self, f"{name}_"):
            raise ValueError(f"{self.start_name} not settled yet: call fit first")
        start: FloatArray = getattr(self, f"{name}_")
        return start

    def get_state(self) -> dict[str, Any]:
        """Return the fitted arrays by name, as lists; an empty dict before ``fit``."""
        if not hasattr(self, f"{next(iter(self.fitted_arrays))}_"):
            return {}
        return {name: getattr(self, f"{name}_").tolist() for name in self.fitted_arrays}

    def set_state(self, state: dict[str, Any]) -> None:
        """Set the fitted arrays from the lists of a model file, checked."""
        self.check()
        for name, schema in self.fitted_arrays.items() if state else ():
            schema.check(state[name], name)
            setattr(self, f"{name}_", np.array(state[name], dtype=np.float64))

    def penalty_and_gradient(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Return ``penalty / 2`` times ``|parameters|²``, and its gradient."""
        gradient = self.penalty * parameters
        return 0.5 * float(gradient @ parameters), gradient

    @abstractmethod
    def value_and_pull_back(
        self, prepared: FloatArray, parameters: FloatArray
    ) -> tuple[FloatArray, PullBack]:
        """Return the similarity, and a function from ``G = ∂f/∂S`` to ``∂f/∂p``."""

    def value(self, prepared: FloatArray, parameters: FloatArray) -> FloatArray:
        """Return the similarity (..., N, N) of one ground set or a stack."""
        return self.value_and_pull_back(prepared, parameters)[0]

    def pull_back(
        self, prepared: FloatArray, parameters: FloatArray, G: FloatArray
    ) -> FloatArray:
        """Return ``∂f/∂p`` from ``G = ∂f/∂S``, summed over a stack."""
        return self.value_and_pull_back(prepared, parameters)[1](G)
