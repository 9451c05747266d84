"""Weighted sums of fixed similarities, each held by one triangle, on a device.

A few rows of very many numbers: one similarity of all ground sets a row.  A sum with
weights is one product with the rows, and so is its gradient: each reads every number
once.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import torch
from torch import Tensor

__all__ = ["LongRows", "PackedSimilarities"]

#: Inner products of long rows are taken piece by piece, so that a GPU has enough to do.
_PIECE = 16_384


class LongRows:
    """A matrix of a few long rows.

    Parameters
    ----------
    rows : tensor of shape (K, M)
    """

    def __init__(self, rows: Tensor) -> None:
        self.rows = rows

    def combined(self, weights: Tensor) -> Tensor:
        """Return the sum (M,) of the rows with weights (K,)."""
        return weights @ self.rows

    def products(self, values: Tensor) -> Tensor:
        """Return the inner products (K,) of the rows with values (M,)."""
        n_pieces = len(values) // _PIECE
        if n_pieces < 2:
            return self.rows @ values
        whole = n_pieces * _PIECE
        pieces = self.rows[:, :whole].unflatten(1, (n_pieces, _PIECE)).transpose(0, 1)
        found = torch.bmm(pieces, values[:whole].view(n_pieces, _PIECE, 1))
        return found.sum(dim=0).squeeze(-1) + self.rows[:, whole:] @ values[whole:]


class PackedSimilarities:
    """Similarities of ground sets of equal size, to be summed with weights.

    Parameters
    ----------
    matrices : iterable of K symmetric tensors of shape (B, N, N)
        Looked at one after the other.
    n_matrices : int
        ``K``, at least 1.

    Attributes
    ----------
    n_sets, n_items : int
    rows : LongRows, of shape (K, B N (N + 1) / 2)
        The entries on and below the diagonal, row by row, set by set.
    """

    def __init__(self, matrices: Iterable[Tensor], n_matrices: int) -> None:
        for number, matrix in enumerate(matrices):
            if number == 0:
                self.n_sets, self.n_items = matrix.shape[:2]
                self._device = matrix.device
                shape = (n_matrices, self.n_sets * len(self._lower))
                rows = matrix.new_empty(shape)
            self._pack(matrix, rows[number])
        self.rows = LongRows(rows)

    @cached_property
    def _lower(self) -> Tensor:
        """Where the entries of a triangle stand in a matrix."""
        row, column = torch.tril_indices(
            self.n_items, self.n_items, device=self._device
        )
        return row * self.n_items + column

    @cached_property
    def _places(self) -> Tensor:
        """Where the entries of a matrix stand in the triangle."""
        item = torch.arange(self.n_items, device=self._device)
        row = torch.maximum(item[:, None], item)
        column = torch.minimum(item[:, None], item)
        return (row * (row + 1) // 2 + column).view(-1)

    @cached_property
    def _counts(self) -> Tensor:
        """How often an entry of the triangle stands in the matrix."""
        row, column = self._lower // self.n_items, self._lower % self.n_items
        return torch.where(row == column, 1.0, 2.0).to(self.rows.rows.dtype)

    def _pack(self, matrix: Tensor, out: Tensor) -> Tensor:
        flat = matrix.reshape(self.n_sets, -1)
        triangles = out.view(self.n_sets, -1)
        return torch.index_select(flat, 1, self._lower, out=triangles)

    def mixture(self, weights: Tensor) -> Tensor:
        """Return the sum (B, N, N) with weights (K,)."""
        triangles = self.rows.combined(weights).view(self.n_sets, -1)
        flat = triangles.index_select(1, self._places)
        return flat.view(self.n_sets, self.n_items, self.n_items)

    def inner_products(self, G: Tensor) -> Tensor:
        """Return ``Σ_ij G_ij S^k_ij`` of every similarity, for a symmetric ``G``."""
        triangles = G.new_empty(self.rows.rows.shape[1])
        packed = self._pack(G, triangles)
        packed *= self._counts
        return self.rows.products(triangles)

    def first_not_finite(self) -> int | None:
        """Return the number of a ground set with NaN or infinite similarities."""
        fine = torch.stack([row.isfinite().all() for row in self.rows.rows])
        if bool(fine.all()):
            return None
        per_set = self.rows.rows.view(len(fine), self.n_sets, -1).isfinite()
        return int(torch.argmin(per_set.all(dim=2).all(dim=0).to(torch.uint8)))
