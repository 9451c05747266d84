"""Check the arrays that ``variegate.select`` takes."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate._typing import FloatArray
from variegate._validation import check_real
from variegate.linalg.cosine import chunks, unit_rows

__all__ = ["check_embeddings", "check_relevance"]

#: Numbers of sparse embeddings that are made dense, at most: 800 MB.
_MOST_NUMBERS = 1e8


def check_embeddings(embeddings: Any, given: Any) -> tuple[FloatArray, FloatArray]:
    """Return embeddings (N, D) and given ones (M, D), with rows of length one or zero.

    Both may be sparse; ``given`` may also be None, empty or a single vector.  Equal
    rows of ``given`` are returned once, rows of zeros not at all.
    """
    if given is None:
        given = np.zeros((0, 0))
    elif not hasattr(given, "tocsc"):
        given = np.atleast_2d(_as_floats("given", given))
    is_empty = 0 in given.shape
    if hasattr(embeddings, "tocsc"):  # without importing SciPy
        embeddings = embeddings.tocsc()
        _check_width(given, embeddings.shape)
        used = np.diff(embeddings.indptr) > 0
        if not is_empty:
            if not hasattr(given, "tocsc"):
                given = type(embeddings)(given)
            given = given.tocsc()
            used |= np.diff(given.indptr) > 0
            given = _make_dense("given", given, used)
        embeddings = _make_dense("embeddings", embeddings, used)
    elif hasattr(given, "tocsc"):
        given = given.tocsc()
        given = _make_dense("given", given, np.ones(given.shape[1], dtype=bool))
    array = _as_floats("embeddings", embeddings)
    if array.ndim != 2 or len(array) == 0:
        raise ValueError(
            f"embeddings must be a matrix with one row an item, got shape {array.shape}"
        )
    F = _unit_rows("embeddings", array)
    if is_empty:
        return F, np.zeros((0, F.shape[1]))
    _check_width(given, array.shape)
    rows = _unit_rows("given", given)
    _, first = np.unique(rows, axis=0, return_index=True)
    rows = rows[np.sort(first)]
    return F, rows[rows.any(axis=1)]


def _check_width(given: Any, shape: tuple[int, ...]) -> None:
    """Raise ValueError unless ``given`` is empty or a matrix as wide as ``shape``."""
    if 0 not in given.shape and (given.ndim != 2 or given.shape[1] != shape[-1]):
        raise ValueError(
            f"given has shape {given.shape}, expected (M, {shape[-1]}): embeddings of "
            "items that are there already, with the columns of embeddings; for numbers "
            "of candidates use include or exclude"
        )


def check_relevance(relevance: Any, n_items: int) -> FloatArray:
    """Return the relevance (N,) as checked floats, zeros if None is given."""
    if relevance is None:
        return np.zeros(n_items)
    array = _as_floats("relevance", relevance)
    if array.shape == ():
        name = "k" if array % 1 == 0 else "diversity"
        raise ValueError(
            f"relevance is the number {relevance!r}, expected {n_items} numbers, one "
            f"for each row of embeddings; perhaps you mean {name}={relevance!r}"
        )
    if array.shape != (n_items,):
        raise ValueError(
            f"relevance has shape {array.shape}, expected ({n_items},): one number for "
            "each row of embeddings"
        )
    if len(bad := np.flatnonzero(~np.isfinite(array))):
        raise ValueError(
            f"relevance of item {bad[0]} is {array[bad[0]]}: give every item a finite "
            "number"
        )
    return array


def _as_floats(name: str, values: Any) -> FloatArray:
    """Return ``values`` as an array of floats; errors call it ``name``."""
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} must be an array of numbers: {error}") from None
    check_real(name, array)
    try:
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of numbers: {error}") from None


def _make_dense(name: str, matrix: Any, used: Any) -> FloatArray:
    """Return the ``used`` columns of a CSC matrix, dense; ValueError if too large."""
    columns = matrix[:, np.flatnonzero(used)]
    if np.prod(columns.shape, dtype=float) > _MOST_NUMBERS:
        raise ValueError(
            f"sparse {name} of shape {matrix.shape} are too large to be dense: "
            "reduce their columns first, such as by sklearn.decomposition.TruncatedSVD"
        )
    return np.asarray(columns.toarray(), dtype=np.float64)


def _unit_rows(name: str, array: FloatArray) -> FloatArray:
    """Return the rows of a matrix with length one or zero; ValueError if not finite."""
    F = np.empty(array.shape)
    for rows in chunks(len(array)):
        if len(bad := np.flatnonzero(~np.isfinite(array[rows]).all(axis=1))):
            raise ValueError(
                f"{name} holds NaN or infinite values in row "
                f"{rows.start + bad[0]}: drop or fill such rows"
            )
        F[rows] = unit_rows(array[rows])
    return F
