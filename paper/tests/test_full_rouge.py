"""ROUGE-L, W and S: by hand, against slow twins, and what ROUGE-1.5.5 printed."""

import json
import math
import random
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outside_data import outside_data
from paper.rouge import FullRouge
from paper.rouge.pairs import WidePairPool
from paper.rouge.sequences import common_positions, marks, marks_of_long
from paper.rouge.texts import SentenceTokenizer
from variegate.text.rouge import Score, read_exceptions

pytestmark = pytest.mark.paper

few_words = st.lists(st.sampled_from("abcde"), max_size=9)
sentences = st.lists(few_words, max_size=4)


def text(lines):
    return "\n".join(" ".join(words) for words in lines)


def exact(**options):
    return FullRouge(digits=None, **options)


def test_sentences_are_lines():
    assert SentenceTokenizer().read("a b\n\n...\nc").sentences == (("a", "b"), ("c",))


def test_the_limit_of_bytes_holds_line_by_line_for_sentences():
    # ROUGE-1.5.5 does not add up the lines when it reads for ROUGE-L.
    read = SentenceTokenizer(max_bytes=4).read("ab c\nab\nabcdefg\nx")
    assert read == ("ab", "c")
    assert read.sentences == (("ab", "c"),)
    read = SentenceTokenizer(max_bytes=4).read("abc\nab\nabcdefg\nx")
    assert read == ("abc", "a")
    assert read.sentences == (("abc",), ("ab",), ("abcd",))


def test_longest_common_subsequences_are_united():
    # Lin (2004), section 3.2: the union of w1 w2 and w1 w3 w5 has 4 of 5 words.
    summary = "w1 w2 w6 w7 w8\nw1 w3 w8 w9 w5"
    score = exact(n=(), lcs=True).score(summary, ["w1 w2 w3 w4 w5"])["rouge-l"]
    assert score[:2] == (4 / 10, 4 / 5)


def test_a_word_of_the_summary_is_a_hit_once():
    # Both sentences of the reference have "b" marked; the summary has one: 2 hits.
    score = exact(n=(), lcs=True).score("a b", ["x b\na b"])["rouge-l"]
    assert score[:2] == (2 / 2, 2 / 4)


@pytest.mark.parametrize(
    ("reference", "weight"), [("A B C D H I K", 4**2), ("A H B K C I D", 4)]
)
def test_runs_weigh_more(reference, weight):
    # Lin (2004), section 4, with f(k) = k²: precision 0.571 and 0.286.  ROUGE-1.5.5
    # weighs the reference twice: f(f(7)).
    score = exact(n=(), w=2).score("A B C D E F G", [reference])["rouge-w-2"]
    assert score.precision == pytest.approx(math.sqrt(weight / 7**2))
    assert score.recall == pytest.approx(math.sqrt(weight / (7**2) ** 2))


def test_runs_of_the_reference_count():
    # In the summary the four words are apart, yet they are one run of the reference.
    score = exact(n=(), w=2).score("A H B K C I D", ["A B C D E F G"])["rouge-w-2"]
    assert score.precision == pytest.approx(4 / 7)


def test_the_best_reference_of_rouge_w_is_found_before_the_second_weighing():
    # Hits over Σ f(l): 1 / 2 and 16 / 16, so the second counts, with recall
    # √(16 / 16²) = 1/4; the first one's is √(1 / 2²) = 1/2.
    rouge = exact(n=(), w=2, references="best")
    score = rouge.score("a b c d", ["a\nx", "a b c d"])["rouge-w-2"]
    assert score.recall == pytest.approx(1 / 4)


def test_a_run_that_ends_in_a_used_word_is_lost():
    # "b" is a hit of the first sentence, f(1) = 1; in the second, "a" is a hit whose
    # neighbour is marked but used up, so the run is never counted.
    score = exact(n=(), w=2).score("a b", ["x b\na b"])["rouge-w-2"]
    assert score.precision == pytest.approx(math.sqrt(1 / 2**2))
    assert score.recall == pytest.approx(math.sqrt(1 / (2**2 + 2**2) ** 2))


@pytest.mark.parametrize(
    ("summary", "shared"),
    [
        ("police kill the gunman", 3),
        ("the gunman kill police", 1),
        ("the gunman police killed", 2),
    ],
)
def test_skip_bigrams_by_hand(summary, shared):
    # Lin (2004), section 5: of the 6 pairs, in order, of 4 words.
    rouge = exact(n=(), skip=math.inf)
    score = rouge.score(summary, ["police killed the gunman"])["rouge-s*"]
    assert score.recall == pytest.approx(shared / 6)


def test_skip_counts_the_words_between():
    # "a c" has one word between its two in the reference, "a d" two.
    assert exact(n=(), skip=1).score("a c", ["a b c d"])["rouge-s1"].precision == 1
    assert exact(n=(), skip=1).score("a d", ["a b c d"])["rouge-s1"].precision == 0


def test_names_of_the_measures():
    rouge = FullRouge(n=(1, 3), lcs=True, w=1.2, skip=4, su=math.inf)
    assert list(rouge.score("a", ["a"])) == [
        *("rouge-1", "rouge-3", "rouge-l", "rouge-w-1.2", "rouge-s4", "rouge-su*")
    ]


def test_an_empty_summary_scores_nothing():
    rouge = FullRouge(lcs=True, w=1.2, skip=4, su=4)
    assert set(rouge.score(" \n", ["a b c"]).values()) == {Score(0.0, 0.0, 0.0)}


def slow_hits(summary, reference):
    """The units of the summary that are crossed off a list of the reference's."""
    left = list(reference)
    hits = 0
    for unit in summary:
        if unit in left:
            left.remove(unit)
            hits += 1
    return hits


def slow_pairs(words, skip, unigrams):
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


@given(
    few_words,
    st.lists(few_words, min_size=1, max_size=3),
    st.sampled_from([0, 1, 4, 31, math.inf]),
)
def test_pairs_are_those_of_the_slow_twin(summary, references, skip):
    rouge = exact(n=(), skip=skip, su=skip)
    scores = rouge.score(text([summary]), [text([words]) for words in references])
    for unigrams, score in zip((False, True), scores.values(), strict=True):
        expected = slow_ratios(
            slow_pairs(summary, skip, unigrams),
            [slow_pairs(words, skip, unigrams) for words in references],
        )
        assert score[:2] == pytest.approx(expected)


@given(
    few_words,
    st.lists(few_words, min_size=1, max_size=3),
    st.sampled_from([0, 1, 2, 5, 40, math.inf]),
    st.booleans(),
)
def test_pairs_that_are_not_listed_are_those_of_the_slow_twin(
    summary, references, skip, unigrams
):
    texts = [tuple(words) for words in references]
    ratios = WidePairPool(skip, unigrams, texts)(tuple(summary))
    expected = slow_ratios(
        slow_pairs(summary, skip, unigrams),
        [slow_pairs(words, skip, unigrams) for words in references],
    )
    assert ratios[:2] == pytest.approx(expected)


@given(sentences, sentences, st.sampled_from([1.0, 1.2, 2.0]))
def test_compiled_subsequences_are_those_of_the_plain_twin(first, second, w):
    first, second = (list(map(tuple, lines)) for lines in (first, second))
    assert list(marks_of_long(first, second, w)) == list(marks(first, second, w))


@pytest.mark.parametrize("options", [{"lcs": True}, {"w": 1.2}])
def test_long_texts_score_as_by_plain_loops(options, monkeypatch):
    draw = random.Random(0)
    summary, reference = (
        text([draw.choices("abcdefghijklmnop", k=25) for _ in range(8)])
        for _ in range(2)
    )
    rouge = exact(n=(), **options)
    plain = rouge.score(summary, [reference])
    monkeypatch.setattr(f"{marks.__module__}._MANY_PAIRS", 0)
    assert rouge.score(summary, [reference]) == plain


@given(st.lists(st.lists(st.sampled_from("abcde"), min_size=1), min_size=1))
def test_a_text_agrees_with_itself(lines):
    same = text(lines) + " f g"
    scores = FullRouge(lcs=True, w=1.2, skip=2, su=2).score(same, [same, same])
    weighted = scores.pop("rouge-w-1.2")
    assert set(scores.values()) == {Score(1.0, 1.0, 1.0)}
    # Its recall stays below 1 by definition, and more than one line breaks the run.
    if len(lines) == 1:
        assert weighted.precision == 1.0


@given(sentences, sentences)
def test_longest_common_subsequences_are_never_better_than_words(first, second):
    scores = exact(n=1, lcs=True).score(text(first), [text(second)])
    assert scores["rouge-l"].recall <= scores["rouge-1"].recall
    assert scores["rouge-l"].precision <= scores["rouge-1"].precision


def is_subsequence(words, other):
    rest = iter(other)
    return all(word in rest for word in words)


def longest_common_length(first, second):
    """By trying all subsequences."""
    return max(
        size
        for size in range(len(first) + 1)
        if any(is_subsequence(chosen, second) for chosen in combinations(first, size))
    )


@given(few_words, few_words)
def test_longest_common_subsequence_by_brute_force(first, second):
    positions = common_positions(tuple(first), tuple(second))
    assert positions == sorted(set(positions), reverse=True)
    assert is_subsequence([first[i] for i in reversed(positions)], second)
    assert len(positions) == longest_common_length(first, second)


@given(few_words, few_words)
def test_weighted_subsequences_are_common(first, second):
    positions = common_positions(tuple(first), tuple(second), w=1.5)
    assert is_subsequence([first[i] for i in reversed(positions)], second)
    assert bool(positions) == bool(set(first) & set(second))


@given(sentences, st.lists(sentences, min_size=1, max_size=3))
def test_the_best_reference_is_one_of_them(summary, references):
    texts = [text(lines) for lines in references]
    options = {"n": (1, 2), "lcs": True, "w": 1.2, "su": 4}
    best = FullRouge(references="best", **options).score(text(summary), texts)
    alone = [FullRouge(**options).score(text(summary), [one]) for one in texts]
    for name, score in best.items():
        assert score in [one[name] for one in alone]
        if name != "rouge-w-1.2":
            assert score.recall == max(one[name].recall for one in alone)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"w": 1.0}, "the weight w must be above 1, got 1.0"),
        ({"su": -1}, "su must be a whole number from 0 or math.inf, got -1"),
        ({"skip": 1.5}, "skip must be a whole number from 0 or math.inf, got 1.5"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        FullRouge(**options)


def records(path):
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def test_rouge_155_printed_the_same():
    data = outside_data("text")
    exceptions = read_exceptions(data / "wordnet2_exceptions.tsv")
    rouge = FullRouge(exceptions=exceptions, n=1, stem=True, lcs=True, w=1.2)
    prepared = {
        row["topic"]: rouge.prepare(row["references"])
        for row in records(data / "multiling2011.jsonl")
        if row["language"] == "english"
    }
    systems = records(data / "multiling2011_systems.jsonl")
    scores = {
        (row["peer"], row["id"]): prepared[row["id"]].score(row["summary"])
        for row in systems
    }
    printed = json.loads((data / "rouge155_scores.json").read_text())
    rows = printed["stem_L_W"]["scores"]
    assert len(rows) == len(systems) * len(rouge.measures)
    for row in rows:
        score = scores[row["peer"], row["id"]][row["metric"].lower()]
        expected = (row["P"], row["R"], row["F"])
        assert score == pytest.approx(expected, abs=1e-9), row
