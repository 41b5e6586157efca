"""Extensions: systems, kinds of actions and other records of one's own, in a folder outside of cotrail."""

import os
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from platformdirs import user_data_path

from cotrail.errors import InputError

PACKAGE = "cotrail_extensions"
"""The package as which the folder is imported, so that its modules can import one another."""


def extension_files() -> tuple[Path, ...]:
    """Return the modules in `extensions` in the home, by name; those whose names begin with `_` are only imported."""
    home = Path(os.environ.get("COTRAIL_HOME", "").strip() or user_data_path("cotrail"))
    files = (
        *(home / "extensions").glob("*.py"),
        *(path.parent for path in (home / "extensions").glob("*/__init__.py")),
    )
    return tuple(sorted(path for path in files if not path.name.startswith("_")))


@cache
def load_extensions() -> None:
    """Import the modules in the folder, and add the records at their top level to cotrail's registries, once.

    Raises InputError where a module can't be imported, or names a record as another one is named.
    """
    files = extension_files()
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
        for record in _records(module):
            _add(record, file)


def _records(module: ModuleType) -> Iterator[Any]:
    """The records at a module's top level, also those in tuples, such as a system's versions; each once."""
    seen: list[int] = []
    for value in vars(module).values():
        for each in value if isinstance(value, tuple) else (value,):
            if type(each) in _registries() and id(each) not in seen:
                seen.append(id(each))
                yield each


def _add(record: Any, file: Path) -> None:
    registry = _registries()[type(record)]
    records = registry.values() if isinstance(registry, dict) else registry
    if any(record is each for each in records):  # as where a module imports it from another one
        return
    if any(_key(each) == _key(record) for each in records):
        raise InputError(f"the extension {file} names something {record.name}, as another one is named; rename it")
    if isinstance(registry, dict):
        registry[record.name] = record
    else:
        registry.append(record)


def _key(record: Any) -> tuple[str, int]:
    return record.name, getattr(record, "version", 1)


@cache
def _registries() -> dict[type, dict[str, Any] | list[Any]]:
    """The registry of each type of record; imported only where there are extensions."""
    from cotrail.core.actions.kind import ActionKind
    from cotrail.core.actions.registry import KINDS
    from cotrail.engines.retrieval.engine import FolderEngine
    from cotrail.engines.retrieval.registry import ENGINES
    from cotrail.systems.registry import SYSTEMS
    from cotrail.systems.spec import SystemSpec

    return {ActionKind: KINDS, FolderEngine: ENGINES, SystemSpec: SYSTEMS}
