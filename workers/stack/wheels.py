"""Programs of the servers, which come in wheels."""

from importlib.util import find_spec
from pathlib import Path

from cotrail.errors import UnavailableError


def package_folder(name: str, *, extra: str) -> Path:
    """Return the folder of an installed package, found without importing it.

    extra: the optional part of cotrail that installs it. Raises UnavailableError where it isn't installed.
    """
    found = find_spec(name)
    if found is None or found.origin is None:
        raise UnavailableError(f"the local stack needs {name}: pip install 'cotrail[{extra}]'")
    return Path(found.origin).parent
