"""Ground sets that are prepared together, against one by one."""

import numpy as np
import pytest
from scipy import sparse

import variegate as vg
from variegate.ground_set import GroundSetError
from variegate.learning.stacks import prepare_stack, stack_costs

RNG = np.random.default_rng(0)


def ground_sets(n_sets=5, n_items=6, n_features=3):
    return [
        vg.GroundSet(
            RNG.normal(size=(n_items, n_features)),
            {
                "colour": RNG.normal(size=(n_items, 4)),
                "shape": 100.0 * RNG.normal(size=(n_items, 2)),
            },
        )
        for _ in range(n_sets)
    ]


def in_blocks(**options):
    return vg.MultipleKernel(blocks=["colour", "shape"], **options)


KERNELS = [
    in_blocks(),
    in_blocks(linear=False),
    in_blocks(bandwidths=[]),
    in_blocks(bandwidths={"colour": [1.0, 3.0, 0.5], "shape": [200.0]}),
    vg.Kinds(3, block="shape"),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize(("n_sets", "n_items"), [(1, 6), (5, 6), (4, 1), (2, 64)])
def test_together_is_as_one_by_one(kernel, n_sets, n_items):
    sets = ground_sets(n_sets, n_items)
    kernel.fit(ground_sets(9, 5))
    found = kernel.prepare_together(sets)
    expected = kernel.stack([kernel.prepare(one) for one in sets])
    if isinstance(kernel, vg.Kinds):
        np.testing.assert_allclose(found, expected, rtol=1e-14)
        return
    assert found.is_stack
    assert found.chains is expected.chains
    np.testing.assert_allclose(found.packed, expected.packed, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.diagonal, expected.diagonal, rtol=1e-14)


class Halved(vg.MultipleKernel):
    """A kernel that prepares ground sets in its own way."""

    def prepare(self, ground_set):
        return super().prepare(vg.GroundSet(ground_set.features() / 2.0))


@pytest.mark.parametrize(
    ("kernel", "sets"),
    [
        (Halved(bandwidths=[1.0]), [np.eye(3)]),
        (vg.MultipleKernel([1.0], anchored=True), [np.eye(3)]),
        (vg.MultipleKernel([1.0]), [sparse.csr_array(np.eye(3))]),
        (vg.MultipleKernel([1.0]), [np.ones((3, 300))]),
        (vg.MultipleKernel([1.0]), [np.ones((65, 2))]),
        (vg.MultipleKernel([1.0]), [np.ones((3, 2)), np.ones((3, 4))]),
        (vg.Linear(), [np.eye(3)]),
    ],
)
def test_what_is_not_made_together_is_made_one_by_one(kernel, sets):
    sets = [vg.GroundSet(np.ones((F.shape[0], 1)), F) for F in sets]
    kernel.fit(sets)
    assert kernel.prepare_together(sets) is None
    found = prepare_stack(kernel, np.arange(len(sets)), sets)
    expected = kernel.stack([kernel.prepare(one) for one in sets])
    weights = kernel.domain.center()
    np.testing.assert_array_equal(
        kernel.value(found, weights), kernel.value(expected, weights)
    )


def test_the_one_that_is_wrong_is_named():
    sets = [vg.GroundSet(np.eye(2)), vg.GroundSet(1e200 * np.eye(2))]
    kernel = vg.MultipleKernel([1.0])
    with pytest.raises(GroundSetError, match="ground set 8: the similarity holds NaN"):
        prepare_stack(kernel, np.array([3, 8]), sets)


def test_costs_of_sets_and_of_items():
    np.testing.assert_array_equal(stack_costs([1.0, 3], 2), [[1.0], [3.0]])
    np.testing.assert_array_equal(
        stack_costs([1.0, np.array([2.0, 5.0])], 2), [[1.0, 1.0], [2.0, 5.0]]
    )
