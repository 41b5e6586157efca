"""Fixtures of all tests: an environment without cotrail's variables, a bounded wait, and the servers of a test run."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator

import hypothesis
import pytest
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_incrementing

from cotrail.configuration.settings import Settings, settings
from cotrail.services.store import close_stores
from cotrail.workers.stack.stack import Stack
from tests import search_servers
from tests.clusters import lay_cluster

pytest_plugins = ["tests.durations", "tests.heap", "tests.leases", "tests.slow"]

# Tests start hundreds of Python processes, and each would compile the whole package again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# llama.cpp's and PyTorch's threads wait for each other after every small step: on cores that other tests use as well, a
# text then takes a hundred times as long. Set before they are loaded, and for the processes that tests start too.
os.environ["OMP_THREAD_LIMIT"] = "1"

Eventually = Callable[..., None]

# A process that a shell starts in the background ignores Ctrl-C, and its children would too: tests interrupt commands.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests hold on slow machines too, so that nothing fails for the time that an example takes.
hypothesis.settings.register_profile(
    "any machine", deadline=None, derandomize=True, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any machine")


def pytest_report_header() -> str:
    return f"searches are tested on: {', '.join(search_servers.tested())}"


@pytest.fixture(autouse=True)
def no_variables() -> Iterator[None]:
    # Not the fixture `monkeypatch`: used here, it would outlive the other fixtures of every test.
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("COTRAIL_")]:
            patch.delenv(name)
        settings.cache_clear()
        yield
    close_stores()
    settings.cache_clear()


@pytest.fixture(scope="module")
def transformers() -> None:
    """Skips the module where PyTorch and transformers aren't installed, which tests import where they need them."""
    pytest.importorskip("torch", reason="PyTorch isn't installed")
    pytest.importorskip("transformers", reason="transformers isn't installed")


@pytest.fixture(autouse=True, scope="module")
def no_threads_left() -> Iterator[None]:
    """A runtime's threads that outlive their test would renew leases in tests of other modules."""
    before = set(threading.enumerate())
    yield
    started = set(threading.enumerate()) - before
    own = [thread for thread in started if thread.name in ("heartbeat", "overdue")]
    for thread in own:
        thread.join(60)
    assert not [thread for thread in own if thread.is_alive()]


def wait_until(condition: Callable[[], object], what: str = "what was waited for", seconds: float = 150) -> None:
    """Waits until a condition holds; fails the test with `what` if it doesn't in time."""

    def late(_: object) -> None:
        pytest.fail(f"after {seconds} s still not: {what}")

    looking = Retrying(
        retry=retry_if_result(lambda holds: not holds),
        wait=wait_incrementing(start=0.02, increment=0.002, max=0.1),  # looking takes from what is waited for
        stop=stop_after_delay(seconds),
        retry_error_callback=late,
    )
    looking(condition)


@pytest.fixture(scope="session")
def eventually() -> Eventually:
    return wait_until


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Starts a PostgreSQL and a Redis for the tests, from the wheels; yields the settings that point to them."""
    own = Settings(home=tmp_path_factory.mktemp("servers"), database_url=None, broker_url=None)
    stack = Stack(own)
    lay_cluster(own.home)
    stack.start_servers()
    yield own
    stack.remove()
