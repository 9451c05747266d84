"""Limits on the documents of each source in ``ContextSelector``."""

import numpy as np
import pytest

from variegate.baselines import METHODS
from variegate.integrations import ContextSelector, Found

SOURCES = ["a", "a", "a", "a", "b", "b", "c", "a"]


def found(sources=SOURCES):
    rng = np.random.default_rng(0)
    n = len(sources)
    texts = ["one two three"] * n
    metadata = [{"source": source} for source in sources]
    embeddings = list(rng.standard_normal((n, 5)))
    return Found(texts, np.arange(n, 0.0, -1.0).tolist(), embeddings, metadata)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("at_most", [1, 2])
@pytest.mark.parametrize("budget", [None, 12.0])
def test_the_documents_of_a_source_are_limited(method, at_most, budget):
    selector = ContextSelector(
        8, k=4, method=method, budget=budget, at_most=at_most, per="source"
    )
    chosen = selector.choose(found())
    counts = np.unique([SOURCES[place] for place in chosen], return_counts=True)[1]
    assert counts.max() <= at_most
    if budget is None:
        # One of each of three sources, or as many as were asked for.
        assert len(chosen) == {1: 3, 2: 4}[at_most]


def test_labels_are_those_of_the_best_documents():
    selector = ContextSelector(5, k=2, method="top", at_most=1, per="source")
    assert selector.choose(found()) == [0, 4]
    assert selector.settings()["per"] == "source"


def test_labels_may_be_lists():
    selector = ContextSelector(8, k=3, method="top", at_most=1, per="source")
    assert selector.choose(found([["a"], ["a"], ["b"], ["b"]])) == [0, 2]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"at_most": 2}, "give both at_most, a number of documents, and per, the name"),
        ({"per": "source"}, "give both at_most, a number of documents, and per"),
        ({"at_most": 0, "per": "source"}, "at_most must be a whole number of at least"),
        (
            {"at_most": 2, "per": "source", "model": "model.json"},
            "at_most is of methods that learn nothing, and a model is given",
        ),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        ContextSelector(8, k=3, **settings)


def test_a_document_without_the_metadata():
    selector = ContextSelector(8, k=2, at_most=1, per="source")
    with pytest.raises(ValueError, match="document 1 has no metadata 'source', which"):
        selector.choose(found(["a", None, "b"]))
