"""A generated table: search results of many queries, and what an editor picked.

The editor stands for a person: no determinantal point process is involved.

The items of a query fall into topics, one to about three items and some much larger
than others.  Items of one topic have embeddings alike (a cosine of about 0.8) and
those of different topics less so (about 0.35), and some items are nearly copies of
another one of their topic (0.99).  Some topics are more relevant than others.  The
engine's score is the relevance with noise, and items are listed from the highest score
to the lowest.

An editor reads the items of one query and does the following.

1. She gives every item a utility: its relevance (standard deviation 1, not in the
   table), 0.6 times its freshness and 0.15 times its popularity (both
   standardized), what she thinks of its kind (reference 0.6, news 0.2, video 0,
   blog -0.2, forum -0.6), and a taste of the moment (normal, 0.4).
2. She goes from the highest utility to the lowest and picks what she meets, except
   an item too like one she has picked: with a cosine above her threshold, which
   is drawn for each query between 0.6 and 0.85.
3. She stops at the first item whose utility is below her bar.  That is drawn for
   each query (normal, mean -0.6, standard deviation 0.4) and rises by 0.15 with
   each pick, as there is less and less need for another.
4. She makes mistakes: one item in twenty she overlooks, and for one in twenty she
   does not notice that it is too like another.
5. If she would end with nothing, she takes the item of the highest utility.

How many tokens an item has makes no difference to her.  The columns are

==============  ==============  ==========================================
``query``       string          ``"q0001"``, ``"q0002"``, ...
``item``        string          ``"i01"``, ...; unique in its query
``score``       double          the engine's relevance
``freshness``   double          from 1 (today) down to 0, half in 10 days
``popularity``  double          share of readers, from 0 to 1
``kind``        string          news, blog, forum, video or reference
``tokens``      int32           length of the item
``embedding``   list of float   unit length
``chosen``      bool            what the editor picked
==============  ==============  ==========================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from variegate._random import as_generator
from variegate._typing import AnyArray, BoolArray, FloatArray, IntArray, RandomState
from variegate._validation import check_count

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["make_table"]

#: Kinds of items: how many there are, what an editor thinks of them, and how many
#: tokens they usually have.
_KINDS = {
    "news": (0.35, 0.2, 400),
    "blog": (0.25, -0.2, 700),
    "forum": (0.18, -0.6, 250),
    "video": (0.12, 0.0, 150),
    "reference": (0.10, 0.6, 1200),
}

#: Items of a topic on average, and the share that copies an earlier one of the topic.
_TOPIC_SIZE, _COPIES = 3.0, 0.15
#: Distances of topics from queries, items from topics, and copies from originals.
_TOPIC_SPREAD, _ITEM_SPREAD, _COPY_SPREAD = 1.2, 0.5, 0.12
#: The noise of the engine's scores, in units of relevance; their mean and spread.
_SCORE_NOISE, _SCORE_MEAN, _SCORE_SCALE = 0.7, 12.0, 3.0
#: Weights of freshness and popularity, standardized, and of chance in the utility.
_FRESHNESS, _POPULARITY, _TASTE = 0.6, 0.15, 0.4
#: The utility at which editors stop: mean, spread, and rise with each pick.
_BAR_MEAN, _BAR_SPREAD, _BAR_RISE = -0.6, 0.4, 0.15
#: The least and the largest threshold above which an editor calls two items alike.
_ALIKE = (0.6, 0.85)
#: Shares of items that are overlooked, and of likenesses that are not noticed.
_OVERLOOKED, _UNNOTICED = 0.05, 0.05

#: Numbers of embeddings that are computed at a time, which bounds the memory.
_CHUNK = 2_000_000


def make_table(
    n_groups: int = 300,
    n_items: int = 20,
    n_dimensions: int = 16,
    *,
    random_state: RandomState = 0,
) -> pa.Table:
    """Generate search results of many queries, with the picks of an editor.

    :mod:`variegate.tables.sample` states the columns and the rule of the editor; no
    determinantal point process is involved.

    Parameters
    ----------
    n_groups : int, default=300
        Queries.
    n_items : int, default=20
        Items of each query.  Of 20, an editor picks about 5; of 50, about 8.
    n_dimensions : int, default=16
        Of the embeddings.
    random_state : None, int or numpy.random.Generator, default=0

    Returns
    -------
    pyarrow.Table
        One row an item, those of a query together.

    Examples
    --------
    >>> from variegate.tables.sample import make_table
    >>> table = make_table(n_groups=3, n_items=10)
    >>> table.num_rows, table.column_names[:3]
    (30, ['query', 'item', 'score'])
    >>> any(table["chosen"].to_pylist())
    True
    """
    check_count("n_groups", n_groups)
    check_count("n_items", n_items)
    check_count("n_dimensions", n_dimensions)
    columns = _draw_columns(as_generator(random_state), n_groups, n_items, n_dimensions)
    ranking = np.argsort(-columns["score"], axis=1, kind="stable")
    groups = np.arange(n_groups)[:, None]
    return _build_table({name: part[groups, ranking] for name, part in columns.items()})


def _draw_columns(
    rng: np.random.Generator, n_groups: int, n_items: int, n_dimensions: int
) -> dict[str, Any]:
    """Draw all but names, as arrays of shape (groups, items, ...)."""
    size = (n_groups, n_items)
    topics = _draw_topics(rng, *size)
    embeddings = _draw_embeddings(rng, topics, n_dimensions)
    # Topics share 0.3 of the variance of relevance.
    by_topic = np.sqrt(0.3) * rng.standard_normal(size)
    relevance = np.take_along_axis(by_topic, topics, axis=1)
    relevance += np.sqrt(0.7) * rng.standard_normal(size)
    shares, opinions, usual_tokens = map(np.array, zip(*_KINDS.values(), strict=True))
    kinds = rng.choice(len(_KINDS), size=size, p=shares)
    freshness = 0.5 ** (rng.exponential(12.0, size) / 10.0)
    popularity = rng.beta(1.5, 6.0, size)
    tokens = np.ceil(usual_tokens[kinds] * np.exp(0.5 * rng.standard_normal(size)))
    score = relevance + _SCORE_NOISE * rng.standard_normal(size)
    utility = (
        relevance
        + _FRESHNESS * _standardize(freshness)
        + _POPULARITY * _standardize(popularity)
        + opinions[kinds]
        + _TASTE * rng.standard_normal(size)
    )
    return {
        "score": _SCORE_MEAN + _SCORE_SCALE * score,
        "freshness": freshness,
        "popularity": popularity,
        "kind": kinds,
        "tokens": tokens.astype(np.int32),
        "embedding": embeddings,
        "chosen": _simulate_picks(utility, embeddings, *_draw_editors(rng, size)),
    }


def _standardize(values: FloatArray) -> FloatArray:
    """Return values with mean 0 and standard deviation 1, over all entries."""
    spread = float(values.std())
    return np.asarray((values - values.mean()) / (spread if spread > 0.0 else 1.0))


def _draw_topics(rng: np.random.Generator, n_groups: int, n_items: int) -> IntArray:
    """Return the topic of every item, numbers below ``n_items`` within its group."""
    n_topics = np.clip(rng.poisson(n_items / _TOPIC_SIZE, n_groups), 1, n_items)
    weights = rng.gamma(1.0, size=(n_groups, n_items))
    weights *= np.arange(n_items) < n_topics[:, None]
    cumulative = np.cumsum(weights, axis=1)
    cumulative /= cumulative[:, -1:]
    # One group after another on one line, so that a single search serves them all.
    line = (cumulative + np.arange(n_groups)[:, None]).ravel()
    draws = rng.random((n_groups, n_items)) + np.arange(n_groups)[:, None]
    places = np.searchsorted(line, draws.ravel(), side="right").reshape(draws.shape)
    places -= n_items * np.arange(n_groups)[:, None]
    return np.minimum(places, n_topics[:, None] - 1)


def _draw_embeddings(
    rng: np.random.Generator, topics: IntArray, n_dimensions: int
) -> NDArray[np.float32]:
    """Return unit vectors (groups, items, dimensions): query, topic, item, copies."""
    n_groups, n_items = topics.shape
    original = _earlier_of_topic(topics)
    is_copy = (rng.random(topics.shape) < _COPIES) & (original >= 0)
    embeddings = np.empty((n_groups, n_items, n_dimensions), dtype=np.float32)
    for groups in _group_slices(n_groups, n_items * n_dimensions):
        size = (groups.stop - groups.start, n_items, n_dimensions)
        query = _draw_directions(rng, (size[0], 1, n_dimensions))
        centres = query + _TOPIC_SPREAD * _draw_directions(rng, size)
        centres /= np.linalg.norm(centres, axis=2, keepdims=True)
        part = np.take_along_axis(centres, topics[groups, :, None], axis=1)
        part += _ITEM_SPREAD * _draw_directions(rng, size)
        part /= np.linalg.norm(part, axis=2, keepdims=True)
        change = _COPY_SPREAD * _draw_directions(rng, size)
        # In order, as a copy may be copied again.
        for item in range(1, n_items):
            rows = np.flatnonzero(is_copy[groups, item])
            part[rows, item] = part[rows, original[groups][rows, item]]
            part[rows, item] += change[rows, item]
        part /= np.linalg.norm(part, axis=2, keepdims=True)
        embeddings[groups] = part
    return embeddings


def _draw_directions(rng: np.random.Generator, size: tuple[int, int, int]) -> Any:
    """Draw Gaussian vectors (groups, vectors, dimensions) of about unit length."""
    return rng.standard_normal(size, dtype=np.float32) / np.float32(np.sqrt(size[2]))


def _earlier_of_topic(topics: IntArray) -> IntArray:
    """Return the last item before each that has its topic, or -1."""
    order = np.argsort(topics, axis=1, kind="stable")
    ordered = np.take_along_axis(topics, order, axis=1)
    before = np.full_like(order, -1)
    same = ordered[:, 1:] == ordered[:, :-1]
    before[:, 1:] = np.where(same, order[:, :-1], -1)
    earlier = np.empty_like(before)
    np.put_along_axis(earlier, order, before, axis=1)
    return earlier


def _draw_editors(
    rng: np.random.Generator, size: tuple[int, int]
) -> tuple[FloatArray, FloatArray, BoolArray, BoolArray]:
    """Draw bars and thresholds (groups,), and both mistakes (groups, items)."""
    return (
        rng.normal(_BAR_MEAN, _BAR_SPREAD, size[:1]),
        rng.uniform(*_ALIKE, size[:1]),
        rng.random(size) < _OVERLOOKED,
        rng.random(size) < _UNNOTICED,
    )


def _simulate_picks(
    utility: FloatArray,
    embeddings: AnyArray,
    bar: FloatArray,
    alike: FloatArray,
    overlooks: BoolArray,
    does_not_notice: BoolArray,
) -> BoolArray:
    """Return the items that editors pick, (groups, items); all read in step."""
    n_groups, n_items = utility.shape
    bar, reading = bar.copy(), np.arange(n_groups)
    chosen = np.zeros(utility.shape, dtype=bool)
    nearest = np.full(utility.shape, -np.inf)
    order = np.argsort(-utility, axis=1, kind="stable")
    for place in range(n_items):
        items = order[reading, place]
        goes_on = utility[reading, items] >= bar[reading]
        reading, items = reading[goes_on], items[goes_on]
        is_new = nearest[reading, items] <= alike[reading]
        takes = is_new | does_not_notice[reading, items]
        takes &= ~overlooks[reading, items]
        groups, picked = reading[takes], items[takes]
        chosen[groups, picked] = True
        bar[groups] += _BAR_RISE
        for part in _group_slices(len(groups), embeddings[0].size):
            rows = groups[part]
            cosines = embeddings[rows] @ embeddings[rows, picked[part], :, None]
            nearest[rows] = np.maximum(nearest[rows], cosines[..., 0])
    nothing = np.flatnonzero(~chosen.any(axis=1))
    chosen[nothing, order[nothing, 0]] = True
    return chosen


def _group_slices(n_groups: int, numbers: int) -> list[slice]:
    """Return slices of groups, each of bounded memory."""
    step = max(1, _CHUNK // numbers)
    starts = range(0, n_groups, step)
    return [slice(start, min(start + step, n_groups)) for start in starts]


def _build_table(columns: dict[str, Any]) -> pa.Table:
    """Return columns (groups, items) as one Arrow table of rows."""
    import pyarrow as pa

    n_groups, n_items = columns["score"].shape
    queries = np.repeat(_number_names("q", n_groups, 4), n_items)
    items = np.tile(_number_names("i", n_items, 2), n_groups)
    arrays = {"query": pa.array(queries), "item": pa.array(items)}
    for name, values in columns.items():
        flat = values.ravel()
        if name == "kind":
            arrays[name] = pa.array(list(_KINDS)).take(pa.array(flat))
        elif name == "embedding":
            ends = np.arange(0, values.size + 1, values.shape[2], dtype=np.int32)
            arrays[name] = pa.ListArray.from_arrays(pa.array(ends), pa.array(flat))
        else:
            arrays[name] = pa.array(flat)
    return pa.table(arrays)


def _number_names(letter: str, count: int, width: int) -> list[str]:
    """Return names such as "q0001", numbered from 1."""
    width = max(width, len(str(count)))
    return [f"{letter}{number:0{width}d}" for number in range(1, count + 1)]
