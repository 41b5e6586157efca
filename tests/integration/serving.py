"""The service as a process of its own on a free port, and the command line that goes through it."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx2

from tests.conftest import wait_until


class Server:
    """A server process; url: its address; environment: its variables."""

    def __init__(self, environment: Mapping[str, str], log: Path) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        # As asyncio sets it, which doesn't know what kind of socket uvicorn was given.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.port = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.environment = {**os.environ, **environment}
        self._log = log
        self.start()

    def start(self) -> None:
        """Start it, again where it was killed: the socket stays open, and connections wait in it."""
        command = [sys.executable, "-m", "uvicorn", "cotrail.api.serving:application", "--factory"]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "--fd", str(self._socket.fileno())],
                env=self.environment,
                pass_fds=[self._socket.fileno()],
                stdout=log,
                stderr=log,
            )
        wait_until(self._answers, "the server answers")

    def kill(self) -> None:
        """Kill it."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Stop it for good."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait()
        self._socket.close()

    def _answers(self) -> bool:
        if self._process.poll() is not None:
            raise AssertionError(self._log.read_text())
        try:
            return httpx2.get(f"{self.url}/v1/openapi/openapi.json", timeout=1).status_code == 200
        except httpx2.HTTPError:
            return False


@contextmanager
def serving(environment: Mapping[str, str], log: Path) -> Iterator[Server]:
    """Run a server with these variables; its log goes to the file."""
    server = Server(environment, log)
    try:
        yield server
    finally:
        server.stop()
