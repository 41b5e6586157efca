"""Whether a process works, as a supervisor asks."""

import errno
import os
import re
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from psycopg import OperationalError
from psycopg.errors import IdleSessionTimeout
from sqlalchemy import Engine

from cotrail.workers.health import SILENT_SECONDS, VARIABLE, Problem, announce, keep_telling, problem_of, withdraw
from cotrail.workers.leading import session
from tests.conftest import Eventually
from tests.faults.stacked import ROOT


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "said"
    monkeypatch.setenv(VARIABLE, str(path))
    return path


def age(path: Path, seconds: float) -> None:
    when = path.stat().st_mtime - seconds
    os.utime(path, (when, when))


def check(path: str | None) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != VARIABLE}
    given = {VARIABLE: path} if path else {}
    command = [sys.executable, "-m", "cotrail.workers.health"]
    return subprocess.run(command, cwd=ROOT, env=environment | given, capture_output=True, text=True)


def test_a_process_that_said_lately_that_it_works_is_well(said: Path) -> None:
    announce("worker")
    assert problem_of(said) is None
    done = check(str(said))
    assert (done.returncode, done.stderr) == (0, "")


def test_what_is_wrong_is_told(said: Path) -> None:
    announce("worker", "2 of its threads don't come back")
    done = check(str(said))
    assert (done.returncode, done.stderr) == (1, "2 of its threads don't come back\n")
    age(said, SILENT_SECONDS + 1)
    silent = re.fullmatch(r"it has reported nothing for (\d+) s\n", check(str(said)).stderr)
    assert silent is not None
    assert int(silent[1]) > SILENT_SECONDS


def test_a_process_that_has_not_begun_is_not_well(said: Path) -> None:
    assert problem_of(said) == Problem(said=f"{said} isn't there: the process hasn't begun to work", starting=True)
    assert check(str(said)).stderr == f"{said} isn't there: the process hasn't begun to work\n"
    assert VARIABLE in check(None).stderr


def test_a_process_on_a_full_disk_is_not_silent(said: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    announce("worker")
    age(said, SILENT_SECONDS + 1)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    announce("worker")
    assert problem_of(said) is None


def test_what_a_former_process_reported_is_gone_once_another_begins(said: Path) -> None:
    announce("worker")
    withdraw()
    withdraw()
    assert not said.exists()


def test_a_process_goes_on_saying_how_it_is(said: Path, eventually: Eventually) -> None:
    problems: list[str | None] = [None, None, "stuck"]
    told, over, waits = threading.Event(), threading.Event(), threading.Event()

    def problem() -> str | None:
        if over.is_set():
            waits.set()
            threading.Event().wait()  # for ever: the thread would write into the files of later tests
        if len(problems) == 1:
            told.set()
        return problems.pop(0) if len(problems) > 1 else problems[0]

    keep_telling("worker", problem, 0.01)
    assert told.wait(30)
    try:
        eventually(lambda: problem_of(said) == Problem(said="stuck", restart=True), "it is told")
    finally:
        over.set()
        assert waits.wait(30)


def test_a_session_that_asks_for_nothing_loses_its_lead(
    engine: Engine, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cotrail.workers.leading.IDLE_SECONDS", 0.5)
    with suppress(OperationalError), session(engine, 0.0) as frozen, session(engine, 0.0) as other:
        assert frozen.lead()
        eventually(other.lead, "the other one leads")
        for _ in range(3):
            other.woken(0.3)
            assert other.lead()
        with pytest.raises(IdleSessionTimeout):
            frozen.lead()
