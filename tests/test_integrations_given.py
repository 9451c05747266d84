"""Documents that are in the prompt already, for ``ContextSelector``."""

import re

import numpy as np
import pyarrow as pa
import pytest

import variegate as vg
from frameworks import need_framework_of
from variegate.baselines import METHODS
from variegate.integrations import ContextSelector, Found, count_words, training_table
from variegate.tables import TableSelector

WORDS = [
    "roof",
    "leaks",
    "rain",
    "gutter",
    "tiles",
    "bees",
    "flowers",
    "honey",
    "hive",
    "meadow",
]


def vector_of(text):
    """The words of a text, as a vector."""
    return [float(text.split().count(word)) for word in WORDS]


TEXTS = [
    "roof leaks rain",
    "roof leaks rain gutter",
    "bees flowers",
    "roof tiles",
    "honey hive bees",
    "meadow flowers",
]
SCORES = [0.9, 0.8, 0.5, 0.6, 0.4, 0.3]
PROMPT = ["roof leaks rain", "roof leaks"]


def found_of(texts, scores=None, embed=None):
    vectors = [None if embed else vector_of(text) for text in texts]
    return Found(texts, scores or [None] * len(texts), vectors, embed=embed)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("embeds", [False, True])
def test_the_choice_is_that_of_select(method, embeds):
    embed = (lambda places: [vector_of(PROMPT[p]) for p in places]) if embeds else None
    chosen = ContextSelector(6, k=3, method=method).choose(
        found_of(TEXTS, SCORES), given=found_of(PROMPT, embed=embed)
    )
    order = np.argsort(-np.array(SCORES))
    expected = vg.select(
        np.array([vector_of(TEXTS[place]) for place in order]),
        np.array(SCORES)[order],
        3,
        method,
        random_state=0,
        given=np.array(list(map(vector_of, PROMPT))),
    )
    assert chosen == order[expected].tolist()
    assert 0 not in chosen


def test_documents_of_the_prompt_count_in_no_limit():
    found = found_of(TEXTS, SCORES)
    selector = ContextSelector(6, budget=5, method="top", count_tokens=count_words)
    assert selector.choose(found, given=found_of(PROMPT)) == [1]
    kinds = [{"kind": text.split()[0]} for text in TEXTS]
    found = Found(TEXTS, SCORES, list(map(vector_of, TEXTS)), kinds)
    selector = ContextSelector(6, k=5, method="top", at_most=1, per="kind")
    assert selector.choose(found, given=found_of(PROMPT)) == [1, 2, 4, 5]
    # Of the copies in the prompt no label is left.
    assert selector.choose(found, given=found) == []


def test_no_documents_of_the_prompt_change_nothing():
    found, selector = found_of(TEXTS, SCORES), ContextSelector(6, k=3)
    for given in (None, found_of([])):
        assert selector.choose(found, given=given) == selector.choose(found)


@pytest.mark.parametrize(
    ("settings", "given", "message"),
    [
        (
            {},
            Found(["a"], [None], [None], hint="give an embedder"),
            "documents in the prompt (given): 1 of 1 documents have no embedding",
        ),
        (
            {},
            Found(["a"], [None], [[1.0, np.nan]]),
            "documents in the prompt (given): the embedding of document 0 holds NaN",
        ),
        ({}, Found(["a"], [None], [[1.0]]), "given has shape (1, 1), expected (M, 10)"),
    ],
)
def test_bad_documents_of_the_prompt(settings, given, message):
    selector = ContextSelector(6, k=3, **settings)
    with pytest.raises(ValueError, match=re.escape(message)):
        selector.choose(found_of(TEXTS, SCORES), given=given)


# Learned models -----------------------------------------------------------------------

SETTINGS = [{}, {"k": 2}, {"budget": 9}]


def with_metadata(texts, scores=None):
    """Documents with two names of metadata."""
    known = [{"length": len(text), "kind": len(text) % 3} for text in texts]
    return Found(texts, scores or [None] * len(texts), vectors_of(texts), known)


def vectors_of(texts):
    return list(map(vector_of, texts))


def examples():
    """Five of the documents at a time, and of them one of each subject."""
    for left_out in range(6):
        rest = [place for place in range(6) if place != left_out]
        texts = [TEXTS[place] for place in rest]
        scores = [SCORES[place] for place in rest]
        chosen = [next(p for p, t in enumerate(texts) if w in t) for w in ("roof", "b")]
        yield with_metadata(texts, scores), sorted(set(chosen))


def table_selector(given=None, similarity=("embedding",), quality=("score", "length")):
    """A model of the examples, perhaps learned with a column of given documents."""
    selector = ContextSelector(6, k=1)
    found, chosen = zip(*examples(), strict=True)
    lists = [selector.candidates(one) for one in found]
    # Candidates are sorted by score, as places are.
    table = training_table(lists, chosen, ["length", "kind"])
    if given is not None:
        flags = np.array(table["place"]) == 5.0  # the last of each query
        flags &= np.array(table["chosen"]) == 0
        table = table.append_column(given, pa.array(flags))
    model = TableSelector(
        group="query", label="chosen", quality=list(quality),
        similarity=list(similarity), kernel="linear", given=given, l2=0.02, tol=1e-3,
    )  # fmt: skip
    return model.fit(table)


def rows_of(found, prompt):
    """The columns of a model, of documents by score and of the prompt, by hand."""
    order = np.argsort(-np.array(found.scores), kind="stable").tolist()
    texts = [found.texts[place] for place in order] + list(prompt.texts)
    scores = [found.scores[place] for place in order] + [0.0] * len(prompt.texts)
    table = {
        "query": [0] * len(texts),
        "score": scores,
        "length": list(map(len, texts)),
        "kind": [len(text) % 3 for text in texts],
        "embedding": vectors_of(texts),
        "price": [float(count_words(text)) for text in texts],
        "seen": [False] * len(order) + [True] * len(prompt.texts),
    }
    return order, pa.table(table)


@pytest.mark.parametrize("role", [None, "shown"])
@pytest.mark.parametrize("similarity", [["embedding"], ["embedding", "kind"], []])
def test_a_table_model_chooses_beside_given_rows(role, similarity):
    model, found = table_selector(role, similarity), with_metadata(TEXTS, SCORES)
    changed = 0
    for settings in SETTINGS:
        selector = ContextSelector(6, model=model, count_tokens=count_words, **settings)
        for prompt in (PROMPT, [*PROMPT, "roof leaks rain"], ["honey bees"]):
            documents = with_metadata(prompt, [0.0] * len(prompt))
            order, table = rows_of(found, documents)
            choices = model.with_columns(cost="price", given="seen").choose(
                table, **settings
            )
            rank = {r: order[p] for p, r in enumerate(choices.rank.tolist()) if r}
            chosen = selector.choose(found, given=documents)
            assert chosen == [rank[r] for r in sorted(rank)]
            changed += chosen != selector.choose(found)
    assert changed > 0


def test_documents_of_the_prompt_need_only_columns_that_are_compared():
    found, prompt = with_metadata(TEXTS, SCORES), found_of(PROMPT)
    selector = ContextSelector(6, k=3, model=table_selector())
    scored = with_metadata(PROMPT, [0.9, 0.1])
    assert selector.choose(found, given=prompt) == selector.choose(found, given=scored)
    for similarity, known, message in (
        (
            ["kind"],
            prompt,
            "the model has a column 'kind', which is not in the metadata",
        ),
        (
            ["score"],
            with_metadata(PROMPT),
            "the model goes by 'score', and the documen",
        ),
    ):
        model = table_selector(similarity=similarity)
        with pytest.raises(ValueError, match=rf"prompt \(given\): {message}"):
            ContextSelector(6, k=3, model=model).choose(found, given=known)


def test_a_plain_model_chooses_beside_given_items():
    found, wanted = zip(*examples(), strict=True)
    sets = [
        vg.GroundSet(np.array(one.scores)[:, None], np.array(one.embeddings))
        for one in found
    ]
    model = vg.LargeMarginDPP(
        kernel=vg.Linear(), decoder="greedy", max_iter=30, tol=1e-3
    ).fit(sets, wanted)
    every, costs = found_of(TEXTS, SCORES), [*map(count_words, TEXTS), 1, 1]
    ground_set = vg.GroundSet(
        np.array([*SCORES, 7.0, -7.0])[:, None],  # quality of given items has no effect
        np.array(vectors_of([*TEXTS, *PROMPT])),
        costs,
        given=[6, 7],
    )
    changed = 0
    for settings in SETTINGS:
        selector = ContextSelector(6, model=model, count_tokens=count_words, **settings)
        chosen = selector.choose(every, given=found_of(PROMPT))
        assert sorted(chosen) == model.predict([ground_set], **settings)[0].tolist()
        changed += set(chosen) != set(selector.choose(every))
    assert changed > 0
    other = Found(["a"], [None], [[1.0]])
    message = re.escape(
        "documents in the prompt (given): embeddings have 1 numbers, and those of the "
        "documents to choose from 10: all must come from one embedder"
    )
    with pytest.raises(ValueError, match=message):
        ContextSelector(6, model=model).choose(every, given=other)


# Frameworks ---------------------------------------------------------------------------


def expected(k):
    """The texts that the core chooses besides the prompt."""
    chosen = ContextSelector(6, k=k).choose(
        found_of(TEXTS, SCORES), given=found_of(PROMPT)
    )
    return [TEXTS[place] for place in chosen]


def test_haystack():
    need_framework_of("variegate.integrations.haystack")
    from haystack import Document, Pipeline

    from variegate.integrations.haystack import VariegateRanker

    documents = [
        Document(content=text, embedding=vector_of(text), score=score)
        for text, score in zip(TEXTS, SCORES, strict=True)
    ]
    prompt = [Document(content=text, embedding=vector_of(text)) for text in PROMPT]
    pipeline = Pipeline()
    pipeline.add_component("ranker", VariegateRanker(ContextSelector(6, k=3)))
    result = pipeline.run({"ranker": {"documents": documents, "given": prompt}})
    chosen = [document.content for document in result["ranker"]["documents"]]
    assert chosen == expected(3)
    result = pipeline.run({"ranker": {"documents": documents}})
    assert result["ranker"]["documents"][0].content == TEXTS[0]


def test_langchain():
    need_framework_of("variegate.integrations.langchain")
    from langchain_core.documents import Document

    from variegate.integrations.langchain import VariegateCompressor

    def document(text, **metadata):
        return Document(
            page_content=text, metadata={"embedding": vector_of(text), **metadata}
        )

    documents = list(map(lambda t, s: document(t, score=s), TEXTS, SCORES))
    prompt = list(map(document, PROMPT))
    compressor = VariegateCompressor(selector=ContextSelector(6, k=3))
    chosen = compressor.compress_documents(documents, "roof", given=prompt)
    assert [one.page_content for one in chosen] == expected(3)
    asked = {"documents": documents, "query": "roof", "given": prompt}
    assert compressor.choose(asked) == chosen
    assert compressor.choose(asked | {"given": []})[0] is documents[0]


def test_llamaindex():
    need_framework_of("variegate.integrations.llamaindex")
    from llama_index.core.schema import NodeWithScore, TextNode

    from variegate.integrations.llamaindex import VariegatePostprocessor

    def node(text, score=None):
        inner = TextNode(text=text, embedding=vector_of(text))
        return NodeWithScore(node=inner, score=score)

    nodes, prompt = list(map(node, TEXTS, SCORES)), list(map(node, PROMPT))
    postprocessor = VariegatePostprocessor(selector=ContextSelector(6, k=3))
    chosen = postprocessor.choose(nodes, given=prompt)
    assert [one.text for one in chosen] == expected(3)
    assert postprocessor.choose(nodes) == postprocessor.postprocess_nodes(nodes)
    assert postprocessor.choose([], given=prompt) == []


QUESTION = "How much water does the tank hold?"
SENTENCES = ["The tank holds ten litres of water.", "The tank is of steel."]


def test_evidence_of_haystack():
    need_framework_of("variegate.integrations.haystack")
    from haystack import Document

    from variegate.integrations import EvidenceExtractor
    from variegate.integrations.haystack import VariegateEvidenceExtractor

    documents = [Document(content=" ".join(SENTENCES))]
    prompt = [Document(content=SENTENCES[0])]
    extractor = VariegateEvidenceExtractor(EvidenceExtractor(budget=50))
    for given, expected in ((prompt, SENTENCES[1]), (None, "\n".join(SENTENCES))):
        (cut,) = extractor.run(QUESTION, documents, given)["documents"]
        assert cut.content == expected


def test_evidence_of_langchain():
    need_framework_of("variegate.integrations.langchain")
    from langchain_core.documents import Document

    from variegate.integrations import EvidenceExtractor
    from variegate.integrations.langchain import VariegateEvidenceCompressor

    documents = [Document(page_content=" ".join(SENTENCES))]
    prompt = [Document(page_content=SENTENCES[0])]
    compressor = VariegateEvidenceCompressor(extractor=EvidenceExtractor(budget=50))
    for given, expected in ((prompt, SENTENCES[1]), ((), "\n".join(SENTENCES))):
        (cut,) = compressor.compress_documents(documents, QUESTION, given=given)
        assert cut.page_content == expected


def test_evidence_of_llamaindex():
    need_framework_of("variegate.integrations.llamaindex")
    from llama_index.core.schema import NodeWithScore, TextNode

    from variegate.integrations import EvidenceExtractor
    from variegate.integrations.llamaindex import VariegateEvidencePostprocessor

    nodes = [NodeWithScore(node=TextNode(text=" ".join(SENTENCES)))]
    prompt = [NodeWithScore(node=TextNode(text=SENTENCES[0]))]
    part = VariegateEvidencePostprocessor(extractor=EvidenceExtractor(budget=50))
    for given, expected in ((prompt, SENTENCES[1]), ((), "\n".join(SENTENCES))):
        (cut,) = part.cut(nodes, QUESTION, given)
        assert cut.text == expected
    assert part.cut([], QUESTION, prompt) == []
