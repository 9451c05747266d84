"""Budgets: costs add up to the limit exactly when the joined text fits."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from variegate.text.budget import Budget

UNITS = ["characters", "words", "sentences", "bytes"]


@pytest.mark.parametrize(
    ("text", "amount", "unit"),
    [
        ("665c", 665, "characters"),
        ("250w", 250, "words"),
        ("5s", 5, "sentences"),
        ("665b", 665, "bytes"),
        (" 250 words ", 250, "words"),
        ("1 Sentence", 1, "sentences"),
        ("20C", 20, "characters"),
    ],
)
def test_parse(text, amount, unit):
    assert Budget.parse(text) == Budget(amount, unit)


@given(st.integers(1, 10**9), st.sampled_from(UNITS))
def test_text_form_is_read_back(amount, unit):
    budget = Budget(amount, unit)
    assert Budget.parse(str(budget)) == budget


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("665", r"'665' has no unit: add one of c \(characters\), w \(words\)"),
        ("5x", r"unknown unit 'x' in '5x': use one of c \(characters\)"),
        ("many", "cannot read the budget 'many': write a whole number and a unit"),
        ("2.5w", "cannot read the budget '2.5w'"),
        ("", "cannot read the budget ''"),
        ("0w", "at least 1, not 0"),
        ("-3s", "at least 1, not -3"),
    ],
)
def test_bad_text(text, message):
    with pytest.raises(ValueError, match=message):
        Budget.parse(text)


def test_bad_arguments():
    with pytest.raises(
        ValueError, match="unknown unit 'pages' of a budget: use one of"
    ):
        Budget(3, "pages")
    with pytest.raises(TypeError, match=r"a budget is a whole number, not 2\.5"):
        Budget(2.5, "words")
    with pytest.raises(TypeError, match="a budget is a whole number, not True"):
        Budget(True, "words")


def test_describe():
    assert Budget(665, "characters").describe() == "665 characters"
    assert Budget(1, "sentences").describe() == "1 sentence"


@pytest.mark.parametrize(
    ("unit", "costs", "limit"),
    [
        ("characters", [8, 5], 11),
        ("bytes", [9, 6], 11),
        ("words", [2, 1], 10),
        ("sentences", [1, 1], 10),
    ],
)
def test_costs_by_hand(unit, costs, limit):
    budget = Budget(10, unit)
    found = budget.costs(["Où est?", "Là.."])
    assert found.dtype == np.float64
    assert found.tolist() == costs
    assert budget.limit == limit


def joined_length(texts, unit):
    """The length of a summary, from its definition."""
    summary = "\n".join(texts)
    return {
        "characters": len(summary),
        "bytes": len(summary.encode()),
        "words": sum(
            # Every 語 is a word, and so is what is between them, if it has letters.
            piece.count("語") + len(re.findall("[aé][aé.]*", piece.replace(".", "")))
            if "語" in piece
            else 1
            for piece in summary.split()
        ),
        "sentences": len(texts),
    }[unit]


@given(
    st.lists(st.text("aé語 \u00a0.", min_size=1).filter(str.strip), max_size=6),
    st.integers(1, 60),
    st.sampled_from(UNITS),
)
def test_costs_and_limit_say_what_fits(texts, amount, unit):
    budget = Budget(amount, unit)
    fits = joined_length(texts, unit) <= amount
    assert (budget.costs(texts).sum() <= budget.limit) == fits


def test_no_texts():
    assert Budget(5, "words").costs([]).shape == (0,)
