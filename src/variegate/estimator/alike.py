"""A warning where the learned similarity calls all items alike."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from itertools import islice

import numpy as np

from variegate._typing import FloatArray
from variegate.kernels import Kernel
from variegate.kernels.domains import Simplex
from variegate.learning.examples import Example

#: The mean, over ground sets, of the smallest similarity of two items to warn from.
#: All weight on the widest Gaussian of the default ladder stays below: items at the
#: median distance have exp(-1/64) = 0.984, at twice that distance 0.94.  The Gaussians
#: of the paper's figure 1c, which lose to the true similarity, reach it (0.983).
_ALIKE = 0.98

#: The largest numbers of ground sets, and of pairs of items, that are read.
_GROUND_SETS = 50
_PAIRS = 2_000_000


class AllAlikeWarning(UserWarning):
    """The learned similarity calls nearly all items alike."""


def warn_if_all_alike(
    kernel: Kernel, parameters: FloatArray, examples: Iterable[Example]
) -> None:
    """Warn if the similarity of the examples' items is nearly 1 throughout.

    A kernel without free parameters is the user's choice and gives no warning.
    """
    n_free = kernel.domain.size - isinstance(kernel.domain, Simplex)
    if n_free < 1:
        return
    least = _least_similarities(kernel, parameters, examples)
    if least and float(np.mean(least)) > _ALIKE:
        warnings.warn(
            "the learned similarity calls nearly all items alike (on average over "
            f"training ground sets, even the two least alike are above {_ALIKE:g}): "
            "whichever is chosen first stands for all, and further choices follow the "
            "quality of items and how many are wanted more than their diversity. Try "
            "kernel=Kinds(), narrower bandwidths, MultipleKernel(anchored=True), or "
            "similarity features that are centred",
            AllAlikeWarning,
            stacklevel=3,
        )


def _least_similarities(
    kernel: Kernel, parameters: FloatArray, examples: Iterable[Example]
) -> list[float]:
    """Return the smallest ``S_ij / √(S_ii S_jj)`` of each ground set, as a list.

    Ground sets that cannot teach diversity are left out: fewer than two items were
    wanted, or all.  Only the first are read, up to ``_GROUND_SETS`` and ``_PAIRS``.
    """
    least: list[float] = []
    n_pairs = 0
    for example in islice(examples, _GROUND_SETS):
        n_items = len(example.ground_set)
        if not 2 <= len(example.members) < n_items:
            continue
        n_pairs += n_items**2
        if n_pairs > _PAIRS:
            break
        S = kernel.value(kernel.prepare(example.ground_set), parameters)
        own = np.sqrt(np.diagonal(S))
        if (own > 0.0).all():
            least.append(float((S / own / own[:, None]).min()))
        else:  # an item of no size is like no other
            least.append(0.0)
    return least
