"""The kernels, ensembles and decoders that every property test runs over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

import variegate as vg


class ScaledLinear(vg.Kernel):
    """A user's kernel with learned parameters: a scale for each feature."""

    def __init__(self, n_features):
        self.n_features = n_features

    @property
    def domain(self):
        return vg.domains.Free(self.n_features)

    def value(self, ground_set, parameters):
        scaled = ground_set.features() * np.exp(parameters)
        return scaled @ scaled.T

    def pull_back(self, ground_set, parameters, G):
        scaled = ground_set.features() * np.exp(parameters)
        return 2.0 * np.einsum("ik,ij,jk->k", scaled, G, scaled)


@dataclass(frozen=True)
class KernelCase:
    name: str
    kernel: Any
    #: from (rng, number of items) to similarity features
    features: Any
    rank_deficient: bool = False

    def __str__(self):
        return self.name


def _dense(rng, n):
    return rng.standard_normal((n, n + 2))


def _narrow(rng, n):
    return rng.standard_normal((n, 2))


def _csr(rng, n):
    return sparse.random(n, 3 * n, density=0.4, format="csr", random_state=rng) + (
        sparse.eye(n, 3 * n, format="csr")
    )


def _blocks(rng, n):
    return {"colour": _dense(rng, n), "shape": _csr(rng, n)}


def _eight(rng, n):
    return rng.standard_normal((n, 8))


def _eight_csr(rng, n):
    return sparse.csr_array(_eight(rng, n))


def _eight_in_blocks(rng, n):
    return {"colour": _eight(rng, n), "shape": _eight_csr(rng, n)}


def _matrix(rng, n):
    A = rng.standard_normal((n, n + 3))
    return A @ A.T / n


KERNELS = [
    KernelCase("linear", vg.Linear(), _dense),
    KernelCase("linear-csr", vg.Linear(), _csr),
    KernelCase("linear-low-rank", vg.Linear(), _narrow, rank_deficient=True),
    KernelCase("cosine", vg.Linear(normalize=True), _dense),
    KernelCase("gaussian", vg.Gaussian(1.5), _dense),
    KernelCase("gaussian-csr", vg.Gaussian(1.5), _csr),
    KernelCase("multiple", vg.MultipleKernel([0.5, 1.0, 2.0, 4.0]), _dense),
    KernelCase("multiple-csr", vg.MultipleKernel([0.5, 2.0]), _csr),
    KernelCase(
        "multiple-no-linear", vg.MultipleKernel([1.0, 2.0, 4.0], linear=False), _dense
    ),
    KernelCase(
        "multiple-blocks",
        vg.MultipleKernel([1.0, 3.0], blocks=["colour", "shape"]),
        _blocks,
    ),
    KernelCase(
        "mixture-blocks",
        vg.Mixture([vg.Gaussian(2.0, block="colour"), vg.Linear(block="shape")]),
        _blocks,
    ),
    KernelCase(
        "mixture-low-rank",
        vg.Mixture([vg.Linear(block="colour"), vg.Linear(block="shape")]),
        lambda rng, n: {"colour": _narrow(rng, n), "shape": _narrow(rng, n)[:, :1]},
        rank_deficient=True,
    ),
    KernelCase("gaussian-anchored", vg.Gaussian(4.0, anchored=True), _dense),
    KernelCase("gaussian-anchored-csr", vg.Gaussian(4.0, anchored=True), _csr),
    KernelCase(
        "multiple-anchored",
        vg.MultipleKernel([1.0, 2.0, 3.0, 4.0, 8.0], anchored=True),
        _dense,
    ),
    KernelCase(
        "multiple-anchored-blocks",
        vg.MultipleKernel(
            [2.0, 4.0], linear=False, blocks=["colour", "shape"], anchored=True
        ),
        _blocks,
    ),
    KernelCase(
        "multiple-anchored-nystroem",
        vg.MultipleKernel([4.0, 8.0], approximation="nystroem", rank=5, anchored=True),
        _eight,
    ),
    KernelCase(
        "multiple-anchored-fourier",
        vg.MultipleKernel([4.0, 8.0], approximation="fourier", rank=6, anchored=True),
        _eight_csr,
    ),
    KernelCase("precomputed", vg.Precomputed(), _matrix),
    KernelCase(
        "gaussian-nystroem",
        vg.Gaussian(3.0, approximation="nystroem", rank=4),
        _eight,
        rank_deficient=True,
    ),
    KernelCase(
        "gaussian-fourier", vg.Gaussian(3.0, approximation="fourier", rank=32), _eight
    ),
    KernelCase(
        "multiple-nystroem",
        vg.MultipleKernel([2.0, 4.0], approximation="nystroem", rank=5),
        _eight,
    ),
    KernelCase(
        "multiple-fourier",
        vg.MultipleKernel(
            [2.0, 4.0], blocks=["colour", "shape"], approximation="fourier", rank=6
        ),
        _eight_in_blocks,
    ),
    KernelCase("kinds", vg.Kinds(4, penalty=0.1), _eight),
    KernelCase("kinds-csr", vg.Kinds(3, sharpness=2.0, epsilon=0.3), _eight_csr),
    KernelCase("metric", vg.Metric(3, penalty=0.1), _eight),
    KernelCase("metric-block", vg.Metric(2, block="colour"), _eight_in_blocks),
    KernelCase(
        "mixture-learned",
        vg.Mixture(
            [
                vg.Kinds(3, block="colour"),
                vg.Linear(block="shape"),
                vg.Metric(2, block="shape"),
                vg.Gaussian(2.0, block="colour"),
            ]
        ),
        _eight_in_blocks,
    ),
    KernelCase(
        "mixture-of-learned",
        vg.Mixture([vg.Kinds(3), vg.MultipleKernel([2.0, 4.0])]),
        _eight,
    ),
    KernelCase("user", ScaledLinear(8), _eight),
]


def random_ground_set(case, rng, n, n_features=3, twins=False):
    """A ground set for a kernel; with ``twins`` its first two items are the same."""
    features = case.features(rng, n)
    if twins:
        features = _with_twins(features, isinstance(case.kernel, vg.Precomputed))
    return vg.GroundSet(rng.standard_normal((n, n_features)), features)


def _with_twins(features, is_similarity):
    if isinstance(features, dict):
        return {name: _with_twins(block, False) for name, block in features.items()}
    order = [0, 0, *range(2, features.shape[0])]
    twins = (features.tocsr() if sparse.issparse(features) else features)[order]
    return twins[:, order] if is_similarity else twins


def random_kernel_matrix(rng, n, rank=None):
    B = rng.standard_normal((n, rank or n))
    return B @ B.T
