"""`cotrail systems`: the systems that there are, and their settings."""

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from cotrail.cli.arguments import Json, completing, refuse_elsewhere
from cotrail.cli.terminal.columns import Column, print_rows
from cotrail.cli.terminal.output import console, grid, heading, print_json
from cotrail.errors import InputError
from cotrail.services.library import systems as operations
from cotrail.services.library.systems import DescribedSystem, Setting, write_words


def _names() -> list[str]:
    from cotrail.services.library.systems import list_systems

    return [each.name for each in list_systems()]


def systems(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="The system to describe.", show_default=False, autocompletion=completing(_names)
        ),
    ] = None,
    *,
    words: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Write the words of the system's prompts to files there, for a run to bring them changed (--prompt).",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """List the systems; of one, all settings with their defaults and meanings.

    Settings are the `[settings]` of a run file, and `--set` of `cotrail fork`.
    """
    if words is not None:
        _write_words(name, words)
    elif json:
        print_json(operations.list_systems() if name is None else operations.describe_system(name))
    elif name is not None:
        _print_system(console(), operations.describe_system(name))
    else:
        columns = Column(title="system", style="bold"), Column(title="title"), Column(title="what it does")
        print_rows(console(), columns, [[each.name, each.title, each.meaning] for each in operations.list_systems()])
        console().print("`cotrail systems NAME` has the settings.", style="dim", soft_wrap=True)


def _write_words(name: str | None, folder: Path) -> None:
    refuse_elsewhere("`cotrail systems --words`")
    if name is None:
        raise InputError("--words writes the prompts of one system; name it")
    for path in write_words(name, folder):
        console().print(str(path), soft_wrap=True, markup=False, highlight=False)


def _print_system(screen: Console, system: DescribedSystem) -> None:
    screen.print(heading(f"{system.title} (system = {_toml(system.name)}, version {system.version})"))
    screen.print(Text(system.meaning))
    about = grid("dim", "")
    if system.paper:
        about.add_row("paper", system.paper)
    if system.words:
        about.add_row("prompts", ", ".join(system.words))
    about.add_row("needs", "; ".join(system.needs) or "a language model alone")
    screen.print(about)
    screen.print()
    screen.print(heading("Settings"))
    for setting in system.settings:
        _print_setting(screen, setting)
    _print_changes(screen, {'rules = "released" sets': system.released})
    _print_changes(screen, {f"Ablation: {what}": changes for what, changes in system.ablations.items()})


def _print_setting(screen: Console, setting: Setting) -> None:
    screen.print(Text(setting.name, style="bold").append(f" = {_toml(setting.default)}", style="not bold cyan"))
    about = grid("", "dim")
    kind = f"{setting.type}: {', '.join(setting.choices)}" if setting.choices else setting.type
    about.add_row(" ", f"{setting.meaning} ({kind})".strip())
    screen.print(about)


def _print_changes(screen: Console, changes: dict[str, dict[str, Any]]) -> None:
    for what, settings in changes.items():
        if settings:
            screen.print()
            screen.print(heading(what))
            for name, value in settings.items():
                screen.print(Text(f"  {name} = {_toml(value)}"))


def _toml(value: Any) -> str:
    """The value as a run file has it; a setting that isn't given is left out there."""
    return "(not set)" if value is None else msgspec.json.encode(value).decode()
