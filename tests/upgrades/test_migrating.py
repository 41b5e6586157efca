"""Migrations make the tables that the code has, and take them away again."""

from collections.abc import Iterator

import pytest
from alembic import command
from sqlalchemy import Engine, inspect

from cotrail.configuration.settings import Settings
from cotrail.models.schema.database import connect
from cotrail.models.schema.migrating import VERSION_TABLE, alembic_config, migrate
from tests.integration.conftest import made_database


@pytest.fixture
def made(servers: Settings) -> Iterator[Engine]:
    """A database with tables."""
    engine = connect(made_database(servers, "made"))
    yield engine
    engine.dispose()


def test_migrations_make_the_models_tables_there_and_back_again(made: Engine) -> None:
    url = made.url.render_as_string(hide_password=False)
    config = alembic_config(url)
    command.check(config)
    command.downgrade(config, "base")
    assert inspect(made).get_table_names() == [VERSION_TABLE]
    assert inspect(made).get_view_names() == []
    assert migrate(url).before is None
    command.check(config)
