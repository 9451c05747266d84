"""A compressor and a function for chains of LangChain, offline."""

import asyncio
import copy

import numpy as np
import pytest

pytest.importorskip(
    "langchain_core",
    reason="needs 'variegate[langchain]': make test-integrations has it",
)

import context_langchain
import evidence_langchain
from context_corpus import embed, make_corpus
from langchain_core.documents import Document
from langchain_core.documents.compressor import BaseDocumentCompressor
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from pydantic import ValidationError

from variegate.integrations import ContextSelector, EvidenceExtractor, Found
from variegate.integrations.langchain import (
    VariegateCompressor,
    VariegateEvidenceCompressor,
)

pytestmark = pytest.mark.usefixtures("no_network")

EMBEDDINGS = context_langchain.WordEmbeddings()
COPIES = [Document(page_content="a roof leaks") for _ in range(4)]


@pytest.fixture(scope="module")
def corpus():
    return make_corpus(12)


@pytest.fixture(scope="module")
def store(corpus):
    store = InMemoryVectorStore(EMBEDDINGS)
    store.add_texts([chunk.text for chunk in corpus[0]])
    return store


def expected(documents, scores, **settings):
    texts = [d.page_content for d in documents]
    places = ContextSelector(**settings).choose(Found(texts, scores, embed(texts)))
    return [documents[p] for p in places]


def test_a_compressor_is_one():
    assert isinstance(
        VariegateCompressor(selector=ContextSelector(9, 2)), BaseDocumentCompressor
    )


def test_documents_without_scores_are_scored_by_the_query(store, corpus):
    question = corpus[1][0].text
    pairs = store.similarity_search_with_score(question, k=20)
    documents, scores = [d for d, _ in pairs], [s for _, s in pairs]
    selector = ContextSelector(fetch_k=15, k=4, diversity=0.7)
    compressor = VariegateCompressor(selector=selector, embeddings=EMBEDDINGS)
    wanted = expected(documents, scores, fetch_k=15, k=4, diversity=0.7)
    assert compressor.compress_documents(documents, question) == wanted
    later = asyncio.run(compressor.acompress_documents(documents, question))
    assert later == wanted


def test_with_a_query_the_order_does_not_matter(store, corpus):
    question = corpus[1][1].text
    pairs = store.similarity_search_with_score(question, k=len(corpus[0]))
    # One of each score, as equal ones are told apart by their order.
    documents = list({round(score, 9): d for d, score in pairs}.values())
    compressor = VariegateCompressor(
        selector=ContextSelector(8, 4), embeddings=EMBEDDINGS
    )
    chosen = compressor.compress_documents(documents, question)
    assert compressor.compress_documents(documents[::-1], question) == chosen
    assert len(documents) > 8


def test_scores_and_embeddings_of_the_metadata_come_first(corpus):
    rng = np.random.default_rng(0)
    texts = [chunk.text for chunk in corpus[0][:12]]
    vectors = rng.standard_normal((12, 4))
    scores = rng.random(12).tolist()
    documents = [
        Document(page_content=text, metadata={"rerank": score, "vector": vector})
        for text, score, vector in zip(texts, scores, vectors.tolist(), strict=True)
    ]
    compressor = VariegateCompressor(
        selector=ContextSelector(10, 4), score_key="rerank", embedding_key="vector"
    )
    places = ContextSelector(10, 4).choose(Found(texts, scores, vectors))
    wanted = [documents[p] for p in places]
    assert compressor.compress_documents(documents, "any") == wanted


def test_a_function_in_a_chain(store, corpus):
    question = corpus[1][0].text
    pairs = store.similarity_search_with_score(question, k=20)
    documents, scores = [d for d, _ in pairs], [s for _, s in pairs]
    settings = {"fetch_k": 15, "budget": 60}
    selector = ContextSelector(**settings)
    choose = VariegateCompressor(selector=selector, embeddings=EMBEDDINGS).choose
    retriever = store.as_retriever(search_kwargs={"k": 20})
    by_rank = (retriever | RunnableLambda(choose)).invoke(question)
    assert by_rank == expected(documents, [None] * 20, **settings)
    asked = {"documents": documents, "query": question}
    by_score = RunnableLambda(choose).invoke(asked)
    assert by_score == expected(documents, scores, **settings)
    assert sum(len(d.page_content.split()) for d in by_score) <= 60
    with pytest.raises(ValueError, match="and 'query', got one with 'docs'"):
        choose({"docs": documents})


def test_the_fake_embeddings_of_langchain_will_do():
    fake = DeterministicFakeEmbedding(size=8)
    compressor = VariegateCompressor(selector=ContextSelector(9, 2), embeddings=fake)
    chosen = compressor.compress_documents([*COPIES, Document(page_content="b")], "q")
    assert {d.page_content for d in chosen} == {"a roof leaks", "b"}


def test_what_is_missing_is_said_in_words():
    compressor = VariegateCompressor(selector=ContextSelector(9, 2))
    assert compressor.compress_documents([], "q") == []
    with pytest.raises(ValueError, match=r"4 of 4 documents have no embedding.*embedd"):
        compressor.compress_documents(COPIES, "q")
    mixed = [
        Document(page_content="a", metadata={"embedding": [1.0, 0.0]}),
        Document(page_content="b", metadata={"embedding": [1.0]}),
        Document(page_content="c", metadata={"embedding": [1.0]}),
    ]
    with pytest.raises(ValueError, match="embeddings are of different lengths"):
        compressor.compress_documents(mixed, "q")
    with pytest.raises(ValueError, match="embeddings are of different lengths"):
        VariegateCompressor(
            selector=ContextSelector(9, 2), embeddings=EMBEDDINGS
        ).compress_documents(mixed, "q")


def test_settings_are_checked_at_once():
    with pytest.raises(ValidationError, match="fetch_k must be larger"):
        VariegateCompressor(selector={"fetch_k": 5, "k": 5})
    with pytest.raises(ValidationError, match="lambda_mult"):
        VariegateCompressor(selector=ContextSelector(9, 2), lambda_mult=0.5)


def test_the_example_runs(capsys):
    contexts = context_langchain.main()
    assert "compressor: " in capsys.readouterr().out
    assert contexts["chain"] == contexts["compressor"]
    texts = [d.page_content for d in contexts["compressor"]]
    assert len(set(texts)) == len(texts) <= 6
    assert sum(len(text.split()) for text in texts) <= 110


# Evidence -----------------------------------------------------------------------------

QUESTION = "How much water does the tank hold?"
MANUAL = [
    Document(
        id=f"m{number}",
        page_content=text,
        metadata={"source": "manual.pdf", "title": title},
    )
    for number, (text, title) in enumerate(
        [
            ("The pump is cleaned once a month.", "Cleaning"),
            ("Fill it daily. It holds ten litres of water. Close it.", "The tank"),
            ("The tank is made of steel, and holds ten litres of water.", "Numbers"),
        ]
    )
]


def extracts(extractor):
    return extractor.extract(
        QUESTION,
        [document.page_content for document in MANUAL],
        [document.metadata["title"] for document in MANUAL],
    )


def test_documents_are_cut_to_their_evidence():
    extractor = EvidenceExtractor(budget=25)
    compressor = VariegateEvidenceCompressor(extractor=extractor)
    assert isinstance(compressor, BaseDocumentCompressor)
    before = copy.deepcopy(MANUAL)
    cut = compressor.compress_documents(MANUAL, QUESTION)
    assert before == MANUAL
    assert cut == [
        Document(
            id=MANUAL[one.place].id,
            page_content=one.text,
            metadata=MANUAL[one.place].metadata | {"evidence": one.sentences},
        )
        for one in extracts(extractor)
    ]
    (span,) = cut[-1].metadata["evidence"]
    whole = MANUAL[2].page_content
    assert cut[-1].page_content == whole[span["start"] : span["end"]]
    assert asyncio.run(compressor.acompress_documents(MANUAL, QUESTION)) == cut
    assert compressor.compress_documents([], QUESTION) == []


def test_titles_are_those_of_the_metadata():
    untitled = VariegateEvidenceCompressor(
        extractor=EvidenceExtractor(), title_key="none"
    ).compress_documents(MANUAL, QUESTION)
    titled = VariegateEvidenceCompressor(
        extractor=EvidenceExtractor()
    ).compress_documents(MANUAL, QUESTION)

    def probabilities(documents):
        return [
            span["probability"] for d in documents for span in d.metadata["evidence"]
        ]

    assert probabilities(titled) != probabilities(untitled)
    assert probabilities(titled) == [
        span["probability"]
        for one in extracts(EvidenceExtractor())
        for span in one.sentences
    ]


def test_settings_of_the_extractor_are_checked_at_once():
    with pytest.raises(ValidationError, match="a budget must be at least 1"):
        VariegateEvidenceCompressor(extractor={"budget": 0})


def test_the_example_of_evidence_runs(capsys):
    documents = evidence_langchain.main()
    said = capsys.readouterr().out
    assert all(document.page_content in said for document in documents)
    assert 1 < len(documents) < 20
    assert sum(len(document.page_content) + 1 for document in documents) <= 4 * 201
