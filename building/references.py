"""`python -m building.references`: pages of the documentation that are written from the code: commands, Python, HTTP.

They aren't in git: `make docs` writes them before it builds the site.
"""

import inspect
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from typer.core import TyperArgument, TyperGroup

import cotrail
from cotrail.cli.lazy_group import COMMANDS, load
from cotrail.services.operations.all_operations import OPERATIONS

FOLDER = Path(__file__).parents[1] / "docs" / "reference"
"""Where they are written."""

WIDTH = 100
"""Characters of a signature in one line at most."""


def pages() -> dict[str, str]:
    """The text of each page, by the name of its file."""
    return {
        "commands.md": "\n".join(["# All commands", "", *_commands()]) + "\n",
        "python.md": "\n".join(["# The Python API", "", *_names()]) + "\n",
        "http.md": "\n".join(["# Operations over HTTP", "", *_operations()]) + "\n",
    }


def write(folder: Path = FOLDER) -> None:
    """Write the pages."""
    folder.mkdir(exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, "utf-8")


def _commands() -> Iterator[str]:
    for panel, entries in groupby(COMMANDS, key=lambda each: each.panel):
        yield from (f"## {panel}", "")
        for entry in entries:
            yield from _command(load(entry), f"cotrail {entry.name}")


def _command(command: Any, path: str) -> Iterator[str]:
    if isinstance(command, TyperGroup):
        yield from (f"### {path}", "", _line(command.help), "")
        for name, part in command.commands.items():
            yield from _command(part, f"{path} {name}")
        return
    yield from (f"### {path}", "", *_paragraphs(command.help))
    rows = [_parameter(each) for each in command.params if not getattr(each, "hidden", False)]
    yield from _table(("", ""), rows)


def _parameter(parameter: Any) -> tuple[str, str]:
    flags = [*parameter.opts, *parameter.secondary_opts]
    name = parameter.metavar or parameter.name.upper() if isinstance(parameter, TyperArgument) else ", ".join(flags)
    return f"`{name}`", _line(getattr(parameter, "help", ""))


def _names() -> Iterator[str]:
    yield from ("`import cotrail` loads nothing; each of these is imported as it is first used.", "")
    for name in sorted(cotrail.__all__):
        value = getattr(cotrail, name)
        yield from (f"## cotrail.{name}", "", "```python", _signature(name, value), "```", "")
        yield from _paragraphs(inspect.getdoc(value))
        methods = [
            (f"`{each}`", _line((inspect.getdoc(member) or "").split("\n\n")[0]))
            for each, member in (inspect.getmembers(value) if isinstance(value, type) else ())
            if not each.startswith("_") and (inspect.isfunction(member) or isinstance(member, property))
        ]
        yield from _table(("", ""), methods)


def _signature(name: str, value: Any) -> str:
    signature = inspect.signature(value)
    whole = f"{name}{signature}"
    if len(whole) > WIDTH:
        parts = "".join(f"    {each},\n" for each in signature.parameters.values())
        answer = "" if signature.return_annotation is signature.empty else f" -> {signature.return_annotation}"
        whole = f"{name}(\n{parts}){answer}"
    return whole.replace("cotrail.", "").replace("<class '", "").replace("'>", "")


def _operations() -> Iterator[str]:
    yield from ("Each is described whole in `GET /v1/openapi.json`, and in the service's own pages.", "")
    every = sorted(OPERATIONS.values(), key=lambda each: each.name)
    for group, operations in groupby(every, key=lambda each: each.name.partition(".")[0]):
        yield from (f"## {group}", "")
        rows = [
            (f"`{each.method} /v1{each.path}`", f"`{each.name}`, scope {each.scope.value}. {_line(_first(each))}")
            for each in operations
        ]
        yield from _table(("", ""), rows)


def _first(operation: Any) -> str:
    return (inspect.getdoc(operation.function) or "").split("\n\n")[0]


def _paragraphs(text: str | None) -> Iterator[str]:
    """Paragraphs of a docstring; names of arguments at their beginnings stay as they are."""
    for paragraph in (text or "").split("\n\n"):
        yield from (_line(paragraph), "")


def _line(text: str | None) -> str:
    return " ".join((text or "").split())


def _table(titles: tuple[str, str], rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    escaped = [" | ".join(each.replace("|", "\\|") for each in row) for row in rows]
    if escaped:
        yield from (f"| {' | '.join(titles)} |", "| --- | --- |", *(f"| {row} |" for row in escaped), "")


if __name__ == "__main__":
    write()
