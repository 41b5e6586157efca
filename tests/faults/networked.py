"""Processes on hosts of their own: network namespaces between which packets can be dropped silently."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ipaddress import ip_network
from pathlib import Path

import pytest
from msgspec.structs import replace
from psycopg import connect
from pydantic import SecretStr

from cotrail.configuration.settings import Settings
from cotrail.models.schema.database import LEADER
from cotrail.models.schema.migrating import migrate
from cotrail.workers.health import VARIABLE
from cotrail.workers.stack.postgres import find_place, postgres, redis
from cotrail.workers.stack.process import Processes, Service
from tests.conftest import wait_until
from tests.faults.stacked import ROOT
from tests.faults.working import OPTIONS, QUEUES, QUICK

NOBODY = "02:00:00:00:00:77"
"""A hardware address that no host has: packets sent there are lost."""

SUBNET = ip_network("198.18.0.0/15")
"""That of network benchmarks (RFC 2544): no machine has an address in it."""

WORKER = ("-m", "celery", "-A", "tests.faults.frail_worker", "worker", "-Q", QUEUES, *OPTIONS.split())
MAINTENANCE = ("-m", "cotrail.workers.maintenance")
HOSTS = {"first": MAINTENANCE, "second": MAINTENANCE, "near": WORKER, "far": WORKER}
SERVERS = ("postgres", "redis")
PORTS = {"postgres": 5432, "redis": 6379}


def allowed() -> bool:
    """Return whether this account may create network namespaces here, and has `ip` to do so."""
    name = f"cq-try-{os.getpid()}"
    if shutil.which("ip") is None or _ip("netns", "add", name, check=False):
        return False
    return _ip("netns", "del", name, check=False) == 0


def _ip(*words: str, check: bool = True) -> int:
    return subprocess.run(["ip", *words], check=check, capture_output=True).returncode


class Host:
    """A namespace with one process, and a link that has an address for each server at both ends.

    number: from 0; the addresses follow from it and from this process's id, so that links which an interrupted run of
    tests left behind lead nobody astray.
    """

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.namespace = f"cq{os.getpid()}-{number}"
        self.outer = f"cq{os.getpid() % 100_000}x{number}"
        links = {
            server: SUBNET[4 * (8 * (os.getpid() % 4096) + 2 * number + place)] for place, server in enumerate(SERVERS)
        }
        self.servers = {server: str(link + 1) for server, link in links.items()}
        self.own = {server: str(link + 2) for server, link in links.items()}
        self.process: subprocess.Popen[bytes] | None = None

    def make(self) -> None:
        _ip("netns", "add", self.namespace)
        _ip("link", "add", self.outer, "type", "veth", "peer", "name", "wire", "netns", self.namespace)
        for server in SERVERS:
            _ip("address", "add", f"{self.servers[server]}/30", "dev", self.outer)
            self._inside("address", "add", f"{self.own[server]}/30", "dev", "wire")
        _ip("link", "set", self.outer, "up")
        self._inside("link", "set", "lo", "up")
        self._inside("link", "set", "wire", "up")

    def remove(self) -> None:
        if self.process is not None:
            with suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait(30)
        _ip("link", "del", self.outer, check=False)
        _ip("netns", "del", self.namespace, check=False)

    def cut(self, server: str, *, there: bool = True, back: bool = True) -> None:
        """Drops packets to a server, from it, or both."""
        if there:
            self._inside("neigh", "replace", self.servers[server], "lladdr", NOBODY, "nud", "permanent", "dev", "wire")
        if back:
            _ip("neigh", "replace", self.own[server], "lladdr", NOBODY, "nud", "permanent", "dev", self.outer)

    def mend(self) -> None:
        """Stops dropping packets."""
        for server in SERVERS:
            _ip("neigh", "del", self.own[server], "dev", self.outer, check=False)
            self._inside("neigh", "del", self.servers[server], "dev", "wire", check=False)

    def start(self, home: Path) -> None:
        environment = {
            **os.environ,
            **QUICK,
            "COTRAIL_HOME": str(home),
            "COTRAIL_DATABASE_URL": f"postgresql://postgres@{self.servers['postgres']}:{PORTS['postgres']}/cotrail",
            "COTRAIL_BROKER_URL": f"redis://{self.servers['redis']}:{PORTS['redis']}/0",
            VARIABLE: str(home / f"{self.name}.ready"),
        }
        command = ["ip", "netns", "exec", self.namespace, sys.executable, *HOSTS[self.name]]
        with (home / f"{self.name}.log").open("ab") as log:
            self.process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def _inside(self, *words: str, check: bool = True) -> None:
        _ip("-n", self.namespace, *words, check=check)


class Network:
    """A PostgreSQL and a Redis, and two maintenance processes and two workers, each on a host of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.hosts = {name: Host(name, number) for number, name in enumerate(HOSTS)}
        self.settings = Settings(home=home, database_url=None, broker_url=SecretStr("redis://127.0.0.1:6379/0"))
        self._processes = Processes(home)
        self._services: list[Service] = []

    def start(self) -> None:
        for host in self.hosts.values():
            host.make()
        self._start_servers()
        migrate(self.settings.database)
        for host in self.hosts.values():
            host.start(self.home)
        wait_until(lambda: all((self.home / f"{name}.ready").exists() for name in HOSTS), "all processes work")

    def stop(self) -> None:
        for host in self.hosts.values():
            host.remove()
        self._processes.stop(*self._services)
        shutil.rmtree((self.home / "postgres").resolve().parent)

    def mend(self) -> None:
        for host in self.hosts.values():
            host.mend()

    def leader(self) -> Host | None:
        """The host whose maintenance process has the lock."""
        query = """
            SELECT host(client_addr) FROM pg_locks JOIN pg_stat_activity USING (pid)
            WHERE locktype = 'advisory' AND granted AND objid = %s
        """
        with connect(self.settings.database.replace("+psycopg", "")) as connection:
            addresses = [row[0] for row in connection.execute(query, [LEADER])]
        return next((host for host in self.hosts.values() if host.own["postgres"] in addresses), None)

    def log(self, name: str) -> str:
        return (self.home / f"{name}.log").read_text()

    def _start_servers(self) -> None:
        sockets = self.settings.socket_path
        for folder in (self.home / "run", sockets):
            folder.mkdir(mode=0o700, exist_ok=True)
        self._services = [self._postgres(sockets), self._redis(sockets)]
        self._processes.start(*self._services)

    def _postgres(self, sockets: Path) -> Service:
        """Makes the stack's PostgreSQL listen to the hosts too."""
        place = find_place(self.home, sockets)
        service = postgres(place, sockets)
        addresses = ",".join(host.servers["postgres"] for host in self.hosts.values())
        listening = [part.replace("listen_addresses=", f"listen_addresses={addresses}") for part in service.command]

        def prepare() -> None:
            service.prepare()
            rules = place.data / "pg_hba.conf"
            # Before the lines that refuse network clients.
            rules.write_text(f"host all all {SUBNET} trust\n{rules.read_text()}")

        return replace(service, command=tuple(listening), prepare=prepare)

    def _redis(self, sockets: Path) -> Service:
        service = redis(self.home, sockets)
        addresses = [host.servers["redis"] for host in self.hosts.values()]
        options = ["--bind", *addresses, "--port", str(PORTS["redis"]), "--protected-mode", "no"]
        command = [*service.command, *options]
        return replace(service, command=tuple(command))


@contextmanager
def network() -> Iterator[Network]:
    """Starts one; removes it at the end."""
    own = Network(Path(tempfile.mkdtemp(prefix="cw-")))
    try:
        own.start()
        yield own
    except pytest.fail.Exception as failed:
        for log in sorted(own.home.glob("*.log")):
            failed.add_note(f"{log.name}:\n{log.read_text()[-4000:]}")
        raise
    finally:
        own.stop()
        shutil.rmtree(own.home)
