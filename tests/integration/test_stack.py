"""The local stack: real PostgreSQL and Redis, and stand-ins for the workers."""

import http.server
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

import msgspec
import psutil
import psycopg
import pytest
from redis import Redis
from typer.testing import CliRunner

from cotrail.common.processes import TUNED
from cotrail.configuration.settings import Settings, settings
from cotrail.errors import InputError, UnavailableError
from cotrail.workers import health
from cotrail.workers.stack import postgres, python, web
from cotrail.workers.stack.process import Processes, ProcessRecord, Service, alive, leftovers
from cotrail.workers.stack.python import code_on_disk, package_folder
from cotrail.workers.stack.stack import Stack
from cotrail.workers.stack.status import State
from cotrail.workers.stack.web import HOST, listening, port_of
from tests.conftest import wait_until

SECONDS = 20
"""How long a condition may take to come true."""

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root's PostgreSQL runs under another account")


@pytest.fixture
def new_home() -> Iterator[Callable[..., Path]]:
    """Short homes, as sockets have short names; whatever runs in them is stopped at the end."""
    homes: list[Path] = []

    def make(name: str = "home") -> Path:
        homes.append(Path(tempfile.mkdtemp(prefix="cs-")) / name)
        return homes[-1]

    yield make
    for home in homes:
        Stack(Settings(home=home)).remove()
        shutil.rmtree(home.parent)


@pytest.fixture
def new_service(new_home: Callable[..., Path]) -> Iterator[Callable[..., tuple[Processes, Service]]]:
    """Services of Python code, with the processes of a home of their own."""
    made: list[tuple[Processes, Service]] = []

    def make(program: str, **options: object) -> tuple[Processes, Service]:
        home = new_home()
        (home / "run").mkdir(parents=True)
        file = home / "run" / "worker.ready"
        service = Service(
            name="worker",
            command=(sys.executable, "-c", program),
            folder=home / "work",
            environment={**os.environ, health.VARIABLE: str(file)},
            ready=file.exists,
            transient=(file,),
        )
        made.append((Processes(home), msgspec.structs.replace(service, **options)))
        return made[-1]

    yield make
    for processes, service in made:
        processes.stop(msgspec.structs.replace(service, stop_seconds=0.1))


def open_stack(home: Path) -> Stack:
    stack = Stack(Settings(home=home))
    stack.start_servers()
    return stack


def database(home: Path) -> "psycopg.Connection[tuple[object, ...]]":
    sockets = Settings(home=home).socket_path
    return psycopg.connect(host=str(sockets), port=5432, user="postgres", dbname="cotrail", autocommit=True)


def broker(home: Path) -> Redis:
    return Redis(unix_socket_path=str(Settings(home=home).socket_path / "redis.sock"))


def pid_of(stack: Stack, name: str) -> int:
    pid = next(status.pid for status in stack.status() if status.name == name)
    assert pid is not None
    return pid


def test_a_home_that_can_not_be_made_is_refused_with_what_to_do() -> None:
    with pytest.raises(InputError, match="set COTRAIL_HOME to another folder"):
        Stack(Settings(home=Path("/proc/cotrail"))).start_servers()


def state_of(stack: Stack, name: str) -> State:
    return next(status.state for status in stack.status() if status.name == name)


def kill(pid: int) -> None:
    process = psutil.Process(pid)
    process.kill()
    process.wait(SECONDS)


def services(home: Path) -> list[Service]:
    chosen = Settings(home=home)
    return Stack(chosen)._servers()


def test_postgresql_and_redis_start_answer_and_stop_without_a_trace(new_home: Callable[..., Path]) -> None:
    home = new_home()
    stack = open_stack(home)
    with database(home) as connection:
        shown = connection.execute(
            "SELECT current_setting('fsync'), current_setting('synchronous_commit'),"
            " current_setting('listen_addresses')"
        ).fetchone()
    with broker(home) as client:
        kept = client.config_get("append*") | client.config_get("maxmemory-policy")
    running = [psutil.Process(pid_of(stack, name)) for name in ("postgres", "redis")]
    assert shown == ("on", "on", "")
    assert kept["appendonly"] == "yes"
    assert kept["appendfsync"] == "everysec"
    assert kept["maxmemory-policy"] == "noeviction"
    assert not [connection for process in running for connection in process.net_connections("inet")]

    assert stack.down()

    assert not any(alive(process) for process in running)
    assert not any(leftovers(service) for service in services(home))
    assert [path.name for path in (home / "run").iterdir()] == ["lock"]
    assert not [path for path in (home / "postgres").resolve().parent.iterdir() if path.is_socket()]
    assert {status.state for status in stack.status()} == {State.STOPPED}
    assert not stack.down()


def test_a_second_up_starts_nothing(new_home: Callable[..., Path]) -> None:
    stack = open_stack(new_home())
    before = [status.pid for status in stack.status()]
    stack.start_servers()
    assert [status.pid for status in stack.status()] == before


def test_two_ups_at_once_start_one_stack(new_home: Callable[..., Path]) -> None:
    home = new_home()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(open_stack, [home, home]))
    for service in services(home):
        assert len(servers(service)) == 1


def servers(service: Service) -> list[psutil.Process]:
    """Those of a service's processes that no other of them started; one that ends meanwhile was a server's child."""
    found = leftovers(service)
    pids = {process.pid for process in found}
    return [process for process in found if alive(process) and process.ppid() not in pids]


def test_two_homes_do_not_meet(new_home: Callable[..., Path]) -> None:
    homes = [new_home(), new_home()]
    stacks = [open_stack(home) for home in homes]
    for number, home in enumerate(homes):
        with database(home) as connection, broker(home) as client:
            connection.execute(f"CREATE TABLE only_{number} ()")
            client.set("number", number)
    stacks[0].down()
    with database(homes[1]) as connection, broker(homes[1]) as client:
        tables = connection.execute("SELECT relname FROM pg_class WHERE relname LIKE 'only%'").fetchall()
        assert client.get("number") == b"1"
    assert tables == [("only_1",)]


def test_a_home_with_a_long_and_odd_name_works(new_home: Callable[..., Path]) -> None:
    home = new_home('a "home", with spaces ' + "x" * 100)
    open_stack(home)
    with database(home) as connection, broker(home) as client:
        assert connection.execute("SELECT 1").fetchone() == (1,)
        assert client.ping()
    Stack(Settings(home=home)).down()
    assert not Settings(home=home).socket_path.exists()


def test_killed_redis_comes_back_with_its_messages(new_home: Callable[..., Path]) -> None:
    home = new_home()
    stack = open_stack(home)
    with broker(home) as client:
        client.rpush("queue", *range(200))
    kill(pid_of(stack, "redis"))
    assert state_of(stack, "redis") is State.DIED
    stack.start_servers()
    with broker(home) as client:
        assert client.llen("queue") == 200


def test_killed_postgresql_comes_back_with_its_rows_though_a_backend_still_works(new_home: Callable[..., Path]) -> None:
    home = new_home()
    stack = open_stack(home)
    with database(home) as connection:
        connection.execute("CREATE TABLE kept AS SELECT generate_series(1, 1000) AS number")
        connection.execute("CHECKPOINT")
        connection.execute("UPDATE kept SET number = number + 1")
        busy = threading.Thread(target=work_for_minutes, args=(home,))
        busy.start()
        backend = psutil.Process(busy_backend(connection))
    kill(pid_of(stack, "postgres"))
    assert alive(backend)
    assert state_of(stack, "postgres") is State.DIED

    stack.start_servers()

    busy.join(SECONDS)
    assert not alive(backend)
    with database(home) as connection:
        assert connection.execute("SELECT sum(number) FROM kept").fetchone() == (501_500,)


def work_for_minutes(home: Path) -> None:
    with suppress(psycopg.OperationalError), database(home) as connection:
        connection.execute(
            "SELECT /* a busy one */ count(*) FROM generate_series(1, 30000) a, generate_series(1, 300000) b"
        )


def busy_backend(connection: "psycopg.Connection[tuple[object, ...]]") -> int:
    query = "SELECT pid FROM pg_stat_activity WHERE query LIKE '%a busy one%' AND pid <> pg_backend_pid()"
    wait_until(lambda: connection.execute(query).fetchone() is not None)
    (pid,) = connection.execute(query).fetchone() or (None,)
    assert isinstance(pid, int)
    return pid


def test_down_after_a_killed_postgresql_ends_its_backends(new_home: Callable[..., Path]) -> None:
    home = new_home()
    stack = open_stack(home)
    busy = threading.Thread(target=work_for_minutes, args=(home,))
    busy.start()
    with database(home) as connection:
        busy_backend(connection)
    kill(pid_of(stack, "postgres"))
    assert stack.down()
    busy.join(SECONDS)
    assert not any(leftovers(service) for service in services(home))


def test_after_a_reboot_ids_of_other_processes_are_left_alone(new_home: Callable[..., Path]) -> None:
    home = new_home()
    stack = open_stack(home)
    for name in ("postgres", "redis"):
        kill(pid_of(stack, name))
    with subprocess.Popen(["sleep", "600"]) as stranger:
        for name in ("postgres", "redis"):
            write_record(home, name, stranger.pid)
        data = (home / "postgres").resolve()
        lines = [str(stranger.pid), str(data), "1", "5432", str(data.parent), "", "1 1", "ready"]
        (data / "postmaster.pid").write_text("\n".join(lines) + "\n")
        assert state_of(stack, "postgres") is State.DIED
        stack.start_servers()
        assert state_of(stack, "postgres") is State.RUNNING
        for name in ("postgres", "redis"):
            kill(pid_of(stack, name))
            write_record(home, name, stranger.pid)
        stack.down()
        assert stranger.poll() is None
        stranger.kill()


def write_record(home: Path, name: str, pid: int) -> None:
    started = psutil.Process(pid).create_time() - psutil.boot_time()
    record = ProcessRecord(pid=pid, started=started, boot="the former", command=("sleep",))
    (home / "run" / f"{name}.json").write_bytes(msgspec.json.encode(record))


def test_a_lost_record_does_not_make_a_second_server(new_home: Callable[..., Path]) -> None:
    home = new_home()
    stack = open_stack(home)
    before = psutil.Process(pid_of(stack, "redis"))
    (home / "run" / "redis.json").unlink()
    stack.start_servers()
    assert not alive(before)
    assert broker(home).ping()


def test_an_external_server_is_not_started(new_home: Callable[..., Path]) -> None:
    stack = Stack(Settings(home=new_home(), broker_url="redis://elsewhere/0", database_url="postgresql://elsewhere/x"))
    stack.start_servers()
    assert state_of(stack, "redis") is State.EXTERNAL
    assert state_of(stack, "postgres") is State.EXTERNAL
    assert not stack.down()


def test_a_socket_folder_of_somebody_else_is_refused(new_home: Callable[..., Path]) -> None:
    home = new_home()
    home.mkdir()
    (home / "run").symlink_to(tempfile.gettempdir())
    with pytest.raises(UnavailableError, match="folder of your own"):
        open_stack(home)
    (home / "run").unlink()


@as_root
def test_programs_that_the_account_cannot_reach_are_copied(
    new_home: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = package_folder(postgres.PACKAGE, extra="local").parent
    hidden, state = (Path(tempfile.mkdtemp(prefix="cs-")) for _ in range(2))
    for folder in packages.glob(f"{postgres.PACKAGE}*"):
        shutil.copytree(folder, hidden / folder.name)
    state.chmod(0o755)
    monkeypatch.setattr(postgres, "STATE", state)

    def folder_of(name: str, *, extra: str) -> Path:
        return hidden / name if name == postgres.PACKAGE else package_folder(name, extra=extra)

    monkeypatch.setattr(postgres, "package_folder", folder_of)
    home = new_home()
    stack = open_stack(home)
    copied = f"{state}/postgresql-{version(postgres.PACKAGE)}/"
    assert psutil.Process(pid_of(stack, "postgres")).exe().startswith(copied)
    stack.down()
    (home / "postgres").unlink()
    shutil.rmtree(hidden)
    shutil.rmtree(state)


@as_root
def test_root_opens_no_folder_of_the_home_to_the_account(new_home: Callable[..., Path]) -> None:
    home = new_home()
    open_stack(home)
    assert stat.S_IMODE(home.parent.stat().st_mode) == 0o700
    assert (home / "postgres").is_symlink()
    assert stat.S_IMODE((home / "postgres").resolve().parent.stat().st_mode) == 0o700


@as_root
def test_root_keeps_the_data_in_a_home_that_the_account_can_reach(new_home: Callable[..., Path]) -> None:
    home = new_home()
    home.parent.chmod(0o755)
    stack = open_stack(home)
    assert not (home / "postgres").is_symlink()
    stack.down()
    shutil.rmtree(postgres.find_place(home, Settings(home=home).socket_path).sockets)


@as_root
def test_lost_data_is_an_error_rather_than_an_empty_database(new_home: Callable[..., Path]) -> None:
    home = new_home()
    stack = open_stack(home)
    stack.down()
    data = (home / "postgres").resolve()
    moved = data.rename(data.with_name("moved"))
    with pytest.raises(UnavailableError, match="leads nowhere"):
        stack.start_servers()
    moved.rename(data)


def processes_of(home: Path) -> list[psutil.Process]:
    """Those with the home in their environment."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("COTRAIL_HOME") == str(home) and alive(process):
                found.append(process)
    return found


class Answering(http.server.ThreadingHTTPServer):
    """A server on a socket that listens already; it answers everything with these headers."""

    def __init__(self, listener: socket.socket, headers: dict[str, str]) -> None:
        super().__init__((HOST, 0), self._handler(headers), bind_and_activate=False)
        self.socket.close()
        self.socket, self.headers = listener.dup(), headers
        threading.Thread(target=self.serve_forever, args=(0.01,)).start()

    def server_close(self) -> None:
        self.shutdown()
        super().server_close()

    @staticmethod
    def _handler(headers: dict[str, str]) -> type[http.server.BaseHTTPRequestHandler]:
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        return Handler


READY = "from cotrail.workers.health import announce; announce('worker'); "


def test_a_worker_is_waited_for_until_it_announces_itself(
    new_service: Callable[..., tuple[Processes, Service]],
) -> None:
    processes, service = new_service(READY + "import signal; signal.pause()")
    processes.start(service)
    assert service.transient[0].read_text().startswith("worker ")
    assert processes.stop(service)
    assert not service.transient[0].exists()


def test_outside_of_the_stack_an_announcement_is_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(health.VARIABLE, raising=False)
    health.announce("worker")


def test_a_worker_that_ends_as_it_starts_is_an_error_with_its_last_words(
    new_service: Callable[..., tuple[Processes, Service]],
) -> None:
    processes, service = new_service("print('no such model')")
    with pytest.raises(UnavailableError, match=r"(?s)worker ended as it started.*no such model"):
        processes.start(service)
    assert processes.find("worker") is None


def test_a_worker_that_shows_no_life_is_given_up(new_service: Callable[..., tuple[Processes, Service]]) -> None:
    code = "import signal; print('I wait for a lock', flush=True); signal.pause()"
    processes, service = new_service(code, stall_seconds=2.0)
    with pytest.raises(
        UnavailableError, match=r"has shown no life for .*I wait for a lock.*read .*worker.log, then"
    ) as said:
        processes.start(service)
    assert "worker.log, then `cotrail up` again" in str(said.value)
    assert len(str(said.value).splitlines()) == 1
    assert not leftovers(service)
    assert not processes.recorded("worker")


def test_a_worker_that_lives_and_is_never_ready_is_given_up_at_last(
    new_service: Callable[..., tuple[Processes, Service]],
) -> None:
    processes, service = new_service("while True: pass", start_seconds=1.0)
    with pytest.raises(UnavailableError, match="isn't ready after"):
        processes.start(service)
    assert not leftovers(service)


@pytest.mark.parametrize("sign", ["print('loading', flush=True)", "sum(range(3_000_000))"])
def test_a_worker_that_lives_is_waited_for_and_shown(
    new_service: Callable[..., tuple[Processes, Service]], sign: str
) -> None:
    code = f"import time\nfor _ in range(16):\n    {sign}; time.sleep(0.25)\n{READY}import signal; signal.pause()"
    processes, service = new_service(code, stall_seconds=2.5)
    said: list[str] = []
    with processes.starting(said.append) as start:
        start(service)
    assert processes.find("worker")
    assert any("worker is starting, for 2 s" in each for each in said)
    assert any("loading" in each for each in said) == ("loading" in sign)


def test_a_process_that_has_loaded_other_code_is_replaced_and_others_go_on(
    new_service: Callable[..., tuple[Processes, Service]],
) -> None:
    code = ["the first"]
    processes, service = new_service(READY + "import signal; signal.pause()", code=lambda: code[0])
    found: list[int] = []
    for current in ("the first", "the first", "the next", "the next"):
        code[0] = current
        processes.start(service)
        (running,) = leftovers(service)
        found.append(running.pid)
    assert found[0] == found[1] != found[2] == found[3]


def test_the_code_of_a_stack_s_processes_is_known_by_all_files_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("__init__.py", "models/tables.py", "__pycache__/tables.pyc"):
        (tmp_path / "package" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "package" / name).write_text("1")
    (tmp_path / "workers").mkdir()
    (tmp_path / "package" / "workers").symlink_to("../workers")
    monkeypatch.setattr("cotrail.__file__", str(tmp_path / "package" / "__init__.py"))
    seen = [code_on_disk()]
    (tmp_path / "package" / "__pycache__" / "tables.pyc").write_text("2")
    assert code_on_disk() == seen[0]
    for change in ("package/models/tables.py", "workers/app.py"):
        (tmp_path / change).write_text("2")
        seen.append(code_on_disk())
    assert len(set(seen)) == 3


def test_a_start_that_is_given_up_leaves_nothing_of_its_own(
    new_service: Callable[..., tuple[Processes, Service]],
) -> None:
    processes, good = new_service(READY + "import signal; signal.pause()")
    bad = msgspec.structs.replace(good, name="bad", command=(sys.executable, "-c", "1/0"), folder=good.folder / "bad")
    bad = msgspec.structs.replace(bad, ready=lambda: False, transient=())
    with pytest.raises(UnavailableError, match=r"bad ended as it started .*ZeroDivisionError"):
        processes.start(good, bad)
    assert not leftovers(good)
    assert not processes.recorded("worker")
    assert not processes.recorded("bad")
    # What was there before stays, and what had been started before counts as dead.
    processes.start(good)
    with pytest.raises(UnavailableError):
        processes.start(good, bad)
    assert processes.find("worker")
    kill(processes.find("worker").pid)  # type: ignore[union-attr]
    with pytest.raises(UnavailableError):
        processes.start(bad, good)
    assert processes.recorded("worker")
    processes.stop(bad)


def test_a_command_that_is_ended_while_it_starts_the_stack_leaves_nothing(new_home: Callable[..., Path]) -> None:
    home = new_home()
    variables = {"COTRAIL_HOME": str(home), "COTRAIL_API_PORT": "0", "PYTHONPATH": ""}
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        # Whatever the tests themselves were started to ignore, as by nohup.
        command = ["env", "--default-signal", sys.executable, "-m", "cotrail.cli.main", "up"]
        with subprocess.Popen(command, env=os.environ | variables, stderr=subprocess.DEVNULL) as up:
            wait_until((home / "run" / "generation.json").exists, "it starts the workers", 120)
            up.send_signal(number)
        assert up.returncode != 0
        assert not processes_of(home)


def test_a_port_is_had_by_one_alone() -> None:
    with listening(0) as former:
        wanted = port_of(former)
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: listening(wanted), range(64)))
    assert len({port_of(each) for each in made}) == 64
    assert wanted in {port_of(each) for each in made}
    for each in made:
        each.close()


def test_a_service_of_another_stack_is_not_taken_for_ones_own(new_home: Callable[..., Path]) -> None:
    home = new_home()
    home.mkdir()
    file = home / "api.json"
    with web.listen(file, 0) as listener, Answering(listener, {}) as foreign:
        assert not web.has(file, web.READY)
        foreign.headers["Cotrail-Stack"] = "another"
        assert not web.has(file, web.READY)
        foreign.headers["Cotrail-Stack"] = web.kept_address(file, 0).stack
        assert web.has(file, web.READY)
    with listening(web.kept_address(file, 0).port), web.listen(file, 0) as elsewhere:
        assert port_of(elsewhere) == web.kept_address(file, 0).port


def test_a_program_that_is_not_there_is_an_error(new_service: Callable[..., tuple[Processes, Service]]) -> None:
    processes, service = new_service("", command=("/nowhere/at/all",))
    with pytest.raises(UnavailableError, match="can't be started"):
        processes.start(service)


FORKING = "import os, signal; os.fork(); " + READY + "signal.pause()"


@pytest.mark.parametrize("method", ["start", "stop"])
def test_children_of_a_killed_worker_are_ended(
    new_service: Callable[..., tuple[Processes, Service]], method: str
) -> None:
    processes, service = new_service(FORKING)
    processes.start(service)
    leader = processes.find("worker")
    assert leader is not None
    wait_until(lambda: len(leader.children()) == 1)
    children = leader.children()
    kill(leader.pid)
    assert alive(children[0])
    getattr(processes, method)(service)
    assert not alive(children[0])


def test_a_worker_that_will_not_end_is_killed_with_its_children(
    new_service: Callable[..., tuple[Processes, Service]],
) -> None:
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    processes, service = new_service(deaf + FORKING, stop_seconds=0.2)
    processes.start(service)
    assert len(leftovers(service)) in {1, 2}
    assert processes.stop(service)
    assert not leftovers(service)


def test_a_worker_has_a_session_of_its_own(new_service: Callable[..., tuple[Processes, Service]]) -> None:
    processes, service = new_service(READY + "import signal; signal.pause()")
    processes.start(service)
    worker = processes.find("worker")
    assert worker is not None
    assert os.getsid(worker.pid) == worker.pid != os.getsid(0)


def test_what_works_in_the_folder_but_is_another_program_is_left_alone(
    new_service: Callable[..., tuple[Processes, Service]],
) -> None:
    processes, service = new_service(READY + "import signal; signal.pause()")
    processes.start(service)
    with subprocess.Popen(["sleep", "600"], cwd=service.folder) as stranger:
        processes.stop(service)
        assert stranger.poll() is None
        stranger.send_signal(signal.SIGKILL)


def test_flower_password_is_kept_for_its_owner_only_and_not_on_the_command_line(
    new_home: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(web.USER, raising=False)
    monkeypatch.delenv(web.PASSWORD, raising=False)
    home = new_home()
    home.mkdir()
    file = home / "flower.json"
    access = web.new_access(file)
    service = python.flower(Settings(home=home), access, file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert web.read_access(file) == access
    assert web.new_access(file).password == access.password
    assert access.password not in " ".join(service.command)
    assert service.environment[web.PASSWORD] == access.password
    monkeypatch.setenv(web.PASSWORD, "one,two")
    with pytest.raises(InputError, match="comma"):
        web.new_access(file)


def test_flower_takes_another_port_where_its_own_is_taken(
    new_home: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = new_home()
    home.mkdir()
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        monkeypatch.setattr(web, "PORT", taken.getsockname()[1])
        with web.listen_for_flower(home / "flower.json") as listener:
            access = web.read_access(home / "flower.json")
            assert access is not None
            assert port_of(listener) == access.port != web.PORT


def test_relative_paths_mean_the_same_to_a_worker(
    new_home: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = new_home()
    monkeypatch.chdir(home.parent)
    monkeypatch.setenv("PYTHONPATH", "lib")
    service = python.maintenance(Settings(home=Path("home"), corpora=Path("corpora")))
    assert service.environment["COTRAIL_HOME"] == str(home)
    assert service.environment["COTRAIL_CORPORA"] == str(home.parent / "corpora")
    assert service.environment["PYTHONPATH"] == str(home.parent / "lib")


def test_workers_memory_is_tuned_unless_the_person_tunes_it(
    new_home: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    stack = Settings(home=new_home())
    assert TUNED.items() <= python.worker(stack, "retrieval", events=False).environment.items()
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.arena_max=1")
    assert python.worker(stack, "retrieval", events=False).environment["GLIBC_TUNABLES"] == "glibc.malloc.arena_max=1"


def test_the_command_line_shows_the_stack_as_json(
    new_home: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    import typer

    from cotrail.cli.commands import stack as commands

    monkeypatch.setenv("COTRAIL_HOME", str(new_home()))
    settings.cache_clear()
    application = typer.Typer()
    for command in (commands.up, commands.down, commands.stack):
        application.command()(command)
    shown = CliRunner().invoke(application, ["stack", "--json"])
    table = CliRunner().invoke(application, ["stack"])
    stopped = CliRunner().invoke(application, ["down"])
    settings.cache_clear()
    assert {service["state"] for service in msgspec.json.decode(shown.stdout)["services"]} == {"stopped"}
    assert "maintenance" in table.stdout
    assert stopped.stdout == "Nothing was running.\n"
