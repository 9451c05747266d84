r"""Encode the local patterns of an image as a Fisher vector.

A mixture of Gaussians models the SIFT descriptors of a collection of images; the Fisher
vector of one image is the direction in which it fits the image's descriptors better.

References
----------
.. [1] Perronnin, Sánchez and Mensink, 2010, "Improving the Fisher kernel for
   large-scale image classification".
.. [2] Sánchez, Perronnin, Mensink and Verbeek, 2013, "Image classification with the
   Fisher vector: theory and practice".
.. [3] Arandjelović and Zisserman, 2012, "Three things everyone should know to improve
   object retrieval".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import logsumexp
from threadpoolctl import threadpool_limits

from variegate._random import as_generator
from variegate._typing import AnyArray, FloatArray, RandomState
from variegate.files.model_format import ModelFileError
from variegate.files.schema import MATRIX, ListOf, Number, Record
from variegate.video.picture import SIFT_LENGTH

PATTERNS = Record(  # of an encoder in a model file
    {
        **dict.fromkeys(("centre", "weights"), ListOf(Number(), least=1)),
        **dict.fromkeys(("components", "means", "variances"), MATRIX),
    }
)


def fisher_gradients(
    x: FloatArray, weights: FloatArray, means: FloatArray, variances: FloatArray
) -> FloatArray:
    r"""Return the gradient of the mean log-likelihood, scaled by Fisher information.

    With :math:`\gamma_t(k)` the probability that :math:`x_t` comes from Gaussian k,
    the two parts are [2]_

    .. math::

        G_{\mu_k} &= \frac{1}{T \sqrt{w_k}} \sum_t \gamma_t(k)
            \frac{x_t - \mu_k}{\sigma_k}, \\
        G_{\sigma_k} &= \frac{1}{T \sqrt{2 w_k}} \sum_t \gamma_t(k)
            \left[ \frac{(x_t - \mu_k)^2}{\sigma_k^2} - 1 \right].

    These are :math:`\sigma_k / \sqrt{w_k}` and :math:`\sigma_k / \sqrt{2 w_k}` times
    the derivatives of :math:`\frac{1}{T} \sum_t \log p(x_t)` by :math:`\mu_k` and
    :math:`\sigma_k`.  The gradient by the weights is left out, as it adds little.

    Parameters
    ----------
    x : array of shape (T, D), T at least 1
    weights : array of shape (K,)
        Shares w of the Gaussians, above 0 and summing to 1.
    means, variances : arrays of shape (K, D)
        μ, and the diagonals of the covariances, σ², above 0.

    Returns
    -------
    array of shape (2, K, D)
        The part of the means, then that of the deviations.
    """
    precisions = 1.0 / variances
    # log w_k - Σ_d [log σ² + (x - μ)²/σ²] / 2, the square multiplied out.
    distances = (
        x**2 @ precisions.T
        - 2.0 * x @ (means * precisions).T
        + (means**2 * precisions).sum(axis=1)
    )
    joint = np.log(weights) - 0.5 * (np.log(variances).sum(axis=1) + distances)
    gamma = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    # Σ_t γ, Σ_t γ x and Σ_t γ x², from which both sums over (x - μ) follow.
    zeroth = gamma.mean(axis=0)[:, None]
    first = gamma.T @ x / len(x)
    second = gamma.T @ x**2 / len(x)
    by_mean = (first - zeroth * means) * np.sqrt(precisions)
    squares = second - 2.0 * first * means + zeroth * means**2
    by_deviation = (squares * precisions - zeroth) / np.sqrt(2.0)
    return np.stack([by_mean, by_deviation]) / np.sqrt(weights)[:, None]


@dataclass(frozen=True, eq=False, repr=False)
class FisherEncoder:
    """Encodes the descriptors of an image as an improved Fisher vector [1]_.

    A descriptor becomes its root-SIFT [3]_, the square roots of its shares in its
    sum, and is projected to its leading principal components.  The vector of an image
    holds the :func:`fisher_gradients` of its descriptors under a mixture of Gaussians
    with diagonal covariances; each number is replaced by the root of its size with
    its sign, and the whole is scaled to length 1.  Descriptors of zeros are left out.

    Attributes
    ----------
    centre, components : mean (128,) and principal components (D, 128) of root-SIFT
    weights, means, variances : arrays of shape (K,), (K, D) and (K, D)
        All numbers have single precision: short and exact in a file.
    """

    centre: FloatArray
    components: FloatArray
    weights: FloatArray
    means: FloatArray
    variances: FloatArray

    def __repr__(self) -> str:
        return f"<FisherEncoder: {len(self.weights)} Gaussians>"

    @classmethod
    def fit(
        cls,
        descriptors: Sequence[AnyArray],
        random_state: RandomState = None,
        n_components: int = 32,
        n_gaussians: int = 16,
        max_descriptors: int = 100_000,
    ) -> Self:
        """Learn components and mixture from descriptors (n, 128) of several images.

        ``random_state`` chooses ``max_descriptors`` of them, and where the mixture
        starts.  Too few different ones for either number raise ValueError.
        """
        from sklearn.decomposition import PCA
        from sklearn.mixture import GaussianMixture

        rng = as_generator(random_state)
        sample = _sample_descriptors(descriptors, max_descriptors, rng)
        n_different = len(np.unique(sample, axis=0))
        for name, least in (
            ("n_gaussians", n_gaussians),
            ("n_components", n_components),
        ):
            if n_different < least:
                raise ValueError(
                    f"{n_different} different descriptors (zeros aside) are too few "
                    f"for {name}={least}: give more images, or lower {name}; "
                    f"max_descriptors is {max_descriptors}"
                )
        roots = _root_sift(sample)
        # With more threads, sums come in any order, and a seed gives no fixed result.
        with threadpool_limits(limits=1):
            pca = PCA(n_components, svd_solver="full").fit(roots)
            centre, components = _as_single(pca.mean_), _as_single(pca.components_)
            mixture = GaussianMixture(
                n_gaussians,
                covariance_type="diag",
                max_iter=300,
                random_state=int(rng.integers(2**31)),
            ).fit((roots - centre) @ components.T)
        fitted = (mixture.weights_, mixture.means_, mixture.covariances_)
        return cls(centre, components, *map(_as_single, fitted))

    def encode(self, descriptors: AnyArray) -> FloatArray:
        """Return the Fisher vector of descriptors (n, 128), (2 K D,) and of norm 1.

        Signed roots of gradients by the means, Gaussian by Gaussian, then by the
        deviations; zeros if all descriptors are zeros.
        """
        usable = _without_zeros(descriptors)
        if not len(usable):
            return np.zeros(2 * self.means.size)
        x = (_root_sift(usable) - self.centre) @ self.components.T
        gradients = fisher_gradients(x, self.weights, self.means, self.variances)
        vector = (np.sign(gradients) * np.sqrt(np.abs(gradients))).ravel()
        norm = np.linalg.norm(vector)
        return np.asarray(vector / norm if norm > 0.0 else vector)

    def to_dict(self) -> dict[str, Any]:
        """Return the arrays as lists, for a JSON file.

        They have the shortest decimals that single precision reads back the same.
        """
        texts = {n: v.astype(np.float32).astype(str) for n, v in vars(self).items()}
        return {name: values.astype(float).tolist() for name, values in texts.items()}

    @classmethod
    def from_dict(cls, section: Mapping[str, Any]) -> Self:
        """Return the encoder of a file's section, checked; else ModelFileError."""
        encoder = cls(**{n: _as_single(np.array(section[n])) for n in section})
        mixture = len(encoder.weights), len(encoder.components)
        shapes = {
            "centre": (SIFT_LENGTH,),
            "components": (mixture[1], SIFT_LENGTH),
            "means": mixture,
            "variances": mixture,
        }
        for name, values in vars(encoder).items():
            shape = shapes.get(name, values.shape)
            if values.shape != shape:
                raise ModelFileError(
                    f'"patterns.{name}" has shape {values.shape}, not {shape}'
                )
            if not np.isfinite(values).all():
                raise ModelFileError(f'"patterns.{name}" holds numbers too large')
            if name in ("weights", "variances") and values.min() <= 0.0:
                raise ModelFileError(f'"patterns.{name}" holds a number not above 0')
        total = encoder.weights.sum()
        if abs(total - 1.0) > 1e-4:
            raise ModelFileError(f'"patterns.weights" sum to {total:g}, not 1')
        return encoder


def _without_zeros(descriptors: AnyArray) -> AnyArray:
    """Return the descriptors (n, 128) that have any number but 0."""
    return np.asarray(descriptors[descriptors.any(axis=1)])


def _sample_descriptors(
    descriptors: Sequence[AnyArray], limit: int, rng: np.random.Generator
) -> AnyArray:
    """Return the rows, not zero, of several arrays; above ``limit`` a random sample."""
    usable = np.concatenate([_without_zeros(rows) for rows in descriptors])
    if len(usable) <= limit:
        return usable
    return usable[np.sort(rng.choice(len(usable), size=limit, replace=False))]


def _root_sift(descriptors: AnyArray) -> FloatArray:
    """Return the square roots (n, 128) of descriptors, each divided by its sum."""
    values = descriptors.astype(np.float64, order="C")
    return np.asarray(np.sqrt(values / values.sum(axis=1, keepdims=True)))


def _as_single(values: AnyArray) -> FloatArray:
    """Return values rounded to single precision, in double and in C order.

    The order matters, as products of matrices round differently in another one.
    """
    with np.errstate(over="ignore"):
        return values.astype(np.float32).astype(np.float64, order="C")
