"""LangChain: a document compressor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from variegate._install import explain_missing

with explain_missing("the compressor needs LangChain", "langchain"):
    from langchain_core.documents import Document
    from langchain_core.documents.compressor import BaseDocumentCompressor
    from langchain_core.embeddings import Embeddings
    from pydantic import ConfigDict

import numpy as np

from variegate._typing import FloatArray
from variegate.integrations.core import Candidates, ContextSelector, Found
from variegate.linalg.cosine import unit_rows

__all__ = ["VariegateCompressor"]

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
    selector : ContextSelector
        Its ``fetch_k`` is ``k`` of the retriever.
    embeddings : Embeddings, optional
        Those of the vector store, for documents without any and for the query.
    score_key, embedding_key : str, default="score", "embedding"
        Names of metadata.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    selector: ContextSelector
    embeddings: Embeddings | None = None
    score_key: str = "score"
    embedding_key: str = "embedding"

    def compress_documents(
        self,
        documents: Sequence[Document],
        query: str | None,
        callbacks: Any = None,
    ) -> list[Document]:
        """Return the chosen documents, the best first, each the one that adds most."""
        if not documents:
            return []
        chosen = self.selector.choose(self._as_found(documents, query))
        return [documents[place] for place in chosen]

    def choose(self, found: Any) -> list[Document]:
        """Return the chosen documents, as a function for a ``RunnableLambda``.

        ``found`` is a list of documents, or a dict with ``documents`` and ``query``.
        Without a query, documents without scores count by their order.
        """
        if not isinstance(found, Mapping):
            return self.compress_documents(found, None)
        if not {"documents", "query"} <= set(found):
            raise ValueError(
                "give a list of documents, or a dict with 'documents' and 'query', got "
                f"one with {', '.join(map(repr, found)) or 'nothing'}"
            )
        return self.compress_documents(found["documents"], found["query"])

    def candidates(
        self, documents: Sequence[Document], query: str | None = None
    ) -> Candidates:
        """Return the documents to choose from, as numbers to learn from."""
        return self.selector.candidates(self._as_found(documents, query))

    def _as_found(self, documents: Sequence[Document], query: str | None) -> Found:
        """Return documents in the form that a selector takes, scored by the query."""
        texts = [document.page_content for document in documents]
        metadata = [document.metadata for document in documents]
        scores = [known.get(self.score_key) for known in metadata]
        vectors = [known.get(self.embedding_key) for known in metadata]
        embeddings = self.embeddings
        if embeddings is None:
            return Found(texts, scores, vectors, metadata, hint=_HINT)

        def embed(places: list[int]) -> list[list[float]]:
            """Return the embeddings of the documents at some places."""
            return list(embeddings.embed_documents([texts[place] for place in places]))

        if query is not None and documents and all(score is None for score in scores):
            missing = [place for place, vector in enumerate(vectors) if vector is None]
            made = embed(missing) if missing else []
            for place, vector in zip(missing, made, strict=False):
                vectors[place] = vector
            scores = _cosines_with(vectors, embeddings.embed_query(query))
        return Found(texts, scores, vectors, metadata, embed, _HINT)


def _cosines_with(vectors: Sequence[Any], query: Sequence[float]) -> list[float | None]:
    """Return the cosine of each vector with the query, None where lengths differ."""
    lengths = {len(vector) for vector in [*vectors, query] if vector is not None}
    if len(lengths) > 1 or any(vector is None for vector in vectors):
        return [None] * len(vectors)  # ``ContextSelector.candidates`` refuses them
    rows: FloatArray = unit_rows(np.array([*vectors, query], dtype=np.float64))
    return [float(score) for score in rows[:-1] @ rows[-1]]
