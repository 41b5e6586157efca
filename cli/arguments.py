"""Arguments and options that several commands share."""

from collections.abc import Callable, Collection, Iterable
from typing import Annotated, Any

import msgspec
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


def assigned(arguments: Iterable[str], texts: Collection[str] = ()) -> dict[str, Any]:
    """Values from `KEY=VALUE`; a value is read as JSON, and taken as text where it isn't any or belongs to `texts`."""
    values: dict[str, Any] = {}
    for each in arguments:
        key, equals, text = each.partition("=")
        if not equals:
            raise InputError(f"{each!r} sets nothing: write KEY=VALUE")
        values[key] = text if key in texts else _value(text)
    return values


def _value(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
