"""Real search servers for tests and benchmarks, from a folder beside the repository.

The folder has `elasticsearch/start` and `opensearch/start`. `start HOME PORT` runs a single-node server in the
foreground, which keeps its data in HOME and prints its address once it answers.
"""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from urllib.request import urlopen

from msgspec import Struct

FOLDER = Path(os.environ.get("TEST_SEARCH_SERVERS") or Path(__file__).parents[2] / "shared" / "search-servers")

NAMES = ("elasticsearch", "opensearch")

HEAP = "-Xms512m -Xmx512m"
"""Java's heap; beside it, the system's page cache holds as much of the index as fits."""

QUICK = f"{HEAP} -XX:TieredStopAtLevel=1"
"""For tests: halves the time until the server answers, at the cost of its speed later on."""

WITH_PARENT = ("setpriv", "--pdeathsig", "KILL")
"""Makes the kernel kill a server when the thread that started it ends, however that happens."""


class Running(Struct, frozen=True):
    """A server that answers; pid: its process id, if known."""

    name: str
    url: str
    pid: int | None = None


def available(folder: Path = FOLDER) -> tuple[str, ...]:
    """The servers that can be started here."""
    able = all(map(shutil.which, ("java", WITH_PARENT[0])))
    return tuple(name for name in NAMES if able and (folder / name / "start").exists())


def begin(
    name: str, home: Path, port: int = 0, *, output: int, options: str = QUICK, folder: Path = FOLDER
) -> subprocess.Popen[str]:
    """Start a server without waiting until it answers; its data and its log are in `home`.

    output: where its address is printed, as for `subprocess`. options: Java's.
    """
    home.mkdir(parents=True, exist_ok=True)
    command = [*WITH_PARENT, str(folder / name / "start"), str(home), str(port)]
    environment = {**os.environ, f"{name.upper()}_JAVA_OPTS": options}
    with (home / "log").open("a") as log:
        return subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=log, text=True
        )


@contextmanager
def running(name: str, options: str = QUICK, folder: Path = FOLDER) -> Iterator[Running]:
    """Run a server at a free port; it is removed with its data. RuntimeError if it ends before it answers."""
    with tempfile.TemporaryDirectory(prefix=f"cotrail-{name}-") as home:
        process = begin(name, Path(home), output=subprocess.PIPE, options=options, folder=folder)
        try:
            yield Running(name, _address(process, Path(home)), process.pid)
        finally:
            process.kill()
            process.wait()


def version(url: str) -> str:
    """Product and version of a server."""
    with urlopen(url, timeout=10) as answer:
        told = json.load(answer)["version"]
    return f"{told.get('distribution', 'elasticsearch')} {told['number']}"


def piped(stream: IO[str] | None) -> IO[str]:
    """Return a stream of a process that was started with a pipe for it; ValueError if it has none."""
    if stream is None:
        raise ValueError("the process was started without a pipe for this stream")
    return stream


def _address(process: subprocess.Popen[str], home: Path) -> str:
    with piped(process.stdout) as output:
        address = output.readline().strip()
    if not address:
        raise RuntimeError(f"the server ended before it answered: {(home / 'log').read_text()[-2000:]}")
    return address
