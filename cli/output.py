"""How the command line prints: text wrapped to the terminal, numbers for people, JSON for programs.

All that it prints goes through here, so that nothing of it is obeyed by a terminal (`cotrail.common.printable_text`).
"""

import sys
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from cotrail.common.printable_text import (
    COMMANDS,
    UNPRINTABLE,
    isolated,
    one_line,
    printable,
    printable_json,
    without_commands,
)

PLAIN_WIDTH = 100
"""Columns where the output is no terminal."""

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.", rich_help_panel="Output")]


class Screen(Console):
    """A terminal that only rich itself commands. A string is one line of it, whatever is in it; a Text may be more."""

    def render_str(self, text: str, **options: Any) -> Text:
        """The string as a line."""
        return super().render_str(without_commands(one_line(text)), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """What is to be printed, piece by piece."""
        shown = _without_commands(renderable) if isinstance(renderable, Text) else renderable
        for segment in super().render(shown, options):
            yield segment if segment.control else segment._replace(text=isolated(without_commands(segment.text)))


def _without_commands(text: Text) -> Text:
    """The same text, in its styles, without control characters and escape sequences."""
    marks = [offset for found in COMMANDS.finditer(text.plain) for offset in found.span()]
    if not marks:
        return text
    return text.blank_copy(UNPRINTABLE).join(text.divide(marks)[::2])


def console(*, stderr: bool = False) -> Console:
    """The terminal; nothing that it prints is taken for markup, as texts may hold brackets."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else PLAIN_WIDTH
    return Screen(file=stream, markup=False, emoji=False, highlight=False, width=width)


def encode_json(value: Any) -> bytes:
    """JSON in one line, with escapes for what a terminal would obey."""
    return printable_json(msgspec.json.encode(value))


def print_json(value: Any) -> None:
    """One JSON object in one line."""
    typer.echo(encode_json(value))


def print_exact(text: str) -> None:
    """The text and nothing else, byte for byte where another program reads it; a terminal gets it printable."""
    typer.echo((printable(text) if sys.stdout.isatty() else text).encode(), nl=False)


def grid(*styles: str, ratio_last: bool = True) -> Table:
    """A table without lines, a style a column; the last one takes the rest of the width and wraps."""
    table = Table.grid(padding=(0, 2), expand=False)
    for number, style in enumerate(styles, start=1):
        last = number == len(styles) and ratio_last
        table.add_column(style=style, no_wrap=not last, overflow="fold" if last else "ellipsis")
    return table


def cut(text: str, characters: int) -> str:
    """The text on one line, with an ellipsis where it is longer; cut between words where there are any."""
    line = " ".join(without_commands(text).split())
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
    return Text(one_line(text), style="bold")
