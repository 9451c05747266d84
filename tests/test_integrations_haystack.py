"""A ranker in pipelines of Haystack, offline."""

import os

import numpy as np
import pytest

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # read when it is imported
haystack = pytest.importorskip(
    "haystack", reason="needs 'variegate[haystack]': make test-integrations has it"
)

import context_haystack
from context_corpus import embed, make_corpus
from haystack import Document, Pipeline
from haystack.components.embedders import MockDocumentEmbedder, MockTextEmbedder
from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever
from haystack.core.errors import DeserializationError, SerializationError
from haystack.document_stores.in_memory import InMemoryDocumentStore

from variegate.integrations import (
    ContextSelector,
    EvidenceExtractor,
    Found,
    training_table,
)
from variegate.integrations.haystack import VariegateEvidenceExtractor, VariegateRanker
from variegate.tables import TableSelector
from variegate.text import EvidenceSelector

pytestmark = pytest.mark.usefixtures("no_network")


def embed_text(text):
    return embed([text])[0]


def count_letters(text):
    return len(text)


@pytest.fixture(scope="module")
def corpus():
    return make_corpus(12)


@pytest.fixture(scope="module")
def store(corpus):
    chunks, _ = corpus
    store = InMemoryDocumentStore(embedding_similarity_function="cosine")
    store.write_documents(
        [
            Document(content=c.text, embedding=embed_text(c.text), meta={"number": n})
            for n, c in enumerate(chunks)
        ]
    )
    return store


def pipeline_of(store, ranker, return_embedding=True):
    pipeline = Pipeline()
    pipeline.add_component("embedder", MockTextEmbedder(embedding_fn=embed_text))
    retriever = InMemoryEmbeddingRetriever(
        store, top_k=20, return_embedding=return_embedding
    )
    pipeline.add_component("retriever", retriever)
    pipeline.add_component("ranker", ranker)
    pipeline.connect("embedder.embedding", "retriever.query_embedding")
    pipeline.connect("retriever.documents", "ranker.documents")
    return pipeline


def run(pipeline, question, **given):
    return pipeline.run(
        {"embedder": {"text": question.text}, "ranker": given},
        include_outputs_from={"retriever"},
    )


def expected(documents, **settings):
    """What the core chooses of the same documents."""
    found = Found(
        [d.content for d in documents],
        [d.score for d in documents],
        embed([d.content for d in documents]),
    )
    return [documents[p] for p in ContextSelector(**settings).choose(found)]


@pytest.mark.parametrize("settings", [{"k": 4}, {"budget": 60}, {"k": 3, "budget": 40}])
def test_a_pipeline_chooses_as_the_core(store, corpus, settings):
    ranker = VariegateRanker(ContextSelector(15, diversity=0.7, **settings))
    result = run(pipeline_of(store, ranker), corpus[1][0])
    handed = result["retriever"]["documents"]
    chosen = expected(handed, fetch_k=15, diversity=0.7, **settings)
    assert [d.id for d in result["ranker"]["documents"]] == [d.id for d in chosen]
    assert len(chosen) > 1


def test_documents_without_embeddings_are_embedded_and_handed_on_as_they_came(
    store, corpus
):
    embedder = MockDocumentEmbedder(embedding_fn=embed_text)
    ranker = VariegateRanker(ContextSelector(15, 4), embedder)
    result = run(pipeline_of(store, ranker, return_embedding=False), corpus[1][1])
    handed = result["retriever"]["documents"]
    chosen = expected(handed, fetch_k=15, k=4)
    assert [d.id for d in result["ranker"]["documents"]] == [d.id for d in chosen]
    assert all(d.embedding is None for d in result["ranker"]["documents"])


def test_documents_without_embeddings_are_refused_in_words(store, corpus):
    pipeline = pipeline_of(store, VariegateRanker(ContextSelector(15, 4)), False)
    handed = run(
        pipeline_of(store, VariegateRanker(ContextSelector(15, 4))), corpus[1][0]
    )
    bare = [Document(content=d.content) for d in handed["retriever"]["documents"]]
    with pytest.raises(ValueError, match=r"return_embedding=True.*embedder=\.\.\."):
        VariegateRanker(ContextSelector(15, 4)).run(bare)
    with pytest.raises(Exception, match="15 of 15 documents have no embedding"):
        run(pipeline, corpus[1][0])


def test_top_k_of_a_run(store, corpus):
    pipeline = pipeline_of(store, VariegateRanker(ContextSelector(15, 4)))
    result = run(pipeline, corpus[1][0], top_k=2)
    assert len(result["ranker"]["documents"]) == 2


def test_of_no_documents_none_is_chosen():
    assert VariegateRanker(ContextSelector(15, 4)).run([]) == {"documents": []}


# Writing and reading ------------------------------------------------------------------


def test_a_pipeline_survives_being_written(store, corpus, tmp_path):
    selector = ContextSelector(
        fetch_k=15,
        k=5,
        budget=400,
        method="mmr",
        diversity=0.6,
        relevance="rank",
        count_tokens=count_letters,
    )
    embedder = MockDocumentEmbedder(embedding_fn=embed_text)
    ranker = VariegateRanker(selector, embedder=embedder)
    pipeline = Pipeline()
    pipeline.add_component("ranker", ranker)
    trusted = ["variegate", __name__]
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=trusted)
    assert again.dumps() == pipeline.dumps()
    documents = [
        Document(content=chunk.text, score=1.0 / place)
        for place, chunk in enumerate(corpus[0][:15], 1)
    ]
    before = pipeline.run({"ranker": {"documents": documents}})
    after = again.run({"ranker": {"documents": documents}})
    assert after == before
    assert sum(len(d.content) for d in after["ranker"]["documents"]) <= 400


def test_haystack_asks_whether_to_trust_other_packages():
    pipeline = Pipeline()
    pipeline.add_component("ranker", VariegateRanker(ContextSelector(15, 5)))
    with pytest.raises(DeserializationError, match="allowed_modules"):
        Pipeline.loads(pipeline.dumps())


def test_a_learned_model_is_written_as_its_path(store, corpus, tmp_path):
    chunks, questions = corpus
    looking = VariegateRanker(ContextSelector(20, 1))
    pipeline = pipeline_of(store, looking)
    lists, chosen = [], []
    for question in questions:
        found = run(pipeline, question)["retriever"]["documents"]
        lists.append(looking.candidates(found))
        told = [question.told(chunks[d.meta["number"]]) for d in found]
        chosen.append([told.index(fact) for fact in {*told} - {None}])
    selector = TableSelector(
        group="query",
        label="chosen",
        quality=["score", "tokens"],
        similarity="embedding",
        kernel="linear",
        omega=0.5,
    ).fit(training_table(lists, chosen))
    selector.save(tmp_path / "model.json")
    settings = {"fetch_k": 20, "model": tmp_path / "model.json", "omega": 2.0}
    learned = pipeline_of(store, VariegateRanker(ContextSelector(**settings)))
    lone = Pipeline()
    lone.add_component("ranker", VariegateRanker(ContextSelector(**settings)))
    again = Pipeline.loads(lone.dumps(), allowed_modules=["variegate"])
    for question in questions[:3]:
        result = run(learned, question)
        handed = result["retriever"]["documents"]
        wanted = expected(handed, fetch_k=20, model=selector, omega=2.0)
        assert result["ranker"]["documents"] == wanted
        assert again.run({"ranker": {"documents": handed}})["ranker"] == {
            "documents": wanted
        }
    with pytest.raises(ValueError, match=r"save it .* and give the selector the path"):
        VariegateRanker(ContextSelector(20, model=selector)).to_dict()


def test_a_lambda_cannot_be_written():
    selector = ContextSelector(15, budget=9, count_tokens=lambda text: 1)
    ranker = VariegateRanker(selector)
    with pytest.raises(SerializationError, match="lambdas"):
        ranker.to_dict()


def test_settings_are_checked_at_once():
    with pytest.raises(ValueError, match="fetch_k must be larger"):
        VariegateRanker(ContextSelector(5, 5))
    with pytest.raises(ValueError, match="must be a document embedder of Haystack"):
        VariegateRanker(ContextSelector(5, 2), embedder=embed_text)


def test_the_example_runs(capsys):
    contexts = context_haystack.main()
    said = capsys.readouterr().out
    assert "ranker: " in said
    ids = [d.id for d in contexts["ranker"]]
    assert len(set(ids)) == len(ids) <= 6
    words = sum(len(d.content.split()) for d in contexts["ranker"])
    assert words <= 110
    near = np.array([d.embedding for d in contexts["ranker"]])
    cosines = near @ near.T - np.eye(len(near))
    found = np.array([d.embedding for d in contexts["retriever"]])
    assert cosines.max() < (found @ found.T - np.eye(len(found))).max()


# Evidence -----------------------------------------------------------------------------

QUESTION = "How much water does the tank hold?"
MANUAL = [
    Document(content=text, meta={"title": title}, score=score)
    for text, title, score in [
        ("The pump is cleaned once a month.", "Cleaning", 0.1),
        ("Fill it daily. It holds ten litres of water. Close it.", "The tank", 0.9),
        ("The tank is made of steel, and holds ten litres of water.", "Numbers", 0.3),
    ]
]


def pipeline_of_extractor(**settings):
    pipeline = Pipeline()
    extractor = VariegateEvidenceExtractor(EvidenceExtractor(**settings))
    pipeline.add_component("extractor", extractor)
    return pipeline


def cut(pipeline):
    given = {"extractor": {"query": QUESTION, "documents": MANUAL}}
    return pipeline.run(given)["extractor"]["documents"]


@pytest.mark.parametrize("counter", [None, count_letters, len])
def test_documents_are_cut_to_their_evidence(counter):
    settings = {"budget": 90, "count_tokens": counter}
    pipeline = pipeline_of_extractor(**settings)
    extracts = EvidenceExtractor(**settings).extract(
        QUESTION, [d.content for d in MANUAL], [d.meta["title"] for d in MANUAL]
    )
    found = cut(pipeline)
    assert [(d.id, d.score, d.content, d.meta) for d in found] == [
        (whole.id, whole.score, one.text, whole.meta | {"evidence": one.sentences})
        for one in extracts
        for whole in [MANUAL[one.place]]
    ]
    assert found
    assert all("evidence" not in d.meta for d in MANUAL)
    trusted = ["variegate", __name__, "builtins"]
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=trusted)
    assert again.dumps() == pipeline.dumps()
    assert cut(again) == found


def test_an_extractor_without_documents_or_with_a_model():
    assert VariegateEvidenceExtractor(EvidenceExtractor()).run(QUESTION, []) == {
        "documents": []
    }
    model = EvidenceSelector.pretrained()
    with pytest.raises(ValueError, match=r"save it .* and give the extractor the path"):
        VariegateEvidenceExtractor(EvidenceExtractor(model=model)).to_dict()


def test_an_encoding_of_tiktoken_is_written_as_its_name(monkeypatch):
    monkeypatch.setattr("variegate.integrations.evidence.find_spec", lambda name: True)
    pipeline = pipeline_of_extractor(budget=90, count_tokens="cl100k_base")
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["variegate"])
    extractor = again.get_component("extractor").extractor
    assert extractor.settings()["count_tokens"] == "cl100k_base"
