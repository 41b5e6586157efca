"""Health check: `python -m cotrail.workers.health` reads a process's report of itself in the file COTRAIL_READY_FILE.

A process that exists may be frozen, and one that answers may have no working thread left. So workers report every few
seconds what keeps them from their work, if anything does, and the maintenance process reports after each sweep.

The check itself ends nothing. Its caller ends a process that has failed it for long enough: the supervisor of the
local stack (`cotrail.workers.stack.supervisor`), Compose's health checks, or Kubernetes' liveness probe.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

# Readiness file, by which a process reports that it can take work, and how it is.

VARIABLE = "COTRAIL_READY_FILE"
"""The environment variable that names the file; the local stack and the containers set it."""


def announce(name: str, problem: str = "") -> None:
    """Write that the process of that name lives, and what keeps it from its work; nothing where no file is named."""
    if path := os.environ.get(VARIABLE):
        temporary = Path(f"{path}.{os.getpid()}")
        try:
            temporary.write_text(f"{name} {os.getpid()}\n{problem}\n")
            # As a whole: the check never reads half a report.
            temporary.replace(path)
        except OSError:  # as on a full disk, where the former report can still be touched: this process isn't silent
            with suppress(OSError):
                os.utime(path)


def withdraw() -> None:
    """Remove what another process reported in the same file: a container that is started again keeps its files."""
    if path := os.environ.get(VARIABLE):
        Path(path).unlink(missing_ok=True)


WANTED = "COTRAIL_WANTED"
"""The environment variable that names the folder in which maintenance asks for workers; the local stack sets it."""

ON_DEMAND = ("evidence",)
"""The roles whose workers the local stack starts with the first step for them: few systems have any."""


def want(roles: Iterable[str]) -> None:
    """Ask for a worker of those of these roles that are started on demand; nothing where no folder is named."""
    if folder := os.environ.get(WANTED):
        with suppress(OSError):  # asked for again by the next sweep
            for role in set(ON_DEMAND).intersection(roles):
                Path(folder, f"{role}.wanted").touch()


SILENT_SECONDS = 30.0
"""How old the report of a working process may be."""

TOLD_SECONDS = 3.0
"""The interval between reports."""


class Problem(Struct, frozen=True, kw_only=True):
    """What keeps a process from its work."""

    said: str

    starting: bool = False
    """Whether that is only that it is starting, however long it takes."""

    restart: bool = False
    """Whether another process in its place may work: this one is frozen, or says that it can't continue."""


def keep_telling(name: str, problem: Callable[[], str | None], seconds: float = TOLD_SECONDS) -> None:
    """Start a thread that reports every so many seconds how the process of that name is.

    problem: returns what keeps the process from its work; None where nothing does.
    """

    def tell() -> None:
        while True:
            try:
                announce(name, problem() or "")
            except Exception as error:  # noqa: BLE001 - a problem that can't be reported is one too
                announce(name, repr(error))
            time.sleep(seconds)

    threading.Thread(target=tell, name="health", daemon=True).start()


def problem_of(path: Path) -> Problem | None:
    """Return what is wrong with the process that writes this file; None where it works."""
    try:
        silent, report = time.time() - path.stat().st_mtime, path.read_text()
    except FileNotFoundError:
        return Problem(said=f"{path} isn't there: the process hasn't begun to work", starting=True)
    if silent > SILENT_SECONDS:
        return Problem(said=f"it has reported nothing for {silent:.0f} s", restart=True)
    reported = " ".join(report.splitlines()[1:]).strip()
    return Problem(said=reported, restart=True) if reported else None


def main() -> None:
    """Exit with 1 and the reason, unless the process works."""
    path = os.environ.get(VARIABLE)
    if not path:
        sys.exit(f"{VARIABLE} isn't set; set it for the process and for this check to the same file")
    problem = problem_of(Path(path))
    sys.exit(problem.said if problem else None)


if __name__ == "__main__":
    main()
