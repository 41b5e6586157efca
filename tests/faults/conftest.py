"""Fixture: a stack in the home of a test module (its fixture `home`), with the sample indexed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from cotrail.configuration.settings import Settings
from cotrail.models.schema.database import connect
from tests.faults.stacked import SAMPLE, Cotrail, stacked
from tests.faults.working import Workplace, workplace


@pytest.fixture(scope="module")
def cotrail(home: Path) -> Iterator[Cotrail]:
    """The command line, with its stack up and the sample indexed."""
    with stacked(home) as run:
        run("index", str(SAMPLE / "corpus.jsonl"), "--name", "sample")
        run("up")
        yield run


@pytest.fixture(scope="module")
def engine(home: Path, cotrail: Cotrail) -> Iterator[Engine]:
    engine = connect(Settings(home=home, database_url=None).database)
    yield engine
    engine.dispose()


@pytest.fixture(scope="module")
def place() -> Iterator[Workplace]:
    """A stack that costs nothing but orchestration, for all tests of a module."""
    with workplace() as own:
        yield own


@pytest.fixture
def the_same_processes(place: Workplace, request: pytest.FixtureRequest) -> Iterator[None]:
    """No process ends during the test, except where the test is about that."""
    before = dict(place.starts)
    yield
    if "deadly" not in request.node.name:
        assert place.starts == before
