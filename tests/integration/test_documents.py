"""What a command prints as JSON is one record of services, with all its fields and no others."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import Engine
from typer.testing import CliRunner

from cotrail.cli.main import app
from cotrail.configuration.settings import settings
from cotrail.services.results.runs import ListedRun, RunDetails
from cotrail.services.results.scoring import JudgedScores
from cotrail.services.results.steps import StepPrompt
from cotrail.services.runs.control import PrunedRuns
from cotrail.services.runs.experiments import DescribedExperiment
from cotrail.services.runs.progress import RunProgress
from cotrail.services.runs.repeating import ReplayedRun
from tests.integration.recorded import CANCELLED, PLAIN

Printed = Callable[..., bytes]


@pytest.fixture
def printed(store: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Printed:
    """What a command prints with --json."""
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    monkeypatch.setenv("COTRAIL_DATABASE_URL", store.url.render_as_string(hide_password=False))
    settings.cache_clear()
    return lambda *arguments: CliRunner().invoke(app, [*arguments, "--json"]).stdout_bytes


@pytest.mark.parametrize(
    ("command", "document"),
    [
        (["runs"], list[ListedRun]),
        (["show", PLAIN], RunDetails),
        (["watch", PLAIN], RunProgress),
        (["score", PLAIN], JudgedScores),
        (["replay", PLAIN], ReplayedRun),
        (["prune", PLAIN, CANCELLED, "--dry-run"], PrunedRuns),
        (["trace", PLAIN, "1", "--prompt", "1"], StepPrompt),
        (["experiment", "show"], DescribedExperiment),
    ],
)
def test_a_document_is_its_record(command: list[str], document: Any, printed: Printed) -> None:
    text = printed(*command)
    read = msgspec.json.decode(text, type=document)
    assert read
    assert msgspec.json.decode(msgspec.json.encode(read)) == msgspec.json.decode(text)
    assert msgspec.json.schema(document)


def test_a_run_s_progress_is_the_beginning_of_its_details(printed: Printed) -> None:
    progress, details = (msgspec.json.decode(printed(command, PLAIN)) for command in ("watch", "show"))
    names = list(RunProgress.__struct_fields__)
    assert list(progress) == list(details)[: len(names)] == names
    assert progress == {name: details[name] for name in names}
