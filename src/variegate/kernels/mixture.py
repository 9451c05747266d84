"""Similarities that are learned: convex combinations of base kernels (paper eq. 8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from variegate._typing import FloatArray
from variegate._validation import check_number
from variegate.domains import Simplex
from variegate.ground_set import GroundSet
from variegate.kernels.base import FixedKernel, Kernel
from variegate.kernels.gaussian import Gaussian, squared_distances
from variegate.kernels.linear import Linear

#: The default bandwidths: the median distance times these.
_LADDER = 2.0 ** np.arange(-3, 4)


class Mixture(Kernel):
    r"""A convex combination of kernels, its weights learned.

    .. math:: S = \sum_k w_k S^k, \qquad w_k \ge 0, \quad \sum_k w_k = 1,
        \qquad \partial f / \partial w_k = \sum_{ij} G_{ij} S^k_{ij}

    Parameters
    ----------
    kernels : sequence of kernels without parameters of their own
        For features of several kinds, let each kernel name its block:
        ``Mixture([Gaussian(1.0, block="colour"), Linear(block="texture")])``.
    """

    stackable = True

    def __init__(self, kernels: Sequence[FixedKernel]) -> None:
        self.kernels = kernels

    def _base_kernels(self) -> Sequence[FixedKernel]:
        if not len(self.kernels):
            raise ValueError("a mixture needs at least one kernel")
        for kernel in self.kernels:
            if not isinstance(kernel, FixedKernel):
                raise ValueError(
                    "a mixture combines kernels without parameters of their own, "
                    f"got {kernel!r}"
                )
        return self.kernels

    @property
    def domain(self) -> Simplex:
        """The simplex, one weight a kernel."""
        return Simplex(len(self._base_kernels()))

    def prepare(self, ground_set: GroundSet) -> FloatArray:
        """Return the base similarities, (K, N, N)."""
        return np.stack([kernel.matrix(ground_set) for kernel in self._base_kernels()])

    def value(self, prepared: FloatArray, parameters: FloatArray) -> FloatArray:
        """Return the weighted sum."""
        flat = prepared.reshape(*prepared.shape[:-2], -1)
        size = prepared.shape[-1]
        return np.asarray((parameters @ flat).reshape(*prepared.shape[:-3], size, size))

    def pull_back(
        self, prepared: FloatArray, parameters: FloatArray, G: FloatArray
    ) -> FloatArray:
        """Return ``Σ_ij G_ij S^k_ij`` for every ``k``, summed over a stack."""
        flat = prepared.reshape(*prepared.shape[:-2], -1)
        inner = flat @ G.reshape(*G.shape[:-2], -1, 1)
        return np.asarray(inner.reshape(-1, len(parameters)).sum(axis=0))


class MultipleKernel(Mixture):
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
        blocks: Sequence[str | None] = [None] if self.blocks is None else self.blocks
        given = self.bandwidths
        if isinstance(given, Mapping) and set(given) != set(blocks):
            raise ValueError(
                f"bandwidths are given for the blocks {sorted(given)} but the kernel "
                f"reads {'one without a name' if self.blocks is None else list(blocks)}"
            )
        self.bandwidths_: dict[str | None, FloatArray] = {}
        for block in blocks:
            ladder: Any = given[block] if isinstance(given, Mapping) else given  # type: ignore[index]
            if ladder is None:
                ladder = _median_distance(ground_sets, block) * _LADDER
            for bandwidth in ladder:
                check_number("a bandwidth", bandwidth, positive=True)
            self.bandwidths_[block] = np.array(ladder, dtype=np.float64)
        return self

    def get_state(self) -> dict[str, Any]:
        """Return the bandwidths that were settled, block by block."""
        return {
            "bandwidths": [
                {"block": block, "values": values.tolist()}
                for block, values in self._settled_bandwidths().items()
            ]
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Take the bandwidths as settled."""
        entries = state["bandwidths"]
        names = {entry["block"] for entry in entries}
        if names != ({None} if self.blocks is None else set(self.blocks)):
            raise ValueError("the bandwidths are not those of the kernel's blocks")
        for entry in entries:
            for bandwidth in entry["values"]:
                check_number("a bandwidth", bandwidth, positive=True)
        self.bandwidths_ = {
            entry["block"]: np.array(entry["values"], dtype=np.float64)
            for entry in entries
        }

    def _settled_bandwidths(self) -> dict[str | None, FloatArray]:
        if not hasattr(self, "bandwidths_"):
            if self.bandwidths is None:
                raise ValueError("the bandwidths are not settled yet: call fit first")
            self.fit([])
        return self.bandwidths_

    def _base_kernels(self) -> Sequence[FixedKernel]:
        settled = self._settled_bandwidths()
        kernels: list[FixedKernel] = [
            Gaussian(float(bandwidth), block=block)
            for block, bandwidths in settled.items()
            for bandwidth in bandwidths
        ]
        if self.linear:
            kernels += [Linear(block=block) for block in settled]
        if not kernels:
            raise ValueError(
                "a multiple kernel needs at least one bandwidth or linear=True"
            )
        return kernels

    def prepare(self, ground_set: GroundSet) -> FloatArray:
        """Return the base similarities, (K, N, N), each distance computed once."""
        matrices = []
        settled = self._settled_bandwidths()
        for block, bandwidths in settled.items():
            if len(bandwidths):
                distances = squared_distances(ground_set.features(block))
                matrices += [np.exp(-distances / sigma**2) for sigma in bandwidths]
        if self.linear:
            matrices += [Linear(block=block).matrix(ground_set) for block in settled]
        return np.stack(matrices)

    def split(self, weights: FloatArray) -> tuple[FloatArray, FloatArray | float]:
        """Return ``(α, β)`` from the weights, as the paper names them.

        With named blocks ``α`` is a flat array, block after block, and ``β`` has one
        entry a block; without, ``β`` is a number.
        """
        n_gaussians = sum(len(b) for b in self._settled_bandwidths().values())
        alpha, beta = weights[:n_gaussians], weights[n_gaussians:]
        if self.blocks is not None:
            return alpha, beta
        return alpha, float(beta[0]) if self.linear else 0.0


def _median_distance(ground_sets: Sequence[GroundSet], block: str | None) -> float:
    """Return the median over ground sets of the median distance between items."""
    medians = []
    for ground_set in ground_sets:
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
