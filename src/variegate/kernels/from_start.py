"""What kernels share whose parameters are how far they are from a start."""

from __future__ import annotations

from typing import Any

from scipy import sparse

from variegate._typing import FloatArray
from variegate._validation import check_number
from variegate.kernels.base import Kernel, check_block
from variegate.kernels.features import check_seed


class FromStart(Kernel):
    """A kernel whose parameters are added to what ``fit`` found in the features.

    A subclass has the attributes ``penalty``, ``block`` and ``random_state``.
    """

    stackable = True
    makes_new = True

    penalty: float
    block: str | None
    random_state: int

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        check_number("penalty", self.penalty)
        check_block(self.block)
        check_seed(self.random_state)

    def penalty_and_gradient(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Return ``penalty / 2`` times the squared distance from the start."""
        gradient = self.penalty * parameters
        return 0.5 * float(gradient @ parameters), gradient


def as_dense(features: Any) -> FloatArray:
    """Return features, or some rows of them, as an array."""
    dense: FloatArray = features.toarray() if sparse.issparse(features) else features
    return dense
