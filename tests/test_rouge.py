"""ROUGE: by hand, against slow twins, and against what ROUGE-1.5.5 printed."""

import json
import math
import random
import re
import unicodedata
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outside_data import outside_data
from variegate.text.rouge import (
    Rouge,
    Score,
    mean_scores,
    read_exceptions,
)
from variegate.text.rouge_tokens import Tokenizer, stem

few_words = st.lists(st.sampled_from("abcde"), max_size=9)
sentences = st.lists(few_words, max_size=4)


def text(lines):
    return "\n".join(" ".join(words) for words in lines)


def exact(**options):
    return Rouge(digits=None, **options)


# --- by hand ---------------------------------------------------------------------


def test_n_grams_by_hand():
    # Shared: cat, sat, on, mat, of 6 words each; "cat sat", "sat on", of 5 pairs each.
    scores = exact().score("the cat sat on the mat", ["A cat sat on a mat!"])
    assert scores["rouge-1"] == pytest.approx((4 / 6, 4 / 6, 4 / 6))
    assert scores["rouge-2"] == pytest.approx((2 / 5, 2 / 5, 2 / 5))


def test_a_repeated_word_counts_as_often_as_both_have_it():
    # min(3, 2) = 2 hits of 3 words offered and 3 wanted.
    assert exact(n=1).score("a a a", ["a a b"])["rouge-1"][:2] == (2 / 3, 2 / 3)


def test_references_are_pooled():
    # Hits 2 and 1; words wanted 2 + 4; words offered 3, once a reference.
    score = exact(n=1).score("a b c", ["a b", "a d e f"])["rouge-1"]
    assert score == pytest.approx((3 / 6, 3 / 6, 1 / 2))


def test_the_best_reference_is_the_one_with_the_best_recall():
    # Recalls 2/3 and 1/1: the second one counts, with precision 1/4.
    score = exact(n=1, references="best").score("a b c d", ["a b x", "a"])["rouge-1"]
    assert score == (1 / 4, 1.0, 0.4)


def test_the_first_of_equally_good_references_counts():
    # Recalls 1/2 and 2/4; precisions 1/3 and 2/3.
    score = exact(n=1, references="best").score("a b c", ["a x", "a b y z"])
    assert score["rouge-1"].precision == 1 / 3


def test_rounding_comes_before_f():
    # P = 2/8, R = 2/3.  F of these is 4/11, or 0.4 rounded; F of 0.2 and 0.7 is
    # 0.28 / 0.9 = 0.311, or 0.3 rounded.
    summary, references = "a b c d e f g h", ["a b z"]
    assert Rouge(n=1, digits=1).score(summary, references)["rouge-1"] == (0.2, 0.7, 0.3)
    assert exact(n=1).score(summary, references)["rouge-1"].f == pytest.approx(4 / 11)
    # Five digits by default: 4/11 = 0.363636...
    assert Rouge(n=1).score(summary, references)["rouge-1"] == (0.25, 0.66667, 0.36364)


def test_the_last_word_is_no_unit_of_its_own():
    # Units of "a b c", nothing skipped: ab bc and a b.  Of "a b d": ab bd and a b.
    score = exact(n=(), su=0).score("a b d", ["a b c"])["rouge-su0"]
    assert score[:2] == (3 / 4, 3 / 4)


def test_names_of_the_measures():
    assert list(Rouge(n=(1, 3), su=4).score("a", ["a"])) == [
        *("rouge-1", "rouge-3", "rouge-su4")
    ]


def test_an_empty_summary_scores_nothing():
    rouge = Rouge(su=4)
    assert set(rouge.score(" \n", ["a b c"]).values()) == {Score(0.0, 0.0, 0.0)}


def test_mean_scores():
    first, second = {"rouge-1": Score(0.2, 0.4, 0.3)}, {"rouge-1": Score(0.4, 0.8, 0.4)}
    mean = mean_scores([first, second])["rouge-1"]
    assert mean == pytest.approx((0.3, 0.6, 0.35))


# --- reading ---------------------------------------------------------------------


def test_ascii_words():
    assert Tokenizer().read("It's a K2-like (caf\u00e9) \u212a_X") == (
        *("it", "s", "a", "k2", "like", "caf", "x"),
    )


@pytest.mark.parametrize(
    ("limit", "words"),
    [(1, "a"), (2, "ab"), (3, "ab c"), (5, "ab c"), (6, "ab c d"), (9, "ab c d")],
)
def test_bytes_are_counted_without_line_ends(limit, words):
    # a b | c é (two bytes) d
    assert Tokenizer(max_bytes=limit).read("ab\nc\u00e9d") == tuple(words.split())


def test_a_letter_cut_in_half_goes():
    assert Tokenizer(max_bytes=2, unicode=True).read("a\u00e9") == ("a",)


def test_the_limit_of_bytes_holds_for_all_lines():
    assert Tokenizer(max_bytes=4).read("ab c\nab\nabcdefg\nx") == ("ab", "c")
    assert Tokenizer(max_bytes=4).read("abc\nab\nabcdefg\nx") == ("abc", "a")


def test_words_are_counted_before_cleaning():
    # "a-b" is one word to the limit and two to the measures; "*" is one and none.
    assert Tokenizer(max_words=3).read("a-b *\nc d") == ("a", "b", "c")


def test_a_space_before_a_line_counts_as_a_word():
    assert Tokenizer(max_words=3).read(" a b c") == ("a", "b")
    assert Tokenizer(max_words=3).read("  \n\na b c") == ("a", "b", "c")


def test_references_are_cut_too():
    assert Rouge(n=1, max_words=1).score("a", ["a b"])["rouge-1"].recall == 1.0


def test_stop_words_go_before_stemming():
    read = Rouge(stop_words=["The", "running"], stem=True).read
    assert read("the runs running") == ("run",)
    assert Rouge(stop_words=["\u00c9T\u00c9"], unicode=True).read(
        "l'e\u0301te\u0301"
    ) == ("l",)


def test_exceptions_come_before_porter_and_only_for_long_words():
    read = Tokenizer(
        stem=True, exceptions={"went": "go", "children": "child", "ran": "x"}
    )
    assert read.read("went children ran houses") == ("go", "child", "ran", "hous")
    assert Tokenizer(stem=True).read("children") == ("children",)


def test_read_exceptions(tmp_path):
    path = tmp_path / "forms.tsv"
    path.write_text("went\tgo\n\noxen\tox\n")
    assert read_exceptions(path) == {"went": "go", "oxen": "ox"}


@pytest.mark.parametrize("line", ["went go", "went\t", "a\tb\tc"])
def test_a_broken_table_of_exceptions(line, tmp_path):
    path = tmp_path / "forms.tsv"
    path.write_text(f"oxen\tox\n{line}\n")
    with pytest.raises(ValueError, match=r"forms\.tsv, line 2: expected 'form<TAB>ba"):
        read_exceptions(path)


def test_a_table_that_is_no_text(tmp_path):
    path = tmp_path / "forms.tsv"
    path.write_bytes(b"ok\tok\n\xff")
    with pytest.raises(ValueError, match=r"forms\.tsv is not in utf-8: byte 6"):
        read_exceptions(path)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("हिन्दी भाषा, दिल्ली।", ["हिन्दी", "भाषा", "दिल्ली"]),
        ("مرحبا، بالعالم؟", ["مرحبا", "بالعالم"]),
        ("Η ΟΔΟΣ· του «Λόγου»", ["η", "οδοσ", "του", "λόγου"]),
        ("שָׁלוֹם עולם", ["שָׁלוֹם", "עולם"]),
        ("Příliš_žluťoučký", ["příliš", "žluťoučký"]),
        ("می\u200cخواهم ab\u200bcd", ["میخواهم", "ab", "cd"]),
    ],
)
def test_unicode_words(line, words):
    expected = tuple(unicodedata.normalize("NFC", word) for word in words)
    assert Tokenizer(unicode=True).read(line) == expected
    decomposed = unicodedata.normalize("NFD", line)
    assert Tokenizer(unicode=True).read(decomposed) == expected


def test_cases_are_folded():
    rouge = Rouge(n=1, unicode=True)
    assert rouge.score("ΟΔΟΣ STRASSE", ["οδος straße"])["rouge-1"].f == 1.0


def test_only_english_letters_are_stemmed():
    assert Tokenizer(unicode=True, stem=True).read("cafés houses") == (
        *("cafés", "hous"),
    )


def test_a_reference_that_ascii_cannot_read_brings_a_warning():
    with pytest.warns(UserWarning, match="reference 2 are not ASCII.*unicode=True"):
        score = Rouge(n=1).score("a", ["a", "नमस्ते दुनिया"])["rouge-1"]
    assert score.recall == 1.0


# --- properties ------------------------------------------------------------------


def slow_hits(summary, reference):
    """The units of the summary that are crossed off a list of the reference's."""
    left = list(reference)
    hits = 0
    for unit in summary:
        if unit in left:
            left.remove(unit)
            hits += 1
    return hits


def slow_n_grams(words, n):
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]


def slow_pairs(words, skip, unigrams=True):
    pairs = [
        (words[i], words[j])
        for i, j in combinations(range(len(words)), 2)
        if j - i - 1 <= skip
    ]
    return pairs + [(word,) for word in words[:-1] if unigrams]


def slow_ratios(summary, references):
    hits = sum(slow_hits(summary, reference) for reference in references)
    offered = len(references) * len(summary)
    wanted = sum(map(len, references))
    return (hits / offered if offered else 0.0, hits / wanted if wanted else 0.0)


@given(few_words, st.lists(few_words, min_size=1, max_size=3), st.integers(1, 4))
def test_n_grams_are_those_of_the_slow_twin(summary, references, n):
    score = exact(n=n).score(text([summary]), [text([words]) for words in references])
    expected = slow_ratios(
        slow_n_grams(summary, n), [slow_n_grams(words, n) for words in references]
    )
    assert score[f"rouge-{n}"][:2] == pytest.approx(expected)


@given(
    few_words,
    st.lists(few_words, min_size=1, max_size=3),
    st.sampled_from([0, 1, 4, 31]),
)
def test_pairs_are_those_of_the_slow_twin(summary, references, skip):
    rouge = exact(n=(), su=skip)
    score = rouge.score(text([summary]), [text([words]) for words in references])
    expected = slow_ratios(
        slow_pairs(summary, skip), [slow_pairs(words, skip) for words in references]
    )
    assert score[f"rouge-su{skip}"][:2] == pytest.approx(expected)


@given(few_words, few_words)
def test_texts_that_change_places_change_precision_and_recall(first, second):
    rouge = exact(n=(1, 2, 3), su=4)
    there = rouge.score(text([first]), [text([second])])
    back = rouge.score(text([second]), [text([first])])
    for name, score in there.items():
        assert back[name][:2] == score[1::-1]


@given(st.lists(st.lists(st.sampled_from("abcde"), min_size=1), min_size=1))
def test_a_text_agrees_with_itself(lines):
    same = text(lines) + " f g"
    scores = Rouge(su=2).score(same, [same, same])
    assert set(scores.values()) == {Score(1.0, 1.0, 1.0)}


@given(st.lists(st.text(st.characters(codec="ascii")), max_size=3))
def test_the_unicode_mode_reads_ascii_alike(lines):
    line = "\n".join(lines)
    for limits in ({}, {"max_words": 3}, {"max_bytes": 5}):
        ascii_mode, unicode_mode = (
            Tokenizer(**limits),
            Tokenizer(unicode=True, **limits),
        )
        assert ascii_mode.read(line) == unicode_mode.read(line)


@given(sentences, st.lists(sentences, min_size=1, max_size=3))
def test_the_best_reference_is_one_of_them(summary, references):
    texts = [text(lines) for lines in references]
    options = {"n": (1, 2), "su": 4}
    best = Rouge(references="best", **options).score(text(summary), texts)
    alone = [Rouge(**options).score(text(summary), [one]) for one in texts]
    for name, score in best.items():
        assert score in [one[name] for one in alone]
        assert score.recall == max(one[name].recall for one in alone)


# --- the stemmer -----------------------------------------------------------------

# Where the examples of Porter (1980) end after all five steps.
PORTER = """\
caresses caress  ponies poni  ties ti  caress caress  cats cat  feed feed
agreed agre  plastered plaster  bled bled  motoring motor  sing sing
conflated conflat  troubled troubl  sized size  hopping hop  tanned tan  falling fall
hissing hiss  fizzed fizz  failing fail  filing file  happy happi  sky sky
relational relat  conditional condit  rational ration  digitizer digit
radicalli radic  differentli differ  vileli vile  analogousli analog
vietnamization vietnam  predication predic  operator oper  feudalism feudal
decisiveness decis  hopefulness hope  callousness callous  formaliti formal
sensitiviti sensit  triplicate triplic  formative form  formalize formal
electrical electr  hopeful hope  goodness good  revival reviv  allowance allow
inference infer  airliner airlin  gyroscopic gyroscop  adjustable adjust
defensible defens  irritant irrit  replacement replac  adjustment adjust
dependent depend  adoption adopt  communism commun  activate activ
angulariti angular  homologous homolog  effective effect  bowdlerize bowdler
probate probat  rate rate  cease ceas  controll control  roll roll
generalizations gener  oscillators oscil
"""


@pytest.mark.parametrize(("word", "expected"), re.findall(r"(\w+) (\w+)", PORTER))
def test_porters_examples(word, expected):
    assert stem(word) == expected


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("possibly", "possibl"),  # possibli, possible; "poss" has m = 1, so -e goes
        ("apology", "apolog"),  # apologi, apolog
        ("element", "elem"),  # "el" and "ele" have m = 1, "elem" has 2
        ("governmental", "govern"),  # -al, then -ment
        ("commissioner", "commiss"),  # -er, then -ion after s
        ("accidental", "accid"),  # -al, then -ent
    ],
)
def test_where_rouge_leaves_porter(word, expected):
    assert stem(word) == expected


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("is", "is"),  # two letters stay
        ("yes", "ye"),  # y is a consonant at the start
        ("saying", "sai"),  # say; the vowel a makes -y an i
        ("syzygies", "syzygi"),  # y after a consonant is a vowel
        ("1990s", "1990"),
    ],
)
def test_corners_of_the_stemmer(word, expected):
    assert stem(word) == expected


# --- errors ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "n must be a whole number of at least 1, got 0"),
        ({"su": -1}, "su must be a whole number of at least 0, got -1"),
        ({"su": 1.5}, "su must be a whole number of at least 0, got 1.5"),
        ({"su": math.inf}, "su must be a whole number of at least 0, got inf"),
        ({"max_bytes": 0}, "max_bytes must be a whole number of at least 1"),
        ({"max_words": -3}, "max_words must be a whole number of at least 1"),
        ({"max_bytes": 9, "max_words": 9}, "a limit of bytes and one of words"),
        (
            {"references": "worst"},
            "unknown references 'worst'; there are average",
        ),
        ({"n": ()}, "nothing to measure"),
        ({"stop_words": "the"}, "stop_words is one text; give a list of words"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        Rouge(**options)


def test_bad_references():
    with pytest.raises(ValueError, match="references is one text; give a list"):
        Rouge().score("a", "a")
    with pytest.raises(ValueError, match="no references to compare with"):
        Rouge().prepare([])


def test_bad_means():
    with pytest.raises(ValueError, match="no scores to take the mean of"):
        mean_scores([])
    with pytest.raises(ValueError, match="different measures: rouge-1 and rouge-2"):
        mean_scores([Rouge(n=1).score("a", ["a"]), Rouge(n=2).score("a", ["a"])])


# --- what ROUGE-1.5.5 printed ----------------------------------------------------

OPTION_SETS = {
    "plain": {"n": (1, 2, 3, 4)},
    "stem": {"n": (1, 2, 3, 4), "stem": True},
    "stem_665_bytes": {"stem": True, "max_bytes": 665},
    "stem_100_words": {"stem": True, "max_words": 100},
    "stem_best_reference": {"stem": True, "references": "best"},
    "SU4": {"n": 1, "su": 4},
}


@pytest.fixture(scope="module")
def data():
    """The folder with the texts, where it is."""
    return outside_data("text")


def records(path):
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


@pytest.fixture(scope="module")
def systems(data):
    return records(data / "multiling2011_systems.jsonl")


@pytest.fixture(scope="module")
def references(data):
    return {
        row["topic"]: row["references"]
        for row in records(data / "multiling2011.jsonl")
        if row["language"] == "english"
    }


def printed(score):
    return {"R": score.recall, "P": score.precision, "F": score.f}


@pytest.mark.parametrize("name", OPTION_SETS)
def test_rouge_155_printed_the_same(name, data, systems, references):
    exceptions = read_exceptions(data / "wordnet2_exceptions.tsv")
    rouge = Rouge(exceptions=exceptions, **OPTION_SETS[name])
    prepared = {topic: rouge.prepare(texts) for topic, texts in references.items()}
    scores = {
        (row["peer"], row["id"]): prepared[row["id"]].score(row["summary"])
        for row in systems
    }
    rows = json.loads((data / "rouge155_scores.json").read_text())[name]["scores"]
    assert len(rows) == len(systems) * len(rouge.measures)
    for row in rows:
        score = scores[row["peer"], row["id"]][row["metric"].lower()]
        expected = {key: row[key] for key in "RPF"}
        assert printed(score) == pytest.approx(expected, abs=1e-9), row


def test_the_published_scores_are_the_same(systems, references):
    rouge = Rouge(su=4)
    for row in systems:
        scores = rouge.score(row["summary"], references[row["id"]])
        for metric, expected in row["published_rouge"].items():
            assert printed(scores[metric.lower()]) == pytest.approx(expected, abs=1e-9)


def test_rounding_is_the_only_difference(systems, references):
    row = random.Random(0).choice(systems)
    rounded = Rouge().score(row["summary"], references[row["id"]])
    unrounded = exact().score(row["summary"], references[row["id"]])
    for name, score in rounded.items():
        assert score != unrounded[name]
        assert score == pytest.approx(unrounded[name], abs=1.5e-5)


@pytest.mark.parametrize("language", ["hindi", "arabic", "greek", "hebrew"])
def test_other_scripts_have_their_words(language, data):
    row = next(
        row
        for row in records(data / "multiling2011.jsonl")
        if row["language"] == language
    )
    reference = row["references"][0]
    words = Rouge(unicode=True).read(reference)
    # Summaries have 240-250 words between white space, punctuation apart.
    n_words = len(reference.split())
    assert 0.9 * n_words <= len(words) <= 1.15 * n_words
