"""The commands' signatures, without what only their bodies need: help, completion and usage errors take no more.

A command module imports at its top what it works with, as every module does. To show the help of one of its commands,
only a part of it is run: the command functions' signatures and docstrings, and the statements at the top that these
refer to. Each function's body is replaced by a call of the real one, so the module itself is imported when the command
is called.

So what a signature refers to should be light; a name that only completion asks for is imported in the function that
completes (`autocompletion`).
"""

import ast
from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from inspect import unwrap
from typing import Any

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
