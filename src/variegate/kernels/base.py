"""The protocol of similarity kernels: the value, and the pull-back of a gradient.

The learner computes ``G = ∂objective/∂S`` from the similarity ``S`` by the closed forms
of the paper's appendix; the kernel turns ``G`` into the gradient in its own parameters.
A kernel of your own needs these two methods::

    class ScaledLinear(vg.Kernel):
        '''S_ij = Σ_k exp(2 p_k) φ_ik φ_jk: linear, with a learned scale a feature.'''

        def __init__(self, n_features):
            self.n_features = n_features

        @property
        def domain(self):
            return vg.domains.Free(self.n_features)

        def value(self, ground_set, parameters):
            scaled = ground_set.features() * np.exp(parameters)
            return scaled @ scaled.T

        def pull_back(self, ground_set, parameters, G):
            scaled = ground_set.features() * np.exp(parameters)
            return 2.0 * np.einsum("ik,ij,jk->k", scaled, G, scaled)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator

from variegate._typing import FloatArray, IntArray
from variegate.ground_set import GroundSet
from variegate.kernels.domains import Domain, Free
from variegate.kernels.known import Looks
from variegate.linalg.psd import check_semidefinite, check_symmetric

#: From ``G = ∂f/∂S`` to ``∂f/∂p``, at some parameters ``p``.
PullBack = Callable[[FloatArray], FloatArray]


class Embedding(NamedTuple):
    """Factors of a similarity: ``S = Σ_k w_k F_k F_kᵀ + ridge I``."""

    factors: list[FloatArray]  # F_k, of shape (N, D_k)
    weights: FloatArray  # (K,)
    ridge: float


class Kernel(BaseEstimator, ABC):  # type: ignore[misc]
    """A similarity ``S(φ; p)`` with learned parameters ``p`` (perhaps none).

    A subclass implements :meth:`value` and :meth:`pull_back`, and declares the number
    and the domain of its parameters in :attr:`domain`.  The constructor only stores its
    arguments, as in scikit-learn, so that kernels can be cloned, printed, and searched
    over.  Compute in :meth:`prepare`, once for a ground set, what does not depend on
    the parameters: ``value`` and ``pull_back`` get its result.
    """

    #: Whether ``value`` and ``pull_back`` also take the result of :meth:`~Kernel.stack`
    #: for B ground sets of equal size, and return ``(B, N, N)`` and the sum of the
    #: gradients.
    stackable = False

    #: Whether :meth:`value` makes a new array each time, which callers may change.
    makes_new = False

    @property
    def domain(self) -> Domain:
        """Return the set of allowed parameters; by default that of no parameters."""
        return Free(0)

    def fit(self, ground_sets: Sequence[GroundSet]) -> Self:
        """Set attributes found in training data; by default none.  Return itself."""
        return self

    def looks_at(self, sizes: IntArray) -> Looks:
        """Return the rows of ground sets that ``fit`` reads, given their sizes (n,).

        The result maps the index of a ground set, if it is read, to an array of row
        numbers, or None for all rows.  Where ground sets are spread over many files,
        only these rows are loaded before ``fit``.  By default an empty dict, or
        ValueError if the subclass has a ``fit`` of its own: it must override this.
        """
        if type(self).fit is not Kernel.fit:
            raise ValueError(
                f"{type(self).__name__} settles itself by the ground sets, but does "
                "not say which: to learn from data in many files, it needs a method "
                "looks_at(sizes)"
            )
        return {}

    def check(self) -> None:
        """Raise ValueError for invalid constructor arguments; by default accept all."""

    def get_state(self) -> dict[str, Any]:
        """Return fitted attributes as a dict for the model file; by default empty."""
        return {}

    def set_state(self, state: dict[str, Any]) -> None:
        """Set fitted attributes from the dict of ``get_state``; by default none."""

    def prepare(self, ground_set: GroundSet) -> Any:
        """Return the ``prepared`` of :meth:`value`, by default the ground set."""
        return ground_set

    def prepare_together(self, ground_sets: Sequence[GroundSet]) -> Any | None:
        """Return ground sets of equal size, prepared and stacked in one step.

        None (default) where there is no such step, or it fails: then they are prepared
        one by one, and an error names the ground set.
        """
        return None

    def factors(self, ground_set: GroundSet) -> list[FloatArray] | None:
        """Return the similarity as a list of factors; None (default) without any.

        Factors ``F_k`` of shape (N, D_k) with ``S = Σ_k p_k F_k F_kᵀ`` for the
        parameters ``p``, or ``S = Σ_k F_k F_kᵀ`` for a kernel without.  Where they have
        few columns, large ground sets need no N x N matrix.
        """
        return None

    def penalty_and_gradient(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Return the penalty on parameters and its gradient; zeros by default."""
        return 0.0, np.zeros(len(parameters))

    @property
    def embedding_size(self) -> int | None:
        """Return the number of columns of all factors; None without an embedding."""
        return None

    def prepare_embedding(self, ground_set: GroundSet, most: int) -> Any | None:
        """Return the input of :meth:`embedding` for a ground set.

        None where the kernel has no embedding, or one with more than ``most`` columns.
        """
        size = self.embedding_size
        return None if size is None or size > most else self.prepare(ground_set)

    def embedding(self, prepared: Any, parameters: FloatArray) -> Embedding:
        """Return the embedding of a prepared ground set; TypeError by default."""
        raise TypeError(f"{type(self).__name__} has no embedding")

    def pull_back_embedding(
        self,
        prepared: Any,
        parameters: FloatArray,
        product: FloatArray,
        diagonal: FloatArray,
    ) -> FloatArray:
        """Return ``∂f/∂p`` from ``G Φ`` and the diagonal (N,) of ``G = ∂f/∂S``.

        ``product`` (N, D) is ``G Φ``, with the factors of :meth:`embedding` side by
        side in ``Φ`` (N, D).  Raises TypeError by default.
        """
        raise TypeError(f"{type(self).__name__} has no embedding")

    def stack(self, prepared: Sequence[Any]) -> Any:
        """Stack B prepared ground sets of equal size along a new first axis."""
        return prepared[0][None] if len(prepared) == 1 else np.stack(prepared)

    def similarity(self, ground_set: GroundSet, parameters: FloatArray) -> FloatArray:
        """Return the similarity (N, N) of a ground set that is evaluated only once."""
        return self.value(self.prepare(ground_set), parameters)

    @abstractmethod
    def value(self, prepared: Any, parameters: FloatArray) -> FloatArray:
        """Return the similarity ``S`` (N, N), symmetric and positive semidefinite."""

    @abstractmethod
    def pull_back(
        self, prepared: Any, parameters: FloatArray, G: FloatArray
    ) -> FloatArray:
        """Return ``∂f/∂p_k = Σ_ij G_ij ∂S_ij/∂p_k`` from ``G = ∂f/∂S``."""

    def value_and_pull_back(
        self, prepared: Any, parameters: FloatArray
    ) -> tuple[FloatArray, PullBack]:
        """Return :meth:`value`, and :meth:`pull_back` as a function of ``G`` alone.

        Override it to share work between the two.  Before they call the function,
        callers may change the diagonal of ``S``, and nothing else.
        """
        pull_back = partial(self.pull_back, prepared, parameters)
        return self.value(prepared, parameters), pull_back


class FixedKernel(Kernel):
    """A similarity without parameters: a subclass defines only :meth:`matrix`."""

    stackable = True

    #: Whether the matrix is positive semidefinite by construction; if not, each one is
    #: checked when it is prepared.
    semidefinite = False

    @abstractmethod
    def matrix(self, ground_set: GroundSet) -> FloatArray:
        """Return the N x N similarity of a ground set."""

    def prepare(self, ground_set: GroundSet) -> FloatArray:
        """Return the matrix (N, N); ValueError if NaN, infinite or not semidefinite."""
        S = self.matrix(ground_set)
        if not np.isfinite(S).all():
            raise ValueError(
                "the similarity holds NaN or infinite values: the features are too "
                "large for this kernel, or the kernel is at fault"
            )
        if not self.semidefinite:
            S = check_symmetric(S, "the similarity")
            check_semidefinite(S, "the similarity")
        return S

    def value(self, prepared: FloatArray, parameters: FloatArray) -> FloatArray:
        """Return the prepared similarity itself."""
        return prepared

    def pull_back(
        self, prepared: FloatArray, parameters: FloatArray, G: FloatArray
    ) -> FloatArray:
        """Return an empty gradient: there are no parameters."""
        return np.zeros(0)


def check_block(block: Any) -> None:
    """Raise ValueError if the name of a block is neither a string nor None."""
    if block is not None and not isinstance(block, str):
        raise ValueError(f"block must be a name or None, got {block!r}")
