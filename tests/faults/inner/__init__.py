"""Instrumentation inside a stack's own processes, which run the product's code and commands unchanged.

In a stack whose PYTHONPATH holds `FOLDER` and the repository's root, `sitecustomize` there is loaded by every Python
process before anything else, so that these are in place before the product binds the functions that they wrap:

- `clock`: a process's wall clock is wrong by the seconds in a file;
- `routes`: a worker reaches its servers by ports of its own;
- `executions`: each execution of a step is written down before it begins;
- `panics`: a process's executions panic while a file exists;
- `points`: a process kills itself at the point that a file names.

The files are in the stack's home, in the folder `inner`, one per process and named after it.
"""

import os
import sys
from pathlib import Path

FOLDER = Path(__file__).parent / "path"
ROOT = Path(__file__).parents[3]


def environment() -> dict[str, str]:
    """The variables that make a stack's processes load this package."""
    return {"PYTHONPATH": os.pathsep.join([str(FOLDER), str(ROOT)]), "PYTHONDONTWRITEBYTECODE": "1"}


def folder(home: Path) -> Path:
    """The folder in which a stack's processes look for these files."""
    made = home / "inner"
    made.mkdir(exist_ok=True)
    return made


def process_name() -> str:
    """The name of this process: a service's name in the stack, or a command of the command line."""
    ready = os.environ.get("COTRAIL_READY_FILE")
    return Path(ready).stem if ready else next(iter(sys.argv[1:]), "")


BARE = ("up", "down", "index", "pause")
"""Commands that tests don't instrument: they start faster without."""


def install() -> None:
    """Installs everything; does nothing outside a stack."""
    home = os.environ.get("COTRAIL_HOME")
    if home and process_name() not in BARE:
        from tests.faults.inner import routes

        where, name = folder(Path(home)), process_name()
        routes.install(where / routes.NAME, name)  # before anything reads the environment
        from tests.faults.inner import clock, executions, panics, points

        clock.install(where / f"clock.{name}")
        points.install(where, name)
        panics.install(where / f"panic.{name}")
        executions.install(where / "executions")
