"""Logs are begun anew while processes write them: nothing is lost, and they stay short."""

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cotrail.workers import logs
from tests.conftest import wait_until
from tests.faults.stacked import ROOT

SHORT = 20_000

WRITER = f"""
import os, signal, sys
from cotrail.workers import logs
logs.MOST_BYTES, logs.LOOK_SECONDS, logs.KEPT_FILES = {SHORT}, 0.001, int(sys.argv[1])
logs.keep_bounded()
for number in range(int(sys.argv[2])):
    if number % 2:
        print(number, flush=True)
    else:
        os.write(2, b"%d\\n" % number)  # as a library in C does
os.kill(os.getpid(), signal.SIGKILL)
"""


def write(log: Path, kept: int, lines: int) -> None:
    """Has a process write so many lines and die."""
    with logs.open_log(log) as file:
        command = [sys.executable, "-c", WRITER, str(kept), str(lines)]
        done = subprocess.run(command, env={logs.VARIABLE: str(log)}, cwd=ROOT, stdout=file, stderr=file)
    assert done.returncode == -signal.SIGKILL


def written(log: Path) -> list[int]:
    """What is in the log and in the former ones.

    In the order of numbers: for a moment one of a process's outputs goes to the new log and the other to the former.
    """
    return sorted(int(line) for path in log.parent.glob(f"{log.name}*") for line in path.read_text().splitlines())


def test_no_line_is_lost_to_a_new_log_or_to_a_kill(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "worker.log"
    write(log, kept=100, lines=100_000)
    assert len(list(log.parent.iterdir())) > 3
    assert written(log) == list(range(100_000))


def test_of_many_lines_the_last_ones_are_kept(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "worker.log"
    write(log, kept=2, lines=200_000)
    names = {path.name for path in log.parent.iterdir()}
    # The kill may come while the logs are moved up by one, when the first place is empty.
    assert {"worker.log", "worker.log.2"} <= names <= {"worker.log", "worker.log.1", "worker.log.2"}
    kept = written(log)[1:]  # what was written beside the first one may be in the former log, which is gone
    assert kept == list(range(200_000 - len(kept), 200_000))


def test_what_another_process_writes_is_copied_and_it_goes_on_at_the_beginning(tmp_path: Path) -> None:
    log = tmp_path / "postgres.log"
    with logs.open_log(log) as held:
        for round_ in range(4):
            held.write(b"%d" % round_ * 100)
            held.flush()
            logs.rotate_copied(log)
            assert log.read_bytes() == b""
        held.write(b"next")
    assert log.read_bytes() == b"next"
    assert (tmp_path / "postgres.log.1").read_bytes() == b"3" * 100
    assert (tmp_path / "postgres.log.2").read_bytes() == b"2" * 100
    assert len(list(tmp_path.iterdir())) == 3
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_a_copy_that_there_is_no_room_for_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "postgres.log"
    log.write_bytes(b"now")
    (tmp_path / "postgres.log.1").write_bytes(b"before")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", full)
    for _ in range(3):
        with pytest.raises(OSError, match="No space"):
            logs.rotate_copied(log)
    assert log.read_bytes() == b"now"
    assert (tmp_path / "postgres.log.1").read_bytes() == b"before"


def test_output_that_goes_elsewhere_is_left_there(tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    log.write_bytes(bytes(SHORT + 1))
    command = [sys.executable, "-c", WRITER, "2", "1000"]
    done = subprocess.run(command, env={logs.VARIABLE: str(log)}, cwd=ROOT, capture_output=True)
    assert done.stdout.count(b"\n") == 500
    assert log.stat().st_size == SHORT + 1


def test_outside_of_the_stack_nothing_looks_after_logs() -> None:
    code = "import threading; from workers import logs; logs.keep_bounded(); print(threading.active_count())"
    done = subprocess.run([sys.executable, "-c", code], env={}, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "1\n"


def test_a_thread_that_finds_no_log_goes_on(tmp_path: Path) -> None:
    code = f"""
import time
from pathlib import Path
from cotrail.workers import logs
logs.LOOK_SECONDS, logs.MOST_BYTES = 0.001, 10
path = {str(tmp_path / "redis.log")!r}
logs.keep_bounded()
logs.keep_others_bounded([Path(path)])
time.sleep(0.05)
open(path, "w").write("x" * 11)
while True:
    time.sleep(1)
"""
    environment = {logs.VARIABLE: str(tmp_path / "gone.log")}
    with subprocess.Popen([sys.executable, "-c", code], env=environment, cwd=ROOT) as process:
        try:
            wait_until((tmp_path / "redis.log.1").exists, "the log is cut", 20)
        finally:
            process.kill()
