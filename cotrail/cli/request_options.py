"""The options of commands: as `options.toml` describes them, shared ones, and those of a run, made from its fields."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import reduce, wraps
from inspect import Parameter, signature
from operator import getitem
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from msgspec import inspect
from msgspec.structs import FieldInfo, fields

from cotrail.common.refusals import parts, refusal
from cotrail.common.toml_files import read_toml
from cotrail.core.budgets import Budget
from cotrail.core.ports.encoders import ROLES
from cotrail.data.datasets.registry import DATASETS
from cotrail.errors import InputError
from cotrail.services.operations.operation import is_remote
from cotrail.services.runs.requests import ENGINES_GROUP, RunRequest, described

_DESCRIBED = read_toml(Path(__file__).with_name("options.toml"))


def option(place: str, words: Mapping[str, str] | None = None, **more: Any) -> Any:
    """Return an option of a command as `options.toml` describes it; place: the command, and the option's name.

    words: those in braces in its help. more: what only code can say of it, e.g. its completion.
    """
    about = _about(place, words, more)
    return typer.Option(*about.pop("flags", (f"--{place.rpartition('.')[2]}",)), **about)


def argument(place: str, words: Mapping[str, str] | None = None, **more: Any) -> Any:
    """Return an argument of a command in the same way."""
    return typer.Argument(**_about(place, words, more))


def _about(place: str, words: Mapping[str, str] | None, more: Mapping[str, Any]) -> dict[str, Any]:
    about: dict[str, Any] = reduce(getitem, place.split("."), _DESCRIBED)
    filled = {"help": about["help"].format_map(words)} if words else {}
    return {"show_default": "metavar" not in about, **about, **filled, **more}


# Arguments and options that several commands share.

RunName = Annotated[
    str,
    typer.Argument(metavar="RUN", help="The run's id, the beginning of it, its name, or `latest`.", show_default=False),
]

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.", rich_help_panel="Output")]

Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace a file that is there already.", rich_help_panel="Output")
]

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


NAMES: dict[str, dict[str, str]] = {"dataset": {name: "your own" if name == "jsonl" else "" for name in DATASETS}}
"""The names that may stand for a field, each with a word on it, which help and completion list."""


def _systems() -> list[str]:
    # All systems: only where the shell asks for them.
    from cotrail.systems.registry import SYSTEMS

    return list(dict.fromkeys(spec.name for spec in SYSTEMS))


COMPLETED: dict[str, Callable[[], Iterable[str]]] = {"system": _systems}
"""The names that only completion lists, since they are many."""

BUDGETS = ("question_budget", "run_budget")
"""The options that take limits."""

SINGULAR = {"corpora": "corpus", "engines": "engine", "tags": "tag"}
"""The options that may be repeated: each time they name one of many."""


def with_request_options(command: Callable[..., None], without: Collection[str] = ()) -> Callable[..., None]:
    """Gives a command an option for each field of a request and each role of an engine.

    without: the fields that it has no option for.

    The command has a parameter `options`, which gets those that were given, by the names of fields and roles.
    """
    by_name = {parameter.name: parameter for parameter in _parameters() if parameter.name not in without}

    @wraps(command)
    def flat(**given: Any) -> None:
        options = {name: given.pop(name) for name in by_name}
        command(**given, options=_given(options))

    first, *others = (each for each in signature(command).parameters.values() if each.name != "options")
    parameters = [first, *by_name.values(), *others]
    flat.__signature__ = signature(command).replace(parameters=parameters)  # type: ignore[attr-defined]
    flat.__annotations__ = {each.name: each.annotation for each in parameters}
    return flat


def named_engines(arguments: Iterable[str]) -> dict[str, str]:
    """Engines by role, from `ROLE=NAME`; raises InputError."""
    pairs = {each: each.partition("=") for each in arguments}
    for each, (role, _, name) in pairs.items():
        if not (role and name):
            raise InputError(f"--engine {each} names no engine: write ROLE=NAME, such as extractor=mine")
    return {role: name for role, _, name in pairs.values()}


def limits_in(field: str, arguments: Iterable[str]) -> dict[str, int | float]:
    """A budget from `LIMIT=NUMBER`; raises InputError. Which limits there are is checked with those of a run file."""
    limits: dict[str, int | float] = {}
    for each in arguments:
        name, _, amount = each.partition("=")
        try:
            limits[name.strip()] = int(amount) if amount.strip().isdecimal() else float(amount)
        except ValueError:
            option = field.replace("_", "-")
            raise InputError(f"--{option} {each} is no limit: write LIMIT=NUMBER, such as tokens=20000") from None
    return limits


def budget_in(field: str, arguments: Iterable[str]) -> Budget:
    """A budget from `LIMIT=NUMBER`, of limits that there are; raises InputError."""
    limits = limits_in(field, arguments)
    try:
        return msgspec.convert(limits, Budget)
    except msgspec.ValidationError as error:
        option = field.replace("_", "-")
        raise InputError(f"--{option}: {refusal(error, Budget, limits)}; correct it") from error


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given."""
    values = {name: value for name, value in options.items() if value is not None and value != []}
    if len(values.get("corpora", ())) == 1:
        values["corpus"] = values.pop("corpora")[0]
    limits = {name: limits_in(name, values[name]) for name in BUDGETS if name in values}
    engines = {"engines": named_engines(values["engines"])} if "engines" in values else {}
    fields = {"map": _field_names(values["map"])} if "map" in values else {}
    return values | engines | fields | limits


def _field_names(arguments: Iterable[str]) -> dict[str, str]:
    names: dict[str, str] = {}
    for argument in arguments:
        field, equals, name = argument.partition("=")
        if not (field and equals and name):
            raise InputError(f"--map {argument} names no field: write FIELD=NAME, such as question=query")
        if field in names:
            raise InputError(f"--map names {field} twice, as {names[field]} and as {name}; name it once")
        names[field] = name
    return names


def _parameters() -> Iterator[Parameter]:
    for field in fields(RunRequest):
        about = described(RunRequest, field)
        if about and field.name == "engines":
            for role in ROLES.values():
                yield _parameter(role.name, str, f"The model that {role.work}.", ENGINES_GROUP, "NAME")
        if about:
            yield _parameter(field.name, _type(field), _help(field.name, about), about["group"], about["value"])


def _parameter(name: str, of: Any, text: str, group: str, value: str) -> Parameter:
    option = f"--{SINGULAR.get(name, name)}".replace("_", "-")
    info = typer.Option(
        option,
        help=text,
        rich_help_panel=group,
        metavar=value,
        show_default=False,
        autocompletion=completing(COMPLETED.get(name, lambda: NAMES.get(name, {}))),
    )
    return Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[of | None, info])


def _type(field: FieldInfo) -> Any:
    """The type that typer reads an option into; bounds and choices are checked with those of a run file."""
    for part in parts(inspect.type_info(field.type)):
        match part:
            case inspect.IntType():
                return int
            case inspect.FloatType():
                return float
            case inspect.VarTupleType() | inspect.DictType() | inspect.StructType():
                return list[str]
    return str


def _help(name: str, about: Mapping[str, str]) -> str:
    choices = (f"{each} ({words})" if words else each for each, words in NAMES.get(name, {}).items())
    return f"{about['meaning']}: {', '.join(choices)}." if name in NAMES else about["meaning"]
