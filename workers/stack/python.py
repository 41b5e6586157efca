"""The local stack's own processes: workers, maintenance and Flower."""

import os
import sys
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from configuration.settings import Settings
from cotrail.core.actions.kind import Role
from cotrail.core.actions.registry import carried_out_by
from workers.allocator import TUNED
from workers.logs import OTHERS, OWN, log_path
from workers.ready import VARIABLE
from workers.stack.flower import HOST, Access, answers
from workers.stack.process import Service

CELERY = (sys.executable, "-m", "celery", "-A", "workers.app")

QUIET = ("-l", "INFO", "--without-gossip", "--without-mingle")
"""Workers share nothing but the queue, so they needn't greet one another: a second less at each start."""


FOREIGN = ("postgres", "redis", "flower")
"""The services whose programs can't begin their logs anew by themselves."""


def generation(settings: Settings, *, events: bool) -> Service:
    """The worker that runs prompts."""
    slots = str(settings.generation_slots)
    options = ("-Q", _queues("generation"), "-P", "threads", "-c", slots, "-n", "generation@%h", *QUIET)
    return _worker(settings, "generation", (*CELERY, "worker", *options, *_events(events)))


def retrieval(settings: Settings, *, events: bool) -> Service:
    """The worker that searches."""
    options = ("-Q", _queues("retrieval"), "-P", "threads", "-c", "2", "-n", "retrieval@%h", *QUIET)
    return _worker(settings, "retrieval", (*CELERY, "worker", *options, *_events(events)))


def evidence(settings: Settings, *, events: bool) -> Service:
    """The worker that compares sentences; it loads its models when it first needs them."""
    options = ("-Q", _queues("evidence"), "-P", "threads", "-c", "16", "-n", "evidence@%h", *QUIET)
    return _worker(settings, "evidence", (*CELERY, "worker", *options, *_events(events)))


def maintenance(settings: Settings) -> Service:
    """The process that finds what nobody works on."""
    service = _worker(settings, "maintenance", (sys.executable, "-m", "workers.maintenance"))
    logs = (str(log_path(settings.home.absolute(), name)) for name in FOREIGN)
    return replace(service, environment={**service.environment, OTHERS: os.pathsep.join(logs)})


def flower(settings: Settings, access: Access) -> Service:
    """Flower, for those who know user and password."""
    return Service(
        name="flower",
        # What is on the command line holds whatever the environment or a file says.
        command=(*CELERY, "flower", f"--address={HOST}", f"--port={access.port}", "--read-only=true"),
        folder=_folder(settings, "flower"),
        # Not on the command line, which everybody on the machine can read.
        environment={**_without_flowers(_environment(settings)), "FLOWER_BASIC_AUTH": access.credentials},
        ready=partial(answers, access.port),
    )


def _without_flowers(environment: dict[str, str]) -> dict[str, str]:
    """Without a person's own settings of Flower, some of which open it to anybody."""
    return {name: value for name, value in environment.items() if not name.startswith("FLOWER_")}


def ready_file(settings: Settings, name: str) -> Path:
    """Where a worker says how it is."""
    return settings.home.absolute() / "run" / f"{name}.ready"


def _queues(role: Role) -> str:
    """The queues that the workers of a role listen to: one for each kind that they carry out."""
    return ",".join(carried_out_by(role))


def _events(wanted: bool) -> tuple[str, ...]:  # noqa: FBT001 - the one thing it is about
    return ("-E",) if wanted else ()


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
    """An empty folder: Python and Celery import from where they work, and `tasks` is a common name for a folder."""
    return settings.home.absolute() / "work" / name


def _environment(settings: Settings) -> dict[str, str]:
    """The person's own, with relative paths made absolute, as the processes work elsewhere."""
    environment = {**os.environ, "COTRAIL_HOME": str(settings.home.absolute())}
    if settings.corpora is not None:
        environment["COTRAIL_CORPORA"] = str(settings.corpora.absolute())
    if path := os.environ.get("PYTHONPATH"):
        environment["PYTHONPATH"] = os.pathsep.join(str(Path(entry).absolute()) for entry in path.split(os.pathsep))
    return environment
