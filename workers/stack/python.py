"""The local stack's Python processes: workers, maintenance, the service and Flower."""

import os
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from cotrail.configuration.settings import Settings
from cotrail.configuration.variables import PREFIX
from cotrail.core.actions.kind import Role
from cotrail.workers import logs, ready
from cotrail.workers.allocator import TUNED
from cotrail.workers.health import problem_of
from cotrail.workers.stack import address
from cotrail.workers.stack.address import Address
from cotrail.workers.stack.flower import HEALTH, PASSWORD, USER, Access
from cotrail.workers.stack.process import Service
from cotrail.workers.stack.web import HOST, answers, problem

FLOWER_URL = f"{PREFIX}FLOWER_URL"

COTRAIL = (sys.executable, "-m", "cotrail.cli.main")


def worker(settings: Settings, role: Role, *, events: bool) -> Service:
    """The worker of a role."""
    return _worker(settings, role, (*COTRAIL, "worker", role, *(("--events",) if events else ())))


def maintenance(settings: Settings) -> Service:
    """The process that admits, sends and recovers steps."""
    return _worker(settings, "maintenance", (*COTRAIL, "worker", "maintenance"))


def supervisor(settings: Settings, name: str) -> Service:
    """One of the two processes that start again what died."""
    return _python(settings, name, (sys.executable, "-m", "cotrail.workers.stack.supervisor", name), {})


def flower(settings: Settings, access: Access) -> Service:
    """Flower, behind user and password."""
    return Service(
        name="flower",
        command=(*COTRAIL, "flower", f"--address={HOST}", f"--port={access.port}"),
        folder=_folder(settings, "flower"),
        # Not on the command line, which every user of the machine can read.
        environment={**_environment(settings), USER: access.user, PASSWORD: access.password},
        ready=partial(answers, access.port, HEALTH),
        problem=partial(problem, access.port, HEALTH),
    )


def api(settings: Settings, at: Address, flower: Access | None) -> Service:
    """The service over HTTP, on loopback alone; flower: where its pages find Flower, if that runs."""
    known = {} if flower is None else {FLOWER_URL: flower.url}
    return Service(
        name="api",
        command=(*COTRAIL, "serve", f"--host={HOST}", f"--port={at.port}"),
        folder=_folder(settings, "api"),
        environment={**known, **_environment(settings)},
        ready=partial(answers, at.port, address.READY),
        problem=partial(problem, at.port, address.HEALTH),
    )


def ready_file(settings: Settings, name: str) -> Path:
    """Return the readiness file of a worker."""
    return settings.home.absolute() / "run" / f"{name}.ready"


def _worker(settings: Settings, name: str, command: tuple[str, ...]) -> Service:
    return _python(settings, name, command, TUNED)


def _python(settings: Settings, name: str, command: tuple[str, ...], defaults: Mapping[str, str]) -> Service:
    """A process of this package, which tells how it is and bounds its log.

    defaults: variables for where the user's environment doesn't have them.
    """
    file = ready_file(settings, name)
    own = {ready.VARIABLE: str(file), logs.VARIABLE: str(logs.log_path(settings.home.absolute(), name))}
    return Service(
        name=name,
        command=command,
        folder=_folder(settings, name),
        environment={**defaults, **_environment(settings), **own},
        ready=file.exists,
        problem=partial(problem_of, file),
        transient=(file,),
    )


def _folder(settings: Settings, name: str) -> Path:
    """Return an empty working folder: Python imports from there first, and `tasks` is a common name for a folder."""
    return settings.home.absolute() / "work" / name


def _environment(settings: Settings) -> dict[str, str]:
    """Return the user's environment with relative paths made absolute, as the processes work elsewhere."""
    environment = {**os.environ, "COTRAIL_HOME": str(settings.home.absolute())}
    for name in (ready.VARIABLE, logs.VARIABLE):  # a supervisor's own
        environment.pop(name, None)
    if settings.corpora is not None:
        environment["COTRAIL_CORPORA"] = str(settings.corpora.absolute())
    if path := os.environ.get("PYTHONPATH"):
        environment["PYTHONPATH"] = os.pathsep.join(str(Path(entry).absolute()) for entry in path.split(os.pathsep))
    return environment
