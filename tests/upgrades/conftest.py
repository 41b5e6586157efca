"""Fixtures: a stack of today's code on a store that former code left."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from cotrail.configuration.settings import Settings
from cotrail.models.schema.database import connect
from cotrail.workers.stack.stack import Stack
from tests.faults.stacked import Cotrail, stacked
from tests.upgrades.keeping import STORES, restore


@pytest.fixture(scope="module", params=[store.name for store in STORES])
def store(request: pytest.FixtureRequest) -> Path:
    """The folder of a store."""
    return next(store for store in STORES if store.name == request.param)


@pytest.fixture(scope="module")
def home(store: Path) -> Iterator[Path]:
    """A home with the files with which the store's runs were submitted, and the index that former code made of them."""
    folder = Path(tempfile.mkdtemp(prefix="cu-"))
    shutil.copytree(store / "home", folder, dirs_exist_ok=True)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def cotrail(store: Path, home: Path) -> Iterator[Cotrail]:
    """The command line; its database is as former code left it, and no worker runs yet."""
    with stacked(home) as run:
        Stack(Settings(home=home, database_url=None, broker_url=None)).start_servers()
        restore(store, home)
        yield run


@pytest.fixture(scope="module")
def engine(home: Path, cotrail: Cotrail) -> Iterator[Engine]:
    engine = connect(Settings(home=home, database_url=None).database)
    yield engine
    engine.dispose()
