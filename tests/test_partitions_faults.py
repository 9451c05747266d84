"""Learning from partitions when things go wrong, and going on after it."""

import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from sklearn.base import clone

import variegate as vg
from partition_instances import assert_same_bits, lists, pairs_of
from variegate.partitions import (
    PairShards,
    Partition,
    PartitionChangedError,
    PartitionedExamples,
    PartitionError,
    UnreadablePartitionError,
)
from variegate.solvers import CheckpointError, MiniBatch
from variegate.streaming import write_pairs

pytestmark = pytest.mark.faults


@pytest.fixture(scope="module")
def pairs():
    return pairs_of()


@pytest.fixture(scope="module")
def folder(pairs, tmp_path_factory):
    where = tmp_path_factory.mktemp("pairs")
    write_pairs(where, pairs, shard_size=7)
    return where


# What is refused --------------------------------------------------------------------


def test_what_goes_with_lists_is_refused(pairs, folder):
    examples = PartitionedExamples(PairShards(folder))
    model = vg.LargeMarginDPP()
    with pytest.raises(ValueError, match="PartitionedExamples hold the subsets"):
        model.fit(examples, lists(pairs)[1])
    with pytest.raises(ValueError, match="validation is for lists and streams"):
        model.fit(examples, validation=lists(pairs))
    with pytest.raises(ValueError, match="first_passes must be a whole number"):
        PartitionedExamples(PairShards(folder), first_passes=-1)


@pytest.mark.parametrize(
    "held_out", [{"validation_fraction": 0.1}, {"n_validation": 5}, {"patience": 2}]
)
def test_nothing_is_held_out_of_files(folder, held_out):
    model = vg.LargeMarginDPP(kernel=vg.Linear(), solver=MiniBatch(**held_out))
    with pytest.raises(
        ValueError, match=rf"MiniBatch\({next(iter(held_out))}=\.\.\.\) is"
    ):
        model.fit(PartitionedExamples(PairShards(folder)))


def test_ground_sets_that_do_not_fit_together_are_refused(tmp_path, pairs):
    one, two = tmp_path / "one", tmp_path / "two"
    write_pairs(one, pairs[:5])
    write_pairs(two, [(vg.GroundSet(np.eye(2)), [0])])

    class Both:
        key = "both"
        sources = (PairShards(one), PairShards(two))
        partitions = tuple(p for s in sources for p in s.partitions)

        def read(self, partition):
            owner = next(s for s in self.sources if partition in s.partitions)
            return owner.read(partition)

    said = r"two/quality-00000.npy has ground sets with 2 quality .*/one/quality-00000"
    with pytest.raises(PartitionError, match=said):
        len(PartitionedExamples(Both()))


class Empty:
    """A source with partitions that hold nothing."""

    def __init__(self, source, empty):
        self.source, self.empty = source, empty
        self.key = source.key + "empty"
        self.partitions = (*empty, *source.partitions[:4], *empty)

    def read(self, partition):
        return [] if partition in self.empty else self.source.read(partition)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first_passes", [0, 1])
def test_partitions_may_be_empty_but_not_all(tmp_path, folder, pairs, first_passes):
    nothing = tmp_path / "nothing"
    nothing.write_bytes(b"")
    empty = (Partition.of(nothing),)
    source = Empty(PairShards(folder), empty)
    model = vg.LargeMarginDPP(kernel=vg.Gaussian(2.0), lam=0.0, l2=0.1, random_state=0)
    model.fit(PartitionedExamples(source, first_passes=first_passes))
    home = clone(model).fit(*lists(pairs[:28]))
    accuracy = 1e-3 if first_passes else 1e-9
    np.testing.assert_allclose(model.theta_, home.theta_, atol=accuracy, rtol=accuracy)
    source.partitions = empty
    with pytest.raises(ValueError, match="no examples in any of the files"):
        model.fit(PartitionedExamples(source))
    source.partitions = ()
    with pytest.raises(ValueError, match="there are no files to learn from"):
        PartitionedExamples(source)


@pytest.mark.parametrize("name", ["quality", "chosen", "offsets"])
def test_a_file_that_changes_between_iterations_is_refused(tmp_path, pairs, name):
    write_pairs(tmp_path, pairs, shard_size=20)
    path = tmp_path / f"{name}-00001.npy"

    def change(step):
        if step.iteration == 2:
            found = path.stat()
            os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns + 1_000))

    model = vg.LargeMarginDPP(callback=change)
    with pytest.raises(PartitionChangedError, match=f"{name}-00001.npy has changed"):
        model.fit(PartitionedExamples(PairShards(tmp_path)))
    assert not hasattr(model, "theta_")


def test_a_damaged_file_is_named(tmp_path, pairs):
    write_pairs(tmp_path, pairs, shard_size=20)
    (tmp_path / "chosen-00002.npy").write_bytes(b"not an array")
    examples = PartitionedExamples(PairShards(tmp_path))
    with pytest.raises(UnreadablePartitionError, match=r"00002.npy cannot be learned"):
        vg.LargeMarginDPP().fit(examples)


# Going on ---------------------------------------------------------------------------


def fit(folder, checkpoint=None, **settings):
    model = vg.LargeMarginDPP(max_iter=25, random_state=0, **settings)
    examples = PartitionedExamples(PairShards(folder), first_passes=1)
    return model.fit(examples, checkpoint=checkpoint)


@pytest.mark.filterwarnings("ignore")
def test_a_run_goes_on_where_it_was_stopped(folder, tmp_path):
    whole = fit(folder)
    path = tmp_path / "run.checkpoint"

    def interrupt(step):
        if step.iteration == 4 and step.n_seen is None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(folder, path, callback=interrupt)
    assert path.exists()
    again = fit(folder, path)
    assert_same_bits(whole, again)
    assert not path.exists()


@pytest.mark.filterwarnings("ignore")
def test_without_a_seed_a_run_goes_on_with_its_own(folder, tmp_path):
    path = tmp_path / "run.checkpoint"
    seen = []

    def stop_at(limit):
        def callback(step):
            seen.append(step)
            if len(seen) == limit:
                raise KeyboardInterrupt

        return callback

    settings = {"n_starts": 2, "max_iter": 5}
    examples = PartitionedExamples(PairShards(folder), first_passes=1)
    with pytest.raises(KeyboardInterrupt):
        vg.LargeMarginDPP(callback=stop_at(20), **settings).fit(
            examples, checkpoint=path
        )
    before = seen.copy()
    seen.clear()
    vg.LargeMarginDPP(callback=stop_at(0), **settings).fit(examples, checkpoint=path)
    assert seen[:20] == before


def test_the_checkpoint_of_other_settings_or_data_is_refused(folder, tmp_path, pairs):
    path = tmp_path / "run.checkpoint"

    def interrupt(step):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(folder, path, callback=interrupt)
    with pytest.raises(CheckpointError, match=r"lam was 1\.0 and is 0\.5"):
        fit(folder, path, lam=0.5)
    with pytest.raises(CheckpointError, match="kernel was"):
        fit(folder, path, kernel=vg.Linear())
    other = tmp_path / "other"
    write_pairs(other, pairs, shard_size=7)
    with pytest.raises(CheckpointError, match="data was"):
        fit(other, path)


DRIVER = """
import sys, time, warnings
import numpy as np
import variegate as vg
from variegate.partitions import PairShards, PartitionedExamples, Serial

class Slow(Serial):
    def tree_sum(self, *arguments):
        print("asked", flush=True)
        time.sleep(0.01)
        return super().tree_sum(*arguments)

folder, checkpoint, out = sys.argv[1:]
examples = PartitionedExamples(PairShards(folder), Slow(), first_passes=1)
model = vg.LargeMarginDPP(lam=0.2, max_iter=12, random_state=0)
warnings.simplefilter("ignore")
model.fit(examples, checkpoint=checkpoint)
learned = [model.theta_, [model.intercept_], model.kernel_parameters_]
np.save(out, np.concatenate(learned))
"""


@pytest.mark.parametrize("n_kills", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_a_driver_killed_at_any_moment_goes_on_to_the_same_bits(
    folder, tmp_path, n_kills
):
    checkpoint, out = tmp_path / "run.checkpoint", tmp_path / "out.npy"
    command = [sys.executable, "-c", DRIVER, str(folder), str(checkpoint), str(out)]

    def start():
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    with start() as process:
        n_asked = len(process.communicate(timeout=120)[0].split())
    assert process.returncode == 0
    expected = out.read_bytes()
    out.unlink()
    rng = random.Random(0)
    asked = []
    for _ in range(n_kills):
        with start() as process:
            first = rng.randint(1, max(1, n_asked // (2 * n_kills)))
            lines = [process.stdout.readline() for _ in range(first)]
            time.sleep(0.02 * rng.random())
            process.send_signal(signal.SIGKILL)
            asked.append(len(lines) + len(process.communicate(timeout=60)[0].split()))
        assert process.returncode == -signal.SIGKILL
        assert not out.exists()
    with start() as process:
        asked.append(len(process.communicate(timeout=120)[0].split()))
    assert process.returncode == 0
    assert out.read_bytes() == expected
    # No question that was answered is asked again; a kill loses at most one answer.
    assert n_asked <= sum(asked) <= n_asked + n_kills
    assert not checkpoint.exists()
