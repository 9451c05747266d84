"""A training that was killed ends as if it had not been."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from neural_cases import assert_same_weights, ragged, seeded_encoder, small

import variegate as vg
from variegate.files.run_store import CheckpointError, RunStore

DATA = ragged(60, seed=4)

#: Learns as ``whole`` below does, and says how far it is; slowly, so that it is caught.
SCRIPT = """
import sys, time
import torch
from neural_cases import ragged, seeded_encoder, small
from variegate.torch.neural import training

torch.set_num_threads(1)
training._SHARE = 1e9  # writes at any time, however long one takes

def tell(step):
    print(step.iteration, flush=True)
    time.sleep(0.05)

model = small("cpu", encoder=seeded_encoder(), max_epochs=12, batch_size=4)
model.set_params(callback=tell)
model.fit(*ragged(60, seed=4), checkpoint=sys.argv[1])
model.save(sys.argv[2])
"""


def started(*arguments):
    paths = [str(Path(__file__).parent), *sys.path]
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
    )


@pytest.fixture
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_killed_and_started_again_it_ends_with_the_same_weights(tmp_path, one_thread):
    checkpoint, saved = tmp_path / "run", tmp_path / "model.json"
    with started(checkpoint, saved) as process:
        for line in process.stdout:
            if line.strip() == "5":
                break
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert sorted(one.name for one in tmp_path.iterdir()) == ["run", "run-wal"]
    with started(checkpoint, saved) as process:
        passes, _ = process.communicate()
    assert process.returncode == 0
    assert int(passes.split()[0]) >= 3, "it did not go on, it began again"
    assert not checkpoint.exists()
    whole = small("cpu", encoder=seeded_encoder(), max_epochs=12, batch_size=4)
    again = vg.load(saved, modules={"encoder": seeded_encoder()})
    assert_same_weights(again, whole.fit(*DATA))


class StoppedError(Exception):
    """Somebody pulled the plug."""


def interrupted(model, checkpoint, at):
    """Fit, and be interrupted in the middle of a pass: after so many steps."""
    from variegate.torch.neural.training import Training

    step, n_steps = Training._train_step, 0

    def counted(self, numbers):
        nonlocal n_steps
        n_steps += 1
        if n_steps > at:
            raise StoppedError
        step(self, numbers)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Training, "_train_step", counted)
        patch.setattr("variegate.torch.neural.training._SHARE", 1e9)  # at any time
        with pytest.raises(StoppedError):
            model.fit(*DATA, checkpoint=checkpoint)


@pytest.mark.parametrize("at", [3, 14, 33])
@pytest.mark.parametrize("random_state", [0, None])
def test_interrupted_within_a_pass(tmp_path, at, random_state):
    checkpoint = tmp_path / "run"
    settings = {"encoder": seeded_encoder(), "batch_size": 5, "max_epochs": 6}
    model = small("cpu", **settings, random_state=random_state)
    interrupted(model, checkpoint, at)
    kept = checkpoint.read_bytes()
    ended = small("cpu", **settings, random_state=random_state)
    ended.fit(*DATA, checkpoint=checkpoint)
    assert not checkpoint.exists()
    if random_state is None:  # the seed is in the file
        checkpoint.write_bytes(kept)
        whole = small("cpu", **settings, random_state=None)
        whole.fit(*DATA, checkpoint=checkpoint)
    else:
        whole = small("cpu", **settings, random_state=random_state).fit(*DATA)
    assert ended.history_ == whole.history_
    assert_same_weights(ended, whole)


def test_on_a_device_it_goes_on_too(tmp_path, device):
    checkpoint = tmp_path / "run"
    settings = {"batch_size": 5, "max_epochs": 6}
    interrupted(small(device, **settings), checkpoint, 20)
    ended = small(device, **settings).fit(*DATA, checkpoint=checkpoint)
    whole = small(device, **settings).fit(*DATA)
    found, expected = ([e.objective for e in m.history_] for m in (ended, whole))
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_checkpoints_of_other_runs_are_refused(tmp_path, device):
    checkpoint = tmp_path / "run"
    settings = {"batch_size": 5, "max_epochs": 6}
    interrupted(small(device, **settings), checkpoint, 8)
    kept = checkpoint.read_bytes()
    with pytest.raises(
        CheckpointError, match=r"another run \(lam was 1.0 and is 2.0\)"
    ):
        small(device, **settings, lam=2.0).fit(*DATA, checkpoint=checkpoint)
    model = small(device, **settings, encoder=seeded_encoder())
    with pytest.raises(CheckpointError, match=r"encoder was None and is 'Encoder\("):
        model.fit(*DATA, checkpoint=checkpoint)
    ground_sets, subsets = DATA
    other = vg.GroundSet(ground_sets[0].quality + 1e-9, ground_sets[0].similarity)
    changed = [other, *ground_sets[1:]]
    with pytest.raises(CheckpointError, match=r"another run \(data was \["):
        small(device, **settings).fit(changed, subsets, checkpoint=checkpoint)
    with pytest.raises(
        CheckpointError, match=r"data was \[.*'0 pairs, .*\] and is .*'60 pairs"
    ):
        small(device, **settings).fit(*DATA, validation=DATA, checkpoint=checkpoint)
    assert checkpoint.read_bytes() == kept


@pytest.mark.parametrize("damage", ["text", "other"])
def test_files_that_are_no_checkpoints_are_refused(tmp_path, device, damage):
    checkpoint = tmp_path / "run"
    interrupted(small(device, batch_size=5), checkpoint, 8)
    if damage == "text":
        checkpoint.write_text("{}")
    else:
        from safetensors.torch import save

        checkpoint.write_bytes(save({"a": torch.zeros(2)}))
    with pytest.raises(CheckpointError, match="is not a checkpoint"):
        small(device, batch_size=5).fit(*DATA, checkpoint=checkpoint)


def test_a_folder_that_is_not_there_is_said_before_the_work(tmp_path, device):
    with pytest.raises(FileNotFoundError, match="cannot write the checkpoint"):
        small(device).fit(*DATA, checkpoint=tmp_path / "no" / "run")


def test_writing_takes_a_small_share_of_the_time(tmp_path, device, monkeypatch):
    from variegate.torch.neural.training import Training

    now, written, step = [0.0], [], Training._train_step

    def write_for_two_seconds(store, values):
        written.append(now[0])
        now[0] += 2.0

    def step_for_a_second(self, numbers):
        step(self, numbers)
        now[0] += 1.0

    monkeypatch.setattr(Training, "_train_step", step_for_a_second)
    monkeypatch.setattr(RunStore, "put_all", write_for_two_seconds)
    monkeypatch.setattr(RunStore, "remember", lambda store, key, compute: compute())
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    model = small(device, batch_size=2, max_epochs=2)
    model.fit(*DATA, checkpoint=tmp_path / "run")
    assert len(written) > 1
    assert (np.diff(written) >= 2.0 + 2.0 / 0.1).all()
    assert (np.diff(written) < 2.0 + 2.0 / 0.1 + 2.0).all()
