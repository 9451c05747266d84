"""The benchmark of learning: what it compares is the same, and its rows are whole.

No test asserts a time beyond its being positive.
"""

import json

import numpy as np
import pytest

import variegate as vg
from benchmarks import (
    BENCHMARKS,
    competitors,
    instances,
    learned,
    learning,
    load_benchmark,
    long_films,
    stream,
    timing,
)
from benchmarks.competitors import check_agreement
from benchmarks.report import plot, table
from reference import appendix_loss
from variegate.video import read_frames

pytestmark = pytest.mark.paper

EFFORT = timing.Effort(2, 0.0)
INSTANCES = {
    "one large, learned": lambda: instances.one_large(40, True),
    "one large, fixed": lambda: instances.one_large(40, False),
    "many small, learned": lambda: instances.many_small(7, True),
    "many small, fixed": lambda: instances.many_small(7, False),
}


def check_times(rows):
    assert rows
    for row in rows:
        assert row["variegate_s"] >= row["variegate_least_s"] > 0
        assert ("skipped" in row) == (row["competitor_s"] is None)
        if row["competitor_s"] is not None:
            assert row["competitor_s"] > 0
            assert row["ratio"] == row["competitor_s"] / row["variegate_s"]
            assert row["least_ratio"] > 0


@pytest.mark.parametrize("name", INSTANCES)
def test_the_transcription_equals_the_problem(name):
    instance = INSTANCES[name]()
    value, gradient = instance.problem().value_and_gradient(instance.point)
    their_value, their_gradient = competitors.appendix(instance)()
    assert value > 0
    assert their_value == pytest.approx(value, rel=1e-8)
    np.testing.assert_allclose(their_gradient, gradient, rtol=1e-8, atol=1e-8)


def test_the_transcription_equals_that_of_the_tests():
    instance = instances.many_small(1, False)
    S, X = instance.base_kernels()[0][0], instance.centred_qualities()[0]
    q = np.exp(X @ instance.theta + instance.intercept)
    value, G, L = competitors.appendix_loss(S, q, instance.subsets[0])
    expected, expected_G = appendix_loss(L, instance.subsets[0].tolist(), 1.0, 1.0)
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(G, expected_G, rtol=1e-10, atol=1e-12)


def test_the_transcription_stops_at_the_hinge():
    # Both items are all but certain, as wanted: log m is far below zero.
    value, G, _ = competitors.appendix_loss(
        np.eye(2), np.full(2, 1e3), np.array([0, 1])
    )
    assert value == 0
    np.testing.assert_array_equal(G, 0.0)


@pytest.mark.parametrize("learned", [True, False])
def test_autograd_equals_the_problem(learned):
    torch = pytest.importorskip("torch", reason="a peer of 5 GB, to compare with")
    instance = instances.one_large(40, learned)
    value, gradient = instance.problem().value_and_gradient(instance.point)
    their_value, their_gradient = competitors.autograd(torch, instance)()
    assert their_value == pytest.approx(value, rel=1e-8)
    np.testing.assert_allclose(their_gradient, gradient, rtol=1e-8, atol=1e-8)


def test_a_competitor_that_computes_something_else_is_refused():
    def ours():
        return 1.0, np.array([1.0, 2.0])

    check_agreement(ours, lambda: (1.0 + 1e-10, ours()[1]), "another")
    with pytest.raises(RuntimeError, match=r"another and variegate differ by 0\.5"):
        check_agreement(ours, lambda: (1.0, np.array([1.0, 3.0])), "another")
    for wrong in ((np.nan, ours()[1]), (1.0, np.array([np.nan, 2.0]))):
        with pytest.raises(RuntimeError, match="another and variegate differ by nan"):
            check_agreement(ours, lambda wrong=wrong: wrong, "another")


def test_the_floor_is_an_inverse():
    floor = competitors.Floor(6)
    copy = floor.prepare()
    inverse = np.tril(floor(copy))
    np.testing.assert_allclose(inverse, np.tril(np.linalg.inv(floor.matrix)))
    # In place: a copy inside would be timed.
    np.testing.assert_array_equal(np.tril(copy), inverse)


def test_rows_of_one_ground_set():
    rows = learning.floor_rows((20, 40), EFFORT)
    check_times(rows)
    assert [row["n_items"] for row in rows] == [20, 40, 20, 40]
    for row in rows:
        assert row["multiple"] == pytest.approx(1 / row["ratio"])
        assert row["set_up_s"] > 0
        assert f"{row['multiple']:.1f}× at {row['n_items']}" in row["competitor"]


def test_growth():
    rows = [
        {"case": "cubic", "n_items": n, "variegate_s": n**3.0, "competitor_s": 2.0 * n}
        for n in (10, 100, 1000)
    ]
    grown = learning.with_growth(rows)
    assert {row["case"] for row in grown} == {"cubic, ~n^3.00"}
    assert grown[0]["growth"] == pytest.approx(3.0)
    assert grown[0]["competitor_growth"] == pytest.approx(1.0)


def test_torch_is_skipped_with_its_reason(monkeypatch):
    monkeypatch.setattr(learning, "optional", lambda name: None)
    rows = learning.autograd_rows((20,), EFFORT)
    check_times(rows)
    for row in rows:
        assert row["skipped"] == "torch is not installed: pip install torch"
        assert row["ratio"] is None
    assert "PyTorch not installed" in table(rows)


def test_rows_of_many_ground_sets():
    rows = learning.many_rows((3, 6), EFFORT)
    check_times(rows)
    loops = [row for row in rows if row["question"] == "sets"]
    assert [row["n_items"] for row in loops] == [30, 60, 30, 60]
    jobs = [row for row in rows if row["question"] == "jobs"]
    assert [row["n_sets"] for row in jobs] == [6, 6]


def test_rows_of_low_rank():
    rows = learning.low_rank_rows(100, (4, 8), EFFORT)
    check_times(rows)
    # Three Gaussians and twenty features.
    assert [row["columns"] for row in rows] == [32, 44]
    assert np.isfinite(rows[0]["growth"])


def test_memory_of_an_evaluation():
    (row,) = learning.memory_rows(300)
    assert row["variegate_s"] > 0
    assert row["matrix_mib"] == pytest.approx(0.687, rel=1e-3)
    if "skipped" in row:
        assert row["peak_mib"] is None
    else:
        assert row["peak_mib"] >= row["held_mib"] > 0


def test_memory_where_there_is_no_proc(monkeypatch):
    monkeypatch.setattr(learning, "resident", lambda field: None)
    found = json.loads(learning.report_memory(20))
    assert found["peak_mib"] is None
    assert found["skipped"].startswith("resident memory is read from /proc")
    monkeypatch.setattr(learning, "output_of", lambda code: json.dumps(found))
    (row,) = learning.memory_rows(20)
    assert row["case"] == "peak memory unknown"


@pytest.mark.parametrize("kernel", [vg.Kinds(4), vg.Metric(4)], ids=["kinds", "metric"])
def test_formulas_of_learned_kernels_equal_the_problem(kernel):
    instance = learned.LearnedInstance.of(3, 12, kernel)
    value, gradient = instance.evaluation()
    their_value, their_gradient = learned.set_by_set(instance)()
    assert value > 0
    assert their_value == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(their_gradient, gradient, rtol=1e-8, atol=1e-10)
    own = instance.parts["kernel"]
    penalty = kernel.penalty_and_gradient(own)[0]
    alone = learned.loss_alone(instance)()
    assert alone.value.mean() + penalty == pytest.approx(value, rel=1e-10)


def test_rows_of_learned_kernels():
    rows = learned.learned_rows((3, 8), 60, EFFORT)
    check_times(rows)
    assert [row["n_items"] for row in rows] == [24, 24, 60] * 2
    for row in rows:
        if "multiple" in row:
            assert f"({row['multiple']:.1f}×)" in row["competitor"]


def test_kinds_of_a_large_set():
    (row,) = learned.large_rows(500)
    check_times([row])
    assert row["n_items"] == 500
    assert row["process_mib"] is None or row["process_mib"] > 50
    assert row["case"].startswith("Kinds by 16 columns, ")


def test_sampling_is_measured():
    rows = load_benchmark("sampling")(True)
    assert rows
    assert all(row["variegate_s"] > 0 for row in rows)


def test_the_quick_benchmark_is_reported():
    assert "learning" in BENCHMARKS
    rows = load_benchmark("learning")(True)
    questions = dict.fromkeys(row["question"] for row in rows)
    assert list(questions) == [
        "floor",
        "autograd",
        "sets",
        "jobs",
        "low rank",
        "learned features",
        "memory",
    ]
    assert json.loads(json.dumps(rows)) == rows
    assert len(table(rows).splitlines()) == len(rows) + 2
    assert plot(rows).axes


def test_a_feed_has_all_its_items_once():
    segments = list(stream.feed(20_000, 40, seed=0))
    assert sum(map(len, segments)) == 20_000
    values = {float(one.quality[0, 0]) for one in segments}
    assert len(values) == len(segments) == 500


def test_a_film_is_as_long_as_asked_for(tmp_path):
    rng = np.random.default_rng(0)
    size = (long_films.SIZE[1] * 5 // 4, long_films.SIZE[0] * 5 // 4, 3)
    clips = [list(rng.integers(0, 256, (7, *size), dtype=np.uint8)) for _ in range(2)]
    long_films.write_film(tmp_path / "film.avi", clips, 0.1, seed=0)
    frames = list(read_frames(tmp_path / "film.avi", every=0.01))
    assert len(frames) == 30
    assert frames[0].image.shape == (120, 160, 3)
