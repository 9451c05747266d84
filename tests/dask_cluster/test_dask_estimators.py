"""Estimators on a cluster learn what they learn at home."""

import os
import signal
import threading
from contextlib import suppress
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import Client

import variegate as vg
from variegate import tables
from variegate.dask import DaskEngine, local_cluster
from variegate.partitions import PairPartitions, Serial

pytestmark = pytest.mark.cluster

SETTINGS = {"kernel": vg.MultipleKernel(), "lam": 1.0, "l2": 1e-3, "max_iter": 15}


@pytest.fixture(scope="module")
def data():
    return vg.datasets.make_synthetic(n_sets=120, random_state=0)


@pytest.fixture(scope="module")
def pairs(data):
    both = list(zip(data.ground_sets, data.subsets, strict=True))
    return PairPartitions([partial(list, both[k : k + 12]) for k in range(0, 120, 12)])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder of four files whose groups are whole."""
    folder = tmp_path_factory.mktemp("tables") / "files"
    folder.mkdir()
    table = tables.make_table(n_groups=80, random_state=1)
    queries = np.array(table["query"].to_pylist())
    for k, part in enumerate(np.array_split(np.unique(queries), 4)):
        pq.write_table(
            table.filter(pa.array(np.isin(queries, part))), folder / f"{k}.parquet"
        )
    return folder


def bits(model):
    parts = [model.theta_, [model.intercept_], model.kernel_parameters_]
    return np.concatenate(parts).tobytes()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_partitions_of_pairs_are_learned_from_as_without_a_cluster(client, pairs, data):
    serial = vg.LargeMarginDPP(**SETTINGS).fit(pairs)
    model = vg.LargeMarginDPP(**SETTINGS).fit(pairs, engine=DaskEngine(client))
    assert bits(model) == bits(serial)
    assert [step.objective for step in model.history_] == [
        step.objective for step in serial.history_
    ]
    lists = vg.LargeMarginDPP(**SETTINGS).fit(data.ground_sets, data.subsets)
    np.testing.assert_allclose(model.theta_, lists.theta_, rtol=0, atol=1e-9)
    assert len(model.predict(data.ground_sets[:3])) == 3


def test_a_table_selector_learns_and_chooses_as_at_home(client, files, tmp_path):
    settings = {
        "group": "query", "label": "chosen", "quality": ["score", "freshness"],
        "similarity": "embedding", "kernel": "linear", "omega": 1.0,
        "validation_fraction": 0.25,
    }  # fmt: skip
    home = tables.TableSelector(**settings).fit(files, engine=Serial())
    engine = DaskEngine(client)
    selector = tables.TableSelector(**settings).fit(files, engine=engine)
    assert bits(selector.models_[0]) == bits(home.models_[0])
    assert selector.training_ == home.training_

    expected = home.select(files, out=tmp_path / "home", engine=Serial())
    found = selector.select(files, out=tmp_path / "cluster", engine=engine)
    assert found.n_chosen == expected.n_chosen
    for path in sorted((tmp_path / "home").glob("*.parquet")):
        there = pq.read_table(tmp_path / "cluster" / path.name)
        assert there.equals(pq.read_table(path))
    judged = selector.evaluate(files, engine=engine)
    assert judged.n_groups == 80
    with pytest.raises(ValueError, match="make them a column of its files"):
        selector.fit(files, [1], engine=engine)


def test_the_client_that_was_made_last_is_taken(client, pairs):
    with pytest.raises(ValueError, match="Start a client and point it"):
        DaskEngine()
    with Client(client.scheduler.address, security=client.security):
        model = vg.LargeMarginDPP(kernel=vg.Linear(), l2=1e-3)
        assert len(model.fit(pairs, engine=DaskEngine()).theta_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_killing_workers_while_it_learns_changes_no_bit(pairs):
    serial = vg.LargeMarginDPP(**SETTINGS).fit(pairs)
    killed = set()
    with local_cluster(2) as client:

        def kill(pids):
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    killed.add(pid)

        def look(step):
            n = {3: 1, 6: 2}.get(step.iteration, 0)
            if n:  # a moment later, when the next iteration has begun
                pids = list(client.run(os.getpid, on_error="ignore").values())
                threading.Timer(0.03, kill, [pids[:n]]).start()

        model = vg.LargeMarginDPP(**SETTINGS, callback=look)
        model.fit(pairs, engine=DaskEngine(client))
    assert len(killed) >= 2
    assert bits(model) == bits(serial)
