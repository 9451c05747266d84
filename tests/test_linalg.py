from pathlib import Path

import numpy as np
import pytest

import reference
from instances import random_kernel_matrix
from variegate.linalg import determinants, limits
from variegate.linalg.compiled import chain
from variegate.linalg.compiled.loss import invert_with_log_det
from variegate.linalg.determinants import (
    NotPositiveDefiniteError,
    log_det_and_inverse,
    log_principal_minors,
    normalizer_and_marginal_kernel,
    pivoted_cholesky,
    schur_complement,
    split_scale,
)
from variegate.linalg.limits import COMPILED_LENGTHS, COMPILED_PIVOTS, STACK_LIMIT
from variegate.linalg.representations import Factored
from variegate.linalg.volume import log_volumes, pivoted_rows, residual_rows


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
    work = np.empty_like(M)
    exists, log_det = invert_with_log_det(np.tril(M), 5, 0.0, work, inverse)
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


def unit_rows(rng, n, n_columns):
    """Return rows of unit length, of which one is zero and one is there twice."""
    rows = rng.standard_normal((n, n_columns))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    if n > 3:
        rows[2], rows[3] = 0.0, rows[1]
    return rows


@pytest.mark.parametrize(
    ("n", "rank"),
    [
        (1, 1),
        (5, 3),
        (12, 12),
        (40, 7),
        (COMPILED_PIVOTS - 1, 30),
        (COMPILED_PIVOTS, 30),
    ],
)
@pytest.mark.parametrize("spread", [0.0, 1.0, 30.0])
def test_pivoted_factors_of_numpy_and_the_compiled_loop(n, rank, spread, monkeypatch):
    rng = np.random.default_rng(n)
    rows, log_scale = unit_rows(rng, n, rank), spread * rng.standard_normal(n)
    S = rows @ rows.T
    found = [pivoted_cholesky(S, log_scale)]
    for limit in (np.inf, 0):
        monkeypatch.setattr(determinants, "COMPILED_PIVOTS", limit)
        found.append(pivoted_cholesky(S, log_scale))
    for factor in found:
        assert factor.shape == (n, np.linalg.matrix_rank(rows))
        np.testing.assert_allclose(factor @ factor.T, S, atol=1e-9)
        np.testing.assert_allclose(factor, found[0], atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "n_columns", [COMPILED_LENGTHS // 100 - 1, COMPILED_LENGTHS // 100]
)
def test_lengths_of_the_rows_of_a_factor(n_columns, dtype):
    # At both sides of the size from which a compiled loop takes them.
    B = np.random.default_rng(0).standard_normal((100, n_columns)).astype(dtype)
    expected = np.linalg.norm(B.astype(np.float64), axis=1)
    np.testing.assert_allclose(Factored(B).norms, expected, rtol=1e-13)


@pytest.mark.parametrize("size", [0, 1, 3, 6])
def test_volumes_equal_determinants_and_the_compiled_loop(size):
    rng = np.random.default_rng(size)
    rows, floor = unit_rows(rng, 12, 6), np.full(12, 1e-20)
    members = np.array([rng.permutation(12)[:size] for _ in range(50)])
    volumes = log_volumes(rows[members], floor[members])
    for found, some in zip(volumes, members, strict=True):
        compiled = chain.log_volume(rows, some, floor)
        if 2 in some or {1, 3} <= set(some.tolist()):
            assert found == compiled == -np.inf
            continue
        expected = np.linalg.slogdet(rows[some] @ rows[some].T)[1] if size else 0.0
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-9)
        assert found == pytest.approx(compiled, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(("n", "n_columns"), [(1, 1), (6, 3), (12, 12), (9, 20)])
def test_pivoted_rows_have_the_products_of_all(n, n_columns):
    rng = np.random.default_rng(n)
    rows, log_scale = unit_rows(rng, n, n_columns), rng.standard_normal(n)
    factor, lost = pivoted_rows(rows, log_scale, np.full(n, 1e-18))
    assert factor.shape == (n, np.linalg.matrix_rank(rows))
    np.testing.assert_allclose(factor @ factor.T, rows @ rows.T, atol=1e-14)
    assert lost.max() < 1e-28  # the copy, but for rounding
    # A row that is nearly the copy of another is given up where the floor says so.
    if n > 3:
        rows[3] = rows[1] + 1e-6 * rng.standard_normal(n_columns)
        _, lost = pivoted_rows(rows, log_scale, np.full(n, 1e-9))
        assert (lost > 1e-14).sum() == 1


def test_residual_rows_are_those_of_least_squares():
    rows = unit_rows(np.random.default_rng(0), 10, 6)
    included, rest = np.array([0, 4, 7]), np.array([1, 2, 3, 5, 9])
    left, noise = residual_rows(rows, included, rest)
    fit = np.linalg.lstsq(rows[included].T, rows[rest].T, rcond=None)[0]
    np.testing.assert_allclose(left, rows[rest] - fit.T @ rows[included], atol=1e-14)
    assert (noise >= 2.0**-96).all()
    assert (noise < 1e-27).all()


def test_the_table_of_limits_in_the_documentation():
    page = Path(__file__).parents[1] / "docs" / "which-method.md"
    rows = page.read_text().split("## Limits on the number of items")[1]
    for name in (
        "TABLED_ITEMS",
        "EXACT_ITEMS",
        "RELAXED_ITEMS",
        "REPEATED_ITEMS",
        "MAX_MATRIX",
        "MAX_PAIRED",
    ):
        assert f" {getattr(limits, name):,} |" in rows
    for number in ("10,000 entries", "below 100,000", "below 20 million"):
        assert number in " ".join(rows.split())
    assert limits.COMPILED_ENTRIES == 10_000
    assert limits.COMPILED_SAMPLES == 100_000
    assert limits.COMPILED_ROWS == 20_000_000


def test_schur_complement_is_the_inverse_of_a_block_of_the_inverse():
    M = random_stack(np.random.default_rng(0), 1, 7)[0]
    given, rest = np.array([1, 4, 5]), np.array([0, 2, 3, 6])
    expected = np.linalg.inv(np.linalg.inv(M)[np.ix_(rest, rest)])
    np.testing.assert_allclose(schur_complement(M, given, rest), expected, rtol=1e-9)
    with pytest.raises(np.linalg.LinAlgError, match="the given items are dependent"):
        schur_complement(np.ones((3, 3)), np.array([0, 1]), np.array([2]))
