"""What the environment decides: where servers and files are, and how patient workers are."""

import hashlib
import os
import re
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, cast
from urllib.parse import quote

from platformdirs import user_data_path
from pydantic import AfterValidator, Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from configuration.brokers import check_broker
from cotrail.common.redaction import Secrets
from cotrail.common.server_addresses import Address, read_address
from cotrail.engines.retrieval.search_file import read_search_file
from cotrail.engines.retrieval.stores import CorpusStore, SearchServer, check_node, corpus_store
from cotrail.errors import InputError

MAX_SOCKET_PATH = 90
"""Unix socket paths end at 107 bytes; the rest is room for the sockets' own names."""


DATABASES = ("postgresql", "postgres", "postgresql+psycopg")
BETWEEN_BROKERS = ";"
"""Celery takes several addresses, the further ones for when the first doesn't answer."""

Kind = Literal["retrieve", "reason", "read", "lookup", "embed", "entail"]

DEADLINES: dict[str, float] = {
    "retrieve": 600,
    "lookup": 600,
    "embed": 1800,
    "entail": 3600,
    "reason": 3600,
    "read": 3600,
}
"""How many seconds an execution may take, the time that it waits for its engine included: far more than any needs."""


class Settings(BaseSettings):
    """Read once, at the edge, from variables named COTRAIL_ and the field's name in capitals."""

    # What is refused may hold a password.
    model_config = SettingsConfigDict(
        env_prefix="COTRAIL_", env_ignore_empty=True, frozen=True, hide_input_in_errors=True
    )

    home: Path = Field(default_factory=lambda: user_data_path("cotrail"))
    """Where indexes, the models' list and the local stack's state are."""

    database_url: SecretStr | None = None
    """PostgreSQL (`postgresql://user@host/database`); the local stack's own where unset."""

    broker_url: Annotated[SecretStr, AfterValidator(check_broker)] | None = None
    """Redis or Valkey (`redis://host:6379/0`); the local stack's own where unset."""

    broker_prefix: str = "cotrail:"
    """What every key in Redis begins with, so that two deployments can share a server."""

    corpora: Path | None = None
    """The folder of the indexes; `corpora` in the home where unset."""

    search_url: SecretStr | None = None
    """Elasticsearch or OpenSearch (`https://user:password@host:9200`, several nodes with commas between them).

    Corpora are there where it is set, and in the folder otherwise.
    """

    search_cloud_id: str | None = None
    """An Elastic Cloud deployment's cloud id, in the place of the address; COTRAIL_SEARCH_API_KEY opens it."""

    search_sniff: bool = False
    """Whether the search server is asked for its other nodes, as they come and go."""

    search_api_key: SecretStr | None = None
    """Elasticsearch's API key, encoded, in the place of user and password."""

    search_ca: Path | None = None
    """A file of the authorities that the search server's certificate may come from; the usual ones where unset."""

    search_prefix: str = Field(default="cotrail-", pattern=r"^[a-z0-9][a-z0-9._-]*$")
    """What the names of all indexes begin with, so that two deployments can share a server."""

    model: str = "smollm2-135m"
    """The model that a generation worker loads as it starts, and that a run takes if it names none."""

    generation_slots: int = Field(default=1, ge=1)
    """How many prompts a generation worker works on at once."""

    lease_seconds: float = Field(default=15, gt=0)
    """How long a step stays with a worker that gives no sign of life."""

    heartbeat_seconds: float = Field(default=3, gt=0)
    """How often a worker gives that sign."""

    sweep_seconds: float = Field(default=1, gt=0)
    """How often the maintenance process looks for steps that nobody works on."""

    resend_seconds: float = Field(default=3, gt=0)
    """How long a step may wait unclaimed before maintenance asks whether its message was lost."""

    max_attempts: int = Field(default=5, ge=1)
    """How many executions of one step may fail, or end their worker, before it counts as failed."""

    deadlines: dict[Kind, Annotated[float, Field(gt=0)]] = {}
    """How many seconds an execution may take by its kind, as JSON, in place of `DEADLINES`."""

    retention_days: float | None = Field(default=None, gt=0)
    """How many days after its end a run is removed for good; never where unset."""

    @field_validator("database_url")
    @classmethod
    def _is_a_database(cls, url: SecretStr | None) -> SecretStr | None:
        if url is not None:
            read_address(url.get_secret_value(), DATABASES)
        return url

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

    def deadline(self, kind: str) -> float:
        """How many seconds the execution of a step of that kind may take."""
        return self.deadlines.get(cast(Kind, kind), DEADLINES[kind])

    @property
    def corpora_path(self) -> Path:
        """The folder of the indexes."""
        return self.corpora or self.home / "corpora"

    @property
    def knowledge_path(self) -> Path:
        """The folder of the knowledge sources that were built."""
        return self.home / "knowledge"

    @property
    def corpus_store(self) -> CorpusStore:
        """Where corpora are kept."""
        return corpus_store(self.corpora_path, self.search_server)

    @property
    def search_server(self) -> SearchServer | None:
        """How the search server is reached; None where corpora are in the folder."""
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
    def secrets(self) -> Secrets:
        """What must be shown nowhere: passwords of addresses, and keys."""
        addresses = [
            *_addresses(self.database_url),
            *_addresses(self.broker_url, BETWEEN_BROKERS),
            *(read_address(node) for node in nodes(self.search_url)),
        ]
        key = self.search_api_key.get_secret_value() if self.search_api_key else ""
        return Secrets((key, *(secret for address in addresses for secret in address.secrets)))

    @property
    def catalogue_path(self) -> Path:
        """The list of models that a person added."""
        return self.home / "models.toml"

    @property
    def socket_path(self) -> Path:
        """The folder of the local stack's Unix sockets, of its own for each home, and short enough for the kernel."""
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
        return str(re.sub("^postgres(ql)?://", "postgresql+psycopg://", self.database_url.get_secret_value()))

    @property
    def broker(self) -> str:
        """The URL of Redis for Celery."""
        if self.broker_url is None:
            return f"redis+socket://{quote(str(self.socket_path))}/redis.sock"
        return self.broker_url.get_secret_value()


@cache
def settings() -> Settings:
    """The settings of the process; InputError names the variable that can't be used, and never its value."""
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors(include_input=False, include_context=False)[0]
        name = f"COTRAIL_{first['loc'][0]}".upper()
        message = first["msg"].removeprefix("Value error, ")
        raise InputError(f"the environment variable {name} can't be used: {message}; correct it or unset it") from None


def nodes(url: SecretStr | None) -> tuple[str, ...]:
    """The URLs of a search server's nodes."""
    return tuple(part.strip() for part in url.get_secret_value().split(",")) if url else ()


def _addresses(url: SecretStr | None, between: str | None = None) -> list[Address]:
    if not url:
        return []
    written = url.get_secret_value()
    return [read_address(part) for part in (written.split(between) if between else [written])]
