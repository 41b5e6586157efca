"""The local stack's Python processes: workers, maintenance and Flower."""

import os
import sys
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from configuration.settings import Settings
from cotrail.core.actions.kind import Role
from workers.allocator import TUNED
from workers.logs import OTHERS, OWN, log_path
from workers.ready import VARIABLE
from workers.stack.flower import HOST, Access, answers
from workers.stack.process import Service

CELERY = (sys.executable, "-m", "celery", "-A", "workers.app")

COTRAIL = (sys.executable, "-m", "cli.main")

FOREIGN = ("postgres", "redis", "flower")
"""The services whose programs can't rotate their logs themselves."""


def worker(settings: Settings, role: Role, *, events: bool) -> Service:
    """The worker of a role."""
    return _worker(settings, role, (*COTRAIL, "worker", role, *(("--events",) if events else ())))


def maintenance(settings: Settings) -> Service:
    """The process that admits, sends and recovers steps."""
    service = _worker(settings, "maintenance", (*COTRAIL, "worker", "maintenance"))
    logs = (str(log_path(settings.home.absolute(), name)) for name in FOREIGN)
    return replace(service, environment={**service.environment, OTHERS: os.pathsep.join(logs)})


def flower(settings: Settings, access: Access) -> Service:
    """Flower, behind user and password."""
    return Service(
        name="flower",
        # On the command line, which overrides the environment and configuration files.
        command=(*CELERY, "flower", f"--address={HOST}", f"--port={access.port}", "--read-only=true"),
        folder=_folder(settings, "flower"),
        # Not on the command line, which every user of the machine can read.
        environment={**_without_flowers(_environment(settings)), "FLOWER_BASIC_AUTH": access.credentials},
        ready=partial(answers, access.port),
    )


def _without_flowers(environment: dict[str, str]) -> dict[str, str]:
    """Return an environment without the user's own settings of Flower, some of which open it to anyone."""
    return {name: value for name, value in environment.items() if not name.startswith("FLOWER_")}


def ready_file(settings: Settings, name: str) -> Path:
    """Return the readiness file of a worker."""
    return settings.home.absolute() / "run" / f"{name}.ready"


def _worker(settings: Settings, name: str, command: tuple[str, ...]) -> Service:
    ready = ready_file(settings, name)
    return Service(
        name=name,
        command=command,
        folder=_folder(settings, name),
        environment={
            **TUNED,
            **_environment(settings),
            VARIABLE: str(ready),
            OWN: str(log_path(settings.home.absolute(), name)),
        },
        ready=ready.exists,
        transient=(ready,),
    )


def _folder(settings: Settings, name: str) -> Path:
    """Return an empty working folder: Python imports from there first, and `tasks` is a common name for a folder."""
    return settings.home.absolute() / "work" / name


def _environment(settings: Settings) -> dict[str, str]:
    """Return the user's environment with relative paths made absolute, as the processes work elsewhere."""
    environment = {**os.environ, "COTRAIL_HOME": str(settings.home.absolute())}
    if settings.corpora is not None:
        environment["COTRAIL_CORPORA"] = str(settings.corpora.absolute())
    if path := os.environ.get("PYTHONPATH"):
        environment["PYTHONPATH"] = os.pathsep.join(str(Path(entry).absolute()) for entry in path.split(os.pathsep))
    return environment
