"""Neural models in files: as they were, without pickle, and refused in words."""

import base64
import json
import subprocess
import sys
from importlib.metadata import entry_points

import numpy as np
import pytest
import torch
from neural_cases import assert_same_weights, ragged, seeded_encoder, small
from safetensors.torch import load, save
from torch import nn

import variegate as vg
import variegate.torch as vt
from variegate.application.description import describe
from variegate.decoding import ExpectedF
from variegate.files.models import ModelFileError

DATA = ragged()


@pytest.fixture(scope="module")
def path(tmp_path_factory, device):
    path = tmp_path_factory.mktemp("files") / "model.json"
    small(device, decoder=ExpectedF(beta=2.0)).fit(*DATA).save(path)
    return path


@pytest.fixture(scope="module")
def of_own(device):
    return small(device, encoder=seeded_encoder()).fit(*DATA)


@pytest.fixture(scope="module")
def own(tmp_path_factory, of_own):
    path = tmp_path_factory.mktemp("files") / "own.json"
    of_own.save(path)
    return path


def changed(path, tmp_path, change):
    document = json.loads(path.read_text())
    change(document)
    other = tmp_path / "changed.json"
    other.write_text(json.dumps(document))
    return other


def test_a_file_is_one_json_text_and_loads_as_it_was(device, tmp_path):
    model = small(device, lam=2.0).fit(*DATA)
    path = tmp_path / "model.json"
    model.save(path)
    assert [one.name for one in tmp_path.iterdir()] == ["model.json"]
    loaded = vg.load(path).set_params(device=device)
    assert isinstance(loaded, vt.NeuralDPP)
    assert_same_weights(model, loaded)
    for one in DATA[0]:
        np.testing.assert_array_equal(loaded.ensemble(one).L, model.ensemble(one).L)
    settings = model.get_params() | {"device": device}
    assert loaded.get_params() == settings
    assert loaded.solver_result_.status == model.solver_result_.status
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == path.read_text()


def test_weights_are_safetensors(path):
    document = json.loads(path.read_text())
    weights = load(base64.b64decode(document["weights"]))
    assert weights["encoder.linear.weight"].shape == (4, 4)


def test_a_decoder_object_is_kept(path):
    assert vg.load(path).decoder == ExpectedF(beta=2.0)


def test_a_module_of_the_users_own_is_given_back(own, of_own, device):
    other = seeded_encoder(seed=9)
    loaded = vg.load(own, modules={"encoder": other}).set_params(device=device)
    assert_same_weights(loaded, of_own)
    assert loaded.score(*DATA) == of_own.score(*DATA)
    assert torch.equal(other.inward.weight, seeded_encoder(seed=9).inward.weight)


def test_loading_needs_no_import_of_torch(path, tmp_path):
    if "neural-dpp" not in {
        e.name for e in entry_points(group="variegate.applications")
    }:
        pytest.skip("needs the entry point neural-dpp, which installing brings")
    code = (
        "import sys, variegate as vg; assert 'torch' not in sys.modules; "
        f"print(type(vg.load({str(path)!r})).__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "NeuralDPP", done.stderr


def test_tied_weights_stay_tied(device, tmp_path):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.one = nn.Linear(4, 4)
            self.other = self.one

        def forward(self, items):
            return self.other(torch.relu(self.one(items)))

    small(device, encoder=Tied()).fit(*DATA).save(tmp_path / "tied.json")
    loaded = vg.load(tmp_path / "tied.json", modules={"encoder": Tied()})
    assert loaded.network_.encoder.one is loaded.network_.encoder.other


def test_own_modules_that_do_not_fit_are_refused(own, path):
    with pytest.raises(
        ModelFileError,
        match=r'its encoder is a module of your own, Encoder, .*"encoder": Encoder\(',
    ):
        vg.load(own)
    with pytest.raises(ModelFileError, match=r"do not fit the network, or the modules"):
        vg.load(own, modules={"encoder": seeded_encoder(n_outputs=7)})
    with pytest.raises(ModelFileError, match="this model has no encoder of your own"):
        vg.load(path, modules={"encoder": seeded_encoder()})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("weights"), 'the section "weights" is missing'),
        (lambda d: d.update(weights="????"), "the weights are damaged"),
        (lambda d: d.update(weights="AAAA"), "the weights are damaged"),
        (lambda d: d["settings"].update(n_kinds=3), "the weights do not fit"),
        (lambda d: d["settings"].update(depth=3), "unknown settings: depth"),
        (lambda d: d["settings"].update(lam=-1), "lam must be a finite number"),
        (
            lambda d: d["network"].update(quality_features=0),
            "whole number of at least 1",
        ),
        (lambda d: d["network"].update(code="x"), "unknown 'network.code'"),
        (lambda d: d.update(type="neural"), "unknown type of model 'neural'"),
        (lambda d: d.update(version=99), "upgrade it"),
    ],
)
def test_damaged_files_are_refused(path, tmp_path, change, message):
    with pytest.raises(ModelFileError, match=message):
        vg.load(changed(path, tmp_path, change))


def test_weights_that_are_no_numbers_are_refused(path, tmp_path):
    def spoil(document):
        weights = load(base64.b64decode(document["weights"]))
        weights["encoder.linear.bias"][0] = torch.nan
        document["weights"] = base64.b64encode(save(weights)).decode()

    with pytest.raises(ModelFileError, match=r"weights encoder.linear.bias hold NaN"):
        vg.load(changed(path, tmp_path, spoil))


def test_there_are_no_weights_of_features_to_describe(path):
    with pytest.raises(ValueError, match="NeuralDPP has no weights of features"):
        describe(vg.load(path))
