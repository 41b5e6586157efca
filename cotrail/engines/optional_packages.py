"""Optional dependencies, which only some installations of cotrail have."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from importlib.util import find_spec

from cotrail.errors import NotInstalledError


@contextmanager
def installed_with(extra: str) -> Iterator[None]:
    """Turns a failed import in the block into NotInstalledError, which names the extra to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise not_installed(error.name or "a package", extra) from error


def check_package(package: str, extra: str) -> None:
    """Raises NotInstalledError, which names the extra to install, where a package isn't there. It isn't imported."""
    if find_spec(package) is None:
        raise not_installed(package, extra)


def not_installed(package: str, extra: str) -> NotInstalledError:
    """The error for a package that isn't there, which names the extra to install."""
    return NotInstalledError(f"{package} isn't installed: `pip install 'cotrail[{extra}]'`")


def extra_with(module: str) -> str:
    """The first extra of cotrail that installs a module; `local` where none is known to."""
    package = re.escape(module.partition(".")[0].replace("_", "-"))
    wanted = re.compile(rf"{package}\b[^-].*extra == .(\w+)")
    found = (wanted.match(line) for line in metadata.requires("cotrail") or ())
    return next((match[1] for match in found if match), "local")
