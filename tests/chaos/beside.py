"""Processes outside the stack: the model's server, and the search server that holds the corpus."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
from msgspec import Struct

from benchmarks import search_servers
from tests.chaos.home import Home
from tests.faults.stacked import ROOT

Process = subprocess.Popen[bytes] | subprocess.Popen[str]


class Beside:
    """A process that can be restarted after it has died."""

    def __init__(self, begin: Callable[[], Process]) -> None:
        self._begin = begin
        self._process: Process | None = None

    def start(self) -> None:
        """Starts it, once its predecessor has ended."""
        if self._process is not None:
            self._process.wait()
        self._process = self._begin()

    def find(self) -> psutil.Process | None:
        """Returns it while it runs."""
        return psutil.Process(self._process.pid) if self._process and self._process.poll() is None else None

    def end(self) -> None:
        """Kills it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


class Search(Struct, frozen=True, kw_only=True):
    """A search server: which one, where its data is, and its port, which stays the same across restarts."""

    name: str
    home: Path
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def begin(self) -> Process:
        """Starts it without waiting until it answers."""
        return search_servers.begin(self.name, self.home, self.port, output=subprocess.DEVNULL)

    def answers(self) -> bool:
        """Return whether it answers by now."""
        try:
            return bool(search_servers.version(self.url))
        except OSError:
            return False


def search_of(seed: int) -> str | None:
    """The search server of a schedule; the available ones take turns. None if there are none."""
    names = search_servers.available()
    return names[seed % len(names)] if names else None


def begin_model(home: Home) -> Process:
    """Starts the model's server."""
    arguments = ["--script", home.script, "--port", home.port, "--mood", home.mood]
    command = [sys.executable, "-m", "tests.chaos.model", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL)
