"""Settings from the environment: where servers and files are, and how patient workers are."""

import hashlib
import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import msgspec
from platformdirs import user_data_path
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from cotrail.common.log_formatting import Secrets
from cotrail.common.server_addresses import Address, read_address
from cotrail.configuration.checks import check_broker, check_database, check_folder, on_one_line, settings_refusal
from cotrail.configuration.variables import KUBERNETES, PREFIX, take_out, warn_of_taken_out, warn_of_unknown
from cotrail.engines.retrieval.search_server import RemoteServer, SearchServer, check_node, read_search_file
from cotrail.errors import InputError

_SCHEME = re.compile("^postgres(ql)?://")

MAX_SOCKET_PATH = 90
"""Unix socket paths have at most 107 bytes; the rest is for the sockets' own names."""

BETWEEN_BROKERS = ";"
"""The separator of several brokers: Celery falls back on the further ones when the first doesn't answer."""

YEAR = 366 * 86_400


def _decoded(given: object) -> object:
    """Numbers of seconds by kind, from JSON."""
    if not isinstance(given, str):
        return given
    try:
        return msgspec.json.decode(given)
    except msgspec.DecodeError:
        raise ValueError('it isn\'t a JSON object of numbers, as {"reason": 7200}') from None


Seconds = Annotated[float, Field(gt=0, le=YEAR, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
Folder = Annotated[Path, AfterValidator(check_folder)]
Line = Annotated[str, AfterValidator(on_one_line)]


class Settings(BaseSettings):
    """Read once, at the edge, from variables named COTRAIL_ and the field's name in capitals."""

    # A refused value may hold a password, so it must not be shown.
    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, frozen=True, hide_input_in_errors=True)

    home: Folder = Field(default_factory=lambda: user_data_path("cotrail"))
    """The folder of indexes, the list of models and the local stack's state."""

    database_url: Annotated[SecretStr, AfterValidator(check_database)] | None = None
    """PostgreSQL (`postgresql://user@host/database`); the local stack's own where unset."""

    broker_url: Annotated[SecretStr, AfterValidator(check_broker)] | None = None
    """Redis or Valkey (`redis://host:6379/0`); the local stack's own where unset."""

    broker_prefix: Line = "cotrail:"
    """The prefix of every key in Redis, so that two deployments can share a server."""

    corpora: Folder | None = None
    """The folder of the indexes; `corpora` in the home where unset."""

    search_url: SecretStr | None = None
    """Elasticsearch or OpenSearch (`https://user:password@host:9200`, several nodes separated by commas).

    Where it is set, corpora are on that server, and otherwise in the folder.
    """

    search_cloud_id: str | None = None
    """An Elastic Cloud deployment's cloud id, in place of the address; COTRAIL_SEARCH_API_KEY gives access."""

    search_sniff: bool = False
    """True to ask the search server for its other nodes, as they come and go."""

    search_api_key: SecretStr | None = None
    """Elasticsearch's API key, encoded, in place of user and password."""

    search_ca: Path | None = None
    """A file of the certificate authorities trusted for the search server; the system's where unset."""

    search_prefix: str = Field(default="cotrail-", pattern=r"^[a-z0-9][a-z0-9._-]*$")
    """The prefix of all indexes' names, so that two deployments can share a server."""

    model: Line = "smollm2-135m"
    """The model that a generation worker loads as it starts, and that a run uses if it names none."""

    generation_slots: Count = 1
    """The number of prompts that a generation worker works on at once."""

    start_seconds: Seconds = 1800
    """How long a process of the local stack may take to be ready, as long as it shows life."""

    lease_seconds: Seconds = 15
    """How long a worker's lease of a step lasts without a heartbeat."""

    heartbeat_seconds: Seconds = 3
    """The interval between a worker's heartbeats."""

    sweep_seconds: Seconds = 1
    """The interval between the maintenance process's sweeps for steps to send or recover."""

    resend_seconds: Seconds = 3
    """How long a step may wait unclaimed before maintenance checks whether its message was lost."""

    max_attempts: Count = 5
    """The number of executions of a step that may fail, or kill their worker, before the step fails."""

    deadlines: Annotated[dict[str, Seconds], NoDecode, BeforeValidator(_decoded)] = {}
    """How many seconds an execution may take by its kind, as JSON, in place of the kind's own (`deadline_of`)."""

    batch_recovery_seconds: Seconds = 120
    """How long a batch that a provider may have, or answers that it should have, are looked for until they are sent
    again: lists of providers lag."""

    retention_days: Annotated[float, Field(gt=0, le=36_600, allow_inf_nan=False)] | None = None
    """The number of days after its end at which a run is removed; never where unset."""

    api_host: Line = "127.0.0.1"
    """The address that `cotrail serve` listens at."""

    api_port: Annotated[int, Field(ge=0, le=65_535)] = 8420
    """The port that `cotrail serve` listens at; 0 for any free one."""

    api_prefix: str = Field(default="", pattern=r"^((/[A-Za-z0-9._~-]+)+)?$")
    """The path under which a reverse proxy shows the service, such as `/cotrail`; empty at the top."""

    api_proxies: Line = "127.0.0.1"
    """The addresses of reverse proxies that are believed for whom they ask, separated by commas."""

    api_body_bytes: Annotated[int, Field(ge=1024)] = 8 * 2**20
    """The largest body of a request in bytes; files that are uploaded are no such bodies."""

    stored_systems: bool = False
    """Whether workers run systems of files that they lack: with the text that the run's record has, by its digest."""

    tokens_required: bool = False
    """True to have the service ask for a token on the machine itself too."""

    public_hosts: str = Field(default="", pattern=r"^[A-Za-z0-9.:,\[\] -]*$")
    """The names under which browsers reach the service, with their ports if unusual, separated by commas."""

    flower_url: str = Field(default="", pattern=r"^(https?://[^\s\x00-\x1f]+)?$")
    """The address at which people find Flower; the viewer leads there."""

    requests_per_minute: Count = 3_000
    """The number of requests a minute with one token that each process of the service takes."""

    upload_bytes: Annotated[int, Field(ge=1)] = 16 * 2**30
    """The largest file that the service takes, in bytes."""

    upload_days: Annotated[float, Field(gt=0, le=36_600, allow_inf_nan=False)] = 30
    """The number of days after its last use at which an uploaded file is removed."""

    openai_money: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    """The most that a question asked over OpenAI's API may cost, in US dollars, where its model has a price."""

    streams: Count = 1000
    """The most streams of events that a process of the service sends at once."""

    @model_validator(mode="before")
    @classmethod
    def _without_margins(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Files of variables leave spaces and carriage returns at the ends; what is blank is unset."""
        stripped = {name: value.strip() if isinstance(value, str) else value for name, value in given.items()}
        return {name: value for name, value in stripped.items() if value != ""}

    @field_validator("broker_url")
    @classmethod
    def _is_a_broker(cls, url: SecretStr | None) -> SecretStr | None:
        for address in _addresses(url, BETWEEN_BROKERS):
            if address.user and not address.password:
                raise ValueError("it has a user and no password; a password alone is written redis://:password@host")
        return url

    @field_validator("search_url")
    @classmethod
    def _is_a_search_server(cls, url: SecretStr | None) -> SecretStr | None:
        for node in nodes(url):
            check_node(node)
        return url

    @field_validator("search_api_key")
    @classmethod
    def _fits_into_a_header(cls, key: SecretStr | None) -> SecretStr | None:
        plain = key.get_secret_value().strip() if key else ""
        if not plain.isascii() or not plain.isprintable():
            raise ValueError("it holds characters that no key has")
        return SecretStr(plain) if plain else None

    @property
    def corpora_path(self) -> Path:
        """The folder of the indexes."""
        return self.corpora or self.home / "corpora"

    @property
    def knowledge_path(self) -> Path:
        """The folder of the knowledge sources that were built."""
        return self.home / "knowledge"

    @property
    def files_path(self) -> Path:
        """The folder of uploaded files."""
        return self.home / "files"

    @property
    def search_server(self) -> SearchServer | None:
        """The connection to the search server; None where corpora are in the folder."""
        if self.search_url is None and self.search_cloud_id is None:
            return None
        file = read_search_file(self.home / "search.toml")
        return SearchServer(
            urls=nodes(self.search_url),
            cloud_id=self.search_cloud_id,
            sniff=self.search_sniff,
            api_key=self.search_api_key.get_secret_value() if self.search_api_key else None,
            ca=self.search_ca,
            prefix=self.search_prefix,
            index=file.index,
            corpora=file.corpora,
        )

    @property
    def remote_corpora(self) -> Mapping[str, RemoteServer]:
        """The retrieval servers, providers of the web and search tools that are corpora, by name."""
        return read_search_file(self.home / "search.toml").remote

    @property
    def secrets(self) -> Secrets:
        """The secrets to redact everywhere: passwords in addresses, and keys."""
        addresses = [
            *_addresses(self.database_url),
            *_addresses(self.broker_url, BETWEEN_BROKERS),
            *(read_address(node) for node in nodes(self.search_url)),
        ]
        key = self.search_api_key.get_secret_value() if self.search_api_key else ""
        return Secrets((key, *(secret for address in addresses for secret in address.secrets)))

    @property
    def catalogue_path(self) -> Path:
        """The file of models that the user added."""
        return self.home / "models.toml"

    @property
    def socket_path(self) -> Path:
        """The folder of the local stack's Unix sockets: one for each home, with a path short enough for the kernel."""
        inside = self.home.absolute() / "run"
        if len(os.fsencode(inside)) <= MAX_SOCKET_PATH:
            return inside
        name = hashlib.sha256(str(inside).encode()).hexdigest()[:32]
        return Path("/tmp") / f"cotrail-{name}"  # noqa: S108 - the stack makes it readable by its owner only

    @property
    def database(self) -> str:
        """The URL of PostgreSQL for SQLAlchemy."""
        if self.database_url is None:
            return f"postgresql+psycopg://postgres@/cotrail?host={quote(str(self.socket_path), safe='')}&port=5432"
        return str(_SCHEME.sub("postgresql+psycopg://", self.database_url.get_secret_value()))

    @property
    def broker(self) -> str:
        """The URL of Redis for Celery."""
        if self.broker_url is None:
            return f"redis+socket://{quote(str(self.socket_path))}/redis.sock"
        return self.broker_url.get_secret_value()


@cache
def settings() -> Settings:
    """Return the settings of the process, read once.

    Raises InputError, which names the variable that can't be used, and its value as far as it is no secret. A variable
    that no setting has is warned of.
    """
    take_out(KUBERNETES)
    warn_of_taken_out(KUBERNETES)
    warn_of_unknown(Settings.model_fields)
    try:
        return Settings()
    except ValidationError as error:
        raise InputError(settings_refusal(error)) from None


def nodes(url: SecretStr | None) -> tuple[str, ...]:
    """Return the URLs of a search server's nodes."""
    return tuple(part.strip() for part in url.get_secret_value().split(",")) if url else ()


def _addresses(url: SecretStr | None, between: str | None = None) -> list[Address]:
    if not url:
        return []
    urls = url.get_secret_value()
    return [read_address(part) for part in (urls.split(between) if between else [urls])]
