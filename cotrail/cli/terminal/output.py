"""Output of the command line: text wrapped to the terminal, and JSON for programs.

All output goes through here, so that no control character in a model's or a file's text reaches the terminal
(`cotrail.common.printable_text`).
"""

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, TextIO, cast

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
from cotrail.errors import InputError

# Files that commands write for people.


def write_text(path: Path, text: str, advice: str) -> None:
    """Writes text in UTF-8; InputError, with the advice, where the file can't be written."""
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise InputError(f"{path} can't be written ({error.strerror}); {advice}") from error


PLAIN_WIDTH = 2**20
"""Columns where the output is no terminal: a file or another program gets whole lines."""


class _Trimmed(io.TextIOBase):
    """A stream whose lines lose the spaces at their ends, which only fill up a table."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        *lines, rest = text.split("\n")
        self._stream.write("".join(f"{line.rstrip(' ')}\n" for line in lines) + rest)
        return len(text)

    def flush(self) -> None:
        self._stream.flush()


class Screen(Console):
    """A console on which only rich itself sends control sequences; a string is one line, a Text may be several."""

    def render_str(self, text: str, **options: Any) -> Text:
        """The string as a line."""
        return super().render_str(without_commands(one_line(text)), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """The segments of a renderable, made safe to print."""
        content = _without_commands(renderable) if isinstance(renderable, Text) else renderable
        for segment in super().render(content, options):
            yield segment if segment.control else segment._replace(text=isolated(without_commands(segment.text)))


def _without_commands(text: Text) -> Text:
    """The same text, in its styles, without control characters and escape sequences."""
    marks = [offset for match in COMMANDS.finditer(text.plain) for offset in match.span()]
    if not marks:
        return text
    return text.blank_copy(UNPRINTABLE).join(text.divide(marks)[::2])


def console(*, stderr: bool = False) -> Console:
    """A console without markup, as texts may hold brackets."""
    stream = sys.stderr if stderr else sys.stdout
    if stream.isatty():
        return Screen(file=stream, markup=False, emoji=False, highlight=False)
    return Screen(file=cast("IO[str]", _Trimmed(stream)), markup=False, emoji=False, highlight=False, width=PLAIN_WIDTH)


def encode_json(value: Any) -> bytes:
    """JSON in one line, with control characters escaped."""
    return printable_json(msgspec.json.encode(value))


def print_json(value: Any) -> None:
    """One JSON object in one line."""
    typer.echo(encode_json(value))


def print_exact(text: str) -> None:
    """The text alone: byte for byte to another program, without control characters to a terminal."""
    typer.echo((printable(text) if sys.stdout.isatty() else text).encode(), nl=False)


def grid(*styles: str, ratio_last: bool = True) -> Table:
    """A table without lines and with one style per column; the last column takes the remaining width and wraps."""
    table = Table.grid(padding=(0, 2), expand=False)
    for number, style in enumerate(styles, start=1):
        last = number == len(styles) and ratio_last
        table.add_column(style=style, no_wrap=not last, overflow="fold" if last else "ellipsis")
    return table


def heading(text: str) -> Text:
    """The heading of a section of the output."""
    return Text(one_line(text), style="bold")
