"""A group of commands, each of which is imported when it is carried out.

`cotrail --help` imports none of them, and a command's own help only what its signature needs
(`cotrail.cli.signatures`).
"""

from collections.abc import Iterable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from cotrail.cli.command_table import COMMANDS, Entry
from cotrail.cli.signatures import signatures
from cotrail.configuration.extensions import load_extensions


class LazyGroup(TyperGroup):
    """The commands of `cotrail`.

    Its `commands` are outlines, with what lists and completion show of them; the command itself takes its outline's
    place when it is called or completed.
    """

    def __init__(self, *, entries: Iterable[Entry] = COMMANDS, **attributes: Any) -> None:
        super().__init__(**attributes)
        self._entries = {entry.name: entry for entry in entries}
        self.commands = {name: _outline(entry) for name, entry in self._entries.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the called command's name, the command, and the arguments that are left for it."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else load(self._entries[name]), rest


def load(entry: Entry) -> Any:
    """Return a command, which imports its module when it is carried out: a TyperCommand or a TyperGroup."""
    load_extensions()
    module, name = entry.place.split(":")
    signature = signatures(f"cotrail.cli.commands.{module}", [name])[name]
    app = typer.Typer(rich_markup_mode="markdown")
    if isinstance(signature, typer.Typer):
        app.add_typer(signature, name=entry.name)
    else:
        app.command(entry.name, context_settings={"ignore_unknown_options": entry.negative_numbers})(signature)
    return get_group(app).commands[entry.name]


def _outline(entry: Entry) -> TyperCommand:
    return TyperCommand(entry.name, help=entry.summary, rich_help_panel=entry.panel, rich_markup_mode="markdown")
