"""Answers from a manual: a search, and its passages cut to the sentences that matter.

pip install 'variegate[langchain,text]'
python examples/evidence_langchain.py
"""

from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda, RunnableParallel
from manual_questions import QUESTIONS, passages, search

from variegate.integrations import EvidenceExtractor
from variegate.integrations.langchain import VariegateEvidenceCompressor


def main() -> list[Document]:
    texts, titles = passages()

    def find(question: str) -> list[Document]:
        numbers = search(question, texts)
        return [
            Document(page_content=texts[number], metadata={"title": titles[number]})
            for number in numbers
        ]

    extractor = EvidenceExtractor(budget=200)
    compressor = VariegateEvidenceCompressor(extractor=extractor)
    chain = RunnableParallel(
        documents=RunnableLambda(find), query=RunnableLambda(str)
    ) | RunnableLambda(lambda found: compressor.compress_documents(**found))
    question = next(iter(QUESTIONS))
    print(question)
    documents = chain.invoke(question)
    for document in documents:
        print(f"\n{document.metadata['title']}\n{document.page_content}")
    return documents


if __name__ == "__main__":
    main()
