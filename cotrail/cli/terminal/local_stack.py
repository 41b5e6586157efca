"""The local stack, for the commands that start, stop and show it."""

import time
from typing import TYPE_CHECKING

from rich.console import Console

from cotrail.configuration.settings import settings
from cotrail.engines.optional_packages import installed_with

if TYPE_CHECKING:
    from cotrail.workers.stack.stack import Stack
    from cotrail.workers.stack.web import Access

# The local stack, for the commands that start, stop and show it.

LINE_SECONDS = 30.0
"""How often a line says what is being waited for, where the output is no terminal."""


def local_stack() -> "Stack":
    """The stack of the home that the settings name; raises NotInstalledError."""
    with installed_with("local"):
        from cotrail.workers.stack.stack import Stack
    return Stack(settings())


def startable_stack() -> "Stack":
    """The same, if everything that it needs is installed; raises NotInstalledError, which names all that is missing."""
    from cotrail.workers.stack.wheels import check_requirements

    check_requirements(settings())
    return local_stack()


def start(stack: "Stack", screen: Console, *, flower: bool = False) -> "Access | None":
    """Start the stack, and show what is being waited for; returns the access to Flower if it runs.

    Raises UnavailableError where it can't be started. Nothing that it started stays then, nor where it is ended.
    """
    said = time.monotonic()

    with screen.status("starting the local stack…") as status:

        def waiting(line: str) -> None:
            nonlocal said
            if screen.is_terminal:
                status.update(line)
            elif time.monotonic() - said > LINE_SECONDS:
                said = time.monotonic()
                screen.print(line, soft_wrap=True)

        return stack.up(flower=flower, waiting=waiting)
