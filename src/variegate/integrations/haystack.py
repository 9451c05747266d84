"""Haystack: a ranker and an extractor for pipelines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from variegate._install import explain_missing

with explain_missing("the ranker needs Haystack", "haystack"):
    from haystack import Document, component, default_from_dict, default_to_dict
    from haystack.core.serialization import component_to_dict
    from haystack.utils import deserialize_callable, serialize_callable

from variegate.integrations.core import ContextSelector
from variegate.integrations.documents import Candidates, Found
from variegate.integrations.evidence import SENTENCES_KEY, EvidenceExtractor

__all__ = ["VariegateEvidenceExtractor", "VariegateRanker"]

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
        """Return the settings as Haystack writes them: see :meth:`from_dict`."""
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
        """Return the ``fetch_k`` best documents with scores, embeddings and tokens."""
        return self.selector.candidates(self._as_found(documents))

    @component.output_types(documents=list[Document])
    def run(
        self,
        documents: list[Document],
        top_k: int | None = None,
        given: list[Document] | None = None,
    ) -> dict[str, list[Document]]:
        """Return ``{"documents": chosen}``: ``top_k``, or ``k`` of the selector.

        The best is first; each of the others adds most to the ones before it.  The
        choice does not repeat ``given`` documents, which are in the prompt already.
        """
        if not documents:
            return {"documents": []}
        chosen = self.selector.choose(
            self._as_found(documents), top_k, self._as_found(given or [])
        )
        return {"documents": [documents[place] for place in chosen]}

    def _as_found(self, documents: list[Document]) -> Found:
        """Return the documents' texts, scores, embeddings and metadata as ``Found``."""

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


@component
class VariegateEvidenceExtractor:
    """Cuts documents to the sentences that answer the query.

    Documents without a chosen sentence are left out; the others keep their order, id,
    score and metadata.  Their metadata ``evidence`` is a list of dict with the
    ``start`` and ``end`` of each sentence in the whole text, and its ``probability``.

    Parameters
    ----------
    extractor : EvidenceExtractor
    title_key : str, default="title"
        Name of the metadata that hold the title of a document, if it has one.

    Notes
    -----
    It is written and loaded as a :class:`VariegateRanker`: ``model`` must be a path or
    None, and ``count_tokens`` a function with a name or an encoding of tiktoken.
    """

    def __init__(self, extractor: EvidenceExtractor, title_key: str = "title") -> None:
        self.extractor = extractor
        self.title_key = title_key

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as Haystack writes them: see :meth:`from_dict`."""
        settings = self.extractor.settings()
        if callable(settings["count_tokens"]):
            settings["count_tokens"] = serialize_callable(settings["count_tokens"])
        return dict(default_to_dict(self, extractor=settings, title_key=self.title_key))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> VariegateEvidenceExtractor:
        """Return the component that :meth:`to_dict` turned into plain values."""
        parameters = dict(data["init_parameters"])
        settings = dict(parameters["extractor"])
        # Names of functions have their module before a dot, encodings have none.
        if "." in (settings["count_tokens"] or ""):
            settings["count_tokens"] = deserialize_callable(settings["count_tokens"])
        parameters["extractor"] = EvidenceExtractor(**settings)
        extractor: VariegateEvidenceExtractor = default_from_dict(
            cls, {**data, "init_parameters": parameters}
        )
        return extractor

    @component.output_types(documents=list[Document])
    def run(
        self,
        query: str,
        documents: list[Document],
        given: list[Document] | None = None,
    ) -> dict[str, list[Document]]:
        """Return documents, cut to their chosen sentences, in a dict ``documents``.

        Sentences of ``given`` documents, which are in the prompt already, are not
        chosen.
        """
        if not documents:
            return {"documents": []}
        extracts = self.extractor.extract(
            query,
            [document.content or "" for document in documents],
            [str(document.meta.get(self.title_key, "")) for document in documents],
            [document.content or "" for document in given or ()],
        )
        cut = []
        for one in extracts:
            whole = documents[one.place]
            meta = whole.meta | {SENTENCES_KEY: one.sentences}
            cut.append(replace(whole, content=one.text, meta=meta))
        return {"documents": cut}
