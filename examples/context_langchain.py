"""LangChain: a context without near copies, within a number of words.

Run it with ``python examples/context_langchain.py``; it needs ``variegate[langchain]``
and nothing from the network.
"""

from context_corpus import embed, make_corpus
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore

from variegate.integrations import ContextSelector, count_words
from variegate.integrations.langchain import VariegateCompressor


class WordEmbeddings(Embeddings):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return embed(texts)

    def embed_query(self, text: str) -> list[float]:
        return embed([text])[0]


def main() -> dict[str, list[Document]]:
    chunks, questions = make_corpus(n_products=20)
    embeddings = WordEmbeddings()
    store = InMemoryVectorStore(embeddings)
    store.add_documents(
        [
            Document(page_content=chunk.text, metadata={"number": number})
            for number, chunk in enumerate(chunks)
        ]
    )
    retriever = store.as_retriever(search_kwargs={"k": 40})
    selector = ContextSelector(
        fetch_k=40, k=6, budget=110, diversity=0.7, count_tokens=count_words
    )

    question = questions[0]
    found = retriever.invoke(question.text)
    # Where a compressor is asked for ...
    compressor = VariegateCompressor(selector=selector, embeddings=embeddings)
    # ... and in a chain.
    chain = RunnablePassthrough.assign(
        documents=lambda asked: retriever.invoke(asked["query"])
    ) | RunnableLambda(compressor.choose)
    contexts = {
        "retriever": found[:6],
        "MMR of LangChain": store.max_marginal_relevance_search(
            question.text, k=6, fetch_k=40
        ),
        "compressor": compressor.compress_documents(found, question.text),
        "chain": chain.invoke({"query": question.text}),
    }
    print(question.text)
    for name, documents in contexts.items():
        told = {question.told(chunks[d.metadata["number"]]) for d in documents} - {None}
        words = sum(len(d.page_content.split()) for d in documents)
        print(f"\n{name}: {len(told)} of {len(question.facts)} facts in {words} words")
        for document in documents:
            print(f"  {document.page_content}")
    return contexts


if __name__ == "__main__":
    main()
