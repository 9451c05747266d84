"""Compiled code does the same whatever a process compiled before it."""

import numpy as np

from variegate.compiled.jit import njit


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
