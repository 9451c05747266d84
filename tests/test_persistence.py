import json
import subprocess
import sys

import numpy as np
import pytest

import variegate as vg
from instances import ScaledLinear
from variegate.decoding import MBR
from variegate.files.models import ModelFileError
from variegate.solvers import LBFGS

DATA = vg.datasets.make_synthetic(n_sets=25, random_state=0)

MODELS = {
    "defaults": vg.LargeMarginDPP(random_state=0),
    "linear": vg.LargeMarginDPP(
        lam=4.0, omega=0.3, kernel=vg.Linear(), decoder="exact"
    ),
    "multiple": vg.LargeMarginDPP(
        kernel=vg.MultipleKernel([0.1, 1 / 3, 7.0], linear=False),
        decoder=MBR(n_samples=50),
        solver=LBFGS(max_iter=77),
        random_state=3,
    ),
    "arrays": vg.LargeMarginDPP(
        kernel=vg.MultipleKernel(np.array([1.0, 2.0])),
        decoder="greedy",
        lam=np.float64(2),
    ),
    "mixture": vg.LargeMarginDPP(
        kernel=vg.Mixture([vg.Gaussian(2.0), vg.Linear(normalize=True)]),
        decoder="greedy",
        fit_intercept=False,
    ),
    "gaussian": vg.LargeMarginDPP(kernel=vg.Gaussian(2.0), decoder="greedy"),
    "anchored": vg.LargeMarginDPP(
        kernel=vg.MultipleKernel([2.0, 7.0], anchored=True), decoder="greedy"
    ),
}


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.json"
    model = vg.LargeMarginDPP(decoder="greedy", kernel=vg.MultipleKernel([1.0, 3.0]))
    model.fit(DATA.ground_sets, DATA.subsets).save(path)
    return path


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_loaded_model_is_the_saved_one(model, tmp_path):
    path = tmp_path / "model.json"
    model.fit(DATA.ground_sets, DATA.subsets).save(path)
    loaded = vg.load(path)
    np.testing.assert_array_equal(loaded.theta_, model.theta_)
    np.testing.assert_array_equal(loaded.kernel_parameters_, model.kernel_parameters_)
    assert loaded.intercept_ == model.intercept_
    for a, b in zip(
        loaded.predict(DATA.ground_sets), model.predict(DATA.ground_sets), strict=True
    ):
        assert a.tolist() == b.tolist()
    for gs in DATA.ground_sets[:3]:
        np.testing.assert_array_equal(loaded.ensemble(gs).L, model.ensemble(gs).L)
    again = tmp_path / "again.json"
    loaded.save(again)
    assert json.loads(again.read_text()) == json.loads(path.read_text())


def test_blocks_survive(tmp_path):
    rng = np.random.default_rng(0)
    sets = [
        vg.GroundSet(X, {"a": X, "b": X**2}) for X in rng.standard_normal((6, 5, 2))
    ]
    model = vg.LargeMarginDPP(
        kernel=vg.MultipleKernel(blocks=["a", "b"]), decoder="greedy", l2=0.1
    ).fit(sets, [[0, 1]] * 6)
    model.save(tmp_path / "m.json")
    loaded = vg.load(tmp_path / "m.json")
    np.testing.assert_array_equal(loaded.ensemble(sets[0]).L, model.ensemble(sets[0]).L)


def test_a_block_of_any_name_survives(tmp_path):
    rng = np.random.default_rng(0)
    sets = [vg.GroundSet(X, {"kernel": X}) for X in rng.standard_normal((6, 5, 2))]
    kernel = vg.MultipleKernel({"kernel": [1.0, 2.0]}, blocks=["kernel"])
    model = vg.LargeMarginDPP(kernel=kernel, decoder="greedy", l2=0.1)
    model.fit(sets, [[0, 1]] * 6).save(tmp_path / "m.json")
    assert vg.load(tmp_path / "m.json").predict(sets)[0].tolist() == (
        model.predict(sets)[0].tolist()
    )


def test_a_missing_folder_is_named(saved):
    model = vg.load(saved)
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*absent"):
        model.save(saved.parent / "absent" / "model.json")


def test_a_loaded_model_can_be_fitted_again(saved):
    loaded = vg.load(saved)
    loaded.set_params(lam=2.0).fit(DATA.ground_sets, DATA.subsets)
    assert loaded.lam == 2.0


def test_the_file_is_readable_and_says_what_it_is(saved):
    document = json.loads(saved.read_text())
    assert document["format"] == "variegate-model"
    assert document["version"] == 1
    assert document["settings"]["decoder"] == "greedy"
    assert document["kernel"]["type"] == "MultipleKernel"
    assert len(document["fitted"]["theta"]) == 5
    assert document["training"]["status"].startswith("converged")
    assert "\n  " in saved.read_text()


def test_a_kernel_of_ones_own_is_passed_in(tmp_path):
    path = tmp_path / "model.json"
    model = vg.LargeMarginDPP(kernel=ScaledLinear(5), decoder="greedy")
    model.fit(DATA.ground_sets, [subset[:3] for subset in DATA.subsets]).save(path)
    with pytest.raises(
        ModelFileError, match=r"unknown kernel 'ScaledLinear'.*kernels="
    ):
        vg.load(path)
    loaded = vg.load(path, kernels=[ScaledLinear])
    np.testing.assert_array_equal(
        loaded.ensemble(DATA.ground_sets[0]).L, model.ensemble(DATA.ground_sets[0]).L
    )


def test_a_kernel_named_like_one_of_ours_is_not_confused_with_it(tmp_path):
    class Gaussian(vg.FixedKernel):
        def matrix(self, ground_set):
            return np.eye(len(ground_set))

    model = vg.LargeMarginDPP(kernel=Gaussian()).fit(DATA.ground_sets, DATA.subsets)
    with pytest.raises(ValueError, match="your kernel is called Gaussian"):
        model.save(tmp_path / "model.json")


def test_a_model_that_could_not_be_loaded_is_not_saved(saved):
    model = vg.load(saved).set_params(lam=-1.0)
    with pytest.raises(ValueError, match="lam must be a finite number"):
        model.save(saved)


def test_what_cannot_be_stored_is_said_before_anything_is_written(tmp_path):
    path = tmp_path / "model.json"
    model = vg.LargeMarginDPP(kernel=vg.Linear(), decoder=lambda *args: None)
    model.fit(DATA.ground_sets, DATA.subsets)
    with pytest.raises(ValueError, match=r"decoder=.*cannot be stored"):
        model.save(path)
    assert list(tmp_path.iterdir()) == []


def test_save_replaces_whole_files(saved):
    before = saved.read_text()
    model = vg.load(saved)
    model.theta_ = np.array([np.nan] * 5)
    with pytest.raises(ValueError, match="cannot be written as JSON"):
        model.save(saved)
    assert saved.read_text() == before
    assert [p.name for p in saved.parent.iterdir()] == ["model.json"]


def test_a_file_cut_in_half(saved):
    text = saved.read_text()
    saved.write_text(text[: len(text) // 2])
    with pytest.raises(
        ModelFileError, match=r"model\.json is not a variegate model, or"
    ):
        vg.load(saved)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 0.7, 0.9, 0.99])
def test_a_file_cut_anywhere(saved, share):
    data = saved.read_bytes()
    saved.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(ModelFileError):
        vg.load(saved)


def edited(path, *keys, value):
    document = json.loads(path.read_text())
    section = document
    for key in keys[:-1]:
        section = section[key]
    section[keys[-1]] = value
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        (["format"], "pickle", 'not a variegate model: "format"'),
        (["version"], 2, "format version 2 is newer than this variegate"),
        (["version"], "1", "\"version\" is '1', not a version number"),
        (["settings"], None, 'the section "settings" is missing'),
        (["settings", "lam"], -1, "lam must be a finite number >= 0"),
        (["settings", "lam"], "__import__('os')", "lam must be a finite number >= 0"),
        (["settings", "extra"], 1, "unknown settings: extra"),
        (["settings", "decoder"], "os.system", "unknown decoding method 'os.system'"),
        (["settings", "decoder"], {"type": "os.system"}, "unknown type 'os.system'"),
        (
            ["settings", "decoder"],
            {"type": "MBR", "parameters": {"evil": 1}},
            "unknown 'settings.decoder.parameters.evil'",
        ),
        (["kernel", "type"], "subprocess.Popen", "unknown kernel 'subprocess.Popen'"),
        (["kernel", "type"], ["Linear"], r"type\" is \['Linear'\], not a text"),
        (["kernel", "parameters"], {"cmd": 1}, "unexpected keyword argument 'cmd'"),
        (["kernel", "state"], {}, "makes no sense: 'bandwidths'"),
        (
            ["kernel", "state"],
            {"bandwidths": [{"block": None, "values": [-1.0]}]},
            "a bandwidth must be a finite number > 0",
        ),
        (
            ["kernel", "state"],
            {"bandwidths": [{"block": "x", "values": [1.0]}]},
            "not those of the kernel's blocks",
        ),
        (["fitted", "theta"], "12345", "theta\" is '12345', not a list of numbers"),
        (["fitted", "theta"], [1, [2]], r'theta\[1\]" is \[2\], not a number'),
        (["fitted", "theta"], [10**400], "larger than a number in a model may be"),
        (["fitted", "intercept"], None, 'intercept" is None, not a number'),
        (["fitted", "kernel_parameters"], [1.0], "1 kernel parameters, but the kernel"),
        (["fitted", "kernel_parameters"], [-1.0, 1.0, 1.0], "outside its domain"),
        (["training"], [], '"training" is missing'),
        (["version"], True, '"version" is True'),
        (["fitted", "intercept"], True, 'intercept" is True, not a number'),
        (
            ["kernel"],
            {
                "type": "Gaussian",
                "parameters": {"bandwidth": "abc"},
                "state": {},
                "given": True,
            },
            "a bandwidth must be a finite number > 0, got 'abc'",
        ),
        (
            ["kernel"],
            {
                "type": "Linear",
                "parameters": {"block": [1]},
                "state": {},
                "given": True,
            },
            r"block must be a name or None, got \[1\]",
        ),
        (
            ["training", "stop"],
            "never",
            "training.stop\" is 'never', not one of converged",
        ),
        (["settings", "solver"], "os.system", "unknown solver 'os.system'"),
        (["settings", "fit_intercept"], 3, "fit_intercept must be True or False"),
        (["settings", "random_state"], "abc", "random_state must be None"),
    ],
)
def test_damaged_or_hostile_files(saved, keys, value, message):
    with pytest.raises(ModelFileError, match=message):
        vg.load(edited(saved, *keys, value=value))


@pytest.mark.parametrize(
    "content",
    [b"", b"\x80\x04\x95", b"[]", b"null", b"{}", b"NaN", b"[" * 100_000, b"\xff\xfe"],
)
def test_files_that_are_something_else(tmp_path, content):
    path = tmp_path / "model.json"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=r"model\.json"):
        vg.load(path)


def test_nan_in_a_file(saved):
    text = saved.read_text().replace('"intercept": ', '"intercept": NaN, "x": ')
    saved.write_text(text)
    with pytest.raises(
        ModelFileError, match="NaN is not a number that a model may hold"
    ):
        vg.load(saved)


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        vg.load(tmp_path / "absent.json")


def test_a_setting_that_a_file_lacks_takes_its_default(saved):
    document = json.loads(saved.read_text())
    del document["settings"]["n_starts"]
    del document["kernel"]["parameters"]["anchored"]  # as before there was such a thing
    saved.write_text(json.dumps(document))
    assert vg.load(saved).n_starts == 1
    assert vg.load(saved).kernel_.anchored is False


def test_a_plain_model_is_loaded_by_a_process_that_has_used_nothing_else(tmp_path):
    data = vg.datasets.make_synthetic(n_sets=10, random_state=0)
    model = vg.LargeMarginDPP(kernel=vg.Linear(), decoder="greedy", random_state=0)
    model.fit(data.ground_sets, data.subsets).save(tmp_path / "model.json")
    code = "import sys, variegate as vg; print(vg.load(sys.argv[1]).theta_.tolist())"
    command = [sys.executable, "-c", code, str(tmp_path / "model.json")]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert shown.strip() == str(model.theta_.tolist())
