"""Convex combinations of similarities with learned weights, held in little memory.

Of Gaussians of many bandwidths a few are held: the others are powers of them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from variegate._typing import FloatArray, IntArray
from variegate.ground_set import GroundSet
from variegate.kernels.base import Kernel
from variegate.kernels.domains import Simplex
from variegate.linalg.limits import STACK_LIMIT

#: Rungs of a chain, at most: each takes a fourth power, which multiplies relative
#: errors by four.
_LONGEST = 5


@dataclass(frozen=True, eq=False)
class Chains:
    """Chains of similarities, each the fourth power of the one before.

    A similarity of a chain is a rung; rungs are numbered chain by chain.  Halving the
    bandwidth of a Gaussian takes its fourth power.  Where Gaussians are anchored, they
    are held less 1, so that no digit is lost.
    """

    #: The block and bandwidth that each chain begins with; None for a linear part.
    bandwidths: list[tuple[str | None, float | None]]
    first: IntArray  # the number of the first rung of each chain
    length: IntArray  # the number of rungs of each chain
    order: IntArray  # the index of the weight of each rung
    scale: FloatArray  # by weight, the factor that multiplies its similarity


@lru_cache(maxsize=64)  # asked for again for every ground set
def build_chains(
    bandwidths: tuple[tuple[str | None, tuple[float, ...]], ...],
    linear: tuple[str | None, ...],
    anchored: bool = False,
) -> Chains:
    """Return the chains of Gaussians, block by block, then of linear parts.

    ``bandwidths`` holds pairs of a block and its bandwidths, ``linear`` the blocks with
    a linear part.  Weights are numbered in this order.  The result is cached.
    """
    starts: list[tuple[str | None, float | None]] = []
    members: list[list[int]] = []
    scale: list[float] = []
    number = 0
    for block, widths in bandwidths:
        before = np.inf
        for place in np.argsort(-np.array(widths), kind="stable"):
            width = widths[place]
            is_half = abs(before - 2.0 * width) <= 1e-14 * before < np.inf
            if is_half and len(members[-1]) < _LONGEST:
                members[-1].append(number + int(place))
            else:
                starts.append((block, width))
                members.append([number + int(place)])
            before = width
        number += len(widths)
        scale += [0.5 * width * width if anchored else 1.0 for width in widths]
    for block in linear:
        starts.append((block, None))
        members.append([number])
        number += 1
    length = np.array([len(chain) for chain in members])
    return Chains(
        starts,
        np.cumsum(length) - length,
        length,
        np.concatenate([np.array(chain, dtype=np.int64) for chain in members]),
        np.array([*scale, *(1.0 for _ in linear)]),
    )


def single_rung_chains(n_weights: int) -> Chains:
    """Return a chain of a single similarity for each weight, in the same order."""
    every = np.arange(n_weights)
    return Chains([], every, np.ones_like(every), every, np.ones(n_weights))


@dataclass(frozen=True, eq=False)
class PackedSimilarities:
    """The first similarity of every chain, for B ground sets of equal size.

    ``compiled`` tells whether compiled loops do the work, which pays where a problem
    evaluates many entries again and again.
    """

    chains: Chains
    packed: FloatArray  # (B, chains, N (N - 1) / 2), below the diagonal, row by row
    diagonal: FloatArray  # (B, chains, N)
    #: (B, weights, N), subtracted for both items of a pair.
    anchors: FloatArray | None = None
    is_stack: bool = False  # else one ground set alone
    compiled: bool = False

    @classmethod
    def of_features(
        cls, chains: Chains, features: Mapping[str | None, FloatArray]
    ) -> PackedSimilarities:
        """Return the packed similarities of features (B, N, p) by block."""
        n_sets, n, _ = next(iter(features.values())).shape
        packed = np.empty((n_sets, len(chains.bandwidths), n * (n - 1) // 2))
        diagonal = np.ones((n_sets, len(chains.bandwidths), n))
        gaussians = {block for block, width in chains.bandwidths if width is not None}
        distances = {block: _squared_distances(features[block]) for block in gaussians}
        for place, (block, width) in enumerate(chains.bandwidths):
            if width is None:
                products = features[block] @ features[block].mT
                packed[:, place] = products[:, *_tril_indices(n)]
                diagonal[:, place] = np.einsum("bii->bi", products)
            else:  # divided twice, so that no square overflows
                np.exp(-distances[block] / width / width, out=packed[:, place])
        return cls(chains, packed, diagonal, is_stack=True)

    @classmethod
    def stack(cls, several: Sequence[PackedSimilarities]) -> PackedSimilarities:
        """Return a stack of ground sets of equal size and with the same chains."""
        if len(several) == 1:
            return replace(several[0], is_stack=True)
        anchors = [one.anchors for one in several if one.anchors is not None]
        return cls(
            several[0].chains,
            np.concatenate([one.packed for one in several]),
            np.concatenate([one.diagonal for one in several]),
            np.concatenate(anchors) if anchors else None,
            is_stack=True,
        )

    @property
    def shape(self) -> tuple[int, int, int]:
        """Return the shape (B, N, N) of the similarities."""
        n_sets, _, n = self.diagonal.shape
        return n_sets, n, n

    def mixture(self, weights: FloatArray, out: FloatArray | None = None) -> FloatArray:
        """Return the weighted sum (B, N, N); (N, N) of one ground set not in a stack.

        There is a weight for each similarity, in the order of :func:`build_chains`;
        ``out`` (B, N, N) is filled, if given.
        """
        S = np.empty(self.shape) if out is None else out
        scaled = weights * self.chains.scale
        anchors = None if self.anchors is None else scaled @ self.anchors
        by_rung = scaled[self.chains.order]
        if self.compiled:
            from variegate.linalg.compiled.similarities import fill_mixture

            anchors = np.empty((0, 0)) if anchors is None else anchors
            fill_mixture(*self._compiled_arguments(), by_rung, anchors, S)
        else:
            self._fill_mixture(by_rung, anchors, S)
        return S if self.is_stack else np.asarray(S[0])

    def _compiled_arguments(self) -> tuple[FloatArray, FloatArray, IntArray, IntArray]:
        """Return triangles, diagonals, first rungs and lengths for compiled loops."""
        from variegate.linalg.compiled import read_only

        held = read_only(self.packed), read_only(self.diagonal)
        return *held, self.chains.first, self.chains.length

    def _generate_rungs(self) -> Iterator[tuple[int, int, FloatArray]]:
        """Yield chain, number and entries below the diagonal (B, n) of every rung."""
        for chain, (first, length) in enumerate(
            zip(self.chains.first.tolist(), self.chains.length.tolist(), strict=True)
        ):
            x = self.packed[:, chain]
            for number in range(first, first + length):
                yield chain, number, x
                if number + 1 == first + length:
                    break
                if self.anchors is not None:
                    x = x * (4.0 + x * (6.0 + x * (4.0 + x)))
                else:
                    x = np.square(np.square(x))

    def _fill_mixture(
        self, weights: FloatArray, anchors: FloatArray | None, S: FloatArray
    ) -> None:
        """Fill ``S`` (B, N, N) with the weighted sum of all rungs, by NumPy.

        ``weights`` are ordered by rung; ``anchors`` (B, N) are subtracted for both
        items of a pair.
        """
        rows, columns = _tril_indices(S.shape[-1])
        own = np.zeros(self.diagonal[:, 0].shape)
        below = np.zeros(self.packed[:, 0].shape)
        if anchors is not None:
            own -= 2.0 * anchors
            below -= anchors[:, rows] + anchors[:, columns]
        for chain, number, x in self._generate_rungs():
            own += weights[number] * self.diagonal[:, chain]
            below += weights[number] * x
        S[:, rows, columns] = S[:, columns, rows] = below
        np.einsum("bii->bi", S)[:] = own

    def inner_products(self, G: FloatArray) -> FloatArray:
        """Return sums (weights,) of ``G ∘ S^k``, for ``G`` (N, N) or (B, N, N)."""
        found = np.zeros(len(self.chains.order))
        G = G if G.ndim == 3 else G[None]
        if self.compiled:
            from variegate.linalg.compiled import read_only
            from variegate.linalg.compiled.similarities import add_inner_products

            is_anchored = self.anchors is not None
            add_inner_products(
                *self._compiled_arguments(), is_anchored, read_only(G), found
            )
        else:
            own, below = np.einsum("bii->bi", G), G[:, *_tril_indices(G.shape[-1])]
            for chain, number, x in self._generate_rungs():
                # Not by BLAS, whose sums depend on the number of its threads.
                found[number] = np.einsum("bi,bi->", own, self.diagonal[:, chain])
                found[number] += 2.0 * np.einsum("bi,bi->", below, x)
        by_weight = np.empty_like(found)
        by_weight[self.chains.order] = found
        if self.anchors is not None:
            by_weight -= 2.0 * np.einsum("bkn,bn->k", self.anchors, G.sum(axis=-1))
        return by_weight * self.chains.scale


def _tril_indices(n_items: int) -> tuple[IntArray, IntArray]:
    """Return rows and columns of the entries below the diagonal, row by row."""
    if n_items <= STACK_LIMIT:
        return _cached_tril_indices(n_items)
    return np.tril_indices(n_items, -1)


@lru_cache(maxsize=STACK_LIMIT)
def _cached_tril_indices(n_items: int) -> tuple[IntArray, IntArray]:
    """Return the same as ``_tril_indices``, from a cache for small ground sets."""
    return np.tril_indices(n_items, -1)


def _tril_rows(n_items: int) -> Iterator[tuple[int, slice]]:
    """Yield rows 1, 2, ..., and the slice of each in entries packed row by row."""
    for i in range(1, n_items):
        yield i, slice(i * (i - 1) // 2, i * (i + 1) // 2)


def _squared_distances(features: FloatArray) -> FloatArray:
    """Return squared distances (B, N (N - 1) / 2) of items (B, N, p).

    By differences, as in :func:`variegate.kernels.gaussian.squared_distances`.
    """
    n_sets, n, _ = features.shape
    packed = np.empty((n_sets, n * (n - 1) // 2))
    for i, entries in _tril_rows(n):
        difference = features[:, i, None] - features[:, :i]
        packed[:, entries] = np.einsum("bjp,bjp->bj", difference, difference)
    return packed


class WeightedSum(Kernel):
    r"""A convex combination of similarities, its weights learned.

    .. math:: S = \sum_k w_k S^k, \qquad w_k \ge 0, \quad \sum_k w_k = 1,
        \qquad \partial f / \partial w_k = \sum_{ij} G_{ij} S^k_{ij}

    A subclass defines :attr:`n_weights` and :meth:`matrices`.
    """

    stackable = True
    makes_new = True

    @property
    @abstractmethod
    def n_weights(self) -> int:
        """Return the number of similarities."""

    @abstractmethod
    def matrices(self, ground_set: GroundSet) -> Sequence[FloatArray]:
        """Return the similarities ``S^k`` (N, N) of a ground set."""

    @property
    def domain(self) -> Simplex:
        """Return the simplex of the weights."""
        return Simplex(self.n_weights)

    def prepare(self, ground_set: GroundSet) -> PackedSimilarities:
        """Return a ground set's similarities, packed: entries below the diagonals."""
        return pack_similarities(
            single_rung_chains(self.n_weights), self.matrices(ground_set)
        )

    def stack(self, prepared: Sequence[PackedSimilarities]) -> PackedSimilarities:
        """Stack packed ground sets of equal size."""
        return PackedSimilarities.stack(prepared)

    def value(self, prepared: PackedSimilarities, parameters: FloatArray) -> FloatArray:
        """Return the sum of similarities weighted by ``parameters``."""
        return prepared.mixture(parameters)

    def pull_back(
        self, prepared: PackedSimilarities, parameters: FloatArray, G: FloatArray
    ) -> FloatArray:
        """Return ``Σ_ij G_ij S^k_ij`` for every ``k``, summed over a stack."""
        return prepared.inner_products(G)


def pack_similarities(
    chains: Chains,
    matrices: Sequence[FloatArray],
    anchors: FloatArray | None = None,
) -> PackedSimilarities:
    """Return packed similarities from ``matrices``, the first (N, N) of each chain.

    ``anchors`` (weights, N) are subtracted for both items.  ValueError for NaN or inf.
    """
    parts = [*matrices, chains.scale]
    if not all(np.isfinite(part).all() for part in parts):
        raise ValueError(
            "the similarity holds NaN or infinite values: the features are too large "
            "for this kernel"
        )
    n = len(matrices[0])
    below = np.empty((1, len(matrices), n * (n - 1) // 2))
    diagonal = np.empty((1, len(matrices), n))
    for place, matrix in enumerate(matrices):
        for i, entries in _tril_rows(n):
            below[0, place, entries] = matrix[i, :i]
        diagonal[0, place] = np.diagonal(matrix)
    anchors = None if anchors is None else anchors[None]
    return PackedSimilarities(chains, below, diagonal, anchors)
