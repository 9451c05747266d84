import pytest

from text_instances import BAKERY, STORM, STORM_AGAIN
from variegate.text import load_default
from variegate.text.cluster_view import feature_names


def test_the_packaged_model_summarizes():
    summary = load_default().summarize([STORM, STORM_AGAIN], "20w", language="english")
    assert 0 < len(summary.text.split()) <= 20


def test_news_begins_with_what_matters():
    # First sentences of news say most, and the packaged model has learned that.
    for model in load_default().models_:
        weight = dict(zip(feature_names("full"), model.theta_, strict=True))
        assert max(weight, key=weight.__getitem__) == "earliness"


def test_its_omegas_move_what_it_wants():
    model = load_default()
    low, high = model.omegas_[0], model.omegas_[-1]

    def expected_size(omega):
        summary = model.summarize([STORM, STORM_AGAIN, BAKERY], omega=omega)
        return sum(entry.probability or 0.0 for entry in summary.marked)

    assert expected_size(low) < expected_size(1.0) < expected_size(high)
    with pytest.raises(ValueError, match=r"learned for 0\.0625 to 16"):
        model.summarize([STORM], omega=100.0)


def test_what_one_user_sets_is_not_what_another_gets():
    load_default().set_params(n_samples=7)
    assert load_default().n_samples == 500
