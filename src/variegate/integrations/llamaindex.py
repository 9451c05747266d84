"""LlamaIndex: a node postprocessor."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from variegate._install import explain_missing

with explain_missing("the postprocessor needs LlamaIndex", "llamaindex"):
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.bridge.pydantic import ConfigDict
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle

from variegate.integrations.core import Candidates, ContextSelector, Found

__all__ = ["VariegatePostprocessor"]

_HINT = (
    "give the postprocessor the embedding model of the index (embed_model=...), as "
    "most retrievers hand over nodes without embeddings"
)


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
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    selector: ContextSelector
    embed_model: BaseEmbedding | None = None

    @classmethod
    def class_name(cls) -> str:
        """Return the name of the component."""
        return "VariegatePostprocessor"

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
