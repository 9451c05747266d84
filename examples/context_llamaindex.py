"""LlamaIndex: a context without near copies, within a number of words.

Run it with ``python examples/context_llamaindex.py``; it needs
``variegate[llamaindex]`` and nothing from the network.
"""

from context_corpus import embed, make_corpus
from llama_index.core import VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import NodeWithScore, TextNode

from variegate.integrations import ContextSelector, count_words
from variegate.integrations.llamaindex import VariegatePostprocessor


class WordEmbedding(BaseEmbedding):
    def _get_text_embedding(self, text: str) -> list[float]:
        return embed([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return embed([query])[0]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


def main() -> dict[str, list[NodeWithScore]]:
    chunks, questions = make_corpus(n_products=20)
    embed_model = WordEmbedding()
    # The number is for us, not for the embedding or the language model.
    hidden = {"excluded_embed_metadata_keys": ["number"]}
    hidden["excluded_llm_metadata_keys"] = ["number"]
    nodes = [
        TextNode(text=chunk.text, metadata={"number": number}, **hidden)
        for number, chunk in enumerate(chunks)
    ]
    index = VectorStoreIndex(nodes, embed_model=embed_model)
    retriever = index.as_retriever(similarity_top_k=40)
    # For a query engine: node_postprocessors=[postprocessor].
    selector = ContextSelector(
        fetch_k=40, k=6, budget=110, diversity=0.7, count_tokens=count_words
    )
    postprocessor = VariegatePostprocessor(selector=selector, embed_model=embed_model)
    question = questions[0]
    found = retriever.retrieve(question.text)
    contexts = {
        "retriever": found[:6],
        "postprocessor": postprocessor.postprocess_nodes(
            found, query_str=question.text
        ),
    }
    print(question.text)
    for name, chosen in contexts.items():
        told = {question.told(chunks[n.metadata["number"]]) for n in chosen} - {None}
        words = sum(len(node.text.split()) for node in chosen)
        print(f"\n{name}: {len(told)} of {len(question.facts)} facts in {words} words")
        for node in chosen:
            print(f"  {node.score:.2f} {node.text}")
    return contexts


if __name__ == "__main__":
    main()
