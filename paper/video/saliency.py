"""Which places of an image draw the eye: two saliency maps, and numbers from them.

References
----------
.. [1] Hou, Harel and Koch, 2012, "Image signature: highlighting sparse salient
   regions".
.. [2] Rahtu, Kannala, Salo and Heikkilä, 2010, "Segmenting salient objects from
   images and videos".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.fft import dctn, idctn
from scipy.ndimage import gaussian_filter

from variegate._typing import AnyArray, FloatArray
from variegate.video.picture import check_image

__all__ = [
    "SALIENCY_STATISTICS",
    "contrast_saliency",
    "image_signature",
    "lab_of_pixels",
    "resized_to_width",
    "saliency_statistics",
]

#: Quantiles among the statistics of a map, beside the median.
_QUANTILES = (0.1, 0.25, 0.75, 0.9)

#: The numbers of :func:`saliency_statistics`, in order.
SALIENCY_STATISTICS = (
    *("mean", "deviation", "median"),
    *(f"quantile_{share}" for share in _QUANTILES),
    "central_share",
)

#: Coefficients of the cosine transform no larger than this are rounding errors: the
#: largest a channel can have is 255 √(h w), some 10⁴, and doubles keep 16 digits.
_ZERO_COEFFICIENT = 1e-8

#: Differences of colour in Lab no larger than this are rounding errors; one step of
#: one channel is some 0.1 to 1.
_ZERO_CONTRAST = 1e-6

_SMALLEST_WIDTH = 8

#: From linear sRGB to CIE XYZ, under the white of daylight (D65).
_TO_XYZ = np.array(
    [
        [0.412453, 0.357580, 0.180423],
        [0.212671, 0.715160, 0.072169],
        [0.019334, 0.119193, 0.950227],
    ]
)


def image_signature(
    image: AnyArray, width: int = 64, blur: float = 0.045
) -> FloatArray:
    r"""Return the saliency map of the image signature [1]_.

    Each colour channel :math:`x_c` is resized, and the map is

    .. math:: g * \sum_c \mathrm{IDCT}(\mathrm{sign}(\mathrm{DCT}(x_c)))^2,

    where DCT is the orthonormal cosine transform (type 2) and g a Gaussian.  What is
    sparse in place stays, what is sparse in frequency (a background) goes.  The map
    is moved and scaled so that it runs from 0 to 1.

    Coefficients that are zero but for rounding have sign 0.  The blur takes the map
    to be 0 outside the image, as the authors' program does, which favours the
    middle.  That program cuts the Gaussian at two deviations, here at four, and
    works in Lab by default, here in red, green and blue.

    An object that is large and of one colour lights up at its corners, so the
    highest place of the map can lie a pixel or so outside it.

    Parameters
    ----------
    image : uint8 array of shape (height, width, 3), red, green and blue
    width : int
        Width of the map; its height keeps the aspect of the image.
    blur : float
        Standard deviation of the Gaussian as a share of the width; 0 for none.

    Returns
    -------
    array of shape (round(width · image height / image width), width)
        All zeros for an image of one colour.
    """
    if not blur >= 0.0:
        raise ValueError(f"blur is a share of the width, zero or more, got {blur}")
    channels = resized_to_width(image, width)
    coefficients = dctn(channels, type=2, norm="ortho", axes=(0, 1))
    coefficients[np.abs(coefficients) <= _ZERO_COEFFICIENT] = 0.0
    signs = np.sign(coefficients)
    energy = (idctn(signs, type=2, norm="ortho", axes=(0, 1)) ** 2).sum(axis=2)
    if np.ptp(energy) <= 1e-9 * energy.max():
        return np.zeros_like(energy)  # the blur would darken the borders of a flat map
    if blur > 0.0:
        energy = gaussian_filter(energy, blur * width, mode="constant")
    return _scaled(energy)


def contrast_saliency(
    image: AnyArray, width: int = 128, scales: Sequence[float] = (0.1, 0.2, 0.4)
) -> FloatArray:
    """Return a saliency map from the local contrast of colours.

    This is a substitute for the measure of Rahtu et al. [2]_, not that measure.
    Both compare an inner window with its surroundings by colour in Lab, at several
    scales.  Rahtu et al. estimate smoothed histograms of the colours inside and
    around, and take the probability by Bayes' rule that a pixel belongs to the
    inside; from video they add motion, and they segment the map with a conditional
    random field.  Here the contrast is the Euclidean distance between the mean
    colours of the two windows, averaged over the scales, with no histograms, no
    motion and no segmentation.  So textures of equal mean colour have no contrast.

    Windows are squares around each pixel, cut at the borders of the image.  The
    surroundings are a window about twice as wide without the inner one.  The map is
    moved and scaled so that it runs from 0 to 1.

    Parameters
    ----------
    image : uint8 array of shape (height, width, 3), red, green and blue
    width : int
        Width of the map; its height keeps the aspect of the image.
    scales : sequence of float
        Sides of the inner windows, as shares of the longer side of the map, above 0
        and at most 0.5.

    Returns
    -------
    array of shape (round(width · image height / image width), width)
        All zeros for an image of one colour.
    """
    if not len(scales) or not all(0.0 < scale <= 0.5 for scale in scales):
        raise ValueError(
            "scales are shares of the longer side, above 0 and at most 0.5, "
            f"got {tuple(scales)}"
        )
    lab = lab_of_pixels(resized_to_width(image, width))
    longer = max(lab.shape[:2])
    radii = [max(1, round(scale * longer / 2)) for scale in scales]
    contrast = np.mean([_contrast(lab, radius) for radius in radii], axis=0)
    if np.ptp(contrast) <= _ZERO_CONTRAST:
        return np.zeros_like(contrast)
    return _scaled(contrast)


def lab_of_pixels(image: AnyArray) -> FloatArray:
    """Return the colour of each pixel in CIE L*a*b*, where distances are as seen.

    Colours are sRGB under the white D65.  White is (100, 0, 0), black (0, 0, 0).

    Parameters
    ----------
    image : array of shape (height, width, 3), red, green and blue from 0 to 255
    """
    shares = image / 255.0
    linear = np.where(
        shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4
    )
    xyz = linear @ (_TO_XYZ / _TO_XYZ.sum(axis=1, keepdims=True)).T
    roots = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz * 841 / 108 + 4 / 29)
    x, y, z = (roots[..., k] for k in range(3))
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)


def saliency_statistics(saliency: AnyArray) -> dict[str, float]:
    """Return numbers that describe a saliency map.

    Parameters
    ----------
    saliency : array of shape (height, width), zero or more

    Returns
    -------
    dict
        "mean", "deviation" (divided by the number of pixels), "median",
        "quantile_0.1", "quantile_0.25", "quantile_0.75", "quantile_0.9" (linear
        between neighbours), and "central_share": the share of the sum of the map
        that lies in the middle half of its rows and of its columns, 0 for a map of
        zeros.  The quarter left out at each side is rounded down to whole pixels.
    """
    values = np.asarray(saliency, dtype=np.float64)
    if values.ndim != 2 or values.size == 0:
        raise ValueError(
            f"a saliency map has rows and columns, got shape {values.shape}"
        )
    if not np.isfinite(values).all() or values.min() < 0.0:
        raise ValueError("a saliency map must be finite and nowhere negative")
    height, width = values.shape
    top, left = height // 4, width // 4
    centre = values[top : height - top, left : width - left].sum()
    total = values.sum()
    statistics = (
        *(values.mean(), values.std(), np.median(values)),
        *np.quantile(values, _QUANTILES),
        centre / total if total > 0.0 else 0.0,
    )
    return dict(zip(SALIENCY_STATISTICS, map(float, statistics), strict=True))


def resized_to_width(image: AnyArray, width: int) -> FloatArray:
    """Return an image of the given width and the same aspect, as floats.

    A side that shrinks takes means over areas, one that grows is interpolated
    between the centres of pixels.  All in double precision, so that an image of one
    colour keeps it to 13 digits; OpenCV weighs areas in single precision, and the
    signs of small cosine coefficients would be those of its rounding errors.

    Parameters
    ----------
    image : uint8 array of shape (height, width, 3)
    width : int, at least 8

    Returns
    -------
    array of shape (round(width · image height / image width), width, 3), 0 to 255
    """
    check_image(image)
    if width < _SMALLEST_WIDTH:
        raise ValueError(
            f"a saliency map is at least {_SMALLEST_WIDTH} wide, got width {width}"
        )
    old_height, old_width = image.shape[:2]
    # Rounded half up, because round() would send 2.5 to 2 and 3.5 to 4.
    height = max(1, int(width * old_height / old_width + 0.5))
    down, across = _resizing(old_height, height), _resizing(old_width, width)
    shorter = down @ image.reshape(old_height, -1).astype(np.float64)
    return np.asarray(across @ shorter.reshape(height, old_width, 3))


def _resizing(old: int, new: int) -> FloatArray:
    """Return the matrix of shape (new, old) that resizes one side of an image."""
    if new == old:
        return np.eye(old)
    if new < old:
        edges = np.linspace(0.0, old, new + 1)
        pixel = np.arange(old)
        upper = np.minimum(edges[1:, None], pixel + 1)
        overlap = np.maximum(upper - np.maximum(edges[:-1, None], pixel), 0.0)
        return np.asarray(overlap / overlap.sum(axis=1, keepdims=True))
    centres = np.clip((np.arange(new) + 0.5) * old / new - 0.5, 0.0, old - 1.0)
    return np.asarray(np.maximum(1.0 - np.abs(centres[:, None] - np.arange(old)), 0.0))


def _contrast(lab: FloatArray, radius: int) -> FloatArray:
    """Return how far the mean colour around a pixel is from that further around."""
    ones = np.ones((*lab.shape[:2], 1))
    inner, outer = _window_sums(lab, radius), _window_sums(lab, 2 * radius)
    n_inner, n_outer = _window_sums(ones, radius), _window_sums(ones, 2 * radius)
    difference = inner / n_inner - (outer - inner) / (n_outer - n_inner)
    return np.asarray(np.linalg.norm(difference, axis=2))


def _window_sums(values: FloatArray, radius: int) -> FloatArray:
    """Return sums over squares of side 2 · radius + 1, cut at the borders."""
    sums = values
    for axis in (0, 1):
        length = values.shape[axis]
        start = np.zeros_like(sums.take([0], axis=axis))
        running = np.concatenate([start, sums.cumsum(axis=axis)], axis=axis)
        place = np.arange(length)
        above = running.take(np.minimum(place + radius + 1, length), axis=axis)
        sums = above - running.take(np.maximum(place - radius, 0), axis=axis)
    return sums


def _scaled(values: FloatArray) -> FloatArray:
    """Return values, not all alike, moved and scaled to run from 0 to 1."""
    return np.asarray((values - values.min()) / np.ptp(values))
