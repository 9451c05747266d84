"""Fisher vectors: against the formula in loops, its derivation, and scikit-image."""

import json
import math

import cv2
import numpy as np
import pytest
from skimage.feature import fisher_vector
from sklearn.mixture import GaussianMixture

from variegate.files.models import ModelFileError
from variegate.files.schema import SchemaError
from variegate.video import fisher
from variegate.video.fisher import PATTERNS, FisherEncoder, fisher_gradients
from variegate.video.picture import _patch_descriptors, dense_sift

# Pictures -------------------------------------------------------------------------


def blocks(height, width, block, seed=0):
    """Return a picture of random colours in squares, as in a mosaic."""
    rng = np.random.default_rng(seed)
    shape = (-(-height // block), -(-width // block), 3)
    colours = rng.integers(0, 256, shape, dtype=np.uint8)
    return colours.repeat(block, axis=0).repeat(block, axis=1)[:height, :width]


def ramp(height, width):
    """Return a picture that gets lighter to the right."""
    row = np.arange(width, dtype=np.uint8)
    return np.broadcast_to(row[:, None], (height, width, 3))


def waves(height, width, angle, period):
    y, x = np.mgrid[:height, :width]
    phase = (np.cos(angle) * x + np.sin(angle) * y) * 2 * np.pi / period
    grey = np.round(127.5 + 120 * np.sin(phase)).astype(np.uint8)
    return np.repeat(grey[:, :, None], 3, axis=2)


def one_colour(height, width, value=5):
    return np.full((height, width, 3), value, dtype=np.uint8)


PICTURES = [
    blocks(96, 120, 3, seed=1),
    blocks(96, 120, 7, seed=2),
    waves(96, 120, 0.3, 9.0),
    waves(96, 120, 1.4, 17.0),
]


@pytest.fixture(scope="module")
def descriptors():
    return [dense_sift(picture) for picture in PICTURES]


@pytest.fixture(scope="module")
def encoder(descriptors):
    return FisherEncoder.fit(descriptors, 0, n_components=6, n_gaussians=4)


# Descriptors ----------------------------------------------------------------------


def first_scale(image):
    return _patch_descriptors(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY))


def test_patches_stand_upright_on_a_grid_row_by_row():
    grey = blocks(64, 72, 3)[:, :, 0]
    image = np.repeat(grey[:, :, None], 3, axis=2)
    found = first_scale(image)
    # Squares of 24 start at 0, 8, ..., 40 and 0, 8, ..., 48; a keypoint of size 4
    # has cells of 4 * 3 / 2 = 6 pixels, four a side.
    keypoints = [
        cv2.KeyPoint(float(left + 12), float(top + 12), 4.0, 0.0)
        for top in range(0, 41, 8)
        for left in range(0, 49, 8)
    ]
    _, expected = cv2.SIFT.create().compute(grey, keypoints)
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, expected)


def test_patches_that_leave_a_rest_are_centred():
    # Along 30 pixels, 24 fit with 6 to spare: 3 at each side.
    image = one_colour(24, 30)
    for column, is_seen in [(2, False), (3, True), (26, True), (27, False)]:
        dotted = image.copy()
        dotted[12, column] = 200
        assert dense_sift(dotted).any() == is_seen


@pytest.mark.parametrize("dot", [(0, 0), (23, 24), (40, 31), (63, 70)])
def test_patches_of_one_grey_are_zeros_and_no_others(dot):
    image = one_colour(64, 72)
    image[dot] = 6
    found = first_scale(image)
    expected = [
        top <= dot[0] < top + 24 and left <= dot[1] < left + 24
        for top in range(0, 41, 8)
        for left in range(0, 49, 8)
    ]
    np.testing.assert_array_equal(found.any(axis=1), expected)


@pytest.mark.parametrize("shape", [(61, 37), (3, 50), (175, 256), (301, 463)])
@pytest.mark.parametrize("value", [0, 5, 9, 77, 255])
def test_one_colour_is_all_zeros(shape, value):
    # For some of these OpenCV's blur leaves rounding errors, which it scales up.
    found = dense_sift(one_colour(*shape, value))
    assert len(found) >= 1
    assert not found.any()


def test_directions_are_not_estimated():
    # All gradients of a ramp have one direction, so one bin of 8 in each cell holds
    # them, and a quarter turn moves them on by 2 bins.
    def directions(image):
        found = first_scale(image)
        return set(np.flatnonzero(found.reshape(-1, 8).any(axis=0)))

    (right,) = directions(ramp(80, 80))
    (down,) = directions(ramp(80, 80).swapaxes(0, 1))
    (left,) = directions(ramp(80, 80)[:, ::-1])
    assert (left - right) % 8 == 4
    assert (down - right) % 8 in (2, 6)


def test_large_images_are_shrunk():
    small = blocks(120, 256, 3)
    large = small.repeat(3, axis=0).repeat(3, axis=1)
    np.testing.assert_array_equal(dense_sift(large), dense_sift(small))


def test_the_second_scale_is_that_of_half_the_image():
    small = blocks(46, 70, 3)
    large = small.repeat(2, axis=0).repeat(2, axis=1)
    # Half of the small one has 23 rows, one too few for a patch.
    both = np.concatenate([first_scale(large), dense_sift(small)])
    np.testing.assert_array_equal(dense_sift(large), both)


@pytest.mark.parametrize(
    ("shape", "n"),
    [
        ((1, 1), 1),
        ((2, 3), 1),
        ((5, 5), 1),
        ((24, 24), 1),
        ((31, 31), 1),
        ((32, 32), 4),
        ((46, 48), 12),  # half of it is one row too low for a patch
        ((48, 48), 16 + 1),
        ((10, 40), 3),
        ((1, 5000), 30),
        ((5000, 1), 30),
    ],
)
def test_small_and_narrow_images(shape, n):
    found = dense_sift(blocks(*shape, 2))
    assert found.shape == (n, 128)
    assert found.any() == (min(shape) > 2)  # gradients need neighbours on both sides


def test_colours_of_equal_grey_look_alike():
    coloured, grey = blocks(60, 60, 4), blocks(60, 60, 4)
    grey[:] = cv2.cvtColor(coloured, cv2.COLOR_RGB2GRAY)[:, :, None]
    np.testing.assert_array_equal(dense_sift(coloured), dense_sift(grey))
    assert dense_sift(grey).any()


def test_views_are_taken_and_left_alone():
    image = blocks(60, 80, 4)
    before = image.copy()
    flipped = image[::-1, ::-1]
    np.testing.assert_array_equal(dense_sift(flipped), dense_sift(flipped.copy()))
    np.testing.assert_array_equal(image, before)


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (np.zeros((9, 9), dtype=np.uint8), "three colours, got shape"),
        (np.zeros((0, 9, 3), dtype=np.uint8), "three colours, got shape"),
        (np.zeros((9, 9, 3)), "uint8"),
    ],
)
def test_wrong_images(image, message):
    with pytest.raises(ValueError, match=message):
        dense_sift(image)


# Gradients ------------------------------------------------------------------------


def mixture(n_gaussians=3, n_components=4, seed=0):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(n_gaussians, 3.0))
    means = rng.normal(size=(n_gaussians, n_components))
    return weights, means, rng.uniform(0.2, 2.0, means.shape)


def log_likelihood(x, weights, means, deviations):
    """Return the mean of log p(x), with a loop for each sum."""
    total = 0.0
    for row in x:
        p = 0.0
        for w, mu, sigma in zip(weights, means, deviations, strict=True):
            density = 1.0
            for value, m, s in zip(row, mu, sigma, strict=True):
                scale = s * math.sqrt(2 * math.pi)
                density *= math.exp(-((value - m) ** 2) / (2 * s**2)) / scale
            p += w * density
        total += math.log(p)
    return total / len(x)


def gradients_in_loops(x, weights, means, variances):
    """Return both gradients as Sánchez et al. write them, divided by T."""
    deviations = np.sqrt(variances)
    by_mean, by_deviation = np.zeros_like(means), np.zeros_like(means)
    for row in x:
        u = [
            weights[k]
            * math.exp(-0.5 * sum((row - means[k]) ** 2 / variances[k]))
            / math.prod(deviations[k])
            for k in range(len(weights))
        ]
        for k in range(len(weights)):
            gamma = u[k] / sum(u)
            standard = (row - means[k]) / deviations[k]
            by_mean[k] += gamma * standard / math.sqrt(weights[k])
            by_deviation[k] += (
                gamma * (standard**2 - 1) / math.sqrt(2) / math.sqrt(weights[k])
            )
    return np.stack([by_mean, by_deviation]) / len(x)


@pytest.mark.parametrize("shape", [(3, 4), (1, 5), (6, 1)])
@pytest.mark.parametrize("n", [1, 23])
def test_gradients_equal_the_published_formula(shape, n):
    model = mixture(*shape)
    x = np.random.default_rng(1).normal(size=(n, shape[1])) * 1.5
    found = fisher_gradients(x, *model)
    assert found.shape == (2, *shape)
    np.testing.assert_allclose(
        found, gradients_in_loops(x, *model), rtol=1e-10, atol=1e-12
    )


def test_gradients_are_derivatives_scaled_by_fisher_information():
    weights, means, variances = mixture()
    deviations = np.sqrt(variances)
    x = np.random.default_rng(1).normal(size=(15, 4))
    # Central differences are off by about h² + 1e-16 / h, least near 1e-5.
    h = 1e-5
    by_mean, by_deviation = np.empty_like(means), np.empty_like(means)
    for place in np.ndindex(means.shape):
        move = np.zeros_like(means)
        move[place] = h
        by_mean[place] = (
            log_likelihood(x, weights, means + move, deviations)
            - log_likelihood(x, weights, means - move, deviations)
        ) / (2 * h)
        by_deviation[place] = (
            log_likelihood(x, weights, means, deviations + move)
            - log_likelihood(x, weights, means, deviations - move)
        ) / (2 * h)
    # The diagonal of the information is w / σ² for a mean, 2 w / σ² for a deviation.
    scale = deviations / np.sqrt(weights)[:, None]
    expected = np.stack([by_mean * scale, by_deviation * scale / np.sqrt(2)])
    found = fisher_gradients(x, weights, means, variances)
    np.testing.assert_allclose(found, expected, atol=1e-8)


def as_sklearn(weights, means, variances):
    model = GaussianMixture(len(weights), covariance_type="diag")
    model.weights_, model.means_, model.covariances_ = weights, means, variances
    model.precisions_cholesky_ = 1 / np.sqrt(variances)
    return model


def from_skimage(x, weights, means, variances):
    """Return scikit-image's vector in our order.

    It begins with the gradient by the weights, which we leave out, and its gradient by
    the deviations has the sign of 1 - (x - μ)²/σ², opposite to the published one.
    """
    vector = fisher_vector(x, as_sklearn(weights, means, variances), improved=False)
    by_mean, by_deviation = vector[len(weights) :].reshape(2, *means.shape)
    return np.stack([by_mean, -by_deviation])


def test_gradients_agree_with_scikit_image():
    model = mixture(5, 7)
    x = np.random.default_rng(2).normal(size=(40, 7))
    np.testing.assert_allclose(
        fisher_gradients(x, *model), from_skimage(x, *model), rtol=1e-9, atol=1e-12
    )


def test_gradients_of_what_the_mixture_makes_have_variance_one():
    # Between Gaussians far apart, the diagonal of the information is exact.
    weights = np.array([0.3, 0.7])
    means = np.array([[0.0, 0.0], [50.0, -80.0]])
    variances = np.array([[1.0, 4.0], [0.25, 9.0]])
    rng = np.random.default_rng(0)
    n, squares = 200, []
    for _ in range(500):
        k = rng.choice(2, size=n, p=weights)
        x = means[k] + np.sqrt(variances[k]) * rng.normal(size=(n, 2))
        squares.append(n * fisher_gradients(x, weights, means, variances) ** 2)
    # The mean of 500 squares of a standard normal deviates by √(2/500) = 0.063; four
    # times that is passed by one of 8 with a chance of about 0.0005.
    np.testing.assert_allclose(np.mean(squares, axis=0), 1.0, atol=4 * 0.063)


def test_gradients_far_from_all_gaussians():
    # Both densities are 0 as floats; the nearer mean must take it all.
    weights, variances = np.array([0.5, 0.5]), np.full((2, 1), 0.01)
    means = np.array([[0.0], [1.0]])
    found = fisher_gradients(np.array([[40.0]]), weights, means, variances)
    z = (40.0 - 1.0) / 0.1
    expected = [[[0.0], [z / 0.5**0.5]], [[0.0], [z**2 - 1.0]]]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


# Encoder --------------------------------------------------------------------------


def root_sift(descriptors):
    rows = np.array(descriptors, dtype=float)
    return np.array(
        [[math.sqrt(v / sum(row)) for v in row] for row in rows if any(row)]
    )


def test_vector_equals_the_steps_one_by_one(encoder, descriptors):
    chosen = descriptors[0][::5]
    x = (root_sift(chosen) - encoder.centre) @ encoder.components.T
    raw = gradients_in_loops(
        x, encoder.weights, encoder.means, encoder.variances
    ).ravel()
    rooted = np.array([math.copysign(math.sqrt(abs(g)), g) for g in raw])
    expected = rooted / math.sqrt(sum(rooted**2))
    found = encoder.encode(chosen)
    assert found.dtype == np.float64
    assert found.shape == (2 * 4 * 6,)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_vector_agrees_with_scikit_image(encoder, descriptors):
    x = (root_sift(descriptors[2]) - encoder.centre) @ encoder.components.T
    raw = from_skimage(x, encoder.weights, encoder.means, encoder.variances).ravel()
    rooted = np.sign(raw) * np.sqrt(np.abs(raw))
    np.testing.assert_allclose(
        encoder.encode(descriptors[2]),
        rooted / np.linalg.norm(rooted),
        rtol=1e-5,
        atol=1e-6,
    )


def test_components_are_those_of_a_singular_value_decomposition(encoder, descriptors):
    rows = np.concatenate([root_sift(d) for d in descriptors])
    centre = rows.mean(axis=0)
    _, _, directions = np.linalg.svd(rows - centre)
    np.testing.assert_allclose(encoder.centre, centre, atol=1e-7)
    cosines = np.abs(encoder.components @ directions[:6].T)
    np.testing.assert_allclose(cosines, np.eye(6), atol=1e-5)


def test_mixture_finds_clusters():
    rng = np.random.default_rng(0)
    prototypes = rng.integers(0, 200, (3, 128))
    shares = (50, 100, 150)
    groups = [
        np.clip(prototype + rng.integers(-5, 6, (n, 128)), 0, 255).astype(np.uint8)
        for prototype, n in zip(prototypes, shares, strict=True)
    ]
    encoder = FisherEncoder.fit(groups, 1, n_components=2, n_gaussians=3)
    order = np.argsort(encoder.weights)
    np.testing.assert_allclose(encoder.weights[order], np.divide(shares, 300))
    expected = [
        ((root_sift(group) - encoder.centre) @ encoder.components.T).mean(axis=0)
        for group in groups
    ]
    np.testing.assert_allclose(encoder.means[order], expected, atol=1e-5)


def test_vectors_have_length_one(encoder, descriptors):
    for rows in descriptors:
        assert np.linalg.norm(encoder.encode(rows)) == pytest.approx(1.0, abs=1e-12)


def test_order_of_descriptors_does_not_matter(encoder, descriptors):
    rows = np.random.default_rng(0).permutation(descriptors[1])
    # Roots turn rounding errors of 1e-16 into some of 1e-8.
    np.testing.assert_allclose(
        encoder.encode(rows), encoder.encode(descriptors[1]), atol=1e-7
    )


def test_numbers_of_descriptors_and_their_scale_do_not_matter(encoder, descriptors):
    rows = descriptors[1].astype(float)
    twice = np.concatenate([rows, 0.5 * rows])
    np.testing.assert_allclose(encoder.encode(twice), encoder.encode(rows), atol=1e-7)


def test_same_picture_same_vector_other_picture_other_vector(encoder):
    vectors = [encoder.encode(dense_sift(picture)) for picture in PICTURES]
    again = [encoder.encode(dense_sift(picture.copy())) for picture in PICTURES]
    np.testing.assert_array_equal(vectors, again)
    similarities = np.array(vectors) @ np.transpose(vectors)
    assert similarities[~np.eye(4, dtype=bool)].max() < 0.9


def test_a_shifted_picture_is_nearer_than_another(encoder):
    wide = blocks(96, 140, 7, seed=2)
    picture, shifted = wide[:, :120], wide[:, 16:136]
    other = PICTURES[0]
    first, second, third = (
        encoder.encode(dense_sift(image)) for image in (picture, shifted, other)
    )
    assert first @ second > 0.5 > first @ third


def test_zeros_are_left_out(encoder, descriptors):
    padded = np.concatenate([np.zeros((50, 128), np.uint8), descriptors[0]])
    np.testing.assert_array_equal(
        encoder.encode(padded), encoder.encode(descriptors[0])
    )
    with_zeros = [np.concatenate([rows, np.zeros((9, 128))]) for rows in descriptors]
    refitted = FisherEncoder.fit(with_zeros, 0, 6, 4)
    assert refitted.to_dict() == encoder.to_dict()


@pytest.mark.parametrize(
    "rows",
    [np.empty((0, 128), np.uint8), np.zeros((3, 128)), dense_sift(one_colour(61, 37))],
)
def test_nothing_to_see_gives_zeros(encoder, rows):
    np.testing.assert_array_equal(encoder.encode(rows), np.zeros(2 * 4 * 6))


def test_tiny_images_can_be_encoded(encoder):
    vector = encoder.encode(dense_sift(blocks(5, 5, 1)))
    assert np.linalg.norm(vector) == pytest.approx(1.0)


def test_seed_fixes_the_fit(descriptors):
    def fitted(seed):
        return FisherEncoder.fit(descriptors, seed, 6, 4, 150).to_dict()

    assert fitted(3) == fitted(3)
    assert fitted(3) == fitted(np.random.default_rng(3))
    assert fitted(3) != fitted(4)


def test_sample_is_of_different_rows_from_all_images():
    values = np.arange(1, 101)
    images = np.split(np.tile(values[:, None], 128), [10, 10, 40])
    counts = np.zeros(101, dtype=int)
    rng = np.random.default_rng(0)
    for _ in range(2000):
        sample = fisher._sample_descriptors(images, 25, rng)
        assert sample.shape == (25, 128)
        counts += np.bincount(np.unique(sample[:, 0]), minlength=101)
    assert counts.sum() == 2000 * 25  # never one twice
    # Each row has 2000 draws of chance 1/4: 500 with deviation 19.4.  Five times that
    # is passed by one of 100 with a chance of about 0.00006.
    assert np.abs(counts[1:] - 500).max() < 5 * 19.4
    np.testing.assert_array_equal(
        fisher._sample_descriptors(images, 100, rng)[:, 0], values
    )  # no draw where all fit


def test_descriptors_are_left_alone(encoder, descriptors):
    before = [rows.copy() for rows in descriptors]
    FisherEncoder.fit(descriptors, 0, 3, 2).encode(descriptors[0])
    for rows, copy in zip(descriptors, before, strict=True):
        np.testing.assert_array_equal(rows, copy)


# Files ----------------------------------------------------------------------------


def test_file_round_trip_is_exact(encoder, descriptors):
    text = json.dumps(encoder.to_dict(), allow_nan=False)
    loaded = FisherEncoder.from_dict(json.loads(text))
    for rows in descriptors:
        np.testing.assert_array_equal(loaded.encode(rows), encoder.encode(rows))
    assert loaded.to_dict() == encoder.to_dict()


def test_file_numbers_are_short(encoder):
    # Nine digits tell all numbers of single precision apart.
    for value in np.ravel(encoder.to_dict()["components"]).tolist():
        mantissa = repr(value).split("e")[0]
        digits = mantissa.replace(".", "").replace("-", "").strip("0")
        assert len(digits) <= 9
    np.testing.assert_array_equal(
        encoder.components, encoder.components.astype(np.float32)
    )


def read(document):
    PATTERNS.check(document, "patterns")
    return FisherEncoder.from_dict(document)


def with_entry(values, place, entry):
    changed = np.array(values)
    changed[place] = entry
    return changed.tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("means"), '"patterns.means" is missing'),
        (lambda d: d["weights"].pop(), r'means" has shape \(4, 6\), not \(3, 6\)'),
        (lambda d: d.update(colour="red", age=3), "unknown .*age.*colour"),
        (lambda d: d["centre"].pop(), r'centre" has shape \(127,\), not \(128,\)'),
        (lambda d: d["means"][0].pop(), r'means" is .*, not a matrix of numbers'),
        (lambda d: d.update(weights=None), '"patterns.weights" is missing'),
        (lambda d: d.update(centre=["a"] * 128), r"\[0\]\" is 'a', not a number"),
        (
            lambda d: d.update(centre=with_entry(d["centre"], 0, np.nan)),
            r'centre\[0\]" is nan, not a number',
        ),
        (
            lambda d: d.update(components=with_entry(d["components"], (0, 0), 1e300)),
            'components" is .*, not a matrix of numbers',
        ),
        (
            lambda d: d.update(components=with_entry(d["components"], (0, 0), 1e100)),
            'components" holds numbers too large',
        ),
        (
            lambda d: d.update(variances=with_entry(d["variances"], (1, 2), 0.0)),
            'variances" holds a number not above 0',
        ),
        (
            lambda d: d.update(variances=with_entry(d["variances"], (1, 2), 1e-60)),
            'variances" holds a number not above 0',
        ),
        (
            lambda d: d.update(weights=[-0.5, 0.5, 0.5, 0.5]),
            'weights" holds a number not above 0',
        ),
        (lambda d: d.update(weights=[0.5] * 4), 'weights" sum to 2, not 1'),
        (lambda d: d.clear(), "is missing"),
    ],
)
def test_damaged_files(encoder, change, message):
    document = encoder.to_dict()
    change(document)
    with pytest.raises((ModelFileError, SchemaError), match=message):
        read(document)


# Errors ---------------------------------------------------------------------------


def test_too_few_descriptors(descriptors):
    rows = descriptors[0][:10]
    with pytest.raises(ValueError, match=r"10 different .* too few for n_gaussians=16"):
        FisherEncoder.fit([rows[:5], rows[5:]], 0, 2, 16)
    with pytest.raises(ValueError, match=r"10 different .* n_components=32"):
        FisherEncoder.fit([rows], 0, 32, 4)
    with pytest.raises(ValueError, match=r"1 different .* n_gaussians=4"):
        FisherEncoder.fit([rows[:1].repeat(50, axis=0), np.zeros((9, 128))], 0, 2, 4)
    with pytest.raises(ValueError, match=r"n_gaussians=4.*max_descriptors is 3"):
        FisherEncoder.fit([rows], 0, 2, 4, 3)
    with pytest.raises(ValueError, match=r"0 different .* n_gaussians=4"):
        FisherEncoder.fit([np.zeros((9, 128))], 0, 2, 4)
    FisherEncoder.fit([rows], 0, 10, 10)  # just enough


def test_wrong_random_state(descriptors):
    with pytest.raises(ValueError, match="random_state must be"):
        FisherEncoder.fit(descriptors, "seed", 2, 2)
