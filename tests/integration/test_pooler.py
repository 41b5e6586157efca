"""A real PgBouncer before the database: in session mode everything works, in transaction mode it is refused."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from pydantic import SecretStr
from sqlalchemy import Engine, create_engine, func, select, text

from benchmarks.contenders.cotrail import submission
from benchmarks.contenders.workers import alternating, running
from cotrail.configuration.settings import Settings
from cotrail.errors import InputError
from cotrail.models.commands.submission import submit
from cotrail.models.schema.database import BY_INDEX, SESSION_SETTINGS, connect
from cotrail.models.schema.states import StepState
from cotrail.models.schema.tables import steps
from cotrail.systems.registry import find_system
from cotrail.workers.leading import session
from cotrail.workers.stack.postgres import find_place, give
from cotrail.workers.stack.process import credentials
from tests.conftest import Eventually, wait_until
from tests.faults.stacked import ROOT, open_questions
from tests.integration.conftest import Cotrail
from tests.integration.stepping import STEPS, ask
from tests.integration.test_deployment import free_port

PROGRAM = shutil.which("pgbouncer", path=f"{os.environ['PATH']}{os.pathsep}/usr/sbin")
SERVERS = 40
"""How many connections to PostgreSQL the pooler may have."""

CONFIGURATION = """
[databases]
* = host={sockets} port=5432 user=postgres
[pgbouncer]
pool_mode = {mode}
default_pool_size = {servers}
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
"""

WANTED = {
    name: value.strip("'")
    for name, value in (setting.split(" = ") for setting in (*SESSION_SETTINGS, *BY_INDEX))
    if not name.startswith("tcp_")
}
"""How sessions are set, but for TCP: the pooler here reaches PostgreSQL by a Unix socket."""

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="PgBouncer isn't installed")

Pooled = Callable[[str], str]


@pytest.fixture
def pooled(servers: Settings, database: str, engine: Engine) -> Iterator[Pooled]:
    """Starts a pooler in a mode; the URL of the tests' database behind it."""
    place = find_place(servers.home.absolute(), servers.socket_path)
    folder, port = Path(tempfile.mkdtemp(prefix="cp-")), free_port()
    if place.user is not None:
        give(folder, place.user)
    started: list[subprocess.Popen[bytes]] = []

    def start(mode: str) -> str:
        configuration = folder / "pgbouncer.ini"
        configuration.write_text(CONFIGURATION.format(sockets=place.sockets, mode=mode, port=port, servers=SERVERS))
        with (folder / "log").open("wb") as log:
            command = [str(PROGRAM), str(configuration)]
            own = credentials(place.user)
            started.append(subprocess.Popen(command, cwd="/", stdout=log, stderr=log, **own))
        url = f"postgresql+psycopg://postgres@127.0.0.1:{port}/{database.rsplit('/', 1)[1].split('?')[0]}"
        wait_until(lambda: answers(url), "the pooler answers")
        return url

    yield start
    for process in started:
        process.kill()
        process.wait(30)
    shutil.rmtree(folder)


def answers(url: str) -> bool:
    try:
        psycopg.connect(plain(url)).close()
    except psycopg.OperationalError:
        return False
    return True


def plain(url: str) -> str:
    return url.replace("+psycopg", "")


@pytest.fixture
def pooled_settings(servers: Settings) -> Callable[[str], Settings]:
    def of(url: str) -> Settings:
        return Settings(home=servers.home, database_url=SecretStr(plain(url)), broker_url=SecretStr(servers.broker))

    return of


def shown(engine: Engine) -> tuple[int, dict[str, str]]:
    """The server process of a session that has rolled back, and how the session is set."""
    with engine.connect() as connection:
        connection.rollback()
        pid = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
        query = text("SELECT name, setting FROM pg_settings WHERE name = ANY(:names)")
        return pid, {row.name: row.setting for row in connection.execute(query, {"names": list(WANTED)})}


def test_each_client_sets_up_the_session_that_it_gets(pooled: Pooled) -> None:
    url = pooled("session")
    pids = set()
    for _ in range(3):
        engine = connect(url, by_index=True)
        pid, settings = shown(engine)
        assert settings == WANTED
        pids.add(pid)
        engine.dispose()
    assert len(pids) < 3, "no session was used twice"
    bare = create_engine(url)
    assert shown(bare)[1] != WANTED
    bare.dispose()


def test_statements_that_many_clients_prepare_do_not_meet(pooled: Pooled) -> None:
    url = pooled("session")
    for _ in range(3):
        engine = connect(url)
        with engine.connect() as connection:
            found = [connection.execute(text("SELECT CAST(:n AS int)"), {"n": n}).scalar_one() for n in range(20)]
        assert found == list(range(20))
        engine.dispose()


def test_a_leader_that_is_gone_frees_its_lock(pooled: Pooled, eventually: Eventually) -> None:
    client = connect(pooled("session"))
    with suppress(psycopg.OperationalError), session(client, 1.0) as first, session(client, 1.0) as second:
        assert first.lead()
        assert not second.lead()
        with socket.socket(fileno=os.dup(first._connection.fileno())) as cut:
            cut.shutdown(socket.SHUT_RDWR)
        eventually(second.lead, "the other one leads")
        with pytest.raises(psycopg.OperationalError):
            first.lead()
    client.dispose()


def test_a_run_is_carried_out_over_it(
    pooled: Pooled, servers: Settings, engine: Engine, tmp_path: Path, eventually: Eventually
) -> None:
    url, asked = pooled("session"), 10
    variables = {
        "COTRAIL_HOME": str(tmp_path),
        "COTRAIL_DATABASE_URL": plain(url),
        "COTRAIL_BROKER_URL": servers.broker,
        "COTRAIL_BROKER_PREFIX": f"{uuid4()}:",
        "COTRAIL_SWEEP_SECONDS": "60",  # so that a notification has to come
    }
    workers = alternating("benchmarks.costless_worker", ("reason,read", "retrieve"), "threads", 8, 2)
    client = connect(url)
    with running([*workers, ["cotrail.workers.maintenance"]], variables):
        submit(client, submission(), ask(asked), find_system)
        eventually(lambda: open_questions(engine, "costless") == 0, "the run is finished", 45)
    client.dispose()
    with engine.begin() as connection:
        finished = select(func.count()).where(steps.c.state == StepState.FINISHED)
        assert connection.execute(finished).scalar_one() == asked * STEPS


@pytest.mark.parametrize("mode", ["transaction", "statement"])
def test_a_pooler_that_keeps_no_sessions_is_refused(
    pooled: Pooled, cotrail: Cotrail, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    url = pooled(mode)
    engine = connect(url)
    for _ in range(2):
        with pytest.raises(InputError, match="set its pool_mode to session"):
            engine.connect()
    engine.dispose()
    monkeypatch.setenv("COTRAIL_DATABASE_URL", plain(url))
    refused = cotrail("runs")
    assert isinstance(refused.exception, InputError)
    command = [sys.executable, "-m", "cotrail.workers.maintenance"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2
    assert "set its pool_mode to session" in ended.stderr
