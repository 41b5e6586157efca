"""Arguments and options that several commands share."""

from collections.abc import Callable, Iterable
from typing import Annotated

import typer

from cotrail.errors import InputError
from cotrail.services.operations.operation import is_remote

RunName = Annotated[
    str,
    typer.Argument(metavar="RUN", help="The run's id, the beginning of it, its name, or `latest`.", show_default=False),
]

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.", rich_help_panel="Output")]

Tags = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="TAG", help="A tag, to filter runs by. May be repeated.", show_default=False),
]


def refuse_elsewhere(command: str) -> None:
    """Raises InputError where a server is to carry out what works on this machine alone."""
    if is_remote():
        raise InputError(f"{command} works on this machine alone; leave out --server, and COTRAIL_SERVER")


def completing(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Has the shell complete an argument or an option by these names, which are asked for then (`autocompletion`)."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete
