"""LangChain: a document compressor, and a function for a ``RunnableLambda``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

try:
    from langchain_core.documents import Document
    from langchain_core.documents.compressor import BaseDocumentCompressor
    from langchain_core.embeddings import Embeddings
    from pydantic import ConfigDict, model_validator
except ImportError as error:
    raise ImportError(
        f"the compressor needs LangChain ({error}): pip install 'variegate[langchain]'"
    ) from error

import numpy as np

from variegate._typing import FloatArray
from variegate.integrations.core import Candidates, ContextSelector, Found
from variegate.linalg.cosine import unit_rows

__all__ = ["VariegateCompressor", "document_chooser"]

_HINT = (
    "give the compressor the embeddings of the vector store (embeddings=...), or name "
    "the metadata that hold them (embedding_key=...)"
)


class VariegateCompressor(BaseDocumentCompressor):
    """Chooses documents that are relevant and do not repeat each other.

    Documents of LangChain have neither a score nor an embedding of their own.
    Embeddings are those in the metadata ``embedding_key`` or else made by
    ``embeddings``.  Scores are those in the metadata ``score_key``; where no document
    has one, the cosine of its embedding and that of the query, and without
    ``embeddings`` or a query, the order of the documents counts.

    Parameters
    ----------
    fetch_k : int
        How many documents are looked at; larger than ``k``, and ``k`` of the
        retriever.
    k, budget, method, model, diversity, omega, relevance, count_tokens
        As for :class:`~variegate.integrations.ContextSelector`.
    embeddings : Embeddings, optional
        Those of the vector store, for documents without any and for the query.
    score_key, embedding_key : str, default="score", "embedding"
        Names of metadata.
    """

    model_config = ConfigDict(
        arbitrary_types_allowed=True, extra="forbid", ignored_types=(cached_property,)
    )

    fetch_k: int
    k: int | None = None
    budget: float | None = None
    method: str | None = None
    model: Any = None
    diversity: float | None = None
    omega: float | None = None
    relevance: str = "score"
    count_tokens: Callable[[str], int] | None = None
    embeddings: Embeddings | None = None
    score_key: str = "score"
    embedding_key: str = "embedding"

    @model_validator(mode="after")
    def _check(self) -> VariegateCompressor:
        _ = self.selector
        return self

    @cached_property
    def selector(self) -> ContextSelector:
        """The selector with these settings."""
        return ContextSelector.of(self)

    def compress_documents(
        self,
        documents: Sequence[Document],
        query: str | None,
        callbacks: Any = None,
    ) -> list[Document]:
        """Return the chosen documents, the best first, each the one that adds most."""
        if not documents:
            return []
        found, embed = self._found(documents, query)
        chosen = self.selector.choose(found, embed, hint=_HINT)
        return [documents[place] for place in chosen]

    def candidates(
        self, documents: Sequence[Document], query: str | None = None
    ) -> Candidates:
        """Return the documents that are chosen among as numbers, to learn from."""
        found, embed = self._found(documents, query)
        return self.selector.candidates(found, embed, _HINT)

    def _found(
        self, documents: Sequence[Document], query: str | None
    ) -> tuple[Found, Any]:
        texts = [document.page_content for document in documents]
        metadata = [document.metadata for document in documents]
        scores = [known.get(self.score_key) for known in metadata]
        vectors = [known.get(self.embedding_key) for known in metadata]
        embeddings = self.embeddings
        if embeddings is None:
            return Found(texts, scores, vectors, metadata), None

        def embed(places: list[int]) -> list[list[float]]:
            return list(embeddings.embed_documents([texts[place] for place in places]))

        if query is not None and documents and all(score is None for score in scores):
            missing = [place for place, vector in enumerate(vectors) if vector is None]
            made = embed(missing) if missing else []
            for place, vector in zip(missing, made, strict=False):
                vectors[place] = vector
            scores = _cosines(vectors, embeddings.embed_query(query))
        return Found(texts, scores, vectors, metadata), embed


def document_chooser(**settings: Any) -> Callable[[Any], list[Document]]:
    """Return a function of documents, for a ``RunnableLambda``.

    Parameters
    ----------
    **settings
        Those of :class:`VariegateCompressor`.

    Returns
    -------
    callable
        From a list of documents, or a dict with ``documents`` and ``query``, to the
        chosen documents.  Without a query, documents without scores count by their
        order.
    """
    compressor = VariegateCompressor(**settings)

    def choose(found: Any) -> list[Document]:
        if not isinstance(found, Mapping):
            return compressor.compress_documents(found, None)
        if not {"documents", "query"} <= set(found):
            raise ValueError(
                "give a list of documents, or a dict with 'documents' and 'query', got "
                f"one with {', '.join(map(repr, found)) or 'nothing'}"
            )
        return compressor.compress_documents(found["documents"], found["query"])

    return choose


def _cosines(vectors: Sequence[Any], query: Sequence[float]) -> list[float | None]:
    lengths = {len(vector) for vector in [*vectors, query] if vector is not None}
    if len(lengths) > 1 or any(vector is None for vector in vectors):
        return [None] * len(vectors)  # ``gather`` says what is wrong
    rows: FloatArray = unit_rows(np.array([*vectors, query], dtype=np.float64))
    return [float(score) for score in rows[:-1] @ rows[-1]]
