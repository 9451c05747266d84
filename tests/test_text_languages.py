"""The table of languages: complete, in lower case, and of the right script."""

import re
import unicodedata

import pytest

from variegate.text.languages import LANGUAGES, as_language

SCRIPTS = {
    "english": "LATIN",
    "arabic": "ARABIC",
    "czech": "LATIN",
    "french": "LATIN",
    "greek": "GREEK",
    "hebrew": "HEBREW",
    "hindi": "DEVANAGARI",
}
CODES = ["en", "ar", "cs", "fr", "el", "he", "hi"]


def test_the_languages_of_the_data():
    assert list(LANGUAGES) == list(SCRIPTS)
    assert [language.code for language in LANGUAGES.values()] == CODES


@pytest.mark.parametrize("name", SCRIPTS)
def test_word_lists(name):
    language = LANGUAGES[name]
    assert 30 <= len(language.function_words) <= 70
    assert len(language.pronouns) >= 12
    assert len(language.dates) >= 12 + 7
    assert not any(form.endswith(".") for form in language.abbreviations)
    for word in language.pronouns | language.function_words | language.dates:
        assert word == word.lower()
        assert unicodedata.is_normalized("NFC", word)
        letters = [one for one in word if one.isalpha()]
        assert all(unicodedata.name(one).startswith(SCRIPTS[name]) for one in letters)


def test_direction():
    right_to_left = [one.name for one in LANGUAGES.values() if one.right_to_left]
    assert right_to_left == ["arabic", "hebrew"]


@pytest.mark.parametrize(
    ("name", "pronoun", "function_word", "month"),
    [
        ("english", "they", "the", "january"),
        ("arabic", "هو", "في", "يناير"),
        ("czech", "ona", "nebo", "ledna"),
        ("french", "nous", "avec", "janvier"),
        ("greek", "εγώ", "και", "ιανουαρίου"),
        ("hebrew", "אני", "של", "בינואר"),
        ("hindi", "वह", "और", "जनवरी"),
    ],
)
def test_a_word_of_each(name, pronoun, function_word, month):
    language = LANGUAGES[name]
    assert pronoun in language.pronouns
    assert function_word in language.function_words
    assert month in language.dates


def test_as_language():
    assert as_language(None) is None
    for code, language in zip(CODES, LANGUAGES.values(), strict=True):
        assert as_language(code) is language
        assert as_language(language.name.upper()) is language
        assert as_language(language) is language


def test_unknown_language():
    known = re.escape("english (en), arabic (ar), czech (cs), french (fr)")
    with pytest.raises(ValueError, match=f"unknown language 'klingon'.*{known}"):
        as_language("klingon")
