"""Compiled code does the same whatever a process compiled before it."""

import numpy as np
import pytest

import variegate as vg
from variegate.learning.objective import LargeMarginLoss, Targets
from variegate.linalg.compiled import njit, read_only
from variegate.linalg.compiled.branch_bound import search_nodes
from variegate.linalg.compiled.chain import run_chain
from variegate.linalg.compiled.loss import evaluate_sets
from variegate.sampling.chain import sample_chain


def test_what_a_function_computes_does_not_hang_on_who_called_it_first():
    @njit()
    def total(numbers):
        result = 0.0
        for i in range(len(numbers)):
            result += numbers[i]
        return result

    @njit(fastmath=True)
    def half_of_total(numbers):
        return 0.5 * total(numbers)

    numbers = np.random.default_rng(0).standard_normal(1000)
    in_order = 0.0
    for number in numbers.tolist():
        in_order += number
    assert half_of_total(numbers) == 0.5 * in_order
    assert total(numbers) == in_order


@pytest.mark.parametrize("step", [1, 2])
def test_what_compiled_loops_only_read(step):
    array = np.arange(6.0)[::step]
    view = read_only(array)
    np.testing.assert_array_equal(view, array)
    assert view.flags.c_contiguous
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1.0
    assert array.flags.writeable


def test_loops_are_compiled_once_whatever_callers_hold():
    B = np.random.default_rng(0).standard_normal((20, 40))
    few = np.ascontiguousarray(B[:, :5])
    costs = np.linspace(1.0, 2.0, 20)
    singular = vg.LEnsemble(few @ few.T)
    for ensemble in (vg.LEnsemble(B @ B.T), vg.LEnsemble.from_factor(few), singular):
        ensemble.decode("exact", k=2)
        ensemble.decode("exact", budget=3, costs=costs)
        sample_chain(ensemble, n=2, burn_in=10)
    stack = np.stack([B @ B.T] * 3)
    targets = Targets.from_subsets([np.arange(2)] * 3, 20)
    for S in (stack, read_only(stack), np.asfortranarray(stack)):
        for loss in (LargeMarginLoss(1), LargeMarginLoss(0.5, hinge=False)):
            loss.value_and_gradient(S, np.zeros((3, 20)), targets, compiled=True)
    for loop in (search_nodes, run_chain, evaluate_sets):
        assert len(loop.signatures) == 1, loop
