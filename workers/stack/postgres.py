"""The local stack's PostgreSQL: one cluster, reachable only over a Unix socket."""

import errno
import os
import shutil
import signal
import subprocess
import tempfile
from functools import partial
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.pq import PGconn, Ping

from cotrail.common.humanize import size
from cotrail.errors import UnavailableError
from cotrail.workers.health import Problem
from cotrail.workers.stack.place import Place, give, make_link, make_ready
from cotrail.workers.stack.process import Service, credentials

PORT = 5432
"""No TCP port is opened: the number only names the socket."""

SOCKET = f".s.PGSQL.{PORT}"
DATABASE = "cotrail"

PATIENCE_SECONDS = 2
"""How long an answer may take."""

LEAST_FREE = 16 * 2**20
"""Bytes that have to be free: PostgreSQL stops where the next 16 MiB of its log don't fit."""

ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C"}
"""PostgreSQL's whole environment: the user's own PG variables mustn't change how it runs."""

INITDB = (
    "--username=postgres",
    "--auth-local=trust",
    "--auth-host=reject",
    "--encoding=UTF8",
    "--locale=C",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
)


def postgres(place: Place, sockets: Path) -> Service:
    """Return PostgreSQL as a service, which is ready once the database `cotrail` exists."""
    seen, real = sockets / SOCKET, place.sockets / SOCKET
    return Service(
        name="postgres",
        command=(str(place.programs / "postgres"), "-D", str(place.data), *_options(place)),
        folder=place.data,
        environment=ENVIRONMENT,
        prepare=partial(_prepare, place, seen, real),
        ready=partial(_answers, sockets),
        problem=partial(_problem, place, sockets),
        # The process id in a stale postmaster.pid may belong to another process by now: PostgreSQL then wouldn't start.
        transient=(place.data / "postmaster.pid", seen, real, real.with_name(f"{SOCKET}.lock")),
        title=place.title,
        user=place.user,
        stop_signal=signal.SIGINT,  # the fast shutdown: it doesn't wait for clients to leave
        stop_seconds=30,
    )


def _options(place: Place) -> list[str]:
    options = {
        "listen_addresses": "",
        "port": str(PORT),
        "unix_socket_directories": '"{}"'.format(str(place.sockets).replace('"', '""')),
        "unix_socket_permissions": "0700",
        "cluster_name": place.title,
        "shared_buffers": "128MB",
        "max_connections": "100",
        "fsync": "on",
        "synchronous_commit": "on",
        "full_page_writes": "on",
    }
    return [part for name, value in options.items() for part in ("-c", f"{name}={value}")]


def _prepare(place: Place, seen: Path, real: Path) -> None:
    make_ready(place)
    if not place.data.exists():
        _make_cluster(place)
    make_link(place)
    if seen != real:
        seen.symlink_to(real)


def _make_cluster(place: Place) -> None:
    """Make the data folder under another name and rename it, so that one which exists is complete."""
    for abandoned in place.data.parent.glob("postgres-new-*"):
        shutil.rmtree(abandoned, ignore_errors=True)
    cluster = Path(tempfile.mkdtemp(dir=place.data.parent, prefix="postgres-new-"))
    if place.user is not None:
        give(cluster, place.user)
    command = [str(place.programs / "initdb"), "-D", str(cluster), *INITDB]
    made = subprocess.run(
        command, check=False, cwd="/", env=ENVIRONMENT, capture_output=True, text=True, **credentials(place.user)
    )
    if made.returncode != 0:
        raise UnavailableError(_unmade(place, made.stderr.strip()))
    cluster.rename(place.data)


def _unmade(place: Place, output: str) -> str:
    if os.strerror(errno.ENOSPC) in output or os.strerror(errno.EDQUOT) in output:
        free = shutil.disk_usage(place.data.parent).free
        return (
            f"the disk of {place.data.parent} is full: {size(free)} are free, and PostgreSQL needs about 60 MiB to "
            "begin; make room, or set COTRAIL_HOME to a folder on another disk"
        )
    return f"PostgreSQL's data can't be made in {place.data}: {output}"


def _answers(sockets: Path) -> bool:
    try:
        with psycopg.connect(
            host=str(sockets), port=PORT, user="postgres", dbname="postgres", connect_timeout=5, autocommit=True
        ) as connection:
            if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone() is None:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))
    except psycopg.OperationalError:
        return False
    return True


def _problem(place: Place, sockets: Path) -> Problem | None:
    """Return what keeps PostgreSQL from recording."""
    address = f"host='{_quoted(sockets)}' port={PORT} user=postgres dbname=postgres connect_timeout={PATIENCE_SECONDS}"
    match PGconn.ping(os.fsencode(address)):
        case Ping.REJECT:
            return Problem(said="it is starting, or recovers what it recorded before it ended", starting=True)
        case Ping.NO_RESPONSE | Ping.NO_ATTEMPT:
            return Problem(said="it doesn't answer", restart=True)
    free = shutil.disk_usage(place.data).free
    if free < LEAST_FREE:
        return Problem(said=f"its disk is full: {free / 2**20:.0f} MiB are free in {place.data.resolve()}")
    return None


def _quoted(path: Path) -> str:
    """Return a path as libpq reads it between single quotes."""
    return str(path).replace("\\", "\\\\").replace("'", "\\'")
