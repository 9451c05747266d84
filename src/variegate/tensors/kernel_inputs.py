"""What is given to kernels that are written in Triton."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from functools import cache, lru_cache, wraps
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor
from torch.nn.functional import pad

if TYPE_CHECKING:
    from variegate.tensors.dense import LossTerms
    from variegate.tensors.targets import Targets

__all__ = ["as_bytes", "in_steps", "is_possible", "settings", "size"]

#: There is a kernel for each number of items, compiled in seconds when it is first met.
#: Sets of different sizes are padded to multiples of this, so that few are met.
_STEP = 8


def is_possible(X: Tensor) -> bool:
    """Whether there are sets, on a device that kernels are compiled for."""
    return X.device.type == "cuda" and len(X) > 0 and _has_triton()


@cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None


class _Terms(Protocol):
    def __call__(
        self,
        X: Tensor,
        log_quality: Tensor | None,
        targets: Targets,
        mask: Tensor | None,
        lam: float,
        hinge: bool,
        *,
        gradient: bool,
        jitter: float = ...,
        tolerance: float | None = ...,
    ) -> LossTerms: ...


def in_steps(loss_terms: _Terms) -> _Terms:
    """Make a function pad sets of different sizes up to the next step."""

    @wraps(loss_terms)
    def padded(
        X: Tensor,
        log_quality: Tensor | None,
        targets: Targets,
        mask: Tensor | None,
        *others: Any,
        **settings: Any,
    ) -> LossTerms:
        n_items = X.shape[1]
        if mask is None or n_items % _STEP == 0:
            return loss_terms(X, log_quality, targets, mask, *others, **settings)
        given = _widened(X, log_quality, targets, mask)
        wide = loss_terms(*given, *others, **settings)
        G, slope = wide.similarity_gradient, wide.quality_gradient
        return wide._replace(
            similarity_gradient=None if G is None else G[:, :n_items, :n_items],
            quality_gradient=None if slope is None else slope[:, :n_items],
        )

    return padded


def _widened(
    X: Tensor, log_quality: Tensor | None, targets: Targets, mask: Tensor
) -> tuple[Tensor, Tensor | None, Targets, Tensor]:
    """Add padding up to the next step."""
    n_more = -X.shape[1] % _STEP
    subsets = targets.subsets

    def padded(given: Any) -> Any:
        is_wide = isinstance(given, Tensor) and given.shape[-1:] == mask.shape[1:]
        return pad(given, (0, n_more)) if is_wide else given

    wider = replace(
        targets,
        subsets=padded(subsets) if subsets.dtype == torch.bool else subsets,
        n_items=targets.n_items + n_more,
        false_positive=padded(targets.false_positive),
        false_negative=padded(targets.false_negative),
        mask=padded(mask),
    )
    X = pad(X, (0, n_more, 0, n_more))
    return X, padded(log_quality), wider, padded(mask)


def size(n_items: int) -> int:
    """Return the number of rows that a program holds: a power of two."""
    return max(16, 1 << (n_items - 1).bit_length())


def as_bytes(given: Tensor) -> Tensor:
    """Return booleans as bytes, and numbers as they are."""
    given = given.contiguous()
    return given.view(torch.uint8) if given.dtype == torch.bool else given


@lru_cache(maxsize=256)
def settings(
    lam: float, jitter: float, positive: float, negative: float, device: torch.device
) -> Tensor:
    """Return numbers on the device, in all their digits: Triton would cut them."""
    given = torch.empty(4, dtype=torch.float64, device=device)
    for place, number in enumerate((lam, 1.0 + jitter, positive, negative)):
        given[place].fill_(number)  # unlike a copy, this is not waited for
    return given
