"""The tensors that public functions are given, checked and put into batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from variegate._typing import IntArray
from variegate.torch.targets import Targets


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
    """Kernels of ground sets of equal size, padding included."""

    kernel: Tensor  # (B, N, N) or features (B, N, D): ``S`` with qualities, or ``L``
    is_low_rank: bool  # whether they are features
    log_quality: Tensor | None = None  # (B, N) or None
    mask: Tensor | None = None  # boolean (B, N) or None
    subsets: Tensor | None = None  # boolean (B, N), item numbers (B, k), or None
    # (B, N): costs of errors, and of choosing an item
    false_positive: Tensor | None = None
    false_negative: Tensor | None = None
    costs: Tensor | None = None
    is_shared: bool = False  # whether all sets have one kernel

    @property
    def n_sets(self) -> int:
        """``B``."""
        return int(self.kernel.shape[0])

    @property
    def n_items(self) -> int:
        """``N``."""
        return int(self.kernel.shape[1])

    @property
    def largest_rank(self) -> int:
        """The most items that can have a positive probability together."""
        return int(min(self.kernel.shape[1:]))

    @property
    def device(self) -> torch.device:
        """The device of all tensors."""
        return self.kernel.device

    def targets(self, omega: float = 1.0) -> Targets:
        """Return the subsets and the costs of errors."""
        positive, negative = self.false_positive, self.false_negative
        assert self.subsets is not None
        return Targets(
            self.subsets,
            self.n_items,
            1.0 if positive is None else positive,
            omega if negative is None else negative,
            self.mask,
            self.kernel.dtype,
        )


@dataclass(frozen=True, eq=False)
class Collection:
    """All ground sets of a call, in batches of equal size."""

    batches: list[Kernels]
    dtype: torch.dtype  # the precision of the computation
    is_single: bool = False  # whether one set was given, without a batch axis
    # how sets given one after the other were put into batches
    layout: Layout | None = None

    def per_set(self, values: list[Tensor]) -> Tensor:
        """Put numbers of sets, a tensor for each batch, into the order of the sets."""
        return values[0] if self.layout is None else self.layout.per_set(values)

    def per_item(self, values: list[Tensor]) -> Tensor:
        """Put numbers of items, a tensor for each batch, into the form of the input."""
        if self.layout is not None:
            return self.layout.per_item(values)
        return values[0][0] if self.is_single else values[0]


_PER_ITEM = ("log_quality", "mask", "false_positive", "false_negative", "costs")


def as_collection(
    kernel: Tensor | LowRank,
    log_quality: Tensor | None = None,
    mask: Tensor | None = None,
    offsets: Sequence[int] | Tensor | None = None,
    subsets: Tensor | None = None,
    name: str = "targets",
    **costs: Any,
) -> Collection:
    """Check tensors and return them in batches, in single or double precision.

    ``name`` is the name of the subsets in messages; ``costs`` are ``false_positive``,
    ``false_negative`` and ``costs``.
    """
    is_low_rank = isinstance(kernel, LowRank)
    matrix: Any = kernel.features if isinstance(kernel, LowRank) else kernel
    _check_real("kernel", matrix, ", or LowRank")
    per_item = {"log_quality": log_quality, "mask": mask, **costs}
    for title, given in {**per_item, name: subsets}.items():
        if given is not None and not isinstance(given, Tensor):
            raise ValueError(f"{title} must be a tensor, got {type(given).__name__}")
    if mask is not None and mask.dtype != torch.bool:
        raise ValueError(
            f"mask must be boolean, True where there is an item; got {mask.dtype}"
        )
    if subsets is not None:
        _check_subsets(name, subsets)
    for title, given in {**per_item, name: subsets}.items():
        if given is not None and given.device != matrix.device:
            raise ValueError(
                f"{title} is on {given.device}, but the kernel on {matrix.device}"
            )
    is_double = matrix.dtype == torch.float64
    if log_quality is not None:
        _check_real("log_quality", log_quality)
        is_double = is_double or log_quality.dtype == torch.float64
        log_quality = log_quality.to(torch.float64 if is_double else torch.float32)
    matrix = matrix.to(torch.float64 if is_double else torch.float32)
    given_all = Kernels(matrix, is_low_rank, log_quality, mask, subsets, **costs)
    if offsets is not None:
        return _ragged(given_all, offsets, name)
    return _padded(given_all, name)


def _padded(given: Kernels, name: str) -> Collection:
    """Give every tensor a batch axis; one without is shared by all sets."""
    kernel, subsets = given.kernel, given.subsets
    if kernel.ndim not in (2, 3) or not (
        given.is_low_rank or kernel.shape[-1] == kernel.shape[-2]
    ):
        what, last = ("features", "D") if given.is_low_rank else ("kernel", "N")
        raise ValueError(
            f"{what} has shape {tuple(kernel.shape)}, expected (N, {last}) or "
            f"(B, N, {last})"
        )
    n_items = kernel.shape[-2]
    per_item = {title: getattr(given, title) for title in _PER_ITEM}
    if subsets is not None and subsets.dtype == torch.bool:
        per_item[name] = subsets
    for title, values in per_item.items():
        if values is not None and (
            values.ndim not in (1, 2) or values.shape[-1] != n_items
        ):
            raise ValueError(
                f"{title} has shape {tuple(values.shape)}, expected ({n_items},) or "
                f"(B, {n_items}): one entry for each item of the kernel"
            )
    sizes = {len(kernel)} if kernel.ndim == 3 else set()
    rows = (subsets, *per_item.values())
    sizes |= {len(given) for given in rows if given is not None and given.ndim == 2}
    if len(sizes) > 1:
        raise ValueError(
            "the kernel and the tensors that go with it differ in the number of sets: "
            f"{', '.join(map(str, sorted(sizes)))}"
        )
    n_sets = next(iter(sizes), 1)
    shared: dict[str, Any] = {
        title: values.expand(n_sets, -1)
        for title in (*_PER_ITEM, "subsets")
        if (values := getattr(given, title)) is not None and values.ndim == 1
    }
    if kernel.ndim == 2:
        shared |= {"kernel": kernel.expand(n_sets, -1, -1), "is_shared": True}
    return Collection([replace(given, **shared)], kernel.dtype, is_single=not sizes)


def _ragged(given: Kernels, offsets: Sequence[int] | Tensor, name: str) -> Collection:
    """Put sets that lie one after the other into batches of like sizes."""
    if given.mask is not None:
        raise ValueError("with offsets there is no padding, and no mask")
    layout = Layout.of(offsets, given.device)
    n_sets, n_items = len(layout.sizes), int(layout.sizes.sum())
    kernel, subsets = given.kernel, given.subsets
    n_pairs = int((layout.sizes**2).sum())
    n_axes, n_rows = (2, n_items) if given.is_low_rank else (1, n_pairs)
    if kernel.ndim != n_axes or len(kernel) != n_rows:
        expected = f"({n_rows}, D)" if given.is_low_rank else f"({n_rows},)"
        raise ValueError(
            f"with these offsets the kernel has shape {tuple(kernel.shape)}, expected "
            f"{expected}"
        )
    flat = {title: getattr(given, title) for title in _PER_ITEM if title != "mask"}
    if subsets is not None and (subsets.ndim == 1 or subsets.dtype == torch.bool):
        if subsets.dtype != torch.bool:
            raise ValueError(
                f"with offsets, item numbers in {name} need one row for each set"
            )
        flat["subsets"] = subsets
    elif subsets is not None and len(subsets) != n_sets:
        raise ValueError(f"{name} has {len(subsets)} rows, but there are {n_sets} sets")
    for title, values in flat.items():
        if values is not None and values.shape != (n_items,):
            title = name if title == "subsets" else title
            raise ValueError(
                f"with these offsets {title} has shape {tuple(values.shape)}, expected "
                f"({n_items},)"
            )
    batches = []
    for group in layout.groups:
        parts: dict[str, Any] = {
            title: None if values is None else group.items(values)
            for title, values in flat.items()
        }
        if subsets is not None and "subsets" not in flat:
            parts["subsets"] = subsets[group.positions]
        elif subsets is not None and group.mask is not None:
            parts["subsets"] = parts["subsets"] & group.mask
        values = group.items(kernel) if given.is_low_rank else group.pairs(kernel)
        batches.append(replace(given, kernel=values, mask=group.mask, **parts))
    return Collection(batches, kernel.dtype, layout=layout)


def _check_real(title: str, values: Any, others: str = "") -> None:
    if not isinstance(values, Tensor) or not values.is_floating_point():
        found = getattr(values, "dtype", type(values).__name__)
        raise ValueError(
            f"{title} must be a tensor of real numbers{others}; got {found}"
        )


def _check_subsets(name: str, subsets: Tensor) -> None:
    """Refuse subsets that are neither boolean nor item numbers."""
    if subsets.is_floating_point() or subsets.is_complex():
        raise ValueError(
            f"{name} must be boolean, or item numbers padded with -1; got "
            f"{subsets.dtype}"
        )
    if subsets.ndim not in (1, 2):
        raise ValueError(
            f"{name} has shape {tuple(subsets.shape)}, expected one row of items a set"
        )


# Sets one after the other ---------------------------------------------------------


class SizeGroup(NamedTuple):
    """Sets of like sizes."""

    width: int  # items of the largest
    positions: Tensor  # (b,): their places among all sets
    # (b,): where the items of each begin, and the entries of its matrix
    starts: Tensor
    pair_starts: Tensor
    sizes: Tensor  # (b,)
    mask: Tensor | None  # boolean (b, width): true at items; None without padding

    def items(self, values: Tensor) -> Tensor:
        """Return values (total, ...) of items as (b, width, ...)."""
        item = torch.arange(self.width, device=values.device)
        return _taken(values, self.starts[:, None] + item)

    def pairs(self, values: Tensor) -> Tensor:
        """Return entries (total,) of matrices as (b, width, width)."""
        item = torch.arange(self.width, device=values.device)
        entry = item[:, None] * self.sizes[:, None, None] + item
        return _taken(values, self.pair_starts[:, None, None] + entry)


def _taken(values: Tensor, index: Tensor) -> Tensor:
    """Take rows; for padding, the rows that come next, so that none is taken often."""
    rows = values.index_select(0, index.reshape(-1).clamp_(max=len(values) - 1))
    return rows.view(*index.shape, *values.shape[1:])


@dataclass(frozen=True, eq=False)
class Layout:
    """Groups of like sizes of sets that lie one after the other.

    Sets are padded to the largest of their group: at most an eighth of a row is
    padding, or seven items.
    """

    sizes: IntArray  # (B,)
    groups: list[SizeGroup]
    order: IntArray  # (B,): the set at each place, groups one after the other
    device: torch.device

    @classmethod
    def of(cls, offsets: Sequence[int] | Tensor, device: torch.device) -> Layout:
        """Group the sets between ``offsets`` (B + 1)."""
        ends = _checked_offsets(offsets)
        sizes = np.diff(ends)
        pair_ends = np.concatenate([[0], np.cumsum(sizes**2)])
        # Multiples of an eighth of the size, or of eight.
        exponents = np.frexp(sizes.astype(np.float64))[1]
        steps = np.maximum(8, 2 ** (np.maximum(exponents, 4) - 4))
        classes = -(-sizes // steps) * steps
        order = np.argsort(classes, kind="stable")
        made = cls(sizes, [], order, device)
        cuts = np.flatnonzero(np.diff(classes[order])) + 1
        for places in np.split(order, cuts) if len(order) else ():
            own, width = sizes[places], int(sizes[places].max())
            numbers = (places, ends[places], pair_ends[places], own)
            place, start, pair_start, size = map(made._sent, numbers)
            mask = None
            if (own < width).any():
                mask = torch.arange(width, device=device) < size[:, None]
            group = SizeGroup(width, place, start, pair_start, size, mask)
            made.groups.append(group)
        return made

    def per_set(self, values: list[Tensor]) -> Tensor:
        """Put values of the sets, a tensor (b,) for each group, in their order."""
        if not values:
            return torch.zeros(0, device=self.device)
        return torch.cat(values).index_select(0, self._sent(np.argsort(self.order)))

    def per_item(self, values: list[Tensor]) -> Tensor:
        """Put values of items, (b, width) for each group, one after the other."""
        if not values:
            return torch.zeros(0, device=self.device)
        widths = np.concatenate([[part.shape[1]] * len(part) for part in values])
        starts = np.empty_like(self.order)
        starts[self.order] = np.cumsum(widths) - widths
        firsts = np.cumsum(self.sizes) - self.sizes
        place = np.arange(self.sizes.sum()) + np.repeat(starts - firsts, self.sizes)
        flat = torch.cat([part.reshape(-1) for part in values])
        return flat.index_select(0, self._sent(place))

    def _sent(self, numbers: IntArray) -> Tensor:
        return torch.from_numpy(numbers).to(self.device, non_blocking=True)


def _checked_offsets(offsets: Any) -> IntArray:
    """Return offsets as numbers on the host."""
    if isinstance(offsets, Tensor):
        if offsets.device.type != "cpu":
            raise ValueError(
                "offsets must be a list or a tensor on the CPU: the sizes of the sets "
                "decide what is computed, and a tensor on a GPU must be waited for"
            )
        offsets = offsets.numpy()
    ends = np.asarray(offsets)
    if ends.ndim != 1 or len(ends) == 0 or ends.dtype.kind not in "iu":
        raise ValueError(
            "offsets must be whole numbers: where each set begins, and the last ends"
        )
    ends = ends.astype(np.int64)
    if ends[0] != 0 or (np.diff(ends) < 0).any():
        raise ValueError("offsets must begin with 0 and never decrease")
    return ends
