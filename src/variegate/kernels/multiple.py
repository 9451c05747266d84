"""The paper's multiple kernels: Gaussians at several bandwidths and a linear part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from variegate._typing import FloatArray, IntArray
from variegate._validation import check_number
from variegate.ground_set import GroundSet, name_position_in_errors
from variegate.kernels.features import (
    FeatureMap,
    approximate_features,
    check_approximation,
    decode_feature_map,
    fit_feature_map,
    fitted_maps,
    looks_of_approximation,
    stack_features,
)
from variegate.kernels.gaussian import (
    DIRECT_FEATURES,
    Gaussian,
    gaussian,
    gaussian_expm1,
    squared_distances,
    squared_norms,
)
from variegate.kernels.known import Looks, merge_looks
from variegate.kernels.linear import Linear
from variegate.kernels.weighted import (
    Chains,
    PackedSimilarities,
    WeightedSum,
    build_chains,
    pack_similarities,
)
from variegate.linalg.limits import MEDIAN_ITEMS, MEDIAN_SETS, STACK_LIMIT

#: The default bandwidths: the median distance times these.
_FACTORS: FloatArray = 2.0 ** np.arange(-3.0, 4.0)


class MultipleKernel(WeightedSum):
    r"""Gaussians at several bandwidths and a linear part (paper eq. 8).

    .. math:: S_{ij} = \sum_k \alpha_k \exp(-\|\phi_i - \phi_j\|^2 / \sigma_k^2)
        + \beta\, \phi_i^T \phi_j, \qquad \sum_k \alpha_k + \beta = 1

    with ``α`` and ``β`` non-negative and learned.

    With ``anchored=True`` each Gaussian is seen from the origin, which takes away the
    constant that a wide one nearly is: see :class:`variegate.Gaussian`.

    Parameters
    ----------
    bandwidths : sequence of float, mapping from block to such, or None
        The ``σ_k``.  ``None``: the median distance between items of the training
        ground sets (of some thousands, where there are more than 10,000) times 2⁻³,
        2⁻², ..., 2³, found in ``fit``.
    linear : bool, default=True
        Whether there is a linear part.
    blocks : sequence of str, optional
        Names of the blocks of similarity features to combine: each gets its own
        Gaussians and linear part, and all the weights together sum to one.
    approximation : {None, "nystroem", "fourier"}, default=None
        How to approximate each Gaussian by one of low rank, for ground sets too large
        for N x N matrices; the linear part stays exact.  "fourier" is unbiased.
        "nystroem" is exact at ``rank`` landmarks among the training items, and often
        much closer where features are few, but the diagonal of an item far from all
        landmarks is below one.  See ``variegate.kernels.features``.
    rank : int, optional
        The number of columns for each Gaussian, needed with an approximation; for
        "fourier", even.  Ground sets of more than three times as many items as there
        are columns in all, ``D``, are worked on in ``O(N D²)``.
    random_state : int, default=0
        Seed of the landmarks or frequencies, which are shared by all ground sets.
    anchored : bool, default=False
        Whether Gaussians are seen from the origin.

    Attributes
    ----------
    bandwidths_ : dict from block to array, after ``fit``
        The block of unnamed features is ``None``.
    features_ : dict from block to feature map, after ``fit`` with an approximation
    """

    def __init__(
        self,
        bandwidths: Sequence[float] | Mapping[str, Sequence[float]] | None = None,
        linear: bool = True,
        blocks: Sequence[str] | None = None,
        approximation: str | None = None,
        rank: int | None = None,
        random_state: int = 0,
        anchored: bool = False,
    ) -> None:
        self.bandwidths = bandwidths
        self.linear = linear
        self.blocks = blocks
        self.approximation = approximation
        self.rank = rank
        self.random_state = random_state
        self.anchored = anchored

    def check(self) -> None:
        """Raise ValueError for an invalid approximation; ``fit`` checks the others."""
        check_approximation(self)

    def fit(self, ground_sets: Sequence[GroundSet]) -> Self:
        """Set ``bandwidths_``, found where not given, and feature maps ``features_``.

        ValueError without any bandwidth or linear part.
        """
        self.check()
        most_items = None if self.approximation is None else MEDIAN_ITEMS
        self.bandwidths_: dict[str | None, FloatArray] = {
            block: (
                _median_distance(ground_sets, block, most_items) * _FACTORS
                if given is None
                else given
            )
            for block, given in self._checked_bandwidths().items()
        }
        if not self.n_weights:
            raise ValueError(
                "a multiple kernel needs at least one bandwidth or linear=True"
            )
        if self.approximation is not None:
            self.features_: dict[str | None, FeatureMap] = {
                block: fit_feature_map(self, ground_sets, block)
                for block in self.bandwidths_
            }
        return self

    def looks_at(self, sizes: IntArray) -> Looks:
        """Return row numbers that ``fit`` reads, or None for all, by ground set."""
        looks = looks_of_approximation(self, sizes)
        if any(given is None for given in self._checked_bandwidths().values()):
            places = range(0, len(sizes), _ground_set_step(len(sizes)))
            looks = merge_looks([looks, dict.fromkeys(places)])
        return looks

    def _checked_bandwidths(self) -> dict[str | None, FloatArray | None]:
        """Return the given bandwidths of each block; None where ``fit`` finds them."""
        if isinstance(self.blocks, str):
            raise ValueError(f"blocks must be a list of names, got {self.blocks!r}")
        blocks: list[str | None] = [None] if self.blocks is None else [*self.blocks]
        given: Mapping[Any, Any] = (
            self.bandwidths
            if isinstance(self.bandwidths, Mapping)
            else dict.fromkeys(blocks, self.bandwidths)
        )
        if set(given) != set(blocks):
            raise ValueError(
                f"bandwidths are given for the blocks {sorted(given)} but the kernel "
                f"reads {'one without a name' if self.blocks is None else blocks}"
            )
        return {
            block: None if given[block] is None else _check_bandwidths(given[block])
            for block in blocks
        }

    def _fitted_bandwidths(self) -> dict[str | None, FloatArray]:
        """Return the bandwidths of each block, fitted or given; ValueError without."""
        if hasattr(self, "bandwidths_"):
            return self.bandwidths_
        given = self._checked_bandwidths()
        settled = {block: b for block, b in given.items() if b is not None}
        if len(settled) < len(given):
            raise ValueError("the bandwidths are not settled yet: call fit first")
        return settled

    def get_state(self) -> dict[str, Any]:
        """Return "bandwidths" and, if approximated, "features", of all blocks."""
        state = {"bandwidths": _arrays_to_json(self._fitted_bandwidths())}
        if self.approximation is not None:
            numbers = {block: of.numbers for block, of in fitted_maps(self).items()}
            state["features"] = _arrays_to_json(numbers)
        return state

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore bandwidths and feature maps from ``get_state``, checked."""
        self.check()
        found = state["bandwidths"]
        bandwidths = {one["block"]: _check_bandwidths(one["values"]) for one in found}
        if bandwidths.keys() != self._checked_bandwidths().keys():
            raise ValueError("the bandwidths are not those of the kernel's blocks")
        self.bandwidths_ = bandwidths
        if self.approximation is not None:
            self.features_ = {
                entry["block"]: decode_feature_map(self.approximation, entry["values"])
                for entry in state["features"]
            }
            if self.features_.keys() != bandwidths.keys():
                raise ValueError("the features are not those of the kernel's blocks")

    @property
    def n_weights(self) -> int:
        """Return the number of Gaussians and linear parts of all blocks."""
        settled = self._fitted_bandwidths()
        return sum(len(b) for b in settled.values()) + len(settled) * bool(self.linear)

    def matrices(self, ground_set: GroundSet) -> Sequence[FloatArray]:
        """Return the Gaussians (N, N), block by block, then the linear parts."""
        settled = self._fitted_bandwidths()
        if self.approximation is None:
            matrices = [
                Gaussian(sigma, block, anchored=self.anchored).matrix(ground_set)
                for block, bandwidths in settled.items()
                for sigma in bandwidths.tolist()
            ]
        else:
            matrices = [F @ F.T for F in self._gaussian_factors(ground_set)]
        if self.linear:
            matrices += [Linear(block=block).matrix(ground_set) for block in settled]
        return matrices

    def prepare(self, ground_set: GroundSet) -> PackedSimilarities:
        """Return packed similarities; one Gaussian stands for all of its powers."""
        if self.approximation is not None:  # none is a power of another
            return super().prepare(ground_set)
        chains = self._chains()
        similarity = gaussian_expm1 if self.anchored else gaussian
        distances = {
            block: squared_distances(ground_set.features(block))
            for block in {block for block, width in chains.bandwidths if width}
        }
        first = [
            similarity(distances[block], width)
            if width
            else Linear(block=block).matrix(ground_set)
            for block, width in chains.bandwidths
        ]
        return pack_similarities(chains, first, self._anchors(ground_set))

    def prepare_together(
        self, ground_sets: Sequence[GroundSet]
    ) -> PackedSimilarities | None:
        """Return ground sets of equal size, prepared as by :meth:`prepare` and stacked.

        None where Gaussians are anchored or approximated, or where there are more than
        ``STACK_LIMIT`` items or ``DIRECT_FEATURES`` features.
        """
        own = type(self).prepare is MultipleKernel.prepare
        small = len(ground_sets[0]) <= STACK_LIMIT
        if not own or not small or self.approximation is not None or self.anchored:
            return None
        features = {}
        for block in self._fitted_bandwidths():
            stacked = stack_features(ground_sets, block)
            if stacked is None or stacked.shape[-1] > DIRECT_FEATURES:
                return None
            features[block] = stacked
        with np.errstate(over="ignore", invalid="ignore"):  # judged below
            found = PackedSimilarities.of_features(self._chains(), features)
        parts = (found.packed, found.diagonal)
        return found if all(np.isfinite(part).all() for part in parts) else None

    def _chains(self) -> Chains:
        """Return chains of Gaussians that are powers of one, and the linear parts."""
        settled = self._fitted_bandwidths()
        bandwidths = tuple((block, tuple(b.tolist())) for block, b in settled.items())
        linear = tuple(settled) if self.linear else ()
        return build_chains(bandwidths, linear, self.anchored)

    def _anchors(self, ground_set: GroundSet) -> FloatArray | None:
        """Return the terms (weights, N) that anchoring subtracts for both items.

        None if Gaussians are not anchored; zero for linear parts.
        """
        if not self.anchored:
            return None
        rows = []
        for block, bandwidths in self._fitted_bandwidths().items():
            norms = squared_norms(ground_set.features(block))
            rows += [gaussian_expm1(norms, sigma) for sigma in bandwidths]
        n_linear = self.n_weights - len(rows)
        return np.array([*rows, *np.zeros((n_linear, len(ground_set)))])

    def _gaussian_factors(self, ground_set: GroundSet) -> list[FloatArray]:
        """Return the approximate features (N, rank) of each Gaussian, in one list."""
        maps = fitted_maps(self)
        return [
            approximate_features(
                maps[block], ground_set.features(block), sigma, self.anchored
            )
            for block, bandwidths in self._fitted_bandwidths().items()
            for sigma in bandwidths
        ]

    def factors(self, ground_set: GroundSet) -> list[FloatArray] | None:
        """Return the factors of :meth:`matrices`; None without an approximation.

        None also where a linear part has at least half as many features as items.
        """
        if self.approximation is None:
            return None
        linear: list[FloatArray] = []
        for block in self._fitted_bandwidths() if self.linear else ():
            factor = Linear(block=block).factors(ground_set)
            if factor is None:
                return None
            linear += factor
        return self._gaussian_factors(ground_set) + linear

    def split(self, weights: FloatArray) -> tuple[FloatArray, FloatArray | float]:
        """Return ``(α, β)`` from the weights, as the paper names them.

        With named blocks ``α`` is a flat array, block after block, and ``β`` has one
        entry a block; without, ``β`` is a number.
        """
        n_gaussians = sum(len(b) for b in self._fitted_bandwidths().values())
        alpha, beta = weights[:n_gaussians], weights[n_gaussians:]
        if self.blocks is not None:
            return alpha, beta
        return alpha, float(beta[0]) if self.linear else 0.0


def _arrays_to_json(arrays: Mapping[str | None, FloatArray]) -> list[dict[str, Any]]:
    """Return arrays by block as a list of dicts of "block" and "values"."""
    return [{"block": block, "values": a.tolist()} for block, a in arrays.items()]


def _check_bandwidths(bandwidths: Any) -> FloatArray:
    """Return bandwidths as an array; refuse anything but a list of positive numbers."""
    if isinstance(bandwidths, str) or not hasattr(bandwidths, "__len__"):
        raise ValueError(f"bandwidths must be a list of numbers, got {bandwidths!r}")
    for bandwidth in bandwidths:
        check_number("a bandwidth", bandwidth, positive=True)
    return np.array(bandwidths, dtype=np.float64)


def _ground_set_step(n_sets: int) -> int:
    """Return the step between ground sets that leaves at most ``MEDIAN_SETS``."""
    return -(-n_sets // MEDIAN_SETS)


def _median_distance(
    ground_sets: Sequence[GroundSet], block: str | None, most_items: int | None
) -> float:
    """Return the median over ground sets of the median distance between items.

    Distances of 0 do not count; ValueError if all are 0.  Of ground sets larger than
    ``most_items`` (None: no limit), that many items are read at random; of more than
    10,000 ground sets, every second, or third, and so on.
    """
    medians = []
    n_sets = len(ground_sets)
    for position in range(0, n_sets, _ground_set_step(n_sets)):
        ground_set = ground_sets[position]
        with name_position_in_errors(position):
            features = ground_set.features(block)
            if most_items is not None and len(ground_set) > most_items:
                generator = np.random.default_rng(position)
                some = generator.choice(len(ground_set), most_items, replace=False)
                features = features[some]
            distances = squared_distances(features)
        apart = distances[np.triu_indices_from(distances, k=1)]
        apart = apart[apart > 0]
        if len(apart):
            medians.append(np.sqrt(np.median(apart)))
    if not medians:
        raise ValueError(
            "no two items of any ground set differ in their similarity features, so "
            "bandwidths cannot be chosen from the data: give them, or other features"
        )
    return float(np.median(medians))
