"""Choose items without learning, within a budget if any: ``variegate.select``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Real
from typing import Any, Literal

import numpy as np

from variegate._random import as_generator
from variegate._typing import BoolArray, IntArray, RandomState, SubsetLike
from variegate._validation import check_choice, check_count
from variegate.baselines.inputs import check_embeddings, check_relevance
from variegate.baselines.items import Items
from variegate.baselines.methods import METHODS
from variegate.baselines.redundancy import find_copies
from variegate.baselines.units import in_units, n_competing
from variegate.decoding import Constraint
from variegate.decoding.base import check_size
from variegate.subsets import as_members

#: Methods whose first choices do not depend on how many are asked for.
_ONE_BY_ONE = ("dpp", "mmr", "max-min", "top")

#: The number of items chosen by default.
_DEFAULT_K = 10


def select(
    embeddings: Any,
    relevance: Any = None,
    k: int | None = None,
    method: str = "dpp",
    *,
    diversity: float = 0.5,
    budget: float | None = None,
    costs: Any = None,
    include: SubsetLike = (),
    exclude: SubsetLike = (),
    order: Literal["importance", "number"] = "importance",
    random_state: RandomState = None,
    at_most: Any = None,
    per: Any = None,
    given: Any = None,
) -> IntArray:
    """Choose items that are relevant and unlike each other, without learning.

    :mod:`variegate.baselines.methods` says what each method maximizes.

    Parameters
    ----------
    embeddings : array or SciPy sparse array of shape (N, D)
        One row an item; only directions matter.  A row of zeros is like nothing.
    relevance : array of shape (N,), optional
        Any finite numbers, larger is better; all equal if not given.  Their unit is
        the range of the items that compete for the ``k`` places: the 40 most relevant
        ones (80 for more than 20 places, 160 for more than 40, and so on), without near
        copies.  So neither shift and scale nor the number of irrelevant candidates
        makes a difference.
    k : int, optional
        How many; all, if there are no more.  By default 10, or with a budget as many
        as it has room for.
    method : str, default="dpp"
        "dpp", "mmr", "facility-location", "k-medoids", "max-min", "top" or "random".
    diversity : float, default=0.5
        From 0 (relevance only) to 1 (diversity only).  For "k-medoids" it acts within
        each cluster.  "top", "max-min" and "random" have none and ignore it.
    budget : float, optional
        The most that the chosen items may cost together, such as tokens of a prompt.
        Items are taken in the order of the method; items that do not fit are skipped.
    costs : array of shape (N,), optional
        The cost of each item, with a budget.
    include, exclude : item numbers or boolean mask, optional
        Items that are chosen in any case, and that the others are to be unlike; items
        that are never chosen.  The included count in ``k`` and in the budget.
    order : {"importance", "number"}, default="importance"
        The included first, then the others in order of choice; or sorted by number.
    random_state : None, int or numpy.random.Generator
        Used by "k-medoids" and "random"; the others involve no chance.
    at_most : int or sequence of int, optional
        Choose at most this many items with the same label.  A ``k`` that this rules out
        is an error; without ``k`` fewer are chosen.  The included items count.
    per : array of shape (N,) or sequence of arrays, optional
        The label of every item, such as its source: any hashable values.  Several
        limits have as many arrays: ``at_most=(2, 3), per=(brands, authors)``.
    given : array or SciPy sparse array of shape (M, D) or (D,), optional
        Embeddings of items that are there already, such as the first page of results
        or the documents of a prompt, for choices that do not repeat them.  They are not
        candidates, and count neither in ``k`` nor in the budget and ``at_most``.

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
    of zeros last.  With ``diversity=0`` it is "top".

    "mmr" and "max-min" start at the most relevant item.  Copies of chosen items come
    after all others, in "dpp" because they add nothing, in "mmr" by a rule.

    Candidates that are copies of ``given`` items are never chosen, unless included, so
    that fewer than ``k`` items can result.  The other candidates meet given items as
    they meet chosen ones: "dpp" maximizes the determinant of both together, "mmr" and
    "max-min" penalize the similarity to the nearest of both, "facility-location" starts
    from what the given items cover, and for "k-medoids" they are centres besides its
    ``k``.  For "top" and "random" they make no further difference.  Near copies (a
    cosine of 0.9 or more) have no part in the unit of relevance, and weigh at most as
    much as the most relevant of the others.

    Many ``given`` items span all dimensions of the embeddings, and the determinant is
    zero.  "dpp" then goes on as "mmr", and takes near copies last.  Parts of an item
    outside the span count as noise up to a share of 1e-6 of its squared length.

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
    >>> select(articles, [3.0, 2.9, 1.0], k=1, given=[1.0, 0.05])  # the next page
    array([2])
    """
    if isinstance(method, Real):
        raise ValueError(
            f"method must be a name, got {method!r}: the knob between relevance and "
            f"diversity is diversity={method!r}"
        )
    check_choice("method", method, METHODS)
    if order not in ("importance", "number"):
        raise ValueError(f"order must be 'importance' or 'number', got {order!r}")
    check_diversity(diversity)
    if isinstance(k, float) and 0.0 <= k <= 1.0:
        raise ValueError(
            f"k must be a number of items, got {k!r}: the knob between relevance and "
            f"diversity is diversity={k!r}"
        )
    rng = as_generator(random_state)
    F, given_rows = check_embeddings(embeddings, given)
    relevant = check_relevance(relevance, len(F))
    included, allowed = _included_and_allowed(include, exclude, len(F))
    if budget is None and costs is not None:
        raise ValueError("costs were given without a budget")
    if budget is not None and costs is None:
        raise ValueError(
            f"budget={budget!r} needs costs, one for each item, such as their numbers "
            "of words; to choose a number of items, give k"
        )
    limit = Constraint.of(len(F), None, budget, costs, at_most, per)
    count = _largest_count(k, budget, len(F), included)
    if not limit.is_free:
        allowed &= _affordable_items(limit, included)
    if len(given_rows):
        allowed &= ~find_copies(F, given_rows)
        allowed[included] = True
    places = np.flatnonzero(allowed)
    items = Items(
        F if len(places) == len(F) else F[places],
        in_units(
            relevant[places],
            F,
            places,
            n_competing(_affordable_count(count, limit)),
            given_rows,
        ),
        np.searchsorted(places, included),
        float(diversity),
        rng,
        given=given_rows,
    )
    is_one_by_one = method in _ONE_BY_ONE
    if limit.at_most is not None:
        labels = limit.at_most.among(places)
        # Fewer places than k are all chosen, as far as the limits allow.
        exactly = k if k is not None and k < len(places) else None
        if exactly is not None:
            check_size(labels, exactly, items.included.tolist())
        if budget is None or not is_one_by_one:
            count_of = exactly if budget is None else None
            limits = Constraint(count_of, None, np.ones(len(places)), labels)
            items = replace(items, limit=limits)

    def choose(wanted: int) -> IntArray:
        """Return the numbers of included items and, after them, ``wanted`` more."""
        if wanted == 0:
            return included
        return np.concatenate([included, places[METHODS[method](items, wanted)]])

    others = places[items.is_open()]
    if budget is None:
        chosen = choose(min(count - len(included), len(others)))
    else:
        chosen = _choose_within_budget(
            limit, count, included, others, choose, is_one_by_one
        )
    return chosen if order == "importance" else np.sort(chosen)


def check_diversity(diversity: Any) -> None:
    """Raise ValueError unless ``diversity`` is a number from 0 to 1."""
    is_number = isinstance(diversity, Real) and not isinstance(diversity, bool)
    if not is_number or not 0.0 <= diversity <= 1.0:
        raise ValueError(
            "diversity must be a number from 0 (relevance only) to 1 (diversity only), "
            f"got {diversity!r}"
        )


def _included_and_allowed(
    include: SubsetLike, exclude: SubsetLike, n_items: int
) -> tuple[IntArray, BoolArray]:
    """Return included item numbers, and a mask (N,) of items not excluded.

    ValueError for other subsets, or an item in both.
    """
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


def _largest_count(
    k: int | None, budget: float | None, n_items: int, included: IntArray
) -> int:
    """Return the most items to choose: ``k`` or its default; ValueError if bad."""
    if k is None:
        return n_items if budget is not None else max(_DEFAULT_K, len(included))
    check_count("k", k)
    if k < len(included):
        raise ValueError(f"k is {k}, but {len(included)} items are to be included")
    return int(k)


def _affordable_items(limit: Constraint, included: IntArray) -> BoolArray:
    """Return a mask (N,) of included items and of others each affordable with them.

    ValueError if the included items exceed the budget, or ``at_most`` of a label.
    """
    spent = float(limit.costs[included].sum())
    if not limit.affords(spent):
        raise ValueError(
            f"the included items cost {spent:g}, more than the budget {limit.budget:g}"
        )
    if limit.at_most is not None:
        counts = limit.at_most.count_by_label(included)
        if len(labels := np.flatnonzero(counts > limit.at_most.room)):
            first = int(
                np.flatnonzero((limit.at_most.labels == labels[0]).any(axis=0))[0]
            )
            raise ValueError(
                f"{counts[labels[0]]} included items have the "
                f"label of item {first}, and at_most is {limit.at_most.room[labels[0]]}"
                ": include fewer, or give a larger at_most"
            )
    affordable = np.asarray(limit.affords(spent + limit.costs))
    affordable[included] = True
    return affordable


def _choose_within_budget(
    limit: Constraint,
    k: int,
    included: IntArray,
    others: IntArray,
    choose: Callable[[int], IntArray],
    is_one_by_one: bool,
) -> IntArray:
    """Return items that fit the budget together, in the order of the method.

    ``choose(n)`` returns the included items and ``n`` of the ``others``: first as many
    as the budget affords on average; then, by methods that choose one by one, more,
    until nothing fits or ``k`` items are chosen.
    """
    costs = limit.costs
    room = limit.largest_cost() - float(costs[included].sum())
    if len(others) == 0:
        return included
    wanted = int(np.clip(room / costs[others].mean(), 1, len(others)))
    while True:
        asked = choose(wanted)
        taken = _first_allowed(asked, k, limit)
        rest = np.setdiff1d(others, asked)
        if limit.at_most is not None:
            rest = rest[limit.at_most.open_items(taken)[rest]]
        if not (is_one_by_one and len(taken) < k and len(rest)):
            return taken
        if not limit.affords(costs[taken].sum() + costs[rest].min()):
            return taken
        wanted = min(2 * wanted, len(others))


def _first_allowed(order: IntArray, k: int, limit: Constraint) -> IntArray:
    """Return the first ``k`` of ``order`` that budget and limits allow together."""
    taken: list[int] = []
    spent = 0.0
    is_open = np.ones(len(limit.costs), dtype=bool)
    for item in order.tolist():
        fits = is_open[item] and limit.affords(spent + limit.costs[item])
        if len(taken) < k and fits:
            spent += float(limit.costs[item])
            taken.append(item)
            if limit.at_most is not None:
                is_open = limit.at_most.open_items(taken)
    return np.array(taken, dtype=np.intp)


def _affordable_count(count: int, limit: Constraint) -> int:
    """Return how many items of mean cost the budget affords, at most ``count``."""
    room = limit.largest_cost() / max(float(limit.costs.mean()), 1e-300)
    return int(min(count, np.ceil(room)))
