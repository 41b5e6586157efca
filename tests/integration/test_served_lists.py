"""What there is, through a server: each command prints what it prints on the machine itself."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine
from typer.testing import CliRunner, Result

from cotrail.cli.main import app
from cotrail.configuration.settings import settings
from cotrail.errors import InputError
from tests.cases import each_case
from tests.integration.serving import Server, serving

ROOT = Path(__file__).parents[2]
KEY = "sk-sentinel-5d1f"
MODELS = """
[models.far]
engine = "openai"
url = "http://127.0.0.1:9/v1"
model = "m"
context = 4096
key_variable = "FAR_KEY"
"""

SAME = [
    ["systems"],
    ["systems", "ircot"],
    ["systems", "ircott"],
    ["datasets"],
    ["datasets", "musique"],
    ["datasets", "none"],
    ["models"],
    ["models", "far"],
    ["models", "smollm2-135m"],
    ["models", "none"],
    ["corpora"],
    ["corpora", "sample"],
    ["corpora", "none"],
    ["corpora", "remove", "sample"],
    ["corpora", "remove", "none", "--yes"],
    ["knowledge", "list"],
    ["knowledge", "ask", "table", "The river flows."],
    ["knowledge", "ask", "wordnet", "The river flows."],
    ["knowledge", "ask", "none", "The river flows."],
    ["jobs"],
    ["jobs", "none"],
    ["jobs", "cancel", "none"],
    ["experiment", "show"],
    ["experiment", "report", "none"],
]
HERE = [
    ["knowledge", "build", "wordnet"],
    ["systems", "ircot", "--words", "words"],
    ["models", "far", "--ask"],
    ["experiment", "report", "x", "--output", "report"],
    ["sample", "folder"],
    ["up"],
]


@pytest.fixture(scope="module")
def served(database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("served")
    home = folder / "home"
    home.mkdir()
    (home / "models.toml").write_text(MODELS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COTRAIL_HOME", str(home))
        patch.setenv("COTRAIL_DATABASE_URL", database.replace("+psycopg", ""))
        patch.setenv("FAR_KEY", KEY)
        settings.cache_clear()
        invoke("index", str(ROOT / "cotrail" / "sample" / "corpus.jsonl"), "--name", "sample")
        with serving(os.environ, folder / "log") as server:
            yield server
    shutil.rmtree(folder)


@pytest.fixture(autouse=True)
def home(served: Server, engine: Engine, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COTRAIL_HOME", "COTRAIL_DATABASE_URL", "FAR_KEY"):
        monkeypatch.setenv(name, served.environment[name])
    settings.cache_clear()


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


@each_case("command", SAME, ids=" ".join)
@each_case("form", [[], ["--json"]], ids=["words", "json"])
def test_a_command_prints_the_same_through_a_server(served: Server, command: list[str], form: list[str]) -> None:
    arguments = [*command, *form]
    here, there = invoke(*arguments), invoke("--server", served.url, *arguments)
    place = str(Path(served.environment["COTRAIL_HOME"]) / "models.toml")
    expected = here.output.replace(place, "the server's models.toml") if command == ["models"] else here.output
    assert " ".join(there.output.split()) == " ".join(expected.split())
    assert (type(there.exception), str(there.exception)) == (type(here.exception), str(here.exception))
    assert there.exit_code == here.exit_code
    assert KEY not in there.output


@each_case("command", HERE, ids=" ".join)
def test_what_works_on_this_machine_alone_is_refused(served: Server, command: list[str]) -> None:
    refused = invoke("--server", served.url, *command)
    assert isinstance(refused.exception, InputError)
    assert "works on this machine alone" in str(refused.exception)


def test_a_corpus_is_removed_through_a_server(served: Server) -> None:
    invoke("index", str(ROOT / "cotrail" / "sample" / "corpus.jsonl"), "--name", "further")
    there = invoke("--server", served.url, "corpora", "remove", "further", "--yes")
    assert "Removed further" in there.output
    assert "further" not in invoke("corpora").output
