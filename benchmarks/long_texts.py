"""Seconds that a summary takes, by the length of a text and by its budget.

    python -m benchmarks.long_texts

The text is repetitive, sentences of nine words drawn from sixteen, so that all of it is
alike and many sentences are needed for a budget: the worst case of the search.
"""

from __future__ import annotations

import time

import numpy as np

from variegate.text import load_default

WORDS = [
    "storm",
    "rain",
    "oslo",
    "fell",
    "today",
    "minister",
    "said",
    "city",
    "north",
    "water",
    "people",
    "road",
    "closed",
    "the",
    "of",
    "in",
]


def repetitive(n_bytes: int) -> str:
    """Return a text of about so many bytes."""
    rng = np.random.default_rng(0)
    sentences: list[str] = []
    size = 0
    while size < n_bytes:
        sentences.append(" ".join(rng.choice(WORDS, 9)).capitalize() + ".")
        size += len(sentences[-1]) + 1
    return " ".join(sentences)


def main() -> None:
    """Print a line for every text and budget."""
    model = load_default()
    model.summarize([repetitive(30_000)], budget="50w")  # imports and compiled code
    print("kB      budget  seconds  sentences")
    for n_bytes, budget in (
        (50_000, "250w"),
        (100_000, "250w"),
        (200_000, "250w"),
        (100_000, "1000w"),
        (100_000, "2000w"),
        (100_000, "4000w"),
    ):
        text = repetitive(n_bytes)
        start = time.perf_counter()
        summary = model.summarize([text], budget=budget)
        seconds = time.perf_counter() - start
        assert summary.selection is not None
        n_chosen = len(summary.selection.indices)
        print(f"{n_bytes // 1000:<7} {budget:<7} {seconds:7.1f}  {n_chosen}")


if __name__ == "__main__":
    main()
