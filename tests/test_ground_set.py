import pickle

import numpy as np
import pytest
from scipy import sparse

import variegate as vg
from variegate.ground_set import (
    GroundSetError,
    check_ground_sets,
    check_subsets,
    map_positions_in_errors,
    name_position_in_errors,
)
from variegate.learning.parameters import InfeasibleError
from variegate.subsets import as_members


def test_quality_features_serve_both_purposes():
    X = np.arange(6.0).reshape(3, 2)
    ground_set = vg.GroundSet(X)
    np.testing.assert_array_equal(ground_set.features(), X)


def test_keeps_sparse_features_sparse():
    ground_set = vg.GroundSet(np.ones((3, 1)), sparse.csr_matrix(np.eye(3)))
    assert sparse.issparse(ground_set.features())


def test_named_blocks():
    blocks = {"colour": np.eye(3), "shape": sparse.eye(3, 5)}
    ground_set = vg.GroundSet(np.ones((3, 2)), blocks)
    assert ground_set.features("shape").shape == (3, 5)
    assert repr(ground_set) == "<GroundSet: 3 items, quality: 2, colour: 3, shape: 5>"


def test_the_callers_array_stays_writable_and_ours_is_not():
    X = np.ones((3, 2))
    ground_set = vg.GroundSet(X)
    X[0, 0] = 2.0
    assert ground_set.quality[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        ground_set.quality[0, 0] = 1.0


def test_items_and_costs_are_carried():
    ground_set = vg.GroundSet(np.ones((2, 1)), costs=[1, 2], items=["a", "b"])
    assert ground_set.items == ["a", "b"]
    assert ground_set.costs.tolist() == [1.0, 2.0]


NAN, INF = np.nan, np.inf
ONES = np.ones((3, 2))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"quality": [[1, 2], [3, NAN]]}, "quality holds nan at row 1, column 1"),
        ({"quality": [[1, INF]]}, "quality holds inf at row 0, column 1"),
        (
            {"quality": [[1, 2], [3]]},
            "quality must be a numeric matrix with rows of eq",
        ),
        ({"quality": [["a"]]}, "quality must be a numeric matrix"),
        ({"quality": [1.0, 2.0]}, "quality must be a matrix .*got 1 dimension$"),
        ({"quality": np.zeros((0, 2))}, "needs at least one item, got none"),
        ({"quality": sparse.eye(3)}, "quality must be a dense array; use .toarray"),
        (
            {"quality": ONES, "similarity": np.ones((4, 2))},
            "similarity has 4 rows but quality has 3",
        ),
        (
            {"quality": ONES, "similarity": {"shape": np.full((3, 1), NAN)}},
            r"similarity\['shape'\] holds nan at row 0",
        ),
        (
            {"quality": ONES, "similarity": sparse.csr_array([[NAN], [1], [1]])},
            "similarity holds NaN or infinite values",
        ),
        ({"quality": ONES, "similarity": {}}, "similarity is an empty mapping"),
        (
            {"quality": ONES, "costs": [1, 2]},
            r"costs has shape \(2,\), expected \(3,\)",
        ),
        ({"quality": ONES, "costs": [1, 0, 2]}, "item 1 costs 0.0"),
        ({"quality": ONES, "items": ["a"]}, "1 items for 3 rows"),
        ({"quality": ONES, "items": 3}, "items must be a sequence, got 3"),
        ({"quality": np.ones((3, 0))}, "quality has no columns"),
        ({"quality": ONES * 1j}, "quality must be a numeric matrix.*complex"),
    ],
)
def test_bad_ground_sets(arguments, message):
    with pytest.raises(ValueError, match=message):
        vg.GroundSet(**arguments)


@pytest.mark.parametrize(
    ("ground_sets", "message"),
    [
        ([], "the list of ground sets is empty"),
        (vg.GroundSet(ONES), "got a single one: wrap it in a list"),
        (ONES, "got a single matrix: wrap it in a list"),
        (3, "expected a list of ground sets, got 3"),
        ([ONES, [[1.0, NAN]]], "ground set 1: quality holds nan at row 0, column 1"),
        ([ONES, np.ones((3, 5))], "ground set 1: it has 5 quality .* the first has 2"),
        (
            [vg.GroundSet(ONES), vg.GroundSet(ONES, {"a": ONES})],
            "ground set 1: it has the similarity blocks 'a'",
        ),
    ],
)
def test_bad_lists(ground_sets, message):
    with pytest.raises(ValueError, match=message):
        check_ground_sets(ground_sets)


@pytest.mark.parametrize(
    ("subset", "message"),
    [
        ([0, 3], "item 3 is out of range: there are 3 items, numbered 0 to 2"),
        ([-1], "item -1 is out of range"),
        ([1, 1], "item 1 is repeated in the subset$"),
        ([0, 1, 1], r"item 1 is repeated .* marks .* give it as mask.astype\(bool\)"),
        ([0.0, 1.0, 1.0], r"got float64 values: if 1 marks .* mask.astype\(bool\)"),
        ([True, False], "the mask has length 2 but there are 3 items"),
        ([0.5], "item numbers or a boolean mask, got float64"),
        ([[0], [1]], r"got shape \(2, 1\)"),
        ([[0], [1, 2]], "a subset is a flat list"),
        ([True, 2], "item numbers or a boolean mask, not both"),
    ],
)
def test_bad_subsets(subset, message):
    with pytest.raises(ValueError, match=message):
        as_members(subset, 3)
    with pytest.raises(ValueError, match=f"ground set 1: .*{message}"):
        check_subsets([[], subset], [vg.GroundSet(ONES)] * 2)


def test_too_few_subsets():
    with pytest.raises(ValueError, match="1 subsets for 2 ground sets"):
        check_subsets([[0]], [vg.GroundSet(ONES)] * 2)


def test_subsets_as_numbers_masks_and_nothing():
    assert as_members([2, 0], 3).tolist() == [0, 2]
    assert as_members([True, False, True], 3).tolist() == [0, 2]
    assert as_members([], 3).tolist() == []
    assert as_members(np.zeros(3, dtype=bool), 3).tolist() == []


def test_block_that_is_not_there():
    ground_set = vg.GroundSet(ONES, {"a": ONES, "b": ONES})
    with pytest.raises(ValueError, match="blocks 'a', 'b': name the one"):
        ground_set.features()
    with pytest.raises(ValueError, match=r"no block 'c'.* has 'a', 'b'"):
        ground_set.features("c")
    with pytest.raises(ValueError, match="given without a name"):
        vg.GroundSet(ONES).features("c")


def test_an_error_knows_its_place():
    with pytest.raises(GroundSetError) as caught:
        check_subsets([[0], [5]], check_ground_sets([np.ones((3, 1))] * 2))
    error = caught.value
    assert (error.position, error.problem[:22]) == (1, "item 5 is out of range")
    assert str(error) == f"ground set 1: {error.problem}"
    assert str(error.at(7)) == f"ground set 7: {error.problem}"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_places_among_some_are_places_among_all():
    error = InfeasibleError(1, "too large")
    with (
        pytest.raises(InfeasibleError, match="set 9: too large"),
        map_positions_in_errors([4, 9]),
    ):
        raise error
    with (
        pytest.raises(InfeasibleError, match=r"^ground set 3: too"),
        name_position_in_errors(3),
    ):
        raise error
