"""Which language a text is in: by its script, then by its most common words.

Languages that are not known (:data:`~variegate.text.LANGUAGES`) are told apart from
those that are by short lists of their own, so that German is not taken for English.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache

from variegate.text.documents import Document
from variegate.text.languages import LANGUAGES, OTHER_WORDS

__all__ = ["detect_language", "language_of"]

#: So many characters are looked at, from the beginning.
_ENOUGH = 100_000

#: The least share of a text's words that its language's common words have.
_LEAST_SHARE = 0.15

_WORD = re.compile(r"[^\W\d_]+")
_SCRIPTS = {
    "greek": re.compile("[\u0370-\u03ff\u1f00-\u1fff]"),
    "hebrew": re.compile("[\u0590-\u05ff]"),
    "arabic": re.compile("[\u0600-\u06ff\u0750-\u077f]"),
    "hindi": re.compile("[\u0900-\u097f]"),
    "latin": re.compile("[A-Za-z\u00c0-\u024f]"),
}
# Devanagari's vowel signs are no letters to Python: words are cut at spaces.
_PIECE = re.compile(r"[^\s\d.,;:!?()\[\]\"'«»“”„।|؟،؛–—-]+")


@cache
def _word_lists() -> dict[str, frozenset[str]]:
    """Return the common words of every language, of the known ones and others."""
    known = {
        name: language.function_words | language.pronouns
        for name, language in LANGUAGES.items()
    }
    return {**known, **OTHER_WORDS}


def detect_language(text: str) -> str | None:
    """Return the name of the language of a text, or None if it is none that is known.

    Parameters
    ----------
    text : str
        Some sentences; of a long text the beginning decides.
    """
    text = text[:_ENOUGH].lower()
    letters = sum(one.isalpha() for one in text)
    counts = {name: len(found.findall(text)) for name, found in _SCRIPTS.items()}
    script = max(counts, key=lambda name: counts[name])
    if not letters or counts[script] < 0.5 * letters:
        return None
    if script in ("greek", "hebrew"):
        return script
    pieces = Counter(_PIECE.findall(text) if script == "hindi" else _WORD.findall(text))
    total = sum(pieces.values())
    shares = {
        name: sum(pieces[word] for word in words) / total
        for name, words in _word_lists().items()
    }
    best = max(shares, key=lambda name: shares[name])
    return best if best in LANGUAGES and shares[best] >= _LEAST_SHARE else None


def language_of(documents: Sequence[Document], name: str | None) -> str | None:
    """Return the name that was given, or of what is detected; "none" is unknown."""
    if name is None:
        return detect_language("\n".join(one.text for one in documents))
    return None if name.strip().lower() == "none" else name
