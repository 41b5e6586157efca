"""Programs of the servers, which come in wheels."""

from importlib.util import find_spec
from pathlib import Path

from cotrail.engines.optional_packages import not_installed


def package_folder(name: str, *, extra: str) -> Path:
    """Return the folder of an installed package, found without importing it.

    extra: the optional part of cotrail that installs it. Raises NotInstalledError where it isn't installed.
    """
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise not_installed(name, extra)
    return Path(spec.origin).parent
