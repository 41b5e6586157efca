"""How the command line prints: text wrapped to the terminal, numbers for people, JSON for programs."""

import sys
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

PLAIN_WIDTH = 100
"""Columns where the output is no terminal."""

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.", rich_help_panel="Output")]


def console(*, stderr: bool = False) -> Console:
    """The terminal; nothing that it prints is taken for markup, as texts may hold brackets."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else PLAIN_WIDTH
    return Console(file=stream, markup=False, emoji=False, highlight=False, width=width)


def print_json(value: Any) -> None:
    """One JSON object in one line."""
    typer.echo(msgspec.json.encode(value))


def grid(*styles: str, ratio_last: bool = True) -> Table:
    """A table without lines, a style a column; the last one takes the rest of the width and wraps."""
    table = Table.grid(padding=(0, 2), expand=False)
    for number, style in enumerate(styles, start=1):
        last = number == len(styles) and ratio_last
        table.add_column(style=style, no_wrap=not last, overflow="fold" if last else "ellipsis")
    return table


def cut(text: str, characters: int) -> str:
    """The text on one line, with an ellipsis where it is longer; cut between words where there are any."""
    line = " ".join(text.split())
    if len(line) <= characters:
        return line
    head = line[: characters - 1]
    return (head.rsplit(" ", 1)[0] if " " in head[characters // 2 :] else head) + "…"


def duration(seconds: float) -> str:
    """e.g. `80 ms`, `4.2 s`, `42 s`, `3 min 05 s`, `2 h 10 min`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def number(value: float | None, digits: int = 3) -> str:
    """A mean, or a dash where there is none."""
    return "-" if value is None else f"{value:.{digits}f}"


def count(value: int, noun: str) -> str:
    """e.g. `1 question`, `1,200 questions`."""
    return f"{value:,} {noun}" if value == 1 else f"{value:,} {noun}s"


def heading(text: str) -> Text:
    """A line that begins a part of the output."""
    return Text(text, style="bold")
