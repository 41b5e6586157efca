"""Extensions: systems, kinds of actions and other records of one's own, in a folder or in installed packages."""

import logging
import os
import sys
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType

from platformdirs import user_data_path

from cotrail.common.processes import FOLDERS
from cotrail.errors import InputError

logger = logging.getLogger(__name__)

PACKAGE = "cotrail_extensions"
"""The package as which the folder is imported, so that its modules can import one another."""


GROUP = "cotrail."
"""The beginning of the groups of entry points, such as `cotrail.systems`: each names a record, or a module of some."""


def home() -> Path:
    """Return the home, whether it is there or not."""
    return Path(os.environ.get("COTRAIL_HOME", "").strip() or user_data_path("cotrail"))


def extensions_folder() -> Path:
    """Return the folder of extensions in the home, whether it is there or not."""
    return home() / "extensions"


def systems_folder() -> Path:
    """Return the folder of the home in which the texts of systems are kept that runs brought in files."""
    return home() / "systems"


def extension_files() -> tuple[Path, ...]:
    """Return the modules in the folder, by name; those whose names begin with `_` are only imported by others."""
    folder = extensions_folder()
    files = (*folder.glob("*.py"), *(path.parent for path in folder.glob("*/__init__.py")))
    return tuple(sorted(path for path in files if not path.name.startswith("_")))


@cache
def load_extensions() -> None:
    """Import the modules in the folder, and add the records at their top level to cotrail's registries, once.

    Those of installed packages come first; one that can't be had is logged, and the rest are there.
    Raises InputError where a module of the folder can't be imported, or names a record as another one is named.
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
            loaded = point.load()
            for record in registries.records_in(loaded if isinstance(loaded, ModuleType) else {"": loaded}):
                registries.register(record, Path(*getattr(top, "__path__", [top.__file__])[:1]))
        except Exception as error:  # noqa: BLE001 - whatever its code raises
            named = f"{point.name} of the package {point.dist.name if point.dist else 'that has it'}"
            logger.warning("the extension %s can't be used (%s: %s)", named, type(error).__name__, error)
    if not files:
        return
    package = ModuleType(PACKAGE)
    package.__path__ = [str(files[0].parent)]
    sys.modules[PACKAGE] = package
    for file in files:
        try:
            module = import_module(f"{PACKAGE}.{file.stem}")
        except Exception as error:
            raise InputError(
                f"the extension {file} can't be imported ({type(error).__name__}: {error}); correct it, or move it away"
            ) from error
        for record in registries.records_in(module):
            registries.register(record, file)


def _entry_points() -> tuple[EntryPoint, ...]:
    points = entry_points()
    ours = (each for group in points.groups if group.startswith(GROUP) for each in points.select(group=group))
    return tuple(sorted(ours, key=lambda each: each.name))
