"""Whether this host, the servers and the workers are as cotrail needs them: each finding with what to do about it.

Nothing here changes anything, but for a key in Redis that is gone after a second. What doesn't answer is a finding too,
and keeps none of the others from being made.
"""

import locale
import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum, auto
from typing import Any, get_args

import psutil
from msgspec import Struct
from sqlalchemy import Connection, text

from cotrail import __version__
from cotrail.common.humanize import count, duration
from cotrail.common.processes import host_cores, usable_cores
from cotrail.configuration.files import corpora_of
from cotrail.configuration.settings import Settings, settings
from cotrail.core.actions.kind import Role
from cotrail.core.actions.registry import carried_out_by
from cotrail.engines.language_models.catalogue import catalogue, find_model
from cotrail.engines.language_models.endpoint import Endpoint
from cotrail.errors import CotrailError, UnavailableError
from cotrail.models.queries.workers import read_maintenance
from cotrail.models.schema.deployment import check_version, own_version
from cotrail.services.actor import Scope
from cotrail.services.library.models import list_models
from cotrail.services.operations.operation import App, current_app, operation
from cotrail.services.store import reading
from cotrail.tasks.broker_health import BrokerFacts, Present, ask_broker, broker_problem, call, recorded_broker

LEAST_DISK, FEW_DISK = 1_000_000_000, 5_000_000_000
LEAST_MEMORY = 1_000_000_000
LEAST_FILES = 1024
MOST_DRIFT = 2.0
"""Seconds by which clocks may differ: what is shown as the age of a step is by one clock, and its lease by another."""

OLDEST_POSTGRES, OLDEST_REDIS = 14, (6, 2)


class Soundness(StrEnum):
    """Whether what was looked at is as it has to be."""

    RIGHT = auto()

    DOUBTFUL = auto()
    """It works, and may not for ever, or is slower than it could be."""

    WRONG = auto()
    """Work doesn't go on, or may be lost."""


class DiagnosisLine(Struct, frozen=True, kw_only=True):
    """One thing that was looked at: part of the whole, what it is, what was found; do: what to do about it."""

    part: str
    what: str
    verdict: Soundness = Soundness.RIGHT
    found: str
    do: str = ""


class Diagnosed(Struct, frozen=True, kw_only=True):
    """All lines, by parts; host: where they were made."""

    host: str
    version: str
    lines: tuple[DiagnosisLine, ...]

    @property
    def wrong(self) -> bool:
        """Whether something of it is wrong."""
        return any(each.verdict is Soundness.WRONG for each in self.lines)


@operation("diagnosis.show", "GET", "/diagnosis", Scope.ADMIN)
def diagnose(app: App = current_app) -> Diagnosed:
    """Look whether the host that answers, PostgreSQL, Redis, the search server, models and workers are as needed."""
    # Takes some seconds, longer where servers don't answer.
    own, found = settings(), list[DiagnosisLine]()
    parts: dict[str, Iterator[DiagnosisLine]] = {
        "host": _host(own),
        "PostgreSQL": _postgresql(),
        "Redis": _redis(own),
        "search": _search(own),
        "models": _models(own),
        "workers": _workers(own, app),
    }
    for part, looking in parts.items():
        try:
            found.extend(looking)  # those before an error stay
        except CotrailError as error:
            found.append(_wrong(part, "it can be used", own.secrets.hidden(str(error)), ""))
    return Diagnosed(host=socket.gethostname(), version=str(own_version()), lines=tuple(found))


def _wrong(part: str, what: str, found: str, do: str) -> DiagnosisLine:
    return DiagnosisLine(part=part, what=what, verdict=Soundness.WRONG, found=found, do=do)


def _judged(part: str, what: str, found: str, *, wrong: bool = False, doubtful: bool = False, do: str) -> DiagnosisLine:
    """What was found, with what to do about it where that is something."""
    verdict = Soundness.WRONG if wrong else Soundness.DOUBTFUL if doubtful else Soundness.RIGHT
    return DiagnosisLine(
        part=part, what=what, verdict=verdict, found=found, do="" if verdict is Soundness.RIGHT else do
    )


def _host(own: Settings) -> Iterator[DiagnosisLine]:
    folder = next(each for each in (own.home.absolute(), *own.home.absolute().parents) if each.exists())
    free = shutil.disk_usage(folder).free
    do = "make room, or set COTRAIL_HOME to a larger disk"
    yield _judged(
        "host",
        "disk",
        f"{_gigabytes(free)} free for {own.home}",
        wrong=free < LEAST_DISK,
        doubtful=free < FEW_DISK,
        do=do,
    )
    free = psutil.virtual_memory().available
    do = "end other programs, or take a smaller model: a process that gets no memory is killed"
    yield _judged("host", "memory", f"{_gigabytes(free)} free", doubtful=free < LEAST_MEMORY, do=do)
    cores, all_cores = usable_cores(), host_cores()
    limited = f", by the quota or the affinity of this process, of {all_cores}" if cores < all_cores else ""
    yield DiagnosisLine(part="host", what="cores", found=f"{count(cores, 'core')}{limited}")
    encodings = {sys.getfilesystemencoding(), locale.getpreferredencoding(do_setlocale=False)}
    others = sorted(each for each in encodings if each.lower().replace("-", "") != "utf8")
    do = "set LANG=C.UTF-8, or PYTHONUTF8=1"
    yield _judged("host", "encoding", ", ".join(others) or "UTF-8", doubtful=bool(others), do=do)
    yield from _open_files()
    yield DiagnosisLine(part="host", what="packages", found=f"cotrail {__version__}, Python {sys.version.split()[0]}")


def _gigabytes(value: int) -> str:
    return f"{value / 1e9:,.1f} GB"


def _open_files() -> Iterator[DiagnosisLine]:
    try:
        import resource
    except ImportError:  # there is none on Windows
        return
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = 0 <= most < LEAST_FILES
    do = "raise it (`ulimit -n 65536`): each connection takes one"
    yield _judged("host", "open files", "no limit" if most < 0 else f"{most:,} at once", doubtful=few, do=do)


def _postgresql() -> Iterator[DiagnosisLine]:
    with reading() as connection:
        yield from _database(connection)


def _database(connection: Connection) -> Iterator[DiagnosisLine]:
    part = "PostgreSQL"
    query = "SELECT name, setting, reset_val FROM pg_settings"
    rows = connection.execute(text(query)).all()
    settings_of, defaults = {row.name: row.setting for row in rows}, {row.name: row.reset_val for row in rows}
    number = settings_of["server_version"]
    old = int(settings_of["server_version_num"]) < OLDEST_POSTGRES * 10_000
    yield _judged(part, "version", number, doubtful=old, do="take a later one; cotrail is tested with 18")
    encoding = settings_of["server_encoding"]
    yield _judged(part, "encoding", encoding, wrong=encoding != "UTF8", do="make a database with ENCODING 'UTF8'")
    for name in ("fsync", "full_page_writes", "synchronous_commit"):
        lost = name == "synchronous_commit" and defaults[name] in ("off", "local")
        off = defaults[name] == "off" or lost
        harm = "lose steps that count as done" if lost else "destroy the database"
        yield _judged(part, name, defaults[name], wrong=off, do=f"set it to on: a power cut may {harm}")
    yield _schema(connection)
    query = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
    used, most = int(connection.execute(text(query)).scalar_one()), int(settings_of["max_connections"])
    do = "raise max_connections, or put a pooler in session mode before it"
    yield _judged(part, "connections", f"{used} of {most}", doubtful=used > 0.8 * most, do=do)
    yield _defaults(connection)
    before = time.time()
    now = float(connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())
    yield _clock(part, now - (before + time.time()) / 2)


def _schema(connection: Connection) -> DiagnosisLine:
    try:
        check_version(connection)
    except CotrailError as error:
        return _wrong("PostgreSQL", "version of the tables", str(error), "")
    return DiagnosisLine(part="PostgreSQL", what="version of the tables", found=str(own_version()))


def _defaults(connection: Connection) -> DiagnosisLine:
    """What the server sets for sessions of this database or role; cotrail's own sessions set it back."""
    query = (
        "SELECT unnest(setconfig) FROM pg_db_role_setting WHERE setdatabase IN (0, (SELECT oid FROM pg_database WHERE "
        "datname = current_database())) AND setrole IN (0, (SELECT oid FROM pg_roles WHERE rolname = current_user))"
    )
    found = sorted(connection.execute(text(query)).scalars())
    return DiagnosisLine(
        part="PostgreSQL",
        what="defaults of sessions",
        found=f"{', '.join(found)}; cotrail's own sessions set what matters to it" if found else "the server's own",
    )


def _clock(part: str, drift: float) -> DiagnosisLine:
    away = "ahead" if drift > 0 else "behind"
    found = f"{duration(abs(drift))} {away} of this host's" if abs(drift) > MOST_DRIFT else "that of this host"
    return _judged(part, "clock", found, doubtful=abs(drift) > MOST_DRIFT, do="keep all hosts' clocks by NTP")


def _redis(own: Settings) -> Iterator[DiagnosisLine]:
    part, facts = "Redis", ask_broker(own.broker, own.broker_prefix)
    if facts.problem:
        do = "start it (`cotrail up` of the local stack), or correct COTRAIL_BROKER_URL"
        yield _wrong(part, "it takes messages", own.secrets.hidden(facts.problem), do)
    if facts.version is None:
        return
    old = tuple(int(each) for each in facts.version.split(".")[:2]) < OLDEST_REDIS
    yield _judged(part, "version", facts.version, wrong=old, do="take 6.2 or later, or Valkey")
    do = "set it to noeviction: anything else may evict a queue"
    yield _judged(part, "maxmemory-policy", facts.policy, doubtful=facts.policy != "noeviction", do=do)
    found = "each second" if facts.persistent else "none"
    do = "set appendonly to yes: a restart of Redis forgets what is queued, and it is sent again"
    yield _judged(part, "persistence", found, doubtful=not facts.persistent, do=do)
    yield _identity(facts)
    if facts.drift is not None:
        yield _clock(part, facts.drift)


def _identity(facts: BrokerFacts) -> DiagnosisLine:
    with reading() as connection:
        check_version(connection)
        recorded, address = recorded_broker(connection)
    if recorded is None:
        return DiagnosisLine(part="Redis", what="identity", found="no maintenance process has worked yet")
    if recorded == facts.token:
        return DiagnosisLine(part="Redis", what="identity", found="the one that maintenance works with")
    do = "give all processes of a database the same COTRAIL_BROKER_URL and COTRAIL_BROKER_PREFIX"
    return _wrong("Redis", "identity", f"not the one that maintenance works with, {address}", do)


def _search(own: Settings) -> Iterator[DiagnosisLine]:
    server = own.search_server
    where = own.corpora_path if server is None else f"{server!r} and {own.corpora_path}"
    names = corpora_of(own).manifests()
    found = f"{', '.join(sorted(names)) or 'none'} in {where}"
    yield _judged("search", "corpora", found, doubtful=not names, do="`cotrail index FILE --name NAME` makes one")


def _models(own: Settings) -> Iterator[DiagnosisLine]:
    part, path = "models", own.catalogue_path
    known = catalogue(path)
    found = f"{count(len(known), 'model')}, with those of {path}"
    yield DiagnosisLine(part=part, what="list", found=found)
    for each in list_models():
        if each.state == "malformed":
            yield _wrong(part, each.name, each.problem, "correct it; its own runs alone can't go on")
    try:
        find_model(path, own.model).engine.check()
        yield DiagnosisLine(part=part, what=own.model, found="the one of runs that name none")
    except CotrailError as error:
        yield _wrong(part, own.model, str(error), "")


def _workers(own: Settings, app: Callable[[], Any]) -> Iterator[DiagnosisLine]:
    part, wanted = "workers", _key_variables(own)
    roll_call = call(app(), own.broker, wanted)
    if roll_call.problem:
        yield _wrong(part, "they can be asked", own.secrets.hidden(roll_call.problem), "see what is said of Redis")
        return
    do = "`cotrail up`, or `cotrail worker {}` on any host, starts one"
    for role in get_args(Role):
        its = [each for each in roll_call.present if set(each.kinds) & set(carried_out_by(role))]
        found = f"{count(len(its), 'worker')} on {', '.join(sorted({each.host for each in its}))}" if its else "none"
        needed = role != "evidence"  # which few systems ask
        yield _judged(part, role, found, doubtful=not its and needed, do=do.format(role))
    with reading() as connection:
        active = any(each.leads for each in read_maintenance(connection))
    found = "active" if active else "none is active, so nothing begins"
    yield _judged(part, "maintenance", found, wrong=not active, do=do.format("maintenance"))
    for each in roll_call.present:
        if each.problem:
            yield _wrong(
                part, f"{each.name} on {each.host}", each.problem, f"end process {each.pid}, and start another"
            )
    yield from _keys(wanted, roll_call.present)


def _key_variables(own: Settings) -> Sequence[str]:
    engines = (spec.engine for spec in catalogue(own.catalogue_path).values())
    return sorted({each.key_variable for each in engines if isinstance(each, Endpoint) and each.key_variable})


def _keys(wanted: Sequence[str], present: Sequence[Present]) -> Iterator[DiagnosisLine]:
    generating = [each for each in present if set(each.kinds) & set(carried_out_by("generation"))]
    for variable in wanted if generating else ():
        lacking = sorted({each.host for each in generating if variable not in each.variables})
        found = f"isn't set in workers on {', '.join(lacking)}" if lacking else "set in all that generate"
        do = "set it where they start, and start them again; steps of models with this key block there"
        yield _judged("workers", variable, found, doubtful=bool(lacking), do=do)


def check_ready() -> None:
    """Raises UnavailableError where PostgreSQL or Redis doesn't answer, or the database is another version's."""
    with reading() as connection:
        check_version(connection)
    if problem := broker_problem(settings().broker, settings().broker_prefix):
        raise UnavailableError(f"the broker takes no messages: {problem}")
