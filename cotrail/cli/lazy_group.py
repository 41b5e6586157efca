"""A group of commands, each of which is imported when it is carried out.

`cotrail --help` imports none of them, and a command's own help only what its signature needs
(`cotrail.cli.lazy_group`).
"""

import ast
from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from inspect import unwrap
from typing import Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.main import get_group

from cotrail.cli.command_table import COMMANDS, Entry
from cotrail.configuration.extensions import load_extensions

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
