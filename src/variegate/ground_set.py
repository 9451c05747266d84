"""Ground sets: the items that a subset is chosen from, with their features."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np

from variegate._typing import FloatArray, IntArray
from variegate._validation import check_real
from variegate.subsets import as_members

__all__ = [
    "GroundSet",
    "GroundSetError",
    "ValidationError",
    "check_costs",
    "check_error_costs",
    "check_ground_sets",
    "check_same_features",
    "check_subset",
    "check_subsets",
    "join_ground_sets",
    "map_positions_in_errors",
    "name_position_in_errors",
]

#: Items and features that a notebook shows.
_SHOWN_ITEMS = 5
_SHOWN_FEATURES = 6

_NO_ITEMS: IntArray = np.zeros(0, dtype=np.intp)
_NO_ITEMS.flags.writeable = False


class GroundSet:
    """The items to choose from, as quality and similarity features.

    Parameters
    ----------
    quality : array of shape (N, d)
        Features ``x_i`` of the quality ``q_i = exp(θᵀ x_i + b)``.
    similarity : array or CSR matrix of shape (N, p), mapping of such, or None
        Features ``φ_i`` of the similarity.  A mapping from names to matrices holds
        several kinds of features at once ("blocks"), for kernels that name the block
        they read.  ``None``: the quality features serve both purposes.  For the
        ``Precomputed`` kernel, the ``N x N`` similarity itself.
    costs : array of shape (N,), optional
        The cost of each item, for choosing under a budget; positive.
    items : sequence of length N, optional
        Names of the rows (sentences, file names, identifiers), never interpreted.
    given : item numbers or boolean mask, optional
        Items that are there already, such as the first page of results.  A subset is
        chosen from the other items, the candidates, so that it is diverse beside the
        given ones.  Given items are never chosen, and their quality has no effect.

    Attributes
    ----------
    quality : read-only array of shape (N, d)
    blocks : dict from block name to features
        The single block of an unnamed ``similarity`` is called ``""``.
    given, candidates : read-only arrays of sorted item numbers
        Together, all items.
    costs, items : the arguments of these names

    Examples
    --------
    >>> import numpy as np
    >>> import variegate as vg
    >>> gs = vg.GroundSet(quality=np.eye(3), items=["a", "b", "c"])
    >>> len(gs), gs.n_features
    (3, 3)
    """

    def __init__(
        self,
        quality: Any,
        similarity: Any = None,
        costs: Any = None,
        items: Sequence[Any] | None = None,
        given: Any = (),
    ) -> None:
        self.quality: FloatArray = _feature_matrix(
            quality, "quality", allow_sparse=False
        )
        n_items, n_features = self.quality.shape
        if n_items == 0:
            raise ValueError("a ground set needs at least one item, got none")
        if n_features == 0:
            raise ValueError(
                "quality has no columns: give one of ones if all items are equally good"
            )
        self.blocks = _similarity_blocks(similarity, self.quality)
        self.costs: FloatArray | None = (
            None if costs is None else check_costs(costs, n_items)
        )
        if items is not None and not hasattr(items, "__len__"):
            raise ValueError(f"items must be a sequence, got {items!r}")
        if items is not None and len(items) != n_items:
            raise ValueError(f"{len(items)} items for {n_items} rows of quality")
        self.items = items
        self.given = _given_items(given, n_items)

    @classmethod
    def from_checked_arrays(
        cls,
        quality: FloatArray,
        blocks: dict[str, FloatArray] | None = None,
        costs: FloatArray | None = None,
        given: IntArray | None = None,
    ) -> GroundSet:
        """Return a ground set of arrays that the caller has checked, without copies.

        The matrices hold finite numbers and become read-only; without blocks, the
        quality features serve both purposes.  ``given`` are sorted item numbers.
        """
        made = cls.__new__(cls)
        made.quality = quality
        made.blocks = {"": quality} if blocks is None else blocks
        for matrix in (quality, *made.blocks.values()):
            if isinstance(matrix, np.ndarray):
                matrix.flags.writeable = False
        made.costs, made.items = costs, None
        made.given = _NO_ITEMS if given is None else given
        return made

    def __len__(self) -> int:
        return len(self.quality)

    def __repr__(self) -> str:
        blocks = ", ".join(
            f"{name or 'similarity'}: {matrix.shape[1]}"
            for name, matrix in self.blocks.items()
        )
        given = f", {len(self.given)} given" if len(self.given) else ""
        return (
            f"<GroundSet: {len(self)} items{given}, quality: {self.n_features}, "
            f"{blocks}>"
        )

    def _repr_html_(self) -> str:
        """Return the sizes and the first rows of the features as HTML."""
        from variegate.report.notebook import (
            format_number,
            hidden_rows_note,
            html_card,
            html_table,
        )

        facts = {"quality": f"{self.n_features:,} features"}
        for name, matrix in self.blocks.items():
            facts[name or "similarity"] = f"{matrix.shape[1]:,} features"
        if self.costs is not None:
            least, largest = self.costs.min(), self.costs.max()
            facts["costs"] = f"{format_number(least)} to {format_number(largest)}"
        if len(self.given):
            facts["given"] = f"{len(self.given):,} items"
        shown = self.quality[:_SHOWN_ITEMS, :_SHOWN_FEATURES]
        names = range(len(self)) if self.items is None else self.items
        rows = [
            [str(names[i]), *map(format_number, values.tolist())]
            for i, values in enumerate(shown)
        ]
        heads = ["item", *(f"quality {j}" for j in range(shown.shape[1]))]
        note = hidden_rows_note(len(shown), len(self), "items")
        title = f"Ground set of {len(self):,} items"
        return html_card(title, facts, html_table(heads, rows, note))

    @property
    def candidates(self) -> IntArray:
        """The sorted numbers of the items that are not given."""
        is_candidate = np.ones(len(self), dtype=bool)
        is_candidate[self.given] = False
        return np.flatnonzero(is_candidate)

    def take(self, items: Any, given: Any = ()) -> GroundSet:
        """Return the ground set of some items, in this order.

        ``given`` are positions in ``items``, or a mask over them.
        """
        items = np.asarray(items, dtype=np.intp)
        taken = GroundSet.from_checked_arrays(
            self.quality[items],
            {name: block[items] for name, block in self.blocks.items()},
            None if self.costs is None else self.costs[items],
            _given_items(given, len(items)),
        )
        if self.items is not None:
            taken.items = [self.items[item] for item in items]
        return taken

    @property
    def candidate_quality(self) -> FloatArray:
        """The quality features of the candidates, a view if nothing is given."""
        return self.quality[self.candidates] if len(self.given) else self.quality

    @property
    def similarity(self) -> Any:
        """The similarity features, a matrix or a dict of named blocks."""
        return self.blocks[""] if list(self.blocks) == [""] else self.blocks

    @property
    def n_features(self) -> int:
        """The number of quality features."""
        return int(self.quality.shape[1])

    def features(self, block: str | None = None) -> Any:
        """Return features (N, p), dense or CSR, of a block; None is the only one."""
        if block is None:
            if len(self.blocks) == 1:
                return next(iter(self.blocks.values()))
            raise ValueError(
                f"the similarity features have the blocks {_quote_names(self.blocks)}: "
                "name the one that the kernel reads, as in Gaussian(1.0, block=...)"
            )
        if block not in self.blocks:
            known = _quote_names(self.blocks)
            if list(self.blocks) == [""]:
                known = "none (its similarity features were given without a name)"
            raise ValueError(
                f"no block {block!r} of similarity features; "
                f"this ground set has {known}"
            )
        return self.blocks[block]


def _quote_names(blocks: Mapping[str, Any]) -> str:
    """Return the names of blocks, quoted and joined by commas, for a message."""
    return ", ".join(repr(name) for name in blocks)


def _similarity_blocks(similarity: Any, quality: FloatArray) -> dict[str, Any]:
    """Return checked similarity features by block, ``{"": quality}`` for None."""
    if similarity is None:
        return {"": quality}
    if not isinstance(similarity, Mapping):
        similarity = {"": similarity}
    elif not similarity:
        raise ValueError("similarity is an empty mapping: give at least one block")
    blocks: dict[str, Any] = {}
    for name, features in similarity.items():
        label = f"similarity[{name!r}]" if name else "similarity"
        matrix = _feature_matrix(features, label, allow_sparse=True)
        if matrix.shape[0] != len(quality):
            raise ValueError(
                f"{label} has {matrix.shape[0]} rows but quality has {len(quality)}: "
                "both need one row an item"
            )
        if str(name) in blocks:
            raise ValueError(f"two blocks of similarity are called {str(name)!r}")
        blocks[str(name)] = matrix
    return blocks


def _feature_matrix(values: Any, label: str, *, allow_sparse: bool) -> Any:
    """Return a checked, read-only copy of ``values``, float; a sparse one as CSR."""
    from scipy import sparse

    if sparse.issparse(values):
        if not allow_sparse:
            raise ValueError(f"{label} must be a dense array; use .toarray() on it")
        check_real(label, values)
        matrix = sparse.csr_array(values, dtype=np.float64, copy=True)
        if not np.isfinite(matrix.data).all():
            raise ValueError(f"{label} holds NaN or infinite values")
        return matrix
    try:
        if np.iscomplexobj(values):
            raise ValueError("it holds complex numbers")
        # A copy, so that the caller cannot change checked values later.
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{label} must be a numeric matrix with rows of equal length ({error})"
        ) from error
    if array.ndim != 2:
        raise ValueError(
            f"{label} must be a matrix with one row an item, got {array.ndim} "
            f"dimension{'s' * (array.ndim != 1)}"
        )
    bad = ~np.isfinite(array)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise ValueError(
            f"{label} holds {array[row, column]} at row {row}, column {column}: "
            "features must be finite"
        )
    array.flags.writeable = False
    return array


def join_ground_sets(ground_sets: Sequence[GroundSet], given: Any = ()) -> GroundSet:
    """Return one ground set of the items of several, which have the same features.

    ``given`` are item numbers in the result; items that a ground set holds as given are
    given in it too.  Costs and names of items are left out.
    """
    from scipy import sparse

    first = ground_sets[0]
    for ground_set in ground_sets[1:]:
        check_same_features(ground_set, first)
    blocks = {}
    for name in first.blocks:
        parts = [ground_set.blocks[name] for ground_set in ground_sets]
        is_sparse = any(map(sparse.issparse, parts))
        stack = sparse.vstack if is_sparse else np.concatenate
        blocks[name] = sparse.csr_array(stack(parts)) if is_sparse else stack(parts)
    starts = np.cumsum([0, *map(len, ground_sets)])
    numbers = [
        one.given + start for one, start in zip(ground_sets, starts, strict=False)
    ]
    is_given = np.zeros(starts[-1], dtype=bool)
    is_given[np.concatenate([*numbers, np.asarray(given, dtype=np.intp)])] = True
    quality = np.concatenate([ground_set.quality for ground_set in ground_sets])
    return GroundSet.from_checked_arrays(
        quality, blocks, given=_given_items(is_given, len(quality))
    )


def _given_items(given: Any, n_items: int) -> IntArray:
    """Return given items as a read-only array of numbers, at most ``n_items - 1``."""
    try:
        members = as_members(given, n_items)
    except ValueError as error:
        raise ValueError(f"given: {error}") from error
    if len(members) == n_items:
        raise ValueError(
            f"all {n_items} items are given: leave at least one to choose from"
        )
    members.flags.writeable = False
    return members


def name_items(given: Sequence[int] | IntArray) -> str:
    """Return "given items 0, 3 and 7" for a message; of many, the first ten."""
    numbers = [str(item) for item in given[:10]]
    if len(given) > 10:
        numbers.append(f"{len(given) - 10} more")
    *first, last = numbers
    names = f"{', '.join(first)} and {last}" if first else last
    return f"given item{'s' * (len(given) > 1)} {names}"


def check_costs(values: Any, n_items: int) -> FloatArray:
    """Return positive costs of items as a read-only array of length ``n_items``."""
    check_real("costs", values)
    costs = np.array(values, dtype=np.float64)
    if costs.shape != (n_items,):
        raise ValueError(f"costs has shape {costs.shape}, expected ({n_items},)")
    if not (np.isfinite(costs) & (costs > 0)).all():
        item = int(np.flatnonzero(~(np.isfinite(costs) & (costs > 0)))[0])
        raise ValueError(
            f"costs must be positive and finite, item {item} costs {costs[item]}"
        )
    costs.flags.writeable = False
    return costs


def check_error_costs(costs: Any, n_items: int, name: str) -> FloatArray:
    """Return costs of errors called ``name``, at least 0, as an array (n_items,)."""
    check_real(name, costs)
    array = np.asarray(costs, dtype=np.float64)
    if array.shape != (n_items,):
        raise ValueError(f"{name} has shape {array.shape}, expected ({n_items},)")
    if not (np.isfinite(array) & (array >= 0)).all():
        raise ValueError(f"{name} must be finite and not negative")
    return array


class GroundSetError(ValueError):
    """One ground set of several is invalid.

    Parameters
    ----------
    position : int
        The position of the ground set in the list.
    problem : str
        The message without the position.
    """

    def __init__(self, position: int, problem: str) -> None:
        super().__init__(int(position), problem)
        self.position = int(position)
        self.problem = problem

    def __str__(self) -> str:
        return f"ground set {self.position}: {self.problem}"

    def at(self, position: int) -> Self:
        """Return the error with the same problem at another position."""
        return type(self)(position, self.problem)


class ValidationError(GroundSetError):
    """A held-out ground set is invalid."""

    def __str__(self) -> str:
        return f"validation: {super().__str__()}"


@contextmanager
def name_position_in_errors(position: int) -> Iterator[None]:
    """Raise ValueErrors in the block as errors of the ground set at a position."""
    try:
        yield
    except GroundSetError as error:
        raise error.at(position) from error
    except ValueError as error:
        raise GroundSetError(position, str(error)) from error


@contextmanager
def map_positions_in_errors(positions: Sequence[int] | IntArray) -> Iterator[None]:
    """Replace position ``k`` in errors of ground sets by ``positions[k]``."""
    try:
        yield
    except GroundSetError as error:
        raise error.at(positions[error.position]) from error


def check_ground_sets(ground_sets: Any) -> list[GroundSet]:
    """Return a checked list of ground sets with the same features.

    A bare feature matrix stands for ``GroundSet(matrix)``; errors name a position.
    """
    if isinstance(ground_sets, GroundSet):
        raise ValueError(
            "expected a list of ground sets, got a single one: wrap it in a list"
        )
    if not isinstance(ground_sets, Iterable) or isinstance(ground_sets, str | bytes):
        raise ValueError(f"expected a list of ground sets, got {ground_sets!r}")
    if isinstance(ground_sets, np.ndarray) and ground_sets.ndim == 2:
        raise ValueError(
            "expected a list of ground sets, got a single matrix: wrap it in a list"
        )
    checked: list[GroundSet] = []
    for position, ground_set in enumerate(ground_sets):
        if not isinstance(ground_set, GroundSet):
            with name_position_in_errors(position):
                ground_set = GroundSet(ground_set)
        if checked:
            with name_position_in_errors(position):
                check_same_features(ground_set, checked[0])
        checked.append(ground_set)
    if not checked:
        raise ValueError("the list of ground sets is empty")
    return checked


def check_same_features(ground_set: GroundSet, first: GroundSet) -> None:
    """Raise ValueError unless numbers and blocks of features are those of ``first``."""
    if ground_set.n_features != first.n_features:
        raise ValueError(
            f"it has {ground_set.n_features} quality features but the first has "
            f"{first.n_features}: all ground sets need the same ones"
        )
    if ground_set.blocks.keys() != first.blocks.keys():
        raise ValueError(
            f"it has the similarity blocks {_quote_names(ground_set.blocks)} "
            f"but the first has {_quote_names(first.blocks)}"
        )


def check_subsets(
    subsets: Any, ground_sets: Sequence[GroundSet], name: str = "subsets"
) -> list[IntArray]:
    """Return the subset of each ground set as sorted item numbers, checked.

    ``subsets`` are item numbers or masks, one for each; ValueErrors call them ``name``.
    """
    if not hasattr(subsets, "__len__"):
        raise ValueError(f"expected a list of {name}, got {subsets!r}")
    if len(subsets) and np.ndim(next(iter(subsets))) == 0:
        raise ValueError(
            f"expected a list of {name}, one for each ground set, got a single one: "
            "wrap it in a list"
        )
    if len(subsets) != len(ground_sets):
        raise ValueError(
            f"{len(subsets)} {name} for {len(ground_sets)} ground sets: "
            "each ground set needs one"
        )
    members = []
    for position, subset in enumerate(subsets):
        with name_position_in_errors(position):
            members.append(check_subset(subset, ground_sets[position]))
    return members


def check_subset(subset: Any, ground_set: GroundSet) -> IntArray:
    """Return a subset of the candidates as sorted item numbers, checked.

    ``subset`` holds item numbers or is a boolean mask over all items.
    """
    members = as_members(subset, len(ground_set))
    both = np.intersect1d(members, ground_set.given)
    if len(both):
        raise ValueError(
            f"item {both[0]} is both given and in the subset: a subset holds the items "
            "that were chosen beside the given ones"
        )
    return members
