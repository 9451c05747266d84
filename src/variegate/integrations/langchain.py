"""LangChain: document compressors."""

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
from variegate.integrations.core import ContextSelector
from variegate.integrations.documents import Candidates, Found
from variegate.integrations.evidence import SENTENCES_KEY, EvidenceExtractor
from variegate.linalg.cosine import unit_rows

__all__ = ["VariegateCompressor", "VariegateEvidenceCompressor"]

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
        *,
        given: Sequence[Document] = (),
    ) -> list[Document]:
        """Return the chosen documents, in the order of choice, for a query or None.

        The choice does not repeat ``given`` documents, which are in the prompt already.
        """
        if not documents:
            return []
        chosen = self.selector.choose(
            self._as_found(documents, query), given=self._as_found(given, None)
        )
        return [documents[place] for place in chosen]

    def choose(self, found: Any) -> list[Document]:
        """Return the chosen documents, as a function for a ``RunnableLambda``.

        ``found`` is a list of documents, or a dict with ``documents`` and ``query``,
        and perhaps ``given``, documents that are in the prompt already.  Without a
        query, documents without scores count by their order.
        """
        if not isinstance(found, Mapping):
            return self.compress_documents(found, None)
        if not {"documents", "query"} <= set(found):
            raise ValueError(
                "give a list of documents, or a dict with 'documents' and 'query', got "
                f"one with {', '.join(map(repr, found)) or 'nothing'}"
            )
        return self.compress_documents(
            found["documents"], found["query"], given=found.get("given") or ()
        )

    def candidates(
        self, documents: Sequence[Document], query: str | None = None
    ) -> Candidates:
        """Return the ``fetch_k`` best documents with scores, embeddings and tokens."""
        return self.selector.candidates(self._as_found(documents, query))

    def _as_found(self, documents: Sequence[Document], query: str | None) -> Found:
        """Return the documents' texts, scores, embeddings and metadata as ``Found``.

        Without scores, they are cosines with the query, if that can be embedded.
        """
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
    """Return cosines with the query, all None if one is missing or lengths differ."""
    lengths = {len(vector) for vector in [*vectors, query] if vector is not None}
    if len(lengths) > 1 or any(vector is None for vector in vectors):
        return [None] * len(vectors)  # ``ContextSelector.candidates`` refuses them
    rows: FloatArray = unit_rows(np.array([*vectors, query], dtype=np.float64))
    return [float(score) for score in rows[:-1] @ rows[-1]]


class VariegateEvidenceCompressor(BaseDocumentCompressor):
    """Cuts documents to the sentences that answer the query.

    Documents without a chosen sentence are left out; the others keep their order, id
    and metadata.  Their metadata ``evidence`` is a list of dict with the ``start`` and
    ``end`` of each sentence in the whole text, and its ``probability``.

    Parameters
    ----------
    extractor : EvidenceExtractor
    title_key : str, default="title"
        Name of the metadata that hold the title of a document, if it has one.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    extractor: EvidenceExtractor
    title_key: str = "title"

    def compress_documents(
        self,
        documents: Sequence[Document],
        query: str,
        callbacks: Any = None,
        *,
        given: Sequence[Document] = (),
    ) -> list[Document]:
        """Return the documents with only their chosen sentences, one a line.

        Sentences of ``given`` documents, which are in the prompt already, are not
        chosen.
        """
        if not documents:
            return []
        extracts = self.extractor.extract(
            query,
            [document.page_content for document in documents],
            [str(document.metadata.get(self.title_key, "")) for document in documents],
            [document.page_content for document in given],
        )
        return [
            documents[one.place].model_copy(
                update={
                    "page_content": one.text,
                    "metadata": documents[one.place].metadata
                    | {SENTENCES_KEY: one.sentences},
                }
            )
            for one in extracts
        ]
