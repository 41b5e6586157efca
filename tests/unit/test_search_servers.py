"""Who starts a search server and how it ends, with a script in the place of one."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import psutil
import pytest

from benchmarks.search_servers import WITH_PARENT, available, running
from tests.conftest import Eventually

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(not shutil.which(WITH_PARENT[0]), reason=f"{WITH_PARENT[0]} isn't installed")


def scripted(folder: Path, script: str) -> Path:
    """A folder with one server, which does so."""
    start = folder / "opensearch" / "start"
    start.parent.mkdir()
    start.write_text(f"#!/bin/sh\n{script}\n")
    start.chmod(0o755)
    return folder


def test_a_server_runs_as_long_as_it_is_needed(tmp_path: Path) -> None:
    with running(
        "opensearch", folder=scripted(tmp_path, 'touch "$1/data"; echo http://host:9; exec sleep 60')
    ) as server:
        assert server.url == "http://host:9"
        home = Path(psutil.Process(server.pid).open_files()[0].path).parent
        assert (home / "data").exists()
    assert not psutil.pid_exists(server.pid or 0)
    assert not home.exists()


def test_a_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    folder = scripted(tmp_path, "echo no room >&2; exit 1")
    with pytest.raises(RuntimeError, match="no room"), running("opensearch", folder=folder):
        pass


def test_a_server_does_not_outlive_a_session_that_is_killed(tmp_path: Path, eventually: Eventually) -> None:
    folder = scripted(tmp_path, "echo http://host:9; exec sleep 60")
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from benchmarks.search_servers import running\n"
        "with running('opensearch', folder=Path(sys.argv[1])) as server:\n"
        "    print(server.pid, flush=True)\n"
        "    sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", script, str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, env=environment, stdin=PIPE, stdout=PIPE, text=True) as session:
        assert session.stdout is not None
        server = psutil.Process(int(session.stdout.readline()))
        session.send_signal(signal.SIGKILL)
    eventually(lambda: not server.is_running() or server.status() == psutil.STATUS_ZOMBIE, "the server has ended")


def test_only_what_can_be_started_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    assert available(tmp_path) == ()
    assert available(scripted(tmp_path, "")) == ("opensearch",)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert available(tmp_path) == ()
