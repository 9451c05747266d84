"""The language reference of Python in passages, and questions about it.

The passages are the topics of ``help()``, which every Python has as text
(``pydoc_data``, PSF licence).  Wanted sentences were marked before any method was run.
"""

import re
from pydoc_data.topics import topics

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

QUESTIONS = {
    "What happens to an exception if the finally clause executes a return statement, "
    "and which value does the function return?": [
        'If the "finally" clause executes a "return", "break" or "continue" '
        "statement, the saved exception is discarded",
        'The return value of a function is determined by the last "return" statement '
        "executed.",
        'Since the "finally" clause always executes, a "return" statement executed in '
        'the "finally" clause will always be the last one executed',
    ],
    "Why does a list that is the default of a parameter keep its items between calls, "
    "and how can I avoid that?": [
        "Default parameter values are evaluated from left to right when the function "
        "definition is executed.",
        "This means that the expression is evaluated once, when the function is "
        "defined, and that the same pre-computed value is used for each call.",
        "This is especially important to understand when a default parameter value is "
        "a mutable object, such as a list or a dictionary",
        'A way around this is to use "None" as the default, and explicitly test for '
        "it in the body of the function",
    ],
    "Why can objects of a class that defines __eq__ not be keys of a dictionary, and "
    "how can the class keep the hash of its parent?": [
        'if it defines "__eq__()" but not "__hash__()", its instances will not be '
        "usable as items in hashable collections.",
        'A class that overrides "__eq__()" and does not define "__hash__()" will have '
        'its "__hash__()" implicitly set to "None".',
        'When the "__hash__()" method of a class is "None", instances of the class '
        'will raise an appropriate "TypeError" when a program attempts to retrieve '
        "their hash value",
        'If a class that overrides "__eq__()" needs to retain the implementation of '
        '"__hash__()" from a parent class, the interpreter must be told this '
        "explicitly",
    ],
    "Why is NaN not equal to itself, and does the operator in find it in a list?": [
        "A counter-intuitive implication is that not-a-number values are not equal to "
        "themselves.",
        "This behavior is compliant with IEEE 754.",
        "For container types such as list, tuple, set, frozenset, dict, or "
        'collections.deque, the expression "x in y" is equivalent to',
    ],
    "When does a with statement swallow an exception that was raised in its block?": [
        "If an exception caused the suite to be exited, its type, value, and traceback "
        'are passed as arguments to "__exit__()".',
        "If the suite was exited due to an exception, and the return value from the "
        '"__exit__()" method was false, the exception is reraised.',
        "If the return value was true, the exception is suppressed, and execution "
        'continues with the statement following the "with" statement.',
        "If an exception is supplied, and the method wishes to suppress the exception "
        "(i.e., prevent it from being propagated), it should return a true value.",
    ],
}


def passages(length=1000):
    """Return passages of whole paragraphs, and the title of the topic of each."""
    texts, titles = [], []
    for topic in topics.values():
        title, *paragraphs = topic.strip().split("\n\n")
        title, passage = title.split("\n")[0], ""
        for paragraph in paragraphs:
            if passage and len(passage) + len(paragraph) > length:
                texts.append(passage)
                titles.append(title)
                passage = ""
            passage = f"{passage}\n\n{paragraph}".strip("\n")
        if passage:
            texts.append(passage)
            titles.append(title)
    return texts, titles


def search(question, texts, n=20):
    """Return the numbers of the texts with most words of a question in common."""
    vectorizer = TfidfVectorizer(sublinear_tf=True)
    vectors = vectorizer.fit_transform(texts)
    # Rounded, so that equal scores are equal on any machine.
    scores = np.round((vectors @ vectorizer.transform([question]).T).toarray(), 9)
    return np.argsort(-scores[:, 0], kind="stable")[:n]


def words_of(text):
    """Return the words of a text, in small letters."""
    return re.findall(r"[a-z0-9]+", text.lower())


def share_kept(wanted, text):
    """Return the share of wanted sentences that a text has, by their words."""
    kept = f" {' '.join(words_of(text))} "
    return sum(f" {' '.join(words_of(one))} " in kept for one in wanted) / len(wanted)
