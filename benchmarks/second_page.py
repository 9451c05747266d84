"""The second page: results page by page, beside what was shown on earlier pages.

    python -m benchmarks.second_page --data DIR --out FOLDER

DIR has ``evidence/oposum.jsonl`` (segments of reviews of a product, and those that each
of three people extracted) and ``text/multiling2011.jsonl`` (sentences of ten articles
on one event, in seven languages, and summaries by people).  Wanted sentences of the
news are those that agree best with the summaries, as the summarizer learns from.
Four pages of five items are shown.  The first one is the same for all methods:
``vg.select(method="mmr")`` at its default.  Methods differ on pages 2 to 4.

A ridge regression learns relevance in training folds, from all features.  Relevance of
items of these folds is predicted out of fold.  Knobs are those that do best there: by
the F-score of all four pages, and again with the least repetition among knobs whose
F-score is at most 0.01 lower.  The learned models have the same relevance, four other
features, and the vectors; their ridges are compared on groups that they learned from.
Folds hold out products, or topics in all languages.

Repetition is measured between new items and items of earlier pages: the largest cosine,
by the vectors that methods use, and the largest share of the words of the new item that
an earlier item has.  Intervals (95 %) are of paired differences, over products or
topics.  Writes second-page-reviews.json, second-page-news.json and second-page.png.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GroupKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import variegate as vg
from benchmarks.second_page_data import COLLECTIONS, Group
from benchmarks.second_page_figure import draw
from paper.text_tables import markdown_table
from variegate.application.base import bootstrap_means

K, N_PAGES = 5, 4
DIVERSITY = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
THRESHOLDS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
#: Ridges of learned models: the larger, the less similarity counts.
RIDGES = (0.03, 0.3, 3.0)
#: The loss of F that the second choice of knobs allows.
ALLOWED = 0.01


class Ranked(NamedTuple):
    """A group, the relevance of its items (N,), and its first page (K,)."""

    group: Group
    relevance: Any
    first: Any


Chooser = Callable[[Ranked, Any, Any], Any]


# Methods: from a ranked group, the shown items and a knob to the next page ------------


def rest_of(one, shown):
    """Return the items that were not shown."""
    return np.setdiff1d(np.arange(len(one.relevance)), shown)


def choose_again(method):
    """Return a method that knows of shown items only that they are gone."""

    def choose(one, shown, diversity):
        rest = rest_of(one, shown)
        V, s = one.group.vectors[rest], one.relevance[rest]
        return rest[vg.select(V, s, K, method, diversity=diversity)]

    return choose


def choose_beside(method):
    """Return a method that is told the shown items as given."""

    def choose(one, shown, diversity):
        rest = rest_of(one, shown)
        V, s = one.group.vectors[rest], one.relevance[rest]
        given = one.group.vectors[shown]
        picks = rest[vg.select(V, s, K, method, diversity=diversity, given=given)]
        return fill(picks, rest, one.relevance)

    return choose


def choose_filtered(method):
    """Return a method for what is left after near copies of shown items are dropped."""

    def choose(one, shown, knob):
        threshold, diversity = knob
        rest = rest_of(one, shown)
        vectors = one.group.vectors
        nearest = (vectors[rest] @ vectors[shown].T).max(axis=1)
        kept = rest[nearest < threshold]
        if len(kept) == 0:
            return fill(kept, rest, one.relevance)
        V, s = vectors[kept], one.relevance[kept]
        picks = kept[vg.select(V, s, K, method, diversity=diversity)]
        return fill(picks, rest, one.relevance)

    return choose


def fill(picks, rest, relevance):
    """Return the picks and, where they are too few, the most relevant other items."""
    others = np.setdiff1d(rest, picks)
    others = others[np.argsort(-relevance[others], kind="stable")]
    return np.concatenate([picks, others])[:K]


METHODS: dict[str, tuple[Chooser, Any]] = {
    "relevance order": (choose_again("top"), [0.0]),
    "MMR again on the rest": (choose_again("mmr"), DIVERSITY),
    "DPP again on the rest": (choose_again("dpp"), DIVERSITY),
    "near copies dropped, then top": (
        choose_filtered("top"),
        [(threshold, 0.0) for threshold in THRESHOLDS],
    ),
    "near copies dropped, then MMR": (
        choose_filtered("mmr"),
        [(threshold, t) for threshold in THRESHOLDS for t in (0.1, 0.3, 0.5)],
    ),
    "MMR, given=shown": (choose_beside("mmr"), DIVERSITY),
    "DPP, given=shown": (choose_beside("dpp"), DIVERSITY),
}
BLIND, LEARNED = "learned DPP again on the rest", "learned DPP, given=shown"
NAMES = (*METHODS, BLIND, LEARNED)


def show_pages(choose, one, knob):
    """Return the items of all pages (N_PAGES, K), by ``choose`` after the first."""
    pages = [one.first]
    while len(pages) < N_PAGES:
        pages.append(choose(one, np.concatenate(pages), knob))
    return np.array(pages)


# Learned models -----------------------------------------------------------------------


def ground_set_of(one, given=()):
    """Return the ground set of a group beside given items."""
    s = (one.relevance - one.relevance.mean()) / one.relevance.std()
    quality = np.column_stack([s, one.group.learned_features])
    return vg.GroundSet(quality, one.group.vectors, given=given)


def hide_given(ground_set):
    """Return the candidates alone."""
    return ground_set.take(ground_set.candidates)


def learn(ranked, is_told):
    """Return models of the wanted items left after each number of pages, by ridge.

    Pages to learn beside are those of MMR at its default, given or only taken away.
    """
    ground_sets, subsets = [], []
    for one in ranked:
        pages = show_pages(choose_again("mmr"), one, 0.5)
        for n_shown in range(0, K * N_PAGES, K):
            ground_set = ground_set_of(one, pages.ravel()[:n_shown])
            for wanted in one.group.wanted:
                left = np.setdiff1d(wanted, ground_set.given)
                if not is_told:
                    left = np.searchsorted(ground_set.candidates, left)
                subsets.append(left)
                ground_sets.append(ground_set if is_told else hide_given(ground_set))
    models = {}
    for ridge in RIDGES:
        model = vg.LargeMarginDPP(kernel=vg.Linear(normalize=True), l2=1e-3)
        model.set_params(decoder="greedy", jitter=ridge, max_iter=100)
        models[ridge] = model.fit(ground_sets, subsets)
    return models


def choose_learned(models, is_told):
    """Return a method that chooses pages by the learned model of a ridge."""

    def choose(one, shown, ridge):
        model = models[ridge]
        ground_set = ground_set_of(one, shown)
        if is_told:
            return model.predict([ground_set], k=K)[0]
        picks = model.predict([hide_given(ground_set)], k=K)[0]
        return ground_set.candidates[picks]

    return choose


# Measures -----------------------------------------------------------------------------


def nearest_words(new, old):
    """Return the largest share of the words of ``new`` that one of ``old`` has."""
    return max(len(new & one) for one in old) / max(1, len(new))


def judge(group, pages):
    """Return repetition, recall of each page, and recall and F of all pages."""
    cosines, words = [], []
    for number in range(1, N_PAGES):
        earlier, page = pages[:number].ravel(), pages[number]
        cosines += (group.vectors[page] @ group.vectors[earlier].T).max(axis=1).tolist()
        old = [group.words[item] for item in earlier]
        words += [nearest_words(group.words[item], old) for item in page]
    hits = np.array([[np.isin(page, w).sum() for page in pages] for w in group.wanted])
    sizes = np.array([len(w) for w in group.wanted])
    found = hits.sum(axis=1)
    return {
        "cosine": np.mean(cosines),
        "words": np.mean(words),
        **{f"recall {n}": (hits[:, n] / sizes).mean() for n in range(N_PAGES)},
        "later recall": (hits[:, 1:].sum(axis=1) / sizes).mean(),
        "recall": (found / sizes).mean(),
        "f": (2.0 * found / (sizes + K * N_PAGES)).mean(),
        **group.measure(pages),
    }


def all_scores(choose, ranked, knob):
    """Return the scores of each group (n,) by name."""
    rows = [judge(one.group, show_pages(choose, one, knob)) for one in ranked]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


# The experiment -----------------------------------------------------------------------


def rank(train, test):
    """Return both with learned relevance, that of training groups out of fold."""
    X = np.concatenate([group.features for group in train])
    y = np.concatenate([group.share_wanted for group in train])
    sizes = [len(group.features) for group in train]
    folds = np.repeat([group.fold for group in train], sizes)
    regression = make_pipeline(StandardScaler(), RidgeCV(np.logspace(1, 6, 11)))
    splits = GroupKFold(len(np.unique(folds)))
    inside = cross_val_predict(regression, X, y, groups=folds, cv=splits)
    regression.fit(X, y)
    relevances = np.split(inside, np.cumsum(sizes)[:-1])
    relevances += [regression.predict(group.features) for group in test]
    ranked = [
        Ranked(group, s, vg.select(group.vectors, s, K, "mmr"))
        for group, s in zip([*train, *test], relevances, strict=True)
    ]
    return ranked[: len(train)], ranked[len(train) :]


def best_knobs(choose, knobs, ranked):
    """Return places of the knob of the best F, and of the least repetition near it."""
    scores = [all_scores(choose, ranked, knob) for knob in knobs]
    f = np.array([score["f"].mean() for score in scores])
    words = np.array([score["words"].mean() for score in scores])
    near = np.where(f >= f.max() - ALLOWED, words, np.inf)
    return int(f.argmax()), int(near.argmin())


def run_fold(groups, fold, results):
    """Add the scores of the groups of one fold to ``results``, by method and knob."""
    inside, outside = rank(
        [group for group in groups if group.fold != fold],
        [group for group in groups if group.fold == fold],
    )
    methods = dict(METHODS)
    for name, is_told in ((BLIND, False), (LEARNED, True)):
        models = learn(inside, is_told)
        methods[name] = choose_learned(models, is_told), RIDGES
    for name, (choose, knobs) in methods.items():
        places = (0, 0) if len(knobs) == 1 else best_knobs(choose, knobs, inside)
        scores = [all_scores(choose, outside, knob) for knob in knobs]
        kept = results.setdefault(name, {"best": [], "frugal": [], "knobs": []})
        kept["best"].append(scores[places[0]])
        kept["frugal"].append(scores[places[1]])
        kept["knobs"].append(scores)
        print(f"fold {fold}, {name}: {[knobs[place] for place in places]}", flush=True)


def joined(parts, places):
    """Return scores of folds, joined, by name; means over rows of equal ``places``."""
    return {
        name: np.bincount(places, np.concatenate([part[name] for part in parts]))
        / np.bincount(places)
        for name in parts[0]
    }


def run_collection(groups):
    """Return scores by rule for knobs and by method; and means of every knob."""
    results: dict[str, Any] = {}
    folds = sorted({group.fold for group in groups})
    for fold in folds:
        run_fold(groups, fold, results)
    units = [group.unit for fold in folds for group in groups if group.fold == fold]
    places = np.unique(units, return_inverse=True)[1]
    scores = {
        rule: {name: joined(kept[rule], places) for name, kept in results.items()}
        for rule in ("best", "frugal")
    }
    curves = {
        name: [
            {key: float(v.mean()) for key, v in joined(parts, places).items()}
            for parts in zip(*kept["knobs"], strict=True)
        ]
        for name, kept in results.items()
    }
    return scores, curves


def interval(values):
    """Return a mean with its 95 % bootstrap interval."""
    means = bootstrap_means(values[:, None], 10_000, 0)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(values.mean()), float(low), float(high)


#: Each method that is told, and the same one that is not.
PAIRS = {
    "MMR, given=shown": "MMR again on the rest",
    "DPP, given=shown": "DPP again on the rest",
    LEARNED: BLIND,
}


def as_lists(scores):
    """Return arrays as lists, by name."""
    return {name: values.tolist() for name, values in scores.items()}


def print_tables(scores, against="MMR again on the rest"):
    """Print means and differences, to one method and within pairs; return all."""
    record: dict[str, Any] = {}
    for rule, methods in scores.items():
        columns = [name for name in methods[against] if not name.startswith("recall ")]
        print(f"\nknobs: {rule}; means\n")
        rows = [
            (name, *(f"{s[column].mean():.3f}" for column in columns))
            for name, s in methods.items()
        ]
        print(markdown_table(("method", *columns), rows))
        pairs = {name: against for name in methods if name != against}
        record[rule] = {"scores": {n: as_lists(s) for n, s in methods.items()}}
        for title, rivals in ((f"to {against!r}", pairs), ("by given", PAIRS)):
            gaps = {
                name: {
                    c: interval(methods[name][c] - methods[rival][c]) for c in columns
                }
                for name, rival in rivals.items()
            }
            record[rule][f"differences {title}"] = gaps
            print(f"\nknobs: {rule}; differences {title}\n")
            rows = [
                (name, *(f"{m:+.3f} [{a:+.3f}, {b:+.3f}]" for m, a, b in gap.values()))
                for name, gap in gaps.items()
            ]
            print(markdown_table(("method", *columns), rows), flush=True)
    return record


def main():
    """Measure all methods on both collections; print tables and write files."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("out/bench"))
    parser.add_argument("--only", choices=COLLECTIONS)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name, read in COLLECTIONS.items():
        if options.only in (None, name):
            groups = read(options.data)
            scores, curves = run_collection(groups)
            print(f"\n## {name}: {len(groups)} groups")
            record = {"rules": print_tables(scores), "curves": curves}
            text = json.dumps(record, indent=1) + "\n"
            (options.out / f"second-page-{name}.json").write_text(text)
    draw(options.out)


if __name__ == "__main__":
    main()
