"""Check a kernel of one's own: its similarity, and its gradient by differences."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import clone

from variegate._random import as_generator
from variegate._typing import FloatArray, RandomState
from variegate._validation import check_count, check_number
from variegate.ground_set import GroundSet
from variegate.kernels.base import Kernel
from variegate.kernels.domains import Free
from variegate.linalg.psd import check_semidefinite, check_symmetric

#: Steps of the differences, in free coordinates.  With step h, truncation is about
#: h⁴ and rounding eps / h relative to the value: 1e-8 and 2e-14 for the first, 1e-20
#: and 2e-11 for the last.  Long steps suit float32, short ones strong curvature.
_STEPS = (1e-2, 1e-3, 1e-4, 1e-5)

#: Differences of two steps that differ by more than this share show no derivative.
_ROUGH = 1e-3

#: A derivative below this share of the value is lost in rounding.
_LOST = 1e-9

#: The largest number of parameters that are compared one by one after a failure.
_SINGLE = 1000

#: The methods that return the gradients of two functions, and what they must return.
_METHODS = {
    "value": ("pull_back", "sum_ij G_ij dS_ij/dp_k for each parameter"),
    "the penalty": (
        "penalty_and_gradient",
        "the derivative of the penalty in each parameter",
    ),
}


def check_kernel(
    kernel: Kernel,
    ground_set: GroundSet,
    *,
    n_points: int = 3,
    n_directions: int = 5,
    rtol: float = 1e-5,
    random_state: RandomState = 0,
) -> None:
    r"""Check a kernel's values, and its gradient against differences of the value.

    A clone of the kernel is fitted to the ground set, as an estimator does.  At the
    center of the domain and at random points, ``value`` must be a finite, symmetric and
    positive semidefinite N x N matrix.  In random directions :math:`d` and for random
    symmetric :math:`G`, ``pull_back`` must agree with

    .. math:: \langle G, \frac{8 (S(h) - S(-h)) - (S(2h) - S(-2h))}{12 h}
        \rangle, \qquad S(h) = \mathtt{value}(p(z + h d)),

    where :math:`z` are the free coordinates of the parameters, with which solvers work.
    For the domain ``Free`` they are the parameters themselves.  Of the steps
    :math:`h = 10^{-2}, \dots, 10^{-5}`, two neighbours with the closest results are
    used.  ``penalty_and_gradient`` and ``value_and_pull_back`` are checked, too.

    Parameters
    ----------
    kernel : Kernel
    ground_set : GroundSet
        Some five to fifty items that differ in the features that the kernel reads.
    n_points : int
        Number of points in the domain of the parameters: the center, then random ones.
    n_directions : int
        Number of random directions at each point.
    rtol : float
        Largest relative difference that is accepted as rounding.
    random_state : int, numpy.random.Generator or None
        For points, directions and G.

    Raises
    ------
    ValueError
        With the defect, the point where it was found, and its size; for a gradient, the
        parameter with the largest difference.  Also if the value does not change with
        the parameters on this ground set, so that there is no gradient to compare.
    """
    check_count("n_points", n_points)
    check_count("n_directions", n_directions)
    check_number("rtol", rtol, positive=True)
    if not isinstance(kernel, Kernel):
        raise ValueError(
            f"check_kernel takes a variegate.Kernel, got {type(kernel).__name__}"
        )
    fitted: Kernel = clone(kernel)
    fitted.check()
    fitted.fit([ground_set])
    prepared, domain = fitted.prepare(ground_set), fitted.domain
    rng = as_generator(random_state)
    shape = (len(ground_set), len(ground_set))
    has_changed = False
    for number in range(n_points):
        at = domain.random(rng) if number else domain.center()
        name = f"random parameters {number}" if number else "the center of the domain"
        point = _Point(fitted, prepared, domain.to_free(at), name)
        point.check_value(shape)
        G = rng.standard_normal(shape)
        point.check_gradient(G + G.T)
        for direction in rng.standard_normal((n_directions, domain.size)):
            G = rng.standard_normal(shape)
            has_changed |= point.compare_gradients(direction, G + G.T, rtol)
    free = domain.to_free(domain.center())
    # Not for one weight, which is always one.
    can_change = not np.allclose(domain.from_free(free), domain.from_free(free + 1.0))
    if can_change and not has_changed:
        raise ValueError(
            f"value of {type(kernel).__name__} does not change with its "
            f"{domain.size} parameters on this ground set, so pull_back cannot be "
            "checked: use the parameters in value, or give items that differ more"
        )


class _Point:
    """A kernel on a prepared ground set, at a point of its free coordinates."""

    def __init__(
        self, kernel: Kernel, prepared: Any, free: FloatArray, name: str
    ) -> None:
        self.kernel, self.prepared, self.free = kernel, prepared, free
        self.domain, self.place = kernel.domain, f"{type(kernel).__name__} at {name}"

    def parameters(self, free: FloatArray | None = None) -> FloatArray:
        """Return a new array of the parameters at free coordinates, or at the point."""
        return self.domain.from_free(self.free if free is None else free).copy()

    def value(self, free: FloatArray | None = None) -> FloatArray:
        """Return a copy of the similarity at free coordinates, or at the point."""
        S = self.kernel.value(self.prepared, self.parameters(free))
        return np.array(S, dtype=np.float64)

    def penalty(self, free: FloatArray) -> FloatArray:
        """Return the penalty at free coordinates, as an array of shape ()."""
        return np.array(self.kernel.penalty_and_gradient(self.parameters(free))[0])

    def check_value(self, shape: tuple[int, ...]) -> None:
        """Raise ValueError unless ``value`` gives a similarity, the same each time."""
        name, parameters = f"value of {self.place}", self.parameters()
        S = np.array(self.kernel.value(self.prepared, parameters))
        _check_array(name, S, shape)
        check_semidefinite(check_symmetric(S, name), name)
        _check_unchanged(name, "its parameters", parameters, self.parameters())
        difference = np.abs(S - self.value()).max(initial=0.0)
        if difference:
            raise ValueError(
                f"{name} differs between two calls by up to {difference:.3g}: it must "
                "not draw random numbers or change what prepare returned"
            )

    def check_gradient(self, G: FloatArray) -> None:
        """Raise ValueError unless methods agree on a well-formed gradient for ``G``."""
        name = f"pull_back of {self.place}"
        given, parameters = G.copy(), self.parameters()
        gradient = np.array(self.kernel.pull_back(self.prepared, parameters, given))
        _check_array(name, gradient, parameters.shape)
        _check_unchanged(name, "G", given, G)
        _check_unchanged(name, "its parameters", parameters, self.parameters())
        S, pull_back = self.kernel.value_and_pull_back(self.prepared, parameters)
        name = f"value_and_pull_back of {self.place}"
        _check_equal(f"{name}: S", S, "value", self.value())
        _check_equal(f"{name}: gradient", pull_back(G), "pull_back", gradient)
        slope = np.array(self.kernel.penalty_and_gradient(parameters)[1])
        name = f"gradient of penalty_and_gradient of {self.place}"
        _check_array(name, slope, parameters.shape)

    def compare_gradients(
        self, direction: FloatArray, G: FloatArray, rtol: float
    ) -> bool:
        """Compare the gradients of penalty and value with differences in a direction.

        Raises ValueError if one is wrong; returns whether the value changes along the
        direction, of free coordinates.  ``G`` (N, N) is symmetric.
        """
        at = self.parameters()
        one, slope = np.ones(()), self.kernel.penalty_and_gradient(at)[1]
        self._compare_gradient("the penalty", self.penalty, one, slope, direction, rtol)
        gradient = self.kernel.pull_back(self.prepared, at, G)
        return self._compare_gradient("value", self.value, G, gradient, direction, rtol)

    def _compare_gradient(
        self,
        name: str,
        function: Callable[[FloatArray], FloatArray],
        G: FloatArray,
        gradient: FloatArray,
        direction: FloatArray,
        rtol: float,
    ) -> bool:
        """Compare along a direction; return whether the function changes along it.

        ``function`` takes free coordinates.  ``gradient``, in the parameters, is that
        of ``Σ G ∘ function`` to check, or ValueError is raised; ``name`` is "value" or
        "the penalty", a number, for which ``G`` is 1.
        """
        slope = self.domain.pull_back(self.free, gradient)
        rounding = _LOST * float(np.linalg.norm(function(self.free)))

        def estimate_slope(along: FloatArray) -> tuple[float, float, float]:
            """Return ``Σ G ∘ D`` of the derivative ``D``, its norm, and its error's."""
            D, error = _estimate_derivative(function, self.free, along)
            size = float(np.linalg.norm(D))
            if not error <= _ROUGH * size + rounding:
                raise ValueError(
                    f"{name} of {self.place} has no stable derivative: differences of "
                    f"size {size:.3g} change by {error:.3g} with the step. It must be "
                    "finite and smooth in the parameters, in float64"
                )
            return float((G * D).sum()), size, error

        expected, size, error = estimate_slope(direction)
        found, which = float(slope @ direction), "along a random direction"
        # Entries of G are of order one, so <G, D> is of the size of D.
        allowed = rtol * max(size, abs(found)) + 10.0 * error + rounding
        if abs(found - expected) <= allowed:
            return size > rounding
        if len(slope) <= _SINGLE:
            singles = [estimate_slope(unit)[0] for unit in np.eye(len(slope))]
            worst = int(np.argmax(np.abs(slope - singles)))
            found, expected = float(slope[worst]), singles[worst]
            which = f"for parameter {worst} (of {len(slope)}, counted from 0)"
        if not isinstance(self.domain, Free):
            which += f" in free coordinates of {type(self.domain).__name__}"
        method, remedy = _METHODS[name]
        raise ValueError(
            f"{method} of {self.place} gives the gradient {found:.6g} {which}, but "
            f"differences of {name} give {expected:.6g}, {abs(found - expected):.3g} "
            f"away: return {remedy}"
        )


def _estimate_derivative(
    function: Callable[[FloatArray], FloatArray], at: FloatArray, direction: FloatArray
) -> tuple[FloatArray, float]:
    """Return a function's derivative along a direction, and the norm of its error.

    Fourth-order central differences with several steps; of neighbouring steps, the two
    with the closest results give derivative and error.
    """
    results = []
    for step in _STEPS:
        move = step * direction
        near = function(at + move) - function(at - move)
        far = function(at + 2.0 * move) - function(at - 2.0 * move)
        results.append((8.0 * near - far) / (12.0 * step))
    errors = [float(np.linalg.norm(a - b)) for a, b in pairwise(results)]
    best = int(np.argmin(np.nan_to_num(errors, nan=np.inf)))
    return results[best], errors[best]


def _check_array(name: str, array: Any, shape: tuple[int, ...]) -> None:
    """Raise ValueError for another shape, complex numbers, NaN or infinite values."""
    if array.shape != shape:
        raise ValueError(f"{name} must have the shape {shape}, got {array.shape}")
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{name} must hold real numbers, got {array.dtype}")
    wrong = np.argwhere(~np.isfinite(array))
    if len(wrong):
        first = tuple(map(int, wrong[0]))
        raise ValueError(
            f"{name} holds {len(wrong)} NaN or infinite values, the first at {first}"
        )


def _check_unchanged(
    name: str, argument: str, after: FloatArray, before: FloatArray
) -> None:
    """Raise ValueError if a method, ``name``, has written into an ``argument``."""
    if not np.array_equal(after, before):
        raise ValueError(f"{name} writes into {argument}: compute on a copy")


def _check_equal(name: str, found: Any, other: str, expected: FloatArray) -> None:
    """Raise ValueError unless ``found``, of ``name``, is ``expected``, of ``other``."""
    found = np.asarray(found)
    _check_array(name, found, expected.shape)
    size = np.abs(expected).max(initial=0.0)
    difference = np.abs(found - expected).max(initial=0.0)
    if difference > 1e-8 * size:
        raise ValueError(
            f"{name} differs from that of {other} by {difference:.3g}; "
            "both must be the same"
        )
