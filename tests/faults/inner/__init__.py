"""What tests do inside of a stack's own processes, which run the product's code and commands as they are.

A stack whose PYTHONPATH holds `FOLDER` and the repository's root has `sitecustomize` there loaded by every Python
process before anything else, and so these are in place before the product binds the functions that they wrap:

- `clock`: a process's wall clock is off by as much as a file says;
- `routes`: a worker reaches its servers by ways of its own;
- `executions`: each execution of a step is written down before it begins;
- `panics`: what a process executes panics while a file is there;
- `points`: a process kills itself where a file says.

The files are in the stack's home, in the folder `inner`, one a process by its name.
"""

import os
import sys
from pathlib import Path

FOLDER = Path(__file__).parent / "path"
ROOT = Path(__file__).parents[3]


def environment() -> dict[str, str]:
    """What has a stack's processes load all this."""
    return {"PYTHONPATH": os.pathsep.join([str(FOLDER), str(ROOT)]), "PYTHONDONTWRITEBYTECODE": "1"}


def folder(home: Path) -> Path:
    """Where a stack's processes look for what they are to do."""
    made = home / "inner"
    made.mkdir(exist_ok=True)
    return made


def process_name() -> str:
    """A service by its name in the stack, a command of the command line by its own."""
    ready = os.environ.get("COTRAIL_READY_FILE")
    return Path(ready).stem if ready else next(iter(sys.argv[1:]), "")


BARE = ("up", "down", "index", "pause")
"""Commands that nothing happens to in tests: they start sooner without."""


def install() -> None:
    """Puts all of it in place; does nothing outside of a stack."""
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
