"""Kernels for tables, by name, and which of them are compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from variegate.estimator import LargeMarginDPP
from variegate.kernels import Kernel, Kinds, Linear, Metric, Mixture, MultipleKernel
from variegate.tables.encoding import Encoding
from variegate.tuning.kernel_search import KernelSearch

if TYPE_CHECKING:
    from variegate.tables.selector import TableSelector

__all__ = ["has_target", "kernel_for", "search_for"]

#: Numbers of kinds that are compared.
N_KINDS = (8, 16, 32)


def kernel_for(name: Any, encoding: Encoding) -> Kernel:
    """Return the kernel that a name stands for, over all blocks of the similarity.

    "auto" and None stand for "multiple"; what is no name is a kernel.
    """
    if isinstance(name, Kernel):
        return name
    if name == "linear":
        return _of_blocks(Linear, encoding)
    if name == "kinds":
        return _of_blocks(Kinds, encoding)
    if name == "metric":
        return _of_blocks(Metric, encoding)
    blocks = list(encoding.blocks) if len(encoding.blocks) > 1 else None
    return MultipleKernel(blocks=blocks)


def search_for(
    selector: TableSelector, estimator: LargeMarginDPP, encoding: Encoding
) -> KernelSearch:
    """Return the comparison of kernels that suit a table.

    What a selector was given stays as it is; the rest is open.
    """
    fixed = {
        "Gaussians": kernel_for("multiple", encoding),
        "linear": kernel_for("linear", encoding),
    }
    kinds = {
        f"{n} kinds": _of_blocks(
            lambda block=None, n=n: Kinds(n, block=block), encoding
        )
        for n in N_KINDS
    }
    cosine = _of_blocks(lambda block=None: Linear(True, block), encoding)
    return KernelSearch(
        estimator,
        fixed | kinds,
        cosine,
        tuple(fixed),
        **_open_settings(selector, estimator),
    )


def has_target(selector: TableSelector) -> bool:
    """Return whether a precision or a recall is aimed at."""
    return (selector.target_precision, selector.target_recall) != (None, None)


def _open_settings(
    selector: TableSelector, estimator: LargeMarginDPP
) -> dict[str, Any]:
    """Return what may be decided beside the kernel."""
    varies = ["penalty"]
    if selector.estimator is None:
        is_tuned = selector.tune or has_target(selector)
        names = ["l2"] if is_tuned else ["lam", "l2", "omega"]
        varies += [name for name in names if getattr(selector, name) is None]
    if selector.decoder is None and selector.estimator is None:
        return {"varies": varies, "tries_sizes": not has_target(selector)}
    return {"varies": varies, "decoders": [estimator.decoder], "tries_sizes": False}


def _of_blocks(make: Callable[..., Kernel], encoding: Encoding) -> Kernel:
    """Return one kernel, or a mixture of one for each block."""
    if len(encoding.blocks) < 2:
        return make()
    return Mixture([make(block=block) for block in encoding.blocks])
