"""Saliency maps: against slow transcriptions, and on images with a known answer."""

import cv2
import numpy as np
import pytest
from scipy.fft import dctn

from paper.video.saliency import (
    contrast_saliency,
    image_signature,
    lab_of_pixels,
    resized_to_width,
    saliency_statistics,
)

pytestmark = pytest.mark.paper

MAPS = [image_signature, contrast_saliency]


def random_image(height, width, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (height, width, 3), dtype=np.uint8)


def cosines(n):
    """Return the orthonormal cosine transform of length n, entry by entry."""
    matrix = np.empty((n, n))
    for k in range(n):
        scale = np.sqrt((1 if k == 0 else 2) / n)
        for i in range(n):
            matrix[k, i] = scale * np.cos(np.pi * k * (2 * i + 1) / (2 * n))
    return matrix


def scaled(values):
    return (values - values.min()) / (values.max() - values.min())


def slow_signature(image):
    down, across = cosines(image.shape[0]), cosines(image.shape[1])
    total = np.zeros(image.shape[:2])
    for colour in range(3):
        channel = image[:, :, colour].astype(float)
        signature = np.sign(down @ channel @ across.T)
        total += (down.T @ signature @ across) ** 2
    return total


def slow_contrast(image, radius):
    height, width = image.shape[:2]
    lab = lab_of_pixels(image)
    contrast = np.empty((height, width))
    for i in range(height):
        for j in range(width):
            inside, around = [], []
            for k in range(height):
                for m in range(width):
                    distance = max(abs(k - i), abs(m - j))
                    if distance <= radius:
                        inside.append(lab[k, m])
                    elif distance <= 2 * radius:
                        around.append(lab[k, m])
            difference = np.mean(inside, axis=0) - np.mean(around, axis=0)
            contrast[i, j] = np.sqrt((difference**2).sum())
    return contrast


@pytest.mark.parametrize(
    ("colour", "expected"),
    [
        # Widely published values of the primaries of sRGB, to two digits.
        ((255, 0, 0), (53.24, 80.09, 67.20)),
        ((0, 255, 0), (87.73, -86.18, 83.18)),
        ((0, 0, 255), (32.30, 79.19, -107.86)),
        ((255, 255, 255), (100.0, 0.0, 0.0)),
        ((0, 0, 0), (0.0, 0.0, 0.0)),
    ],
)
def test_lab_of_the_primaries(colour, expected):
    lab = lab_of_pixels(np.array([[colour]], dtype=np.uint8))
    assert lab.shape == (1, 1, 3)
    np.testing.assert_allclose(lab[0, 0], expected, atol=0.02)


def test_lab_agrees_with_opencv():
    image = random_image(50, 60)
    shares = (image / 255).astype(np.float32)
    expected = cv2.cvtColor(shares, cv2.COLOR_RGB2LAB)
    # OpenCV interpolates in a table; distances of 1 are just visible.
    np.testing.assert_allclose(lab_of_pixels(image), expected, atol=1.0)


def test_cosine_transform_is_the_one_meant():
    values = np.random.default_rng(1).normal(size=(8, 8))
    expected = np.zeros((8, 8))
    for k in range(8):
        for m in range(8):
            for i in range(8):
                for j in range(8):
                    expected[k, m] += (
                        values[i, j]
                        * np.cos(np.pi * k * (2 * i + 1) / 16)
                        * np.cos(np.pi * m * (2 * j + 1) / 16)
                    )
            expected[k, m] *= np.sqrt((1 if k == 0 else 2) / 8)
            expected[k, m] *= np.sqrt((1 if m == 0 else 2) / 8)
    np.testing.assert_allclose(dctn(values, type=2, norm="ortho"), expected, atol=1e-12)


@pytest.mark.parametrize("shape", [(240, 352), (48, 64), (17, 23), (33, 200)])
def test_resizing_agrees_with_opencv(shape):
    image = random_image(*shape)
    found = resized_to_width(image, 64)
    shrinks = shape[1] > 64
    expected = cv2.resize(
        image.astype(np.float64),
        (64, found.shape[0]),
        interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR,
    )
    # OpenCV keeps its weights in single precision: 255 / 2**23 is 3e-5.
    np.testing.assert_allclose(found, expected, atol=2e-3)


def test_resizing_by_hand():
    row = np.arange(0, 240, 10, dtype=np.uint8)  # 24 pixels become 16
    image = np.broadcast_to(row[None, :, None], (24, 24, 3))
    found = resized_to_width(image, 16)
    # Each new pixel covers one old one and half of the next, or the reverse.
    first, second = (0 * 1 + 10 * 0.5) / 1.5, (10 * 0.5 + 20 * 1) / 1.5
    expected = np.array([[first, second]]) + 30 * np.arange(8)[:, None]
    np.testing.assert_allclose(
        found, np.broadcast_to(expected.ravel()[None, :, None], (16, 16, 3))
    )


@pytest.mark.parametrize("shape", [(48, 64), (30, 20), (9, 16)])
def test_signature_equals_a_slow_transcription(shape):
    image = random_image(*shape)
    fast = image_signature(image, width=shape[1], blur=0.0)
    np.testing.assert_allclose(fast, scaled(slow_signature(image)), atol=1e-10)


def test_signature_blur_is_a_gaussian_with_zeros_outside():
    image = random_image(48, 64)
    sharp = slow_signature(image)
    sigma, reach = 0.045 * 64, 16
    offsets = np.arange(-reach, reach + 1)
    weights = np.exp(-(offsets**2) / (2 * sigma**2))
    weights /= weights.sum()
    padded = np.pad(sharp, reach)
    expected = np.empty_like(sharp)
    for i in range(48):
        for j in range(64):
            window = padded[i : i + 2 * reach + 1, j : j + 2 * reach + 1]
            expected[i, j] = weights @ window @ weights
    # The library cuts the Gaussian at four deviations: 6e-5 of its mass in all.
    np.testing.assert_allclose(image_signature(image), scaled(expected), atol=5e-3)


def test_contrast_equals_a_slow_transcription():
    image = random_image(10, 14)
    # Sides of 0.15 and 0.4 of 14 pixels give radii of 1 and 3.
    expected = (slow_contrast(image, 1) + slow_contrast(image, 3)) / 2
    fast = contrast_saliency(image, width=14, scales=(0.15, 0.4))
    np.testing.assert_allclose(fast, scaled(expected), atol=1e-10)


@pytest.mark.parametrize("saliency", MAPS)
@pytest.mark.parametrize(("top", "left"), [(40, 60), (90, 30), (100, 240)])
def test_peak_lies_in_a_red_square_on_grey(saliency, top, left):
    image = np.full((240, 320, 3), 128, dtype=np.uint8)
    image[top : top + 40, left : left + 40] = (255, 0, 0)
    found = saliency(image)
    row, column = np.unravel_index(found.argmax(), found.shape)
    scale = 320 / found.shape[1]
    assert top <= (row + 0.5) * scale <= top + 40
    assert left <= (column + 0.5) * scale <= left + 40


@pytest.mark.parametrize("saliency", MAPS)
@pytest.mark.parametrize("side", [40, 64, 128, 200])
def test_transposed_image_gives_the_transposed_map(saliency, side):
    image = random_image(side, side)
    transposed = np.ascontiguousarray(image.transpose(1, 0, 2))
    np.testing.assert_allclose(saliency(transposed), saliency(image).T, atol=1e-9)


@pytest.mark.parametrize("saliency", MAPS)
@pytest.mark.parametrize(
    ("shape", "width", "expected"),
    [
        ((240, 320), 64, (48, 64)),
        ((48, 64), 64, (48, 64)),
        ((30, 20), 64, (96, 64)),
        ((1, 300), 8, (1, 8)),
    ],
)
def test_maps_keep_the_aspect_and_run_from_zero_to_one(
    saliency, shape, width, expected
):
    image = random_image(*shape)
    before = image.copy()
    found = saliency(image, width=width)
    assert found.shape == expected
    assert found.dtype == np.float64
    assert found.min() == 0.0
    assert found.max() == 1.0
    np.testing.assert_array_equal(found, saliency(image, width=width))
    np.testing.assert_array_equal(image, before)


@pytest.mark.parametrize("saliency", MAPS)
@pytest.mark.parametrize("colour", [(0, 0, 0), (255, 255, 255), (201, 17, 93)])
@pytest.mark.parametrize("shape", [(240, 352), (48, 64), (17, 23), (1, 1)])
def test_one_colour_gives_zeros(saliency, colour, shape):
    image = np.empty((*shape, 3), dtype=np.uint8)
    image[:] = colour
    found = saliency(image)
    assert found.shape[0] >= 1
    assert not found.any()


@pytest.mark.parametrize("shape", [(48, 64), (7, 5), (1, 1)])
def test_statistics_of_random_maps(shape):
    values = np.random.default_rng(2).random(shape)
    found = saliency_statistics(values)
    ordered = np.sort(values.ravel())
    n = len(ordered)

    def quantile(share):
        return np.interp(share * (n - 1), np.arange(n), ordered)

    mean = ordered.sum() / n
    central = 0.0
    for i in range(shape[0]):
        for j in range(shape[1]):
            row_is_central = shape[0] // 4 <= i < shape[0] - shape[0] // 4
            if row_is_central and shape[1] // 4 <= j < shape[1] - shape[1] // 4:
                central += values[i, j]
    expected = {
        "mean": mean,
        "deviation": np.sqrt(((ordered - mean) ** 2).sum() / n),
        "median": quantile(0.5),
        "quantile_0.1": quantile(0.1),
        "quantile_0.25": quantile(0.25),
        "quantile_0.75": quantile(0.75),
        "quantile_0.9": quantile(0.9),
        "central_share": central / ordered.sum(),
    }
    assert list(found) == list(expected)
    assert found == pytest.approx(expected)
    assert all(type(value) is float for value in found.values())


def test_central_share_of_known_maps():
    centre = np.zeros((8, 12))
    centre[2:6, 3:9] = 1.0
    assert saliency_statistics(centre)["central_share"] == 1.0
    assert saliency_statistics(1.0 - centre)["central_share"] == 0.0
    assert saliency_statistics(np.ones((8, 12)))["central_share"] == 0.25
    assert set(saliency_statistics(np.zeros((8, 12))).values()) == {0.0}


@pytest.mark.parametrize("saliency", MAPS)
def test_images_are_checked(saliency):
    with pytest.raises(ValueError, match=r"three colours, got shape \(9, 9\)"):
        saliency(np.zeros((9, 9), dtype=np.uint8))
    with pytest.raises(ValueError, match="got float64"):
        saliency(np.zeros((9, 9, 3)))
    with pytest.raises(ValueError, match="at least 8 wide, got width 7"):
        saliency(random_image(9, 9), width=7)


@pytest.mark.parametrize("blur", [-0.1, np.nan])
def test_blur_is_checked(blur):
    with pytest.raises(ValueError, match="zero or more, got"):
        image_signature(random_image(9, 9), blur=blur)


@pytest.mark.parametrize("scales", [(), (0.0,), (0.1, 0.6), (np.nan,)])
def test_scales_are_checked(scales):
    with pytest.raises(ValueError, match=r"above 0 and at most 0\.5, got"):
        contrast_saliency(random_image(9, 9), scales=scales)


@pytest.mark.parametrize("values", [np.zeros(3), np.zeros((0, 3))])
def test_statistics_need_rows_and_columns(values):
    with pytest.raises(ValueError, match="has rows and columns, got shape"):
        saliency_statistics(values)


@pytest.mark.parametrize("value", [-0.1, np.nan, np.inf])
def test_statistics_need_proper_values(value):
    with pytest.raises(ValueError, match="finite and nowhere negative"):
        saliency_statistics(np.array([[0.5, value]]))
