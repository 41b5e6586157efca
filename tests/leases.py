"""One running stack for all modules of a test process that only submit to it.

A module that takes the fixture `lease` adds its models, under names of their own since workers keep what they have
opened, and its corpora. At its end what is still open is cancelled, and its models and corpora are gone. Modules that
kill, freeze or configure something have a stack of their own (`tests.faults.stacked`).
"""

import shutil
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import Struct
from sqlalchemy import Engine, select

from cotrail.configuration.settings import Settings
from cotrail.models.commands.control import cancel
from cotrail.models.schema.database import connect
from cotrail.models.schema.states import UNENDED_QUESTIONS
from cotrail.models.schema.tables import questions
from tests.faults.stacked import SAMPLE, Cotrail, stacked

BASE = '[models.scripted]\nengine = "scripted"\npath = "script.json"\n'

PATIENT = {"COTRAIL_LEASE_SECONDS": "60"}
"""No process dies here, and a slow machine isn't to look as if one had."""


class Lease(Struct, frozen=True):
    """The stack, which has the bundled sample as its corpus; folder: for the module's own files."""

    home: Path
    cotrail: Cotrail
    folder: Path
    engine: Engine

    used: set[str]
    """The names of models that this process has leased before."""

    def add_models(self, tables: str) -> None:
        """Adds tables to the list of models; the paths in them are absolute."""
        names = {f"{kind}.{name}" for kind, named in tomllib.loads(tables).items() for name in named}
        assert not names & self.used, "a worker may still have the model of another module by that name"
        self.used.update(names)
        listed = self.home / "models.toml"
        listed.write_text(f"{listed.read_text()}\n{tables}")


@pytest.fixture(scope="session")
def leased_stack() -> Iterator[tuple[Path, Cotrail, set[str]]]:
    with tempfile.TemporaryDirectory(prefix="cl-") as folder:
        home = Path(folder)
        (home / "script.json").write_text('{"name": "s", "questions": {}, "default": {"answer": "x"}}')
        (home / "models.toml").write_text(BASE)
        with stacked(home, PATIENT) as run:
            run("index", str(SAMPLE / "corpus.jsonl"), "--name", "sample")
            run("up")
            yield home, run, set()


@pytest.fixture(scope="module")
def lease(leased_stack: tuple[Path, Cotrail, set[str]], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lease]:
    home, run, used = leased_stack
    engine = connect(Settings(home=home, database_url=None).database)
    yield Lease(home, run, tmp_path_factory.mktemp("lease"), engine, used)
    with engine.connect() as connection:
        unended = select(questions.c.run_id).where(questions.c.status.in_(UNENDED_QUESTIONS)).distinct()
        left = connection.execute(unended).scalars().all()
    for each in left:
        cancel(engine, each)
    engine.dispose()
    (home / "models.toml").write_text(BASE)
    for corpus in (home / "corpora").iterdir():
        if corpus.name != "sample":
            shutil.rmtree(corpus)
