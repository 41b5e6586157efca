"""Connections to PostgreSQL, and its schema."""

from pathlib import Path
from typing import Any

import msgspec
from alembic import command
from alembic.config import Config
from sqlalchemy import Engine, create_engine

IDLE_SECONDS = 10
"""How long a transaction may do nothing: a process that is frozen within one would hold up all that it has locked."""

MIGRATIONS = Path(__file__).parents[1] / "migrations"


def connect(url: str, *, pool_size: int = 5) -> Engine:
    """An engine on that URL; JSON goes through msgspec."""
    return create_engine(
        url,
        pool_size=pool_size,
        json_serializer=_encode,
        json_deserializer=msgspec.json.decode,
        connect_args={
            "application_name": "cotrail",
            "options": f"-c idle_in_transaction_session_timeout={IDLE_SECONDS * 1000}",
        },
    )


def _encode(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def migrate(url: str, revision: str = "head") -> None:
    """Brings the schema up to a revision."""
    command.upgrade(alembic_config(url), revision)


def alembic_config(url: str) -> Config:
    """Alembic's configuration for a database, without a file."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["url"] = url
    return config
