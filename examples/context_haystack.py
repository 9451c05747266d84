"""Haystack: a context without near copies, within a number of words.

Run it with ``python examples/context_haystack.py``; it needs ``variegate[haystack]``
and nothing from the network.
"""

import os

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")

from context_corpus import embed, make_corpus
from haystack import Document, Pipeline
from haystack.components.embedders import MockTextEmbedder
from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever
from haystack.document_stores.in_memory import InMemoryDocumentStore

from variegate.integrations import ContextSelector, count_words
from variegate.integrations.haystack import VariegateRanker


def embed_text(text: str) -> list[float]:
    return embed([text])[0]


def main() -> dict[str, list[Document]]:
    chunks, questions = make_corpus(n_products=20)
    store = InMemoryDocumentStore(embedding_similarity_function="cosine")
    vectors = embed([chunk.text for chunk in chunks])
    store.write_documents(
        [
            Document(content=chunk.text, embedding=vector, meta={"number": number})
            for number, (chunk, vector) in enumerate(zip(chunks, vectors, strict=True))
        ]
    )
    pipeline = Pipeline()
    pipeline.add_component("embedder", MockTextEmbedder(embedding_fn=embed_text))
    pipeline.add_component(
        "retriever", InMemoryEmbeddingRetriever(store, top_k=40, return_embedding=True)
    )
    selector = ContextSelector(
        fetch_k=40, k=6, budget=110, diversity=0.7, count_tokens=count_words
    )
    pipeline.add_component("ranker", VariegateRanker(selector))
    pipeline.connect("embedder.embedding", "retriever.query_embedding")
    pipeline.connect("retriever.documents", "ranker.documents")

    question = questions[0]
    result = pipeline.run(
        {"embedder": {"text": question.text}},
        include_outputs_from={"retriever"},
    )
    contexts = {
        "retriever": result["retriever"]["documents"][:6],
        "ranker": result["ranker"]["documents"],
    }
    print(question.text)
    for name, documents in contexts.items():
        told = {question.told(chunks[d.meta["number"]]) for d in documents} - {None}
        words = sum(len(d.content.split()) for d in documents)
        print(f"\n{name}: {len(told)} of {len(question.facts)} facts in {words} words")
        for document in documents:
            print(f"  {document.score:.2f} {document.content}")
    return contexts


if __name__ == "__main__":
    main()
