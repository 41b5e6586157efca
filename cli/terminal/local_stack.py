"""The local stack, for the commands that start, stop and show it."""

from typing import TYPE_CHECKING

from cotrail.configuration.settings import settings
from cotrail.engines.optional_packages import installed_with

if TYPE_CHECKING:
    from cotrail.workers.stack.stack import Stack


def local_stack() -> "Stack":
    """The stack of the home that the settings name; raises NotInstalledError."""
    with installed_with("local"):
        from cotrail.workers.stack.stack import Stack
    return Stack(settings())


def startable_stack() -> "Stack":
    """The same, if everything that it needs is installed; raises NotInstalledError, which names all that is missing."""
    from cotrail.workers.stack.requirements import check_requirements

    check_requirements(settings())
    return local_stack()
