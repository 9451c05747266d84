"""Haystack: a ranker for pipelines."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

try:
    from haystack import Document, component, default_from_dict, default_to_dict
    from haystack.core.serialization import component_to_dict
    from haystack.utils import deserialize_callable, serialize_callable
except ImportError as error:
    raise ImportError(
        f"the ranker needs Haystack ({error}): pip install 'variegate[haystack]'"
    ) from error

from variegate.integrations.core import Candidates, ContextSelector, Found, TokenCounter

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
    fetch_k : int
        How many documents are looked at; larger than ``top_k``, and ``top_k`` of the
        retriever.
    top_k : int, optional
        How many to choose: ``k`` of
        :class:`~variegate.integrations.ContextSelector`.
    budget, method, model, diversity, omega, relevance, count_tokens
        As for :class:`~variegate.integrations.ContextSelector`.
    embedder : document embedder, optional
        For documents without an embedding: a component with ``run(documents)``.

    Notes
    -----
    A pipeline that holds one can be written by ``dumps`` if ``model`` is a path and
    ``count_tokens`` a function with a name of its own (not a lambda).  Haystack loads
    no component of other packages before it is told to trust them:
    ``Pipeline.loads(text, allowed_modules=["variegate"])``.
    """

    def __init__(
        self,
        fetch_k: int,
        top_k: int | None = None,
        budget: float | None = None,
        method: str | None = None,
        model: Any = None,
        diversity: float | None = None,
        omega: float | None = None,
        relevance: str = "score",
        count_tokens: TokenCounter | None = None,
        embedder: Any = None,
    ) -> None:
        if embedder is not None and not hasattr(embedder, "run"):
            raise ValueError(
                f"embedder must be a document embedder of Haystack, got {embedder!r}"
            )
        self.embedder = embedder
        choice = (method, model, diversity, omega, relevance)
        self.selector = ContextSelector(fetch_k, top_k, budget, *choice, count_tokens)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain values."""
        selector = self.selector
        if not isinstance(selector.model, str | Path | None):
            raise ValueError(
                "a model cannot be written into a pipeline: save it "
                '(model.save("model.json")) and give the ranker the path of the file'
            )
        settings = {
            "top_k" if field.name == "k" else field.name: getattr(selector, field.name)
            for field in fields(selector)
        }
        if selector.model is not None:
            settings["model"] = str(selector.model)
        if selector.count_tokens is not None:
            settings["count_tokens"] = serialize_callable(selector.count_tokens)
        embedder = self.embedder and component_to_dict(self.embedder, "embedder")
        return dict(default_to_dict(self, **settings, embedder=embedder))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> VariegateRanker:
        """Return the component that :meth:`to_dict` turned into plain values."""
        settings = dict(data.get("init_parameters", {}))
        if settings.get("count_tokens") is not None:
            settings["count_tokens"] = deserialize_callable(settings["count_tokens"])
        ranker: VariegateRanker = default_from_dict(
            cls, {**data, "init_parameters": settings}
        )
        return ranker

    def warm_up(self) -> None:
        """Let the embedder load what it needs."""
        if hasattr(self.embedder, "warm_up"):
            self.embedder.warm_up()

    def candidates(self, documents: list[Document]) -> Candidates:
        """Return the documents that are chosen among as numbers, to learn from."""
        found, embed = self._found(documents)
        return self.selector.candidates(found, embed, _HINT)

    @component.output_types(documents=list[Document])
    def run(
        self, documents: list[Document], top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """Choose documents.

        Parameters
        ----------
        documents : list of Document
        top_k : int, optional
            In place of that of the ranker.

        Returns
        -------
        dict
            ``documents``: those chosen, the best first, each of the others the one that
            adds most to those before it.  None of none.
        """
        if not documents:
            return {"documents": []}
        found, embed = self._found(documents)
        chosen = self.selector.choose(found, embed, top_k, _HINT)
        return {"documents": [documents[place] for place in chosen]}

    def _found(self, documents: list[Document]) -> tuple[Found, Any]:
        found = Found(
            [document.content or "" for document in documents],
            [document.score for document in documents],
            [document.embedding for document in documents],
            [document.meta for document in documents],
        )

        def embed(places: list[int]) -> list[Any]:
            # Embedders of Haystack may write into what they are given.
            copies = [replace(documents[place]) for place in places]
            embedded = self.embedder.run(documents=copies)["documents"]
            return [document.embedding for document in embedded]

        return found, None if self.embedder is None else embed
