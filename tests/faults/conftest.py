"""Fixture: a stack in the home of a test module (its fixture `home`), with the sample indexed."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from cotrail.configuration.settings import Settings
from cotrail.models.schema.database import connect
from tests.conftest import Eventually
from tests.faults.stacked import SAMPLE, Cotrail, Undisturbed, answers_of, open_questions, stacked, steps_of
from tests.faults.working import Workplace, workplace


@pytest.fixture(scope="module")
def variables() -> dict[str, str]:
    """Further environment variables of the stack."""
    return {}


@pytest.fixture(scope="module")
def cotrail(home: Path, variables: dict[str, str]) -> Iterator[Cotrail]:
    """The command line, with its stack up and the sample indexed."""
    with stacked(home, variables) as run:
        run("index", str(SAMPLE / "corpus.jsonl"), "--name", "sample")
        run("up")
        yield run


@pytest.fixture(scope="module")
def engine(home: Path, cotrail: Cotrail) -> Iterator[Engine]:
    engine = connect(Settings(home=home, database_url=None).database)
    yield engine
    engine.dispose()


@pytest.fixture(scope="module")
def undisturbed(engine: Engine, submit: Callable[[], str], eventually: Eventually) -> Undisturbed:
    """What the module's fixture `submit` submits, and nothing happens to."""
    run = submit()
    eventually(lambda: open_questions(engine, run) == 0, "the undisturbed run is finished", 120)
    return steps_of(engine, run), answers_of(engine, run)


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
