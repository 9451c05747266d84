"""Notes on standard error, a line each."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from variegate.cli.results import say


def note(text: str) -> None:
    """Say something that a user may not expect."""
    say(f"variegate: note: {' '.join(text.split())}", err=True)


@contextmanager
def notes(*whole: type[Warning]) -> Iterator[None]:
    """Say the warnings of what is done within, each in one line, if it succeeds.

    Of other than ``whole`` categories only the first sentence: the one that follows
    advises what commands have no option for.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    texts = []
    for warning in caught:
        text = str(warning.message)
        if not issubclass(warning.category, whole):
            text = text.split(". ")[0]
        texts.append(text)
    for text in dict.fromkeys(texts):
        note(text)
