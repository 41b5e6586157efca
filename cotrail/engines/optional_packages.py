"""Optional dependencies, which only some installations of cotrail have."""

from collections.abc import Iterator
from contextlib import contextmanager

from cotrail.errors import NotInstalledError


@contextmanager
def installed_with(extra: str) -> Iterator[None]:
    """Turns a failed import in the block into NotInstalledError, which names the extra to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise NotInstalledError(f"{error.name} isn't installed: `pip install 'cotrail[{extra}]'`") from error
