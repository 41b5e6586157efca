"""A group of commands, each of which is imported when it is carried out; the nearest where one is misspelt.

`cotrail --help` imports none of them, and has the first paragraphs of their docstrings; a command's own help imports
only what its signature needs.
"""

import ast
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from inspect import unwrap
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from msgspec import Meta, Struct, inspect
from pydantic import ValidationError
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.main import get_group

from cotrail.common.nearest import nearest, refused_choice, unknown
from cotrail.common.printable_text import cut
from cotrail.common.refusals import LONGEST_VALUE, example, in_words
from cotrail.common.toml_files import read_toml
from cotrail.configuration.extensions import COMMANDS as ADDED
from cotrail.configuration.extensions import load_extensions

logger = logging.getLogger(__name__)


class Entry(Struct, frozen=True, kw_only=True):
    """A command, or a group of commands."""

    panel: str
    """That of `cotrail --help` in which it is listed."""

    name: str

    place: str
    """Its module, and its function or group in there, whose docstring or help has its line in the list."""

    negative_numbers: bool = False
    """Whether an argument may begin with a dash."""

    here: str = ""
    """Why a server can't carry it out (`cotrail --server`); empty where one can."""


COMMANDS = tuple(
    msgspec.convert({"panel": panel, "name": name, **entry}, Entry)
    for panel, entries in read_toml(Path(__file__).with_name("commands.toml")).items()
    for name, entry in entries.items()
)


# The commands' signatures, without what only their bodies need: help, completion and usage errors take no more.
#
# A command module imports at its top what it works with, as every module does. To show the help of one of its commands,
# only a part of it is run: the command functions' signatures and docstrings, and the statements at the top that these
# refer to. Each function's body is replaced by a call of the real one, so the module itself is imported when the
# command is called.
#
# So what a signature refers to should be light; a name that only completion asks for is imported in the function that
# completes (`autocompletion`).

CARRY_OUT = "_carry_out"
"""The name under which a signature's function finds the call of the real one."""


def signatures(module: str, wanted: Iterable[str]) -> dict[str, Any]:
    """Return what a module's signatures need, by name: the wanted functions or groups, with the groups' commands."""
    source = _source(module)
    if source is None:  # as in a package without sources
        return vars(import_module(module))
    tree = ast.parse(source)
    part = ast.Module(_needed(tree.body, set(wanted)), type_ignores=[])
    names = {"__name__": module, CARRY_OUT: lambda name, given: unwrap(getattr(import_module(module), name))(**given)}
    exec(compile(ast.fix_missing_locations(part), f"<signatures of {module}>", "exec"), names)  # noqa: S102 - our own
    return names


def _source(module: str) -> str | None:
    spec = find_spec(module)
    get_source = getattr(spec and spec.loader, "get_source", None)
    source: str | None = get_source(module) if get_source else None
    return source


def _needed(statements: list[ast.stmt], wanted: set[str]) -> list[ast.stmt]:
    """Return the statements that bind what is wanted and what those refer to, in their order, and the groups' commands.

    Functions that are wanted themselves, or that a group has as commands, keep their signature only.
    """
    needed: dict[int, ast.stmt] = {}
    names, grown = set(wanted), True
    while grown:
        grown = False
        for place, statement in enumerate(statements):
            command = _is_command(statement, wanted)
            if place not in needed and (command or names & _bound(statement)):
                needed[place] = _without_body(statement) if command else statement
                names |= _read(needed[place])
                grown = True
    return [needed[place] for place in sorted(needed)]


def _is_command(statement: ast.stmt, wanted: set[str]) -> bool:
    """Return whether it is a function that is wanted, or that a wanted group has as a command (`@group.command()`)."""
    if not isinstance(statement, ast.FunctionDef):
        return False
    return statement.name in wanted or any(wanted & _read(decorator) for decorator in statement.decorator_list)


def _without_body(function: Any) -> ast.stmt:
    """Return a function with its docstring, which is the help, and a call of the real one."""
    call = ast.parse(f"{CARRY_OUT}({function.name!r}, locals())").body
    without: ast.FunctionDef = function
    without.body = [*function.body[:1], *call]
    return without


def _bound(statement: ast.stmt) -> set[str]:
    """Return the names that a statement binds."""
    match statement:
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            return {alias.asname or alias.name.partition(".")[0] for alias in aliases}
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
    return _names(statement, ast.Store)


def _read(part: ast.AST) -> set[str]:
    """Return the names that a part of the code refers to."""
    return _names(part, ast.Load)


def _names(part: ast.AST, context: type[ast.expr_context]) -> set[str]:
    return {each.id for each in ast.walk(part) if isinstance(each, ast.Name) and isinstance(each.ctx, context)}


# Help as people read it: typer names the Python type of every flag and argument, which says nothing to them.

_type_of_option = TyperOption.display_type_rich


def leave_out_types() -> None:
    """Has all help leave out `<bool>` behind flags and `<str>` behind arguments: typer has no setting for that."""
    setattr(TyperOption, "display_type_rich", _type_of_value)  # noqa: B010 - mypy lets no method be assigned
    setattr(TyperArgument, "display_type_rich", lambda *_, **__: None)  # noqa: B010


def _type_of_value(option: TyperOption, ctx: Any) -> str | None:
    return None if option.is_flag else _type_of_option(option, ctx)


class LazyGroup(TyperGroup):
    """The commands of `cotrail`.

    Its `commands` are outlines, with what lists and completion show of them; the command itself takes its outline's
    place when it is called or completed.
    """

    def __init__(self, *, entries: Iterable[Entry] = COMMANDS, **attributes: Any) -> None:
        super().__init__(**attributes)
        self._entries = {entry.name: entry for entry in entries}
        self.commands = {
            name: TyperCommand(name, rich_help_panel=entry.panel, rich_markup_mode="markdown")
            for name, entry in self._entries.items()
        }

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help of all commands, each with its own summary."""
        self._summarize()
        super().format_help(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Return the completions; those of commands have their summaries."""
        self._summarize()
        return super().shell_complete(ctx, incomplete)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command by its name; one that isn't cotrail's may be an extension's."""
        if cmd_name not in self.commands:
            self._add()
        return super().get_command(ctx, cmd_name)

    def _add(self) -> None:
        """Add the commands of extensions; one that is named as one of cotrail's is named in a warning."""
        load_extensions()
        for name, command in ADDED.items():
            if name in self._entries:
                logger.warning("the command %s of an extension can't be used: cotrail has one of that name", name)
                continue
            self.commands[name] = _made(name, command.run, rich_help_panel="Added by extensions")

    def _summarize(self) -> None:
        self._add()
        for name, summary in summaries(self._entries.values()).items():
            self.commands[name].help = summary

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the called command's name, the command, and the arguments that are left for it."""
        name, _, rest = super().resolve_command(ctx, args)
        if name is None:
            return None, None, rest
        return name, load(self._entries[name]) if name in self._entries else self.commands[name], rest


class _Command(TyperCommand):
    """A command whose `--map` takes several pairs behind it, as `--map question=query answers=gold_answer`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments."""
        spread: list[str] = []
        for each in args:
            follows = len(spread) > 1 and spread[-2] == "--map" and "=" in each and not each.startswith("-")
            spread += ["--map", each] if follows else [each]
        return super().parse_args(ctx, spread)


def load(entry: Entry) -> Any:
    """Return a command, which imports its module when it is carried out: a TyperCommand or a TyperGroup."""
    load_extensions()
    module, name = entry.place.split(":")
    signature = signatures(f"cotrail.cli.commands.{module}", [name])[name]
    settings = {"ignore_unknown_options": entry.negative_numbers}
    return _made(entry.name, signature, context_settings=settings)


def _made(name: str, run: Any, *, rich_help_panel: str | None = None, context_settings: Any = None) -> Any:
    """Return the command that typer makes of a function, or the group that it makes of an app."""
    app = typer.Typer(rich_markup_mode="markdown")
    if isinstance(run, typer.Typer):
        app.add_typer(run, name=name, rich_help_panel=rich_help_panel)
    else:
        app.command(name, cls=_Command, rich_help_panel=rich_help_panel, context_settings=context_settings)(run)
    return get_group(app).commands[name]


def summaries(entries: Iterable[Entry]) -> dict[str, str]:
    """Return the first paragraph of each command's docstring, or of its group's help, by name; none is imported."""
    names: dict[str, dict[str, str]] = {}
    for entry in entries:
        module, name = entry.place.split(":")
        names.setdefault(module, {})[name] = entry.name
    return {
        wanted[name]: " ".join(text.split("\n\n")[0].split())
        for module, wanted in names.items()
        for name, text in _documented(f"cotrail.cli.commands.{module}")
        if name in wanted
    }


def _documented(module: str) -> Iterator[tuple[str, str]]:
    """Yield the functions of a module with their docstrings, and its groups with their help."""
    for statement in ast.parse(_source(module) or "").body:
        if isinstance(statement, ast.FunctionDef):
            yield statement.name, ast.get_docstring(statement) or ""
        elif isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
            helps = (each.value for each in statement.value.keywords if each.arg == "help")
            yield from ((ast.unparse(statement.targets[0]), str(ast.literal_eval(each))) for each in helps)


# What a command line that can't be understood probably meant: the nearest command, option or choice.

WORDS: dict[str, list[str]] = read_toml(Path(__file__).with_name("usual_words.toml"))
"""Words of other programs that people try first, with the commands that do what these mean."""

_COMMAND = re.compile(r"\ANo such command '(?P<name>.*?)'\.?(?: Did you mean .*)?$", re.DOTALL)
_ABSENT = re.compile(
    r"\AMissing (?:argument|option) '(?P<name>.*?)'(?:\. Choose from:\s*+(?P<choices>.*))?$", re.DOTALL
)
_SURPLUS = re.compile(r"\AGot unexpected extra arguments?(?:\(s\))? \((?P<given>.*)\)$", re.DOTALL)
_EXAMPLE = re.compile(r"Examples?: (`[^`]+`)")
_CHOICE = re.compile(
    r"\AInvalid value for '(?P<what>[^:]*)': (?:Value error, )?'(?P<given>.*)' is not one of (?P<choices>.*)$",
    re.DOTALL,
)
_QUOTED = re.compile(r"'(.*?)'")

LONGEST_HELP = 160
"""Characters that a message has of an argument's help."""


def usage(error: typer.TyperException) -> str:
    """One line on a command line that can't be understood: what is wrong with it, and where to read on."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "cotrail"
    message = _problem(error, error.format_message().rstrip("."), context)
    return message if message.endswith("?") else f"{message}; see `{command} --help`"


def _problem(error: typer.TyperException, message: str, context: typer.Context | None) -> str:
    if context and (match := _ABSENT.match(message)):
        return _absent(match["name"], match["choices"], context)
    if context and message.startswith("No such option: "):
        name = message.removeprefix("No such option: ").split(" ", 1)[0]
        return unknown("option", name, _options(context))
    if context and isinstance(context.command, TyperGroup) and (match := _COMMAND.match(message)):
        return unknown_command(match["name"], context.command.list_commands(context), context.command_path)
    if isinstance(cause := error.__cause__, ValidationError) and cause.errors()[0]["type"] != "value_error":
        return _refused_number(getattr(error, "param", None), cause)
    if match := _SURPLUS.match(message):
        return f"{match['given']} is one argument too many"
    if match := _CHOICE.match(message):
        choices = _QUOTED.findall(match["choices"])
        return refused_choice(match["what"], match["given"], choices)
    return message


def _refused_number(parameter: Any, cause: ValidationError) -> str:
    """The message for what is no number, or out of bounds; cause: pydantic's error, by which typer reads numbers."""
    kind: type[int | float] = int if "int" in cause.title else float
    low, high = (None if bound is None else kind(bound) for bound in (parameter.min, parameter.max))
    bounded: Any = Annotated[kind, Meta(ge=low, le=high)]
    declared = inspect.type_info(bounded)
    name = parameter.metavar if not parameter.opts[0].startswith("-") else max(parameter.opts, key=len)
    value = cut(str(cause.errors()[0]["input"]), LONGEST_VALUE)
    return f"{name} must be {in_words(declared)}, e.g. {example(declared, None, None)}, not {value!r}"


def unknown_command(name: str, commands: Iterable[str], group: str = "cotrail") -> str:
    """The message for a command that doesn't exist; group: the command line before it."""
    meant = WORDS.get(name.lower()) if group == "cotrail" else None
    if meant is None:
        message = unknown("command", name, commands)
        return message if nearest(name, commands) else message.partition(";")[0]
    return f"there is no command {name!r}; did you mean {_either(meant)}?"


def _either(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


def _absent(name: str, choices: str | None, context: typer.Context) -> str:
    """The message for an argument or option that is missing, with what can stand there."""
    parameters = (each for each in context.command.params if name in (each.metavar, *each.opts))
    text = choices or next((getattr(each, "help", None) for each in parameters), None)
    example = _EXAMPLE.search(context.command.help or "")
    message = f"{name} is missing{f', as in {example[1]}' if example else ''}"
    return f"{message}: {cut(text, LONGEST_HELP).rstrip('.')}" if text else message


def _options(context: typer.Context) -> list[str]:
    return [name for parameter in context.command.params for name in parameter.opts if name.startswith("--")]
