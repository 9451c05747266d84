"""Scripts: sentence ends, words without spaces, and which language a text is in."""

import pytest
import regex

from outside_data import outside_data
from variegate.text.budget import Budget
from variegate.text.documents import Document
from variegate.text.languages import (
    LANGUAGES,
    OTHER_WORDS,
    detect_language,
    other_language,
)
from variegate.text.readers import read_clusters
from variegate.text.sentences import split_sentences
from variegate.text.summarizer import load_default
from variegate.text.words import (
    ENDS,
    UNSPACED,
    count_spaced_words,
    ends_sentence,
    words,
)

#: Sentences of languages without word lists, and what is between them.
SENTENCES = {
    "chinese": ("", ["今天下雨了。", "我们留在家里！", "你呢？", "价格是3．5元。"]),
    "japanese": (
        "",
        ["雨が降っている。", "「行くの？」と彼は聞いた。", "「はい。」", "寒い！！"],
    ),
    "korean": (" ", ["비가 왔다.", "우리는 집에 있었다!", "너는?"]),
    "khmer": (" ", ["ភ្លៀងធ្លាក់។", "យើងនៅផ្ទះ៕"]),
    "burmese": (" ", ["မိုးရွာသည်။", "အိမ်မှာနေသည်။"]),
    "amharic": (" ", ["ዝናብ ዘነበ።", "እንዴት ነህ፧"]),
    "armenian": (" ", ["Անձրև եկավ։", "Մենք տանն էինք։"]),
    "urdu": (" ", ["بارش ہوئی۔", "کیا آپ گھر پر تھے؟"]),
    "russian": (" ", ["Шёл дождь.", "Мы были дома!", "А ты?"]),
    "german": (" ", ["Es regnete den ganzen Tag.", "Wir blieben zu Hause."]),
}


@pytest.mark.parametrize("language", SENTENCES)
def test_sentences_of_other_languages(language):
    separator, sentences = SENTENCES[language]
    text = separator.join(sentences)
    assert [text[start:end] for start, end in split_sentences(text)] == sentences
    assert all(ends_sentence(one) for one in sentences)


def test_thai_has_no_sentence_ends():
    text = "ฝนตกหนัก เราอยู่บ้าน"
    assert split_sentences(text) == [(0, len(text))]
    assert not ends_sentence(text)


def test_ends_are_those_of_unicode():
    assert all(regex.fullmatch(r"\p{Sentence_Break=STerm}", one) for one in ENDS)


def test_letters_without_spaces_are_those_of_their_scripts():
    scripts = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Myanmar}\p{Khmer}]"
    ours = regex.compile(f"[{UNSPACED}]")
    for code in [*range(0x0E00, 0x1800), *range(0x3000, 0xA000)]:
        one = chr(code)
        if regex.match(r"\p{Lo}", one) and regex.match(scripts, one):
            assert ours.match(one) or one == "\u303c", one
        elif ours.match(one) and regex.match(r"\p{L}", one):
            assert regex.match(rf"{scripts}|\p{{Common}}", one), one


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("今天下雨", ["今天", "天下", "下雨"]),
        ("我爱 Python3！好", ["我爱", "python3", "好"]),
        ("東京タワー", ["東京", "京タ", "タワ", "ワー"]),
        ("비가 왔다", ["비가", "왔다"]),
        ("กิน", ["กิน"[:2] + "น"]),
        ("Rain, again", ["rain", "again"]),
    ],
)
def test_words(text, expected):
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("Rain fell -- twice.", 4),
        ("今天下雨了。", 5),
        ("我爱 Python3 语言。Go语言", 8),
        ("비가 왔다.", 2),
        ("กิน", 2),
        ("，。", 1),
        ("", 0),
    ],
)
def test_what_a_budget_counts_as_a_word(text, number):
    assert count_spaced_words(text) == number
    if number:
        assert Budget(99, "words").costs([text]).tolist() == [number]


CHINESE = (
    "星期一，一场暴风雨关闭了奥胡斯港。所有渡轮全天停在港口。没有人受伤，但有两艘船沉没。"
    "四千名乘客不得不等待或乘坐火车。港口将于星期二中午重新开放。这是十年来最强的风暴。"
)


def test_a_summary_in_chinese():
    summary = load_default().summarize([CHINESE], "30w")
    assert 1 <= len(summary.sentences) < 6
    assert all(one.text.endswith("。") for one in summary.sentences)
    assert count_spaced_words(summary.text) <= 30
    assert summary.language is None


DETECTED = {
    "english": "The house stands at the edge of the town and has been empty for years.",
    "arabic": "يقع البيت على أطراف المدينة وقد كان فارغا منذ سنوات ولا أحد في هذا.",
    "czech": "Dům stojí na okraji města a už léta je prázdný, protože se o něm ví.",
    "french": "La maison est au bord de la ville et elle est vide depuis des années.",
    "greek": "Το σπίτι βρίσκεται στην άκρη της πόλης και είναι άδειο εδώ και χρόνια.",
    "hebrew": "הבית עומד בקצה העיר והוא ריק כבר שנים.",
    "hindi": "यह घर शहर के किनारे पर है और कई सालों से खाली है।",
}
UNKNOWN = {
    "german": "Das Haus steht am Rand der Stadt und ist seit Jahren leer.",
    "spanish": "La casa está en las afueras de la ciudad y lleva años vacía.",
    "italian": "La casa è alla periferia della città ed è vuota da anni.",
    "dutch": "Het huis staat aan de rand van de stad en is al jaren leeg.",
    "persian": "این خانه در حاشیه شهر است و سال‌ها خالی بوده است.",
    "russian": "Дом стоит на окраине города и пустует уже много лет.",
    "chinese": CHINESE,
    "nothing": "1234 5678 -- ???",
    "empty": "",
}


@pytest.mark.parametrize("language", DETECTED)
def test_known_languages_are_detected(language):
    assert detect_language(DETECTED[language]) == language


@pytest.mark.parametrize("language", UNKNOWN)
def test_other_languages_are_taken_for_none_of_them(language):
    assert detect_language(UNKNOWN[language]) is None


def test_the_language_of_real_news():
    clusters = read_clusters(outside_data("text") / "multiling2011.jsonl")
    right = [
        detect_language(document.text) == cluster.language
        for cluster in clusters
        for document in cluster.documents
    ]
    assert sum(right) >= 0.99 * len(right)


def test_the_summarizer_detects_the_language():
    model = load_default()
    documents = [Document(DETECTED["french"] + " Elle sera vendue dans une semaine.")]
    assert model.summarize(documents, "1s").language == "french"
    assert model.summarize(documents, "1s", language="none").language is None
    assert model.summarize(documents, "1s", language="en").language == "en"


def test_names_of_languages_without_lists():
    assert other_language("DE") == other_language(" German ") == "german"
    assert other_language("en") is None
    assert other_language("elvish") is None
    for language in LANGUAGES.values():
        assert other_language(language.code) is other_language(language.name) is None
    assert all(other_language(name) == name for name in OTHER_WORDS)
