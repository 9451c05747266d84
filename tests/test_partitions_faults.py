"""Learning from partitions when things go wrong, and going on after it."""

import gc
import random
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import variegate as vg
from partition_instances import assert_same_bits, cut, lists, pairs_of
from variegate.partitions import (
    PairPartitions,
    PartitionedExamples,
    PartitionError,
    Threads,
    UnreadablePartitionError,
)
from variegate.partitions import partition as pairs_module
from variegate.solvers import CheckpointError, MiniBatch

pytestmark = pytest.mark.faults


@pytest.fixture(scope="module")
def pairs():
    return pairs_of()


@pytest.fixture(scope="module")
def source(pairs):
    return cut(pairs, 7)


# What is refused --------------------------------------------------------------------


def test_what_goes_with_lists_is_refused(pairs, source):
    model = vg.LargeMarginDPP()
    with pytest.raises(ValueError, match="partitions hold the subsets"):
        model.fit(source, lists(pairs)[1])
    with pytest.raises(ValueError, match="validation is for data in memory"):
        model.fit(source, validation=lists(pairs))
    with pytest.raises(ValueError, match="false_negative are for lists"):
        model.fit(source, false_negative=[])
    with pytest.raises(ValueError, match="first_passes must be a whole number"):
        PartitionedExamples(source, first_passes=-1)


def test_nothing_is_held_out_of_files(source):
    model = vg.LargeMarginDPP(kernel=vg.Linear(), solver=MiniBatch(patience=2))
    with pytest.raises(ValueError, match="patience=2 needs data that is held out"):
        model.fit(PartitionedExamples(source))


def test_ground_sets_that_do_not_fit_together_are_refused(pairs):
    other = [(vg.GroundSet(np.eye(2)), [0])]
    loaders = [partial(list, pairs[:5]), partial(list, other)]
    said = "partition 1 has ground sets with 2 quality .*partition 0 has 3"
    with pytest.raises(PartitionError, match=said):
        vg.LargeMarginDPP().fit(PairPartitions(loaders))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first_passes", [0, 1])
def test_partitions_may_be_empty_but_not_all(pairs, first_passes):
    parts = [[], *(pairs[k : k + 7] for k in range(0, 28, 7)), []]
    source = PairPartitions([partial(list, part) for part in parts])
    model = vg.LargeMarginDPP(kernel=vg.Gaussian(2.0), lam=0.0, l2=0.1, random_state=0)
    model.fit(PartitionedExamples(source, first_passes=first_passes))
    home = clone(model).fit(*lists(pairs[:28]))
    accuracy = 1e-3 if first_passes else 1e-9
    np.testing.assert_allclose(model.theta_, home.theta_, atol=accuracy, rtol=accuracy)
    with pytest.raises(ValueError, match="no examples in any of the"):
        model.fit(PairPartitions([list, list]))
    with pytest.raises(ValueError, match="there are no partitions to learn from"):
        model.fit(PairPartitions([]))


def fails():
    raise OSError("disk is gone")


@pytest.mark.parametrize(
    ("loader", "message"),
    [
        (fails, "partition 1 cannot be loaded: disk is gone"),
        (
            partial(list, [(np.eye(3), [7])]),
            "partition 1 cannot be loaded: ground set 0: item 7 is out of range",
        ),
        (partial(list, [3]), "partition 1 cannot be loaded: pair 0 is a int, not a"),
    ],
)
def test_a_partition_that_cannot_be_loaded_is_named(pairs, loader, message):
    source = PairPartitions([partial(list, pairs[:5]), loader])
    with pytest.raises(UnreadablePartitionError, match=message):
        vg.LargeMarginDPP().fit(source)


def test_bad_loaders():
    with pytest.raises(ValueError, match="loader 0 must be a function without arg"):
        PairPartitions([3])
    with pytest.raises(ValueError, match=r"cannot be pickled .* or give key="):
        PairPartitions([lambda: []])
    assert len(PairPartitions([lambda: []], key="mine")) == 1


# Pairs from an iterable -------------------------------------------------------------


def test_a_generator_is_learned_from_as_lists_are(pairs):
    model = vg.LargeMarginDPP(kernel=vg.Linear(), l2=0.1)
    home = clone(model).fit(*lists(pairs))
    assert_same_bits(home, model.fit(pair for pair in pairs))
    assert_same_bits(home, model.fit(iter(pairs), engine=Threads(2)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("solver", ["lbfgs", "minibatch"])
def test_more_pairs_than_memory_holds_are_written_to_files(pairs, monkeypatch, solver):
    monkeypatch.setattr(pairs_module, "MEMORY", 2_000)
    monkeypatch.setattr(pairs_module, "_FILE_BYTES", 700)
    held = pairs_module.hold_pairs(iter(pairs), 1.0)
    folder = Path(held._folder.name)
    n_files = len(list(folder.iterdir()))
    assert 3 < n_files == len(held.partitions) < len(pairs)
    read = [example for part in held.partitions for example in held.read(part)]
    assert [example.position for example in read] == list(range(len(pairs)))
    model = vg.LargeMarginDPP(kernel=vg.Linear(), l2=0.1, solver=solver, random_state=0)
    spilled = clone(model).fit(iter(pairs))
    again = clone(model).fit(iter(pairs), engine=Threads(3))
    assert_same_bits(spilled, again)
    if solver == "lbfgs":
        home = clone(model).fit(*lists(pairs))
        np.testing.assert_allclose(spilled.theta_, home.theta_, rtol=1e-9, atol=1e-9)
    del held
    gc.collect()
    assert not folder.exists()


@pytest.mark.filterwarnings("ignore")
def test_a_run_on_spilled_pairs_resumes(pairs, monkeypatch, tmp_path):
    monkeypatch.setattr(pairs_module, "MEMORY", 2_000)
    path = tmp_path / "run.checkpoint"
    model = vg.LargeMarginDPP(kernel=vg.Linear(), l2=0.1, random_state=0)
    whole = clone(model).fit(iter(pairs))

    def interrupt(step):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        clone(model).set_params(callback=interrupt).fit(iter(pairs), checkpoint=path)
    assert_same_bits(whole, clone(model).fit(iter(pairs), checkpoint=path))
    with pytest.raises(KeyboardInterrupt):
        clone(model).set_params(callback=interrupt).fit(iter(pairs), checkpoint=path)
    with pytest.raises(CheckpointError, match="data was"):
        clone(model).fit(iter(pairs[::-1]), checkpoint=path)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (3, r"must be an iterable of \(ground set, subset\) pairs or Pair.*, got 3"),
        (vg.GroundSet(np.eye(2)), "must be an iterable of"),
        ([], "there are no pairs to learn from"),
        ([vg.GroundSet(np.eye(2))], "pair 0 is a GroundSet, not a"),
        ([(np.eye(2), [0]), (np.eye(2), [2])], "ground set 1: item 2 is out"),
        ([(np.eye(2), [0]), ([[np.nan]], [0])], "ground set 1: quality holds"),
        (
            [(np.eye(2), [0]), (np.eye(3), [0])],
            "ground set 1: it has 3 quality features but the first has 2: all",
        ),
    ],
)
def test_bad_pairs(given, message):
    with pytest.raises(ValueError, match=message):
        vg.LargeMarginDPP(kernel=vg.Linear()).fit(given)


class Elsewhere:
    """An engine that is not of this process."""


def test_memory_of_this_process_is_not_for_other_engines(pairs, source):
    model = vg.LargeMarginDPP(kernel=vg.Linear())
    for data in (lists(pairs), (pairs,)):
        with pytest.raises(ValueError, match="Elsewhere cannot read the memory of"):
            model.fit(*data, engine=Elsewhere())
    with pytest.raises(ValueError, match="PartitionedExamples have an engine"):
        model.fit(PartitionedExamples(source), engine=Threads(2))


# Resuming ---------------------------------------------------------------------------


def fit(source, checkpoint=None, **settings):
    model = vg.LargeMarginDPP(max_iter=25, random_state=0, **settings)
    examples = PartitionedExamples(source, first_passes=1)
    return model.fit(examples, checkpoint=checkpoint)


@pytest.mark.filterwarnings("ignore")
def test_a_run_goes_on_where_it_was_stopped(source, tmp_path):
    whole = fit(source)
    path = tmp_path / "run.checkpoint"

    def interrupt(step):
        if step.iteration == 4 and step.n_seen is None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(source, path, callback=interrupt)
    assert path.exists()
    again = fit(source, path)
    assert_same_bits(whole, again)
    assert not path.exists()


@pytest.mark.filterwarnings("ignore")
def test_without_a_seed_a_run_goes_on_with_its_own(source, tmp_path):
    path = tmp_path / "run.checkpoint"
    seen = []

    def stop_at(limit):
        def callback(step):
            seen.append(step)
            if len(seen) == limit:
                raise KeyboardInterrupt

        return callback

    settings = {"n_starts": 2, "max_iter": 5}
    examples = PartitionedExamples(source, first_passes=1)
    with pytest.raises(KeyboardInterrupt):
        vg.LargeMarginDPP(callback=stop_at(20), **settings).fit(
            examples, checkpoint=path
        )
    before = seen.copy()
    seen.clear()
    vg.LargeMarginDPP(callback=stop_at(0), **settings).fit(examples, checkpoint=path)
    assert seen[:20] == before


def test_the_checkpoint_of_other_settings_or_data_is_refused(source, tmp_path, pairs):
    path = tmp_path / "run.checkpoint"

    def interrupt(step):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(source, path, callback=interrupt)
    with pytest.raises(CheckpointError, match=r"lam was 1\.0 and is 0\.5"):
        fit(source, path, lam=0.5)
    with pytest.raises(CheckpointError, match="kernel was"):
        fit(source, path, kernel=vg.Linear())
    other = cut(pairs, 8)
    with pytest.raises(CheckpointError, match="data was"):
        fit(other, path)


DRIVER = """
import sys, time, warnings
sys.path.insert(0, sys.argv[1])
import numpy as np
import variegate as vg
from partition_instances import cut, pairs_of
from variegate.partitions import PartitionedExamples, Serial

class Slow(Serial):
    def tree_sum(self, *arguments):
        print("asked", flush=True)
        time.sleep(0.01)
        return super().tree_sum(*arguments)

checkpoint, out = sys.argv[2:]
examples = PartitionedExamples(cut(pairs_of(), 7), Slow(), first_passes=1)
model = vg.LargeMarginDPP(lam=0.2, max_iter=12, random_state=0)
warnings.simplefilter("ignore")
model.fit(examples, checkpoint=checkpoint)
learned = [model.theta_, [model.intercept_], model.kernel_parameters_]
np.save(out, np.concatenate(learned))
"""


@pytest.mark.parametrize("n_kills", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_a_driver_killed_at_any_moment_goes_on_to_the_same_bits(tmp_path, n_kills):
    checkpoint, out = tmp_path / "run.checkpoint", tmp_path / "out.npy"
    here = Path(__file__).parent
    command = [sys.executable, "-c", DRIVER, str(here), str(checkpoint), str(out)]

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
