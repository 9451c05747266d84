"""Untrained choices on real text: relevance against diversity, here and in peers.

    python -m benchmarks.untrained --data DIR --out FOLDER

needs 'variegate[bench,langchain]', and a few minutes.

DIR has ``evidence/hotpotqa.jsonl`` and ``evidence/multirc.jsonl``, questions with the
sentences to choose from and the numbers of those that answer them, and
``text/multiling2011.jsonl``, clusters of news articles.  A sentence is as relevant as
its cosine with the question, or with the mean of its cluster.  Vectors are tf-idf, or
300 of their singular directions.

``vg.select`` ("dpp" and "mmr"), LangChain's MMR, and pyversity's MMR and DPP choose at
every setting of their knob.  A curve has the mean relevance of the picks, as a share of
that of the most relevant items, and their diversity: one minus the mean cosine of two
picks.  Curves are compared at equal relevance, and at equal diversity, with 95 %
intervals over questions, in pairs.  Questions with an even number served to choose the
unit of relevance; the others are judged.  At the default, sentences of other questions
are also appended to the candidates.  Prints tables and writes untrained.png.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
from langchain_core.vectorstores.utils import maximal_marginal_relevance
from pyversity import dpp, mmr
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

import variegate as vg
from paper.text_tables import markdown_table
from variegate.report.figures import to_png
from variegate.text import Cluster, ClusterView, Document

#: Settings from relevance only to diversity only.
KNOBS = np.r_[0, 0.01, 0.02, np.arange(0.05, 0.91, 0.05), 0.93, 0.95, 0.97]
KNOBS = np.r_[KNOBS.round(2), 0.98, 0.99, 0.995, 0.999, 1]
DEFAULT = int(np.flatnonzero(KNOBS == 0.5)[0])

#: From vectors, query, relevance, k and knob to the picks.
METHODS = {
    "vg.select": lambda E, q, s, k, t: vg.select(E, s, k, diversity=t),
    'vg.select, "mmr"': lambda E, q, s, k, t: vg.select(E, s, k, "mmr", diversity=t),
    "LangChain MMR": lambda E, q, s, k, t: maximal_marginal_relevance(q, E, 1 - t, k),
    "pyversity MMR": lambda E, q, s, k, t: mmr(E, s, k, t).indices,
    "pyversity DPP": lambda E, q, s, k, t: dpp(E, s, k, t).indices,
}
OURS = tuple(METHODS)[:2]
COLOURS = ("#0072B2", "#56B4E9", "#D55E00", "#E69F00", "#333333")

#: Scores of picks, in the order of ``judge``.
SCORES = ("relevance", "raw relevance", "diversity", "near copies", "wanted")
NEAR_COPY = 0.9
N_LEVELS = 40
#: Sentences of other questions that are appended.
CROWDS = (0, 1000, 2000)
#: Curves are compared down to this share of the relevance of the most relevant items.
LEAST_RELEVANCE = 0.6


class Question(NamedTuple):
    """Unit vectors of items, the query's, and the items that answer it, if known."""

    items: np.ndarray
    query: np.ndarray
    wanted: list[int] | None


def vectors_of(texts, queries, is_reduced):
    """Return unit vectors of texts and of queries."""
    weigh = TfidfVectorizer(sublinear_tf=True, stop_words="english").fit(texts)
    items, asked = weigh.transform(texts), weigh.transform(queries)
    if not is_reduced:
        return items, asked
    reduce = TruncatedSVD(300, random_state=0).fit(items)
    return tuple(unit(reduce.transform(one)) for one in (items, asked))


def unit(X):
    """Return rows of unit length; zeros stay."""
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(lengths > 0.0, lengths, 1.0)


def lines_of(path):
    """Return the records of a file of JSON lines."""
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def parted(E, groups):
    """Yield the rows of each group as an array of the columns that it uses."""
    ends = np.cumsum([len(group) for group in groups])
    for start, end in zip(np.r_[0, ends], ends, strict=False):
        rows = E[start:end]
        yield np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows)


def questions_of(path, is_reduced):
    """Return the questions of odd numbers of a file of evidence."""
    records = lines_of(path)
    groups = [record["sentences"] for record in records]
    E, asked = vectors_of(
        [text for group in groups for text in group],
        [record["question"] for record in records],
        is_reduced,
    )
    queries = parted(asked, [[0]] * len(records))
    found = []
    for record, items, query in zip(records, parted(E, groups), queries, strict=True):
        used = items.any(axis=0) | query[0].astype(bool)
        found.append(Question(items[:, used], query[0, used], record["wanted"]))
    return found[1::2]


def clusters_of(path, is_reduced):
    """Return the sentences of every English cluster; the query is their mean."""
    groups = []
    for record in lines_of(path):
        if record["language"] == "english":
            articles = [Document(article["text"]) for article in record["documents"]]
            view = ClusterView.from_cluster(Cluster(articles, language="english"))
            groups.append([sentence.plain for sentence in view.candidate_sentences])
    texts = [text for group in groups for text in group]
    E, _ = vectors_of(texts, texts[:1], is_reduced)
    found = []
    for items in parted(E, groups):
        used = items[:, items.any(axis=0)]
        found.append(Question(used, unit(used.mean(axis=0)[None])[0], None))
    return found


#: Names of the corpora: the file, its reader, and the number of picks.
CORPORA = {
    "HotpotQA": ("evidence/hotpotqa.jsonl", questions_of, 6),
    "MultiRC": ("evidence/multirc.jsonl", questions_of, 4),
    "MultiLing": ("text/multiling2011.jsonl", clusters_of, 10),
}


def judge(question, relevance, picks):
    """Return the scores of picks."""
    picks = np.asarray(picks)
    F = question.items[picks]
    cosines = (F @ F.T)[np.triu_indices(len(picks), 1)]
    raw = relevance[picks].mean()
    most = np.sort(relevance)[-len(picks) :].mean()
    found = np.nan
    if question.wanted is not None:
        found = np.isin(question.wanted, picks).mean()
    copies = (cosines > NEAR_COPY).sum()
    return raw / most if most > 0 else 1.0, raw, 1 - cosines.mean(), copies, found


def curve(questions, k, method):
    """Return the scores of every question at every setting of a method."""
    return np.array(
        [
            [
                judge(one, relevance, METHODS[method](*one[:2], relevance, k, float(t)))
                for t in KNOBS
            ]
            for one in questions
            for relevance in [one.items @ one.query]
        ]
    )


def at(levels, x, y):
    """Return a curve at levels of its abscissa."""
    order = np.argsort(x, kind="stable")
    return np.interp(levels, x[order], y[order])


def ahead(ours, theirs, x, y):
    """Return how far one mean curve is above another, on average over levels of x."""
    share = np.linspace(LEAST_RELEVANCE, 1.0, N_LEVELS)[:-1]
    if SCORES[x] == "diversity":
        most = at([LEAST_RELEVANCE], theirs[:, 0], theirs[:, x])[0]
        levels = np.linspace(theirs[0, x], most, N_LEVELS)[1:]
    else:
        levels = theirs[0, x] * share  # of the most relevant items
    gaps = at(levels, ours[:, x], ours[:, y]) - at(levels, theirs[:, x], theirs[:, y])
    return float(gaps.mean())


def interval(ours, theirs, x, y, n_draws=1000):
    """Return ``ahead`` of mean curves, with a 95 % interval over questions."""
    x, y = SCORES.index(x), SCORES.index(y)
    rng = np.random.default_rng(0)
    draws = rng.integers(len(ours), size=(n_draws, len(ours)))
    found = [ahead(ours[d].mean(0), theirs[d].mean(0), x, y) for d in draws]
    low, high = 100 * np.quantile(found, [0.025, 0.975])
    mean = 100 * ahead(ours.mean(0), theirs.mean(0), x, y)
    return f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]"


def rows_of_defaults(corpus, curves):
    """Yield a row of a table for the default of each method."""
    for method, scores in curves.items():
        kept, _, diversity, copies, wanted = scores[:, DEFAULT].mean(axis=0)
        found = "" if np.isnan(wanted) else f"{wanted:.2f}"
        row = corpus, method, f"{kept:.2f}", f"{diversity:.2f}", f"{copies:.2f}", found
        yield row


def rows_of_curves(corpus, curves):
    """Yield a row of a table for each of our methods and each peer."""
    pairs = (
        ("relevance", "diversity"),
        ("diversity", "relevance"),
        ("raw relevance", "diversity"),
    )
    for ours in OURS:
        for peer in tuple(METHODS)[2:]:
            gaps = [interval(curves[ours], curves[peer], *pair) for pair in pairs]
            yield (corpus, ours, peer, *gaps)


def rows_of_crowds(questions, k):
    """Yield a row for each method: picks that stay if irrelevant items are appended."""
    rng = np.random.default_rng(0)
    scores = {method: np.empty((len(questions), len(CROWDS), 2)) for method in METHODS}
    for number, one in enumerate(questions):
        rest = [other.items for other in questions if other is not one]
        others = rng.permutation(np.concatenate(rest))
        for method, choose in METHODS.items():
            alone = None
            for place, size in enumerate(CROWDS):
                items = np.concatenate([one.items, others[:size]])
                relevance = items @ one.query
                picks = choose(items, one.query, relevance, k, 0.5)
                alone = picks if alone is None else alone
                copies = judge(Question(items, one.query, None), relevance, picks)[3]
                scores[method][number, place] = np.isin(alone, picks).mean(), copies
    for method, found in scores.items():
        means = found.mean(axis=0)
        yield method, *(f"{stay:.2f}, {copies:.2f}" for stay, copies in means)


def draw(all_curves, path):
    """Draw the curves of every corpus, the defaults as dots."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.5, 5.6), layout="constrained")
    panels = figure.subplots(2, len(all_curves) // 2).T.ravel()
    for axes, (corpus, curves) in zip(panels, all_curves.items(), strict=True):
        for place, (method, scores) in enumerate(curves.items()):
            x, _, y, *_ = scores.mean(axis=0).T
            style = "--" if method.startswith("pyversity") else "-"
            look = {"color": COLOURS[place], "zorder": 3 + place}
            axes.plot(x, y, style, linewidth=1.4, label=method, **look)
            axes.plot(x[DEFAULT], y[DEFAULT], "o", markersize=5, **look)
        axes.set_title(corpus, fontsize=10)
        axes.set_xlim(LEAST_RELEVANCE - 0.1, 1.005)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].legend(frameon=False, fontsize=8, loc="lower left")
    label = "relevance of the picks, relative to the most relevant items"
    figure.supxlabel(label, fontsize=9)
    figure.supylabel("diversity of the picks", fontsize=9)
    path.write_bytes(to_png(figure))


def main():
    """Measure all methods on all corpora, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("out/bench"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    all_curves = {}
    for name, (file, read, k) in CORPORA.items():
        for is_reduced in (False, True):
            questions = read(given.data / file, is_reduced)
            corpus = f"{name}, {'LSA' if is_reduced else 'tf-idf'}"
            print(f"{corpus}: {len(questions)} questions, {k} picks", flush=True)
            all_curves[corpus] = {m: curve(questions, k, m) for m in METHODS}
    print("\nDefaults\n")
    header = ("corpus", "method", "relevance", "diversity", "near copies", "wanted")
    rows = [row for one in all_curves.items() for row in rows_of_defaults(*one)]
    print(markdown_table(header, rows))
    print("\nCurves, in hundredths: how far ours is above the other\n")
    header = ("corpus", "ours", "other", "diversity at equal relevance")
    header += ("relevance at equal diversity", "diversity at equal raw relevance")
    rows = [row for one in all_curves.items() for row in rows_of_curves(*one)]
    print(markdown_table(header, rows))
    file, read, k = CORPORA["HotpotQA"]
    print("\nHotpotQA, LSA: share of the picks that stay, and near copies\n")
    header = ("method", *(f"{size:,} appended" for size in CROWDS))
    questions = read(given.data / file, is_reduced=True)
    print(markdown_table(header, list(rows_of_crowds(questions, k))))
    draw(all_curves, given.out / "untrained.png")


if __name__ == "__main__":
    main()
