from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics.pairwise import cosine_similarity, rbf_kernel

import reference
import variegate as vg
from instances import KERNELS, random_ground_set
from variegate.application.model_facts import kernel_parts
from variegate.kernels.gaussian import squared_distances


@pytest.mark.parametrize("case", KERNELS, ids=str)
def test_value_is_symmetric_and_positive_semidefinite(case):
    rng = np.random.default_rng(0)
    ground_set = random_ground_set(case, rng, 7)
    kernel = case.kernel.fit([ground_set])
    parameters = kernel.domain.random(rng)
    S = kernel.value(kernel.prepare(ground_set), parameters)
    assert S.shape == (7, 7)
    np.testing.assert_allclose(S, S.T, atol=1e-12)
    assert np.linalg.eigvalsh(S).min() > -1e-10
    assert (np.linalg.matrix_rank(S) < 7) == case.rank_deficient


@pytest.mark.parametrize("case", KERNELS, ids=str)
def test_similarity_is_the_value(case):
    rng = np.random.default_rng(0)
    ground_set = random_ground_set(case, rng, 7)
    kernel = case.kernel.fit([ground_set])
    parameters = kernel.domain.random(rng)
    value = kernel.value(kernel.prepare(ground_set), parameters)
    similarity = kernel.similarity(ground_set, parameters)
    np.testing.assert_allclose(similarity, value, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("case", [c for c in KERNELS if c.kernel.stackable], ids=str)
def test_stack_equals_its_members(case):
    rng = np.random.default_rng(1)
    ground_sets = [random_ground_set(case, rng, 5) for _ in range(3)]
    kernel = case.kernel.fit(ground_sets)
    parameters = kernel.domain.random(rng)
    prepared = [kernel.prepare(ground_set) for ground_set in ground_sets]
    G = rng.standard_normal((3, 5, 5))
    G = G + G.mT  # a gradient in a symmetric matrix is symmetric
    np.testing.assert_allclose(
        kernel.value(kernel.stack(prepared), parameters),
        [kernel.value(p, parameters) for p in prepared],
    )
    np.testing.assert_allclose(
        kernel.pull_back(kernel.stack(prepared), parameters, G),
        sum(
            kernel.pull_back(p, parameters, g) for p, g in zip(prepared, G, strict=True)
        ),
    )


@pytest.mark.parametrize("case", KERNELS, ids=str)
def test_value_and_pull_back_at_once(case):
    rng = np.random.default_rng(2)
    ground_set = random_ground_set(case, rng, 6)
    kernel = case.kernel.fit([ground_set])
    parameters = kernel.domain.random(rng)
    prepared = kernel.prepare(ground_set)
    G = rng.standard_normal((6, 6))
    G = G + G.T
    S, pull_back = kernel.value_and_pull_back(prepared, parameters)
    np.testing.assert_array_equal(S, kernel.value(prepared, parameters))
    if kernel.makes_new:
        S[np.diag_indices(6)] *= 2.0  # as a jitter does
    expected = kernel.pull_back(prepared, parameters, G)
    np.testing.assert_allclose(pull_back(G), expected, rtol=1e-9, atol=1e-12)


def test_gaussian_equals_scikit_learn():
    X = np.random.default_rng(0).standard_normal((6, 3))
    S = vg.Gaussian(2.5).matrix(vg.GroundSet(X))
    np.testing.assert_allclose(S, rbf_kernel(X, gamma=1 / 2.5**2), rtol=1e-12)


def test_normalized_linear_is_the_cosine():
    X = np.random.default_rng(0).standard_normal((6, 3))
    X[2] = 0.0
    S = vg.Linear(normalize=True).matrix(vg.GroundSet(X))
    np.testing.assert_allclose(S, cosine_similarity(X), atol=1e-15)


def test_multiple_kernel_equals_equation_8():
    rng = np.random.default_rng(0)
    ground_set = vg.GroundSet(rng.standard_normal((5, 2)), rng.standard_normal((5, 4)))
    kernel = vg.MultipleKernel([0.7, 1.5, 6.0])
    weights = kernel.domain.random(rng)
    alpha, beta = kernel.split(weights)
    expected = reference.mixture_of_gaussians(
        ground_set.features(), [0.7, 1.5, 6.0], alpha, beta
    )
    S = kernel.value(kernel.prepare(ground_set), weights)
    np.testing.assert_allclose(S, expected, rtol=1e-12)
    assert sum(alpha) + beta == pytest.approx(1.0)


def test_multiple_kernel_is_a_mixture_of_its_parts():
    rng = np.random.default_rng(0)
    blocks = {"a": rng.standard_normal((5, 4)), "b": rng.standard_normal((5, 2))}
    ground_set = vg.GroundSet(np.ones((5, 1)), blocks)
    multiple = vg.MultipleKernel({"a": [1.0, 2.0], "b": [3.0]}, blocks=["a", "b"])
    mixture = vg.Mixture(
        [
            vg.Gaussian(1.0, block="a"),
            vg.Gaussian(2.0, block="a"),
            vg.Gaussian(3.0, block="b"),
            vg.Linear(block="a"),
            vg.Linear(block="b"),
        ]
    )
    weights = mixture.domain.random(rng)
    np.testing.assert_allclose(
        multiple.value(multiple.prepare(ground_set), weights),
        mixture.value(mixture.prepare(ground_set), weights),
    )
    alpha, beta = multiple.split(weights)
    np.testing.assert_array_equal(alpha, weights[:3])
    np.testing.assert_array_equal(beta, weights[3:])


def test_default_bandwidths_surround_the_median_distance():
    # Distances 1, 2 and 3 between three points on a line: the median is 2.
    line = vg.GroundSet(np.array([[0.0], [1.0], [3.0]]))
    kernel = vg.MultipleKernel().fit([line])
    np.testing.assert_allclose(kernel.bandwidths_[None], 2.0 * 2.0 ** np.arange(-3, 4))


def test_default_bandwidths_of_very_many_ground_sets_follow_some_of_them():
    near, far = (vg.GroundSet(np.array([[0.0], [gap]])) for gap in (1.0, 50.0))
    kernel = vg.MultipleKernel().fit([near, far] * 6000)  # every other one counts
    assert kernel.bandwidths_[None][3] == 1.0


def test_sparse_and_dense_features_agree():
    rng = np.random.default_rng(0)
    dense = rng.standard_normal((6, 9)) * (rng.random((6, 9)) < 0.5)
    for kernel in (vg.Linear(), vg.Linear(normalize=True), vg.Gaussian(1.0)):
        np.testing.assert_allclose(
            kernel.matrix(vg.GroundSet(np.ones((6, 1)), sparse.coo_array(dense))),
            kernel.matrix(vg.GroundSet(np.ones((6, 1)), dense)),
            atol=1e-12,
        )


@pytest.mark.parametrize("n_features", [3, 300])
def test_distances_of_near_duplicates_far_from_the_origin(n_features):
    rng = np.random.default_rng(0)
    base = 1e4 + rng.standard_normal(n_features)
    X = np.stack([base, base + 1e-4 / np.sqrt(n_features)])
    squared = squared_distances(X)
    np.testing.assert_allclose(squared[0, 1], 1e-8, rtol=1e-3)
    assert squared[0, 0] == squared[1, 1] == 0.0


class MeanScaled(vg.FixedKernel):
    """A kernel that settles something in ``fit``."""

    def fit(self, ground_sets):
        self.mean_ = np.mean([gs.features().mean() for gs in ground_sets])
        return self

    def matrix(self, ground_set):
        return np.eye(len(ground_set)) * self.mean_**2


def test_parts_of_a_mixture_are_fitted():
    ground_set = vg.GroundSet(np.full((2, 2), 3.0))
    part = MeanScaled()
    mixture = vg.Mixture([part, vg.Linear()]).fit([ground_set])
    S = mixture.value(mixture.prepare(ground_set), np.array([1.0, 0.0]))
    np.testing.assert_array_equal(S, 9.0 * np.eye(2))
    assert not hasattr(part, "mean_")


def test_new_bandwidths_take_effect():
    kernel = vg.MultipleKernel([1.0, 2.0], linear=False)
    assert kernel.domain.size == 2
    kernel.set_params(bandwidths=[1.0, 2.0, 3.0])
    assert kernel.domain.size == 3
    with pytest.raises(ValueError, match="not settled yet: call fit first"):
        _ = vg.MultipleKernel().domain


def test_kernels_can_be_cloned_and_searched_over():
    kernel = vg.MultipleKernel([1.0, 2.0], linear=False)
    copy = clone(kernel)
    assert copy is not kernel
    assert copy.get_params() == kernel.get_params()
    model = vg.LargeMarginDPP(kernel=vg.Gaussian(1.0))
    model.set_params(kernel__bandwidth=3.0)
    assert model.kernel.bandwidth == 3.0


def test_repair_reports_what_it_changed():
    S = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.9], [0.0, 0.9, 1.0]])
    values = np.linalg.eigvalsh(S)
    assert values[0] < 0
    repair = vg.nearest_psd(S)
    assert repair.n_negative == 1
    assert repair.smallest_eigenvalue == pytest.approx(values[0])
    assert repair.relative_change == pytest.approx(-values[0] / np.linalg.norm(S))
    assert np.linalg.eigvalsh(repair.matrix).min() > -1e-12
    assert np.linalg.norm(repair.matrix - S) == pytest.approx(-values[0])

    ground_set = vg.GroundSet(np.ones((3, 1)), S)
    with pytest.warns(vg.SimilarityRepairWarning, match="1 negative eigenvalue"):
        fixed = vg.Precomputed(repair=True).matrix(ground_set)
    np.testing.assert_allclose(fixed, repair.matrix)


@pytest.mark.parametrize(("smallest", "is_bad"), [(-1e-6, True), (-1e-13, False)])
def test_rounding_is_told_from_a_defect(smallest, is_bad):
    # Eigenvalues 2 - smallest and smallest, with a unit diagonal.
    S = np.array([[1.0, 1.0 - smallest], [1.0 - smallest, 1.0]])
    ground_set = vg.GroundSet(np.ones((2, 1)), S)
    if is_bad:
        with pytest.raises(ValueError, match="smallest eigenvalue is -1e-06"):
            vg.Precomputed().matrix(ground_set)
    else:
        vg.Precomputed().matrix(ground_set)


def test_repair_needs_a_symmetric_matrix():
    with pytest.raises(ValueError, match="S is not symmetric"):
        vg.nearest_psd(np.array([[1.0, 0.0], [1.0, 1.0]]))


def test_sparse_near_duplicates_far_from_the_origin():
    X = np.full((2, 3), 1e4)
    X[1] += 1e-3
    squared = squared_distances(sparse.csr_array(X))
    np.testing.assert_allclose(squared[0, 1], 3e-6, rtol=1e-6)


def test_a_wide_gaussian_does_not_overflow():
    S = vg.Gaussian(1e200).matrix(vg.GroundSet(np.eye(2)))
    np.testing.assert_array_equal(S, np.ones((2, 2)))


def test_repair_leaves_a_good_matrix_alone():
    S = np.ones((4, 4))  # rank one: singular, but positive semidefinite
    kernel = vg.Precomputed(repair=True)
    np.testing.assert_array_equal(kernel.matrix(vg.GroundSet(np.ones((4, 1)), S)), S)


# Fourth powers in place of Gaussians -----------------------------------------------


@pytest.mark.parametrize(
    "bandwidths",
    [
        [1.0],
        [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0],
        [3.0, 1.0, 2.0, 0.7, 4.0],
        [2.0, 2.0, 1.0],
        (2.0 ** np.arange(-6.0, 7.0)).tolist(),
    ],
)
@pytest.mark.parametrize("compiled", [False, True])
def test_a_ladder_equals_its_gaussians(bandwidths, compiled):
    rng = np.random.default_rng(3)
    ground_set = vg.GroundSet(rng.standard_normal((70, 6)))
    kernel = vg.MultipleKernel(bandwidths=bandwidths, linear=True)
    prepared = replace(kernel.prepare(ground_set), compiled=compiled)
    matrices = kernel.matrices(ground_set)
    weights = rng.dirichlet(np.ones(len(matrices)))
    expected = sum(w * S for w, S in zip(weights, matrices, strict=True))
    np.testing.assert_allclose(
        kernel.value(prepared, weights), expected, rtol=1e-12, atol=1e-13
    )
    G = rng.standard_normal((70, 70))
    G = G + G.T
    np.testing.assert_allclose(
        kernel.pull_back(prepared, weights, G),
        [(G * S).sum() for S in matrices],
        rtol=1e-10,
        atol=1e-9,
    )


@pytest.mark.parametrize(
    "bandwidths", [[1.0], [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0], [3.0, 1.0, 2.0, 0.7]]
)
@pytest.mark.parametrize("compiled", [False, True])
def test_a_ladder_equals_its_anchored_gaussians(bandwidths, compiled):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((70, 6))
    ground_set = vg.GroundSet(X)
    kernel = vg.MultipleKernel(bandwidths=bandwidths, anchored=True)
    prepared = replace(kernel.prepare(ground_set), compiled=compiled)
    matrices = [reference.anchored_gaussian(X, sigma) for sigma in bandwidths]
    matrices.append(X @ X.T)
    np.testing.assert_allclose(
        kernel.matrices(ground_set), matrices, rtol=1e-9, atol=1e-11
    )
    weights = rng.dirichlet(np.ones(len(matrices)))
    expected = sum(w * S for w, S in zip(weights, matrices, strict=True))
    np.testing.assert_allclose(
        kernel.value(prepared, weights), expected, rtol=1e-9, atol=1e-11
    )
    G = rng.standard_normal((70, 70))
    G = G + G.T
    np.testing.assert_allclose(
        kernel.pull_back(prepared, weights, G),
        [(G * S).sum() for S in matrices],
        rtol=1e-8,
        atol=1e-8,
    )


def test_a_wide_anchored_gaussian_is_the_inner_product():
    X = np.random.default_rng(0).standard_normal((6, 3))
    ground_set = vg.GroundSet(X)
    # At σ = 1e6 a similarity less its constant of 1 would have three digits left.
    S = vg.Gaussian(1e6, anchored=True).matrix(ground_set)
    np.testing.assert_allclose(S, X @ X.T, rtol=1e-9, atol=1e-9)
    ladder = vg.MultipleKernel([1e6, 5e5], linear=False, anchored=True)
    value = ladder.value(ladder.prepare(ground_set), np.array([0.5, 0.5]))
    np.testing.assert_allclose(value, X @ X.T, rtol=1e-9, atol=1e-9)


def test_an_item_at_the_origin_is_nothing_to_an_anchored_gaussian():
    X = np.array([[0.0, 0.0], [1.0, 2.0]])
    kernel = vg.Gaussian(2.0, anchored=True)
    np.testing.assert_array_equal(kernel.matrix(vg.GroundSet(X))[0], [0.0, 0.0])
    model = vg.LargeMarginDPP(kernel=kernel)
    with pytest.raises(ValueError, match="ground set 0: item 0"):
        model.fit([vg.GroundSet(X)], [[0]])


def test_a_description_says_that_gaussians_are_anchored():
    data = vg.datasets.make_synthetic(n_sets=5, random_state=0)
    parts = [vg.Gaussian(2.0), vg.Gaussian(3.0, anchored=True)]
    for kernel, names in (
        (vg.MultipleKernel([2.0], anchored=True), ["anchored Gaussian", "linear"]),
        (vg.Mixture(parts), ["Gaussian", "anchored Gaussian"]),
    ):
        model = vg.LargeMarginDPP(kernel=kernel, l2=0.1)
        model.fit(data.ground_sets, data.subsets)
        assert [part.name for part in kernel_parts(model)] == names


@pytest.mark.parametrize("kernel", [vg.Gaussian(2.0), vg.MultipleKernel([2.0])])
def test_anchored_is_true_or_false(kernel):
    kernel = clone(kernel).set_params(anchored="yes")
    with pytest.raises(ValueError, match="anchored must be True or False, got 'yes'"):
        kernel.fit([vg.GroundSet(np.eye(2))])


def test_anchored_gaussians_too_wide_for_numbers_are_refused():
    ground_set = vg.GroundSet(np.eye(2))
    for kernel in (
        vg.Gaussian(1e200, anchored=True),
        vg.MultipleKernel([1e200], anchored=True),
    ):
        with pytest.raises(ValueError, match="NaN or infinite"):
            kernel.prepare(ground_set)


def test_a_ladder_takes_the_room_of_a_few_matrices():
    ground_set = vg.GroundSet(np.random.default_rng(0).standard_normal((100, 6)))
    bandwidths = (2.0 ** np.arange(-6.0, 7.0)).tolist()
    prepared = vg.MultipleKernel(bandwidths=bandwidths).prepare(ground_set)
    assert prepared.packed.nbytes <= 2.0 * 8 * 100**2
