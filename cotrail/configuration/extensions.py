"""Extensions: systems, kinds of actions and other records of one's own, in a folder or in installed packages.

Commands of `cotrail` and views of runs are here themselves: they belong to no room of the domain.
"""

import logging
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from msgspec import Struct
from platformdirs import user_data_path

from cotrail.common.processes import FOLDERS

logger = logging.getLogger(__name__)

PACKAGE = "cotrail_extensions"
"""The package as which the folder is imported, so that its modules can import one another."""

GROUP = "cotrail."
"""The beginning of the groups of entry points, such as `cotrail.systems`: each names a record, or a module of some."""

_NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")


class Command(Struct, frozen=True, kw_only=True):
    """A command: `cotrail NAME`, carried out on this machine.

    run: a function whose signature typer reads, or a `typer.Typer` with commands of its own; its docstring is the help.
    """

    name: str
    run: Callable[..., Any]

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or not callable(self.run):
            raise ValueError(f"a command has a name of small letters and a function, and not {self.name!r}")


class RunView(Struct, frozen=True, kw_only=True):
    """A page of the viewer about a run: `/runs/RUN/views/NAME`, to which the run's page links.

    html: makes it of the run's questions, each as a line of `cotrail export --format jsonl` has it, read one by one.
        It is shown in a frame of its own, in which no script runs.
    """

    name: str
    title: str
    html: Callable[[Iterable[Mapping[str, Any]]], str]


COMMANDS: dict[str, Command] = {}
VIEWS: dict[str, RunView] = {}
"""Those of extensions by name, as soon as they are loaded."""


def home() -> Path:
    """Return the home, whether it is there or not."""
    return Path(os.environ.get("COTRAIL_HOME", "").strip() or user_data_path("cotrail"))


def extensions_folder() -> Path:
    """Return the folder of extensions in the home, whether it is there or not."""
    return home() / "extensions"


def systems_folder() -> Path:
    """Return the folder of the home in which the texts of systems are kept that runs brought in files."""
    return home() / "systems"


def brings(*, allowed: bool) -> Callable[[str, Mapping[str, str]], None] | None:
    """Return what keeps systems of files as runs recorded them, where this process may run these; see `Runs`."""
    if not allowed:
        return None
    from cotrail.systems.own import bring  # all of the domain: only where it is needed

    return partial(bring, folder=systems_folder())


def extension_files() -> tuple[Path, ...]:
    """Return the modules in the folder, by name; those whose names begin with `_` are only imported by others."""
    folder = extensions_folder()
    files = (*folder.glob("*.py"), *(path.parent for path in folder.glob("*/__init__.py")))
    return tuple(sorted(path for path in files if not path.name.startswith("_")))


@cache
def load_extensions() -> None:
    """Import the modules in the folder, and add the records at their top level to cotrail's registries, once.

    Those of installed packages come first. One that can't be imported, or names a record as another one is named, is
    logged, and the rest are there.
    """
    if systems_folder() not in FOLDERS:
        FOLDERS.append(systems_folder())
    files, points = extension_files(), _entry_points()
    if not files and not points:
        return
    registries = import_module("cotrail.configuration.registries")  # all of cotrail: only where it is needed
    for point in points:
        try:
            top = import_module(point.module.partition(".")[0])
            registries.register_named(point.load(), Path(*getattr(top, "__path__", [top.__file__])[:1]))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever its code raises
            _warn(f"{point.name} of the package {point.dist.name if point.dist else 'that has it'}", error)
    if not files:
        return
    package = ModuleType(PACKAGE)
    package.__path__ = [str(files[0].parent)]
    sys.modules[PACKAGE] = package
    for file in files:
        try:
            module = import_module(f"{PACKAGE}.{file.stem}")
            for record in registries.records_in(module):
                registries.register(record, file)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - as above
            _warn(f"{file}", error)


def _warn(named: str, error: BaseException) -> None:
    logger.warning("the extension %s can't be used (%s: %s)", named, type(error).__name__, error)


def _entry_points() -> tuple[EntryPoint, ...]:
    points = entry_points()
    ours = (each for group in points.groups if group.startswith(GROUP) for each in points.select(group=group))
    return tuple(sorted(ours, key=lambda each: each.name))
