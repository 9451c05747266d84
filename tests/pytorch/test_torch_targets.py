"""Wanted subsets of a batch, from either way to give them."""

import numpy as np
import pytest
import torch
from torch_cases import as_numbers, random_targets

from variegate.torch.targets import Targets


@pytest.mark.parametrize("as_given", [np.asarray, as_numbers])
def test_both_ways_name_the_same_subsets(device, as_given):
    subsets = random_targets(np.random.default_rng(0), 30, 7)
    targets = Targets(torch.tensor(as_given(subsets), device=device), 7)
    assert targets.indicator.tolist() == subsets.tolist()
    assert not targets.is_invalid.any()
    for one, members, present in zip(
        subsets, targets.members.cpu(), targets.present.cpu(), strict=True
    ):
        assert members[present].tolist() == np.flatnonzero(one).tolist()
        assert (members[~present] == 0).all()


def test_costs_are_those_of_the_errors_that_are_possible(device):
    targets = Targets(
        torch.tensor([[True, False, False]], device=device),
        3,
        false_positive=torch.tensor([5.0, 6.0, 7.0], device=device),
        false_negative=0.3,
        mask=torch.tensor([[True, True, False]], device=device),
    )
    assert targets.error_cost.tolist() == [[0.3, 6.0, 0.0]]
    assert targets.signs.tolist() == [[-0.3, 6.0, 0.0]]
    assert targets.error_cost.dtype == torch.float64


def test_items_that_are_not_there(device):
    numbers = torch.tensor([[0, 1], [1, 1], [3, -1], [-2, 0], [2, -1]], device=device)
    mask = torch.tensor([[True, True, True]] * 4 + [[True, True, False]], device=device)
    targets = Targets(numbers, 3, mask=mask)
    assert targets.is_invalid.tolist() == [False, True, True, True, True]
    assert targets.members.max() < 3


def test_nothing_is_wanted(device):
    for given in (
        torch.zeros(2, 3, dtype=torch.bool, device=device),
        torch.zeros(2, 0, dtype=torch.long, device=device),
    ):
        targets = Targets(given, 3)
        assert targets.members.shape == (2, 0)
        assert not targets.indicator.any()
