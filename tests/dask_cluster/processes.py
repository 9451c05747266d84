"""A cluster whose scheduler and workers are processes of their own, to be killed."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

HERE = Path(__file__).parent
SOURCE = HERE.parent.parent / "src"


def is_alive(pid):
    """Whether a process is there, and not only waiting to be buried."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def wait_until(condition, seconds=120.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


class ProcessCluster:
    """Starts ``dask scheduler`` and ``dask worker``, and ends all of them.

    ``security`` are options of both about encryption.
    """

    def __init__(self, folder, security=()):
        self.folder = Path(folder)
        self.security = security
        self.scheduler_file = self.folder / "scheduler.json"
        self.processes = []
        self.workers = []
        self.scheduler = self._start(
            "scheduler", "--host", "127.0.0.1", "--port", "0",
            "--dashboard-address", "127.0.0.1:0",
            "--scheduler-file", str(self.scheduler_file),
        )  # fmt: skip
        wait_until(self.scheduler_file.exists)
        self.address = json.loads(self.scheduler_file.read_text())["address"]

    def start_worker(self, source=SOURCE, nanny=False):
        worker = self._start(
            "worker", self.address, "--nthreads", "1",
            "--nanny" if nanny else "--no-nanny",
            "--no-dashboard", "--host", "127.0.0.1",
            "--local-directory", str(self.folder), source=source,
        )  # fmt: skip
        self.workers.append(worker)
        return worker

    def _start(self, kind, *arguments, source=SOURCE):
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(source), str(HERE)]),
            "OPENBLAS_NUM_THREADS": "1",
        }
        with open(self.folder / f"{kind}-{len(self.processes)}.log", "wb") as log:
            module = f"distributed.cli.dask_{kind}"
            process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments, *self.security],
                env=environment,
                cwd=self.folder,
                stdout=log,
                stderr=log,
            )
        self.processes.append(process)
        return process

    def kill_workers(self):
        for worker in self.workers:
            worker.kill()
            worker.wait()
        self.workers.clear()

    def close(self):
        for process in self.processes:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()
