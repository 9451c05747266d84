import json
import re
import sys

import numpy as np
import pytest

import variegate as vg
from instances import random_kernel_matrix
from paper import experiment as runner
from paper.held_out import choose
from paper.synthetic import Settings, reproduce
from paper.synthetic.claims import interval
from paper.synthetic.gap import CentredGaussian
from paper.synthetic.pieces import best_on_holdout, fit_path
from paper.synthetic.summary import mean_and_error, paired, row_of
from paper.text_tables import markdown_table, ruled_columns
from variegate._install import install_command
from variegate.report.page import template_environment

pytestmark = pytest.mark.paper

SMALL = Settings(
    n_draws=2,
    train_sizes=(20, 30),
    n_holdout=10,
    n_test=15,
    bandwidths=(2.5, 40.0),
    bandwidth_train_size=30,
    lambdas=(0.0, 4.0),
    n_starts=1,
)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    return reproduce(tmp_path_factory.mktemp("synthetic"), SMALL)


def test_results_have_the_documented_shape(outcome):
    results = outcome.results
    axes = {
        "fig1a": "n_train",
        "fig1b": "sigma",
        "fig1c": "n_train",
        "fig1c_anchored": "n_train",
        "clean": "n_train",
    }
    for figure, axis in axes.items():
        for row in results[figure]:
            assert row["method"] in {"mle", "lme", "oracle"}
            assert axis in row
            for metric in ("f", "precision", "recall"):
                assert set(row[metric]) == {"mean", "se"}
                assert 0 <= row[metric]["mean"] <= 1
                assert 0 <= row["against_clean"][metric]["mean"] <= 1
    methods = [(r["n_train"], r["method"]) for r in results["fig1a"]]
    assert methods == [(n, m) for n in (20, 30) for m in ("oracle", "mle", "lme")]


def test_maximum_likelihood_is_lambda_zero_and_the_oracle_has_none(outcome):
    for row in outcome.results["fig1a"]:
        if row["method"] == "mle":
            assert row["lam"]["chosen"] == [0.0, 0.0]
        if row["method"] == "oracle":
            assert row["lam"] is None
            assert row["against_clean"]["f"]["mean"] == 1.0


def test_clean_data_have_no_noise(outcome):
    for row in outcome.results["clean"]:
        assert row["f"] == row["against_clean"]["f"]


def test_figures_and_report_are_written(outcome):
    names = {path.name for path in outcome.files}
    pictures = {
        "fig1a.png",
        "fig1b.png",
        "fig1c.png",
        "clean.png",
        "gap.png",
        "fig1.png",
    }
    assert names == pictures | {"results.json", "report.md"}
    for path in outcome.files:
        if path.suffix == ".png":
            assert path.read_bytes().startswith(b"\x89PNG")
    report = next(p for p in outcome.files if p.name == "report.md").read_text()
    assert report.rstrip().splitlines()[-1].startswith("|")
    assert "## Statements of the paper" in report
    for picture in pictures:
        assert f"]({picture})" in report
    folder = outcome.files[0].parent
    assert {path.name for path in folder.iterdir()} == names


def test_the_results_do_not_depend_on_the_number_of_jobs(outcome, tmp_path):
    again = reproduce(tmp_path, SMALL, jobs=2)
    assert again.results == outcome.results


def test_lambda_is_chosen_on_the_holdout():
    data = SMALL.data(0)
    models = fit_path(SMALL, data, 30, vg.Linear(), fit_intercept=False)
    assert [model.lam for model in models] == [0.0, 4.0]
    best = best_on_holdout(models, data)
    scores = [m.score(data.holdout.ground_sets, data.holdout.subsets) for m in models]
    assert best.lam == SMALL.lambdas[int(np.argmax(scores))]


def test_the_three_parts_of_a_draw_do_not_overlap():
    data = SMALL.data(0)
    parts = (data.holdout, data.test, data.train)
    first_rows = [gs.quality[0, 0] for part in parts for gs in part.ground_sets]
    assert len(set(first_rows)) == len(first_rows) == 10 + 15 + 30


def test_means_errors_and_pairs():
    assert mean_and_error([1.0, 2.0, 3.0]) == pytest.approx(
        {"mean": 2.0, "se": 1 / np.sqrt(3)}
    )
    first, second = {"f_by_draw": [0.5, 0.9]}, {"f_by_draw": [0.4, 0.8]}
    assert paired(first, second) == pytest.approx({"mean": 0.1, "se": 0.0})
    with pytest.raises(KeyError, match="no row 3"):
        row_of({"fig1a": []}, "fig1a", 3, "lme")


def test_intervals_are_students():
    # For 20 draws the 97.5% point of Student's t with 19 degrees is 2.093.
    low, high = interval({"mean": 0.1, "se": 0.01}, 20)
    assert (low, high) == pytest.approx((0.1 - 0.02093, 0.1 + 0.02093), abs=1e-5)


def test_a_centred_gaussian_stays_positive_semidefinite():
    X = np.random.default_rng(0).standard_normal((8, 3))
    S = CentredGaussian(2.0).matrix(vg.GroundSet(X))
    assert np.linalg.eigvalsh(S).min() > -1e-12


def test_centred_gaussian_sums_to_zero():
    S = CentredGaussian(2.0).matrix(
        vg.GroundSet(random_kernel_matrix(np.random.default_rng(0), 6))
    )
    np.testing.assert_allclose(S.sum(axis=0), 0.0, atol=1e-12)


# Running in pieces -----------------------------------------------------------------

CALLS = []


def square(number):
    CALLS.append(number)
    return {"square": number**2}


def stop_at_three(number):
    if number == 3:
        raise KeyboardInterrupt
    return square(number)


def test_pieces_come_back_in_order_with_progress(tmp_path):
    seen = []
    results = runner.run_pieces(
        square,
        [(3,), (1,), (2,)],
        tmp_path,
        "mark",
        1,
        lambda stage, done, total: seen.append((done, total)),
    )
    assert [result["square"] for result in results] == [9, 1, 4]
    assert seen == [(0, 3), (1, 3), (2, 3), (3, 3)]
    runner.discard_pieces(tmp_path, "mark")
    assert list(tmp_path.iterdir()) == []


def test_a_finished_run_leaves_the_pieces_of_another(tmp_path):
    for mark in ("one", "two"):
        runner.run_pieces(square, [(1,)], tmp_path, mark, 1)
    runner.discard_pieces(tmp_path, "one")
    CALLS.clear()
    runner.run_pieces(square, [(1,)], tmp_path, "two", 1)
    assert CALLS == []


def test_an_interrupted_run_is_taken_up_again(tmp_path):
    pieces = [(1,), (2,), (3,), (4,)]
    with pytest.raises(KeyboardInterrupt):
        runner.run_pieces(stop_at_three, pieces, tmp_path, "mark", 1)
    CALLS.clear()
    results = runner.run_pieces(square, pieces, tmp_path, "mark", 1)
    assert [result["square"] for result in results] == [1, 4, 9, 16]
    assert CALLS == [3, 4]


def test_other_settings_start_anew(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        runner.run_pieces(stop_at_three, [(1,), (3,)], tmp_path, "mark", 1)
    CALLS.clear()
    runner.run_pieces(square, [(1,), (3,)], tmp_path, "another mark", 1)
    assert CALLS == [1, 3]


def test_fingerprint_depends_on_the_settings():
    one = runner.fingerprint({"a": 1, "b": 2})
    assert one == runner.fingerprint({"b": 2, "a": 1})
    assert one != runner.fingerprint({"a": 1, "b": 3})
    json.dumps(SMALL.as_dict())


def test_tables():
    assert markdown_table(("a", "bb"), [("1", "2")]).splitlines() == [
        "| a | bb |",
        "|---|----|",
        "| 1 | 2  |",
    ]
    lines = ruled_columns(("h",), [("one two three",)], widths=(7,)).splitlines()
    assert lines[2:4] == ["one two", "three"]


def test_columns_with_lines_between_the_rows():
    table = ruled_columns(("head", "b"), [("one two three", "four")], widths=(7, 4))
    assert table.splitlines() == [
        "head     b",
        "───────  ────",
        "one two  four",
        "three",
        "───────  ────",
    ]


def test_choices_are_cross_validated_for_each_learner():
    choices = [{"lam": 0.0}, {"lam": 0.0, "l2": 1.0}, {"lam": 1.0}, {"lam": 2.0}]
    scores = {"a": [5.0, 6.0, 1.0, 2.0], "b": [9.0, 1.0, 1.0, 2.0]}
    best = choose(choices, scores, lambda part, _: scores[part])
    # Means over the parts: 7, 3.5, 1 and 2.
    assert best == {"LME": choices[3], "MLE": choices[0]}


def test_reports_say_at_once_that_jinja_is_missing(tmp_path, monkeypatch):
    template_environment.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    message = re.escape(f"need Jinja2: {install_command('cli')}")
    with pytest.raises(ImportError, match=message):
        reproduce(tmp_path / "out", SMALL)
    assert not (tmp_path / "out").exists()
