"""Colour layouts: by hand, against the plain histogram, and by loops over pixels."""

import colorsys

import numpy as np
import pytest

from variegate.video.picture import (
    colour_layout,
    describe,
    hue_histogram,
    hue_of_pixels,
)

RED, GREEN = (255, 0, 0), (0, 255, 0)
BLUE, YELLOW = (0, 0, 255), (255, 255, 0)

# Hues of 0, 120, 240 and 60 degrees on a scale of 256, in bins of 16.
RED_BIN, GREEN_BIN, BLUE_BIN, YELLOW_BIN = 0, 5, 10, 2


def random_image(height, width, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (height, width, 3), dtype=np.uint8)


def hues(image, rows, columns):
    """Return the part of the layout about hue."""
    return colour_layout(image, rows, columns)[: 16 * rows * columns]


def quadrants(side):
    image = np.empty((side, side, 3), dtype=np.uint8)
    half = side // 2
    image[:half, :half], image[:half, half:] = RED, GREEN
    image[half:, :half], image[half:, half:] = BLUE, YELLOW
    return image


def test_one_cell_is_the_hue_histogram():
    image = random_image(37, 53)
    np.testing.assert_array_equal(hues(image, 1, 1), hue_histogram(image))


def test_quadrants_of_known_colours():
    layout = hues(quadrants(100), 5, 5)
    assert layout.shape == (400,)
    assert layout.dtype == np.float64
    expected = np.zeros((5, 5, 16))
    # The cells of the third row and column lie half in one colour, half in the next.
    before, after = np.array([1, 1, 0.5, 0, 0]), np.array([0, 0, 0.5, 1, 1])
    expected[:, :, RED_BIN] = np.outer(before, before)
    expected[:, :, GREEN_BIN] = np.outer(before, after)
    expected[:, :, BLUE_BIN] = np.outer(after, before)
    expected[:, :, YELLOW_BIN] = np.outer(after, after)
    np.testing.assert_array_equal(layout.reshape(5, 5, 16), expected)


@pytest.mark.parametrize(
    ("shape", "grid"), [((23, 31), (5, 5)), ((9, 40), (2, 7)), ((5, 5), (5, 5))]
)
def test_equals_a_loop_over_pixels(shape, grid):
    image = random_image(*shape)
    hue = hue_of_pixels(image)
    counts = np.zeros((*grid, 16))
    for i in range(shape[0]):
        for j in range(shape[1]):
            row, column = int(i * grid[0] / shape[0]), int(j * grid[1] / shape[1])
            counts[row, column, int(hue[i, j] / 16)] += 1
    expected = counts / counts.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(hues(image, *grid), expected.ravel(), rtol=1e-14)


def test_saturation_and_value_follow_the_hues():
    image = random_image(20, 30)
    image[0, 0] = 0  # black has no saturation
    layout = colour_layout(image, 2, 3)
    _, saturation, value = layout.reshape(3, 6, 16)
    for k in range(6):
        i, j = divmod(k, 3)
        cell = image[10 * i : 10 * i + 10, 10 * j : 10 * j + 10].reshape(-1, 3)
        hsv = [colorsys.rgb_to_hsv(*(int(colour) for colour in rgb)) for rgb in cell]
        # Products such as 255 * (2 / 5) must not fall just below a whole number.
        saturations = [int(255 * s + 1e-9) // 16 for _, s, _ in hsv]
        values = [v // 16 for _, _, v in hsv]
        expected = np.bincount(saturations, minlength=16) / 100
        np.testing.assert_allclose(saturation[k], expected)
        np.testing.assert_allclose(value[k], np.bincount(values, minlength=16) / 100)


def test_palettes_have_the_hellinger_distance():
    first, second = random_image(12, 12, 1), random_image(12, 12, 2)
    p, q = hue_histogram(first), hue_histogram(second)
    hellinger = np.sqrt(1 - np.sum(np.sqrt(p * q)))
    roots = [describe(0, 0.0, image).palette[:16] for image in (first, second)]
    distance = np.linalg.norm(roots[0] - roots[1])
    assert distance == pytest.approx(np.sqrt(2 / 3) * hellinger)


def test_image_is_left_alone():
    image = random_image(12, 12)
    before = image.copy()
    colour_layout(image, 2, 2)
    np.testing.assert_array_equal(image, before)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((4, 9, 3), "4 rows and 9 columns is too small for a grid of 5 x 5"),
        ((9, 4, 3), "9 rows and 4 columns is too small"),
        ((9, 9), r"three colours, got shape \(9, 9\)"),
        ((9, 9, 4), "three colours"),
        ((0, 9, 3), "three colours"),
    ],
)
def test_errors_say_what_is_wrong(shape, message):
    image = np.zeros(shape, dtype=np.uint8)
    with pytest.raises(ValueError, match=message):
        colour_layout(image, 5, 5)


def test_floats_are_refused():
    with pytest.raises(ValueError, match=r"from 0 to 255 \(uint8\), got float64"):
        colour_layout(np.zeros((9, 9, 3)), 1, 1)
