"""L-ensembles: probabilities, marginals, sampling and decoding on one object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from variegate._random import as_generator
from variegate._typing import BoolArray, FloatArray, RandomState, SubsetLike
from variegate._validation import check_real
from variegate.decoding.base import Constraint
from variegate.linalg.coins import count_distribution
from variegate.linalg.limits import MATRIX_ITEMS
from variegate.linalg.psd import check_semidefinite, check_symmetric
from variegate.linalg.representations import Dense, Factored, Representation
from variegate.linalg.representations.factored import refuse_large_matrix
from variegate.sampling import sample_spectral, sample_spectral_k
from variegate.selection import Selection
from variegate.subsets import as_indicator, as_members

if TYPE_CHECKING:
    from variegate.decoding import Decoder

__all__ = ["LEnsemble"]

#: Items that a notebook shows.
_SHOWN = 10


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
    representation : Dense, Factored or Graded
        How the kernel is held: ``S`` with a unit diagonal and ``log_scale``, so that
        ``L = diag(exp(log_scale)) S diag(exp(log_scale))``; a factor; or, where items
        are dependent to rounding, rows that settle the rank for all that is asked.
    items : array of shape (N,)
        Item numbers: ``0 .. N-1``, or the remaining ones after :meth:`condition`.
    n_together : int
        Ensembles that are decoded in the same call as this one: for many, compiling
        pays earlier.  Choices do not depend on it.

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

    n_together = 1

    def __init__(self, L: Any) -> None:
        L = check_symmetric(L, "L")
        self._set_representation(_choose_representation(Dense(L), L, "L"))

    @classmethod
    def from_quality(cls, S: Any, log_quality: Any) -> LEnsemble:
        """Return the ensemble of ``L_ij = exp(u_i + u_j) S_ij``, never forming it.

        The similarity ``S`` (N, N) is symmetric and positive semidefinite, and
        ``log_quality`` (N,) are ``u``, any finite numbers.
        """
        S = check_symmetric(S, "S")
        check_real("log_quality", log_quality)
        u = np.asarray(log_quality, dtype=np.float64)
        if u.shape != (len(S),) or not np.isfinite(u).all():
            raise ValueError(f"log_quality must hold {len(S)} finite numbers")
        return cls._from_representation(_choose_representation(Dense(S, u), S, "S"))

    @classmethod
    def from_factor(cls, B: Any) -> LEnsemble:
        """Return the ensemble of ``L = B Bᵀ``, never forming it.

        ``B`` (N, D) has one row an item; ``N`` may be a million where ``D`` is a few
        hundred.  It is not copied if it is an array of floats already, of single or
        double precision: do not change it after.
        """
        check_real("B", B)
        B = np.asarray(B)
        if B.dtype != np.float32:
            B = B.astype(np.float64, copy=False)
        if B.ndim != 2:
            raise ValueError(f"B must be a matrix with one row an item, got {B.shape}")
        return cls._from_representation(Factored(B).choose_representation())

    @classmethod
    def _from_representation(cls, representation: Representation) -> LEnsemble:
        """Return an ensemble with a representation, which is not checked."""
        ensemble = cls.__new__(cls)
        ensemble._set_representation(representation)
        return ensemble

    def _set_representation(self, representation: Representation) -> None:
        """Set ``representation``, and ``items`` as 0, 1, ..."""
        self.representation = representation
        self.items = np.arange(len(representation))

    def __len__(self) -> int:
        return len(self.representation)

    def __repr__(self) -> str:
        kind = type(self.representation).__name__.lower()
        return f"<LEnsemble: {len(self)} items, {kind}>"

    def _repr_html_(self) -> str:
        """Return the size and the most probable items as HTML."""
        from variegate.report.notebook import (
            format_number,
            hidden_rows_note,
            html_card,
            html_table,
        )

        facts = {"held as": type(self.representation).__name__.lower()}
        if len(self) > MATRIX_ITEMS:  # whose marginals take a while
            return html_card(f"L-ensemble of {len(self):,} items", facts)
        marginals = self.marginals()
        facts["expected size"] = format_number(float(marginals.sum()))
        best = np.argsort(-marginals, kind="stable")[:_SHOWN]
        rows = [
            [
                str(self.items[i]),
                format_number(self.log_scale[i]),
                format_number(marginals[i]),
            ]
            for i in best
        ]
        head = ["item", "log-quality", "probability"]
        likeliest = html_table(head, rows, hidden_rows_note(_SHOWN, len(self), "items"))
        return html_card(f"L-ensemble of {len(self):,} items", facts, likeliest)

    @property
    def log_scale(self) -> FloatArray:
        """``u`` (N,), half the logarithm of the diagonal of ``L``."""
        return self.representation.log_scale

    @property
    def S(self) -> FloatArray:
        """``L`` scaled to a unit diagonal; an error if ``N x N`` is too large."""
        refuse_large_matrix(len(self), "the similarity")
        return self.representation.submatrix(np.arange(len(self)))

    @property
    def L(self) -> FloatArray:
        """The kernel (N, N), inf where it overflows; an error if that is too large."""
        S = self.S
        exponent = self.log_scale[:, None] + self.log_scale
        with np.errstate(over="ignore"):
            return np.where(S == 0.0, 0.0, S) * np.where(
                S == 0.0, 1.0, np.exp(exponent)
            )

    @property
    def log_normalizer(self) -> float:
        """``log det(L + I)``."""
        return self.representation.log_normalizer()

    def log_prob(self, subset: SubsetLike) -> float:
        """Return ``log P(subset)``, -inf for probability zero."""
        members = as_members(subset, len(self))
        return self.representation.log_det(members) - self.log_normalizer

    def marginal_kernel(self) -> FloatArray:
        """Return ``K = L (L + I)⁻¹`` (N, N): ``P(y ⊆ Y) = det K_y`` (paper eq. 2-3)."""
        return self.representation.marginal_kernel()

    def marginals(self) -> FloatArray:
        """Return the probability (N,) that each item is chosen: the ``K_ii``."""
        return self.representation.marginals()

    def expected_size(self) -> float:
        """Return the expected number of chosen items, the trace of ``K``."""
        return float(self.representation.marginals().sum())

    def sample(self, n: int = 1, random_state: RandomState = None) -> BoolArray:
        """Draw ``n`` subsets exactly; a boolean array of shape (n, N).

        The same seed draws the same subsets on one machine, whatever the number of
        threads, unless a random number is within rounding of its threshold.
        For a factor of more than 2000 items that is promised only where no eigenvalue
        is repeated.
        """
        keep_probability, vectors = self.representation.marginal_eigenpairs
        rng = as_generator(random_state)
        return sample_spectral(keep_probability, vectors, n, rng, self.n_together)

    def sample_k(
        self, k: int, n: int = 1, random_state: RandomState = None
    ) -> BoolArray:
        """Draw ``n`` subsets of exactly ``k`` items; a boolean array of shape (n, N).

        The law is that of the ensemble given that ``k`` items are chosen (a k-DPP), and
        does not change when ``L`` is multiplied by a constant.
        """
        if k is None:
            raise ValueError("k must be a whole number, got None: use sample")
        k = Constraint.of(len(self), k, None, None).k or 0
        log_values, vectors = self.representation.eigenpairs
        rank = int(np.isfinite(log_values).sum())
        if k > rank:
            raise ValueError(
                f"no subset of {k} items has positive probability: L has rank {rank}"
            )
        rng = as_generator(random_state)
        return sample_spectral_k(log_values, vectors, k, n, rng, self.n_together)

    def size_distribution(self) -> FloatArray:
        """Return the probabilities of choosing 0, 1, 2, ... items, up to the rank.

        The number of items is a sum of independent coins, one for each eigenvector.
        """
        return count_distribution(self.representation.marginal_eigenpairs[0])

    def condition(
        self, include: SubsetLike = (), exclude: SubsetLike = ()
    ) -> LEnsemble:
        """Return the ensemble of the other items, given included and excluded ones.

        ``include`` and ``exclude`` are item numbers or boolean masks.  The new ensemble
        is over the items in neither, in their order; its ``items`` are their numbers in
        the first ensemble.  A subset ``y`` of it has the probability that ``include``
        and ``y`` together have here, given that all of ``include`` and none of
        ``exclude`` is chosen.
        """
        included = as_members(include, len(self))
        excluded = as_members(exclude, len(self))
        is_left = ~as_indicator(included, len(self))
        both = excluded[~is_left[excluded]]
        if len(both):
            raise ValueError(f"item {both[0]} is both included and excluded")
        is_left[excluded] = False
        if self.representation.log_det(included) == -np.inf:
            raise ValueError("the included items have probability zero")
        rest = np.flatnonzero(is_left)
        conditional = self._from_representation(
            self.representation.condition(included, rest).choose_representation()
        )
        conditional.items = self.items[rest]
        return conditional

    def decode(
        self,
        method: str | Decoder = "greedy",
        k: int | None = None,
        budget: float | None = None,
        costs: Any = None,
        random_state: RandomState = None,
        *,
        at_most: Any = None,
        per: Any = None,
    ) -> Selection:
        """Choose one subset.

        Parameters
        ----------
        method : {"greedy", "local", "relaxed", "exact", "mbr", "expected-f"} or decoder
            "greedy" (default) adds the best item while that helps; "local" goes on from
            there by adding, dropping and swapping; "relaxed" climbs a smooth extension
            (Gillenwater et al., 2012) and rounds; "exact" proves the most
            probable subset (by branch and bound, up to 500 items); "mbr" takes the
            sample that agrees best with the others; "expected-f" takes the subset with
            the largest expected F-score.  A decoder object such as
            ``ExpectedF(beta=2.0)`` or ``Exact(time_limit=10.0)`` sets options.
        k : int, optional
            Choose exactly ``k`` items.  Where the rank of ``L`` is less, "greedy"
            stops there and says so in ``stop_reason``, "expected-f" goes on, and all
            others raise an error.
        budget : float, optional
            Choose items whose costs sum to at most this.
        costs : array of shape (N,), optional
            Ones if there is a budget and no costs.
        random_state : None, int or numpy.random.Generator
        at_most : int or sequence of int, optional
            Choose at most this many items with the same label.
        per : array of shape (N,) or sequence of arrays, optional
            The label of every item, such as its source: any hashable values.  Several
            limits have as many arrays: ``at_most=(2, 3), per=(brands, authors)``.
        """
        from variegate.decoding import as_decoder

        decoder = as_decoder(method)
        constraint = Constraint.of(len(self), k, budget, costs, at_most, per)
        return decoder(self, constraint, as_generator(random_state))


def _choose_representation(
    dense: Dense, matrix: FloatArray, name: str
) -> Representation:
    """Return ``dense`` or, if ill-conditioned, a kernel by rows, to keep more digits.

    ValueError, naming ``name``, if ``matrix`` (N, N) has a negative eigenvalue.
    """
    if not dense.conditioning[0] > 0.0:  # else it has a Cholesky factor
        check_semidefinite(matrix, name)
    return dense.choose_representation()
