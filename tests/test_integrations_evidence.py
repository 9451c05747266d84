"""Cutting documents to their evidence, whatever framework has found them."""

import sys
from types import SimpleNamespace

import pytest

pytest.importorskip("syntok", reason="needs 'variegate[text]'")

from variegate.integrations import ContextWarning, EvidenceExtractor
from variegate.text import Budget, Document, EvidenceSelector

QUESTION = "How much water does the tank hold?"
TEXTS = [
    "The pump is cleaned once a month. Unplug the pump before you clean it.",
    "The tank holds ten litres of water. It is made of steel. Do not overfill it.",
    "Water in the tank must be changed. The tank holds ten litres of water.",
]


def count_words(text):
    return len(text.split())


def evidence(texts, **settings):
    """Return what the model chooses of the same documents."""
    model = EvidenceSelector.pretrained()
    return model.select(QUESTION, [Document(text) for text in texts], **settings)


@pytest.mark.parametrize("budget", [None, 8, 15, 40])
def test_the_sentences_are_those_of_the_model(budget):
    limit = budget and Budget(budget, "tokens", count_words)
    found = evidence(TEXTS, budget=limit)
    counter = None if budget is None else count_words
    extracts = EvidenceExtractor(budget, counter).extract(QUESTION, TEXTS)
    chosen = [one for one in found.marked if one.chosen]
    assert [line for one in extracts for line in one.text.split("\n")] == [
        one.sentence.plain for one in chosen
    ]
    spans = [(one.place, span) for one in extracts for span in one.sentences]
    assert [
        (place, span["start"], span["end"], span["probability"])
        for place, span in spans
    ] == [
        (
            one.sentence.document,
            one.sentence.start,
            one.sentence.end,
            one.probability,
        )
        for one in chosen
    ]
    assert [one.place for one in extracts] == sorted({place for place, _ in spans})
    assert "The tank holds ten litres of water." in [
        TEXTS[place][span["start"] : span["end"]] for place, span in spans
    ]
    if budget is not None:
        assert sum(count_words(one.text) for one in extracts) <= budget


def test_a_path_and_a_model_choose_alike(tmp_path):
    path = tmp_path / "model.json"
    EvidenceSelector.pretrained().save(path)
    expected = EvidenceExtractor().extract(QUESTION, TEXTS)
    for model in (path, str(path), EvidenceSelector.load(path)):
        assert EvidenceExtractor(model=model).extract(QUESTION, TEXTS) == expected


def test_omega_trades_precision_for_recall():
    numbers = []
    for omega in (0.1, 1.0, 100.0):
        extracts = EvidenceExtractor(omega=omega).extract(QUESTION, TEXTS)
        numbers.append(sum(len(one.sentences) for one in extracts))
    assert numbers == sorted(numbers)
    assert numbers[0] < numbers[-1]


def test_titles_are_headings_of_their_documents():
    texts = [f"It holds {n} litres of water. It is made of steel." for n in (2, 3)]
    extractor = EvidenceExtractor(budget=9)
    for titles, place in ((["Tank", "Cup"], 0), (["Cup", "Tank"], 1)):
        (extract,) = extractor.extract(QUESTION, texts, titles)
        assert extract.place == place
    with pytest.raises(ValueError, match="2 documents, but 1 titles"):
        extractor.extract(QUESTION, texts, ["Tank"])


def test_texts_without_sentences_leave_nothing():
    extractor = EvidenceExtractor()
    for texts in ([""], ["", " \n"]):
        with pytest.warns(ContextWarning, match="running text: none is chosen"):
            assert extractor.extract(QUESTION, texts) == []
    (extract,) = extractor.extract(QUESTION, ["", TEXTS[1]])
    assert extract.place == 1
    with pytest.raises(ValueError, match="there are no documents to choose from"):
        extractor.extract(QUESTION, [])


@pytest.mark.parametrize("budget", [None, 8, 40])
def test_sentences_of_the_prompt_are_left_out(budget):
    prompt = ["See below.\nThe tank  holds ten\nlitres of water. It is of use."]
    extracts = EvidenceExtractor(budget, count_words if budget else None).extract(
        QUESTION, TEXTS, given=prompt
    )
    # As if the documents did not have the sentence, which stands in two of them.
    sentence = "The tank holds ten litres of water."
    others = [text.replace(sentence, "") for text in TEXTS]
    alone = EvidenceExtractor(budget, count_words if budget else None).extract(
        QUESTION, others, given=prompt
    )
    assert [(one.place, one.text) for one in extracts] == [
        (one.place, one.text) for one in alone
    ]
    sentences = [sentence, "The tank is of steel."]
    model = EvidenceSelector.pretrained()
    chosen = model.select(QUESTION, sentences, "1s", given=prompt)
    assert chosen.selection.indices.tolist() == [1]
    assert EvidenceExtractor().extract(QUESTION, TEXTS, given=[]) == (
        EvidenceExtractor().extract(QUESTION, TEXTS)
    )


def test_a_prompt_with_all_sentences_leaves_nothing():
    with pytest.warns(ContextWarning, match="the prompt has all sentences of the doc"):
        assert EvidenceExtractor().extract(QUESTION, TEXTS, given=TEXTS) == []
    with pytest.raises(TypeError, match="given must be a list of texts, not one text"):
        EvidenceExtractor().extract(QUESTION, TEXTS, given=TEXTS[0])


def test_a_budget_that_nothing_fits_leaves_nothing():
    extractor = EvidenceExtractor(2, count_words)
    with pytest.warns(ContextWarning, match="fits 2 tokens, the shortest has 4: none"):
        assert extractor.extract(QUESTION, TEXTS) == []


def test_encodings_of_tiktoken(monkeypatch):
    words = SimpleNamespace(encode_ordinary=str.split)
    known = {"words": words}
    monkeypatch.setitem(
        sys.modules,
        "tiktoken",
        SimpleNamespace(get_encoding=known.__getitem__, __spec__=object()),
    )
    extractor = EvidenceExtractor(15, "words")
    assert extractor.extract(QUESTION, TEXTS) == EvidenceExtractor(
        15, count_words
    ).extract(QUESTION, TEXTS)
    assert extractor.settings()["count_tokens"] == "words"


def test_tiktoken_may_be_missing(monkeypatch):
    monkeypatch.setattr("variegate.integrations.evidence.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"'cl100k_base' is .*pip install tiktoken"):
        EvidenceExtractor(9, "cl100k_base")


def test_settings_are_those_that_were_given(tmp_path):
    path = tmp_path / "model.json"
    given = {"budget": 9, "count_tokens": len, "model": path, "omega": 2.0}
    assert EvidenceExtractor(**given).settings() == given | {"model": str(path)}
    assert EvidenceExtractor().settings() == dict.fromkeys(given)
    with pytest.raises(ValueError, match=r"save it .* and give the extractor the path"):
        EvidenceExtractor(model=EvidenceSelector.pretrained()).settings()
    with pytest.raises(ValueError, match=r"there is no model file .*model\.json"):
        EvidenceExtractor(model=path).extract(QUESTION, TEXTS)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"budget": 0}, ValueError, "a budget must be at least 1, not 0"),
        ({"budget": 1.5}, TypeError, "a budget is a whole number, not 1.5"),
        ({"count_tokens": len}, ValueError, "count_tokens needs a budget"),
        ({"budget": 9, "count_tokens": 3}, ValueError, "must be a function or the n"),
        ({"omega": 0}, ValueError, "omega must be"),
        ({"model": 3}, ValueError, "model must be an EvidenceSelector .* got a int"),
    ],
)
def test_settings_are_checked_at_once(settings, error, message):
    with pytest.raises(error, match=message):
        EvidenceExtractor(**settings)


def test_a_sentence_before_code_can_be_chosen_and_code_cannot():
    text = (
        "The tank of the machine must be emptied before the winter, as water\n"
        "freezes and breaks it. To let the water of the tank flow out, open the\n"
        "valve that is below it, as in this program:\n"
        "\n"
        "    for valve in machine.valves_of_the_tank_with_water:\n"
        "        open_the_valve_of_water(valve)\n"
        "\n"
        "Nothing has to be done in the summer, when the pump runs on most of the\n"
        "days of the week, and the water is always warm.\n"
    )
    question = "Which valve lets water flow out of the tank?"
    (extract,) = EvidenceExtractor(omega=1e6).extract(question, [text])
    lines = extract.text.split("\n")
    assert lines[1].startswith("To let the water of the tank flow out")
    assert [line.split()[0] for line in lines] == ["The", "To", "Nothing"]
