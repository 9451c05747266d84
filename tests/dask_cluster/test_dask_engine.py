"""The two verbs on a cluster give what they give at home."""

import os
import time
from functools import partial

import cluster_tasks as tasks
import psutil
import pytest
from distributed import Client
from distributed.security import Security

from variegate.dask import DaskEngine, SchedulerLostError, connect
from variegate.partitions import Serial, UnreadablePartitionError

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize("n_items", [1, 7, 8, 9, 64, 65, 130])
def test_sums_have_the_bits_of_the_serial_engine(engine, n_items):
    function, items = partial(tasks.wave, 0.1), list(range(n_items))
    expected = Serial().tree_sum(function, items, tasks.add)
    found = engine.tree_sum(function, items, tasks.add)
    assert found.tobytes() == expected.tobytes()


def test_the_order_of_adding_matters_here():
    waves = [tasks.wave(0.1, item) for item in range(64)]
    tree = Serial().tree_sum(partial(tasks.wave, 0.1), list(range(64)), tasks.add)
    assert tree.tobytes() != sum(waves).tobytes()


def test_map_keeps_the_order_and_tells_how_far_it_is(engine):
    told = []
    items = list(range(30))
    results = list(engine.map(abs, items, lambda *numbers: told.append(numbers)))
    assert results == items
    assert told[-1] == (30, 30)
    assert told == sorted(told)


def test_map_of_nothing_is_nothing(engine):
    assert list(engine.map(abs, [])) == []


def test_a_sum_of_nothing_is_refused(engine):
    with pytest.raises(ValueError, match="nothing to add up"):
        engine.tree_sum(abs, [], tasks.add)


def test_a_function_of_this_module_travels_too(engine):
    assert list(engine.map(lambda item: item + 1, [1, 2])) == [2, 3]


def test_errors_of_tasks_come_back_as_themselves(engine):
    with pytest.raises(UnreadablePartitionError, match=r"part-5\.parquet cannot") as it:
        engine.tree_sum(tasks.refuse, list(range(20)), tasks.add)
    assert it.value.path == "part-5.parquet"
    results = engine.map(tasks.refuse, list(range(20)))
    assert [next(results) for _ in range(5)] == list(range(5))
    with pytest.raises(UnreadablePartitionError):
        next(results)


def test_a_time_out_of_a_task_is_not_taken_for_one_of_ours(engine):
    with pytest.raises(TimeoutError, match="the task's own"):
        engine.tree_sum(tasks.too_late, [1, 2], tasks.add)


def test_items_go_to_the_worker_that_had_them(engine):
    first = list(engine.map(tasks.where, list(range(16))))
    assert sorted(first.count(pid) for pid in set(first)) == [8, 8]
    for _ in range(3):
        assert list(engine.map(tasks.where, list(range(16)))) == first


def test_workers_hold_linear_algebra_to_one_thread(engine):
    assert list(engine.map(tasks.threads, [0, 1])) == [1, 1]


def test_nothing_stays_on_the_cluster(engine, client):
    engine.tree_sum(partial(tasks.wave, 0.1), list(range(9)), tasks.add)
    abandoned = engine.map(tasks.where, list(range(9)))
    next(abandoned)
    abandoned.close()
    end = time.monotonic() + 10
    while any(client.has_what().values()) or any(client.processing().values()):
        assert time.monotonic() < end
        time.sleep(0.05)


def test_bad_settings_are_refused(client):
    with pytest.raises(ValueError, match="no_workers_timeout must be a finite number"):
        DaskEngine(client, no_workers_timeout=0)
    with pytest.raises(ValueError, match=r"client must be a distributed\.Client"):
        DaskEngine("tcp://127.0.0.1:8786")


def test_a_scheduler_that_is_not_there_is_an_error_in_time():
    start = time.monotonic()
    with (
        pytest.raises(SchedulerLostError, match=r"no scheduler answers .* within 1 s"),
        connect("tcp://127.0.0.1:9", timeout=1),
    ):
        pass
    assert time.monotonic() - start < 10


def slowly(item):
    number, seconds = item
    time.sleep(seconds)
    return number


def test_results_come_in_order_or_as_they_are_finished(client):
    engine = DaskEngine(client)
    items = [(0, 3.0), *((k, 0.0) for k in range(1, 8))]
    assert list(engine.map(slowly, items)) == list(range(8))
    found = list(engine.map(slowly, items, ordered=False))
    assert sorted(found) == list(range(8))
    assert found[0] != 0


def test_certificates_of_an_encrypted_connection_are_asked_for():
    with (
        pytest.raises(ValueError, match=r"needs ca-file, client\.cert and client\.key"),
        connect("tls://127.0.0.1:9"),
    ):
        pass


def test_another_user_of_this_machine_is_not_let_into_a_local_cluster(client):
    address = client.scheduler.address
    assert address.startswith("tls://127.0.0.1:")
    with (
        pytest.raises(SchedulerLostError, match="no scheduler answers"),
        connect(address.replace("tls:", "tcp:"), timeout=2),
    ):
        pass
    other = Security.temporary()
    with pytest.raises(OSError, match=r"Timed out|TLS certificate does not match"):
        Client(address, security=other, timeout=2, set_as_default=False)


def test_a_local_cluster_listens_on_this_machine_only(client):
    pids = {os.getpid(), *client.run(os.getpid).values()}
    listening = {
        connection.laddr.ip
        for pid in pids
        for connection in psutil.Process(pid).net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening == {"127.0.0.1"}
