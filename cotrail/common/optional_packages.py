"""Optional dependencies, which only some installations of cotrail have."""

import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from cotrail.errors import NotInstalledError


@contextmanager
def installed_with(extra: str) -> Iterator[None]:
    """Turns a failed import in the block into NotInstalledError, which says how to install what the extra needs."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise not_installed(error.name or "a package", extra) from error


Library = tuple[str, str] | None
"""A package that an engine runs on, and the extra of cotrail that installs it; None where it needs none."""


class OnLibrary(Protocol):
    """An engine that may run on a library."""

    @property
    def library(self) -> Library:
        """Its library."""


def check_library(engine: OnLibrary) -> None:
    """Raises NotInstalledError, which names the extra to install, where an engine's library isn't there."""
    if engine.library is not None:
        check_package(*engine.library)


def check_package(package: str, extra: str) -> None:
    """Raises NotInstalledError, which says how to install it, where a package isn't there. It isn't imported."""
    if find_spec(package) is None:
        raise not_installed(package, extra)


def not_installed(package: str, extra: str) -> NotInstalledError:
    """The error for a package that isn't there, which says how to install what the extra needs."""
    return NotInstalledError(f"{package} isn't installed: `{install_extra(extra)}`")


def install_extra(extra: str) -> str:
    """The command that installs what an extra of cotrail needs.

    It names packages, as no index may have cotrail itself: it may have come from a folder or a wheel.
    """
    lines = (line.partition(";") for line in metadata.requires("cotrail") or ())
    return install(*(package.strip() for package, _, marker in lines if re.search(rf"extra == .{extra}\b", marker)))


def install(*arguments: str) -> str:
    """The command that installs into this Python's environment, even if another is active or it has no pip."""
    pip = shutil.which("pip")
    if pip is not None and Path(pip).parent.samefile(Path(sys.executable).parent):
        installer = ["pip", "install"]
    elif _is_installed("pip"):
        installer = [sys.executable, "-m", "pip", "install"]
    else:
        installer = ["uv", "pip", "install", "--python", sys.executable]
    return shlex.join([*installer, *arguments])


def _is_installed(package: str) -> bool:
    # By its metadata: looking for the module pip has setuptools replace distutils, and warn where that is imported.
    try:
        metadata.distribution(package)
    except metadata.PackageNotFoundError:
        return False
    return True


def extra_with(module: str) -> str:
    """The first extra of cotrail that installs a module; `local` where none is known to."""
    package = re.escape(module.partition(".")[0].replace("_", "-"))
    pattern = re.compile(rf"{package}\b[^-].*extra == .(\w+)")
    matches = (pattern.match(line) for line in metadata.requires("cotrail") or ())
    return next((match[1] for match in matches if match), "local")
