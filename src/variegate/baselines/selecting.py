"""Choose items without learning, within a budget if any: ``variegate.select``."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, Literal

import numpy as np

from variegate._random import as_generator
from variegate._typing import BoolArray, FloatArray, IntArray, RandomState, SubsetLike
from variegate._validation import check_choice, check_count, check_real
from variegate.baselines.methods import METHODS, Items
from variegate.decoding import Constraint
from variegate.linalg.cosine import chunks, unit_rows
from variegate.subsets import as_members

#: Methods whose first choices do not depend on how many are asked for.
_ONE_BY_ONE = ("dpp", "mmr", "max-min", "top")

#: How many items are chosen by default.
_DEFAULT_K = 10


def select(
    embeddings: Any,
    relevance: Any = None,
    k: int | None = None,
    method: str = "dpp",
    *,
    trade_off: float = 0.5,
    budget: float | None = None,
    costs: Any = None,
    include: SubsetLike = (),
    exclude: SubsetLike = (),
    order: Literal["importance", "number"] = "importance",
    random_state: RandomState = None,
) -> IntArray:
    """Choose items that are relevant and unlike each other, without learning.

    :mod:`variegate.baselines.methods` says what each method maximizes.

    Parameters
    ----------
    embeddings : array of shape (N, D)
        One row an item; only directions matter.  A row of zeros is like nothing.
    relevance : array of shape (N,), optional
        Any finite numbers, larger is better; shift and scale make no difference.  All
        equal if not given.
    k : int, optional
        How many; all, if there are no more.  By default 10, or with a budget as many
        as it has room for.
    method : str, default="dpp"
        "dpp", "mmr", "facility-location", "k-medoids", "max-min", "top" or "random".
    trade_off : float, default=0.5
        From 0 (relevance only) to 1 (diversity only).  For "k-medoids" it acts within
        each cluster.  "top", "max-min" and "random" have none and ignore it.
    budget : float, optional
        The most that the chosen items may cost together, such as tokens of a prompt.
        Items are taken in the order of the method; items that do not fit are skipped.
    costs : array of shape (N,), optional
        The cost of each item, with a budget; all 1 if not given.
    include, exclude : item numbers or boolean mask, optional
        Items that are chosen in any case, and that the others are to be unlike; items
        that are never chosen.  The included count in ``k`` and in the budget.
    order : {"importance", "number"}, default="importance"
        The included first, then the others in order of choice; or sorted by number.
    random_state : None, int or numpy.random.Generator
        Used by "k-medoids" and "random"; the others involve no chance.

    Returns
    -------
    array of int
        Item numbers; in order of importance, those of "k-medoids" are that of the
        largest cluster first.  Ties go to the smaller number (in "k-medoids" to the
        more relevant item first).

    Notes
    -----
    "dpp" can choose no more items than the embeddings have dimensions that are in use
    (the rank).  If ``k`` is larger, the most relevant of the other items follow, rows
    of zeros last.  With ``trade_off=0`` it is "top".

    "mmr" and "max-min" start at the most relevant item.  Copies of chosen items come
    after all others, in "dpp" because they add nothing, in "mmr" by a rule.

    No N x N matrix is made.  "facility-location" looks at all pairs and takes at most
    20,000 items.

    Examples
    --------
    >>> import numpy as np
    >>> from variegate.baselines import select
    >>> articles = np.array([[1.0, 0.1], [1.0, 0.0], [0.1, 1.0]])
    >>> select(articles, [3.0, 2.9, 1.0], k=2, method="top")
    array([0, 1])
    >>> select(articles, [3.0, 2.9, 1.0], k=2)  # the second is nearly the first again
    array([0, 2])
    >>> select(articles, [3.0, 2.9, 1.0], budget=500, costs=[450, 300, 200])
    array([0])
    """
    check_choice("method", method, METHODS)
    if order not in ("importance", "number"):
        raise ValueError(f"order must be 'importance' or 'number', got {order!r}")
    is_number = isinstance(trade_off, Real) and not isinstance(trade_off, bool)
    if not is_number or not 0.0 <= trade_off <= 1.0:
        raise ValueError(
            "trade_off must be a number from 0 (relevance only) to 1 (diversity only), "
            f"got {trade_off!r}"
        )
    rng = as_generator(random_state)
    F = _unit_rows(embeddings)
    relevant = _relevance(relevance, len(F))
    included, allowed = _in_and_out(include, exclude, len(F))
    if budget is None and costs is not None:
        raise ValueError("costs were given without a budget")
    limit = None if budget is None else Constraint.of(len(F), None, budget, costs)
    count = _count(k, budget, len(F), included)
    if limit is not None:
        allowed &= _room(limit, included)
    places = np.flatnonzero(allowed)
    items = Items(
        F if len(places) == len(F) else F[places],
        _standardized(relevant[places]),
        np.searchsorted(places, included),
        float(trade_off),
        rng,
    )

    def more(wanted: int) -> IntArray:
        """Return the included items and ``wanted`` more."""
        if wanted == 0:
            return included
        return np.concatenate([included, places[METHODS[method](items, wanted)]])

    others = places[items.is_open()]
    if limit is None:
        chosen = more(min(count - len(included), len(others)))
    else:
        chosen = _within(limit, count, included, others, more, method in _ONE_BY_ONE)
    return chosen if order == "importance" else np.sort(chosen)


def _in_and_out(
    include: SubsetLike, exclude: SubsetLike, n_items: int
) -> tuple[IntArray, BoolArray]:
    """Return the included items, and a mask of those not excluded."""
    members = []
    for name, subset in (("include", include), ("exclude", exclude)):
        try:
            members.append(as_members(subset, n_items))
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    included, excluded = members
    both = np.intersect1d(included, excluded)
    if len(both):
        raise ValueError(f"item {both[0]} is to be included and excluded")
    return included, ~np.isin(np.arange(n_items), excluded)


def _count(
    k: int | None, budget: float | None, n_items: int, included: IntArray
) -> int:
    """Return how many items are to be chosen at most."""
    if k is None:
        return n_items if budget is not None else max(_DEFAULT_K, len(included))
    check_count("k", k)
    if k < len(included):
        raise ValueError(f"k is {k}, but {len(included)} items are to be included")
    return int(k)


def _room(limit: Constraint, included: IntArray) -> BoolArray:
    """Return the included items and those affordable beside them, as a mask."""
    spent = float(limit.costs[included].sum())
    if not limit.affords(spent):
        raise ValueError(
            f"the included items cost {spent:g}, more than the budget {limit.budget:g}"
        )
    affordable = np.asarray(limit.affords(spent + limit.costs))
    affordable[included] = True
    return affordable


def _within(
    limit: Constraint,
    k: int,
    included: IntArray,
    others: IntArray,
    more: Callable[[int], IntArray],
    is_one_by_one: bool,
) -> IntArray:
    """Return items that fit the budget together, in the order of the method.

    Starts from the number of items that the budget affords on average; methods that
    choose one by one then choose more, until no item is left.
    """
    costs = limit.costs
    room = limit.largest_cost() - float(costs[included].sum())
    if len(others) == 0:
        return included
    wanted = int(np.clip(room / costs[others].mean(), 1, len(others)))
    while True:
        asked = more(wanted)
        taken = _filled(asked, k, limit)
        rest = np.setdiff1d(others, asked)
        if not (is_one_by_one and len(taken) < k and len(rest)):
            return taken
        if not limit.affords(costs[taken].sum() + costs[rest].min()):
            return taken
        wanted = min(2 * wanted, len(others))


def _filled(order: IntArray, k: int, limit: Constraint) -> IntArray:
    taken: list[int] = []
    spent = 0.0
    for item in order.tolist():
        if len(taken) < k and limit.affords(spent + limit.costs[item]):
            spent += float(limit.costs[item])
            taken.append(item)
    return np.array(taken, dtype=np.intp)


def _numbers(name: str, values: Any) -> FloatArray:
    check_real(name, values)
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of numbers: {error}") from None


def _unit_rows(embeddings: Any) -> FloatArray:
    array = _numbers("embeddings", embeddings)
    if array.ndim != 2 or len(array) == 0:
        raise ValueError(
            f"embeddings must be a matrix with one row an item, got shape {array.shape}"
        )
    F = np.empty(array.shape)
    for rows in chunks(len(array)):
        if len(bad := np.flatnonzero(~np.isfinite(array[rows]).all(axis=1))):
            raise ValueError(
                "embeddings holds NaN or infinite values in row "
                f"{rows.start + bad[0]}: drop or fill such rows"
            )
        F[rows] = unit_rows(array[rows])
    return F


def _relevance(relevance: Any, n_items: int) -> FloatArray:
    if relevance is None:
        return np.zeros(n_items)
    array = _numbers("relevance", relevance)
    if array.shape != (n_items,):
        raise ValueError(
            f"relevance has shape {array.shape}, expected ({n_items},): one number for "
            "each row of embeddings"
        )
    if len(bad := np.flatnonzero(~np.isfinite(array))):
        raise ValueError(
            f"relevance of item {bad[0]} is {array[bad[0]]}: give every item a finite "
            "number"
        )
    return array


def _standardized(relevance: FloatArray) -> FloatArray:
    if len(relevance) == 0 or relevance.min() == relevance.max():
        # The mean of equal numbers need not be that number.
        return np.zeros(len(relevance))
    array = relevance / np.abs(relevance).max()
    array = array - array.mean()
    array = array / np.abs(array).max()
    return np.asarray(array / array.std())
