"""Fixtures for the command line and submission without a server."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cotrail.cli.main import app, main
from cotrail.configuration.settings import settings
from tests.unit.commands import DEMONSTRATION, ROOT, Given, Run


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home with a scripted model, whose database doesn't answer."""
    for name in ("DATABASE_URL", "BROKER_URL", "CORPORA", "MODEL"):
        monkeypatch.delenv(f"COTRAIL_{name}", raising=False)
    monkeypatch.setenv("COTRAIL_HOME", str(tmp_path))
    settings.cache_clear()
    (tmp_path / "models.toml").write_text('[models.scripted]\nengine = "scripted"\npath = "script.json"\n')
    (tmp_path / "script.json").write_text('{"name": "s", "questions": {}, "default": {"answer": "x"}}')
    yield tmp_path
    settings.cache_clear()


@pytest.fixture
def given(home: Path) -> Given:
    """The keys of a run that can be submitted; named ones replaced, those of None left out."""
    corpus, questions = home / "corpus.jsonl", home / "questions.jsonl"
    corpus.write_text('{"id": "1", "title": "Ink", "text": "Ink stains paper."}\n')
    questions.write_text('{"id": "q1", "question": "What stains paper?", "answers": ["ink"], "gold": ["1"]}\n')
    (home / "demonstrations.txt").write_text(DEMONSTRATION)
    assert CliRunner().invoke(app, ["index", str(corpus), "--name", "ink"]).exit_code == 0

    def given(**changes: Any) -> dict[str, Any]:
        usual = {
            "system": "ircot",
            "dataset": "jsonl",
            "questions": str(questions),
            "corpus": "ink",
            "demonstrations": str(home / "demonstrations.txt"),
            "model": "scripted",
        }
        return {key: value for key, value in (usual | changes).items() if value is not None}

    return given


@pytest.fixture
def cotrail(home: Path) -> Run:
    """The command as a process."""

    def cotrail(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "cotrail.cli.main", *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=home,
            env={**os.environ, "PYTHONPATH": str(ROOT), "COTRAIL_HOME": str(home), **environment},
            timeout=60,
        )

    return cotrail


@pytest.fixture
def cotrail_here(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command in this process: a process of its own takes over a second, nearly all of it for imports."""
    monkeypatch.chdir(home)

    def cotrail(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["cotrail", *map(str, arguments)])
            for name, value in environment.items():
                patch.setenv(name, value)
            settings.cache_clear()
            with pytest.raises(SystemExit) as ended:
                main()
        printed = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return subprocess.CompletedProcess(sys.argv, ended.value.code, printed.out, printed.err)

    return cotrail
