from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.linalg import lapack

from instances import random_kernel_matrix
from variegate.linalg.determinants import log_principal_minors, split_scale
from variegate.linalg.spectrum import (
    canonicalize_basis,
    eigenpairs,
    find_repeated_eigenvalues,
    symmetric_eigenpairs,
)


@pytest.mark.parametrize("spread", [0.0, 3.0, 30.0, 200.0])
@pytest.mark.parametrize("rank", [2, 6])
def test_eigenpairs_of_graded_kernels(rank, spread):
    rng = np.random.default_rng(0)
    S, log_scale = split_scale(random_kernel_matrix(rng, 6, rank=rank))
    log_scale = log_scale + spread * np.linspace(-1, 1, 6)[rng.permutation(6)]
    log_values, eigenvectors = eigenpairs(S, log_scale)
    vectors = eigenvectors.all()
    finite = np.isfinite(log_values)
    assert finite.sum() == rank
    np.testing.assert_allclose(
        vectors[finite] @ vectors[finite].T, np.eye(rank), atol=1e-12
    )
    # The principal minors of the size of the rank sum to the product of the nonzero
    # eigenvalues.
    minors = log_principal_minors(S, log_scale)
    sizes = np.array([bin(y).count("1") for y in range(64)])
    total = np.logaddexp.reduce(minors[sizes == rank])
    assert log_values[finite].sum() == pytest.approx(total, rel=1e-12, abs=1e-9)


@pytest.mark.parametrize("n", [1, 2, 100, 101, 300])
def test_eigenpairs_of_a_symmetric_matrix(n):
    rng = np.random.default_rng(n)
    A = rng.standard_normal((n, n))
    A = A + A.T
    values, vectors = symmetric_eigenpairs(A.copy())
    rows = vectors.all()
    assert vectors.shape == rows.shape == (n, n)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(A), atol=1e-12 * n)
    np.testing.assert_allclose(rows @ rows.T, np.eye(n), atol=1e-13 * n)
    np.testing.assert_allclose(rows @ A, values[:, None] * rows, atol=1e-12 * n)


def test_few_vectors_are_the_rows_of_all():
    A = np.random.default_rng(0).standard_normal((200, 200))
    _, vectors = symmetric_eigenpairs(A + A.T)
    wanted = np.array([7, 199, 0, 7])
    rows, where = vectors.select(wanted)
    assert len(rows) == (3 if hasattr(lapack, "dstevd") else 200)  # SciPy 1.15
    np.testing.assert_allclose(rows[where], vectors.all()[wanted], atol=1e-13)


def test_many_vectors_are_finished_once():
    A = np.random.default_rng(0).standard_normal((200, 200))
    _, vectors = symmetric_eigenpairs(A + A.T)
    for first in range(0, 100, 20):
        rows, where = vectors.select(np.arange(first, first + 20))
    assert rows is vectors.all()
    assert where.tolist() == list(range(80, 100))


def test_threads_may_ask_together():
    A = np.random.default_rng(0).standard_normal((200, 200))
    expected = symmetric_eigenpairs(A + A.T)[1].all()
    for _ in range(5):
        _, vectors = symmetric_eigenpairs(A + A.T)

        def ask(seed, vectors=vectors):
            wanted = np.random.default_rng(seed).integers(200, size=10)
            rows, where = vectors.select(wanted)
            return np.abs(rows[where] - expected[wanted]).max()

        with ThreadPoolExecutor(8) as pool:
            assert max(pool.map(ask, range(24))) < 1e-12


@pytest.mark.parametrize("n", [12, 130])
def test_the_basis_of_a_repeated_eigenvalue_is_fixed_by_its_span(n):
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((n, n)))[0].T
    values = np.array([1.0] * (n // 2) + [2.0] + [3.0] * (n - n // 2 - 1))
    spaces = find_repeated_eigenvalues(values)
    assert spaces == [slice(0, n // 2), slice(n // 2 + 1, n)]
    turned = basis.copy()
    for space in spaces:
        size = space.stop - space.start
        turn = np.linalg.qr(rng.standard_normal((size, size)))[0]
        turned[space] = turn @ basis[space]
    assert np.abs(turned - basis).max() > 0.1
    fixed, again = canonicalize_basis(basis, spaces), canonicalize_basis(turned, spaces)
    # Up to signs, which no sampler looks at.
    np.testing.assert_allclose(np.abs(fixed), np.abs(again), atol=1e-9)
    np.testing.assert_allclose(fixed @ fixed.T, np.eye(n), atol=1e-12)
    for space in spaces:
        before, after = basis[space], fixed[space]
        np.testing.assert_allclose(after.T @ after, before.T @ before, atol=1e-12)


def test_equal_items_leave_no_choice_of_pivots():
    # The complement of the ones, in two bases.
    n = 30
    rows = np.linalg.eigh(np.full((n, n), 1.0))[1].T[:-1]
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((n - 1, n - 1)))[0]
    fixed = canonicalize_basis(rows, [slice(0, n - 1)])
    again = canonicalize_basis(turn @ rows, [slice(0, n - 1)])
    np.testing.assert_allclose(np.abs(fixed), np.abs(again), atol=1e-9)


def test_eigenvalues_that_are_only_near_or_are_rounding_are_left_alone():
    assert find_repeated_eigenvalues(np.array([1e-17, 2e-17, 1.0, 1.001])) == []
    assert find_repeated_eigenvalues(np.array([1e-9, 2e-9, 1.0])) == []
    assert find_repeated_eigenvalues(np.zeros(3)) == []
    assert find_repeated_eigenvalues(np.zeros(0)) == []
    assert find_repeated_eigenvalues(np.array([3.0, 3.0, 1.0])) == [slice(0, 2)]
