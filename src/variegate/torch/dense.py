r"""The large-margin loss and the marginals of a batch of kernels, in closed form.

Both ways to give a kernel have one form: with ``X`` the matrix given and two numbers an
item,

.. math:: L + I = C^{-1} M C^{-1}, \qquad M = R X R + C^2,

- ``X = S`` with log-quality ``u``: ``r = min(e^u, 1)``, ``c = min(e^{-u}, 1)``;
- ``X = L``: ``r = c = min(L_ii^{-1/2}, 1)``, and 1 where ``L_ii = 0``,

so that no entry of ``M`` is large.  Then

.. math::

    \log\det(L + I) = \log\det M - 2 \sum_i \log c_i, \qquad
    1 - K_{ii} = c_i^2 [M^{-1}]_{ii}, \qquad
    K_{ii} = \sum_j [R X R]_{ij} [M^{-1}]_{ij},

and for a diagonal matrix ``W``,

.. math::

    \frac{\partial \log\det(L + I)}{\partial X} = R M^{-1} R, \qquad
    \frac{\partial \sum_i W_i K_{ii}}{\partial X} = R M^{-1} C W C M^{-1} R, \qquad
    \frac{\partial \sum_i W_i K_{ii}}{\partial u_k} = 2 \Bigl( W_k K_{kk} (1 - K_{kk})
        - \sum_{i \ne k} W_i K_{ik}^2 \Bigr).

The loss is that of :mod:`variegate.learning.objective`:

.. math::

    \partial f / \partial X = R M^{-1} R - \langle X_y^{-1} \rangle
        + \tfrac{\lambda}{m} R M^{-1} C W C M^{-1} R .

Of the wanted items only their own ``k x k`` matrix is factored.  Beside ``X`` there are
three ``N x N`` buffers, the gradient included, and nothing waits for a GPU but
:attr:`Targets.members` of boolean targets.  Padding has ``r = 0`` and ``c = 1``; what
stands there, NaN included, is never used.  A ridge of ``jitter`` times its own diagonal
may be added to ``X``.

Given items have ``c = 0``, and ``r = 1`` if there is a log-quality, which is not used
there: they are of infinite quality, as in :mod:`variegate.learning.objective`.  The
formulas then hold for ``L + I_Ā`` in place of ``L + I``, with the given items ``A``
counted among the wanted ones, where errors ``1 - K_ii`` are zero.
"""

from __future__ import annotations

import importlib.util
from functools import cache, cached_property

import torch
from torch import Tensor

from variegate.linalg.limits import DOUBTFUL_PIVOT, FUSED_ITEMS
from variegate.torch.targets import (
    Evaluation,
    LossSettings,
    LossTerms,
    Targets,
    apply_closed_form,
    evaluate_loss,
)

#: The share of its diagonal below which a squared pivot is in doubt: about the root of
#: rounding.  Results that depend on a lesser one are refused.
DOUBTFUL = {torch.float64: DOUBTFUL_PIVOT, torch.float32: 2e-4}

#: Triangular matrices of up to this many rows are solved, not halved.
_SOLVED = 64


def loss(
    X: Tensor, log_quality: Tensor | None, targets: Targets, settings: LossSettings
) -> tuple[Tensor, Tensor]:
    """Return losses (B,), differentiable, and codes of failures (B,), 0 for none.

    ``X`` (B, N, N), symmetric, is ``S`` if there is a log-quality (B, N), else ``L``.
    Codes are the constants of :mod:`variegate.torch.targets`.
    """
    form = plain_loss_terms
    if targets.given is None and can_use_fused_kernel(X):
        from variegate.torch.fused import fused_loss_terms as form

    def evaluate(gradient: bool) -> Evaluation:
        """Return losses, failures, the gradients to save (or None), and pull_back."""
        terms = form(X, log_quality, targets, settings, gradient=gradient)
        saved = (terms.similarity_gradient, terms.quality_gradient)
        return terms.value, terms.failed, saved, pull_back

    def pull_back(
        by_set: Tensor, G: Tensor, slope: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        """Return gradients in X and u from that in the losses, ``by_set`` (B,)."""
        scaled = None if slope is None else slope * by_set[:, None]
        return G * by_set[:, None, None], scaled

    return apply_closed_form(evaluate, X, log_quality)


def marginals(
    X: Tensor,
    log_quality: Tensor | None,
    mask: Tensor | None,
    jitter: float,
    given: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return inclusion probabilities (B, N), differentiable, and successes (B,).

    ``K_ii`` is 0 where ``mask`` (B, N; True for items) is False and at ``given`` items
    (B, N).  A set succeeds, True, if its ``M`` is positive definite to rounding and no
    ``X_ii`` negative; else NaN.  ``jitter`` is a ridge relative to the diagonal; others
    are as in :func:`loss`.
    """

    def evaluate(_: bool) -> Evaluation:
        """Return probabilities, successes, the marginals to save, and pull_back."""
        resolvent = Resolvent(X, log_quality, mask, jitter, given)
        found = resolvent.marginals
        failed = ~resolvent.definite[:, None]

        def pull_back(W: Tensor, *found: Tensor) -> tuple[Tensor | None, ...]:
            """Return gradients in X and u from ``W``, that in ``K_ii``; 0 if failed."""
            W = W.masked_fill(failed, 0.0)
            slope = 2.0 * resolvent.quality_gradient(W, *found)
            G = resolvent.gradient(W, of_log_det=False)
            raise_diagonal(G, jitter)
            G.masked_fill_(failed[:, :, None], 0.0)
            return G, slope.masked_fill_(failed, 0.0)

        included = fill_given(found[0], given).masked_fill(failed, torch.nan)
        return included, resolvent.definite, found, pull_back

    return apply_closed_form(evaluate, X, log_quality)


def can_use_fused_kernel(X: Tensor) -> bool:
    """Return whether ``X`` (B, N, N) is on a GPU with Triton, in sets small enough."""
    return len(X) > 0 and 0 < X.shape[-1] <= FUSED_ITEMS and _has_triton(X.device.type)


@cache
def _has_triton(device_type: str) -> bool:
    """Return whether the type of a device is "cuda" and Triton is installed."""
    return device_type == "cuda" and importlib.util.find_spec("triton") is not None


def plain_loss_terms(
    X: Tensor,
    log_quality: Tensor | None,
    targets: Targets,
    settings: LossSettings,
    *,
    gradient: bool,
) -> LossTerms:
    """Return :func:`loss` by PyTorch's operations, with ``gradient`` gradients too."""
    members, jitter = targets.members, float(settings.jitter)
    sets = torch.arange(len(X), device=X.device)[:, None, None]
    X_y = X[sets, members[:, :, None], members[:, None, :]]
    target = TargetInverse(X_y, targets, settings)
    resolvent = Resolvent(X, log_quality, targets.mask, jitter, targets.is_given)
    value, W, active, failed = evaluate_loss(
        resolvent, target, lambda: resolvent.marginals, log_quality, targets, settings
    )
    if not gradient:
        return LossTerms(value, None, None, failed)
    included, excluded = resolvent.marginals
    slope = None
    if log_quality is not None:
        slope = torch.where(targets.indicator, -excluded, included)
        if W is not None:
            slope = slope + resolvent.quality_gradient(W, included, excluded)
        slope = (2.0 * slope).masked_fill_(~active[:, None], 0.0)
    G = resolvent.gradient(W, of_log_det=True)
    place = (sets * X.shape[1] + members[:, :, None]) * X.shape[1] + members[:, None, :]
    G.view(-1).scatter_add_(0, place.view(-1), -target.inverse.reshape(-1))
    raise_diagonal(G, jitter)
    G.masked_fill_(~active[:, None, None], 0.0)
    return LossTerms(value, G, slope, failed)


class TargetInverse:
    """``log det X_y`` and ``X_y⁻¹`` of the wanted items."""

    def __init__(self, X_y: Tensor, targets: Targets, settings: LossSettings) -> None:
        """Factor and invert the matrices ``X_y`` (B, k, k) of ``targets.members``."""
        raise_diagonal(X_y, settings.jitter)
        both = targets.present[:, :, None] & targets.present[:, None, :]
        # Padding becomes an identity block, which changes no determinant.
        eye = torch.eye(X_y.shape[1], dtype=X_y.dtype, device=X_y.device)
        X_y = torch.where(both, X_y, eye)
        tolerance = settings.tolerance
        doubtful = DOUBTFUL[X_y.dtype] if tolerance is None else tolerance
        # (B,): double, and boolean
        self.log_det, self.definite = factor_cholesky(X_y, doubtful)
        invert_cholesky(X_y, torch.empty_like(X_y))
        self.inverse = X_y.masked_fill_(~both, 0.0)  # (B, k, k): zero at padding


class Resolvent:
    """``M`` of the module docstring, and the quantities made of it, for B sets.

    Beside ``X`` there are two buffers: ``M``, which is replaced by its Cholesky factor,
    its inverse and perhaps the gradient in turn, and ``spare``.
    """

    def __init__(
        self,
        X: Tensor,
        log_quality: Tensor | None,
        mask: Tensor | None,
        jitter: float,
        given: Tensor | None = None,
    ) -> None:
        """Factor ``M`` of ``X`` (B, N, N): ``S`` with a log-quality, else ``L``."""
        diagonal = X.diagonal(dim1=-2, dim2=-1)
        if mask is not None:
            diagonal = diagonal.masked_fill(~mask, 0.0)
        if log_quality is None:
            above = 0.5 * torch.log(diagonal.clamp(min=1.0))
            r = c = torch.exp(-above)
        else:
            if mask is not None:
                log_quality = log_quality.masked_fill(~mask, 0.0)
            log_quality = fill_given(log_quality, given)
            above = log_quality.clamp(min=0.0)
            r, c = torch.exp(log_quality.clamp(max=0.0)), torch.exp(-above)
        c = fill_given(c, given)
        if mask is not None:
            r = r.masked_fill(~mask, 0.0)
        ridge = jitter * diagonal if jitter else None
        M = torch.empty(X.shape, dtype=X.dtype, device=X.device)
        torch.mul(X, r[:, :, None], out=M)
        M.mul_(r[:, None, :])
        _clear_padding(M, mask)
        own = M.diagonal(dim1=-2, dim2=-1)
        own += c**2
        if ridge is not None:
            own += r**2 * ridge
        log_det, definite = factor_cholesky(M, DOUBTFUL[X.dtype])
        self.X, self.mask, self.r, self.c, self.ridge = X, mask, r, c, ridge
        self.M = M  # contiguous (B, N, N): its factor, then its inverse
        #: double (B,): ``log det(L + I)``
        self.log_det = log_det + 2.0 * above.sum(dim=-1, dtype=torch.float64)
        #: boolean (B,): whether the factorisation can be trusted
        self.definite = definite & (diagonal >= 0.0).all(dim=-1)

    @cached_property
    def marginals(self) -> tuple[Tensor, Tensor]:
        """``K_ii`` and ``1 - K_ii`` (B, N), neither by cancellation.

        Replaces the factor in ``M`` by the inverse of ``M``, once.
        """
        self.spare = torch.empty_like(self.M)
        invert_cholesky(self.M, self.spare)
        r, diagonal = self.r, self.M.diagonal(dim1=-2, dim2=-1)
        torch.mul(self.X, self.M, out=self.spare)
        _clear_padding(self.spare, self.mask)
        included = r * (self.spare @ r[:, :, None]).squeeze(-1)
        if self.ridge is not None:
            included = included + r**2 * self.ridge * diagonal
        return included.clamp(0.0, 1.0), (self.c**2 * diagonal).clamp(0.0, 1.0)

    def gradient(self, W: Tensor | None, *, of_log_det: bool) -> Tensor:
        """Return the gradient (B, N, N) of ``Σ_i W_i K_ii`` in ``X`` with its ridge.

        That in ``X`` itself follows by :func:`raise_diagonal`.  ``W`` (B, N) None is
        zero; ``of_log_det`` adds the gradient of ``log det(L + I)``.  Read
        :attr:`marginals` before, and nothing after: the result may overwrite ``M``.
        """
        G = self.M
        if W is not None:
            torch.mul(self.M, (self.c**2 * W)[:, None, :], out=self.spare)
            if of_log_det:
                G = torch.baddbmm(self.M, self.spare, self.M)
            else:
                G = torch.bmm(self.spare, self.M)
        return G.mul_(self.r[:, :, None]).mul_(self.r[:, None, :])

    def quality_gradient(self, W: Tensor, included: Tensor, excluded: Tensor) -> Tensor:
        """Return half the gradient (B, N) of ``Σ_i W_i K_ii`` in the log-quality.

        ``W`` is (B, N); ``included`` and ``excluded`` are the :attr:`marginals`.
        """
        c_squared = self.c**2
        torch.mul(self.M, self.M, out=self.spare)
        self.spare.diagonal(dim1=-2, dim2=-1).zero_()
        others = (self.spare @ (c_squared * W)[:, :, None]).squeeze(-1)
        return W * included * excluded - c_squared * others


def _clear_padding(M: Tensor, mask: Tensor | None) -> None:
    """Set rows and columns of ``M`` to zero, in place, where ``mask`` is False."""
    # Not by multiplication: NaN times zero is NaN.
    if mask is not None:
        M.masked_fill_(~mask[:, :, None], 0.0).masked_fill_(~mask[:, None, :], 0.0)


def fill_given(values: Tensor, given: Tensor | None) -> Tensor:
    """Return ``values`` (B, N) with zeros at ``given`` items (B, N), None for none."""
    return values if given is None else values.masked_fill(given, 0.0)


def raise_diagonal(X: Tensor, jitter: float | Tensor) -> None:
    """Multiply the diagonal of each ``X`` (B, N, N) by ``1 + jitter``, in place."""
    if isinstance(jitter, Tensor) or jitter:
        X.diagonal(dim1=-2, dim2=-1).mul_(1.0 + jitter)


# Cholesky factors and inverses, in place, without waiting for a GPU ---------------


def factor_cholesky(M: Tensor, tolerance: float) -> tuple[Tensor, Tensor]:
    """Replace ``M`` by its Cholesky factor; return ``log det M``, definiteness: (B,).

    ``M`` (B, N, N) is contiguous; its transpose then holds the lower factors, as LAPACK
    wants them.  Logarithms are summed in double precision.  A matrix is not definite if
    a squared pivot is at most ``tolerance`` times the diagonal; its ``log det`` is then
    a placeholder.
    """
    smallest = tolerance * M.diagonal(dim1=-2, dim2=-1)
    info = torch.empty(M.shape[:-2], dtype=torch.int32, device=M.device)
    turned = M.mT
    torch.linalg.cholesky_ex(turned, out=(turned, info))
    pivots = M.diagonal(dim1=-2, dim2=-1)
    definite = (info == 0) & (pivots**2 > smallest).all(dim=-1)
    # The inverse of a matrix that is not definite is computed, and not used.
    pivots.masked_fill_(~(pivots > 0.0), 1.0)
    return 2.0 * torch.log(pivots).sum(dim=-1, dtype=torch.float64), definite


def invert_cholesky(M: Tensor, spare: Tensor) -> None:
    """Replace the factor that :func:`factor_cholesky` left by the matrix's inverse.

    On a GPU by a product of triangular inverses: ``cholesky_inverse`` would wait there
    to see whether it failed.  ``spare`` has the shape of ``M`` and is overwritten.
    """
    if M.numel() == 0:
        return
    if M.device.type == "cpu":
        turned = M.mT
        torch.cholesky_inverse(turned, out=turned)
    else:
        invert_by_product(M, spare)


def invert_by_product(M: Tensor, spare: Tensor) -> None:
    """Do the work of :func:`invert_cholesky` by products, on any device."""
    spare.zero_().diagonal(dim1=-2, dim2=-1).fill_(1.0)
    _invert_triangles(M.mT, spare.mT)
    torch.bmm(spare, spare.mT, out=M)  # M⁻¹ = U Uᵀ with U upper


def _invert_triangles(lower: Tensor, out: Tensor) -> None:
    """Turn identities ``out`` (B, n, n) into inverses of ``lower``, triangular.

    By halves, so that all but the smallest are products: of 16 matrices of 1000 rows,
    one call of ``solve_triangular`` takes longer, or waits for the GPU.
    """
    size = lower.shape[-1]
    if size <= _SOLVED:
        torch.linalg.solve_triangular(lower, out, upper=False, out=out)
        return
    half = size // 2 if size <= 2 * _SOLVED else -(-size // (2 * _SOLVED)) * _SOLVED
    first, second = slice(None, half), slice(half, None)
    for part in (first, second):
        _invert_triangles(lower[:, part, part], out[:, part, part])
    below = torch.bmm(lower[:, second, first], out[:, first, first])
    out[:, second, first].baddbmm_(out[:, second, second], below, beta=0.0, alpha=-1.0)
