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

_SETTINGS = ("n_components", "n_gaussians", "max_descriptors")

PATTERNS = Record(  # of an encoder in a model file
    {
        **dict.fromkeys(_SETTINGS, Number(1, is_whole=True)),
        "n_components": Number(1, is_whole=True, most=SIFT_LENGTH),
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


@dataclass(eq=False)
class FisherEncoder:
    """Encodes the descriptors of an image as an improved Fisher vector [1]_.

    A descriptor becomes its root-SIFT [3]_, the square roots of its shares in its
    sum, and is projected to its leading principal components.  The vector of an image
    holds the :func:`fisher_gradients` of its descriptors under a mixture of Gaussians
    with diagonal covariances; each number is replaced by the root of its size with
    its sign, and the whole is scaled to length 1.  Descriptors of zeros are left out.

    Parameters
    ----------
    n_components, n_gaussians : components D, at most 128, and Gaussians K
    max_descriptors : size of the random sample to fit to

    Attributes
    ----------
    centre_, components_ : mean (128,) and principal components (D, 128) of root-SIFT
    weights_, means_, variances_ : arrays of shape (K,), (K, D) and (K, D)
        All numbers have single precision: short and exact in a file.
    """

    n_components: int = 32
    n_gaussians: int = 16
    max_descriptors: int = 100_000

    def fit(
        self, descriptors: Sequence[AnyArray], random_state: RandomState = None
    ) -> Self:
        """Learn components and mixture from descriptors (n, 128) of several images.

        ``random_state`` chooses the sample and where the mixture starts.
        """
        from sklearn.decomposition import PCA
        from sklearn.mixture import GaussianMixture

        rng = as_generator(random_state)
        sample = _sample(descriptors, self.max_descriptors, rng)
        n_different = len(np.unique(sample, axis=0))
        for name in ("n_gaussians", "n_components"):
            if n_different < getattr(self, name):
                raise ValueError(
                    f"{n_different} different descriptors (zeros aside) are too few "
                    f"for {name}={getattr(self, name)}: give more images, or lower "
                    f"{name}; max_descriptors is {self.max_descriptors}"
                )
        roots = _root_sift(sample)
        # With more threads, sums come in any order, and a seed gives no fixed result.
        with threadpool_limits(limits=1):
            pca = PCA(self.n_components, svd_solver="full").fit(roots)
            self.centre_ = _single(pca.mean_)
            self.components_ = _single(pca.components_)
            seed = int(rng.integers(2**31))
            mixture = GaussianMixture(
                self.n_gaussians,
                covariance_type="diag",
                max_iter=300,
                random_state=seed,
            ).fit((roots - self.centre_) @ self.components_.T)
        self.weights_ = _single(mixture.weights_)
        self.means_ = _single(mixture.means_)
        self.variances_ = _single(mixture.covariances_)
        return self

    def encode(self, descriptors: AnyArray) -> FloatArray:
        """Return the Fisher vector of descriptors (n, 128), (2 K D,) and of norm 1.

        Gradients by the means, Gaussian by Gaussian, then by the deviations; zeros if
        all descriptors are zeros.
        """
        usable = _without_zeros(descriptors)
        if not len(usable):
            return np.zeros(2 * self.means_.size)
        x = (_root_sift(usable) - self.centre_) @ self.components_.T
        gradients = fisher_gradients(x, self.weights_, self.means_, self.variances_)
        vector = (np.sign(gradients) * np.sqrt(np.abs(gradients))).ravel()
        norm = np.linalg.norm(vector)
        return np.asarray(vector / norm if norm > 0.0 else vector)

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted encoder as plain numbers and lists, for a JSON file."""
        settings = {name: int(getattr(self, name)) for name in _SETTINGS}
        return settings | {
            name: _short_decimals(getattr(self, f"{name}_")) for name in self._shapes()
        }

    @classmethod
    def from_dict(cls, section: Mapping[str, Any]) -> Self:
        """Return the encoder of a section of a file, checked against ``PATTERNS``."""
        encoder = cls(**{name: section[name] for name in _SETTINGS})
        for name, shape in encoder._shapes().items():
            values = _single(np.array(section[name], dtype=np.float64))
            if values.shape != shape:
                raise ModelFileError(
                    f'"patterns.{name}" has shape {values.shape}, not {shape}'
                )
            if not np.isfinite(values).all():
                raise ModelFileError(f'"patterns.{name}" holds numbers too large')
            if name in ("weights", "variances") and values.min() <= 0.0:
                raise ModelFileError(f'"patterns.{name}" holds a number not above 0')
            setattr(encoder, f"{name}_", values)
        total = encoder.weights_.sum()
        if abs(total - 1.0) > 1e-4:
            raise ModelFileError(f'"patterns.weights" sum to {total:g}, not 1')
        return encoder

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the fitted arrays by their names in a file."""
        mixture = (self.n_gaussians, self.n_components)
        return {
            "centre": (SIFT_LENGTH,),
            "components": (self.n_components, SIFT_LENGTH),
            "weights": (self.n_gaussians,),
            "means": mixture,
            "variances": mixture,
        }


def _without_zeros(descriptors: AnyArray) -> AnyArray:
    return np.asarray(descriptors[descriptors.any(axis=1)])


def _sample(
    descriptors: Sequence[AnyArray], limit: int, rng: np.random.Generator
) -> AnyArray:
    """Return a sample without replacement of the rows of several arrays."""
    usable = np.concatenate([_without_zeros(rows) for rows in descriptors])
    if len(usable) <= limit:
        return usable
    return usable[np.sort(rng.choice(len(usable), size=limit, replace=False))]


def _root_sift(descriptors: AnyArray) -> FloatArray:
    """Return the roots of the shares of the numbers in each descriptor."""
    values = descriptors.astype(np.float64, order="C")
    return np.asarray(np.sqrt(values / values.sum(axis=1, keepdims=True)))


def _single(values: AnyArray) -> FloatArray:
    """Return values rounded to single precision, in double and in C order.

    The order matters, as products of matrices round differently in another one.
    """
    with np.errstate(over="ignore"):
        return values.astype(np.float32).astype(np.float64, order="C")


def _short_decimals(values: FloatArray) -> Any:
    """Return the shortest decimals that single precision reads back the same."""
    return values.astype(np.float32).astype(str).astype(np.float64).tolist()
