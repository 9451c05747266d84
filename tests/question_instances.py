"""Small questions with marked sentences, written for tests."""

from functools import cache
from types import SimpleNamespace

import numpy as np

from variegate.text import EvidenceSelector

THINGS = ["bridge", "mill", "tower", "harbour", "school", "bakery"]
PLACES = ["Ribe", "Odense", "Skagen", "Tonder"]
OTHERS = [
    "Rain fell for three days.",
    "The mayor spoke for an hour.",
    "Nobody was hurt in the storm.",
    "A cat slept through it all.",
]


def make_questions(n_questions=12, seed=0):
    """Return arguments of ``fit``: two of eight sentences are wanted.

    One of them names the thing, the other the place; so do sentences not wanted.
    """
    rng = np.random.default_rng(seed)
    made = SimpleNamespace(questions=[], sentences=[], wanted=[], titles=[])
    for number in range(n_questions):
        thing, place = THINGS[number % 6], PLACES[number % 4]
        texts = [
            f"The {thing} was repaired by masons.",
            f"They came to {place} in May.",
            f"The old {thing} is closed.",
            f"Tickets for {place} cost nine crowns.",
            *OTHERS,
        ]
        order = rng.permutation(len(texts))
        made.questions.append(f"Who repaired the {thing} of {place}?")
        made.sentences.append([texts[k] for k in order])
        made.wanted.append(np.flatnonzero(order < 2).tolist())
        made.titles.append([""] * 4 + ["Weather"] * 4)
    return made


def as_rows(made):
    """Return the questions as ``fit-evidence`` reads them."""
    parts = (made.questions, made.sentences, made.wanted, made.titles)
    names = ("question", "sentences", "wanted", "titles")
    return [dict(zip(names, row, strict=True)) for row in zip(*parts, strict=True)]


MADE, NEW = make_questions(12), make_questions(8, seed=5)
DATA = (MADE.questions, MADE.sentences, MADE.wanted)
QUESTION = "Who repaired the bridge?"
SENTENCES = [
    "Masons from Kolding repaired the bridge.",
    "Rain fell.",
    "The bridge of Ribe is old.",
    "A cat slept.",
]


def selector(**settings):
    settings = {"quality_model": "linear", "n_copies": 0, "max_iter": 30} | settings
    return EvidenceSelector(**settings)


@cache
def linear():
    return selector().fit(*DATA)


@cache
def boosted():
    return selector(quality_model="boosting", n_copies=1).fit(*DATA)


def vectors_of(texts):
    """Return a vector of letter counts for each text."""
    return np.array([[text.count(letter) for letter in "aeiou"] for text in texts])


def given_vectors(made):
    pairs = zip(made.questions, made.sentences, strict=True)
    return [vectors_of([question, *texts]) for question, texts in pairs]
