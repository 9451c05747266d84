"""Faults of a cluster, with real processes and real signals.

Each ends within a stated time: with the bits of an undisturbed run, or with an error
that says what happened.
"""

import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from functools import partial

import cluster_tasks as tasks
import dask
import pytest
from distributed import Client, LocalCluster
from processes import SOURCE, ProcessCluster, is_alive, wait_until

from variegate.dask import (
    DaskEngine,
    NoWorkersError,
    SchedulerLostError,
    VersionMismatchError,
    WorkerKilledError,
    connect,
)
from variegate.partitions import Serial

pytestmark = pytest.mark.cluster

ITEMS = list(range(40))


@contextmanager
def limited_cluster(n_workers, memory_limit):
    """Start workers with little memory, as Dask's users do."""
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 2}),
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            memory_limit=memory_limit,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def small():
    """Two workers of which each may be killed."""
    with limited_cluster(2, "400MB") as client:
        yield client


def expected():
    return Serial().tree_sum(partial(tasks.wave, 0.3), ITEMS, tasks.add).tobytes()


def slow(tmp_path, seconds=0.05):
    return partial(tasks.marked_wave, 0.3, seconds, str(tmp_path))


def n_begun(tmp_path):
    path = tmp_path / "begun"
    return len(path.read_text().splitlines()) if path.exists() else 0


def pids_of(client):
    """Return the processes of the workers, less those that die at this moment."""
    return list(client.run(os.getpid, on_error="ignore").values())


def in_background(call):
    """Start a call; what is returned waits for its result or error."""
    outcome = {}

    def run():
        try:
            outcome["result"] = call()
        except Exception as error:
            outcome["error"] = error

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def finish(seconds):
        thread.join(seconds)
        assert not thread.is_alive(), "it hangs"
        if "error" in outcome:
            raise outcome["error"]
        return outcome["result"]

    return finish


@pytest.mark.slow
def test_a_worker_killed_and_then_all_of_them(small, tmp_path):
    # Seconds later the nannies have started others and what was lost is computed again.
    engine = DaskEngine(small)
    pids = pids_of(small)
    finish = in_background(lambda: engine.tree_sum(slow(tmp_path), ITEMS, tasks.add))
    wait_until(lambda: n_begun(tmp_path) > 8)
    os.kill(pids[0], signal.SIGKILL)
    wait_until(lambda: n_begun(tmp_path) > 16)
    others = [pid for pid in pids_of(small) if pid not in pids]
    for pid in [pids[1], *others]:
        os.kill(pid, signal.SIGKILL)
    assert finish(120).tobytes() == expected()
    assert n_begun(tmp_path) > len(ITEMS)  # something was lost indeed


def test_an_item_for_which_memory_does_not_suffice_is_named(small):
    # Half a dozen of workers, one after another: 39 s on two busy cores.
    engine = DaskEngine(small)
    start = time.monotonic()
    with pytest.raises(
        WorkerKilledError,
        match=r"^3 ended 3 workers in a row that ran wants_memory on it, perhaps for "
        "want of memory: give workers more memory",
    ):
        engine.tree_sum(tasks.wants_memory, list(range(6)), tasks.add)
    assert time.monotonic() - start < 300
    assert engine.tree_sum(abs, [1, 2], tasks.add) == 3  # the cluster lives on


@pytest.mark.slow
def test_an_item_that_kills_is_named_by_map_after_the_results_before_it(small):
    results = DaskEngine(small).map(tasks.die, list(range(6)))
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(WorkerKilledError, match=r"^2 ended 3 .*, perhaps for want of"):
        next(results)


@pytest.mark.slow
def test_workers_that_die_innocently_do_not_end_the_work(small, tmp_path):
    # Tasks that wait on a worker are suspected when it dies; three deaths are too many
    # for the scheduler, and then no task waits behind another.
    engine = DaskEngine(small)
    finish = in_background(
        lambda: engine.tree_sum(slow(tmp_path, 1.0), ITEMS[:16], tasks.add)
    )
    wait_until(lambda: n_begun(tmp_path) >= 2)
    alive = pids_of(small)
    for _ in range(3):
        dead, other = alive
        os.kill(dead, signal.SIGKILL)
        wait_until(lambda old=alive: len(set(pids_of(small)) - set(old)) == 1)
        alive = [other, *set(pids_of(small)) - {dead, other}]
    function = partial(tasks.wave, 0.3)
    whole = Serial().tree_sum(function, ITEMS[:16], tasks.add)
    assert finish(240).tobytes() == whole.tobytes()


@pytest.mark.slow
def test_workers_whose_memory_is_full_are_as_good_as_none():
    limit = 600_000_000
    with limited_cluster(1, limit) as client:
        engine = DaskEngine(client, no_workers_timeout=3)
        list(engine.map(partial(tasks.hold_memory, limit), [0]))

        def go_on():
            for _ in range(50):  # it is found out a moment later
                engine.tree_sum(partial(tasks.slow_wave, 0.3, 0.1), [1, 2], tasks.add)

        with pytest.raises(NoWorkersError, match=r"\(1 paused for want of memory"):
            go_on()


def test_no_worker_for_too_long_and_then_some(processes, tmp_path):
    with connect(processes.address) as client:
        engine = DaskEngine(client, no_workers_timeout=2)
        with pytest.raises(NoWorkersError, match="no worker that takes work for 2 s"):
            engine.tree_sum(abs, [1, 2], tasks.add)

        processes.start_worker()
        patient = DaskEngine(client, no_workers_timeout=30)
        assert patient.tree_sum(abs, [1, 2], tasks.add) == 3
        finish = in_background(
            lambda: engine.tree_sum(slow(tmp_path), ITEMS, tasks.add)
        )
        wait_until(lambda: n_begun(tmp_path) > 8)
        processes.kill_workers()
        start = time.monotonic()
        with pytest.raises(NoWorkersError, match="the same call goes on from there"):
            finish(60)
        assert time.monotonic() - start < 8

        # A patient engine waits for the workers that are to come.
        finish = in_background(
            lambda: patient.tree_sum(slow(tmp_path), ITEMS, tasks.add)
        )
        time.sleep(0.5)
        processes.start_worker()
        assert finish(120).tobytes() == expected()


def test_a_scheduler_that_gives_tasks_up_sooner_than_we_do(tmp_path):
    # One that is told not to wait for workers; the call goes on when there are some.
    hasty = {"distributed.scheduler.no-workers-timeout": "500ms"}
    with (
        dask.config.set(hasty),
        LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            processes=False,
            dashboard_address="127.0.0.1:0",
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        engine = DaskEngine(client, no_workers_timeout=60)
        finish = in_background(
            lambda: engine.tree_sum(slow(tmp_path), ITEMS, tasks.add)
        )
        wait_until(lambda: n_begun(tmp_path) > 2)
        cluster.scale(0)
        given_up = "no-workers-timeout-exceeded"
        wait_until(
            lambda: any(
                event.get("action") == given_up
                for _, event in client.get_events("scheduler")
            )
        )
        cluster.scale(1)
        assert finish(120).tobytes() == expected()


def test_a_scheduler_that_stops_answering_and_one_that_is_gone(processes, tmp_path):
    with (
        dask.config.set({"distributed.comm.timeouts.tcp": "12s"}),
        connect(processes.address, timeout=3) as client,
    ):
        processes.start_worker()
        engine = DaskEngine(client)
        function = slow(tmp_path, 0.2)
        finish = in_background(lambda: engine.tree_sum(function, ITEMS, tasks.add))
        wait_until(lambda: n_begun(tmp_path) > 4)
        processes.scheduler.send_signal(signal.SIGSTOP)
        start = time.monotonic()
        with pytest.raises(SchedulerLostError, match="has not answered for 12 s"):
            finish(60)
        assert time.monotonic() - start < 25
        processes.scheduler.send_signal(signal.SIGCONT)

        n = n_begun(tmp_path)
        finish = in_background(lambda: engine.tree_sum(function, ITEMS, tasks.add))
        wait_until(lambda: n_begun(tmp_path) > n + 4)
        processes.scheduler.kill()
        start = time.monotonic()
        with pytest.raises(SchedulerLostError, match="is gone, or has forgotten"):
            finish(60)
        assert time.monotonic() - start < 5
        with pytest.raises(SchedulerLostError, match="is gone, or has forgotten"):
            engine.tree_sum(abs, [1, 2], tasks.add)


def test_another_variegate_is_refused_at_the_start_and_later(processes, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(SOURCE, other)
    path = other / "variegate" / "_version.py"
    path.write_text(path.read_text().replace('"0.', '"99.'))
    with connect(processes.address) as client:
        processes.start_worker()
        engine = DaskEngine(client, no_workers_timeout=30)
        assert engine.tree_sum(abs, [1, 2], tasks.add) == 3
        processes.start_worker(source=other)
        wait_until(lambda: len(client.nthreads()) == 2)
        # The engine that has looked already: the worker itself refuses.
        with pytest.raises(VersionMismatchError, match=r"has Variegate 99\."):
            engine.tree_sum(partial(tasks.slow_wave, 0.3, 0.1), ITEMS, tasks.add)
        # A new one: at the start.
        with pytest.raises(VersionMismatchError, match=r"at tcp.* has Variegate 99\."):
            DaskEngine(client).tree_sum(abs, [1, 2], tasks.add)


def test_workers_end_with_the_process_that_started_them(tmp_path):
    code = (
        "import os, time\n"
        "if __name__ == '__main__':\n"
        "    from variegate.dask import local_cluster\n"
        "    with local_cluster(1) as client:\n"
        "        print(*client.run(os.getpid).values(), flush=True)\n"
        "        time.sleep(60)\n"
    )
    script = tmp_path / "script.py"
    script.write_text(code)
    for number, status in ((signal.SIGTERM, -15), (signal.SIGKILL, -9)):
        with subprocess.Popen(
            [sys.executable, str(script)],
            env=os.environ | {"PYTHONPATH": str(SOURCE)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process:
            pid = int(process.stdout.readline())
            process.send_signal(number)
            assert process.wait(60) == status
        wait_until(lambda pid=pid: not is_alive(pid))


def certificate(folder):
    """Make a certificate that is its own authority."""
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=cluster "
        "-keyout key.pem -out cert.pem"
    )
    subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
    return folder / "cert.pem", folder / "key.pem"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_an_encrypted_cluster_is_reached_with_certificates_of_dask(
    tmp_path,
):
    cert, key = certificate(tmp_path)
    names = {"--tls-ca-file": cert, "--tls-cert": cert, "--tls-key": key}
    options = [str(word) for pair in names.items() for word in pair]
    cluster = ProcessCluster(tmp_path, ["--protocol", "tls", *options])
    try:
        cluster.start_worker()
        config = {
            "distributed.comm.tls.ca-file": str(cert),
            "distributed.comm.tls.client.cert": str(cert),
            "distributed.comm.tls.client.key": str(key),
        }
        with dask.config.set(config), connect(cluster.address) as client:
            assert DaskEngine(client).tree_sum(abs, [1, -2], tasks.add) == 3
        with (
            pytest.raises(ValueError, match="an encrypted connection to tls://127"),
            connect(cluster.address),
        ):
            pass
        with (
            pytest.raises(SchedulerLostError, match="no scheduler answers"),
            connect(cluster.address.replace("tls:", "tcp:"), timeout=2),
        ):
            pass
    finally:
        cluster.close()
