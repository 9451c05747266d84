import numpy as np
import pytest

from variegate.video.picture import (
    PICTURE_STATISTICS,
    describe,
    picture_statistics,
    shrink_picture,
)


def statistics(image):
    return dict(zip(PICTURE_STATISTICS, picture_statistics(image), strict=True))


def flat(colour, height=32, width=32):
    return np.full((height, width, 3), colour, dtype=np.uint8)


def test_a_picture_of_one_colour():
    found = statistics(flat((200, 100, 0)))
    assert found["brightness"] == pytest.approx(100.0)
    assert found["saturation"] == pytest.approx(200.0)
    for name in ("contrast", "sharpness", "colour_spread", "detail", "dark_share"):
        assert found[name] == pytest.approx(0.0)
    assert found["n_colours"] == pytest.approx(np.log(1))
    assert found["hue_entropy"] == pytest.approx(0.0, abs=1e-9)


def test_half_black_half_white():
    image = flat((0, 0, 0))
    image[16:] = 255
    found = statistics(image)
    assert found["brightness"] == pytest.approx(127.5)
    assert found["contrast"] == pytest.approx(127.5)
    assert found["colour_spread"] == pytest.approx(127.5)
    # One step of 255 in each column of 31 differences; none along rows.
    assert found["sharpness"] == pytest.approx(255 / 31)
    assert found["detail"] == pytest.approx(255 / 31)
    assert found["dark_share"] == pytest.approx(0.5)
    assert found["n_colours"] == pytest.approx(np.log(2))
    assert found["saturation"] == pytest.approx(0.0)


def test_two_hues_in_equal_parts_have_an_entropy_of_one_bit():
    image = flat((255, 0, 0))
    image[:, 16:] = (0, 0, 255)
    assert statistics(image)["hue_entropy"] == pytest.approx(np.log(2))


def test_coarse_numbers_do_not_depend_on_resolution():
    rng = np.random.default_rng(0)
    small = rng.integers(0, 256, size=(32, 32, 3)).astype(np.uint8)
    large = np.repeat(np.repeat(small, 4, axis=0), 4, axis=1)
    one, other = statistics(small), statistics(large)
    for name in ("detail", "n_colours", "saturation", "dark_share", "hue_entropy"):
        assert one[name] == pytest.approx(other[name])


def test_a_picture_of_one_pixel():
    assert np.isfinite(picture_statistics(flat((10, 20, 30), 1, 1))).all()


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (4, 40), (40, 60), (720, 1280)])
def test_descriptions_of_any_size(size):
    rng = np.random.default_rng(1)
    image = rng.integers(0, 256, size=(*size, 3)).astype(np.uint8)
    found = describe(7, 1.5, image)
    assert (found.number, found.time) == (7, 1.5)
    assert found.hue.sum() == pytest.approx(1.0)
    assert found.value.sum() == pytest.approx(1.0)
    assert np.linalg.norm(found.palette) == pytest.approx(1.0)
    assert np.linalg.norm(found.layout) == pytest.approx(1.0, abs=1e-6)
    assert len(found.sift) >= 1


def test_descriptions_refuse_what_is_no_picture():
    with pytest.raises(ValueError, match="uint8"):
        describe(0, 0.0, np.zeros((8, 8, 3)))


def test_shrinking_keeps_the_aspect_and_never_enlarges():
    assert shrink_picture(flat(0, 480, 640), 320).shape == (240, 320, 3)
    assert shrink_picture(flat(0, 100, 10), 50).shape == (50, 5, 3)
    image = flat(0, 20, 30)
    assert shrink_picture(image, 30) is image
