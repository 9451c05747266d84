"""Models over omega: fitted from neighbour to neighbour, asked for between, kept."""

from contextlib import nullcontext

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import variegate as vg
from variegate.files import models as model_files
from variegate.files.models import NOTHING, ModelFileError
from variegate.files.schema import SchemaError
from variegate.learning.problem import SharedExamples
from variegate.solvers import MiniBatch
from variegate.tuning import OmegaFamily
from variegate.tuning.family import check_omegas, fit_by_steps, order_outwards

OMEGAS = (0.25, 1.0, 4.0, 16.0)


@pytest.fixture(scope="module")
def data():
    return vg.datasets.make_synthetic(n_sets=60, random_state=0)


def estimator(**settings):
    settings = {"lam": 4.0, "kernel": vg.Linear(), "l2": 0.01, "tol": 1e-4} | settings
    return vg.LargeMarginDPP(**settings)


@pytest.fixture(scope="module")
def family(data):
    return OmegaFamily.fit(estimator(), OMEGAS, data.ground_sets, data.subsets)


def test_each_model_is_a_minimum_of_its_own_objective(family, data):
    # The similarity is fixed, so each omega has one minimum, which a fit from the
    # usual start must find too.
    for omega, model in zip(family.omegas, family.models, strict=True):
        alone = estimator(omega=omega).fit(data.ground_sets, data.subsets)
        warm, cold = (m.solver_result_.objective for m in (model, alone))
        assert warm == pytest.approx(cold, rel=1e-4)
        assert model.omega == omega


def test_fits_go_outwards_from_the_neighbour(data, monkeypatch):
    starts = []
    fit = vg.LargeMarginDPP.fit

    def watched(self, *args, **kwargs):
        starts.append((self.omega, getattr(self, "theta_", None)))
        return fit(self, *args, **kwargs)

    monkeypatch.setattr(vg.LargeMarginDPP, "fit", watched)
    found = OmegaFamily.fit(estimator(), OMEGAS, data.ground_sets, data.subsets)
    theta = {m.omega: m.theta_ for m in found.models}
    assert [omega for omega, _ in starts] == [1.0, 0.25, 4.0, 16.0]
    assert starts[0][1] is None
    for (_, start), neighbour in zip(starts[1:], (1.0, 1.0, 4.0), strict=True):
        np.testing.assert_array_equal(start, theta[neighbour])


@pytest.mark.parametrize(
    ("omega", "steps"),
    [
        (1.0, [1.0]),
        (4.0, [1.0, 4.0]),
        (9.0, [1.0, 3.0, 9.0]),
        (1 / 64, [1.0, 1 / 4, 1 / 16, 1 / 64]),
    ],
)
def test_one_omega_is_reached_in_steps(data, monkeypatch, omega, steps):
    starts = []
    fit = vg.LargeMarginDPP.fit

    def watched(self, *args, **kwargs):
        starts.append((self.omega, getattr(self, "theta_", None)))
        return fit(self, *args, **kwargs)

    monkeypatch.setattr(vg.LargeMarginDPP, "fit", watched)
    found = fit_by_steps(estimator(), omega, data.ground_sets, data.subsets)
    assert [omega for omega, _ in starts] == pytest.approx(steps)
    assert starts[0][1] is None
    assert all(start is not None for _, start in starts[1:])
    assert (found.omega, found.warm_start) == (omega, False)
    # The similarity is fixed, so that every start leads to the same minimum.
    alone = estimator(omega=omega).fit(data.ground_sets, data.subsets)
    warm, cold = (m.solver_result_.objective for m in (found, alone))
    assert warm == pytest.approx(cold, rel=1e-4)
    starts.clear()
    fit_by_steps(estimator(lam=0.0), omega, data.ground_sets, data.subsets)
    assert [omega for omega, _ in starts] == [omega]


def test_an_unfinished_fit_at_the_end_of_the_steps_is_said(data):
    with pytest.warns(
        ConvergenceWarning, match="^stopped at max_iter=1 iter"
    ) as warned:
        fit_by_steps(estimator(max_iter=1), 9.0, data.ground_sets, data.subsets)
    assert len(warned) == 1


def test_the_nearest_to_one_comes_first():
    assert order_outwards((4.0, 0.5, 16.0)) == (0.5, [[], [4.0, 16.0]])
    assert order_outwards((0.1, 0.2)) == (0.2, [[0.1], []])


def test_settings_are_those_of_the_estimator(family):
    for model in family.models:
        assert not model.warm_start
        assert model.callback is None
        assert model.l2 == 0.01


def test_steps_and_fits_are_told(data):
    steps, fits = [], []
    OmegaFamily.fit(
        estimator(callback=lambda step: steps.append(step) and None),
        (1.0, 2.0),
        data.ground_sets,
        data.subsets,
        progress=lambda *step: fits.append(step),
    )
    assert fits == [("fitting", 1, 2), ("fitting", 2, 2)]
    assert sum(step.iteration == 1 for step in steps) == 2


def test_maximum_likelihood_is_fitted_once(data, monkeypatch):
    fit, n_fits = vg.LargeMarginDPP.fit, []
    monkeypatch.setattr(
        vg.LargeMarginDPP,
        "fit",
        lambda self, *args, **rest: n_fits.append(1) or fit(self, *args, **rest),
    )
    found = OmegaFamily.fit(estimator(lam=0.0), OMEGAS, data.ground_sets, data.subsets)
    assert len(n_fits) == 1
    assert [model.omega for model in found.models] == list(OMEGAS)
    for model in found.models:
        np.testing.assert_array_equal(model.theta_, found.models[0].theta_)


def test_a_generator_is_learned_from_for_every_omega(data):
    solver = MiniBatch(batch_size=20, n_epochs=8)
    found = OmegaFamily.fit(
        estimator(solver=solver, random_state=0),
        (0.25, 4.0),
        zip(data.ground_sets, data.subsets, strict=True),
    )
    sizes = [
        np.mean([m.ensemble(gs).expected_size() for gs in data.ground_sets])
        for m in found.models
    ]
    assert sizes[0] < sizes[1]


def test_unfinished_fits_are_named(data):
    with pytest.warns(ConvergenceWarning) as warned:
        OmegaFamily.fit(
            estimator(max_iter=1), (0.5, 2.0), data.ground_sets, data.subsets
        )
    said = [str(one.message) for one in warned]
    assert [text.split(",")[0] for text in said] == ["for omega 0.5", "for omega 2"]
    assert all("max_iter=1" in text for text in said)
    assert {one.filename for one in warned} == {__file__}


def test_between_two_parameters_are_mixed_in_log_omega(family):
    low, high = family.models[1], family.models[2]
    mixed = family.at(2.0)  # half way from 1 to 4
    np.testing.assert_allclose(mixed.theta_, (low.theta_ + high.theta_) / 2)
    assert mixed.intercept_ == pytest.approx((low.intercept_ + high.intercept_) / 2)
    assert family.at(4.0) is high


def test_omega_by_default_and_out_of_range(family):
    assert family.resolve(None) == 1.0
    assert family.resolve(None, 99.0) == 16.0
    assert family.resolve(3) == 3.0
    with pytest.raises(ValueError, match=r"omega=32, but this model was learned for 0"):
        family.at(32.0)
    alone = OmegaFamily((1.0,), family.models[1:2])
    with pytest.raises(ValueError, match="1 only; learn several to choose between"):
        alone.resolve(2.0)


@pytest.mark.parametrize("omega", [0.0, -1.0, np.nan, np.inf, "1", [], [[1.0]], None])
def test_omegas_that_cannot_be(omega):
    with pytest.raises(ValueError, match="omega must be one or more positive numbers"):
        check_omegas(omega)


def test_kept_as_plain_values(family, data):
    again = OmegaFamily.decode({"models": family.encode()[::-1]}, NOTHING, 5)
    assert again.omegas == family.omegas
    for one, other in zip(family.models, again.models, strict=True):
        np.testing.assert_array_equal(one.theta_, other.theta_)
        L, same = (m.ensemble(data.ground_sets[0]).marginals() for m in (one, other))
        np.testing.assert_array_equal(L, same)


def test_files_that_make_no_family(family, data):
    with pytest.raises(SchemaError, match='the section "models" is missing'):
        OmegaFamily.decode({}, NOTHING, 5)
    with pytest.raises(ModelFileError, match="5 weights for 4 features"):
        OmegaFamily.decode({"models": family.encode()}, NOTHING, 4)
    entry = family.encode()[0] | {"omega": -1.0}
    with pytest.raises(SchemaError, match=r'omega" is -1\.0, not a number above 0'):
        OmegaFamily.decode({"models": [entry]}, NOTHING, 5)
    with pytest.raises(ModelFileError, match="two models for one omega"):
        OmegaFamily.decode({"models": [family.encode()[0]] * 2}, NOTHING, 5)
    other = vg.LargeMarginDPP(
        kernel=vg.MultipleKernel(), max_iter=2, tol=1e9, omega=9.0
    )
    other.fit(data.ground_sets, data.subsets)
    models = [family.encode()[0], OmegaFamily((9.0,), (other,)).encode()[0]]
    with pytest.raises(ModelFileError, match="the models have different kernels"):
        OmegaFamily.decode({"models": models}, NOTHING, 5)


def test_applications_register_how_their_files_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(model_files, "_readers", dict(model_files._readers))
    model_files.write_document({"type": "mine", "answer": 42}, tmp_path / "m.json")
    with pytest.raises(ModelFileError, match="unknown type of model 'mine'; known are"):
        vg.load(tmp_path / "m.json")
    model_files.register_reader("mine", lambda document, kernels: document["answer"])
    assert vg.load(tmp_path / "m.json") == 42


@pytest.mark.parametrize("solver", ["lbfgs", MiniBatch(n_epochs=2)])
def test_shared_examples_give_the_same_bits_as_lists(data, solver):
    shared = SharedExamples(data.ground_sets, data.subsets)
    for kernel in (vg.MultipleKernel(), vg.Kinds(3), vg.Kinds(3, penalty=0.1)):
        for changes in ({"omega": 4.0}, {"lam": 1.0, "l2": 0.1}, {"lam": 0.0}):
            settings = {
                "kernel": kernel,
                "solver": solver,
                "random_state": 0,
                **changes,
            }
            model = estimator(**settings, max_iter=5)
            with pytest.warns() if solver == "lbfgs" else nullcontext():
                one = clone(model).fit(data.ground_sets, data.subsets)
                other = clone(model).fit(shared)
            assert one.intercept_ == other.intercept_
            for name in ("theta_", "kernel_parameters_"):
                np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_a_kernel_of_the_same_settings_is_settled_once(data, monkeypatch):
    settled = []
    fit = vg.Kinds.fit

    def counted(kernel, ground_sets):
        settled.append(kernel.n_kinds)
        return fit(kernel, ground_sets)

    monkeypatch.setattr(vg.Kinds, "fit", counted)
    shared = SharedExamples(data.ground_sets, data.subsets)
    for n_kinds in (3, 3, 4):
        estimator(kernel=vg.Kinds(n_kinds), tol=1.0).fit(shared)
    assert settled == [3, 4]
