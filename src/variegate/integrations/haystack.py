"""Haystack: a ranker for pipelines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from variegate._install import explain_missing

with explain_missing("the ranker needs Haystack", "haystack"):
    from haystack import Document, component, default_from_dict, default_to_dict
    from haystack.core.serialization import component_to_dict
    from haystack.utils import deserialize_callable, serialize_callable

from variegate.integrations.core import Candidates, ContextSelector, Found

__all__ = ["VariegateRanker"]

_HINT = (
    "let the retriever return them (return_embedding=True), or give the ranker the "
    "document embedder of the pipeline (embedder=...)"
)


@component
class VariegateRanker:
    """Chooses documents that are relevant and do not repeat each other.

    A component of a Haystack pipeline, between a retriever and a prompt.  Scores are
    ``document.score``, embeddings ``document.embedding`` or, where it is empty, what
    ``embedder`` makes.  Where no document has a score, their order counts.

    Parameters
    ----------
    selector : ContextSelector
        Its ``fetch_k`` is ``top_k`` of the retriever.
    embedder : document embedder, optional
        For documents without an embedding: a component with ``run(documents)``.

    Notes
    -----
    A pipeline that holds one can be written by ``dumps`` if ``model`` is a path and
    ``count_tokens`` a function with a name of its own (not a lambda).  Haystack loads
    no component of other packages before it is told to trust them:
    ``Pipeline.loads(text, allowed_modules=["variegate"])``.
    """

    def __init__(self, selector: ContextSelector, embedder: Any = None) -> None:
        if embedder is not None and not hasattr(embedder, "run"):
            raise ValueError(
                f"embedder must be a document embedder of Haystack, got {embedder!r}"
            )
        self.selector = selector
        self.embedder = embedder

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain values."""
        settings = self.selector.settings()
        if settings["count_tokens"] is not None:
            settings["count_tokens"] = serialize_callable(settings["count_tokens"])
        embedder = self.embedder and component_to_dict(self.embedder, "embedder")
        return dict(default_to_dict(self, selector=settings, embedder=embedder))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> VariegateRanker:
        """Return the component that :meth:`to_dict` turned into plain values."""
        parameters = dict(data["init_parameters"])
        settings = dict(parameters["selector"])
        if settings["count_tokens"] is not None:
            settings["count_tokens"] = deserialize_callable(settings["count_tokens"])
        parameters["selector"] = ContextSelector(**settings)
        ranker: VariegateRanker = default_from_dict(
            cls, {**data, "init_parameters": parameters}
        )
        return ranker

    def warm_up(self) -> None:
        """Load the embedder's model, if it has one to load."""
        if hasattr(self.embedder, "warm_up"):
            self.embedder.warm_up()

    def candidates(self, documents: list[Document]) -> Candidates:
        """Return the documents to choose from, as numbers to learn from."""
        return self.selector.candidates(self._as_found(documents))

    @component.output_types(documents=list[Document])
    def run(
        self, documents: list[Document], top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """Return ``{"documents": chosen}``: ``top_k``, or ``k`` of the selector.

        The best is first; each of the others adds most to the ones before it.
        """
        if not documents:
            return {"documents": []}
        chosen = self.selector.choose(self._as_found(documents), top_k)
        return {"documents": [documents[place] for place in chosen]}

    def _as_found(self, documents: list[Document]) -> Found:
        """Return documents in the form that a selector takes."""

        def embed(places: list[int]) -> list[Any]:
            """Return the embeddings of the documents at some places."""
            # Embedders of Haystack may write into what they are given.
            copies = [replace(documents[place]) for place in places]
            embedded = self.embedder.run(documents=copies)["documents"]
            return [document.embedding for document in embedded]

        return Found(
            [document.content or "" for document in documents],
            [document.score for document in documents],
            [document.embedding for document in documents],
            [document.meta for document in documents],
            None if self.embedder is None else embed,
            _HINT,
        )
