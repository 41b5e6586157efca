"""Extensions: systems, kinds of actions and other records of one's own, in a folder outside of cotrail."""

import os
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

from platformdirs import user_data_path

from cotrail.errors import InputError

PACKAGE = "cotrail_extensions"
"""The package as which the folder is imported, so that its modules can import one another."""


def extensions_folder() -> Path:
    """Return the folder of extensions in the home, whether it is there or not."""
    return Path(os.environ.get("COTRAIL_HOME", "").strip() or user_data_path("cotrail")) / "extensions"


def extension_files() -> tuple[Path, ...]:
    """Return the modules in the folder, by name; those whose names begin with `_` are only imported by others."""
    folder = extensions_folder()
    files = (*folder.glob("*.py"), *(path.parent for path in folder.glob("*/__init__.py")))
    return tuple(sorted(path for path in files if not path.name.startswith("_")))


@cache
def load_extensions() -> None:
    """Import the modules in the folder, and add the records at their top level to cotrail's registries, once.

    Raises InputError where a module can't be imported, or names a record as another one is named.
    """
    files = extension_files()
    if not files:
        return
    registries = import_module("cotrail.configuration.registries")  # all of cotrail: only where it is needed
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
