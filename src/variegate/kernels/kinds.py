r"""Learned kinds: two items are alike as surely as they are of the same kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, logit
from threadpoolctl import threadpool_limits

from variegate._typing import FloatArray
from variegate._validation import check_count, check_number
from variegate.files.schema import MATRIX, ListOf, Number
from variegate.ground_set import GroundSet
from variegate.kernels.base import Embedding, PullBack
from variegate.kernels.domains import Free
from variegate.kernels.features import (
    KernelWithStart,
    as_dense,
    check_n_features,
    stack_features,
)
from variegate.linalg.cosine import chunks, unit_rows

#: Items below which k-means starts several times.  Of four starts, the best one is 2 to
#: 3 % nearer to 90 items, and 0.1 to 0.4 % to 4,000, which take a tenth of a second.
_RESTARTED = 2000


class Kinds(KernelWithStart):
    r"""Similarity by kinds that are learned.

    .. math:: p_i = \mathrm{softmax}(W x_i + b), \qquad
        S_{ij} = (1 - \varepsilon) \sum_k \sqrt{p_{ik}\, p_{jk}}
        + \varepsilon\, [i = j]

    Item ``i`` is of kind ``k`` with probability ``p_ik``, and two items are as similar
    as their distributions over kinds: 1 where both are surely of the same kind, 0
    where they are surely not (Bhattacharyya's coefficient).  ``x`` are the similarity
    features, centred and of unit length.  ``W`` and ``b`` start from the centres ``c``
    of ``k``-means, ``W = 2τc`` and ``b = -τ‖c‖²``, so that at the start ``p_ik``
    falls with ``exp(-τ‖x_i - c_k‖²)``.  ``W``, ``b`` and the logarithm of the odds of
    ``ε`` are learned, and penalized by ``penalty / 2`` times the squared distance from
    their start.

    ``S`` has rank ``n_kinds``, but for ``ε``: large ground sets take time in proportion
    to the number of items.

    Parameters
    ----------
    n_kinds : int, default=16
        The number of kinds; no more than there are distinct training items are used.
    sharpness : float, default=5.0
        ``τ``: how sure an item is of its kind at the start.
    epsilon : float, default=0.05
        ``ε`` at the start, between 0 and 1: the part of an item that is like no other.
        It sets how readily a second item of one kind is chosen.
    penalty : float, default=1e-3
        Pull of the parameters towards their start.
    block : str, optional
        The block of similarity features to read.
    random_state : int, default=0
        Seed of ``k``-means.

    Attributes
    ----------
    center_ : array of shape (d,), after ``fit``
        The mean of the training items.
    centers_ : array of shape (n_kinds, d), after ``fit``
        The centres of the kinds at the start, among items centred and of unit length.
    """

    fitted_arrays: ClassVar = {"center": ListOf(Number()), "centers": MATRIX}
    start_name = "the kinds are"

    def __init__(
        self,
        n_kinds: int = 16,
        sharpness: float = 5.0,
        epsilon: float = 0.05,
        penalty: float = 1e-3,
        block: str | None = None,
        random_state: int = 0,
    ) -> None:
        self.n_kinds = n_kinds
        self.sharpness = sharpness
        self.epsilon = epsilon
        self.penalty = penalty
        self.block = block
        self.random_state = random_state

    def check(self) -> None:
        """Raise ValueError for invalid arguments of the constructor."""
        check_count("n_kinds", self.n_kinds)
        check_number("sharpness", self.sharpness, positive=True)
        check_number("epsilon", self.epsilon, positive=True)
        if self.epsilon >= 1.0:
            raise ValueError(f"epsilon must be below 1, got {self.epsilon!r}")
        super().check()

    def find_start(self, items: FloatArray, generator: np.random.Generator) -> None:
        """Set ``center_``, the mean of items (n, d), and ``centers_`` by k-means."""
        self.center_: FloatArray = items.mean(axis=0)
        distinct = np.unique(unit_rows(items - self.center_), axis=0)
        seed = int(generator.integers(2**31))
        self.centers_: FloatArray = _kmeans_centers(distinct, self.n_kinds, seed)

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore ``center_`` and ``centers_`` from lists, checked."""
        super().set_state(state)
        if state and self.centers_.shape[1] != len(self.center_):
            raise ValueError("the centres of kinds do not fit their common centre")

    # Parameters: how far W, b and the odds of ε are from their start ---------------

    @property
    def domain(self) -> Free:
        """Return the domain of real numbers added to ``W``, ``b``, log-odds of ε."""
        n_kinds, n_features = self.start().shape
        return Free(n_kinds * (n_features + 1) + 1)

    def weights(self, parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return ``W`` (n_kinds, d) and ``b`` (n_kinds,): start plus parameters."""
        centers = self.start()
        added = parameters[: centers.size].reshape(centers.shape)
        squared = np.einsum("kd,kd->k", centers, centers)
        return (
            2.0 * self.sharpness * centers + added,
            parameters[centers.size : -1] - self.sharpness * squared,
        )

    def learned_epsilon(self, parameters: FloatArray) -> float:
        """Return the learned ``ε``: the last parameter is added to its log-odds."""
        return float(expit(logit(self.epsilon) + parameters[-1]))

    # Similarity -------------------------------------------------------------------

    def prepare(self, ground_set: GroundSet) -> FloatArray:
        """Return the features (N, d), centred and of unit length."""
        self.start()
        features = ground_set.features(self.block)
        check_n_features(features, len(self.center_))
        prepared = np.empty(features.shape)
        for rows in chunks(len(ground_set)):
            prepared[rows] = unit_rows(as_dense(features[rows]) - self.center_)
        return prepared

    def prepare_together(self, ground_sets: Sequence[GroundSet]) -> FloatArray | None:
        """Return prepared features (B, N, d); None if sparse, or in a subclass."""
        features = stack_features(ground_sets, self.block)
        own, n_features = type(self).prepare is Kinds.prepare, self.start().shape[1]
        if not own or features is None or features.shape[-1] != n_features:
            return None
        rows = features.reshape(-1, features.shape[-1])
        return unit_rows(rows - self.center_).reshape(features.shape)

    def kinds(self, ground_set: GroundSet, parameters: FloatArray) -> FloatArray:
        """Return the probability (N, n_kinds) of every item to be of every kind."""
        return self._kind_roots(self.prepare(ground_set), parameters) ** 2

    def familiarity(self, ground_set: GroundSet) -> FloatArray:
        """Return every item's cosine (N,) with the nearest centre, as ``fit`` found it.

        Items of kinds that were absent from training are far from all of them.
        """
        centers = unit_rows(self.start())
        return np.asarray((self.prepare(ground_set) @ centers.T).max(axis=1))

    def _kind_roots(self, prepared: FloatArray, parameters: FloatArray) -> FloatArray:
        """Return ``φ = √p`` (..., N, n_kinds) of the probabilities of kinds."""
        W, b = self.weights(parameters)
        # One product of all items: NumPy would take those of a stack one by one.
        logits = prepared.reshape(-1, prepared.shape[-1]) @ W.T
        logits += b
        # e / ‖e‖ with e = exp(l / 2), in place.
        logits -= logits.max(axis=1, keepdims=True)
        logits *= 0.5
        roots = np.exp(logits, out=logits)
        roots /= np.sqrt(np.einsum("ik,ik->i", roots, roots))[:, None]
        return np.asarray(roots.reshape(*prepared.shape[:-1], -1))

    def value_and_pull_back(
        self, prepared: FloatArray, parameters: FloatArray
    ) -> tuple[FloatArray, PullBack]:
        """Return ``S`` (..., N, N), and a function from ``∂f/∂S`` to the gradient."""
        roots = self._kind_roots(prepared, parameters)
        S = roots @ roots.mT
        S *= 1.0 - self.learned_epsilon(parameters)
        items = np.arange(S.shape[-1])
        S[..., items, items] = 1.0

        def pull_back(G: FloatArray) -> FloatArray:
            """Return the gradient of ``f`` in the parameters from ``G = ∂f/∂S``."""
            own = np.einsum("...ii->...i", G)
            return self._pull_back(prepared, parameters, roots, G @ roots, own)

        return np.asarray(S), pull_back

    @property
    def embedding_size(self) -> int:
        """Return the number of kinds."""
        return len(self.start())

    def embedding(self, prepared: FloatArray, parameters: FloatArray) -> Embedding:
        """Return the factor ``φ`` (N, n_kinds), weight ``1 - ε`` and ridge ``ε``."""
        epsilon = self.learned_epsilon(parameters)
        roots = self._kind_roots(prepared, parameters)
        return Embedding([roots], np.array([1.0 - epsilon]), epsilon)

    def pull_back_embedding(
        self,
        prepared: FloatArray,
        parameters: FloatArray,
        product: FloatArray,
        diagonal: FloatArray,
    ) -> FloatArray:
        """Return the gradient in parameters from ``G φ`` and the diagonal of ``G``."""
        gradient = np.zeros(len(parameters))
        for rows in chunks(len(prepared)):
            part = prepared[rows]
            roots = self._kind_roots(part, parameters)
            of_rows = roots, product[rows], diagonal[rows]
            gradient += self._pull_back(part, parameters, *of_rows)
        return gradient

    def _pull_back(
        self,
        prepared: FloatArray,
        parameters: FloatArray,
        roots: FloatArray,
        product: FloatArray,
        diagonal: FloatArray,
    ) -> FloatArray:
        """Return the gradient in the parameters, flat, of a function of ``S``.

        ``G`` is its gradient in ``S``, ``prepared`` (..., N, d) are scaled features,
        ``roots`` are ``φ`` (..., N, n_kinds), ``product`` is ``G φ`` of the same shape,
        and ``diagonal`` (..., N) that of ``G``.  Gradients of a stack are added up.

        By ``∂φ_k/∂l_j = φ_k ([k=j] - p_j) / 2`` for the logits
        ``l = W x + b``, and ``∂S/∂ε = I - φ φᵀ``.
        """
        epsilon = self.learned_epsilon(parameters)
        inner = np.einsum("...k,...k->...", roots, product)
        d_logits = roots * inner[..., None]  # and on in place: memory takes long
        np.subtract(product, d_logits, out=d_logits)
        d_logits *= roots
        flat = d_logits.reshape(-1, d_logits.shape[-1])
        flat *= 1.0 - epsilon
        d_W = flat.T @ prepared.reshape(len(flat), -1)
        d_odds = epsilon * (1.0 - epsilon) * float(diagonal.sum() - inner.sum())
        return np.concatenate([d_W.ravel(), flat.sum(axis=0), [d_odds]])


def _kmeans_centers(items: FloatArray, n_kinds: int, seed: int) -> FloatArray:
    """Return centres (n_kinds, d) by k-means, or the items if there are no more."""
    if len(items) <= n_kinds:
        return items
    from sklearn.cluster import KMeans  # slow to import, seldom needed

    n_starts = 4 if len(items) < _RESTARTED else 1
    # Threads that wait for each other take longer than one, if the machine is busy.
    with threadpool_limits(limits=1):
        means = KMeans(n_kinds, n_init=n_starts, random_state=seed).fit(items)
    return np.asarray(means.cluster_centers_, dtype=np.float64)
