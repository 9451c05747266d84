"""What the loss on tensors refuses, at once or late, and in which words."""

import copy

import numpy as np
import pytest
import torch
from torch_cases import large_margin_loss, leaves

import variegate.torch as vt

BAD = [
    ({"kernel": "no"}, "kernel must be a tensor of real numbers, or LowRank; got str"),
    (
        {"kernel": torch.eye(4, dtype=torch.long)},
        "real numbers, or LowRank; got torch.int64",
    ),
    ({"kernel": torch.zeros(4, 5)}, r"kernel has shape \(4, 5\), expected \(N, N\)"),
    ({"kernel": vt.LowRank(torch.zeros(4))}, r"features has shape \(4,\)"),
    ({"targets": [0]}, "targets must be a tensor, got list"),
    ({"targets": torch.zeros(4)}, "targets must be boolean, or item numbers"),
    ({"targets": torch.zeros(3, dtype=torch.bool)}, r"targets has shape \(3,\)"),
    ({"targets": torch.zeros(1, 1, 1, dtype=torch.long)}, "one row of items a set"),
    ({"targets": torch.zeros(3, 1, dtype=torch.long)}, "number of sets: 2, 3"),
    ({"log_quality": torch.zeros(2, 3)}, r"log_quality has shape \(2, 3\)"),
    ({"log_quality": torch.zeros(2, 4).long()}, "log_quality must be a tensor of real"),
    ({"log_quality": 1.0}, "log_quality must be a tensor, got float"),
    ({"mask": torch.ones(2, 4)}, "mask must be boolean"),
    ({"false_positive": -torch.ones(4)}, "false_positive must be finite and not neg"),
    ({"lam": -1.0}, "lam must be a finite number >= 0"),
    ({"omega": float("nan")}, "omega must be a finite number"),
    ({"hinge": 1}, "hinge must be True or False"),
    ({"jitter": -1.0}, "jitter must be a finite number"),
    ({"reduction": "max"}, "unknown reduction 'max'; there are none, sum, mean"),
    ({"targets": torch.tensor([[0], [4]])}, "set 1: its subset names an item twice"),
    ({"targets": torch.tensor([[0, 1], [2, 2]])}, "set 1: its subset names an item"),
    (
        {"mask": torch.tensor([[True] * 4, [False] * 4])},
        "set 1: its subset names an item twice, or one that is not there",
    ),
    ({"kernel": torch.ones(2, 4, 4), "targets": torch.tensor([[0], [0]])}, None),
    (
        {"kernel": torch.ones(2, 4, 4), "targets": torch.tensor([[0, -1], [0, 1]])},
        "set 1: its subset has probability zero",
    ),
    ({"kernel": -5.0 * torch.eye(4)}, "set 0: its subset has probability zero"),
    (
        {"kernel": torch.diag(torch.tensor([1.0, 1.0, 1.0, -0.5]))},
        "set 0: its kernel is not positive semidefinite",
    ),
    ({"log_quality": torch.full((4,), torch.nan)}, "set 0: its kernel .* holds NaN"),
    (
        {"log_quality": torch.full((4,), -torch.inf)},
        "set 0: its subset has probability zero",
    ),
    ({"kernel": torch.full((4, 4), 1e30) + torch.eye(4)}, "add a jitter"),
]


@pytest.mark.parametrize(("changes", "message"), BAD, ids=str)
def test_what_is_refused(device, changes, message):
    given = {"kernel": torch.eye(4).repeat(2, 1, 1), "targets": torch.tensor([[0]] * 2)}
    given |= changes
    for name, value in given.items():
        if isinstance(value, torch.Tensor):
            given[name] = value.to(device)
        elif isinstance(value, vt.LowRank):
            given[name] = vt.LowRank(value.features.to(device))
    if device != "cpu" and "not neg" in (message or ""):
        message = None  # would have to be waited for
    if message is None:
        large_margin_loss(**given, check=True)
        return
    with pytest.raises(ValueError, match=message):
        large_margin_loss(**given, check=True)


def test_everything_is_on_one_device():
    with pytest.raises(ValueError, match="targets is on meta, but the kernel on cpu"):
        vt.LargeMarginLoss()(
            vt.LEnsembles(torch.eye(2)), torch.zeros(2, device="meta").bool()
        )


@pytest.mark.parametrize("low_rank", [False, True])
def test_without_a_check_the_rest_goes_on(device, low_rank):
    rng = np.random.default_rng(11)
    factor = rng.normal(size=(4, 5, 7))
    factor[1, 0] = factor[1, 1]
    factor[2] = np.nan
    (F,) = leaves(device, factor)
    targets = torch.tensor([[0, 1], [0, 1], [0, 1], [2, 2]], device=device)
    kernel = vt.LowRank(F) if low_rank else (F @ F.mT)
    value = vt.LargeMarginLoss(reduction="none", check=False)(
        vt.LEnsembles(kernel), targets
    )
    (slope,) = torch.autograd.grad(value.sum(), F if low_rank else kernel)
    assert torch.isfinite(value).tolist() == [True, False, False, False]
    assert value[1].item() == np.inf
    assert (slope[1:3] == 0.0).all()
    alone = vt.LargeMarginLoss()(vt.LEnsembles(F[0] @ F[0].mT), targets[0])
    torch.testing.assert_close(value[0], alone)
    assert (slope[0] != 0.0).any()


def test_a_module_says_what_is_wrong_with_a_set(device):
    loss = vt.LargeMarginLoss(lam=0.5)
    fine, singular = map(
        vt.LEnsembles, (torch.eye(3, device=device), torch.ones(3, 3, device=device))
    )
    subset = torch.tensor([0, 1], device=device)
    expected = -fine.log_prob(subset).item() + 0.5 * np.log(1.5)
    assert loss(fine, subset).item() == pytest.approx(expected)

    def later():
        loss(singular, subset)
        loss.check()

    with pytest.raises(ValueError, match="set 0: its subset has probability zero"):
        later()
    loss.check()  # said once
    assert vt.LargeMarginLoss(check=False)(singular, subset).item() == np.inf


class Arrival:
    """What tells whether flags are here, as an event of a GPU does."""

    def __init__(self):
        self.is_here = False

    def query(self):
        return self.is_here

    def synchronize(self):
        self.is_here = True


def test_flags_that_arrive_late():
    loss = vt.LargeMarginLoss(check=False)
    call = (vt.LEnsembles(torch.eye(3)), torch.tensor([0]))
    loss(*call)
    arrival = Arrival()
    flags = torch.tensor([0, 0, 1], dtype=torch.uint8)
    loss._late.append((1, flags, arrival))
    loss(*call)
    arrival.is_here = True
    with pytest.raises(ValueError, match="call 1, set 2: its subset has probability"):
        loss(*call)
    loss._late.append((3, flags, Arrival()))
    assert not copy.deepcopy(loss)._late
    with pytest.raises(ValueError, match="call 3, set 2"):
        loss.check()


def test_a_module_shows_its_settings():
    assert repr(vt.LargeMarginLoss(2.0, omega=3.0)) == (
        "LargeMarginLoss(lam=2.0, omega=3.0, hinge=True, reduction='mean')"
    )
    with pytest.raises(ValueError, match="lam must be"):
        vt.LargeMarginLoss(-1.0)
