"""L-ensembles: probabilities, marginals, sampling and decoding on one object."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import numpy as np

from variegate._random import generator
from variegate._typing import BoolArray, FloatArray, RandomState, SubsetLike
from variegate.decoding import Constraint, Decoder, as_decoder
from variegate.ground_set import as_members
from variegate.linalg import (
    eigenpairs,
    log_det_subset,
    normalizer_and_marginal_kernel,
    schur_complement,
    split_scale,
)
from variegate.psd import check_semidefinite, check_symmetric
from variegate.sampling import sample_spectral, sample_spectral_k
from variegate.selection import Selection

__all__ = ["LEnsemble"]


class LEnsemble:
    r"""The determinantal point process of a kernel ``L`` (paper eq. 1).

    .. math:: P(y) = \det(L_y) / \det(L + I)

    for every subset ``y`` of ``N`` items.

    Parameters
    ----------
    L : array of shape (N, N)
        Symmetric and positive semidefinite.

    Attributes
    ----------
    S : read-only array of shape (N, N)
        ``L`` scaled to a unit diagonal.
    log_scale : read-only array of shape (N,)
        ``L = diag(exp(log_scale)) S diag(exp(log_scale))``.  The ensemble keeps these
        two and not ``L``, whose entries may overflow.
    items : array of shape (N,)
        Item numbers: ``0 .. N-1``, or after :meth:`condition` what is left of them.

    Examples
    --------
    >>> import numpy as np
    >>> import variegate as vg
    >>> e = vg.LEnsemble([[2.0, 1.9], [1.9, 2.0]])  # two good, nearly equal items
    >>> e.marginals().round(4)  # 1 - 3 / det(L + I) = 1 - 3 / 5.39
    array([0.4434, 0.4434])
    >>> e.decode("exact").indices
    array([0])
    """

    def __init__(self, L: Any) -> None:
        self._set(check_symmetric(L, "L"), 0.0, "L")

    @classmethod
    def from_quality(cls, S: Any, log_quality: Any) -> Self:
        """Return the ensemble of ``L_ij = exp(u_i + u_j) S_ij``, never forming it.

        Parameters
        ----------
        S : array of shape (N, N)
            Similarity; symmetric and positive semidefinite.
        log_quality : array of shape (N,)
            ``u``; any finite numbers.
        """
        ensemble = cls.__new__(cls)
        S = check_symmetric(S, "S")
        u = np.asarray(log_quality, dtype=np.float64)
        if u.shape != (len(S),) or not np.isfinite(u).all():
            raise ValueError(f"log_quality must hold {len(S)} finite numbers")
        ensemble._set(S, u, "S")
        return ensemble

    def _set(
        self, matrix: FloatArray, log_quality: FloatArray | float, name: str
    ) -> None:
        check_semidefinite(matrix, name)
        self.S, scale = split_scale(matrix)
        self.log_scale: FloatArray = scale + log_quality
        self.S.flags.writeable = self.log_scale.flags.writeable = False
        self.items = np.arange(len(self.S))

    def __len__(self) -> int:
        return len(self.S)

    def __repr__(self) -> str:
        return f"<LEnsemble: {len(self)} items>"

    @property
    def L(self) -> FloatArray:
        """The kernel; infinite where its entries are too large for a number."""
        exponent = self.log_scale[:, None] + self.log_scale
        with np.errstate(over="ignore"):
            return np.where(self.S == 0.0, 0.0, self.S) * np.where(
                self.S == 0.0, 1.0, np.exp(exponent)
            )

    @cached_property
    def _normalized(self) -> tuple[float, FloatArray]:
        return normalizer_and_marginal_kernel(self.S, self.log_scale)

    @cached_property
    def _elementary(self) -> tuple[FloatArray, FloatArray]:
        """The mixture of elementary processes: eigenpairs of ``K``.

        Not those of ``L``: next to large entries its small eigenvalues are lost to
        rounding, while an error of rounding in ``K`` is one in a probability.
        """
        values, vectors = np.linalg.eigh(self._normalized[1])
        return np.clip(values, 0.0, 1.0), np.ascontiguousarray(vectors.T)

    @cached_property
    def _eigenpairs(self) -> tuple[FloatArray, FloatArray]:
        """Logarithms of the eigenvalues of ``L``, and its eigenvectors in rows."""
        return eigenpairs(self.S, self.log_scale)

    @property
    def log_normalizer(self) -> float:
        """``log det(L + I)``."""
        return self._normalized[0]

    def log_prob(self, subset: SubsetLike) -> float:
        """Return ``log P(subset)``, minus infinity if it is impossible."""
        members = as_members(subset, len(self))
        log_det = log_det_subset(self.S, self.log_scale, members)
        return log_det - self.log_normalizer

    def marginal_kernel(self) -> FloatArray:
        """Return ``K = L (L + I)⁻¹``: ``P(y ⊆ Y) = det K_y`` (paper eq. 2-3)."""
        return self._normalized[1].copy()

    def marginals(self) -> FloatArray:
        """Return the probability of each item to be chosen, the diagonal of ``K``."""
        return np.diagonal(self._normalized[1]).copy()

    def expected_size(self) -> float:
        """Return the expected number of chosen items, the trace of ``K``."""
        return float(np.trace(self._normalized[1]))

    def sample(self, n: int = 1, random_state: RandomState = None) -> BoolArray:
        """Draw ``n`` subsets exactly; a boolean array of shape (n, N)."""
        keep_probability, vectors = self._elementary
        return sample_spectral(keep_probability, vectors, n, generator(random_state))

    def sample_k(
        self, k: int, n: int = 1, random_state: RandomState = None
    ) -> BoolArray:
        """Draw ``n`` subsets of exactly ``k`` items; a boolean array of shape (n, N).

        The law is that of the ensemble given that ``k`` items are chosen (a k-DPP), and
        does not change when ``L`` is multiplied by a constant.
        """
        k = Constraint.of(len(self), k, None, None).k or 0
        log_values, vectors = self._eigenpairs
        rank = int(np.isfinite(log_values).sum())
        if k > rank:
            raise ValueError(
                f"no subset of {k} items has positive probability: L has rank {rank}"
            )
        rng = generator(random_state)
        return sample_spectral_k(log_values, vectors, k, n, rng)

    def size_distribution(self) -> FloatArray:
        """Return the probabilities of choosing 0, 1, ..., N items.

        The number of items is a sum of independent coins, one for each eigenvector.
        """
        law = np.ones(1)
        for probability in self._elementary[0]:
            law = np.convolve(law, [1.0 - probability, probability])
        return law

    def condition(
        self, include: SubsetLike = (), exclude: SubsetLike = ()
    ) -> LEnsemble:
        """Return the ensemble of the other items, given what must and must not be in.

        Parameters
        ----------
        include, exclude : item numbers or boolean masks

        Returns
        -------
        LEnsemble
            Over the items in neither, in their order; its ``items`` are their numbers
            in the ensemble that was first made.  A subset ``y`` of it has the
            probability that ``include`` and ``y`` together have here, given that all
            of ``include`` and none of ``exclude`` is chosen.
        """
        included = as_members(include, len(self))
        excluded = as_members(exclude, len(self))
        both = np.intersect1d(included, excluded)
        if len(both):
            raise ValueError(f"item {both[0]} is both included and excluded")
        if log_det_subset(self.S, self.log_scale, included) == -np.inf:
            raise ValueError("the included items have probability zero")
        rest = np.setdiff1d(np.arange(len(self)), np.union1d(included, excluded))
        conditional = LEnsemble.__new__(LEnsemble)
        # det L_{A∪y} = det L_A · det of the Schur complement restricted to y.
        residual = schur_complement(self.S, included, rest)
        conditional._set(residual, self.log_scale[rest], "L")
        conditional.items = self.items[rest]
        return conditional

    def decode(
        self,
        method: str | Decoder = "greedy",
        k: int | None = None,
        budget: float | None = None,
        costs: Any = None,
        random_state: RandomState = None,
    ) -> Selection:
        """Choose one subset.

        Parameters
        ----------
        method : {"greedy", "exact", "mbr"} or decoder, default="greedy"
            "greedy" adds the best item while that helps; "exact" looks at every
            subset (up to 20 items); "mbr" takes the sample that agrees best with the
            others.  A decoder object such as ``MBR(n_samples=5000)`` sets options.
        k : int, optional
            Choose exactly ``k`` items.
        budget : float, optional
            Choose items whose costs sum to at most this.
        costs : array of shape (N,), optional
            Ones if there is a budget and no costs.
        random_state : None, int or numpy.random.Generator

        Returns
        -------
        Selection
        """
        decoder = as_decoder(method)
        constraint = Constraint.of(len(self), k, budget, costs)
        return decoder(self, constraint, generator(random_state))
