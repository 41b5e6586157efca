"""`cotrail models` and `cotrail systems`: what can be run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from rich.console import Console
from rich.text import Text

from cotrail.cli.request_options import Json, argument, completing, option, refuse_elsewhere
from cotrail.cli.terminal.output import console, grid, heading, in_json, print_exact, print_json, print_rows, titled
from cotrail.configuration.settings import settings
from cotrail.engines.language_models.providers import PROVIDERS, engine_at, provided
from cotrail.errors import InputError
from cotrail.services.library import models as operations
from cotrail.services.library.models import AskedModel, DescribedModel, ListedModel, ask_model, in_words
from cotrail.services.library.systems import DescribedSystem, describe_system, list_systems, write_words
from cotrail.services.operations.operation import is_remote


def models(
    words: Annotated[list[str] | None, argument("models.words")] = None,
    *,
    url: Annotated[str | None, option("models.url")] = None,
    key_variable: Annotated[str | None, option("models.key-variable")] = None,
    model: Annotated[str | None, option("models.model")] = None,
    ask: Annotated[bool, option("models.ask")] = False,
    json: Json = False,
) -> None:
    """List the models, built-in ones and those of models.toml; of one, its settings and what it can do.

    No model is loaded, and no server is asked, unless with `add` or `--ask`: then a served model is sent a few dozen
    small requests at most, which cost a little where it is paid for. `add` writes the table that fits it into
    models.toml, `--ask` prints it. Its table there needs `engine` and `url` alone.

    Examples: `cotrail models add mine --url http://gpu1:8000/v1` · `cotrail models openai/gpt-5.1 --ask`
    """
    match words or []:
        case ["add", name]:
            _add(name, {"url": url, "key_variable": key_variable, "model": model}, json=json)
        case [] | [_] as named if url is None and key_variable is None and model is None:
            _describe(*named, ask=ask, json=json)
        case _:
            raise InputError("`cotrail models NAME` describes a model, `cotrail models add NAME --url URL` adds one")


def _describe(name: str | None = None, *, ask: bool, json: bool) -> None:
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
        print_rows(console(), titled(*titles), [_row(each) for each in listed])
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
    _print_asked(ask_model(name, _print_request), json=json)


def _add(name: str, options: Mapping[str, str | None], *, json: bool) -> None:
    refuse_elsewhere("`cotrail models add`")
    url = options["url"]
    known = provided(name) if url is None else {"engine": engine_at(url)}
    if known is None:
        raise InputError(f"name the server of {name} with --url, or call it PROVIDER/MODEL ({', '.join(PROVIDERS)})")
    given = {**known, **{key: value for key, value in options.items() if value is not None}}
    _print_asked(operations.add_model(name, given, _print_request), json=json)
    if not json:
        console(stderr=True).print(f"Written to {settings().catalogue_path}.", soft_wrap=True)


def _print_request(line: str) -> None:
    console(stderr=True).print(line, style="dim", soft_wrap=True)


def _print_asked(asked: AskedModel, *, json: bool) -> None:
    if in_json(asked, json=json):
        return
    console(stderr=True).print(f"Asked with {in_words(asked.requests, asked.spent)}.", soft_wrap=True)
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


def _names() -> list[str]:
    from cotrail.services.library.systems import list_systems

    return [each.name for each in list_systems()]


def systems(
    name: Annotated[str | None, argument("systems.name", autocompletion=completing(_names))] = None,
    *,
    words: Annotated[Path | None, option("systems.words")] = None,
    json: Json = False,
) -> None:
    """List the systems; of one, all settings with their defaults and meanings.

    Settings are the `[settings]` of a run file, and `--set` of `cotrail fork`.
    """
    if words is not None:
        _write_words(name, words)
    elif json:
        print_json(list_systems() if name is None else describe_system(name))
    elif name is not None:
        _print_system(console(), describe_system(name))
    else:
        columns = titled("system", "title", "what it does", bold=("system",))
        print_rows(console(), columns, [[each.name, each.title, each.meaning] for each in list_systems()])
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
        screen.print(Text(setting.name, style="bold").append(f" = {_toml(setting.default)}", style="not bold cyan"))
        meaning = grid("", "dim")
        kind = f"{setting.type}: {', '.join(setting.choices)}" if setting.choices else setting.type
        meaning.add_row(" ", f"{setting.meaning} ({kind})".strip())
        screen.print(meaning)
    _print_changes(screen, {'rules = "released" sets': system.released})
    _print_changes(screen, {f"Ablation: {what}": changes for what, changes in system.ablations.items()})


def _print_changes(screen: Console, changes: dict[str, dict[str, Any]]) -> None:
    for what, changed in changes.items():
        if changed:
            screen.print()
            screen.print(heading(what))
            for name, value in changed.items():
                screen.print(Text(f"  {name} = {_toml(value)}"))


def _toml(value: Any) -> str:
    """The value as a run file has it; a setting that isn't given is left out there."""
    return "(not set)" if value is None else msgspec.json.encode(value).decode()
