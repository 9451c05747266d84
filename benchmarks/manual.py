"""Sentences of a manual for a question, beside extractors of LangChain without an LLM.

    python -m benchmarks.manual

needs ``pip install 'variegate[langchain,text,vectors]' langchain-classic
langchain-community rank-bm25``.  The manual and five questions are those of
``examples/manual_questions.py``.  A search for words returns 20 passages.  Each method
cuts them to a budget of tokens, of four bytes each.  Extractors of LangChain have no
budget: what they rank is taken while it fits, and put in reading order.  Embeddings are
those of wordllama.  ``DocumentCompressorPipeline`` cuts pieces of 300 characters, drops
those that repeat others and ranks the rest.  The table has the share of wanted
sentences that is kept.
"""

from __future__ import annotations

import logging
import sys
import warnings
from pathlib import Path

import numpy as np
from langchain_classic.retrievers.document_compressors import (
    DocumentCompressorPipeline,
    EmbeddingsFilter,
)
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_text_splitters import CharacterTextSplitter

from variegate.integrations import EvidenceExtractor
from variegate.integrations.langchain import VariegateEvidenceCompressor
from variegate.text import Document as Text
from variegate.text import EvidenceSelector
from variegate.text.passages import Passages
from variegate.text.token_counts import estimate_tokens
from variegate.text.word_vectors import load_word_vectors

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from langchain_community.document_transformers import EmbeddingsRedundantFilter
    from langchain_community.retrievers import BM25Retriever

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
from manual_questions import QUESTIONS, passages, search, share_kept, words_of

logging.getLogger("langchain_text_splitters").setLevel(logging.ERROR)

BUDGETS = (200, 400, 800)
MANY = 10_000


class WordLlama(Embeddings):
    """Embed texts by the vectors of wordllama."""

    def embed_documents(self, texts):
        """Return the vectors of texts."""
        return np.asarray(load_word_vectors().embed(texts)).tolist()

    def embed_query(self, text):
        """Return the vector of a question."""
        return self.embed_documents([text])[0]


EMBEDDINGS = WordLlama()


def within(budget, pieces):
    """Return the pieces that fit, taken from the best on, in reading order."""
    chosen, spent = [], 0
    for piece in pieces:
        tokens = estimate_tokens(piece.page_content)
        if spent + tokens <= budget:
            chosen.append(piece)
            spent += tokens
    return sorted(
        chosen,
        key=lambda one: (one.metadata["place"], one.metadata.get("start_index", 0)),
    )


def sentences_of(documents):
    """Return the sentences that a ``VariegateEvidenceCompressor`` chooses from."""
    split = Passages.from_documents([Text(one.page_content) for one in documents])
    found = [split.sentences[number] for number in split.candidates]
    return [
        Document(one.plain, metadata={"place": one.document, "start_index": one.start})
        for one in found
    ]


def by_order(question, documents):
    """Return the passages in the order of the search."""
    return documents


def by_bm25(question, documents):
    """Return all sentences, those with the best BM25 scores first."""
    retriever = BM25Retriever.from_documents(
        sentences_of(documents), preprocess_func=words_of, k=MANY
    )
    return retriever.invoke(question)


def by_embedding(question, documents):
    """Return all sentences, those nearest to the question first."""
    nearest = EmbeddingsFilter(embeddings=EMBEDDINGS, k=MANY)
    return list(nearest.compress_documents(sentences_of(documents), question))


def by_pipeline(question, documents):
    """Return pieces of 300 characters, those nearest to the question first."""
    splitter = CharacterTextSplitter(
        chunk_size=300, chunk_overlap=0, separator=". ", add_start_index=True
    )
    redundant = EmbeddingsRedundantFilter(embeddings=EMBEDDINGS)
    nearest = EmbeddingsFilter(embeddings=EMBEDDINGS, k=MANY)
    pipeline = DocumentCompressorPipeline(transformers=[splitter, redundant, nearest])
    return list(pipeline.compress_documents(documents, question))


RANKINGS = {
    "passages in order": by_order,
    "sentences by `BM25Retriever`": by_bm25,
    "sentences by `EmbeddingsFilter`": by_embedding,
    "`DocumentCompressorPipeline`": by_pipeline,
}
MODELS = {
    "`VariegateEvidenceCompressor`": None,
    '`VariegateEvidenceCompressor`, model with "wordllama"': "wordllama",
}


def cut(name, budget, question, documents):
    """Return the documents of a method within a budget."""
    if name in RANKINGS:
        return within(budget, RANKINGS[name](question, documents))
    model = EvidenceSelector.pretrained(MODELS[name])
    extractor = EvidenceExtractor(budget, model=model)
    compressor = VariegateEvidenceCompressor(extractor=extractor)
    return compressor.compress_documents(documents, question)


def main():
    """Print the table."""
    texts, titles = passages()
    found = {
        question: [
            Document(texts[number], metadata={"place": place, "title": titles[number]})
            for place, number in enumerate(search(question, texts))
        ]
        for question in QUESTIONS
    }
    methods = [(name, budget) for budget in BUDGETS for name in (*RANKINGS, *MODELS)]
    methods += [("passages in order", MANY), *((name, None) for name in MODELS)]
    header = ["method", "budget", "tokens", *map(str, range(1, 6)), "mean"]
    print("|", " | ".join(header), "|\n" + "|---" * len(header) + "|")
    for name, budget in methods:
        tokens, shares = [], []
        for question, wanted in QUESTIONS.items():
            kept = cut(name, budget, question, found[question])
            text = "\n".join(one.page_content for one in kept)
            tokens.append(estimate_tokens(text))
            shares.append(share_kept(wanted, text))
        cells = [
            name,
            "none" if budget in (None, MANY) else budget,
            round(np.mean(tokens)),
        ]
        cells += [f"{share:.2f}" for share in [*shares, np.mean(shares)]]
        print("|", " | ".join(map(str, cells)), "|")


if __name__ == "__main__":
    main()
