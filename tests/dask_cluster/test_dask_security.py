"""Other users of this machine are refused by clusters that Variegate starts."""

import json
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest
from distributed import Client, LocalCluster

from variegate.dask import local_cluster

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(
        getattr(os, "geteuid", lambda: 1)() != 0,
        reason="needs root, to become another user",
    ),
]

#: Becomes the user nobody, and asks every address who it is in every way that does not
#: need the certificate of the cluster.
ATTACK = """
import asyncio, json, os, pwd, ssl, sys, urllib.error, urllib.request
from distributed.core import rpc
from distributed.security import Security

nobody = pwd.getpwnam("nobody")
own = Security.temporary()
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
os.setgroups([])
os.setgid(nobody.pw_gid)
os.setuid(nobody.pw_uid)

async def ask(address, security=None):
    options = {} if security is None else security.get_connection_args("client")
    async with rpc(address, connection_args=options, timeout=3) as server:
        return await asyncio.wait_for(server.identity(), 3)

async def handshake(address):
    host, port = address.split("://")[1].split(":")
    reader, writer = await asyncio.open_connection(host, port, ssl=context)
    data = await asyncio.wait_for(reader.read(1), 3)
    writer.close()
    return data

async def attempt(work):
    try:
        return bool(await work)
    except (OSError, ValueError, TimeoutError, EOFError):
        return False

def is_answered(port, path):
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=3)
    except urllib.error.HTTPError as error:
        return error.code != 404
    return True

def pages(port):
    site = urllib.request.urlopen(f"http://127.0.0.1:{port}/sitemap.json", timeout=3)
    listed = {*json.load(site)["paths"]} - {"/sitemap.json"}
    known = {"/", "/status", "/health", "/metrics", "/json/identity.json"}
    return [path for path in {*listed, *known} if is_answered(port, path)]

async def main():
    addresses, ports = json.loads(sys.argv[1])
    found = {}
    for address in addresses:
        plain = address.replace("tls:", "tcp:")
        encrypted = plain.replace("tcp:", "tls:")
        found[address] = [
            await attempt(ask(plain)),
            await attempt(ask(encrypted, own)),
            await attempt(handshake(encrypted)),
        ]
    served = [path for port in ports for path in pages(port)]
    print(json.dumps([os.getuid(), found, served]))

asyncio.run(main())
"""


def attack(client):
    """Return addresses of a cluster where another user is let in, and HTTP pages."""
    workers = client.scheduler_info(n_workers=-1)["workers"]
    addresses = [client.scheduler.address, *workers]
    addresses += [worker["nanny"] for worker in workers.values()]
    dask_ports = {int(address.rsplit(":", 1)[1]) for address in addresses}
    pids = {os.getpid(), *client.run(os.getpid).values()}
    ports = {
        connection.laddr.port
        for pid in pids
        for connection in psutil.Process(pid).net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }
    # No port is forgotten: the others speak HTTP.
    others = sorted(ports - dask_ports)
    done = subprocess.run(
        [sys.executable, "-c", ATTACK, json.dumps([addresses, others])],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    user, found, pages = json.loads(done.stdout)
    assert user != 0
    assert sorted(found) == sorted(addresses)
    return {address for address, ways in found.items() if any(ways)}, pages


def test_another_user_reaches_no_process_of_a_local_cluster():
    with local_cluster(2) as client:
        assert attack(client) == (set(), [])


def test_another_user_reaches_every_process_of_a_cluster_without_tls():
    # The attack works where nothing hinders it.
    with (
        LocalCluster(
            n_workers=1, processes=True, protocol="tcp://", host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):  # fmt: skip
        reached, pages = attack(client)
    assert len(reached) == 3
    assert pages != []


def test_temporary_files_are_not_in_a_folder_that_others_can_change(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    shared = tmp_path / "dask-scratch-space"  # where Dask would put its files
    shared.mkdir()
    os.chmod(shared, 0o777)
    os.chown(shared, 65534, 65534)
    with local_cluster(1) as client:
        used = [
            client.cluster.scheduler.local_directory,
            *(
                worker["local_directory"]
                for worker in client.scheduler_info()["workers"].values()
            ),
        ]
        for folder in map(Path, used):
            assert shared not in folder.parents
            assert any(is_private(parent) for parent in folder.parents)
    assert list(shared.iterdir()) == []
    assert list(tmp_path.iterdir()) == [shared]


def is_private(folder):
    found = folder.stat()
    return found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) == 0o700
