"""A postprocessor for query engines of LlamaIndex, offline."""

import asyncio
import json

import pytest

pytest.importorskip(
    "llama_index",
    reason="needs 'variegate[llamaindex]': make test-integrations has it",
)

import context_llamaindex
from context_corpus import embed, make_corpus
from llama_index.core import VectorStoreIndex
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import (
    MediaResource,
    MetadataMode,
    Node,
    NodeWithScore,
    TextNode,
)
from pydantic import ValidationError

from variegate.integrations import ContextSelector, EvidenceExtractor, Found
from variegate.integrations.llamaindex import (
    VariegateEvidencePostprocessor,
    VariegatePostprocessor,
)

pytestmark = pytest.mark.usefixtures("no_network")

EMBEDDING = context_llamaindex.WordEmbedding()


@pytest.fixture(scope="module")
def corpus():
    return make_corpus(12)


@pytest.fixture(scope="module")
def retriever(corpus):
    nodes = [TextNode(text=chunk.text) for chunk in corpus[0]]
    index = VectorStoreIndex(nodes, embed_model=EMBEDDING)
    return index.as_retriever(similarity_top_k=20)


def expected(nodes, **settings):
    texts = [node.text for node in nodes]
    found = Found(texts, [node.score for node in nodes], embed(texts))
    return [nodes[p] for p in ContextSelector(**settings).choose(found)]


@pytest.mark.parametrize("settings", [{"k": 4}, {"budget": 60}, {"k": 3, "budget": 40}])
def test_nodes_are_chosen_as_by_the_core(retriever, corpus, settings):
    question = corpus[1][0].text
    nodes = retriever.retrieve(question)
    postprocessor = VariegatePostprocessor(
        selector=ContextSelector(15, diversity=0.7, **settings), embed_model=EMBEDDING
    )
    wanted = expected(nodes, fetch_k=15, diversity=0.7, **settings)
    chosen = postprocessor.postprocess_nodes(nodes, query_str=question)
    assert [n.node_id for n in chosen] == [n.node_id for n in wanted]
    later = asyncio.run(postprocessor.apostprocess_nodes(nodes, query_str=question))
    assert [n.node_id for n in later] == [n.node_id for n in wanted]


def test_in_a_query_engine(retriever, corpus):
    postprocessor = VariegatePostprocessor(
        selector=ContextSelector(15, 4), embed_model=EMBEDDING
    )
    engine = RetrieverQueryEngine.from_args(
        retriever, llm=MockLLM(), node_postprocessors=[postprocessor]
    )
    question = corpus[1][0].text
    answer = engine.query(question)
    wanted = expected(retriever.retrieve(question), fetch_k=15, k=4)
    assert [n.node_id for n in answer.source_nodes] == [n.node_id for n in wanted]


def test_embeddings_of_nodes_come_first():
    nodes = [
        NodeWithScore(node=TextNode(text=text, embedding=vector), score=score)
        for text, vector, score in [
            ("a", [1.0, 0.0], 0.9),
            ("b", [1.0, 0.01], 0.8),
            ("c", [0.0, 1.0], 0.1),
        ]
    ]
    chosen = VariegatePostprocessor(
        selector=ContextSelector(9, 2, diversity=0.9)
    ).postprocess_nodes(nodes)
    assert [node.text for node in chosen] == ["a", "c"]
    assert (
        VariegatePostprocessor(selector=ContextSelector(9, 2)).postprocess_nodes([])
        == []
    )


def test_the_fake_embedding_of_llamaindex_will_do(retriever, corpus):
    nodes = retriever.retrieve(corpus[1][0].text)
    fake = MockEmbedding(embed_dim=4)
    chosen = VariegatePostprocessor(
        selector=ContextSelector(15, 3), embed_model=fake
    ).postprocess_nodes(nodes)
    # All alike to it, so that the best remain.
    assert [n.score for n in chosen] == [n.score for n in nodes[:3]]


def test_what_is_missing_is_said_in_words(retriever, corpus):
    nodes = retriever.retrieve(corpus[1][0].text)
    with pytest.raises(ValueError, match=r"have no embedding.*embed_model=\.\.\."):
        VariegatePostprocessor(selector=ContextSelector(15, 3)).postprocess_nodes(nodes)


def test_it_is_written_and_read(retriever, corpus):
    nodes = retriever.retrieve(corpus[1][0].text)
    settings = {"fetch_k": 15, "budget": 300, "method": "mmr"}
    given = VariegatePostprocessor(
        selector=ContextSelector(**settings), embed_model=EMBEDDING
    )
    data = json.loads(given.to_json())
    again = VariegatePostprocessor.from_dict(data, embed_model=EMBEDDING)
    assert again.postprocess_nodes(nodes) == given.postprocess_nodes(nodes)
    with pytest.raises(ValidationError, match="which cannot be written: give it again"):
        VariegatePostprocessor.from_dict(json.loads(given.to_json()))
    selector = ContextSelector(**settings, count_tokens=len)
    given = VariegatePostprocessor(selector=selector, embed_model=EMBEDDING)
    data = json.loads(given.to_json())
    again = VariegatePostprocessor.from_dict(
        dict(data), selector=selector, embed_model=EMBEDDING
    )
    assert again.postprocess_nodes(nodes) == given.postprocess_nodes(nodes)
    with pytest.raises(ValidationError, match="which cannot be written: give it again"):
        VariegatePostprocessor.from_dict(data, embed_model=EMBEDDING)
    selector = ContextSelector(15, model="model.json")
    plain = VariegatePostprocessor(selector=selector)
    again = VariegatePostprocessor.from_dict(plain.to_dict())
    assert again.selector.model == "model.json"


def test_settings_are_checked_at_once():
    with pytest.raises(ValidationError, match="fetch_k must be larger"):
        VariegatePostprocessor(selector={"fetch_k": 5, "k": 5})
    with pytest.raises(ValidationError, match="lambda_mult"):
        VariegatePostprocessor(selector=ContextSelector(9, 2), lambda_mult=0.5)


def test_the_example_runs(capsys):
    contexts = context_llamaindex.main()
    assert "postprocessor: " in capsys.readouterr().out
    texts = [node.text for node in contexts["postprocessor"]]
    assert len(set(texts)) == len(texts) <= 6
    assert sum(len(text.split()) for text in texts) <= 110


# Evidence -----------------------------------------------------------------------------

QUESTION = "How much water does the tank hold?"


def manual():
    return [
        NodeWithScore(
            node=TextNode(text=text, metadata={"title": title}, id_=title), score=score
        )
        for text, title, score in [
            ("The pump is cleaned once a month.", "Cleaning", 0.1),
            ("Fill it daily. It holds ten litres of water. Close it.", "Tank", 0.9),
            ("The tank is made of steel, and holds ten litres of water.", "Facts", 0.3),
        ]
    ]


def extracts(extractor):
    texts, titles = zip(*((n.text, n.metadata["title"]) for n in manual()), strict=True)
    return extractor.extract(QUESTION, texts, titles)


def test_nodes_are_cut_to_their_evidence():
    nodes, extractor = manual(), EvidenceExtractor(budget=25)
    postprocessor = VariegateEvidencePostprocessor(extractor=extractor)
    cut = postprocessor.postprocess_nodes(nodes, query_str=QUESTION)
    assert nodes == manual()
    for node, one in zip(cut, extracts(extractor), strict=True):
        whole = nodes[one.place]
        assert (node.text, node.score) == (one.text, whole.score)
        assert node.node_id == whole.node_id
        assert node.metadata == whole.metadata | {"evidence": one.sentences}
        for mode in (MetadataMode.LLM, MetadataMode.EMBED):
            content = node.node.get_content(metadata_mode=mode)
            assert content == f"title: {whole.metadata['title']}\n\n{one.text}"
    assert (
        asyncio.run(postprocessor.apostprocess_nodes(nodes, query_str=QUESTION)) == cut
    )
    assert postprocessor.postprocess_nodes([], query_str=QUESTION) == []
    with pytest.raises(ValueError, match=r"give the query .* query_str=\.\.\."):
        postprocessor.postprocess_nodes(nodes)


def test_nodes_of_other_media_are_cut():
    text = " ".join(node.text for node in manual())
    plain = Node(text_resource=MediaResource(text=text))
    postprocessor = VariegateEvidencePostprocessor(
        extractor=EvidenceExtractor(budget=16)
    )
    (cut,) = postprocessor.postprocess_nodes(
        [NodeWithScore(node=plain)], query_str=QUESTION
    )
    assert cut.node.get_content() == manual()[2].text
    assert plain.text_resource.text == text


def test_an_extractor_is_written_and_read():
    given = VariegateEvidencePostprocessor(
        extractor=EvidenceExtractor(25, omega=2.0, model="m.json"), title_key="name"
    )
    again = VariegateEvidencePostprocessor.from_dict(json.loads(given.to_json()))
    assert again.extractor.settings() == given.extractor.settings()
    assert again.title_key == "name"
    given = VariegateEvidencePostprocessor(extractor=EvidenceExtractor(25, len))
    data = json.loads(given.to_json())
    with pytest.raises(ValidationError, match="which cannot be written: give it again"):
        VariegateEvidencePostprocessor.from_dict(dict(data))
    again = VariegateEvidencePostprocessor.from_dict(data, extractor=given.extractor)
    assert again.extractor is given.extractor


def test_settings_of_the_extractor_are_checked_at_once():
    with pytest.raises(ValidationError, match="a budget must be at least 1"):
        VariegateEvidencePostprocessor(extractor={"budget": 0})
