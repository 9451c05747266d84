"""What is known about each language: a few short word lists, nothing to download.

Everything that needs a list of words takes a language; ``None`` stands for a
language about which nothing is known.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

__all__ = ["LANGUAGES", "OTHER_WORDS", "Language", "as_language", "other_language"]


@dataclass(frozen=True)
class Language:
    """A language, as far as splitting and describing sentences needs it.

    Attributes
    ----------
    name, code : str
        ``"english"`` and its ISO 639-1 code ``"en"``.
    pronouns : frozenset of str
        Forms of the personal pronouns, in lower case.  Forms that are more often
        another word (Czech *je*, Hebrew *את*) are left out.
    function_words : frozenset of str
        The most common articles, prepositions, conjunctions and auxiliaries.
    dates : frozenset of str
        Names of months and weekdays, in lower case, in the forms dates use.
    abbreviations : frozenset of str
        Without the last full stop, which does not end a sentence after them.
    right_to_left : bool
    """

    name: str
    code: str
    pronouns: frozenset[str]
    function_words: frozenset[str]
    dates: frozenset[str]
    abbreviations: frozenset[str]
    right_to_left: bool = False


def _read(name: str, known: Mapping[str, Any]) -> Language:
    """Return a language from its table in ``languages.toml``."""
    words = {
        field: frozenset(text.split())
        for field, text in known.items()
        if field not in ("code", "right_to_left")
    }
    return Language(
        name, known["code"], **words, right_to_left=known.get("right_to_left", False)
    )


def _tables(name: str) -> dict[str, Any]:
    return tomllib.loads((files(__package__) / name).read_text(encoding="utf-8"))


#: The languages, by name.
LANGUAGES: dict[str, Language] = {
    name: _read(name, known) for name, known in _tables("languages.toml").items()
}

_OTHERS = _tables("other_languages.toml")

#: Common words of languages that are not known but must be told from those that are.
OTHER_WORDS: dict[str, frozenset[str]] = {
    name: frozenset(text.split()) for name, text in _OTHERS["words"].items()
}


def as_language(name: str | Language | None) -> Language | None:
    """Return the language of that name or ISO 639-1 code; ``None`` stays ``None``."""
    if name is None or isinstance(name, Language):
        return name
    wanted = name.strip().lower()
    for language in LANGUAGES.values():
        if wanted in (language.name, language.code):
            return language
    known = ", ".join(f"{entry.name} ({entry.code})" for entry in LANGUAGES.values())
    raise ValueError(
        f"unknown language {name!r}: use one of {known}, or None for any other language"
    )


def other_language(name: str) -> str | None:
    """Return the name of a language that exists, by name or code, but has no lists."""
    wanted = name.strip().lower()
    for code, other in _OTHERS["names"].items():
        if wanted in (code, other):
            return str(other)
    return None
