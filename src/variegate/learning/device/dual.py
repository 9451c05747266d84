"""Ground sets with similarities of low rank, on a device: no N x N matrix is made."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from variegate.ground_set import naming
from variegate.kernels import Kernel, Kinds
from variegate.learning.device.batch import Batch
from variegate.learning.device.point import Point
from variegate.learning.device.similarity import LearnedKinds
from variegate.learning.factors import Factors, is_low_rank, low_rank_factors
from variegate.learning.objective import LargeMarginLoss, impossible_item
from variegate.streaming import Example
from variegate.tensors.dense import NOT_DEFINITE
from variegate.tensors.dual import DualPoint, dual_gradients, dual_terms, dual_value
from variegate.tensors.dual_resolvent import DualResolvent
from variegate.tensors.similarities import kind_roots

__all__ = ["FactoredStack", "KindsStack", "low_rank_of"]

#: A weight below this is taken to be this, which changes nothing but rounding: features
#: of weight zero would have no gradient.
_SMALLEST_WEIGHT = 1e-30


def low_rank_of(kernel: Kernel, example: Example) -> Factors | int | None:
    """Return the factors of a similarity of low rank, or how many kinds it has.

    None where its matrix is to be made.
    """
    n_items = len(example.ground_set)
    if type(kernel) is Kinds and is_low_rank(kernel.embedding_size, n_items):
        return kernel.embedding_size
    with naming(example.position):
        return low_rank_factors(kernel, example.ground_set)


class FactoredStack:
    """Ground sets whose similarities are weighted sums of fixed factors.

    Parameters
    ----------
    batch : Batch
    factors : sequence of Factors
        One of each ground set, all with the same columns.
    jitter : float
    learned : bool
        Whether the weights are learned.
    """

    def __init__(
        self, batch: Batch, factors: Sequence[Factors], jitter: float, learned: bool
    ) -> None:
        self.batch = batch
        self.jitter = jitter
        self.mask = batch.where()
        self.columns = batch.features([each.columns for each in factors])
        self.n_factors = factors[0].n_factors if learned else 0
        self.owner = torch.from_numpy(factors[0].owner).to(batch.device)
        for example, each in zip(batch.examples, factors, strict=True):
            own = each.squared[example.members]
            impossible = example.members[(own <= 0.0).all(axis=1)]
            if len(impossible):
                raise impossible_item(example.position, impossible[0])

    def _features(self, parameters: Tensor) -> tuple[Tensor, Tensor]:
        """Return ``F`` with ``S = F Fᵀ``, and what its columns were multiplied by."""
        if not self.n_factors:
            return self.columns, self.columns.new_ones(len(self.owner))
        root = parameters.clamp(min=_SMALLEST_WEIGHT).sqrt()[self.owner]
        return self.columns * root, root

    def evaluate(
        self, loss: LargeMarginLoss, at: Point, u: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return losses, gradients in ``u`` and in the weights, and what failed."""
        F, root = self._features(at.kernel)
        terms = dual_terms(
            F,
            u,
            self.batch.targets,
            self.mask,
            loss.lam,
            loss.hinge,
            self.jitter,
            gradient=True,
        )
        # From F = √w Φ: ∂f/∂w is half of ⟨∂f/∂F, Φ⟩ / √w.
        in_weights = u.new_zeros(self.n_factors)
        if self.n_factors:
            product = torch.linalg.vecdot(terms.feature_gradient, self.columns, dim=1)
            slope = product.sum(dim=0) / (2.0 * root)
            in_weights.index_add_(0, self.owner, slope)
        return terms.value, terms.quality_gradient, in_weights, terms.failed

    def marginals(self, at: Point, u: Tensor) -> tuple[Tensor, Tensor]:
        """Return ``K_ii``, and what failed."""
        F, _ = self._features(at.kernel)
        return _marginals(F, u, self.mask, self.jitter)


class KindsStack:
    """Ground sets whose similarity is by learned kinds.

    ``S = (1 - ε) φ φᵀ + ε I``, and a diagonal of one: the ridge, with the jitter, is
    ``(ε + jitter) / (1 - ε)`` times the diagonal of what is of low rank.

    Parameters
    ----------
    batch : Batch
    kernel : Kinds
    jitter : float
    """

    def __init__(self, batch: Batch, kernel: Kinds, jitter: float) -> None:
        self.batch = batch
        self.jitter = jitter
        self.mask = batch.where()
        self.kernel = kernel
        self.kinds = LearnedKinds(kernel, batch)

    def _features(self, parameters: Tensor) -> tuple[Tensor, Tensor]:
        """Return ``√(1 - ε) φ``, and the ridge relative to its diagonal."""
        weight, bias, apart = self.kinds.at(parameters)
        roots = kind_roots(self.kinds.items, weight, bias)
        if self.mask is not None:
            roots = roots.masked_fill(~self.mask[:, :, None], 0.0)
        return (1.0 - apart).sqrt() * roots, (apart + self.jitter) / (1.0 - apart)

    def _ridge(self, at: Point) -> float:
        """Return the ridge; known here, nothing need wait for the device."""
        apart = self.kernel.share_apart(at.kernel_here)
        return (apart + self.jitter) / (1.0 - apart)

    def evaluate(
        self, loss: LargeMarginLoss, at: Point, u: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return losses, gradients in ``u`` and in parameters, and what failed."""
        parameters = at.kernel.detach().requires_grad_()
        with torch.enable_grad():
            F, ridge = self._features(parameters)
        fixed = F.detach()
        settings = (self.mask, loss.lam, loss.hinge, self._ridge(at))
        found = dual_value(fixed, u, self.batch.targets, *settings)
        ones = torch.ones_like(found.value)
        in_F, in_u = dual_gradients(found, fixed, ones, self.mask)
        # Of ``S + ridge diag S`` in the ridge.
        own = torch.linalg.vecdot(fixed, fixed)
        in_ridge = (_diagonal(found, fixed) * own).sum()
        (slope,) = torch.autograd.grad([F, ridge], parameters, [in_F, in_ridge])
        return found.value, in_u, slope, found.failed

    def marginals(self, at: Point, u: Tensor) -> tuple[Tensor, Tensor]:
        """Return ``K_ii``, and what failed."""
        F, _ = self._features(at.kernel)
        return _marginals(F, u, self.mask, self._ridge(at))


def _diagonal(at: DualPoint, F: Tensor) -> Tensor:
    """Return the diagonal of the gradient in the similarity with its ridge."""
    resolvent, targets = at.resolvent, at.targets
    assert resolvent.leverage is not None
    share, kept, h = resolvent.share, resolvent.kept, resolvent.leverage
    diagonal = share * (1.0 - h)
    if at.weights is not None and at.delta is not None:
        A = resolvent.root @ resolvent.root.mT
        g = share * torch.linalg.vecdot(F @ (A @ at.delta @ A), F)
        diagonal += share * (kept * at.weights * (1.0 - 2.0 * h) + g)
    of_target = at.target_inverse.diagonal(dim1=-2, dim2=-1)
    diagonal.scatter_add_(1, targets.members, -of_target)
    return diagonal.masked_fill(~at.active[:, None], 0.0)


def _marginals(
    F: Tensor, u: Tensor, mask: Tensor | None, jitter: float
) -> tuple[Tensor, Tensor]:
    resolvent, _ = DualResolvent.of(F, u, mask, jitter)
    included, _ = resolvent.marginals(F)
    failed = (~resolvent.definite).to(torch.uint8) * NOT_DEFINITE
    return included, failed
