import errno
import os
import re
import socket
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

import pytest
from pydantic import ValidationError
from sqlalchemy import make_url

from cotrail.configuration.deadlines import check_deadlines, deadline_of
from cotrail.configuration.settings import Settings, settings
from cotrail.configuration.variables import warn_of_unknown
from cotrail.core.actions.registry import KINDS
from cotrail.errors import InputError
from cotrail.workers import health, logs
from cotrail.workers.stack.web import PASSWORD, USER
from tests.cases import each_case
from tests.unit.commands import ROOT

SECRET = "hunter2"

VARIABLES = {
    "home": ("/srv/cotrail", Path("/srv/cotrail")),
    "broker_prefix": ("two:", "two:"),
    "corpora": ("/srv/corpora", Path("/srv/corpora")),
    "search_cloud_id": ("mine:ZXUuZXhhbXBsZS5jb20kYWJj", "mine:ZXUuZXhhbXBsZS5jb20kYWJj"),
    "search_sniff": ("true", True),
    "search_ca": ("/etc/search.pem", Path("/etc/search.pem")),
    "search_prefix": ("two-", "two-"),
    "model": ("smollm2-360m", "smollm2-360m"),
    "generation_slots": ("3", 3),
    "start_seconds": ("900", 900.0),
    "lease_seconds": ("1.5", 1.5),
    "heartbeat_seconds": ("0.5", 0.5),
    "sweep_seconds": ("0.25", 0.25),
    "resend_seconds": ("7", 7.0),
    "max_attempts": ("2", 2),
    "deadlines": ('{"reason": 7200, "retrieve": 0.5}', {"reason": 7200, "retrieve": 0.5}),
    "batch_recovery_seconds": ("300", 300.0),
    "retention_days": ("30", 30.0),
    "api_host": ("::1", "::1"),
    "api_port": ("8421", 8421),
    "api_prefix": ("/below", "/below"),
    "api_proxies": ("10.0.0.0/8", "10.0.0.0/8"),
    "api_body_bytes": ("1048576", 1048576),
    "stored_systems": ("true", True),
    "tokens_required": ("true", True),
    "public_hosts": ("cotrail.example.org", "cotrail.example.org"),
    "requests_per_minute": ("100", 100),
    "streams": ("50", 50),
    "flower_url": ("https://flower.example.org", "https://flower.example.org"),
    "upload_bytes": ("1000", 1000),
    "openai_money": ("0.5", 0.5),
    "upload_days": ("7", 7.0),
}
DEADLINES = {"retrieve": 600, "lookup": 600, "open": 600, "embed": 1800, "extract": 1800, "rate": 1800}
DEADLINES |= {"entail": 3600, "reason": 3600, "read": 3600}
SECRETS = {
    "database_url": f"postgresql://ada:{SECRET}@db/cotrail",
    "broker_url": f"redis://:{SECRET}@redis:6379/0",
    "search_url": f"https://ada:{SECRET}@search:9200",
    "search_api_key": SECRET,
}


@contextmanager
def variable(name: str, value: str) -> Iterator[None]:
    """Sets a variable, while the block is carried out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(name, value)
        settings.cache_clear()
        yield


@each_case("field", VARIABLES)
def test_every_field_is_read_from_its_variable(field: str) -> None:
    text, value = VARIABLES[field]
    assert getattr(Settings(), field) != value
    with variable(f"COTRAIL_{field.upper()}", text):
        assert getattr(Settings(), field) == value


@each_case("field", SECRETS)
def test_addresses_are_read_from_their_variables_too(field: str) -> None:
    with variable(f"COTRAIL_{field.upper()}", SECRETS[field]):
        assert getattr(Settings(), field).get_secret_value() == SECRETS[field]


def test_an_execution_has_a_deadline_whatever_its_kind() -> None:
    assert {kind: deadline_of(kind, Settings()) for kind in DEADLINES} == DEADLINES
    assert all(deadline_of(kind, Settings()) > 0 for kind in KINDS)
    given = Settings(deadlines={"reason": 7200})
    assert [deadline_of(kind, given) for kind in ("reason", "read")] == [7200, DEADLINES["read"]]


def test_a_deadline_of_no_kind_is_refused() -> None:
    check_deadlines(Settings(deadlines={"reason": 7200}))
    with pytest.raises(InputError, match=r"COTRAIL_DEADLINES .* no kind of step 'raeson' \(did you mean reason"):
        check_deadlines(Settings(deadlines={"raeson": 60}))


def test_every_field_is_tested_here() -> None:
    assert set(Settings.model_fields) == {*VARIABLES, *SECRETS}


@each_case(
    ("field", "bad"),
    [
        ("search_prefix", "Two"),
        ("search_prefix", "*"),
        ("generation_slots", "0"),
        ("deadlines", '{"reason": 0}'),
        ("deadlines", "60"),
        ("generation_slots", "many"),
        ("lease_seconds", "0"),
        ("heartbeat_seconds", "-1"),
        ("sweep_seconds", "0"),
        ("resend_seconds", "soon"),
        ("max_attempts", "0"),
    ],
)
def test_what_makes_no_sense_is_refused(field: str, bad: str) -> None:
    with variable(f"COTRAIL_{field.upper()}", bad), pytest.raises(ValidationError, match=field):
        Settings()


@each_case(
    ("url", "hint"),
    [
        (f"sentinel://:{SECRET}@host:26379/0", "Redis Sentinel isn't supported"),
        (f"rediss+sentinel://:{SECRET}@host:26379/0", "Redis Sentinel isn't supported"),
        (f"redis+cluster://:{SECRET}@host", "a Redis cluster isn't supported"),
        (f"rediss+cluster://:{SECRET}@host", "a Redis cluster isn't supported"),
        (f"cluster://:{SECRET}@host", "a Redis cluster isn't supported"),
        (f"valkey://:{SECRET}@host", "write redis://"),
        (f"valkeys://:{SECRET}@host", "write rediss://"),
        (f"unix:///{SECRET}", "write redis\\+socket:///path"),
        (f"amqp://guest:{SECRET}@host", "the broker must be Redis or Valkey"),
        (f"memory://{SECRET}", "the broker must be Redis or Valkey"),
        (f"redis://:{SECRET}@host;sentinel://host", "Redis Sentinel isn't supported"),
        (f"{SECRET}@host:6379", "the broker must be Redis or Valkey"),
    ],
)
def test_other_brokers_are_refused_by_name(url: str, hint: str) -> None:
    with variable("COTRAIL_BROKER_URL", url):
        with pytest.raises(ValidationError, match=hint) as refused:
            Settings()
        assert SECRET not in str(refused.value)


@each_case("url", ["redis://h", "rediss://:p@h:1/2", "redis+socket:///a/b", "redis://a;redis://b"])
def test_every_way_to_a_redis_is_taken(url: str) -> None:
    with variable("COTRAIL_BROKER_URL", url):
        assert Settings().broker == url


def test_settings_are_read_once_and_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    first = settings()
    monkeypatch.setenv("COTRAIL_MODEL", "another")
    assert settings() is first
    with pytest.raises(ValidationError, match="frozen"):
        first.model = "another"  # type: ignore[misc]


def test_no_password_shows_where_settings_are_printed() -> None:
    secret = Settings.model_validate(SECRETS)
    shown = [repr(secret), str(secret), str(secret.model_dump()), secret.model_dump_json()]
    assert not [text for text in shown if SECRET in text]


# Where files are


def test_what_is_not_named_is_in_the_home(tmp_path: Path) -> None:
    own = Settings(home=tmp_path)
    assert own.corpora_path == tmp_path / "corpora"
    assert own.catalogue_path == tmp_path / "models.toml"
    assert Settings(home=tmp_path, corpora=Path("/srv/c")).corpora_path == Path("/srv/c")


def test_the_sockets_of_a_short_home_are_inside_it() -> None:
    assert Settings(home=Path("/srv/cotrail")).socket_path == Path("/srv/cotrail/run")


def test_a_relative_home_has_an_absolute_socket_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/tmp")
    assert Settings(home=Path("here")).socket_path == Path("/tmp/here/run")


LONG = {
    "plain": "x" * 200,
    "just too long": "x" * 74,
    "two bytes a letter": "é" * 60,
    "three bytes a letter": "\N{HIRAGANA LETTER A}" * 30,
}


@each_case("name", LONG)
def test_sockets_can_be_made_however_long_the_home_is(name: str) -> None:
    path = Settings(home=Path("/srv/cotrail/home") / LONG[name]).socket_path
    assert can_hold_sockets(path)


@each_case("length", range(80, 95))
def test_sockets_can_be_made_at_the_limit(length: int) -> None:
    assert can_hold_sockets(Settings(home=Path("/" + "x" * (length - 1))).socket_path)


def can_hold_sockets(path: Path) -> bool:
    """Whether the kernel takes the longest name of a socket there; the folder needn't exist."""
    with socket.socket(socket.AF_UNIX) as unconnected:
        try:
            return unconnected.connect_ex(str(path / ".s.PGSQL.5432")) == errno.ENOENT
        except OSError:
            return False


def test_two_long_homes_have_sockets_of_their_own() -> None:
    homes = [Path("/srv") / ("x" * 200) / name for name in ("one", "two")]
    one, two = (Settings(home=home).socket_path for home in homes)
    assert one != two
    assert one == Settings(home=homes[0]).socket_path


# Where servers are


@each_case("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_a_database_s_url_may_be_written_as_people_write_it(scheme: str) -> None:
    url = make_url(
        Settings.model_validate({"database_url": f"{scheme}://ada:{SECRET}@db:5433/trail?sslmode=require"}).database
    )
    assert url.drivername == "postgresql+psycopg"
    assert (url.username, url.password, url.host, url.port, url.database) == ("ada", SECRET, "db", 5433, "trail")
    assert url.query == {"sslmode": "require"}


def test_a_password_that_looks_like_a_scheme_is_left_alone() -> None:
    own = Settings.model_validate({"database_url": "postgresql://ada:postgres:%2F%2F@db/trail"})
    assert make_url(own.database).password == "postgres://"


@each_case("home", ["/srv/cotrail", "/srv/a b&c=d?e#f%20/é", "/srv/" + "x" * 200])
def test_the_local_stack_is_reached_through_its_sockets(home: str) -> None:
    own = Settings(home=Path(home))
    url = make_url(own.database)
    assert (url.drivername, url.username, url.database) == ("postgresql+psycopg", "postgres", "cotrail")
    assert url.query == {"host": str(own.socket_path), "port": "5432"}
    scheme, _, path = own.broker.partition("://")
    assert (scheme, unquote(path)) == ("redis+socket", f"{own.socket_path}/redis.sock")


def test_a_broker_s_url_is_used_as_it_is() -> None:
    assert Settings.model_validate(SECRETS).broker == SECRETS["broker_url"]


# What can't be used


BAD = {
    "COTRAIL_DATABASE_URL": "mysql://ada:{secret}@db/trail",
    "COTRAIL_BROKER_URL": "redis://{secret}@redis:6379/0",
    "COTRAIL_SEARCH_URL": "https://search:9200,https://{secret}@search:9200",
    "COTRAIL_SEARCH_API_KEY": "{secret}\nnext",
}
SLASHED = {
    "COTRAIL_DATABASE_URL": "postgresql://ada:{secret}/pw@db/trail",
    "COTRAIL_BROKER_URL": "redis://:12/{secret}@redis:6379/0",
    "COTRAIL_SEARCH_URL": "http://bob:{secret}/pw@search:9200",
}


@each_case(("name", "value"), [*BAD.items(), *SLASHED.items()])
def test_the_variable_is_named_and_its_value_is_not(name: str, value: str) -> None:
    with variable(name, value.format(secret=SECRET)):
        with pytest.raises(InputError, match=name) as refused:
            settings()
        assert SECRET not in "".join(traceback.format_exception(refused.value))
        with pytest.raises(ValidationError) as invalid:
            Settings()
        assert SECRET not in "".join(traceback.format_exception(invalid.value))


REFUSED = [
    ("DATABASE_URL", "localhost/trail", "must begin with postgresql://"),
    ("DATABASE_URL", "mysql://db/trail", r'\("mysql://db/trail"\) .* must begin with postgresql://'),
    ("DATABASE_URL", "postgresql://ada:pw@db:port/trail", r'"postgresql://\[secret\]@db\.\.\."'),
    ("DATABASE_URL", "postgresql://db:port/trail", "its port is no number"),
    ("DATABASE_URL", "postgresql://db:99999/trail", r'"postgresql://db:99999/trail"\) .* its port is out of range'),
    ("DATABASE_URL", "postgresql://::1:5432/trail", r"IPv6 .* in brackets"),
    ("DATABASE_URL", "postgresql://[::1/trail", r"IPv6 .* in brackets"),
    ("DATABASE_URL", "postgresql://my db/trail", "holds a space"),
    ("DATABASE_URL", "postgresql://dätenbank/trail", "letters beyond ASCII"),
    ("DATABASE_URL", "postgresql:///trail?port=x", "its parameter port"),
    ("DATABASE_URL", "postgresql:///trail?colour=red", "doesn't know one of its parameters"),
    ("SEARCH_URL", "search:9200", "must begin with http://"),
    ("BROKER_URL", "redis:6379", "the broker must be Redis"),
    ("GENERATION_SLOTS", "two", r'\("two"\) .* no whole number'),
    ("LEASE_SECONDS", "nan", "no finite number"),
    ("LEASE_SECONDS", "1e300", "at most"),
    ("SEARCH_SNIFF", "perhaps", "neither true nor false"),
    ("DEADLINES", "soon", "JSON object of numbers"),
    ("DEADLINES", "[1]", "isn't a JSON object"),
    ("DEADLINES", '{"reason": "x"}', "reason: it is no number"),
    ("SEARCH_PREFIX", "Two", r'\("Two"\) .* has to match'),
    ("BROKER_PREFIX", "a\nb", r'\("a\\nb"\) .* line break'),
    ("MODEL", "a\x1b[2J", "control character"),
    ("HOME", "/srv/a\nb", "line break"),
    ("HOME", "/srv/\udcff", "aren't UTF-8"),
    ("HOME", "~nobody-has-this-name/x", "can't be looked at"),
    ("HOME", "/" + "x" * 300, "can't be looked at"),
]


@each_case(("name", "value", "said"), REFUSED)
def test_a_malformed_variable_is_refused_on_one_line(name: str, value: str, said: str) -> None:
    with variable(f"COTRAIL_{name}", value):
        with pytest.raises(InputError, match=f"COTRAIL_{name}.*{said}") as refused:
            settings()
        assert "\n" not in str(refused.value)


@each_case(
    "process",
    [
        ["-m", "cotrail.cli.main", "migrate"],
        ["-m", "cotrail.cli.main", "flower"],
        ["-m", "cotrail.cli.main", "worker", "maintenance"],
        ["-m", "celery", "-A", "cotrail.workers.app", "worker"],
    ],
)
def test_every_process_refuses_a_malformed_variable_on_a_line(process: list[str]) -> None:
    environment = {**os.environ, "COTRAIL_LEASE_SECONDS": "soon"}
    ended = subprocess.run(
        [sys.executable, *process], env=environment, capture_output=True, text=True, cwd=ROOT, check=False
    )
    line, *_ = ended.stderr.splitlines()
    assert ended.returncode == 2
    assert line.startswith("cotrail: the environment variable COTRAIL_LEASE_SECONDS")


def test_a_home_that_is_a_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    for home in ("file", "file/below"):
        monkeypatch.setenv("COTRAIL_HOME", str(tmp_path / home))
        with pytest.raises(ValidationError, match="file is a file"):
            Settings()


def test_a_home_is_made_absolute_and_a_tilde_is_the_user_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for home in ("~/own", "own", " own\r\n"):
        monkeypatch.setenv("COTRAIL_HOME", home)
        assert Settings().home == tmp_path / "own"


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        ("COTRAIL_DATABSE_URL", "did you mean COTRAIL_DATABASE_URL"),
        ("COTRAIL_DB_URL", "did you mean COTRAIL_DATABASE_URL"),
        ("COTRAIL_XYZZY", "unset it"),
    ],
)
def test_a_variable_that_no_setting_has_is_warned_of(
    variable: str, said: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(variable, SECRET)
    warn_of_unknown(Settings.model_fields)
    (warning,) = caplog.messages
    assert variable in warning
    assert said in warning
    assert SECRET not in warning


def test_service_links_of_kubernetes_are_left_out_with_one_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    links = {
        "COTRAIL_API_PORT": "tcp://10.0.0.7:8420",
        "COTRAIL_API_PORT_8420_TCP": "tcp://10.0.0.7:8420",
        "COTRAIL_API_PORT_8420_TCP_ADDR": "10.0.0.7",
        "COTRAIL_API_PORT_8420_TCP_PORT": "8420",
        "COTRAIL_API_PORT_8420_TCP_PROTO": "tcp",
        "COTRAIL_API_SERVICE_HOST": "10.0.0.7",
        "COTRAIL_API_SERVICE_PORT": "8420",
        "COTRAIL_API_SERVICE_PORT_HTTP": "8420",
        "COTRAIL_PORT": "tcp://10.0.0.8:80",
        "COTRAIL_SERVICE_HOST": "10.0.0.8",
    }
    for name, value in links.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("COTRAIL_API_HOST", "127.0.0.9")
    settings.cache_clear()
    try:
        assert (settings().api_port, settings().api_host) == (8420, "127.0.0.9")
        (warning,) = caplog.messages
        assert all(name in warning for name in links)
        assert "enableServiceLinks" in warning
        monkeypatch.setenv("COTRAIL_API_PORT", "9000")
        settings.cache_clear()
        assert settings().api_port == 9000
    finally:
        settings.cache_clear()


def test_variables_of_compose_and_of_the_stack_are_no_mistakes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    compose = (Path(__file__).parents[2] / "docker-compose.yml").read_text()
    for variable in {*re.findall("COTRAIL_[A-Z_]+", compose), logs.VARIABLE, health.VARIABLE, USER, PASSWORD}:
        monkeypatch.setenv(variable, "x")
    warn_of_unknown(Settings.model_fields)
    assert not caplog.messages


@each_case("name", ["DATABASE_URL", "BROKER_URL", "SEARCH_URL", "SEARCH_API_KEY"])
def test_an_empty_variable_is_none(name: str) -> None:
    with variable(f"COTRAIL_{name}", ""):
        assert getattr(Settings(), name.lower()) is None


def test_a_key_is_read_without_the_line_s_end_that_files_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COTRAIL_SEARCH_API_KEY", f" {SECRET}\n")
    key = Settings().search_api_key
    assert key is not None
    assert key.get_secret_value() == SECRET


def test_brokers_that_stand_in_for_one_another_are_read_each() -> None:
    own = Settings.model_validate({"broker_url": "redis://:one@a:6379/0;redis://:two@b:6379/0"})
    assert own.secrets.hidden("one two three") == "[secret] [secret] three"


def test_all_secrets_are_known() -> None:
    assert SECRET not in Settings.model_validate(SECRETS).secrets.hidden(f"{SECRET} ada:{SECRET}")
    assert not Settings().secrets
