"""The check of custom kernels: right ones pass, each defect is named."""

import numpy as np
import pytest

import variegate as vg
from instances import KERNELS, ScaledLinear, random_ground_set

ITEMS = vg.GroundSet(np.random.default_rng(0).standard_normal((7, 3)))


@pytest.mark.parametrize("case", KERNELS, ids=str)
@pytest.mark.parametrize("seed", [0, 1])
def test_kernels_of_the_library_pass(case, seed):
    ground_set = random_ground_set(case, np.random.default_rng(seed), 8)
    vg.check_kernel(case.kernel, ground_set, random_state=seed)


class Scaled(ScaledLinear):
    def __init__(self, n_features=3, scale=1.0):
        super().__init__(n_features)
        self.scale = scale

    def value(self, ground_set, parameters):
        return super().value(ground_set, self.scale * parameters)

    def pull_back(self, ground_set, parameters, G):
        return self.scale * super().pull_back(ground_set, self.scale * parameters, G)


class Single(Scaled):
    def value(self, ground_set, parameters):
        S = super().value(ground_set, parameters) + np.eye(len(ground_set))
        return S.astype(np.float32)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
def test_parameters_of_any_scale_pass(scale):
    vg.check_kernel(Scaled(3, scale), ITEMS)


def test_the_step_suits_curvature_from_mild_to_strong():
    # With one step alone, truncation or rounding would exceed the tolerance.
    from variegate.kernels.checking import _estimate_derivative

    for scale in (1.0, 10.0, 100.0, 1000.0):
        found, error = _estimate_derivative(
            lambda z, scale=scale: np.sin(scale * z), np.array([0.3]), np.ones(1)
        )
        expected = scale * np.cos(scale * 0.3)
        assert abs(found[0] - expected) <= 1e-7 * scale
        assert abs(found[0] - expected) <= 10.0 * error + 1e-9 * scale


@pytest.mark.parametrize("share", [0.0, 0.5, 1.001, -1.0])
def test_a_wrong_gradient_is_named_with_its_parameter(share):
    class Wrong(Scaled):
        def pull_back(self, ground_set, parameters, G):
            gradient = super().pull_back(ground_set, parameters, G)
            gradient[1] *= share
            return gradient

    with pytest.raises(
        ValueError,
        match=r"pull_back of Wrong at the center of the domain gives the gradient "
        r".* for parameter 1 \(of 3, counted from 0\), but differences of value give",
    ) as caught:
        vg.check_kernel(Wrong(), ITEMS)
    found, expected = (
        float(str(caught.value).split(words)[1].split()[0].rstrip(","))
        for words in ("the gradient ", "of value give ")
    )
    assert found == pytest.approx(share * expected, rel=1e-4, abs=1e-12)


@pytest.mark.parametrize("constant", [0.0, 1.0])
def test_a_constant_gradient_is_noticed(constant):
    class Constant(Scaled):
        def pull_back(self, ground_set, parameters, G):
            return np.full(3, constant)

    with pytest.raises(ValueError, match=rf"gives the gradient {constant:g} for"):
        vg.check_kernel(Constant(), ITEMS)


def test_a_gradient_that_is_right_at_the_center_alone_is_noticed():
    class AtCenter(Scaled):
        def pull_back(self, ground_set, parameters, G):
            return super().pull_back(ground_set, 0.0 * parameters, G)

    with pytest.raises(ValueError, match="pull_back of AtCenter at random parameters"):
        vg.check_kernel(AtCenter(), ITEMS)
    vg.check_kernel(AtCenter(), ITEMS, n_points=1)


def test_weights_are_compared_in_free_coordinates():
    class Reversed(vg.Mixture):
        def value_and_pull_back(self, prepared, parameters):
            S, pull_back = super().value_and_pull_back(prepared, parameters)
            return S, lambda G: pull_back(G)[::-1]

        def pull_back(self, prepared, parameters, G):
            return self.value_and_pull_back(prepared, parameters)[1](G)

    kernel = Reversed([vg.Linear(), vg.Gaussian(1.0)])
    with pytest.raises(ValueError, match="in free coordinates of Simplex, but"):
        vg.check_kernel(kernel, ITEMS)


def test_a_value_that_ignores_the_parameters_is_noticed():
    class Ignoring(Scaled):
        def value(self, ground_set, parameters):
            return np.eye(len(ground_set))

        def pull_back(self, ground_set, parameters, G):
            return np.zeros(3)

    with pytest.raises(ValueError, match="does not change with its 3 parameters"):
        vg.check_kernel(Ignoring(), ITEMS)
    vg.check_kernel(vg.Mixture([vg.Linear()]), ITEMS)  # one weight cannot change


def test_a_wrong_gradient_of_the_penalty_is_noticed():
    class Penalized(Scaled):
        def penalty_and_gradient(self, parameters):
            return float(parameters @ parameters), parameters

    with pytest.raises(
        ValueError,
        match=r"penalty_and_gradient of Penalized at random parameters 1 gives .* for "
        r"parameter . .* but differences of the penalty give .*: return the derivative",
    ):
        vg.check_kernel(Penalized(), ITEMS)


def with_value(change):
    """Return a kernel whose value is changed."""

    class Changed(Scaled):
        def value(self, ground_set, parameters):
            return change(super().value(ground_set, parameters), parameters)

    return Changed()


def nan_at(S, parameters):
    S[2, 4] = np.nan
    return S


def asymmetric(S, parameters):
    S[0, 1] += 0.5
    return S


def into_parameters(S, parameters):
    parameters += 1.0
    return S


def step(S, parameters):
    return S + np.sign(parameters[0] - 1e-7) * 0.5 * np.eye(7) + np.eye(7)


def noise():
    rng = np.random.default_rng(0)
    return lambda S, parameters: S + rng.random() * np.eye(7)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda S, p: S[:, :-1], r"must have the shape \(7, 7\), got \(7, 6\)"),
        (lambda S, p: 1j * S, "must hold real numbers, got complex128"),
        (nan_at, r"holds 1 NaN or infinite values, the first at \(2, 4\)"),
        (asymmetric, "not symmetric: it differs from its transpose by 0.5"),
        (lambda S, p: S - np.eye(7), "is not positive semidefinite: .* is -"),
        (into_parameters, "writes into its parameters: compute on a copy"),
        (noise(), "differs between two calls by up to .*: it must not draw random"),
        (step, "has no stable derivative: differences of size .* change by"),
    ],
)
def test_a_defect_of_the_value_is_named(change, message):
    with pytest.raises(
        ValueError, match=f"value of Changed at the center of the domain.*{message}"
    ):
        vg.check_kernel(with_value(change), ITEMS)


def writing(G, gradient):
    G *= 2.0
    return gradient


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda G, g: g[:2], r"must have the shape \(3,\), got \(2,\)"),
        (lambda G, g: g / 0.0, r"holds 3 NaN or infinite values, the first at \(0,\)"),
        (writing, "writes into G: compute on a copy"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_a_defect_of_the_gradient_is_named(change, message):
    class Changed(Scaled):
        def pull_back(self, ground_set, parameters, G):
            return change(G, super().pull_back(ground_set, parameters, G))

    with pytest.raises(ValueError, match=f"pull_back of Changed at the .*{message}"):
        vg.check_kernel(Changed(), ITEMS)


@pytest.mark.parametrize("wrong", ["S", "gradient"])
def test_value_and_gradient_at_once_must_be_the_same(wrong):
    class AtOnce(Scaled):
        def value_and_pull_back(self, prepared, parameters):
            S, pull_back = super().value_and_pull_back(prepared, parameters)
            if wrong == "S":
                return 2.0 * S, pull_back
            return S, lambda G: 2.0 * pull_back(G)

    with pytest.raises(ValueError, match=f"AtOnce .*: {wrong} differs from that of"):
        vg.check_kernel(AtOnce(), ITEMS)


def test_single_precision_is_compared_with_longer_steps():
    vg.check_kernel(Single(), ITEMS)


def test_unusable_arguments_are_refused():
    with pytest.raises(ValueError, match=r"takes a variegate\.Kernel, got "):
        vg.check_kernel(np.outer, ITEMS)
    with pytest.raises(ValueError, match="n_points must be a whole number"):
        vg.check_kernel(Scaled(), ITEMS, n_points=0)
    with pytest.raises(ValueError, match="n_directions must be a whole number"):
        vg.check_kernel(Scaled(), ITEMS, n_directions=0)
    with pytest.raises(ValueError, match="rtol must be a finite number > 0"):
        vg.check_kernel(Scaled(), ITEMS, rtol=0.0)
