"""Choose documents by learned models, and make tables to learn them from.

A place is the position of a document in the list that the retriever returned; numbers
of candidates are positions among the ``Candidates``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from variegate._typing import IntArray
from variegate.decoding import Constraint
from variegate.decoding.residuals import rank_members
from variegate.estimator import DPPEstimator
from variegate.files.models import load
from variegate.ground_set import GroundSet
from variegate.integrations.documents import IN_PROMPT, Candidates

if TYPE_CHECKING:
    import pyarrow as pa

    from variegate.tables import TableSelector

#: Columns that every list of documents has; others are looked for in its metadata.
COLUMNS = ("score", "standard_score", "place", "tokens", "embedding")

_COST = "tokens to pay"  # not "tokens", which may be a quality too
_GIVEN = "is in the prompt"  # for a model that was learned without such a column


def as_chooser(model: Any) -> Callable[..., IntArray]:
    """Return the function that chooses by a model, or by the model in a file.

    It takes candidates, k, budget, omega and the documents in the prompt, each of the
    last four perhaps None, and returns numbers of candidates in the order of choice.
    ValueError for other models.
    """
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
        given = model.columns_.given or _GIVEN
        return partial(_choose_by_table, model.with_columns(cost=_COST, given=given))
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
    prompt: Candidates | None,
) -> IntArray:
    """Return numbers of candidates chosen by a selector, in the order of choice.

    Candidates and, after them, the given documents of the prompt are one group.  The
    selector needs a given column and the cost column ``_COST``, so that ``budget`` is
    in tokens; without ``k`` and ``budget`` it decides how many to take.
    """
    import pyarrow as pa

    columns, n_candidates = selector.columns_, len(candidates)
    n_given = _n_given(candidates, prompt)
    numbers = np.arange(n_candidates + n_given)
    compared = columns.similarity or columns.quality
    table = {
        name: _column_with_prompt(name, candidates, prompt, name in compared)
        for name in columns.features()
    }
    table[_COST] = pa.array(np.append(candidates.tokens, np.ones(n_given)))
    for name in (columns.group, columns.item):
        if name is not None:
            table[name] = pa.array(0 * numbers if name == columns.group else numbers)
    table[columns.given or _GIVEN] = pa.array(numbers >= n_candidates)
    if columns.segment is not None:  # all are in one segment
        table[columns.segment] = pa.array(0 * numbers)
    choices = selector.choose(pa.table(table), k, budget, omega)
    chosen = np.flatnonzero(choices.selected)
    return chosen[np.argsort(choices.rank[chosen], kind="stable")]


def _n_given(candidates: Candidates, prompt: Candidates | None) -> int:
    """Return the number of documents in the prompt; ValueError for other embeddings."""
    if prompt is None:
        return 0
    sizes = prompt.embeddings.shape[1], candidates.embeddings.shape[1]
    if sizes[0] != sizes[1]:
        raise ValueError(
            f"{IN_PROMPT}: embeddings have {sizes[0]} numbers, and those of the "
            f"documents to choose from {sizes[1]}: all must come from one embedder"
        )
    return len(prompt)


def _column_with_prompt(
    name: str, candidates: Candidates, prompt: Candidates | None, is_compared: bool
) -> Any:
    """Return an Arrow column of the candidates and of documents in the prompt.

    Quality of the latter has no effect: unless their values are compared, the first
    candidate's stand for them.
    """
    import pyarrow as pa

    column = _arrow_column(name, [candidates])
    if prompt is None:
        return column
    if not is_compared:
        return pa.concat_arrays([column, column.take(pa.array([0] * len(prompt)))])
    try:
        return pa.concat_arrays([column, _arrow_column(name, [prompt], column.type)])
    except ValueError as error:
        raise ValueError(f"{IN_PROMPT}: {error}") from None


def _choose_by_score(
    model: DPPEstimator,
    candidates: Candidates,
    k: int | None,
    budget: float | None,
    omega: float | None,
    prompt: Candidates | None,
) -> IntArray:
    """Return numbers of candidates chosen by a model of one feature, in greedy order.

    The feature is the score; embeddings are the similarity, and tokens the costs, of
    which ``budget`` is the sum.  Documents of the prompt are given.  ValueError for an
    ``omega``, and without scores.
    """
    if omega is not None:
        raise ValueError(
            "omega is for models of tables: leave it out, or learn a TableSelector"
        )
    scores, costs = np.array(_values_of("score", candidates)), candidates.tokens
    n_affordable, n_given = len(candidates), _n_given(candidates, prompt)
    embeddings = candidates.embeddings
    if prompt is not None:
        embeddings = np.concatenate([embeddings, prompt.embeddings])
    ground_set = GroundSet(
        np.append(scores, np.zeros(n_given))[:, None],
        embeddings,
        costs=np.append(costs, np.ones(n_given)),
        given=np.arange(len(scores), len(embeddings)),
    )
    if budget is not None:
        limit = Constraint(None, budget, costs)
        n_affordable = int(limit.affords(np.cumsum(np.sort(limit.costs))).sum())
    if n_affordable == 0:
        return np.zeros(0, dtype=np.intp)
    k = None if k is None else min(k, n_affordable)
    chosen = model.predict([ground_set], k=k, budget=budget)[0]
    return rank_members(model.ensemble(ground_set), chosen)


def training_table(
    lists: Iterable[Candidates],
    chosen: Iterable[Sequence[int]],
    metadata: Sequence[str] = (),
) -> pa.Table:
    """Return a table to learn from: documents found for queries, and the good ones.

    Its columns are those of the documents that the model later chooses from.

    Parameters
    ----------
    lists : iterable of Candidates
        Documents found for each query: ``candidates(...)`` of a part of a pipeline, or
        of a :class:`~variegate.integrations.ContextSelector`.
    chosen : iterable of sequences of int
        For each query, the places (``Candidates.places``) of the documents that belong
        in the context.
    metadata : sequence of str
        Names of metadata to add as columns.

    Returns
    -------
    Arrow table
        With ``query`` (the group), ``chosen`` (the label), ``score`` of the retriever,
        ``standard_score`` (less the mean of its query, over the standard deviation
        there: comparable between retrievers), ``place`` (1 is the best), ``tokens``,
        ``embedding`` and the metadata.  Without scores, neither of them is a column.

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
    if len(lists) != len(wanted):
        raise ValueError(
            f"{len(lists)} lists of candidates, but {len(wanted)} of chosen documents"
        )
    if not lists:
        raise ValueError("there is nothing to learn from: no candidates")
    has_scores = _all_have_scores(lists)
    columns: dict[str, list[Any]] = {"query": [], "chosen": []}
    for query, (candidates, places) in enumerate(zip(lists, wanted, strict=True)):
        numbers = candidates.places.tolist()
        if unknown := places - set(numbers):
            raise ValueError(
                f"query {query}: document {min(unknown)} was chosen and is not among "
                "the candidates"
            )
        columns["query"] += [query] * len(numbers)
        columns["chosen"] += [int(place in places) for place in numbers]
    names = [n for n in COLUMNS if has_scores or not n.endswith("score")]
    features = {name: _arrow_column(name, lists) for name in (*names, *metadata)}
    return pa.table(columns | features)


def _all_have_scores(lists: Sequence[Candidates]) -> bool:
    """Return whether all lists have scores (True) or none (False); else ValueError."""
    has_scores = [candidates.scores is not None for candidates in lists]
    if any(has_scores) and not all(has_scores):
        raise ValueError(
            f"query {has_scores.index(False)} has no scores, and others have: give all "
            "of them scores, or none"
        )
    return all(has_scores)


def _arrow_column(name: str, lists: Sequence[Candidates], kind: Any = None) -> Any:
    """Return an Arrow column: the value ``name`` of all candidates, list by list.

    Its type is ``kind``, or that of the values.
    """
    import pyarrow as pa

    kind = pa.list_(pa.float64()) if name == "embedding" else kind
    return pa.array([value for one in lists for value in _values_of(name, one)], kind)


def _values_of(name: str, candidates: Candidates) -> Iterable[Any]:
    """Return value ``name`` (see ``COLUMNS``) of each candidate, or ValueError."""
    if name in ("score", "standard_score"):
        scores = candidates.scores
        if scores is None:
            raise ValueError(
                f"the model goes by {name!r}, and the documents have no scores: use a "
                "retriever that gives scores, as in training"
            )
        centred, spread = scores - scores.mean(), float(scores.std())
        standard = centred / spread if spread > 0.0 else np.zeros(len(scores))
        return scores if name == "score" else standard
    if name == "place":
        return np.arange(1.0, len(candidates) + 1.0)
    if name in ("tokens", "embedding"):
        return candidates.tokens if name == "tokens" else candidates.embeddings
    for place, known in zip(candidates.places, candidates.metadata, strict=True):
        if name not in known:
            raise ValueError(
                f"the model has a column {name!r}, which is not in the metadata of "
                f"document {place}; documents themselves have {', '.join(COLUMNS)}"
            )
    return [known[name] for known in candidates.metadata]
