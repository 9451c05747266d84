from pathlib import Path

import numpy as np
import pytest

import reference
from instances import random_kernel_matrix
from variegate.compiled.spd import invert
from variegate.linalg import limits
from variegate.linalg.determinants import (
    NotPositiveDefiniteError,
    log_det_and_inverse,
    log_principal_minors,
    normalizer_and_marginal_kernel,
    split_scale,
)
from variegate.linalg.limits import STACK_LIMIT


def random_stack(rng, n_matrices, n):
    return np.stack(
        [random_kernel_matrix(rng, n) + np.eye(n) for _ in range(n_matrices)]
    )


@pytest.mark.parametrize("n", [1, 2, 10, STACK_LIMIT, STACK_LIMIT + 1])
@pytest.mark.parametrize("n_matrices", [1, 5])
def test_log_det_and_inverse_equal_numpy(n_matrices, n):
    M = random_stack(np.random.default_rng(n), n_matrices, n)
    log_det, inverse = log_det_and_inverse(M)
    np.testing.assert_allclose(log_det, np.linalg.slogdet(M)[1], rtol=1e-12)
    np.testing.assert_allclose(inverse, np.linalg.inv(M), rtol=1e-8, atol=1e-12)
    np.testing.assert_array_equal(inverse, inverse.mT)


def test_one_matrix_and_no_items():
    M = random_stack(np.random.default_rng(0), 1, 4)[0]
    log_det, inverse = log_det_and_inverse(M)
    assert log_det.shape == ()
    np.testing.assert_allclose(inverse @ M, np.eye(4), atol=1e-10)
    assert log_det_and_inverse(np.zeros((3, 0, 0)))[0].tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("n", [3, STACK_LIMIT + 1])
def test_failure_names_the_matrix(n):
    M = random_stack(np.random.default_rng(0), 4, n)
    M[2] -= 1000 * np.eye(n)
    with pytest.raises(NotPositiveDefiniteError) as caught:
        log_det_and_inverse(M)
    assert caught.value.index == 2


def test_compiled_inverse_does_not_need_the_upper_triangle():
    M = random_stack(np.random.default_rng(0), 1, 5)[0]
    inverse = np.empty_like(M)
    exists, log_det = invert(np.tril(M), 5, 0.0, np.empty_like(M), inverse)
    assert exists
    assert log_det == pytest.approx(np.linalg.slogdet(M)[1], rel=1e-12)
    np.testing.assert_allclose(inverse, np.linalg.inv(M), rtol=1e-9)


@pytest.mark.parametrize("n", [4, STACK_LIMIT + 1])
def test_a_singular_matrix_is_told_from_a_small_one(n):
    rng = np.random.default_rng(0)
    M = np.stack([1e-30 * (random_kernel_matrix(rng, n) + np.eye(n))] * 2)
    log_det_and_inverse(M, tolerance=1e-12)
    M[1] = random_kernel_matrix(rng, n, rank=n - 1)
    with pytest.raises(NotPositiveDefiniteError) as caught:
        log_det_and_inverse(M, tolerance=1e-12)
    assert caught.value.index == 1


def test_nan_is_not_positive_definite():
    M = random_stack(np.random.default_rng(0), 2, 3)
    M[1, 0, 0] = np.nan
    with pytest.raises(NotPositiveDefiniteError):
        log_det_and_inverse(M)


def test_split_scale_undoes_itself():
    L = random_kernel_matrix(np.random.default_rng(0), 4) * 1e100
    L[2] = L[:, 2] = 0.0
    S, log_scale = split_scale(L)
    scale = np.exp(log_scale)
    np.testing.assert_allclose(scale[:, None] * S * scale, L, rtol=1e-12)
    assert S.diagonal().tolist() == pytest.approx([1.0, 1.0, 0.0, 1.0])


@pytest.mark.parametrize("n", [1, 4, 11])
@pytest.mark.parametrize("rank", [1, 3, 11])
def test_log_principal_minors_equal_determinants(n, rank):
    L = random_kernel_matrix(np.random.default_rng(n), n, rank=min(n, rank))
    log_dets = log_principal_minors(*split_scale(L))
    assert log_dets.shape == (2**n,)
    for y in reference.all_subsets(n):
        position = sum(1 << i for i in y)
        if len(y) > min(n, rank):
            # Zero, or what rounding leaves of it after a nearly singular subset.
            assert np.exp(log_dets[position]) < 1e-12 * np.prod(L.diagonal()[list(y)])
        else:
            det = reference.det_subset(L, y)
            assert np.exp(log_dets[position]) == pytest.approx(det, rel=1e-7)


# The marginal kernel where Cholesky loses its digits -------------------------------


@pytest.mark.parametrize("scale", [1.0, 1e8, 1e14, 1e30, 1e120])
def test_marginal_kernel_of_a_large_singular_kernel(scale):
    # As L = s B B^T grows, K tends to the projection onto the columns of B.
    B = np.random.default_rng(0).standard_normal((8, 3))
    S, log_scale = split_scale(B @ B.T)
    log_det, K = normalizer_and_marginal_kernel(S, log_scale + 0.5 * np.log(scale))
    gram = B.T @ B
    expected = B @ np.linalg.solve(gram + np.eye(3) / scale, B.T)
    np.testing.assert_allclose(K, expected, atol=1e-10)
    expected_log_det = (
        3 * np.log(scale) + np.linalg.slogdet(gram + np.eye(3) / scale)[1]
    )
    assert log_det == pytest.approx(expected_log_det, rel=1e-10)


def test_marginal_kernel_of_a_singular_graded_kernel():
    # Twins of widely different quality: L = [[a², ab], [ab, b²]] has one eigenvalue.
    u = np.array([40.0, -5.0, 0.0])
    S = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    log_det, K = normalizer_and_marginal_kernel(S, u)
    # K_22 = b²/(1 + a² + b²), about exp(-90); the third item is by itself.
    assert K[0, 0] == pytest.approx(1.0)
    assert K[1, 1] == pytest.approx(np.exp(-90.0), rel=1e-9)
    assert K[0, 1] == pytest.approx(np.exp(-45.0), rel=1e-9)
    assert K[2, 2] == pytest.approx(0.5)
    assert log_det == pytest.approx(80.0 + np.log(2.0))


def test_marginal_kernel_with_qualities_beyond_any_number():
    S = np.ones((3, 3))
    log_det, K = normalizer_and_marginal_kernel(S, np.array([2000.0, 2000.0, -2000.0]))
    np.testing.assert_allclose(K[:2, :2], 0.5, rtol=1e-12)
    assert log_det == pytest.approx(4000.0 + np.log(2.0))


def test_marginal_kernel_of_parallel_items_of_huge_quality():
    # Items 0 and 1 are parallel, so exactly one of them is chosen, four times as
    # often the second; the third is chosen by what is left of it outside their span.
    B = np.array([[1.0, 3.0], [2.0, 6.0], [1.0, -1.0]])
    S, log_scale = split_scale(B @ B.T)
    outside = 2.0 - (1 - 3) ** 2 / 10.0
    for u in (5.0, 30.0, 40.0, 300.0):
        _, K = normalizer_and_marginal_kernel(S, log_scale + np.array([u, u, 0.0]))
        assert K[0, 0] == pytest.approx(0.2, rel=1e-4)
        assert K[1, 1] == pytest.approx(0.8, rel=1e-4)
        assert K[2, 2] == pytest.approx(outside / (1 + outside), rel=1e-3)


@pytest.mark.parametrize("u", [0.0, 5.0, 7.0, 9.0, 40.0, 300.0])
@pytest.mark.parametrize("rank", [1, 2, 5])
def test_probabilities_sum_to_one_whatever_the_quality(rank, u):
    rng = np.random.default_rng(rank)
    L = random_kernel_matrix(rng, 5, rank=rank)
    S, log_scale = split_scale(L)
    log_scale = log_scale + u * rng.uniform(0.5, 1.0, 5)
    log_det, _ = normalizer_and_marginal_kernel(S, log_scale)
    minors = log_principal_minors(S, log_scale)
    assert np.exp(minors - log_det).sum() == pytest.approx(1.0, abs=1e-11)


def test_small_but_real_eigenvalues_are_kept():
    # Correlation 1 - 1e-7: nearly parallel, and yet both are chosen at this quality.
    S = np.array([[1.0, 1.0 - 1e-7], [1.0 - 1e-7, 1.0]])
    log_det, K = normalizer_and_marginal_kernel(S, np.full(2, 12.0))
    q2 = np.exp(24.0)
    det = 1 + 2 * q2 + q2**2 * (1 - (1 - 1e-7) ** 2)
    assert log_det == pytest.approx(np.log(det), rel=1e-9)
    assert K[0, 0] == pytest.approx(1 - (1 + q2) / det, rel=1e-6)


def test_the_table_of_limits_in_the_documentation():
    page = Path(__file__).parents[1] / "docs" / "which-method.md"
    rows = page.read_text().split("## What runs at N items")[1]
    for name in (
        "TABLED_ITEMS",
        "STACK_LIMIT",
        "FEWEST_FACTORED",
        "EXACT_ITEMS",
        "MATRIX_ITEMS",
        "RELAXED_ITEMS",
        "MAX_MATRIX",
        "MAX_PAIRED",
    ):
        assert f" {getattr(limits, name):,} |" in rows
    assert limits.FACTORED_SHARE == 3
