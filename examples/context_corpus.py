"""A made-up collection of manuals, for examples of context for a language model.

Each product has facts (its weight, its power, ...).  A fact is told in a chunk of text,
and manuals have editions: most chunks come again with a few words lost (no name and no
number), and the number of copies differs from fact to fact.  Some facts are told a
second time in other words, and there are advertisements, which name the product and
tell nothing.

A question asks for several facts of one product, and is answerable from a context that
tells all of them.  Everything is drawn at random from a seed, and nothing is
downloaded: embeddings are counts of words, hashed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer

#: For each kind of fact two ways to tell it, and how large its number may be.
FACTS = {
    "weight": (
        "The weight of the {name} is {value} kilograms without its packing.",
        "Two people should lift the {name}, as a weight of {value} kilograms is too "
        "much for one pair of hands.",
    ),
    "power": (
        "The power of the {name} is {value} watts at full load.",
        "Connect the {name} to a socket that can give its power of {value} watts for "
        "hours, not by a thin extension lead.",
    ),
    "warranty": (
        "The warranty of the {name} ends {value} months after the day of purchase.",
        "Keep the receipt of the {name}: whoever shows it within {value} months has a "
        "warranty on parts and labour.",
    ),
    "noise": (
        "The noise of the {name} is {value} decibels at a distance of one metre.",
        "In a bedroom the noise of the {name} may disturb, since {value} decibels are "
        "as loud as a conversation.",
    ),
    "temperature": (
        "The temperature around the {name} must stay below {value} degrees.",
        "Do not leave the {name} in the sun, where a temperature above {value} degrees "
        "is soon reached and the seals go soft.",
    ),
    "cleaning": (
        "Cleaning of the {name} is due after every {value} hours of work.",
        "Dust wears out the {name}, so cleaning it with a dry cloth every {value} "
        "hours makes it last much longer.",
    ),
    "price": (
        "The price of the {name} is {value} francs with taxes.",
        "Shops ask different sums for the {name}, but its price should not be above "
        "{value} francs with delivery.",
    ),
    "capacity": (
        "The capacity of the {name} is {value} litres in an hour.",
        "For a household of four the {name} is large enough, having a capacity of "
        "{value} litres in an hour.",
    ),
}
TYPES = ("pump", "heater", "grinder", "mixer", "dryer", "cooler", "saw", "press")
FILLERS = (
    "Read all of these pages before first use.",
    "Pictures may differ from what is in the box.",
    "Drawings are at the end of the booklet.",
    "Ask a trained person if in doubt.",
    "Numbers are those of our own laboratory.",
    "Later versions may differ without notice.",
)
ADVERTISEMENTS = (
    "The {name}: you will love it.",
    "The {name} is here. Order the {name} today.",
    "Everybody talks about the {name}, and about our new shops by the station.",
)
#: How often the chunk of a fact comes again, in an order drawn for each product.
COPIES = (0, 1, 2, 3, 5, 7)
#: Facts that each question asks for.
ASKED = 4


@dataclass(frozen=True)
class Chunk:
    """A piece of text; copies have one ``origin``, and ``fact`` is empty for none."""

    text: str
    product: int
    fact: str
    origin: int


@dataclass(frozen=True)
class Question:
    """A question, and the facts that an answer needs."""

    text: str
    product: int
    facts: tuple[str, ...]

    def told(self, chunk: Chunk) -> str | None:
        """Return which of the facts a chunk tells, if any."""
        mine = chunk.product == self.product and chunk.fact in self.facts
        return chunk.fact if mine else None


def make_corpus(
    n_products: int = 240, random_state: int = 0
) -> tuple[list[Chunk], list[Question]]:
    """Return chunks in any order, and one question for each product."""
    rng = np.random.default_rng(random_state)
    chunks: list[Chunk] = []
    questions = []
    for product in range(n_products):
        name = f"{_name(rng)} {rng.choice(TYPES)}"
        kinds = [str(kind) for kind in rng.choice(list(FACTS), len(COPIES), False)]
        for kind, n_copies in zip(kinds, rng.permutation(COPIES), strict=True):
            first, second = FACTS[kind]
            value = int(rng.integers(2, 90))
            tell = f"{first.format(name=name, value=value)} {rng.choice(FILLERS)}"
            _add(chunks, tell, product, kind, int(n_copies), rng)
            if rng.random() < 0.5:
                tell = second.format(name=name, value=value)
                _add(chunks, tell, product, kind, 0, rng)
        for text in ADVERTISEMENTS:
            _add(chunks, text.format(name=name), product, "", 1, rng)
        facts = tuple(str(kind) for kind in rng.choice(kinds, ASKED, replace=False))
        asked = ", ".join(f"the {fact}" for fact in facts[:-1])
        text = f"What are {asked} and the {facts[-1]} of the {name}?"
        questions.append(Question(text, product, facts))
    order = rng.permutation(len(chunks))
    return [chunks[number] for number in order], questions


def _name(rng: np.random.Generator) -> str:
    syllables = ("ar", "bel", "cor", "dan", "eno", "fir", "gal", "hul", "ix", "jor")
    return "".join(rng.choice(syllables, 4)).capitalize()


def _add(
    chunks: list[Chunk],
    text: str,
    product: int,
    fact: str,
    n_copies: int,
    rng: np.random.Generator,
) -> None:
    """Add a chunk and copies of it, each with one small word in ten lost."""
    origin = len(chunks)
    chunks.append(Chunk(text, product, fact, origin))
    for _ in range(n_copies):
        words = text.split()
        left = [w for w in words if rng.random() > 0.1 or not _may_be_lost(w)]
        chunks.append(Chunk(" ".join(left), product, fact, origin))


def _may_be_lost(word: str) -> bool:
    """Tell whether a copy without this word still tells the fact."""
    lower = word.strip(".,:").lower()
    return word.islower() and not {lower} & {*TYPES, *FACTS}


_words = HashingVectorizer(n_features=256, stop_words="english", alternate_sign=True)


def embed(texts: list[str]) -> list[list[float]]:
    """Return embeddings of unit length: counts of words, hashed."""
    return _words.transform(texts).toarray().tolist()
