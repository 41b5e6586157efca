"""Output of the command line: wrapped text, columns, JSON for programs; signals that end it.

All output goes through here, so that no control character in a model's or a file's text reaches the terminal
(`cotrail.common.printable_text`).
"""

import io
import signal
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import IO, Any, TextIO, cast

import msgspec
import typer
from msgspec import Struct
from msgspec.structs import replace
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from cotrail.common import printable_text
from cotrail.errors import InputError
from cotrail.services.results.reports.sheets import Sheet


def write_text(path: Path, text: str, advice: str) -> None:
    """Writes text in UTF-8; InputError, with the advice, where the file can't be written."""
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise InputError(f"{path} can't be written ({error.strerror}); {advice}") from error


def make_folder(path: Path, advice: str) -> None:
    """Makes a folder where there is none; InputError, with the advice, where that fails."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder {path} can't be made ({error.strerror}); {advice}") from error


def check_free(path: Path, *, overwrite: bool) -> None:
    """Raises InputError where a file would be replaced and nobody asked for it; devices and pipes can be written to."""
    if path.is_file() and not overwrite:
        raise InputError(f"{path} is there already; name another file, or replace it with --overwrite")


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
        return super().render_str(printable_text.without_commands(printable_text.one_line(text)), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """The segments of a renderable, made safe to print."""
        content = _without_commands(renderable) if isinstance(renderable, Text) else renderable
        for segment in super().render(content, options):
            yield (
                segment
                if segment.control
                else segment._replace(text=printable_text.isolated(printable_text.without_commands(segment.text)))
            )


def _without_commands(text: Text) -> Text:
    """The same text, in its styles, without control characters and escape sequences."""
    marks = [offset for match in printable_text.COMMANDS.finditer(text.plain) for offset in match.span()]
    if not marks:
        return text
    return text.blank_copy(printable_text.UNPRINTABLE).join(text.divide(marks)[::2])


def console(*, stderr: bool = False) -> Console:
    """A console without markup, as texts may hold brackets."""
    stream = sys.stderr if stderr else sys.stdout
    if stream.isatty():
        return Screen(file=stream, markup=False, emoji=False, highlight=False)
    return Screen(file=cast("IO[str]", _Trimmed(stream)), markup=False, emoji=False, highlight=False, width=PLAIN_WIDTH)


def in_json(value: Any, *, json: bool) -> bool:
    """Print a value as JSON where `--json` asks for it; return whether that was so, so that nothing else is printed."""
    if json:
        print_json(value)
    return json


def print_json(value: Any, *, stderr: bool = False) -> None:
    """One JSON object in one line."""
    typer.echo(printable_text.printable_json(msgspec.json.encode(value)), err=stderr)


def print_exact(text: str) -> None:
    """The text alone: byte for byte to another program, without control characters to a terminal."""
    typer.echo((printable_text.printable(text) if sys.stdout.isatty() else text).encode(), nl=False)


def grid(*styles: str, ratio_last: bool = True) -> Table:
    """A table without lines and with one style per column; the last column takes the remaining width and wraps."""
    table = Table.grid(padding=(0, 2), expand=False)
    for number, style in enumerate(styles, start=1):
        last = number == len(styles) and ratio_last
        table.add_column(style=style, no_wrap=not last, overflow="fold" if last else "ellipsis")
    return table


def heading(text: str) -> Text:
    """The heading of a section of the output."""
    return Text(printable_text.one_line(text), style="bold")


# Signals that end a command: it leaves as by Ctrl-C, so that what it began is put in order.

ENDING = (signal.SIGTERM, signal.SIGHUP)


def leave_in_order() -> None:
    """Have these signals raise SystemExit in the main thread, unless the parent process had them ignored.

    Python's own way would be to end at once, and as the first process of a container not at all.
    """
    for number in ENDING:
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _leave)


def _leave(number: int, _: FrameType | None) -> None:
    sys.exit(128 + number)


# Tables that fit the terminal: cells wrap between words, and a row that still doesn't fit becomes a paragraph.

WIDE, NARROW = 2, 1
"""Spaces between columns, and those where there is little room."""

EMPTY_CELL = "-"
"""A cell that says that there is nothing; a paragraph leaves it out."""


class Column(Struct, frozen=True, kw_only=True):
    """A column; whole: its cells never wrap; most: characters in a line of it, as far as there is room."""

    title: str = ""
    style: str = ""
    right: bool = False
    whole: bool = False
    most: int | None = None


def titled(
    *titles: str, right: Collection[str] = (), whole: Collection[str] = (), bold: Collection[str] = ()
) -> list[Column]:
    """Columns with these titles, and which of them are flush right, never wrap, or are in bold."""
    return [
        Column(title=title, style="bold" if title in bold else "", right=title in right, whole=title in whole)
        for title in titles
    ]


INTERVAL = "95 % interval"
"""The title of a column of intervals."""

Cell = str | Text


def print_rows(
    screen: Console, columns: Sequence[Column], rows: Sequence[Sequence[Cell]], styles: Sequence[str] = ()
) -> None:
    """Prints rows of cells; styles: those of the rows, if any."""
    styles = styles or [""] * len(rows)
    if not screen.is_terminal:
        columns = [replace(column, most=None) for column in columns]
    texts = [[column.title, *(_plain(row[place]) for row in rows)] for place, column in enumerate(columns)]
    whole = [_natural(column, cells) for column, cells in zip(columns, texts, strict=True)]
    least = [_least(column, cells) for column, cells in zip(columns, texts, strict=True)]
    if not screen.is_terminal:
        screen.width = max(screen.width, sum(whole) + WIDE * len(columns))
    for gap in (WIDE, NARROW):
        room = screen.width - gap * (len(columns) - 1)
        if sum(least) <= room:
            screen.print(_table(columns, rows, styles, _shared(whole, least, room), gap))
            return
    for row, style in zip(rows, styles, strict=True):
        _print_paragraph(screen, columns, row, style)


def _plain(cell: Cell) -> str:
    return cell.plain if isinstance(cell, Text) else printable_text.one_line(cell)


def _natural(column: Column, cells: Sequence[str]) -> int:
    width = max(cell_len(line) for cell in cells for line in cell.split("\n"))
    return width if column.most is None else max(min(width, column.most), _least(column, cells))


def _least(column: Column, cells: Sequence[str]) -> int:
    """The width in which nothing is broken but between words."""
    title, *values = cells
    parts = values if column.whole else [word for value in values for word in value.split()]
    return max((cell_len(part) for part in (*title.split(), *parts)), default=0)


def _shared(whole: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """The widths of columns between the least and the whole ones; those that need little get it first."""
    widths, spare = list(least), room - sum(least)
    by_need = sorted(range(len(widths)), key=lambda place: whole[place] - least[place])
    for left, place in zip(range(len(widths), 0, -1), by_need, strict=True):
        extra = min(whole[place] - least[place], spare // left)
        widths[place] += extra
        spare -= extra
    return widths


def _table(
    columns: Sequence[Column], rows: Sequence[Sequence[Cell]], styles: Sequence[str], widths: Sequence[int], gap: int
) -> Table:
    titled = any(column.title for column in columns)
    table = Table(box=None, show_header=titled, pad_edge=False, padding=(0, gap, 0, 0), header_style="dim")
    for column, width in zip(columns, widths, strict=True):
        table.add_column(
            column.title, style=column.style, justify="right" if column.right else "left", width=width, overflow="fold"
        )
    for row, style in zip(rows, styles, strict=True):
        table.add_row(*row, style=style)
    return table


def _print_paragraph(screen: Console, columns: Sequence[Column], row: Sequence[Cell], style: str) -> None:
    """Prints the first cell as a heading, and below it what the others have, each behind its column's title."""
    first, *others = (cell.copy() if isinstance(cell, Text) else Text(printable_text.one_line(cell)) for cell in row)
    screen.print(Text(style="bold").append_text(first), style=style, soft_wrap=False)
    parts = [
        Text(f"{column.title} ", style="dim").append_text(cell) if column.title else cell
        for column, cell in zip(columns[1:], others, strict=True)
        if cell.plain.strip() not in ("", EMPTY_CELL)
    ]
    screen.print(Padding(Text(" · ", style="dim").join(parts), (0, 0, 0, 2), expand=False), style=style)


# Tables of experiments on the terminal.

PASSAGE_WIDTH = 40
"""Characters in a line of a long text, as far as there is room."""


def print_tables(sheets: Iterable[Sheet], screen: Console) -> None:
    """Prints the tables one below the other; where the output is no terminal, as wide as they are."""
    for text in sheets:
        screen.print()
        screen.print(heading(text.title), soft_wrap=True)
        _print_rows(text, screen)
        for note in text.notes:
            screen.print(Text(note, style="dim"), soft_wrap=not screen.is_terminal)


def _print_rows(text: Sheet, screen: Console) -> None:
    columns = [
        Column(title=title, right=numeric, whole=numeric, most=PASSAGE_WIDTH if long else None)
        for title, numeric, long in zip(text.headings, text.numeric, text.long, strict=True)
    ]
    rows = [(*row.cells, row.remark) if text.remarked else row.cells for row in text.rows]
    styles = ["bold" if row.chosen else "dim" if row.published else "" for row in text.rows]
    print_rows(screen, [*columns, Column()] if text.remarked else columns, rows, styles)
