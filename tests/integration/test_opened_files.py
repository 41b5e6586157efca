"""How many modules one opens to follow a submission, a step and a page: those of which anything is carried out."""

import gc
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import Engine

from cotrail.configuration.settings import Settings, settings
from cotrail.models.records.steps import Dispatch
from cotrail.tasks.step import carry_out, perform
from tests.integration.asked_service import service, write_home
from tests.integration.conftest import Cotrail
from tests.integration.stepping import unsent, working_here
from tests.unit.test_house import LIMITS as HOUSE
from tests.unit.test_house import module_files

LIMITS = HOUSE["opened_files"]
FILES = {str(file.resolve()): name for name, file in module_files().items()}


@contextmanager
def opened() -> Iterator[set[str]]:
    """The modules of which a function is called meanwhile, in this thread and in those that begin."""
    found: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            found.add(frame.f_code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        known = {FILES.get(str(Path(each).resolve())) for each in found}
        found.clear()
        found |= {each for each in known if each is not None}


@pytest.fixture
def home(cotrail: Cotrail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a scripted model, a question and a corpus."""
    write_home(tmp_path)
    paragraph = {"id": "marlow", "title": "Marlow", "text": "Marlow lies on the Vell."}
    (tmp_path / "corpus.jsonl").write_text(f"{json.dumps(paragraph)}\n")
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    settings.cache_clear()
    assert cotrail("index", tmp_path / "corpus.jsonl", "--name", "towns").exit_code == 0
    return tmp_path


def submit(cotrail: Cotrail, home: Path) -> str:
    done = cotrail(
        *("submit", "--system", "one-step", "--dataset", "jsonl", "--questions", home / "questions.jsonl"),
        *("--corpus", "towns", "--model", "scripted", "--json"),
    )
    assert done.exit_code == 0, done.output
    return str(json.loads(done.stdout)["run"])


def test_a_submission_opens_few_modules(cotrail: Cotrail, home: Path) -> None:
    with opened() as modules:
        submit(cotrail, home)
    assert len(modules) <= LIMITS["submission"], sorted(modules)


def test_a_retrieve_step_opens_few_modules(
    cotrail: Cotrail, home: Path, engine: Engine, database: str, servers: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit(cotrail, home)
    own = {"home": home, "database_url": SecretStr(database), "broker_url": SecretStr(servers.broker)}
    sent: list[Dispatch] = []
    with opened() as modules, working_here(servers.model_copy(update=own), sent, monkeypatch):
        first, second = unsent(engine)
        perform(first, carry_out)
        modules.clear()
        perform(second, carry_out)
    assert len(modules) <= LIMITS["retrieve_step"], sorted(modules)


def test_a_page_of_a_run_opens_few_modules(cotrail: Cotrail, home: Path) -> None:
    run = submit(cotrail, home)
    with opened() as modules, service() as client:
        gc.collect()  # what the command above has left would otherwise end during the request
        modules.clear()
        assert client.get(f"/runs/{run}", headers={"Accept": "text/html"}).status_code == 200
    assert "cotrail.viewer.pages.run" in modules
    assert len(modules) <= LIMITS["page_of_a_run"], sorted(modules)
