"""The servers' programs, which come in wheels."""

from importlib.util import find_spec
from pathlib import Path

from cotrail.errors import UnavailableError


def package_folder(name: str, *, extra: str) -> Path:
    """The folder of an installed package, found without importing it.

    Raises `UnavailableError` if it isn't installed; `extra` is the part of cotrail that brings it.
    """
    found = find_spec(name)
    if found is None or found.origin is None:
        raise UnavailableError(f"the local stack needs {name}: pip install 'cotrail[{extra}]'")
    return Path(found.origin).parent
