"""A generated table: search results of many queries, and what an editor picked.

The editor stands for a person: no determinantal point process is involved.

The items of a query fall into topics, one to about three items and some much larger
than others.  The cosine of two embeddings is about 0.8 in one topic, 0.35 in two, and
0.99 between an item and its copies.  Some topics are more relevant than others.  The
engine's score is the relevance with noise; items stand in its order, the highest first.

An editor reads the items of one query and does the following.

1. She gives every item a utility: its relevance (standard deviation 1, not in the
   table), 0.6 times its freshness and 0.15 times its popularity (both
   standardized), what she thinks of its kind (reference 0.6, news 0.2, video 0,
   blog -0.2, forum -0.6), and a taste of the moment (normal, 0.4).
2. She goes from the highest utility to the lowest and picks each item, except one
   whose cosine with a picked item is above her threshold, which is drawn for each
   query between 0.6 and 0.85.
3. She stops at the first item whose utility is below her bar.  That is drawn for
   each query (normal, mean -0.6, standard deviation 0.4) and rises by 0.15 with
   each pick, as there is less and less need for another.
4. She makes mistakes: one item in twenty she overlooks, and for one in twenty she
   does not notice that it is too like another.
5. If she would end with nothing, she takes the item of the highest utility.

The columns are

==============  ==============  ==========================================
``query``       string          ``"q0001"``, ``"q0002"``, ...
``item``        string          ``"i01"``, ...; unique in its query
``score``       double          the engine's relevance
``freshness``   double          from 1 (today) down to 0, half in 10 days
``popularity``  double          share of readers, from 0 to 1
``kind``        string          news, blog, forum, video or reference
``tokens``      int32           length of the item, which she ignores
``embedding``   list of float   unit length
``chosen``      bool            what the editor picked
==============  ==============  ==========================================
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from variegate._random import as_generator
from variegate._typing import AnyArray, BoolArray, FloatArray, IntArray, RandomState
from variegate._validation import check_count

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
    rng = as_generator(random_state)
    columns = _draw_columns(rng, (n_groups, n_items), n_dimensions)
    ranking = np.argsort(-columns["score"], axis=1, kind="stable")
    rows = (ranking + n_items * np.arange(n_groups)[:, None]).ravel()
    drawn: dict[str, Any] = {
        name: values.reshape(n_groups * n_items, *values.shape[2:])[rows]
        for name, values in columns.items()
    }
    vectors = pa.FixedSizeListArray.from_arrays(
        drawn["embedding"].ravel(), n_dimensions
    )
    drawn["embedding"] = vectors.cast(pa.list_(pa.float32()))
    queries = np.repeat(_number_names("q", n_groups, 4), n_items)
    items = np.tile(_number_names("i", n_items, 2), n_groups)
    return pa.table({"query": queries, "item": items, **drawn})


def _draw_columns(
    rng: np.random.Generator, size: tuple[int, int], n_dimensions: int
) -> dict[str, AnyArray]:
    """Draw all columns but names, as arrays (*size, ...); size is (groups, items)."""
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
        + 0.6 * _standardize(freshness)
        + 0.15 * _standardize(popularity)
        + opinions[kinds]
        + 0.4 * rng.standard_normal(size)
    )
    return {
        "score": _SCORE_MEAN + _SCORE_SCALE * score,
        "freshness": freshness,
        "popularity": popularity,
        "kind": np.array(list(_KINDS))[kinds],
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
    draws = rng.random((n_groups, n_items))
    topics = map(partial(np.searchsorted, side="right"), cumulative, draws)
    return np.minimum(list(topics), n_topics[:, None] - 1)


def _draw_embeddings(
    rng: np.random.Generator, topics: IntArray, n_dimensions: int
) -> NDArray[np.float32]:
    """Return unit vectors (groups, items, dimensions) of items with these topics.

    Topics are near the direction of the query, items near their topic, copies near the
    item before them in the topic.
    """
    n_groups, n_items = topics.shape
    is_copy = rng.random(topics.shape) < _COPIES
    query = _draw_directions(rng, (n_groups, 1, n_dimensions))
    size = (n_groups, n_items, n_dimensions)
    centres = _unit_length(query + _TOPIC_SPREAD * _draw_directions(rng, size))
    embeddings = np.take_along_axis(centres, topics[:, :, None], axis=1)
    embeddings = _unit_length(embeddings + _ITEM_SPREAD * _draw_directions(rng, size))
    change = _COPY_SPREAD * _draw_directions(rng, size)
    # The last item of each topic so far, which is copied; a copy may be copied again.
    latest = np.full(topics.shape, -1)
    for item in range(n_items):
        original = latest[np.arange(n_groups), topics[:, item]]
        groups = np.flatnonzero(is_copy[:, item] & (original >= 0))
        embeddings[groups, item] = embeddings[groups, original[groups]]
        embeddings[groups, item] += change[groups, item]
        latest[np.arange(n_groups), topics[:, item]] = item
    return _unit_length(embeddings)


def _draw_directions(
    rng: np.random.Generator, size: tuple[int, int, int]
) -> NDArray[np.float32]:
    """Draw Gaussian vectors (groups, vectors, dimensions) of about unit length."""
    vectors: NDArray[np.float32] = rng.standard_normal(size, dtype=np.float32)
    vectors /= np.float32(np.sqrt(size[2]))
    return vectors


def _unit_length(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale vectors (groups, vectors, dimensions) to unit length, in place."""
    vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
    return vectors


def _draw_editors(
    rng: np.random.Generator, size: tuple[int, int]
) -> tuple[FloatArray, FloatArray, BoolArray, BoolArray]:
    """Draw bars, thresholds (groups,), and masks of both mistakes (groups, items)."""
    return (
        rng.normal(-0.6, 0.4, size[:1]),
        rng.uniform(0.6, 0.85, size[:1]),
        rng.random(size) < 0.05,
        rng.random(size) < 0.05,
    )


def _simulate_picks(
    utility: FloatArray,
    embeddings: AnyArray,
    bars: FloatArray,
    thresholds: FloatArray,
    overlooks: BoolArray,
    does_not_notice: BoolArray,
) -> BoolArray:
    """Return which items editors pick, (groups, items): see the top of this file.

    Utilities and both mistakes have that shape, bars and thresholds (groups,), and
    embeddings of unit length (groups, items, dimensions).
    """
    chosen = np.zeros(utility.shape, dtype=bool)
    order = np.argsort(-utility, axis=1, kind="stable")
    for group, items in enumerate(order):
        bar, nearest = bars[group], np.full(len(items), -np.inf)
        for item in items:
            if utility[group, item] < bar:
                break
            is_alike = nearest[item] > thresholds[group]
            is_refused = is_alike and not does_not_notice[group, item]
            if not (is_refused or overlooks[group, item]):
                chosen[group, item] = True
                bar += 0.15
                cosines = embeddings[group] @ embeddings[group, item]
                nearest = np.maximum(nearest, cosines)
    nothing = np.flatnonzero(~chosen.any(axis=1))
    chosen[nothing, order[nothing, 0]] = True
    return chosen


def _number_names(letter: str, count: int, width: int) -> list[str]:
    """Return ``count`` names such as "q0001" from 1, of ``width`` digits at least."""
    width = max(width, len(str(count)))
    return [f"{letter}{number:0{width}d}" for number in range(1, count + 1)]
