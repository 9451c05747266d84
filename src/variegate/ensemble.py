"""L-ensembles: probabilities, marginals, sampling and decoding on one object."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from variegate._random import generator
from variegate._typing import BoolArray, FloatArray, RandomState, SubsetLike
from variegate.decoding import Constraint, Decoder, as_decoder
from variegate.ground_set import as_members
from variegate.linalg import Resolvent, log_det_subset, split_scale
from variegate.psd import smallest_eigenvalue_if_negative
from variegate.sampling import sample_spectral
from variegate.selection import Selection

__all__ = ["LEnsemble"]

_ASYMMETRY = 1e-8


class LEnsemble:
    r"""The determinantal point process of a kernel ``L`` (paper eq. 1).

    .. math:: P(y) = \det(L_y) / \det(L + I)

    for every subset ``y`` of ``N`` items.

    Parameters
    ----------
    L : array of shape (N, N)
        Symmetric and positive semidefinite.

    Examples
    --------
    >>> import numpy as np
    >>> import variegate as vg
    >>> e = vg.LEnsemble([[2.0, 1.9], [1.9, 2.0]])  # two good, nearly equal items
    >>> e.marginals().round(3)
    array([0.445, 0.445])
    >>> e.decode("exact").indices
    array([0])
    """

    def __init__(self, L: Any) -> None:
        L = np.array(L, dtype=np.float64)
        if L.ndim != 2 or L.shape[0] != L.shape[1]:
            raise ValueError(f"L must be a square matrix, got shape {L.shape}")
        if not np.isfinite(L).all():
            raise ValueError("L holds NaN or infinite values")
        scale = float(np.abs(L).max(initial=0.0))
        asymmetry = float(np.abs(L - L.T).max(initial=0.0))
        if asymmetry > _ASYMMETRY * scale:
            raise ValueError(
                f"L is not symmetric: L and its transpose differ by {asymmetry:.3g}"
            )
        L = L / 2.0 + L.T / 2.0
        if (np.diagonal(L) < 0).any():
            item = int(np.argmin(np.diagonal(L)))
            raise ValueError(
                "L is not positive semidefinite: "
                f"L[{item}, {item}] is {L[item, item]:.3g}"
            )
        smallest = smallest_eigenvalue_if_negative(split_scale(L)[0])
        if smallest is not None:
            raise ValueError(
                "L is not positive semidefinite: scaled to a unit diagonal, its "
                f"smallest eigenvalue is {smallest:.3g}"
            )
        L.flags.writeable = False
        self.L: FloatArray = L

    def __len__(self) -> int:
        return len(self.L)

    def __repr__(self) -> str:
        return f"<LEnsemble: {len(self)} items>"

    @cached_property
    def _resolvent(self) -> Resolvent:
        return Resolvent.of(*split_scale(self.L))

    @cached_property
    def _eigenpairs(self) -> tuple[FloatArray, FloatArray]:
        values, vectors = np.linalg.eigh(self.L)
        return np.maximum(values, 0.0), vectors

    @property
    def log_normalizer(self) -> float:
        """``log det(L + I)``."""
        return float(self._resolvent.log_det)

    def log_prob(self, subset: SubsetLike) -> float:
        """Return ``log P(subset)``, minus infinity if it is impossible."""
        members = as_members(subset, len(self))
        return log_det_subset(self.L, members) - self.log_normalizer

    def marginal_kernel(self) -> FloatArray:
        """Return ``K = L (L + I)⁻¹``: ``P(y ⊆ Y) = det K_y`` (paper eq. 2-3)."""
        return self._resolvent.marginal_kernel()

    def marginals(self) -> FloatArray:
        """Return the probability of each item to be chosen, the diagonal of ``K``."""
        return self._resolvent.included.copy()

    def expected_size(self) -> float:
        """Return the expected number of chosen items, the trace of ``K``."""
        return float(self._resolvent.included.sum())

    def sample(self, n: int = 1, random_state: RandomState = None) -> BoolArray:
        """Draw ``n`` subsets exactly; a boolean array of shape (n, N)."""
        values, vectors = self._eigenpairs
        return sample_spectral(values, vectors, n, generator(random_state))

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
