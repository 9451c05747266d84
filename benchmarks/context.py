"""Context for a language model: near copies, answerable questions, tokens.

    python -m benchmarks.context --out FOLDER    needs 'variegate[langchain,tables]'

Questions about made-up manuals (examples/context_corpus.py) are searched for in the
in-memory vector store of LangChain, 40 chunks each.  From these, a context is made by
the store itself (similarity, and maximal marginal relevance), by untrained methods, and
by a model that has learned from the training questions; all are judged on questions
about other products.  What has a knob is shown with its default and with the value that
answers most training questions.  Writes context.json and prints a table.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from functools import cache
from pathlib import Path

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

from variegate.integrations import ContextSelector, count_words, training_table
from variegate.integrations.langchain import VariegateCompressor
from variegate.tables import TableSelector

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
from context_corpus import embed, make_corpus

FETCH = 40
KNOBS = (0.3, 0.5, 0.6, 0.7, 0.8, 0.9)
OMEGAS = (1 / 16, 1 / 4, 1, 4, 16)
SIZES = (4, 5, 6, 7)
#: More chunks than fit any context here.
MANY = 20
#: Models that are learned: the default of a TableSelector, and a fixed kernel.
KERNELS = {"learned": None, "learned, linear kernel": "linear"}
#: What the context may be: a number of chunks, or of words.
LIMITS = {"k = 6": (6, None), "100 words": (None, 100)}


@cache
def vector_of(text):
    """Return the vector of a text."""
    return embed([text])[0]


class Words(Embeddings):
    """Embed texts by the hashed words of the corpus."""

    def embed_documents(self, texts):
        """Return the vectors of texts."""
        return [vector_of(text) for text in texts]

    def embed_query(self, text):
        """Return the vector of a question."""
        return vector_of(text)


class Search:
    """The store, what it finds for each question, and how contexts are judged."""

    def __init__(self, n_products, seed):
        self.chunks, self.questions = make_corpus(n_products, seed)
        self.store = InMemoryVectorStore(Words())
        self.store.add_documents(
            [
                Document(page_content=chunk.text, metadata={"number": number})
                for number, chunk in enumerate(self.chunks)
            ]
        )
        self.vectors = [Words().embed_query(q.text) for q in self.questions]
        self.found = [self._found(vector) for vector in self.vectors]

    def _found(self, vector):
        pairs = self.store.similarity_search_with_score_by_vector(vector, k=FETCH)
        return [
            Document(page_content=d.page_content, metadata={**d.metadata, "score": s})
            for d, s in pairs
        ]

    def needed(self, question):
        """Return places of what was found that tell each needed fact first."""
        first = {}
        for place, document in enumerate(self.found[question]):
            told = self.questions[question].told(self.chunk(document))
            if told:
                first.setdefault(told, place)
        return sorted(first.values())

    def chunk(self, document):
        """Return the chunk that a document holds."""
        return self.chunks[document.metadata["number"]]

    def judged(self, question, documents):
        """Return how well documents answer a question."""
        chunks = [self.chunk(document) for document in documents]
        asked = self.questions[question]
        told = {asked.told(chunk) for chunk in chunks} - {None}
        n_copies = len(chunks) - len({chunk.origin for chunk in chunks})
        return {
            "answerable": float(len(told) == len(asked.facts)),
            "facts": len(told) / len(asked.facts),
            "chunks": len(chunks),
            "copies": n_copies,
            "words": sum(count_words(d.page_content) for d in documents),
        }

    # Ways to make a context -------------------------------------------------------

    def similarity(self, k, budget, knob=None):
        """Return the most similar documents."""
        return lambda q: within(self.found[q], k, budget)

    def mmr(self, k, budget, knob=0.5):
        """LangChain's own; its knob is 1 for relevance only."""

        def choose(question):
            order = self.store.max_marginal_relevance_search_by_vector(
                self.vectors[question], k or MANY, FETCH, lambda_mult=knob
            )
            return within(order, k, budget)

        return choose

    def ours(self, knob_name="diversity", **settings):
        """Return a chooser by ``VariegateCompressor`` with some settings."""

        def way(k, budget, knob=None):
            given = {"count_tokens": count_words, **settings}
            if knob is not None:
                given[knob_name] = knob
            selector = ContextSelector(FETCH, k, budget, **given)
            compressor = VariegateCompressor(selector=selector, embeddings=Words())
            return lambda q: compressor.compress_documents(
                self.found[q], self.questions[q].text
            )

        return way


def within(documents, k, budget):
    """Take documents in turn, each if it fits."""
    taken, words = [], 0
    for document in documents:
        cost = count_words(document.page_content)
        if len(taken) != k and (budget is None or words + cost <= budget):
            taken.append(document)
            words += cost
    return taken


def learn(search, training, kernel):
    """Fit a selector on training questions."""
    selector = ContextSelector(FETCH, k=1)
    compressor = VariegateCompressor(selector=selector, embeddings=Words())
    table = training_table(
        [compressor.candidates(search.found[q], "") for q in training],
        [search.needed(q) for q in training],
    )
    selector = TableSelector(
        group="query",
        label="chosen",
        quality=["score", "standard_score", "tokens"],
        similarity="embedding",
        empty_groups="drop",
        kernel=kernel,
    )
    return selector.fit(table)


def mean(search, questions, choose):
    """Return the scores of a chooser on each of some questions."""
    rows = [search.judged(question, choose(question)) for question in questions]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def best_knob(search, training, way, k, budget, knobs=KNOBS):
    """Return the knob that finds most facts; of equals the first."""
    answered = {
        knob: mean(search, training, way(k, budget, knob))["facts"].mean()
        for knob in knobs
    }
    return max(answered, key=answered.get)


def sized(way):
    """Return a way whose knob is the number of chunks."""
    return lambda k, budget, size: way(size, budget)


def ways(search, training, selectors, k, budget):
    """Yield names of ways, and what they choose."""
    yield "similarity", search.similarity(k, budget)
    own = {method: search.ours(method=method) for method in ("mmr", "dpp")}
    for name, way in {"LangChain's MMR": search.mmr, **own}.items():
        yield f"{name}, default", way(k, budget)
        knob = best_knob(search, training, way, k, budget)
        yield f"{name}, {knob} by training", way(k, budget, knob)
    for name, selector in selectors.items():
        way = search.ours("omega", model=selector)
        yield f"{name}, default", way(k, budget)
        if k is None:  # which omega would change
            omega = best_knob(search, training, way, k, budget, OMEGAS)
            yield f"{name}, omega {omega:g} by training", way(k, budget, omega)
        if budget is None:
            yield f"{name}, size chosen by the model", way(None, None)
        else:
            # A budget is a most; how many chunks to take is for the model, or told.
            size = best_knob(search, training, sized(way), k, budget, SIZES)
            yield f"{name}, k = {size} by training", way(size, budget)
    rest = [search.needed(q) for q in range(len(search.questions))]
    if budget is None:
        yield (
            "every needed fact that was found",
            lambda q: [search.found[q][place] for place in rest[q]],
        )


def interval(values, rng):
    """Return a mean with its 95% bootstrap interval."""
    draws = rng.integers(len(values), size=(2000, len(values)))
    low, high = np.percentile(values[draws].mean(axis=1), [2.5, 97.5])
    return float(values.mean()), float(low), float(high)


def main():
    """Measure all choosers, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("out/bench"))
    parser.add_argument("--products", type=int, default=240)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    search = Search(given.products, given.seed)
    half = given.products // 2
    training, test = range(half), range(half, given.products)
    selectors = {}
    for name, kernel in KERNELS.items():
        started = time.perf_counter()
        selectors[name] = learn(search, training, kernel)
        seconds = time.perf_counter() - started
        learned = selectors[name].policy_
        print(f"{name}: {seconds:.0f} s, {selectors[name].weights_}")
        print(f"  k {learned.k}, {learned.ordering}, {selectors[name].model_.kernel_}")
    print(f"{len(search.chunks)} chunks, {len(training)} + {len(test)} questions")
    results = {}
    for limit, (k, budget) in LIMITS.items():
        scores = {
            name: mean(search, test, choose)
            for name, choose in ways(search, training, selectors, k, budget)
        }
        results[limit] = show(limit, scores)
    (given.out / "context.json").write_text(json.dumps(results, indent=2) + "\n")


def show(limit, scores):
    """Print a table, with differences to the best rival."""
    rng = np.random.default_rng(0)
    rival = next(name for name in scores if name.endswith("by training"))
    print(f"\n{limit}; differences to {rival!r}, 95 % intervals in pairs\n")
    print("| way | answerable | difference | facts | chunks | near copies | words |")
    print("|---|---|---|---|---|---|---|")
    table = {}
    for name, values in scores.items():
        shown = {key: float(value.mean()) for key, value in values.items()}
        better = values["answerable"] - scores[rival]["answerable"]
        shown["difference"] = interval(better, rng)
        at, low, high = shown["difference"]
        difference = f"{at:+.2f} [{low:+.2f}, {high:+.2f}]"
        print(
            f"| {name} | {shown['answerable']:.2f} | {difference} | "
            f"{shown['facts']:.2f} | {shown['chunks']:.1f} | {shown['copies']:.2f} | "
            f"{shown['words']:.0f} |"
        )
        table[name] = shown
    return table


if __name__ == "__main__":
    main()
