"""What the engine is made of, without a cluster."""

import ast
import pickle
import subprocess
import sys
import warnings
from functools import partial

import cloudpickle
import cluster_tasks as tasks
import pytest
from dask.local import get_sync
from distributed.versions import VersionMismatchWarning
from hypothesis import given
from hypothesis import strategies as st

from variegate.dask import VersionMismatchError
from variegate.dask.graph import Affinity, Graph, function_name, run_task
from variegate.dask.versions import (
    check_same_versions,
    code_version,
    compare_versions,
    software_versions,
)
from variegate.partitions import Serial

pytestmark = pytest.mark.cluster


@given(n_items=st.integers(1, 300), n_threads=st.integers(1, 40))
def test_the_graph_of_a_sum_is_the_tree_however_many_threads(n_items, n_threads):
    function, items = partial(tasks.wave, 0.7), list(range(n_items))
    graph = Graph(function)
    root = graph.add_tree(items, ["here"] * n_items, tasks.add, n_threads)
    expected = Serial().tree_sum(function, items, tasks.add)
    assert get_sync(graph.tasks, root).tobytes() == expected.tobytes()
    assert set(graph.places.values()) == {"here"}
    assert graph.places.keys() <= graph.tasks.keys()


def test_plenty_of_items_are_bundled():
    sizes = []
    for n_threads in (1, 2):
        graph = Graph(abs)
        graph.add_tree(list(range(64)), [""] * 64, tasks.add, n_threads)
        sizes.append(len(graph.tasks))
    assert sizes == [8 + 1, 64 + 8 + 1]


def test_tasks_say_what_they_are():
    assert function_name(partial(partial(tasks.wave, 1.0))) == "wave"
    assert function_name(lambda item: item) == "lambda"
    (key,) = Graph(partial(tasks.wave, 1.0)).add_leaves([3], ["here"])
    assert key[0].startswith("wave-")


def test_a_task_of_another_variegate_is_refused():
    with pytest.raises(VersionMismatchError, match=r"the driver has 0\.0\.7"):
        run_task("0.0.7", pickle.dumps(abs), pickle.dumps([1]), None)


# Which worker an item belongs to ------------------------------------------------------


def test_neighbours_have_one_owner_and_owners_even_shares():
    owners = Affinity().assign_owners(list(range(10)), {"b": 1, "a": 1})
    assert owners == ["a"] * 5 + ["b"] * 5
    assert (
        Affinity().assign_owners(list(range(9)), {"a": 2, "b": 1})
        == ["a"] * 6 + ["b"] * 3
    )


def test_only_the_items_of_a_lost_worker_move():
    affinity = Affinity()
    before = affinity.assign_owners(list(range(12)), {"a": 1, "b": 1, "c": 1})
    after = affinity.assign_owners(list(range(12)), {"a": 1, "c": 1})
    kept = [(old, new) for old, new in zip(before, after, strict=True) if old != "b"]
    assert all(old == new for old, new in kept)
    assert sorted(after) == ["a"] * 6 + ["c"] * 6


def test_a_worker_that_joins_gets_its_share():
    affinity = Affinity()
    before = affinity.assign_owners(list(range(12)), {"a": 1, "b": 1})
    after = affinity.assign_owners(list(range(12)), {"a": 1, "b": 1, "c": 1})
    assert sorted(after) == ["a"] * 4 + ["b"] * 4 + ["c"] * 4
    assert sum(old != new for old, new in zip(before, after, strict=True)) == 4


def test_a_batch_of_the_items_moves_none():
    affinity, workers = Affinity(), {"a": 1, "b": 1}
    owners = dict(enumerate(affinity.assign_owners(list(range(12)), workers)))
    batch = [0, 1, 2, 3, 11]
    assert affinity.assign_owners(batch, workers) == [owners[item] for item in batch]
    assert dict(enumerate(affinity.assign_owners(list(range(12)), workers))) == owners


def test_items_that_cannot_be_hashed_have_owners():
    affinity, workers = Affinity(), {"a": 1, "b": 1}
    assert affinity.assign_owners([[1], {2: 3}], workers) == ["a", "b"]
    assert affinity.assign_owners([{2: 3}, [1]], workers) == ["b", "a"]


# Versions -----------------------------------------------------------------------------


def test_another_variegate_is_refused_by_name():
    other = software_versions() | {"Variegate": "0.0.7"}
    with pytest.raises(VersionMismatchError) as refusal:
        check_same_versions({"x": other, "y": software_versions()})
    assert "the worker at x has Variegate 0.0.7, while" in str(refusal.value)
    assert f"the driver has Variegate {code_version()}" in str(refusal.value)
    many = {f"w{k}": other for k in range(9)}
    with pytest.raises(VersionMismatchError, match=r"at w2 has .*; and 6 more"):
        check_same_versions(many)


def test_another_numpy_is_warned_of_and_the_same_is_not():
    other = software_versions() | {"numpy": "2.0.0"}
    with pytest.warns(VersionMismatchWarning, match=r"x has numpy 2\.0\.0, while"):
        check_same_versions({"x": other})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_same_versions({"x": software_versions()})


@pytest.mark.parametrize("missing", ["variegate", "variegate.dask.versions"])
def test_a_process_with_an_older_variegate_or_none_can_answer(missing):
    class Remote:
        """A client whose one worker is a new process."""

        def run(self, function, **options):
            code = (
                "import pickle, sys\n"
                f"sys.modules[{missing!r}] = None\n"
                f"print(pickle.loads({cloudpickle.dumps(function)!r})())"
            )
            done = subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, check=True
            )
            return {"x": ast.literal_eval(done.stdout)}

    with pytest.raises(VersionMismatchError, match="x has Variegate missing or too"):
        compare_versions(Remote())
