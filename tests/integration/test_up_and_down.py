"""`cotrail up` beside `cotrail down`, and where servers can't write."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from redis import Redis

from cotrail.configuration.settings import Settings
from cotrail.errors import UnavailableError
from cotrail.workers.stack import postgres
from cotrail.workers.stack.stack import Stack
from cotrail.workers.stack.status import State, Status
from tests.conftest import wait_until


@pytest.fixture
def stack() -> Iterator[Stack]:
    with tempfile.TemporaryDirectory(prefix="cn-") as home:
        made = Stack(Settings(home=Path(home), database_url=None, broker_url=None))
        yield made
        made.remove()


def status(stack: Stack, name: str) -> Status:
    return next(each for each in stack.status() if each.name == name)


def test_what_down_has_stopped_in_between_is_no_success(stack: Stack) -> None:
    stack.start_servers()
    stack.check_started()
    stack.down()
    with pytest.raises(UnavailableError, match="`cotrail down` has stopped"):
        stack.check_started()
    assert {each.state for each in stack.status()} == {State.STOPPED}


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """A disk of 256 KiB in place of a folder."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("this account may not mount a disk")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_redis_that_cannot_write_is_not_starting_and_says_why() -> None:
    with tempfile.TemporaryDirectory(prefix="cn-") as made, small_disk(Path(made, "redis")):
        stack = Stack(Settings(home=Path(made), database_url="postgresql://elsewhere/x", broker_url=None))
        try:
            stack.start_servers()
            with Redis(unix_socket_path=str(Path(made, "run", "redis.sock"))) as client:
                client.set("more than the disk holds", bytes(1_000_000))
            wait_until(lambda: status(stack, "redis").problem, "it can't write")
            shown = status(stack, "redis")
            assert shown.state is State.RUNNING
            assert not shown.works
            assert "No space left on device" in (shown.problem or "")
            assert f"whether the disk of {made}/redis is full" in (shown.problem or "")
            assert stack.frozen("redis") is None
        finally:
            stack.down()


def test_a_postgresql_without_room_for_its_log_says_so(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    stack.start_servers()
    assert status(stack, "postgres").problem is None
    monkeypatch.setattr(postgres, "LEAST_FREE", 2**62)
    shown = status(stack, "postgres")
    assert shown.state is State.RUNNING
    assert "its disk is full" in (shown.problem or "")
    assert stack.frozen("postgres") is None
