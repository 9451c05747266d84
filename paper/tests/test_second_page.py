"""The benchmark of the second page: its methods and measures, on a few items."""

import json

import numpy as np
import pytest

from benchmarks import second_page, second_page_data
from benchmarks.second_page_figure import STYLES, best_points, draw

pytestmark = pytest.mark.paper


def make_ranked(seed=0):
    """Return 40 items, each with a near copy, ranked by chance."""
    rng = np.random.default_rng(seed)
    V = rng.standard_normal((40, 12))
    V = np.vstack([V, V + 0.05 * rng.standard_normal(V.shape)])
    group = second_page_data.Group(
        unit="one",
        fold=0,
        vectors=second_page_data.unit_rows(V),
        words=[frozenset({str(item % 40), "the"}) for item in range(80)],
        features=rng.standard_normal((80, 3)),
        learned_features=rng.standard_normal((80, 2)),
        wanted=[np.arange(10), np.arange(5, 15)],
    )
    relevance = rng.standard_normal(80)
    relevance[40:] = relevance[:40]
    return second_page.Ranked(group, relevance, np.argsort(-relevance)[:10:2])


@pytest.mark.parametrize("name", second_page.METHODS)
def test_pages_have_different_items_and_told_methods_no_copies(name):
    one = make_ranked()
    choose, knobs = second_page.METHODS[name]
    pages = second_page.show_pages(choose, one, knobs[len(knobs) // 2])
    assert pages.shape == (second_page.N_PAGES, second_page.K)
    assert len(np.unique(pages)) == pages.size
    repeated = np.isin(pages[1] % 40, pages[0] % 40).sum()
    assert (repeated == 0) == ("given" in name or "dropped" in name)


def test_scores_are_those_counted_by_hand():
    one = make_ranked()
    pages = np.array([[0, 1, 2, 20, 21], [40, 41, 3, 22, 23], range(24, 29), [5] * 5])
    pages[3] = [5, 6, 30, 31, 32]
    scores = second_page.judge(one.group, pages)
    # Wanted 0-9: items 0-3, 5 and 6; wanted 5-14: items 5 and 6.
    assert scores["recall"] == pytest.approx((0.6 + 0.2) / 2)
    assert scores["later recall"] == pytest.approx((0.3 + 0.2) / 2)
    assert scores["recall 3"] == pytest.approx((0.2 + 0.2) / 2)
    assert scores["f"] == pytest.approx((12 / 30 + 4 / 30) / 2)
    # "the" is in all items; 40 and 41 are copies of 0 and 1.
    assert scores["words"] == pytest.approx((2 * 1.0 + 13 * 0.5) / 15)


def test_learned_models_choose_candidates_alone():
    one = make_ranked()
    models = second_page.learn([one], True)
    choose = second_page.choose_learned(models, True)
    page = choose(one, one.first, second_page.RIDGES[0])
    assert len(page) == second_page.K
    assert not np.isin(page, one.first).any()


def test_points_that_another_one_beats_are_left_out():
    points = [(1.0, 1.0), (2.0, 0.5), (2.0, 3.0), (0.5, 0.5)]
    assert best_points(points).tolist() == [[0.5, 0.5], [1.0, 1.0], [2.0, 3.0]]


def test_the_figure_is_drawn_from_files(tmp_path):
    curves = {
        name: [{"words": 0.1, "f": 0.2}, {"words": 0.3, "f": 0.4}] for name in STYLES
    }
    (tmp_path / "second-page-news.json").write_text(json.dumps({"curves": curves}))
    draw(tmp_path)
    assert (tmp_path / "second-page.png").read_bytes().startswith(b"\x89PNG")
    assert set(STYLES) == set(second_page.NAMES)
