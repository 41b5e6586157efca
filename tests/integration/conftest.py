"""Fixtures: an empty store for each test, and models that tests open."""

from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import tomli_w
from psycopg.errors import DeadlockDetected
from pydantic import SecretStr
from sqlalchemy import Engine, create_engine, select, text, update
from sqlalchemy.engine import make_url
from sqlalchemy.exc import OperationalError
from typer.testing import CliRunner, Result

from benchmarks.search_servers import Running
from cotrail.audit.verification import verify
from cotrail.cli.main import app
from cotrail.configuration.settings import Settings, settings
from cotrail.core.ports.language_model import LanguageModel
from cotrail.engines.language_models.catalogue import find_model, open_model, smollm2_path
from cotrail.errors import UnavailableError
from cotrail.models.records.steps import Dispatch
from cotrail.models.records.trail import read_trail
from cotrail.models.schema.base import Base
from cotrail.models.schema.database import connect
from cotrail.models.schema.deployment import deployment
from cotrail.models.schema.migrating import migrate
from cotrail.models.schema.seals import amending
from cotrail.models.schema.service_tables import projects
from cotrail.models.schema.states import DEFAULT_PROJECT
from cotrail.models.schema.tables import runs
from cotrail.systems.registry import find_system
from cotrail.tasks.runtime import Runtime
from tests import search_servers
from tests.conftest import wait_until
from tests.integration.llamacpp_models import opening, shallow_path
from tests.integration.served import KEY, Served
from tests.integration.stepping import working_here

if TYPE_CHECKING:
    from cotrail.engines.language_models.transformers.model import Loaded

Query = Callable[[Any], list[dict[str, Any]]]
Cotrail = Callable[..., Result]


@pytest.fixture
def served() -> Iterator[Served]:
    """A server that answers as a test tells it to."""
    server = Served()
    yield server
    server.close()


@pytest.fixture
def open_served(tmp_path: Path) -> Iterator[Callable[..., LanguageModel]]:
    """Opens a server as a model of the catalogue; fields are those of its entry."""
    pytest.importorskip("httpx2", reason="httpx2 isn't installed")
    made: list[LanguageModel] = []

    def open_(url: str, **fields: object) -> LanguageModel:
        entry = {"engine": "openai", "url": url, "model": "m", "context": 4096, "timeout_seconds": 60.0} | fields
        (tmp_path / "models.toml").write_text(tomli_w.dumps({"models": {"served": entry}}))
        made.append(open_model(find_model(tmp_path / "models.toml", "served"), "fast", 1))
        return made[-1]

    yield open_
    for model in made:
        model.interrupt()


@pytest.fixture(scope="module")
def llama() -> Iterator[str]:
    """llama.cpp's own server with SmolLM2; it takes the key KEY."""
    xllamacpp = pytest.importorskip("xllamacpp", reason="llama.cpp isn't installed")
    params = xllamacpp.CommonParams()
    try:
        params.model.path = str(smollm2_path())
    except UnavailableError as error:
        pytest.skip(str(error))
    params.n_parallel, params.n_ctx, params.verbosity, params.api_keys = 1, 512, -1, [KEY]
    params.endpoint_metrics = True
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1  # several wait for each other on busy cores
    server = xllamacpp.Server(params)
    yield f"{server.listening_address}/v1"
    del server


@pytest.fixture
def real(open_served: Callable[..., Any], llama: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Opens llama.cpp's own server as a model of the catalogue; fields are those of its entry."""
    monkeypatch.setenv("A_KEY", KEY)
    return lambda **fields: open_served(llama, key_variable="A_KEY", **({"context": 512} | fields))


@pytest.fixture
def smollm2() -> Iterator[Callable[..., Any]]:
    """Opens the model of the wheel in llama.cpp."""
    with opening(smollm2_path) as open_:
        yield open_


@pytest.fixture(scope="module")
def shared_smollm2() -> Iterator[Callable[..., Any]]:
    """The same, but what is opened alike is one model for the whole module, whose tests don't mind what was read."""
    with opening(smollm2_path) as open_:
        yield cache(open_)


@pytest.fixture
def shallow() -> Iterator[Callable[..., Any]]:
    """Opens a few of that model's layers, for tests that don't mind what is written."""
    with opening(shallow_path) as open_:
        yield open_


@pytest.fixture(scope="module")
def shared_shallow() -> Iterator[Callable[..., Any]]:
    """The same, but what is opened alike is one model for the whole module."""
    with opening(shallow_path) as open_:
        yield cache(open_)


@pytest.fixture(scope="module")
def loaded(folder: Path) -> "Loaded":
    """The folder of a test module (its fixture `folder`), loaded by transformers."""
    from cotrail.engines.language_models.transformers.model import load

    return load(folder)


@pytest.fixture(scope="session", params=search_servers.tested())
def search_server(request: pytest.FixtureRequest) -> Iterator[Running]:
    """Each search server that tests run on, in turn."""
    with search_servers.opened(request.param) as server:
        yield server


@pytest.fixture(scope="session")
def database(servers: Settings) -> str:
    """The URL of a database that nothing else uses."""
    return made_database(servers, "by_hand")


@pytest.fixture(scope="session")
def store(servers: Settings) -> Iterator[Engine]:
    """A database with the runs of `recorded`; tests change it only in transactions that they roll back."""
    from tests.integration.recorded import record

    engine = connect(made_database(servers, "recorded"))
    try:
        record(engine)
        yield engine
    finally:
        engine.dispose()


def made_database(servers: Settings, name: str) -> str:
    """The URL of a new database."""
    url = make_url(servers.database)
    server = create_engine(url.set(database="postgres"), isolation_level="AUTOCOMMIT")
    try:
        with server.connect() as connection:
            connection.execute(text(f"CREATE DATABASE {name}"))
    finally:
        server.dispose()
    own = url.set(database=name).render_as_string(hide_password=False)
    migrate(own)
    return own


@pytest.fixture
def engine(database: str) -> Iterator[Engine]:
    engine = connect(database)
    empty(engine)
    yield engine
    engine.dispose()


def empty(engine: Engine) -> None:
    """Removes every row; the default project, which migrating makes, has no quotas again, and no broker is known."""
    tables = ", ".join(table.name for table in Base.metadata.sorted_tables if table not in (projects, deployment))
    wait_until(partial(_emptied, engine, tables), "the tables are emptied")


def _emptied(engine: Engine, tables: str) -> bool:
    """Empties the tables; false where what the test before left at work still reads them in another order."""
    try:
        with engine.begin() as connection:
            connection.execute(text(f"TRUNCATE {tables} RESTART IDENTITY"))
            connection.execute(projects.delete())
            connection.execute(projects.insert().values(name=DEFAULT_PROJECT))
            connection.execute(update(deployment).values(broker=None, broker_address=None))
    except OperationalError as error:
        if isinstance(error.orig, DeadlockDetected):
            return False
        raise
    return True


@pytest.fixture
def verified(engine: Engine, request: pytest.FixtureRequest) -> Iterator[None]:
    """Checks at the end that the audit trail of every run verifies, unless the test amends it."""
    yield
    amended = request.node.get_closest_marker("amends") is not None
    with engine.connect() as connection:
        for run in [] if amended else connection.execute(select(runs.c.id)).scalars().all():
            assert not [str(finding) for finding in verify(read_trail(connection, run)).findings]


@pytest.fixture
def sent() -> list[Dispatch]:
    """The messages that a worker in this process sends."""
    return []


@pytest.fixture
def here(
    home: Path,
    database: str,
    servers: Settings,
    sent: list[Dispatch],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Iterator[Runtime]:
    """A worker in this process, in the home of a module; it knows the systems that the module's `find` finds."""
    own = {"home": home, "database_url": SecretStr(database), "broker_url": SecretStr(servers.broker)}
    find = getattr(request.module, "find", find_system)
    with working_here(servers.model_copy(update=own), sent, monkeypatch, find) as made:
        yield made


@pytest.fixture
def query(engine: Engine) -> Query:
    """Runs a statement, which may also change final rows."""

    def query(statement: Any) -> list[dict[str, Any]]:
        with engine.begin() as connection:
            amending(connection)
            return [dict(row) for row in connection.execute(statement).mappings()]

    return query


@pytest.fixture
def cotrail(engine: Engine, database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cotrail]:
    """The command line in this process, on the same store."""
    monkeypatch.setenv("COTRAIL_DATABASE_URL", database.replace("+psycopg", ""))
    settings.cache_clear()
    yield lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])
    settings.cache_clear()
