"""LlamaIndex: node postprocessors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from variegate._install import explain_missing

with explain_missing("the postprocessor needs LlamaIndex", "llamaindex"):
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.bridge.pydantic import (
        ConfigDict,
        field_serializer,
        field_validator,
    )
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle

from variegate.integrations.core import ContextSelector
from variegate.integrations.documents import Candidates, Found
from variegate.integrations.evidence import SENTENCES_KEY, EvidenceExtractor

__all__ = ["VariegateEvidencePostprocessor", "VariegatePostprocessor"]

_HINT = (
    "give the postprocessor the embedding model of the index (embed_model=...), as "
    "most retrievers hand over nodes without embeddings"
)

#: A mark in written data for an object that cannot be written.
_NOT_WRITTEN = "not written: give it to from_dict"


class VariegatePostprocessor(BaseNodePostprocessor):
    """Chooses nodes that are relevant and do not repeat each other.

    A postprocessor of LlamaIndex, for ``node_postprocessors`` of a query engine.
    Scores are ``node.score``, embeddings ``node.embedding`` or, where it is empty, what
    ``embed_model`` makes of the text and metadata that the index embeds, too.  Where no
    node has a score, their order counts.

    Parameters
    ----------
    selector : ContextSelector
        Its ``fetch_k`` is ``similarity_top_k`` of the retriever.  Tokens are counted in
        the text of a node that the language model reads.
    embed_model : BaseEmbedding, optional
        That of the index, for nodes without an embedding.

    Notes
    -----
    ``to_dict`` writes ``model`` as a path.  ``embed_model``, and a selector with
    ``count_tokens``, cannot be written and are given again:
    ``VariegatePostprocessor.from_dict(data, embed_model=...)``.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    selector: ContextSelector
    embed_model: BaseEmbedding | None = None

    @classmethod
    def class_name(cls) -> str:
        """Return the name of the component."""
        return "VariegatePostprocessor"

    @field_validator("selector", "embed_model", mode="before")
    @classmethod
    def _refuse_unwritten(cls, value: Any) -> Any:
        """Return ``value`` of a field to validate; ValueError for ``_NOT_WRITTEN``."""
        part = value.get("count_tokens") if isinstance(value, dict) else value
        if part == _NOT_WRITTEN:
            raise ValueError(
                "the postprocessor that was written had one, which cannot be written: "
                "give it again, from_dict(data, selector=..., embed_model=...)"
            )
        return value

    @field_serializer("embed_model")
    def _mark_unwritten(self, value: Any) -> str | None:
        """Return ``_NOT_WRITTEN`` to write for an object, None for None."""
        return None if value is None else _NOT_WRITTEN

    @field_serializer("selector")
    def _write_selector(self, selector: ContextSelector) -> dict[str, Any]:
        """Return the settings of the selector; a token counter is ``_NOT_WRITTEN``."""
        settings = selector.settings()
        count_tokens = self._mark_unwritten(settings["count_tokens"])
        return settings | {"count_tokens": count_tokens}

    def candidates(self, nodes: list[NodeWithScore]) -> Candidates:
        """Return the ``fetch_k`` best nodes with scores, embeddings and tokens."""
        return self.selector.candidates(self._as_found(nodes))

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        """Return the chosen nodes, in the order of choice; the query is not used."""
        return self.choose(nodes)

    def choose(
        self, nodes: list[NodeWithScore], given: Sequence[NodeWithScore] = ()
    ) -> list[NodeWithScore]:
        """Return the chosen nodes, in the order of choice.

        The choice does not repeat ``given`` nodes, which are in the prompt already.  A
        query engine calls the postprocessor without them.
        """
        if not nodes:
            return []
        earlier = self._as_found(list(given))
        chosen = self.selector.choose(self._as_found(nodes), given=earlier)
        return [nodes[place] for place in chosen]

    def _as_found(self, nodes: list[NodeWithScore]) -> Found:
        """Return the nodes' texts, scores, embeddings and metadata as ``Found``."""
        embed_model = self.embed_model

        def contents(mode: MetadataMode, places: Iterable[int]) -> list[str]:
            """Return texts of nodes at positions, with metadata chosen by ``mode``."""
            return [nodes[p].node.get_content(metadata_mode=mode) for p in places]

        def embed(places: list[int]) -> list[Any]:
            """Return the embeddings of the nodes at positions ``places`` from 0."""
            assert embed_model is not None
            texts = contents(MetadataMode.EMBED, places)
            return list(embed_model.get_text_embedding_batch(texts))

        return Found(
            contents(MetadataMode.LLM, range(len(nodes))),
            [one.score for one in nodes],
            [one.node.embedding for one in nodes],
            [one.node.metadata for one in nodes],
            None if embed_model is None else embed,
            _HINT,
        )


class VariegateEvidencePostprocessor(BaseNodePostprocessor):
    """Cuts nodes to the sentences that answer the query.

    Nodes without a chosen sentence are left out; the others are copies that keep their
    order, id, score and metadata.  Their metadata ``evidence``, which neither the
    language model nor an embedding reads, is a list of dict with the ``start`` and
    ``end`` of each sentence in the whole text, and its ``probability``.

    Parameters
    ----------
    extractor : EvidenceExtractor
        Its budget is that of the sentences; metadata that the language model reads are
        not counted.
    title_key : str, default="title"
        Name of the metadata that hold the title of a node, if it has one.

    Notes
    -----
    ``to_dict`` writes ``model`` as a path.  An extractor with a function
    ``count_tokens`` is given again:
    ``VariegateEvidencePostprocessor.from_dict(data, extractor=...)``.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    extractor: EvidenceExtractor
    title_key: str = "title"

    @classmethod
    def class_name(cls) -> str:
        """Return the name of the component."""
        return "VariegateEvidencePostprocessor"

    @field_validator("extractor", mode="before")
    @classmethod
    def _refuse_unwritten(cls, value: Any) -> Any:
        """Return ``value`` to validate; ValueError if it holds ``_NOT_WRITTEN``."""
        if isinstance(value, dict) and value.get("count_tokens") == _NOT_WRITTEN:
            raise ValueError(
                "the extractor that was written had a function count_tokens, which "
                "cannot be written: give it again, from_dict(data, extractor=...)"
            )
        return value

    @field_serializer("extractor")
    def _write_extractor(self, extractor: EvidenceExtractor) -> dict[str, Any]:
        """Return the settings of the extractor; a function is ``_NOT_WRITTEN``."""
        settings = extractor.settings()
        if callable(settings["count_tokens"]):
            settings["count_tokens"] = _NOT_WRITTEN
        return settings

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        """Return the nodes with only their chosen sentences, one a line."""
        if nodes and query_bundle is None:
            raise ValueError("give the query that the sentences answer: query_str=...")
        return [] if query_bundle is None else self.cut(nodes, query_bundle.query_str)

    def cut(
        self,
        nodes: list[NodeWithScore],
        query: str,
        given: Sequence[NodeWithScore] = (),
    ) -> list[NodeWithScore]:
        """Return the nodes with only their chosen sentences, one a line.

        Sentences of ``given`` nodes, which are in the prompt already, are not chosen.
        A query engine calls the postprocessor without them.
        """
        if not nodes:
            return []

        def texts_of(some: Sequence[NodeWithScore]) -> list[str]:
            """Return the texts of nodes, without metadata."""
            return [
                one.node.get_content(metadata_mode=MetadataMode.NONE) for one in some
            ]

        extracts = self.extractor.extract(
            query,
            texts_of(nodes),
            [str(one.node.metadata.get(self.title_key, "")) for one in nodes],
            texts_of(given),
        )
        cut = []
        for one in extracts:
            node = nodes[one.place].node.model_copy()
            node.metadata = node.metadata | {SENTENCES_KEY: one.sentences}
            for keys in ("excluded_llm_metadata_keys", "excluded_embed_metadata_keys"):
                setattr(node, keys, [*getattr(node, keys), SENTENCES_KEY])
            node.set_content(one.text)
            cut.append(NodeWithScore(node=node, score=nodes[one.place].score))
        return cut
