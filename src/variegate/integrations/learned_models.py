"""Learned models in retrieval pipelines: their training table, and how they choose."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from sklearn.utils.validation import check_is_fitted

from variegate._typing import FloatArray, IntArray
from variegate.decoding import Constraint
from variegate.decoding.residuals import ranked
from variegate.estimator import DPPEstimator
from variegate.files.models import load
from variegate.ground_set import GroundSet
from variegate.integrations.core import Candidates

if TYPE_CHECKING:
    import pyarrow as pa

    from variegate.tables import TableSelector

#: Columns that every list of documents has; others are looked for in its metadata.
COLUMNS = ("score", "standard_score", "place", "tokens", "embedding")

#: The column of costs has a name of its own, as tokens may be a quality too.
_COST = "tokens to pay"

#: From candidates, k, budget and omega to numbers of candidates in the order of choice.
LearnedChooser: TypeAlias = Callable[
    [Candidates, int | None, float | None, float | None], IntArray
]


def as_chooser(model: Any) -> LearnedChooser:
    """Return the chooser of a model, or of the one in a file."""
    if isinstance(model, str | Path):
        if not Path(model).is_file():
            raise ValueError(f"there is no model file {model}")
        model = load(model)
    if isinstance(model, DPPEstimator):
        check_is_fitted(model, model._fitted)
        if model.n_features_in_ != 1:
            raise ValueError(
                f"the model was learned with {model.n_features_in_} quality features, "
                "and documents have one, the score: for more, learn a TableSelector, "
                "which knows its columns by their names"
            )
        return partial(_choose_by_score, model)
    # A caller with a TableSelector has imported its module.
    tables = sys.modules.get("variegate.tables")
    if tables is not None and isinstance(model, tables.TableSelector):
        return partial(_choose_by_table, model.with_columns(cost=_COST))
    raise ValueError(
        f"model must be the path of a model file, a TableSelector or a LargeMarginDPP, "
        f"got a {type(model).__name__}"
    )


def _choose_by_table(
    selector: TableSelector,
    candidates: Candidates,
    k: int | None,
    budget: float | None,
    omega: float | None,
) -> IntArray:
    import pyarrow as pa

    columns, numbers = selector.columns_, np.arange(len(candidates))
    table = {name: _column(name, [candidates]) for name in columns.features()}
    table[_COST] = pa.array(candidates.tokens)
    for name in (columns.group, columns.item):
        if name is not None:
            table[name] = pa.array(0 * numbers if name == columns.group else numbers)
    choices = selector.choose(pa.table(table), k, budget, omega)
    chosen = np.flatnonzero(choices.selected)
    return chosen[np.argsort(choices.rank[chosen], kind="stable")]


def _choose_by_score(
    model: DPPEstimator,
    candidates: Candidates,
    k: int | None,
    budget: float | None,
    omega: float | None,
) -> IntArray:
    """Choose with the score as quality and embeddings as similarity."""
    if omega is not None:
        raise ValueError(
            "this model was learned for one omega: learn a TableSelector to choose "
            "among several"
        )
    scores = _needed(candidates.scores, "score")
    costs = candidates.tokens
    ground_set = GroundSet(scores[:, None], candidates.embeddings, costs=costs)
    k = None if k is None else min(k, len(candidates))
    if budget is not None:
        limit = Constraint(None, budget, costs)
        n_affordable = int(limit.affords(np.cumsum(np.sort(limit.costs))).sum())
        k = None if k is None else min(k, n_affordable)
        if n_affordable == 0:
            return np.zeros(0, dtype=np.intp)
    chosen = model.predict([ground_set], k=k, budget=budget)[0]
    return ranked(model.ensemble(ground_set), chosen)


def training_table(
    lists: Iterable[Candidates],
    chosen: Iterable[Sequence[int]],
    metadata: Sequence[str] = (),
) -> pa.Table:
    """Return a table to learn from: documents found for queries, and which were good.

    The same code fills its columns and those of documents to choose from, so that a
    model sees in use what it has learned from.

    Parameters
    ----------
    lists : iterable of Candidates
        Documents found for each query: ``candidates(...)`` of a part of a pipeline, or
        of a :class:`~variegate.integrations.ContextSelector`.
    chosen : iterable of sequences of int
        For each query, the places of the documents that belong into the context, among
        those that the retriever handed over (``Candidates.places``).
    metadata : sequence of str
        Names of metadata to have as columns too.

    Returns
    -------
    Arrow table
        With ``query`` (the group), ``chosen`` (the label), ``score`` as the retriever
        gave it, ``standard_score`` (less the mean of its query, over the standard
        deviation there: comparable between retrievers), ``place`` (1 is the best),
        ``tokens``, ``embedding`` and the metadata.  Scores are left out where there
        are none.

    Examples
    --------
    >>> from variegate.integrations import ContextSelector, Found, training_table
    >>> found = Found(["one", "two"], [0.9, 0.8], [[1.0, 0.0], [0.0, 1.0]])
    >>> candidates = ContextSelector(fetch_k=2, k=1).candidates(found)
    >>> training_table([candidates], [[1]]).column("chosen").to_pylist()
    [0, 1]
    """
    import pyarrow as pa

    lists, wanted = list(lists), [set(map(int, places)) for places in chosen]
    has_scores = _check_lists(lists, wanted)
    names = [n for n in COLUMNS if has_scores or not n.endswith("score")]
    rows = [(q, p) for q, one in enumerate(lists) for p in one.places.tolist()]
    table = {
        "query": pa.array([query for query, _ in rows]),
        "chosen": pa.array([int(place in wanted[query]) for query, place in rows]),
    }
    features = {name: _column(name, lists) for name in (*names, *metadata)}
    return pa.table(table | features)


def _check_lists(lists: Sequence[Candidates], wanted: Sequence[set[int]]) -> bool:
    """Refuse lists that do not belong together; return whether they have scores."""
    if len(lists) != len(wanted):
        raise ValueError(
            f"{len(lists)} lists of candidates, but {len(wanted)} of chosen documents"
        )
    if not lists:
        raise ValueError("there is nothing to learn from: no candidates")
    for query, (candidates, places) in enumerate(zip(lists, wanted, strict=True)):
        unknown = places - set(candidates.places.tolist())
        if unknown:
            raise ValueError(
                f"query {query}: document {min(unknown)} was chosen and is not among "
                "the candidates"
            )
    has_scores = [candidates.scores is not None for candidates in lists]
    if any(has_scores) and not all(has_scores):
        raise ValueError(
            f"query {has_scores.index(False)} has no scores, and others have: give all "
            "of them scores, or none"
        )
    return all(has_scores)


def _column(name: str, lists: Sequence[Candidates]) -> Any:
    """Return a column of a table, for all candidates of the lists."""
    import pyarrow as pa

    if name == "embedding":
        vectors = [vector.tolist() for one in lists for vector in one.embeddings]
        return pa.array(vectors, pa.list_(pa.float64()))
    if name in COLUMNS:
        return pa.array(np.concatenate([_numbers(name, one) for one in lists]))
    values = []
    for one in lists:
        for place, known in zip(one.places.tolist(), one.metadata, strict=True):
            if name not in known:
                raise ValueError(
                    f"the model has a column {name!r}, which is not in the metadata of "
                    f"document {place}; documents themselves have "
                    f"{', '.join(COLUMNS)}"
                )
            values.append(known[name])
    return pa.array(values)


def _numbers(name: str, candidates: Candidates) -> FloatArray:
    columns = {
        "score": candidates.scores,
        "standard_score": candidates.standard_scores,
        "place": np.arange(1.0, len(candidates) + 1.0),
        "tokens": candidates.tokens,
    }
    return _needed(columns[name], name)


def _needed(scores: FloatArray | None, name: str) -> FloatArray:
    if scores is None:
        raise ValueError(
            f"the model goes by {name!r}, and the documents have no scores: use a "
            "retriever that gives scores, as in training"
        )
    return scores
