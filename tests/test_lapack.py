import numpy as np
import pytest

from variegate.linalg.lapack import (
    SYMMETRIC_EIGENVALUES,
    cholesky,
    dsyev_arguments,
    inverse_from_cholesky,
    symmetric_rank_k_update,
)


def definite(n, seed=0):
    X = np.random.default_rng(seed).standard_normal((n, n + 2))
    return X @ X.T


@pytest.mark.parametrize("n", [1, 2, 5, 70])
def test_factor_and_inverse_in_the_lower_triangle(n):
    M = definite(n)
    work = M.copy()
    work[np.triu_indices(n, 1)] = np.nan  # never read
    assert cholesky(work)
    np.testing.assert_allclose(np.tril(work), np.linalg.cholesky(M), rtol=1e-10)
    inverse_from_cholesky(work)
    expected = np.linalg.inv(M)
    atol = 1e-9 * np.abs(expected).max()
    np.testing.assert_allclose(np.tril(work), np.tril(expected), atol=atol)


def test_what_has_no_factor():
    assert not cholesky(np.array([[1.0, 0.0], [2.0, 1.0]]))
    assert not cholesky(np.full((1, 1), -1.0))


@pytest.mark.parametrize("n", [1, 2, 5, 70])
def test_eigenvalues_of_a_symmetric_matrix(n):
    M = definite(n) - n * np.eye(n)
    numbers, values = dsyev_arguments(n), np.empty(n)
    job, triangle, size, room, failed = (numbers[place:] for place in range(5))
    work = np.empty(room[0])
    arguments = (job, triangle, size, M.copy(), size, values, work, room, failed)
    SYMMETRIC_EIGENVALUES(*(array.ctypes.data for array in arguments))
    assert failed[0] == 0
    np.testing.assert_allclose(values, np.linalg.eigvalsh(M), rtol=1e-10)


@pytest.mark.parametrize("shape", [(1, 1), (4, 2), (3, 8), (50, 50), (5, 0)])
def test_symmetric_products(shape):
    rng = np.random.default_rng(1)
    X, C = rng.standard_normal(shape), definite(shape[0], 2)
    expected = -2.0 * X @ X.T + 0.5 * C if shape[1] else C
    work = C.copy()
    symmetric_rank_k_update(work, X, -2.0, 0.5)
    np.testing.assert_allclose(np.tril(work), np.tril(expected), atol=1e-10)


def test_arrays_must_lie_in_rows():
    with pytest.raises(ValueError, match="C-contiguous"):
        cholesky(np.asfortranarray(definite(3)))
