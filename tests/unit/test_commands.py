"""Commands are imported when they are called; a worker starts wherever it is called."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.commands import COMMANDS, Entry
from cli.lazy_group import load

COTRAIL = Path(sys.executable).parent / "cotrail"


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_the_help_of_all_commands_has_the_first_words_of_each_one(entry: Entry) -> None:
    first, *_ = load(entry).help.split("\n\n")
    assert " ".join(first.split()) == entry.summary


@pytest.mark.parametrize("word", ["--help", "--version"])
def test_what_is_asked_first_imports_no_command_and_no_library_of_theirs(word: str) -> None:
    code = f"import sys; sys.argv = ['cotrail', '{word}']; import atexit; atexit.register(lambda: print(*sys.modules))"
    shown = subprocess.run(
        [sys.executable, "-c", f"{code}; from cli.main import main; main()"], capture_output=True, text=True, check=True
    )
    imported = set(shown.stdout.splitlines()[-1].split())
    assert "cli.main" in imported
    assert not imported & {"cli." + entry.place.split(":")[0] for entry in COMMANDS}
    assert not imported & {"sqlalchemy", "pydantic_settings", "celery", "alembic", "psycopg", "jinja2", "numpy"}


def test_a_worker_imports_nothing_from_the_folder_that_it_is_started_in(tmp_path: Path) -> None:
    for name in ("tasks", "workers", "models", "celery"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('somebody else')\n")
    nowhere = {"COTRAIL_BROKER_URL": "redis://127.0.0.1:1", "COTRAIL_DATABASE_URL": "postgresql://n@127.0.0.1:1/n"}
    environment = {**os.environ, **nowhere, "COTRAIL_HOME": str(tmp_path)}
    environment.pop("PYTHONPATH", None)
    command = [str(COTRAIL), "worker", "retrieval", "--name", "anywhere"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as worker:
        assert worker.stdout is not None
        said = []
        for line in worker.stdout:
            said.append(line)
            if "Cannot connect" in line:
                break
        worker.kill()
    assert "Cannot connect" in said[-1], said
    assert any("anywhere@" in line for line in said)
    assert any("cotrail.retrieve" in line for line in said)
