"""What was learned, in words."""

import pytest

from variegate.studio.judging import CurvePoint, verdict_on


@pytest.mark.parametrize(
    ("n", "f", "untrained", "words"),
    [
        (4, 0.78, 0.51, "agree better with your picks (F 0.78) than untrained ones "
         "(0.51), in cross-validation."),
        (4, 0.40, 0.51, "do not yet agree better with your picks (F 0.40) than "
         "untrained ones (0.51), in cross-validation."),
        (9, 0.514, 0.512, "do not yet agree better with your picks (F 0.51) than "
         "untrained ones (0.51), in cross-validation."),
    ],
)  # fmt: skip
def test_it_says_whether_learning_pays(n, f, untrained, words):
    curve = (CurvePoint(2, 0.9, 0.1), CurvePoint(n, f, untrained))
    assert verdict_on(curve) == f"Learned proposals {words}"


def test_whether_learning_pays_is_not_said_from_few_groups():
    too_early = "From 4 groups on, this says whether learning pays."
    assert verdict_on(()) == too_early
    assert verdict_on((CurvePoint(3, 0.9, 0.1),)) == too_early
