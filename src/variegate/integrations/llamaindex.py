"""LlamaIndex: a node postprocessor."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

try:
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.bridge.pydantic import (
        ConfigDict,
        field_serializer,
        field_validator,
        model_validator,
    )
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle
except ImportError as error:
    raise ImportError(
        f"the postprocessor needs LlamaIndex ({error}): "
        "pip install 'variegate[llamaindex]'"
    ) from error

from variegate.integrations.core import Candidates, ContextSelector, Found

__all__ = ["VariegatePostprocessor"]

_HINT = (
    "give the postprocessor the embedding model of the index (embed_model=...), as "
    "most retrievers hand over nodes without embeddings"
)

#: Stands for what cannot be written, in what was.
_NOT_WRITTEN = "not written: give it to from_dict"


class VariegatePostprocessor(BaseNodePostprocessor):
    """Chooses nodes that are relevant and do not repeat each other.

    A postprocessor of LlamaIndex, for ``node_postprocessors`` of a query engine.
    Scores are ``node.score``, embeddings ``node.embedding`` or, where it is empty, what
    ``embed_model`` makes of the text and metadata that the index embeds, too.  Where no
    node has a score, their order counts.

    Parameters
    ----------
    fetch_k : int
        How many nodes are looked at; larger than ``k``, and ``similarity_top_k`` of the
        retriever.
    k, budget, method, model, diversity, omega, relevance, count_tokens
        As for :class:`~variegate.integrations.ContextSelector`.  Tokens are counted in
        what the language model gets to see of a node.
    embed_model : BaseEmbedding, optional
        That of the index, for nodes without an embedding.

    Notes
    -----
    ``to_dict`` writes ``model`` as a path; ``embed_model`` and ``count_tokens`` cannot
    be written and are given again:
    ``VariegatePostprocessor.from_dict(data, embed_model=...)``.
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
    embed_model: BaseEmbedding | None = None

    @classmethod
    def class_name(cls) -> str:
        """Return the name that it is written with."""
        return "VariegatePostprocessor"

    @field_validator("count_tokens", "embed_model", mode="before")
    @classmethod
    def _given_again(cls, value: Any) -> Any:
        if value == _NOT_WRITTEN:
            raise ValueError(
                "the postprocessor that was written had one, which cannot be written: "
                "give it again, from_dict(data, count_tokens=..., embed_model=...)"
            )
        return value

    @field_serializer("count_tokens", "embed_model")
    def _written(self, value: Any) -> str | None:
        return None if value is None else _NOT_WRITTEN

    @field_serializer("model")
    def _path(self, model: Any) -> str | None:
        if hasattr(model, "fit"):
            raise ValueError(
                'a model cannot be written: save it (model.save("model.json")) and '
                "give the path of the file"
            )
        return None if model is None else str(model)

    @model_validator(mode="after")
    def _check(self) -> VariegatePostprocessor:
        _ = self.selector
        return self

    @cached_property
    def selector(self) -> ContextSelector:
        """The selector with these settings."""
        return ContextSelector.of(self)

    def candidates(self, nodes: list[NodeWithScore]) -> Candidates:
        """Return the nodes that are chosen among as numbers, to learn from."""
        found, embed = self._found(nodes)
        return self.selector.candidates(found, embed, _HINT)

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        """Return the chosen nodes, the best first, each the one that adds most."""
        if not nodes:
            return []
        found, embed = self._found(nodes)
        chosen = self.selector.choose(found, embed, hint=_HINT)
        return [nodes[place] for place in chosen]

    def _found(self, nodes: list[NodeWithScore]) -> tuple[Found, Any]:
        found = Found(
            [one.node.get_content(metadata_mode=MetadataMode.LLM) for one in nodes],
            [one.score for one in nodes],
            [one.node.embedding for one in nodes],
            [one.node.metadata for one in nodes],
        )

        def embed(places: list[int]) -> list[Any]:
            assert self.embed_model is not None
            mode = MetadataMode.EMBED
            texts = [nodes[p].node.get_content(metadata_mode=mode) for p in places]
            return list(self.embed_model.get_text_embedding_batch(texts))

        return found, None if self.embed_model is None else embed
