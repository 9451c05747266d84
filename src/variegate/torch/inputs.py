"""The tensors that public functions are given, checked and put into batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from variegate._validation import check_number
from variegate.torch import dense, low_rank
from variegate.torch.targets import LossSettings, Targets


@dataclass(frozen=True)
class LowRank:
    """The similarity (or kernel) ``F Fᵀ`` of features ``F``, never formed.

    Parameters
    ----------
    features : tensor of shape (N, D) or (B, N, D)
        One row an item.  ``N`` may be millions where ``D`` is a few hundred.
    """

    features: Tensor

    def __post_init__(self) -> None:
        if not isinstance(self.features, Tensor):
            raise TypeError(
                f"features must be a tensor, got {type(self.features).__name__}"
            )
        if not self.features.is_floating_point():
            raise ValueError(
                f"features must be floating-point numbers, got {self.features.dtype}"
            )


@dataclass(frozen=True, eq=False)
class Kernels:
    """Kernels of ``B`` ground sets, each of ``N`` items, padding included.

    Before :func:`with_batch_axis`, tensors may lack the axis ``B``.
    """

    kernel: Tensor  # (B, N, N) or features (B, N, D): ``S`` with qualities, or ``L``
    is_low_rank: bool = False  # whether they are features
    log_quality: Tensor | None = None  # (B, N) or None
    mask: Tensor | None = None  # boolean (B, N) or None
    given: Tensor | None = None  # boolean (B, N) or None: the given items
    jitter: float | Tensor = 0.0  # ridge relative to the diagonal
    subsets: Tensor | None = None  # boolean (B, N), item numbers (B, k), or None
    # (B, N): costs of errors, and of choosing an item
    false_positive: Tensor | None = None
    false_negative: Tensor | None = None
    costs: Tensor | None = None
    is_shared: bool = False  # whether all sets have one kernel
    is_single: bool = False  # whether one set was given, without a batch axis

    @property
    def n_sets(self) -> int:
        """The number ``B`` of ground sets."""
        return int(self.kernel.shape[0])

    @property
    def n_items(self) -> int:
        """The number ``N`` of items of each ground set, padding included."""
        return int(self.kernel.shape[1])

    @property
    def largest_rank(self) -> int:
        """The largest rank that the kernels can have."""
        return int(min(self.kernel.shape[1:]))

    @property
    def device(self) -> torch.device:
        """The device of all tensors."""
        return self.kernel.device

    @property
    def present(self) -> Tensor:
        """True where there is an item (B, N): the mask, or True without one."""
        if self.mask is not None:
            return self.mask
        true = torch.ones((), dtype=torch.bool, device=self.device)
        return true.expand(self.n_sets, self.n_items)

    @property
    def candidates(self) -> Tensor:
        """True where there is an item (B, N) that is not given."""
        return self.present if self.given is None else self.present & ~self.given

    def losses(
        self,
        targets: Targets,
        lam: float,
        hinge: bool = True,
        tolerance: float | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return losses (B,), differentiable, and a code of failure (B,) for each set.

        The weight of the margin is ``lam``; with ``hinge``, losses below zero are zero.
        A subset counts as of probability zero where a squared pivot of its kernel is at
        most ``tolerance`` times the diagonal (None: where it is in doubt).  Codes are
        0 and the constants of :mod:`variegate.torch.targets`.
        """
        loss = low_rank.loss if self.is_low_rank else dense.loss
        settings = LossSettings(lam, hinge, self.jitter, tolerance)
        return loss(self.kernel, self.log_quality, targets, settings)

    def marginals(self) -> tuple[Tensor, Tensor]:
        """Return ``K_ii`` (B, N), NaN in failed sets, and successes (B,).

        0 at padding and at given items.
        """
        inputs = (self.kernel, self.log_quality, self.mask)
        if self.is_low_rank:
            return low_rank.marginals(*inputs, self.jitter, self.given)
        return dense.marginals(*inputs, float(self.jitter), self.given)

    def targets(self, omega: float) -> Targets:
        """Return the subsets, empty if none were given, with their costs of errors.

        If not given, these are 1 for false positives and ``omega`` for false negatives.
        """
        subsets = self.subsets
        if subsets is None:
            subsets = self.kernel.new_zeros(self.n_sets, 0, dtype=torch.long)
        positive = 1.0 if self.false_positive is None else self.false_positive
        negative = omega if self.false_negative is None else self.false_negative
        costs = (positive, negative)
        return Targets(
            subsets, self.n_items, *costs, self.mask, self.kernel.dtype, self.given
        )

    def check_given_ridge(self) -> None:
        """Raise ValueError for given items of a low-rank kernel without a jitter."""
        if self.given is not None and self.is_low_rank and not self.jitter:
            raise ValueError(
                "probabilities beside given items of a LowRank kernel need a jitter: "
                "pass one, such as jitter=1e-6 (1e-3 in single precision), or the "
                "matrix itself"
            )

    def without_axis(self, values: Tensor) -> Tensor:
        """Return ``values`` (B, ...), without the first axis if one set was given."""
        return values[0] if self.is_single else values


def check_kernels(
    kernel: Tensor | LowRank,
    log_quality: Tensor | None,
    mask: Tensor | None,
    jitter: float,
    given: Tensor | None = None,
) -> Kernels:
    """Return tensors as :class:`Kernels` of one precision, types and devices checked.

    Double if the kernel or ``log_quality`` is, else single; ``jitter`` is a ridge
    relative to the diagonal.  Shapes stay: :func:`with_batch_axis` checks them.
    """
    is_low_rank = isinstance(kernel, LowRank)
    matrix: Any = kernel.features if isinstance(kernel, LowRank) else kernel
    _check_real("kernel", matrix, ", or LowRank")
    masks = {"mask": mask, "given": given}
    check_tensors({"log_quality": log_quality, **masks}, matrix.device)
    for name, flags in masks.items():
        if flags is not None and flags.dtype != torch.bool:
            where = "there is an item" if name == "mask" else "an item is given"
            raise ValueError(
                f"{name} must be boolean, True where {where}; got {flags.dtype}"
            )
    dtype = torch.float64 if matrix.dtype == torch.float64 else torch.float32
    if log_quality is not None:
        _check_real("log_quality", log_quality)
        if log_quality.dtype == torch.float64:
            dtype = torch.float64
        log_quality = log_quality.to(dtype)
    check_number("jitter", jitter)
    return Kernels(matrix.to(dtype), is_low_rank, log_quality, mask, given, jitter)


def check_tensors(tensors: Mapping[str, Any], device: torch.device) -> None:
    """Raise ValueError for a named value other than None or a tensor on ``device``."""
    for name, values in tensors.items():
        if values is None:
            continue
        if not isinstance(values, Tensor):
            raise ValueError(f"{name} must be a tensor, got {type(values).__name__}")
        if values.device != device:
            raise ValueError(
                f"{name} is on {values.device}, but the kernel on {device}"
            )


def with_batch_axis(kernels: Kernels, name: str) -> Kernels:
    """Return kernels with their shapes checked and a batch axis in every tensor.

    A tensor without one is the same for all sets; if none has one, there is one set.
    ``name`` is the name of the subsets in messages.
    """
    names = ("log_quality", "mask", "given", "false_positive", "false_negative")
    tensors = {title: getattr(kernels, title) for title in (*names, "costs", "subsets")}
    rows = {title: each for title, each in tensors.items() if each is not None}
    kernel = kernels.kernel
    if kernel.ndim not in (2, 3) or not (
        kernels.is_low_rank or kernel.shape[-1] == kernel.shape[-2]
    ):
        what, last = ("features", "D") if kernels.is_low_rank else ("kernel", "N")
        raise ValueError(
            f"{what} has shape {tuple(kernel.shape)}, expected (N, {last}) or "
            f"(B, N, {last})"
        )
    n_items = kernel.shape[-2]
    for title, values in rows.items():
        has_numbers = title == "subsets" and values.dtype != torch.bool
        has_shape = values.ndim in (1, 2) and values.shape[-1] == n_items
        if not has_numbers and not has_shape:
            raise ValueError(
                f"{name if title == 'subsets' else title} has shape "
                f"{tuple(values.shape)}, expected ({n_items},) or (B, {n_items}): one "
                "entry for each item of the kernel"
            )
    sizes = {len(values) for values in rows.values() if values.ndim == 2}
    sizes |= {len(kernel)} if kernel.ndim == 3 else set()
    if len(sizes) > 1:
        raise ValueError(
            "the kernel and the tensors that go with it differ in the number of sets: "
            f"{', '.join(map(str, sorted(sizes)))}"
        )
    n_sets = next(iter(sizes), 1)
    shared: dict[str, Any] = {
        title: values.expand(n_sets, -1)
        for title, values in rows.items()
        if values.ndim == 1
    }
    if kernel.ndim == 2:
        shared |= {"kernel": kernel.expand(n_sets, -1, -1), "is_shared": True}
    batch = replace(kernels, is_single=not sizes, **shared)
    if batch.given is None or batch.mask is None:
        return batch
    return replace(batch, given=batch.given & batch.mask)


def _check_real(title: str, values: Any, others: str = "") -> None:
    """Raise ValueError unless ``values`` are a floating-point tensor.

    ``title``, their name, and ``others``, as ", or LowRank", are for the message alone.
    """
    if not isinstance(values, Tensor) or not values.is_floating_point():
        found = getattr(values, "dtype", type(values).__name__)
        raise ValueError(
            f"{title} must be a tensor of real numbers{others}; got {found}"
        )
