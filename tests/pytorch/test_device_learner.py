"""Models that are learned on a device against those learned without one."""

import json

import numpy as np
import pyarrow.parquet
import pytest
import torch
from click.testing import CliRunner

import variegate as vg
from instances import KERNELS, ScaledLinear
from variegate.cli.app import app
from variegate.solvers import LBFGS, MiniBatch
from variegate.tables import TableSelector, make_table

CASES = [case for case in KERNELS if case.name != "user"]


def data_of(case, sizes, seed=0):
    """Ground sets, and subsets that follow the first quality feature, with noise."""
    rng = np.random.default_rng(seed)
    ground_sets, subsets = [], []
    for n in sizes:
        quality = rng.standard_normal((n, 3))
        ground_sets.append(vg.GroundSet(quality, case.features(rng, n)))
        score = quality[:, 0] + 0.7 * rng.standard_normal(n)
        # What is beyond the rank of a similarity is up to the jitter, and to rounding.
        most = 2 if case.rank_deficient else n
        subsets.append(np.sort(np.argsort(-score)[: max(1, min(n // 4, most))]))
    return ground_sets, subsets


def models(device, **settings):
    given = {"decoder": "greedy", "l2": 0.1, "random_state": 0} | settings
    return vg.LargeMarginDPP(**given), vg.LargeMarginDPP(device=device, **given)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::variegate.estimator.AllAlikeWarning")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_kernel_learns_the_same_model(case, device):
    ground_sets, subsets = data_of(case, [4, 5, 5, 6, 9, 12, 7, 8, 30, 5])
    # Maximum likelihood has no kinks, at which rounding decides where a solver stops.
    here, there = models(device, lam=0.0, kernel=case.kernel, max_iter=25, tol=1e-4)
    here.fit(ground_sets, subsets)
    there.fit(ground_sets, subsets)
    objective = here.solver_result_.objective
    assert there.solver_result_.objective == pytest.approx(objective, rel=1e-9)
    for one, other in zip(
        here.predict(ground_sets), there.predict(ground_sets), strict=True
    ):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("lam", [0.0, 2.0])
def test_sets_of_one_to_three_hundred_items(lam, device):
    case = next(case for case in KERNELS if case.name == "metric")
    ground_sets, subsets = data_of(case, [1, 2, 3, 10, 20, 40, 64, 65, 130, 300])
    kernel = vg.MultipleKernel([1.0, 2.0, 4.0])
    here, there = models(device, lam=lam, kernel=kernel, tol=1e-3)
    here.fit(ground_sets, subsets)
    there.fit(ground_sets, subsets)
    objective = here.solver_result_.objective
    assert there.solver_result_.objective == pytest.approx(objective, rel=1e-9)
    np.testing.assert_allclose(there.theta_, here.theta_, rtol=1e-4, atol=1e-6)
    for one, other in zip(
        here.predict(ground_sets), there.predict(ground_sets), strict=True
    ):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kernel", [vg.Linear(), vg.Kinds(4)], ids=repr)
def test_three_thousand_items_of_low_rank(kernel, device):
    case = next(case for case in KERNELS if case.name == "kinds")
    ground_sets, subsets = data_of(case, [3000, 6])
    subsets[0] = subsets[0][:8]
    here, there = models(device, lam=0.0, kernel=kernel)
    here.fit(ground_sets, subsets)
    there.fit(ground_sets, subsets)
    objective = here.solver_result_.objective
    assert there.solver_result_.objective == pytest.approx(objective, rel=1e-9)
    for one, other in zip(
        here.predict(ground_sets, k=4), there.predict(ground_sets, k=4), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def small_data():
    case = next(case for case in KERNELS if case.name == "kinds")
    return data_of(case, [5, 6, 6, 7, 8, 5, 9, 6])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_mini_batches_run_on_a_device(device):
    ground_sets, subsets = small_data()
    solver = MiniBatch(n_epochs=2, batch_size=3)
    here, there = models(
        device, solver=solver, kernel=vg.MultipleKernel([1.0, 3.0]), max_iter=10
    )
    here.fit(ground_sets, subsets)
    there.fit(ground_sets, subsets)
    objective = here.solver_result_.objective
    assert there.solver_result_.objective == pytest.approx(objective, rel=1e-9)
    np.testing.assert_allclose(there.theta_, here.theta_, rtol=1e-7, atol=1e-9)


def test_streams_with_held_out_pairs_run_on_a_device(device):
    pairs = list(zip(*small_data(), strict=True))
    validation = tuple(zip(*pairs[:2], strict=True))
    solver = MiniBatch(n_epochs=2, batch_size=3)
    here, there = models(device, solver=solver, kernel=vg.Kinds(3))
    here.fit(pairs[2:], validation=validation)
    there.fit(pairs[2:], validation=validation)
    np.testing.assert_allclose(there.theta_, here.theta_, rtol=1e-7, atol=1e-9)
    last, other = here.history_[-1], there.history_[-1]
    assert other.expected_f == pytest.approx(last.expected_f, rel=1e-9)


def test_partial_fit_runs_on_a_device(device):
    here, there = models(device, kernel=vg.Metric(2))
    for model in (here, there):
        model.partial_fit(*small_data(), n_steps=3)
        model.partial_fit(*small_data(), n_steps=2)
    np.testing.assert_allclose(there.theta_, here.theta_, rtol=1e-9, atol=1e-12)


def test_a_subset_that_cannot_be_is_refused_by_fit(device):
    ground_sets, subsets = small_data()
    ground_sets[2] = vg.GroundSet(np.ones((3, 3)), np.ones((3, 8)))
    subsets[2] = [0, 1]
    _, there = models(device, kernel=vg.Linear(), jitter=0.0)
    with pytest.raises(ValueError, match="ground set 2: its subset has probability"):
        there.fit(ground_sets, subsets)


def test_a_kernel_without_a_form_is_refused_by_fit(device):
    _, there = models(device, kernel=ScaledLinear(8))
    with pytest.raises(ValueError, match="ScaledLinear has parameters and no form"):
        there.fit(*small_data())


# The name of the device -----------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["gpu", "mps", 3, "cuda:x", "CPU", torch.device("cpu")]
)
def test_unknown_devices_are_refused(name):
    with pytest.raises(ValueError, match="device must be None, 'auto', 'cpu', 'cuda'"):
        vg.LargeMarginDPP(device=name).fit(*small_data())


def test_a_gpu_that_is_not_there_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="device='cuda', but PyTorch finds no GPU"):
        vg.LargeMarginDPP(device="cuda").fit(*small_data())
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(ValueError, match="'cuda:7', but this machine has cuda:0"):
        vg.LargeMarginDPP(device="cuda:7").fit(*small_data())
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    with pytest.raises(ValueError, match="but this machine has cuda:0 to cuda:3"):
        vg.LargeMarginDPP(device="cuda:7").fit(*small_data())


def test_auto_takes_numpy_where_there_is_no_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    plain, automatic = models("auto", kernel=vg.Linear())
    plain.fit(*small_data())
    automatic.fit(*small_data())
    np.testing.assert_array_equal(automatic.theta_, plain.theta_)


# Files, cross-validation, tables --------------------------------------------------


def test_a_file_holds_no_device(device, tmp_path):
    _, model = models(device, kernel=vg.Linear())
    model.fit(*small_data()).save(tmp_path / "model.json")
    assert "device" not in json.loads((tmp_path / "model.json").read_text())["settings"]
    loaded = vg.load(tmp_path / "model.json")
    assert loaded.device is None
    np.testing.assert_array_equal(loaded.theta_, model.theta_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_cross_validation_passes_the_device_on(device):
    ground_sets, subsets = small_data()
    here, there = models(
        device, kernel=vg.Linear(), solver=LBFGS(max_iter=20, tol=1e-3)
    )
    found = [
        vg.LargeMarginDPPCV(
            estimator=model, lams=(0.0, 2.0), omegas=(0.5, 2.0), cv=2, random_state=0
        ).fit(ground_sets, subsets)
        for model in (here, there)
    ]
    assert found[1].best_lam_ == found[0].best_lam_
    assert found[1].best_model_.device == device


@pytest.mark.filterwarnings("ignore::variegate.estimator.AllAlikeWarning")
def test_table_selectors_learn_on_a_device(device, tmp_path):
    table = make_table(n_groups=30, random_state=0)
    settings = {
        "group": "query",
        "label": "chosen",
        "quality": ["score", "freshness"],
        "similarity": "embedding",
        "omega": 1.0,
        "kernel": "multiple",
    }
    here = TableSelector(**settings).fit(table)
    there = TableSelector(**settings, device=device).fit(table)
    chosen, other = here.select(table), there.select(table)
    assert other["item"].equals(chosen["item"])
    assert other["selection_rank"].equals(chosen["selection_rank"])
    name = "inclusion_probability"
    np.testing.assert_allclose(other[name], chosen[name], rtol=1e-5)
    there.save(tmp_path / "model.json")
    assert vg.load(tmp_path / "model.json").device is None
    with pytest.raises(ValueError, match="device must be None"):
        TableSelector(**settings, device="gpu").fit(table)


def test_the_command_learns_on_a_device(device, tmp_path):
    table = make_table(n_groups=20, random_state=0)
    pyarrow.parquet.write_table(table, tmp_path / "train.parquet")
    command = [
        "fit", str(tmp_path / "train.parquet"), "--group", "query", "--label", "chosen",
        "--quality", "score,freshness", "--similarity", "embedding",
        "--kernel", "multiple", "--omega", "1", "-o", str(tmp_path / "model.json"),
    ]  # fmt: skip
    done = CliRunner().invoke(app, [*command, "--device", device])
    assert done.exit_code == 0, done.output
    assert len(vg.load(tmp_path / "model.json").model_.theta_) > 0
    done = CliRunner().invoke(app, [*command, "--force", "--device", "gpu"])
    assert done.exit_code != 0
    assert "device must be None, 'auto'" in str(done.exception)
