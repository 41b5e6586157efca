"""`cotrail models`: the models that there are."""

from typing import Annotated

import msgspec
import typer
from rich.console import Console

from cotrail.cli.arguments import Json, refuse_elsewhere
from cotrail.cli.terminal.columns import Column, print_rows
from cotrail.cli.terminal.output import console, grid, heading, print_exact, print_json
from cotrail.configuration.settings import settings
from cotrail.engines.language_models.providers import PROVIDERS
from cotrail.errors import InputError
from cotrail.services.library import models as operations
from cotrail.services.library.models import DescribedModel, ListedModel, ask_model, in_words
from cotrail.services.operations.operation import is_remote


def models(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The model to describe.", show_default=False)
    ] = None,
    *,
    ask: Annotated[
        bool,
        typer.Option("--ask", help="Ask a served model what it takes, and print the table that fits it."),
    ] = False,
    json: Json = False,
) -> None:
    """List the models, built-in ones and those of models.toml; of one, its settings and what it can do.

    No model is loaded, and no server is asked, unless with `--ask`: then a served model is sent a few dozen small
    requests at most, which cost a little where it is paid for. Its table in models.toml needs `engine` and `url` alone.

    Example: `cotrail models openai/gpt-5.1 --ask`
    """
    if ask:
        _ask(name, json=json)
    elif json:
        print_json(operations.list_models() if name is None else operations.describe_models(name))
    elif name is not None:
        for each in operations.describe_models(name):
            _print_model(console(), each)
    else:
        titles = ("model", "kind", "engine", "state", "where")
        listed = operations.list_models()
        print_rows(console(), [Column(title=title) for title in titles], [_row(each) for each in listed])
        for problem in (each.problem for each in listed if each.state == "malformed"):
            console().print(problem, style="red", soft_wrap=True)
        place = "the server's models.toml" if is_remote() else settings().catalogue_path
        hint = (
            f"Further ones are tables of {place}, or PROVIDER/MODEL for {', '.join(PROVIDERS)}. "
            "`cotrail models NAME` says more of one."
        )
        console().print(hint, style="dim", soft_wrap=True)


def _ask(name: str | None, *, json: bool) -> None:
    refuse_elsewhere("`cotrail models --ask`")
    if name is None:
        raise InputError("--ask needs the NAME of the model to ask")
    progress = console(stderr=True)
    asked = ask_model(name, lambda line: progress.print(line, style="dim", soft_wrap=True))
    if json:
        print_json(asked)
        return
    progress.print(f"Asked with {in_words(asked.requests, asked.spent)}.", soft_wrap=True)
    print_exact(asked.toml)


def _row(each: ListedModel) -> list[str]:
    name = f"{each.name} (default)" if each.default else each.name
    return [name, each.kind, each.engine, each.state, "built in" if each.built_in else each.location]


def _print_model(screen: Console, model: DescribedModel) -> None:
    screen.print(heading(f"{model.name} ({model.kind}{', the default one' * model.default})"))
    about = grid("dim", "")
    about.add_row("engine", model.engine)
    about.add_row("state", f"{model.state}: {model.problem}" if model.problem else model.state)
    if model.state != "malformed":
        about.add_row("where", model.location or "not installed")
    for key, value in model.table.items():
        if key not in ("path", "url") and value not in (None, "", (), []):
            about.add_row(key, value if isinstance(value, str) else msgspec.json.encode(value).decode())
    about.add_row("profiles", ", ".join(model.profiles))
    for capability, lacking in model.capabilities.items():
        about.add_row(capability, "yes" if lacking is None else f"no: it {lacking}")
    screen.print(about)
