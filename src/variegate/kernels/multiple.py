"""The paper's multiple kernels: Gaussians at several bandwidths and a linear part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from variegate._typing import FloatArray
from variegate._validation import check_number
from variegate.ground_set import GroundSet, naming
from variegate.kernels.gaussian import gaussian, squared_distances
from variegate.kernels.linear import Linear
from variegate.kernels.weighted import WeightedSum

#: The default bandwidths: the median distance times these.
_LADDER: FloatArray = 2.0 ** np.arange(-3.0, 4.0)


class MultipleKernel(WeightedSum):
    r"""Gaussians at several bandwidths and a linear part (paper eq. 8).

    .. math:: S_{ij} = \sum_k \alpha_k \exp(-\|\phi_i - \phi_j\|^2 / \sigma_k^2)
        + \beta\, \phi_i^T \phi_j, \qquad \sum_k \alpha_k + \beta = 1

    with ``α`` and ``β`` non-negative and learned.

    Parameters
    ----------
    bandwidths : sequence of float, mapping from block to such, or None
        The ``σ_k``.  ``None``: the median distance between items of the training
        ground sets times 2⁻³, 2⁻², ..., 2³, found in ``fit``.
    linear : bool, default=True
        Whether there is a linear part.
    blocks : sequence of str, optional
        Names of the blocks of similarity features to combine: each gets its own
        Gaussians and linear part, and all the weights together sum to one.

    Attributes
    ----------
    bandwidths_ : dict from block to array, after ``fit``
        The block of unnamed features is ``None``.
    """

    def __init__(
        self,
        bandwidths: Sequence[float] | Mapping[str, Sequence[float]] | None = None,
        linear: bool = True,
        blocks: Sequence[str] | None = None,
    ) -> None:
        self.bandwidths = bandwidths
        self.linear = linear
        self.blocks = blocks

    def fit(self, ground_sets: Sequence[GroundSet]) -> Self:
        """Settle the bandwidths."""
        self.bandwidths_: dict[str | None, FloatArray] = {
            block: (
                _median_distance(ground_sets, block) * _LADDER
                if ladder is None
                else ladder
            )
            for block, ladder in self._given().items()
        }
        if not self.n_weights:
            raise ValueError(
                "a multiple kernel needs at least one bandwidth or linear=True"
            )
        return self

    def _given(self) -> dict[str | None, FloatArray | None]:
        """Return the bandwidths as given, checked, block by block."""
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
            block: None if given[block] is None else _ladder(given[block])
            for block in blocks
        }

    def _settled(self) -> dict[str | None, FloatArray]:
        if hasattr(self, "bandwidths_"):
            return self.bandwidths_
        settled = {
            block: ladder
            for block, ladder in self._given().items()
            if ladder is not None
        }
        if len(settled) < len(self._given()):
            raise ValueError("the bandwidths are not settled yet: call fit first")
        return settled

    def get_state(self) -> dict[str, Any]:
        """Return the bandwidths that were settled, block by block."""
        return {
            "bandwidths": [
                {"block": block, "values": values.tolist()}
                for block, values in self._settled().items()
            ]
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Take the bandwidths as settled."""
        settled = {
            entry["block"]: _ladder(entry["values"]) for entry in state["bandwidths"]
        }
        if settled.keys() != self._given().keys():
            raise ValueError("the bandwidths are not those of the kernel's blocks")
        self.bandwidths_ = settled

    @property
    def n_weights(self) -> int:
        """The number of Gaussians and linear parts."""
        settled = self._settled()
        return sum(len(b) for b in settled.values()) + len(settled) * bool(self.linear)

    def matrices(self, ground_set: GroundSet) -> Sequence[FloatArray]:
        """Return the Gaussians, block by block, then the linear parts."""
        matrices: list[FloatArray] = []
        settled = self._settled()
        for block, bandwidths in settled.items():
            if len(bandwidths):
                distances = squared_distances(ground_set.features(block))
                matrices += [gaussian(distances, sigma) for sigma in bandwidths]
        if self.linear:
            matrices += [Linear(block=block).matrix(ground_set) for block in settled]
        return matrices

    def split(self, weights: FloatArray) -> tuple[FloatArray, FloatArray | float]:
        """Return ``(α, β)`` from the weights, as the paper names them.

        With named blocks ``α`` is a flat array, block after block, and ``β`` has one
        entry a block; without, ``β`` is a number.
        """
        n_gaussians = sum(len(b) for b in self._settled().values())
        alpha, beta = weights[:n_gaussians], weights[n_gaussians:]
        if self.blocks is not None:
            return alpha, beta
        return alpha, float(beta[0]) if self.linear else 0.0


def _ladder(bandwidths: Any) -> FloatArray:
    if isinstance(bandwidths, str) or not hasattr(bandwidths, "__len__"):
        raise ValueError(f"bandwidths must be a list of numbers, got {bandwidths!r}")
    for bandwidth in bandwidths:
        check_number("a bandwidth", bandwidth, positive=True)
    return np.array(bandwidths, dtype=np.float64)


def _median_distance(ground_sets: Sequence[GroundSet], block: str | None) -> float:
    """Return the median over ground sets of the median distance between items."""
    medians = []
    for position, ground_set in enumerate(ground_sets):
        with naming(position):
            distances = squared_distances(ground_set.features(block))
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
