"""LlamaIndex: a node postprocessor."""

from __future__ import annotations

from collections.abc import Iterable
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

from variegate.integrations.core import Candidates, ContextSelector, Found

__all__ = ["VariegatePostprocessor"]

_HINT = (
    "give the postprocessor the embedding model of the index (embed_model=...), as "
    "most retrievers hand over nodes without embeddings"
)

#: Stands in written data for a part that cannot be written.
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
        """Return a field, or raise an error if it could not be written."""
        part = value.get("count_tokens") if isinstance(value, dict) else value
        if part == _NOT_WRITTEN:
            raise ValueError(
                "the postprocessor that was written had one, which cannot be written: "
                "give it again, from_dict(data, selector=..., embed_model=...)"
            )
        return value

    @field_serializer("embed_model")
    def _mark_unwritten(self, value: Any) -> str | None:
        """Return a mark in place of an object, or None."""
        return None if value is None else _NOT_WRITTEN

    @field_serializer("selector")
    def _write_selector(self, selector: ContextSelector) -> dict[str, Any]:
        """Return the settings of the selector, with a mark for a token counter."""
        settings = selector.settings()
        count_tokens = self._mark_unwritten(settings["count_tokens"])
        return settings | {"count_tokens": count_tokens}

    def candidates(self, nodes: list[NodeWithScore]) -> Candidates:
        """Return the nodes to choose from, as numbers to learn from."""
        return self.selector.candidates(self._as_found(nodes))

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        """Return the chosen nodes, the best first, each the one that adds most."""
        chosen = self.selector.choose(self._as_found(nodes)) if nodes else ()
        return [nodes[place] for place in chosen]

    def _as_found(self, nodes: list[NodeWithScore]) -> Found:
        """Return nodes in the form that a selector takes."""
        embed_model = self.embed_model

        def contents(mode: MetadataMode, places: Iterable[int]) -> list[str]:
            """Return the texts of the nodes at some places."""
            return [nodes[p].node.get_content(metadata_mode=mode) for p in places]

        def embed(places: list[int]) -> list[Any]:
            """Return the embeddings of the nodes at some places."""
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
